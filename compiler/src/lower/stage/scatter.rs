//! Terms whose places memory gives: each is taken into the element that its indices name, if there is one.

use tilewright_kernel::algorithm::{Reduction, Value, ValueId as AlgorithmValue};

use super::Nest;
use crate::kernel_ir::{Memory, ValueId};
use crate::lower::value::Scope;
use crate::program::{expressions, update_of};

impl Nest<'_, '_> {
    /// Finds where the term of a component belongs, while all that the indices are made of is at hand.
    pub(super) fn find_place(&mut self, component: usize, value: AlgorithmValue, scope: &Scope) {
        let Value::Scatter { indices, .. } = self.program.algorithm.values[value as usize] else { return };
        let parameter = self.outputs().get(component).map(|output| output.1);
        let Some(tensor) = parameter.and_then(|p| expressions::tensor(self.program, p)) else { return };
        let place = self.values.place(self.b, tensor, indices, scope);
        self.places.push(place);
    }

    /// Takes terms, one for each lane, into the elements that were found for them.
    pub(super) fn take_in(&mut self, parameter: u16, op: Option<Reduction>, lanes: &[ValueId]) {
        let Some(update) = update_of(op) else { return };
        for ((offset, inside), value) in std::mem::take(&mut self.places).into_iter().zip(lanes) {
            self.b.begin_if(inside);
            self.b.atomic_update(Memory::Parameter(parameter), offset, update, *value);
            self.b.end_if();
        }
    }
}
