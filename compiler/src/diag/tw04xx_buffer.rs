//! TW04: the layout of buffers that threads fill, and bank conflicts of all buffers.

use super::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

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

/// TW0412: a layout in which the lanes of a vector are no longer one.
#[derive(Clone, Debug)]
pub struct LaidOutVector {
    /// The stage with the layout.
    pub stage: String,
    /// The stage that reads it; none if it is written.
    pub reader: Option<String>,
    /// The vectorised axis, its lanes.
    pub axis: String,
    /// Its lanes.
    pub lanes: i128,
    /// The layout with the least padding beyond what is written that keeps vectors, if padding does.
    pub padded: Option<String>,
    /// Whether lanes may go by themselves: not those of all copies by `cp.async`.
    pub alone: bool,
    /// The `vectorize` op.
    pub vectorize: Span,
    /// The layout.
    pub span: Span,
}

impl IntoDiagnostic for LaidOutVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, reader, axis, lanes, padded, alone, vectorize, span } = self;
        let what = match &reader {
            Some(reader) => format!("`{reader}` reads `{stage}`"),
            None => format!("`{stage}` is written"),
        };
        let title = format!("{what} by vectors of {lanes} along `{axis}`, which this layout takes apart");
        let found = Diagnostic::new(Code::TW0412, span, title).label(vectorize, "vectorised here").note(format!(
            "a vector is accessed whole: {lanes} neighbours in the buffer, at a multiple of {lanes} elements"
        ));
        let found = match padded {
            Some(layout) => {
                let text = format!("pad by whole vectors: `{layout}`");
                found.change(Change::Replace(span, layout), text)
            }
            None => found.help(format!("lay `{axis}` out innermost, and pad by multiples of {lanes}")),
        };
        match alone {
            true => found.change(Change::RemoveOp(vectorize), format!("or remove `vectorize {axis}`")),
            false => found,
        }
    }
}

/// What makes accesses of a buffer take fewer cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing that was tried.
    None,
    /// A swizzle of a staged copy: its bytes, and the cycles of the access with it.
    Swizzle(u32, u64),
    /// A layout of a stage.
    Layout {
        /// The op.
        text: String,
        /// The one that it replaces.
        replace: Option<Span>,
        /// The cycles of its slowest access, if one is still slow.
        left: Option<u64>,
    },
}

/// TW0490: accesses of a buffer in shared memory that wait for each other.
#[derive(Clone, Debug)]
pub struct BankConflicts {
    /// The stage or the copy with the buffer.
    pub buffer: String,
    /// The stage that accesses it.
    pub by: String,
    /// Cycles of a warp's access.
    pub cycles: u64,
    /// As many without conflicts.
    pub least: u64,
    /// Those of the slowest access, if others take longer.
    pub worst: Option<u64>,
    /// Lanes that wait for each other.
    pub lanes: Vec<u32>,
    /// Whether it writes.
    pub is_write: bool,
    /// What takes fewer cycles.
    pub remedy: Remedy,
    /// The read, or the left-hand side.
    pub access: Span,
    /// The stage or the copy.
    pub span: Span,
}

impl IntoDiagnostic for BankConflicts {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { buffer, by, cycles, least, worst, lanes, is_write, remedy, access, span } = self;
        let (what, done) = if is_write { ("to write", "written") } else { ("to read", "read") };
        let title = match by == buffer {
            true => format!("a warp takes {cycles} cycles {what} `{buffer}` where {least} would do"),
            false => format!("a warp of `{by}` takes {cycles} cycles {what} `{buffer}` where {least} would do"),
        };
        let mut shown: Vec<String> = lanes.iter().take(3).map(u32::to_string).collect();
        match lanes.get(3..) {
            Some([last]) => shown.push(last.to_string()),
            Some(rest) if !rest.is_empty() => shown.push(format!("{} others", rest.len())),
            _ => {}
        }
        let last = shown.pop().unwrap_or_default();
        let worst = worst.map_or_else(String::new, |n| format!("; in some iterations it is {n}"));
        let mut diagnostic = Diagnostic::new(Code::TW0490, span, title);
        // A stage that is a copy is written where it stands.
        if access != span {
            diagnostic = diagnostic.label(access, format!("{done} here"));
        }
        let diagnostic = diagnostic
            .note(format!(
                "lanes {} and {last} access different words of one bank, one after the other{worst}",
                shown.join(", ")
            ))
            .note("shared memory has 32 banks of 4 bytes; each delivers one word in a cycle");
        match remedy {
            Remedy::Swizzle(bytes, fewer) => {
                diagnostic.help(format!("with `swizzle {bytes}` in its `layout` it is {fewer}"))
            }
            Remedy::Layout { text, replace, left } => {
                let text_of = |text: &str| match left {
                    None => format!("write `{text}`: then no access of `{buffer}` waits so"),
                    Some(left) => format!("with `{text}` it is at most {left}"),
                };
                let change = match replace {
                    Some(span) => Change::Replace(span, text.clone()),
                    None => Change::AppendOp(text.clone()),
                };
                match left {
                    None => diagnostic.change(change, text_of(&text)),
                    Some(_) => diagnostic.help(text_of(&text)),
                }
            }
            Remedy::None => diagnostic.help(
                "let neighbouring threads access neighbouring elements of a row, or each thread 16 bytes of a row",
            ),
        }
    }
}
