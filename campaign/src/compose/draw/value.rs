//! Values: what terms are, and how they are combined.

use super::{Axes, Draw, Planned};
use crate::compose::ast::{Cond, Equation, Expr, Extent, HALVES, Index, LETTERS, Type};

/// What a tensor that the equation updates in place has at the equation's own element, as a type.
fn own(equation: &Equation, (target, of): (&str, Type), ty: Type) -> Expr {
    let indices = equation.axes.iter().map(|a| Index::Axis(a.0.clone(), 1, 0)).collect();
    let read = Expr::Read(target.to_owned(), indices, None);
    if of == ty { read } else { Expr::Cast(of, Box::new(read)) }
}

impl Draw<'_> {
    /// The right-hand side of an equation.
    pub(super) fn whole(&mut self, p: &Planned, equation: &Equation, reads: &[String], common: bool) -> Expr {
        let (axes, ty) = (equation.axes.clone(), p.of_terms(self.ty));
        let mut around = axes.clone();
        around.extend(p.reduces.iter().map(|a| ((*a).to_owned(), self.sizes[super::letter(a)])));
        let mut terms: Vec<Expr> = Vec::new();
        // What is updated is read inside of a reduction, or beside it.
        let inside = p.in_place && (p.reduces.is_empty() || self.rng.chance(40));
        if inside {
            terms.push(self.updated(equation, ty));
        }
        let ranges = self.ranges(&axes, &p.reduces, &mut around);
        let value = self.value(&around, terms, reads, common, ty);
        let mut value = match p.reduces.is_empty() {
            true if p.ty == Type::Bool => Expr::Test(Box::new(self.condition(&around, &value, ty))),
            true => self.beside_reductions(&axes, value, ty),
            false => self.reduced(p, &axes, &around, ranges, value),
        };
        self.below.clear();
        if p.in_place && !inside {
            let own = self.updated(equation, p.ty);
            value = Expr::Binary("+", Box::new(value), Box::new(own));
        }
        value
    }

    /// What one of the tensors that the equation updates in place has at the equation's own element.
    fn updated(&mut self, equation: &Equation, ty: Type) -> Expr {
        own(equation, *self.rng.pick(&equation.targets()), ty)
    }

    /// The values of all tensors that the equation defines, of which it has the first one. What the others read, the
    /// first one may read as well.
    pub(super) fn tuple(&mut self, p: &Planned, equation: &Equation, reads: &[String]) -> Expr {
        let mut parts = vec![equation.value.clone()];
        for ty in &p.beside {
            let mut terms = Vec::new();
            if p.in_place && self.rng.chance(70) {
                terms.push(self.updated(equation, *ty));
            }
            // What both have is computed once.
            if *ty == p.ty && self.rng.chance(40) {
                terms.push(equation.value.clone());
            }
            let reads = if self.rng.chance(50) { reads } else { &[] };
            let value = self.value(&equation.axes, terms, reads, false, *ty);
            parts.push(self.beside_reductions(&equation.axes, value, *ty));
            self.below.clear();
        }
        Expr::Tuple(parts)
    }

    /// Terms, combined: those given, reads of tensors, inputs, and what else there is.
    fn value(&mut self, around: &Axes, mut terms: Vec<Expr>, reads: &[String], common: bool, ty: Type) -> Expr {
        for tensor in reads {
            for n in 0..*self.rng.pick(&[1, 1, 2, 2, 3]) {
                let plain = n == 0 && self.rng.chance(65);
                terms.push(self.read(tensor, around, plain, ty));
            }
        }
        if common {
            let rank = around.len().clamp(2, LETTERS.len());
            let (tensor, own) = (["x", "x3", "x4"][rank - 2], &LETTERS[..rank]);
            self.letters.entry(tensor.to_owned()).or_insert_with(|| own.to_vec());
            terms.push(self.read(tensor, around, true, ty));
        }
        let nothing = terms.is_empty() && self.rng.chance(4);
        let others = match terms.is_empty() {
            _ if nothing => 0,
            true => *self.rng.pick(&[1, 1, 2, 3]),
            false => *self.rng.pick(&[0, 0, 1, 1, 2]),
        };
        for _ in 0..others {
            let tensor = self.input(around);
            let plain = self.rng.chance(25);
            terms.push(self.read(tensor, around, plain, ty));
        }
        if nothing || self.rng.chance(8) {
            terms.push(self.literal(ty));
        }
        if (nothing || self.rng.chance(6)) && !around.is_empty() {
            let axis = self.rng.pick(around).0.clone();
            terms.push(Expr::Axis(axis));
        }
        if self.rng.chance(2)
            && let Some(size) = around.iter().find_map(|a| a.1.as_size())
        {
            terms.push(Expr::Size(size));
        }
        if self.rng.chance(6) {
            terms.push(self.scalar(ty));
        }
        for term in &mut terms {
            *term = self.unary(term.clone(), ty);
        }
        let mut value = terms.pop().unwrap_or(Expr::Literal(1));
        while let Some(next) = terms.pop() {
            let (a, b) = if self.rng.chance(50) { (value, next) } else { (next, value) };
            value = self.pair(around, a, b, ty);
        }
        value
    }

    /// A term, or what an operation makes of it.
    fn unary(&mut self, term: Expr, ty: Type) -> Expr {
        let boxed = Box::new(term);
        match self.rng.below(60) {
            0 if ty.is_signed() => Expr::Unary("-", boxed),
            1 if ty.is_signed() => Expr::Unary("abs", boxed),
            0 | 1 if ty.is_integer() => Expr::Binary("/", boxed, Box::new(Expr::Literal(self.rng.range(2, 5)))),
            2 | 3 if !ty.is_integer() => Expr::Unary(self.rng.pick(&HALVES).0, boxed),
            // Some amounts are those at which everything is shifted out.
            5 if ty.is_integer() => {
                let by = if self.rng.chance(50) { self.rng.range(0, 3) } else { self.rng.range(4, 70) };
                let op = *self.rng.pick(&["<<", ">>"]);
                Expr::Binary(op, boxed, Box::new(Expr::Literal(by)))
            }
            2 | 3 => {
                let op = *self.rng.pick(&["/", "%"]);
                let least = if ty.is_signed() { -3 } else { 1 };
                let by = self.rng.range(least, 5);
                Expr::Binary(op, boxed, Box::new(Expr::Literal(if by == 0 { 7 } else { by })))
            }
            // There and back: to what wraps or saturates, or to what is wider.
            4 => {
                let by = *self.rng.pick(&[Type::I8, Type::U8, Type::I16, Type::F64, Type::I64, Type::F32, Type::U32]);
                if by == ty { *boxed } else { Expr::Cast(by, Box::new(Expr::Cast(ty, boxed))) }
            }
            _ => *boxed,
        }
    }

    /// Two values, combined.
    fn pair(&mut self, around: &Axes, a: Expr, b: Expr, ty: Type) -> Expr {
        let op = *self.rng.pick(&["+", "+", "+", "-", "-", "max", "min", "*"]);
        let (a, b) = (Box::new(a), Box::new(b));
        match self.rng.below(16) {
            0 | 1 if !around.is_empty() => {
                let condition = self.condition(around, &a, ty);
                Expr::If(Box::new(condition), a, b)
            }
            2 if !ty.is_integer() => {
                let by = if self.rng.chance(30) { a.clone() } else { Box::new(self.literal(ty)) };
                Expr::Fma(Box::new([*a, *by, *b]))
            }
            3 if ty.is_integer() => {
                let op = *self.rng.pick(&["&", "|", "^", "<<", ">>"]);
                Expr::Binary(op, a, b)
            }
            3 if matches!(op, "max" | "min") => Expr::Binary(if op == "max" { "max_num" } else { "min_num" }, a, b),
            _ => Expr::Binary(op, a, b),
        }
    }

    /// A condition on an axis, or on a value.
    fn condition(&mut self, around: &Axes, value: &Expr, ty: Type) -> Cond {
        if self.rng.chance(20) {
            let (a, b) = (self.simple(around, value, ty), self.simple(around, value, ty));
            let (a, b) = (Box::new(a), Box::new(b));
            return if self.rng.chance(50) { Cond::And(a, b) } else { Cond::Or(a, b) };
        }
        let one = self.simple(around, value, ty);
        if self.rng.chance(10) { Cond::Not(Box::new(one)) } else { one }
    }

    fn simple(&mut self, around: &Axes, value: &Expr, ty: Type) -> Cond {
        if self.rng.chance(50) {
            let (axis, extent) = self.rng.pick(around).clone();
            if self.rng.chance(20) {
                return self.of_indices(around, axis, extent);
            }
            let op = *self.rng.pick(&["<", "<", "<", ">=", "==", "!="]);
            let end = match self.rng.below(5) {
                0 => Extent { plus: extent.plus - self.rng.range(1, 2), ..extent },
                _ => Extent::literal(self.rng.range(1, 6)),
            };
            return Cond::Axis(axis, op, end);
        }
        let least = if ty.is_signed() { -2 } else { 0 };
        let op = *self.rng.pick(&[">", ">", ">", "<", "==", "!=", "<=", ">="]);
        Cond::Value(ty, Box::new(value.clone()), op, self.rng.range(least, 2))
    }

    /// A condition on indices: two axes, their sum, or a part of one.
    fn of_indices(&mut self, around: &Axes, axis: String, extent: Extent) -> Cond {
        let op = *self.rng.pick(&["<", "<=", ">", ">=", "==", "!="]);
        let alone = |axis: String| Index::Axis(axis, 1, 0);
        let other = around.iter().find(|a| a.0 != axis).cloned();
        match (self.rng.below(3), other) {
            (0, Some((other, _))) => Cond::Indices(alone(axis), op, Index::Axis(other, 1, self.rng.range(-1, 2))),
            (1, Some((other, _))) => Cond::Indices(Index::Pair(axis, other), op, Index::Extent(extent)),
            _ => {
                let by = self.rng.range(2, 4);
                let part = alone(axis).over(Extent::literal(by), self.rng.chance(70));
                Cond::Indices(part, op, Index::Literal(self.rng.range(0, by - 1)))
            }
        }
    }
}
