//! A staged copy by the tensor memory accelerator: which boxes of which view each instance copies.

use tilewright_kernel::ElementType;
use tilewright_kernel::info::TensorParameter;
use tilewright_kernel::tensor_map::{self, Fault, Fill, Format, Promotion, Swizzle, TensorMap};

use super::reach::{Level, Reach, level};
use super::region::{self, Inner, Interval, NotATile};
use super::view::{Boxed, Refusal, View, ViewAxis};
use crate::diag::tw04xx::LayoutProblem;
use crate::domain::{AxisId, Binding, Symbolic};
use crate::extent::{Expr, Facts, Var};
use crate::memory::access;
use crate::memory::vector::Access;
use crate::program::{self, Program};
use crate::schedule::{self, Stage};
use crate::syntax::{Span, ast};

/// Variables from here on stand for the indices of a tensor, outermost first, in [`Axis::position`].
pub const PLACEHOLDER: Var = 1 << 24;

/// A staged copy of a tensor for one reader.
#[derive(Clone, Debug)]
pub struct Staged {
    /// Its name.
    pub name: String,
    /// The tensor.
    pub parameter: u16,
    /// Type of its elements.
    pub element: ElementType,
    /// The same, as the accelerator knows it.
    pub format: Format,
    /// The sequential loop of the reader that an instance stands in; none for the block as a whole.
    pub attach: Option<AxisId>,
    /// The axes of the TMA domain, outermost first.
    pub axes: Vec<Axis>,
    /// The swizzle of its layout.
    pub swizzle: Swizzle,
    /// What counts tiles in the buffer, outermost first: boxes and phases of axes.
    pub outer: Vec<(usize, Part)>,
    /// The op that gave the layout.
    pub layout: Option<Span>,
}

/// An axis of the TMA domain with what an instance copies along it.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name, or the names of a composite.
    pub name: String,
    /// Elements of the tensor along it.
    pub size: Expr,
    /// Distance of neighbours, in elements.
    pub stride: Expr,
    /// Where an element of the tensor lies along the axis: over dimensions and [`PLACEHOLDER`] variables.
    pub position: Expr,
    /// What one instance holds, over dimensions and the loops around the instance.
    pub region: Interval,
    /// The box and its tile.
    pub boxed: Boxed,
}

impl Axis {
    /// Boxes of one instance along the axis.
    pub fn boxes(&self) -> i128 {
        (self.region.extent + self.boxed.box_size - 1).div_euclid(self.boxed.box_size)
    }

    /// Slots of a tile along the axis.
    pub fn tile(&self) -> i128 {
        (self.boxed.box_size + self.boxed.element_stride - 1).div_euclid(self.boxed.element_stride)
    }

    /// Copies of one instance along the axis: every phase of every box.
    pub fn copies(&self) -> i128 {
        self.boxes() * self.boxed.element_stride
    }

    /// What a part of the axis counts up to.
    fn count(&self, part: Part) -> i128 {
        match part {
            Part::Box => self.boxes(),
            Part::Phase => self.boxed.element_stride,
            Part::Slot => self.tile(),
        }
    }

    /// The names of its parts, outermost first.
    fn names(&self) -> Vec<(String, Part)> {
        let Boxed { coordinates, phase, tile, .. } = &self.boxed;
        let of = |names: &[String], part: Part| names.iter().map(|n| (n.clone(), part)).collect::<Vec<_>>();
        [of(coordinates, Part::Box), of(phase.as_slice(), Part::Phase), of(tile, Part::Slot)].concat()
    }
}

/// What an index in the buffer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Boxes of the region.
    Box,
    /// Phases of a box.
    Phase,
    /// Slots of a tile.
    Slot,
}

/// A part of a position in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Position in [`Staged::axes`].
    pub axis: usize,
    /// What is counted along it.
    pub part: Part,
    /// Elements that one step takes.
    pub stride: i128,
}

/// Why a staged copy is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// An op of its view.
    View(Refusal),
    /// The reader is no loop nest of this name, or has no such loop.
    Attach(Span),
    /// The attach point is run by threads: the instance of a block lies around them.
    AttachInsideBlock(Span),
    /// The reader does not read the tensor.
    NotRead(Span),
    /// The copy names another number of axes than the tensor has: its own and the tensor's.
    Axes(usize, usize),
    /// An op that a copy does not have.
    NotYet(&'static str, Span),
    /// What is read along an axis of the view is not a tile.
    NotATile {
        /// The axis of the view.
        axis: String,
        /// Why.
        why: NotATile,
        /// The read.
        read: Span,
    },
    /// A loop inside the attach point has no bound that is known at compile time.
    Unbounded {
        /// The loop.
        axis: String,
        /// Its extent.
        extent: Expr,
    },
    /// Elements along the innermost axis are not neighbours in memory.
    InnerStride {
        /// The axis.
        axis: String,
        /// Their distance.
        stride: Expr,
    },
    /// The distance of neighbours along an axis is not known to be a multiple of 16 bytes.
    Pitch {
        /// The axis.
        axis: String,
        /// Their distance in elements.
        stride: Expr,
        /// What it must be a multiple of, in elements.
        multiple: i128,
    },
    /// A copy along the innermost axis is not known to start at a multiple of 16 bytes.
    InnerStart {
        /// The axis.
        axis: String,
        /// Where regions start.
        start: Expr,
        /// What that must be a multiple of, in elements.
        multiple: i128,
    },
    /// A limit of tensor maps, and the axis that it is about with its box.
    Limit(Fault, Option<(String, Span)>),
    /// A swizzle span that does not exist.
    Swizzle(Span),
    /// A layout in which a tile is not one whole, with what there is to lay out.
    Layout(LayoutProblem, Vec<String>, Span),
    /// The inner box is shorter than the span of the swizzle: how far rows are apart then is not confirmed on hardware.
    NarrowSwizzle {
        /// Bytes of the inner box.
        bytes: i128,
        /// Bytes of the span.
        span: u32,
        /// The inner axis.
        inner: String,
        /// The layout.
        at: Option<Span>,
    },
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self::View(refusal)
    }
}

/// Where the instances of a staged copy stand in their reader.
struct Attach<'a> {
    facts: &'a Facts,
    stage: &'a Stage,
    /// The sequential loop, if it is one.
    leaf: Option<AxisId>,
    /// Variables of loops inside the attach point.
    inside: Vec<Inner>,
}

impl<'a> Attach<'a> {
    /// The loops of `stage` inside the leaf called `axis`. An instance belongs to a block: bound leaves finer than the grid are inside.
    fn new(facts: &'a Facts, stage: &'a Stage, symbolic: &'a Symbolic, axis: &ast::Name) -> Result<Self, Refused> {
        let leaf = stage.domain.leaf(&axis.text).ok_or(Refused::Attach(axis.span))?;
        let at = match stage.domain.axes[leaf].binding {
            // Every grid axis lies around every sequential one.
            Binding::Grid => None,
            Binding::Serial | Binding::Unroll(_) => stage.domain.leaves.iter().position(|l| *l == leaf),
            _ => return Err(Refused::AttachInsideBlock(axis.span)),
        };
        let mut inside = Vec::new();
        for (position, leaf) in stage.domain.leaves.iter().enumerate() {
            let definition = &stage.domain.axes[*leaf];
            let around = match definition.binding {
                Binding::Grid => true,
                binding => binding.is_sequential() && at.is_some_and(|at| position <= at),
            };
            if around {
                continue;
            }
            let extent = facts.normal(&definition.extent);
            let most = extent.as_constant().or_else(|| facts.upper_bound(&extent));
            let Some(most) = most else {
                return Err(Refused::Unbounded { axis: definition.name.clone(), extent });
            };
            inside.push(Inner { var: (facts.dims() + position) as Var, extent: most.max(1) });
        }
        // The result of a swizzle ranges over its extent, whatever its operands are.
        for (var, ..) in &symbolic.opaque {
            let extent = symbolic.variables.iter().find(|v| v.var == *var).and_then(|v| v.extent.as_constant());
            if let Some(extent) = extent {
                inside.push(Inner { var: *var, extent });
            }
        }
        Ok(Self { facts, stage, leaf: at.map(|_| leaf), inside })
    }

    /// An index of a read with the axes of inner reductions as further loops inside, that start at 0.
    fn unrolled(&self, index: &Expr, read: &Access, inside: &mut Vec<Inner>) -> Result<Expr, Refused> {
        let mut index = index.clone();
        for axis in read.inner.iter().rev() {
            let extent = self.facts.normal(&axis.upper.sub(&axis.lower));
            let most = extent.as_constant().or_else(|| self.facts.upper_bound(&extent));
            let Some(most) = most else {
                return Err(Refused::Unbounded { axis: self.name_of(axis.var), extent });
            };
            let shifted = axis.lower.add(&Expr::var(axis.var));
            index = index.substitute(&|v| (v == axis.var).then(|| shifted.clone()));
            if !inside.iter().any(|i| i.var == axis.var) {
                inside.push(Inner { var: axis.var, extent: most.max(1) });
            }
        }
        Ok(index)
    }

    fn name_of(&self, var: Var) -> String {
        let leaf = (var as usize).checked_sub(self.facts.dims()).and_then(|k| self.stage.domain.leaves.get(k));
        leaf.map_or_else(|| "an axis of a reduction".to_owned(), |l| self.stage.domain.axes[*l].name.clone())
    }
}

/// Analyses one staged copy for the stage that reads it.
///
/// # Errors
/// See [`Refused`].
pub fn plan(
    program: &Program,
    facts: &Facts,
    reader: (&Stage, &Symbolic, &[Access]),
    parameter: u16,
    tensor: &TensorParameter,
    copy: &program::Stage,
) -> Result<Staged, Refused> {
    let (stage, symbolic, accesses) = reader;
    let copy = &copy.ast;
    if copy.axes.len() != tensor.shape.len() {
        return Err(Refused::Axes(copy.axes.len(), tensor.shape.len()));
    }
    let at = copy.clauses.at.as_ref().ok_or(Refused::Attach(copy.head))?;
    let attach = Attach::new(facts, stage, symbolic, &at.axis)?;
    let reads: Vec<&Access> = accesses.iter().filter(|a| a.parameter == parameter && !a.is_write).collect();
    if reads.is_empty() {
        return Err(Refused::NotRead(copy.source.span));
    }
    let mut inside = attach.inside.clone();
    let mut axes: Vec<ViewAxis> = Vec::new();
    for (d, (size, stride)) in tensor.shape.iter().zip(access::strides(tensor, facts)).enumerate() {
        let own = Ok(Expr::var(PLACEHOLDER + d as Var));
        let indices = reads.iter().map(|read| attach.unrolled(&read.indices[d], read, &mut inside));
        let indices = std::iter::once(own).chain(indices);
        axes.push(ViewAxis {
            name: copy.axes[d].text.clone(),
            span: copy.axes[d].span,
            size: facts.normal(&Expr::from_size(size)),
            stride,
            indices: indices.collect::<Result<_, _>>()?,
            boxed: None,
        });
    }
    let literal = |e: &ast::Expr| schedule::literal(program, facts, e);
    let mut view = View::new(axes, facts, &literal);
    let mut swizzle = Swizzle::None;
    let mut layout: Option<(&[ast::LayoutAxis], Span)> = None;
    for op in &copy.ops {
        match &op.kind {
            ast::OpKind::Layout { axes, swizzle: spans } => {
                if layout.is_some() {
                    return Err(Refused::NotYet("a second `layout`", op.span));
                }
                layout = Some((axes, op.span));
                if let Some(spans) = spans {
                    let bytes = literal(spans).and_then(|bytes| u32::try_from(bytes).ok()).filter(|bytes| *bytes > 16);
                    swizzle = bytes.and_then(Swizzle::with_span).ok_or(Refused::Swizzle(spans.span))?;
                }
            }
            // Filling is judged once the copy is known.
            ast::OpKind::Fill { .. } => {}
            ast::OpKind::L2 { .. } => return Err(Refused::NotYet("l2", op.keyword)),
            _ => view.apply(op)?,
        }
    }
    let mut axes = Vec::new();
    for axis in view.axes {
        let mut region: Option<Interval> = None;
        // The first one is the axis itself, in terms of the tensor's indices.
        for (index, read) in axis.indices[1..].iter().zip(&reads) {
            let not_a_tile = |why| Refused::NotATile { axis: axis.name.clone(), why, read: read.span };
            let found = region::interval(index, &inside, facts).map_err(not_a_tile)?;
            region = Some(match region {
                Some(before) => region::hull(&before, &found, facts).map_err(not_a_tile)?,
                None => found,
            });
        }
        let Some(region) = region else { return Err(Refused::NotRead(copy.source.span)) };
        // Without a box, the whole region is one.
        let boxed = axis.boxed.unwrap_or_else(|| Boxed {
            box_size: region.extent,
            element_stride: 1,
            coordinates: Vec::new(),
            tile: vec![axis.name.clone()],
            phase: None,
            span: axis.span,
        });
        let position = axis.indices[0].clone();
        axes.push(Axis { name: axis.name, size: axis.size, stride: axis.stride, position, region, boxed });
    }
    let names: Vec<String> = axes.iter().flat_map(Axis::names).map(|(name, _)| name).collect();
    let axes = ordered(axes, facts);
    let element = program.parameters[usize::from(parameter)].element;
    let mut staged = Staged {
        name: copy.name.text.clone(),
        parameter,
        element,
        format: Format::of(element),
        attach: attach.leaf,
        outer: Staged::natural(axes.len()),
        axes,
        swizzle,
        layout: layout.map(|l| l.1),
    };
    if let Some((list, span)) = layout {
        staged.lay_out(list, &names, span)?;
    }
    staged.check(facts)?;
    Ok(staged)
}

/// The axes as a map lists them, outermost first: without those of one element, which add nothing to an address; the one whose
/// neighbours are neighbours in memory last; and no more than a map has, as long as axes of boxes of one element can be counted together.
fn ordered(mut axes: Vec<Axis>, facts: &Facts) -> Vec<Axis> {
    let is_unit = |a: &Axis| facts.normal(&a.stride).as_constant() == Some(1);
    let counts = |a: &Axis| a.size.as_constant() != Some(1);
    if let Some(at) = axes.iter().rposition(|a| is_unit(a) && counts(a)) {
        let inner = axes.remove(at);
        axes.push(inner);
        axes.retain(counts);
    }
    while axes.len() > tensor_map::MAX_RANK {
        // One outer position each: then the pair is an interval of the merged axis, too.
        let joins = |pair: &[Axis]| {
            let run = facts.normal(&pair[1].size.mul(&pair[1].stride));
            let single = |a: &Axis| a.boxed.box_size == 1 && a.boxed.element_stride == 1;
            single(&pair[0]) && single(&pair[1]) && pair[0].region.extent == 1 && facts.normal(&pair[0].stride) == run
        };
        let Some(at) = axes.windows(2).position(joins) else { break };
        let inner = axes.remove(at + 1);
        let outer = &mut axes[at];
        outer.name = format!("{}·{}", outer.name, inner.name);
        let start = outer.region.start.mul(&inner.size).add(&inner.region.start);
        outer.region = Interval { start: facts.normal(&start), extent: inner.region.extent };
        outer.position = facts.normal(&outer.position.mul(&inner.size).add(&inner.position));
        outer.size = facts.normal(&outer.size.mul(&inner.size));
        outer.stride = inner.stride;
        outer.boxed.coordinates.extend(inner.boxed.coordinates);
        outer.boxed.tile.extend(inner.boxed.tile);
    }
    axes
}

impl Staged {
    /// Boxes, then phases, each in the order of the axes: how tiles follow each other without a layout.
    pub fn natural(axes: usize) -> Vec<(usize, Part)> {
        [Part::Box, Part::Phase].into_iter().flat_map(|part| (0..axes).map(move |axis| (axis, part))).collect()
    }

    /// The names of what can be laid out, in the natural order.
    fn parts(&self) -> Vec<(String, usize, Part)> {
        let of = |part: Part| {
            let axes = self.axes.iter().enumerate();
            axes.flat_map(move |(n, axis)| {
                axis.names().into_iter().filter_map(move |(name, p)| (p == part).then_some((name, n, p)))
            })
        };
        of(Part::Box).chain(of(Part::Phase)).chain(of(Part::Slot)).collect()
    }

    /// Takes the order of the buffer from a layout: what counts tiles, then the axes of the tile, which become the order of the map.
    /// `known` are the names that there are; some have gone with axes of one element.
    fn lay_out(&mut self, list: &[ast::LayoutAxis], known: &[String], op: Span) -> Result<(), Refused> {
        let parts = self.parts();
        let natural: Vec<String> = parts.iter().map(|p| p.0.clone()).collect();
        let refuse = |problem, span| Err(Refused::Layout(problem, natural.clone(), span));
        let mut order: Vec<(usize, Part)> = Vec::new();
        let mut tile: Vec<usize> = Vec::new();
        let mut last_slot: Option<&str> = None;
        let mut seen: Vec<&str> = Vec::new();
        for written in list {
            let (name, span) = (written.name.text.as_str(), written.name.span);
            if written.pad.is_some() {
                return refuse(LayoutProblem::Padded(name.to_owned()), span);
            }
            if seen.contains(&name) {
                return refuse(LayoutProblem::Twice(name.to_owned()), span);
            }
            let Some(at) = parts.iter().position(|p| p.0 == name) else {
                if known.iter().any(|k| k == name) {
                    continue;
                }
                return refuse(LayoutProblem::Unknown(name.to_owned()), span);
            };
            let (_, axis, part) = parts[at];
            // The parts of a composite stay together: each after the one in front of it.
            let composite = at > 0 && (parts[at - 1].1, parts[at - 1].2) == (axis, part);
            if composite && seen.last() != Some(&parts[at - 1].0.as_str()) {
                return refuse(LayoutProblem::Composite(name.to_owned()), span);
            }
            seen.push(name);
            match part {
                Part::Slot if composite => last_slot = Some(name),
                Part::Slot => {
                    tile.push(axis);
                    last_slot = Some(name);
                }
                _ if composite => {}
                _ => {
                    if let Some(tile) = last_slot.filter(|_| self.axes[axis].count(part) > 1) {
                        let (outer, tile) = (name.to_owned(), tile.to_owned());
                        return refuse(LayoutProblem::Inside { outer, tile }, span);
                    }
                    order.push((axis, part));
                }
            }
        }
        for (name, axis, part) in &parts {
            if self.axes[*axis].count(*part) > 1 && !seen.contains(&name.as_str()) {
                return refuse(LayoutProblem::Missing(name.clone()), op);
            }
        }
        let Some(innermost) = self.axes.len().checked_sub(1) else { return Ok(()) };
        // What is not written has one slot: its place changes nothing.
        let unwritten: Vec<usize> = (0..self.axes.len()).filter(|a| !tile.contains(a)).collect();
        let mut sequence: Vec<usize> = unwritten.into_iter().filter(|a| *a != innermost || tile.is_empty()).collect();
        sequence.extend(&tile);
        if sequence.last() != Some(&innermost) {
            let wanted = self.axes[innermost].boxed.tile.last().cloned().unwrap_or_default();
            return refuse(LayoutProblem::Innermost { last: last_slot.unwrap_or_default().to_owned(), wanted }, op);
        }
        for missing in Self::natural(self.axes.len()) {
            if !order.contains(&missing) {
                order.push(missing);
            }
        }
        let place = |axis: usize| sequence.iter().position(|a| *a == axis).unwrap_or(axis);
        self.outer = order.into_iter().map(|(axis, part)| (place(axis), part)).collect();
        let axes = std::mem::take(&mut self.axes);
        self.axes = sequence.iter().map(|a| axes[*a].clone()).collect();
        Ok(())
    }

    /// The rules of tensor maps, as far as sizes and strides are expressions.
    fn check(&self, facts: &Facts) -> Result<(), Refused> {
        self.boxes().check_box().map_err(|fault| {
            let axis = fault.dimension().and_then(|d| self.axes.iter().rev().nth(d));
            Refused::Limit(fault, axis.map(|a| (a.name.clone(), a.boxed.span)))
        })?;
        let Some((inner, outer)) = self.axes.split_last() else { return Err(Refused::Limit(Fault::Rank(0), None)) };
        if facts.normal(&inner.stride).as_constant() != Some(1) {
            return Err(Refused::InnerStride { axis: inner.name.clone(), stride: inner.stride.clone() });
        }
        let (bytes, span) = (inner.boxed.box_size * i128::from(self.format.bytes()), self.swizzle.span());
        if self.swizzle != Swizzle::None && bytes != i128::from(span) {
            return Err(Refused::NarrowSwizzle { bytes, span, inner: inner.name.clone(), at: self.layout });
        }
        let multiple = i128::from(tensor_map::GRANULE) / i128::from(self.format.bytes());
        // Boxes follow each other in multiples of 16 bytes.
        if !facts.proves_multiple(&inner.region.start, multiple) {
            let (axis, start) = (inner.name.clone(), inner.region.start.clone());
            return Err(Refused::InnerStart { axis, start, multiple });
        }
        for axis in outer {
            if !facts.proves_multiple(&axis.stride, multiple) {
                return Err(Refused::Pitch { axis: axis.name.clone(), stride: axis.stride.clone(), multiple });
            }
        }
        Ok(())
    }

    /// The map with what is known while compiling: boxes and strides of elements, innermost first; sizes and addresses are stand-ins.
    fn boxes(&self) -> TensorMap {
        let clamp = |n: i128| u32::try_from(n).unwrap_or(u32::MAX);
        let dimensions = self.axes.iter().rev().map(|axis| tensor_map::Dimension {
            size: 1,
            stride: 0,
            box_size: clamp(axis.boxed.box_size),
            element_stride: clamp(axis.boxed.element_stride),
        });
        TensorMap {
            format: self.format,
            address: 0,
            dimensions: dimensions.collect(),
            swizzle: self.swizzle,
            fill: Fill::Zero,
            promotion: Promotion::None,
        }
    }

    /// Bytes of one tile, out-of-bounds part included.
    pub fn tile_bytes(&self) -> u64 {
        self.boxes().tile_bytes()
    }

    /// Copies of one instance.
    pub fn copies(&self) -> i128 {
        self.axes.iter().map(Axis::copies).product()
    }

    /// Elements from one tile of the buffer to the next: a tile, rounded up to the alignment of tiles.
    pub fn pitch(&self) -> i128 {
        let bytes = i128::from(self.tile_bytes());
        let alignment = i128::from(self.swizzle.alignment());
        (bytes + alignment - 1).div_euclid(alignment) * alignment / i128::from(self.element.bytes())
    }

    /// Elements of the buffer.
    pub fn elements(&self) -> i128 {
        self.copies() * self.pitch()
    }

    /// Bytes that an instance copies.
    pub fn bytes(&self) -> i128 {
        self.copies() * i128::from(self.tile_bytes())
    }

    /// How far one step takes in the buffer, in elements: what counts tiles, and the slots of a tile in the order of the axes.
    pub fn strides(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut stride = 1;
        for (axis, a) in self.axes.iter().enumerate().rev() {
            steps.push(Step { axis, part: Part::Slot, stride });
            stride *= a.tile();
        }
        let mut stride = self.pitch();
        for (axis, part) in self.outer.iter().rev() {
            let count = self.axes[*axis].count(*part);
            if count > 1 {
                steps.push(Step { axis: *axis, part: *part, stride });
                stride *= count;
            }
        }
        steps
    }

    /// Where the tiles start, along each axis from the start of the region, in the order of the buffer.
    pub fn tiles(&self) -> Vec<Vec<i128>> {
        let mut tiles: Vec<Vec<i128>> = vec![vec![0; self.axes.len()]];
        for (axis, part) in &self.outer {
            let a = &self.axes[*axis];
            let step = if *part == Part::Box { a.boxed.box_size } else { 1 };
            let moved = |start: &Vec<i128>, n: i128| {
                let mut start = start.clone();
                start[*axis] += n * step;
                start
            };
            tiles = tiles.iter().flat_map(|start| (0..a.count(*part)).map(move |n| moved(start, n))).collect();
        }
        tiles
    }

    /// What zeros in every hole would take, over all instances; see [`Level`]. Loops around the instances range over their extents.
    pub fn level(&self, facts: &Facts, symbolic: &Symbolic) -> Level {
        let first = (facts.dims() + symbolic.variables.len()) as Var;
        // Every axis has a first box to the one before last, whole, and a last one that may be live in part.
        let mut worst = Level::Free;
        for choice in 0..1u32 << self.axes.len() {
            let mut reachable = facts.residue_system();
            for leaf in &symbolic.variables {
                reachable.at_least(leaf.var, 0);
                let last = leaf.extent.sub(&Expr::constant(1)).sub(&Expr::var(leaf.var));
                reachable.require(&facts.with_residues(&last));
            }
            let mut dimensions = Vec::with_capacity(self.axes.len());
            let mut empty = false;
            for (d, axis) in self.axes.iter().enumerate() {
                let (box_size, boxes) = (axis.boxed.box_size, axis.boxes());
                let tail = axis.region.extent - (boxes - 1) * box_size;
                let (number, live) = if choice >> d & 1 == 1 {
                    (Expr::constant(boxes - 1), tail)
                } else {
                    let var = first + d as Var;
                    reachable.at_least(var, 0);
                    reachable.require(&Expr::constant(boxes - 2).sub(&Expr::var(var)));
                    empty |= boxes == 1;
                    (Expr::var(var), box_size)
                };
                dimensions.push(Reach {
                    size: facts.with_residues(&axis.size),
                    box_size,
                    element_stride: axis.boxed.element_stride,
                    start: facts.with_residues(&axis.region.start.add(&number.scale(box_size))),
                    live: Expr::constant(live),
                });
            }
            if !empty {
                worst = worst.max(level(&reachable, &dimensions));
            }
        }
        worst
    }
}
