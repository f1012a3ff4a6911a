//! Staged copies in a loop nest: where they are started and waited for, and where a reader finds an element.

use super::value::expression;
use crate::domain::AxisId;
use crate::extent::{Expr, Var};
use crate::kernel_ir::{BarrierId, Buffer, BufferId, Builder, Transfer, Type, ValueId, VariableId};
use crate::tma::plan::{PLACEHOLDER, Part, Staged, Step};

/// A staged copy that the nest has to instantiate.
#[derive(Clone, Debug)]
pub(super) struct Copy<'a> {
    pub staged: &'a Staged,
    /// Its tensor map.
    pub map: u16,
    pub buffer: BufferId,
    pub barrier: BarrierId,
    /// Number of the barrier's phase modulo 2.
    pub parity: VariableId,
    /// Loops of the nest around an instance.
    pub boundary: usize,
}

/// A staged copy that is in shared memory at this point.
#[derive(Clone, Debug)]
pub struct Held<'a> {
    /// The copy.
    pub staged: &'a Staged,
    /// Where it is.
    pub buffer: BufferId,
    /// Where its region starts, along each axis of the TMA domain.
    pub starts: Vec<ValueId>,
}

impl<'a> Copy<'a> {
    /// Declares what a copy needs. `sequence` are the sequential loops of its reader.
    pub fn new(b: &mut Builder, staged: &'a Staged, map: u16, sequence: &[AxisId]) -> Self {
        let buffer = b.buffer(Buffer {
            name: staged.name.clone(),
            element: staged.element,
            elements: u32::try_from(staged.elements()).unwrap_or(u32::MAX),
            alignment: staged.swizzle.alignment(),
        });
        let zero = b.index_literal(Type::I32, 0);
        Self {
            staged,
            map,
            buffer,
            barrier: b.barrier(),
            parity: b.variable(zero),
            boundary: staged.attach.and_then(|leaf| sequence.iter().position(|a| *a == leaf)).map_or(0, |at| at + 1),
        }
    }

    /// Starts every copy of an instance; by the elected thread. `starts` are 32-bit.
    pub fn start(&self, b: &mut Builder, starts: &[ValueId]) {
        b.expect(self.barrier, u32::try_from(self.staged.bytes()).unwrap_or(u32::MAX));
        for (number, offsets) in self.staged.tiles().into_iter().enumerate() {
            let start = starts.iter().zip(offsets).rev().map(|(start, offset)| {
                let offset = b.index_literal(Type::I32, i64::try_from(offset).unwrap_or(0));
                b.index_add(*start, offset)
            });
            let start = start.collect();
            let offset = u32::try_from(number as i128 * self.staged.pitch()).unwrap_or(u32::MAX);
            b.transfer(Transfer { map: self.map, start, buffer: self.buffer, offset, barrier: self.barrier });
        }
    }

    /// Waits for the instance; the next one uses the barrier's next phase.
    pub fn finish(&self, b: &mut Builder, again: bool) {
        let parity = b.get(self.parity);
        b.await_phase(self.barrier, parity);
        if again {
            let one = b.index_literal(Type::I32, 1);
            let next = b.index_xor(parity, one);
            b.set(self.parity, next);
        }
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
        self.swizzled(b, offset, ty)
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
