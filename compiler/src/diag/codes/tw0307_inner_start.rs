//! TW0307: a staged copy that does not start at a multiple of 16 bytes.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Along the innermost axis a copy starts at a multiple of 16 bytes. What the hardware does with other starts is
    /// not confirmed: it may stop. Along the other axes copies start anywhere, before the tensor too.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Shift(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = x[i + 1] or 0.0;
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    ///     stage xs[i] = x in shared at y.b via tma { box i by 256 -> c, e; }
    /// }
    /// ```
    ///
    /// The message shows where copies would start.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Shift(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = x[i + 4] or 0.0;
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    ///     stage xs[i] = x in shared at y.b via tma { box i by 256 -> c, e; }
    /// }
    /// ```
    TW0307 "inner-start" Error "a staged copy that does not start at a multiple of 16 bytes"
}

/// TW0307: copies that do not start at multiples of 16 bytes.
#[derive(Clone, Debug)]
pub struct InnerStart {
    /// The copy.
    pub copy: String,
    /// The innermost axis.
    pub axis: String,
    /// Where regions start along it.
    pub start: String,
    /// What that must be a multiple of, in elements.
    pub multiple: i128,
    /// The copy.
    pub span: Span,
}

impl IntoDiagnostic for InnerStart {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, axis, start, multiple, span } = self;
        Diagnostic::new(
            Code::TW0307,
            span,
            format!("`{copy}` would start at {start} along `{axis}`, which is not known to be a multiple of {multiple}"),
        )
        .note("a copy starts at a multiple of 16 bytes of the innermost axis: what the hardware does otherwise is not confirmed")
        .help(format!("split `{axis}` by a multiple of {multiple} in the stage that reads it, and read it without an offset"))
    }
}
