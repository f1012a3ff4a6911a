//! Exponentials, where sums are corrected: see the [`algebra`](super::algebra). Infinities and NaN are in no ring: they
//! absorb what they meet.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Binary;

use super::algebra::{Algebra, Tag};
use super::field::pairs;
use super::math;
use crate::proof::row::Known;

/// Numbers whose powers stand for exponentials to base e, and to base 2.
const BASES: [u64; 2] = [4, 9];

impl Algebra {
    /// What is no operation of the ring, if it is not: with infinities and NaN, and the clamps of an exponential.
    pub(super) fn beside_the_ring(&self, op: Binary, ty: ElementType, a: i64, b: i64) -> Option<Known> {
        let special = |term: i64| self.number(term).is_some_and(|x| !x.is_finite());
        match op {
            Binary::Add | Binary::Sub | Binary::Mul | Binary::Div if special(a) || special(b) => {
                let (x, y) = (self.drawn(a), self.drawn(b));
                Some(Some(self.constant(match op {
                    Binary::Add => x + y,
                    Binary::Sub => x - y,
                    Binary::Mul => x * y,
                    _ => x / y,
                })))
            }
            Binary::Max | Binary::Min => {
                let (low, high) = math::exp_range(ty)?;
                let bound = Some(if op == Binary::Max { low } else { high });
                let (a, b) = if self.number(a) == bound { (b, a) } else { (a, b) };
                if self.number(b) != bound {
                    return None;
                }
                if op == Binary::Min && self.tables.borrow().clamped.get(&a) != Some(&ty) {
                    return None;
                }
                let clamped = self.hashed(Tag::Clamp, u64::from(op == Binary::Min), ty, [a, 0]);
                let is_new = self.tables.borrow_mut().clamped.insert(clamped, ty).is_none();
                if op == Binary::Max && is_new {
                    // What the definition gives from here on stands for the exponential of what is clamped.
                    let defined = math::exp(self, ty, a);
                    let exponential = self.power(BASES[0], a);
                    if let Some(defined) = defined {
                        self.tables.borrow_mut().exponentials.insert(defined, exponential);
                    }
                }
                Some(Some(clamped))
            }
            _ => None,
        }
    }

    /// The exponential, if a product is what its definition ends with.
    pub(super) fn exponential_of(&self, term: i64) -> i64 {
        self.tables.borrow().exponentials.get(&term).copied().unwrap_or(term)
    }

    /// An exponential: a homomorphism, but for what is no number.
    fn power(&self, base: u64, x: i64) -> i64 {
        match self.number(x) {
            Some(x) if x.is_nan() => self.constant(x),
            Some(x) if x.is_infinite() => self.constant(if x < 0.0 { 0.0 } else { x }),
            _ => pairs::power(base, x),
        }
    }

    /// 2ˣ
    pub(super) fn exp2(&self, x: i64) -> i64 {
        self.power(BASES[1], x)
    }
}
