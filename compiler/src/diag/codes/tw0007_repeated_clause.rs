//! TW0007: a clause written twice or missing.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Each clause of a `schedule`, `launch` or `fold` stands at most once; `init` and `step` of a `fold` stand exactly
    /// once.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     launch threads(128), threads(256);
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// The message stands at the second one and shows the first one; or it names the clause that is missing.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     launch threads(256);
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW0007 "repeated-clause" Error "a clause written twice or missing"
}

/// TW0007: a clause written twice or missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedClause {
    /// The clause.
    pub clause: &'static str,
    /// Where it is written again, or the construct that lacks it.
    pub span: Span,
    /// Where it was written first; `None` if it is missing.
    pub first: Option<Span>,
}

impl IntoDiagnostic for RepeatedClause {
    fn into_diagnostic(self) -> Diagnostic {
        let RepeatedClause { clause, span, first } = self;
        match first {
            Some(first) => Diagnostic::new(Code::TW0007, span, format!("`{clause}` is given twice"))
                .label(first, "first given here")
                .help("keep one of them"),
            None => Diagnostic::new(Code::TW0007, span, format!("`{clause}` is missing")),
        }
    }
}
