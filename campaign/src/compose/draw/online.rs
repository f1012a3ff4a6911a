//! What follows an extreme or a mean in one pass: `m[i] = max(|j| u)` and one of these,
//!
//! ```text
//! online sum(|j| exp(κ·(u - m[i])) * y)           sums of exponentials
//! sum(|j| if u == m[i] { y } else { 0 })          what is taken where the extreme is, and products
//! argmax(|j| u)                                   its place
//! online sum(|j| (u - m[i]) * (u - m[i]))         squares, with m[i] = sum(|j| u) / n
//! online sum(|j| w * ((u - m[i]) * (u - m[i])))   the same, with m[i] = sum(|j| w * u) / g[i], g[i] = sum(|j| w)
//! ```
//!
//! With κ = 1000 and integers the exponential is 1 or nothing, so that such sums are as exact as others: they add up
//! `y` where `u` is the extreme. A correction that is left out, or made twice, leaves terms of an earlier extreme.
//! Squares about the mean of n integers are a multiple of 1/n: readers take n times that, which they round. Where it is
//! large it could be off by more than a half, and they take 50. With weights, n is their sum.

use super::Draw;
use crate::compose::ast::{Cond, Equation, Expr, Index, Kernel, Reduce, Reduction, Type};

/// Names of what follows.
pub const SUMS: [&str; 2] = ["o", "g"];

/// Most that readers take of squares.
const MOST_SQUARES: i64 = 50;

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

/// The number of terms of a reduction over a whole axis as a value; none of a number with no name.
fn count(r: &Reduce) -> Option<Expr> {
    let extent = r.axes.first()?.1;
    let is_whole = r.ranges.iter().all(Option::is_none);
    let literal = (extent.times == [0; 3]).then_some(Expr::Literal(extent.plus));
    extent.as_size().map(Expr::Size).or(literal).filter(|_| is_whole)
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
        let name = if own.output { "m" } else { own.name.as_str() };
        let mut around = own.axes.clone();
        around.extend(extreme.axes.iter().cloned());
        let read = at(name, &own.axes);
        let squares = count(&extreme).filter(|_| self.rng.chance(25));
        // The sum of the weights comes first of all.
        let (mut sums, mut weights) = (Vec::new(), None);
        // What readers take of them: as values of a type, times something, at most something.
        let mut taken: Vec<Taken> = Vec::new();
        let first = match squares {
            Some(count) => {
                extreme.by = Reduction::Sum;
                // Integers of few bits.
                extreme.term = binary("min", binary("max", extreme.term, Expr::Literal(-8)), Expr::Literal(8));
                let d = binary("-", extreme.term.clone(), read.clone());
                let term = binary("*", d.clone(), d);
                let weight = self.rng.chance(40).then(|| self.weight(&around, own.ty));
                let term = weight.iter().fold(term, |term, weight| binary("*", weight.clone(), term));
                let value = Reduce { by: Reduction::OnlineSum, term, ..extreme.as_ref().clone() };
                let made = |name: &str, value: Reduce| {
                    Equation::new(name, own.ty, own.axes.clone(), Expr::Reduce(Box::new(value)), false)
                };
                sums.push(made(SUMS[0], value));
                let count = match weight {
                    Some(weight) => {
                        weights = Some(made(SUMS[1], Reduce { term: weight.clone(), ..extreme.as_ref().clone() }));
                        taken.push(Taken::Weighted);
                        extreme.term = binary("*", weight, extreme.term);
                        at(SUMS[1], &own.axes)
                    }
                    None => {
                        taken.push(Taken::Squares(count.clone()));
                        count
                    }
                };
                binary("/", Expr::Reduce(extreme), count)
            }
            None => {
                extreme.by = if self.rng.chance(65) { Reduction::Max } else { Reduction::Min };
                for sum in &SUMS[..if self.rng.chance(25) { 2 } else { 1 }] {
                    let (equation, how) = self.follower(sum, &own, &extreme, (&around, &read));
                    sums.push(equation);
                    taken.push(how);
                }
                Expr::Reduce(extreme)
            }
        };
        // What read the reduction, at the same places.
        let both = |first: Expr, indices: &[Index], or: &Option<Box<Expr>>| {
            let read = |name: &str| Expr::Read(name.to_owned(), indices.to_vec(), or.clone());
            let of = |(sum, how): (&Equation, &Taken)| how.of(read(&sum.name), read(SUMS[1]));
            let mut all = sums.iter().zip(&taken).map(of);
            match taken.first() {
                // A mean is no integer.
                Some(Taken::Squares(_) | Taken::Weighted) => all.next().unwrap_or(first),
                _ => all.fold(first, |value, sum| binary("+", value, sum)),
            }
        };
        if own.output {
            let plain: Vec<Index> = own.axes.iter().map(|a| Index::Axis(a.0.clone(), 1, 0)).collect();
            equations[found].value = both(read, &plain, &None);
        } else {
            for reader in &mut equations[..found] {
                let mut is_first = true;
                let is_squares = matches!(taken.first(), Some(Taken::Squares(_) | Taken::Weighted));
                reader.value.walk_mut(&mut |e| {
                    let Expr::Read(tensor, indices, or) = &*e else { return };
                    if *tensor == own.name && (is_squares || std::mem::take(&mut is_first)) {
                        *e = both(e.clone(), indices, or);
                    }
                });
            }
            equations.remove(found);
        }
        let at = if own.output { found + 1 } else { found };
        let made = Equation { name: name.to_owned(), value: first, output: false, ..own };
        equations.splice(at..at, sums.into_iter().chain([made]).chain(weights));
    }

    /// A weight: a small number that is not negative, of each term.
    fn weight(&mut self, around: &Vec<(String, crate::compose::ast::Extent)>, ty: Type) -> Expr {
        self.below.clear();
        let (tensor, plain) = (self.input(around), self.rng.chance(50));
        let read = self.read(tensor, around, plain, ty);
        binary("max", binary("min", read, Expr::Literal(3)), Expr::Literal(0))
    }

    /// What follows an extreme, and what readers take of it.
    fn follower(
        &mut self,
        name: &str,
        own: &Equation,
        extreme: &Reduce,
        (around, read): (&Vec<(String, crate::compose::ast::Extent)>, &Expr),
    ) -> (Equation, Taken) {
        let is_whole = extreme.ranges.iter().all(Option::is_none);
        let made = |by: Reduction, term: Expr, ty: Type| {
            let value = Expr::Reduce(Box::new(Reduce { by, term, ..extreme.clone() }));
            Equation::new(name, ty, own.axes.clone(), value, false)
        };
        // Where a range begins and ends, the weight may have no element, and a search needs one.
        if is_whole && self.rng.chance(25) {
            let by = if extreme.by == Reduction::Max { Reduction::Argmax } else { Reduction::Argmin };
            self.demand_terms(by, extreme.axes[0].1);
            return (made(by, extreme.term.clone(), Type::U32), Taken::Cast(Type::U32));
        }
        let weight = (is_whole && self.rng.chance(50)).then(|| {
            self.below.clear();
            let (tensor, plain) = (self.input(around), self.rng.chance(50));
            self.read(tensor, around, plain, own.ty)
        });
        if self.rng.chance(30) {
            let (by, identity) = if self.rng.chance(65) { (Reduction::Sum, 0) } else { (Reduction::Prod, 1) };
            let op = if extreme.by == Reduction::Max { ">=" } else { "<=" };
            let op = if self.rng.chance(60) { "==" } else { op };
            let condition = Cond::Alike(own.ty, Box::new(extreme.term.clone()), op, Box::new(read.clone()));
            let y = weight.unwrap_or(Expr::Literal(2));
            let term = Expr::If(Box::new(condition), Box::new(y), Box::new(Expr::Literal(identity)));
            return (made(by, term, own.ty), Taken::Whole);
        }
        let mut term = exponential(extreme, read.clone());
        if let Some(weight) = weight {
            term = if self.rng.chance(50) { binary("*", term, weight) } else { binary("*", weight, term) };
        }
        (made(Reduction::OnlineSum, term, own.ty), Taken::Whole)
    }
}

/// What readers take of what follows.
enum Taken {
    /// It.
    Whole,
    /// It, which is of this type, as a value of their own.
    Cast(Type),
    /// So many times it, rounded, and not more than [`MOST_SQUARES`].
    Squares(Expr),
    /// The same, by the sum of the weights.
    Weighted,
}

impl Taken {
    fn of(&self, read: Expr, weights: Expr) -> Expr {
        let count = match self {
            Self::Whole => return read,
            Self::Cast(ty) => return Expr::Cast(*ty, Box::new(read)),
            Self::Squares(count) => count.clone(),
            Self::Weighted => weights,
        };
        let twice = binary("*", binary("*", read, count), Expr::Literal(2));
        Expr::Unary("half-even", Box::new(binary("min", twice, Expr::Literal(2 * MOST_SQUARES))))
    }
}

/// Whether an equation is a mean with weights.
pub fn is_weighted(equation: &Equation) -> bool {
    matches!(&equation.value, Expr::Binary("/", ..)) && equation.value.tensors().contains(&SUMS[1])
}

/// The equations of a kernel that follow one.
pub fn sums<'a>(kernel: &'a Kernel, first: &str) -> Vec<&'a str> {
    // A search reads nothing: it has the terms of its extreme.
    let terms = |e: &Equation| match &e.value {
        Expr::Reduce(r) => Some(r.term.clone()),
        _ => None,
    };
    let of_first = kernel.equation(first).and_then(terms);
    let is_search = |e: &Equation| matches!(reduces(e), Some(Reduction::Argmax | Reduction::Argmin));
    let follows =
        |e: &&Equation| is_sum(e) && (e.value.tensors().contains(&first) || is_search(e) && terms(e) == of_first);
    kernel.equations.iter().filter(follows).map(|e| e.name.as_str()).collect()
}

/// Whether an equation follows another one.
pub fn is_sum(equation: &Equation) -> bool {
    matches!(&equation.value, Expr::Reduce(_)) && SUMS.contains(&equation.name.as_str())
}

/// What an equation that is a reduction reduces by.
pub fn reduces(equation: &Equation) -> Option<Reduction> {
    match &equation.value {
        Expr::Reduce(r) => Some(r.by),
        _ => None,
    }
}
