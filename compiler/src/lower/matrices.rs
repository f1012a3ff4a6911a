//! Loads and stores of matrices by warps: of so many together, a lane says where a row of the one lies that its number
//! is of.

use tilewright_kernel::algorithm::Value;

use super::arithmetic::Emit;
use super::nested_stage::Kept;
use super::stage::{Nest, Point};
use crate::domain::AxisId;
use crate::kernel_ir::{self, ValueId};
use crate::plan::product::{Fragment, Matrices};

/// What an instruction accesses first of a lane, and where a lane's row is among loops and lanes.
struct Together<'m> {
    matrices: &'m Matrices,
    /// The number of the row's matrix in the instruction.
    number: ValueId,
    /// Values of axes for the row, but those of loops over matrices.
    row: Vec<Option<ValueId>>,
}

impl Matrices {
    /// All matrices of a tile.
    fn all(&self) -> i128 {
        self.loops.iter().map(|l| l.1).product()
    }

    /// The iterations of the loops for a matrix with a number, outermost first.
    fn iterations(&self, number: i128) -> Vec<i128> {
        let mut rest = number;
        let digit = |l: &(AxisId, i128, i128)| {
            let digit = rest % l.1;
            rest /= l.1;
            digit
        };
        let mut found: Vec<i128> = self.loops.iter().rev().map(digit).collect();
        found.reverse();
        found
    }

    /// The first register of a matrix with a number.
    fn register(&self, number: i128) -> i128 {
        self.iterations(number).iter().zip(&self.loops).map(|(digit, l)| digit * l.2).sum()
    }
}

impl Nest<'_, '_> {
    /// Loads all of a fragment by matrices into the registers of the instance; whether that is how it is loaded.
    pub(super) fn loads_matrices(&mut self, point: &Point) -> bool {
        let Some(Fragment { read, source, matrices: Some(matrices) }) = &self.analysed.fragment else {
            return false;
        };
        let held = self.values.held(*source, *read);
        let target = self.target.clone();
        let (Some(held), Some(target)) = (held, target) else { return false };
        let (Some(Kept::Buffer { buffer, base, .. }), Some(Kept::Registers(variables))) =
            (held.holds(*source, *read).cloned(), target.memory.first())
        else {
            return false;
        };
        let bytes = self.b.kernel().buffers[buffer.index()].element.bytes();
        let together = self.together(matrices, &point.values);
        for first in (0..matrices.all()).step_by(matrices.count as usize) {
            let at = self.row(&together, first);
            let scope = self.scope(&at);
            let Value::Read { indices, .. } = self.stage.program.algorithm.values[*read as usize] else { return false };
            let list = &self.stage.program.algorithm.index_lists[indices.range()];
            let indices: Vec<ValueId> = list.iter().map(|i| self.values.index(self.b, *i, &scope)).collect();
            let offset = held.place(self.b, &indices, (base, bytes), self.index);
            let loaded = self.b.load_matrix(buffer, offset, matrices.count, matrices.transposed);
            for (n, value) in (0..).zip(loaded) {
                let each = i128::from(matrices.each);
                let register = matrices.register(first + n / each) + n % each;
                let variable = usize::try_from(register).ok().and_then(|n| variables.get(n));
                let Some(variable) = variable else { return false };
                self.b.set(*variable, value);
            }
        }
        true
    }

    /// Stores what the loops over matrices make by matrices, if the loop at position `k` of the sequence is the first
    /// of them and their tile is written here; whether that is how it is stored.
    pub(super) fn stores_matrices(&mut self, point: &Point, k: usize) -> bool {
        let Some(matrices) = &self.analysed.stored else { return false };
        let is_first = match matrices.loops.first() {
            Some(l) => self.sequence.get(k) == Some(&l.0),
            None => self.sequence.get(k) == matrices.term.as_ref(),
        };
        let (true, [(_, parameter)]) = (is_first, &self.outputs()[..]) else { return false };
        let Some(held) = self.targets.iter().find(|held| held.staged.parameter == *parameter).cloned() else {
            return false;
        };
        let together = self.together(matrices, &point.values);
        for first in (0..matrices.all()).step_by(matrices.count as usize) {
            let mut values = Vec::with_capacity((matrices.count * matrices.each) as usize);
            for n in 0..matrices.count {
                values.extend(self.of_matrix(matrices, point, first + i128::from(n)));
            }
            let at = self.row(&together, first);
            let Some(indices) = self.output_indices(&at) else { return false };
            let offset = held.offset(self.b, &indices, self.index);
            self.b.store_matrix(held.buffer, offset, (matrices.count, matrices.transposed), values);
        }
        true
    }

    /// What a lane has of a matrix with a number.
    fn of_matrix(&mut self, matrices: &Matrices, point: &Point, number: i128) -> Vec<ValueId> {
        let mut inner = point.clone();
        let known = self.values.literals.len();
        for (digit, (leaf, ..)) in matrices.iterations(number).into_iter().zip(&matrices.loops) {
            inner.values[*leaf] = Some(self.b.index_literal(self.index, digit as i64));
            self.values.literals.push((self.leaf_var(*leaf), digit));
        }
        let elements = matrices.term.map_or_else(Vec::new, |term| self.elements_along(&inner, term, matrices.each));
        self.values.literals.truncate(known);
        elements.into_iter().flatten().collect()
    }

    /// What all instructions have in common that access matrices at a point.
    fn together<'m>(&mut self, matrices: &'m Matrices, values: &[Option<ValueId>]) -> Together<'m> {
        let Matrices { lanes: [rows, quads], term, each, count, transposed, .. } = matrices;
        let thread = self.b.thread_in_role();
        let thread = self.b.index_convert(thread, self.index);
        let [eight, several, zero, each] =
            [kernel_ir::Matrices::ROWS, *count, 0, *each].map(|n| self.b.index_literal(self.index, n.into()));
        let lane = self.b.index_mod(thread, eight);
        let number = self.b.index_div(thread, eight);
        let number = self.b.index_mod(number, several);
        // What follows from leaves is another thing for the row than for what the lane has.
        let mut row = vec![None; values.len()];
        for leaf in &self.stage.domain.leaves {
            row[*leaf] = values[*leaf];
        }
        let (across, along) = if *transposed { (zero, lane) } else { (lane, zero) };
        row[*rows] = Some(across);
        row[*quads] = Some(self.b.index_div(along, each));
        if let Some(term) = term {
            row[*term] = Some(self.b.index_mod(along, each));
        }
        Together { matrices, number, row }
    }

    /// Values of axes for the row that a lane says of the matrices from one on.
    fn row(&mut self, together: &Together<'_>, first: i128) -> Vec<Option<ValueId>> {
        let Together { matrices, number, row } = together;
        let count = i128::from(matrices.count);
        let mut at = row.clone();
        let mut stride = 1;
        for (leaf, extent, _) in matrices.loops.iter().rev() {
            let base = self.b.index_literal(self.index, (first / stride % extent) as i64);
            // The loops inside of a group are told apart by the number of the matrix.
            at[*leaf] = Some(if stride >= count {
                base
            } else {
                let [step, extent] = [stride, *extent].map(|n| self.b.index_literal(self.index, n as i64));
                let own = self.b.index_div(*number, step);
                let own = self.b.index_mod(own, extent);
                self.b.index_add(base, own)
            });
            stride *= extent;
        }
        self.stage.domain.toward_roots(&mut Emit { b: &mut *self.b, index: self.index }, &mut at);
        at
    }
}
