//! TW0150: an op on an axis that its stage does not have.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::suggest::closest;
use crate::source::Span;

row! {
    /// An op of a schedule names axes that its stage has at that line. `split`, `merge` and their like replace the axes
    /// that they take by those after the arrow.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 256 -> b, t;
    ///         bind i: grid;
    ///         bind t: thread;
    ///     }
    /// }
    /// ```
    ///
    /// An axis of a reduction belongs to the stage if its equation has just that reduction, not on one side of an `if`,
    /// and its range has a longest one. The message says which of these fails.
    ///
    /// The message lists the axes that there are at this line, and shows the op that replaced the axis.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 256 -> b, t;
    ///         bind b: grid;
    ///         bind t: thread;
    ///     }
    /// }
    /// ```
    TW0150 "unknown-axis" Error "an op on an axis that its stage does not have"
}

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
