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

use tilewright_kernel::algorithm::{Binary, Compare};

use crate::extent::{Expr, System, Var};
use crate::kernel_ir::{IndexOp, Kernel, Memory, Op, Range, RegionId, StatementKind, UnaryOp, ValueId};

/// Something that decides which way a path takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fact {
    /// A condition holds.
    Holds(ValueId),
    /// A loop with that count has an iteration.
    Runs(ValueId),
}

impl Fact {
    /// The value that decides it.
    pub(super) const fn value(self) -> ValueId {
        match self {
            Self::Holds(value) | Self::Runs(value) => value,
        }
    }
}

/// What is known on a path.
pub(super) type Known = BTreeMap<Fact, bool>;

/// Ways to make something true, each a list of expressions that are not negative.
type Ways = Vec<Vec<Expr>>;

/// Facts that are compared with each other, and that are followed.
const MOST_FACTS: usize = 24;
/// Questions that are answered about combinations of facts; what is asked beyond excludes nothing, and barriers stay.
const MOST_QUESTIONS: usize = 2048;
/// Ways that are looked at.
const MOST_WAYS: usize = 32;

/// The facts of a kernel.
pub(super) struct Guards {
    /// Those that are worth knowing, with the ways to make each of them false and true.
    followed: BTreeMap<Fact, [Ways; 2]>,
    /// Range of each variable: dimensions, then values.
    ranges: Vec<Range>,
    /// For indices of loops, the last one.
    last: BTreeMap<Var, Expr>,
    /// What was asked before.
    asked: RefCell<BTreeMap<Known, bool>>,
}

impl Guards {
    /// Facts that decide about shared memory or barriers, and that appear twice or exclude others.
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut guards = Self {
            followed: BTreeMap::new(),
            ranges: kernel.signature.dims.iter().map(|dim| dim.range).collect(),
            last: BTreeMap::new(),
            asked: RefCell::new(BTreeMap::new()),
        };
        guards.ranges.extend(kernel.values.iter().map(|value| value.facts.range));
        let (mut found, mut twice) = (BTreeSet::new(), BTreeSet::new());
        for statement in kernel.regions.iter().flat_map(|region| &region.statements) {
            let (fact, decides) = match &statement.kind {
                StatementKind::If(branch) => {
                    let sides = std::iter::once(branch.then).chain(branch.otherwise);
                    (Fact::Holds(branch.condition), sides.into_iter().any(|side| matters(kernel, side)))
                }
                StatementKind::Loop(l) => {
                    let last = expression(kernel, l.count).sub(&Expr::constant(1));
                    guards.last.insert(variable(kernel, l.index), last);
                    (Fact::Runs(l.count), kernel.value(l.count).facts.range.low < 1 && matters(kernel, l.body))
                }
                _ => continue,
            };
            if decides && kernel.value(fact.value()).facts.uniform && !found.insert(fact) {
                twice.insert(fact);
            }
        }
        let all: Vec<(Fact, [Ways; 2])> = found.into_iter().map(|fact| (fact, ways_of(kernel, fact))).collect();
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
        guards.followed = all.into_iter().filter(|(fact, _)| related.contains(fact)).take(MOST_FACTS).collect();
        guards
    }

    /// Whether it is worth knowing.
    pub(super) fn follows(&self, fact: Fact) -> bool {
        self.followed.contains_key(&fact)
    }

    /// Whether no path on which this is known has that value of a fact.
    pub(super) fn excludes(&self, known: &Known, fact: Fact, value: bool) -> bool {
        let Some(ways) = self.followed.get(&fact) else { return false };
        if let Some(before) = known.get(&fact) {
            return *before != value;
        }
        let mut all = known.clone();
        all.insert(fact, value);
        if let Some(answer) = self.asked.borrow().get(&all) {
            return *answer;
        }
        if self.asked.borrow().len() >= MOST_QUESTIONS {
            return false;
        }
        let others = known.iter().filter_map(|(fact, value)| self.followed.get(fact).map(|w| &w[usize::from(*value)]));
        let all_ways: Vec<&Ways> = std::iter::once(&ways[usize::from(value)]).chain(others).collect();
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

/// An index integer over dimensions and what is opaque.
fn expression(kernel: &Kernel, value: ValueId) -> Expr {
    let of = |value: ValueId| expression(kernel, value);
    let own = kernel.value(value);
    match own.op {
        Op::Literal(bits) => Expr::constant(i128::from(bits as i64)),
        Op::Dim(d) => Expr::var(Var::from(d)),
        Op::ConvertIndex(a) => of(a),
        Op::Index(op, a, b) => match op {
            IndexOp::Add => of(a).add(&of(b)),
            IndexOp::Sub => of(a).sub(&of(b)),
            IndexOp::Mul => of(a).mul(&of(b)),
            IndexOp::Div => of(a).floor_div(&of(b)),
            IndexOp::Mod => of(a).modulo(&of(b)),
            IndexOp::Min => of(a).minimum(&of(b)),
            IndexOp::Max => of(a).maximum(&of(b)),
            IndexOp::And | IndexOp::Xor => Expr::var(variable(kernel, value)),
        },
        _ => Expr::var(variable(kernel, value)),
    }
}

/// The ways to make a fact false and true.
fn ways_of(kernel: &Kernel, fact: Fact) -> [Ways; 2] {
    [false, true].map(|yes| match fact {
        Fact::Holds(condition) => ways(kernel, condition, yes),
        Fact::Runs(count) => {
            let count = expression(kernel, count);
            vec![vec![if yes { count.sub(&Expr::constant(1)) } else { count.scale(-1) }]]
        }
    })
}

/// The ways to make a condition true, or false.
fn ways(kernel: &Kernel, condition: ValueId, yes: bool) -> Ways {
    // a ≥ b + apart
    let above = |a: &Expr, b: &Expr, apart: i128| a.sub(b).sub(&Expr::constant(apart));
    match kernel.value(condition).op {
        Op::Literal(bits) if (bits != 0) == yes => vec![Vec::new()],
        Op::Literal(_) => Vec::new(),
        Op::CompareIndex(compare, a, b) => {
            let (a, b) = (expression(kernel, a), expression(kernel, b));
            match (compare, yes) {
                (Compare::Eq, true) | (Compare::Ne, false) => vec![vec![above(&a, &b, 0), above(&b, &a, 0)]],
                (Compare::Eq, false) | (Compare::Ne, true) => vec![vec![above(&a, &b, 1)], vec![above(&b, &a, 1)]],
                (Compare::Lt, true) | (Compare::Ge, false) => vec![vec![above(&b, &a, 1)]],
                (Compare::Le, true) | (Compare::Gt, false) => vec![vec![above(&b, &a, 0)]],
                (Compare::Gt, true) | (Compare::Le, false) => vec![vec![above(&a, &b, 1)]],
                (Compare::Ge, true) | (Compare::Lt, false) => vec![vec![above(&a, &b, 0)]],
            }
        }
        Op::InRange(a, b) => {
            let (a, b) = (expression(kernel, a), expression(kernel, b));
            let (least, most) = (a.clone(), above(&b, &a, 1));
            if yes {
                vec![vec![least, most]]
            } else {
                vec![vec![a.scale(-1).sub(&Expr::constant(1))], vec![above(&a, &b, 0)]]
            }
        }
        Op::Unary(UnaryOp::Not, a) => ways(kernel, a, !yes),
        Op::Binary(op @ (Binary::And | Binary::Or), a, b) => {
            let (a, b) = (ways(kernel, a, yes), ways(kernel, b, yes));
            if (op == Binary::And) != yes {
                return [a, b].concat();
            }
            // Anything, where there are many: that excludes nothing.
            if a.len() * b.len() > MOST_WAYS { vec![Vec::new()] } else { both(&a, &b) }
        }
        _ => vec![Vec::new()],
    }
}

/// The ways to make two things true.
fn both(a: &Ways, b: &Ways) -> Ways {
    a.iter().flat_map(|a| b.iter().map(|b| [&a[..], &b[..]].concat())).collect()
}
