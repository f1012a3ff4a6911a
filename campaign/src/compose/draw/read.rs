//! Reads: which tensor, and which element of it.

use super::{Axes, Draw, TYPES};
use crate::compose::ast::{Cond, Expr, Extent, Index, LETTERS, Type};

/// Types of inputs beside those of the kernel's own type.
const OTHERS: [Type; 16] = [
    Type::Bool,
    Type::Bool,
    Type::I8,
    Type::I8,
    Type::U8,
    Type::F16,
    Type::F16,
    Type::Bf16,
    Type::F32,
    Type::F64,
    Type::I16,
    Type::I64,
    Type::U32,
    Type::E4m3,
    Type::E5m2,
    Type::Tf32,
];

impl Draw<'_> {
    pub(super) fn need(&mut self, tensor: &str, dimension: usize, extent: Extent) {
        // All that one equation defines has the same shape.
        let name = tensor.split('_').next().unwrap_or(tensor);
        let known = self.needed.entry(name.to_owned()).or_default();
        while known.len() <= dimension {
            known.push(Extent::literal(1));
        }
        known[dimension] = known[dimension].join(extent);
    }

    /// The type of a tensor: the kernel's own, mostly.
    fn type_of(&mut self, tensor: &str) -> Type {
        if let Some(known) = self.types.get(tensor) {
            return *known;
        }
        let ty = if self.rng.chance(12) { *self.rng.pick(&OTHERS) } else { self.ty };
        self.types.insert(tensor.to_owned(), ty);
        ty
    }

    /// An input that fits some axes, mostly.
    pub(super) fn input(&mut self, axes: &Axes) -> &'static str {
        let names: &[&str] = match axes.len() {
            4.. => &["x4", "x4", "x3", "x", "v"],
            3 => &["x3", "x3", "x", "v"],
            _ => &["x", "x", "x", "w", "v", "c"],
        };
        let name = *self.rng.pick(names);
        let own: &[&'static str] = match name {
            "x4" => &LETTERS,
            "x3" => &LETTERS[..3],
            "v" => &["j"],
            "c" => &["i"],
            _ => &["i", "j"],
        };
        self.letters.entry(name.to_owned()).or_insert_with(|| own.to_vec());
        name
    }

    /// A scalar, by value or in memory, as a value of a type.
    pub(super) fn scalar(&mut self, ty: Type) -> Expr {
        let by_value = self.rng.chance(55);
        let name = if by_value { "a" } else { "o" };
        let own = self.type_of(name);
        let read = if by_value {
            if !self.scalars.contains(&name.to_owned()) {
                self.scalars.push(name.to_owned());
            }
            Expr::Scalar(name.to_owned())
        } else {
            self.needed.entry(name.to_owned()).or_default();
            Expr::Read(name.to_owned(), Vec::new(), None)
        };
        self.converted(read, own, ty)
    }

    /// A value of one type as a value of another one.
    fn converted(&mut self, value: Expr, own: Type, ty: Type) -> Expr {
        let boxed = Box::new(value);
        match own {
            _ if own == ty => *boxed,
            Type::Bool if ty.is_storage() || self.rng.chance(70) => {
                let (yes, no) = (self.literal(ty), self.literal(ty));
                Expr::If(Box::new(Cond::Flag(boxed)), Box::new(yes), Box::new(no))
            }
            _ => Expr::Cast(own, boxed),
        }
    }

    /// An element as a value of a type; a plain one is at the axes themselves, so that they correspond.
    pub(super) fn read(&mut self, tensor: &str, axes: &Axes, plain: bool, ty: Type) -> Expr {
        let own = self.type_of(tensor);
        let mut guards = Vec::new();
        let read = self.element(tensor, axes, plain, &mut guards);
        let read = self.converted(read, own, ty);
        let guard = guards.into_iter().reduce(|a, b| Cond::And(Box::new(a), Box::new(b)));
        let Some(guard) = guard else { return read };
        // The guard alone makes the read inside.
        let other = self.literal(ty);
        let boxed = |e: &Expr| Box::new(e.clone());
        // What is only stored cannot be compared.
        match if ty.is_storage() { 7 } else { self.rng.below(8) } {
            // What is on the right is asked only where the left one leaves it open.
            0 | 1 => {
                let test = Cond::Value(ty, boxed(&read), ">", 0);
                Expr::If(Box::new(Cond::And(Box::new(guard), Box::new(test))), boxed(&read), boxed(&other))
            }
            2 => {
                let test = Cond::Value(ty, boxed(&read), ">", 0);
                let outside = Cond::Not(Box::new(guard));
                let condition = Cond::Or(Box::new(outside), Box::new(test));
                let more = self.literal(ty);
                Expr::If(Box::new(condition), boxed(&other), boxed(&more))
            }
            3 => Expr::If(Box::new(Cond::Not(Box::new(guard))), boxed(&other), boxed(&read)),
            _ => Expr::If(Box::new(guard), boxed(&read), boxed(&other)),
        }
    }

    /// A small number of a type.
    pub(super) fn literal(&mut self, ty: Type) -> Expr {
        let least = if ty.is_signed() { -3 } else { 0 };
        Expr::Literal(self.rng.range(least, 3))
    }

    /// An index that is read from memory: of one tensor of indices, of one with two axes, or of one that another one
    /// points into.
    pub(super) fn gathered(&mut self, axes: &Axes, axis: &str, extent: Extent) -> Index {
        let tensor = |draw: &mut Self, name: &str, extents: &[Extent]| {
            extents.iter().enumerate().for_each(|(n, e)| draw.need(name, n, *e));
            if !draw.indices.contains(&name.to_owned()) {
                draw.indices.push(name.to_owned());
                let integers: Vec<Type> = TYPES.into_iter().filter(|ty| ty.is_integer()).collect();
                let ty = *draw.rng.pick(&integers);
                draw.types.insert(name.to_owned(), ty);
            }
        };
        let alone = |axis: &str| Index::Axis(axis.to_owned(), 1, 0);
        let found = match self.rng.below(6) {
            0 => {
                tensor(self, "q", &[extent]);
                tensor(self, "r", &[extent]);
                let least = if self.types.get("q").is_some_and(|t| t.is_signed()) { -1 } else { 0 };
                let or = self.rng.range(least, 1);
                Index::Gather("q".to_owned(), vec![Index::Gather("r".to_owned(), vec![alone(axis)], None)], Some(or))
            }
            1 if axes.len() > 1 => {
                let (a, b) = (axes[0].clone(), axes[1].clone());
                tensor(self, "p2", &[a.1, b.1]);
                Index::Gather("p2".to_owned(), vec![alone(&a.0), alone(&b.0)], None)
            }
            _ => {
                tensor(self, "p", &[extent]);
                let within = self.place_in_list(axis, extent);
                Index::Gather("p".to_owned(), vec![within], None)
            }
        };
        // Arithmetic on what is read.
        match self.rng.below(12) {
            0 | 1 => Index::Affine(Box::new(found), 1, *self.rng.pick(&[-1, 1, 2])),
            2 => Index::Affine(Box::new(found), *self.rng.pick(&[2, 3, -1, 4096]), self.rng.range(-1, 1)),
            3 => found.over(Extent::literal(self.rng.range(2, 4)), self.rng.chance(50)),
            4 => {
                let other = self.rng.pick(axes).0.clone();
                Index::Both(Box::new([found, Index::Axis(other, self.rng.range(1, 2), 0)]))
            }
            // With another element of the same input, or the same one.
            5 if matches!(&found, Index::Gather(name, ..) if name == "p") => {
                let other = Index::Gather("p".to_owned(), vec![self.place_in_list(axis, extent)], None);
                let plus = self.rng.range(-1, 1);
                Index::Both(Box::new([found, Index::Affine(Box::new(other), *self.rng.pick(&[-1, -1, 1]), plus)]))
            }
            _ => found,
        }
    }

    /// Which element of a list is read along an axis: one for each of its elements, mostly, or for a few.
    fn place_in_list(&mut self, axis: &str, extent: Extent) -> Index {
        let alone = Index::Axis(axis.to_owned(), 1, 0);
        match (self.rng.below(8), extent.as_size()) {
            (0..2, _) => alone.over(Extent::literal(self.rng.range(2, 4)), false),
            (2, Some(size)) => Index::Mirrored(axis.to_owned(), size),
            _ => alone,
        }
    }

    fn element(&mut self, tensor: &str, axes: &Axes, plain: bool, guards: &mut Vec<Cond>) -> Expr {
        let below = self.below.clone();
        let mut own = self.letters.get(tensor).cloned().unwrap_or_default();
        self.needed.entry(tensor.split('_').next().unwrap_or(tensor).to_owned()).or_default();
        let stored = !plain && below.is_empty() && self.indices.len() < 4 && self.rng.chance(5);
        let by = if self.rng.chance(60) { 0 } else { own.len().saturating_sub(1) };
        if !plain && self.rng.chance(3) {
            own.reverse();
        }
        let outside = stored || !plain && self.rng.chance(15);
        let guarded = !plain && !outside && self.rng.chance(7);
        let (mut indices, mut or) = (Vec::new(), outside);
        for (dimension, letter) in own.iter().enumerate() {
            let found = axes.iter().find(|a| a.0 == *letter).or_else(|| axes.get(dimension)).cloned();
            let Some((axis, extent)) = found.filter(|_| plain || !self.rng.chance(2)) else {
                let at = self.rng.range(0, 2);
                self.need(tensor, dimension, Extent::literal(at + 1));
                indices.push(Index::Literal(at));
                continue;
            };
            // Sometimes along another dimension as well, mostly from the same input.
            if stored && (dimension == by || self.rng.chance(20)) {
                indices.push(self.gathered(axes, &axis, extent));
                // Rows to point at.
                self.need(tensor, dimension, extent);
                continue;
            }
            if outside || guarded {
                // Anywhere: what is outside has a value, or is not asked for.
                let plus = *self.rng.pick(&[0, 0, -1, -2, 1, 2]);
                let factor = if !guarded && self.rng.chance(6) { 2 } else { 1 };
                self.need(tensor, dimension, extent);
                match plus {
                    _ if !guarded || plus == 0 => {}
                    1.. => {
                        let mut end = extent;
                        end.plus -= plus;
                        guards.push(Cond::Axis(axis.clone(), "<", end));
                    }
                    _ => guards.push(Cond::Axis(axis.clone(), ">=", Extent::literal(-plus))),
                }
                indices.push(Index::Axis(axis, factor, plus));
                continue;
            }
            let plus = if plain { 0 } else { *self.rng.pick(&[0, 0, 0, 1, 1, 1, 2, 3]) };
            let other = axes.iter().find(|a| a.0 != axis).cloned();
            let (index, reach) = match (self.rng.below(if plain { 1 } else { 40 }), other) {
                (0, _) if plain => (Index::Axis(axis, 1, 0), extent),
                (0 | 1, _) => (Index::Axis(axis, 2, plus), extent.reach(2, plus)),
                (2, _) => (Index::Axis(axis, 3, 0), extent.reach(3, 0)),
                (3, _) => (Index::Axis(axis, 1, 0).over(Extent::literal(2), false), extent),
                (4, _) => (Index::Axis(axis, 1, 0).over(Extent::literal(4), true), Extent::literal(4)),
                (5 | 6, _) if extent.as_size().is_some() => {
                    let size = extent.as_size().unwrap_or(0);
                    (Index::Mirrored(axis, size), extent)
                }
                (7, Some((second, more))) => {
                    let times = std::array::from_fn(|n| extent.times[n] + more.times[n]);
                    (Index::Pair(axis, second), Extent { times, plus: extent.plus + more.plus })
                }
                (8, _) => {
                    let by = Extent::literal(self.rng.range(2, 3));
                    (Index::Axis(axis, 1, plus).over(by, false), extent.reach(1, plus))
                }
                (9, _) if self.sizes[super::letter(letter)].as_size().is_some() => {
                    let by = self.sizes[super::letter(letter)];
                    self.least[super::letter(letter)] = 1;
                    let rest = self.rng.chance(50);
                    (Index::Axis(axis, 1, plus).over(by, rest), if rest { by } else { extent.reach(1, plus) })
                }
                (11, Some((second, more))) => {
                    let factor = self.rng.range(1, 3);
                    let parts = [Index::Axis(axis, factor, 0), Index::Axis(second, 1, plus)];
                    let (a, b) = (extent.reach(factor, 0), more.reach(1, plus));
                    let times = std::array::from_fn(|n| a.times[n] + b.times[n]);
                    (Index::Both(Box::new(parts)), Extent { times, plus: a.plus + b.plus })
                }
                (12, _) => {
                    let by = Extent::literal(self.rng.range(2, 4));
                    let over = |rest| Index::Axis(axis.clone(), 1, 0).over(by, rest);
                    (Index::Both(Box::new([over(false), over(true)])), extent.reach(1, by.plus))
                }
                (10, _) => {
                    let half = Index::Axis(axis, 1, 0).over(Extent::literal(2), false);
                    (Index::Affine(Box::new(half), 2, 1), extent.reach(1, 1))
                }
                _ => (Index::Axis(axis, 1, plus), extent.reach(1, plus)),
            };
            self.need(tensor, dimension, reach);
            indices.push(index);
        }
        or |= indices.iter().any(|i| i.mentions(&below) || i.has(&|i| matches!(i, Index::Gather(..))));
        let or = or.then(|| Box::new(self.outside(tensor, axes)));
        Expr::Read(tensor.to_owned(), indices, or)
    }

    /// What is outside of a tensor.
    fn outside(&mut self, tensor: &str, axes: &Axes) -> Expr {
        let ty = self.type_of(tensor);
        match self.rng.below(20) {
            0 if !ty.is_storage() && ty != Type::Bool => self.scalar(ty),
            1 if !ty.is_storage() && ty != Type::Bool && !axes.is_empty() => Expr::Axis(self.rng.pick(axes).0.clone()),
            2 | 3 if !ty.is_storage() && ty != Type::Bool => {
                let other = self.input(axes);
                self.read(other, axes, true, ty)
            }
            _ => {
                let least = if ty.is_signed() { -2 } else { 0 };
                Expr::Literal(self.rng.range(least, 2))
            }
        }
    }
}
