//! Two reductions of an algorithm that one pass computes: m, the largest or smallest u, and a sum of y·exp(κ·(u − m)).
//!
//! κ is such that no argument is above 0: then no exponential overflows, with whatever m there is so far, and m is
//! infinite only where every u is. The argument is written as f(u) − f(m), f(x) = x or x times a literal, scaled by
//! literals: then the roundings of f are the same in every exponential, and the arguments of corrections add up to that
//! of the whole.

use std::collections::{BTreeMap, BTreeSet};

use super::copy::{Copy, Env, Swap, mentions, push};
use super::key::{has_reduction, index_key, key, literal, size};
use super::{Correction, Obstacle, correction, is_exponential};
use crate::algorithm::{
    Algorithm, AxisId, Binary, Index, IndexId, Order, Reduction, Run, Source, Unary, Value, ValueId,
};
use crate::element::ElementType;

/// Most nodes of a term, once its equations are put in.
const MOST_NODES: u64 = 4096;

/// Whose axes the parts of a chain are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Those of the sum.
    Later,
    /// Those of the extreme.
    Earlier,
}

/// A sum that corrections follow an extreme with. Its parts are values of the algorithm that it was found in, added to
/// it at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The equation of the extreme.
    pub earlier: u16,
    /// Whether it is the largest or the smallest.
    pub op: Reduction,
    /// The exponential.
    pub function: Unary,
    /// The term, where the extreme is the variable `now`.
    pub term: ValueId,
    /// What the exponential is multiplied with.
    pub weight: ValueId,
    /// exp(κ·(before − now)): the factor of partial sums.
    pub correction: ValueId,
    /// Number of the variable that stands for the extreme so far.
    pub now: u32,
    /// The same, before it changed.
    pub before: u32,
    /// Operations of a term beside the exponential.
    pub steps: u32,
    /// Operations of its argument.
    pub scales: u32,
    /// If the argument multiplies u and takes f(m) off in one step, `fma(k, u, -f(m))` with f(x) = k·x rounded: k and
    /// u. An exponential may be above 1 then, by as much as f rounds: see [`Chain::most_fused`].
    pub fused: Option<(ValueId, ValueId)>,
    /// The narrower types that a `dot` rounds the exponential to.
    pub casts: Vec<ElementType>,
    /// With which indices, in the axes of the sum, its term reads the extreme.
    pub places: Vec<IndexId>,
    /// The axes of the sum that the extreme lacks.
    pub more: Vec<AxisId>,
}

impl Chain {
    /// The size of k·u up to which k·u − f(m) is at most 1 where u is at most m, in that type: there f rounds by no
    /// more. Of larger ones nothing is promised.
    pub const fn most_fused(element: ElementType) -> f64 {
        match element {
            ElementType::F64 => (1_u64 << 53) as f64,
            _ => (1_u64 << 24) as f64,
        }
    }
}

/// Why two reductions are no chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoChain {
    /// The earlier one is not a single `max` or `min`.
    NotExtreme,
    /// The later one is not a single `sum`.
    NotSum,
    /// The later one does not say `online sum`.
    NotOnline(ValueId),
    /// Other types than `f32` and `f64`, or two of them.
    Type,
    /// They have several axes, or not the same range.
    Range,
    /// They do not have the same elements.
    Elements,
    /// The term does not read the extreme.
    Unread,
    /// A reduction in the term reads it.
    Nested(ValueId),
    /// The term has no correction.
    Obstacle(Obstacle),
    /// It has one, but is no product with one exponential.
    Shape(ValueId),
    /// The argument of the exponential is not that of the extreme.
    Other(ValueId),
    /// The exponential may be larger than 1.
    Grows(ValueId),
    /// The term has too many nodes.
    TooLarge,
}

/// The extremes over one axis that the term of an equation's reduction reads, itself or through what it inlines.
pub fn extremes(algorithm: &Algorithm, equation: u16) -> Vec<u16> {
    let Some((_, _, body)) = sum_of(algorithm, equation) else { return Vec::new() };
    let (mut open, mut found, mut seen) = (vec![body], Vec::new(), BTreeSet::new());
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        open.extend(algorithm.operands(value));
        let Value::Read { source: Source::Equation { equation, component }, .. } = algorithm.values[value as usize]
        else {
            continue;
        };
        if extreme_of(algorithm, equation).is_some() {
            if !found.contains(&equation) {
                found.push(equation);
            }
        } else if !has_reduction(algorithm, equation) {
            open.push(component_value(algorithm, equation, component));
        }
    }
    found.sort_unstable();
    found
}

/// The chain that an equation `online sum` is the end of.
///
/// # Errors
/// Why there is none: of the first extreme that its term reads.
pub fn chain_of(algorithm: &mut Algorithm, equation: u16) -> Result<Chain, NoChain> {
    let mut first = None;
    for earlier in extremes(algorithm, equation) {
        match chain(algorithm, earlier, equation, At::Later) {
            Ok(chain) => return Ok(chain),
            Err(why) => {
                first.get_or_insert(why);
            }
        }
    }
    Err(first.unwrap_or(NoChain::Unread))
}

pub(super) fn component_value(algorithm: &Algorithm, equation: u16, component: u16) -> ValueId {
    let components = algorithm.equations[usize::from(equation)].components.range();
    algorithm.components[components][usize::from(component)].value
}

/// The reduction that an equation is.
fn single(algorithm: &Algorithm, equation: u16) -> Option<Value> {
    let components = algorithm.equations[usize::from(equation)].components;
    (components.len == 1).then(|| algorithm.values[component_value(algorithm, equation, 0) as usize])
}

pub(super) fn extreme_of(algorithm: &Algorithm, equation: u16) -> Option<(Reduction, Run, ValueId)> {
    match single(algorithm, equation)? {
        Value::Reduce { op: op @ (Reduction::Max | Reduction::Min), axes, body, .. } => Some((op, axes, body)),
        _ => None,
    }
}

pub(super) fn sum_of(algorithm: &Algorithm, equation: u16) -> Option<(Order, Run, ValueId)> {
    match single(algorithm, equation)? {
        Value::Reduce { op: Reduction::Sum, order, axes, body } => Some((order, axes, body)),
        _ => None,
    }
}

/// Finds the parts of a chain: the values that it names are added to the algorithm.
///
/// # Errors
/// Why the two are no chain; parts of terms are values that were there before.
pub fn chain(algorithm: &mut Algorithm, earlier: u16, later: u16, at: At) -> Result<Chain, NoChain> {
    let (first, mut origins) = (algorithm.values.len(), Vec::new());
    let found = find(algorithm, (earlier, later), at, &mut origins);
    let written = |value: ValueId| {
        let copied = (value as usize).checked_sub(first);
        copied.and_then(|n| origins.get(n)).copied().unwrap_or(value)
    };
    found.map_err(|why| match why {
        NoChain::Nested(value) => NoChain::Nested(written(value)),
        NoChain::Obstacle(Obstacle { value, why }) => NoChain::Obstacle(Obstacle { value: written(value), why }),
        NoChain::Shape(value) => NoChain::Shape(written(value)),
        NoChain::Other(value) => NoChain::Other(written(value)),
        NoChain::Grows(value) => NoChain::Grows(written(value)),
        other => other,
    })
}

/// The same; `origins` are what the values that it adds first are copies of.
fn find(
    algorithm: &mut Algorithm,
    (earlier, later): (u16, u16),
    at: At,
    origins: &mut Vec<ValueId>,
) -> Result<Chain, NoChain> {
    let (op, of_extreme, u) = extreme_of(algorithm, earlier).ok_or(NoChain::NotExtreme)?;
    let (order, of_sum, body) = sum_of(algorithm, later).ok_or(NoChain::NotSum)?;
    if !order.is_online() {
        return Err(NoChain::NotOnline(component_value(algorithm, later, 0)));
    }
    let mut known = BTreeMap::new();
    if [u, body].iter().any(|value| size(algorithm, *value, &mut known) > MOST_NODES) {
        return Err(NoChain::TooLarge);
    }
    let element = algorithm.types[body as usize];
    if !matches!(element, ElementType::F32 | ElementType::F64) || algorithm.types[u as usize] != element {
        return Err(NoChain::Type);
    }
    let axes = |equation: u16, run: Run| {
        let own = algorithm.equations[usize::from(equation)].axes;
        (algorithm.axis_lists[own.range()].to_vec(), algorithm.axis_lists[run.range()].to_vec())
    };
    let ((mine, of_u), (yours, of_term)) = (axes(earlier, of_extreme), axes(later, of_sum));
    let ([j], [k]) = (&of_u[..], &of_term[..]) else { return Err(NoChain::Range) };
    // Element by element: axis for axis, as the term reads the extreme.
    let read = reads(algorithm, body, earlier).ok_or(NoChain::Unread)?;
    let mut counterparts: Vec<(AxisId, AxisId)> = vec![(*j, *k)];
    for (own, index) in mine.iter().zip(&read) {
        match algorithm.indices[*index as usize] {
            Index::Axis(axis) if yours.contains(&axis) && counterparts.iter().all(|c| c.1 != axis) => {
                counterparts.push((*own, axis));
            }
            _ => return Err(NoChain::Elements),
        }
    }
    let more: Vec<AxisId> = yours.iter().copied().filter(|axis| counterparts.iter().all(|c| c.1 != *axis)).collect();
    // From the axes of each to those that the parts are over.
    let (from_mine, from_yours): (Vec<_>, Vec<_>) = match at {
        At::Later => (counterparts, Vec::new()),
        At::Earlier => (Vec::new(), counterparts.iter().map(|(own, axis)| (*axis, *own)).collect()),
    };
    let names = |from: &[(AxisId, AxisId)]| -> Vec<(AxisId, String)> {
        from.iter().map(|(axis, to)| (*axis, format!("a{to}"))).collect()
    };
    let range = |axis: AxisId, from: &[(AxisId, AxisId)]| {
        let of = &algorithm.axes[axis as usize];
        [of.lower, of.upper].map(|bound| index_key(algorithm, bound, &names(from)))
    };
    if range(*j, &from_mine) != range(*k, &from_yours) {
        return Err(NoChain::Range);
    }
    let term_axis = if at == At::Later { *k } else { *j };
    let u = key(algorithm, u, &names(&from_mine));
    let now = variables(algorithm);
    let before = now + 1;
    let wanted = read.iter().map(|i| index_key(algorithm, *i, &names(&from_yours))).collect();
    let mut copy = Copy { algorithm, earlier, wanted, now, failed: None, origins };
    let start: Env = from_yours.iter().map(|(axis, to)| (*axis, copy.index(Index::Axis(*to)))).collect();
    let term = copy.value(body, &start);
    if let Some(failed) = copy.failed {
        return Err(failed);
    }
    let found = correction(algorithm, Reduction::Sum, term, now, &[term_axis]).map_err(NoChain::Obstacle)?;
    if found == Correction::Keep {
        return Err(NoChain::Unread);
    }
    let is_dot = matches!(order, Order::Dot { .. });
    let (path, function, argument) = down(algorithm, (term, is_dot), now, element)?;
    let narrow = |step: &ValueId| {
        let ty = algorithm.types[*step as usize];
        (ty != element).then_some(ty)
    };
    let casts = path.iter().filter_map(narrow).collect();
    let with = Value::Variable(before);
    let at_before = Swap { algorithm, u: &u, axis: term_axis, with }.value(argument).map_err(NoChain::Other)?;
    let at_before = rounded_alike(algorithm, at_before);
    let (sign, scales) = direction(algorithm, at_before, (before, now)).ok_or(NoChain::Other(argument))?;
    if sign != (op == Reduction::Max) {
        return Err(NoChain::Grows(argument));
    }
    let correction = push(algorithm, Value::Unary(function, at_before), element);
    let fused = fused(algorithm, argument);
    let weight = weight(algorithm, &path, now, element);
    let steps = path.len() as u32;
    let places = read;
    Ok(Chain {
        earlier,
        op,
        function,
        term,
        weight,
        correction,
        now,
        before,
        steps,
        scales,
        fused,
        casts,
        places,
        more,
    })
}

/// Down a product to the exponential in it: the operations on the way, the exponential, its argument. A `dot` may round
/// the exponential itself, which is at most 1, to the type of a factor.
fn down(
    algorithm: &Algorithm,
    (term, is_dot): (ValueId, bool),
    now: u32,
    element: ElementType,
) -> Result<(Vec<ValueId>, Unary, ValueId), NoChain> {
    let (mut at, mut path, mut is_cast) = (term, Vec::new(), false);
    loop {
        let depends = |v: ValueId| mentions(algorithm, v, now);
        let ty = |v: ValueId| algorithm.types[v as usize];
        at = match algorithm.values[at as usize] {
            Value::Unary(function, argument) if is_exponential(function) && ty(at) == element => {
                return Ok((path, function, argument));
            }
            Value::Cast(a) if is_dot && ty(at).is_float() && ty(a).is_float() => {
                is_cast = true;
                path.push(at);
                a
            }
            _ if is_cast => return Err(NoChain::Shape(at)),
            Value::Unary(Unary::Neg, a) => {
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
        if !is_cast && ty(at) != element {
            return Err(NoChain::Shape(at));
        }
    }
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

/// One more than the largest number of a variable.
fn variables(algorithm: &Algorithm) -> u32 {
    let of_folds = algorithm.folds.iter().flat_map(|s| [s.variable, s.left, s.right]);
    let of_values = algorithm.values.iter().filter_map(|v| match v {
        Value::Variable(number) => Some(*number),
        _ => None,
    });
    of_folds.chain(of_values).max().map_or(0, |most| most + 1)
}

/// How a term indexes an equation, in its own axes: where it reads it first. An equation that it inlines must read it
/// element by element as well, which is found when that is copied.
pub(super) fn reads(algorithm: &Algorithm, value: ValueId, earlier: u16) -> Option<Vec<IndexId>> {
    match algorithm.values[value as usize] {
        Value::Read { source: Source::Equation { equation, .. }, indices, .. } if equation == earlier => {
            Some(algorithm.index_lists[indices.range()].to_vec())
        }
        Value::Read { source: Source::Equation { equation, component }, indices, .. }
            if !has_reduction(algorithm, equation) =>
        {
            let inner = reads(algorithm, component_value(algorithm, equation, component), earlier)?;
            let definition = &algorithm.equations[usize::from(equation)];
            let axes = &algorithm.axis_lists[definition.axes.range()];
            let places = &algorithm.index_lists[indices.range()];
            // Of an axis there, what it is here.
            let here = |index: &IndexId| match algorithm.indices[*index as usize] {
                Index::Axis(axis) => Some(places[axes.iter().position(|a| *a == axis)?]),
                _ => Some(*index),
            };
            inner.iter().map(here).collect()
        }
        _ => algorithm.operands(value).into_iter().find_map(|v| reads(algorithm, v, earlier)),
    }
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
