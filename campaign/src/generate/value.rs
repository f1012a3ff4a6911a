//! Random expressions of a given type.

use tilewright_kernel::ElementType;

use super::{Axis, Context};
use crate::ast::{Bound, Index, Node, Parameter, Size, State, Value};

fn boxed(value: Value) -> Box<Value> {
    Box::new(value)
}

impl Context<'_> {
    /// A neighbour, read where an affine condition says that it is inside: `if i < N - 1 { x[i + 1] } else { … }`.
    fn narrowed(&mut self, ty: ElementType, axes: &[Axis], depth: u32) -> Option<Value> {
        let shifted = |p: &Parameter, axes: &[Axis]| -> Vec<(usize, Axis)> {
            let shape = p.shape.clone().unwrap_or_default();
            let fits = |(d, s): (usize, &Size)| Some((d, axes.iter().find(|(_, e)| e == s)?.clone()));
            shape.iter().enumerate().filter_map(fits).collect()
        };
        let same: Vec<Parameter> = self.tensors.iter().filter(|p| p.ty == ty).cloned().collect();
        let usable: Vec<Parameter> = same.into_iter().filter(|p| !shifted(p, axes).is_empty()).collect();
        if usable.is_empty() {
            return None;
        }
        let parameter = self.rng.pick(&usable).clone();
        let (at, (axis, size)) = self.rng.pick(&shifted(&parameter, axes)).clone();
        let mut read = self.read(&parameter, axes);
        let Node::Read { indices, or, .. } = &mut read.node else { return None };
        let by = self.rng.range(1, 3);
        let end = match &size.dim {
            None => Index::Literal(size.add),
            Some(d) if size.mul == 1 && size.add == 0 => Index::Dim(d.clone()),
            Some(_) => return None,
        };
        let axis = || Box::new(Index::Axis(axis.clone()));
        let literal = |v| Box::new(Index::Literal(v));
        let (index, condition) = if self.rng.chance(50) {
            let last = Index::Sub(Box::new(end), literal(by));
            let op = if self.rng.chance(self.careless) { "<=" } else { "<" };
            (Index::Add(axis(), literal(by)), Node::CompareIndex(op, *axis(), last))
        } else {
            (Index::Sub(axis(), literal(by)), Node::CompareIndex(">=", *axis(), *literal(by)))
        };
        indices[at] = index;
        if self.rng.chance(80) {
            *or = None;
        }
        let of = |node| Value { ty: ElementType::Bool, node };
        let condition = of(condition);
        if ty == ElementType::Bool {
            return Some(of(Node::Infix("&&", boxed(condition), boxed(read))));
        }
        let other = self.value(ty, axes, depth);
        if self.rng.chance(30) {
            let negated = of(Node::Prefix("!", boxed(condition)));
            return Some(Value { ty, node: Node::Select(boxed(negated), boxed(other), boxed(read)) });
        }
        if self.rng.chance(30) && ty.is_float() {
            let zero = self.literal(ty);
            let positive = of(Node::Infix(">", boxed(read.clone()), boxed(zero)));
            let both = of(Node::Infix("&&", boxed(condition), boxed(positive)));
            return Some(Value { ty, node: Node::Select(boxed(both), boxed(read), boxed(other)) });
        }
        Some(Value { ty, node: Node::Select(boxed(condition), boxed(read), boxed(other)) })
    }

    /// A sum of products in a wider type.
    fn dot(&mut self, ty: ElementType, axes: &[Axis]) -> Option<Value> {
        let of = match ty {
            ElementType::F32 => *self.rng.pick(&[ElementType::F32, ElementType::F16, ElementType::Bf16]),
            ElementType::F64 => ElementType::F64,
            ElementType::I32 => *self.rng.pick(&[ElementType::I8, ElementType::I32]),
            _ => return None,
        };
        let (bounds, scope) = self.reduction_axes(axes);
        let (a, b) = (self.leaf(of, &scope), self.leaf(of, &scope));
        let body = Value { ty: of, node: Node::Infix("*", boxed(a), boxed(b)) };
        Some(Value { ty, node: Node::Reduce { op: "dot", axes: bounds, body: boxed(body) } })
    }

    /// A value of a type over the axes in scope.
    pub(super) fn value(&mut self, ty: ElementType, axes: &[Axis], depth: u32) -> Value {
        if depth > 0
            && self.rng.chance(5)
            && let Some(value) = self.narrowed(ty, axes, depth - 1)
        {
            return value;
        }
        if depth > 1 && self.rng.chance(2) {
            let value = self.reduced(ty, axes, 1);
            if value.ty == ty {
                return value;
            }
        }
        if depth == 0 || self.rng.chance(20) {
            return self.leaf(ty, axes);
        }
        let depth = depth - 1;
        let node = if ty == ElementType::Bool {
            match self.rng.below(4) {
                0 => {
                    let op = *self.rng.pick(&["&&", "||"]);
                    Node::Infix(op, boxed(self.value(ty, axes, depth)), boxed(self.value(ty, axes, depth)))
                }
                1 => Node::Prefix("!", boxed(self.value(ty, axes, depth))),
                _ => return self.condition(axes, depth),
            }
        } else {
            match self.rng.below(16) {
                0..7 => {
                    let ops: &[&str] = if ty.is_float() { &["+", "-", "*", "+", "*", "/"] } else { &["+", "-", "*"] };
                    let op = *self.rng.pick(ops);
                    Node::Infix(op, boxed(self.value(ty, axes, depth)), boxed(self.value(ty, axes, depth)))
                }
                7 if ty.is_integer() => {
                    let op = *self.rng.pick(&["/", "%"]);
                    let divisor = self.rng.range(1, 9).to_string() + ty.name();
                    let divisor = Value { ty, node: Node::Literal(divisor) };
                    Node::Infix(op, boxed(self.value(ty, axes, depth)), boxed(divisor))
                }
                7..9 => {
                    let name = *self.rng.pick(&["max", "min"]);
                    Node::Call(name, vec![self.value(ty, axes, depth), self.value(ty, axes, depth)])
                }
                9..11 if ty.is_float() => self.function(ty, axes, depth),
                11 if !matches!(ty, ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64) => {
                    Node::Prefix("-", boxed(self.value(ty, axes, depth)))
                }
                12..14 => {
                    let condition = self.condition(axes, depth);
                    let (yes, no) = (self.value(ty, axes, depth), self.value(ty, axes, depth));
                    Node::Select(boxed(condition), boxed(yes), boxed(no))
                }
                14 => {
                    let from = super::element(self.rng);
                    return self.cast(from, ty, axes, depth);
                }
                _ => return self.leaf(ty, axes),
            }
        };
        Value { ty, node }
    }

    fn cast(&mut self, from: ElementType, ty: ElementType, axes: &[Axis], depth: u32) -> Value {
        let value = self.value(from, axes, depth);
        if from == ty { value } else { Value { ty, node: Node::Cast(boxed(value)) } }
    }

    fn function(&mut self, ty: ElementType, axes: &[Axis], depth: u32) -> Node {
        let wide: &[&str] = &["sqrt", "rsqrt", "abs", "floor", "fma"];
        let narrow: &[&str] =
            &["exp", "log", "tanh", "erf", "sin", "cos", "approx::exp", "approx::tanh", "max_num", "min_num"];
        let names = if ty == ElementType::F64 || self.rng.chance(40) { wide } else { narrow };
        let name = *self.rng.pick(names);
        let arity = match name {
            "fma" => 3,
            "max_num" | "min_num" => 2,
            _ => 1,
        };
        Node::Call(name, (0..arity).map(|_| self.value(ty, axes, depth)).collect())
    }

    /// A `bool`.
    fn condition(&mut self, axes: &[Axis], depth: u32) -> Value {
        let op = *self.rng.pick(&["<", "<=", ">", ">=", "==", "!="]);
        let node = if !axes.is_empty() && self.rng.chance(50) {
            let (axis, extent) = self.rng.pick(axes).clone();
            let axis = Index::Axis(axis);
            let other = match (&extent.dim, self.rng.below(3)) {
                (Some(d), 0) => Index::Dim(d.clone()),
                (Some(d), 1) => Index::Sub(Box::new(Index::Dim(d.clone())), Box::new(Index::Literal(1))),
                _ => Index::Literal(self.rng.range(0, 6)),
            };
            Node::CompareIndex(op, self.shift(axis), other)
        } else {
            let ty = match super::element(self.rng) {
                ElementType::Bool => ElementType::F32,
                ty => ty,
            };
            Node::Infix(op, boxed(self.value(ty, axes, depth)), boxed(self.value(ty, axes, depth)))
        };
        Value { ty: ElementType::Bool, node }
    }

    fn shift(&mut self, index: Index) -> Index {
        let by = Box::new(Index::Literal(self.rng.range(1, 3)));
        match self.rng.below(4) {
            0 => Index::Add(Box::new(index), by),
            1 => Index::Sub(Box::new(index), by),
            _ => index,
        }
    }

    fn leaf(&mut self, ty: ElementType, axes: &[Axis]) -> Value {
        let same: Vec<Parameter> = self.tensors.iter().filter(|p| p.ty == ty).cloned().collect();
        match self.rng.below(10) {
            0 => self.literal(ty),
            1 if ty != ElementType::Bool && !axes.is_empty() => {
                let (axis, _) = self.rng.pick(axes).clone();
                let index = match self.rng.below(8) {
                    0 if !self.dims.is_empty() => Index::Dim(self.rng.pick(&self.dims).clone()),
                    _ => self.shift(Index::Axis(axis)),
                };
                Value { ty, node: Node::FromIndex(index) }
            }
            _ if !same.is_empty() => {
                let parameter = self.rng.pick(&same).clone();
                self.operand(&parameter, axes)
            }
            _ => {
                let usable: Vec<Parameter> = (self.tensors.iter())
                    .filter(|p| ty != ElementType::Bool && (p.ty != ElementType::Bool || !ty.is_float()))
                    .cloned()
                    .collect();
                if usable.is_empty() {
                    return self.literal(ty);
                }
                let parameter = self.rng.pick(&usable).clone();
                let value = self.operand(&parameter, axes);
                if value.ty == ty { value } else { Value { ty, node: Node::Cast(boxed(value)) } }
            }
        }
    }

    /// A literal of a type.
    pub(super) fn literal(&mut self, ty: ElementType) -> Value {
        let text = match ty {
            ElementType::Bool => (*self.rng.pick(&["true", "false"])).to_owned(),
            ty if ty.is_float() => format!("{:?}{ty}", self.rng.range(0, 12) as f64 / 4.0),
            ty => format!("{}{ty}", self.rng.range(0, 9)),
        };
        Value { ty, node: Node::Literal(text) }
    }

    fn operand(&mut self, parameter: &Parameter, axes: &[Axis]) -> Value {
        match &parameter.shape {
            None => Value { ty: parameter.ty, node: Node::Name(parameter.name.clone()) },
            Some(_) => self.read(parameter, axes),
        }
    }

    /// An element of a tensor: in bounds where an axis fits, else with `or`.
    pub(super) fn read(&mut self, parameter: &Parameter, axes: &[Axis]) -> Value {
        let shape = parameter.shape.clone().unwrap_or_default();
        let (mut indices, mut guard, mut gather) = (Vec::new(), false, false);
        for size in &shape {
            let (index, inside, from_memory) = self.index(size, axes);
            guard |= !inside;
            gather |= from_memory;
            indices.push(index);
        }
        if guard && !gather && self.rng.chance(self.careless) {
            guard = false;
        }
        guard |= self.rng.chance(4);
        let or = guard.then(|| match self.rng.below(12) {
            0 => boxed(self.leaf(parameter.ty, axes)),
            _ => boxed(self.literal(parameter.ty)),
        });
        Value { ty: parameter.ty, node: Node::Read { tensor: parameter.name.clone(), indices, or } }
    }

    /// An index for a dimension; whether it is in bounds for certain, and whether it is read from memory.
    fn index(&mut self, size: &Size, axes: &[Axis]) -> (Index, bool, bool) {
        let fitting: Vec<Axis> = axes.iter().filter(|(_, e)| e == size).cloned().collect();
        if !fitting.is_empty() && self.rng.chance(82) {
            let (axis, _) = self.rng.pick(&fitting).clone();
            return (Index::Axis(axis), true, false);
        }
        if self.rng.chance(6) {
            let integers: Vec<Parameter> = (self.tensors.iter())
                .filter(|p| p.ty.is_integer() && p.shape.as_ref().is_none_or(|s| s.len() <= 1))
                .cloned()
                .collect();
            if !integers.is_empty() {
                let parameter = self.rng.pick(&integers).clone();
                let value = self.operand(&parameter, axes);
                return (Index::Gather(boxed(value)), false, true);
            }
        }
        if axes.is_empty() || self.rng.chance(10) {
            let literal = self.rng.range(0, 3);
            let inside =
                size.dim.is_none() && literal < size.add || size.dim.is_some() && literal == 0 && size.add >= 0;
            return (Index::Literal(literal), inside, false);
        }
        let (name, extent) = self.rng.pick(axes).clone();
        let axis = Box::new(Index::Axis(name));
        // Forms that are in bounds by arithmetic.
        if extent.dim == size.dim && extent.mul == size.mul && extent.add < size.add && self.rng.chance(80) {
            let by = self.rng.range(0, size.add - extent.add);
            return (Index::Add(axis, Box::new(Index::Literal(by))), true, false);
        }
        if extent.dim == size.dim && extent.mul == 2 * size.mul && extent.add == 0 && size.add == 0 {
            return (Index::Div(axis, 2), true, false);
        }
        if size.dim.is_none() && size.add >= 1 && self.rng.chance(50) {
            return (Index::Mod(axis, size.add), true, false);
        }
        if size == &extent && self.rng.chance(30) {
            let last = match &size.dim {
                Some(d) if size.mul == 1 && size.add == 0 => Index::Dim(d.clone()),
                _ => Index::Literal(size.add),
            };
            let inside = size.dim.is_none() || size.mul == 1 && size.add == 0;
            let reversed = Index::Sub(Box::new(last), axis);
            return (Index::Sub(Box::new(reversed), Box::new(Index::Literal(1))), inside, false);
        }
        let c = self.rng.range(1, 3);
        let index = match self.rng.below(6) {
            0 => Index::Mul(2, axis),
            1 => Index::Div(axis, c + 1),
            2 => Index::Mod(axis, c + 1),
            3 => Index::Sub(axis, Box::new(Index::Literal(c))),
            _ => Index::Add(axis, Box::new(Index::Literal(c))),
        };
        (index, false, false)
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
            let dim = size.dim.clone().map_or(Index::Literal(size.add), |d| {
                let scaled = if size.mul == 1 { Index::Dim(d) } else { Index::Mul(size.mul, Box::new(Index::Dim(d))) };
                match size.add {
                    0 => scaled,
                    add => Index::Add(Box::new(scaled), Box::new(Index::Literal(add))),
                }
            });
            let (lower, upper) = match self.rng.below(14) {
                0 => (Index::Literal(1), dim),
                1 if !axes.is_empty() => {
                    let (outer, _) = self.rng.pick(axes).clone();
                    (Index::Literal(0), Index::Add(Box::new(Index::Axis(outer)), Box::new(Index::Literal(1))))
                }
                _ => (Index::Literal(0), dim),
            };
            bounds.push(Bound { axis: axis.clone(), lower, upper, written: true });
            scope.push((axis, size));
        }
        (bounds, scope)
    }

    /// A value of a type with a reduction at its root, or just below it.
    pub(super) fn reduced(&mut self, ty: ElementType, axes: &[Axis], depth: u32) -> Value {
        let (bounds, scope) = self.reduction_axes(axes);
        if self.rng.chance(8) {
            return self.fold(axes, 1);
        }
        let inner = depth.min(2);
        if self.rng.chance(8)
            && let Some(value) = self.dot(ty, axes)
        {
            return value;
        }
        let (op, ty, body) = match ty {
            ElementType::Bool => {
                let op = *self.rng.pick(&["all", "any"]);
                (op, ty, self.condition(&scope, inner))
            }
            ElementType::U32 if bounds.len() == 1 => {
                let op = *self.rng.pick(&["argmax", "argmin"]);
                let of = *self.rng.pick(&[ElementType::F32, ElementType::I32, ElementType::F16]);
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
        let ty = ElementType::F32;
        let of = |node| Value { ty, node };
        let with_merge = self.rng.chance(50);
        let mut states = Vec::new();
        for _ in 0..count {
            let names = [self.name("s"), self.name("p"), self.name("q")];
            let name = |k: usize| of(Node::Name(names[k].clone()));
            let term = self.value(ty, &scope, 1);
            let is_sum = self.rng.chance(50);
            let combine = |a: Value, b: Value| {
                if is_sum { of(Node::Infix("+", boxed(a), boxed(b))) } else { of(Node::Call("max", vec![a, b])) }
            };
            let init = of(Node::Literal(if is_sum { "0.0f32" } else { "-inf" }.to_owned()));
            let merge = with_merge.then(|| combine(name(1), name(2)));
            states.push(State { init, step: combine(name(0), term), merge, names });
        }
        of(Node::Fold { axes: bounds, states })
    }
}
