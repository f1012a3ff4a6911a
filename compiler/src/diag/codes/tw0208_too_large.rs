//! TW0208: an extent beyond exact arithmetic.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Extents are computed exactly in 128 bits, with at most 64 terms. Beyond that nothing could be proved about them,
    /// so the schedule is refused.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[1000000000000000000, 1000000000000000000, 1000]) -> (y: f32[1000000000000000000, 1000000000000000000, 1000]) {
    ///     y[i, j, k] = 2.0 * x[i, j, k];
    ///     schedule y { merge i, j, k -> all; split all by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// The message stands where the axis is introduced.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[L, M, N]) -> (y: f32[L, M, N]) {
    ///     y[i, j, k] = 2.0 * x[i, j, k];
    ///     schedule y { merge i, j, k -> all; split all by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW0208 "too-large" Error "an extent beyond exact arithmetic"
}

/// TW0208: sizes so large that nothing can be proved about them.
#[derive(Clone, Debug)]
pub struct TooLarge {
    /// The axis.
    pub axis: String,
    /// Most terms of an expression.
    pub terms: usize,
    /// Where it is introduced.
    pub span: Span,
}

impl IntoDiagnostic for TooLarge {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, terms, span } = self;
        Diagnostic::new(
            Code::TW0208,
            span,
            format!("the extent of `{axis}` is too large or too complicated to reason about"),
        )
        .note(format!("extents are computed exactly in 128 bits, with at most {terms} terms"))
        .help("use smaller factors, or fewer merges of split axes")
    }
}
