//! A reduction: its accumulators, its terms, and what units that share a result do with theirs.

use tilewright_kernel::algorithm::{Compare, Reduction, Source, Value, ValueId as AlgorithmValue};
use tilewright_sorted::SortedSet;

use super::conditions::Condition;
use super::{Around, Goal, Nest, Point};
use crate::domain::{AxisId, AxisKind};
use crate::kernel_ir::{Builder, ValueId, VariableId};
use crate::lower::cta_reduce::{self, Counted, Digit, Team, digit};
use crate::lower::grid_reduce;
use crate::lower::nested_stage::Kept;
use crate::lower::value::Accumulator;
use crate::schedule;
use crate::source::ast::Place;

impl Nest<'_, '_> {
    /// Whether units that share a result combine what they have.
    pub(super) fn combines(&self) -> bool {
        !self.stage.reduced.is_empty()
    }

    /// The data loops inside `k` others, outermost first, with their iterations: each combination has an accumulator.
    pub(super) fn data_loops(&self, k: usize) -> Vec<(AxisId, i128)> {
        let data = self.sequence[k..].iter().filter(|a| self.stage.domain.axes[**a].kind == AxisKind::Data);
        data.map(|a| (*a, grid_reduce::copies(self.stage, *a, self.facts))).collect()
    }

    /// The reduction: accumulators, the terms, then the stores.
    pub(super) fn reduce(&mut self, point: &Point, k: usize) {
        let Some(reduction) = self.stage.reduction else { return };
        if self.is_slice() {
            // Stores are those of the other role.
            self.in_terms = true;
            let mut terms = point.clone();
            let opened = self.combines() && self.advance(&mut terms, Vec::new(), k, Goal::Accumulate);
            self.descend(&terms, k, Goal::Accumulate);
            self.close(opened);
            self.in_terms = false;
            return;
        }
        let inside = self.data_loops(k);
        let count: i128 = inside.iter().map(|i| i.1).product();
        self.accumulators = Vec::new();
        let is_unset = self.starts_sums();
        let continues = self.continues();
        if continues {
            let Some(Kept::Registers(variables)) = self.target.as_ref().and_then(|t| t.memory.first()) else { return };
            self.accumulators = variables.iter().map(|v| Accumulator::States(vec![*v])).collect();
        }
        let is_started = continues || self.start_blocks(point, &inside, count).is_some();
        for number in 0..if is_started { 0 } else { count } {
            // Initial values of a fold may depend on the element, and may be read where there is one.
            let mut first = point.clone();
            let mut conditions = Vec::new();
            let mut rest = number;
            for (axis, copies) in inside.iter().rev() {
                let value = self.b.index_literal(self.index, (rest % copies) as i64);
                first.values[*axis] = Some(value);
                let extent = self.facts.normal(&self.stage.domain.axes[*axis].extent);
                if extent.as_constant().is_none() {
                    let count = self.size(&extent);
                    conditions.push(self.b.index_compare(Compare::Lt, value, count));
                }
                rest /= copies;
            }
            let decided = self.decide(&mut first, k, Goal::Store).into_iter();
            conditions.extend(decided.chain(std::mem::take(&mut first.pending)).map(|c| c.holds));
            let scope = self.scope(&first.values);
            let guard = conditions.into_iter().reduce(|a, c| self.b.and(a, c));
            let accumulator = match is_unset {
                true => self.values.start_unset(self.b, reduction),
                false => self.values.start(self.b, reduction, &scope, guard),
            };
            self.b.debug_name(&self.stage.name, &accumulator.variables());
            self.accumulators.push(accumulator);
        }
        let starts: Vec<Vec<ValueId>> = match self.across {
            Some(_) if is_unset => vec![vec![self.values.identity(self.b, reduction)]; self.accumulators.len()],
            Some(_) => self.accumulators().iter().map(|v| v.iter().map(|v| self.b.get(*v)).collect()).collect(),
            None => Vec::new(),
        };
        let mut terms = point.clone();
        let of_terms = if self.combines() { self.of_terms.clone() } else { Vec::new() };
        let of_terms = of_terms.into_iter().map(Condition::of).collect();
        let opened = self.combines() && self.advance(&mut terms, of_terms, k, Goal::Accumulate);
        self.descend(&terms, k, Goal::Accumulate);
        self.close(opened);
        if continues {
            // They are in their registers.
            self.accumulators.clear();
            return;
        }
        let mut store = point.clone();
        let across = self.across.clone();
        if self.combines() {
            self.combine(reduction, 1);
            if self.stage.across_ctas() {
                self.combine_in_cluster(reduction, point);
            }
            if let Some((layout, first)) = &across {
                // All that waits for other roles is over. Only the last block comes to what is after the arrival.
                if self.stage.arrives() {
                    self.around.turns.inspect(|turns| turns.hand_on(self.b, self.own));
                }
                self.across_blocks(layout, *first, reduction, point, &starts);
                if self.stage.arrives() {
                    self.start_lifetime_after_arrival();
                }
            }
            if self.stage.place != Place::Registers {
                // One of those that share the result.
                let zero = self.b.index_literal(self.index, 0);
                let of_blocks: Vec<AxisId> = self.stage.across_blocks().collect();
                for reduced in self.stage.reduced.iter().filter(|r| !of_blocks.contains(&r.axis)) {
                    if let Some(value) = point.values[reduced.axis] {
                        let holds = self.b.index_compare(Compare::Eq, value, zero);
                        store.pending.push(Condition::of(holds));
                    }
                }
            }
        }
        self.descend(&store, k, Goal::Store);
        self.mask_scores(&store, k);
        // What is after a stage in loops is for the last block alone, too: see `Nest::begin_stages`.
        if across.is_some() && !self.stage.arrives() {
            self.b.end_if();
        }
        self.accumulators.clear();
    }

    /// The variables of each accumulator.
    pub(in crate::lower) fn accumulators(&self) -> Vec<Vec<VariableId>> {
        self.accumulators.iter().map(Accumulator::variables).collect()
    }

    /// Combines the accumulators of the threads that share results; of so many that nothing else tells apart, each has
    /// a part, too.
    pub(in crate::lower) fn combine(&mut self, reduction: AlgorithmValue, alike: i128) {
        let number = |reduced: bool| if reduced { Counted::Members } else { Counted::Groups };
        let own = schedule::digits(self.stage).into_iter().map(|d| digit(number(d.reduced), d.stride, d.extent, d.low));
        let mut digits: Vec<Digit> = own.collect();
        // Of the kernel's own units, those of an inner loop may be farther apart; terms are dealt in any order.
        digits.sort_by_key(|digit| std::cmp::Reverse(digit.stride));
        if alike > 1 {
            digits.push(digit(Counted::Members, 1, alike, 0));
        }
        if let Some(size) = self.stage.owner.threads() {
            // Each unit for itself.
            digits.insert(0, digit(Counted::Groups, size, i128::from(self.around.threads) / size, 0));
        }
        let variables = self.accumulators();
        let states: Vec<Vec<ValueId>> =
            variables.iter().map(|variables| variables.iter().map(|v| self.b.get(*v)).collect()).collect();
        let (overwrites, commutes) = (self.overwrites(reduction), self.commutes(reduction));
        let values = &mut self.values;
        let mut merge = |b: &mut Builder, left: &[ValueId], right: &[ValueId]| values.merge(b, reduction, left, right);
        let name = format!("{}_parts", self.stage.name);
        let Around { threads, trip_bytes, .. } = self.around;
        let team = Team { threads, digits: &digits, trip_bytes, overwrites, commutes };
        let all = cta_reduce::across_threads(self.b, &name, team, &states, &mut merge);
        for (variable, value) in variables.iter().zip(&all).flat_map(|(variables, all)| variables.iter().zip(all)) {
            self.b.set(*variable, *value);
        }
    }

    /// Whether two of its results merge to the same bits in either order: a sum or product of two floats does, and so
    /// do extremes, of which both are one where they are equal.
    fn commutes(&self, reduction: AlgorithmValue) -> bool {
        match self.program.algorithm.values[reduction as usize] {
            Value::Reduce { op, .. } => !matches!(op, Reduction::ArgMax | Reduction::ArgMin),
            _ => false,
        }
    }

    /// Whether a reduction reads what its own equation updates in place, be it in an intermediate.
    fn overwrites(&self, reduction: AlgorithmValue) -> bool {
        let algorithm = &self.program.algorithm;
        let outputs: Vec<u16> = self.outputs().into_iter().map(|(_, parameter)| parameter).collect();
        let (mut open, mut seen) = (vec![reduction], SortedSet::new());
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            match algorithm.values[value as usize] {
                Value::Read { source: Source::Parameter(parameter), .. } if outputs.contains(&parameter) => {
                    return true;
                }
                Value::Read { source: Source::Equation { equation, .. }, .. } => {
                    let components = algorithm.equations[usize::from(equation)].components.range();
                    open.extend(algorithm.components[components].iter().map(|component| component.value));
                }
                _ => {}
            }
            open.extend(algorithm.operands(value));
        }
        false
    }

    pub(super) fn accumulate(&mut self, point: &Point) {
        let Some(reduction) = self.stage.reduction else { return };
        let scope = self.scope(&point.values);
        if let Some(accumulator) = self.accumulators.get(point.accumulator).cloned() {
            if self.follows.is_some() {
                return self.follow(point.accumulator, &accumulator, &scope);
            }
            self.values.step(self.b, reduction, &accumulator, &scope);
        }
    }
}
