//! TW0411: a layout that the buffer of a stage cannot have.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// The `layout` of a stage in shared memory lists axes, outermost first: axes of the stage, or what its ops make of
    /// them. Together they tell elements apart, each once: no axis is left out, and none is listed beside another that
    /// it is made of. Stages in registers and global memory, and outputs, have no layout. Instances `per thread` are
    /// columns of a buffer, whose elements lie apart: there is nothing to swizzle.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Transpose(x: f32[M, N]) -> (y: f32[N, M]) {
    ///     y[j, i] = x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split j by 32 -> jo, ji; split i by 32 -> io, ii; split ji by 8 -> jr, w;
    ///         reorder jo, io, jr, w, ii; bind jo, io: grid; bind w: warp; bind ii: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.io {
    ///         split i by 8 -> ir, w;
    ///         bind w: warp;
    ///         bind j: thread;
    ///         layout [ir, j pad 1];
    ///     }
    /// }
    /// ```
    ///
    /// Rows that differ in `w` would lie in one place.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Transpose(x: f32[M, N]) -> (y: f32[N, M]) {
    ///     y[j, i] = x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split j by 32 -> jo, ji; split i by 32 -> io, ii; split ji by 8 -> jr, w;
    ///         reorder jo, io, jr, w, ii; bind jo, io: grid; bind w: warp; bind ii: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.io {
    ///         split i by 8 -> ir, w;
    ///         bind w: warp;
    ///         bind j: thread;
    ///         layout [ir, w, j pad 1];
    ///     }
    /// }
    /// ```
    ///
    /// `layout [i, j pad 1]` is the same.
    TW0411 "bad-buffer-layout" Error "a layout that the buffer of a stage cannot have"
}

/// What is wrong with the layout of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferLayoutProblem {
    /// The stage is here, where it has no buffer.
    NoBuffer(&'static str),
    /// There is one already.
    Again(Span),
    /// No axis of the stage has this name.
    Unknown(String),
    /// An axis of the reduction.
    Terms(String),
    /// An axis that another one of the layout is made of, or the same.
    Related(String, String),
    /// An axis that nothing of the layout tells.
    Missing(String),
    /// A swizzle span that does not exist.
    Span,
    /// A swizzle of the instances of threads.
    Columns,
    /// A place that is too long to write down.
    TooLong,
}

/// TW0411: a layout that the buffer of a stage cannot have.
#[derive(Clone, Debug)]
pub struct BadBufferLayout {
    /// The stage.
    pub stage: String,
    /// What is wrong.
    pub problem: BufferLayoutProblem,
    /// The order without a layout.
    pub natural: Vec<String>,
    /// The axis, or the op.
    pub span: Span,
}

impl IntoDiagnostic for BadBufferLayout {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, problem, natural, span } = self;
        let found = |title: String| Diagnostic::new(Code::TW0411, span, title);
        let without = format!("without a layout it is [{}]", natural.join(", "));
        let apart = "a layout lists axes that tell elements apart, each element once: axes of the stage, or what ops make of them";
        match problem {
            BufferLayoutProblem::NoBuffer(place) => {
                found(format!("`{stage}` is in {place}, and has no buffer to lay out"))
                    .note("a layout is the order of elements in shared memory")
                    .change(Change::RemoveOp(span), "remove the `layout`")
            }
            BufferLayoutProblem::Again(first) => found(format!("`{stage}` is laid out twice"))
                .label(first, "the first time")
                .change(Change::RemoveOp(span), "remove one of them"),
            BufferLayoutProblem::Unknown(axis) => {
                found(format!("`{stage}` has no axis `{axis}` to lay out")).note(apart).help(without)
            }
            BufferLayoutProblem::Terms(axis) => {
                found(format!("`{axis}` counts terms of `{stage}`, not elements")).note(apart).help(without)
            }
            BufferLayoutProblem::Related(axis, other) if axis == other => {
                found(format!("`{axis}` is laid out twice")).note(apart).help(without)
            }
            BufferLayoutProblem::Related(axis, other) => {
                found(format!("`{axis}` and `{other}` are laid out, and one is made of the other"))
                    .note(apart)
                    .help(without)
            }
            BufferLayoutProblem::Missing(axis) => found(format!(
                "the layout of `{stage}` leaves out `{axis}`: elements that differ in it would lie in one place"
            ))
            .note(apart)
            .help(without),
            BufferLayoutProblem::Span => {
                found(format!("the layout of `{stage}` has a swizzle span that does not exist"))
                    .note("a swizzle exchanges chunks of 16 bytes inside spans of 32, 64 or 128 bytes")
            }
            BufferLayoutProblem::Columns => {
                found(format!("the instances of `{stage}` are columns of a buffer, which have no spans to swizzle"))
                    .note(
                        "elements of all threads with one number lie side by side: no two lanes need one bank for them",
                    )
                    .change(Change::RemoveOp(span), "remove the `layout`, or leave its `swizzle` out")
            }
            BufferLayoutProblem::TooLong => {
                found(format!("where an element of `{stage}` lies is too long to write down"))
                    .help("lay out fewer parts of merged axes")
                    .help(without)
            }
        }
    }
}
