//! The loops of a stage, and what stands in them.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Compare;

use super::conditions::Condition;
use super::{Around, Emit, Goal, Nest, Point};
use crate::domain::{AxisId, AxisKind, Binding};
use crate::extent::{Expr, Var};
use crate::kernel_ir::{ValueId, VariableId};
use crate::lower::defect::Defect;
use crate::lower::nested_stage::components;
use crate::lower::product;
use crate::lower::value::Lane;
use crate::plan::Analysed;
use crate::source::ast::Place;

/// An iteration for which something is done ahead of it.
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) struct Iteration {
    pub axis: AxisId,
    /// Which.
    pub value: ValueId,
    /// Whether the loop has it.
    pub exists: ValueId,
}

impl Nest<'_, '_> {
    /// Runs the loops from position `k` of the sequence, with the copies that stand before them.
    pub(super) fn descend(&mut self, point: &Point, k: usize, goal: Goal) {
        let storing = goal == Goal::Store && self.stage.reduction.is_some();
        // Around a reduction this is entered twice, for its accumulators and for its terms; its stores come after both.
        let entered = k == self.split && self.is_in_terms();
        let first = !(storing || entered);
        let (held, staged) = (self.values.instances.len(), self.values.staged.clone());
        let mut alone = false;
        if first {
            self.begin_instances(point, k);
            alone = self.begin_stages(point, k);
            self.begin_late(point, k);
        }
        let reduces = self.combines() && goal == Goal::Accumulate && k == self.split && !entered;
        let later = !storing && (reduces || self.gathers(k + 1, goal));
        if self.is_slice() {
            if self.comes(k + 1) {
                self.loops(point, k, goal);
            }
        } else if later || point.pending.is_empty() {
            self.loops(point, k, goal);
        } else {
            let mut inner = point.clone();
            let mut conditions = std::mem::take(&mut inner.pending);
            // Around a reduction they hold for its store, too.
            if goal == Goal::Accumulate && (entered || k > self.split) {
                conditions.retain(|c| !c.waived);
            }
            let opened = self.open_if(conditions);
            self.loops(&inner, k, goal);
            self.close(opened);
        }
        if first {
            self.beside(point, k);
            // All blocks that share a stage here go on with the loop around it, and with the copies that stand in it.
            self.close(alone && k > 0);
            self.end_instances(point, k);
            self.end_stages(point, k);
            self.end_handed(point, k);
            self.close(alone && k == 0);
            // What stands after these loops, another iteration that is written out as well, does not see what stood in
            // them.
            self.values.instances.truncate(held);
            self.values.staged = staged;
        }
    }

    /// The loops themselves.
    pub(super) fn loops(&mut self, point: &Point, k: usize, goal: Goal) {
        if self.stage.reduction.is_some() && k == self.split && goal == Goal::Accumulate && !self.is_in_terms() {
            return self.reduce(point, k);
        }
        if goal == Goal::Accumulate && self.begins_block(k) {
            return self.block_of_terms(point, k);
        }
        let Some(&axis) = self.sequence.get(k) else { return self.innermost(point, goal) };
        if goal == Goal::Accumulate && self.begins_product(axis) {
            return self.products(point);
        }
        if goal == Goal::Store && self.stores_matrices(point, k) {
            return;
        }
        let is_data = self.stage.domain.axes[axis].kind == AxisKind::Data;
        if goal == Goal::Store && !is_data {
            return self.descend(point, k + 1, goal);
        }
        let binding = self.stage.domain.axes[axis].binding;
        let extent = self.facts.normal(&self.stage.domain.axes[axis].extent);
        if binding == Binding::Vector {
            return self.lanes(point, axis, goal);
        }
        // Inside a reduction every data loop is written out: its accumulators are registers.
        let inside = self.stage.reduction.is_some() && is_data && (k > self.split || self.stage.arrives());
        // So is one that tells registers apart.
        let registers = is_data && self.stage.place == Place::Registers;
        match binding {
            Binding::Unroll(None) if inside || registers || !self.is_rolled() => {
                self.unrolled(point, k, goal, axis, &extent, is_data && inside)
            }
            Binding::Unroll(Some(by)) if !inside && !registers => self.partly(point, k, goal, axis, &extent, by),
            _ if inside || registers => self.unrolled(point, k, goal, axis, &extent, inside),
            _ => {
                let all = self.size(&extent);
                let narrowed = self.narrowed(point, k, goal, all);
                let count = narrowed.map_or(all, |narrowed| narrowed.count);
                self.narrowed.extend(narrowed);
                self.begin_behind(k);
                self.read_places(point, k);
                self.fill_rings(point, k, count);
                self.fetch_ahead(point, k, count);
                let at = self.b.begin_loop(count);
                let at = self.iteration_at(axis, at);
                self.enter(point, k, goal, axis, at, Vec::new());
                self.b.end_loop();
                if goal == Goal::Accumulate {
                    self.end_products(k, count);
                    self.end_behind(point, k, count);
                }
                self.narrowed.retain(|narrowed| narrowed.axis != axis);
            }
        }
    }

    /// Whether loops need not be written out that would be: for elements that are in registers, and are computed here.
    fn is_rolled(&self) -> bool {
        let Around { staged, stages, .. } = self.around;
        let mut seen = self.stage.sees.iter().map(|n| &stages[*n]);
        let is_held = |seen: &Analysed| product::is_computed(seen, staged) && seen.stage.place == Place::Registers;
        seen.clone().any(|seen| !product::is_computed(seen, staged)) && !seen.any(is_held)
    }

    /// The iteration with a number of a loop that has so many.
    pub(in crate::lower) fn iteration(&mut self, axis: AxisId, number: u32, count: ValueId) -> Iteration {
        let value = self.b.index_literal(self.index, number.into());
        let exists = self.b.index_compare(Compare::Lt, value, count);
        Iteration { axis, value: self.iteration_at(axis, value), exists }
    }

    /// The iteration that comes so many after the present one, of the loop around position `k`; none if there is no
    /// loop.
    pub(in crate::lower) fn later(&mut self, point: &Point, k: usize, ahead: u32) -> Option<Iteration> {
        let axis = *self.sequence.get(k.checked_sub(1)?)?;
        let now = point.values[axis]?;
        let narrowed = self.narrowed.iter().find(|narrowed| narrowed.axis == axis).copied();
        let count = match narrowed {
            Some(narrowed) => self.iteration_at(axis, narrowed.count),
            None => self.size(&self.facts.normal(&self.stage.domain.axes[axis].extent)),
        };
        let ahead = self.b.index_literal(self.index, ahead.into());
        // No sum that could pass what an index can be.
        let most = self.b.index_sub(count, ahead);
        let exists = self.b.index_compare(Compare::Lt, now, most);
        Some(Iteration { axis, value: self.b.index_add(now, ahead), exists })
    }

    /// One iteration: the axis has its value.
    pub(super) fn enter(
        &mut self,
        point: &Point,
        k: usize,
        goal: Goal,
        axis: AxisId,
        value: ValueId,
        conditions: Vec<Condition>,
    ) {
        let mut inner = point.clone();
        inner.values[axis] = Some(value);
        let opened = self.advance(&mut inner, conditions, k + 1, goal);
        self.descend(&inner, k + 1, goal);
        self.close(opened);
    }

    /// Every iteration written out, up to the bound that the facts give.
    pub(super) fn unrolled(
        &mut self,
        point: &Point,
        k: usize,
        goal: Goal,
        axis: AxisId,
        extent: &Expr,
        accumulators: bool,
    ) {
        let Some(copies) = extent.as_constant().or_else(|| self.facts.upper_bound(extent)) else {
            return self.values.unknown(Defect::Plan("a loop that is written out has no bound"));
        };
        for i in 0..copies {
            let value = self.b.index_literal(self.index, i as i64);
            let mut inner = point.clone();
            if accumulators {
                inner.accumulator = point.accumulator * copies as usize + i as usize;
            }
            let mut conditions = Vec::new();
            if extent.as_constant().is_none() {
                let count = self.size(extent);
                conditions.push(Condition::of_all(self.b.index_compare(Compare::Lt, value, count)));
            }
            self.values.literals.push((self.leaf_var(axis), i));
            self.enter(&inner, k, goal, axis, value, conditions);
            self.values.literals.pop();
        }
    }

    /// `by` iterations written out in a loop; a tail is guarded.
    pub(super) fn partly(&mut self, point: &Point, k: usize, goal: Goal, axis: AxisId, extent: &Expr, by: i128) {
        let step = Expr::constant(by);
        let trips = self.size(&self.facts.normal(&extent.ceil_div(&step)));
        let at = self.b.begin_loop(trips);
        let factor = self.b.index_literal(self.index, by as i64);
        let first = self.b.index_mul(at, factor);
        let whole = self.facts.proves_multiple(extent, by);
        for i in 0..by {
            let offset = self.b.index_literal(self.index, i as i64);
            let value = self.b.index_add(first, offset);
            let mut conditions = Vec::new();
            if !whole {
                let count = self.size(extent);
                conditions.push(Condition::of_all(self.b.index_compare(Compare::Lt, value, count)));
            }
            self.enter(point, k, goal, axis, value, conditions);
        }
        self.b.end_loop();
    }

    /// The vectorised axis: all lanes at one point.
    pub(super) fn lanes(&mut self, point: &Point, axis: AxisId, goal: Goal) {
        let Some(vector) = self.vector.clone() else { return };
        // Guards are uniform over the lanes: lane 0 decides.
        let zero = self.b.index_literal(self.index, 0);
        let mut first = point.clone();
        first.values[axis] = Some(zero);
        let opened = self.advance(&mut first, Vec::new(), self.sequence.len(), goal);
        let filled = self.begin_filled(&first, vector.lanes as usize, goal);
        self.values.lane = Some(Lane { vector: vector.clone(), number: 0, loaded: Default::default() });
        let is_data = self.stage.domain.axes[axis].kind == AxisKind::Data;
        let mut results: Vec<Vec<ValueId>> = Vec::new();
        let mut points = Vec::new();
        for lane in 0..vector.lanes {
            let value = self.b.index_literal(self.index, lane as i64);
            let mut inner = point.clone();
            inner.values[axis] = Some(value);
            let mut emit = Emit { b: &mut *self.b, index: self.index };
            self.stage.domain.toward_roots(&mut emit, &mut inner.values);
            if is_data && !self.accumulators.is_empty() {
                inner.accumulator = point.accumulator * vector.lanes as usize + lane as usize;
            }
            if let Some(state) = &mut self.values.lane {
                state.number = lane as u32;
            }
            self.values.literals.push((vector.var, lane));
            match goal {
                Goal::Accumulate => self.accumulate(&inner),
                Goal::Store if self.stage.fetches => {}
                Goal::Store => results.push(self.elements(&inner)),
            }
            self.values.literals.pop();
            points.push(inner);
        }
        self.values.lane = None;
        self.end_filled(filled, &mut results);
        if let Some(target) = self.target.clone().filter(|_| self.stage.fetches) {
            self.fetch(&target, &points, first.filled);
        } else if goal == Goal::Store {
            let components = results.first().map_or(0, Vec::len);
            for c in 0..components {
                let lanes: Vec<ValueId> = results.iter().map(|r| r[c]).collect();
                self.store(&points, c, &lanes);
            }
        }
        self.close(opened);
    }

    /// The elements in the iterations of the innermost loop, which is written out or a vector, of every component that
    /// is stored; where nothing is tested.
    pub(in crate::lower) fn elements_along(&mut self, point: &Point, axis: AxisId, count: u32) -> Vec<Vec<ValueId>> {
        let vector = self.vector.clone().filter(|vector| vector.axis == axis);
        self.values.lane = vector.map(|vector| Lane { vector, number: 0, loaded: Default::default() });
        let mut elements = Vec::with_capacity(count as usize);
        for lane in 0..count {
            let mut inner = point.clone();
            inner.values[axis] = Some(self.b.index_literal(self.index, lane.into()));
            self.stage.domain.toward_roots(&mut Emit { b: &mut *self.b, index: self.index }, &mut inner.values);
            if let Some(state) = &mut self.values.lane {
                state.number = lane;
            }
            self.values.literals.push((self.leaf_var(axis), lane.into()));
            elements.push(self.elements(&inner));
            self.values.literals.pop();
        }
        self.values.lane = None;
        elements
    }

    pub(super) fn innermost(&mut self, point: &Point, goal: Goal) {
        match goal {
            Goal::Accumulate => self.accumulate(point),
            Goal::Store if self.stage.fetches => {
                if let Some(target) = self.target.clone() {
                    self.fetch(&target, std::slice::from_ref(point), point.filled);
                }
            }
            Goal::Store => {
                let filled = self.begin_filled(point, 1, goal);
                let mut elements = vec![self.elements(point)];
                self.end_filled(filled, &mut elements);
                for (c, element) in elements.into_iter().flatten().enumerate() {
                    self.store(std::slice::from_ref(point), c, &[element]);
                }
            }
        }
    }

    /// Before so many elements that are zero where the stage leaves them out: begins the branch in which they are
    /// computed, and declares what they are; none if the stage has all of them.
    fn begin_filled(&mut self, point: &Point, count: usize, goal: Goal) -> Option<Vec<Vec<VariableId>>> {
        let holds = point.filled.filter(|_| goal == Goal::Store && !self.stage.fetches)?;
        let types: Vec<ElementType> = components(self.stage).into_iter().map(|component| component.1).collect();
        let mut zero = |ty: ElementType| {
            let zero = self.b.literal(ty, 0);
            self.b.variable(zero)
        };
        let variables = (0..count).map(|_| types.iter().map(|ty| zero(*ty)).collect()).collect();
        self.b.begin_if(holds);
        Some(variables)
    }

    /// After them.
    fn end_filled(&mut self, variables: Option<Vec<Vec<VariableId>>>, elements: &mut [Vec<ValueId>]) {
        let Some(variables) = variables else { return };
        for (variable, element) in variables.iter().flatten().zip(elements.iter().flatten()) {
            self.b.set(*variable, *element);
        }
        self.b.end_if();
        for (variable, element) in variables.iter().flatten().zip(elements.iter_mut().flatten()) {
            *element = self.b.get(*variable);
        }
    }

    /// The variable of a leaf.
    pub(in crate::lower) fn leaf_var(&self, axis: AxisId) -> Var {
        let at = self.stage.domain.leaves.iter().position(|leaf| *leaf == axis).unwrap_or(0);
        (self.facts.dims() + at) as Var
    }
}
