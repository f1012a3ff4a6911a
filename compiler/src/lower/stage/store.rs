//! The elements of a stage, and where each is stored: device memory, the buffer of a staged output, an instance.

use tilewright_kernel::algorithm::ValueId as AlgorithmValue;

use super::{Nest, Point};
use crate::domain::AxisId;
use crate::extent::Expr;
use crate::kernel_ir::{Memory, ValueId};
use crate::lower::defect::Defect;
use crate::lower::nested_stage::{Instance, Kept};
use crate::lower::staging::Held;
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
        let values = components.into_iter().map(|value| self.values.value(self.b, value, &scope)).collect();
        self.values.reduced = None;
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
            Some(Kept::Buffer { buffer, base }) => {
                let bytes = self.b.kernel().buffers[buffer.index()].element.bytes();
                let symbolic = self.values.symbolic;
                let run = match self.vector.as_ref().filter(|_| points.len() > 1) {
                    Some(vector) => vector::written(self.stage, &self.stage.layout, vector, symbolic, bytes) as usize,
                    None => 1,
                };
                for (points, values) in points.chunks(run).zip(lanes.chunks(run)) {
                    match self.place(&points[0], *buffer, *base) {
                        Some(at) => self.b.store(Memory::Buffer(*buffer), at, values),
                        None => self.values.unknown(Defect::Axis(self.stage.name.clone())),
                    }
                }
            }
            None => self.values.unknown(Defect::Instance(self.stage.name.clone())),
        }
    }

    /// The iteration in which a loop is that is written out; none if it is not.
    fn present(&self, leaf: AxisId) -> Option<i128> {
        let var = self.leaf_var(leaf);
        self.values.literals.iter().rfind(|(v, _)| *v == var).map(|(_, present)| *present)
    }

    /// Value and parameter of every component that is an output.
    pub(super) fn outputs(&self) -> Vec<(AlgorithmValue, u16)> {
        let equation = &self.program.algorithm.equations[self.stage.equation];
        let components = &self.program.algorithm.components[equation.components.range()];
        components.iter().filter_map(|c| c.parameter.map(|p| (c.value, p))).collect()
    }

    /// Stores one component of an element, or of the neighbours that a vector's lanes are, each with its point.
    pub(super) fn store(&mut self, points: &[Point], component: usize, lanes: &[ValueId]) {
        if let Some(target) = self.target.clone() {
            return self.store_instance(&target, points, component, lanes);
        }
        let (Some(&(_, parameter)), Some(point)) = (self.outputs().get(component), points.first()) else { return };
        let Some(tensor) = expressions::tensor(self.program, parameter) else { return };
        if let Some(held) = self.targets.iter().find(|held| held.staged.parameter == parameter) {
            return self.store_staged(&held.clone(), points, lanes);
        }
        let scope = self.scope(&point.values);
        let equation = &self.program.algorithm.equations[self.stage.equation];
        let strides = expressions::strides(tensor, self.facts);
        let mut offset = self.b.index_literal(self.index, 0);
        for (axis, stride) in self.program.algorithm.axis_lists[equation.axes.range()].iter().zip(&strides) {
            let Some(bound) = scope.axes.get(axis) else {
                return self.values.unknown(Defect::Axis(self.stage.name.clone()));
            };
            let stride = self.size(stride);
            let scaled = self.b.index_mul(bound.value, stride);
            offset = self.b.index_add(offset, scaled);
        }
        self.b.store(Memory::Parameter(parameter), offset, lanes);
    }

    /// Stores to the buffer of a staged output: as many lanes at a time as are neighbours there.
    pub(super) fn store_staged(&mut self, held: &Held<'_>, points: &[Point], lanes: &[ValueId]) {
        let program = self.program;
        let axes = &program.algorithm.axis_lists[program.algorithm.equations[self.stage.equation].axes.range()];
        let mut run = 1;
        for (at, point) in points.iter().enumerate() {
            let scope = self.scope(&point.values);
            if at == 0
                && let Some(vector) = self.vector.as_ref().filter(|_| points.len() > 1)
            {
                let of_leaves = accesses::stage_scope(self.stage, self.values.symbolic);
                let indices: Vec<Expr> =
                    axes.iter().map(|a| of_leaves.get(a).map_or_else(Expr::unknown, Expr::clone)).collect();
                run = held.staged.neighbours(&indices, vector, self.values.symbolic, self.facts) as usize;
            }
            if at % run != 0 {
                continue;
            }
            let indices: Vec<ValueId> =
                axes.iter().filter_map(|a| scope.axes.get(a).map(|bound| bound.value)).collect();
            let offset = held.offset(self.b, &indices, self.index);
            let Some(values) = lanes.get(at..at + run) else { continue };
            self.b.store(Memory::Buffer(held.buffer), offset, values);
        }
    }
}
