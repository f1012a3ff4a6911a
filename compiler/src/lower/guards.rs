//! What the conditions of a kernel say of each other: which of their values a path cannot have together.
//!
//! **Property.** A path of which [`Guards::excludes`] says that a fact cannot have a value there is taken by no launch.
//! **Formula.** A condition on which all threads agree is a boolean combination of comparisons of index integers, and
//! that a loop runs is its count being at least 1. Their values are translated to [`extent`](crate::extent) expressions
//! over dimensions, and over everything else as it is, with the range that is known of each and with indices of loops
//! below their counts; a path is impossible if no way to make its facts true has a solution. **Approximation.** What
//! depends on data, on bits or on variables says nothing, nor do facts about sizes beyond their ranges, and of a
//! combination that has many ways none is looked at.

use std::cell::RefCell;

use tilewright_sorted::{SortedMap, SortedSet};

use super::terms::{MOST_WAYS, Meaning, Terms, Ways, both};
use crate::extent::{Expr, System, Var};
use crate::kernel_ir::{Access, Engine, Inside, Kernel, Memory, Op, Range, RegionId, ValueId};

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

    /// What is known of some facts, as bits by their numbers.
    const fn only(self, facts: u64) -> Self {
        Self { facts: self.facts & facts, hold: self.hold & facts }
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

/// Facts that are compared with each other, and that are followed: each once for this iteration and once for the one
/// before, at most 64 in all.
const MOST_FACTS: usize = 24;
/// Questions that are answered about combinations of facts; what is asked beyond excludes nothing, and barriers stay.
const MOST_QUESTIONS: usize = 2048;
/// Ways for which it is looked whether they have a solution; of what is beyond, all may have one.
const MOST_LOOKED_AT: usize = 1024;

/// Ways to make something true, each a list of numbers of expressions.
type Numbered = Vec<Vec<u32>>;

/// Expressions that ways consist of, each once; and what is known of their variables.
struct Parts {
    numbers: SortedMap<Expr, u32>,
    all: Vec<Expr>,
    /// Range of each variable: dimensions, then values.
    ranges: Vec<Range>,
    /// For indices of loops and blocks, the last one.
    last: SortedMap<Var, Expr>,
    /// Whether ways that were looked at have no solution.
    looked_at: RefCell<SortedMap<Vec<u32>, bool>>,
}

impl Parts {
    fn numbered(&mut self, ways: &Ways) -> Numbered {
        let mut number = |e: &Expr| {
            let next = self.all.len() as u32;
            let number = *self.numbers.entry(e.clone()).or_insert(next);
            if number == next {
                self.all.push(e.clone());
            }
            number
        };
        ways.iter().map(|way| way.iter().map(&mut number).collect()).collect()
    }

    /// All variables on which an expression depends.
    fn variables(&self, ways: &[Numbered; 2]) -> SortedSet<Var> {
        let (mut found, mut open) = (SortedSet::new(), Vec::new());
        open.extend(ways.iter().flatten().flatten().flat_map(|number| self.all[*number as usize].vars()));
        while let Some(v) = open.pop() {
            if found.insert(v) {
                open.extend(self.last.get(&v).into_iter().flat_map(Expr::vars));
            }
        }
        found
    }

    /// Whether all of these cannot be true together.
    fn is_impossible(&self, all: &[&Numbered]) -> bool {
        let mut combined: Numbered = vec![Vec::new()];
        // Those with few ways first; what is left out could only exclude more.
        let mut all = all.to_vec();
        all.sort_by_key(|ways| ways.len());
        for ways in all {
            if combined.len() * ways.len() <= MOST_WAYS {
                combined = both(&combined, ways);
            }
        }
        combined.into_iter().all(|way| self.has_no_solution(way))
    }

    fn has_no_solution(&self, way: Vec<u32>) -> bool {
        if let Some(answer) = self.looked_at.borrow().get(&way) {
            return *answer;
        }
        if self.looked_at.borrow().len() >= MOST_LOOKED_AT {
            return false;
        }
        let mut system = System::new();
        let mut seen = SortedSet::new();
        let mut open: Vec<Expr> = way.iter().map(|number| self.all[*number as usize].clone()).collect();
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
        let answer = system.is_infeasible();
        self.looked_at.borrow_mut().insert(way, answer);
        answer
    }
}

/// The facts of a kernel.
pub(super) struct Guards {
    /// Those that are worth knowing, in order, with the ways to make each of them false and true.
    followed: Vec<(Fact, [Numbered; 2])>,
    /// For each of these, as bits, those that depend on a variable of it: no other can exclude it.
    related: Vec<u64>,
    parts: Parts,
    /// Truth values of facts of the iteration before that exclude something in this one.
    worth: SortedSet<(Fact, bool)>,
    /// What was asked before.
    asked: RefCell<SortedMap<Known, bool>>,
}

impl Guards {
    /// Facts that decide about shared memory or barriers, and that appear twice or exclude others.
    pub(super) fn new(kernel: &Kernel, blocks: Option<&Expr>) -> Self {
        let mut parts = Parts {
            numbers: SortedMap::new(),
            all: Vec::new(),
            ranges: kernel.signature.dims.iter().map(|dim| dim.range).collect(),
            last: SortedMap::new(),
            looked_at: RefCell::new(SortedMap::new()),
        };
        let ranges = || kernel.values.iter().map(|value| value.facts.range);
        // Once more for the iteration before.
        parts.ranges.extend(ranges().chain(ranges()));
        let blocks = blocks.map(|blocks| blocks.sub(&Expr::constant(1)));
        for block in (0..kernel.values.len()).filter(|n| kernel.values[*n].op == Op::BlockIndex) {
            parts.last.extend(blocks.clone().map(|last| (variable(kernel, ValueId(block as u32)), last)));
        }
        let mut bodies: SortedMap<RegionId, ValueId> = SortedMap::new();
        let mut terms = Terms::new(kernel, Plain(kernel));
        let (mut found, mut twice) = (SortedSet::new(), SortedSet::new());
        for statement in kernel.regions.iter().flat_map(|region| &region.statements) {
            if statement.kind.only_computes() {
                continue;
            }
            let (fact, decides) = match statement.kind.effects().inside {
                Inside::If(branch) => {
                    let sides = std::iter::once(branch.then).chain(branch.otherwise);
                    (Fact::Holds(branch.condition), sides.into_iter().any(|side| matters(kernel, side)))
                }
                Inside::Loop(l) => {
                    let last = terms.expression(l.count).sub(&Expr::constant(1));
                    parts.last.insert(variable(kernel, l.index), last);
                    bodies.insert(l.body, l.index);
                    (Fact::Runs(l.count), kernel.value(l.count).facts.range.low < 1 && matters(kernel, l.body))
                }
                Inside::Nothing | Inside::Elect(_) | Inside::Roles(_) => continue,
            };
            if decides && kernel.value(fact.value()).facts.uniform && !found.insert(fact) {
                twice.insert(fact);
            }
        }
        let found: Vec<(Fact, [Ways; 2])> = found.into_iter().map(|fact| (fact, ways_of(&mut terms, fact))).collect();
        let all: Vec<(Fact, [Numbered; 2])> =
            found.iter().map(|(fact, ways)| (*fact, ways.each_ref().map(|ways| parts.numbered(ways)))).collect();
        let mut related = twice;
        if all.len() <= MOST_FACTS {
            let variables: Vec<SortedSet<Var>> = found.iter().map(|(_, ways)| mentioned(ways)).collect();
            for (n, (a, of_a)) in all.iter().enumerate() {
                for (m, (b, of_b)) in all[..n].iter().enumerate() {
                    let excludes = || of_a.iter().any(|a| of_b.iter().any(|b| parts.is_impossible(&[a, b])));
                    if !variables[n].is_disjoint(&variables[m]) && excludes() {
                        related.extend([*a, *b]);
                    }
                }
            }
        }
        let (mut earlier, mut worth) = (Vec::new(), SortedSet::new());
        for ((fact, ways), (_, now)) in found.iter().zip(&all).take(MOST_FACTS) {
            let index = bodies.get(&kernel.value(fact.value()).region);
            let (Some(index), Some(before)) = (index, fact.before()) else { continue };
            let ways = [0, 1].map(|n| parts.numbered(&earlier_ways(kernel, *index, &ways[n])));
            let is_worth = ways.each_ref().map(|ways| now.iter().any(|now| parts.is_impossible(&[ways, now])));
            if is_worth.contains(&true) {
                related.insert(*fact);
                let held = [false, true].into_iter().zip(is_worth).filter(|(_, is_worth)| *is_worth);
                worth.extend(held.map(|(held, _)| (before, held)));
                earlier.push((before, ways));
            }
        }
        let mut followed: Vec<(Fact, [Numbered; 2])> =
            all.into_iter().filter(|(fact, _)| related.contains(fact)).take(MOST_FACTS).collect();
        followed.extend(earlier);
        followed.sort_by_key(|(fact, _)| *fact);
        let variables: Vec<SortedSet<Var>> = followed.iter().map(|(_, ways)| parts.variables(ways)).collect();
        let meets = |a: &SortedSet<Var>, b: &SortedSet<Var>| u64::from(!a.is_disjoint(b));
        let related = (variables.iter())
            .map(|a| variables.iter().enumerate().fold(0, |all, (n, b)| all | meets(a, b) << n))
            .collect();
        Self { followed, related, parts, worth, asked: RefCell::new(SortedMap::new()) }
    }

    /// The number of a fact that is followed.
    fn number(&self, fact: Fact) -> Option<usize> {
        tilewright_sorted::find(&self.followed, |(fact, _)| fact, &fact).ok()
    }

    /// Whether paths are told apart by a fact.
    pub(super) fn is_followed(&self, fact: Fact) -> bool {
        self.number(fact).is_some()
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
        let all = self.about(known.with(number, value), number);
        if let Some(answer) = self.asked.borrow().get(&all) {
            return *answer;
        }
        if self.asked.borrow().len() >= MOST_QUESTIONS {
            return false;
        }
        let all_ways: Vec<&Numbered> = all.iter().map(|(of, holds)| &self.followed[of].1[usize::from(holds)]).collect();
        let answer = self.parts.is_impossible(&all_ways);
        self.asked.borrow_mut().insert(all, answer);
        answer
    }

    /// What is known that depends on variables of a fact, of facts that do, and so on.
    fn about(&self, known: Known, number: usize) -> Known {
        let mut about = known.only(1 << number);
        loop {
            let reached = about.iter().fold(0, |all, (n, _)| all | self.related[n]);
            let more = known.only(reached | about.facts);
            if more == about {
                return about;
            }
            about = more;
        }
    }
}

/// Whether a region has barriers, or touches what they order.
fn matters(kernel: &Kernel, region: RegionId) -> bool {
    let of_tensor = |access: Access| access.by == Engine::Thread && matches!(access.memory, Memory::Parameter(_));
    kernel.region(region).statements.iter().filter(|statement| !statement.kind.only_computes()).any(|statement| {
        let effects = statement.kind.effects();
        match effects.inside {
            Inside::Roles(_) => true,
            Inside::Loop(_) | Inside::If(_) | Inside::Elect(_) => {
                effects.inside.regions().any(|part| matters(kernel, part))
            }
            Inside::Nothing if effects.accesses().next().is_some() => !effects.accesses().all(of_tensor),
            Inside::Nothing => true,
        }
    })
}

/// Variables that ways mention.
fn mentioned(ways: &[Ways; 2]) -> SortedSet<Var> {
    ways.iter().flatten().flatten().flat_map(Expr::vars).collect()
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
