//! Index integers as sums: multiples of a number, common terms, and the bits that a swizzle changes.
//!
//! Rewrites keep the mathematical value: see [`index`](super::index).

use super::super::{IndexOp, Op, Type, ValueId};
use super::Builder;

/// How deep into a sum a multiple of the divisor is looked for.
pub(super) const SPLIT_DEPTH: u32 = 8;
/// How many such multiples are taken out of one sum.
pub(super) const SPLIT_TERMS: u32 = 8;
/// Most products of a sum that is multiplied out.
const MOST_PRODUCTS: usize = 16;

/// A sum of products: the factors of each, sorted, and how many of it there are.
type Products = Vec<(Vec<ValueId>, i64)>;

impl Builder {
    /// x and c of a value x + c.
    pub(super) fn plus_literal(&self, value: ValueId) -> Option<(ValueId, i64)> {
        match self.kernel.value(value).op {
            Op::Index(IndexOp::Add, x, c) => Some((x, self.kernel.index_literal(c)?)),
            _ => None,
        }
    }

    /// x and c of a value x · c.
    pub(super) fn times_literal(&self, value: ValueId) -> Option<(ValueId, i64)> {
        match self.kernel.value(value).op {
            Op::Index(IndexOp::Mul, x, c) => Some((x, self.kernel.index_literal(c)?)),
            _ => None,
        }
    }

    /// x and r of a value x·d + r; no r if it is 0. The parts are read on their own, so both must fit the width: for 32
    /// bits that is known only of terms that are not negative.
    pub(super) fn split_multiple(
        &mut self,
        value: ValueId,
        divisor: i64,
        depth: u32,
    ) -> Option<(ValueId, Option<ValueId>)> {
        if let Some(constant) = self.kernel.index_literal(value).filter(|c| *c > 0 && c % divisor == 0) {
            return Some((self.index_literal(self.ty(value), constant / divisor), None));
        }
        if let Some((x, c)) = self.times_literal(value) {
            if c % divisor != 0 {
                return None;
            }
            let factor = self.index_literal(self.ty(value), c / divisor);
            return Some((self.index_mul(x, factor), None));
        }
        let Op::Index(IndexOp::Add, a, b) = self.kernel.value(value).op else { return None };
        if self.ty(value) == Type::I32
            && !(self.facts(a).range.is_non_negative() && self.facts(b).range.is_non_negative())
        {
            return None;
        }
        let depth = depth.checked_sub(1)?;
        if let Some((multiple, rest)) = self.split_multiple(a, divisor, depth) {
            return Some((multiple, Some(rest.map_or(b, |rest| self.index_add(rest, b)))));
        }
        let (multiple, rest) = self.split_multiple(b, divisor, depth)?;
        Some((multiple, Some(rest.map_or(a, |rest| self.index_add(a, rest)))))
    }

    /// a − b where both are sums with a common term, as where a start is taken off again. What is left of a sum is read
    /// on its own, so all terms must fit the width: for 32 bits that is known only of terms that are not negative.
    pub(super) fn without_common(&mut self, a: ValueId, b: ValueId) -> Option<ValueId> {
        let mut terms = [Vec::new(), Vec::new()];
        for (value, terms) in [a, b].into_iter().zip(&mut terms) {
            self.terms_of(value, SPLIT_DEPTH, terms);
        }
        let [mut left, mut right] = terms;
        let before = left.len();
        right.retain(|term| match left.iter().position(|other| other == term) {
            Some(at) => {
                left.remove(at);
                false
            }
            None => true,
        });
        if left.len() == before {
            return None;
        }
        let zero = self.index_literal(self.ty(a), 0);
        let [left, right] =
            [left, right].map(|terms| terms.into_iter().fold(zero, |sum, term| self.index_add(sum, term)));
        Some(self.index_sub(left, right))
    }

    /// The terms of a sum whose terms fit its width.
    fn terms_of(&self, value: ValueId, depth: u32, terms: &mut Vec<ValueId>) {
        let fits = |v: ValueId| self.ty(v) == Type::I64 || self.facts(v).range.is_non_negative();
        match self.kernel.value(value).op {
            Op::Index(IndexOp::Add, x, y) if depth > 0 && fits(x) && fits(y) => {
                self.terms_of(x, depth - 1, terms);
                self.terms_of(y, depth - 1, terms);
            }
            _ => terms.push(value),
        }
    }

    /// a − b where that is a number, and one of the two a multiple of a sum: 64·(i + c·n) is as far from 64·i + n·64·c
    /// whatever i, c and n are.
    pub(super) fn distance(&self, a: ValueId, b: ValueId) -> Option<i64> {
        let is_multiple_of_sum = |value: ValueId| {
            let value = self.plus_literal(value).map_or(value, |(x, _)| x);
            let Op::Index(IndexOp::Mul, x, y) = self.kernel.value(value).op else { return false };
            [x, y].into_iter().any(|v| matches!(self.kernel.value(v).op, Op::Index(IndexOp::Add | IndexOp::Sub, ..)))
        };
        if !is_multiple_of_sum(a) && !is_multiple_of_sum(b) {
            return None;
        }
        let mut left = self.products_of(a, SPLIT_DEPTH)?;
        for (factors, n) in self.products_of(b, SPLIT_DEPTH)? {
            add_product(&mut left, factors, n.checked_neg()?)?;
        }
        match &left[..] {
            [] => Some(0),
            [(factors, n)] if factors.is_empty() => Some(*n),
            _ => None,
        }
    }

    /// An index integer multiplied out; none if that takes too many products.
    fn products_of(&self, value: ValueId, depth: u32) -> Option<Products> {
        if let Some(n) = self.kernel.index_literal(value) {
            let mut constant = Products::new();
            add_product(&mut constant, Vec::new(), n)?;
            return Some(constant);
        }
        let Some(depth) = depth.checked_sub(1) else { return Some(vec![(vec![value], 1)]) };
        match self.kernel.value(value).op {
            Op::Index(op @ (IndexOp::Add | IndexOp::Sub), x, y) => {
                let mut sum = self.products_of(x, depth)?;
                for (factors, n) in self.products_of(y, depth)? {
                    add_product(&mut sum, factors, if op == IndexOp::Add { n } else { n.checked_neg()? })?;
                }
                Some(sum)
            }
            Op::Index(IndexOp::Mul, x, y) => {
                let (left, right) = (self.products_of(x, depth)?, self.products_of(y, depth)?);
                let mut sum = Products::new();
                for (a, m) in &left {
                    for (b, n) in &right {
                        let mut factors = [&a[..], b].concat();
                        factors.sort_unstable();
                        add_product(&mut sum, factors, m.checked_mul(*n)?)?;
                    }
                }
                Some(sum)
            }
            // Of any width it is the same number.
            Op::ConvertIndex(x) => self.products_of(x, depth),
            _ => Some(vec![(vec![value], 1)]),
        }
    }

    /// x ⊕ y for y = y'·g with a power g of 2, as swizzles have it, where little of x lies at the bits of y. With p the
    /// power of 2 above all of y, r < g, and x = m·p + c'·p + r + c·g, it is m·p + c'·p + r + (c ⊕ y')·g: m and r are
    /// the same for many elements, and the rest depends on constants and y' alone.
    pub(super) fn apart_from_bits(&mut self, x: ValueId, y: ValueId) -> Option<ValueId> {
        let (ty, most) = (self.ty(x), self.facts(y).range);
        let (of_y, factor) = self.times_literal(y)?;
        let granule = 1_i64.checked_shl(factor.trailing_zeros()).filter(|granule| *granule > 1)?;
        if !most.is_non_negative() || most.high >= 1 << 30 || !self.facts(x).range.is_non_negative() {
            return None;
        }
        let above = (most.high + 1).cast_unsigned().next_power_of_two().cast_signed();
        let (mut multiple, mut rest) = (None, Some(x));
        for _ in 0..SPLIT_TERMS {
            let Some((m, r)) = rest.and_then(|rest| self.split_multiple(rest, above, SPLIT_DEPTH)) else { break };
            multiple = Some(multiple.map_or(m, |multiple| self.index_add(multiple, m)));
            rest = r;
        }
        let zero = self.index_literal(ty, 0);
        let rest = rest.unwrap_or(zero);
        let (rest, constant) = match self.kernel.index_literal(rest) {
            Some(constant) => (zero, constant),
            None => self.plus_literal(rest).unwrap_or((rest, 0)),
        };
        let range = self.facts(rest).range;
        let is_apart = range.is_non_negative() && range.high < granule && constant >= 0 && constant % granule == 0;
        if !is_apart {
            return None;
        }
        let (beyond, within) = (constant - constant % above, constant % above);
        let [above, granule, factor, within, beyond] =
            [above, granule, factor / granule, within / granule, beyond].map(|n| self.index_literal(ty, n));
        let changed = self.index_mul(of_y, factor);
        let changed = self.index_xor(changed, within);
        let changed = self.index_mul(changed, granule);
        let same = match multiple {
            Some(multiple) => {
                let multiple = self.index_mul(multiple, above);
                self.index_add(multiple, rest)
            }
            None => rest,
        };
        let sum = self.index_add(same, changed);
        Some(self.index_add(sum, beyond))
    }
}

/// Adds so many of a product to a sum; none if they are too many.
fn add_product(sum: &mut Products, factors: Vec<ValueId>, n: i64) -> Option<()> {
    match sum.iter().position(|product| product.0 == factors) {
        Some(at) => {
            sum[at].1 = sum[at].1.checked_add(n)?;
            if sum[at].1 == 0 {
                sum.remove(at);
            }
        }
        None if n == 0 => {}
        None if sum.len() == MOST_PRODUCTS => return None,
        None => sum.push((factors, n)),
    }
    Some(())
}
