//! `inout`: an element is overwritten by the equation that defines the tensor, so nothing may read it but that
//! equation, at exactly the element that it then writes.
//!
//! An intermediate without a schedule is computed where it is read, so it is a part of that equation if nothing else
//! reads it, and everything on the way is read at the element itself.

use tilewright_kernel::algorithm::{Index, IndexId, Source, Value, ValueId};
use tilewright_kernel::info::Role;

use super::equations::Sites;
use super::names::plain;
use super::nodes::Nodes;
use super::order::{Plan, Planned};
use super::signature::Signature;
use crate::diag::Diagnostics;
use crate::diag::codes::{InPlaceRead, InPlaceReader};
use crate::source::ast;

/// Reports every read of an in-place tensor that could see a new value or lose an old one.
pub(super) fn check(
    signature: &Signature,
    plan: &Plan<'_>,
    nodes: &Nodes,
    (sites, scheduled): (&Sites, &[&str]),
    diags: &mut Diagnostics,
) {
    let is_own = |read: ValueId, equation: u16| {
        let Value::Read { indices, .. } = nodes.values[read as usize] else { return false };
        let axes = &sites.axes[usize::from(equation)];
        let list = &nodes.index_lists[indices.range()];
        list.len() == axes.len()
            && list.iter().zip(axes).all(|(&index, &axis)| nodes.indices[index as usize] == Index::Axis(axis))
    };
    // Whether an equation is a part of that of `writer`: who reads it is, at the element itself. Equations come in
    // the order of their dependencies, so that this ends.
    let is_part = |equation: u16, writer: u16| {
        let mut parts = vec![equation];
        let mut next = 0;
        while let Some(&part) = parts.get(next) {
            next += 1;
            let planned = &plan.equations[usize::from(part)];
            let is_inlined = planned.parameters.iter().all(Option::is_none)
                && planned.ast.targets.iter().all(|target| !scheduled.contains(&target.text.as_str()));
            if !is_inlined {
                return false;
            }
            for site in &sites.reads {
                let source = match nodes.values[site.value as usize] {
                    Value::Read { source: Source::Equation { equation, .. }, .. } => equation,
                    _ => continue,
                };
                if source != part {
                    continue;
                }
                if !is_own(site.value, site.equation) {
                    return false;
                }
                if site.equation != writer && !parts.contains(&site.equation) {
                    parts.push(site.equation);
                }
            }
        }
        true
    };
    for site in &sites.reads {
        let Value::Read { source: Source::Parameter(parameter), indices, .. } = nodes.values[site.value as usize]
        else {
            continue;
        };
        if signature.tensor(parameter).is_none_or(|t| t.role != Role::InOut) {
            continue;
        }
        let tensor = signature.parameters[usize::from(parameter)].name.to_string();
        let span = nodes.value_span(site.value);
        let reader = &plan.equations[usize::from(site.equation)];
        let Some(&(writer, _)) = plan.targets.get(&*tensor) else { continue };
        if writer != site.equation {
            if is_own(site.value, site.equation) && is_part(site.equation, writer) {
                continue;
            }
            let writer = &plan.equations[usize::from(writer)];
            let together = is_own(site.value, site.equation).then(|| together(signature, writer, reader)).flatten();
            let reader = InPlaceReader::OtherEquation { writer: writer.ast.head, together };
            diags.report(InPlaceRead { tensor, reader, span });
            continue;
        }
        if is_own(site.value, site.equation) {
            continue;
        }
        let axes = &sites.axes[usize::from(site.equation)];
        let list = &nodes.index_lists[indices.range()];
        let names = axes.iter().map(|&a| nodes.axes[a as usize].name.to_string()).collect();
        let witness = witness(nodes, list, axes);
        let reader = InPlaceReader::OtherElement { axes: names, witness, writer: reader.ast.head };
        diags.report(InPlaceRead { tensor, reader, span });
    }
}

/// The tensors and axes of the one equation that could define what two do; none if they are no outputs of one shape, or
/// have a form of their own.
fn together(signature: &Signature, writer: &Planned<'_>, reader: &Planned<'_>) -> Option<(Vec<String>, Vec<String>)> {
    let both = [writer, reader];
    let has_form = |equation: &ast::Equation| {
        equation.scatter.is_some()
            || equation.targets.len() > 1 && matches!(equation.value.kind, ast::ExprKind::Fold(_))
    };
    let mut shapes = both.iter().flat_map(|planned| &planned.parameters).map(|p| Some(&signature.tensor((*p)?)?.shape));
    let first = shapes.next()??;
    if both.iter().any(|planned| has_form(planned.ast)) || !shapes.all(|shape| shape == Some(first)) {
        return None;
    }
    let names = both.iter().flat_map(|planned| &planned.ast.targets).map(|name| plain(name).to_owned());
    let axes = reader.ast.axes.iter().map(|axis| plain(&axis.name).to_owned());
    Some((names.collect(), axes.collect()))
}

/// The first point with small coordinates at which the indices are not the point itself, and where they lead; none
/// where they depend on more than the equation's axes.
fn witness(nodes: &Nodes, indices: &[IndexId], axes: &[u32]) -> Option<(Vec<i64>, Vec<i64>)> {
    const SIDE: i64 = 3;
    const POINTS: i64 = 3 * 3 * 3 * 3;
    for number in 0..POINTS {
        let mut rest = number;
        let mut point: Vec<i64> = Vec::new();
        for _ in axes {
            point.push(rest % SIDE);
            rest /= SIDE;
        }
        let value = |axis: u32| axes.iter().position(|&a| a == axis).map(|at| point[at]);
        let read = indices.iter().map(|&i| eval(nodes, i, &value)).collect::<Option<Vec<i64>>>()?;
        // A negative element is outside: it would be a finding about bounds, not about order.
        if read != point && read.iter().all(|&i| i >= 0) {
            return Some((point, read));
        }
    }
    None
}

fn eval(nodes: &Nodes, index: IndexId, axis: &dyn Fn(u32) -> Option<i64>) -> Option<i64> {
    let of = |id| eval(nodes, id, axis);
    match nodes.indices[index as usize] {
        Index::Literal(c) => Some(c),
        Index::Axis(a) => axis(a),
        Index::Dim(_) | Index::Value(_) => None,
        node => {
            let [a, b] = node.sides()?;
            node.value(of(a)?, of(b)?)
        }
    }
}
