//! What a kernel computes, by its definition: every element of every tensor, over integers.

use std::collections::BTreeMap;

use super::ast::{Dims, Equation, Expr, Index, Kernel, Reduction, Type};

/// A tensor: its shape, and its elements in row-major order. Numbers of 64-bit floats are exact for everything that is
/// drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Extents.
    pub shape: Vec<i64>,
    /// Elements.
    pub data: Vec<f64>,
}

impl Tensor {
    /// The element at these indices, if it is inside.
    fn at(&self, indices: &[i64]) -> Option<f64> {
        let mut offset = 0;
        for (index, size) in indices.iter().zip(&self.shape) {
            if !(0..*size).contains(index) {
                return None;
            }
            offset = offset * size + index;
        }
        self.data.get(usize::try_from(offset).ok()?).copied()
    }
}

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A float beyond the integers that its type holds: the order of operations would matter.
    Inexact,
    /// A read outside of its tensor, or of a tensor that is not there: the draw is wrong.
    Outside,
}

struct Evaluation<'a> {
    ty: Type,
    tensors: &'a BTreeMap<String, Tensor>,
    axes: Vec<(&'a str, i64)>,
    dims: &'a Dims,
}

/// Every output of a kernel, for these inputs.
///
/// # Errors
/// See [`Fault`].
pub fn evaluate(
    kernel: &Kernel,
    dims: &Dims,
    mut tensors: BTreeMap<String, Tensor>,
) -> Result<BTreeMap<String, Tensor>, Fault> {
    for equation in kernel.equations.iter().rev() {
        let computed = tensor(kernel, equation, dims, &tensors)?;
        tensors.insert(equation.name.clone(), computed);
    }
    Ok(tensors)
}

fn tensor(
    kernel: &Kernel,
    equation: &Equation,
    dims: &Dims,
    tensors: &BTreeMap<String, Tensor>,
) -> Result<Tensor, Fault> {
    let shape: Vec<i64> = equation.axes.iter().map(|a| a.1.at(dims)).collect();
    let mut evaluation = Evaluation { ty: kernel.ty, tensors, axes: Vec::new(), dims };
    let mut data = Vec::new();
    let names: Vec<&str> = equation.axes.iter().map(|a| a.0.as_str()).collect();
    for point in points(&shape) {
        evaluation.axes = names.iter().copied().zip(point).collect();
        data.push(evaluation.value(&equation.value)?);
    }
    Ok(Tensor { shape, data })
}

/// All points of a box, in row-major order.
pub fn points(shape: &[i64]) -> impl Iterator<Item = Vec<i64>> + '_ {
    let count: i64 = shape.iter().map(|n| (*n).max(0)).product();
    (0..count).map(move |mut n| {
        let mut point: Vec<i64> = shape.iter().rev().map(|size| (n % size, n /= size).0).collect();
        point.reverse();
        point
    })
}

impl<'a> Evaluation<'a> {
    fn axis(&self, name: &str) -> Result<i64, Fault> {
        self.axes.iter().rev().find(|a| a.0 == name).map(|a| a.1).ok_or(Fault::Outside)
    }

    fn index(&self, index: &Index) -> Result<i64, Fault> {
        Ok(match index {
            Index::Axis(axis, factor, plus) => self.axis(axis)? * factor + plus,
            Index::Quotient(axis, by, rest) => {
                let value = self.axis(axis)?;
                if *rest { value.rem_euclid(*by) } else { value.div_euclid(*by) }
            }
            Index::Mirrored(axis, size) => {
                self.dims.get(super::ast::SIZES[*size]).ok_or(Fault::Outside)? - 1 - self.axis(axis)?
            }
            Index::Gather(tensor, indices) => {
                let indices = indices.iter().map(|i| self.index(i)).collect::<Result<Vec<_>, _>>()?;
                let tensor = self.tensors.get(tensor).ok_or(Fault::Outside)?;
                // An index outside has no element, and what it would have pointed at is outside as well.
                tensor.at(&indices).ok_or(Fault::Outside)? as i64
            }
            Index::Literal(n) => *n,
        })
    }

    /// A value that its type holds; `size` bounds all that any order could reach on the way.
    fn held(&self, value: f64, size: f64) -> Result<f64, Fault> {
        let limit = match self.ty {
            Type::I32 => return Ok(f64::from(value as i64 as i32)),
            Type::F16 => 2048.0,
            Type::F32 => 16_777_216.0,
        };
        if size.is_finite() && size > limit { Err(Fault::Inexact) } else { Ok(value) }
    }

    fn value(&mut self, value: &'a Expr) -> Result<f64, Fault> {
        Ok(match value {
            Expr::Literal(n) => *n as f64,
            Expr::Axis(axis) => {
                let value = self.axis(axis)? as f64;
                self.held(value, value)?
            }
            Expr::Read(tensor, indices, or) => {
                let indices = indices.iter().map(|i| self.index(i)).collect::<Result<Vec<_>, _>>()?;
                let element = self.tensors.get(tensor).ok_or(Fault::Outside)?.at(&indices);
                match (element, or) {
                    (Some(element), _) => element,
                    (None, Some(n)) => *n as f64,
                    (None, None) => return Err(Fault::Outside),
                }
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                let wide = |f: fn(i64, i64) -> i64| f(a as i64, b as i64) as i32;
                let result = match (*op, self.ty) {
                    ("max", _) => a.max(b),
                    ("min", _) => a.min(b),
                    ("+", Type::I32) => f64::from(wide(i64::wrapping_add)),
                    ("-", Type::I32) => f64::from(wide(i64::wrapping_sub)),
                    ("*", Type::I32) => f64::from(wide(i64::wrapping_mul)),
                    ("+", _) => a + b,
                    ("-", _) => a - b,
                    _ => a * b,
                };
                self.held(result, result.abs())?
            }
            Expr::If(axis, n, a, b) => {
                if self.axis(axis)? < *n {
                    self.value(a)?
                } else {
                    self.value(b)?
                }
            }
            Expr::Above(c, n, a, b) => {
                if self.value(c)? > *n as f64 {
                    self.value(a)?
                } else {
                    self.value(b)?
                }
            }
            Expr::Reduce(by, axes, term) => {
                let shape: Vec<i64> = axes.iter().map(|a| a.1.at(self.dims)).collect();
                let depth = self.axes.len();
                let (mut terms, mut total) = (Vec::new(), 0.0);
                for point in points(&shape) {
                    self.axes.extend(axes.iter().map(|a| a.0.as_str()).zip(point));
                    let term = self.value(term)?;
                    total += term.abs();
                    terms.push(term);
                    self.axes.truncate(depth);
                }
                let best = |better: fn(f64, f64) -> bool| {
                    let mut best = 0;
                    for at in 1..terms.len() {
                        if better(terms[at], terms[best]) {
                            best = at;
                        }
                    }
                    best as f64
                };
                let integer = self.ty == Type::I32;
                match by {
                    Reduction::Sum | Reduction::OrderedSum | Reduction::Fold if integer => {
                        f64::from(terms.iter().fold(0_i32, |sum, t| sum.wrapping_add(*t as i64 as i32)))
                    }
                    Reduction::Sum | Reduction::OrderedSum | Reduction::Fold => self.held(terms.iter().sum(), total)?,
                    Reduction::Max => {
                        let least = if integer { f64::from(i32::MIN) } else { f64::NEG_INFINITY };
                        terms.iter().copied().fold(least, f64::max)
                    }
                    Reduction::Min => {
                        let greatest = if integer { f64::from(i32::MAX) } else { f64::INFINITY };
                        terms.iter().copied().fold(greatest, f64::min)
                    }
                    Reduction::Argmax => best(|a, b| a > b),
                    Reduction::Argmin => best(|a, b| a < b),
                    Reduction::Any => f64::from(u8::from(terms.iter().any(|t| *t > 0.0))),
                    Reduction::Last => terms.iter().rev().copied().find(|t| *t > 0.0).unwrap_or(0.0),
                }
            }
        })
    }
}
