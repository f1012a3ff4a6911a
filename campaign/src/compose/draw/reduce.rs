//! Reductions: their ranges, their kinds, and what stands beside them.

use super::{Axes, Draw, Planned};
use crate::compose::ast::{End, Ends, Expr, Extent, Index, Kernel, LETTERS, Reduce, Reduction, Type};
use crate::rng::Rng;

const KINDS: [Reduction; 15] = [
    Reduction::UnorderedSum,
    Reduction::Sum,
    Reduction::Sum,
    Reduction::Sum,
    Reduction::Sum,
    Reduction::Max,
    Reduction::Min,
    Reduction::Argmax,
    Reduction::Argmin,
    Reduction::Fold,
    Reduction::Last,
    Reduction::OrderedSum,
    Reduction::Any,
    Reduction::All,
    Reduction::Prod,
];

impl Draw<'_> {
    /// Ranges that are not whole axes; the extents of the reduction's axes are then what they reach. What a range
    /// follows may be an axis around, or the reduction's own in front.
    pub(super) fn ranges(&mut self, axes: &Axes, reduces: &[&str], around: &mut Axes) -> Vec<Option<Ends>> {
        let mut ranges = Vec::new();
        for n in axes.len()..axes.len() + reduces.len() {
            let (outside, name) =
                (if n == axes.len() { axes.clone() } else { around[..n].to_vec() }, around[n].0.clone());
            let drawn = self.rng.chance(if n == axes.len() { 15 } else { 30 });
            let mut range = drawn.then(|| self.range(&outside, &name, around[n].1));
            if !outside.is_empty() && self.rng.chance(if drawn { 25 } else { 6 }) {
                let whole = around[n].1;
                let of_memory = range.get_or_insert(((End::known(Extent::literal(0)), End::known(whole)), whole));
                self.of_memory(&outside, &mut of_memory.0);
            }
            ranges.push(range.map(|(range, reach)| {
                around[n].1 = reach;
                range
            }));
        }
        ranges
    }

    /// A range of an axis that has an extent otherwise, and the extent that it reaches.
    fn range(&mut self, outside: &Axes, name: &str, whole: Extent) -> (Ends, Extent) {
        let number = End::known;
        let literal = |n: i64| number(Extent::literal(n));
        if outside.is_empty() || self.rng.chance(15) {
            let first = *self.rng.pick(&[1, 1, 2, -1, -2]);
            if first < 0 {
                self.below.push(name.to_owned());
            }
            return ((literal(first), number(whole)), whole);
        }
        // The last one is the reduction's own before this one, if there is one.
        let (outer, extent) =
            outside.last().filter(|_| self.rng.chance(30)).cloned().unwrap_or_else(|| self.rng.pick(outside).clone());
        if self.below.contains(&outer) {
            self.below.push(name.to_owned());
        }
        let times = |times: i64, plus: Extent| End { axis: Some((outer.clone(), times)), ..End::known(plus) };
        let at = |plus: i64| times(1, Extent::literal(plus));
        let wide = self.rng.range(1, 3);
        match self.rng.below(13) {
            0..3 => ((literal(0), at(1)), extent),
            3 => ((literal(0), at(0)), extent),
            4 => ((at(0), number(whole)), whole),
            5 => ((at(1), number(whole)), whole),
            6 => ((at(0), at(wide)), extent.reach(1, wide - 1)),
            7 => ((at(1), at(1 + wide)), extent.reach(1, wide)),
            8 => ((literal(0), times(2, Extent::literal(1))), extent.reach(2, -1)),
            9 => ((at(0), times(2, Extent::literal(1))), extent.reach(2, -1)),
            10 => ((literal(0), times(-1, whole)), whole),
            11 => ((literal(self.rng.range(1, 2)), at(1)), extent),
            _ => {
                self.below.push(name.to_owned());
                ((at(-wide), at(1)), extent)
            }
        }
    }

    /// Memory says where a range begins, or ends, or both.
    fn of_memory(&mut self, outside: &Axes, (from, to): &mut Ends) {
        let ends = self.rng.below(3);
        for (end, is_drawn) in [(from, ends != 1), (to, ends > 0)] {
            // Arrays of indices have an element for each index of an axis from 0 on.
            let whole = |a: &&(String, Extent)| !self.below.contains(&a.0);
            let all: Vec<(String, Extent)> = outside.iter().filter(whole).cloned().collect();
            if is_drawn && !all.is_empty() {
                let (axis, extent) = self.rng.pick(&all).clone();
                end.memory = Some(self.gathered(&all, &axis, extent));
            }
        }
    }

    /// What an equation reduces, and what stands beside it.
    pub(super) fn reduced(
        &mut self,
        p: &Planned,
        axes: &Axes,
        around: &Axes,
        ranges: Vec<Option<Ends>>,
        term: Expr,
    ) -> Expr {
        let inner = around[axes.len()..].to_vec();
        let ty = p.of_terms(self.ty);
        let term = self.beside_reductions(around, term, ty);
        let one = |by, of, term, second| {
            let axes = inner.clone();
            Expr::Reduce(Box::new(Reduce { by, axes, ranges: ranges.clone(), inferred: false, of, term, second }))
        };
        if let Some(states) = p.states {
            let second = states.has_second().then(|| {
                let tensor = self.input(around);
                if self.rng.chance(40) { Expr::Axis(inner[0].0.clone()) } else { self.read(tensor, around, true, ty) }
            });
            return one(Reduction::States(states), ty, term, second);
        }
        if p.ty == Type::Bool {
            return one(if self.rng.chance(50) { Reduction::Any } else { Reduction::All }, ty, term, None);
        }
        if self.rng.chance(9)
            && let Some(of) = self.narrow(ty)
        {
            // Products of what is narrower. What was drawn is one operand, if it is of that type.
            let other = self.operand(around, of);
            let a = if of == ty && matches!(term, Expr::Read(..)) { term } else { self.operand(around, of) };
            let product = Expr::Binary("*", Box::new(a), Box::new(other));
            return one(Reduction::Dot, of, product, None);
        }
        let mut by = *self.rng.pick(&KINDS);
        let of_memory = ranges.iter().flatten().any(|(from, to)| from.memory.is_some() || to.memory.is_some());
        if matches!(by, Reduction::Argmax | Reduction::Argmin)
            && (inner.len() > 1 || !self.below.is_empty() || of_memory)
        {
            by = Reduction::Max;
        }
        self.demand_terms(by, inner[0].1);
        let reduced = one(by, ty, term, None);
        // A value beside what is reduced, of the axes outside.
        if matches!(by, Reduction::Fold | Reduction::Last) || !self.rng.chance(25) {
            return reduced;
        }
        let beside = if self.rng.chance(15) && !axes.is_empty() {
            self.another(around, &inner, Vec::new(), ty)
        } else {
            let tensor = self.input(axes);
            self.read(tensor, axes, false, ty)
        };
        Expr::Binary("+", Box::new(reduced), Box::new(beside))
    }

    /// A second reduction over the same axes, in ranges of its own if some are given.
    fn another(&mut self, around: &Axes, inner: &Axes, ranges: Vec<Option<Ends>>, ty: Type) -> Expr {
        let tensor = self.input(around);
        let term = self.read(tensor, around, false, ty);
        let by = *self.rng.pick(&[Reduction::Sum, Reduction::Max, Reduction::Min, Reduction::Any]);
        let axes = inner.clone();
        Expr::Reduce(Box::new(Reduce { by, axes, ranges, inferred: false, of: ty, term, second: None }))
    }

    /// An equation that reduces nothing as a whole may still have a reduction in it, and a term another one, whose
    /// range may follow what is around.
    pub(super) fn beside_reductions(&mut self, axes: &Axes, value: Expr, ty: Type) -> Expr {
        let free = LETTERS.into_iter().find(|a| !axes.iter().any(|b| b.0 == *a));
        let Some(axis) = free.filter(|_| !axes.is_empty() && self.rng.chance(5)) else { return value };
        let mut around = axes.clone();
        around.push((axis.to_owned(), self.sizes[super::letter(axis)]));
        let ranges = self.ranges(axes, &[axis], &mut around);
        let inner = around[axes.len()..].to_vec();
        let more = self.another(&around, &inner, ranges, ty);
        Expr::Binary("+", Box::new(value), Box::new(more))
    }

    /// A type of operands whose products accumulate in this one.
    fn narrow(&mut self, ty: Type) -> Option<Type> {
        let all = [
            Type::F64,
            Type::F32,
            Type::F16,
            Type::Bf16,
            Type::Tf32,
            Type::E4m3,
            Type::E5m2,
            Type::I8,
            Type::U8,
            Type::I16,
            Type::U16,
            Type::I32,
        ];
        let fit: Vec<Type> = all.into_iter().filter(|t| t.accumulator() == Some(ty)).collect();
        (!fit.is_empty()).then(|| *self.rng.pick(&fit))
    }

    /// An element of an input that has this type, unless it has another one already.
    fn operand(&mut self, around: &Axes, of: Type) -> Expr {
        let name = *self.rng.pick(&["d", "e"]);
        let last = around.len().saturating_sub(1);
        let letters: Vec<&'static str> = (LETTERS.into_iter())
            .filter(|l| around.iter().enumerate().any(|(n, a)| a.0 == *l && (n == last || name == "d" || n > 0)))
            .collect();
        self.letters.entry(name.to_owned()).or_insert(letters);
        self.types.entry(name.to_owned()).or_insert(of);
        let plain = self.rng.chance(60);
        self.read(name, around, plain, of)
    }
}

/// Leaves ranges out where the shapes say the same.
pub(super) fn infer(kernel: &mut Kernel, rng: &mut Rng) {
    let shapes: Vec<(String, Vec<Extent>)> = (kernel.inputs.iter())
        .map(|i| (i.name.clone(), i.shape.clone()))
        .chain(kernel.equations.iter().flat_map(|e| {
            // What does not begin at 0 has another range than any that is drawn.
            let of = |n: usize| if e.first(n) == 0 { e.axes[n].1 } else { Extent::literal(-1) };
            let shape: Vec<Extent> = (0..e.axes.len()).map(of).collect();
            e.targets().into_iter().map(|t| (t.0.to_owned(), shape.clone())).collect::<Vec<_>>()
        }))
        .collect();
    for equation in &mut kernel.equations {
        equation.value.walk_mut(&mut |e| {
            let Expr::Reduce(r) = e else { return };
            let follows = r.axes.iter().all(|(axis, extent)| {
                let mut found = Vec::new();
                for term in std::iter::once(&r.term).chain(&r.second) {
                    term.walk(&mut |e| {
                        let Expr::Read(tensor, indices, _) = e else { return };
                        bare(tensor, indices, axis, &shapes, &mut found);
                    });
                }
                !found.is_empty() && found.iter().all(|f| f == extent)
            });
            r.inferred = r.ranges.iter().all(Option::is_none) && follows && rng.chance(40);
        });
    }
}

/// Extents of the dimensions that an axis indexes by itself.
fn bare(tensor: &str, indices: &[Index], axis: &str, shapes: &[(String, Vec<Extent>)], found: &mut Vec<Extent>) {
    let shape = shapes.iter().find(|s| s.0 == tensor).map(|s| s.1.as_slice()).unwrap_or_default();
    for (n, index) in indices.iter().enumerate() {
        match index {
            Index::Axis(a, 1, 0) if a == axis => found.extend(shape.get(n)),
            other => open(other, axis, shapes, found),
        }
    }
}

/// The same inside an index.
fn open(index: &Index, axis: &str, shapes: &[(String, Vec<Extent>)], found: &mut Vec<Extent>) {
    match index {
        Index::Gather(tensor, indices, _) => bare(tensor, indices, axis, shapes, found),
        other => other.parts().iter().for_each(|part| open(part, axis, shapes, found)),
    }
}
