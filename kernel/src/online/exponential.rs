//! Sums of y·exp(κ·(u − m)), m the largest u, or the smallest and κ < 0.
//!
//! κ is such that no argument is above 0: then no exponential overflows, with whatever m there is so far, and m is
//! infinite only where every u is. The argument is written as f(u) − f(m), f(x) = x or x times a literal, scaled by
//! literals: then the roundings of f are the same in every exponential, and the arguments of corrections add up to that
//! of the whole.

use super::chain::{NoChain, Pair, Parts, Rule};
use super::copy::{Swap, mentions, push};
use super::key::literal;
use super::{Correction, correction, is_exponential};
use crate::algorithm::{Algorithm, Binary, Reduction, Unary, Value, ValueId};
use crate::element::ElementType;
use crate::format::Format;

/// What is known of the exponential of a sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Exponential {
    /// It.
    pub function: Unary,
    /// Operations of a term beside it.
    pub steps: u32,
    /// Operations of its argument.
    pub scales: u32,
    /// If the argument multiplies u and takes f(m) off in one step, `fma(k, u, -f(m))` with f(x) = k·x rounded: k and
    /// u. An exponential may be above 1 then, by as much as f rounds: see [`Exponential::most_fused`].
    pub fused: Option<(ValueId, ValueId)>,
    /// The narrower types that a `dot` rounds the exponential to, or a multiple of it.
    pub casts: Vec<Narrowed>,
}

/// A narrower type that a multiple of an exponential is rounded to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Narrowed {
    /// The type.
    pub to: ElementType,
    /// By which literals the exponential is multiplied before, together: a number of that type, so that a product with
    /// 1 is rounded to itself. 1 if there are none.
    pub scale: f64,
}

impl Exponential {
    /// The size of k·u up to which k·u − f(m) is at most 1 where u is at most m, in that type: there f rounds by no
    /// more. Of larger ones nothing is promised. Of a multiple that is rounded to a narrower type it is at most ½, for
    /// which there is room in that type.
    pub fn most_fused(&self, element: ElementType) -> f64 {
        let most = match element {
            ElementType::F64 => (1_u64 << 53) as f64,
            _ => (1_u64 << 24) as f64,
        };
        if self.casts.iter().any(|cast| cast.scale != 1.0) { most / 2.0 } else { most }
    }
}

/// What an exponential may be of which a multiple is rounded: exp(½), and what it loses itself.
const ROOM: f64 = 1.75;

/// The parts of such a sum; the correction is exp(κ·(before − now)).
pub(super) fn find(pair: &mut Pair<'_>) -> Result<(Rule, Parts), NoChain> {
    let &mut Pair { term, now, before, axis, earlier, is_dot, .. } = pair;
    let algorithm = &mut *pair.algorithm;
    let element = algorithm.types[term as usize];
    let found = correction(algorithm, Reduction::Sum, term, now, &[axis]).map_err(NoChain::Obstacle)?;
    if found == Correction::Keep {
        return Err(NoChain::Unread);
    }
    let (path, function, argument) = down(algorithm, (term, is_dot), now, element)?;
    let casts = narrowed(algorithm, &path, (now, element))?;
    let with = Value::Variable(before);
    let at_before = Swap { algorithm, u: &pair.key, axis, with }.value(argument).map_err(NoChain::Other)?;
    let at_before = rounded_alike(algorithm, at_before);
    let (sign, scales) = direction(algorithm, at_before, (before, now)).ok_or(NoChain::Other(argument))?;
    if sign != (earlier.op == Reduction::Max) {
        return Err(NoChain::Grows(argument));
    }
    let correction = push(algorithm, Value::Unary(function, at_before), element);
    let fused = fused(algorithm, argument);
    let weight = weight(algorithm, &path, now, element);
    let rule = Rule::Exponential(Exponential { function, steps: path.len() as u32, scales, fused, casts });
    Ok((rule, Parts { term, weight, correction }))
}

/// Down a product to the exponential in it: the operations on the way, the exponential, its argument. A `dot` may round
/// the exponential, which is at most 1, to the type of a factor: itself, or multiplied by literals ([`narrowed`]).
fn down(
    algorithm: &Algorithm,
    (term, is_dot): (ValueId, bool),
    now: u32,
    element: ElementType,
) -> Result<(Vec<ValueId>, Unary, ValueId), NoChain> {
    let (mut at, mut path) = (term, Vec::new());
    loop {
        let depends = |v: ValueId| mentions(algorithm, v, now);
        let ty = |v: ValueId| algorithm.types[v as usize];
        at = match algorithm.values[at as usize] {
            Value::Unary(function, argument) if is_exponential(function) && ty(at) == element => {
                return Ok((path, function, argument));
            }
            Value::Cast(a) if is_dot && ty(at).is_float() && ty(a).is_float() => {
                path.push(at);
                a
            }
            Value::Unary(Unary::Neg | Unary::Abs, a) => {
                path.push(at);
                a
            }
            Value::Binary(Binary::Mul, a, b) if depends(a) != depends(b) => {
                path.push(at);
                if depends(a) { a } else { b }
            }
            Value::Binary(Binary::Div, a, b) if !depends(b) => {
                path.push(at);
                a
            }
            _ => return Err(NoChain::Shape(at)),
        };
        // Nothing is computed in a narrower type.
        if ty(at) != element && !matches!(algorithm.values[at as usize], Value::Cast(_)) {
            return Err(NoChain::Shape(at));
        }
    }
}

/// The types that a multiple of the exponential is rounded to on this way. What it is multiplied by before is a literal
/// of that type, so that what is rounded is as exact as the exponential itself; and it leaves room, so that nothing
/// saturates.
fn narrowed(
    algorithm: &Algorithm,
    path: &[ValueId],
    (now, element): (u32, ElementType),
) -> Result<Vec<Narrowed>, NoChain> {
    let (mut found, mut scale) = (Vec::new(), Some(1.0_f64));
    // From the exponential on.
    for &step in path.iter().rev() {
        let to = algorithm.types[step as usize];
        let by = |value: ValueId| literal(algorithm, value);
        scale = match algorithm.values[step as usize] {
            Value::Unary(Unary::Neg, _) => scale.map(|scale| -scale),
            Value::Unary(Unary::Abs, _) => scale.map(f64::abs),
            Value::Binary(Binary::Mul, a, b) => {
                scale.zip(by(if mentions(algorithm, a, now) { b } else { a })).map(|(scale, by)| scale * by)
            }
            Value::Binary(Binary::Div, _, b) => scale.zip(by(b)).map(|(scale, by)| scale / by),
            _ => scale,
        };
        if to == element {
            continue;
        }
        let is_of = |scale: &f64| {
            Format::of(to).is_some_and(|format| {
                let size = scale.abs();
                let is_one = size == 1.0;
                let has_room = size * ROOM <= format.value(format.largest());
                size > 0.0 && format.value(format.from_f64(size)) == size && (is_one || has_room)
            })
        };
        let scale = scale.filter(is_of).ok_or(NoChain::Narrow(step))?.abs();
        found.push(Narrowed { to, scale });
    }
    Ok(found)
}

/// What the exponential of a product is multiplied with: the same product with 1 in its place.
fn weight(algorithm: &mut Algorithm, path: &[ValueId], now: u32, element: ElementType) -> ValueId {
    let one = 1.0_f64;
    let bits = if element == ElementType::F64 { one.to_bits() } else { u64::from((one as f32).to_bits()) };
    let mut weight = push(algorithm, Value::Literal(bits), element);
    for &step in path.iter().rev() {
        let node = match algorithm.values[step as usize] {
            Value::Unary(op, _) => Value::Unary(op, weight),
            Value::Binary(op, a, b) if mentions(algorithm, a, now) => Value::Binary(op, weight, b),
            Value::Binary(op, a, _) => Value::Binary(op, a, weight),
            Value::Cast(_) => Value::Cast(weight),
            other => other,
        };
        let ty = algorithm.types[step as usize];
        weight = push(algorithm, node, ty);
    }
    weight
}

/// The factors that an argument multiplies in one step with the difference, negated or scaled as it may be.
fn fused(algorithm: &Algorithm, argument: ValueId) -> Option<(ValueId, ValueId)> {
    match algorithm.values[argument as usize] {
        Value::Fma(a, b, _) => Some((a, b)),
        Value::Unary(Unary::Neg, a) => fused(algorithm, a),
        Value::Binary(Binary::Mul, a, b) => fused(algorithm, a).or_else(|| fused(algorithm, b)),
        Value::Binary(Binary::Div, a, _) => fused(algorithm, a),
        _ => None,
    }
}

/// The argument of a correction, from that of a term with the earlier extreme in the place of u. What is multiplied in
/// one step with the difference is rounded before it here, as it is where an extreme is taken off: f(m₀) − f(m₁) is
/// what k·u − f(m₀) is short of k·u − f(m₁).
fn rounded_alike(algorithm: &mut Algorithm, argument: ValueId) -> ValueId {
    let ty = algorithm.types[argument as usize];
    let node = match algorithm.values[argument as usize] {
        Value::Fma(a, b, c) => {
            let product = push(algorithm, Value::Binary(Binary::Mul, a, b), ty);
            Value::Binary(Binary::Add, product, c)
        }
        Value::Unary(Unary::Neg, a) => Value::Unary(Unary::Neg, rounded_alike(algorithm, a)),
        Value::Binary(op @ (Binary::Mul | Binary::Div), a, b) => {
            let (first, second) = (rounded_alike(algorithm, a), rounded_alike(algorithm, b));
            Value::Binary(op, first, second)
        }
        _ => return argument,
    };
    if node == algorithm.values[argument as usize] { argument } else { push(algorithm, node, ty) }
}

/// Whether an argument grows with `before`, and its operations; none if it is not f(before) − f(now), scaled.
fn direction(algorithm: &Algorithm, value: ValueId, (before, now): (u32, u32)) -> Option<(bool, u32)> {
    let scaled = |a: ValueId, b: ValueId| -> Option<(bool, u32)> {
        let (grows, steps) = direction(algorithm, a, (before, now))?;
        let by = literal(algorithm, b).filter(|by| *by != 0.0)?;
        Some((grows == (by > 0.0), steps + 1))
    };
    match algorithm.values[value as usize] {
        Value::Unary(Unary::Neg, a) => direction(algorithm, a, (before, now)).map(|(grows, steps)| (!grows, steps)),
        Value::Binary(Binary::Mul, a, b) => scaled(a, b).or_else(|| scaled(b, a)),
        Value::Binary(Binary::Div, a, b) => scaled(a, b),
        Value::Binary(Binary::Sub, a, b) => {
            let (first, second) = (stretched(algorithm, a)?, stretched(algorithm, b)?);
            if first.1 != second.1 || first.1 == 0.0 {
                return None;
            }
            match (first.0, second.0) {
                (x, y) if (x, y) == (before, now) => Some((first.1 > 0.0, 1)),
                (x, y) if (x, y) == (now, before) => Some((first.1 < 0.0, 1)),
                _ => None,
            }
        }
        // A product that was one step with the difference: that with the extreme is rounded before it.
        Value::Binary(Binary::Add, a, b) => {
            let (first, second) = (stretched(algorithm, a)?, stretched(algorithm, b)?);
            let is_difference = first.1 == -second.1 && first.1 != 0.0 && (first.0, second.0) == (before, now);
            is_difference.then_some((first.1 > 0.0, 1))
        }
        _ => None,
    }
}

/// A variable, or one times a literal: which, and by what.
fn stretched(algorithm: &Algorithm, value: ValueId) -> Option<(u32, f64)> {
    match algorithm.values[value as usize] {
        Value::Variable(v) => Some((v, 1.0)),
        Value::Unary(Unary::Neg, a) => stretched(algorithm, a).map(|(v, by)| (v, -by)),
        Value::Binary(Binary::Mul, a, b) => {
            let of = |x: ValueId, y: ValueId| match algorithm.values[x as usize] {
                Value::Variable(v) => Some((v, literal(algorithm, y)?)),
                _ => None,
            };
            of(a, b).or_else(|| of(b, a))
        }
        _ => None,
    }
}
