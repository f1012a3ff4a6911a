//! TW0691: work of any size for one block, or for one thread of each block.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A warning: the kernel is right, and leaves most of the machine idle. An axis that is given to nobody is a loop.
    /// A schedule that gives no axis to the grid has one block, on one multiprocessor of more than a hundred; one that
    /// gives no axis to threads has one thread in each block, and a warp has 32. The warning is given where sizes are
    /// known at launch only, so that there may be any amount of work.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    /// }
    /// ```
    ///
    /// One thread computes all of it.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - State how much work there is at most: `where N <= 1024`.
    /// - Where all elements are one sum, blocks can have a part of it each: `reduce k by grid`.
    /// - Keep it and write `#[allow(TW0691)]` before the kernel.
    TW0691 "idle-machine" Warning "work of any size for one block or one thread"
}

/// Who computes an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// One thread of one block.
    Thread,
    /// One block.
    Block,
    /// One thread of each block.
    ThreadOfBlock,
}

/// What gives the work to more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    /// A schedule where there is none: its ops.
    Schedule(String),
    /// Ops after those that there are.
    Ops(String),
    /// What to do, in words.
    Words(String),
}

/// TW0691: work of any size for one block, or for one thread of each block.
#[derive(Clone, Debug)]
pub struct IdleMachine {
    /// The output.
    pub output: String,
    /// Who computes it.
    pub alone: Alone,
    /// The axis with any number of iterations, and how many it has.
    pub axis: (String, String),
    /// What gives the work to more.
    pub share: Share,
    /// The schedule, or the equation if it has none.
    pub span: Span,
}

impl IntoDiagnostic for IdleMachine {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { output, alone, axis: (axis, extent), share, span } = self;
        let title = match alone {
            Alone::Thread => format!("one thread computes all of `{output}`"),
            Alone::Block => format!("one block computes all of `{output}`"),
            Alone::ThreadOfBlock => format!("each block of `{output}` has one thread"),
        };
        let why = match alone {
            Alone::Thread => "no axis is given to the grid or to threads",
            Alone::Block => "no axis is given to the grid",
            Alone::ThreadOfBlock => "no axis is given to threads",
        };
        let diagnostic = Diagnostic::new(Code::TW0691, span, title)
            .note(format!("{why}, and `{axis}` has {extent} iterations: the rest of the machine is idle"));
        let diagnostic = match share {
            Share::Schedule(ops) => {
                let schedule = format!("schedule {output} {{ {ops}; }}");
                let text = format!("share the work: `{schedule}`");
                diagnostic.change(Change::AppendStatement(schedule), text)
            }
            Share::Ops(ops) => {
                let text = format!("share the work: `{ops};`");
                diagnostic.change(Change::AppendOp(ops), text)
            }
            Share::Words(words) => diagnostic.help(words),
        };
        diagnostic.help("or silence this with `#[allow(TW0691)]` before the kernel")
    }
}
