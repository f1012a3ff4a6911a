//! Random expressions of a given type.

use tilewright_kernel::ElementType;

use super::{Axis, Context, is_storage};
use crate::ast::{Bound, Index, Node, Parameter, Size, State, Value};

/// Types that are cast from and to.
const TYPES: [ElementType; 16] = [
    ElementType::F64,
    ElementType::F32,
    ElementType::Tf32,
    ElementType::F16,
    ElementType::Bf16,
    ElementType::E4m3,
    ElementType::E5m2,
    ElementType::I64,
    ElementType::I32,
    ElementType::I16,
    ElementType::I8,
    ElementType::U64,
    ElementType::U32,
    ElementType::U16,
    ElementType::U8,
    ElementType::Bool,
];

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
        let by = self.rng.range(1, 3);
        let axis = self.axis(&axis);
        let literal = |v| Box::new(Index::Literal(v));
        let (index, condition) = if self.rng.chance(50) {
            let last = Index::Sub(Box::new(size.index()), literal(by));
            let op = if self.rng.chance(self.careless) { "<=" } else { "<" };
            (Index::Add(Box::new(axis.clone()), literal(by)), Node::CompareIndex(op, axis, last))
        } else {
            (Index::Sub(Box::new(axis.clone()), literal(by)), Node::CompareIndex(">=", axis, *literal(by)))
        };
        let mut read = self.read(&parameter, axes);
        let index = self.shifted(&parameter, at, index);
        let Node::Read { indices, or, .. } = &mut read.node else { return None };
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
        if self.rng.chance(30) && ty.is_float() && !is_storage(ty) {
            let zero = self.literal(ty);
            let positive = of(Node::Infix(">", boxed(read.clone()), boxed(zero)));
            let both = of(Node::Infix("&&", boxed(condition), boxed(positive)));
            return Some(Value { ty, node: Node::Select(boxed(both), boxed(read), boxed(other)) });
        }
        Some(Value { ty, node: Node::Select(boxed(condition), boxed(read), boxed(other)) })
    }

    /// The number of an axis within its domain, from 0.
    fn axis(&self, name: &str) -> Index {
        let axis = Index::Axis(name.to_owned());
        match self.offsets.get(name).copied().unwrap_or(0) {
            0 => axis,
            first if first < 0 => Index::Add(Box::new(axis), Box::new(Index::Literal(-first))),
            first => Index::Sub(Box::new(axis), Box::new(Index::Literal(first))),
        }
    }

    /// An index from 0 as one of a tensor's domain.
    fn shifted(&self, parameter: &Parameter, dimension: usize, index: Index) -> Index {
        match self.lower.get(&parameter.name).and_then(|l| l.get(dimension)).copied().unwrap_or(0) {
            0 => index,
            first if first < 0 => Index::Sub(Box::new(index), Box::new(Index::Literal(-first))),
            first => Index::Add(Box::new(index), Box::new(Index::Literal(first))),
        }
    }

    /// One tensor read at several offsets, each guarded in its own way.
    fn stencil(&mut self, ty: ElementType, axes: &[Axis]) -> Option<Value> {
        let shape = |p: &Parameter| p.shape.clone().unwrap_or_default();
        let fits = |p: &&Parameter| {
            p.ty == ty && !shape(p).is_empty() && shape(p).iter().all(|s| axes.iter().any(|(_, e)| e == s))
        };
        let usable: Vec<Parameter> = self.tensors.iter().filter(fits).cloned().collect();
        if usable.is_empty() {
            return None;
        }
        let parameter = self.rng.pick(&usable).clone();
        let at: Vec<Axis> =
            shape(&parameter).iter().filter_map(|s| axes.iter().find(|(_, e)| e == s).cloned()).collect();
        let moving = self.rng.below(at.len());
        let mut sum: Option<Value> = None;
        for _ in 0..self.rng.range(2, 4) {
            let by = self.rng.range(-2, 2);
            let mut indices = Vec::new();
            for (d, (axis, _)) in at.iter().enumerate() {
                let mut index = self.axis(axis);
                if d == moving && by != 0 {
                    index = Index::Add(Box::new(index), Box::new(Index::Literal(by)));
                }
                indices.push(self.shifted(&parameter, d, index));
            }
            let guard = if by == 0 { 2 } else { self.rng.below(3) };
            let or = (guard == 0 || guard == 2 && by != 0 && !self.rng.chance(self.careless))
                .then(|| boxed(self.literal(ty)));
            let mut term = Value { ty, node: Node::Read { tensor: parameter.name.clone(), indices, or } };
            if guard == 1 {
                let (axis, size) = at[moving].clone();
                let axis = self.axis(&axis);
                let condition = if by < 0 {
                    Node::CompareIndex(">=", axis, Index::Literal(-by))
                } else {
                    Node::CompareIndex("<", axis, Index::Sub(Box::new(size.index()), Box::new(Index::Literal(by))))
                };
                let condition = Value { ty: ElementType::Bool, node: condition };
                let other = self.literal(ty);
                term = Value { ty, node: Node::Select(boxed(condition), boxed(term), boxed(other)) };
            }
            let op = match ty {
                ElementType::Bool => "||",
                _ => "+",
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => Value { ty, node: Node::Infix(op, boxed(sum), boxed(term)) },
            });
        }
        sum
    }

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

    /// A value of a type over the axes in scope.
    pub(super) fn value(&mut self, ty: ElementType, axes: &[Axis], depth: u32) -> Value {
        if depth > 0
            && self.rng.chance(5)
            && let Some(value) = self.narrowed(ty, axes, depth - 1)
        {
            return value;
        }
        if depth > 0
            && !is_storage(ty)
            && self.rng.chance(4)
            && let Some(value) = self.stencil(ty, axes)
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
        } else if is_storage(ty) {
            // Stored and converted, and nothing else.
            match self.rng.below(4) {
                0 => {
                    let condition = self.condition(axes, depth);
                    let (yes, no) = (self.value(ty, axes, depth), self.value(ty, axes, depth));
                    Node::Select(boxed(condition), boxed(yes), boxed(no))
                }
                1 => return self.leaf(ty, axes),
                _ => {
                    let from = super::element(self.rng);
                    return self.cast(from, ty, axes, depth);
                }
            }
        } else {
            match self.rng.below(17) {
                0..7 => {
                    let ops: &[&str] = if ty.is_float() { &["+", "-", "*", "+", "*", "/"] } else { &["+", "-", "*"] };
                    let op = *self.rng.pick(ops);
                    Node::Infix(op, boxed(self.value(ty, axes, depth)), boxed(self.value(ty, axes, depth)))
                }
                7 if ty.is_integer() => {
                    let op = *self.rng.pick(&["/", "%"]);
                    let divisor = self.divisor(ty, axes);
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
                14..16 => {
                    let from = if self.rng.chance(50) { super::element(self.rng) } else { *self.rng.pick(&TYPES) };
                    let from = if from == ElementType::Bool && ty.is_float() { ElementType::I8 } else { from };
                    return self.cast(from, ty, axes, depth);
                }
                _ => return self.leaf(ty, axes),
            }
        };
        Value { ty, node }
    }

    /// A number that is not 0, for certain or nearly so.
    fn divisor(&mut self, ty: ElementType, axes: &[Axis]) -> Value {
        let of = |node| Value { ty, node };
        let literal = |v: i64| of(Node::Literal(format!("{v}{ty}")));
        match self.rng.below(8) {
            0 if !axes.is_empty() && ty.bytes() >= 4 => {
                let (axis, _) = self.rng.pick(axes).clone();
                let index = Index::Add(Box::new(self.axis(&axis)), Box::new(Index::Literal(self.rng.range(1, 3))));
                of(Node::FromIndex(index))
            }
            1 if !self.dims.is_empty() && ty.bytes() >= 4 => {
                of(Node::FromIndex(Index::Dim(self.rng.pick(&self.dims).clone())))
            }
            2 => {
                let value = self.leaf(ty, axes);
                of(Node::Call("max", vec![value, literal(1)]))
            }
            3 if ty.is_signed_integer() => of(Node::Prefix("-", boxed(literal(self.rng.range(1, 9))))),
            _ => literal(self.rng.range(1, 9)),
        }
    }

    fn cast(&mut self, from: ElementType, ty: ElementType, axes: &[Axis], depth: u32) -> Value {
        let value = self.value(from, axes, depth);
        if from == ty { value } else { Value { ty, node: Node::Cast(boxed(value)) } }
    }

    fn function(&mut self, ty: ElementType, axes: &[Axis], depth: u32) -> Node {
        let wide: &[&str] = &["sqrt", "rsqrt", "abs", "floor", "fma", "min_num", "max_num"];
        let accurate: &[&str] = &["exp", "log", "tanh", "erf", "sin", "cos"];
        let approximate: &[&str] = &[
            "approx::exp",
            "approx::log",
            "approx::sqrt",
            "approx::rsqrt",
            "approx::tanh",
            "approx::sin",
            "approx::cos",
        ];
        let names = match self.rng.below(10) {
            0..4 => wide,
            4..6 if ty != ElementType::F64 || self.rng.chance(3) => approximate,
            _ => accurate,
        };
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
            let axis = if self.rng.chance(50) { self.axis(&axis) } else { Index::Axis(axis) };
            let other = match (&extent.dim, self.rng.below(3)) {
                (Some(d), 0) => Index::Dim(d.clone()),
                (Some(d), 1) => Index::Sub(Box::new(Index::Dim(d.clone())), Box::new(Index::Literal(1))),
                _ => Index::Literal(self.rng.range(0, 6)),
            };
            Node::CompareIndex(op, self.shift(axis), other)
        } else {
            let ty = super::number(self.rng);
            let (mut left, right) = (self.value(ty, axes, depth), self.value(ty, axes, depth));
            // Not two literals: that is decided without looking at anything.
            if matches!((&left.node, &right.node), (Node::Literal(_), Node::Literal(_))) && !self.dims.is_empty() {
                left.node = Node::FromIndex(Index::Dim(self.rng.pick(&self.dims).clone()));
            }
            Node::Infix(op, boxed(left), boxed(right))
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
        // Without a suffix the place decides, if it can.
        let suffix = if self.rng.chance(15) { String::new() } else { ty.to_string() };
        let text = match ty {
            ElementType::Bool => (*self.rng.pick(&["true", "false"])).to_owned(),
            ty if ty.is_float() && !is_storage(ty) && self.rng.chance(2) => {
                (*self.rng.pick(&["inf", "nan"])).to_owned()
            }
            ty if ty.is_float() => format!("{:?}{suffix}", self.rng.range(0, 12) as f64 / 4.0),
            _ => format!("{}{suffix}", self.rng.range(0, 9)),
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
            indices.push(if from_memory { index } else { self.shifted(parameter, indices.len(), index) });
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
            return (self.axis(&axis), true, false);
        }
        // Two axes in one, and one axis as two.
        if let (Some(first), Some(second)) = (&size.dim, &size.times) {
            let of = |d: &String| axes.iter().find(|(_, e)| *e == Size::named(d)).map(|(a, _)| self.axis(a));
            if let (Some(outer), Some(inner)) = (of(first), of(second)) {
                let row = Index::Mul(Box::new(outer), Box::new(Index::Dim(second.clone())));
                return (Index::Add(Box::new(row), Box::new(inner)), true, false);
            }
        }
        if let Some(dim) = size.dim.as_ref().filter(|d| *size == Size::named(d)) {
            let both = axes.iter().find(|(_, e)| e.times.is_some() && e.div == 1 && e.add == 0 && e.mul == 1);
            if let Some((axis, extent)) = both {
                let axis = Box::new(self.axis(axis));
                if extent.times.as_ref() == Some(dim) && self.rng.chance(50) {
                    return (Index::Mod(axis, Box::new(Index::Dim(dim.clone()))), true, false);
                }
                if let Some(other) = extent.times.clone().filter(|_| extent.dim.as_ref() == Some(dim)) {
                    return (Index::Div(axis, Box::new(Index::Dim(other))), true, false);
                }
            }
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
        let axis = Box::new(self.axis(&name));
        let literal = |v| Box::new(Index::Literal(v));
        // Forms that are in bounds by arithmetic.
        if extent.add < size.add && extent == (Size { add: extent.add, ..size.clone() }) && self.rng.chance(80) {
            let by = self.rng.range(0, size.add - extent.add);
            return (Index::Add(axis, Box::new(Index::Literal(by))), true, false);
        }
        if extent.add == 0 && size.add == 0 && extent == (Size { mul: 2 * size.mul, ..size.clone() }) {
            return (Index::Div(axis, literal(2)), true, false);
        }
        if extent.div == 1 && size.div > 1 && *size == (Size { div: size.div, add: 0, ..extent.clone() }) {
            // The last ones may be past the end.
            return (Index::Div(axis, literal(size.div)), false, false);
        }
        if size.dim.is_none() && size.add >= 1 && self.rng.chance(50) {
            return (Index::Mod(axis, literal(size.add)), true, false);
        }
        if size == &extent && self.rng.chance(30) {
            let reversed = Index::Sub(Box::new(size.index()), axis);
            return (Index::Sub(Box::new(reversed), literal(1)), true, false);
        }
        let c = self.rng.range(1, 3);
        let index = match self.rng.below(6) {
            0 => Index::Mul(literal(2), axis),
            1 => Index::Div(axis, literal(c + 1)),
            2 => Index::Mod(axis, literal(c + 1)),
            3 => Index::Sub(axis, literal(c)),
            _ => Index::Add(axis, literal(c)),
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
