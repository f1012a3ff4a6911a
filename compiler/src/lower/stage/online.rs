//! Sums that follow an extreme, block by block of terms: the loops inside of the block's run once for the extreme; then
//! sums are corrected, once for all terms so far; then the loops run again for the terms. See `online`.

use tilewright_kernel::algorithm::{Binary, Value};

use super::{Goal, Nest, Point};
use crate::kernel_ir::ValueId;
use crate::lower::value::{Accumulator, Scope};
use crate::program::Online;

/// What is done with the terms of a block.
pub(super) enum Follows {
    /// The extreme takes them in.
    Extreme,
    /// So do the sums; of each accumulator what terms take for the extreme.
    Sums(Vec<ValueId>),
}

impl Nest<'_, '_> {
    /// The op of this stage.
    fn online(&self) -> Option<&Online> {
        self.stage.online?;
        self.program.online.iter().find(|online| usize::from(online.equation) == self.stage.equation)
    }

    /// Whether what is inside `k` loops is a block of terms.
    pub(super) fn begins_block(&self, k: usize) -> bool {
        let around = k.checked_sub(1).and_then(|k| self.sequence.get(k)).copied();
        self.follows.is_none() && around.is_some() && around == self.stage.online && !self.is_slice()
    }

    /// Takes in a block of terms.
    pub(super) fn block_of_terms(&mut self, point: &Point, k: usize) {
        let Some(online) = self.online().cloned() else { return };
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
