//! Products of matrices.

use tilewright_kernel::ElementType;
use tilewright_kernel::descriptor::Descriptor;
use tilewright_kernel::target::WARP;

use super::{Checker, Problem};
use crate::kernel_ir::{
    Factor, LoadMatrix, Matrices, Matrix, Memory, MmaSync, Op, Product, StoreMatrix, Type, VariableId, Wgmma,
};

impl Checker<'_> {
    pub(super) fn product(&mut self, product: &Wgmma) {
        self.whole_warpgroups();
        let Wgmma { sums, columns, a, b, adds } = product;
        let problem = Problem::BadProduct(*sums);
        if *columns > Wgmma::MOST_COLUMNS {
            return self.fault(problem);
        }
        let variables = || product.all().chain(a.variables().iter().copied());
        let ty = |v: VariableId| self.kernel.variables.get(v.index()).copied();
        let types: Vec<Option<Type>> = product.all().map(ty).collect();
        let of_factor: Vec<Option<Type>> = a.variables().iter().copied().map(ty).collect();
        variables().for_each(|variable| self.variable(variable));
        let outside = |v: &VariableId| self.role.as_ref().is_some_and(|role| role.outside.contains(v));
        if let Some(variable) = variables().find(outside) {
            self.fault(Problem::VariableNotInScope(variable));
        }
        let left = match a {
            Factor::Shared(matrix) => self.matrix(matrix, problem),
            Factor::Registers(variables) => {
                let element = of_factor.first().copied().flatten().and_then(Type::element);
                let count = element.map_or(0, |e| Wgmma::factor_variables(e.bytes()) as usize);
                let is_same = of_factor.iter().all(|ty| *ty == of_factor[0]);
                let is_apart = product.all().all(|sum| !variables.contains(&sum));
                self.expect(is_same && is_apart && variables.len() == count, problem);
                element
            }
        };
        let right = self.matrix(b, problem);
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

    /// A load of matrices by warps, all of which come.
    pub(super) fn load_matrix(&mut self, load: &LoadMatrix) {
        let Some(element) = self.matrices(&load.from, false) else { return };
        for value in load.results() {
            let found = self.kernel.values.get(value.index());
            self.expect(found.is_some_and(|v| v.op == Op::Loaded && v.ty == element), Problem::BadBinding(value));
            self.open(value);
        }
    }

    /// A store of matrices by warps, all of which come.
    pub(super) fn store_matrix(&mut self, store: &StoreMatrix) {
        let Some(element) = self.matrices(&store.to, true) else { return };
        let count = store.values.len() as u32;
        self.expect(count == store.to.values(), Problem::BadLanes(count));
        store.values.iter().for_each(|value| self.operand(*value, |ty| ty == element));
    }

    /// The type of the elements of matrices that each warp accesses.
    fn matrices(&mut self, matrices: &Matrices, writes: bool) -> Option<Type> {
        self.whole_units(WARP);
        let Matrices { buffer, offset, count, row, transposed } = *matrices;
        let element = self.access(Memory::Buffer(buffer), offset, row, writes);
        let bytes = element.and_then(Type::element).map_or(0, ElementType::bytes);
        let fits = [1, 2, 4].contains(&count)
            && row * bytes == Matrices::ROW
            && (!transposed || bytes == 2)
            && self.kernel.part(buffer).is_none();
        self.expect(fits, Problem::BadLanes(row));
        element.filter(|_| fits)
    }

    /// A product of warps, all of which come.
    pub(super) fn product_of_warp(&mut self, product: &MmaSync) {
        self.whole_units(WARP);
        let MmaSync { sums, a, b } = product;
        let problem = Problem::BadProduct(*sums);
        let uses: Vec<VariableId> = Product::MmaSync(product).uses().collect();
        uses.iter().for_each(|variable| self.variable(*variable));
        let outside = |v: &&VariableId| self.role.as_ref().is_some_and(|role| role.outside.contains(v));
        if let Some(variable) = uses.iter().find(outside) {
            self.fault(Problem::VariableNotInScope(*variable));
        }
        let ty = |v: VariableId| self.kernel.variables.get(v.index()).copied().and_then(Type::element);
        let [left, right] = [a, b].map(|held| held.first().and_then(|v| ty(*v)));
        let counts = left.map_or([0; 2], |e| MmaSync::factor_variables(e.bytes()));
        let sum = left.zip(right).and_then(|(left, right)| Wgmma::sum(left, right));
        let fits = sum.is_some()
            && product.all().all(|v| ty(v) == sum)
            && [(a, left), (b, right)].into_iter().all(|(held, own)| held.iter().all(|v| ty(*v) == own))
            && [a.len(), b.len()] == counts.map(|count| count as usize)
            && product.all().all(|sum| !a.contains(&sum) && !b.contains(&sum));
        self.expect(fits, problem);
    }

    /// The elements of a matrix.
    fn matrix(&mut self, matrix: &Matrix, problem: Problem) -> Option<ElementType> {
        let Matrix { buffer, slot, offset, across, leading, stride, swizzle, told: _ } = *matrix;
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
