//! TW03: copies from shared memory to a tensor.

use super::tw02xx::prefix;
use super::tw03xx::FilledHole;
use super::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

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

/// TW0314: boxes of a staged output that hold elements of other instances.
#[derive(Clone, Debug)]
pub struct StoreHoles {
    /// The copy.
    pub copy: String,
    /// The axis with its box, and what an instance holds of it.
    pub boxed: Option<(String, i128, i128)>,
    /// The smallest case.
    pub witness: Option<FilledHole>,
    /// The box.
    pub span: Span,
    /// The copy.
    pub head: Span,
}

impl IntoDiagnostic for StoreHoles {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, boxed, witness, span, head } = self;
        let title = match witness {
            Some(_) => format!("`{copy}` would overwrite elements that its instance does not compute"),
            None => format!("could not prove that `{copy}` writes only elements that its instance computes"),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0314, span, title);
        if span != head {
            diagnostic = diagnostic.label(head, "the copy");
        }
        diagnostic = diagnostic
            .note("the accelerator copies whole boxes to the tensor, and leaves out only what lies outside the tensor");
        if let Some(FilledHole { dims, axis, start, position, extent, end, .. }) = witness {
            diagnostic = diagnostic.counterexample(format!(
                "{}the box of `{axis}` at {start} holds position {position}: not the instance's, whose part ends at {end}, but \
                 inside the tensor, which ends at {extent}",
                prefix(&dims)
            ));
        }
        match boxed {
            Some((axis, size, region)) if region % size != 0 => {
                diagnostic.help(format!("box `{axis}` by a divisor of {region}, which is what an instance computes"))
            }
            _ => diagnostic.help("let each thread store its elements: without `stage`"),
        }
    }
}

/// TW0315: rows of an output that end inside the 16 bytes that the accelerator writes at once.
#[derive(Clone, Debug)]
pub struct StoreGranule {
    /// The output.
    pub tensor: String,
    /// The innermost axis.
    pub axis: String,
    /// Its size.
    pub size: String,
    /// What it must be a multiple of, in elements.
    pub multiple: i128,
    /// The smallest failing sizes, and the bytes of a row.
    pub witness: Option<(Assignment, i128)>,
    /// A fact that makes it right.
    pub fact: Option<String>,
    /// The copy.
    pub span: Span,
}

impl IntoDiagnostic for StoreGranule {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { tensor, axis, size, multiple, witness, fact, span } = self;
        let title = match witness {
            Some(_) => format!(
                "a copy to `{tensor}` would write past its rows: {size} is not known to be a multiple of {multiple}"
            ),
            None => format!(
                "could not prove that {size} is a multiple of {multiple}, without which a copy to `{tensor}` writes past its rows"
            ),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0315, span, title).note(format!(
            "along `{axis}` the accelerator writes 16 bytes at a time, also where the tensor ends inside them"
        ));
        if let Some((dims, bytes)) = witness {
            let behind = 16 - bytes.rem_euclid(16);
            diagnostic = diagnostic
                .counterexample(format!("{}a row is {bytes} bytes: {behind} after it are overwritten", prefix(&dims)));
        }
        match fact {
            Some(fact) => {
                let text = format!("state the fact: `where {fact}`");
                diagnostic.change(Change::State(vec![fact]), text)
            }
            None => diagnostic,
        }
        .help("or let each thread store its elements: without `stage`")
    }
}

/// A copy to a tensor that is not confirmed on hardware.
#[derive(Clone, Debug)]
pub enum UnknownStoreProblem {
    /// With an element stride along this axis.
    Strided(String),
    /// Starting before the tensor.
    Negative {
        /// The axis.
        axis: String,
        /// Where regions start.
        start: String,
    },
}

/// TW0316: a copy to a tensor of which nobody knows what the hardware does.
#[derive(Clone, Debug)]
pub struct UnknownStore {
    /// The copy.
    pub copy: String,
    /// What is unknown.
    pub problem: UnknownStoreProblem,
    /// The op, or the copy.
    pub span: Span,
}

impl IntoDiagnostic for UnknownStore {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, problem, span } = self;
        match problem {
            UnknownStoreProblem::Strided(axis) => {
                Diagnostic::new(Code::TW0316, span, format!("`{copy}` would write a strided tile along `{axis}`"))
                    .note("what a copy to a tensor does with an element stride is not confirmed on hardware")
                    .change(Change::RemoveOp(span), "remove `tile`: a dense box holds the same elements")
            }
            UnknownStoreProblem::Negative { axis, start } => Diagnostic::new(
                Code::TW0316,
                span,
                format!("`{copy}` would start at {start} along `{axis}`, which is not known to be at least 0"),
            )
            .note("a copy to a tensor starts inside it: what the hardware does before it is not specified")
            .help("schedule the output without `resize`, or let each thread store its elements"),
        }
    }
}
