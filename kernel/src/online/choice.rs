//! What is taken where an extreme is: `sum(|j| if u == m { y } else { 0 })`, the same with other operations and their
//! identities, and the place of the extreme, `argmax(|j| u)`.
//!
//! With m the extreme of the terms so far, a term of them is y where u = m, and else the identity. If m changes to m',
//! no term so far has u = m', so that all of them are the identity: what is there begins anew. Nothing rounds but the
//! operation itself, in the order of its own terms. Numbers are compared as by `==`: 0 and −0 are one, and where m is
//! NaN no term has it. An `argmax` takes the first NaN for the extreme: there two of them are one as well.

use super::chain::{NoChain, Pair, Parts, Rule};
use super::copy::{mentions, push};
use super::key::key;
use crate::algorithm::{Algorithm, Binary, Compare, Index, IndexId, Reduction, Unary, Value, ValueId};
use crate::element::ElementType;
use crate::format::Format;

/// The parts of a reduction `op` that takes terms where the extreme is. The correction is whether it is the same.
pub(super) fn find(pair: &mut Pair<'_>, op: Reduction) -> Result<(Rule, Parts), NoChain> {
    let &mut Pair { term, now, before, earlier, .. } = pair;
    if earlier.op == Reduction::Sum {
        return Err(NoChain::NotExtreme);
    }
    if matches!(op, Reduction::ArgMax | Reduction::ArgMin) {
        return place(pair);
    }
    let algorithm = &mut *pair.algorithm;
    let Value::Select(condition, a, b) = algorithm.values[term as usize] else { return Err(NoChain::Shape(term)) };
    let Value::Compare(compare, left, right) = algorithm.values[condition as usize] else {
        return Err(NoChain::Shape(condition));
    };
    let is_now = |value: ValueId| algorithm.values[value as usize] == Value::Variable(now);
    let is_u = |value: ValueId| key(algorithm, value, &[]) == pair.key;
    let compare = match (is_u(left) && is_now(right), is_now(left) && is_u(right)) {
        (true, _) => compare,
        (_, true) => compare.mirrored(),
        _ => return Err(NoChain::Shape(condition)),
    };
    // No u is beyond the extreme.
    let (y, other) = match (compare, earlier.op) {
        (Compare::Eq, _) | (Compare::Ge, Reduction::Max) | (Compare::Le, Reduction::Min) => (a, b),
        (Compare::Ne, _) => (b, a),
        _ => return Err(NoChain::Shape(condition)),
    };
    if mentions(algorithm, y, now) {
        return Err(NoChain::Shape(y));
    }
    if !is_identity(algorithm, op, other) {
        return Err(NoChain::Shape(other));
    }
    let element = algorithm.types[earlier.u as usize];
    let [was, is] = [before, now].map(|v| push(algorithm, Value::Variable(v), element));
    let same = push(algorithm, Value::Compare(Compare::Eq, was, is), ElementType::Bool);
    let equal = push(algorithm, Value::Compare(Compare::Eq, pair.u, is), ElementType::Bool);
    let ty = algorithm.types[term as usize];
    let term = push(algorithm, Value::Select(equal, y, other), ty);
    Ok((Rule::Choice { op, identity: other }, Parts { term, weight: y, correction: same }))
}

/// The smallest place of those where the extreme is: a `min` of these.
fn place(pair: &mut Pair<'_>) -> Result<(Rule, Parts), NoChain> {
    let &mut Pair { term, now, before, axis, earlier, u, .. } = pair;
    let algorithm = &mut *pair.algorithm;
    if key(algorithm, term, &[]) != pair.key {
        return Err(NoChain::Search(term));
    }
    let element = algorithm.types[earlier.u as usize];
    let [was, is] = [before, now].map(|v| push(algorithm, Value::Variable(v), element));
    let mut alike = |a: ValueId, b: ValueId| {
        let mut test = |op, a, b| push(algorithm, Value::Compare(op, a, b), ElementType::Bool);
        let (equal, one, other) = (test(Compare::Eq, a, b), test(Compare::Ne, a, a), test(Compare::Ne, b, b));
        let both = push(algorithm, Value::Binary(Binary::And, one, other), ElementType::Bool);
        push(algorithm, Value::Binary(Binary::Or, equal, both), ElementType::Bool)
    };
    let (same, here) = (alike(was, is), alike(u, is));
    let of_axis = index(algorithm, Index::Axis(axis));
    let at = push(algorithm, Value::FromIndex(of_axis), ElementType::U32);
    let identity = push(algorithm, Value::Literal(u32::MAX.into()), ElementType::U32);
    let term = push(algorithm, Value::Select(here, at, identity), ElementType::U32);
    Ok((Rule::Choice { op: Reduction::Min, identity }, Parts { term, weight: at, correction: same }))
}

fn index(algorithm: &mut Algorithm, index: Index) -> IndexId {
    algorithm.indices.to_mut().push(index);
    (algorithm.indices.len() - 1) as IndexId
}

/// Whether it changes nothing that `op` takes it into.
fn is_identity(algorithm: &Algorithm, op: Reduction, value: ValueId) -> bool {
    let ty = algorithm.types[value as usize];
    let (bits, is_negated) = match algorithm.values[value as usize] {
        Value::Literal(bits) => (bits, false),
        Value::Unary(Unary::Neg, a) => match algorithm.values[a as usize] {
            Value::Literal(bits) => (bits, true),
            _ => return false,
        },
        _ => return false,
    };
    if let Some(format) = Format::of(ty) {
        let number = if is_negated { -format.value(bits) } else { format.value(bits) };
        return match op {
            // A sum without terms is +0.
            Reduction::Sum => number.to_bits() == 0,
            Reduction::Prod => number == 1.0,
            Reduction::Max => number == f64::NEG_INFINITY,
            Reduction::Min => number == f64::INFINITY,
            _ => false,
        };
    }
    let width = 8 * ty.bytes();
    let all = u64::MAX >> (64 - width);
    let number = (if is_negated { bits.wrapping_neg() } else { bits }) & all;
    let (least, most) = if ty.is_signed_integer() { (all / 2 + 1, all / 2) } else { (0, all) };
    match op {
        Reduction::Sum => number == 0,
        Reduction::Prod => number == 1,
        Reduction::Max => number == least,
        Reduction::Min => number == most,
        Reduction::Any => ty == ElementType::Bool && number == 0,
        Reduction::All => ty == ElementType::Bool && number == 1,
        Reduction::ArgMax | Reduction::ArgMin => false,
    }
}
