//! TW1008: a schedule that changes the order of an ordered reduction.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `ordered` fixes the result bit for bit: each thread takes the terms in ascending order. Its loops have to count
    /// up through them. The same goes for a `fold` without `merge`, whose steps have no other order.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Sum(x: f32[N]) -> (y: f32[]) {
    ///     y[] = ordered sum(|k| x[k]);
    ///     schedule y { split k by 32 -> ko, ki; reorder ki, ko; }
    /// }
    /// ```
    ///
    /// The message names the two loops that are the wrong way round.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Sum(x: f32[N]) -> (y: f32[]) {
    ///     y[] = ordered sum(|k| x[k]);
    ///     schedule y { split k by 32 -> ko, ki; unroll ki; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Give a `fold` a `merge`, if the states of two parts can be combined.
    /// - Drop `ordered`: then every order is admissible, and results may differ in the last bits.
    TW1008 "reordered-terms" Error "a schedule that changes the order of an ordered reduction"
}

/// TW1008: a schedule that changes the order of an `ordered` reduction, or of a `fold` without `merge`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReorderedTerms {
    /// The loop that is outside.
    pub outer: String,
    /// The loop that is inside, and whose iterations lie further apart.
    pub inner: String,
    /// Where the inner axis was introduced.
    pub span: Span,
    /// The reduction.
    pub reduction: Span,
    /// Whether it is a `fold`.
    pub is_fold: bool,
    /// All loops over terms in an order that is ascending; none if an op has mixed them.
    pub order: Option<Vec<String>>,
}

impl IntoDiagnostic for ReorderedTerms {
    fn into_diagnostic(self) -> Diagnostic {
        let ReorderedTerms { outer, inner, span, reduction, is_fold, order } = self;
        let (label, note) = if is_fold {
            (
                "this `fold` has no `merge`",
                "without `merge` the steps are taken in ascending order: there is one result",
            )
        } else {
            (
                "this reduction is `ordered`",
                "`ordered` fixes the result bit for bit: terms are taken in ascending order",
            )
        };
        let mut diagnostic = Diagnostic::new(
            Code::TW1008,
            span,
            format!("the loop over `{inner}` inside the loop over `{outer}` takes the terms out of order"),
        )
        .label(reduction, label)
        .note(note);
        if let Some(order) = order {
            let op = format!("reorder {}", order.join(", "));
            let text = format!("put `{inner}` outside `{outer}`: `{op};`");
            diagnostic = diagnostic.change(Change::AppendOp(op), text);
        }
        if is_fold {
            return diagnostic.help("or give it a `merge`, if its parts can be combined: then any order is admissible");
        }
        let word = Span::token(reduction.first);
        diagnostic.replace(word, "", "or drop `ordered`: then any order is an admissible result")
    }
}
