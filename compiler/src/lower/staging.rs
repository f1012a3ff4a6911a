//! What a staged copy is in a loop nest: its buffers and barriers, the instructions of an instance, and where an element lies.

use tilewright_kernel::tensor_map::GRANULE;

use super::value::expression;
use crate::domain::{AxisId, Symbolic};
use crate::extent::{Expr, Facts, Var};
use crate::kernel_ir::{BarrierId, Buffer, BufferId, Builder, Range, Transfer, Type, ValueId, VariableId};
use crate::memory::vector::{Along, Vector};
use crate::tma::plan::{PLACEHOLDER, Part, Staged, Step, Way};

/// A staged copy that the nest has to instantiate.
#[derive(Clone, Debug)]
pub(super) struct Copy<'a> {
    pub staged: &'a Staged,
    /// Its tensor map.
    pub map: u16,
    pub buffer: BufferId,
    /// Loops of the nest around an instance.
    pub boundary: usize,
    /// What the accelerator fills, and waits that follow.
    filled: Option<Filled>,
    /// The slot of the ring that the current instance has; none if there is one.
    slot: Option<VariableId>,
}

/// Barriers of a copy to shared memory.
#[derive(Clone, Copy, Debug)]
struct Filled {
    barrier: BarrierId,
    /// Number of the phase modulo 2 that the current slot's barrier is in.
    parity: VariableId,
}

/// A staged copy whose current instance has a buffer at this point.
#[derive(Clone, Debug)]
pub struct Held<'a> {
    /// The copy.
    pub staged: &'a Staged,
    /// Where it is.
    pub buffer: BufferId,
    /// Elements in front of its slot; none if there is one slot.
    pub base: Option<ValueId>,
    /// Where its region starts, along each axis of the TMA domain.
    pub starts: Vec<ValueId>,
}

impl<'a> Copy<'a> {
    /// Declares what a copy needs. `sequence` are the sequential loops of its stage.
    pub fn new(b: &mut Builder, staged: &'a Staged, map: u16, sequence: &[AxisId]) -> Self {
        let buffer = b.buffer(Buffer {
            name: staged.name.clone(),
            element: staged.element,
            elements: u32::try_from(staged.elements()).unwrap_or(u32::MAX),
            alignment: staged.swizzle.alignment(),
            slots: staged.ring,
        });
        let zero = b.index_literal(Type::I32, 0);
        let filled = (staged.way == Way::Load)
            .then(|| Filled { barrier: b.barrier(staged.barriers()), parity: b.variable(zero) });
        Self {
            staged,
            map,
            buffer,
            boundary: staged.attach.and_then(|leaf| sequence.iter().position(|a| *a == leaf)).map_or(0, |at| at + 1),
            filled,
            slot: (staged.ring > 1).then(|| b.variable(zero)),
        }
    }

    /// The slot of the current instance.
    pub fn slot(&self, b: &mut Builder) -> ValueId {
        match self.slot {
            Some(variable) => {
                let slot = b.get(variable);
                b.assume(slot, Range::new(0, i64::from(self.staged.ring) - 1));
                slot
            }
            None => b.index_literal(Type::I32, 0),
        }
    }

    /// The slot of the instance that comes `ahead` after the one that has `slot`; less than the length of the ring.
    pub fn slot_after(&self, b: &mut Builder, slot: ValueId, ahead: u32) -> ValueId {
        let ring = i64::from(self.staged.ring);
        let literal = |b: &mut Builder, n: i64| b.index_literal(Type::I32, n);
        let ahead = literal(b, i64::from(ahead));
        let (moved, length) = (b.index_add(slot, ahead), literal(b, ring));
        let around = b.index_compare(tilewright_kernel::algorithm::Compare::Ge, moved, length);
        let wrapped = b.index_sub(moved, length);
        let slot = b.select(around, wrapped, moved);
        if b.kernel().index_literal(slot).is_none() {
            b.assume(slot, Range::new(0, ring - 1));
        }
        slot
    }

    /// Starts every copy of an instance in `slot`; by the elected thread. `starts` are 32-bit.
    pub fn start(&self, b: &mut Builder, starts: &[ValueId], slot: ValueId) {
        if let Some(filled) = &self.filled {
            b.expect(filled.barrier, slot, u32::try_from(self.staged.bytes()).unwrap_or(u32::MAX));
        }
        for (number, offsets) in self.staged.tiles().into_iter().enumerate() {
            let start = starts.iter().zip(offsets).rev().map(|(start, offset)| {
                let offset = b.index_literal(Type::I32, i64::try_from(offset).unwrap_or(0));
                b.index_add(*start, offset)
            });
            let start = start.collect();
            let offset = u32::try_from(number as i128 * self.staged.pitch()).unwrap_or(u32::MAX);
            let barrier = self.filled.map(|f| f.barrier);
            b.transfer(Transfer { map: self.map, start, buffer: self.buffer, slot, offset, barrier });
        }
    }

    /// Waits for the instance in `slot`, if the accelerator fills it; the parity of its phase.
    pub fn finish(&self, b: &mut Builder, slot: ValueId) -> Option<ValueId> {
        let filled = self.filled.as_ref()?;
        let parity = b.get(filled.parity);
        b.await_phase(filled.barrier, slot, parity);
        Some(parity)
    }

    /// Behind the instance in `slot`: the next one has the next slot, and the next phase where the slots come around. `parity` is that of
    /// the phase, where it was read since.
    pub fn advance(&self, b: &mut Builder, slot: ValueId, parity: Option<ValueId>) {
        let zero = b.index_literal(Type::I32, 0);
        let next = self.slot_after(b, slot, 1);
        if let Some(filled) = &self.filled {
            let parity = parity.unwrap_or_else(|| b.get(filled.parity));
            let one = b.index_literal(Type::I32, 1);
            let mut turned = b.index_xor(parity, one);
            if self.slot.is_some() {
                let first = b.index_compare(tilewright_kernel::algorithm::Compare::Eq, next, zero);
                turned = b.select(first, turned, parity);
            }
            b.set(filled.parity, turned);
        }
        if let Some(variable) = self.slot {
            b.set(variable, next);
        }
    }

    /// What readers and writers of the instance in `slot` see, whose region starts at `starts`.
    pub fn held(&self, b: &mut Builder, slot: ValueId, starts: Vec<ValueId>, ty: Type) -> Held<'a> {
        let base = self.slot.map(|_| {
            let slot = b.index_convert(slot, ty);
            let elements = b.index_literal(ty, i64::try_from(self.staged.elements()).unwrap_or(i64::MAX));
            b.index_mul(slot, elements)
        });
        Held { staged: self.staged, buffer: self.buffer, base, starts }
    }
}

impl Held<'_> {
    /// Element offset in the buffer of the tensor's element at `indices`, which lies in the region.
    pub fn offset(&self, b: &mut Builder, indices: &[ValueId], ty: Type) -> ValueId {
        let Self { staged, starts, .. } = self;
        let place = |b: &mut Builder, v: Var| match v.checked_sub(PLACEHOLDER) {
            Some(d) => {
                let index = indices[d as usize];
                if b.ty(index) == ty { index } else { b.index_convert(index, ty) }
            }
            None => b.dim(v as u16, ty),
        };
        // Along each axis: number of the box, phase, slot.
        let mut parts = Vec::with_capacity(staged.axes.len());
        for (axis, start) in staged.axes.iter().zip(starts) {
            let position = expression(b, &axis.position, ty, &place);
            let relative = b.index_sub(position, *start);
            let literal = |b: &mut Builder, n: i128| b.index_literal(ty, i64::try_from(n).unwrap_or(i64::MAX));
            let zero = literal(b, 0);
            let (number, within) = match axis.boxes() {
                1 => (zero, relative),
                _ => {
                    let size = literal(b, axis.boxed.box_size);
                    (b.index_div(relative, size), b.index_mod(relative, size))
                }
            };
            let (slot, phase) = match axis.boxed.element_stride {
                1 => (within, zero),
                e => {
                    let stride = literal(b, e);
                    (b.index_div(within, stride), b.index_mod(within, stride))
                }
            };
            parts.push((number, phase, slot));
        }
        let mut offset = b.index_literal(ty, 0);
        for Step { axis, part, stride } in staged.strides() {
            let (number, phase, slot) = parts[axis];
            let value = match part {
                Part::Box => number,
                Part::Phase => phase,
                Part::Slot => slot,
            };
            let stride = b.index_literal(ty, i64::try_from(stride).unwrap_or(i64::MAX));
            let scaled = b.index_mul(value, stride);
            offset = b.index_add(offset, scaled);
        }
        let offset = self.swizzled(b, offset, ty);
        match self.base {
            Some(base) => b.index_add(base, offset),
            None => offset,
        }
    }

    /// How many lanes of a vector are neighbours in the buffer and start at a multiple of that many: a power of two, and no more
    /// than 16 bytes, which a swizzle keeps together. `indices` are those of the tensor's element, over the loops.
    pub fn neighbours(&self, indices: &[Expr], vector: &Vector, symbolic: &Symbolic, facts: &Facts) -> u32 {
        let Some((inner, outer)) = self.staged.axes.split_last() else { return 1 };
        let along = |position: &Expr, start: &Expr| {
            let placed = |v: Var| v.checked_sub(PLACEHOLDER).and_then(|d| indices.get(d as usize)).cloned();
            vector.along(&position.substitute(&placed).sub(start), symbolic, facts)
        };
        let still = |along: Along| matches!(along, Along::Affine { step, .. } if step.as_constant() == Some(0));
        if !outer.iter().all(|axis| still(along(&axis.position, &axis.region.start))) {
            return 1;
        }
        let Along::Affine { base, step } = along(&inner.position, &inner.region.start) else { return 1 };
        if step.as_constant() != Some(1) || inner.boxed.element_stride != 1 {
            return 1;
        }
        let mut lanes = (GRANULE as u32 / self.staged.element.bytes()).min(u32::try_from(vector.lanes).unwrap_or(1));
        while lanes > 1 && !(vector.lanes % i128::from(lanes) == 0 && facts.proves_multiple(&base, lanes.into())) {
            lanes /= 2;
        }
        lanes.max(1)
    }

    /// Chunks of 16 bytes change places: what the accelerator does to addresses, in elements (see
    /// [`Swizzle::apply`](tilewright_kernel::tensor_map::Swizzle::apply)).
    fn swizzled(&self, b: &mut Builder, offset: ValueId, ty: Type) -> ValueId {
        let chunks = self.staged.swizzle.span() / 16;
        if chunks == 1 {
            return offset;
        }
        let bytes = self.staged.element.bytes();
        let literal = |b: &mut Builder, n: u32| b.index_literal(ty, i64::from(n));
        let (row, chunks, chunk) = (literal(b, 128 / bytes), literal(b, chunks), literal(b, 16 / bytes));
        let row = b.index_div(offset, row);
        let moved = b.index_mod(row, chunks);
        let mask = b.index_mul(moved, chunk);
        b.index_xor(offset, mask)
    }
}

/// The starts of a region as index integers of a type. `leaf` gives the values of the loops around.
pub(super) fn starts(
    b: &mut Builder,
    staged: &Staged,
    ty: Type,
    leaf: &dyn Fn(&mut Builder, Var) -> ValueId,
) -> Vec<ValueId> {
    let start = |e: &Expr, b: &mut Builder| expression(b, e, ty, leaf);
    staged.axes.iter().map(|axis| start(&axis.region.start, b)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tilewright_kernel::ElementType;
    use tilewright_kernel::tensor_map::{Format, Swizzle};

    use super::*;
    use crate::kernel_ir::Signature;
    use crate::tma::plan::Axis;
    use crate::tma::region::Interval;
    use crate::tma::view::Boxed;

    fn axis(extent: i128, box_size: i128, element_stride: i128) -> Axis {
        let boxed = Boxed {
            box_size,
            element_stride,
            coordinates: Vec::new(),
            tile: Vec::new(),
            phase: None,
            span: crate::syntax::Span::token(crate::syntax::SpanId(0)),
        };
        let region = Interval { start: Expr::constant(0), extent };
        let (dims, aliased) = (Vec::new(), Vec::new());
        let (size, stride) = (Expr::constant(1000), Expr::constant(1));
        Axis { name: String::new(), size, stride, position: Expr::unknown(), region, boxed, dims, aliased }
    }

    fn builder() -> Builder {
        Builder::new(Signature {
            name: "k".to_owned(),
            parameters: Vec::new(),
            dims: Vec::new(),
            maps: Vec::new(),
            arguments: Vec::new(),
            threads: 32,
        })
    }

    /// Copies every tile slot by slot, as the accelerator does, and then looks for every element of the region where its reader would.
    fn check(staged: &Staged) {
        let bytes = staged.element.bytes();
        let mut buffer: BTreeMap<i128, Vec<i128>> = BTreeMap::new();
        let tiles = staged.tiles();
        assert_eq!(tiles.len() as i128, staged.copies());
        for (number, start) in tiles.iter().enumerate() {
            let slots: i128 = staged.axes.iter().map(Axis::tile).product();
            for slot in 0..slots {
                let (mut rest, mut position) = (slot, start.clone());
                for (d, axis) in staged.axes.iter().enumerate().rev() {
                    position[d] += rest % axis.tile() * axis.boxed.element_stride;
                    rest /= axis.tile();
                }
                let address = (number as i128 * staged.pitch() + slot) as u32 * bytes;
                let swizzled = staged.swizzle.apply(address) / bytes;
                assert!(buffer.insert(i128::from(swizzled), position).is_none());
                assert!(i128::from(swizzled) < staged.elements());
            }
        }
        let mut b = builder();
        let starts: Vec<ValueId> =
            (0..staged.axes.len()).map(|d| b.index_literal(Type::I32, 100 * d as i64 - 3)).collect();
        let held = Held { staged, buffer: BufferId(0), base: None, starts };
        let region: i128 = staged.axes.iter().map(|a| a.region.extent).product();
        for n in 0..region {
            let (mut rest, mut wanted) = (n, vec![0; staged.axes.len()]);
            for (d, axis) in staged.axes.iter().enumerate().rev() {
                wanted[d] = rest % axis.region.extent;
                rest /= axis.region.extent;
            }
            let indices: Vec<ValueId> = (wanted.iter().enumerate())
                .map(|(d, at)| b.index_literal(Type::I32, *at as i64 + 100 * d as i64 - 3))
                .collect();
            let offset = held.offset(&mut b, &indices, Type::I32);
            let offset = b.kernel().index_literal(offset).expect("literals fold");
            assert_eq!(buffer.get(&i128::from(offset)), Some(&wanted), "{staged:?}");
        }
    }

    #[test]
    fn readers_look_where_copies_write() {
        let mut state = 5u64;
        let mut next = |first: i128, last: i128| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            first + i128::from(state >> 33) % (last - first + 1)
        };
        for _ in 0..400 {
            let element = [ElementType::F16, ElementType::F32, ElementType::F64, ElementType::U8][next(0, 3) as usize];
            let swizzle = Swizzle::ALL[next(0, 3) as usize];
            let rank = next(1, 4);
            let mut axes: Vec<Axis> = (1..rank).map(|_| axis(next(1, 7), next(1, 5), next(1, 3))).collect();
            let widest = if swizzle == Swizzle::None { 4 } else { i128::from(swizzle.span()) / 16 };
            let inner = i128::from(16 / element.bytes()) * next(1, widest);
            axes.push(axis(next(1, 2 * inner), inner, 1));
            for (d, axis) in axes.iter_mut().enumerate() {
                axis.position = Expr::var(PLACEHOLDER + d as Var);
            }
            // A swizzled row spans all chunks.
            if swizzle != Swizzle::None && inner * i128::from(element.bytes()) != i128::from(swizzle.span()) {
                continue;
            }
            let format = Format::of(element);
            let mut outer = Staged::natural(axes.len());
            let turn = next(0, outer.len() as i128 - 1) as usize;
            outer.rotate_left(turn);
            let (name, layout) = (String::new(), None);
            let (way, ring) = (Way::Load, 1);
            check(&Staged {
                name,
                way,
                ring,
                parameter: 0,
                element,
                format,
                attach: None,
                axes,
                swizzle,
                outer,
                layout,
            });
        }
    }
}
