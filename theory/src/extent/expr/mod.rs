//! Quasi-polynomial integer expressions in normal form: what extents, indices and offsets are made of.
//!
//! An expression is a sum of coefficient · product of atoms; an atom is a variable, a floored quotient ⌊e / d⌋, or
//! max(e, 0). A remainder is written e − d·⌊e / d⌋ and a rounded-up quotient ⌊(e + d − 1) / d⌋, so that equal things
//! look equal. The normal form pulls whole multiples out of a quotient and merges nested ones, both by identities of
//! floor division:
//!
//! - ⌊(d·q + r) / d⌋ = q + ⌊r / d⌋;
//! - ⌊(g·a + c) / (g·b)⌋ = ⌊(a + ⌊c / g⌋) / b⌋ for integer a and constant c, where b may hold variables;
//! - ⌊(⌊a / b⌋ + k) / c⌋ = ⌊(a + k·b) / (b·c)⌋.
//!
//! Arithmetic is checked. An expression that would overflow, or grow past [`TERM_LIMIT`], becomes [`Expr::unknown`],
//! about which nothing can be proved; no wrong value ever comes out.

mod atoms;
mod sides;
mod terms;
mod views;

use std::cmp::Ordering;
use std::sync::Arc;

use tilewright_sorted::SortedMap;

use crate::work::{self, Step};

pub use self::atoms::Atoms;
use self::terms::Terms;

/// A variable: the kernel's dimensions come first (`0..dims`), then whatever the user of the expression numbers.
pub type Var = u32;

/// Most terms an expression may have.
pub const TERM_LIMIT: usize = 64;

/// Most factors of a term: powers of powers grow without bound otherwise.
const FACTOR_LIMIT: usize = 64;

/// Most terms of all levels that an expression under a quotient or a maximum may have: without a bound, quotients that
/// are put into quotients double their size each time.
const NESTED_LIMIT: usize = 1 << 14;

/// A factor of a term.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Atom {
    /// A variable.
    Var(Var),
    /// ⌊of / by⌋, by ≥ 1.
    Quotient {
        /// Dividend.
        of: Arc<Expr>,
        /// Divisor; positive wherever the expression is meant to have a value.
        by: Arc<Expr>,
    },
    /// max(of, 0): what is clipped. Minimum, maximum and selection are sums and products of it.
    Positive {
        /// The other operand.
        of: Arc<Expr>,
    },
}

/// What takes the place of a variable.
type Map<'a> = &'a dyn Fn(Var) -> Option<Expr>;

/// What became of quotients and maxima, by the addresses of their operands.
type Replaced = SortedMap<(*const Expr, Option<*const Expr>), Option<Expr>>;

/// Coefficient times a product of atoms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    /// Factors, sorted; none for the constant term.
    pub atoms: Atoms,
    /// Never zero.
    pub coefficient: i128,
}

/// An integer expression in normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// Sorted by atoms, each product once; unknown after overflow, or with too many terms.
    terms: Terms,
}

impl Ord for Expr {
    fn cmp(&self, other: &Self) -> Ordering {
        // Operands of quotients are shared: the same one is met far more often than an equal one.
        if std::ptr::eq(self, other) {
            return Ordering::Equal;
        }
        self.terms[..].cmp(&other.terms[..]).then(self.is_unknown().cmp(&other.is_unknown()))
    }
}

impl PartialOrd for Expr {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<i128> for Expr {
    fn from(value: i128) -> Self {
        Self::constant(value)
    }
}

impl Expr {
    /// A literal.
    pub fn constant(value: i128) -> Self {
        Self::of_one(Atoms::NONE, value)
    }

    /// A variable.
    pub fn var(var: Var) -> Self {
        Self::of_one(Atoms::one(Atom::Var(var)), 1)
    }

    /// Coefficient times a product of atoms.
    fn of_one(atoms: Atoms, coefficient: i128) -> Self {
        let terms = if coefficient == 0 { Terms::NONE } else { Terms::one(Term { atoms, coefficient }) };
        Self { terms }
    }

    /// The sum of terms in order, each product once.
    fn of_ordered(terms: Vec<Term>) -> Self {
        if terms.len() > TERM_LIMIT { Self::unknown() } else { Self { terms: terms.into() } }
    }

    /// An expression about which nothing is known.
    pub fn unknown() -> Self {
        Self { terms: Terms::UNKNOWN }
    }

    /// Whether something was lost on the way.
    #[inline(always)] // every sum asks
    pub fn is_unknown(&self) -> bool {
        self.terms.is_unknown()
    }

    /// The terms, sorted by their atoms.
    #[inline(always)] // unoptimised builds read terms all the time
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The value, if it is a literal.
    pub fn as_constant(&self) -> Option<i128> {
        match &self.terms[..] {
            _ if self.is_unknown() => None,
            [] => Some(0),
            [Term { atoms, coefficient }] if atoms.is_empty() => Some(*coefficient),
            _ => None,
        }
    }

    /// The variable, if it is nothing more than one.
    pub fn as_var(&self) -> Option<Var> {
        match &self.terms[..] {
            [Term { atoms, coefficient: 1 }] if !self.is_unknown() => match atoms[..] {
                [Atom::Var(v)] => Some(v),
                _ => None,
            },
            _ => None,
        }
    }

    /// The constant term.
    pub fn constant_term(&self) -> i128 {
        self.terms.first().filter(|t| t.atoms.is_empty()).map_or(0, |t| t.coefficient)
    }

    fn from_terms(mut terms: Vec<Term>) -> Self {
        work::count(Step::Expression, 1);
        if terms.len() == 1 {
            return terms.pop().map_or_else(Self::unknown, |term| Self::of_one(term.atoms, term.coefficient));
        }
        terms.sort_by(|a, b| a.atoms.cmp(&b.atoms));
        let mut merged: Vec<Term> = Vec::with_capacity(terms.len());
        for term in terms {
            match merged.last_mut() {
                Some(last) if last.atoms == term.atoms => {
                    let Some(sum) = last.coefficient.checked_add(term.coefficient) else { return Self::unknown() };
                    last.coefficient = sum;
                }
                _ => merged.push(term),
            }
        }
        merged.retain(|t| t.coefficient != 0);
        Self::of_ordered(merged)
    }

    /// self + other
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        self.plus(other, 1)
    }

    /// self + factor · other, both of which are in order already.
    fn plus(&self, other: &Self, factor: i128) -> Self {
        work::count(Step::Expression, 1);
        if self.is_unknown() || other.is_unknown() {
            return Self::unknown();
        }
        match (&self.terms[..], &other.terms[..]) {
            (_, []) => return self.clone(),
            ([], _) if factor == 1 => return other.clone(),
            // Mostly literals.
            ([own], [term]) if own.atoms == term.atoms => {
                let product = term.coefficient.checked_mul(factor);
                let sum = product.and_then(|product| own.coefficient.checked_add(product));
                return sum.map_or_else(Self::unknown, |sum| Self::of_one(own.atoms.clone(), sum));
            }
            _ => {}
        }
        let (own, more) = (&self.terms[..], &other.terms[..]);
        let mut terms = Vec::with_capacity(own.len() + more.len());
        // Loops: a debug build calls what iterators do.
        let (mut at, mut of) = (0, 0);
        while of < more.len() {
            let (term, mut before) = (&more[of], 0);
            while at < own.len() && before == 0 {
                match own[at].atoms.cmp(&term.atoms) {
                    Ordering::Less => terms.push(own[at].clone()),
                    Ordering::Equal => before = own[at].coefficient, // never 0
                    Ordering::Greater => break,
                }
                at += 1;
            }
            match term.coefficient.checked_mul(factor).and_then(|own| own.checked_add(before)) {
                Some(0) => {}
                Some(coefficient) => terms.push(Term { atoms: term.atoms.clone(), coefficient }),
                None => return Self::unknown(),
            }
            of += 1;
        }
        while at < own.len() {
            terms.push(own[at].clone());
            at += 1;
        }
        Self::of_ordered(terms)
    }

    /// self · factor
    #[must_use]
    pub fn scale(&self, factor: i128) -> Self {
        if factor == 1 {
            return self.clone();
        }
        Self::constant(0).plus(self, factor)
    }

    /// self − other
    #[must_use]
    pub fn sub(&self, other: &Self) -> Self {
        self.plus(other, -1)
    }

    /// self · other
    #[must_use]
    pub fn mul(&self, other: &Self) -> Self {
        if self.is_unknown() || other.is_unknown() || self.terms.len() * other.terms.len() > TERM_LIMIT * TERM_LIMIT {
            return Self::unknown();
        }
        match (&self.terms[..], &other.terms[..]) {
            ([Term { atoms, coefficient }], _) if atoms.is_empty() => return other.scale(*coefficient),
            (_, [Term { atoms, coefficient }]) if atoms.is_empty() => return self.scale(*coefficient),
            _ => {}
        }
        let mut terms = Vec::with_capacity(self.terms.len() * other.terms.len());
        for a in self.terms() {
            for b in other.terms() {
                let Some(coefficient) = a.coefficient.checked_mul(b.coefficient) else { return Self::unknown() };
                if a.atoms.len() + b.atoms.len() > FACTOR_LIMIT {
                    return Self::unknown();
                }
                let atoms = product(&a.atoms, &b.atoms);
                terms.push(Term { atoms, coefficient });
            }
        }
        Self::from_terms(terms)
    }

    /// ⌊self / by⌋; `by` must be positive wherever the result is used.
    #[must_use]
    pub fn floor_div(&self, by: &Self) -> Self {
        if self.is_unknown() || by.is_unknown() || !self.has_at_most(NESTED_LIMIT) || !by.has_at_most(NESTED_LIMIT) {
            return Self::unknown();
        }
        match by.as_constant() {
            Some(d) if d <= 0 => Self::unknown(),
            Some(1) => self.clone(),
            Some(d) => self.floor_div_literal(d),
            None if self == by => Self::constant(1),
            None => {
                // ⌊(q·by + r) / by⌋ = q + ⌊r / by⌋
                let (whole, rest) = self.multiples(by);
                if !whole.terms().is_empty() {
                    return whole.add(&rest.floor_div(by));
                }
                // ⌊0 / by⌋ = 0, ⌊−1 / by⌋ = −1
                if let Some(c @ (0 | -1)) = self.as_constant() {
                    return Self::constant(c);
                }
                // A common factor of the divisor and all terms but the constant cancels.
                let varying = self.terms.iter().filter(|t| !t.atoms.is_empty());
                let g = varying.chain(by.terms()).fold(0, |g, t| gcd(g, t.coefficient));
                if g > 1 {
                    return self.shrunk(g).floor_div(&by.shrunk(g));
                }
                Self::quotient(self.clone(), by.clone())
            }
        }
    }

    /// (q, r) with self = q·by + r, where q has a term for each multiple of `by` by one product whose terms all stand
    /// in `self`.
    fn multiples(&self, by: &Self) -> (Self, Self) {
        let (mut whole, mut rest) = (Self::constant(0), self.clone());
        let Some(lead) = by.terms.iter().max_by_key(|t| t.atoms.len()) else { return (whole, rest) };
        for term in self.terms() {
            let divides = term.coefficient.checked_rem(lead.coefficient) == Some(0);
            let Some(atoms) = without(&term.atoms, &lead.atoms).filter(|_| divides) else { continue };
            let factor = Self::of_one(atoms, term.coefficient / lead.coefficient);
            let product = by.mul(&factor);
            if !product.is_unknown() && product.terms.iter().all(|t| rest.terms.contains(t)) {
                (whole, rest) = (whole.add(&factor), rest.sub(&product));
            }
        }
        (whole, rest)
    }

    /// Every coefficient divided by g, rounded down.
    fn shrunk(&self, g: i128) -> Self {
        if g == 1 {
            return self.clone();
        }
        let mut terms = Vec::with_capacity(self.terms.len());
        for term in self.terms() {
            let coefficient = term.coefficient.div_euclid(g);
            if coefficient != 0 {
                terms.push(Term { atoms: term.atoms.clone(), coefficient });
            }
        }
        Self::of_ordered(terms)
    }

    fn floor_div_literal(&self, d: i128) -> Self {
        // Whole multiples of d leave the quotient.
        let mut whole = Vec::new();
        let mut rest = Vec::new();
        for term in self.terms() {
            let (q, r) = (term.coefficient.div_euclid(d), term.coefficient.rem_euclid(d));
            if q != 0 {
                whole.push(Term { atoms: term.atoms.clone(), coefficient: q });
            }
            if r != 0 {
                rest.push(Term { atoms: term.atoms.clone(), coefficient: r });
            }
        }
        // Both are in order, as these terms are.
        let (whole, rest) = (Self::of_ordered(whole), Self::of_ordered(rest));
        if rest.as_constant().is_some() {
            return whole; // a constant in [0, d) contributes nothing
        }
        // A common factor of the divisor and all other terms cancels; the constant is rounded down.
        let g = rest.terms.iter().filter(|t| !t.atoms.is_empty()).fold(d, |g, t| gcd(g, t.coefficient));
        let reduced = rest.shrunk(g);
        let d = d / g;
        if d == 1 {
            return whole.add(&reduced);
        }
        // ⌊(⌊a / b⌋ + k) / d⌋ = ⌊(a + k·b) / (b·d)⌋
        let k = reduced.constant_term();
        if let [Term { atoms, coefficient: 1 }] = &reduced.sub(&Self::constant(k)).terms[..]
            && let [Atom::Quotient { of, by }] = &atoms[..]
            && let Some(b) = by.as_constant()
            && let (Some(kb), Some(bd)) = (k.checked_mul(b), b.checked_mul(d))
        {
            return whole.add(&of.add(&Self::constant(kb)).floor_div_literal(bd));
        }
        whole.add(&Self::quotient(reduced, Self::constant(d)))
    }

    /// The product of atoms, coefficient 1.
    pub fn from_atoms(atoms: &[Atom]) -> Self {
        Self::of_one(atoms.into(), 1)
    }

    fn quotient(of: Self, by: Self) -> Self {
        let atom = Atom::Quotient { of: Arc::new(of), by: Arc::new(by) };
        Self::of_one(Atoms::one(atom), 1)
    }

    /// Whether it has at most so many terms, those under quotients and maxima included.
    pub fn has_at_most(&self, limit: usize) -> bool {
        fn left(e: &Expr, mut limit: usize) -> Option<usize> {
            for term in e.terms() {
                limit = limit.checked_sub(1)?;
                for atom in &term.atoms {
                    limit = match atom {
                        Atom::Var(_) => limit,
                        Atom::Quotient { of, by } => left(by, left(of, limit)?)?,
                        Atom::Positive { of } => left(of, limit)?,
                    };
                }
            }
            Some(limit)
        }
        left(self, limit).is_some()
    }

    /// max(self, 0)
    #[must_use]
    pub fn positive(&self) -> Self {
        if self.is_unknown() || !self.has_at_most(NESTED_LIMIT) {
            return Self::unknown();
        }
        if let Some(c) = self.as_constant() {
            return Self::constant(c.max(0));
        }
        let g = self.terms.iter().fold(0, |g, t| gcd(g, t.coefficient));
        let of = Arc::new(self.shrunk(g.max(1)));
        Self::of_one(Atoms::one(Atom::Positive { of }), g.max(1))
    }

    /// max(self, other)
    #[must_use]
    pub fn maximum(&self, other: &Self) -> Self {
        // Of a number as it is written: max(x − 5, 0), and not x − 5 + max(5 − x, 0).
        match self.as_constant() {
            Some(_) => self.add(&other.sub(self).positive()),
            None => other.add(&self.sub(other).positive()),
        }
    }

    /// min(self, other)
    #[must_use]
    pub fn minimum(&self, other: &Self) -> Self {
        self.sub(&self.sub(other).positive())
    }

    /// 1 where self ≥ 0, else 0.
    #[must_use]
    pub fn is_nonnegative(&self) -> Self {
        self.add(&Self::constant(1)).positive().sub(&self.positive())
    }

    /// ⌈self / by⌉
    #[must_use]
    pub fn ceil_div(&self, by: &Self) -> Self {
        self.add(by).sub(&Self::constant(1)).floor_div(by)
    }

    /// self − by·⌊self / by⌋
    #[must_use]
    pub fn modulo(&self, by: &Self) -> Self {
        self.sub(&self.floor_div(by).mul(by))
    }
}

/// The factors of both, in order.
fn product(a: &Atoms, b: &Atoms) -> Atoms {
    match (&a[..], &b[..]) {
        ([], _) => b.clone(),
        (_, []) => a.clone(),
        _ => {
            let mut atoms = [&a[..], &b[..]].concat();
            atoms.sort();
            atoms.into()
        }
    }
}

/// `atoms` without one occurrence of each of `remove`; none if one is missing.
fn without(atoms: &[Atom], remove: &[Atom]) -> Option<Atoms> {
    let mut rest = atoms.to_vec();
    for atom in remove {
        let at = rest.iter().position(|a| a == atom)?;
        rest.remove(at);
    }
    Some(rest.into())
}

/// Greatest common divisor, never negative; gcd(0, 0) = 0.
pub fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    // Small ones are divided by one instruction.
    while b != 0 {
        (a, b) = match (u64::try_from(a), u64::try_from(b)) {
            (Ok(a), Ok(b)) => (b.into(), (a % b).into()),
            _ => (b, a % b),
        };
    }
    i128::try_from(a).unwrap_or(i128::MAX)
}

/// Least common multiple of positive numbers; none on overflow.
pub fn lcm(a: i128, b: i128) -> Option<i128> {
    (a / gcd(a, b)).checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n() -> Expr {
        Expr::var(0)
    }

    fn show(e: &Expr) -> String {
        e.show(&|v| ["N", "M", "K"][v as usize].to_owned())
    }

    #[test]
    fn equal_things_look_equal() {
        let four = Expr::constant(4);
        let up = n().ceil_div(&four);
        assert_eq!(show(&up), "ceil(N / 4)");
        assert_eq!(up.ceil_div(&Expr::constant(8)), n().ceil_div(&Expr::constant(32)));
        assert_eq!(n().scale(4).ceil_div(&four), n());
        assert_eq!(n().scale(6).add(&Expr::constant(3)).floor_div(&Expr::constant(4)), {
            n().add(&n().scale(2).add(&Expr::constant(3)).floor_div(&four))
        });
        let product = n().mul(&Expr::var(1));
        assert_eq!(product.floor_div(&Expr::var(1)), n());
        assert_eq!(show(&product.sub(&Expr::constant(2))), "N * M - 2");
        // A row of N − 1 elements, found in three rows: ⌊(k mod 3·(N − 1)) / (N − 1)⌋ + 3·⌊k / 3·(N − 1)⌋ = ⌊k / (N −
        // 1)⌋
        let (row, k) = (n().sub(&Expr::constant(1)), Expr::var(2));
        let three = row.scale(3);
        assert_eq!(k.modulo(&three).floor_div(&row).add(&k.floor_div(&three).scale(3)), k.floor_div(&row));
    }

    #[test]
    fn overflow_is_unknown_and_never_wrong() {
        let huge = Expr::constant(i128::MAX);
        assert!(huge.add(&Expr::constant(1)).is_unknown());
        assert!(huge.mul(&huge).add(&n()).is_unknown());
        assert_eq!(Expr::unknown().eval(&[1]), None);
        assert!(n().floor_div(&Expr::constant(0)).is_unknown());
    }

    /// Random expressions mean the same before and after normalisation, and through `Size`.
    #[test]
    fn normal_form_keeps_the_value() {
        let mut state = 1_u64;
        let mut random = move |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..2000 {
            let values = [i128::from(random(30)), i128::from(random(9)) + 1];
            // Build the expression and its value side by side.
            let mut stack: Vec<(Expr, Option<i128>)> = vec![(n(), Some(values[0]))];
            for _ in 0..6 {
                let (e, v) = stack.last().cloned().expect("never empty");
                let c = i128::from(random(9)) - 4;
                let d = i128::from(random(6)) + 1;
                let sum = n().scale(d).add(&Expr::constant(d + 1));
                stack.push(match random(9) {
                    0 => (e.add(&Expr::constant(c)), v.map(|v| v + c)),
                    1 => (e.scale(c), v.map(|v| v * c)),
                    2 => (e.floor_div(&Expr::constant(d)), v.map(|v| v.div_euclid(d))),
                    3 => (e.ceil_div(&Expr::constant(d)), v.map(|v| -(-v).div_euclid(d))),
                    4 => (e.modulo(&Expr::constant(d)), v.map(|v| v.rem_euclid(d))),
                    5 => (e.floor_div(&sum), v.map(|v| v.div_euclid(d * values[0] + d + 1))),
                    6 => (e.modulo(&sum), v.map(|v| v.rem_euclid(d * values[0] + d + 1))),
                    7 => (e.mul(&sum).add(&n()), v.map(|v| v * (d * values[0] + d + 1) + values[0])),
                    _ => (e.mul(&Expr::var(1)).add(&n()), v.map(|v| v * values[1] + values[0])),
                });
                let (e, v) = stack.last().expect("pushed");
                assert_eq!(e.eval(&values), *v, "{}", show(e));
                // Sums of two in normal form are merged; that is what all terms at once come to.
                let (other, _) = &stack[random(stack.len() as u64) as usize];
                for factor in [-1, 0, 1, i128::from(random(5)) - 2] {
                    let scaled = other.terms.iter().cloned().map(|t| Term { coefficient: t.coefficient * factor, ..t });
                    let all = Expr::from_terms(e.terms.iter().cloned().chain(scaled).collect());
                    assert_eq!(e.plus(other, factor), all, "{} and {factor} times {}", show(e), show(other));
                }
                if let Some(size) = e.to_size(2) {
                    let dims = [values[0] as i64, values[1] as i64];
                    assert_eq!(size.eval(&dims).ok(), *v, "{}", show(e));
                    assert_eq!(Expr::from_size(&size), *e, "{}", show(e));
                }
            }
        }
    }
}
