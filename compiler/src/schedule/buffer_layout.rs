//! Where the elements of a stage lie in its buffer, in shared or global memory: the allocation domain of a stage that
//! threads fill.
//!
//! A layout lists axes of the stage's domain, outermost first, each with the elements that are left free after a run
//! of it. Axes may be roots, leaves, or what ops have made in between.
//!
//! **Property.** Elements of an instance lie apart, in `0..places()`. **Formula.** The axes listed are none of each
//! other's parts, and every coordinate of the instance is one of them or is given by them: an op's inputs are given by
//! its outputs, whose maps are one to one ([`domain`](crate::domain)). Offsets are sums of values of these axes, each
//! below its largest extent, times strides that grow by extent and padding. A swizzle exchanges chunks of 16 bytes
//! inside a span ([`Swizzle::apply`]), and nothing else. Instances of threads lie in [`Columns`], which spread the
//! offsets of each. **Approximation.** Extents that depend on sizes count with their bounds: the strides of an instance
//! are those of the largest.

use tilewright_kernel::tensor_map::Swizzle;

use super::{Along, Stage, literal};
use crate::diag::Diagnostics;
use crate::diag::codes::{BadBufferLayout, BadFactor, BufferLayoutProblem};
use crate::domain::{AxisId, AxisKind, Domain, Op, Symbolic, Xor};
use crate::extent::{Expr, Family};
use crate::source::{Span, ast};
use crate::{domain::Unit, source::ast::Place};

/// What every slot starts at a multiple of, in bytes: the longest vector of one instruction.
pub const SLOT_ALIGNMENT: i128 = 16;
/// Most elements that are left free after a run of an axis.
const MOST_PADDING: i128 = 1 << 16;
/// Most terms, those under quotients included, of a place: it is computed at each access.
const PLACE_TERMS: usize = 64;

/// The order of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferLayout {
    /// Its axes, outermost first.
    pub axes: Vec<LaidOut>,
    /// The exchange of chunks inside spans of a slot.
    pub swizzle: Swizzle,
    /// How the instances of threads share a slot; none if they are of larger units, which lie one after the other.
    pub columns: Option<Columns>,
    /// The op; none if nothing is written: then the coordinates follow each other in row-major order.
    pub written: Option<Span>,
}

/// An axis of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidOut {
    /// The axis of the stage's domain.
    pub axis: AxisId,
    /// Most values that it has: a number, but in global memory, where it may depend on sizes.
    pub extent: Expr,
    /// Elements that are left free after all of it.
    pub pad: i128,
    /// Elements between neighbours along it, like the extent.
    pub stride: Expr,
}

/// Instances of threads in one slot: a column each. The elements of all threads with one number lie side by side, so
/// that lanes that access these together access different banks; so do chunks, where elements go together in vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Threads of the block.
    pub threads: i128,
    /// Neighbours of a column that stay together: a power of two, of at most 16 bytes.
    pub chunk: i128,
}

impl Columns {
    /// Where the element of a column lies, after the first one of the column, that has the offset `offset` in its
    /// instance.
    pub fn spread(self, offset: &Expr) -> Expr {
        let Self { threads, chunk } = self;
        let chunks = offset.floor_div(&Expr::constant(chunk)).scale(threads * chunk);
        chunks.add(&offset.modulo(&Expr::constant(chunk)))
    }

    /// Where the column of a thread starts in a slot.
    pub fn start(self, thread: i128) -> i128 {
        thread * self.chunk
    }
}

/// Where an element lies in an instance, before the swizzle of the layout.
#[derive(Clone, Debug)]
pub struct Spot {
    /// Elements from the start of the slot.
    pub offset: Expr,
    /// Variables that stand for exclusive ors, each of two expressions over the variables before it.
    pub opaque: Vec<Xor>,
}

impl BufferLayout {
    /// The layout of these axes, with their extents and what is left free after each.
    pub fn new(axes: impl IntoIterator<Item = (AxisId, Expr, i128)>) -> Self {
        let axes = axes.into_iter().map(|(axis, extent, pad)| LaidOut { axis, extent, pad, stride: Expr::constant(1) });
        let mut layout = Self { axes: axes.collect(), swizzle: Swizzle::None, columns: None, written: None };
        layout.stretch();
        layout
    }

    /// Computes the strides.
    fn stretch(&mut self) {
        let mut next = Expr::constant(1);
        for along in self.axes.iter_mut().rev() {
            let behind = next.mul(&along.extent).add(&Expr::constant(along.pad));
            along.stride = std::mem::replace(&mut next, behind);
        }
    }

    /// The same with so much more left free after the axis with a position.
    #[must_use]
    pub fn padded(&self, position: usize, more: i128) -> Self {
        let mut layout = self.clone();
        if let Some(along) = layout.axes.get_mut(position) {
            along.pad += more;
        }
        layout.stretch();
        layout
    }

    /// The same with its last two axes in each other's place, without padding and swizzles; none with fewer axes.
    #[must_use]
    pub fn turned(&self) -> Option<Self> {
        let mut layout = Self { swizzle: Swizzle::None, ..self.clone() };
        let count = layout.axes.len();
        layout.axes.swap(count.checked_sub(2)?, count - 1);
        layout.axes.iter_mut().for_each(|along| along.pad = 0);
        layout.stretch();
        Some(layout)
    }

    /// Elements of an instance: up to the last one that it has.
    pub fn places(&self) -> Expr {
        let one = Expr::constant(1);
        self.axes.iter().fold(one.clone(), |sum, a| sum.add(&a.stride.mul(&a.extent.sub(&one))))
    }

    /// The same in whole spans, in which chunks change places, or in whole chunks of a column; elements have so many
    /// bytes.
    fn instance(&self, element: u32) -> Expr {
        let whole = match self.columns {
            Some(columns) => columns.chunk,
            None => i128::from(self.swizzle.span() / element),
        };
        whole_multiple(&self.places(), whole.max(1))
    }

    /// Elements of a slot with so many instances.
    pub fn slot(&self, element: u32, instances: i128) -> Expr {
        whole_multiple(&self.instance(element).scale(instances), SLOT_ALIGNMENT / i128::from(element))
    }

    /// The same in bytes, where that is known.
    pub fn slot_bytes(&self, element: u32, instances: i128) -> i128 {
        self.slot(element, instances).as_constant().unwrap_or(i128::MAX).saturating_mul(i128::from(element))
    }

    /// Elements from one instance of a slot to the next.
    pub fn apart(&self, element: u32) -> Expr {
        match self.columns {
            Some(columns) => Expr::constant(columns.chunk),
            None => self.instance(element),
        }
    }

    /// Whether chunks of 16 bytes change places.
    pub fn is_swizzled(&self) -> bool {
        self.swizzle != Swizzle::None
    }

    /// As it is written.
    pub fn display(&self, domain: &Domain) -> String {
        let along = |a: &LaidOut| match a.pad {
            0 => domain.axes[a.axis].name.clone(),
            pad => format!("{} pad {pad}", domain.axes[a.axis].name),
        };
        let axes = self.axes.iter().map(along).collect::<Vec<_>>().join(", ");
        match self.swizzle {
            Swizzle::None => format!("layout [{axes}]"),
            swizzle => format!("layout [{axes}] swizzle {}", swizzle.span()),
        }
    }
}

impl Stage {
    /// Where an element lies in a slot of a buffer of the stage, before the swizzle: over the roots, as in
    /// [`Stage::indices`], and over other axes, each of which is a variable of [`Family::AXIS`].
    pub fn place_of_axes(&self) -> Expr {
        self.place_in(&self.layout)
    }

    /// The same in another layout.
    pub fn place_in(&self, layout: &BufferLayout) -> Expr {
        let variable = |axis: AxisId| match self.domain.roots.iter().position(|root| *root == axis) {
            Some(root) => Family::ROOT.expr(root),
            None => Family::AXIS.expr(axis),
        };
        let along = layout.axes.iter();
        along.fold(Expr::constant(0), |sum, a| sum.add(&variable(a.axis).mul(&a.stride)))
    }

    /// The number of the element with the indices `indices` in the row-major order of the coordinates.
    pub fn number(&self, indices: &[Expr]) -> Expr {
        let along = self.coordinates.iter().map(|c| c.at(indices)).zip(self.strides());
        along.fold(Expr::constant(0), |sum, (c, stride)| sum.add(&c.mul(&stride)))
    }

    /// Where the element with the indices `indices` would lie in a slot of a buffer of the stage, in a layout.
    pub fn spot_in(&self, layout: &BufferLayout, indices: &[Expr]) -> Spot {
        self.spot_of(layout, self.coordinates.iter().map(|c| c.at(indices)).collect())
    }

    /// Whether every axis of the layout is a coordinate.
    pub fn is_of_coordinates(&self, layout: &BufferLayout) -> bool {
        layout.axes.iter().all(|a| self.domain.roots.contains(&a.axis))
    }

    /// The same of the element with these coordinates.
    pub fn spot_of(&self, layout: &BufferLayout, roots: Vec<Expr>) -> Spot {
        let (values, opaque) = if self.is_of_coordinates(layout) {
            let mut values: Vec<Option<Expr>> = vec![None; self.domain.axes.len()];
            for (root, value) in self.domain.roots.iter().zip(roots) {
                values[*root] = Some(value);
            }
            (values, Vec::new())
        } else {
            Symbolic::from_roots(&self.domain, &self.facts, &roots)
        };
        let offset = layout.axes.iter().fold(Expr::constant(0), |sum, a| match &values[a.axis] {
            Some(value) => sum.add(&value.mul(&a.stride)),
            None => Expr::unknown(),
        });
        Spot { offset, opaque }
    }
}

fn whole_multiple(n: &Expr, of: i128) -> Expr {
    n.add(&Expr::constant(of - 1)).floor_div(&Expr::constant(of)).scale(of)
}

/// Says that a stage without a buffer has no layout.
pub(super) fn refuse(stage: &str, place: &'static str, ops: &[ast::Op], diags: &mut Diagnostics) {
    for op in ops.iter().filter(|op| matches!(op.kind, ast::OpKind::Layout { .. })) {
        let problem = BufferLayoutProblem::NoBuffer(place);
        diags.report(BadBufferLayout { stage: stage.to_owned(), problem, natural: Vec::new(), span: op.span });
    }
}

/// The row-major order of the coordinates of a stage.
pub(super) fn natural(stage: &Stage) -> BufferLayout {
    // One value needs no place: products with sizes do not cancel where they are computed.
    let counts = |c: &Along| stage.place != Place::Global || c.most.as_constant() != Some(1);
    let coordinates = stage.coordinates.iter().zip(&stage.domain.roots).filter(|(c, _)| counts(c));
    BufferLayout::new(coordinates.map(|(c, root)| (*root, c.most.clone(), 0)))
}

/// The layout of a stage in shared memory, whose coordinates and domain are known; none after an error.
pub(super) fn of(stage: &Stage, ops: &[ast::Op], diags: &mut Diagnostics) -> Option<BufferLayout> {
    let natural = natural(stage);
    let mut found = ops.iter().filter_map(|op| match &op.kind {
        ast::OpKind::Layout { axes, swizzle } => Some((op.span, axes, swizzle)),
        _ => None,
    });
    let Some((span, axes, swizzle)) = found.next().filter(|_| !stage.domain.is_poisoned()) else {
        return Some(natural);
    };
    let names = |layout: &BufferLayout| layout.axes.iter().map(|a| stage.domain.axes[a.axis].name.clone()).collect();
    let mut refuse = |problem: BufferLayoutProblem, span: Span| {
        diags.report(BadBufferLayout { stage: stage.name.clone(), problem, natural: names(&natural), span });
        None
    };
    if let Some((again, ..)) = found.next() {
        return refuse(BufferLayoutProblem::Again(span), again);
    }
    let domain = &stage.domain;
    let mut listed: Vec<(AxisId, Expr, i128)> = Vec::new();
    for written in axes {
        let (name, at) = (&written.name.text, written.name.span);
        let Some(axis) = domain.named(name) else { return refuse(BufferLayoutProblem::Unknown(name.clone()), at) };
        if domain.axes[axis].kind == AxisKind::Reduction {
            return refuse(BufferLayoutProblem::Terms(name.clone()), at);
        }
        let related = |other: &&(AxisId, Expr, i128)| is_part(domain, other.0, axis) || is_part(domain, axis, other.0);
        if let Some((other, ..)) = listed.iter().find(related) {
            let other = domain.axes[*other].name.clone();
            return refuse(BufferLayoutProblem::Related(name.clone(), other), at);
        }
        let Some(extent) = most(stage, axis) else { return refuse(BufferLayoutProblem::Unknown(name.clone()), at) };
        let mut pad = 0;
        if let Some(e) = &written.pad {
            let value = literal(&stage.program, &stage.facts, e);
            let Some(known) = value.filter(|n| (0..=MOST_PADDING).contains(n)) else {
                let (what, most) = ("padding", MOST_PADDING);
                diags.report(BadFactor { what, value, least: 0, most, span: e.span });
                return None;
            };
            pad = known;
        }
        listed.push((axis, Expr::constant(extent), pad));
    }
    let mut missing = Vec::new();
    let given: Vec<AxisId> = listed.iter().map(|l| l.0).collect();
    for (root, coordinate) in domain.roots.iter().zip(&stage.coordinates) {
        if coordinate.most.as_constant() != Some(1) {
            uncovered(stage, *root, &given, &mut missing);
        }
    }
    if let Some(axis) = missing.first() {
        return refuse(BufferLayoutProblem::Missing(domain.axes[*axis].name.clone()), span);
    }
    let mut layout = BufferLayout { written: Some(span), ..BufferLayout::new(listed) };
    if let Some(e) = swizzle {
        if stage.owner == Unit::Thread {
            return refuse(BufferLayoutProblem::Columns, span);
        }
        let value = literal(&stage.program, &stage.facts, e);
        let known = value.and_then(|v| u32::try_from(v).ok()).filter(|v| *v > 16).and_then(Swizzle::with_span);
        let Some(known) = known else { return refuse(BufferLayoutProblem::Span, e.span) };
        layout.swizzle = known;
    }
    let algorithm = &stage.program.algorithm;
    let dims = algorithm.axis_lists[algorithm.equations[stage.equation].axes.range()].len();
    let indices: Vec<Expr> = (0..dims).map(|d| Family::PLACEHOLDER.expr(d)).collect();
    let Spot { offset, opaque } = stage.spot_in(&layout, &indices);
    let is_lost = |e: &Expr| e.is_unknown() || !e.has_at_most(PLACE_TERMS);
    if is_lost(&offset) || opaque.iter().any(|(_, a, b)| is_lost(a) || is_lost(b)) {
        return refuse(BufferLayoutProblem::TooLong, span);
    }
    Some(layout)
}

/// The axes that tell the values of an axis: the outputs of the op that consumed it. The X side of a swizzle is told by
/// one of them.
fn parts(domain: &Domain, axis: AxisId) -> Vec<AxisId> {
    match domain.consumer(axis) {
        Some((Op::Swizzle { x, x_output, .. }, _)) if axis == *x => vec![*x_output],
        Some((Op::Swizzle { y_output, .. }, _)) => vec![*y_output],
        Some((op, _)) => op.outputs(),
        None => Vec::new(),
    }
}

/// Whether `part` is `axis`, or an op has made it of that axis.
fn is_part(domain: &Domain, part: AxisId, axis: AxisId) -> bool {
    part == axis || parts(domain, axis).into_iter().any(|next| is_part(domain, part, next))
}

/// Collects the axes that these do not tell, of those that an axis is made of.
fn uncovered(stage: &Stage, axis: AxisId, listed: &[AxisId], missing: &mut Vec<AxisId>) {
    let domain = &stage.domain;
    // What has one value needs no place.
    if listed.contains(&axis) || most(stage, axis) == Some(1) {
        return;
    }
    let parts = parts(domain, axis);
    if !parts.iter().any(|part| listed.iter().any(|l| is_part(domain, *l, *part))) {
        missing.push(axis);
        return;
    }
    for part in parts {
        uncovered(stage, part, listed, missing);
    }
    // A swizzled value is told together with the other one.
    if let Some((Op::Swizzle { x, y, .. }, _)) = domain.consumer(axis)
        && axis == *y
    {
        uncovered(stage, *x, listed, missing);
    }
}

/// The most values that an axis of an instance has, holes included: what it is merged with counts in these. Those of
/// coordinates are bounded, and the ops bound what they make.
fn most(stage: &Stage, axis: AxisId) -> Option<i128> {
    let domain = &stage.domain;
    if let Some(root) = domain.roots.iter().position(|root| *root == axis) {
        return stage.coordinates.get(root).and_then(|c| c.most.as_constant());
    }
    let (op, _) = domain.ops.iter().find(|(op, _)| op.outputs().contains(&axis))?;
    let ceil = |a: i128, b: i128| a.saturating_add(b - 1).div_euclid(b);
    match op {
        Op::Split { input, outer, inner, factor, .. } => {
            let whole = most(stage, *input)?;
            match (factor.as_constant(), domain.axes[*outer].extent.as_constant()) {
                (Some(factor), _) if axis == *inner => Some(factor),
                (None, Some(count)) if axis == *inner => Some(ceil(whole, count.max(1))),
                // Of a split `into`, which may have more of them than its input has values.
                (_, Some(count)) => Some(count),
                (Some(factor), None) => Some(ceil(whole, factor.max(1))),
                (None, None) => None,
            }
        }
        Op::Merge { outer, inner, .. } => Some(most(stage, *outer)?.saturating_mul(most(stage, *inner)?)),
        Op::Resize { input, left, right, .. } => Some((most(stage, *input)? + left + right).max(1)),
        Op::Swizzle { x, y, x_output, .. } => most(stage, if axis == *x_output { *x } else { *y }),
    }
}
