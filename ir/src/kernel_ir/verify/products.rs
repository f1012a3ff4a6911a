//! Products of matrices.

use tilewright_kernel::ElementType;
use tilewright_kernel::descriptor::Descriptor;

use super::{Checker, Problem};
use crate::kernel_ir::{Matrix, Memory, Type, ValueId, VariableId, Wgmma};

impl Checker<'_> {
    pub(super) fn product(&mut self, product: &Wgmma) {
        self.whole_warpgroups();
        let Wgmma { sums, columns, a, b, slots, adds } = product;
        let problem = Problem::BadProduct(*sums);
        if *columns > Wgmma::MOST_COLUMNS {
            return self.fault(problem);
        }
        let types: Vec<Option<Type>> = product.all().map(|v| self.kernel.variables.get(v.index()).copied()).collect();
        product.all().for_each(|variable| self.variable(variable));
        let outside = |v: &VariableId| self.role.as_ref().is_some_and(|role| role.outside.contains(v));
        if let Some(variable) = product.all().find(outside) {
            self.fault(Problem::VariableNotInScope(variable));
        }
        let [left, right] = [(a, slots[0]), (b, slots[1])].map(|(matrix, slot)| self.matrix(matrix, slot, problem));
        let sum = types.first().copied().flatten().and_then(Type::element);
        let same = types.iter().all(|ty| *ty == types[0]);
        let fits = match (left, right, sum) {
            (Some(left), Some(right), Some(_)) => Wgmma::sum(left, right) == sum && Wgmma::has_columns(left, *columns),
            _ => false,
        };
        self.expect(same && fits, problem);
        if let Some(adds) = adds {
            self.operand(*adds, |ty| ty == Type::PRED);
        }
    }

    /// The elements of a matrix.
    fn matrix(&mut self, matrix: &Matrix, slot: ValueId, problem: Problem) -> Option<ElementType> {
        let Matrix { buffer, offset, across, leading, stride, swizzle } = *matrix;
        self.operand(offset, Type::is_index);
        let of = self.kernel.buffers.get(buffer.index());
        self.slot(slot, of.map_or(0, |b| b.slots));
        let range = self.kernel.values.get(offset.index()).map(|v| v.facts.range);
        let inside = range.is_some_and(|r| r.low >= 0 && r.high < of.map_or(0, |b| i64::from(b.elements)));
        let element = self.kernel.element(Memory::Buffer(buffer));
        self.expect(element.is_some() && self.kernel.part(buffer).is_none(), Problem::NotABuffer(buffer.0));
        let described = Descriptor { start: 0, leading, stride, base: 0, swizzle }.is_encodable();
        // Matrices of narrower and wider elements have no transposed form (PTX manual 9.7.15.5.2).
        let narrow = element.is_some_and(|e| e.bytes() == 2);
        self.expect(inside && described && (narrow || !across), problem);
        element
    }
}
