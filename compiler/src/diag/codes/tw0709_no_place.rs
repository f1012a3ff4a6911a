//! TW0709: a stage without a place.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A stage that hands its values on has memory: `in registers`, `in shared` or `in global`, at a loop of a reader.
    /// Each iteration has an instance of its own, which one block computes and reads. Without a loop, `in global` would
    /// be a tensor that all blocks write and read; but blocks of one launch do not wait for each other.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Shift(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     m[i] = max(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - m[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule m at y.i { like y; reduce t; }
    /// }
    /// ```
    ///
    /// The message names the stage.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Shift(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     m[i] = max(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - m[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule m in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    ///
    /// `schedule m in global at y.i { … }` is right, too: the block keeps what it needs in memory that the launch
    /// provides.
    ///
    /// ## Other ways out
    ///
    /// - Make the stage an output, and read it in the next kernel.
    TW0709 "no-place" Error "a stage without a place"
}

/// TW0709: a stage without memory, or in global memory for all blocks, which would wait for each other.
#[derive(Clone, Debug)]
pub struct NoPlace {
    /// The stage.
    pub stage: String,
    /// Whether it says `in global`, and in no loop.
    pub is_global: bool,
    /// The clause, or the head.
    pub span: Span,
}

impl IntoDiagnostic for NoPlace {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, is_global, span } = self;
        if is_global {
            return Diagnostic::new(
                Code::TW0709,
                span,
                format!("`{stage}` would be read by blocks that did not write it"),
            )
            .note("blocks of one launch do not wait for each other: a tensor in device memory ends the kernel")
            .help(format!(
                "say in which loop a block computes and reads it: `in global at …`; or make `{stage}` an output and read it in the next kernel"
            ));
        }
        Diagnostic::new(Code::TW0709, span, format!("`{stage}` has no memory"))
            .help("say where it is: `in registers at …`, `in shared at …` or `in global at …`")
    }
}
