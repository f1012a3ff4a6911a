//! TW1001: an argmax or argmin over a range that may be empty.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::state;
use crate::source::Span;
use super::Witness;

row! {
    /// `argmax` and `argmin` of nothing have no result. A launch may have a size of 0, and other reductions then write
    /// their identity; here it has to follow from the facts, which a launch checks, that the range is not empty.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Best(x: f32[M, N]) -> (y: u32[M]) {
    ///     y[i] = argmax(|j| x[i, j]);
    /// }
    /// ```
    ///
    /// The counterexample gives the smallest case in which there is nothing to choose from.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Best(x: f32[M, N]) -> (y: u32[M])
    /// where N >= 1
    /// {
    ///     y[i] = argmax(|j| x[i, j]);
    /// }
    /// ```
    TW1001 "empty-argmax" Error "an argmax or argmin over a range that may be empty"
}

/// TW1001: an `argmax` or `argmin` over a range that may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyArgmax {
    /// `argmax` or `argmin`.
    pub reduction: &'static str,
    /// The reduction.
    pub span: Span,
    /// Its range, in the user's names: `0..N`.
    pub range: String,
    /// The smallest case in which it is empty.
    pub witness: Option<Witness>,
    /// Facts that rule it out, proved to: `N >= 1`.
    pub facts: Vec<String>,
}

impl IntoDiagnostic for EmptyArgmax {
    fn into_diagnostic(self) -> Diagnostic {
        let EmptyArgmax { reduction, span, range, witness, facts } = self;
        let known = if witness.is_some() { "may have" } else { "cannot be shown not to have" };
        let title = format!("`{reduction}` over {range} {known} nothing to choose from");
        let mut diagnostic = Diagnostic::new(Code::TW1001, span, title);
        diagnostic.counterexample = witness.map(|w| w.sentence(&format!("takes the `{reduction}` of nothing")));
        if facts.is_empty() { diagnostic } else { state(diagnostic, facts) }
    }
}
