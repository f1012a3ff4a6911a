//! TW0205: an axis of the result merged with one of the reduction.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An axis of the result counts elements; an axis of a reduction counts terms. An iteration of both merged would
    /// belong to an element and to a term of it at once.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
    ///     y[i] = sum(|j| x[i, j]);
    ///     schedule y { merge i, j -> ij; }
    /// }
    /// ```
    ///
    /// The message names both axes.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel RowSum(x: f32[L, M, N]) -> (y: f32[L, M]) {
    ///     y[h, i] = sum(|j| x[h, i, j]);
    ///     schedule y { merge h, i -> hi; split hi by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW0205 "mixed-merge" Error "an axis of the result merged with one of the reduction"
}

/// TW0205: an axis of the result merged with one of the reduction.
#[derive(Clone, Debug)]
pub struct MixedMerge {
    /// One axis.
    pub first: String,
    /// The other.
    pub second: String,
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for MixedMerge {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { first, second, span } = self;
        Diagnostic::new(
            Code::TW0205,
            span,
            format!("`{first}` and `{second}` cannot be merged: only one of them is reduced over"),
        )
        .note("an iteration of the merged axis would belong to an element and to a term of its reduction at once")
    }
}
