//! Every element that an expression reads at a point, by evaluation of its indices.

use std::collections::BTreeMap;

use tilewright_kernel::ElementType;

use crate::ast::{Bound, Dims, Index, Kernel, Node, Value};

/// Values of the axes in scope, and of elements of inputs and scalars that a way has decided, under names like `x[3]`
/// and `a[]`.
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
    /// Whether neighbouring elements may do without it: it stands on one side of a condition, or in an intermediate
    /// that is read with `or`.
    pub conditional: bool,
    /// How it was reached: the reads of intermediates and the terms of reductions around it, outermost first.
    pub way: Vec<Step>,
}

/// A step on the way to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Through this read of an intermediate, by its address.
    Read(usize),
    /// The axis of a reduction, by its address, at this value.
    Term(usize, i64),
}

impl Read<'_> {
    /// The same read, reached over one step more.
    fn over(&self, step: Step) -> Self {
        let way = std::iter::once(step).chain(self.way.iter().copied()).collect();
        Self { indices: self.indices.clone(), way, ..*self }
    }
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
        f(&Read { indices: read.indices.clone(), way: read.way.clone(), conditional: true, ..*read })
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
        Index::Min(a, b) => of(a)?.min(of(b)?),
        Index::Max(a, b) => of(a)?.max(of(b)?),
        Index::Gather(v) => *scope.get(&cell(v, scope, dims)?)?,
    })
}

/// The name of the element of memory, or of the scalar, that a value is, if it is one.
fn cell(value: &Value, scope: &Scope, dims: &Dims) -> Option<String> {
    if let Node::Name(scalar) = &value.node {
        return Some(format!("{scalar}[]"));
    }
    let Node::Read { tensor, indices, or: None } = &value.node else { return None };
    let at: Option<Vec<String>> = indices.iter().map(|i| Some(index(i, scope, dims)?.to_string())).collect();
    Some(format!("{tensor}[{}]", at?.join(", ")))
}

/// The first value in an index that memory decides.
fn gathered(index: &Index) -> Option<&Value> {
    match index {
        Index::Gather(v) => Some(v),
        _ => index.sides().into_iter().flatten().find_map(gathered),
    }
}

/// The integers that an element of this type can be, of those near the elements of an intermediate's axis.
fn contents(ty: ElementType, near: std::ops::Range<i64>) -> std::ops::Range<i64> {
    let (low, high) = match ty {
        ElementType::U8 => (0, 256),
        ElementType::I8 => (-128, 128),
        ElementType::U16 | ElementType::U32 | ElementType::U64 => (0, i64::MAX),
        ElementType::Bool => (0, 2),
        _ => (i64::MIN, i64::MAX),
    };
    (near.start - NEAR).max(low)..(near.end + NEAR).min(high)
}

/// How far indices of the generator shift what they read from memory.
const NEAR: i64 = 20;

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

/// The value of an index that was converted once, and of a literal, where nothing is rounded or cut off.
fn number(value: &Value, scope: &Scope, dims: &Dims) -> Option<f64> {
    let small = |x: f64| (0.0..=100.0).contains(&x).then_some(x);
    match &value.node {
        Node::FromIndex(i) => small(index(i, scope, dims)? as f64),
        Node::Literal(text) => {
            // Without the suffix, which starts with a letter.
            let digits = text.find(|c: char| c.is_ascii_alphabetic()).map_or(text.as_str(), |at| &text[..at]);
            small(digits.parse().ok()?)
        }
        _ => None,
    }
}

/// What a condition is at a point, if indices alone decide it.
fn decided(value: &Value, scope: &Scope, dims: &Dims) -> Option<bool> {
    match &value.node {
        Node::CompareIndex(op, a, b) => Some(compare(op, index(a, scope, dims)?, index(b, scope, dims)?)),
        Node::Prefix("!", a) => decided(a, scope, dims).map(|v| !v),
        Node::Literal(text) => text.parse().ok(),
        Node::Infix(op @ ("<" | "<=" | ">" | ">=" | "==" | "!="), a, b) => {
            let unsigned = matches!(a.ty, ElementType::U64 | ElementType::U32 | ElementType::U16 | ElementType::U8);
            let (a, b) = match (*op, number(a, scope, dims), number(b, scope, dims)) {
                (_, Some(a), Some(b)) => (a, b),
                // Nothing without a sign is less than 0.
                ("<=", Some(0.0), None) | (">=", None, Some(0.0)) if unsigned => return Some(true),
                (">", Some(0.0), None) | ("<", None, Some(0.0)) if unsigned => return Some(false),
                _ => return None,
            };
            Some(match *op {
                "<" => a < b,
                "<=" => a <= b,
                ">" => a > b,
                ">=" => a >= b,
                "==" => a == b,
                _ => a != b,
            })
        }
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

/// Calls `f` for every read of `value` at a point. Reduction axes that the scope holds are not enumerated again; of an
/// `if` that indices decide, only the taken side is visited. False if `f` said stop.
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
                // What memory decides in a guarded read can be anything that it can hold, but the same in one place.
                if let (true, Some(axis)) = (or.is_some(), at.iter().position(Option::is_none)) {
                    let start = equation.lower[axis];
                    let domain = start..start + equation.axes[axis].1.value(dims);
                    return match gathered(&indices[axis]).map(|v| (v.ty, cell(v, scope, dims))) {
                        Some((ty, Some(name))) if !scope.contains_key(&name) => contents(ty, domain).all(|content| {
                            let mut scope = scope.clone();
                            scope.insert(name.clone(), content);
                            visit(kernel, value, &scope, dims, f)
                        }),
                        _ => true,
                    };
                }
                let cells = scope.iter().filter(|(name, _)| name.contains('['));
                let cells = cells.map(|(name, content)| Some((name.clone(), *content)));
                let inner: Option<Scope> =
                    equation.axes.iter().zip(&at).map(|((a, _), v)| Some((a.clone(), (*v)?))).chain(cells).collect();
                let outside = (0..).zip(&at).any(|(axis, v)| v.is_none_or(|v| !equation.contains(axis, v, dims)));
                // The domain of an output is its shape.
                let is_known = equation.domain_written || kernel.parameter(tensor).is_some();
                if outside
                    && is_known
                    && !f(&Read {
                        value,
                        tensor,
                        indices: at,
                        guarded: or.is_some(),
                        conditional: false,
                        way: Vec::new(),
                    })
                {
                    return false;
                }
                let step = Step::Read(std::ptr::from_ref(value) as usize);
                let f = &mut |read: &Read<'_>| f(&read.over(step));
                return match inner {
                    Some(_) if outside && or.is_some() => true,
                    Some(inner) if or.is_some() => visit_conditional(kernel, &equation.value, &inner, dims, f),
                    Some(inner) => visit(kernel, &equation.value, &inner, dims, f),
                    _ => true,
                };
            }
            f(&Read { value, tensor, indices: at, guarded: or.is_some(), conditional: false, way: Vec::new() })
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
        Node::Reduce { axes, body, .. } => terms(kernel, axes, &[body], scope, dims, f),
        Node::Fold { axes, states } => {
            // What a state is at first is read of an empty range, too.
            let steps: Vec<&Value> =
                states.iter().flat_map(|s| [&s.step].into_iter().chain(s.merge.as_ref())).collect();
            states.iter().all(|s| visit(kernel, &s.init, scope, dims, f)) && terms(kernel, axes, &steps, scope, dims, f)
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
        let step = Step::Term(std::ptr::from_ref(first) as usize, v);
        terms(kernel, rest, body, &inner, dims, &mut |read| f(&read.over(step)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::State;

    fn read(tensor: &str) -> Value {
        let node = Node::Read { tensor: tensor.to_owned(), indices: vec![Index::Literal(0)], or: None };
        Value { ty: ElementType::F32, node }
    }

    /// A scalar in an index of a guarded read can be anything: what is read behind it is seen.
    #[test]
    fn a_scalar_decides_what_is_read() {
        let f32 = ElementType::F32;
        let at = |tensor: &str, index: Index, or: Option<Value>| Value {
            ty: f32,
            node: Node::Read { tensor: tensor.to_owned(), indices: vec![index], or: or.map(Box::new) },
        };
        let equation = crate::ast::Equation {
            targets: vec!["t".to_owned()],
            axes: vec![("ti".to_owned(), crate::ast::Size::named("N"))],
            lower: vec![0],
            domain_written: true,
            inclusive: false,
            value: at("x", Index::Axis("ti".to_owned()), None),
            inline: true,
        };
        let (parameters, facts, schedules) = (Vec::new(), Vec::new(), Vec::new());
        let kernel = Kernel { parameters, facts, equations: vec![equation], threads: None, schedules, allow: None };
        let scalar = Value { ty: ElementType::I32, node: Node::Name("a".to_owned()) };
        let zero = Value { ty: f32, node: Node::Literal("0.0".to_owned()) };
        let value = at("t", Index::Gather(Box::new(scalar)), Some(zero));
        let mut seen = Vec::new();
        visit(&kernel, &value, &Scope::new(), &Dims::from([("N".to_owned(), 2)]), &mut |read| {
            seen.extend((read.tensor == "x").then(|| read.indices.clone()));
            true
        });
        assert_eq!(seen, [vec![Some(0)], vec![Some(1)]]);
    }

    /// A fold over no terms is what its state is at first; what it does with terms is not read.
    #[test]
    fn a_fold_over_an_empty_range_reads_its_start() {
        let (parameters, facts, equations, schedules) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let kernel = Kernel { parameters, facts, equations, threads: None, schedules, allow: None };
        let seen = |upper: i64| {
            let bound = |name: &str| name.to_owned();
            let over = Bound {
                axis: bound("j"),
                lower: Index::Literal(0),
                upper: Index::Literal(upper),
                written: true,
                inclusive: false,
            };
            let names = ["s", "a", "b"].map(bound);
            let state = State { init: read("start"), names, step: read("step"), merge: Some(read("merge")) };
            let node = Node::Fold { axes: vec![over], states: vec![state] };
            let mut seen: Vec<String> = Vec::new();
            let value = Value { ty: ElementType::F32, node };
            visit(&kernel, &value, &Scope::new(), &Dims::new(), &mut |read| {
                seen.push(read.tensor.to_owned());
                true
            });
            seen
        };
        assert_eq!(seen(0), ["start"]);
        assert_eq!(seen(2), ["start", "step", "merge", "step", "merge"]);
    }
}
