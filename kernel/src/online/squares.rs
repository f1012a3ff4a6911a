//! Sums of squares of differences from a mean: Σ (u − μ)², where μ is the mean of the same u; and Σ w·(x − μ)², where
//! μ is Σ w·x / Σ w.
//!
//! With z = u − μ, and M₀ = n, M₁, M₂, … the sums of the powers of z over the terms so far, a change of the mean by
//! e = μ − μ' makes each z + e, so that Σ (z + e)ᵏ = Σᵢ C(k, i)·Mᵢ·eᵏ⁻ⁱ. M₁ is 0, since μ is their mean. So what is a
//! polynomial of z has a correction, which needs the sums of the lower powers: [`moments`] decides it. Kernels have
//! that of squares, M₂ + n·e². With weights, Mₖ = Σ w·zᵏ: the same, where M₀ is the sum of the weights.

use std::collections::BTreeMap;

use super::chain::{NoChain, Pair, Parts, Rule};
use super::coefficient::{Coefficient, Factor};
use super::copy::{Env, Swap, mentions, push};
use super::factor::Why;
use super::key::{index_key, key, literal, varies};
use super::weights::{self, is_never_negative};
use super::{Obstacle, correction, is_same};
use crate::algorithm::{Algorithm, AxisId, Binary, Index, IndexId, Reduction, Unary, Value, ValueId};
use crate::element::ElementType;

/// Highest power of a polynomial.
const MOST: u32 = 8;

/// The parts of a sum of squares, over means in the place of m.
pub(super) fn find(pair: &mut Pair<'_>) -> Result<(Rule, Parts), NoChain> {
    let &mut Pair { term: written, now, before, axis, earlier, .. } = pair;
    let own = pair.algorithm.axis_lists[earlier.axes.range()][0];
    let (term, of) = match earlier.divisor {
        Some(by) if is_count(pair.algorithm, by, own) => (written, None),
        Some(by) => {
            let places = pair.places.clone();
            (written, Some(weights::find(pair, by, &places).ok_or(NoChain::NotExtreme)?))
        }
        None => {
            let by = divisor(pair.algorithm, written, now).ok_or(NoChain::Square(written))?;
            let of = match is_count(pair.algorithm, by, axis) {
                true => None,
                false => Some(weights::find(pair, by, &Env::new()).ok_or(NoChain::Square(written))?),
            };
            let is_divisor = |algorithm: &Algorithm, other: ValueId| match &of {
                None => is_count(algorithm, other, axis),
                Some(_) => is_same(algorithm, by, other),
            };
            (mean(pair.algorithm, written, now, &is_divisor).ok_or(NoChain::Square(written))?, of)
        }
    };
    let algorithm = &mut *pair.algorithm;
    let text = |value: ValueId| key(algorithm, value, &[]);
    let (u, weight) = match &of {
        Some(of) => (text(of.x), Some(text(of.weights.term))),
        None => (pair.key.clone(), None),
    };
    let found = match moments(algorithm, term, (&u, weight.as_deref()), now, &[axis]) {
        Ok(found) => found,
        Err(obstacle) => {
            // There may be one of another kind.
            let is_factor = correction(algorithm, Reduction::Sum, term, now, &[axis]).is_ok();
            return Err(if is_factor { NoChain::Square(term) } else { NoChain::Obstacle(obstacle) });
        }
    };
    let is_square = found.len() == 3 && found[2].literal() == Some(1.0) && found[..2].iter().all(Coefficient::is_zero);
    if !is_square || !is_product(algorithm, term, (&u, weight.as_deref()), now) {
        return Err(NoChain::Square(term));
    }
    let element = algorithm.types[term as usize];
    if let Some(of) = of {
        if !is_never_negative(algorithm, of.weights.term) {
            return Err(NoChain::Negative(of.written));
        }
        let [was, is] = [before, now].map(|v| push(algorithm, Value::Variable(v), element));
        let moved = push(algorithm, Value::Binary(Binary::Sub, was, is), element);
        let correction = push(algorithm, Value::Binary(Binary::Mul, moved, moved), element);
        let weight = of.weights.term;
        return Ok((Rule::Squares { weights: Some(of.weights) }, Parts { term, weight, correction }));
    }
    let with = Value::Variable(before);
    let correction = Swap { algorithm, u: &pair.key, axis, with }.value(term).map_err(NoChain::Square)?;
    let weight = push(algorithm, Value::Unary(Unary::Abs, pair.u), element);
    Ok((Rule::Squares { weights: None }, Parts { term, weight, correction }))
}

/// A product of two differences between u and the mean, and of the weight: then no rounding of it is larger than a part
/// of it.
fn is_product(algorithm: &Algorithm, term: ValueId, (u, weight): (&str, Option<&str>), now: u32) -> bool {
    let is_mean = |value: ValueId| algorithm.values[value as usize] == Value::Variable(now);
    let is_u = |value: ValueId| key(algorithm, value, &[]) == u;
    let is_difference = |value: ValueId| match algorithm.values[value as usize] {
        Value::Binary(Binary::Sub, a, b) => is_u(a) && is_mean(b) || is_mean(a) && is_u(b),
        _ => false,
    };
    let (mut open, mut differences) = (vec![term], 0);
    while let Some(value) = open.pop() {
        if weight.is_some_and(|weight| key(algorithm, value, &[]) == weight) {
            // It is there once: `moments` has found that.
            continue;
        }
        if is_difference(value) {
            differences += 1;
        } else if let Value::Binary(Binary::Mul, a, b) = algorithm.values[value as usize] {
            open.extend([a, b]);
        } else {
            return false;
        }
    }
    differences == 2
}

/// What the variable is divided by where a term has it first.
fn divisor(algorithm: &Algorithm, value: ValueId, now: u32) -> Option<ValueId> {
    match algorithm.values[value as usize] {
        Value::Binary(Binary::Div, sum, by) if algorithm.values[sum as usize] == Value::Variable(now) => Some(by),
        _ => algorithm.operands(value).into_iter().find_map(|v| divisor(algorithm, v, now)),
    }
}

/// The term with the variable as a mean, where it stands for the sum; none where that is not divided by what makes it a
/// mean.
fn mean(
    algorithm: &mut Algorithm,
    value: ValueId,
    now: u32,
    is_divisor: &dyn Fn(&Algorithm, ValueId) -> bool,
) -> Option<ValueId> {
    if !mentions(algorithm, value, now) {
        return Some(value);
    }
    let ty = algorithm.types[value as usize];
    let node = algorithm.values[value as usize];
    match node {
        Value::Binary(Binary::Div, sum, by)
            if algorithm.values[sum as usize] == Value::Variable(now) && is_divisor(algorithm, by) =>
        {
            Some(sum)
        }
        Value::Variable(_) => None,
        _ => {
            let mut is_mean = true;
            let node = node.of(|v| {
                mean(algorithm, v, now, is_divisor).unwrap_or_else(|| {
                    is_mean = false;
                    v
                })
            });
            is_mean.then(|| push(algorithm, node, ty))
        }
    }
}

/// Whether a value is the number of terms of an axis, wherever there are any.
fn is_count(algorithm: &Algorithm, value: ValueId, axis: AxisId) -> bool {
    let of = &algorithm.axes[axis as usize];
    let Some(terms) = difference(algorithm, of.upper, of.lower) else { return false };
    match algorithm.values[value as usize] {
        Value::FromIndex(index) => {
            let mut own = BTreeMap::new();
            linear(algorithm, index, 1, &mut own).is_some() && cleaned(own) == terms
        }
        _ => {
            let only = terms.get("").filter(|_| terms.len() == 1);
            only.is_some_and(|n| literal(algorithm, value) == Some(*n as f64))
        }
    }
}

/// Numbers times products; the empty one is 1.
type Linear = BTreeMap<String, i64>;

fn difference(algorithm: &Algorithm, a: IndexId, b: IndexId) -> Option<Linear> {
    let mut all = Linear::new();
    linear(algorithm, a, 1, &mut all)?;
    linear(algorithm, b, -1, &mut all)?;
    Some(cleaned(all))
}

fn cleaned(mut all: Linear) -> Linear {
    all.retain(|_, n| *n != 0);
    all
}

/// Adds an index, times a number; none beyond 64 bits.
fn linear(algorithm: &Algorithm, index: IndexId, by: i64, all: &mut Linear) -> Option<()> {
    let mut add = |key: String, n: i64| {
        let sum = all.entry(key).or_insert(0);
        *sum = sum.checked_add(n)?;
        Some(())
    };
    let number = |i: IndexId| match algorithm.indices[i as usize] {
        Index::Literal(n) => Some(n),
        _ => None,
    };
    match algorithm.indices[index as usize] {
        Index::Literal(n) => add(String::new(), n.checked_mul(by)?),
        Index::Add(a, b) => linear(algorithm, a, by, all).and_then(|()| linear(algorithm, b, by, all)),
        Index::Sub(a, b) => linear(algorithm, a, by, all).and_then(|()| linear(algorithm, b, by.checked_neg()?, all)),
        Index::Mul(a, b) => match (number(a), number(b)) {
            (Some(n), _) => linear(algorithm, b, by.checked_mul(n)?, all),
            (_, Some(n)) => linear(algorithm, a, by.checked_mul(n)?, all),
            _ => add(index_key(algorithm, index, &[]), by),
        },
        _ => add(index_key(algorithm, index, &[]), by),
    }
}

/// A polynomial of u, the variable and the weight: by the powers of these.
#[derive(Clone, Debug, Default, PartialEq)]
struct Polynomial(BTreeMap<(u32, u32, u32), Coefficient>);

impl Polynomial {
    fn of(powers: (u32, u32, u32), coefficient: Coefficient) -> Self {
        let mut found = Self::default();
        if !coefficient.is_zero() {
            found.0.insert(powers, coefficient);
        }
        found
    }

    /// The sum with another one, times `sign`; none where literals are rounded.
    fn add(mut self, other: &Self, sign: f64) -> Option<Self> {
        for (powers, coefficient) in &other.0 {
            let sum = self.0.remove(powers).unwrap_or_default().add(coefficient, sign)?;
            if !sum.is_zero() {
                self.0.insert(*powers, sum);
            }
        }
        Some(self)
    }

    fn multiply(&self, other: &Self) -> Option<Self> {
        let mut all = Self::default();
        for ((i, j, v), a) in &self.0 {
            for ((k, l, w), b) in &other.0 {
                let powers = (i + k, j + l, v + w);
                if powers.0 + powers.1 > MOST || powers.2 > MOST {
                    return None;
                }
                all = all.add(&Self::of(powers, a.multiply(b)?), 1.0)?;
            }
        }
        Some(all)
    }

    /// The number that it is the same for all terms, if it is.
    fn constant(&self) -> Option<Coefficient> {
        match self.0.len() {
            0 => Some(Coefficient::default()),
            1 => self.0.get(&(0, 0, 0)).cloned(),
            _ => None,
        }
    }
}

/// The coefficients c₀, c₁, … of a term Σ cₖ·(u − m)ᵏ, m the variable with the number `of`, each of them the same for
/// all terms; or of a term w·Σ cₖ·(u − m)ᵏ, if there is a weight w. `u` is the key of u, and `weight` that of w.
///
/// # Errors
/// The part of the term that is no polynomial of u and m, or the term, if it is none of their difference.
pub fn moments(
    algorithm: &Algorithm,
    term: ValueId,
    (u, weight): (&str, Option<&str>),
    of: u32,
    axes: &[AxisId],
) -> Result<Vec<Coefficient>, Obstacle> {
    let found = Terms { algorithm, u, weight, of, axes }.polynomial(term)?;
    let refuse = |why| Err(Obstacle { value: term, why });
    let once = u32::from(weight.is_some());
    if found.0.keys().any(|powers| powers.2 != once) {
        return refuse(Why::Weight);
    }
    let highest = found.0.keys().map(|(i, j, _)| i + j).max().unwrap_or(0);
    let coefficients: Vec<Coefficient> =
        (0..=highest).map(|k| found.0.get(&(k, 0, once)).cloned().unwrap_or_default()).collect();
    for (k, coefficient) in coefficients.iter().enumerate() {
        // (u − m)ᵏ = Σ C(k, j)·uᵏ⁻ʲ·(−m)ʲ
        let mut binomial = 1.0;
        for j in 0..=k {
            let Some(expected) = coefficient.clone().times(binomial) else { return refuse(Why::Literal) };
            if found.0.get(&((k - j) as u32, j as u32, once)).cloned().unwrap_or_default() != expected {
                return refuse(Why::Shift);
            }
            binomial = -binomial * (k - j) as f64 / (j + 1) as f64;
        }
    }
    Ok(coefficients)
}

struct Terms<'a> {
    algorithm: &'a Algorithm,
    u: &'a str,
    weight: Option<&'a str>,
    of: u32,
    axes: &'a [AxisId],
}

impl Terms<'_> {
    fn polynomial(&self, value: ValueId) -> Result<Polynomial, Obstacle> {
        let algorithm = self.algorithm;
        let refuse = |why| Obstacle { value, why };
        let one = || Coefficient(vec![(1.0, Vec::new())]);
        let node = algorithm.values[value as usize];
        if node == Value::Variable(self.of) {
            return Ok(Polynomial::of((0, 1, 0), one()));
        }
        let text = key(algorithm, value, &[]);
        if text == self.u {
            return Ok(Polynomial::of((1, 0, 0), one()));
        }
        if Some(&*text) == self.weight {
            return Ok(Polynomial::of((0, 0, 1), one()));
        }
        if !varies(algorithm, value, self.axes) && !mentions(algorithm, value, self.of) {
            let factor = || Factor::new(algorithm, value, false);
            let known = match literal(algorithm, value) {
                Some(number) => one().times(number).ok_or(refuse(Why::Literal))?,
                None => one().with(&factor()),
            };
            return Ok(Polynomial::of((0, 0, 0), known));
        }
        let is_float = |v: ValueId| algorithm.types[v as usize].is_float();
        let sum = |a: ValueId, b: ValueId, sign: f64| {
            self.polynomial(a)?.add(&self.polynomial(b)?, sign).ok_or(refuse(Why::Literal))
        };
        let product =
            |a: ValueId, b: ValueId| self.polynomial(a)?.multiply(&self.polynomial(b)?).ok_or(refuse(Why::Literal));
        match node {
            Value::Unary(Unary::Neg, a) => {
                Polynomial::default().add(&self.polynomial(a)?, -1.0).ok_or(refuse(Why::Literal))
            }
            Value::Binary(Binary::Add, a, b) => sum(a, b, 1.0),
            Value::Binary(Binary::Sub, a, b) => sum(a, b, -1.0),
            Value::Binary(Binary::Mul, a, b) => product(a, b),
            Value::Fma(a, b, c) => product(a, b)?.add(&self.polynomial(c)?, 1.0).ok_or(refuse(Why::Literal)),
            Value::Binary(Binary::Div, a, b) => {
                let by = self.polynomial(b)?.constant().ok_or(refuse(Why::Product))?;
                let whole = self.polynomial(a)?;
                let inverse = match by.literal() {
                    Some(by) if by.is_normal() && by.abs().log2().fract() == 0.0 => one().times(1.0 / by),
                    _ => Some(one().with(&Factor::new(algorithm, b, true))),
                };
                let inverse = inverse.ok_or(refuse(Why::Literal))?;
                whole.multiply(&Polynomial::of((0, 0, 0), inverse)).ok_or(refuse(Why::Literal))
            }
            Value::Cast(a) if is_float(value) && is_float(a) => self.polynomial(a),
            // What differs from term to term beside u.
            _ if !mentions(algorithm, value, self.of) => Err(refuse(Why::Beside)),
            Value::Reduce { .. } | Value::Fold { .. } | Value::Component { .. } => Err(refuse(Why::Nested)),
            Value::Select(condition, ..) if mentions(algorithm, condition, self.of) => {
                Err(Obstacle { value: condition, why: Why::Decides })
            }
            _ => Err(refuse(Why::Curved)),
        }
    }
}

/// What a kernel's sum of squares of `terms` terms may be off by, where its terms with the final mean add up to at most
/// `squares`, and the magnitudes of u to `magnitude`: docs/theory.md, Online reductions.
pub fn squares_loss(element: ElementType, terms: u64, magnitude: f64, squares: f64) -> Option<f64> {
    let (unit, least) = match element {
        ElementType::F32 => (2.0_f64.powi(-24), f64::from(f32::from_bits(1))),
        ElementType::F64 => (2.0_f64.powi(-53), f64::from_bits(1)),
        _ => return None,
    };
    let n = terms as f64;
    let of_mean = unit * ((n + 8.0) * unit).exp() * magnitude;
    let merges = n / 4.0 * n.max(1.0).log2();
    let (a, b) = (of_mean * merges.sqrt(), 12.0 * of_mean * of_mean * n);
    let moved = 2.0 * a * (a + (a * a + squares + b).sqrt()) + b;
    let rounded = ((2.0 * n + 6.0) * unit).exp_m1() * (squares + moved);
    Some((moved + rounded) * (1.0 + 16.0 * f64::EPSILON) + 2.0 * n * n * least * (1.0 + magnitude))
}

/// What a kernel's sum of w·(x − μ)² of `terms` terms may be off by, where the weights add up to at most `weights`, no
/// ∣x∣ is above `most`, and the terms with the final mean add up to at most `squares`: docs/theory.md, Online
/// reductions. None if nothing is promised.
pub fn weighted_loss(element: ElementType, terms: u64, [weights, most, squares]: [f64; 3]) -> Option<f64> {
    let (unit, least, largest) = match element {
        ElementType::F32 => (2.0_f64.powi(-24), f64::from(f32::from_bits(1)), f64::from(f32::MAX)),
        ElementType::F64 => (2.0_f64.powi(-53), f64::from_bits(1), f64::MAX),
        _ => return None,
    };
    let n = terms as f64;
    // A square of a difference, or a sum of weighted terms, may overflow early.
    if 8.0 * most * most > largest || 2.0 * weights * most.max(1.0) > largest {
        return None;
    }
    let of_mean = (2.0 * n + 8.0) * unit * ((2.0 * n + 8.0) * unit).exp() * most;
    let merges = weights / 4.0 * n.max(1.0).log2() * (n * unit).exp();
    let (a, b) = (of_mean * merges.sqrt(), 40.0 * of_mean * of_mean * weights);
    let moved = 2.0 * a * (a + (a * a + squares + b).sqrt()) + b;
    let rounded = ((3.0 * n + 8.0) * unit).exp_m1() * (squares + moved);
    let tiny = 64.0 * n * n * least * (1.0 + weights) * (1.0 + most) * (1.0 + most);
    Some((moved + rounded) * (1.0 + (16.0 + 2.0 * n) * f64::EPSILON) + tiny)
}
