//! Coefficients of forms and polynomials: what is the same for every term.

use super::key::key;
use crate::algorithm::{Algorithm, ValueId};

/// Σ literal · Π factors, all of them the same for every term: sorted, no literal 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coefficient(pub Vec<(f64, Vec<Factor>)>);

/// A factor of a coefficient.
#[derive(Clone, Debug)]
pub struct Factor {
    /// A value of the algorithm.
    pub value: ValueId,
    /// Whether it is divided by.
    pub inverse: bool,
    /// What tells values apart.
    key: String,
}

impl Factor {
    pub(super) fn new(algorithm: &Algorithm, value: ValueId, inverse: bool) -> Self {
        Self { value, inverse, key: key(algorithm, value, &[]) }
    }
}

impl PartialEq for Factor {
    fn eq(&self, other: &Self) -> bool {
        self.inverse == other.inverse && self.key == other.key
    }
}

impl Coefficient {
    /// 1
    pub(super) fn one() -> Self {
        Self(vec![(1.0, Vec::new())])
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// The number that it is; none if it has factors.
    pub fn literal(&self) -> Option<f64> {
        match &self.0[..] {
            [] => Some(0.0),
            [(literal, factors)] if factors.is_empty() => Some(*literal),
            _ => None,
        }
    }

    pub(super) fn add(mut self, other: &Self, sign: f64) -> Option<Self> {
        for (literal, factors) in &other.0 {
            let literal = literal * sign;
            match self.0.iter().position(|(_, own)| own == factors) {
                Some(at) => {
                    let (a, b) = (self.0[at].0, literal);
                    let sum = a + b;
                    // What the rounding of each operand lost (Knuth's two-sum).
                    let from_b = sum - a;
                    if (a - (sum - from_b)) + (b - from_b) != 0.0 || !sum.is_finite() {
                        return None;
                    }
                    self.0[at].0 = sum;
                    if sum == 0.0 {
                        self.0.remove(at);
                    }
                }
                None => self.0.push((literal, factors.clone())),
            }
        }
        self.0.sort_by(|a, b| {
            let keys = |of: &[Factor]| of.iter().map(|f| (f.key.clone(), f.inverse)).collect::<Vec<_>>();
            keys(&a.1).cmp(&keys(&b.1))
        });
        Some(self)
    }

    pub(super) fn negated(mut self) -> Self {
        self.0.iter_mut().for_each(|part| part.0 = -part.0);
        self
    }

    pub(super) fn times(mut self, by: f64) -> Option<Self> {
        if by == 0.0 {
            return Some(Self::default());
        }
        for part in &mut self.0 {
            let product = part.0 * by;
            if part.0.mul_add(by, -product) != 0.0 || !product.is_normal() {
                return None;
            }
            part.0 = product;
        }
        Some(self)
    }

    /// The product of two; none where literals are rounded.
    pub(super) fn multiply(&self, other: &Self) -> Option<Self> {
        let mut all = Self::default();
        for (literal, factors) in &other.0 {
            let product = factors.iter().fold(self.clone(), |product, factor| product.with(factor));
            all = all.add(&product.times(*literal)?, 1.0)?;
        }
        Some(all)
    }

    pub(super) fn with(mut self, factor: &Factor) -> Self {
        let against = Factor { inverse: !factor.inverse, ..factor.clone() };
        for (_, factors) in &mut self.0 {
            match factors.iter().position(|f| *f == against) {
                Some(at) => {
                    factors.remove(at);
                }
                None => {
                    factors.push(factor.clone());
                    factors.sort_by(|a, b| (&a.key, a.inverse).cmp(&(&b.key, b.inverse)));
                }
            }
        }
        self
    }
}
