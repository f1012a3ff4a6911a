//! What a kernel computes, by its definition: every element of every tensor, over integers.

mod arithmetic;
mod reduce;

use std::collections::BTreeMap;

use super::ast::{Cond, Dims, Equation, Expr, Index, Kernel, Number, Reduction, SIZES, Scatter, Type};

/// A tensor: its shape, and its elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Where indices begin; 0 where nothing is said.
    pub first: Vec<i64>,
    /// Extents.
    pub shape: Vec<i64>,
    /// Elements.
    pub data: Vec<Number>,
}

impl Tensor {
    /// The element at these indices, if it is inside.
    fn at(&self, indices: &[i64]) -> Option<Number> {
        self.data.get(self.offset(indices)?).copied()
    }

    /// Which element that is.
    fn offset(&self, indices: &[i64]) -> Option<usize> {
        let mut offset = 0;
        for (n, (index, size)) in indices.iter().zip(&self.shape).enumerate() {
            let index = index.checked_sub(self.first.get(n).copied().unwrap_or(0))?;
            if !(0..*size).contains(&index) {
                return None;
            }
            offset = offset * size + index;
        }
        usize::try_from(offset).ok()
    }
}

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A float beyond the integers that its type holds, or a NaN that makes a fold depend on its order: the order of
    /// operations would matter.
    Inexact,
    /// A read outside of its tensor, or of a tensor that is not there: the draw is wrong.
    Outside,
}

struct Evaluation<'a> {
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
        let computed = equation_of(equation, dims, &tensors)?;
        for ((name, _), tensor) in equation.targets().into_iter().zip(computed) {
            tensors.insert(name.to_owned(), tensor);
        }
    }
    Ok(tensors)
}

/// All tensors that an equation defines.
fn equation_of(equation: &Equation, dims: &Dims, tensors: &BTreeMap<String, Tensor>) -> Result<Vec<Tensor>, Fault> {
    if let Some(scatter) = &equation.scatter {
        return scattered(equation, scatter, dims, tensors).map(|tensor| vec![tensor]);
    }
    let shape: Vec<i64> = equation.axes.iter().map(|a| a.1.at(dims)).collect();
    let mut evaluation = Evaluation { tensors, axes: Vec::new(), dims };
    let mut all: Vec<Vec<Number>> = equation.targets().iter().map(|_| Vec::new()).collect();
    let names: Vec<&str> = equation.axes.iter().map(|a| a.0.as_str()).collect();
    for point in points(&shape) {
        let point = point.into_iter().enumerate().map(|(n, at)| at + equation.first(n));
        evaluation.axes = names.iter().copied().zip(point).collect();
        let values = match &equation.value {
            Expr::Reduce(r) if matches!(r.by, Reduction::States(_)) => evaluation.states(r)?,
            Expr::Tuple(parts) => {
                let typed = parts.iter().zip(equation.targets());
                typed.map(|(part, of)| evaluation.value(part, of.1)).collect::<Result<Vec<_>, _>>()?
            }
            value => vec![evaluation.value(value, equation.ty)?],
        };
        if values.len() != all.len() {
            return Err(Fault::Outside);
        }
        all.iter_mut().zip(values).for_each(|(data, value)| data.push(value));
    }
    Ok(all.into_iter().map(|data| Tensor { first: equation.lower.clone(), shape: shape.clone(), data }).collect())
}

/// What a tensor is after every term has been taken in. Sums have to be exact in any order.
fn scattered(
    equation: &Equation,
    scatter: &Scatter,
    dims: &Dims,
    tensors: &BTreeMap<String, Tensor>,
) -> Result<Tensor, Fault> {
    let mut after = tensors.get(&equation.name).ok_or(Fault::Outside)?.clone();
    let ty = equation.ty;
    let size = |number: &Number| number.float().abs();
    let mut magnitudes: Vec<f64> = after.data.iter().map(size).collect();
    let shape: Vec<i64> = equation.axes.iter().map(|a| a.1.at(dims)).collect();
    let mut evaluation = Evaluation { tensors, axes: Vec::new(), dims };
    for point in points(&shape) {
        evaluation.axes = equation.axes.iter().map(|axis| axis.0.as_str()).zip(point).collect();
        let at = scatter.places.iter().map(|place| evaluation.index(place)).collect::<Result<Vec<i64>, _>>()?;
        let term = evaluation.value(&equation.value, ty)?;
        let Some(offset) = after.offset(&at) else { continue };
        let element = &mut after.data[offset];
        *element = match scatter.by {
            Some(Reduction::Max) => arithmetic::binary("max", *element, term, ty)?,
            Some(Reduction::Min) => arithmetic::binary("min", *element, term, ty)?,
            Some(_) => arithmetic::binary("+", *element, term, ty)?,
            None => {
                *element = term;
                continue;
            }
        };
        magnitudes[offset] += size(&term);
        if !ty.is_integer() && magnitudes[offset] > ty.exact() {
            return Err(Fault::Inexact);
        }
    }
    Ok(after)
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

    fn size(&self, size: usize) -> Result<i64, Fault> {
        self.dims.get(SIZES[size]).copied().ok_or(Fault::Outside)
    }

    fn index(&self, index: &Index) -> Result<i64, Fault> {
        Ok(match index {
            Index::Axis(axis, factor, plus) => self.axis(axis)? * factor + plus,
            Index::Mirrored(axis, size) => self.size(*size)? - 1 - self.axis(axis)?,
            Index::Pair(a, b) => self.axis(a)? + self.axis(b)?,
            Index::Gather(tensor, indices, or) => match (self.element(tensor, indices)?, or) {
                // Too large for an index is outside of any tensor as well.
                (Some(n), _) => i64::try_from(n.int()).unwrap_or(i64::MAX),
                (None, Some(n)) => *n,
                (None, None) => return Err(Fault::Outside),
            },
            // Indices are integers: what is beyond those of 64 bits is outside of any tensor.
            Index::Affine(inner, factor, plus) => self.index(inner)?.saturating_mul(*factor).saturating_add(*plus),
            Index::Over(inner, by, rest) => {
                let (value, by) = (self.index(inner)?, by.at(self.dims));
                let result = if *rest { value.checked_rem_euclid(by) } else { value.checked_div_euclid(by) };
                result.ok_or(Fault::Outside)?
            }
            Index::Both(parts) => self.index(&parts[0])?.saturating_add(self.index(&parts[1])?),
            Index::Literal(n) => *n,
            Index::Extent(extent) => extent.at(self.dims),
        })
    }

    fn element(&self, tensor: &str, indices: &[Index]) -> Result<Option<Number>, Fault> {
        let indices = indices.iter().map(|i| self.index(i)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.tensors.get(tensor).ok_or(Fault::Outside)?.at(&indices))
    }

    fn condition(&mut self, condition: &'a Cond) -> Result<bool, Fault> {
        Ok(match condition {
            Cond::Axis(axis, op, extent) => {
                let (a, b) = (self.axis(axis)?, extent.at(self.dims));
                Number::Int(a.into()).compare(op, Number::Int(b.into()))
            }
            Cond::Indices(a, op, b) => {
                let (a, b) = (self.index(a)?, self.index(b)?);
                Number::Int(a.into()).compare(op, Number::Int(b.into()))
            }
            Cond::Value(ty, value, op, n) => self.value(value, *ty)?.compare(op, ty.number(*n)),
            Cond::Alike(ty, a, op, b) => {
                let (a, b) = (self.value(a, *ty)?, self.value(b, *ty)?);
                a.compare(op, b)
            }
            Cond::And(a, b) => self.condition(a)? && self.condition(b)?,
            Cond::Or(a, b) => self.condition(a)? || self.condition(b)?,
            Cond::Not(a) => !self.condition(a)?,
            Cond::Flag(value) => self.value(value, Type::Bool)?.int() != 0,
        })
    }

    /// The value of an expression of a type.
    fn value(&mut self, value: &'a Expr, ty: Type) -> Result<Number, Fault> {
        match value {
            Expr::Literal(n) => Ok(ty.number(*n)),
            Expr::Axis(axis) => arithmetic::cast(Number::Int(self.axis(axis)?.into()), ty),
            Expr::Size(size) => arithmetic::cast(Number::Int(self.size(*size)?.into()), ty),
            Expr::Scalar(name) => self.element(name, &[])?.ok_or(Fault::Outside),
            Expr::Read(tensor, indices, or) => match (self.element(tensor, indices)?, or) {
                (Some(element), _) => Ok(element),
                (None, Some(or)) => self.value(or, ty),
                (None, None) => Err(Fault::Outside),
            },
            Expr::Unary(op, a) => arithmetic::unary(op, self.value(a, ty)?, ty),
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.value(a, ty)?, self.value(b, ty)?);
                arithmetic::binary(op, a, b, ty)
            }
            Expr::Fma(parts) => {
                let [a, b, c] = parts.as_ref();
                let product = arithmetic::binary("*", self.value(a, ty)?, self.value(b, ty)?, ty)?;
                arithmetic::binary("+", product, self.value(c, ty)?, ty)
            }
            Expr::Cast(from, a) => arithmetic::cast(self.value(a, *from)?, ty),
            Expr::If(c, a, b) => {
                if self.condition(c)? {
                    self.value(a, ty)
                } else {
                    self.value(b, ty)
                }
            }
            Expr::Test(c) => Ok(ty.number(i64::from(self.condition(c)?))),
            Expr::Reduce(r) => self.reduce(r, ty),
            // One element has one value.
            Expr::Tuple(_) => Err(Fault::Outside),
        }
    }
}
