//! Products of matrices by tensor cores: `wgmma`, and the descriptors of its operands.
//!
//! A descriptor is made of two words. The low one has the address in units of 16 bytes; the high one is a constant. Of
//! the matrices of a group, those that lie a constant apart have descriptors a constant apart: one addition, in
//! registers that the lanes of a warp share.

use tilewright_kernel::ElementType;
use tilewright_kernel::descriptor::Descriptor;
use tilewright_kernel::tensor_map::GRANULE;
use tilewright_ptx::{Operand, RegId, ScalarType, Symbol};

use super::entry::Entry;
use crate::kernel_ir::{Matrix, Memory, ValueId, VariableId, Wgmma};

/// A descriptor of the group at hand.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// The address, without what is added to it.
    rest: RegId,
    slot: ValueId,
    /// Its other fields.
    bits: u64,
    /// Bytes that are added to the address.
    bytes: i64,
    descriptor: RegId,
}

impl Entry<'_> {
    pub(super) fn product(&mut self, product: &Wgmma) {
        let element = |matrix: &Matrix| self.kernel.element(Memory::Buffer(matrix.buffer)).unwrap_or(ElementType::F32);
        let (left, right) = (element(&product.a), element(&product.b));
        let sum = Wgmma::sum(left, right).unwrap_or(ElementType::F32);
        let Wgmma { columns, a, b, slots, adds, .. } = product;
        let shape = format!("m64n{columns}k{}", Wgmma::depth(left.bytes()));
        let mnemonic =
            format!("wgmma.mma_async.sync.aligned.{shape}.{}.{}.{}", spelled(sum), spelled(left), spelled(right));
        let [left_at, right_at] = [(a, slots[0]), (b, slots[1])].map(|(matrix, slot)| self.descriptor(matrix, slot));
        let sums: Vec<Operand> = product.all().filter_map(|v| self.variables[v.index()]).map(Operand::from).collect();
        let adds = match adds {
            Some(adds) => self.register(*adds).into(),
            None => 1.into(),
        };
        let mut operands = vec![Operand::vector(sums.into_iter()), left_at.into(), right_at.into(), adds];
        if !left.is_integer() {
            operands.extend([1.into(), 1.into()]);
        }
        if left.bytes() == 2 {
            operands.extend([a, b].map(|matrix| Operand::from(i64::from(matrix.across))));
        }
        self.emit(&mnemonic, operands);
    }

    /// Finds out what products add to. Kernels that have some take the address of shared memory once: their loops need
    /// it for every product.
    pub(super) fn prepare_products(&mut self, dynamic: Option<Symbol>) {
        let statements = self.kernel.regions.iter().flat_map(|region| &region.statements);
        let products = statements.filter_map(|s| s.kind.effects().adds);
        let mut sums: Vec<VariableId> = products.flat_map(Wgmma::all).collect();
        sums.sort_unstable();
        sums.dedup();
        self.sums = sums;
        let dynamic = dynamic.filter(|_| self.kernel.shared_map().dynamic_bytes().is_some());
        if let Some(symbol) = dynamic.filter(|_| !self.sums.is_empty()) {
            let base = self.result("mov.u32", ScalarType::B32, [symbol.into()]);
            self.shared_start = Some((symbol, base));
        }
    }

    /// Whether the first product that adds to a variable replaces what is in it.
    pub(super) fn is_unset_sum(&self, variable: VariableId) -> bool {
        self.sums.binary_search(&variable).is_ok() && self.kernel.is_unset(variable)
    }

    /// The address of a symbol in shared memory.
    pub(super) fn start_of(&mut self, symbol: Symbol) -> RegId {
        match self.shared_start {
            Some((known, base)) if known == symbol => base,
            _ => self.result("mov.u32", ScalarType::B32, [symbol.into()]),
        }
    }

    fn descriptor(&mut self, matrix: &Matrix, slot: ValueId) -> RegId {
        let Matrix { buffer, offset, leading, stride, swizzle, .. } = *matrix;
        let bits = Descriptor { start: 0, leading, stride, base: 0, swizzle }.encode();
        let (rest, bytes) = self.address_in(Memory::Buffer(buffer), offset, GRANULE as i64);
        let known = self.descriptors.iter().find(|k| (k.rest, k.slot, k.bits) == (rest, slot, bits));
        if let Some(Known { bytes: before, descriptor, .. }) = known.copied() {
            let more = (bytes - before) >> 4;
            return match more {
                0 => descriptor,
                _ => self.result("add.s64", ScalarType::B64, [descriptor.into(), more.into()]),
            };
        }
        let [low, high] = [bits as u32, (bits >> 32) as u32].map(|word| i64::from(word.cast_signed()));
        let of = self.kernel.buffers.get(buffer.index());
        let pitch = of.map_or(0, |b| i64::from(b.elements) * i64::from(b.element.bytes()));
        let (start, before) = match self.kernel.index_literal(slot) {
            Some(slot) => (rest, slot * pitch),
            None => {
                let slot = self.operand(slot);
                (self.result("mad.lo.s32", ScalarType::B32, [slot, pitch.into(), rest.into()]), 0)
            }
        };
        let bytes_there = bytes + before;
        let units = self.result("shr.u32", ScalarType::B32, [start.into(), 4.into()]);
        let low = self.result("add.s32", ScalarType::B32, [units.into(), (low + (bytes_there >> 4)).into()]);
        let high = self.result("mov.b32", ScalarType::B32, [high.into()]);
        let descriptor = self.result("mov.b64", ScalarType::B64, [Operand::vector([low, high])]);
        self.descriptors.push(Known { rest, slot, bits, bytes, descriptor });
        descriptor
    }
}

/// How `wgmma` spells a type.
const fn spelled(element: ElementType) -> &'static str {
    match element {
        ElementType::I8 => "s8",
        ElementType::I32 => "s32",
        other => other.name(),
    }
}
