//! A thread that reads what another one holds: the smallest case, for a refusal.
//!
//! **Formula.** The definition, at one point after another: dimensions from the smallest on, and all values of the
//! leaves on which it depends who reads what. Those of other leaves are looked at once, as far as the axes that they
//! make are inside their extents. **Approximation.** After [`SEARCH_STEPS`] nothing is found.

use std::ops::ControlFlow;

use tilewright_sorted::SortedSet;

use super::{Reading, points, untold};
use crate::diag::codes::ThreadWitness;
use crate::domain::{Concrete, Symbolic};
use crate::extent::{Budget, Expr, Search, Var};
use crate::schedule::ownership::{Digit, digits_in_cluster};
use crate::schedule::{Along, Distribution};

/// Steps that one search for a thread may take.
const SEARCH_STEPS: u64 = 50_000;

/// What is evaluated, over the reader's leaves and dimensions.
struct Asked {
    /// Where the element is in the instance.
    roots: Vec<Expr>,
    /// The iterations that compute it.
    leaves: Vec<Expr>,
    /// Who reads it.
    thread: Expr,
    /// Who holds it.
    digits: Vec<Digit>,
}

impl Reading<'_> {
    /// The smallest case in which a thread reads what another one holds.
    pub(super) fn search(&self) -> Option<ThreadWitness> {
        let Self { reader, held, read, .. } = *self;
        let facts = &reader.facts;
        let inner: Vec<Var> = read.inner.iter().map(|axis| axis.var).collect();
        if read.indices.iter().any(|e| e.is_unknown() || e.vars().iter().any(|v| inner.contains(v))) {
            return None;
        }
        let roots: Vec<Expr> = held.coordinates.iter().map(|c| facts.normal(&c.at(&read.indices))).collect();
        let asked = Asked {
            leaves: Symbolic::leaves_of(&held.domain, facts, &roots),
            roots,
            thread: self.reads(),
            digits: digits_in_cluster(held),
        };
        let mut budget = Budget::new(SEARCH_STEPS);
        let (matters, dims) = self.matters(&asked);
        let mut any = false;
        let found = self.search_among(&dims, &matters, &asked, &mut any, &mut budget);
        // What does not matter may have no iteration at its smallest sizes: others are tried then.
        let every: Vec<Var> = (0..facts.dims() as Var).collect();
        let found = if any { found } else { self.search_among(&every, &matters, &asked, &mut any, &mut budget) };
        debug_assert!(!cfg!(test) || found.is_some() || !self.is_there(&every, &asked));
        found
    }

    /// Whether a search through all leaves and dimensions finds something.
    fn is_there(&self, every: &[Var], asked: &Asked) -> bool {
        let all = vec![true; self.reader.domain.leaves.len()];
        self.search_among(every, &all, asked, &mut false, &mut Budget::new(SEARCH_STEPS)).is_some()
    }

    /// The leaves on whose values it depends who reads what, in order: where these have the same values, it is the same
    /// thread and element. And the dimensions on which that depends.
    fn matters(&self, asked: &Asked) -> (Vec<bool>, Vec<Var>) {
        let Self { reader, held, read, symbolic, .. } = *self;
        let dims = reader.facts.dims();
        let mut leaves = vec![false; reader.domain.leaves.len()];
        let mut of_dims = vec![false; dims];
        let most = held.coordinates.iter().map(|along| &along.most);
        let named = read.indices.iter().chain(&asked.roots).chain(&asked.leaves).chain(most).chain([&asked.thread]);
        let mut open: Vec<Var> = named.flat_map(Expr::vars).collect();
        // Axes are inside their extents together, or not: what shares one with what matters, does.
        let axes: Vec<(Vec<Var>, Vec<Var>)> =
            reader.domain.axes.iter().zip(&symbolic.values).map(|(axis, e)| (e.vars(), axis.extent.vars())).collect();
        let is_known = symbolic.values.iter().all(|e| !e.is_unknown());
        if !is_known {
            open.extend((0..leaves.len()).map(|n| (dims + n) as Var));
        }
        let mut seen = SortedSet::new();
        while let Some(v) = open.pop() {
            if !seen.insert(v) {
                continue;
            }
            if let Some(of) = of_dims.get_mut(v as usize) {
                *of = true;
                continue;
            }
            match leaves.get_mut(v as usize - dims) {
                Some(leaf) => *leaf = true,
                None => {
                    let of = symbolic.opaque.iter().filter(|xor| xor.0 == v);
                    open.extend(of.flat_map(|(_, a, b)| a.vars().into_iter().chain(b.vars())));
                }
            }
            let sharing = axes.iter().filter(|(vars, _)| vars.contains(&v));
            open.extend(sharing.flat_map(|(vars, extent)| vars.iter().chain(extent)).copied());
        }
        (leaves, (0..dims).filter(|d| of_dims[*d]).map(|d| d as Var).collect())
    }

    /// The smallest case, for all values of these dimensions. `any` is whether one was looked at.
    fn search_among(
        &self,
        dims: &[Var],
        matters: &[bool],
        asked: &Asked,
        any: &mut bool,
        budget: &mut Budget,
    ) -> Option<ThreadWitness> {
        let Self { reader, held, read, symbolic, .. } = *self;
        let Asked { roots, leaves, thread, digits } = asked;
        // What matters changes fastest.
        let mut order: Vec<usize> = (0..matters.len()).collect();
        order.sort_by_key(|n| matters[*n]);
        let others = matters.iter().filter(|matters| !**matters).count();
        let found = reader.facts.smallest(dims, budget, |dims, budget| {
            let concrete = Concrete::new(&reader.domain, dims)?;
            let extents: Vec<i128> = order.iter().map(|n| concrete.extents[reader.domain.leaves[*n]]).collect();
            let (mut point, mut before, mut looked) = (vec![0; order.len()], vec![0; others], false);
            let visit = |ordered: &[i128], budget: &mut Budget| -> ControlFlow<Option<ThreadWitness>> {
                if !budget.take(1) {
                    return ControlFlow::Break(None);
                }
                if ordered[..others] != before {
                    if looked {
                        // All values of what matters have been looked at.
                        return ControlFlow::Break(None);
                    }
                    before.copy_from_slice(&ordered[..others]);
                }
                order.iter().zip(ordered).for_each(|(n, value)| point[*n] = *value);
                let values = concrete.from_leaves(&point);
                if (0..values.len()).any(|a| !(0..concrete.extents[a]).contains(&values[a])) {
                    return ControlFlow::Continue(());
                }
                (looked, *any) = (true, true);
                let mut all = symbolic.assign(dims, &point);
                // Of threads that nothing tells apart, the last one: where all of them are right, it is.
                all.resize(self.free() as usize, 0);
                all.push(untold(self.plan, reader) - 1);
                all.push(i128::from(reader.distribution.cluster) - 1);
                let at = |e: &Expr| e.eval(&all);
                // An `or` stands for what the instance does not have.
                let has = |(place, along): (&Expr, &Along)| {
                    let most = at(&along.most).unwrap_or(i128::MAX);
                    at(place).is_some_and(|place| (0..most).contains(&place))
                };
                if !roots.iter().zip(&held.coordinates).all(has) {
                    return ControlFlow::Continue(());
                }
                let Some(element) = read.indices.iter().map(at).collect::<Option<Vec<i128>>>() else {
                    return ControlFlow::Continue(());
                };
                let Some(reads) = at(thread) else { return ControlFlow::Continue(()) };
                let mut holds = 0;
                let mut differs = false;
                for digit in digits {
                    let own = digit.path.at(reads);
                    let place = held.domain.leaves.iter().position(|l| *l == digit.leaf);
                    let value = place.and_then(|n| at(&leaves[n]));
                    let Some(value) = (if digit.reduced { Some(own.min(digit.extent - 1)) } else { value }) else {
                        return ControlFlow::Continue(());
                    };
                    holds += digit.low + value * digit.stride;
                    differs |= value != own;
                }
                if !differs {
                    return ControlFlow::Continue(());
                }
                let names = |d: usize| reader.program.dim_name(d as u16).to_owned();
                let dims = dims.iter().enumerate().map(|(d, v)| (names(d), i128::from(*v))).collect();
                let Distribution { cluster, block, .. } = reader.distribution;
                let block = (cluster > 1).then_some(i128::from(block));
                ControlFlow::Break(Some(ThreadWitness { dims, element, reads, holds, block }))
            };
            match points(&extents, budget, visit) {
                ControlFlow::Break(found) => found,
                ControlFlow::Continue(()) => None,
            }
        });
        match found {
            Search::Found(witness) => Some(witness),
            Search::None | Search::GaveUp => None,
        }
    }
}
