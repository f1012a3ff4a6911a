//! Two accesses of one buffer, as one system of integers.

use std::cell::RefCell;

use tilewright_sorted::SortedMap;

use super::{Dependences, MOST_WAYS, MOST_WORK_OF_PAIR, Site, Step, loops, threads_of};
use crate::extent::{Atom, Budget, Expr, Integers, Var, bound};
use crate::kernel_ir::{Elements, Facts, Kernel, Op, Range, RegionId, Sharing, ValueId};
use crate::lower::pending_accesses::Access;
use crate::lower::terms::{Meaning, Terms, Ways, both};
use crate::target::{WARP, WARPGROUP};

/// Whose value it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    Before,
    Later,
    Both,
}

/// What a variable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Thread(Whose),
    Block,
    Value(Whose, ValueId),
    Lane(Whose),
}

/// The variables of a pair, and what is known of them.
struct Numbers {
    next: Var,
    names: SortedMap<Name, Var>,
    digits: SortedMap<(Expr, Expr), [Var; 2]>,
    ranges: SortedMap<Var, (Option<i128>, Option<i128>)>,
    integers: Integers,
}

impl Numbers {
    fn fresh(&mut self, range: (Option<i128>, Option<i128>)) -> Var {
        let var = self.next;
        self.next += 1;
        self.ranges.insert(var, range);
        self.integers.within(var, range);
        var
    }

    fn name(&mut self, name: Name, range: Range) -> Expr {
        if let Some(var) = self.names.get(&name) {
            return Expr::var(*var);
        }
        let var = self.fresh(ends(range));
        self.names.insert(name, var);
        Expr::var(var)
    }

    /// Quotient and remainder; whole multiples of the divisor are no part of either variable.
    fn divided(&mut self, of: &Expr, by: &Expr) -> [Expr; 2] {
        let quotient = of.floor_div(by);
        if quotient.is_unknown() {
            return [Expr::unknown(), Expr::unknown()];
        }
        let is_whole = |atoms: &[Atom]| !atoms.iter().any(|atom| matches!(atom, Atom::Quotient { .. }));
        let whole = quotient.terms().iter().filter(|t| is_whole(&t.atoms));
        let whole = whole.fold(Expr::constant(0), |sum, t| sum.add(&Expr::from_atoms(&t.atoms).scale(t.coefficient)));
        let rest = of.sub(&whole.mul(by));
        if rest.is_unknown() {
            return [Expr::unknown(), Expr::unknown()];
        }
        if whole == quotient {
            return [quotient, rest];
        }
        let [q, r] = match self.digits.get(&(rest.clone(), by.clone())) {
            Some(known) => *known,
            None => {
                let part = rest.floor_div(by);
                let end = |v: Var, upper: bool| self.ranges.get(&v).and_then(|e| if upper { e.1 } else { e.0 });
                let range = (bound(&part, false, &end), bound(&part, true, &end));
                let q = self.fresh(range);
                let r = self.fresh((Some(0), by.as_constant().map(|by| by - 1)));
                self.integers.require(by.sub(&Expr::constant(1)).sub(&Expr::var(r)));
                self.integers.require_zero(Expr::var(q).mul(by).add(&Expr::var(r)).sub(&rest));
                self.digits.insert((rest, by.clone()), [q, r]);
                [q, r]
            }
        };
        [whole.add(&Expr::var(q)), Expr::var(r)]
    }
}

/// The ends of a range that are known.
pub(super) fn ends(range: Range) -> (Option<i128>, Option<i128>) {
    let known = |v: i64, open: i64| (v != open).then_some(i128::from(v));
    (known(range.low, i64::MIN), known(range.high, i64::MAX))
}

/// What the values of one side stand for.
struct Side<'a> {
    of: &'a Dependences<'a>,
    whose: Whose,
    /// Regions that both are in, in the same iteration.
    common: &'a [RegionId],
    numbers: &'a RefCell<Numbers>,
}

impl Meaning for Side<'_> {
    fn opaque(&mut self, value: ValueId) -> Expr {
        let kernel = self.of.kernel;
        let own = kernel.value(value);
        let Facts { range, .. } = own.facts;
        let threads = i64::from(kernel.signature.threads);
        let (name, range) = match own.op {
            Op::ThreadIndex => (Name::Thread(self.whose), Range::new(0, threads - 1)),
            Op::BlockIndex => (Name::Block, range.intersect(Range::NON_NEGATIVE)),
            op => {
                let is_common = own.region == Kernel::BODY || self.common.contains(&own.region);
                // Iterations of a loop are alike whoever runs them.
                let agreed = op == Op::LoopIndex || self.of.uniform[value.index()];
                (Name::Value(if is_common && agreed { Whose::Both } else { self.whose }, value), range)
            }
        };
        self.numbers.borrow_mut().name(name, range)
    }

    fn divided(&mut self, of: &Expr, by: &Expr) -> [Expr; 2] {
        self.numbers.borrow_mut().divided(of, by)
    }
}

/// Two accesses of an element.
pub(super) struct Pair<'a> {
    of: &'a Dependences<'a>,
    /// What holds, in one of these ways.
    ways: Ways,
    numbers: RefCell<Numbers>,
    threads: [Expr; 2],
    /// How many threads there are.
    count: u32,
}

impl<'a> Pair<'a> {
    pub(super) fn new(of: &'a Dependences<'a>, before: Access, sites: [&Site; 2], members: [&Elements; 2]) -> Self {
        let kernel = of.kernel;
        let mut integers = Integers::new();
        for (d, dim) in kernel.signature.dims.iter().enumerate() {
            integers.within(d as Var, ends(dim.range));
        }
        let ranges = kernel.signature.dims.iter().enumerate().map(|(d, dim)| (d as Var, ends(dim.range))).collect();
        let next = kernel.signature.dims.len() as Var;
        let numbers = Numbers { next, names: SortedMap::new(), digits: SortedMap::new(), ranges, integers };
        let numbers = RefCell::new(numbers);
        let of_threads = sites.map(|site| threads_of(kernel, &site.steps));
        let threads = [0, 1].map(|n| {
            let range = Range::new(of_threads[n].start.into(), i64::from(of_threads[n].end) - 1);
            numbers.borrow_mut().name(Name::Thread([Whose::Before, Whose::Later][n]), range)
        });
        let count = of_threads[0].len() as u32;
        // Loops that both are in, in the same iteration.
        let together = sites[0].steps.iter().zip(&sites[1].steps).take_while(|(a, b)| a == b).count();
        let mut shared = loops(&sites[0].steps[..together]).enumerate();
        let parted = shared.find(|(depth, _)| before.is_anywhere() || before.has_begun_another(*depth));
        let end = parted.map_or(together, |(_, (at, ..))| at);
        let common: Vec<RegionId> = sites[0].steps[..end].iter().map(|step| step.region()).collect();
        let mut ways: Ways = vec![Vec::new()];
        let mut offsets = Vec::new();
        let mut apart = Vec::new();
        for (side, whose) in [Whose::Before, Whose::Later].into_iter().enumerate() {
            let (site, member) = (sites[side], members[side]);
            let mut terms = Terms::new(kernel, Side { of, whose, common: &common, numbers: &numbers });
            let mut depth = 0;
            for (at, step) in site.steps.iter().enumerate() {
                match *step {
                    Step::Branch { condition, holds, .. } => add(&mut ways, terms.ways(condition, holds)),
                    Step::Elect { .. } | Step::Role { .. } => {}
                    Step::Loop { index, count, .. } => {
                        let (index, count) = (terms.expression(index), terms.expression(count));
                        let last = count.sub(&Expr::constant(1));
                        let mut known = vec![index.clone(), last.sub(&index)];
                        let is_parted = parted.is_some_and(|(_, (own, ..))| own == at) && !before.is_anywhere();
                        if is_parted {
                            apart.push(index.clone());
                        } else if at >= end && !before.is_anywhere() {
                            let one = Expr::constant(1);
                            match (side, before.had_another(depth), before.has_begun_another(depth)) {
                                (0, Some(true), _) => known.push(last.sub(&index).sub(&one)),
                                (0, Some(false), _) => known.push(index.sub(&last)),
                                (0, None, _) => {}
                                (_, _, true) => known.push(index.sub(&one)),
                                (_, _, false) => known.push(index.scale(-1)),
                            }
                        }
                        add(&mut ways, vec![known]);
                        depth += 1;
                    }
                }
            }
            if let Some(predicate) = member.predicate {
                add(&mut ways, terms.ways(predicate, true));
            }
            let offset = terms.expression(member.offset);
            let mut numbers = numbers.borrow_mut();
            let lane = numbers.name(Name::Lane(whose), Range::new(0, i64::from(member.lanes) - 1));
            offsets.push(offset.add(&lane));
        }
        if let [before, later] = &apart[..] {
            add(&mut ways, vec![vec![later.sub(before).sub(&Expr::constant(1))]]);
        }
        {
            let mut numbers = numbers.borrow_mut();
            numbers.integers.require_zero(offsets[0].sub(&offsets[1]));
            if let Some(blocks) = of.blocks {
                let block = numbers.name(Name::Block, Range::NON_NEGATIVE);
                numbers.integers.require(blocks.sub(&Expr::constant(1)).sub(&block));
            }
        }
        Self { of, ways, numbers, threads, count }
    }

    /// Whether both are of one thread, warp or warpgroup. Where a block is not made of whole ones, of a smaller unit.
    pub(super) fn is_within(&self, unit: Sharing) -> bool {
        let threads = self.count;
        let units = [
            (Sharing::Warpgroup, WARPGROUP, threads > WARPGROUP && threads.is_multiple_of(WARPGROUP)),
            (Sharing::Warp, WARP, threads.is_multiple_of(WARP)),
            (Sharing::Thread, 1, true),
        ];
        let whole = units.into_iter().find(|(own, _, is_whole)| *own <= unit && *is_whole);
        whole.is_some_and(|(_, size, _)| self.stays_in(size))
    }

    /// Whether both are of one unit of so many threads.
    fn stays_in(&self, size: u32) -> bool {
        let size = Expr::constant(i128::from(size));
        let [a, b] = [0, 1].map(|n| self.numbers.borrow_mut().divided(&self.threads[n], &size)[0].clone());
        let mut numbers = self.numbers.borrow_mut();
        numbers.integers.prepare();
        let way = |way: &Vec<Expr>| {
            let mut integers = numbers.integers.clone();
            way.iter().for_each(|e| integers.require(e.clone()));
            integers.prepare();
            integers
        };
        let ways: Vec<Integers> = self.ways.iter().map(way).collect();
        let mut all = self.of.work.borrow_mut();
        [[&a, &b], [&b, &a]].into_iter().all(|[low, high]| {
            ways.iter().all(|way| {
                let mut integers = way.clone();
                integers.require(high.sub(low).sub(&Expr::constant(1)));
                let mut work = Budget::new(MOST_WORK_OF_PAIR);
                let never = !all.is_exhausted() && integers.has_no_solution(&mut work);
                all.take(MOST_WORK_OF_PAIR - work.left());
                never
            })
        })
    }
}

/// Takes in what holds in one of several ways, if these are few.
pub(super) fn add(ways: &mut Ways, others: Ways) {
    if ways.len() * others.len() <= MOST_WAYS {
        *ways = both(ways, &others);
    }
}
