//! Random expressions of a given type.

use tilewright_kernel::ElementType;

use super::{Axis, Context, is_storage};
use crate::ast::{Index, Node, Parameter, Value};

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

pub(super) fn boxed(value: Value) -> Box<Value> {
    Box::new(value)
}

impl Context<'_> {
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
                    let op = *self.rng.pick(&["&&", "&&", "||", "||", "^"]);
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
                0..6 => {
                    let ops: &[&str] = if ty.is_float() { &["+", "-", "*", "+", "*", "/"] } else { &["+", "-", "*"] };
                    let op = *self.rng.pick(ops);
                    Node::Infix(op, boxed(self.value(ty, axes, depth)), boxed(self.value(ty, axes, depth)))
                }
                6 if ty.is_integer() => {
                    let op = *self.rng.pick(&["&", "|", "^", "<<", ">>"]);
                    let amount = op == "<<" || op == ">>";
                    // Amounts that are drawn like any number mostly shift everything out.
                    let right = if amount && self.rng.chance(70) {
                        Value { ty, node: Node::Literal(format!("{}{ty}", self.rng.range(0, 40))) }
                    } else {
                        self.value(ty, axes, depth)
                    };
                    Node::Infix(op, boxed(self.value(ty, axes, depth)), boxed(right))
                }
                7 if ty.is_integer() => {
                    let op = *self.rng.pick(&["/", "%"]);
                    let divisor = self.divisor(ty, axes);
                    Node::Infix(op, boxed(self.value(ty, axes, depth)), boxed(divisor))
                }
                6 => {
                    let value = self.value(ty, axes, depth);
                    let exponent = Value { ty, node: Node::Literal(self.rng.range(0, 7).to_string()) };
                    Node::Call("pow", vec![value, exponent])
                }
                8 if self.rng.chance(30) => Node::Call("clamp", (0..3).map(|_| self.value(ty, axes, depth)).collect()),
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
        let wide: &[&str] = &["sqrt", "rsqrt", "abs", "floor", "ceil", "trunc", "round", "fma", "min_num", "max_num"];
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
    pub(super) fn condition(&mut self, axes: &[Axis], depth: u32) -> Value {
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

    pub(super) fn leaf(&mut self, ty: ElementType, axes: &[Axis]) -> Value {
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
}
