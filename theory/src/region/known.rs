//! What is known where a region is needed: facts about dimensions, ranges of the loops outside, and that something is
//! asked for at all.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use tilewright_sorted::SortedMap;

use super::Loops;
use crate::extent::{Atom, Expr, Facts, System, Var, bound, gcd};

/// Most eliminations for one region; what is asked for after them counts as not proved, and regions stay sound.
const PROOFS: u32 = 400;
/// How often one question is rewritten.
const REWRITES: u32 = 4;
/// Most points of the loops outside that are looked at for one proof.
const POINTS: i128 = 256;
/// Most points of the loops outside over which the largest extent is looked for.
const BOUND_POINTS: i128 = 4096;

/// Proofs about expressions over dimensions and loops outside.
#[derive(Clone, Debug)]
pub(super) struct Known<'a> {
    /// Facts about dimensions.
    pub facts: &'a Facts,
    outside: Vec<(Var, Expr)>,
    inside: Vec<(Var, Expr)>,
    /// At least 0 wherever the loops outside come to the place.
    reached: Vec<Rc<Row>>,
    /// At least 0 wherever something is asked for.
    rows: Vec<Rc<Row>>,
    proofs: Cell<u32>,
    /// The number of `rows` among the lists of `shared`, once it was looked for.
    list: Cell<Option<usize>>,
    /// What forks find out for each other.
    shared: Rc<Shared>,
}

/// What is at least 0.
#[derive(Debug)]
struct Row {
    e: Expr,
    vars: Vec<Var>,
    /// As questions are put to eliminations.
    with_residues: OnceCell<Expr>,
}

impl Row {
    fn new(e: Expr) -> Rc<Self> {
        Rc::new(Self { vars: e.vars(), e, with_residues: OnceCell::new() })
    }
}

/// What does not depend on who asks.
#[derive(Debug, Default)]
struct Shared {
    /// What is known of the dimensions, to which a question is added.
    system: OnceCell<System>,
    /// That each loop outside ends, as questions are put to eliminations.
    ends: Vec<OnceCell<Expr>>,
    answers: RefCell<Answers>,
}

/// Answers to questions that are asked again and again, by what was known when they were asked: what is assumed later
/// makes none of them wrong.
#[derive(Debug)]
struct Answers {
    /// Each list of rows so far, with its number.
    lists: SortedMap<Vec<Expr>, usize>,
    /// For each list, questions with the answer and the eliminations that it took.
    found: Vec<SortedMap<Expr, (bool, u32)>>,
}

/// The list without rows.
const NO_ROWS: usize = 0;

impl Default for Answers {
    fn default() -> Self {
        Self { lists: SortedMap::from([(Vec::new(), NO_ROWS)]), found: vec![SortedMap::new()] }
    }
}

impl Answers {
    /// The number of a list.
    fn list(&mut self, rows: &[Expr]) -> usize {
        if let Some(number) = self.lists.get(rows) {
            return *number;
        }
        self.lists.insert(rows.to_vec(), self.found.len());
        self.found.push(SortedMap::new());
        self.found.len() - 1
    }
}

impl<'a> Known<'a> {
    /// What is known before anything is asked for.
    pub fn new(loops: &Loops, facts: &'a Facts) -> Self {
        let normal = |l: &(Var, Expr)| (l.0, facts.normal(&l.1));
        Self {
            facts,
            outside: loops.outside.iter().map(normal).collect(),
            inside: loops.inside.iter().map(normal).collect(),
            reached: loops.reached.iter().map(|e| facts.normal(e)).filter(|e| !e.is_unknown()).map(Row::new).collect(),
            rows: Vec::new(),
            proofs: Cell::new(PROOFS),
            list: Cell::new(None),
            shared: Rc::new(Shared { ends: vec![OnceCell::new(); loops.outside.len()], ..Shared::default() }),
        }
    }

    /// The same with other things asked for.
    pub fn fork(&self) -> Self {
        Self { rows: Vec::new(), list: Cell::new(None), ..self.clone() }
    }

    /// Adds `e ≥ 0`.
    pub fn assume(&mut self, e: Expr) {
        if e.as_constant().is_none() && !e.is_unknown() && !self.rows.iter().any(|row| row.e == e) {
            self.rows.push(Row::new(e));
            self.list.set(None);
        }
    }

    /// Keeps what another one knows, too; if this is the first one, all that it knows.
    pub fn keep_common(&mut self, other: Self, first: bool) {
        if first {
            self.rows = other.rows;
        } else {
            self.rows.retain(|row| other.rows.iter().any(|own| own.e == row.e));
        }
        self.list.set(None);
    }

    /// Rows of which none follows from the others.
    pub fn independent(&self, rows: &[Expr]) -> Vec<Expr> {
        let mut kept = rows.to_vec();
        let mut at = 0;
        while at < kept.len() {
            let row = kept.remove(at);
            let mut others = self.fork();
            kept.iter().for_each(|row| others.assume(row.clone()));
            if !others.proves(&row) {
                kept.insert(at, row);
                at += 1;
            }
        }
        kept
    }

    /// The number of iterations of a loop inside.
    pub fn inside(&self, var: Var) -> Option<&Expr> {
        self.inside.iter().find(|l| l.0 == var).map(|l| &l.1)
    }

    /// The loops inside.
    pub fn loops_inside(&self) -> impl Iterator<Item = Var> {
        self.inside.iter().map(|l| l.0)
    }

    /// Whether an expression mentions a loop inside.
    pub fn varies(&self, e: &Expr) -> bool {
        e.mentions(&|v| self.inside(v).is_some())
    }

    /// A variable that is no dimension and no loop.
    pub fn stranger(&self, e: &Expr) -> Option<Var> {
        let is_loop = |v: Var| self.inside(v).is_some() || self.outside.iter().any(|l| l.0 == v);
        e.vars().into_iter().find(|v| *v as usize >= self.facts.dims() && !is_loop(*v))
    }

    /// Whether `e ≥ 0` provably holds wherever something is asked for.
    pub fn proves(&self, e: &Expr) -> bool {
        self.decide(e, true, REWRITES)
    }

    /// Whether `e ≥ 0` provably holds for all values of the loops outside.
    pub fn proves_always(&self, e: &Expr) -> bool {
        self.decide(e, false, REWRITES)
    }

    fn decide(&self, e: &Expr, with_rows: bool, depth: u32) -> bool {
        if e.is_unknown() {
            return false;
        }
        if let Some(c) = e.as_constant() {
            return c >= 0;
        }
        // What is rewritten has fewer rewrites left, and is another question.
        if depth < REWRITES {
            return self.search(e, with_rows, depth);
        }
        let list = if with_rows { self.list() } else { NO_ROWS };
        let left = self.proofs.get();
        let known = self.shared.answers.borrow().found[list].get(e).copied();
        if let Some((answer, eliminations)) = known
            && let Some(left) = left.checked_sub(eliminations)
        {
            self.proofs.set(left);
            return answer;
        }
        let answer = self.search(e, with_rows, depth);
        // With none left, one may have been refused.
        if let after @ 1.. = self.proofs.get() {
            self.shared.answers.borrow_mut().found[list].insert(e.clone(), (answer, left - after));
        }
        answer
    }

    /// The number of the rows that are known.
    fn list(&self) -> usize {
        let number = self.list.get().unwrap_or_else(|| {
            let rows: Vec<Expr> = self.rows.iter().map(|row| row.e.clone()).collect();
            self.shared.answers.borrow_mut().list(&rows)
        });
        self.list.set(Some(number));
        number
    }

    /// Looks for a proof.
    fn search(&self, e: &Expr, with_rows: bool, depth: u32) -> bool {
        let has = |rows: &[Rc<Row>]| rows.iter().any(|row| row.e == *e);
        if has(&self.reached) || with_rows && has(&self.rows) || self.bound(e, false).is_some_and(|least| least >= 0) {
            return true;
        }
        if let Some(holds) = self.everywhere(e, with_rows) {
            return holds;
        }
        let Some(left) = self.proofs.get().checked_sub(1) else { return false };
        self.proofs.set(left);
        // Rewriting may come back to where it was.
        let rewritten = self.without_factor(e).into_iter().chain(self.without_quotient(e)).filter(|_| depth > 0);
        for other in rewritten {
            if self.decide(&other, with_rows, depth - 1) {
                return true;
            }
        }
        let mut vars = e.vars();
        let near = |row: &&Row| row.vars.iter().any(|v| vars.contains(v));
        let rows: Vec<&Row> = self.known_rows(with_rows).filter(near).collect();
        vars.extend(rows.iter().flat_map(|row| &row.vars));
        let mut system = self.shared.system.get_or_init(|| self.facts.residue_system()).clone();
        for (at, (var, extent)) in self.outside.iter().enumerate().filter(|(_, l)| vars.contains(&l.0)) {
            system.at_least(*var, 0);
            let end = || self.facts.with_residues(&extent.sub(&Expr::constant(1)).sub(&Expr::var(*var)));
            system.require(self.shared.ends[at].get_or_init(end));
        }
        for row in rows {
            system.require(row.with_residues.get_or_init(|| self.facts.with_residues(&row.e)));
        }
        system.require(&self.facts.with_residues(&e.scale(-1).sub(&Expr::constant(1))));
        system.is_infeasible()
    }

    /// For e = a·r + c with a ≥ 1 and a literal c, what implies e ≥ 0 if it is not negative: r, and r + c for a
    /// negative c.
    fn without_factor(&self, e: &Expr) -> Option<Expr> {
        let constant = Expr::constant(e.constant_term());
        let product = e.sub(&constant);
        let (first, rest) = product.terms().split_first()?;
        let shared = |a: &&Atom| {
            rest.iter().all(|t| t.atoms.contains(a))
                && self.bound(&Expr::from_atoms(std::slice::from_ref(a)), false).is_some_and(|least| least >= 1)
        };
        let atom = Expr::from_atoms(std::slice::from_ref(first.atoms.iter().find(shared)?));
        let quotient = product.floor_div(&atom);
        let left = if e.constant_term() < 0 { quotient.add(&constant) } else { quotient.clone() };
        (quotient.mul(&atom) == product).then_some(left)
    }

    /// k − ⌊x / d⌋ ≥ 0 as d·(k + 1) − 1 − x ≥ 0, and ⌊x / d⌋ − k ≥ 0 as x − d·k ≥ 0, for a divisor that is known at
    /// launch only.
    fn without_quotient(&self, e: &Expr) -> Option<Expr> {
        e.terms().iter().find_map(|term| {
            let [Atom::Quotient { of, by }] = &term.atoms[..] else { return None };
            if term.coefficient.abs() != 1 || by.as_constant().is_some() {
                return None;
            }
            let rest = e.sub(&Expr::from_atoms(&term.atoms).scale(term.coefficient));
            Some(if term.coefficient < 0 {
                by.mul(&rest.add(&Expr::constant(1))).sub(&Expr::constant(1)).sub(of)
            } else {
                of.add(&by.mul(&rest))
            })
        })
    }

    /// A literal bound by the ranges of the variables alone.
    fn bound(&self, e: &Expr, upper: bool) -> Option<i128> {
        bound(e, upper, &|v, upper| match self.outside.iter().chain(&self.inside).find(|l| l.0 == v) {
            Some(_) if !upper => Some(0),
            Some((_, extent)) => Some(self.bound(extent, true)? - 1),
            None if upper => self.facts.upper_bound(&Expr::var(v)),
            None => self.facts.lower_bound(&Expr::var(v)),
        })
    }

    /// Loops outside that occur, with literal extents, if there is nothing else and they have few points.
    fn literal_loops(&self, vars: &[Var], most: i128) -> Option<Vec<(Var, i128)>> {
        let mut points = 1_i128;
        vars.iter()
            .map(|v| {
                let extent = self.outside.iter().find(|l| l.0 == *v)?.1.as_constant()?;
                points = points.checked_mul(extent.max(0)).filter(|p| *p <= most)?;
                Some((*v, extent))
            })
            .collect()
    }

    /// The value of an expression that has the same everywhere where something is asked for.
    fn constant(&self, e: &Expr) -> Option<i128> {
        let loops = self.literal_loops(&e.vars(), POINTS)?;
        let rows = self.rows_within(&loops, true);
        let (mut first, mut same) = (None, true);
        each_point(&loops, |values| {
            if rows.iter().all(|row| row.e.eval(values).is_none_or(|v| v >= 0)) {
                let value = e.eval(values);
                same &= value.is_some() && first.is_none_or(|first| Some(first) == value);
                first = first.or(value);
            }
            same
        });
        first.filter(|_| same)
    }

    /// What is at least 0: wherever the place is reached, or only where something is asked for, too.
    fn known_rows(&self, with_rows: bool) -> impl Iterator<Item = &Row> {
        let rows = if with_rows { &self.rows[..] } else { &[] };
        self.reached.iter().chain(rows).map(|row| &**row)
    }

    /// What is known of these loops alone.
    fn rows_within(&self, loops: &[(Var, i128)], with_rows: bool) -> Vec<&Row> {
        let is_within = |row: &&Row| row.vars.iter().all(|v| loops.iter().any(|l| l.0 == *v));
        self.known_rows(with_rows).filter(is_within).collect()
    }

    /// Whether e ≥ 0 at all points of the loops that it mentions, where the rows over them hold; none if there are too
    /// many.
    fn everywhere(&self, e: &Expr, with_rows: bool) -> Option<bool> {
        let loops = self.literal_loops(&e.vars(), POINTS)?;
        let rows = self.rows_within(&loops, with_rows);
        let mut holds = true;
        each_point(&loops, |values| {
            let asked = rows.iter().all(|row| row.e.eval(values).is_none_or(|v| v >= 0));
            holds &= !asked || e.eval(values).is_some_and(|v| v >= 0);
            holds
        });
        Some(holds)
    }

    /// The largest value of `count` where something is asked for, or `most`, which is at least that, or unknown: an
    /// expression over dimensions.
    pub fn largest(&self, count: &Expr, most: &Expr) -> Expr {
        let count = self.facts.normal(count);
        let vars = count.vars();
        if !vars.iter().any(|v| self.outside.iter().any(|l| l.0 == *v)) {
            return if most.is_unknown() || self.proves(&most.sub(&count)) { count } else { most.clone() };
        }
        // Rows can restrict loops that `count` does not mention; those that it does are enough for a bound. Of a loop
        // that is looked at for one period only, a row says nothing: the iterations that it excludes there stand for
        // others.
        let whole = self.literal_loops(&vars, BOUND_POINTS);
        let Some(loops) = whole.clone().or_else(|| self.periods(&count, &vars)) else { return most.clone() };
        let is_whole = |l: &&(Var, i128)| self.is_loop_of(l.0, &Expr::constant(l.1));
        let whole = whole.unwrap_or_else(|| loops.iter().filter(is_whole).copied().collect());
        let within = self.rows_within(&whole, true);
        let mut best: Option<i128> = None;
        each_point(&loops, |values| {
            let asked = within.iter().all(|row| row.e.eval(values).is_none_or(|v| v >= 0));
            if asked {
                best = match (count.eval(values), best) {
                    (None, _) => Some(i128::MAX),
                    (Some(v), known) => Some(known.map_or(v, |k| k.max(v))),
                };
            }
            best != Some(i128::MAX)
        });
        match (best, most.as_constant()) {
            (Some(i128::MAX), _) => most.clone(),
            (Some(best), Some(most)) => Expr::constant(best.min(most).max(0)),
            (Some(best), None) => Expr::constant(best.max(0)),
            (None, _) => Expr::constant(0),
        }
    }

    /// Whether a variable is a loop outside that has so many iterations.
    pub fn is_loop_of(&self, var: Var, iterations: &Expr) -> bool {
        self.outside.iter().any(|l| l.0 == var && l.1 == *iterations)
    }

    /// One period of each loop outside in which an expression repeats itself; none if it does not.
    fn periods(&self, e: &Expr, vars: &[Var]) -> Option<Vec<(Var, i128)>> {
        let period = e.divisors()?;
        let mut points = 1_i128;
        vars.iter()
            .map(|v| {
                let (_, extent) = self.outside.iter().find(|l| l.0 == *v)?;
                let next = Expr::var(*v).add(&Expr::constant(period));
                let repeats = e.substitute(&|w| (w == *v).then(|| next.clone())) == *e;
                let iterations = extent.as_constant().filter(|n| !repeats || *n < period);
                let iterations = iterations.or_else(|| repeats.then_some(period))?;
                points = points.checked_mul(iterations.max(0)).filter(|p| *p <= BOUND_POINTS)?;
                Some((*v, iterations))
            })
            .collect()
    }

    /// The smaller of two, without a minimum where it is known which one that is.
    pub fn minimum(&self, a: &Expr, b: &Expr) -> Expr {
        let difference = b.sub(a);
        if self.proves(&difference) {
            a.clone()
        } else if self.proves(&difference.scale(-1)) {
            b.clone()
        } else {
            a.minimum(b)
        }
    }

    /// The larger of two.
    pub fn maximum(&self, a: &Expr, b: &Expr) -> Expr {
        let difference = a.sub(b);
        if self.proves(&difference) {
            a.clone()
        } else if self.proves(&difference.scale(-1)) {
            b.clone()
        } else {
            a.maximum(b)
        }
    }

    /// ⌊e / by⌋ with quotients that are known replaced by their values.
    pub fn quotient(&self, e: &Expr, by: &Expr) -> Expr {
        let quotient = e.floor_div(by);
        if let Some(value) = self.constant(&quotient) {
            return Expr::constant(value);
        }
        let mut settled = quotient.clone();
        for term in quotient.terms() {
            let [Atom::Quotient { of, by }] = &term.atoms[..] else { continue };
            let last = by.sub(&Expr::constant(1));
            let value = if self.proves(of) && self.proves(&last.sub(of)) {
                0
            } else if self.proves(&of.scale(-1).sub(&Expr::constant(1))) && self.proves(&of.add(by)) {
                -1
            } else {
                continue;
            };
            let own = Expr::from_atoms(&term.atoms).sub(&Expr::constant(value));
            settled = settled.sub(&own.scale(term.coefficient));
        }
        settled
    }

    /// The same with clips that never cut, or always do, replaced by what is left.
    pub fn unclipped(&self, e: &Expr) -> Expr {
        if e.is_unknown() {
            return Expr::unknown();
        }
        e.terms().iter().fold(Expr::constant(0), |sum, term| {
            let product = term.atoms.iter().fold(Expr::constant(term.coefficient), |product, atom| {
                product.mul(&match atom {
                    Atom::Positive { of } if self.bound(of, false).is_some_and(|least| least >= 0) => (**of).clone(),
                    Atom::Positive { of } if self.bound(of, true).is_some_and(|most| most <= 0) => Expr::constant(0),
                    _ => Expr::from_atoms(std::slice::from_ref(atom)),
                })
            });
            sum.add(&product)
        })
    }

    /// The largest remainder that `e` can leave modulo a literal.
    pub fn worst_remainder(&self, e: &Expr, d: i128) -> i128 {
        let e = self.facts.with_residues(e);
        if e.is_unknown() {
            return d - 1;
        }
        let varying = e.terms().iter().filter(|t| !t.atoms.is_empty());
        let g = varying.fold(d, |g, t| gcd(g, t.coefficient));
        d - g + e.constant_term().rem_euclid(g)
    }
}

/// Calls `visit` with the values of all variables at each point of `loops`, those of others 0, until it says no.
pub(super) fn each_point(loops: &[(Var, i128)], mut visit: impl FnMut(&[i128]) -> bool) {
    let last = loops.iter().map(|l| l.0 as usize + 1).max().unwrap_or(0);
    let mut values = vec![0_i128; last];
    if loops.iter().any(|l| l.1 <= 0) {
        return;
    }
    while visit(&values) {
        let Some(at) = loops.iter().position(|(v, extent)| values[*v as usize] + 1 < *extent) else { return };
        values[loops[at].0 as usize] += 1;
        for (v, _) in &loops[..at] {
            values[*v as usize] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use tilewright_kernel::info::{Dim, DimKind};

    use super::*;
    use crate::random::Random;

    /// Over a dimension and three loops outside, one of them too long to be looked at.
    fn drawn(random: &mut Random) -> Expr {
        let v = |random: &mut Random| Expr::var(random.below(4) as Var);
        let c = |random: &mut Random, most: usize| Expr::constant(random.below(2 * most + 1) as i128 - most as i128);
        let e = v(random).mul(&c(random, 3)).add(&v(random)).add(&c(random, 9));
        match random.below(4) {
            0 => e.floor_div(&v(random).add(&Expr::constant(1))).add(&c(random, 2)),
            1 => e.sub(&v(random).sub(&c(random, 4)).positive()),
            2 => e.mul(&v(random)).add(&c(random, 1)),
            _ => e,
        }
    }

    /// What was answered before is answered as if it were asked for the first time, and takes as many proofs.
    #[test]
    fn remembered_answers_are_those_of_a_search() {
        let mut random = Random(5);
        let facts = Facts::new(&[Dim { name: "N".into(), kind: DimKind::Size }], &[]).unwrap();
        let outside = vec![(1, Expr::var(0)), (2, Expr::constant(1000)), (3, Expr::constant(5))];
        let (mut again, mut refused, mut proved) = (0, 0, 0);
        for _ in 0..60 {
            let reached = vec![drawn(&mut random)];
            let loops = Loops { inside: Vec::new(), outside: outside.clone(), reached };
            let mut all = vec![Known::new(&loops, &facts)];
            all[0].proofs.set(10 + random.below(60) as u32);
            let questions: Vec<Expr> = (0..12).map(|_| drawn(&mut random)).collect();
            for _ in 0..80 {
                let at = random.below(all.len());
                match random.below(12) {
                    0 => all[at].assume(drawn(&mut random)),
                    1 => all.push(all[at].fork()),
                    2 if all.len() > 1 => {
                        let other = all.swap_remove(random.below(all.len()));
                        let at = random.below(all.len());
                        let first = random.below(2) == 0;
                        all[at].keep_common(other, first);
                    }
                    _ => {
                        let (known, e) = (&all[at], random.of(&questions));
                        let ends = vec![OnceCell::new(); known.outside.len()];
                        let shared = Rc::new(Shared { ends, ..Shared::default() });
                        let alone = Known { shared, list: Cell::new(None), ..known.clone() };
                        let before = known.proofs.get();
                        let with_rows = random.below(3) > 0;
                        let ask = |of: &Known<'_>| if with_rows { of.proves(&e) } else { of.proves_always(&e) };
                        let list = if with_rows { known.list() } else { NO_ROWS };
                        again += usize::from(known.shared.answers.borrow().found[list].contains_key(&e));
                        let answer = ask(known);
                        proved += usize::from(answer);
                        assert_eq!(answer, ask(&alone), "{e:?} with {known:?}");
                        assert_eq!(known.proofs.get(), alone.proofs.get(), "{e:?} after {before} with {known:?}");
                        refused += usize::from(known.proofs.get() == 0);
                    }
                }
            }
        }
        assert!(again > 500 && refused > 50 && proved > 500, "{again} {refused} {proved}");
    }
}
