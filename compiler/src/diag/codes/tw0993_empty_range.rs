//! TW0993: a reduction that never has a term.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A warning: the kernel is right, and the reduction gives its identity, such as 0 for `sum`, for every size. A
    /// range ends before its second number: `0..3` is 0, 1, 2.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Corner(x: f32[N, 3]) -> (y: f32[N]) {
    ///     y[i] = sum(|k in 2..2| x[i, k]);
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Corner(x: f32[N, 3]) -> (y: f32[N]) {
    ///     y[i] = sum(|k in 2..3| x[i, k]);
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW0993 "empty-range" Warning "a reduction that never has a term"
}

/// TW0993: a reduction that never has a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyRange {
    /// The axis.
    pub axis: String,
    /// Its range.
    pub range: String,
    /// The reduction.
    pub span: Span,
}

impl IntoDiagnostic for EmptyRange {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, range, span } = self;
        Diagnostic::new(
            Code::TW0993,
            span,
            format!("this reduction never has a term: `{axis}` in {range} is always empty"),
        )
        .note("a range ends before its second number: `0..3` is 0, 1, 2")
    }
}
