//! TW0313: a staged output of which an instance does not compute all.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// The accelerator copies whole boxes from shared memory to an output, and leaves out only what lies outside the
    /// tensor. So the iterations inside the attach point must compute every element of the region that the copy writes:
    /// otherwise it would overwrite elements of other instances with whatever the buffer holds.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Copy(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 {
    ///     y[i] = x[i];
    ///     schedule y {
    ///         split i by 4 -> io, q;
    ///         split io by 32 -> b, t;
    ///         reorder b, q, t;
    ///         bind b: grid;
    ///         bind t: thread;
    ///     }
    ///     stage ys[i] = y in shared at y.q via tma { box i by 128 -> c, e; }
    /// }
    /// ```
    ///
    /// An iteration of `q` computes every fourth element. The message names an element of the region that it leaves
    /// out, or the loop that keeps it from being proved.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Copy(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 {
    ///     y[i] = x[i];
    ///     schedule y {
    ///         split i by 4 -> io, q;
    ///         split io by 32 -> b, t;
    ///         bind b: grid;
    ///         bind t: thread;
    ///         vectorize q;
    ///     }
    ///     stage ys[i] = y in shared at y.b via tma { box i by 128 -> c, e; }
    /// }
    /// ```
    TW0313 "not-whole" Error "a staged output of which an instance does not compute all"
}

/// What an instance of a staged output does not compute.
#[derive(Clone, Debug)]
pub enum GapProblem {
    /// A loop inside has a number of iterations that is known at launch only.
    Varying {
        /// The loop.
        axis: String,
        /// Its extent.
        extent: String,
    },
    /// A predicate keeps away points that the accelerator does not know to be outside.
    Guarded {
        /// What it is about.
        axis: String,
        /// Whether the view counts on from there in the next row.
        next_row: bool,
    },
    /// Offsets from the start of the region that nothing inside reaches.
    Missing(Vec<(String, i128)>),
    /// Offsets along this axis are not decided by the loops inside alone.
    Unknown(String),
}

/// TW0313: an instance of a staged output that does not write all of its region.
#[derive(Clone, Debug)]
pub struct NotWhole {
    /// The copy.
    pub copy: String,
    /// The output.
    pub tensor: String,
    /// What is missing.
    pub problem: GapProblem,
    /// The copy.
    pub span: Span,
}

impl IntoDiagnostic for NotWhole {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, tensor, problem, span } = self;
        let title = match &problem {
            GapProblem::Missing(_) => format!("an instance of `{copy}` does not compute all that its copy would write"),
            _ => format!("could not prove that an instance of `{copy}` computes all that its copy writes"),
        };
        let diagnostic = Diagnostic::new(Code::TW0313, span, title).note(format!(
            "the accelerator copies whole boxes to `{tensor}`, and leaves out only what lies outside the tensor"
        ));
        match problem {
            GapProblem::Varying { axis, extent } => diagnostic
                .note(format!("`{axis}` has {extent} iterations, and the box is the same for all of them"))
                .help(format!("split `{axis}` by a literal, and attach the copy at the outer loop")),
            GapProblem::Guarded { axis, next_row: false } => diagnostic
                .note(format!("a predicate on `{axis}`, which is no axis of the equation, leaves some elements out"))
                .help(format!("split so that `{axis}` comes out even, or let each thread store its elements")),
            GapProblem::Guarded { axis, next_row: true } => diagnostic
                .note(format!("past the end of `{axis}` the view goes on in the next row, which is another instance's"))
                .help(format!(
                    "keep `{axis}` an axis of its own in the view, or state a fact that makes it come out even"
                )),
            GapProblem::Missing(offsets) => {
                let offsets: Vec<String> = offsets.iter().map(|(axis, n)| format!("{n} along `{axis}`")).collect();
                let offsets = offsets.join(" and ");
                diagnostic
                    .counterexample(format!("the element {offsets} from the start of the region is another instance's"))
                    .help("attach the copy at a loop further outside, so that an instance computes a whole box")
            }
            GapProblem::Unknown(axis) => diagnostic
                .note(format!("which elements along `{axis}` an instance computes depends on the loops around it, too"))
                .help("let each thread store its elements: without `stage`"),
        }
    }
}
