//! Symbolic sizes, constraints between them, and their evaluation.
//!
//! A [`Size`] is a small postfix program over the kernel's dimensions. Its value is a mathematical integer; evaluation
//! is checked in `i128`, so that no launch is decided by a wrapped number.

use crate::{List, Text};

/// One step of a [`Size`], in postfix order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeOp {
    /// Push a literal.
    Const(i64),
    /// Push the value of a dimension: an index into [`KernelInfo::dims`](crate::KernelInfo::dims).
    Dim(u16),
    /// Pop b, a; push a + b.
    Add,
    /// Pop b, a; push a − b.
    Sub,
    /// Pop b, a; push a · b.
    Mul,
    /// Pop b, a; push ⌊a / b⌋.
    Div,
    /// Pop b, a; push ⌈a / b⌉.
    CeilDiv,
    /// Pop b, a; push a − b·⌊a / b⌋.
    Mod,
    /// Pop b, a; push the smaller.
    Min,
    /// Pop b, a; push the larger.
    Max,
}

/// A symbolic size. Unit: whatever the place that holds it says (elements unless stated otherwise).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// The postfix program.
    pub ops: List<SizeOp>,
}

/// Why a size has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeError {
    /// A division or remainder by zero.
    DivisionByZero,
    /// The value does not fit in 128 bits.
    Overflow,
    /// The program is not well formed, or names a dimension that the caller gave no value for.
    Malformed,
}

impl std::fmt::Display for SizeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::DivisionByZero => "division by zero",
            Self::Overflow => "the value does not fit in 128 bits",
            Self::Malformed => "malformed size",
        })
    }
}

impl std::error::Error for SizeError {}

impl Size {
    /// A size over static steps; what the macro emits.
    pub const fn new(ops: &'static [SizeOp]) -> Self {
        Self { ops: List::Borrowed(ops) }
    }

    /// The literal `value`.
    pub fn constant(value: i64) -> Self {
        Self { ops: List::Owned(vec![SizeOp::Const(value)]) }
    }

    /// The dimension with index `dim`.
    pub fn dim(dim: u16) -> Self {
        Self { ops: List::Owned(vec![SizeOp::Dim(dim)]) }
    }

    /// `a op b`.
    pub fn binary(op: SizeOp, a: &Self, b: &Self) -> Self {
        let mut ops = a.ops.to_vec();
        ops.extend_from_slice(&b.ops);
        ops.push(op);
        Self { ops: List::Owned(ops) }
    }

    /// The dimension that this size is, if it is nothing more than one.
    pub fn as_dim(&self) -> Option<u16> {
        match *self.ops {
            [SizeOp::Dim(d)] => Some(d),
            _ => None,
        }
    }

    /// The dimensions that it mentions, in order of appearance, repetitions included.
    pub fn dims(&self) -> impl Iterator<Item = u16> + '_ {
        self.ops.iter().filter_map(|op| if let SizeOp::Dim(d) = op { Some(*d) } else { None })
    }

    /// The literal that this size is, if it is nothing more than one.
    pub fn as_constant(&self) -> Option<i64> {
        match *self.ops {
            [SizeOp::Const(c)] => Some(c),
            _ => None,
        }
    }

    /// The value for the given dimensions (`dims[i]` is the value of dimension `i`).
    ///
    /// # Errors
    /// Division by zero, a value beyond 128 bits, or a malformed program.
    pub fn eval(&self, dims: &[i64]) -> Result<i128, SizeError> {
        let mut stack: Vec<i128> = Vec::with_capacity(8);
        for op in self.ops.iter() {
            let value = match *op {
                SizeOp::Const(c) => i128::from(c),
                SizeOp::Dim(d) => i128::from(*dims.get(usize::from(d)).ok_or(SizeError::Malformed)?),
                _ => {
                    let b = stack.pop().ok_or(SizeError::Malformed)?;
                    let a = stack.pop().ok_or(SizeError::Malformed)?;
                    apply(*op, a, b)?
                }
            };
            stack.push(value);
        }
        match stack[..] {
            [value] => Ok(value),
            _ => Err(SizeError::Malformed),
        }
    }

    /// The size as text, with the dimensions' names.
    pub fn display<'a>(&'a self, names: &'a dyn Fn(u16) -> &'a str) -> impl std::fmt::Display + 'a {
        Shown { size: self, names }
    }
}

/// One arithmetic step on mathematical integers, checked.
///
/// # Errors
/// Division by zero or a result beyond 128 bits; [`SizeError::Malformed`] when `op` takes no operands.
pub fn apply(op: SizeOp, a: i128, b: i128) -> Result<i128, SizeError> {
    let nonzero = |v: i128| if v == 0 { Err(SizeError::DivisionByZero) } else { Ok(v) };
    match op {
        SizeOp::Const(_) | SizeOp::Dim(_) => Err(SizeError::Malformed),
        SizeOp::Add => a.checked_add(b).ok_or(SizeError::Overflow),
        SizeOp::Sub => a.checked_sub(b).ok_or(SizeError::Overflow),
        SizeOp::Mul => a.checked_mul(b).ok_or(SizeError::Overflow),
        SizeOp::Div => floor_div(a, nonzero(b)?).ok_or(SizeError::Overflow),
        SizeOp::CeilDiv => {
            let negated = a.checked_neg().ok_or(SizeError::Overflow)?;
            floor_div(negated, nonzero(b)?).and_then(i128::checked_neg).ok_or(SizeError::Overflow)
        }
        SizeOp::Mod => {
            let b = nonzero(b)?;
            let q = floor_div(a, b).ok_or(SizeError::Overflow)?;
            q.checked_mul(b).and_then(|p| a.checked_sub(p)).ok_or(SizeError::Overflow)
        }
        SizeOp::Min => Ok(a.min(b)),
        SizeOp::Max => Ok(a.max(b)),
    }
}

/// ⌊a / b⌋ for b ≠ 0; `None` only for the one quotient that does not fit.
fn floor_div(a: i128, b: i128) -> Option<i128> {
    let q = a.checked_div(b)?;
    let inexact = a % b != 0;
    Some(if inexact && ((a < 0) != (b < 0)) { q - 1 } else { q })
}

struct Shown<'a> {
    size: &'a Size,
    names: &'a dyn Fn(u16) -> &'a str,
}

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // (text, binding strength): 3 atom, 2 product, 1 sum.
        let mut stack: Vec<(String, u8)> = Vec::new();
        for op in self.size.ops.iter() {
            let item = match *op {
                SizeOp::Const(c) => (c.to_string(), if c < 0 { 1 } else { 3 }),
                SizeOp::Dim(d) => ((self.names)(d).to_owned(), 3),
                _ => {
                    let (Some(b), Some(a)) = (stack.pop(), stack.pop()) else { return f.write_str("?") };
                    join(*op, a, b)
                }
            };
            stack.push(item);
        }
        f.write_str(stack.last().map_or("?", |s| &s.0))
    }
}

fn join(op: SizeOp, a: (String, u8), b: (String, u8)) -> (String, u8) {
    let paren = |(text, strength): (String, u8), least: u8| if strength < least { format!("({text})") } else { text };
    match op {
        SizeOp::Add => (format!("{} + {}", paren(a, 1), paren(b, 1)), 1),
        SizeOp::Sub => (format!("{} - {}", paren(a, 1), paren(b, 2)), 1),
        SizeOp::Mul => (format!("{} * {}", paren(a, 2), paren(b, 3)), 2),
        SizeOp::Div => (format!("{} / {}", paren(a, 2), paren(b, 3)), 2),
        SizeOp::Mod => (format!("{} % {}", paren(a, 2), paren(b, 3)), 2),
        SizeOp::CeilDiv => (format!("ceil({} / {})", paren(a, 2), paren(b, 3)), 3),
        SizeOp::Min => (format!("min({}, {})", a.0, b.0), 3),
        SizeOp::Max => (format!("max({}, {})", a.0, b.0), 3),
        SizeOp::Const(_) | SizeOp::Dim(_) => ("?".to_owned(), 3),
    }
}

/// How the two sides of a [`Constraint`] must compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// lhs = rhs
    Eq,
    /// lhs ≠ rhs
    Ne,
    /// lhs ≤ rhs
    Le,
    /// lhs < rhs
    Lt,
    /// lhs ≥ rhs
    Ge,
    /// lhs > rhs
    Gt,
}

impl Relation {
    /// Whether `a` and `b` stand in this relation.
    pub fn holds(self, a: i128, b: i128) -> bool {
        match self {
            Self::Eq => a == b,
            Self::Ne => a != b,
            Self::Le => a <= b,
            Self::Lt => a < b,
            Self::Ge => a >= b,
            Self::Gt => a > b,
        }
    }

    /// The spelling in the language.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Le => "<=",
            Self::Lt => "<",
            Self::Ge => ">=",
            Self::Gt => ">",
        }
    }
}

/// A condition on the dimensions: a fact of a `where` clause, or an obligation that the compiler left to the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Left side.
    pub lhs: Size,
    /// The relation that must hold.
    pub relation: Relation,
    /// Right side.
    pub rhs: Size,
    /// The condition as the user wrote it or would write it, such as `N % 4 == 0`.
    pub text: Text,
}

impl Constraint {
    /// Whether the condition holds for the given dimensions.
    ///
    /// # Errors
    /// As [`Size::eval`].
    pub fn holds(&self, dims: &[i64]) -> Result<bool, SizeError> {
        Ok(self.relation.holds(self.lhs.eval(dims)?, self.rhs.eval(dims)?))
    }

    /// The dimensions that the condition mentions, ascending, each once.
    pub fn dims(&self) -> Vec<u16> {
        let mut dims: Vec<u16> = self.lhs.dims().chain(self.rhs.dims()).collect();
        dims.sort_unstable();
        dims.dedup();
        dims
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_rounds_down_and_remainders_are_never_negative() {
        for a in -20..=20_i128 {
            for b in [1, 2, 3, 7_i128] {
                let q = apply(SizeOp::Div, a, b).unwrap();
                let r = apply(SizeOp::Mod, a, b).unwrap();
                assert!(q * b + r == a && (0..b).contains(&r), "{a} / {b}");
                let c = apply(SizeOp::CeilDiv, a, b).unwrap();
                assert!(c * b >= a && (c - 1) * b < a, "ceil({a} / {b})");
            }
        }
    }

    #[test]
    fn malformed_sizes_are_errors() {
        assert_eq!(Size::new(&[SizeOp::Add]).eval(&[]), Err(SizeError::Malformed));
        assert_eq!(Size::new(&[]).eval(&[]), Err(SizeError::Malformed));
        assert_eq!(Size::dim(3).eval(&[1]), Err(SizeError::Malformed));
        let zero = Size::binary(SizeOp::Mod, &Size::dim(0), &Size::constant(0));
        assert_eq!(zero.eval(&[1]), Err(SizeError::DivisionByZero));
        assert_eq!(apply(SizeOp::Mul, i128::MAX, 2), Err(SizeError::Overflow));
    }

    #[test]
    fn sizes_are_shown_with_the_fewest_parentheses() {
        let names = |d: u16| ["N", "M"][usize::from(d)];
        let sum = Size::binary(SizeOp::Sub, &Size::dim(0), &Size::constant(2));
        let product = Size::binary(SizeOp::Mul, &sum, &Size::dim(1));
        let ceil = Size::binary(SizeOp::CeilDiv, &product, &Size::constant(4));
        assert_eq!(product.display(&names).to_string(), "(N - 2) * M");
        assert_eq!(ceil.display(&names).to_string(), "ceil((N - 2) * M / 4)");
    }
}
