//! TW1010: an argmax or argmin over indices that are no `u32`.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::state;
use crate::source::Span;
use super::Witness;

row! {
    /// `argmax` and `argmin` give an index as a `u32`. An index below 0 has no such number, and one beyond 4294967295
    /// would lose bits. Where a range ends at sizes, a launch checks that it ends early enough; that it begins at 0 or
    /// after it has to follow from the facts.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Nearest(x: f32[N]) -> (y: u32[N]) {
    ///     y[i] = argmin(|k in i - 1..i + 1| abs(x[k] or 0.0));
    /// }
    /// ```
    ///
    /// The counterexample gives the smallest case in which the range begins below 0.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Nearest(x: f32[N]) -> (y: u32[N]) {
    ///     y[i] = argmin(|k in i..i + 2| abs(x[k - 1] or 0.0));
    /// }
    /// ```
    ///
    /// The axis begins at 0, and what lies before it is read.
    TW1010 "place-outside" Error "an argmax or argmin over indices that are no `u32`"
}

/// TW1010: an `argmax` or `argmin` over indices that are no `u32`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceOutside {
    /// `argmax` or `argmin`.
    pub reduction: &'static str,
    /// The reduction.
    pub span: Span,
    /// Its range, in the user's names: `i - 1..N`.
    pub range: String,
    /// Whether it begins below 0; otherwise it ends beyond 2³².
    pub is_below: bool,
    /// The smallest case in which it does.
    pub witness: Option<Witness>,
    /// Facts that rule it out, proved to.
    pub facts: Vec<String>,
}

impl IntoDiagnostic for PlaceOutside {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { reduction, span, range, is_below, witness, facts } = self;
        let known = if witness.is_some() { "may find" } else { "cannot be shown to find no" };
        let which = if is_below { "index below 0" } else { "index beyond 4294967295" };
        let article = if witness.is_some() { " an" } else { "" };
        let title = format!("`{reduction}` over {range} {known}{article} {which}");
        let mut diagnostic = Diagnostic::new(Code::TW1010, span, title).note("the index that it gives is a `u32`");
        let case = format!("takes the `{reduction}` of terms that begin below 0");
        diagnostic.counterexample = witness.map(|w| w.sentence(&case));
        match (facts.is_empty(), is_below) {
            (false, _) => state(diagnostic, facts),
            (true, true) => diagnostic.help("search an axis that begins at 0, and read what lies before: `x[k - 1]`"),
            (true, false) => diagnostic.help("end the range at a sum of sizes and axes, which launches will check"),
        }
    }
}
