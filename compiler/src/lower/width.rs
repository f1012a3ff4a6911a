//! What has to fit 32 bits in a finished kernel whose index integers have so many.
//!
//! **Property.** Where sizes keep the bounds of [`needed`] at or below 2³¹ − 1, every index integer of 32 bits is what
//! it would be with more of them wherever more than its lowest bits matter: in quotients, remainders, extremes,
//! comparisons, counts of loops, and where it gets wider or becomes an element. Sums and products have the right lowest
//! bits whatever their parts are, so what cancels may be as large as it likes, and so may what an offset is made of:
//! that it fits in the end is what [`index_width`](super::index_width) asks of tensors. **Formula.** Each such operand
//! as an expression ([`Terms`]) over dimensions, loops, threads and blocks, in which what is the same cancels; the sums
//! of its positive and of its negative terms, with each variable at its bound. **Approximation.** Branches around a
//! value are not looked at. What memory decides is taken to be what is said of it.

use tilewright_sorted::SortedMap;

use super::index_width::LIMIT;
use super::terms::{Meaning, Terms};
use crate::extent::{Atom, Expr, Family, Term, Var, grows};
use crate::kernel_ir::{BulkCopy, IndexOp, Kernel, Op, Range, RegionId, StatementKind, TensorPart, Type, ValueId};

/// Ends of a range that is small.
const SMALL: i64 = 1 << 16;

/// A tile that starts at 2³¹ or less than this after it is outside of any tensor; as a number with a sign, it starts
/// below −2³⁰, and is outside as well.
const MOST_BEHIND: i128 = 1 << 30;

/// A value lies from −`below` to `above`.
#[derive(Clone, Debug)]
struct Ends {
    below: Expr,
    above: Expr,
}

impl Ends {
    fn count(above: Expr) -> Self {
        Self { below: Expr::constant(0), above }
    }

    fn of(range: Range) -> Self {
        let end = |end: i64, open: i64| match end == open {
            true => Expr::unknown(),
            false => Expr::constant(i128::from(end).max(0)),
        };
        Self { below: end(range.low.saturating_neg(), i64::MAX), above: end(range.high, i64::MAX) }
    }

    fn times(&self, other: &Self) -> Self {
        match (self.is_count(), other.is_count()) {
            (true, _) => Self { below: self.above.mul(&other.below), above: self.above.mul(&other.above) },
            (_, true) => other.times(self),
            _ => {
                let most = self.below.add(&self.above).mul(&other.below.add(&other.above));
                Self { below: most.clone(), above: most }
            }
        }
    }

    fn is_count(&self) -> bool {
        self.below.as_constant() == Some(0)
    }
}

/// The bounds that matter, over dimensions; [`Expr::unknown`] for what has none. `blocks` bounds the number of blocks,
/// or of tiles that they take.
pub(super) fn needed(kernel: &Kernel, blocks: &Expr) -> Vec<Expr> {
    let fits = |value: &ValueId| {
        let Range { low, high } = kernel.value(*value).facts.range;
        -LIMIT <= low && high <= LIMIT
    };
    let found = looked_at(kernel, blocks).into_iter().filter(|(value, ..)| !fits(value));
    // −2³¹ is a number of 32 bits, too.
    let one = Expr::constant(1);
    let mut found: Vec<Expr> = found
        .flat_map(|(_, Ends { below, above }, more)| [below.sub(&one), above.sub(&Expr::constant(more))])
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The values of which more than the lowest bits matter, where each lies, and how much larger it may be than numbers of
/// 32 bits with a sign are.
fn looked_at(kernel: &Kernel, blocks: &Expr) -> Vec<(ValueId, Ends, i128)> {
    let numbers = Numbers {
        kernel,
        next: Family::FRESH.var(0),
        blocks: None,
        ends: SortedMap::new(),
        values: SortedMap::new(),
        digits: SortedMap::new(),
    };
    let mut pass = Pass { terms: Terms::new(kernel, numbers), kernel, found: Vec::new() };
    // A cluster takes a tile, and each block of it comes to its number of the cluster.
    let one = Expr::constant(1);
    let clusters = blocks.floor_div(&Expr::constant(kernel.signature.cluster.max(1).into()));
    let last = if kernel.tiles.is_empty() { blocks.sub(&one) } else { clusters.sub(&one) };
    for tile in &kernel.tiles {
        let own = pass.terms.meaning.fresh(Ends::count(last.clone()));
        pass.terms.stands_for(*tile, own);
    }
    if kernel.tiles.is_empty() {
        pass.terms.meaning.blocks = Some(last);
    }
    pass.region(Kernel::BODY);
    pass.found
}

/// The operands of an operation of which more than the lowest 32 bits matter.
fn exact(kernel: &Kernel, id: ValueId) -> Vec<ValueId> {
    let value = kernel.value(id);
    match value.op {
        Op::Index(IndexOp::Div | IndexOp::Mod | IndexOp::Min | IndexOp::Max, a, b)
        | Op::CompareIndex(_, a, b)
        | Op::InRange(a, b) => vec![a, b],
        Op::ConvertIndex(a) if value.ty == Type::I64 => vec![a],
        Op::FromIndex(a) if value.ty.element().is_none_or(|e| e.is_float() || e.bytes() > 4) => vec![a],
        _ => Vec::new(),
    }
}

struct Pass<'a> {
    kernel: &'a Kernel,
    terms: Terms<'a, Numbers<'a>>,
    found: Vec<(ValueId, Ends, i128)>,
}

impl Pass<'_> {
    fn region(&mut self, region: RegionId) {
        let kernel = self.kernel;
        for statement in &kernel.region(region).statements {
            match &statement.kind {
                StatementKind::Let(value) => {
                    self.clip(*value);
                    // Comparisons with ranges take no sign: the end may be 2³¹.
                    let is_range = matches!(kernel.value(*value).op, Op::InRange(..));
                    for (n, operand) in exact(kernel, *value).into_iter().enumerate() {
                        self.fits(operand, i128::from(is_range && n == 1));
                    }
                }
                StatementKind::Loop(l) => {
                    self.fits(l.count, 0);
                    let count = self.terms.expression(l.count);
                    let ends = self.terms.meaning.ends(&count);
                    let last = ends.above.sub(&Expr::constant(1));
                    let index = self.terms.meaning.fresh(Ends::count(last));
                    self.terms.stands_for(l.index, index);
                }
                StatementKind::BulkCopy(BulkCopy { part: TensorPart::Tile { start, .. }, .. }) => {
                    start.iter().for_each(|start| self.fits(*start, MOST_BEHIND));
                }
                _ => {}
            }
            statement.kind.effects().inside.regions().for_each(|part| self.region(part));
        }
    }

    /// Of an extreme that is small for all sizes, this is worth more than what it is made of; one of two values is no
    /// larger than both.
    fn clip(&mut self, id: ValueId) {
        let value = self.kernel.value(id);
        let Range { low, high } = value.facts.range;
        let ends = match value.op {
            Op::Index(IndexOp::Min | IndexOp::Max, ..) if -SMALL <= low && high <= SMALL => Ends::of(value.facts.range),
            Op::Select(_, a, b) if value.ty.is_index() => {
                let [a, b] = [a, b].map(|value| {
                    let e = self.terms.expression(value);
                    self.terms.meaning.ends(&e)
                });
                Ends { below: a.below.maximum(&b.below), above: a.above.maximum(&b.above) }
            }
            _ => return,
        };
        let own = self.terms.meaning.fresh(ends);
        self.terms.stands_for(id, own);
    }

    fn fits(&mut self, id: ValueId, more: i128) {
        if self.kernel.value(id).ty == Type::I32 {
            let e = self.terms.expression(id);
            let ends = self.terms.meaning.ends(&e);
            self.found.push((id, ends, more));
        }
    }
}

/// What values stand for: variables after the dimensions.
struct Numbers<'a> {
    kernel: &'a Kernel,
    next: Var,
    /// The number of the last block.
    blocks: Option<Expr>,
    ends: SortedMap<Var, Ends>,
    values: SortedMap<ValueId, Var>,
    digits: SortedMap<(Expr, Expr), [Expr; 2]>,
}

impl Numbers<'_> {
    fn fresh(&mut self, ends: Ends) -> Expr {
        self.next += 1;
        self.ends.insert(self.next, ends);
        Expr::var(self.next)
    }

    /// Where an expression lies.
    fn ends(&self, e: &Expr) -> Ends {
        if e.is_unknown() {
            return Ends { below: Expr::unknown(), above: Expr::unknown() };
        }
        let mut ends = Ends { below: Expr::constant(0), above: Expr::constant(0) };
        for term in e.terms() {
            let mut product = Ends::count(Expr::constant(1));
            for atom in &term.atoms {
                let factor = self.atom(atom);
                product = product.times(&factor);
            }
            let Ends { below, above } = product;
            let (low, high) = if term.coefficient < 0 { (above, below) } else { (below, above) };
            let factor = term.coefficient.abs();
            ends = Ends { below: ends.below.add(&low.scale(factor)), above: ends.above.add(&high.scale(factor)) };
        }
        ends
    }

    fn atom(&self, atom: &Atom) -> Ends {
        match atom {
            Atom::Var(v) => self.ends.get(v).cloned().unwrap_or_else(|| Ends::count(Expr::var(*v))),
            Atom::Positive { of } => Ends::count(self.ends(of).above),
            // See `divided`.
            Atom::Quotient { of, by } if is_of_sizes(of) && is_of_sizes(by) => {
                Ends::count(Expr::from_atoms(std::slice::from_ref(atom)))
            }
            Atom::Quotient { .. } => Ends { below: Expr::unknown(), above: Expr::unknown() },
        }
    }
}

impl Meaning for Numbers<'_> {
    fn opaque(&mut self, value: ValueId) -> Expr {
        if let Some(var) = self.values.get(&value) {
            return Expr::var(*var);
        }
        let own = self.kernel.value(value);
        let threads = i128::from(self.kernel.signature.threads);
        let ends = match (own.op, &self.blocks) {
            (Op::ThreadIndex, _) => Ends::count(Expr::constant(threads - 1)),
            (Op::BlockIndex, Some(last)) => Ends::count(last.clone()),
            _ => Ends::of(own.facts.range),
        };
        let e = self.fresh(ends);
        self.values.insert(value, self.next);
        e
    }

    fn divided(&mut self, of: &Expr, by: &Expr) -> [Expr; 2] {
        if let Some(known) = self.digits.get(&(of.clone(), by.clone())) {
            return known.clone();
        }
        let found = self.digits_of(of, by);
        self.digits.insert((of.clone(), by.clone()), found.clone());
        found
    }
}

impl Numbers<'_> {
    fn digits_of(&mut self, of: &Expr, by: &Expr) -> [Expr; 2] {
        if is_of_sizes(of) && is_of_sizes(by) {
            let quotient = of.floor_div(by);
            let rest = match by.as_constant() {
                Some(d) => self.fresh(Ends::count(Expr::constant(d - 1))),
                None => of.sub(&quotient.mul(by)),
            };
            return [quotient, rest];
        }
        let (dividend, divisor) = (self.ends(of), self.ends(by));
        let one = Expr::constant(1);
        // A divisor is positive, and so is each of its factors.
        let divides = match by.terms() {
            [Term { atoms, coefficient }] => {
                let of_sizes: Vec<Atom> = {
                    let is_of_sizes = |a: &&Atom| is_of_sizes(&Expr::from_atoms(std::slice::from_ref(*a)));
                    atoms.iter().filter(is_of_sizes).cloned().collect()
                };
                Expr::from_atoms(&of_sizes).scale(*coefficient)
            }
            _ => by.clone(),
        };
        // Of a number below a·b, the quotient by b is below a.
        let quotient = |end: &Expr, up: i128| {
            if let Some(d) = by.as_constant() {
                return end.add(&Expr::constant(up * (d - 1))).floor_div(&Expr::constant(d));
            }
            let behind = end.add(&one);
            let whole = behind.floor_div(&divides);
            if up == 0 && whole.mul(&divides) == behind { whole.sub(&one) } else { end.clone() }
        };
        let ends = Ends { below: quotient(&dividend.below, 1), above: quotient(&dividend.above, 0) };
        let below_divisor = divisor.above.sub(&one);
        let rest = match (dividend.is_count(), dividend.above.as_constant(), below_divisor.as_constant()) {
            (true, Some(most), last) if last.is_none_or(|last| most < last) => Expr::constant(most),
            _ => below_divisor,
        };
        [self.fresh(ends), self.fresh(Ends::count(rest))]
    }
}

/// Whether an expression is of sizes alone, and not negative.
fn is_of_sizes(e: &Expr) -> bool {
    grows(e) && e.vars().into_iter().all(Family::is_size)
}

#[cfg(test)]
#[path = "width_tests.rs"]
mod tests;
