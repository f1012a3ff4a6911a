//! Scores that are those of no term beside the range of an element.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Compare, Index, IndexId, Value, ValueId};
use tilewright_kernel::online::push;

use super::{Cut, Env, Found, axes_of, components, reduction, refused};
use crate::online::Build;
use crate::program::Masked;

/// The range of terms depends on the element: scores outside of it are those of no term.
pub(super) struct Mask {
    /// The equation of the scores, and the one with others outside of the range.
    pub scores: u16,
    pub masked: u16,
    /// Where it starts, if that is not alike for all elements, and its end, in the axes of the extreme.
    pub lower: Option<IndexId>,
    pub upper: IndexId,
    /// What lowering knows of it.
    pub known: Masked,
}

impl Cut<'_> {
    /// Makes the equation of scores that are those of no term beside the range.
    pub(super) fn mask(&mut self, scores: u16, (lower, upper): (Option<IndexId>, IndexId)) -> Found<()> {
        let extreme = components(&self.program.algorithm, self.extreme)[0].value;
        let (terms, body) = reduction(&self.program.algorithm, self.extreme);
        let (Value::Reduce { op, .. }, Value::Read { indices, .. }) =
            (self.program.algorithm.values[extreme as usize], self.program.algorithm.values[body as usize])
        else {
            return refused("is of no reduction", self.span);
        };
        let list = self.program.algorithm.index_lists[indices.range()].to_vec();
        let is_term = |index: &IndexId| self.program.algorithm.indices[*index as usize] == Index::Axis(terms);
        let along =
            list.iter().position(is_term).and_then(|n| axes_of(&self.program.algorithm, scores).get(n).copied());
        let (axes, env) = self.like(scores, along);
        // Of the extreme's axes those that the scores are read with.
        let mut of_extreme = Env::new();
        for (index, (_, new)) in list.iter().zip(&env) {
            if let Index::Axis(axis) = self.program.algorithm.indices[*index as usize] {
                of_extreme.push((axis, *new));
            }
        }
        let own = axes_of(&self.program.algorithm, self.extreme).to_vec();
        let Some(term) = of_extreme.iter().find(|e| e.0 == terms).map(|e| e.1) else {
            return refused("has scores that are not those of its terms", self.span);
        };
        if !own.iter().all(|axis| of_extreme.iter().any(|e| e.0 == *axis)) {
            return refused("has a range that depends on an axis that its scores lack", self.span);
        }
        let own = axes_of(&self.program.algorithm, scores).to_vec();
        let mut of_own = Env::new();
        for (index, axis) in list.iter().zip(own) {
            if let Index::Axis(of) = self.program.algorithm.indices[*index as usize] {
                of_own.push((of, self.index(Index::Axis(axis))));
            }
        }
        let own_term = of_own.iter().find(|e| e.0 == terms).map_or(term, |e| e.1);
        let of_scores = self.is_inside(own_term, (lower, upper), &of_own);
        let inside = self.is_inside(term, (lower, upper), &of_extreme);
        let at: Vec<IndexId> = env.iter().map(|e| e.1).collect();
        let score = self.read((scores, 0), &at);
        let ty = self.program.algorithm.types[score as usize];
        let none = Build::new(self.algorithm(), ty, op, None).identity;
        let value = push(self.algorithm(), Value::Select(inside, score, none), ty);
        let name = format!("{}$m", crate::online::name(self.program, scores));
        let masked = self.equation(&axes, vec![(name, value)]);
        let known = Masked { scores, of_scores, of_readers: inside, none };
        self.mask = Some(Mask { scores, masked, lower, upper, known });
        Ok(())
    }

    /// Whether a term is in the range of an element: i < n of indices, for the end, or both of two such.
    fn is_inside(&mut self, term: IndexId, (lower, upper): (Option<IndexId>, IndexId), env: &Env) -> ValueId {
        let end = self.copied_end(upper, env);
        let is_before = push(self.algorithm(), Value::CompareIndex(Compare::Lt, term, end), ElementType::Bool);
        let Some(lower) = lower else { return is_before };
        let (start, one) = (self.copied_end(lower, env), self.index(Index::Literal(1)));
        let after = self.index(Index::Add(term, one));
        let is_behind = push(self.algorithm(), Value::CompareIndex(Compare::Lt, start, after), ElementType::Bool);
        push(self.algorithm(), Value::Binary(Binary::And, is_behind, is_before), ElementType::Bool)
    }
}
