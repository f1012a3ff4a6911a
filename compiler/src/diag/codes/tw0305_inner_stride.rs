//! TW0305: a staged tensor without neighbours in memory.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// The innermost axis of a tensor map has no stride: its elements follow each other in memory. A tensor whose
    /// elements are apart along every axis cannot be copied by the accelerator.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N; ld, 2]) -> (y: f32[M, N]) where ld % 4 == 0 {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split i by 32 -> io, ii;
    ///         split j by 32 -> jo, ji;
    ///         reorder io, jo, ii, ji;
    ///         bind io, jo: grid;
    ///         split ii by 8 -> r, w;
    ///         bind w: thread;
    ///         bind ji: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.jo via tma { box i by 32 -> ic, ib; box j by 32 -> jc, jb; }
    /// }
    /// ```
    ///
    /// The message names the distance of neighbours.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N; ld, 1]) -> (y: f32[M, N]) where ld % 4 == 0 {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split i by 32 -> io, ii;
    ///         split j by 32 -> jo, ji;
    ///         reorder io, jo, ii, ji;
    ///         bind io, jo: grid;
    ///         split ii by 8 -> r, w;
    ///         bind w: thread;
    ///         bind ji: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.jo via tma { box i by 32 -> ic, ib; box j by 32 -> jc, jb; }
    /// }
    /// ```
    TW0305 "inner-stride" Error "a staged tensor without neighbours in memory"
}

/// TW0305: no axis of the tensor has neighbours that are neighbours in memory.
#[derive(Clone, Debug)]
pub struct InnerStride {
    /// The tensor.
    pub tensor: String,
    /// The innermost axis and the distance of its neighbours in elements.
    pub axis: String,
    /// Their distance.
    pub stride: String,
    /// The copy.
    pub span: Span,
}

impl IntoDiagnostic for InnerStride {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { tensor, axis, stride, span } = self;
        Diagnostic::new(
            Code::TW0305,
            span,
            format!("`{tensor}` cannot be copied by TMA: neighbours along `{axis}` are {stride} elements apart"),
        )
        .note("the innermost axis of a tensor map has no stride: its elements follow each other in memory")
        .help("stage another tensor, or let each thread read this one: without `stage`")
    }
}
