//! TW0406: a loop over the result inside one over the terms that needs too many accumulators.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::append;
use crate::source::Span;

row! {
    /// A loop over elements inside a loop over the terms of their reduction keeps one accumulator for each element in
    /// registers, and a thread has room for at most 256.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
    ///     y[i] = sum(|j| x[i, j]);
    ///     schedule y { reorder j, i; }
    /// }
    /// ```
    ///
    /// The message counts the accumulators, or names the extent that is not known.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
    ///     y[i] = sum(|j| x[i, j]);
    ///     schedule y { split i by 8 -> io, ii; bind io: grid; reorder io, j, ii; }
    /// }
    /// ```
    TW0406 "accumulators" Error "a loop over the result inside one over the terms that needs too many accumulators"
}

/// TW0406: a loop over the result inside a loop over the terms whose extent is not known.
#[derive(Clone, Debug)]
pub struct AccumulatorExtent {
    /// The axis of the result.
    pub axis: String,
    /// Its extent.
    pub extent: String,
    /// Number of accumulators, if it is known and too large.
    pub count: Option<i128>,
    /// Most accumulators of a thread.
    pub limit: i128,
    /// The reduction axis around it.
    pub around: String,
    /// Where the axis was introduced.
    pub span: Span,
    /// All sequential axes with those of the reduction innermost.
    pub order: Vec<String>,
}

impl IntoDiagnostic for AccumulatorExtent {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, extent, count, limit, around, span, order } = self;
        let title = match count {
            Some(count) => format!("the loop over `{axis}` inside the loop over `{around}` needs {count} accumulators"),
            None => format!(
                "the loop over `{axis}` is inside the loop over `{around}`, and its extent {extent} is not known"
            ),
        };
        Diagnostic::new(Code::TW0406, span, title)
            .note(format!("each element of the inner loop keeps an accumulator in registers; at most {limit} fit"))
            .change(append(&order), format!("put the reduction innermost: `reorder {};`", order.join(", ")))
    }
}
