//! TW04: layout and alignment.

use super::tw02xx::prefix;
use super::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

/// `reorder` of these axes after all other ops.
fn append(order: &[String]) -> Change {
    Change::AppendOp(format!("reorder {}", order.join(", ")))
}

/// TW0401: a vector access whose address is not known to be aligned.
#[derive(Clone, Debug)]
pub struct MisalignedVector {
    /// The vectorised axis.
    pub axis: String,
    /// Lanes of the access.
    pub lanes: i128,
    /// The tensor.
    pub tensor: String,
    /// The read, or the left-hand side.
    pub access: Span,
    /// The `vectorize` op.
    pub span: Span,
    /// Sizes, the indices of the element accessed first, and its offset.
    pub witness: Option<(Assignment, Vec<i128>, i128)>,
    /// Facts that make it right, proved to suffice.
    pub facts: Vec<String>,
    /// Accesses of other tensors that need further facts, which are among those above.
    pub others: Vec<Span>,
}

impl IntoDiagnostic for MisalignedVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, lanes, tensor, access, span, witness, facts, others } = self;
        let title = match witness {
            Some(_) => format!(
                "cannot vectorise `{axis}`: the accesses of `{tensor}` are not known to be aligned to {lanes} elements"
            ),
            None => format!(
                "could not prove that the accesses of `{tensor}` along `{axis}` are aligned to {lanes} elements"
            ),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0401, span, title).label(access, "this access is a vector").note(
            format!("a vector of {lanes} elements starts at a multiple of {lanes} elements from an aligned base"),
        );
        for other in others {
            diagnostic = diagnostic.label(other, "and so is this one");
        }
        if let Some((dims, indices, offset)) = witness {
            let indices = indices.iter().map(i128::to_string).collect::<Vec<_>>().join(", ");
            diagnostic = diagnostic.counterexample(format!(
                "{}a vector starts at {tensor}[{indices}], which is element {offset}, not a multiple of {lanes}",
                prefix(&dims)
            ));
        }
        if !facts.is_empty() {
            let plural = if facts.len() == 1 { "" } else { "s" };
            let text = format!("state the fact{plural}: `where {}`", facts.join(", "));
            diagnostic = diagnostic.change(Change::State(facts), text);
        }
        diagnostic.change(Change::RemoveOp(span), format!("or remove `vectorize {axis}`"))
    }
}

/// Indices of an element and its offset from the tensor's base, in elements.
pub type Element = (Vec<i128>, i128);

/// Two elements that would be neighbours in a vector and are not in memory.
fn one_vector(tensor: &str, dims: &Assignment, lanes: &[Element; 2]) -> String {
    let show = |(indices, offset): &Element| {
        let indices = indices.iter().map(i128::to_string).collect::<Vec<_>>().join(", ");
        format!("{tensor}[{indices}] at element {offset}")
    };
    format!("{}one vector holds {} and {}", prefix(dims), show(&lanes[0]), show(&lanes[1]))
}

/// TW0402: a vector that would run from one row into the next of axes that are not contiguous.
#[derive(Clone, Debug)]
pub struct StraddlingVector {
    /// The vectorised axis.
    pub axis: String,
    /// Its extent.
    pub lanes: i128,
    /// The tensor.
    pub tensor: String,
    /// The read, or the left-hand side.
    pub access: Span,
    /// The `vectorize` op.
    pub span: Span,
    /// Sizes, and the indices of the two neighbouring lanes that are not neighbours in memory, with their offsets.
    pub witness: Option<(Assignment, [Element; 2])>,
    /// The largest extent that divides the row, if one does.
    pub instead: Option<i128>,
    /// Whether nothing else is wrong with the vector, so that the smaller one is right.
    pub is_alone: bool,
}

impl IntoDiagnostic for StraddlingVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, lanes, tensor, access, span, witness, instead, is_alone } = self;
        let title = match witness {
            Some(_) => {
                format!("cannot vectorise `{axis}`: {lanes} neighbours along it are not in one row of `{tensor}`")
            }
            None => format!("could not prove that {lanes} neighbours along `{axis}` are in one row of `{tensor}`"),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0402, span, title).label(access, "this access is a vector").note(
            "axes that are not contiguous were merged: a run of the merged axis is contiguous only inside one row",
        );
        if let Some((dims, lanes)) = witness {
            diagnostic = diagnostic.counterexample(one_vector(&tensor, &dims, &lanes));
        }
        if let Some(instead) = instead {
            let text = format!("split by {instead} and vectorise that: it divides the row");
            diagnostic = match is_alone {
                true => diagnostic.change(Change::Refactor(axis.clone(), instead), text),
                false => diagnostic.help(text),
            };
        }
        diagnostic.change(Change::RemoveOp(span), format!("or remove `vectorize {axis}`"))
    }
}

/// TW0403: an extent that no vector has.
#[derive(Clone, Debug)]
pub struct VectorWidth {
    /// The axis.
    pub axis: String,
    /// Its extent.
    pub lanes: i128,
    /// Most lanes, a power of two.
    pub limit: i128,
    /// Whether it is the inner result of a split.
    pub is_split: bool,
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for VectorWidth {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, lanes, limit, is_split, span } = self;
        // The powers of two around it.
        let powers = || (1..).map(|n| 1_i128 << n).take_while(|p| *p <= limit);
        let (below, above) = (powers().filter(|p| *p < lanes).last(), powers().find(|p| *p > lanes));
        let widths: Vec<String> = below.into_iter().chain(above).map(|p| p.to_string()).collect();
        let widths = widths.join(" or ");
        let proposal = match is_split {
            true => format!("split by {widths} instead of {lanes}"),
            false => format!("split `{axis}` by {widths} and vectorise the inner part"),
        };
        Diagnostic::new(
            Code::TW0403,
            span,
            format!("the lanes of a vector are a power of two up to {limit}; `{axis}` has {lanes}"),
        )
        .note("an access instruction moves a power of two of elements, up to 16 bytes; longer vectors use several")
        .help(proposal)
        .change(Change::RemoveOp(span), format!("or remove `vectorize {axis}`"))
    }
}

/// TW0404: the elements accessed along a vectorised axis are not neighbours.
#[derive(Clone, Debug)]
pub struct ScatteredVector {
    /// The vectorised axis.
    pub axis: String,
    /// The tensor.
    pub tensor: String,
    /// The axis along which the output is contiguous, if it has axes.
    pub last: Option<String>,
    /// Distance of neighbouring lanes in elements, if it is the same everywhere.
    pub step: Option<String>,
    /// Sizes, and two neighbouring lanes that are not neighbours in memory.
    pub witness: Option<(Assignment, [Element; 2])>,
    /// The left-hand side, or the read.
    pub access: Span,
    /// Whether it is the left-hand side.
    pub is_write: bool,
    /// The `vectorize` op.
    pub span: Span,
}

impl IntoDiagnostic for ScatteredVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, tensor, last, step, witness, access, is_write, span } = self;
        let accessed = if is_write { "the elements written" } else { "the elements read" };
        let title = match step {
            _ if witness.is_none() => {
                format!("could not prove that neighbours along `{axis}` are neighbours in `{tensor}`")
            }
            Some(step) => {
                format!("cannot vectorise `{axis}`: neighbours along it lie {step} elements apart in `{tensor}`")
            }
            None => format!("cannot vectorise `{axis}`: neighbours along it are not neighbours in `{tensor}`"),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0404, span, title).label(access, accessed);
        if let Some((dims, lanes)) = witness {
            diagnostic = diagnostic.counterexample(one_vector(&tensor, &dims, &lanes));
        }
        if let Some(last) = last {
            diagnostic = diagnostic
                .help(format!("vectorise an axis that is made of `{last}`: along it `{tensor}` is contiguous"));
        }
        diagnostic.change(Change::RemoveOp(span), format!("or remove `vectorize {axis}`"))
    }
}

/// TW0405: a loop inside a vector.
#[derive(Clone, Debug)]
pub struct LoopInsideVector {
    /// The vectorised axis.
    pub axis: String,
    /// The axis inside it.
    pub inside: String,
    /// The `vectorize` op.
    pub span: Span,
    /// All sequential axes, in an order that works.
    pub order: Vec<String>,
}

impl IntoDiagnostic for LoopInsideVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, inside, span, order } = self;
        Diagnostic::new(
            Code::TW0405,
            span,
            format!("`{axis}` is vectorised, and the loop over `{inside}` is inside it"),
        )
        .note("the lanes of a vector are the innermost loop")
        .change(append(&order), format!("add `reorder {};`", order.join(", ")))
    }
}

/// TW0406: a loop over the result inside a loop over the terms whose extent is not known.
#[derive(Clone, Debug)]
pub struct AccumulatorExtent {
    /// The axis of the result.
    pub axis: String,
    /// Its extent.
    pub extent: String,
    /// Number of accumulators, if it is known and too large.
    pub count: Option<i128>,
    /// Most accumulators of a thread.
    pub limit: i128,
    /// The reduction axis around it.
    pub around: String,
    /// Where the axis was introduced.
    pub span: Span,
    /// All sequential axes with those of the reduction innermost.
    pub order: Vec<String>,
}

impl IntoDiagnostic for AccumulatorExtent {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, extent, count, limit, around, span, order } = self;
        let title = match count {
            Some(count) => format!("the loop over `{axis}` inside the loop over `{around}` needs {count} accumulators"),
            None => format!(
                "the loop over `{axis}` is inside the loop over `{around}`, and its extent {extent} is not known"
            ),
        };
        Diagnostic::new(Code::TW0406, span, title)
            .note(format!("each element of the inner loop keeps an accumulator in registers; at most {limit} fit"))
            .change(append(&order), format!("put the reduction innermost: `reorder {};`", order.join(", ")))
    }
}

/// What is wrong with a swizzle.
#[derive(Clone, Debug)]
pub enum SwizzleProblem {
    /// There is one as an op, too.
    Twice(Span),
    /// A span that does not exist.
    Span,
    /// The innermost box is narrower than the span.
    Narrow {
        /// Bytes of the box.
        bytes: i128,
        /// Bytes of the span.
        span: u32,
    },
}

/// TW0407: a swizzle that the accelerator does not do, or that is not confirmed.
#[derive(Clone, Debug)]
pub struct BadSwizzle {
    /// The copy.
    pub copy: String,
    /// What is wrong.
    pub problem: SwizzleProblem,
    /// Bytes of an element.
    pub element: u32,
    /// The innermost axis.
    pub inner: String,
    /// The span, or the `layout` op.
    pub span: Span,
}

impl IntoDiagnostic for BadSwizzle {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, problem, element, inner, span } = self;
        match problem {
            SwizzleProblem::Twice(op) => {
                Diagnostic::new(Code::TW0407, span, format!("the tile of `{copy}` is swizzled twice"))
                    .label(op, "the first time")
                    .note("the span of a layout is short for `swizzle` ops on axes of the tile")
                    .help("write the ops, or the span")
            }
            SwizzleProblem::Span => {
                Diagnostic::new(Code::TW0407, span, format!("`{copy}` has a swizzle span that does not exist"))
                    .note("a swizzle exchanges chunks of 16 bytes inside spans of 32, 64 or 128 bytes")
            }
            SwizzleProblem::Narrow { bytes, span: whole } => Diagnostic::new(
                Code::TW0407,
                span,
                format!("the tile of `{copy}` has rows of {bytes} bytes, and its swizzle spans {whole}"),
            )
            .note("how far rows narrower than the span are apart in shared memory is not confirmed on hardware")
            .help(format!("box `{inner}` by {}, or use a swizzle that spans a row", whole / element)),
        }
    }
}

/// A split of an axis of a tile that leaves a remainder, so that some places of the layout hold no slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remainder {
    /// The axis that was split.
    pub axis: String,
    /// Its extent.
    pub extent: i128,
    /// The factor.
    pub factor: i128,
    /// The split.
    pub span: Span,
}

/// What is wrong with a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutProblem {
    /// An axis that is none of the copy's.
    Unknown(String),
    /// The same axis twice.
    Twice(String),
    /// An axis of several iterations that is missing.
    Missing(String),
    /// An axis that counts boxes or phases, inside one of the tile.
    Inside {
        /// The axis that counts.
        outer: String,
        /// The axis of the tile before it.
        tile: String,
    },
    /// The innermost axis is not the one whose elements follow each other in device memory.
    Innermost {
        /// The axis that is last.
        last: String,
        /// The one that must be.
        wanted: String,
    },
    /// Axes of one composite box in another order, or apart.
    Composite(String),
    /// A padded axis.
    Padded(String),
    /// Splits of tile axes that leave remainders, and so gaps between the slots of a tile, or between tiles.
    Gaps(Vec<Remainder>),
}

/// TW0408: a layout in which a tile is not one whole.
#[derive(Clone, Debug)]
pub struct BadLayout {
    /// The copy.
    pub copy: String,
    /// What is wrong.
    pub problem: LayoutProblem,
    /// The order that copies have without a layout.
    pub natural: Vec<String>,
    /// The axis, or the op.
    pub span: Span,
}

impl IntoDiagnostic for BadLayout {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, problem, natural, span } = self;
        let title = match &problem {
            LayoutProblem::Unknown(axis) => format!("`{copy}` has no axis `{axis}` to lay out"),
            LayoutProblem::Twice(axis) => format!("`{axis}` is laid out twice"),
            LayoutProblem::Missing(axis) => format!("the layout of `{copy}` leaves out `{axis}`"),
            LayoutProblem::Inside { outer, tile } => {
                format!("`{outer}` stands inside `{tile}`, which belongs to the tile")
            }
            LayoutProblem::Innermost { last, wanted } => {
                format!("the tile of `{copy}` ends with `{last}`, and its elements follow each other along `{wanted}`")
            }
            LayoutProblem::Composite(axis) => {
                format!("`{axis}` is part of a composite box, whose axes stay together in their order")
            }
            LayoutProblem::Padded(axis) => {
                format!("`{axis}` cannot be padded: the accelerator writes a tile without gaps")
            }
            LayoutProblem::Gaps(splits) => {
                let of = |r: &Remainder| format!("{} of `{}` is not a multiple of {}", r.extent, r.axis, r.factor);
                let which = splits.iter().map(of).collect::<Vec<_>>().join(", and ");
                format!("the layout of `{copy}` has places without a slot: {which}")
            }
        };
        let diagnostic = Diagnostic::new(Code::TW0408, span, title);
        if let LayoutProblem::Gaps(splits) = &problem {
            let divisors = |r: &Remainder| (2..r.extent).rev().find(|f| r.extent % f == 0 && *f < r.factor);
            let mut diagnostic = diagnostic
                .note("a copy writes its tile without gaps: the axes of a tile are split without a remainder, but for one whose gaps lie after the tile");
            if let Some(split) = splits.first() {
                diagnostic = diagnostic.counterexample(format!(
                    "{} slots make {} of {} and one of {}",
                    split.extent,
                    split.extent / split.factor,
                    split.factor,
                    split.extent % split.factor
                ));
                if let Some(divisor) = divisors(split) {
                    diagnostic =
                        diagnostic.help(format!("split by a factor that divides {}, such as {divisor}", split.extent));
                }
            }
            for other in splits.iter().skip(1) {
                diagnostic = diagnostic.label(other.span, "this split leaves a remainder, too");
            }
            return diagnostic;
        }
        diagnostic
            .note(
                "a copy writes its tile as a whole: axes that count boxes and phases stand before all axes of the tile",
            )
            .help(format!("without a layout it is [{}]", natural.join(", ")))
    }
}

/// TW0409: ops on axes of a tile that make no layout that the accelerator writes.
#[derive(Clone, Debug)]
pub struct UnwrittenLayout {
    /// The copy.
    pub copy: String,
    /// The first slot that lies elsewhere, along the axes of the tile.
    pub slot: Assignment,
    /// Where it lies as written, in elements of the tile.
    pub written: i128,
    /// Where it lies with each span that there is for these rows, the nearest first; 16 stands for no swizzle.
    pub modes: Vec<(u32, i128)>,
    /// The nearest layout, with its swizzle by name.
    pub sugar: String,
    /// The same as ops.
    pub ops: Option<String>,
    /// The innermost axis, the bytes of a row and the boxes that have a swizzle, if a swizzle is written and rows of
    /// that length have none.
    pub other: Option<(String, i128, [i128; 3])>,
    /// What is written of the layout, if it is one piece.
    pub replace: Option<Span>,
    /// The layout.
    pub span: Span,
}

impl IntoDiagnostic for UnwrittenLayout {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, slot, written, modes, sugar, ops, other, replace, span } = self;
        let how = |(span, _): &(u32, i128)| match span {
            16 => "without a swizzle".to_owned(),
            _ => format!("with `swizzle {span}`"),
        };
        // Modes that put it at the same place are named together.
        let mut places: Vec<String> = Vec::new();
        for (at, mode) in modes.iter().enumerate() {
            if modes[..at].iter().all(|m| m.1 != mode.1) {
                let same: Vec<String> = modes[at..].iter().filter(|m| m.1 == mode.1).map(how).collect();
                places.push(format!("at {} {}", mode.1, same.join(" and ")));
            }
        }
        let places = places.join(", ");
        let title = format!("the accelerator does not write a tile of `{copy}` as this layout says");
        let mut diagnostic = Diagnostic::new(Code::TW0409, span, title)
            .note("it writes a tile row by row, and can exchange the 16-byte chunks of a row of 32, 64 or 128 bytes: chunk c goes to c xor r, where r counts 128 bytes each")
            .counterexample(format!("the slot {} is element {written} of the tile as written; the accelerator puts it {places}", super::assignment(&slot)));
        let text = format!("write `{sugar}` without ops on axes of the tile");
        diagnostic = match replace {
            Some(span) => diagnostic.change(Change::Replace(span, sugar), text),
            None => diagnostic.help(text),
        };
        if let Some((axis, bytes, [a, b, c])) = other {
            diagnostic = diagnostic
                .note(format!("rows of {bytes} bytes have no swizzle"))
                .help(format!("or box `{axis}` by {a}, {b} or {c}: rows of 32, 64 or 128 bytes have one"));
        }
        match ops {
            Some(ops) => diagnostic.help(format!("or, which is the same: `{ops};`")),
            None => diagnostic,
        }
    }
}

/// TW0410: a region that ends inside a vector, or the range of a reduction that other axes decide.
#[derive(Clone, Debug)]
pub struct CutVector {
    /// The stage.
    pub stage: String,
    /// The vectorised axis.
    pub axis: String,
    /// Its lanes.
    pub lanes: i128,
    /// The op.
    pub span: Span,
    /// Whether it is the range of its reduction.
    pub of_terms: bool,
    /// The head of the stage.
    pub head: Span,
}

impl IntoDiagnostic for CutVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axis, lanes, span, of_terms, head } = self;
        if of_terms {
            let title = format!("the range of the reduction of `{stage}` may end inside a vector of `{axis}`");
            return Diagnostic::new(Code::TW0410, span, title)
                .note("other axes decide where it begins and ends, and terms outside are left out one by one")
                .help(format!("leave `{axis}` scalar: remove the `vectorize`"));
        }
        Diagnostic::new(Code::TW0410, span, format!("the region of `{stage}` may end inside a vector of `{axis}`"))
            .label(head, "the region is what its readers ask for here")
            .note(format!("it is not known to begin and end at multiples of {lanes} elements in each iteration of the loops around"))
            .help(format!("leave `{axis}` scalar: remove the `vectorize`"))
            .help(format!("or state that sizes are multiples of {lanes}, and split the reader by multiples of it"))
    }
}
