//! TW03: copies by the tensor memory accelerator.

use super::tw02xx::prefix;
use super::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

/// An element that a hole of a buffer holds: sizes, and where it stands.
#[derive(Clone, Debug)]
pub struct FilledHole {
    /// Sizes.
    pub dims: Assignment,
    /// The axis that makes it a hole.
    pub axis: String,
    /// Where the box starts along it.
    pub start: i128,
    /// The phase of the copy.
    pub phase: i128,
    /// The slot of its tile.
    pub slot: i128,
    /// The position that the slot holds.
    pub position: i128,
    /// The axis's extent.
    pub extent: i128,
    /// One past the last position of the box that was asked for.
    pub end: i128,
}

/// TW0301: `fill zero` where the accelerator loads elements into holes.
#[derive(Clone, Debug)]
pub struct NoZeroFill {
    /// The copy.
    pub copy: String,
    /// An axis whose element stride does not divide its box: its name, the stride and the box.
    pub strided: Option<(String, i128, i128)>,
    /// The smallest case.
    pub witness: Option<FilledHole>,
    /// The `fill` op.
    pub span: Span,
    /// The box or tile that makes the holes.
    pub cause: Span,
}

impl IntoDiagnostic for NoZeroFill {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, strided, witness, span, cause } = self;
        let why = match &strided {
            Some((axis, stride, size)) => {
                format!("the element stride {stride} of `{axis}` does not divide its box of {size}")
            }
            None => "a box may hold elements beside those that are read".to_owned(),
        };
        let title = match witness {
            Some(_) => format!("the holes of `{copy}` cannot all be zero: {why}"),
            None => format!("could not prove that the holes of `{copy}` are zero: {why}"),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0301, span, title)
            .label(cause, "this makes slots that nothing reads")
            .note("the accelerator writes zeros only for positions outside the tensor, not for those outside a box");
        if let Some(FilledHole { dims, axis, start, phase, slot, position, extent, end }) = witness {
            diagnostic = diagnostic.counterexample(format!(
                "{}the box of `{axis}` at {start}, phase {phase}, slot {slot} is position {position}: outside the region, \
                 which ends at {end}, but inside the tensor, which ends at {extent}",
                prefix(&dims)
            ));
        }
        if let Some((axis, _, _)) = &strided {
            diagnostic = diagnostic
                .help(format!("tile `{axis}` by a stride that divides its box, or box it by a multiple of its stride"));
        }
        diagnostic.change(Change::RemoveOp(span), "or remove `fill zero`: readers never look into holes")
    }
}

/// TW0302: a split of the view of a tensor that leaves a remainder.
#[derive(Clone, Debug)]
pub struct ViewSplit {
    /// The tensor.
    pub tensor: String,
    /// The axis's extent.
    pub extent: String,
    /// The factor.
    pub factor: i128,
    /// The smallest failing sizes, and the extent there.
    pub witness: Option<(Assignment, i128)>,
    /// A fact that makes it right.
    pub fact: Option<String>,
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for ViewSplit {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { tensor, extent, factor, witness, fact, span } = self;
        let title = match (&witness, extent.bytes().all(|b| b.is_ascii_digit())) {
            (Some(_), true) => {
                format!("this view of `{tensor}` has no one size: {extent} is not a multiple of {factor}")
            }
            (Some(_), false) => {
                format!("this view of `{tensor}` has no one size: {extent} is not known to be a multiple of {factor}")
            }
            (None, _) => format!("could not prove that {extent} is a multiple of {factor}, which this view needs"),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0302, span, title)
            .note("a tensor map has one size and one stride for each axis: a split before a box leaves no remainder");
        if let Some((dims, value)) = witness {
            diagnostic = diagnostic.counterexample(format!(
                "{}{value} elements make {} rows of {factor} and one of {}",
                prefix(&dims),
                value.div_euclid(factor),
                value.rem_euclid(factor)
            ));
        }
        match fact {
            Some(fact) => {
                let text = format!("state the fact: `where {fact}`");
                diagnostic.change(Change::State(vec![fact]), text)
            }
            None => diagnostic,
        }
        .help(format!("use `box … by {factor}` for a part of an axis: boxes need not divide anything"))
    }
}

/// TW0303: axes of a view that are merged and do not follow each other in memory.
#[derive(Clone, Debug)]
pub struct ViewMerge {
    /// The tensor.
    pub tensor: String,
    /// The outer axis.
    pub outer: String,
    /// The inner axis.
    pub inner: String,
    /// Strides of both in elements, and the extent of the inner one.
    pub strides: (String, String),
    /// Extent of the inner one.
    pub extent: String,
    /// The smallest sizes for which they do not, with the distance of neighbours along the outer axis and the length of
    /// the inner one.
    pub witness: Option<(Assignment, i128, i128)>,
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for ViewMerge {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { tensor, outer, inner, strides: (far, near), extent, witness, span } = self;
        let mut diagnostic = Diagnostic::new(
            Code::TW0303,
            span,
            format!("`{outer}` and `{inner}` of `{tensor}` are not one axis: its elements do not follow each other"),
        )
        .note(format!(
            "neighbours along `{inner}` are {near} apart and there are {extent} of them; neighbours along `{outer}` are {far} apart"
        ))
        .note("a tensor map has one stride for each axis: only neighbours that are contiguous to each other can be merged");
        if let Some((dims, far, run)) = witness {
            diagnostic = diagnostic.counterexample(format!(
                "{}a row takes {run} elements, and the next one starts after {far}",
                prefix(&dims)
            ));
        }
        diagnostic.help("keep the axes apart, each with a box of its own")
    }
}

/// TW0304: a box, a tile or a number of axes that no tensor map has.
#[derive(Clone, Debug)]
pub struct MapLimit {
    /// The copy.
    pub copy: String,
    /// The axis, where it is about one.
    pub axis: Option<String>,
    /// The rule with the values: the launcher says the same.
    pub fault: String,
    /// What may help.
    pub help: String,
    /// Axes that, boxed by 1, would make the copy runs of memory; none if that does not help.
    pub rows: Vec<String>,
    /// The op, or the copy.
    pub span: Span,
}

impl IntoDiagnostic for MapLimit {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, axis, fault, help, rows, span } = self;
        let title = match axis {
            Some(axis) => format!("`{copy}` cannot be copied so: along `{axis}`, {fault}"),
            None => format!("`{copy}` cannot be copied so: {fault}"),
        };
        let diagnostic = Diagnostic::new(Code::TW0304, span, title).help(help);
        if rows.is_empty() {
            return diagnostic;
        }
        let rows: Vec<String> = rows.iter().map(|axis| format!("`{axis}`")).collect();
        diagnostic.help(format!(
            "or box {} by 1: each row is then a run of memory, which needs no tensor map and has no such limit",
            rows.join(" and ")
        ))
    }
}

/// TW0305: no axis of the tensor has neighbours that are neighbours in memory.
#[derive(Clone, Debug)]
pub struct InnerStride {
    /// The tensor.
    pub tensor: String,
    /// The innermost axis and the distance of its neighbours in elements.
    pub axis: String,
    /// Their distance.
    pub stride: String,
    /// The copy.
    pub span: Span,
}

impl IntoDiagnostic for InnerStride {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { tensor, axis, stride, span } = self;
        Diagnostic::new(
            Code::TW0305,
            span,
            format!("`{tensor}` cannot be copied by TMA: neighbours along `{axis}` are {stride} elements apart"),
        )
        .note("the innermost axis of a tensor map has no stride: its elements follow each other in memory")
        .help("stage another tensor, or let each thread read this one: without `stage`")
    }
}

/// TW0306: rows that are not known to start at multiples of 16 bytes.
#[derive(Clone, Debug)]
pub struct Pitch {
    /// The tensor.
    pub tensor: String,
    /// The axis.
    pub axis: String,
    /// The distance of its neighbours in elements.
    pub stride: String,
    /// What it must be a multiple of, in elements.
    pub multiple: i128,
    /// The smallest failing sizes, and the distance in bytes.
    pub witness: Option<(Assignment, i128)>,
    /// A fact that makes it right.
    pub fact: Option<String>,
    /// The copy.
    pub span: Span,
}

impl IntoDiagnostic for Pitch {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { tensor, axis, stride, multiple, witness, fact, span } = self;
        let title = match witness {
            Some(_) => {
                format!("`{tensor}` cannot be copied by TMA: {stride} is not known to be a multiple of {multiple}")
            }
            None => format!(
                "could not prove that {stride} is a multiple of {multiple}, which a TMA copy of `{tensor}` needs"
            ),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0306, span, title).note(format!(
            "neighbours along `{axis}` are {stride} elements apart; a tensor map's strides are multiples of 16 bytes"
        ));
        if let Some((dims, bytes)) = witness {
            diagnostic = diagnostic.counterexample(format!("{}they are {bytes} bytes apart", prefix(&dims)));
        }
        match fact {
            Some(fact) => {
                let text = format!("state the fact: `where {fact}`");
                diagnostic.change(Change::State(vec![fact]), text)
            }
            None => diagnostic,
        }
        .help("or let each thread read the tensor: without `stage`")
    }
}

/// TW0307: copies that do not start at multiples of 16 bytes.
#[derive(Clone, Debug)]
pub struct InnerStart {
    /// The copy.
    pub copy: String,
    /// The innermost axis.
    pub axis: String,
    /// Where regions start along it.
    pub start: String,
    /// What that must be a multiple of, in elements.
    pub multiple: i128,
    /// The copy.
    pub span: Span,
}

impl IntoDiagnostic for InnerStart {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, axis, start, multiple, span } = self;
        Diagnostic::new(
            Code::TW0307,
            span,
            format!("`{copy}` would start at {start} along `{axis}`, which is not known to be a multiple of {multiple}"),
        )
        .note("a copy starts at a multiple of 16 bytes of the innermost axis: what the hardware does otherwise is not confirmed")
        .help(format!("split `{axis}` by a multiple of {multiple} in the stage that reads it, and read it without an offset"))
    }
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
                "a ring needs a serial loop that is not unrolled, with an instance in each iteration"
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

/// TW0311: a staged copy of something that its stage does not access.
#[derive(Clone, Debug)]
pub struct StagedForNobody {
    /// The copy.
    pub copy: String,
    /// The tensor.
    pub tensor: String,
    /// The stage.
    pub stage: String,
    /// Whether the tensor is an output.
    pub written: bool,
    /// The copy's source.
    pub span: Span,
}

impl IntoDiagnostic for StagedForNobody {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, tensor, stage, written, span } = self;
        let [not, does] = if written { ["write", "computes"] } else { ["read", "reads"] };
        Diagnostic::new(
            Code::TW0311,
            span,
            format!("`{copy}` stages `{tensor}` for `{stage}`, which does not {not} it"),
        )
        .help(format!("remove the copy, or attach it to a stage that {does} the tensor"))
    }
}

/// TW0312: what is read in one instance is not a tile.
#[derive(Clone, Debug)]
pub struct NoTile {
    /// The copy.
    pub copy: String,
    /// The axis of the view.
    pub axis: String,
    /// Why.
    pub why: String,
    /// The read.
    pub read: Span,
    /// The copy.
    pub span: Span,
}

impl IntoDiagnostic for NoTile {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, axis, why, read, span } = self;
        Diagnostic::new(Code::TW0312, span, format!("what `{copy}` would hold along `{axis}` is not a tile: {why}"))
            .label(read, "what is read here")
            .note("an instance holds an interval of each axis, whose length is known at compile time")
            .help("attach the copy at another loop, or let each thread read the tensor: without `stage`")
    }
}

/// TW0317: a read that takes none, or several, of the copies of its tensor.
#[derive(Clone, Debug)]
pub struct WhichCopy {
    /// The tensor.
    pub tensor: String,
    /// The copies that the read may take, or all of them.
    pub copies: Vec<String>,
    /// Whether it takes none.
    pub none: bool,
    /// Whether the stage reads the tensor nowhere else.
    pub only: bool,
    /// The read.
    pub read: Span,
    /// The first copy.
    pub span: Span,
}

impl IntoDiagnostic for WhichCopy {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { tensor, copies, none, only, read, span } = self;
        let list = copies.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>();
        let what =
            if none { format!("none of {}", list.join(" and ")) } else { format!("{} at once", list.join(" and ")) };
        Diagnostic::new(Code::TW0317, span, format!("a read of `{tensor}` would take {what}"))
            .label(read, "this read")
            .note("of several copies of one tensor a read takes the one whose axes have the names of its indices")
            .help(match (only && !none, copies.last()) {
                (true, Some(last)) => format!("remove one of them, such as `{last}`: nothing else reads `{tensor}` there"),
                _ => "name the axes of each copy as the indices of the read that it is for: `stage xa[i, k] = x` for `x[i, k]`".to_owned(),
            })
    }
}
