//! A staged copy by the tensor memory accelerator: which boxes of which view each instance copies, to shared memory or
//! from it.

use tilewright_kernel::algorithm::ValueId;
use tilewright_kernel::info::TensorParameter;
use tilewright_kernel::tensor_map::{self, Format, Promotion, Swizzle};

use super::allocation::{TileOp, TileOpKind};
use super::cover;
use super::gathered::{self, Counted};
use super::layout::Written;
use super::loops::{self, Loops, Reader};
use super::multicast::Along;
use super::rules::{NotOne, Refused};
use super::view::{View, ViewAxis};
use crate::domain::{Binding, Symbolic};
use crate::extent::{Expr, Facts, Family};
use crate::holes::Holes;
use crate::kernel_ir::Evict;
use crate::plan::staged::{Axis, BETWEEN_NAMES, Boxed, Form, NotRuns, Part, Staged, TileAxis, Way};
use crate::program;
use crate::program::expressions;
use crate::region::{Interval, interval};
use crate::schedule::accesses::{Access, FromMemory};
use crate::schedule::{self, Attach, Stage};
use crate::source::{Span, ast};

/// What is known of the stage that reads or writes a staged copy.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The stage.
    pub stage: &'a Stage,
    /// Its position among all.
    pub at: usize,
    /// Its index maps.
    pub symbolic: &'a Symbolic,
    /// Its predicates.
    pub holes: &'a Holes,
    /// The blocks of a cluster that are to take the copy together.
    pub along: Option<&'a Along<'a>>,
}

/// A staged copy, and what it makes of the reads that it serves.
pub struct Planned {
    /// The copy.
    pub staged: Staged,
    /// Indices of reads that depend on memory, by the reader and the number among its accesses.
    pub gathered: Resolved,
}

/// Indices over the variables of a kernel that stand for what memory holds, by the numbers of reads.
pub type Resolved = Vec<((usize, usize), Vec<Expr>)>;

/// Analyses one staged copy, of which an instance stands in a loop of the stage that `around` is about, for the stages
/// that read it, or for the one that writes it. `serves` are the reads that take it, if not all do. `memory` lists the
/// integers of memory that copies of the kernel depend on.
///
/// # Errors
/// See [`Refused`].
pub fn plan(
    around: Around<'_>,
    readers: &[Reader<'_>],
    (parameter, tensor): (u16, &TensorParameter),
    (copy, serves): (&program::Stage, Option<Vec<ValueId>>),
    memory: &mut Vec<FromMemory>,
) -> Result<Planned, Refused> {
    let Around { stage, symbolic, along, .. } = around;
    let (program, facts) = (&stage.program, &stage.facts);
    let copy = &copy.ast;
    let way = if tensor.role.is_written() { Way::Store } else { Way::Load };
    if copy.axes.len() != tensor.shape.len() {
        return Err(Refused::Axes(copy.axes.len(), tensor.shape.len()));
    }
    let at = copy.clauses.at.as_ref().ok_or(Refused::Attach(copy.head))?;
    let taken = |a: &Access| serves.as_ref().is_none_or(|s| a.value.is_some_and(|value| s.contains(&value)));
    let is_own = |a: &Access| a.parameter == parameter && a.is_write == (way == Way::Store) && taken(a);
    let attach = loops::place(around.at, stage, &at.axis)?;
    let mut served = served(readers, (stage, &attach), way, &is_own)?;
    let Some(first_read) = served.first().map(|s| s.access.span) else {
        return Err(Refused::NotRead(copy.source.span));
    };
    let resolved = gathered::resolve(&mut served, memory, (&program.algorithm, &copy.axes))?;
    if way == Way::Store && attach.is_inside_reduction(stage) {
        return Err(Refused::InsideReduction(at.axis.span));
    }
    let ring = ring(copy, way, stage, &attach)?;
    let literal = |e: &ast::Expr| schedule::literal(program, facts, e);
    let mut view = View::new(axes_of(tensor, copy, stage, &mut served)?, facts, &literal);
    let options = Options::of(&copy.ops, &mut view, &literal)?;
    gathered::one_box_each(&view.axes, &served)?;
    let mut names_taken: Vec<String> = view.axes.iter().map(|a| a.name.clone()).collect();
    let (mut axes, mut written) = (Vec::new(), Vec::new());
    for axis in std::mem::take(&mut view.axes) {
        let region = region(&axis, &served, facts)?.ok_or(Refused::NotRead(copy.source.span))?;
        if way == Way::Store {
            let (name, index) = (axis.name.clone(), axis.indices[1].clone());
            written.push(cover::Written { name, index, region: region.clone() });
        }
        let is_listed = gathered::mentioned(&region.start, memory).iter().any(|(_, read)| read.listed.is_some());
        axes.push(boxed(axis, region, along, is_listed));
    }
    if let Some(along) = along {
        along.check(&axes, memory)?;
    }
    let names: Vec<(String, Part)> = axes.iter().flat_map(Axis::names).collect();
    let (axes, aliased) = ordered(axes, facts);
    let listed = gathered::all(&axes, memory);
    gathered::check(&axes, &listed, first_read)?;
    if let (Way::Store, Some(first)) = (way, served.first()) {
        cover::check(facts, around, &written, first.loops.inside(), &aliased).map_err(Refused::Gap)?;
    }
    let element = program.parameters[usize::from(parameter)].element;
    let layout = options.layout;
    let mut staged = Staged {
        name: copy.name.text.clone(),
        way,
        ring,
        redirect: false,
        any: false,
        role: None,
        parameter,
        serves,
        element,
        format: Format::of(element),
        multicast: None,
        attach,
        outer: Staged::natural(axes.len()),
        memory: listed,
        axes,
        form: Form::Tiles(NotRuns::Granule),
        swizzle: options.swizzle,
        layout: layout.map(|l| l.1).or(view.tile_ops.last().map(|op| op.span)),
        promotion: options.promotion,
        evict: options.evict,
    };
    let known: Vec<String> = names.iter().map(|n| n.0.clone()).collect();
    names_taken.extend(known.iter().cloned());
    let left: Vec<(String, Part)> = staged.axes.iter().flat_map(Axis::names).collect();
    let gone = names.iter().filter(|n| n.1 == Part::Slot && !left.contains(n)).map(|n| n.0.clone());
    staged.lay_out(
        &Written {
            list: layout,
            ops: &view.tile_ops,
            known: &known,
            taken: &names_taken,
            gone: &gone.collect::<Vec<_>>(),
            run: run(&copy.ops, &view.tile_ops, layout.map(|l| l.1)),
        },
        facts,
    )?;
    if let Some(along) = along.filter(|along| along.multicast.blocks > 1) {
        let multicast = along.placed(&staged.axes)?;
        if let Some((axis, _)) = staged.listed().filter(|(axis, _)| multicast.by == Some(*axis)) {
            let axis = staged.axes[axis].name.clone();
            return Err(Refused::FromMemory { axis, why: NotOne::Sliced, read: first_read });
        }
        staged.multicast = Some(multicast);
    }
    // Now that the order of the buffer is known.
    staged.form = staged.choose(facts, symbolic);
    // The rules of tensor maps are none of runs.
    if let Form::Tiles(_) = staged.form {
        staged.check(facts, symbolic)?;
        if way == Way::Store {
            staged.check_store(facts, symbolic)?;
        }
    }
    Ok(Planned { staged, gathered: resolved })
}

/// An access that a copy serves.
pub(super) struct Served<'a> {
    pub access: &'a Access,
    /// The number of its reader, and its own among the accesses of that.
    pub at: (usize, usize),
    /// Its indices.
    pub indices: Vec<Expr>,
    /// What memory lists for them.
    pub counted: Vec<Counted>,
    /// What is known in its stage.
    pub facts: &'a Facts,
    /// The loops that move it.
    pub loops: Loops,
}

/// The accesses of the readers that a copy serves, or those of the stage that writes it.
fn served<'a>(
    readers: &[Reader<'a>],
    (host, attach): (&Stage, &Attach),
    way: Way,
    is_own: &dyn Fn(&Access) -> bool,
) -> Result<Vec<Served<'a>>, Refused> {
    let mut found = Vec::new();
    for (number, reader) in readers.iter().enumerate() {
        let mut own: Vec<(usize, &Access)> = reader.accesses.iter().enumerate().filter(|(_, a)| is_own(a)).collect();
        if way == Way::Load && attach.is_inside_reduction(host) {
            // What is read before the terms and after them is read from the tensor.
            own.retain(|(_, read)| reader.is_inner() || read.in_terms);
        }
        let Some((of, _)) = reader.chain.last().filter(|_| !own.is_empty()) else { continue };
        let loops = Loops::new(reader, attach, &own.iter().map(|(_, access)| *access).collect::<Vec<_>>())?;
        found.extend(own.into_iter().map(|(n, access)| Served {
            access,
            at: (number, n),
            indices: access.indices.clone(),
            counted: Vec::new(),
            facts: &of.facts,
            loops: loops.clone(),
        }));
    }
    Ok(found)
}

/// How many buffers a copy has.
fn ring(copy: &ast::StagedCopy, way: Way, stage: &Stage, attach: &Attach) -> Result<u32, Refused> {
    let Some(written) = &copy.clauses.ring else { return Ok(1) };
    let slots = schedule::literal(&stage.program, &stage.facts, &written.value);
    let known = slots.filter(|n| (1..=schedule::MOST_SLOTS).contains(n)).and_then(|n| u32::try_from(n).ok());
    let ring = known.ok_or(Refused::Ring(slots, written.span))?;
    // Elements are written to the next slot while a copy stores those of the one before; no instance has to be made
    // ahead of a loop.
    let is_written_out = matches!(stage.domain.axes[attach.leaf].binding, Binding::Unroll(_));
    if ring > 1 && !(stage.has_next(attach.leaf) || way == Way::Store && is_written_out) {
        return Err(Refused::RingWithoutLoop(written.span));
    }
    Ok(ring)
}

/// The dimensions of a tensor as axes of a view, each with its index in every access; the first index is the axis
/// itself.
fn axes_of(
    tensor: &TensorParameter,
    copy: &ast::StagedCopy,
    stage: &Stage,
    served: &mut [Served<'_>],
) -> Result<Vec<ViewAxis>, Refused> {
    let facts = &stage.facts;
    let mut axes: Vec<ViewAxis> = Vec::new();
    for (d, (size, stride)) in tensor.shape.iter().zip(expressions::strides(tensor, facts)).enumerate() {
        let own = Ok(Family::PLACEHOLDER.expr(d));
        let unrolled =
            |m: &mut Served<'_>| m.loops.unrolled(&m.indices[d], m.access, m.facts, &stage.program.algorithm);
        axes.push(ViewAxis {
            name: copy.axes[d].text.clone(),
            span: copy.axes[d].span,
            size: facts.normal(&Expr::from_size(size)),
            stride,
            indices: std::iter::once(own).chain(served.iter_mut().map(unrolled)).collect::<Result<_, _>>()?,
            dims: vec![d],
            aliased: Vec::new(),
            padded: false,
            boxed: None,
        });
    }
    Ok(axes)
}

/// What the ops of a copy say beside its view.
struct Options<'a> {
    /// The order of the buffer, and its clause.
    layout: Option<(&'a [ast::LayoutAxis], Span)>,
    swizzle: Swizzle,
    promotion: Promotion,
    evict: Option<Evict>,
}

impl<'a> Options<'a> {
    /// Reads them, and applies the others to the view.
    fn of(
        ops: &'a [ast::Op],
        view: &mut View<'_>,
        literal: &dyn Fn(&ast::Expr) -> Option<i128>,
    ) -> Result<Self, Refused> {
        let mut found = Self { layout: None, swizzle: Swizzle::None, promotion: Promotion::None, evict: None };
        let mut sugar = None;
        for op in ops {
            match &op.kind {
                ast::OpKind::Layout { axes, swizzle: spans } => {
                    if found.layout.is_some() {
                        return Err(Refused::NotYet("a second `layout`", op.span));
                    }
                    found.layout = Some((axes, op.span));
                    if let Some(spans) = spans {
                        let bytes = literal(spans).and_then(|n| u32::try_from(n).ok()).filter(|bytes| *bytes > 16);
                        found.swizzle = bytes.and_then(Swizzle::with_span).ok_or(Refused::Swizzle(spans.span))?;
                        sugar = Some(spans.span);
                    }
                }
                // Filling is judged once the copy is known; blocks have been found.
                ast::OpKind::Fill { .. } | ast::OpKind::Multicast { .. } => {}
                ast::OpKind::L2 { hint } => found.l2(hint, op.span, literal)?,
                _ => view.apply(op)?,
            }
        }
        let exchanges = view.tile_ops.iter().find(|op| op.kind == TileOpKind::Swizzle);
        if let (Some(sugar), Some(op)) = (sugar, exchanges) {
            return Err(Refused::TwoSwizzles(sugar, op.span));
        }
        Ok(found)
    }

    fn l2(
        &mut self,
        hint: &ast::L2Hint,
        span: Span,
        literal: &dyn Fn(&ast::Expr) -> Option<i128>,
    ) -> Result<(), Refused> {
        match hint {
            ast::L2Hint::Promote(_) if self.promotion != Promotion::None => {
                return Err(Refused::NotYet("a second promotion", span));
            }
            ast::L2Hint::Promote(bytes) => {
                self.promotion = match literal(bytes) {
                    Some(64) => Promotion::B64,
                    Some(128) => Promotion::B128,
                    Some(256) => Promotion::B256,
                    _ => return Err(Refused::Promotion(bytes.span)),
                };
            }
            _ if self.evict.is_some() => return Err(Refused::NotYet("a second eviction", span)),
            ast::L2Hint::EvictFirst => self.evict = Some(Evict::First),
            ast::L2Hint::EvictLast => self.evict = Some(Evict::Last),
        }
        Ok(())
    }
}

/// The hull of what the accesses ask for along an axis of the view; none without accesses.
fn region(axis: &ViewAxis, served: &[Served<'_>], facts: &Facts) -> Result<Option<Interval>, Refused> {
    let mut region: Option<Interval> = None;
    // The first one is the axis itself, in terms of the tensor's indices.
    for (index, served) in axis.indices[1..].iter().zip(served) {
        let not_a_tile = |why| Refused::NotATile { axis: axis.name.clone(), why, read: served.access.span };
        let found = interval::interval(index, served.loops.inside(), facts).map_err(not_a_tile)?;
        region = Some(match region {
            Some(before) => interval::hull(&before, &found, facts).map_err(not_a_tile)?,
            None => found,
        });
    }
    Ok(region)
}

/// An axis with its boxes. Without a box, the whole region is one; or each element, if memory lists their places or
/// blocks divide them among each other.
fn boxed(axis: ViewAxis, region: Interval, along: Option<&Along<'_>>, is_listed: bool) -> Axis {
    let boxed = axis.boxed.unwrap_or_else(|| {
        let (name, extent) = (axis.name.clone(), region.extent);
        let is_one_each = is_listed || along.is_some_and(|along| along.is_one_each(&name, extent));
        let (box_size, coordinates, tile) = match is_one_each {
            true => (1, vec![name], Vec::new()),
            false => (extent, Vec::new(), vec![TileAxis { name, extent }]),
        };
        Boxed { box_size, element_stride: 1, coordinates, tile, phase: None, span: axis.span, striding: None }
    });
    let position = axis.indices[0].clone();
    let ViewAxis { name, size, stride, dims, aliased, .. } = axis;
    Axis { name, size, stride, position, region, boxed, dims, aliased }
}

/// The ops on axes of the tile and the layout, if no other op stands between them.
fn run(ops: &[ast::Op], tile: &[TileOp], layout: Option<Span>) -> Option<Span> {
    let is_part = |op: &ast::Op| Some(op.span) == layout || tile.iter().any(|t| t.span == op.span);
    let first = ops.iter().position(is_part)?;
    let last = ops.iter().rposition(is_part)?;
    ops[first..=last].iter().all(is_part).then(|| ops[first].span.to(ops[last].span))
}

/// The axes as a map lists them, outermost first: without those of one element, which add nothing to an address; the
/// one whose neighbours are neighbours in memory last; and no more than a map has, as long as axes of boxes of one
/// element can be counted together. Also the dimensions of the tensor in which an index past the end is not seen by the
/// map to be outside.
fn ordered(mut axes: Vec<Axis>, facts: &Facts) -> (Vec<Axis>, Vec<usize>) {
    let mut unseen: Vec<usize> = Vec::new();
    let is_unit = |a: &Axis| facts.normal(&a.stride).as_constant() == Some(1);
    let counts = |a: &Axis| a.size.as_constant() != Some(1);
    if let Some(at) = axes.iter().rposition(|a| is_unit(a) && counts(a)) {
        let inner = axes.remove(at);
        axes.push(inner);
        let gone = axes.iter().filter(|a| !counts(a));
        unseen.extend(gone.flat_map(|a| a.dims.iter().chain(&a.aliased)));
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
        outer.name = format!("{}{BETWEEN_NAMES}{}", outer.name, inner.name);
        let start = outer.region.start.mul(&inner.size).add(&inner.region.start);
        outer.region = Interval { start: facts.normal(&start), extent: inner.region.extent };
        outer.position = facts.normal(&outer.position.mul(&inner.size).add(&inner.position));
        outer.size = facts.normal(&outer.size.mul(&inner.size));
        outer.stride = inner.stride;
        outer.boxed.coordinates.extend(inner.boxed.coordinates);
        outer.boxed.tile.extend(inner.boxed.tile);
        outer.aliased.extend(&inner.dims);
        outer.dims.extend(inner.dims);
    }
    unseen.extend(axes.iter().flat_map(|a| &a.aliased));
    (axes, unseen)
}
