//! TW015x: the names of axes in schedules.

use super::suggest::closest;
use super::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

/// Why an op cannot speak of an axis that there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HiddenAxis {
    /// The equation has several reductions.
    Several,
    /// It stands on one side of a condition.
    Conditional,
    /// Other axes decide its range, and not in a way that gives it a longest one.
    Range,
    /// The op is one of tiles, and the axis of the tensor has no box: it is whole in the tile.
    NoBox,
    /// A `like` of this stage, which has it, found no counterpart here.
    Unlike(String),
}

/// TW0150: an op names an axis that its stage does not have at that point.
#[derive(Clone, Debug)]
pub struct UnknownAxis {
    /// The name.
    pub axis: String,
    /// Where it is used.
    pub span: Span,
    /// The stage.
    pub stage: String,
    /// The axes there are, outermost first.
    pub leaves: Vec<String>,
    /// The names that the op has already: no axis is named twice.
    pub named: Vec<String>,
    /// The earlier op that consumed an axis of that name.
    pub consumed: Option<Span>,
    /// Why it is none, if a reduction has it, or another rule keeps it from the op.
    pub hidden: Option<HiddenAxis>,
}

impl IntoDiagnostic for UnknownAxis {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, span, stage, leaves, named, consumed, hidden } = self;
        let list = leaves.iter().filter(|l| !l.is_empty()).map(|l| format!("`{l}`")).collect::<Vec<_>>().join(", ");
        let here = match leaves.len() {
            0 => format!("`{stage}` has no axes"),
            1 => format!("the axis of `{stage}` is {list} here"),
            _ => format!("the axes of `{stage}` are {list} here"),
        };
        if hidden == Some(HiddenAxis::NoBox) {
            return Diagnostic::new(
                Code::TW0150,
                span,
                format!("`{axis}` of `{stage}` has no box that it could be a tile of"),
            )
            .note(format!("all of `{axis}` is in each instance; {here}"))
            .help(format!("give it a box first: `box {axis} by n -> …, …;`, and name what that makes"));
        }
        let mut diagnostic =
            Diagnostic::new(Code::TW0150, span, format!("there is no axis `{axis}` in the schedule of `{stage}`"))
                .note(here);
        if let Some(why) = hidden {
            let own = "give the reduction an equation of its own, and that a schedule";
            let (why, help) = match why {
                HiddenAxis::NoBox => return diagnostic,
                HiddenAxis::Unlike(model) => {
                    let why = format!("`{model}` has it, and `like {model}` found nothing here that it is made of");
                    let help = "an axis is alike that both stages read or write one dimension of a tensor with, alone: `x[i]`, not `x[i + 1]`";
                    return diagnostic.note(why).help(help).help(format!("or write the ops of `{model}` here"));
                }
                HiddenAxis::Several => ("ops speak of a reduction where the equation has one", own),
                HiddenAxis::Conditional => ("it is computed on one side of a condition only", own),
                HiddenAxis::Range => (
                    "other axes decide its range, which has no end that is known to be the farthest",
                    "write a range of sizes, and in the term the condition: `if … { … } else { 0.0 }`",
                ),
            };
            return diagnostic.note(format!("`{axis}` is an axis of a reduction: {why}")).help(help);
        }
        if let Some(op) = consumed {
            diagnostic = diagnostic.label(op, format!("this op replaced `{axis}`"));
        } else if let Some(near) = closest(&axis, leaves.iter().filter(|l| !named.contains(l)).map(String::as_str)) {
            diagnostic = diagnostic.replace(span, near, format!("did you mean `{near}`?"));
        }
        diagnostic
    }
}

/// TW0151: a new axis has the name of another one of its stage.
#[derive(Clone, Debug)]
pub struct NameTaken {
    /// The name.
    pub axis: String,
    /// Where it is introduced again.
    pub span: Span,
    /// Where it was introduced first.
    pub first: Span,
    /// The stage.
    pub stage: String,
}

impl IntoDiagnostic for NameTaken {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, span, first, stage } = self;
        Diagnostic::new(Code::TW0151, span, format!("`{axis}` is named twice in the schedule of `{stage}`"))
            .label(first, format!("`{axis}` is named here first"))
            .note("each axis of a stage has a name of its own, also after an op replaced it")
            .help(format!("choose another name, such as `{axis}2`"))
    }
}

/// TW0152: an axis is given to two parts of the machine.
#[derive(Clone, Debug)]
pub struct AxisBoundTwice {
    /// The axis.
    pub axis: String,
    /// The second op.
    pub span: Span,
    /// The first op.
    pub first: Span,
}

impl IntoDiagnostic for AxisBoundTwice {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, span, first } = self;
        Diagnostic::new(Code::TW0152, span, format!("`{axis}` is already bound, unrolled or vectorised"))
            .label(first, "by this op")
            .help(format!("split `{axis}` and give each part its own op"))
    }
}
