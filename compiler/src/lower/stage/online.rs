//! Sums that follow an extreme, block by block of terms: the loops inside of the block's run once for the extreme; then
//! sums are corrected, once for all terms so far; then the loops run again for the terms. See `online`.
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

use tilewright_kernel::algorithm::{Binary, Compare, Value, ValueId as AlgorithmValue};

use super::{Around, Goal, Nest, Point};
use crate::domain::AxisId;
use crate::extent::{Expr, Family, Var};
use crate::kernel_ir::{Builder, ValueId, VariableId};
use crate::lower::arithmetic::Emit;
use crate::lower::defect::Defect;
use crate::lower::product;
use crate::lower::value::{Accumulator, Scope};
use crate::plan::Analysed;
use crate::program::{Blocks, Masked, Online, Program, expressions};
use crate::schedule::extreme;

/// What is done with the terms of a block.
pub(super) enum Follows {
    /// The extreme takes them in.
    Extreme,
    /// So do the sums; of each accumulator what terms take for the extreme.
    Sums(Vec<ValueId>),
    /// The extreme of a block becomes that of all terms so far: of the rows that have it.
    Raise(Vec<VariableId>),
    /// Sums are multiplied by their corrections: of the rows that have them.
    Correct(Vec<VariableId>),
    /// Blocks are taken in.
    Block(Vec<VariableId>),
}

/// The corrections of a row: its variable of the extreme, and the factor of each sum.
pub(super) type Corrections = Vec<(VariableId, Vec<VariableId>)>;

/// Which scores are masked by the stage that computes them, a product in this entry point.
fn masked<'a>(program: &'a Program, stages: &'a [Analysed], staged: bool) -> impl Iterator<Item = Masked> + 'a {
    let all = program.online.iter().filter_map(|online| online.blocks.as_ref()?.masked);
    all.filter(move |masked| {
        let mut own = stages.iter().filter(|s| s.stage.equation == usize::from(masked.scores)).peekable();
        own.peek().is_some() && own.all(|s| s.stage.product.is_some() && product::is_computed(s, staged))
    })
}

/// Conditions that hold where scores are read: they were masked.
pub(super) fn known(program: &Program, stages: &[Analysed], staged: bool) -> Vec<AlgorithmValue> {
    masked(program, stages, staged).map(|masked| masked.of_readers).collect()
}

impl Nest<'_, '_> {
    /// Scores of no term are replaced, in blocks that have some.
    pub(super) fn mask_scores(&mut self, point: &Point, k: usize) {
        let Around { stages, staged, .. } = self.around;
        let own = masked(self.program, stages, staged).find(|m| usize::from(m.scores) == self.stage.equation);
        let Some(own) = own else { return };
        let is_ragged = self.is_beside_some(own.of_scores);
        let opened = is_ragged.map(|ragged| {
            // A first block that is written out on its own is masked in any case: there the branch costs more, since
            // the assembler keeps nothing in registers of a warp behind it.
            let apart = self.around.behind.and_then(|group| group.later_than_first(self.own));
            let ragged = match apart {
                Some(later) => {
                    let is_first = self.b.not(later);
                    self.b.binary(Binary::Or, ragged, is_first)
                }
                None => ragged,
            };
            self.b.begin_rare_if(ragged);
        });
        self.masking = Some((own.of_scores, own.none));
        self.descend(point, k, Goal::Store);
        self.masking = None;
        if opened.is_some() {
            self.b.end_if();
        }
    }

    /// Whether a score of an instance may be of no term; none if that is not known to be at the ends of loops.
    fn is_beside_some(&mut self, inside: AlgorithmValue) -> Option<ValueId> {
        match self.program.algorithm.values[inside as usize] {
            // The start of a range comes first: the loop is cut there before it is cut at the end.
            Value::Binary(Binary::And, start, end) => {
                let (start, end) = (self.is_past_some(start)?, self.is_past_some(end)?);
                Some(self.b.binary(Binary::Or, start, end))
            }
            _ => self.is_past_some(inside),
        }
    }

    /// Whether a comparison i < n of indices fails for some element of an instance; none if that is not known to be at
    /// the ends of loops. Where iterations of a loop around differ in i or n by a constant, that loop is cut where the
    /// first comes in which it fails, or does not.
    fn is_past_some(&mut self, condition: AlgorithmValue) -> Option<ValueId> {
        let Value::CompareIndex(_, index, end) = self.program.algorithm.values[condition as usize] else { return None };
        let of = self.scope_of_leaves();
        let domain = &self.stage.domain;
        let extents: Vec<Expr> =
            domain.leaves.iter().map(|leaf| self.facts.normal(&domain.axes[*leaf].extent)).collect();
        let extent = |v: Var| extents.get((v as usize).checked_sub(self.facts.dims())?);
        let [index, end] = [index, end].map(|id| expressions::index(self.program, id, &of));
        let greatest = self.facts.normal(&extreme(&index, true, &extent)?);
        let least = self.facts.normal(&extreme(&end, false, &extent)?);
        if greatest.is_unknown() || least.is_unknown() {
            return None;
        }
        if let Some((at, cut)) = self.first_at_least(&greatest, &least) {
            return Some(self.b.cut_loop(at, cut));
        }
        if let Some((at, cut)) = self.first_at_least(&least, &greatest.add(&Expr::constant(1))) {
            let is_behind = self.b.cut_loop(at, cut);
            return Some(self.b.not(is_behind));
        }
        let (greatest, least) = (self.size(&greatest), self.size(&least));
        Some(self.b.index_compare(Compare::Ge, greatest, least))
    }

    /// The index i of a loop around and its first iteration in which `e` is at least `least`: if `e` is step·i + first,
    /// with first ≥ 0, so that nothing that is computed here is above `least`.
    fn first_at_least(&mut self, e: &Expr, least: &Expr) -> Option<(ValueId, ValueId)> {
        let ty = self.index;
        // The loops around are dimensions here.
        let of_loop = |b: &mut Builder, v: Var| {
            let value = Family::is_size(v).then(|| b.dim(v as u16, ty))?;
            b.is_loop_index(value).then_some((v, value))
        };
        let (var, at) = e.vars().into_iter().find_map(|v| of_loop(self.b, v))?;
        let own = Expr::var(var);
        let own = own.terms().first()?;
        let step = e.terms().iter().find(|term| term.atoms == own.atoms)?.coefficient;
        let first = self.facts.normal(&e.sub(&Expr::var(var).scale(step)));
        if step < 1 || [&first, least].into_iter().any(|e| e.vars().contains(&var)) {
            return None;
        }
        // step·i + first ≥ least just if i ≥ (least − first) / step, rounded up: by a first that is larger where there
        // is room for it, and else without the sum that may be above `least`.
        let less = self.facts.normal(&first.sub(&Expr::constant(step - 1)));
        let has_room = |e: &Expr| self.facts.lower_bound(e).is_some_and(|low| low >= 0);
        let is_rounded = has_room(&less);
        if !is_rounded && !has_room(&first) {
            return None;
        }
        let step = self.b.index_literal(ty, i64::try_from(step).ok()?);
        let [zero, one] = [0, 1].map(|n| self.b.index_literal(ty, n));
        let (least, first) = (self.size(least), self.size(if is_rounded { &less } else { &first }));
        let room = self.b.index_sub(least, first);
        let room = self.b.index_max(room, zero);
        if is_rounded {
            return Some((at, self.b.index_div(room, step)));
        }
        let (some, more) = (self.b.index_max(room, one), self.b.index_min(room, one));
        let whole = self.b.index_sub(some, one);
        let whole = self.b.index_div(whole, step);
        Some((at, self.b.index_add(whole, more)))
    }

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
        let sums = self.online().map_or(0, |online| online.sums.len());
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
                    let [before, now, safe] = online.variables;
                    let taken = self.values.value(self.b, blocks.taken, scope);
                    let as_safe = self.values.value(self.b, online.safe, &scope.with(&[(now, taken)]));
                    let old = self.b.get(*extreme);
                    let scope = scope.with(&[(before, old), (safe, as_safe)]);
                    for (variable, (correction, _)) in factors.iter().zip(&online.sums) {
                        let factor = self.values.value(self.b, *correction, &scope);
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
        let [before, now, safe] = online.variables;
        let firsts = self.accumulators().into_iter().filter_map(|variables| variables.first().copied());
        let firsts: Vec<_> = firsts.collect();
        let olds: Vec<ValueId> = firsts.iter().map(|variable| self.b.get(*variable)).collect();
        self.follows = Some(Follows::Extreme);
        self.loops(point, k, Goal::Accumulate);
        let scope = self.scope(&point.values);
        let mut taken = Vec::new();
        for (variables, old) in self.accumulators().into_iter().zip(olds) {
            let Some((extreme, sums)) = variables.split_first() else { continue };
            let new = self.b.get(*extreme);
            let as_safe = self.values.value(self.b, online.safe, &scope.with(&[(now, new)]));
            let scope = scope.with(&[(before, old), (safe, as_safe)]);
            for (variable, (correction, _)) in sums.iter().zip(&online.sums) {
                let by = self.values.value(self.b, *correction, &scope);
                let sum = self.b.get(*variable);
                let corrected = self.b.binary(Binary::Mul, sum, by);
                self.b.set(*variable, corrected);
            }
            taken.push(as_safe);
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
        let variables = accumulator.variables();
        let Some((extreme, sums)) = variables.split_first() else { return };
        match &self.follows {
            Some(Follows::Sums(taken)) => {
                let Some(as_safe) = taken.get(number).copied() else { return };
                let scope = scope.with(&[(online.variables[2], as_safe)]);
                for (variable, (_, term)) in sums.iter().zip(&online.sums) {
                    let term = self.values.value(self.b, *term, &scope);
                    let sum = self.b.get(*variable);
                    let next = self.b.binary(Binary::Add, sum, term);
                    self.b.set(*variable, next);
                }
            }
            _ => {
                let Some(first) = self.program.algorithm.folds[states.range()].first().copied() else { return };
                let now = self.b.get(*extreme);
                let next = self.values.value(self.b, first.step, &scope.with(&[(first.variable, now)]));
                self.b.set(*extreme, next);
            }
        }
    }
}
