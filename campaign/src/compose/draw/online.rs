//! Sums that follow an extreme: `m[i] = max(|j| u)` and `o[i] = online sum(|j| exp(κ·(u - m[i])) * y)`.
//!
//! With κ = 1000 and integers the exponential is 1 or nothing, so that such sums are as exact as others: they add up
//! `y` where `u` is the extreme. A correction that is left out, or made twice, leaves terms of an earlier extreme.

use super::Draw;
use crate::compose::ast::{Equation, Expr, Index, Kernel, Reduce, Reduction, Type};

/// Names of sums that follow an extreme.
pub const SUMS: [&str; 2] = ["o", "g"];

/// An element of a tensor at these axes.
fn at(name: &str, axes: &[(String, crate::compose::ast::Extent)]) -> Expr {
    let index = |(axis, _): &(String, _)| Index::Axis(axis.clone(), 1, 0);
    Expr::Read(name.to_owned(), axes.iter().map(index).collect(), None)
}

fn binary(op: &'static str, a: Expr, b: Expr) -> Expr {
    Expr::Binary(op, Box::new(a), Box::new(b))
}

/// The term of a sum that follows an extreme, without what it is multiplied with.
fn exponential(r: &Reduce, extreme: Expr) -> Expr {
    let [a, b] = if r.by == Reduction::Min { [extreme, r.term.clone()] } else { [r.term.clone(), extreme] };
    Expr::Unary("exp", Box::new(binary("-", a, b)))
}

impl Draw<'_> {
    /// Makes one reduction an extreme, and adds sums that follow it; what read the reduction reads both.
    pub(super) fn online(&mut self, equations: &mut Vec<Equation>) {
        let is_one = |e: &Equation| match &e.value {
            Expr::Reduce(r) => {
                let float = |ty: Type| matches!(ty, Type::F32 | Type::F64);
                let plain = matches!(r.by, Reduction::Sum | Reduction::Max | Reduction::Min | Reduction::Prod);
                plain && r.axes.len() == 1 && float(e.ty) && e.ty == r.of && !e.in_place
            }
            _ => false,
        };
        let Some(found) = equations.iter().position(is_one) else { return };
        let own = equations[found].clone();
        let Expr::Reduce(mut extreme) = own.value.clone() else { return };
        extreme.by = if self.rng.chance(65) { Reduction::Max } else { Reduction::Min };
        let name = if own.output { "m" } else { own.name.as_str() };
        let mut around = own.axes.clone();
        around.extend(extreme.axes.iter().cloned());
        let read = at(name, &own.axes);
        let mut sums = Vec::new();
        for sum in &SUMS[..if self.rng.chance(25) { 2 } else { 1 }] {
            let mut term = exponential(&extreme, read.clone());
            // Where a range begins and ends, the weight may have no element.
            if extreme.ranges.iter().all(Option::is_none) && self.rng.chance(50) {
                self.below.clear();
                let (tensor, plain) = (self.input(&around), self.rng.chance(50));
                let weight = self.read(tensor, &around, plain, own.ty);
                term = if self.rng.chance(50) { binary("*", term, weight) } else { binary("*", weight, term) };
            }
            let value = Reduce { by: Reduction::OnlineSum, term, ..extreme.as_ref().clone() };
            let value = Expr::Reduce(Box::new(value));
            sums.push(Equation::new(sum, own.ty, own.axes.clone(), value, false));
        }
        // What read the reduction, at the same places.
        let both = |extreme: Expr, indices: &[Index], or: &Option<Box<Expr>>| {
            let of = |sum: &Equation| Expr::Read(sum.name.clone(), indices.to_vec(), or.clone());
            sums.iter().fold(extreme, |value, sum| binary("+", value, of(sum)))
        };
        if own.output {
            let plain: Vec<Index> = own.axes.iter().map(|a| Index::Axis(a.0.clone(), 1, 0)).collect();
            equations[found].value = both(read, &plain, &None);
        } else {
            for reader in &mut equations[..found] {
                let mut is_first = true;
                reader.value.walk_mut(&mut |e| {
                    let Expr::Read(tensor, indices, or) = &*e else { return };
                    if *tensor == own.name && std::mem::take(&mut is_first) {
                        *e = both(e.clone(), indices, or);
                    }
                });
            }
            equations.remove(found);
        }
        let at = if own.output { found + 1 } else { found };
        let made = Equation { name: name.to_owned(), value: Expr::Reduce(extreme), output: false, ..own };
        equations.splice(at..at, sums.into_iter().chain([made]));
    }
}

/// The sums of a kernel that follow an extreme.
pub fn sums<'a>(kernel: &'a Kernel, extreme: &str) -> Vec<&'a str> {
    let follows = |e: &&Equation| match &e.value {
        Expr::Reduce(r) => r.by == Reduction::OnlineSum && e.value.tensors().contains(&extreme),
        _ => false,
    };
    kernel.equations.iter().filter(follows).map(|e| e.name.as_str()).collect()
}

/// Whether an equation is a sum that follows an extreme.
pub fn is_sum(equation: &Equation) -> bool {
    matches!(&equation.value, Expr::Reduce(r) if r.by == Reduction::OnlineSum)
}
