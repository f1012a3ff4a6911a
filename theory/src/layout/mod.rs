//! Layouts: maps between numbers in mixed radix. Iterations and threads, elements and registers, elements and places in
//! a buffer are all such maps.
//!
//! A [`Layout`] is a list of [`Digit`]s. Value d of a digit takes `d · unit` of its source and `low + d · stride` of
//! its target, and numbers on both sides are sums over their digits. Extents need not be powers of two. A place may
//! have chunks exchanged by a [`XorSwizzle`].
//!
//! **Property.** Where [`Layout::is_one_to_one`], the values that [`Layout::path`] finds for the place of some values
//! are these values. **Formula.** Digits of one number in order of their strides, the largest first: each is
//! ⌊(rest − low) / stride⌋, and leaves (rest − low) mod stride to the next one. That is exact if what digits inside
//! have together is less than the stride of each digit. Sources are taken apart in the same way, by units.
//! **Approximation.** None. `layout/tests.rs` compares with enumeration, nests of threads with the sets of
//! [`collectives`](crate::collectives), and the fragments of tensor cores with the PTX manual's.
//!
//! Compare linear layouts (Triton), whose digits are bits, and CuTe's pairs of shapes and strides, which go one way.

use tilewright_kernel::tensor_map::Swizzle;

use crate::domain::{Arithmetic, Numbers};
use crate::extent::Expr;

/// A digit that a number on one side and a number on the other side have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digit<S, T> {
    /// The number that counts it; none if places that differ in it have the same.
    pub source: Option<S>,
    /// What one step adds to the source.
    pub unit: i128,
    /// How many values it has, at least 1; 0 if there is nothing at all.
    pub extent: i128,
    /// The number that it is a part of.
    pub target: T,
    /// What one step adds to the target; 0 for a digit of one value that is no part of it.
    pub stride: i128,
    /// What stands before the first value, of what the digits outside leave.
    pub low: i128,
}

/// A step from a number to one of its digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The quotient.
    Div(i128),
    /// The remainder.
    Mod(i128),
    /// Counted from `low` on. Numbers before it come after the last ones of `around`, which is all that there is.
    From {
        /// The number that becomes 0.
        low: i128,
        /// How many numbers there are.
        around: i128,
    },
}

/// How a digit follows from a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Step>);

impl Path {
    /// The path with one more step. Remainders that the next one takes anyway are left out, quotients of quotients are
    /// one, and quotients come before remainders.
    #[must_use]
    pub fn with(mut self, step: Step) -> Self {
        match (self.0.last().copied(), step) {
            (_, Step::Div(1) | Step::From { low: 0, .. }) => {}
            (Some(Step::Mod(of)), Step::Mod(by)) if of % by == 0 => {
                self.0.pop();
                return self.with(step);
            }
            (Some(Step::Mod(of)), Step::Mod(by)) if by % of == 0 => {}
            (Some(Step::Mod(of)), Step::Div(by)) if of % by == 0 => {
                self.0.pop();
                return self.with(step).with(Step::Mod(of / by));
            }
            (Some(Step::Div(a)), Step::Div(b)) => {
                self.0.pop();
                self.0.push(Step::Div(a.saturating_mul(b)));
            }
            _ => self.0.push(step),
        }
        self
    }

    /// Its value, in any arithmetic; at least the digit's extent for a number that has none.
    pub fn of<A: Arithmetic>(&self, arithmetic: &mut A, number: &A::Value) -> A::Value {
        // A loop, as in `Layout::place`: a debug build calls closures one by one.
        let mut rest = number.clone();
        for step in &self.0 {
            rest = match *step {
                Step::Div(by) => {
                    let by = arithmetic.literal(by);
                    arithmetic.div(&rest, &by)
                }
                Step::Mod(by) => {
                    let by = arithmetic.literal(by);
                    arithmetic.modulo(&rest, &by)
                }
                Step::From { low, around } => {
                    let (less, around) = (arithmetic.literal(around - low), arithmetic.literal(around));
                    let turned = arithmetic.add(&rest, &less);
                    arithmetic.modulo(&turned, &around)
                }
            };
        }
        rest
    }

    /// Its value for a number.
    pub fn at(&self, number: i128) -> i128 {
        self.of(&mut Numbers(&[]), &number)
    }

    /// Its value as an expression; outside of the digit's extent for a number that has none. What comes before a first
    /// value is negative here: proofs lose nothing in a remainder.
    pub fn expression(&self, number: &Expr) -> Expr {
        self.0.iter().fold(number.clone(), |rest, step| match *step {
            Step::Div(by) => rest.floor_div(&Expr::constant(by)),
            Step::Mod(by) => rest.modulo(&Expr::constant(by)),
            Step::From { low, .. } => rest.sub(&Expr::constant(low)),
        })
    }
}

/// Chunks of places that are exchanged inside spans: the number of the row, of so many places, goes by exclusive or to
/// that of the chunk. All are powers of two, and rows are no shorter than spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XorSwizzle {
    /// Places of a row.
    pub row: i128,
    /// Places of a chunk.
    pub chunk: i128,
    /// Chunks of a span.
    pub chunks: i128,
}

impl XorSwizzle {
    /// That of a swizzle, for elements of so many bytes (see [`Swizzle::apply`]). Rows and chunks rather than bits: an
    /// offset is a sum of rows and columns, so that the row is known, and often there is nothing to compute.
    pub fn new(swizzle: Swizzle, bytes: u32) -> Self {
        let [row, chunk, chunks] = [128 / bytes, 16 / bytes, swizzle.span() / 16].map(i128::from);
        Self { row, chunk, chunks }
    }

    /// Where a place comes to lie. Twice gives the place again.
    pub fn of<A: Arithmetic>(self, arithmetic: &mut A, place: &A::Value) -> A::Value {
        if self.chunks == 1 {
            return place.clone();
        }
        let (row, chunk, chunks) =
            (arithmetic.literal(self.row), arithmetic.literal(self.chunk), arithmetic.literal(self.chunks));
        let moved = arithmetic.div(place, &row);
        let moved = arithmetic.modulo(&moved, &chunks);
        let mask = arithmetic.mul(&moved, &chunk);
        // Places may have any size.
        arithmetic.xor(place, &mask, &Expr::unknown())
    }
}

/// A map between numbers. See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout<S, T> {
    digits: Vec<Digit<S, T>>,
    /// How many numbers a target has, where numbers before and past the digits are asked about.
    sizes: Vec<(T, i128)>,
    swizzle: Option<XorSwizzle>,
    /// How each digit follows from a number of its source.
    source_paths: Vec<Path>,
}

impl<S: Copy + PartialEq, T: Copy + PartialEq> Layout<S, T> {
    /// The layout of these digits, for targets of so many numbers. A target in which digits begin later has a size.
    pub fn new(digits: Vec<Digit<S, T>>, sizes: Vec<(T, i128)>) -> Self {
        let source_paths = digits.iter().map(|digit| source_path(&digits, digit)).collect();
        Self { digits, sizes, swizzle: None, source_paths }
    }

    /// The same of digits, the last one of a source fastest: units are what those after a digit count.
    pub fn counting(digits: impl IntoIterator<Item = Digit<S, T>>, sizes: Vec<(T, i128)>) -> Self {
        let mut digits: Vec<Digit<S, T>> = digits.into_iter().collect();
        for n in (0..digits.len()).rev() {
            let inside = digits[n + 1..].iter().filter(|d| d.source == digits[n].source);
            digits[n].unit = inside.fold(1, |unit: i128, d| unit.saturating_mul(d.extent.max(1)));
        }
        Self::new(digits, sizes)
    }

    /// The same map with as few digits as it takes, outermost first. Neighbours on both sides are one digit; one of one
    /// value goes, unless numbers would be taken for its value that are not: where there is nothing inside, or digits
    /// begin later.
    #[must_use]
    pub fn normal(&self) -> Self {
        let mut all: Vec<Digit<S, T>> = Vec::new();
        let begins = |digit: &Digit<S, T>| digit.low == 0;
        let from_first = self.digits.iter().all(begins);
        let mut targets: Vec<T> = Vec::new();
        for digit in &self.digits {
            if !targets.contains(&digit.target) {
                targets.push(digit.target);
            }
        }
        for target in targets {
            let chain = self.chain(target);
            let first = all.len();
            for (at, n) in chain.iter().enumerate() {
                let digit = self.digits[*n];
                let is_next = |outer: &Digit<S, T>| {
                    let both = |outer: i128, own: i128| outer == own.saturating_mul(digit.extent);
                    let between = |d: &Digit<S, T>| {
                        d.source == digit.source && d.extent != 1 && digit.unit < d.unit && d.unit < outer.unit
                    };
                    let is_next_in_source = both(outer.unit, digit.unit) && !self.digits.iter().any(between);
                    outer.source == digit.source
                        && begins(&digit)
                        && both(outer.stride, digit.stride)
                        && (digit.source.is_none() || is_next_in_source)
                };
                if digit.extent == 1 && at + 1 < chain.len() && from_first {
                    continue;
                }
                match all[first..].last_mut() {
                    Some(outer) if is_next(outer) => {
                        let Digit { unit, stride, .. } = digit;
                        *outer = Digit { unit, stride, extent: outer.extent * digit.extent, ..*outer };
                    }
                    _ => all.push(digit),
                }
            }
        }
        Self { swizzle: self.swizzle, ..Self::new(all, self.sizes.clone()) }
    }

    /// The same with chunks of every place exchanged.
    #[must_use]
    pub fn swizzled(mut self, swizzle: XorSwizzle) -> Self {
        self.swizzle = Some(swizzle);
        self
    }

    /// Its digits.
    pub fn digits(&self) -> &[Digit<S, T>] {
        &self.digits
    }

    /// The digits of a target that tell its numbers apart: positions, outermost first.
    fn chain(&self, target: T) -> Vec<usize> {
        let own = |n: &usize| self.digits[*n].target == target && self.digits[*n].stride > 0;
        let mut chain: Vec<usize> = (0..self.digits.len()).filter(own).collect();
        // Of two with one stride, that of one value is inside.
        chain.sort_by_key(|n| std::cmp::Reverse((self.digits[*n].stride, self.digits[*n].extent, self.digits[*n].low)));
        chain
    }

    /// What digits outside of one leave of a number of its target: how it follows, and how many values it has; none of
    /// a digit that is no part of its target.
    fn rest(&self, digit: usize) -> Option<(Path, Option<i128>)> {
        let target = self.digits[digit].target;
        let chain = self.chain(target);
        let at = chain.iter().position(|n| *n == digit)?;
        let size = self.sizes.iter().find(|size| size.0 == target).map(|size| size.1);
        let outside = |(path, around), n: &usize| {
            let Digit { low, stride, .. } = self.digits[*n];
            (from(path, low, around).with(Step::Mod(stride)), Some(stride))
        };
        Some(chain[..at].iter().fold((Path::default(), size), outside))
    }

    /// What digits outside of one leave of a number of its target, counted from its first value on.
    pub fn within(&self, digit: usize) -> Path {
        match self.rest(digit) {
            Some((rest, around)) => from(rest, self.digits[digit].low, around),
            None => Path::default().with(Step::Mod(1)),
        }
    }

    /// How a digit follows from a number of its target.
    pub fn path(&self, digit: usize) -> Path {
        self.within(digit).with(Step::Div(self.digits[digit].stride.max(1)))
    }

    /// Whether its target has numbers that are no value of a digit.
    pub fn is_partial(&self, digit: usize) -> bool {
        let Digit { low, stride, extent, .. } = self.digits[digit];
        self.rest(digit)
            .is_some_and(|(_, around)| low > 0 || around.is_none_or(|around| extent.saturating_mul(stride) < around))
    }

    /// What all digits leave of a number of a target.
    pub fn left(&self, target: T) -> Path {
        let last = self.chain(target).pop();
        last.map_or_else(Path::default, |last| self.within(last).with(Step::Mod(self.digits[last].stride)))
    }

    /// The place of source numbers in a target.
    pub fn place<A: Arithmetic>(&self, arithmetic: &mut A, target: T, source: &dyn Fn(S) -> A::Value) -> A::Value {
        let mut place = arithmetic.literal(0);
        for (n, digit) in self.digits.iter().enumerate() {
            if digit.target != target {
                continue;
            }
            // A digit of one value is at its first place.
            if let Some(of) = digit.source
                && digit.extent != 1
            {
                let value = self.source_paths[n].of(arithmetic, &source(of));
                let stride = arithmetic.literal(digit.stride);
                let moved = arithmetic.mul(&value, &stride);
                place = arithmetic.add(&place, &moved);
            }
            if digit.low > 0 {
                let low = arithmetic.literal(digit.low);
                place = arithmetic.add(&place, &low);
            }
        }
        match self.swizzle {
            Some(swizzle) => swizzle.of(arithmetic, &place),
            None => place,
        }
    }

    /// The same as an expression, before chunks are exchanged.
    pub fn expression(&self, target: T, source: &dyn Fn(S) -> Expr) -> Expr {
        let own = self.digits.iter().zip(&self.source_paths).filter(|(digit, _)| digit.target == target);
        own.fold(Expr::constant(0), |place, (digit, path)| {
            let of = digit.source.filter(|_| digit.extent != 1);
            let moved = of.map_or_else(|| Expr::constant(0), |of| path.expression(&source(of)).scale(digit.stride));
            place.add(&moved).add(&Expr::constant(digit.low))
        })
    }

    /// Whether no two values of the digits have one place.
    pub fn is_one_to_one(&self) -> bool {
        self.digits.iter().enumerate().all(|(n, digit)| {
            let inside = self.chain(digit.target);
            let inside = inside.iter().skip_while(|at| **at != n).skip(1).map(|at| &self.digits[*at]);
            let most: i128 = inside.map(|d| d.low + (d.extent - 1).max(0) * d.stride).sum();
            digit.extent <= 1 || (digit.stride > 0 && most < digit.stride)
        })
    }
}

/// How one of some digits follows from a number of its source.
fn source_path<S: Copy + PartialEq, T>(digits: &[Digit<S, T>], digit: &Digit<S, T>) -> Path {
    // The smallest unit outside takes everything above it.
    let outside = digits.iter().filter(|d| d.source == digit.source && d.unit > digit.unit && d.extent != 1);
    let mut units: Vec<i128> = outside.map(|d| d.unit).collect();
    units.sort_unstable();
    let rest = units.into_iter().rev().fold(Path::default(), |path, unit| path.with(Step::Mod(unit)));
    rest.with(Step::Div(digit.unit))
}

/// Counted from a first number on, of so many.
fn from(path: Path, low: i128, around: Option<i128>) -> Path {
    // Where nothing else is known, what comes before the first one is nothing.
    path.with(Step::From { low, around: around.unwrap_or(i128::MAX) })
}

#[cfg(test)]
mod tests;
