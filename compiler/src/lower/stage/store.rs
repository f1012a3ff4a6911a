//! The elements of a stage, and where each is stored: device memory, the buffer of a staged output, an instance.

use tilewright_kernel::algorithm::{Value, ValueId as AlgorithmValue};

use super::{Nest, Point};
use crate::domain::AxisId;
use crate::extent::Expr;
use crate::kernel_ir::{Memory, ValueId};
use crate::lower::defect::Defect;
use crate::lower::nested_stage::{Instance, Kept};
use crate::program::expressions;
use crate::schedule::{accesses, register_loops, vector};

impl Nest<'_, '_> {
    /// The value of every component that is stored.
    pub(super) fn elements(&mut self, point: &Point) -> Vec<ValueId> {
        if let Some(reduction) = self.stage.reduction
            && let Some(accumulator) = self.accumulators.get(point.accumulator).cloned()
        {
            let states = self.values.finish(self.b, &accumulator);
            self.values.reduced = Some((reduction, states));
        }
        let scope = self.scope(&point.values);
        let components = self.stored();
        for (n, value) in components.iter().enumerate() {
            self.find_place(n, *value, &scope);
        }
        let mut values: Vec<ValueId> =
            components.into_iter().map(|value| self.values.value(self.b, value, &scope)).collect();
        self.values.reduced = None;
        if let Some((is_term, none)) = self.masking {
            let is_term = self.values.value(self.b, is_term, &scope);
            let none = self.values.value(self.b, none, &scope);
            values.iter_mut().for_each(|value| *value = self.b.select(is_term, *value, none));
        }
        values
    }

    /// Every component that is stored: outputs, or all of a stage inside others.
    pub(super) fn stored(&self) -> Vec<AlgorithmValue> {
        let equation = &self.program.algorithm.equations[self.stage.equation];
        let components = &self.program.algorithm.components[equation.components.range()];
        let inner = self.target.is_some();
        components.iter().filter(|c| inner || c.parameter.is_some()).map(|c| c.value).collect()
    }

    /// Stores lanes of a component of the instance.
    pub(super) fn store_instance(
        &mut self,
        target: &Instance<'_>,
        points: &[Point],
        component: usize,
        lanes: &[ValueId],
    ) {
        match target.memory.get(component) {
            Some(Kept::Registers(variables)) => {
                let loops = register_loops(self.stage);
                for (lane, value) in lanes.iter().enumerate() {
                    let number = loops.iter().try_fold(0, |number, (leaf, most)| {
                        let is_lane = points.len() > 1 && self.vector.as_ref().is_some_and(|v| v.axis == *leaf);
                        // A vector of one lane is no loop, and nothing says in which iteration it is.
                        let only = (*most == 1).then_some(0);
                        let present = if is_lane { Some(lane as i128) } else { only.or_else(|| self.present(*leaf)) };
                        Some(number * most + present?)
                    });
                    match number.and_then(|n| variables.get(usize::try_from(n).ok()?)) {
                        Some(variable) => self.b.set(*variable, *value),
                        None => self.values.unknown(Defect::Register(self.stage.name.clone())),
                    }
                }
            }
            Some(Kept::Buffer { buffer, base, .. }) => {
                let bytes = self.b.kernel().buffers[buffer.index()].element.bytes();
                let symbolic = self.values.symbolic;
                let run = match self.vector.as_ref().filter(|_| points.len() > 1) {
                    Some(vector) => vector::written(self.stage, &self.stage.layout, vector, symbolic, bytes) as usize,
                    None => 1,
                };
                let place = |this: &mut Self, point: &Point| this.place(point, *buffer, *base);
                self.store_runs(Memory::Buffer(*buffer), (points, lanes), run, place);
            }
            None => self.values.unknown(Defect::Instance(self.stage.name.clone())),
        }
    }

    /// The iteration in which a loop is that is written out; none if it is not.
    pub(in crate::lower) fn present(&self, leaf: AxisId) -> Option<i128> {
        let var = self.leaf_var(leaf);
        self.values.literals.iter().rfind(|(v, _)| *v == var).map(|(_, present)| *present)
    }

    /// Value and parameter of every component that is an output.
    pub(in crate::lower) fn outputs(&self) -> Vec<(AlgorithmValue, u16)> {
        let equation = &self.program.algorithm.equations[self.stage.equation];
        let components = &self.program.algorithm.components[equation.components.range()];
        components.iter().filter_map(|c| c.parameter.map(|p| (c.value, p))).collect()
    }

    /// Stores one component of an element, or of the neighbours that a vector's lanes are, each with its point.
    pub(super) fn store(&mut self, points: &[Point], component: usize, lanes: &[ValueId]) {
        if let Some(target) = self.target.clone() {
            return self.store_instance(&target, points, component, lanes);
        }
        let Some(&(value, parameter)) = self.outputs().get(component) else { return };
        if let Value::Scatter { op, .. } = self.program.algorithm.values[value as usize] {
            return self.take_in(parameter, op, lanes);
        }
        let Some(tensor) = expressions::tensor(self.program, parameter) else { return };
        let indices = |this: &mut Self, point: &Point| this.output_indices(&point.values);
        let Some(held) = self.targets.iter().find(|held| held.staged.parameter == parameter).cloned() else {
            let place = |this: &mut Self, point: &Point| {
                let indices = indices(this, point)?;
                Some(this.values.offset(this.b, tensor, &indices))
            };
            return self.store_runs(Memory::Parameter(parameter), (points, lanes), points.len(), place);
        };
        let vector = self.vector.as_ref().filter(|_| points.len() > 1);
        let run = vector.map_or(1, |vector| {
            let of_leaves = accesses::stage_scope(self.stage, self.values.symbolic);
            let equation = &self.program.algorithm.equations[self.stage.equation];
            let axes = &self.program.algorithm.axis_lists[equation.axes.range()];
            let exprs = axes.iter().map(|a| of_leaves.get(a).map_or_else(Expr::unknown, Expr::clone));
            let exprs: Vec<Expr> = exprs.collect();
            held.staged.neighbours(&exprs, vector, self.values.symbolic, self.facts) as usize
        });
        let place = |this: &mut Self, point: &Point| {
            let indices = indices(this, point)?;
            Some(held.offset(this.b, &indices, this.index))
        };
        self.store_runs(Memory::Buffer(held.buffer), (points, lanes), run, place);
    }

    /// The indices of an output's element, for these values of axes.
    pub(in crate::lower) fn output_indices(&mut self, values: &[Option<ValueId>]) -> Option<Vec<ValueId>> {
        let equation = &self.program.algorithm.equations[self.stage.equation];
        let axes = &self.program.algorithm.axis_lists[equation.axes.range()];
        let scope = self.scope(values);
        axes.iter().map(|axis| scope.value(*axis)).collect()
    }

    /// Stores the lanes at these points, of which so many at a time are neighbours, where the first of them lies.
    fn store_runs(
        &mut self,
        memory: Memory,
        (points, lanes): (&[Point], &[ValueId]),
        run: usize,
        place: impl Fn(&mut Self, &Point) -> Option<ValueId>,
    ) {
        for (points, values) in points.chunks(run).zip(lanes.chunks(run)) {
            match place(self, &points[0]) {
                Some(at) => self.b.store(memory, at, values),
                None => self.values.unknown(Defect::Axis(self.stage.name.clone())),
            }
        }
    }
}
