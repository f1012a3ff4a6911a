//! Every element that an expression reads at a point, by evaluation of its indices.

use std::collections::BTreeMap;

use crate::ast::{Bound, Dims, Index, Kernel, Node, Value};

/// Values of the axes in scope.
pub type Scope = BTreeMap<String, i64>;

/// One read.
#[derive(Debug)]
pub struct Read<'a> {
    /// The expression.
    pub value: &'a Value,
    /// Of this tensor.
    pub tensor: &'a str,
    /// At these indices; none for one that memory decides.
    pub indices: Vec<Option<i64>>,
    /// Whether it says what is outside.
    pub guarded: bool,
    /// Whether neighbouring elements may do without it: it stands on one side of a condition, or in an intermediate that is read
    /// with `or`.
    pub conditional: bool,
}

/// The same reads, all of them conditional.
fn visit_conditional(
    kernel: &Kernel,
    value: &Value,
    scope: &Scope,
    dims: &Dims,
    f: &mut dyn FnMut(&Read<'_>) -> bool,
) -> bool {
    visit(kernel, value, scope, dims, &mut |read: &Read<'_>| {
        f(&Read { indices: read.indices.clone(), conditional: true, ..*read })
    })
}

/// The value of an index; none if memory decides it.
pub fn index(index_of: &Index, scope: &Scope, dims: &Dims) -> Option<i64> {
    let of = |i: &Index| index(i, scope, dims);
    Some(match index_of {
        Index::Literal(c) => *c,
        Index::Dim(d) => *dims.get(d)?,
        Index::Axis(a) => *scope.get(a)?,
        Index::Add(a, b) => of(a)? + of(b)?,
        Index::Sub(a, b) => of(a)? - of(b)?,
        Index::Mul(a, b) => of(a)? * of(b)?,
        Index::Div(a, b) => of(a)?.checked_div_euclid(of(b)?)?,
        Index::Mod(a, b) => of(a)?.checked_rem_euclid(of(b)?)?,
        Index::Gather(_) => return None,
    })
}

fn compare(op: &str, a: i64, b: i64) -> bool {
    match op {
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        ">=" => a >= b,
        "==" => a == b,
        _ => a != b,
    }
}

/// What a condition is at a point, if indices alone decide it.
fn decided(value: &Value, scope: &Scope, dims: &Dims) -> Option<bool> {
    match &value.node {
        Node::CompareIndex(op, a, b) => Some(compare(op, index(a, scope, dims)?, index(b, scope, dims)?)),
        Node::Prefix("!", a) => decided(a, scope, dims).map(|v| !v),
        Node::Literal(text) => text.parse().ok(),
        Node::Infix("&&", a, b) => match (decided(a, scope, dims), decided(b, scope, dims)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        },
        Node::Infix("||", a, b) => match (decided(a, scope, dims), decided(b, scope, dims)) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Calls `f` for every read of `value` at a point. Reduction axes that the scope holds are not enumerated again; of an `if`
/// that indices decide, only the taken side is visited. False if `f` said stop.
pub fn visit(kernel: &Kernel, value: &Value, scope: &Scope, dims: &Dims, f: &mut dyn FnMut(&Read<'_>) -> bool) -> bool {
    match &value.node {
        Node::Read { tensor, indices, or } => {
            for operand in value.operands() {
                if !visit(kernel, operand, scope, dims, f) {
                    return false;
                }
            }
            let at: Vec<Option<i64>> = indices.iter().map(|i| index(i, scope, dims)).collect();
            if let Some(equation) = kernel.computed(tensor) {
                let inner: Option<Scope> =
                    equation.axes.iter().zip(&at).map(|((a, _), v)| Some((a.clone(), (*v)?))).collect();
                let outside = (0..).zip(&at).any(|(axis, v)| v.is_none_or(|v| !equation.contains(axis, v, dims)));
                // The domain of an output is its shape.
                let is_known = equation.domain_written || kernel.parameter(tensor).is_some();
                if outside
                    && is_known
                    && !f(&Read { value, tensor, indices: at, guarded: or.is_some(), conditional: false })
                {
                    return false;
                }
                return match inner {
                    Some(_) if outside && or.is_some() => true,
                    Some(inner) if or.is_some() => visit_conditional(kernel, &equation.value, &inner, dims, f),
                    Some(inner) => visit(kernel, &equation.value, &inner, dims, f),
                    _ => true,
                };
            }
            f(&Read { value, tensor, indices: at, guarded: or.is_some(), conditional: false })
        }
        Node::Select(c, a, b) => {
            let sides: &[&Value] = match decided(c, scope, dims) {
                Some(true) => &[a],
                Some(false) => &[b],
                None => &[a, b],
            };
            visit(kernel, c, scope, dims, f) && sides.iter().all(|v| visit_conditional(kernel, v, scope, dims, f))
        }
        // The right side is evaluated where the left one does not decide.
        Node::Infix(op @ ("&&" | "||"), a, b) => {
            let decides = decided(a, scope, dims).is_some_and(|a| a == (*op == "||"));
            visit(kernel, a, scope, dims, f) && (decides || visit_conditional(kernel, b, scope, dims, f))
        }
        Node::Reduce { axes, .. } | Node::Fold { axes, .. } => {
            let body: Vec<&Value> = value.operands();
            terms(kernel, axes, &body, scope, dims, f)
        }
        _ => value.operands().into_iter().all(|v| visit(kernel, v, scope, dims, f)),
    }
}

fn terms(
    kernel: &Kernel,
    axes: &[Bound],
    body: &[&Value],
    scope: &Scope,
    dims: &Dims,
    f: &mut dyn FnMut(&Read<'_>) -> bool,
) -> bool {
    let Some((first, rest)) = axes.split_first() else { return body.iter().all(|v| visit(kernel, v, scope, dims, f)) };
    if scope.contains_key(&first.axis) {
        return terms(kernel, rest, body, scope, dims, f);
    }
    let (Some(lower), Some(upper)) = (index(&first.lower, scope, dims), index(&first.upper, scope, dims)) else {
        return true;
    };
    let mut inner = scope.clone();
    (lower..upper).all(|v| {
        inner.insert(first.axis.clone(), v);
        terms(kernel, rest, body, &inner, dims, f)
    })
}
