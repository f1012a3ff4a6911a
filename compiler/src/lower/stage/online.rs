//! What follows an extreme or a mean, block by block of terms: the loops inside of the block's run once for that; then
//! what follows is corrected, once for all terms so far; then the loops run again for its terms. See `online`.
//!
//! Sums with more axes than the extreme, products, are stages in the loop over blocks, and so is what is between them
//! and the extreme of a block:
//!
//! ```text
//! the extreme of the block; as soon as it is there, that of all terms so far in its place
//! what its readers make of it
//! the sums so far, multiplied by their corrections
//! the product of the block, added to these in their registers
//! the other sums of the block
//! ```
//!
//! Elements with the same extreme have one variable for it, and for the sums that are like it.

use tilewright_kernel::algorithm::{Binary, Value, ValueId as AlgorithmValue};

use super::{Goal, Nest, Point};
use crate::domain::AxisId;
use crate::extent::Expr;
use crate::kernel_ir::{ValueId, VariableId};
use crate::lower::arithmetic::Emit;
use crate::lower::defect::Defect;
use crate::lower::product;
use crate::lower::value::{Accumulator, Scope};
use crate::plan::Analysed;
use crate::program::{Blocks, Corrected, Online, expressions};

/// What is done with the terms of a block.
pub(super) enum Follows {
    /// The extreme takes them in.
    Extreme,
    /// So do the followers; of each accumulator, what terms take for it.
    Sums(Vec<Taken>),
    /// The extreme of a block becomes that of all terms so far: of the rows that have it.
    Raise(Vec<VariableId>),
    /// Sums are multiplied by their corrections: of the rows that have them.
    Correct(Vec<VariableId>),
    /// Blocks are taken in.
    Block(Vec<VariableId>),
}

/// What terms take for what is followed: its states, and one value.
#[derive(Clone)]
pub(super) struct Taken {
    states: Vec<ValueId>,
    safe: ValueId,
}

/// The corrections of a row: its variable of the extreme, and the factor of each sum.
pub(super) type Corrections = Vec<(VariableId, Vec<VariableId>)>;

impl Nest<'_, '_> {
    /// The op of this stage.
    fn online(&self) -> Option<&Online> {
        self.stage.online?;
        self.program.online.iter().find(|online| usize::from(online.equation) == self.stage.equation)
    }

    /// Whether what is inside `k` loops is a block of terms.
    pub(super) fn begins_block(&self, k: usize) -> bool {
        let around = k.checked_sub(1).and_then(|k| self.sequence.get(k)).copied();
        let is_whole = self.of_blocks().is_some() == self.online().is_some_and(|online| online.blocks.is_some());
        self.follows.is_none() && around.is_some() && around == self.stage.online && is_whole && !self.is_slice()
    }

    /// What stages hold of a block of its terms. In an entry point without the product, terms are computed for each
    /// element, with the extreme of their block: there the fold is one like others.
    fn of_blocks(&self) -> Option<&Blocks> {
        let blocks = self.online()?.blocks.as_ref()?;
        let is_here = |s: &Analysed| {
            usize::from(blocks.product) == s.stage.equation && product::is_computed(s, self.around.staged)
        };
        self.around.stages.iter().any(is_here).then_some(blocks)
    }

    /// Whether this stage is a product that goes on in the registers of what is in whose loops it stands.
    pub(in crate::lower) fn continues(&self) -> bool {
        let is_own =
            |online: &Online| online.blocks.as_ref().is_some_and(|b| usize::from(b.product) == self.stage.equation);
        self.product.is_some() && self.program.online.iter().any(is_own)
    }

    /// Whether the stage with a position is that product.
    fn is_continued(&self, at: usize) -> bool {
        let stage = &self.around.stages[at].stage;
        stage.product.is_some() && self.of_blocks().is_some_and(|b| usize::from(b.product) == stage.equation)
    }

    /// The registers of the stage with a position, if they are those of the sums so far.
    pub(in crate::lower) fn continued(&self, at: usize) -> Option<Vec<VariableId>> {
        let number = self.of_blocks()?.number + 1;
        let all = self.is_continued(at).then(|| self.accumulators())?;
        all.iter().map(|variables| variables.get(number).copied()).collect()
    }

    /// The accumulators of a fold over blocks, of so many elements of these loops, outermost first, with their
    /// iterations; none if it is no such fold.
    pub(super) fn start_blocks(&mut self, point: &Point, inside: &[(AxisId, i128)], count: i128) -> Option<()> {
        let (number, online) = (self.of_blocks()?.number + 1, self.online()?.clone());
        let Value::Fold { states, .. } = self.program.algorithm.values[online.fold as usize] else { return None };
        let states = self.program.algorithm.folds[states.range()].to_vec();
        let scope = self.scope(&point.values);
        let initial: Vec<ValueId> = states.iter().map(|s| self.values.value(self.b, s.init, &scope)).collect();
        // Those of a product are in a row.
        let sums: Vec<VariableId> = (0..count).map(|_| self.b.variable(initial[number])).collect();
        let own = &self.program.algorithm.values[self.of_blocks()?.taken as usize];
        let Value::Read { indices, .. } = *own else { return None };
        let list = &self.program.algorithm.index_lists[indices.range()];
        // Loops that the extreme does not depend on are around one variable.
        let of = self.scope_of_leaves();
        let exprs: Vec<Expr> = list.iter().map(|i| expressions::index(self.program, *i, &of)).collect();
        let tells = |axis: AxisId| {
            let var = self.leaf_var(axis);
            exprs.iter().any(|e| e.vars().contains(&var))
        };
        let tells: Vec<bool> = inside.iter().map(|(axis, _)| tells(*axis)).collect();
        let mut rows: Vec<(i128, Vec<VariableId>)> = Vec::new();
        for n in 0..count {
            let (mut row, mut rest, mut stride) = (0, n, 1);
            for ((_, copies), tells) in inside.iter().zip(&tells).rev() {
                if *tells {
                    row += rest % copies * stride;
                    stride *= copies;
                }
                rest /= copies;
            }
            let known = rows.iter().find(|known| known.0 == row).map(|known| known.1.clone());
            let mut variables = known.unwrap_or_else(|| {
                let own: Vec<VariableId> = initial.iter().map(|v| self.b.variable(*v)).collect();
                rows.push((row, own.clone()));
                own
            });
            variables[number] = sums[n as usize];
            self.b.debug_name(&self.stage.name, &variables);
            self.accumulators.push(Accumulator::States(variables));
        }
        Some(())
    }

    /// After the stage with a position was computed: the extreme of a block becomes that of all terms so far.
    pub(in crate::lower) fn follow_extreme(&mut self, point: &Point, k: usize, at: usize) {
        let equation = self.around.stages[at].stage.equation;
        if self.begins_block(k) && self.of_blocks().is_some_and(|b| usize::from(b.extreme) == equation) {
            self.corrections.clear();
            self.follow_all(point, k, Follows::Raise(Vec::new()));
        }
    }

    /// Before the stage with a position is computed: the sums that it goes on with are corrected.
    pub(in crate::lower) fn correct_before(&mut self, point: &Point, k: usize, at: usize) {
        if self.begins_block(k) && self.is_continued(at) {
            self.correct(point, k);
        }
    }

    /// Corrects the sums for the extreme of all terms so far.
    pub(in crate::lower) fn correct(&mut self, point: &Point, k: usize) {
        let sums = self.online().map_or(0, |online| online.followers.len());
        for variables in self.accumulators() {
            let Some(extreme) = variables.first().filter(|v| self.corrections.iter().all(|row| row.0 != **v)) else {
                continue;
            };
            let of = self.b.get(*extreme);
            let Some(ty) = self.b.ty(of).element() else { continue };
            let factors = (0..sums).map(|_| self.b.unset(ty)).collect();
            self.corrections.push((*extreme, factors));
        }
        self.follow_all(point, k, Follows::Correct(Vec::new()));
    }

    /// Does something for all elements. What they take is in registers, also of elements outside of the tensor: nothing
    /// is tested.
    fn follow_all(&mut self, point: &Point, k: usize, follows: Follows) {
        let inside = self.data_loops(k);
        self.follows = Some(follows);
        for number in 0..self.accumulators.len() {
            let (mut inner, mut rest) = (point.clone(), number as i128);
            inner.accumulator = number;
            for (axis, copies) in inside.iter().rev() {
                inner.values[*axis] = Some(self.b.index_literal(self.index, (rest % copies) as i64));
                self.values.literals.push((self.leaf_var(*axis), rest % copies));
                rest /= copies;
            }
            self.stage.domain.toward_roots(&mut Emit { b: &mut *self.b, index: self.index }, &mut inner.values);
            self.accumulate(&inner);
            let known = self.values.literals.len() - inside.len();
            self.values.literals.truncate(known);
        }
        self.follows = None;
    }

    /// One element of a fold over blocks.
    fn follow_block(&mut self, online: &Online, blocks: &Blocks, accumulator: &Accumulator, scope: &Scope) {
        let variables = accumulator.variables();
        let Some((extreme, sums)) = variables.split_first() else { return };
        match self.follows.take() {
            Some(Follows::Raise(mut done)) => {
                if !done.contains(extreme) {
                    done.push(*extreme);
                    match self.values.variable_of(blocks.taken, scope) {
                        Some(of_block) => {
                            let (now, before) = (self.b.get(of_block), self.b.get(*extreme));
                            let next = self.b.binary(online.takes(&self.program.algorithm), before, now);
                            self.b.set(of_block, next);
                        }
                        None => self.values.unknown(Defect::Plan("the extreme of a block is in no register")),
                    }
                }
                self.follows = Some(Follows::Raise(done));
            }
            Some(Follows::Correct(mut done)) => {
                let factors = self.factors(*extreme);
                if !done.contains(extreme) {
                    done.push(*extreme);
                    let (before, now) = (online.before[0], online.now[0]);
                    let taken = self.values.value(self.b, blocks.taken, scope);
                    let as_safe = self.values.value(self.b, online.safe, &scope.with(&[(now, taken)]));
                    let old = self.b.get(*extreme);
                    let scope = scope.with(&[(before, old), (online.taken, as_safe)]);
                    for (variable, follower) in factors.iter().zip(&online.followers) {
                        let factor = self.values.value(self.b, follower.correction, &scope);
                        self.b.set(*variable, factor);
                    }
                }
                self.scale(sums[blocks.number], factors.get(blocks.number));
                self.follows = Some(Follows::Correct(done));
            }
            Some(Follows::Block(mut done)) => {
                let found = self.values.variable_of(blocks.sums[blocks.number], scope);
                if found != Some(sums[blocks.number]) {
                    self.values.unknown(Defect::Plan("the sums of a product are not those of its block"));
                }
                if !done.contains(extreme) {
                    done.push(*extreme);
                    let factors = self.factors(*extreme);
                    let others = sums.iter().zip(&blocks.sums).enumerate().filter(|(n, _)| *n != blocks.number);
                    for (n, (variable, of_block)) in others {
                        self.scale(*variable, factors.get(n));
                        self.add(*variable, *of_block, scope);
                    }
                    let taken = self.values.value(self.b, blocks.taken, scope);
                    self.b.set(*extreme, taken);
                }
                self.follows = Some(Follows::Block(done));
            }
            other => self.follows = other,
        }
    }

    /// The corrections of the sums with an extreme.
    fn factors(&self, extreme: VariableId) -> Vec<VariableId> {
        self.corrections.iter().find(|row| row.0 == extreme).map_or_else(Vec::new, |row| row.1.clone())
    }

    fn scale(&mut self, sum: VariableId, by: Option<&VariableId>) {
        let Some(by) = by else { return };
        let (by, before) = (self.b.get(*by), self.b.get(sum));
        let corrected = self.b.binary(Binary::Mul, before, by);
        self.b.set(sum, corrected);
    }

    fn add(&mut self, sum: VariableId, term: AlgorithmValue, scope: &Scope) {
        let (term, before) = (self.values.value(self.b, term, scope), self.b.get(sum));
        let next = self.b.binary(Binary::Add, before, term);
        self.b.set(sum, next);
    }

    /// Takes in a block of terms.
    pub(super) fn block_of_terms(&mut self, point: &Point, k: usize) {
        let Some(online) = self.online().cloned() else { return };
        if online.blocks.is_some() {
            self.follow_all(point, k, Follows::Block(Vec::new()));
            self.corrections.clear();
            return;
        }
        let leading = online.now.len();
        let firsts: Vec<Vec<VariableId>> =
            self.accumulators().into_iter().map(|all| all[..leading.min(all.len())].to_vec()).collect();
        let olds: Vec<Vec<ValueId>> =
            firsts.iter().map(|all| all.iter().map(|variable| self.b.get(*variable)).collect()).collect();
        self.follows = Some(Follows::Extreme);
        self.loops(point, k, Goal::Accumulate);
        let scope = self.scope(&point.values);
        let mut taken = Vec::new();
        for (variables, old) in self.accumulators().into_iter().zip(olds) {
            let Some((followed, followers)) = variables.split_at_checked(leading) else { continue };
            let states: Vec<ValueId> = followed.iter().map(|variable| self.b.get(*variable)).collect();
            let bound = |numbers: &[u32], values: &[ValueId]| -> Vec<(u32, ValueId)> {
                numbers.iter().copied().zip(values.iter().copied()).collect()
            };
            let now = bound(&online.now, &states);
            let as_safe = self.values.value(self.b, online.safe, &scope.with(&now));
            let scope = scope.with(&[bound(&online.before, &old), now, vec![(online.taken, as_safe)]].concat());
            for (variable, follower) in followers.iter().zip(&online.followers) {
                let by = self.values.value(self.b, follower.correction, &scope);
                let sum = self.b.get(*variable);
                let corrected = match follower.corrected {
                    Corrected::Times => self.b.binary(Binary::Mul, sum, by),
                    Corrected::Plus => self.b.binary(Binary::Add, sum, by),
                    Corrected::Restarted(identity) => {
                        let identity = self.values.value(self.b, identity, &scope);
                        self.b.select(by, sum, identity)
                    }
                };
                self.b.set(*variable, corrected);
            }
            taken.push(Taken { states, safe: as_safe });
        }
        self.follows = Some(Follows::Sums(taken));
        self.loops(point, k, Goal::Accumulate);
        self.follows = None;
    }

    /// Takes in a term.
    pub(super) fn follow(&mut self, number: usize, accumulator: &Accumulator, scope: &Scope) {
        let Some(online) = self.online().cloned() else { return };
        let Value::Fold { axes, states } = self.program.algorithm.values[online.fold as usize] else { return };
        if let Some(blocks) = &online.blocks {
            return self.follow_block(&online, blocks, accumulator, scope);
        }
        if self.values.has_no_term(online.fold, axes, scope) {
            return;
        }
        let is_term = self.values.is_in_ranges(self.b, axes, scope);
        let variables = accumulator.variables();
        let leading = online.now.len();
        let Some((followed, followers)) = variables.split_at_checked(leading) else { return };
        match &self.follows {
            Some(Follows::Sums(taken)) => {
                let Some(Taken { states, safe }) = taken.get(number).cloned() else { return };
                let now: Vec<(u32, ValueId)> = online.now.iter().copied().zip(states).collect();
                let scope = scope.with(&[now, vec![(online.taken, safe)]].concat());
                for (variable, follower) in followers.iter().zip(&online.followers) {
                    let term = self.values.value(self.b, follower.term, &scope);
                    let sum = self.b.get(*variable);
                    let next = self.b.binary(follower.op, sum, term);
                    self.values.take(self.b, *variable, next, is_term);
                }
            }
            _ => {
                let states = self.program.algorithm.folds[states.range()].to_vec();
                for (variable, state) in followed.iter().zip(states) {
                    let now = self.b.get(*variable);
                    let next = self.values.value(self.b, state.step, &scope.with(&[(state.variable, now)]));
                    self.values.take(self.b, *variable, next, is_term);
                }
            }
        }
    }
}
