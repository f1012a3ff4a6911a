//! Index integers and conditions of a kernel as expressions and their ways to hold.
//!
//! **Property.** Where a value matters, it is what its expression says; a condition has a truth value only if all
//! expressions of one of its ways are not negative. Each value is looked at once, however many others are made of it.
//! **Approximation.** What is no arithmetic is a variable; a condition that is no comparison, and one with many ways,
//! may hold anywhere.

use tilewright_kernel::algorithm::{Binary, Compare};
use tilewright_sorted::SortedMap;

use crate::extent::Expr;
use crate::kernel_ir::{IndexOp, Kernel, Op, UnaryOp, ValueId};

/// Ways to make something true, each a list of expressions that are not negative.
pub(super) type Ways = Vec<Vec<Expr>>;

/// Ways that are looked at.
pub(super) const MOST_WAYS: usize = 32;
/// Expressions that one way has.
const MOST_PARTS: usize = 64;

/// What stands for the parts that are no sums and products.
pub(super) trait Meaning {
    /// A value that is no arithmetic.
    fn opaque(&mut self, value: ValueId) -> Expr;
    /// Quotient, rounded down, and remainder.
    fn divided(&mut self, of: &Expr, by: &Expr) -> [Expr; 2];
}

/// The values of a kernel under one meaning.
pub(super) struct Terms<'a, M> {
    kernel: &'a Kernel,
    pub meaning: M,
    known: SortedMap<ValueId, Expr>,
    judged: SortedMap<(ValueId, bool), Ways>,
}

impl<'a, M: Meaning> Terms<'a, M> {
    pub fn new(kernel: &'a Kernel, meaning: M) -> Self {
        Self { kernel, meaning, known: SortedMap::new(), judged: SortedMap::new() }
    }

    /// Says what a value is.
    pub fn stands_for(&mut self, value: ValueId, e: Expr) {
        self.known.insert(value, e);
    }

    /// How many index integers and conditions were looked at.
    #[cfg(test)]
    pub fn looked_at(&self) -> (usize, usize) {
        (self.known.len(), self.judged.len())
    }

    /// An index integer.
    pub fn expression(&mut self, value: ValueId) -> Expr {
        let mut open = vec![value];
        while let Some(next) = open.last().copied() {
            if self.known.contains_key(&next) {
                open.pop();
                continue;
            }
            let op = self.kernel.value(next).op;
            let operands = match op {
                Op::ConvertIndex(a) | Op::OfWarp(a) => [Some(a), None],
                Op::Index(op, a, b) if self.is_arithmetic(op, b) => [Some(a), Some(b)],
                _ => [None, None],
            };
            let before = open.len();
            open.extend(operands.into_iter().flatten().filter(|operand| !self.known.contains_key(operand)));
            if open.len() == before {
                let e = self.made_of(next, op);
                self.known.insert(next, e);
            }
        }
        self.known[&value].clone()
    }

    /// Whether sums, products and quotients say what it is: of bits, the lowest ones.
    fn is_arithmetic(&self, op: IndexOp, b: ValueId) -> bool {
        match op {
            IndexOp::And => self.low_bits(b).is_some(),
            IndexOp::Xor => false,
            _ => true,
        }
    }

    /// 2ⁿ for a literal with the lowest n bits.
    fn low_bits(&self, value: ValueId) -> Option<i128> {
        let count = i128::from(self.kernel.index_literal(value)?) + 1;
        (count > 0 && count.count_ones() == 1).then_some(count)
    }

    /// A value whose operands are known.
    fn made_of(&mut self, value: ValueId, op: Op) -> Expr {
        let of = |v: ValueId| &self.known[&v];
        match op {
            Op::Literal(bits) => Expr::constant(i128::from(bits as i64)),
            Op::Dim(d) => Expr::var(u32::from(d)),
            Op::ConvertIndex(a) | Op::OfWarp(a) => of(a).clone(),
            Op::Index(op, a, b) if self.is_arithmetic(op, b) => {
                let (x, y) = (of(a), of(b));
                match op {
                    IndexOp::Add => x.add(y),
                    IndexOp::Sub => x.sub(y),
                    IndexOp::Mul => x.mul(y),
                    IndexOp::Min => x.minimum(y),
                    IndexOp::Max => x.maximum(y),
                    IndexOp::Div | IndexOp::Mod | IndexOp::And | IndexOp::Xor => {
                        let (x, mut y) = (x.clone(), y.clone());
                        if let (IndexOp::And, Some(count)) = (op, self.low_bits(b)) {
                            y = Expr::constant(count);
                        }
                        let [quotient, rest] = self.meaning.divided(&x, &y);
                        if op == IndexOp::Div { quotient } else { rest }
                    }
                }
            }
            _ => self.meaning.opaque(value),
        }
    }

    /// The ways to make a condition true, or false.
    pub fn ways(&mut self, condition: ValueId, yes: bool) -> Ways {
        let mut open = vec![(condition, yes)];
        while let Some(next) = open.last().copied() {
            if self.judged.contains_key(&next) {
                open.pop();
                continue;
            }
            let op = self.kernel.value(next.0).op;
            let operands = match op {
                Op::Unary(UnaryOp::Not, a) => [Some((a, !next.1)), None],
                Op::Binary(Binary::And | Binary::Or, a, b) => [Some((a, next.1)), Some((b, next.1))],
                _ => [None, None],
            };
            let before = open.len();
            open.extend(operands.into_iter().flatten().filter(|operand| !self.judged.contains_key(operand)));
            if open.len() == before {
                let ways = self.judge(op, next.1);
                self.judged.insert(next, ways);
            }
        }
        self.judged[&(condition, yes)].clone()
    }

    /// A condition whose operands are judged.
    fn judge(&mut self, op: Op, yes: bool) -> Ways {
        // a ≥ b + apart
        let above = |a: &Expr, b: &Expr, apart: i128| a.sub(b).sub(&Expr::constant(apart));
        match op {
            Op::Literal(bits) if (bits != 0) == yes => vec![Vec::new()],
            Op::Literal(_) => Vec::new(),
            Op::CompareIndex(compare, a, b) => {
                let (a, b) = (self.expression(a), self.expression(b));
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
                let (a, b) = (self.expression(a), self.expression(b));
                if yes {
                    vec![vec![a.clone(), above(&b, &a, 1)]]
                } else {
                    vec![vec![a.scale(-1).sub(&Expr::constant(1))], vec![above(&a, &b, 0)]]
                }
            }
            Op::Unary(UnaryOp::Not, a) => self.judged[&(a, !yes)].clone(),
            Op::Binary(op @ (Binary::And | Binary::Or), a, b) => {
                let (a, b) = (&self.judged[&(a, yes)], &self.judged[&(b, yes)]);
                if (op == Binary::And) == yes {
                    return both(a, b);
                }
                let mut either = [&a[..], b].concat();
                either.sort();
                either.dedup();
                if either.len() > MOST_WAYS { vec![Vec::new()] } else { either }
            }
            _ => vec![Vec::new()],
        }
    }
}

/// The ways to make two things true, whatever stands for their expressions; the ways of one where there are many, which
/// only leaves something out.
pub(super) fn both<T: Clone + Ord>(a: &[Vec<T>], b: &[Vec<T>]) -> Vec<Vec<T>> {
    if a.len() * b.len() > MOST_WAYS {
        return if a.len() <= b.len() { a.to_vec() } else { b.to_vec() };
    }
    let together = |a: &[T], b: &[T]| {
        let mut way = [a, b].concat();
        way.sort();
        way.dedup();
        way.truncate(MOST_PARTS);
        way
    };
    let mut ways: Vec<Vec<T>> = a.iter().flat_map(|a| b.iter().map(move |b| together(a, b))).collect();
    ways.sort();
    ways.dedup();
    ways
}
