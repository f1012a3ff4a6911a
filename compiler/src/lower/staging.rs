//! What a staged copy is in a loop nest: its buffers and barriers, the instructions of an instance, and where an
//! element lies.

use tilewright_kernel::algorithm::Compare;
use tilewright_kernel::tensor_map::Swizzle;

use super::arithmetic::Emit;
use super::multicast;
use super::pipeline::{FullEmptyBarriers, Pipeline};
use super::value::{expression, size};
use crate::extent::{Family, Var};
use crate::kernel_ir::{
    Buffer, BufferId, Builder, BulkCopy, MbarrierId, Sharing, TensorPart, Type, ValueId, VariableId,
};
use crate::plan::Analysed;
use crate::plan::roles::{ProducerConsumers, is_read_behind};
use crate::plan::staged::{Axis, Form, MOST_ELEMENTS, Multicast, Part, Staged, Step, Way};
use crate::schedule::Role;

/// A staged copy that the nest has to instantiate.
#[derive(Clone, Debug)]
pub(super) struct Copy<'a> {
    pub staged: &'a Staged,
    /// Its tensor map, if it copies tiles.
    map: u16,
    pub buffer: BufferId,
    /// Type of the kernel's indices.
    index: Type,
    /// What counts the bytes of a copy to shared memory.
    barrier: Option<MbarrierId>,
    /// The slots of its buffer.
    pub pipeline: Pipeline,
    /// The copy before it, of the same stage, whose slots and barriers it shares; none if it has its own.
    pub leader: Option<usize>,
    /// Bytes that end a phase: its own, and those of copies that share its barriers.
    bytes: i128,
    /// Of a ring to a tensor that another role hands over: instances that were copied so far, up to one less than the
    /// ring has slots.
    pub released: Option<VariableId>,
}

/// Up to so many copies of an instance are written out; of more, the outer ones are counted by loops of the elected
/// thread, which stay loops: the assembler of CUDA 13 writes out hundreds of copies otherwise.
const WRITTEN_OUT: i128 = 16;

/// A start of a region that is as good as any further before the tensor: no region has so many elements.
const FAR_IN_FRONT: i64 = -(1 << 30);

/// Which copy of an instance, along one axis: an element offset from the start of the region.
#[derive(Clone, Copy, Debug)]
struct Spot {
    /// Where its box is, if memory lists it.
    start: Option<ValueId>,
    /// Where its box starts.
    before: ValueId,
    /// Its phase.
    phase: ValueId,
    /// Where a run starts in its box.
    within: ValueId,
}

/// Where the copies of an instance start: as [`Copy::coordinates`] gives it.
#[derive(Clone, Debug)]
pub(super) struct Corners {
    /// Where its region starts.
    pub starts: Vec<ValueId>,
    /// The axis whose boxes have places that memory lists, and these.
    pub listed: Option<(usize, Vec<ValueId>)>,
}

/// An instance whose copies are started.
#[derive(Clone, Copy, Debug)]
struct Issued<'a> {
    /// Where it is copied from or to.
    corners: &'a Corners,
    /// Its slot.
    slot: ValueId,
    /// The blocks of the cluster that it goes to, if these are several.
    readers: Option<ValueId>,
}

/// A staged copy whose current instance has a buffer at this point.
#[derive(Clone, Debug)]
pub struct Held<'a> {
    /// The copy.
    pub staged: &'a Staged,
    /// Where it is.
    pub buffer: BufferId,
    /// Its slot.
    pub slot: ValueId,
    /// Elements before its slot; none if there is one slot.
    pub base: Option<ValueId>,
    /// Where its region starts, along each axis of the TMA domain, but for what memory adds; where it lists places, as
    /// if it listed their numbers.
    pub starts: Vec<ValueId>,
}

/// Declares buffers and barriers of the copies of every stage, by stage: none if they are not `staged`.
pub(super) fn copies<'a>(
    b: &mut Builder,
    (stages, roles): (&'a [Analysed], &[Role]),
    staged: bool,
    index: Type,
) -> Vec<Vec<Copy<'a>>> {
    let mut map = 0;
    let mut of = |analysed: &'a Analysed| {
        b.line(analysed.stage.statement as u32 + 1);
        let all: &[Staged] = if staged { &analysed.staged } else { &[] };
        let between: Vec<_> = all.iter().map(|copy| ProducerConsumers::of_copy(stages, copy)).collect();
        // What is handed back later than others has barriers of its own.
        let is_late = |n: usize| is_read_behind(stages, &all[n]);
        let shares = |n: usize, m: usize| {
            shares_slots((&all[n], &between[n]), (&all[m], &between[m])) && !is_late(n) && !is_late(m)
        };
        let leader = |n: usize| (0..n).find(|m| shares(*m, n));
        let mut declared: Vec<Copy<'_>> = Vec::with_capacity(all.len());
        for (n, copy) in all.iter().enumerate() {
            declared.push(match leader(n) {
                Some(leader) => Copy::like(b, copy, map, (leader, &declared[leader]), index),
                None => {
                    let alike = || (n..all.len()).filter(|m| *m == n || shares(n, *m)).map(|m| &all[m]);
                    let multicast = alike().find_map(|copy| copy.multicast.clone());
                    let bytes = alike().map(Staged::bytes).sum();
                    Copy::new(b, copy, map, (between[n].clone(), roles, multicast), (index, bytes))
                }
            });
            map += u16::from(copy.has_map());
        }
        declared
    };
    stages.iter().map(&mut of).collect()
}

/// Whether two copies of a stage, one after the other, are filled, read and handed back together: by one role, in rings
/// of one length at one place, for the same roles and blocks. Then one barrier says all of both.
fn shares_slots(
    (first, between): (&Staged, &Option<ProducerConsumers>),
    (second, others): (&Staged, &Option<ProducerConsumers>),
) -> bool {
    let is_handed = between.as_ref().is_some_and(|between| !between.reads_own) && between == others;
    let together = match (&first.multicast, &second.multicast) {
        (Some(a), Some(b)) => a.by.is_some() && b.by.is_some() && (a.blocks, a.stride) == (b.blocks, b.stride),
        (Some(a), None) | (None, Some(a)) => a.by.is_some(),
        (None, None) => true,
    };
    let place = |staged: &Staged| (staged.way, staged.ring, staged.role, staged.attach.loops);
    first.way == Way::Load && is_handed && together && place(first) == place(second)
}

impl Corners {
    fn ty(&self, b: &Builder) -> Type {
        self.starts.first().map_or(Type::I32, |start| b.ty(*start))
    }
}

impl<'a> Copy<'a> {
    /// Declares what a copy needs: one that other blocks take together with its own, or what shares its barriers. `map`
    /// is its tensor map, if it copies tiles.
    fn new(
        b: &mut Builder,
        staged: &'a Staged,
        map: u16,
        (between, roles, multicast): (Option<ProducerConsumers>, &[Role], Option<Multicast>),
        (index, bytes): (Type, i128),
    ) -> Self {
        let buffer = Self::buffer(b, staged);
        let expects = (staged.way == Way::Load).then_some(1);
        let between = between.map(|between| FullEmptyBarriers::of_copy(b, between, roles, (staged, multicast)));
        let barrier = expects.map(|_| between.as_ref().map_or_else(|| b.mbarrier(staged.barriers()), |b| b.full));
        let pipeline = Pipeline::new(staged.ring, between);
        Self { staged, map, buffer, index, barrier, pipeline, leader: None, bytes, released: None }
    }

    /// The same of one that shares slots and barriers with another one.
    fn like(b: &mut Builder, staged: &'a Staged, map: u16, (at, leader): (usize, &Self), index: Type) -> Self {
        let Self { barrier, pipeline, .. } = leader.clone();
        let buffer = Self::buffer(b, staged);
        Self { staged, map, buffer, index, barrier, pipeline, leader: Some(at), bytes: 0, released: None }
    }

    /// The same with a buffer and barriers of its own; of a copy that its own role reads alone.
    pub fn again(&self, b: &mut Builder) -> Self {
        let barrier = self.barrier.map(|_| b.mbarrier(self.staged.barriers()));
        Self { buffer: Self::buffer(b, self.staged), barrier, ..self.clone() }
    }

    fn buffer(b: &mut Builder, staged: &Staged) -> BufferId {
        b.buffer(Buffer {
            name: staged.name.clone(),
            element: staged.element,
            elements: u32::try_from(staged.elements()).unwrap_or(u32::MAX),
            alignment: staged.swizzle.alignment(),
            slots: staged.ring,
            sharing: Sharing::Block,
        })
    }

    /// Whether another copy has the same slots and barriers.
    pub fn shares_slots_with(&self, other: &Self) -> bool {
        self.barrier.is_some() && self.barrier == other.barrier
    }

    /// Whether its slots and barriers are its own, to be waited for and handed on.
    pub const fn leads(&self) -> bool {
        self.leader.is_none()
    }

    /// Declares what one role, or all threads, know of its instances: the first slot and phase come next. Whoever takes
    /// tiles `in_turn` with others hands all slots of its tile back in it: the others may need them for theirs.
    pub fn begin(&mut self, b: &mut Builder, role: Option<usize>, in_turn: bool) {
        self.pipeline.begin(b, self.barrier.is_some() || self.pipeline.between.is_some());
        let is_handed = self.staged.way == Way::Store && self.pipeline.between.is_some() && self.staged.role == role;
        let zero = b.index_literal(Type::I32, 0);
        self.released = (is_handed && !in_turn && self.pipeline.is_ring()).then(|| b.variable(zero));
    }

    /// The starts of a region as what its copies take: offsets in memory have the width of the kernel's indices,
    /// coordinates of the accelerator 32 bits. A start that needs more lies outside the tensor, and so does the nearest
    /// one that does not: no size is above [`MOST_ELEMENTS`]. What is added to it may wrap, to far before the
    /// tensor.
    pub fn coordinates(&self, b: &mut Builder, starts: Vec<ValueId>) -> Vec<ValueId> {
        if let Form::Runs(_) = self.staged.form {
            return starts;
        }
        let mut coordinate = |start: ValueId| {
            if b.ty(start) == Type::I32 {
                return start;
            }
            // Far enough before the tensor that a region there ends before it, too.
            let (first, last) = (b.index_literal(Type::I64, FAR_IN_FRONT), b.index_literal(Type::I64, MOST_ELEMENTS));
            let start = b.index_max(start, first);
            let start = b.index_min(start, last);
            b.index_convert(start, Type::I32)
        };
        starts.into_iter().map(&mut coordinate).collect()
    }

    /// Starts every copy of an instance in `slot`; by the elected thread.
    pub fn start(&self, b: &mut Builder, corners: &Corners, slot: ValueId) {
        if let Some(barrier) = self.barrier.filter(|_| self.leads()) {
            b.mbarrier_expect_tx(barrier, slot, u32::try_from(self.bytes).unwrap_or(u32::MAX));
        }
        let ty = corners.ty(b);
        let zero = b.index_literal(ty, 0);
        let mut spots = vec![Spot { start: None, before: zero, phase: zero, within: zero }; corners.starts.len()];
        let mut first = b.index_literal(Type::I32, 0);
        let Some(multicast) = &self.staged.multicast else {
            return self.issue(b, Issued { corners, slot, readers: None }, &self.staged.counted(), &mut spots, first);
        };
        let digit = multicast::digit(b, multicast);
        let issued = Issued { corners, slot, readers: Some(multicast::readers(b, multicast)) };
        let slice = self.staged.strides().into_iter().find(|step| self.staged.is_sliced(step));
        match slice {
            Some(step) => {
                let literal =
                    |b: &mut Builder, ty: Type, n: i128| b.index_literal(ty, i64::try_from(n).unwrap_or(i64::MAX));
                let (stride, along) =
                    (literal(b, Type::I32, step.stride), literal(b, ty, self.staged.axes[step.axis].step(step.part)));
                first = b.index_mul(digit, stride);
                let digit = b.index_convert(digit, ty);
                spots[step.axis].before = b.index_mul(digit, along);
                self.issue(b, issued, &self.staged.counted(), &mut spots, first);
            }
            None => {
                let is_first = multicast::is_first(b, multicast);
                b.begin_if(is_first);
                self.issue(b, issued, &self.staged.counted(), &mut spots, first);
                b.end_if();
            }
        }
    }

    /// Starts the copies that `counted` counts, from `spots` on, which lie `offset` elements after the start of the
    /// slot.
    fn issue(&self, b: &mut Builder, issued: Issued<'_>, counted: &[Step], spots: &mut Vec<Spot>, offset: ValueId) {
        let Some((step, inner)) = counted.split_first() else {
            return self.copy(b, issued, spots, offset);
        };
        let axis = &self.staged.axes[step.axis];
        let count = |step: &Step| self.staged.axes[step.axis].count(step.part);
        let listed = issued.corners.listed.as_ref().filter(|(axis, _)| *axis == step.axis).map(|(_, places)| places);
        let mut one = |b: &mut Builder, n: ValueId, ty: Type| {
            let literal =
                |b: &mut Builder, ty: Type, n: i128| b.index_literal(ty, i64::try_from(n).unwrap_or(i64::MAX));
            let stride = literal(b, Type::I32, step.stride);
            let moved = b.index_mul(n, stride);
            let offset = b.index_add(offset, moved);
            let along = literal(b, ty, axis.step(step.part));
            let number = n;
            let n = b.index_convert(n, ty);
            let along = b.index_mul(n, along);
            let outer = spots[step.axis];
            let spot = &mut spots[step.axis];
            let place = b.kernel().index_literal(number).and_then(|n| listed?.get(usize::try_from(n).ok()?));
            match step.part {
                // As the first box of a region that starts there.
                Part::Box if place.is_some() => spot.start = place.copied(),
                Part::Box => spot.before = along,
                Part::Phase => spot.phase = along,
                Part::Slot => spot.within = along,
            }
            self.issue(b, issued, inner, spots, offset);
            spots[step.axis] = outer;
        };
        let ty = issued.corners.ty(b);
        // Of places that memory lists the elected thread picks one by its name.
        if counted.iter().map(count).product::<i128>() > WRITTEN_OUT && listed.is_none() {
            let iterations = b.index_literal(Type::I32, i64::try_from(count(step)).unwrap_or(i64::MAX));
            let n = b.begin_rolled_loop(iterations);
            one(b, n, ty);
            b.end_loop();
        } else {
            for n in 0..i64::try_from(count(step)).unwrap_or(0) {
                let n = b.index_literal(Type::I32, n);
                one(b, n, ty);
            }
        }
    }

    /// Starts one copy of an instance.
    fn copy(&self, b: &mut Builder, issued: Issued<'_>, spots: &[Spot], offset: ValueId) {
        let Issued { corners, slot, readers } = issued;
        let starts: Vec<ValueId> =
            corners.starts.iter().zip(spots).map(|(start, spot)| spot.start.unwrap_or(*start)).collect();
        let starts = &starts[..];
        let Self { staged, map, buffer, .. } = *self;
        let barrier = self.barrier;
        let part = match staged.form {
            Form::Tiles(_) => TensorPart::Tile { map, start: self.corner(b, starts, spots) },
            Form::Runs(_) => {
                let bytes = u32::try_from(staged.copy_bytes()).unwrap_or(u32::MAX);
                TensorPart::Run { parameter: staged.parameter, offset: self.offset(b, starts, spots), bytes }
            }
        };
        b.bulk_copy(BulkCopy { part, buffer, slot, offset, barrier, evict: staged.evict, multicast: readers });
    }

    /// Where a tile starts in the tensor, innermost dimension first; outside if nothing of it is asked for and holes
    /// must be zero.
    fn corner(&self, b: &mut Builder, starts: &[ValueId], spots: &[Spot]) -> Vec<ValueId> {
        let along = starts.iter().zip(spots);
        let mut corner: Vec<ValueId> = along
            .map(|(start, spot)| {
                let offset = b.index_add(spot.before, spot.phase);
                b.index_add(*start, offset)
            })
            .collect();
        if self.staged.redirect
            && let Some(outermost) = self.staged.axes.first()
        {
            // From −B on, without the phase, no slot reaches the tensor.
            let mut live = b.bool_literal(true);
            for ((start, axis), spot) in starts.iter().zip(&self.staged.axes).zip(spots) {
                let has = has_live_slot(b, axis, *spot, *start, self.index);
                live = b.and(live, has);
            }
            let outside = b.index_literal(Type::I32, i64::try_from(-outermost.boxed.box_size).unwrap_or(-1));
            corner[0] = b.select(live, corner[0], outside);
        }
        corner.reverse();
        corner
    }

    /// Where a run starts in the tensor, in elements from its base.
    fn offset(&self, b: &mut Builder, starts: &[ValueId], spots: &[Spot]) -> ValueId {
        let ty = starts.first().map_or(Type::I32, |start| b.ty(*start));
        let (mut first, mut behind) = (b.index_literal(ty, 0), b.index_literal(ty, 0));
        for ((start, axis), spot) in starts.iter().zip(&self.staged.axes).zip(spots) {
            let stride = size(b, &axis.stride, ty);
            let start = b.index_mul(*start, stride);
            first = b.index_add(first, start);
            let along = b.index_add(spot.before, spot.within);
            let along = b.index_mul(along, stride);
            behind = b.index_add(behind, along);
        }
        b.index_add(first, behind)
    }

    /// Waits for the instance in `slot`, if the accelerator fills it; the parity of its phase.
    pub fn finish(&self, b: &mut Builder, slot: ValueId) -> Option<ValueId> {
        let barrier = self.barrier.filter(|_| self.leads())?;
        let parity = self.pipeline.parity(b)?;
        b.mbarrier_wait(barrier, slot, parity);
        Some(parity)
    }

    /// What readers and writers of the instance in `slot` see, whose region starts at `starts`.
    pub fn held(&self, b: &mut Builder, slot: ValueId, starts: Vec<ValueId>, ty: Type) -> Held<'a> {
        let base = self.pipeline.is_ring().then(|| {
            let slot = b.index_convert(slot, ty);
            let elements = b.index_literal(ty, i64::try_from(self.staged.elements()).unwrap_or(i64::MAX));
            b.index_mul(slot, elements)
        });
        Held { staged: self.staged, buffer: self.buffer, slot, base, starts }
    }
}

impl Held<'_> {
    /// Element offset in the buffer of the tensor's element at `indices`, which lies in the region: but for what memory
    /// adds to indices and starts.
    pub fn offset(&self, b: &mut Builder, indices: &[ValueId], ty: Type) -> ValueId {
        let offset = self.offset_in_slot(b, indices, ty, self.staged.swizzle);
        self.base.map_or(offset, |base| b.index_add(base, offset))
    }

    /// The same in its slot, as if chunks were exchanged in another way.
    pub fn offset_in_slot(&self, b: &mut Builder, indices: &[ValueId], ty: Type, swizzle: Swizzle) -> ValueId {
        let Self { staged, starts, .. } = self;
        let place = |b: &mut Builder, v: Var| match Family::PLACEHOLDER.number(v) {
            Some(d) => {
                let index = indices[d];
                if b.ty(index) == ty { index } else { b.index_convert(index, ty) }
            }
            None => b.dim(v as u16, ty),
        };
        let offset = |b: &mut Builder, (axis, start): (&Axis, &ValueId)| {
            let position = expression(b, &axis.position, ty, &place);
            b.index_sub(position, *start)
        };
        let offsets: Vec<ValueId> = staged.axes.iter().zip(starts).map(|along| offset(b, along)).collect();
        let layout = staged.layout(swizzle);
        layout.place(&mut Emit { b, index: ty }, (), &|axis: usize| offsets[axis])
    }
}

/// Whether a tile holds a position that was asked for and lies in the tensor, along one axis: an offset o from the
/// start x of the box, in the tile's phase, with o < L and 0 ≤ x + o < S. The least candidate decides.
fn has_live_slot(b: &mut Builder, axis: &Axis, spot: Spot, start: ValueId, index: Type) -> ValueId {
    let literal = |b: &mut Builder, n: i128| b.index_literal(Type::I32, i64::try_from(n).unwrap_or(i64::MAX));
    let start = b.index_add(start, spot.before);
    let (zero, stride) = (literal(b, 0), literal(b, axis.boxed.element_stride));
    let below = b.index_sub(zero, start);
    let first = b.index_max(below, zero);
    let gap = b.index_sub(spot.phase, first);
    let gap = b.index_mod(gap, stride);
    let first = b.index_add(first, gap);
    // Its parts may need 64 bits where indices have them; the size does not.
    let size = size(b, &axis.size, index);
    let size = b.index_convert(size, Type::I32);
    let inside = b.index_sub(size, start);
    let (extent, box_size) = (literal(b, axis.region.extent), literal(b, axis.boxed.box_size));
    let left = b.index_sub(extent, spot.before);
    let live = b.index_min(left, box_size);
    let end = b.index_min(inside, live);
    b.index_compare(Compare::Lt, first, end)
}

/// The starts of a region as index integers of a type, those to which memory adds something of 64 bits. `leaf` gives
/// the values of the loops around, and of what memory holds.
pub(super) fn starts(
    b: &mut Builder,
    staged: &Staged,
    (ty, is_added): (Type, bool),
    leaf: &dyn Fn(&mut Builder, Var, Type) -> ValueId,
) -> Vec<ValueId> {
    let start = |axis: &Axis, b: &mut Builder| {
        let e = &axis.region.start;
        let is_added = is_added && e.mentions(&|v| Family::MEMORY.number(v).is_some());
        let ty = if is_added { Type::I64 } else { ty };
        expression(b, e, ty, &|b, v| leaf(b, v, ty))
    };
    staged.axes.iter().map(|axis| start(axis, b)).collect()
}

#[cfg(test)]
#[path = "staging_tests.rs"]
mod tests;
