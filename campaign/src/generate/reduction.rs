//! Random reductions and folds.

use tilewright_kernel::ElementType;

use super::value::boxed;
use super::{Axis, Context, is_storage};
use crate::ast::{Bound, Index, Node, Size, State, Value};

impl Context<'_> {
    /// A sum of products in a wider type.
    fn dot(&mut self, ty: ElementType, axes: &[Axis]) -> Option<Value> {
        let of = match ty {
            ElementType::F32 => *self.rng.pick(&[
                ElementType::F32,
                ElementType::F16,
                ElementType::Bf16,
                ElementType::Tf32,
                ElementType::E4m3,
                ElementType::E5m2,
            ]),
            ElementType::F64 => ElementType::F64,
            ElementType::I32 => *self.rng.pick(&[
                ElementType::I8,
                ElementType::I16,
                ElementType::I32,
                ElementType::U8,
                ElementType::U16,
            ]),
            _ => return None,
        };
        let (bounds, scope) = self.reduction_axes(axes);
        let (a, b) = (self.leaf(of, &scope), self.leaf(of, &scope));
        let body = Value { ty: of, node: Node::Infix("*", boxed(a), boxed(b)) };
        let bounds = self.inferable(bounds, &scope, &[&body]);
        Some(Value { ty, node: Node::Reduce { op: "dot", axes: bounds, body: boxed(body) } })
    }

    /// A reduction axis or two, and a read that uses them.
    fn reduction_axes(&mut self, axes: &[Axis]) -> (Vec<Bound>, Vec<Axis>) {
        let count = 1 + usize::from(self.rng.chance(25));
        let mut scope = axes.to_vec();
        let mut bounds = Vec::new();
        for _ in 0..count {
            let of_tensors: Vec<Size> = (self.tensors.iter())
                .flat_map(|p| p.shape.clone().unwrap_or_default())
                .filter(|s| !axes.iter().any(|(_, e)| e == s))
                .collect();
            let size = match of_tensors.is_empty() {
                false if self.rng.chance(85) => self.rng.pick(&of_tensors).clone(),
                _ => super::size(self.rng, &self.dims.clone()),
            };
            let axis = self.name("r");
            let dim = size.index();
            let (lower, upper) = match self.rng.below(14) {
                0 => (Index::Literal(1), dim),
                1 if !axes.is_empty() => {
                    let (outer, _) = self.rng.pick(axes).clone();
                    (Index::Literal(0), Index::Add(Box::new(Index::Axis(outer)), Box::new(Index::Literal(1))))
                }
                _ => (Index::Literal(0), dim),
            };
            let inclusive = self.rng.chance(10);
            bounds.push(Bound { axis: axis.clone(), lower, upper, written: true, inclusive });
            scope.push((axis, size));
        }
        (bounds, scope)
    }

    /// The bounds of a reduction, some left to be inferred: an axis that stands alone in an index without `or` has the
    /// range of that dimension of a parameter.
    fn inferable(&mut self, mut bounds: Vec<Bound>, scope: &[Axis], bodies: &[&Value]) -> Vec<Bound> {
        for bound in &mut bounds {
            let Some((_, size)) = scope.iter().find(|(a, _)| *a == bound.axis) else { continue };
            let shape = |tensor: &str| {
                let given = self.tensors.iter().find(|p| p.name == tensor && !["t", "u"].contains(&tensor));
                given.and_then(|p| p.shape.clone())
            };
            let told = bodies.iter().any(|body| indexes(body, &bound.axis, size, &shape));
            let whole = bound.lower == Index::Literal(0) && bound.upper == size.index();
            if told && whole && self.rng.chance(40) {
                bound.written = false;
            }
        }
        bounds
    }

    /// A value of a type with a reduction at its root, or just below it.
    pub(super) fn reduced(&mut self, ty: ElementType, axes: &[Axis], depth: u32) -> Value {
        let (bounds, scope) = self.reduction_axes(axes);
        if self.rng.chance(8) {
            return self.fold(axes, 1);
        }
        if is_storage(ty) {
            let value = self.reduced(ElementType::F32, axes, depth);
            return if value.ty == ty { value } else { Value { ty, node: Node::Cast(boxed(value)) } };
        }
        let inner = depth.min(2);
        if self.rng.chance(8)
            && let Some(value) = self.dot(ty, axes)
        {
            return value;
        }
        if ty != ElementType::U32 && ty != ElementType::Bool && bounds.len() == 1 && self.rng.chance(5) {
            let value = self.reduced(ElementType::U32, axes, depth);
            return if value.ty == ty { value } else { Value { ty, node: Node::Cast(boxed(value)) } };
        }
        let (op, ty, body) = match ty {
            ElementType::Bool => {
                let op = *self.rng.pick(&["all", "any"]);
                (op, ty, self.condition(&scope, inner))
            }
            ElementType::U32 if bounds.len() == 1 => {
                let op = *self.rng.pick(&["argmax", "argmin"]);
                let of = super::number(self.rng);
                (op, ty, self.value(of, &scope, inner))
            }
            ty if ty.is_float() => {
                let op = *self.rng.pick(&["sum", "sum", "sum", "max", "min", "prod", "ordered sum", "unordered sum"]);
                (op, ty, self.value(ty, &scope, inner))
            }
            ty => {
                let op = *self.rng.pick(&["sum", "max", "min", "prod"]);
                (op, ty, self.value(ty, &scope, inner))
            }
        };
        let bounds = self.inferable(bounds, &scope, &[&body]);
        let value = Value { ty, node: Node::Reduce { op, axes: bounds, body: boxed(body) } };
        if ty == ElementType::Bool || self.rng.chance(75) {
            return value;
        }
        let other = self.value(ty, axes, 1);
        Value { ty, node: Node::Infix("+", boxed(value), boxed(other)) }
    }

    /// A fold with sums and maxima as its states.
    pub(super) fn fold(&mut self, axes: &[Axis], count: usize) -> Value {
        let (bounds, scope) = self.reduction_axes(axes);
        let with_merge = self.rng.chance(50);
        let mut states: Vec<State> = Vec::new();
        for _ in 0..count {
            let ty = *self.rng.pick(&[
                ElementType::F32,
                ElementType::F32,
                ElementType::F64,
                ElementType::I32,
                ElementType::F16,
            ]);
            let of = |node| Value { ty, node };
            let names = [self.name("s"), self.name("p"), self.name("q")];
            let name = |k: usize| of(Node::Name(names[k].clone()));
            let term = self.value(ty, &scope, 1);
            let kind = self.rng.below(4);
            let combine = |a: Value, b: Value| match kind {
                0 | 1 => of(Node::Infix("+", boxed(a), boxed(b))),
                2 => of(Node::Call("max", vec![a, b])),
                _ => of(Node::Infix("*", boxed(a), boxed(b))),
            };
            let init = match (kind, ty.is_float()) {
                (0 | 1, true) => format!("0.0{ty}"),
                (0 | 1, false) => format!("0{ty}"),
                (2, true) => "-inf".to_owned(),
                (2, false) => format!("-9{ty}"),
                (_, true) => format!("1.0{ty}"),
                (_, false) => format!("1{ty}"),
            };
            // Without a merge it is any value, which may be read.
            let init =
                if !with_merge && self.rng.chance(30) { self.value(ty, axes, 1) } else { of(Node::Literal(init)) };
            let merge = with_merge.then(|| combine(name(1), name(2)));
            states.push(State { init, step: combine(name(0), term), merge, names });
        }
        let bodies: Vec<&Value> = states.iter().map(|s| &s.step).collect();
        let bounds = self.inferable(bounds, &scope, &bodies);
        Value { ty: states[0].init.ty, node: Node::Fold { axes: bounds, states } }
    }
}

/// Whether an axis stands alone in an index without `or`, of a dimension of this size.
fn indexes(value: &Value, axis: &str, size: &Size, shape: &dyn Fn(&str) -> Option<Vec<Size>>) -> bool {
    let here = match &value.node {
        Node::Read { tensor, indices, or: None } => shape(tensor).is_some_and(|shape| {
            shape.iter().zip(indices).any(|(s, i)| s == size && matches!(i, Index::Axis(a) if a == axis))
        }),
        _ => false,
    };
    here || value.operands().into_iter().any(|v| indexes(v, axis, size, shape))
}
