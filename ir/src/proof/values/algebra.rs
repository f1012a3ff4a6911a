//! The algebra in which the checker computes data: what operations on elements are, as far as the numeric contract
//! fixes them.
//!
//! Integers and predicates are themselves. A float is a number below the prime P = 2⁶¹ − 1 that stands for a term:
//!
//! | what | stands for it |
//! | --- | --- |
//! | an element of a tensor, a scalar | a hash of which one it is: a symbol; some are NaN, 0 or 1 |
//! | an operation that rounds | a hash of the operation and its operands: an uninterpreted function |
//! | a constant, an operation on constants | the value itself, computed: kernels put constants where holes are |
//! | a conversion to a narrower type | a hash, unless the value has that type already (its low bits say of which one it is) |
//! | the larger, the smaller, a comparison | by an order that a drawn number gives to every term: so extremes and their places are those of any bracketing |
//! | the bits of a term | those of that drawn number; the same bits back are the term |
//!
//! What the contract frees is equal by algebra ([`Freedom`]): in a kernel with an unordered sum, `+` is the addition of
//! the field of P elements, which has any order and bracketing; with an unordered product, `·` is its multiplication;
//! with a `fold` that has a `merge`, all of + − · / are those of the field, in which two merges are equal if they are
//! equal as rational functions (up to chance: Schwartz and Zippel). Conversions that only round are then the identity.
//! With an `online sum`, an exponential is a homomorphism as well. No field has one into itself, but pairs of a number
//! below p and one below q do, if q divides p − 1: (·, x) becomes (gˣ, 1), where g has the order q. They are one ring,
//! modulo p·q. Exponentials are found in the code by their definition, all of which is evaluated as ever: only its
//! result is replaced. What is equal by the laws of a ring with an exponential is equal there, and other things by
//! chance, of about 2⁻³⁰.
//! Where magnitudes stand beside one, |a·b| = |a|·|b| as well: a term is negative if its number below p is no square,
//! which just one of it and its opposite is, since p is 3 modulo 4. Exponentials are squares.
//! Two terms that are not equal by these rules are the same number with a chance of about 2⁻⁶⁰.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Algorithm, Binary, Compare, Order, Reduction, Unary, Value};
use tilewright_kernel::format::Format;

use crate::kernel_ir::UnaryOp;
use crate::proof::row::{Known, integers, wrapped};

use super::distinct::distinct;
use super::field::{class, inverse, mix, pairs, product};
use ElementType::{F32, F64};

/// The modulus, a prime.
const P: u64 = (1 << 61) - 1;
/// Integers of less magnitude stand for themselves.
const SMALL: u64 = 1 << 32;
/// Where freedom needs no field: the bits of a symbol that say of which type it is, and the one that negates it.
pub(super) const CLASS: u64 = 7;
const SIGN: u64 = 8;

/// What the numeric contract leaves open in a kernel (language, numeric contract: reductions without an order, merges).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::proof) struct Freedom {
    /// Sums in any order.
    pub add: bool,
    /// Products in any order.
    pub mul: bool,
    /// Merges of folds.
    pub merge: bool,
    /// Corrections of sums: exp(a)·exp(b) = exp(a + b).
    pub online: bool,
    /// Corrections of sums of magnitudes: |a|·|b| = |a·b|.
    pub signs: bool,
}

impl Freedom {
    /// Of everything that the algorithm computes.
    pub fn of(algorithm: &Algorithm) -> Self {
        let (mut found, mut has_magnitudes) = (Self::default(), false);
        for value in algorithm.values.iter() {
            match *value {
                Value::Reduce { op, order, body, .. } if algorithm.types[body as usize].is_float() => {
                    found.add |= op == Reduction::Sum && order != Order::Ordered;
                    found.mul |= op == Reduction::Prod && order != Order::Ordered;
                    found.online |= order.is_online();
                    found.merge |= order.is_online();
                }
                Value::Unary(Unary::Abs, a) => has_magnitudes |= algorithm.types[a as usize].is_float(),
                Value::Scatter { op: Some(Reduction::Sum), term, .. } => {
                    found.add |= algorithm.types[term as usize].is_float();
                }
                Value::Fold { states, .. } => {
                    found.merge |= algorithm.folds[states.range()].iter().any(|s| s.merge.is_some());
                }
                _ => {}
            }
        }
        found.signs = found.online && has_magnitudes;
        found
    }

    /// Whether terms are elements of the field.
    pub(super) fn is_field(self) -> bool {
        self.add || self.mul || self.merge
    }
}

/// What a hash is of; numbers of operations are added.
#[derive(Clone, Copy)]
pub(super) enum Tag {
    Literal = 1,
    Element,
    Scalar,
    Drawn,
    Cast,
    Integer,
    Clamp,
    Unary = 0x100,
    Binary = 0x200,
    Fma = 0x300,
}

/// Numbers that were met.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// The values of constants that are no small integers.
    constants: BTreeMap<i64, f64>,
    /// By some bits of a term, whether a constant has these: every operand is looked up, and most are none.
    hints: u64,
    /// The term that has these bits of a type.
    terms: BTreeMap<(ElementType, u64), i64>,
    /// Arguments of exponentials once they are clamped.
    pub clamped: BTreeMap<i64, ElementType>,
    /// What such an argument is rounded by, with the number that is taken off again: its bits are those of this
    /// number, as they are for arguments near 0. So the powers of two that the definition makes of them are 1, and what
    /// it gives is a polynomial of the argument.
    rounded: BTreeMap<i64, f64>,
    /// What the definition of the exponential gives, and what stands for it.
    pub exponentials: BTreeMap<i64, i64>,
}

impl Tables {
    const fn bit(term: i64) -> u64 {
        1 << (term >> 8 & 63)
    }

    fn insert(&mut self, term: i64, value: f64) {
        self.hints |= Self::bit(term);
        self.constants.insert(term, value);
    }

    pub(super) fn constant(&self, term: i64) -> Option<f64> {
        if self.hints & Self::bit(term) == 0 { None } else { self.constants.get(&term).copied() }
    }
}

/// The operations.
#[derive(Debug)]
pub(in crate::proof) struct Algebra {
    pub(super) freedom: Freedom,
    modulus: u64,
    /// Data is drawn by it.
    seed: u64,
    /// Drawn integers are mostly indices: the largest extent.
    pub(super) reach: i64,
    /// Tensors of integers that are distinct, with how many each has.
    distinct: BTreeMap<u16, i64>,
    pub(super) tables: RefCell<Tables>,
}

impl Algebra {
    /// For a kernel that leaves so much open, with tensors of extents up to `reach`.
    pub fn new(freedom: Freedom, seed: u64, reach: i64) -> Self {
        let modulus = if freedom.online { pairs::MODULUS } else { P };
        Self { freedom, modulus, seed, reach, distinct: BTreeMap::new(), tables: RefCell::default() }
    }

    /// The same where the integers of some tensors are distinct, as far as their types have so many: each with how many
    /// there are.
    pub fn with_distinct(self, distinct: BTreeMap<u16, i64>) -> Self {
        Self { distinct, ..self }
    }

    /// What it leaves open.
    pub fn freedom(&self) -> Freedom {
        self.freedom
    }

    // Terms.

    /// The term of a hash, of a type.
    fn term(&self, ty: ElementType, words: [u64; 4]) -> i64 {
        let hash = mix(words) % self.modulus;
        let term = if self.freedom.is_field() { hash } else { hash & !(CLASS | SIGN) | class(ty) };
        // Small numbers are constants.
        if (SMALL..=self.modulus - SMALL).contains(&term) {
            term as i64
        } else {
            self.term(ty, [words[0], words[1], words[2], hash])
        }
    }

    pub(super) fn hashed(&self, tag: Tag, number: u64, ty: ElementType, operands: [i64; 2]) -> i64 {
        let tag = (tag as u64 + number) | (class(ty) << 32);
        self.term(ty, [tag, operands[0] as u64, operands[1] as u64, 0])
    }

    /// The term of a constant. That of its negative is known from then on, too, since sums and products of constants
    /// come to it: whether a term is a constant must not depend on what is computed later.
    pub(super) fn constant(&self, x: f64) -> i64 {
        if x == x.trunc() && x.abs() < SMALL as f64 {
            return if x < 0.0 { self.modulus as i64 + x as i64 } else { x as i64 };
        }
        let size = x.abs();
        let bits = if size.is_nan() { f64::NAN.to_bits() } else { size.to_bits() };
        let term = self.hashed(Tag::Literal, 0, F64, [bits as i64, 0]);
        let mut tables = self.tables.borrow_mut();
        tables.insert(term, size);
        if size.is_nan() {
            return term;
        }
        let negative = self.opposite(term);
        tables.insert(negative, -size);
        if x < 0.0 { negative } else { term }
    }

    /// The value, if a term is a constant.
    pub(super) fn number(&self, term: i64) -> Option<f64> {
        let (term, small, modulus) = (term, SMALL as i64, self.modulus as i64);
        match term {
            _ if term < small => Some(term as f64),
            _ if term > modulus - small => Some(-((modulus - term) as f64)),
            _ => self.tables.borrow().constant(term),
        }
    }

    /// −a: of a constant the constant, whichever of the two was met first. NaN has no sign here.
    fn negated(&self, a: i64) -> i64 {
        match self.number(a) {
            Some(x) if x.is_nan() => a,
            Some(x) => self.constant(-x),
            None => self.opposite(a),
        }
    }

    /// The term that stands for −a.
    fn opposite(&self, a: i64) -> i64 {
        let small = a < SMALL as i64 || a > (self.modulus - SMALL) as i64;
        match a {
            0 => 0,
            _ if small || self.freedom.is_field() => self.modulus as i64 - a,
            _ => a ^ SIGN as i64,
        }
    }

    /// The number by which a term is ordered, of `f32`: its own, or a drawn one.
    pub(super) fn drawn(&self, term: i64) -> f64 {
        if let Some(own) = self.number(term) {
            return own;
        }
        let other = self.negated(term);
        let (least, is_other) = (term.min(other), other < term);
        let hash = mix([Tag::Drawn as u64, least as u64, 0, 0]);
        let (fraction, exponent) = (hash & 0x7F_FFFF, 1 + (hash >> 23) % 253);
        let sign = match self.freedom.signs.then(|| pairs::character(term)) {
            Some(1) => false,
            Some(-1) => true,
            _ => (hash >> 40 & 1 == 1) != is_other,
        };
        let size = f64::from(f32::from_bits((exponent << 23 | fraction) as u32));
        if sign { -size } else { size }
    }

    fn order(&self, a: i64, b: i64) -> Option<Ordering> {
        if a == b && self.number(a).is_none_or(|n| !n.is_nan()) {
            return Some(Ordering::Equal);
        }
        let (x, y) = (self.drawn(a), self.drawn(b));
        Some(x.partial_cmp(&y)?.then(a.cmp(&b)))
    }

    /// The bits of a float.
    pub(super) fn bits(&self, ty: ElementType, a: i64) -> Known {
        let format = Format::of(ty)?;
        if let Some(by) = self.tables.borrow().rounded.get(&a) {
            return Some(format.from_f64(*by) as i64);
        }
        let bits = format.from_f64(self.drawn(a));
        if self.number(a).is_none() {
            if !matches!(ty, F32 | F64) {
                // So few that different terms would have the same.
                return None;
            }
            // `negated` looks things up itself, so it is asked before the tables are taken.
            let negative = self.negated(a);
            let mut tables = self.tables.borrow_mut();
            tables.terms.insert((ty, bits), a);
            tables.terms.insert((ty, bits ^ format.sign()), negative);
        }
        Some(bits as i64)
    }

    /// The float with these bits.
    pub fn of_bits(&self, ty: ElementType, bits: u64) -> Known {
        let known = self.tables.borrow().terms.get(&(ty, bits)).copied();
        known.or_else(|| Some(self.constant(Format::of(ty)?.value(bits))))
    }

    /// The end of a float type: its infinity, or its largest number if it has none.
    pub fn extreme(&self, ty: ElementType, sign: f64) -> Known {
        let format = Format::of(ty)?;
        let size = format.value(format.infinity().unwrap_or(format.largest()));
        Some(self.constant(size * sign))
    }

    // Data.

    /// An element of a tensor, `at` elements after its first one.
    pub fn element(&self, parameter: u16, at: i64, ty: ElementType) -> i64 {
        let Some(count) = self.distinct.get(&parameter).filter(|_| !ty.is_float()) else {
            return self.data(ty, Tag::Element, parameter, at);
        };
        wrapped(ty, distinct(*count, at, mix([Tag::Element as u64, parameter.into(), 0, self.seed])))
    }

    /// A scalar.
    pub fn scalar(&self, parameter: u16, ty: ElementType) -> i64 {
        self.data(ty, Tag::Scalar, parameter, 0)
    }

    fn data(&self, ty: ElementType, tag: Tag, parameter: u16, at: i64) -> i64 {
        let words = [tag as u64, u64::from(parameter), at as u64, self.seed];
        if ty.is_float() {
            // Some are no symbols but NaN, or equal, as places of extremes and comparisons must cope with. Not where
            // merges divide.
            return match mix(words) >> 32 & 31 {
                0 if !self.freedom.merge => self.constant(f64::NAN),
                1 | 2 if !self.freedom.merge => 0,
                3 if !self.freedom.merge => 1,
                _ => self.term(ty, words),
            };
        }
        let hash = mix(words);
        match hash >> 62 {
            0 => wrapped(ty, hash as i64),
            // Indices, some of them outside; also of unsigned types, where those are large.
            _ => wrapped(ty, (hash % (self.reach.unsigned_abs() + 5)) as i64 - 2),
        }
    }

    // Operations; none where the value is not known.

    pub fn unary(&self, op: UnaryOp, ty: ElementType, a: i64) -> Known {
        if !ty.is_float() {
            return match op {
                UnaryOp::Not => Some(wrapped(ty, !a)),
                UnaryOp::Neg => Some(wrapped(ty, a.wrapping_neg())),
                UnaryOp::Abs if matches!(ty, ElementType::U64) => Some(a),
                UnaryOp::Abs => Some(wrapped(ty, a.wrapping_abs())),
                _ => None,
            };
        }
        let known = self.number(a);
        match op {
            UnaryOp::Neg => return Some(self.negated(a)),
            UnaryOp::Abs => return Some(if self.drawn(a) < 0.0 { self.negated(a) } else { a }),
            UnaryOp::Exp2Approx if self.freedom.online => return Some(self.exp2(a)),
            UnaryOp::Recip if self.freedom.merge => {
                if let Some(inverse) = inverse(a, self.modulus) {
                    return Some(inverse);
                }
            }
            _ => {}
        }
        let computed = known.and_then(|x| match op {
            UnaryOp::Floor => Some(x.floor()),
            UnaryOp::Ceil => Some(x.ceil()),
            UnaryOp::Trunc => Some(x.trunc()),
            UnaryOp::RoundEven => Some(x.round_ties_even()),
            UnaryOp::Sqrt => Some(rounded(ty, f64::sqrt(x), || f64::from((x as f32).sqrt()))),
            UnaryOp::Recip => Some(rounded(ty, 1.0 / x, || f64::from(1.0 / x as f32))),
            // Of zeros, which holes are filled with, approximations are exact.
            UnaryOp::SinApprox | UnaryOp::TanhApprox | UnaryOp::SqrtApprox if x == 0.0 => Some(0.0),
            UnaryOp::CosApprox | UnaryOp::Exp2Approx if x == 0.0 => Some(1.0),
            _ => None,
        });
        Some(computed.map_or_else(|| self.hashed(Tag::Unary, op as u64, ty, [a, 0]), |x| self.constant(x)))
    }

    pub fn binary(&self, op: Binary, ty: ElementType, a: i64, b: i64) -> Known {
        if !ty.is_float() {
            return integers(op, ty, Some(a), Some(b));
        }
        let Freedom { add, mul, merge, online, .. } = self.freedom;
        let modulus = self.modulus;
        if online && let Some(found) = self.beside_the_ring(op, ty, a, b) {
            return found;
        }
        match op {
            Binary::Add if add || merge => return Some(((a + b) as u64 % modulus) as i64),
            Binary::Sub if merge => return Some(((a + modulus as i64 - b) as u64 % modulus) as i64),
            Binary::Mul if mul || merge => {
                let found = product(a, b, modulus);
                return Some(if online { self.exponential_of(found) } else { found });
            }
            Binary::Div if merge && b != 0 => return inverse(b, modulus).map(|b| product(a, b, modulus)),
            Binary::Add if a == 0 => return Some(b),
            Binary::Add | Binary::Sub if b == 0 => return Some(a),
            Binary::Mul if a == 1 => return Some(b),
            Binary::Mul | Binary::Div if b == 1 => return Some(a),
            _ => {}
        }
        let (x, y) = (self.number(a), self.number(b));
        let is_nan = |n: Option<f64>| n.is_some_and(f64::is_nan);
        if matches!(op, Binary::Max | Binary::Min | Binary::MaxNum | Binary::MinNum) {
            let ignores = matches!(op, Binary::MaxNum | Binary::MinNum);
            let larger = matches!(op, Binary::Max | Binary::MaxNum);
            return Some(match (is_nan(x), is_nan(y)) {
                (true, _) => {
                    if ignores {
                        b
                    } else {
                        a
                    }
                }
                (_, true) => {
                    if ignores {
                        a
                    } else {
                        b
                    }
                }
                _ => {
                    if (self.order(a, b) == Some(Ordering::Greater)) == larger {
                        a
                    } else {
                        b
                    }
                }
            });
        }
        if let (Some(x), Some(y)) = (x, y) {
            let (f, g) = (x as f32, y as f32);
            let computed = match op {
                Binary::Add => Some(rounded(ty, x + y, || f64::from(f + g))),
                Binary::Sub => Some(rounded(ty, x - y, || f64::from(f - g))),
                Binary::Mul => Some(rounded(ty, x * y, || f64::from(f * g))),
                Binary::Div => Some(rounded(ty, x / y, || f64::from(f / g))),
                _ => None,
            };
            return computed.map(|x| self.constant(x));
        }
        // What does not depend on the order of its operands.
        let (a, b) = if matches!(op, Binary::Add | Binary::Mul) { (a.min(b), a.max(b)) } else { (a, b) };
        Some(self.hashed(Tag::Binary, op as u64, ty, [a, b]))
    }

    pub fn fma(&self, ty: ElementType, a: i64, b: i64, c: i64) -> Known {
        if !ty.is_float() || self.freedom.merge {
            let found = self.binary(Binary::Add, ty, self.binary(Binary::Mul, ty, a, b)?, c)?;
            if self.freedom.online
                && let Some(by) = self.number(c)
            {
                let mut tables = self.tables.borrow_mut();
                if [a, b].iter().any(|v| tables.clamped.contains_key(v)) {
                    tables.rounded.insert(found, by);
                }
            }
            return Some(found);
        }
        if let (Some(x), Some(y), Some(z)) = (self.number(a), self.number(b), self.number(c)) {
            let single = || f64::from((x as f32).mul_add(y as f32, z as f32));
            return Some(self.constant(rounded(ty, x.mul_add(y, z), single)));
        }
        if a == 0 && b == 0 {
            return Some(c);
        }
        let factors = mix([a.min(b) as u64, a.max(b) as u64, 0, 0]);
        Some(self.hashed(Tag::Fma, 0, ty, [factors as i64, c]))
    }

    pub fn compare(&self, op: Compare, ty: ElementType, a: i64, b: i64) -> bool {
        let order = match ty {
            ElementType::U64 => Some((a as u64).cmp(&(b as u64))),
            _ if ty.is_float() => self.order(a, b),
            _ => Some(a.cmp(&b)),
        };
        match op {
            Compare::Eq => order == Some(Ordering::Equal),
            Compare::Ne => order != Some(Ordering::Equal),
            Compare::Lt => order == Some(Ordering::Less),
            Compare::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Compare::Gt => order == Some(Ordering::Greater),
            Compare::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

/// What an operation gives: in `f64`, or in `f32`.
fn rounded(ty: ElementType, wide: f64, single: impl FnOnce() -> f64) -> f64 {
    if ty == F64 { wide } else { single() }
}
