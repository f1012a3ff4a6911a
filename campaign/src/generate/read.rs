//! Random reads of tensors, with indices that are in bounds, guarded, or now and then neither.

use tilewright_kernel::ElementType;

use super::value::boxed;
use super::{Axis, Context, is_storage};
use crate::ast::{Index, Node, Parameter, Size, Value};

impl Context<'_> {
    /// A neighbour, read where an affine condition says that it is inside: `if i < N - 1 { x[i + 1] } else { … }`.
    pub(super) fn narrowed(&mut self, ty: ElementType, axes: &[Axis], depth: u32) -> Option<Value> {
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
    pub(super) fn axis(&self, name: &str) -> Index {
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
    pub(super) fn stencil(&mut self, ty: ElementType, axes: &[Axis]) -> Option<Value> {
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

    pub(super) fn operand(&mut self, parameter: &Parameter, axes: &[Axis]) -> Value {
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
        // The nearest element, as at an edge that is repeated.
        if size == &extent && self.rng.chance(25) {
            let beyond = Index::Sub(Box::new(size.index()), literal(1));
            return match self.rng.chance(50) {
                true => (Index::Max(Box::new(Index::Sub(axis, literal(c))), literal(0)), true, false),
                false => (Index::Min(Box::new(Index::Add(axis, literal(c))), Box::new(beyond)), true, false),
            };
        }
        let index = match self.rng.below(8) {
            6 => Index::Min(axis, literal(c)),
            7 => Index::Max(literal(c), axis),
            0 => Index::Mul(literal(2), axis),
            1 => Index::Div(axis, literal(c + 1)),
            2 => Index::Mod(axis, literal(c + 1)),
            3 => Index::Sub(axis, literal(c)),
            _ => Index::Add(axis, literal(c)),
        };
        (index, false, false)
    }
}
