//! The search for the smallest admissible dimensions with some property: dimensions by their sum, then
//! lexicographically. Dimensions that facts tie to others linearly, as `M == 4 * N`, count in the sum, though not as
//! more than [`HEAVIEST`] times another one: or all others would be counted up before that one grows. What facts solve
//! in other ways does not count.

use super::expr::Atom;
use super::facts::Facts;
use crate::work::{self, Step};

/// How much work a search may do, in elementary steps; shared by nested searches.
#[derive(Clone, Debug)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// A budget of `steps`.
    pub fn new(steps: u64) -> Self {
        Self { left: steps }
    }

    /// Takes `steps`; false, for good, once the budget is exceeded.
    pub fn take(&mut self, steps: u64) -> bool {
        work::count(Step::Search, steps);
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                true
            }
            None => {
                self.left = 0;
                false
            }
        }
    }

    /// What is left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Whether nothing is left.
    pub fn is_exhausted(&self) -> bool {
        self.left == 0
    }
}

/// What one more of a dimension adds to the sum at most.
const HEAVIEST: i128 = 8;

/// A dimension that the search chooses: an arithmetic progression of values.
#[derive(Clone, Copy, Debug)]
struct Choice {
    dim: usize,
    first: i128,
    step: i128,
    last: Option<i128>,
    /// What one more of it adds to the sum of all dimensions: itself, and those that are so many times it.
    weight: i128,
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search<W> {
    /// The first hit, which is the smallest.
    Found(W),
    /// There are finitely many admissible sizes, and none is a hit.
    None,
    /// The budget ended before a hit.
    GaveUp,
}

impl Facts {
    /// The first admissible assignment of dimensions, by sum and then lexicographically, for which `test` gives
    /// something.
    ///
    /// `relevant` names the dimensions that the property depends on; the others take their smallest admissible values
    /// unless a fact ties them to a relevant one. `test` gets one value per dimension.
    pub fn smallest<W>(
        &self,
        relevant: &[u32],
        budget: &mut Budget,
        mut test: impl FnMut(&[i64], &mut Budget) -> Option<W>,
    ) -> Search<W> {
        let count = self.dims();
        let mut free = vec![false; count];
        for v in relevant {
            if let Some(slot) = free.get_mut(*v as usize) {
                *slot = true;
            }
        }
        // Dimensions tied by a fact move together; all of them, so that the fixed ones are admissible too.
        for tie in self.ties() {
            for d in tie {
                free[usize::from(d)] = true;
            }
        }
        let mut dims = vec![0_i64; count];
        let mut lists: Vec<Choice> = Vec::new();
        for v in 0..count {
            if self.solution(v).is_some() {
                continue;
            }
            let (first, step, last) = self.progression(v);
            let Ok(value) = i64::try_from(first) else { return Search::GaveUp };
            dims[v] = value;
            if free[v] {
                lists.push(Choice { dim: v, first, step, last, weight: self.weight(v) });
            }
        }
        let least: i128 = lists.iter().map(|l| l.first * l.weight).sum();
        let most: Option<i128> = lists.iter().map(|l| Some(l.last? * l.weight)).sum();
        let step = lists.iter().map(|l| l.step * l.weight).fold(0, super::expr::gcd).max(1);
        let mut total = least;
        loop {
            if most.is_some_and(|most| total > most) {
                return Search::None;
            }
            if let Some(found) = self.visit(&lists, total, &mut dims, budget, &mut test) {
                return Search::Found(found);
            }
            if !budget.take(1) || budget.is_exhausted() {
                return Search::GaveUp;
            }
            total += step;
        }
    }

    /// What one more of a dimension that is not solved adds to the sum of all of them.
    fn weight(&self, v: usize) -> i128 {
        let times = |solved: usize| {
            let terms = self.solution(solved)?.terms();
            let is_linear = terms.iter().all(|t| matches!(t.atoms[..], [] | [Atom::Var(_)]));
            let own = terms.iter().filter(|t| matches!(t.atoms[..], [Atom::Var(w)] if w as usize == v));
            is_linear.then(|| own.map(|t| t.coefficient).sum::<i128>())
        };
        (1 + (0..self.dims()).filter_map(times).sum::<i128>()).clamp(1, HEAVIEST)
    }

    /// Tries every assignment of `lists` with the given sum.
    fn visit<W>(
        &self,
        lists: &[Choice],
        total: i128,
        dims: &mut Vec<i64>,
        budget: &mut Budget,
        test: &mut impl FnMut(&[i64], &mut Budget) -> Option<W>,
    ) -> Option<W> {
        if !budget.take(1) {
            return None;
        }
        let Some((&Choice { dim, first, step, last, weight }, rest)) = lists.split_first() else {
            return (total == 0).then(|| self.try_one(dims, budget, test)).flatten();
        };
        let rest_least: i128 = rest.iter().map(|l| l.first * l.weight).sum();
        if rest.is_empty() {
            // The last one takes what is left, if that is a member.
            let value = total / weight;
            let is_whole = total % weight == 0 && (value - first) % step == 0;
            if !is_whole || value < first || last.is_some_and(|l| value > l) {
                return None;
            }
            dims[dim] = i64::try_from(value).ok()?;
            return self.try_one(dims, budget, test);
        }
        let mut value = first;
        while value * weight + rest_least <= total && last.is_none_or(|l| value <= l) {
            dims[dim] = i64::try_from(value).ok()?;
            if let Some(found) = self.visit(rest, total - value * weight, dims, budget, test) {
                return Some(found);
            }
            if budget.is_exhausted() {
                return None;
            }
            value += step;
        }
        None
    }

    /// Fills in the solved dimensions, checks every fact, and asks `test`.
    fn try_one<W>(
        &self,
        dims: &[i64],
        budget: &mut Budget,
        test: &mut impl FnMut(&[i64], &mut Budget) -> Option<W>,
    ) -> Option<W> {
        let mut dims = dims.to_vec();
        let values: Vec<i128> = dims.iter().map(|d| i128::from(*d)).collect();
        for v in 0..self.dims() {
            if let Some(e) = self.solution(v) {
                dims[v] = e.eval(&values).and_then(|x| i64::try_from(x).ok())?;
            }
        }
        if !budget.take(4) || !self.admits(&dims) {
            return None;
        }
        test(&dims, budget)
    }
}

#[cfg(test)]
mod tests {
    use super::super::expr::Expr;
    use super::super::facts::Contradiction;
    use super::*;
    use tilewright_kernel::info::{Dim, DimKind};
    use tilewright_kernel::size::{Constraint, Relation, Size, SizeOp};

    fn dims(names: &[&'static str]) -> Vec<Dim> {
        names.iter().map(|n| Dim { name: (*n).into(), kind: DimKind::Size }).collect()
    }

    fn fact(lhs: &Size, relation: Relation, rhs: &Size) -> Constraint {
        Constraint { lhs: lhs.clone(), relation, rhs: rhs.clone(), text: "".into() }
    }

    fn multiple(d: u16, m: i64) -> Constraint {
        let lhs = Size::binary(SizeOp::Mod, &Size::dim(d), &Size::constant(m));
        fact(&lhs, Relation::Eq, &Size::constant(0))
    }

    #[test]
    fn congruences_are_merged() {
        let facts = Facts::new(&dims(&["N"]), &[multiple(0, 8), multiple(0, 6)]).unwrap();
        assert!(facts.proves_multiple(&Expr::var(0), 24));
        assert!(!facts.proves_multiple(&Expr::var(0), 48));
        assert!(facts.proves_multiple(&Expr::var(0).floor_div(&Expr::constant(4)), 6));
        let odd = fact(&Size::binary(SizeOp::Mod, &Size::dim(0), &Size::constant(4)), Relation::Eq, &Size::constant(1));
        assert_eq!(Facts::new(&dims(&["N"]), &[multiple(0, 8), odd]).unwrap_err(), Contradiction { fact: 1 });
    }

    #[test]
    fn equalities_are_solved() {
        let twice = Size::binary(SizeOp::Mul, &Size::constant(2), &Size::dim(1));
        let facts =
            Facts::new(&dims(&["P", "Q"]), &[multiple(1, 3), fact(&Size::dim(0), Relation::Eq, &twice)]).unwrap();
        assert!(facts.proves_multiple(&Expr::var(0), 6));
        let hit = facts.smallest(&[0], &mut Budget::new(1000), |d, _| (d[0] > 6).then(|| d.to_vec()));
        assert_eq!(hit, Search::Found(vec![12, 6]));
    }

    /// Proofs of divisibility and of signs agree with enumeration: never a false proof, and most true ones are found.
    #[test]
    fn proofs_agree_with_enumeration() {
        let mut state = 3_u64;
        let mut random = move |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let (mut proved, mut truths) = (0, 0);
        for _ in 0..400 {
            let (m, k) = (random(6) as i64 + 1, random(4) as i64 + 1);
            let cap = random(40) as i64 + 30;
            let constraints = [
                multiple(0, m),
                multiple(1, k),
                fact(&Size::dim(0), Relation::Le, &Size::constant(cap)),
                fact(&Size::dim(1), Relation::Le, &Size::dim(0)),
            ];
            let Ok(facts) = Facts::new(&dims(&["N", "M"]), &constraints) else { continue };
            let (n, mm) = (Expr::var(0), Expr::var(1));
            let d = i128::from(random(5)) + 1;
            let e = n
                .scale(i128::from(random(4)))
                .add(&n.ceil_div(&Expr::constant(d)).scale(i128::from(random(3)) * 2))
                .add(&mm.mul(&n).scale(i128::from(random(2))))
                .add(&mm.scale(i128::from(random(5)) - 2));
            let by = i128::from(random(6)) + 1;
            let all: Vec<i128> = (1..=cap)
                .flat_map(|a| (1..=a).map(move |b| [a, b]))
                .filter(|d| facts.admits(d))
                .map(|d| e.eval(&[i128::from(d[0]), i128::from(d[1])]).unwrap())
                .collect();
            let (multiple, sign) = (all.iter().all(|v| v % by == 0), all.iter().all(|v| *v >= 0));
            assert!(!facts.proves_multiple(&e, by) || multiple, "{e:?} % {by}");
            assert!(!facts.proves_nonnegative(&e) || sign, "{e:?} >= 0");
            if let Some(bound) = facts.upper_bound(&e) {
                assert!(all.iter().all(|v| *v <= bound), "{e:?} <= {bound}");
            }
            if let Some(bound) = facts.lower_bound(&e) {
                assert!(all.iter().all(|v| *v >= bound), "{e:?} >= {bound}");
            }
            truths += usize::from(multiple) + usize::from(sign);
            proved += usize::from(facts.proves_multiple(&e, by)) + usize::from(facts.proves_nonnegative(&e));
        }
        assert!(proved * 10 > truths * 8, "{proved} of {truths} true obligations proved");
    }

    #[test]
    fn the_first_hit_is_the_smallest() {
        let facts = Facts::new(&dims(&["N", "M"]), &[multiple(1, 2)]).unwrap();
        let hit = facts.smallest(&[0, 1], &mut Budget::new(10_000), |d, _| (d[0] * d[1] >= 12).then(|| d.to_vec()));
        assert_eq!(hit, Search::Found(vec![3, 4]), "no pair with a smaller sum reaches 12");
        // The dimension that a fact solves counts, too: with N = 2 it would be 8.
        let four = Size::binary(SizeOp::Mul, &Size::constant(4), &Size::dim(2));
        let facts = Facts::new(&dims(&["M", "K", "N"]), &[fact(&Size::dim(0), Relation::Eq, &four)]).unwrap();
        let hit = facts.smallest(&[1, 2], &mut Budget::new(1000), |d, _| (d[1] * d[2] >= 2).then(|| d.to_vec()));
        assert_eq!(hit, Search::Found(vec![4, 2, 1]));
    }
}
