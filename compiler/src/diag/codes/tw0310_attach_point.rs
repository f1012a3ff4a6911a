//! TW0310: a staged copy where none can stand.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A copy in shared memory belongs to the whole block. It stands in a loop that the whole block runs, a grid axis
    /// or a serial loop of the stage that reads it, and holds what the iterations inside that loop read.
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
    ///     stage xs[i, j] = x in shared at y.w via tma { box i by 32 -> ic, ib; box j by 32 -> jc, jb; }
    /// }
    /// ```
    ///
    /// The message lists the loops in which it can stand.
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
    ///     stage xs[i, j] = x in shared at y.jo via tma { box i by 32 -> ic, ib; box j by 32 -> jc, jb; }
    /// }
    /// ```
    TW0310 "attach-point" Error "a staged copy where none can stand"
}

/// What is wrong with the place of a staged copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachProblem {
    /// No `at`.
    Missing,
    /// The stage is not computed by a loop nest of its own.
    NoStage(String),
    /// The axis is none of the stage's loops.
    NoLoop {
        /// The axis.
        axis: String,
        /// The stage.
        stage: String,
    },
    /// The axis is run by units of a block.
    InsideBlock(String),
    /// A ring where no instance follows another in a loop of the program.
    RingWithoutLoop,
    /// A copy to a tensor in a loop over terms, or inside one.
    InsideReduction(String),
}

/// TW0310: a staged copy where none can stand.
#[derive(Clone, Debug)]
pub struct AttachPoint {
    /// The copy.
    pub copy: String,
    /// What is wrong.
    pub problem: AttachProblem,
    /// Loops that a copy can stand in, `y.io`.
    pub possible: Vec<String>,
    /// Whether its instances would follow each other in a persistent launch.
    pub persistent: bool,
    /// The clause, or the copy.
    pub span: Span,
}

impl IntoDiagnostic for AttachPoint {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, problem, possible, persistent, span } = self;
        let title = match &problem {
            AttachProblem::Missing => {
                format!("`{copy}` is staged for nobody: `at` says which stage reads it, and in which loop")
            }
            AttachProblem::NoStage(stage) => {
                format!("`{copy}` cannot stand in `{stage}`, which has no loops of its own")
            }
            AttachProblem::NoLoop { axis, stage } => {
                format!("`{copy}` cannot stand at `{axis}`, which is no loop of `{stage}`")
            }
            AttachProblem::InsideBlock(axis) => {
                format!(
                    "`{copy}` cannot stand at `{axis}`: the copy belongs to the block, and its threads run `{axis}`"
                )
            }
            AttachProblem::RingWithoutLoop => {
                format!(
                    "the ring of `{copy}` has nothing to run ahead of: its instances do not follow each other in a loop"
                )
            }
            AttachProblem::InsideReduction(axis) => {
                format!("`{copy}` cannot stand at `{axis}`: results are known only after the loops over the terms")
            }
        };
        let note = match problem {
            AttachProblem::RingWithoutLoop => {
                "a ring needs a serial loop with an instance in each iteration; only the loop around a copy to a tensor may be \
                 unrolled"
            }
            _ => "a copy in shared memory stands in a loop that the whole block runs: a grid axis or a serial loop",
        };
        let diagnostic = Diagnostic::new(Code::TW0310, span, title).note(note);
        let diagnostic = match persistent {
            true => diagnostic.help(
                "write `launch persistent`: a block then takes one tile after another, and the ring runs ahead of it",
            ),
            false => diagnostic,
        };
        match &possible[..] {
            [] if persistent => diagnostic,
            [] if problem == AttachProblem::RingWithoutLoop => {
                diagnostic.help("remove `ring`, or split an axis so that each block has a serial loop over tiles")
            }
            [] => diagnostic.help("bind an axis to the grid, and attach the copy there"),
            list => diagnostic.help(format!("attach it `at {}`", list.join("` or `at "))),
        }
    }
}
