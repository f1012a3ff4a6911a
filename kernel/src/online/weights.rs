//! Means of weighted terms: μ = Σ w·x / Σ w.
//!
//! **Property.** [`find`] gives the terms w of the sum that another one is divided by only if both are over the same
//! range, and the terms of the other are w·x. [`is_never_negative`] holds only of what is 0, more, or NaN, whatever is
//! read.
//! **Approximation.** Incomplete: w·x is written as a product with w, and the sign follows from operations alone.

use super::chain::{Pair, component_value, reduction_of};
use super::copy::{Copy, Env, push};
use super::key::{has_reduction, index_key, is_same, literal};
use crate::algorithm::{Algorithm, AxisId, Binary, Index, IndexId, Order, Reduction, Source, Unary, Value, ValueId};
use crate::element::ElementType;

/// The weights of a mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// w, over the axes of the parts.
    pub term: ValueId,
    /// ∣x∣, over these.
    pub size: ValueId,
    /// The equation that is their sum, if it has the same elements as what is followed: with which indices, in its own
    /// axes, that has each of its elements.
    pub equation: Option<(u16, Vec<IndexId>)>,
}

/// Weights, with what they are weights of.
pub(super) struct Found {
    pub weights: Weights,
    /// x, over the axes of the parts.
    pub x: ValueId,
    /// w as it is written.
    pub written: ValueId,
}

/// The weights of a pair whose earlier reduction is divided by `by`, of which `env` says what its axes are here.
pub(super) fn find(pair: &mut Pair<'_>, by: ValueId, env: &Env) -> Option<Found> {
    let algorithm = &mut *pair.algorithm;
    let (sum, (op, order, run, body)) = match algorithm.values[by as usize] {
        Value::Read { source: Source::Equation { equation, component: 0 }, indices, or: None } => {
            (Some((equation, indices)), reduction_of(algorithm, equation)?)
        }
        Value::Reduce { op, order, axes, body } => (None, (op, order, axes, body)),
        _ => return None,
    };
    let &[over] = &algorithm.axis_lists[run.range()] else { return None };
    if op != Reduction::Sum || !matches!(order, Order::Free | Order::Unordered) {
        return None;
    }
    let mut origins = Vec::new();
    let (earlier, now) = (pair.equation, pair.now);
    let mut copy = Copy { algorithm, earlier, wanted: Vec::new(), now, failed: None, origins: &mut origins };
    let mut inner: Env = env.clone();
    let mut own: Vec<(AxisId, IndexId)> = Vec::new();
    if let Some((equation, indices)) = sum {
        let places = copy.indices(indices, env);
        let axes = copy.algorithm.equations[usize::from(equation)].axes;
        own = copy.algorithm.axis_lists[axes.range()].iter().copied().zip(places).collect();
        inner = own.clone();
    }
    let names: Vec<(AxisId, String)> =
        inner.iter().map(|(axis, place)| (*axis, index_key(copy.algorithm, *place, &[]))).collect();
    if range(copy.algorithm, over, &names) != range(copy.algorithm, pair.axis, &[]) {
        return None;
    }
    inner.push((over, copy.index(Index::Axis(pair.axis))));
    inner.sort_unstable();
    let term = copy.value(body, &inner);
    if copy.failed.is_some() {
        return None;
    }
    let Value::Binary(Binary::Mul, a, b) = algorithm.values[pair.u as usize] else { return None };
    let x = match (is_same(algorithm, a, term), is_same(algorithm, b, term)) {
        (true, _) => b,
        (_, true) => a,
        _ => return None,
    };
    let size = push(algorithm, Value::Unary(Unary::Abs, x), algorithm.types[x as usize]);
    let equation = sum.and_then(|(equation, _)| Some((equation, elements(algorithm, earlier, &own, &names)?)));
    Some(Found { weights: Weights { term, size, equation }, x, written: body })
}

/// The ends of an axis, where others are called as `names` says.
fn range(algorithm: &Algorithm, axis: AxisId, names: &[(AxisId, String)]) -> [String; 2] {
    let of = &algorithm.axes[axis as usize];
    [of.lower, of.upper].map(|end| index_key(algorithm, end, names))
}

/// With which of its own axes an equation has each element of what is followed, if it has these and no others; `own`
/// are its axes with what they are there.
fn elements(
    algorithm: &mut Algorithm,
    earlier: u16,
    own: &[(AxisId, IndexId)],
    names: &[(AxisId, String)],
) -> Option<Vec<IndexId>> {
    let axes = algorithm.axis_lists[algorithm.equations[usize::from(earlier)].axes.range()].to_vec();
    if axes.len() != own.len() {
        return None;
    }
    let mut found = Vec::new();
    for axis in axes {
        let is_it = |place: IndexId| algorithm.indices[place as usize] == Index::Axis(axis);
        let (there, _) = *own.iter().find(|(_, place)| is_it(*place))?;
        if range(algorithm, there, names) != range(algorithm, axis, &[]) {
            return None;
        }
        algorithm.indices.to_mut().push(Index::Axis(there));
        found.push((algorithm.indices.len() - 1) as IndexId);
    }
    Some(found)
}

/// Whether a value is never below 0: it may be NaN.
pub(super) fn is_never_negative(algorithm: &Algorithm, value: ValueId) -> bool {
    let of = |v: ValueId| is_never_negative(algorithm, v);
    let ty = |v: ValueId| algorithm.types[v as usize];
    if literal(algorithm, value).is_some_and(|number| number >= 0.0) {
        return true;
    }
    match algorithm.values[value as usize] {
        Value::Read { source: Source::Equation { equation, component }, or, .. }
            if !has_reduction(algorithm, equation) =>
        {
            of(component_value(algorithm, equation, component)) && or.is_none_or(of)
        }
        Value::Unary(function, a) => match function {
            Unary::Abs | Unary::Sqrt | Unary::ApproxSqrt => true,
            Unary::Exp | Unary::ApproxExp | Unary::ApproxExp2 => true,
            Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Round => of(a),
            _ => false,
        },
        Value::Binary(op, a, b) => match op {
            Binary::Mul => of(a) && of(b) || is_same(algorithm, a, b),
            // Of a NaN and another number, `max_num` is that number.
            Binary::Add | Binary::Min | Binary::MinNum | Binary::MaxNum => of(a) && of(b),
            Binary::Max => of(a) || of(b),
            // What divides must be no -0.
            Binary::Div => of(a) && literal(algorithm, b).is_some_and(|by| by > 0.0),
            _ => false,
        },
        Value::Fma(a, b, c) => (of(a) && of(b) || is_same(algorithm, a, b)) && of(c),
        Value::Select(_, a, b) => of(a) && of(b),
        Value::Cast(a) => match ty(a) {
            ElementType::Bool | ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => true,
            from => from.is_float() && of(a),
        },
        _ => false,
    }
}
