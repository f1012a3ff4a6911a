//! What the conditions of a kernel say of each other: which of their values a path cannot have together.
//!
//! **Property.** A path of which [`Guards::excludes`] says that a fact cannot have a value there is taken by no launch. **Formula.** A condition on
//! which all threads agree is a boolean combination of comparisons of index integers, and that a loop runs is its count being at least 1. Their values
//! are translated to [`extent`](crate::extent) expressions over dimensions, and over everything else as it is, with the range that is known of
//! each and with indices of loops below their counts; a path is impossible if no way to make its facts true has a solution. **Approximation.** What
//! depends on data, on bits or on variables says nothing, nor do facts about sizes beyond their ranges, and of a combination that has many ways none
//! is looked at.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::terms::{MOST_WAYS, Meaning, Terms, Ways, both};
use crate::extent::{Expr, System, Var};
use crate::kernel_ir::{Kernel, Memory, Op, Range, RegionId, StatementKind, ValueId};

/// Something that decides which way a path takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fact {
    /// A condition holds.
    Holds(ValueId),
    /// A loop with that count has an iteration.
    Runs(ValueId),
    /// A condition held in the iteration before.
    Held(ValueId),
    /// A loop with that count had an iteration in the iteration before.
    Ran(ValueId),
}

impl Fact {
    /// The same in the iteration before; none if that is meant already.
    const fn before(self) -> Option<Self> {
        match self {
            Self::Holds(value) => Some(Self::Held(value)),
            Self::Runs(value) => Some(Self::Ran(value)),
            Self::Held(_) | Self::Ran(_) => None,
        }
    }

    /// The value that decides it.
    pub(super) const fn value(self) -> ValueId {
        match self {
            Self::Holds(value) | Self::Runs(value) | Self::Held(value) | Self::Ran(value) => value,
        }
    }
}

/// What is known on a path: facts by their numbers, and which of them hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Known {
    facts: u64,
    hold: u64,
}

impl Known {
    /// The same with a fact of that number, of which nothing was known.
    const fn with(self, number: usize, holds: bool) -> Self {
        Self { facts: self.facts | 1 << number, hold: self.hold | (holds as u64) << number }
    }

    /// Whether the fact of that number holds, if that is known.
    const fn get(self, number: usize) -> Option<bool> {
        if self.facts >> number & 1 == 1 { Some(self.hold >> number & 1 == 1) } else { None }
    }

    /// The numbers of all facts, and whether they hold.
    fn iter(self) -> impl Iterator<Item = (usize, bool)> {
        let mut left = self.facts;
        std::iter::from_fn(move || {
            let number = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some((number, self.hold >> number & 1 == 1))
        })
    }
}

/// Facts that are compared with each other, and that are followed: each once for this iteration and once for the one before, at most 64 in all.
const MOST_FACTS: usize = 24;
/// Questions that are answered about combinations of facts; what is asked beyond excludes nothing, and barriers stay.
const MOST_QUESTIONS: usize = 2048;

/// The facts of a kernel.
pub(super) struct Guards {
    /// Those that are worth knowing, in order, with the ways to make each of them false and true.
    followed: Vec<(Fact, [Ways; 2])>,
    /// Range of each variable: dimensions, then values.
    ranges: Vec<Range>,
    /// For indices of loops and blocks, the last one.
    last: BTreeMap<Var, Expr>,
    /// Truth values of facts of the iteration before that exclude something in this one.
    worth: BTreeSet<(Fact, bool)>,
    /// What was asked before.
    asked: RefCell<BTreeMap<Known, bool>>,
}

impl Guards {
    /// Facts that decide about shared memory or barriers, and that appear twice or exclude others.
    pub(super) fn new(kernel: &Kernel, blocks: Option<&Expr>) -> Self {
        let mut guards = Self {
            followed: Vec::new(),
            ranges: kernel.signature.dims.iter().map(|dim| dim.range).collect(),
            last: BTreeMap::new(),
            worth: BTreeSet::new(),
            asked: RefCell::new(BTreeMap::new()),
        };
        let ranges = || kernel.values.iter().map(|value| value.facts.range);
        // Once more for the iteration before.
        guards.ranges.extend(ranges().chain(ranges()));
        let blocks = blocks.map(|blocks| blocks.sub(&Expr::constant(1)));
        for block in (0..kernel.values.len()).filter(|n| kernel.values[*n].op == Op::BlockIndex) {
            guards.last.extend(blocks.clone().map(|last| (variable(kernel, ValueId(block as u32)), last)));
        }
        let mut bodies: BTreeMap<RegionId, ValueId> = BTreeMap::new();
        let mut terms = Terms::new(kernel, Plain(kernel));
        let (mut found, mut twice) = (BTreeSet::new(), BTreeSet::new());
        for statement in kernel.regions.iter().flat_map(|region| &region.statements) {
            let (fact, decides) = match &statement.kind {
                StatementKind::If(branch) => {
                    let sides = std::iter::once(branch.then).chain(branch.otherwise);
                    (Fact::Holds(branch.condition), sides.into_iter().any(|side| matters(kernel, side)))
                }
                StatementKind::Loop(l) => {
                    let last = terms.expression(l.count).sub(&Expr::constant(1));
                    guards.last.insert(variable(kernel, l.index), last);
                    bodies.insert(l.body, l.index);
                    (Fact::Runs(l.count), kernel.value(l.count).facts.range.low < 1 && matters(kernel, l.body))
                }
                _ => continue,
            };
            if decides && kernel.value(fact.value()).facts.uniform && !found.insert(fact) {
                twice.insert(fact);
            }
        }
        let all: Vec<(Fact, [Ways; 2])> = found.into_iter().map(|fact| (fact, ways_of(&mut terms, fact))).collect();
        let mut related = twice;
        if all.len() <= MOST_FACTS {
            for (n, (a, of_a)) in all.iter().enumerate() {
                for (b, of_b) in &all[..n] {
                    let excludes = || of_a.iter().any(|a| of_b.iter().any(|b| guards.is_impossible(&[a, b])));
                    if mention_one(of_a, of_b) && excludes() {
                        related.extend([*a, *b]);
                    }
                }
            }
        }
        let mut earlier = Vec::new();
        for (fact, now) in all.iter().take(MOST_FACTS) {
            let index = bodies.get(&kernel.value(fact.value()).region);
            let (Some(index), Some(before)) = (index, fact.before()) else { continue };
            let ways = [0, 1].map(|n| earlier_ways(kernel, *index, &now[n]));
            let excludes = |ways: &Ways| now.iter().any(|now| guards.is_impossible(&[ways, now]));
            let worth = ways.each_ref().map(excludes);
            if worth.contains(&true) {
                related.insert(*fact);
                let held = [false, true].into_iter().zip(worth).filter(|(_, worth)| *worth);
                guards.worth.extend(held.map(|(held, _)| (before, held)));
                earlier.push((before, ways));
            }
        }
        guards.followed = all.into_iter().filter(|(fact, _)| related.contains(fact)).take(MOST_FACTS).collect();
        guards.followed.extend(earlier);
        guards.followed.sort_by_key(|(fact, _)| *fact);
        guards
    }

    /// The number of a fact that is followed.
    fn number(&self, fact: Fact) -> Option<usize> {
        self.followed.binary_search_by_key(&fact, |(fact, _)| *fact).ok()
    }

    /// What a fact of an iteration is in the next one; none if that says nothing.
    pub(super) fn before(&self, fact: Fact) -> Option<Fact> {
        fact.before().filter(|before| self.number(*before).is_some())
    }

    /// Whether that value of a fact can exclude something.
    fn is_worth(&self, fact: Fact, holds: bool) -> bool {
        match fact {
            Fact::Holds(_) | Fact::Runs(_) => true,
            Fact::Held(_) | Fact::Ran(_) => self.worth.contains(&(fact, holds)),
        }
    }

    /// What is known, with a fact if it is worth knowing.
    pub(super) fn with(&self, known: Known, fact: Fact, holds: bool) -> Known {
        self.number(fact).map_or(known, |number| known.with(number, holds))
    }

    /// What is known, of each fact as another one or not at all; without what excludes nothing.
    pub(super) fn known_as(&self, known: Known, how: impl Fn(Fact) -> Option<Fact>) -> Known {
        known.iter().fold(Known::default(), |all, (number, holds)| match how(self.followed[number].0) {
            Some(fact) if self.is_worth(fact, holds) => self.with(all, fact, holds),
            _ => all,
        })
    }

    /// Whether no path on which this is known has that value of a fact.
    pub(super) fn excludes(&self, known: Known, fact: Fact, value: bool) -> bool {
        let Some(number) = self.number(fact) else { return false };
        if let Some(before) = known.get(number) {
            return before != value;
        }
        let all = known.with(number, value);
        if let Some(answer) = self.asked.borrow().get(&all) {
            return *answer;
        }
        if self.asked.borrow().len() >= MOST_QUESTIONS {
            return false;
        }
        let all_ways: Vec<&Ways> = all.iter().map(|(of, holds)| &self.followed[of].1[usize::from(holds)]).collect();
        let answer = self.is_impossible(&all_ways);
        self.asked.borrow_mut().insert(all, answer);
        answer
    }

    /// Whether all of these cannot be true together.
    fn is_impossible(&self, all: &[&Ways]) -> bool {
        let mut combined: Ways = vec![Vec::new()];
        // Those with few ways first; what is left out could only exclude more.
        let mut all = all.to_vec();
        all.sort_by_key(|ways| ways.len());
        for ways in all {
            if combined.len() * ways.len() <= MOST_WAYS {
                combined = both(&combined, ways);
            }
        }
        combined.iter().all(|way| self.has_no_solution(way))
    }

    fn has_no_solution(&self, way: &[Expr]) -> bool {
        let mut system = System::new();
        let mut seen = BTreeSet::new();
        let mut open: Vec<Expr> = way.to_vec();
        while let Some(e) = open.pop() {
            for v in e.vars().into_iter().filter(|v| seen.insert(*v)).collect::<Vec<_>>() {
                let range = self.ranges.get(v as usize).copied().unwrap_or(Range::ALL);
                if range.low > i64::MIN {
                    system.at_least(v, range.low.into());
                }
                if range.high < i64::MAX {
                    system.require(&Expr::constant(range.high.into()).sub(&Expr::var(v)));
                }
                open.extend(self.last.get(&v).map(|last| last.sub(&Expr::var(v))));
            }
            system.require(&e);
        }
        system.is_infeasible()
    }
}

/// Whether a region has barriers, or touches what they order.
fn matters(kernel: &Kernel, region: RegionId) -> bool {
    kernel.region(region).statements.iter().any(|statement| match &statement.kind {
        StatementKind::Loop(l) => matters(kernel, l.body),
        StatementKind::If(branch) => {
            matters(kernel, branch.then) || branch.otherwise.is_some_and(|side| matters(kernel, side))
        }
        StatementKind::Elect(part) => matters(kernel, *part),
        StatementKind::Load(load) => !matches!(load.memory, Memory::Parameter(_)),
        StatementKind::Store(store) => !matches!(store.memory, Memory::Parameter(_)),
        StatementKind::Let(_) | StatementKind::Declare(..) | StatementKind::Set(..) | StatementKind::Shuffle { .. } => {
            false
        }
        _ => true,
    })
}

/// Whether a variable is in both.
fn mention_one(a: &[Ways; 2], b: &[Ways; 2]) -> bool {
    let of = |ways: &[Ways; 2]| -> BTreeSet<Var> { ways.iter().flatten().flatten().flat_map(Expr::vars).collect() };
    of(a).intersection(&of(b)).next().is_some()
}

/// The number of a value's variable.
fn variable(kernel: &Kernel, value: ValueId) -> Var {
    (kernel.signature.dims.len() + value.index()) as Var
}

/// Ways of an iteration's fact in terms of the next iteration of the loop with that index.
fn earlier_ways(kernel: &Kernel, index: ValueId, ways: &Ways) -> Ways {
    let (dims, body) = (kernel.signature.dims.len() as Var, kernel.value(index).region);
    let before = Expr::var(variable(kernel, index)).sub(&Expr::constant(1));
    let map = |v: Var| {
        let value = kernel.values.get(v.checked_sub(dims)? as usize)?;
        match v == variable(kernel, index) {
            true => Some(before.clone()),
            // Another value, of which no more is known than its range.
            false => (value.region == body).then(|| Expr::var(v + kernel.values.len() as Var)),
        }
    };
    let there_is_one = |way: &Vec<Expr>| way.iter().map(|e| e.substitute(&map)).chain([before.clone()]).collect();
    ways.iter().map(there_is_one).collect()
}

/// Values over dimensions and what is opaque.
struct Plain<'a>(&'a Kernel);

impl Meaning for Plain<'_> {
    fn opaque(&mut self, value: ValueId) -> Expr {
        Expr::var(variable(self.0, value))
    }

    fn divided(&mut self, of: &Expr, by: &Expr) -> [Expr; 2] {
        [of.floor_div(by), of.modulo(by)]
    }
}

/// The ways to make a fact false and true.
fn ways_of<M: Meaning>(terms: &mut Terms<'_, M>, fact: Fact) -> [Ways; 2] {
    [false, true].map(|yes| match fact {
        Fact::Holds(condition) | Fact::Held(condition) => terms.ways(condition, yes),
        Fact::Runs(count) | Fact::Ran(count) => {
            let count = terms.expression(count);
            vec![vec![if yes { count.sub(&Expr::constant(1)) } else { count.scale(-1) }]]
        }
    })
}

#[cfg(test)]
#[path = "guards_tests.rs"]
mod tests;
