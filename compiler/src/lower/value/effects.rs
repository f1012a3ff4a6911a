//! What may be computed where nobody needs it.

use tilewright_kernel::algorithm::{Binary, Source, Value, ValueId as AlgorithmValue};
use tilewright_sorted::SortedSet;

use super::Values;
use crate::lower::nested_stage::Kept;
use crate::program::expressions;

impl Values<'_> {
    /// Whether evaluating a value where it is not needed could read out of bounds or repeat work: it reads memory or
    /// reduces, itself or in what it computes of other equations.
    pub(super) fn has_effects(&self, id: AlgorithmValue) -> bool {
        let algorithm = &self.program.algorithm;
        let (mut open, mut seen) = (vec![id], SortedSet::new());
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            match algorithm.values[id as usize] {
                Value::Read { or: Some(_), .. } | Value::Reduce { .. } | Value::Fold { .. } => return true,
                Value::Binary(Binary::Div | Binary::Rem, ..) => return true,
                Value::Read { source, .. } => match (self.held(source, id), source) {
                    (Some(held), _) if matches!(held.holds(source, id), Some(Kept::Registers(_))) => {}
                    (Some(_), _) => return true,
                    (None, Source::Parameter(parameter)) => {
                        if expressions::tensor(self.program, parameter).is_some() {
                            return true;
                        }
                    }
                    (None, Source::Equation { equation, component }) => {
                        let own = algorithm.equations[usize::from(equation)].components.range();
                        open.push(algorithm.components[own][usize::from(component)].value);
                    }
                },
                _ => {}
            }
            open.extend(algorithm.operands(id));
        }
        false
    }

    /// Whether what a stage with this reduction stores is made of registers alone, and can be computed anywhere; of a
    /// reduction that is over, after it.
    pub fn is_of_registers(
        &self,
        stored: Vec<AlgorithmValue>,
        reduction: Option<AlgorithmValue>,
        is_over: bool,
    ) -> bool {
        let algorithm = &self.program.algorithm;
        let mut open = stored;
        while let Some(id) = open.pop() {
            match algorithm.values[id as usize] {
                _ if Some(id) == reduction && is_over => {}
                _ if Some(id) == reduction => open.extend(algorithm.operands(id)),
                Value::Component { fold, .. } if Some(fold) == reduction => open.push(fold),
                _ if self.has_effects(id) => return false,
                _ => {}
            }
        }
        true
    }
}
