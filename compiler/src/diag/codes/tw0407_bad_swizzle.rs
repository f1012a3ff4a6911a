//! TW0407: a swizzle that a copy cannot have.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A swizzle exchanges chunks of 16 bytes inside spans of 32, 64 or 128 bytes, so that the rows of a tile do not
    /// fall into the same banks. The innermost box fills the span: how narrower rows lie in shared memory is not
    /// confirmed on hardware. A swizzle is written by its span, or as ops on axes of the tile, not both ways at once.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
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
    ///     stage xs[i, j] = x in shared at y.jo via tma { box i by 32 -> ic, ib; box j by 16 -> jc, jb; layout [jc, ib, jb] swizzle 128; }
    /// }
    /// ```
    ///
    /// The message names the bytes of a row and of the span.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
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
    ///     stage xs[i, j] = x in shared at y.jo via tma { box i by 32 -> ic, ib; box j by 32 -> jc, jb; layout [ib, jb] swizzle 128; }
    /// }
    /// ```
    TW0407 "bad-swizzle" Error "a swizzle that a copy cannot have"
}

/// What is wrong with a swizzle.
#[derive(Clone, Debug)]
pub enum SwizzleProblem {
    /// There is one as an op, too.
    Twice(Span),
    /// A span that does not exist.
    Span,
    /// The innermost box is narrower than the span.
    Narrow {
        /// Bytes of the box.
        bytes: i128,
        /// Bytes of the span.
        span: u32,
    },
}

/// TW0407: a swizzle that the accelerator does not do, or that is not confirmed.
#[derive(Clone, Debug)]
pub struct BadSwizzle {
    /// The copy.
    pub copy: String,
    /// What is wrong.
    pub problem: SwizzleProblem,
    /// Bytes of an element.
    pub element: u32,
    /// The innermost axis.
    pub inner: String,
    /// The span, or the `layout` op.
    pub span: Span,
}

impl IntoDiagnostic for BadSwizzle {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, problem, element, inner, span } = self;
        match problem {
            SwizzleProblem::Twice(op) => {
                Diagnostic::new(Code::TW0407, span, format!("the tile of `{copy}` is swizzled twice"))
                    .label(op, "the first time")
                    .note("the span of a layout is short for `swizzle` ops on axes of the tile")
                    .help("write the ops, or the span")
            }
            SwizzleProblem::Span => {
                Diagnostic::new(Code::TW0407, span, format!("`{copy}` has a swizzle span that does not exist"))
                    .note("a swizzle exchanges chunks of 16 bytes inside spans of 32, 64 or 128 bytes")
            }
            SwizzleProblem::Narrow { bytes, span: whole } => Diagnostic::new(
                Code::TW0407,
                span,
                format!("the tile of `{copy}` has rows of {bytes} bytes, and its swizzle spans {whole}"),
            )
            .note("how far rows narrower than the span are apart in shared memory is not confirmed on hardware")
            .help(match bytes {
                32 | 64 => format!("write `swizzle {bytes}`, or box `{inner}` by {}", whole / element),
                _ => format!("box `{inner}` by {}, or leave the swizzle out: none spans {bytes} bytes", whole / element),
            }),
        }
    }
}
