//! When two values are the same, and what they depend on.

use std::collections::{BTreeMap, BTreeSet};

use super::chain::component_value;
use crate::algorithm::{Algorithm, AxisId, Binary, Index, IndexId, Source, Unary, Value, ValueId};
use crate::format::Format;

/// Whether a value depends on some axes.
pub(super) fn varies(algorithm: &Algorithm, value: ValueId, axes: &[AxisId]) -> bool {
    let of_index = |i: IndexId| index_varies(algorithm, i, axes);
    let own = match algorithm.values[value as usize] {
        Value::FromIndex(i) => of_index(i),
        Value::CompareIndex(_, a, b) => of_index(a) || of_index(b),
        Value::Read { indices, .. } => algorithm.index_lists[indices.range()].iter().any(|i| of_index(*i)),
        _ => false,
    };
    own || algorithm.operands(value).into_iter().any(|v| varies(algorithm, v, axes))
}

fn index_varies(algorithm: &Algorithm, index: IndexId, axes: &[AxisId]) -> bool {
    match algorithm.indices[index as usize] {
        Index::Axis(axis) => axes.contains(&axis),
        Index::Value(value) => varies(algorithm, value, axes),
        other => other.operands().any(|i| index_varies(algorithm, i, axes)),
    }
}

/// The number that a literal is.
pub(super) fn literal(algorithm: &Algorithm, value: ValueId) -> Option<f64> {
    match algorithm.values[value as usize] {
        Value::Literal(bits) => {
            let number = Format::of(algorithm.types[value as usize])?.value(bits);
            number.is_finite().then_some(number)
        }
        Value::FromIndex(i) => match algorithm.indices[i as usize] {
            Index::Literal(n) if n.unsigned_abs() < 1 << 24 => Some(n as f64),
            _ => None,
        },
        Value::Unary(Unary::Neg, a) => Some(-literal(algorithm, a)?),
        _ => None,
    }
}

/// A text that two values share only if they are the same, where axes are called as `names` says. What is read of
/// equations without reductions is looked into.
pub(super) fn key(algorithm: &Algorithm, value: ValueId, names: &[(AxisId, String)]) -> String {
    let of = |v: ValueId| key(algorithm, v, names);
    let index = |i: IndexId| index_key(algorithm, i, names);
    let ty = algorithm.types[value as usize];
    match algorithm.values[value as usize] {
        Value::Read { source: Source::Equation { equation, component }, indices, or: None }
            if !has_reduction(algorithm, equation) =>
        {
            let definition = &algorithm.equations[usize::from(equation)];
            let axes = algorithm.axis_lists[definition.axes.range()].iter().copied();
            let places = algorithm.index_lists[indices.range()].iter().map(|i| index(*i));
            let inner: Vec<(AxisId, String)> = axes.zip(places).collect();
            let component = &algorithm.components[definition.components.range()][usize::from(component)];
            key(algorithm, component.value, &inner)
        }
        Value::Read { source, indices, or } => {
            let places: Vec<String> = algorithm.index_lists[indices.range()].iter().map(|i| index(*i)).collect();
            let or = or.map_or_else(String::new, |or| format!(" or {}", of(or)));
            format!("({source:?}[{}]{or})", places.join(","))
        }
        Value::FromIndex(i) => format!("({ty}:{})", index(i)),
        Value::CompareIndex(op, a, b) => format!("({op:?} {} {})", index(a), index(b)),
        Value::Unary(op, a) => format!("({op:?} {})", of(a)),
        Value::Binary(op @ (Binary::Add | Binary::Mul), a, b) => {
            // Their operands may change places, to the last bit.
            let (a, b) = (of(a), of(b));
            let (a, b) = if a <= b { (a, b) } else { (b, a) };
            format!("({op:?} {a} {b})")
        }
        Value::Binary(op, a, b) => format!("({op:?} {} {})", of(a), of(b)),
        Value::Compare(op, a, b) => format!("({op:?} {} {})", of(a), of(b)),
        Value::Fma(a, b, c) => format!("(fma {} {} {})", of(a), of(b), of(c)),
        Value::Select(a, b, c) => format!("(if {} {} {})", of(a), of(b), of(c)),
        Value::Cast(a) => format!("({ty} {})", of(a)),
        node @ (Value::Literal(_) | Value::Scalar(_) | Value::Variable(_)) => format!("({ty} {node:?})"),
        // The same only as itself: its own axes have names that nothing else has.
        Value::Reduce { .. } | Value::Fold { .. } | Value::Component { .. } | Value::Scatter { .. } => {
            format!("(#{value} {names:?})")
        }
    }
}

/// Whether two values are the same, whatever they read: by what they are made of.
pub fn is_same(algorithm: &Algorithm, a: ValueId, b: ValueId) -> bool {
    key(algorithm, a, &[]) == key(algorithm, b, &[])
}

pub(super) fn index_key(algorithm: &Algorithm, index: IndexId, names: &[(AxisId, String)]) -> String {
    let of = |i: IndexId| index_key(algorithm, i, names);
    match algorithm.indices[index as usize] {
        Index::Axis(axis) => {
            names.iter().find(|n| n.0 == axis).map_or_else(|| format!("a{axis}"), |(_, name)| name.clone())
        }
        Index::Value(value) => key(algorithm, value, names),
        Index::Literal(n) => format!("{n}"),
        Index::Dim(d) => format!("d{d}"),
        Index::Add(a, b) => format!("({}+{})", of(a), of(b)),
        Index::Sub(a, b) => format!("({}-{})", of(a), of(b)),
        Index::Mul(a, b) => format!("({}*{})", of(a), of(b)),
        Index::Div(a, b) => format!("({}/{})", of(a), of(b)),
        Index::Mod(a, b) => format!("({}%{})", of(a), of(b)),
        Index::Min(a, b) => format!("min({},{})", of(a), of(b)),
        Index::Max(a, b) => format!("max({},{})", of(a), of(b)),
    }
}

/// Whether an equation has a reduction.
pub(super) fn has_reduction(algorithm: &Algorithm, equation: u16) -> bool {
    let definition = &algorithm.equations[usize::from(equation)];
    let mut open: Vec<ValueId> = algorithm.components[definition.components.range()].iter().map(|c| c.value).collect();
    let mut seen = BTreeSet::new();
    while let Some(value) = open.pop() {
        if matches!(algorithm.values[value as usize], Value::Reduce { .. } | Value::Fold { .. }) {
            return true;
        }
        open.extend(algorithm.operands(value).into_iter().filter(|v| seen.insert(*v)));
    }
    false
}

/// How many nodes a value has, with those of the equations without reductions that it reads, each as often as it is
/// read.
pub(super) fn size(algorithm: &Algorithm, value: ValueId, known: &mut BTreeMap<ValueId, u64>) -> u64 {
    if let Some(known) = known.get(&value) {
        return *known;
    }
    let mut all: u64 = 1;
    if let Value::Read { source: Source::Equation { equation, component }, .. } = algorithm.values[value as usize]
        && !has_reduction(algorithm, equation)
    {
        all = all.saturating_add(size(algorithm, component_value(algorithm, equation, component), known));
    }
    for operand in algorithm.operands(value) {
        all = all.saturating_add(size(algorithm, operand, known));
    }
    known.insert(value, all);
    all
}
