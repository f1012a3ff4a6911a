//! Indices of a program, and its tensors' sizes and strides, as expressions.

use tilewright_kernel::algorithm::{Axis, AxisId, Index, IndexId, ValueId, is_read};
use tilewright_kernel::info::{ParameterKind, TensorParameter};
use tilewright_kernel::{Algorithm, ElementType};
use tilewright_sorted::SortedMap;

use super::Program;
use crate::extent::{Expr, Facts, Var};

/// The value of each axis in scope.
pub type Scope = SortedMap<AxisId, Expr>;

/// The size of each dimension of a tensor parameter.
pub fn shape(tensor: &TensorParameter, facts: &Facts) -> Vec<Expr> {
    tensor.shape.iter().map(|size| facts.normal(&Expr::from_size(size))).collect()
}

/// Strides of a tensor parameter in elements, as expressions.
pub fn strides(tensor: &TensorParameter, facts: &Facts) -> Vec<Expr> {
    if let Some(strides) = &tensor.strides {
        return strides.iter().map(|s| facts.normal(&Expr::from_size(s))).collect();
    }
    let mut strides = vec![Expr::constant(1); tensor.shape.len()];
    for d in (0..tensor.shape.len().saturating_sub(1)).rev() {
        strides[d] = facts.normal(&strides[d + 1].mul(&Expr::from_size(&tensor.shape[d + 1])));
    }
    strides
}

/// The tensor that a parameter is; none for a scalar.
pub fn tensor(program: &Program, parameter: u16) -> Option<&TensorParameter> {
    match &program.parameters.get(usize::from(parameter))?.kind {
        ParameterKind::Tensor(tensor) => Some(tensor),
        ParameterKind::Scalar => None,
    }
}

/// Element offset of an access.
pub fn offset(tensor: &TensorParameter, indices: &[Expr], facts: &Facts) -> Expr {
    strides(tensor, facts).iter().zip(indices).fold(Expr::constant(0), |sum, (s, i)| sum.add(&s.mul(i)))
}

/// The first value of an axis, and the end of its range; where memory decides these, those of a range that holds it.
pub fn range(program: &Program, axis: AxisId, facts: &Facts, scope: &Scope) -> (Expr, Expr) {
    let of = |axis: AxisId| scope.get(&axis).cloned().unwrap_or_else(Expr::unknown);
    let (lower, upper) = hull(&program.algorithm, &program.algorithm.axes[axis as usize], &of);
    (facts.normal(&lower), facts.normal(&upper))
}

/// The range of an axis whatever memory holds, with `of` for other axes.
pub fn hull(algorithm: &Algorithm, axis: &Axis, of: &dyn Fn(AxisId) -> Expr) -> (Expr, Expr) {
    let is_unsigned = |value| is_unsigned(&algorithm.types, value);
    let farthest = Farthest { indices: &algorithm.indices, of, is_unsigned: &is_unsigned };
    (farthest.end(axis.lower, false), farthest.end(axis.upper, true))
}

/// Whether a value has a type of integers without a sign.
pub fn is_unsigned(types: &[ElementType], value: ValueId) -> bool {
    types.get(value as usize).is_some_and(|ty| ty.is_integer() && !ty.is_signed_integer())
}

/// How far an index goes, whatever it reads from memory.
///
/// The two sides of a minimum or maximum bound each other: min(v, N) ≤ N, max(v, 0) ≥ 0. Sums and differences have the
/// ends of their parts, quotients by positive divisors those of what is divided, and a remainder is below its divisor.
pub struct Farthest<'a> {
    /// Indices of the algorithm, or of one under construction.
    pub indices: &'a [Index],
    /// The value of an axis.
    pub of: &'a dyn Fn(AxisId) -> Expr,
    /// Whether a value is of a type without a sign.
    pub is_unsigned: &'a dyn Fn(ValueId) -> bool,
}

impl Farthest<'_> {
    /// The greatest value, or the least; [`Expr::unknown`] if there is none.
    pub fn end(&self, id: IndexId, greatest: bool) -> Expr {
        let Some(&node) = self.indices.get(id as usize) else { return Expr::unknown() };
        let sides = match node {
            Index::Literal(c) => return Expr::constant(i128::from(c)),
            Index::Dim(d) => return Expr::var(Var::from(d)),
            Index::Axis(a) => return (self.of)(a),
            Index::Value(v) if !greatest && (self.is_unsigned)(v) => return Expr::constant(0),
            Index::Value(_) => return Expr::unknown(),
            _ => node.sides(),
        };
        let Some([a, b]) = sides else { return Expr::unknown() };
        let both =
            |a_greatest: bool, b_greatest: bool| of_sides(node, &self.end(a, a_greatest), &self.end(b, b_greatest));
        match node {
            Index::Sub(..) => both(greatest, !greatest),
            Index::Add(..) | Index::Div(..) => both(greatest, greatest),
            Index::Min(..) | Index::Max(..) => {
                let ends = [self.end(a, greatest), self.end(b, greatest)];
                match (ends.iter().position(Expr::is_unknown), matches!(node, Index::Min(..)) == greatest) {
                    // Of a minimum either side is a greatest value, and of a maximum a least one.
                    (Some(unknown), true) => ends[1 - unknown].clone(),
                    // Of 0 and a size 0 is the least. An expression does not know it: a variable may be an axis.
                    _ if ends[0].as_constant() == Some(0) && self.is_size(b) => {
                        ends[usize::from(matches!(node, Index::Max(..)))].clone()
                    }
                    _ if ends[1].as_constant() == Some(0) && self.is_size(a) => {
                        ends[usize::from(matches!(node, Index::Min(..)))].clone()
                    }
                    _ => of_sides(node, &ends[0], &ends[1]),
                }
            }
            _ if !is_read(self.indices, id) => both(greatest, greatest),
            Index::Mod(..) if greatest => self.end(b, false).sub(&Expr::constant(1)),
            Index::Mod(..) => Expr::constant(0),
            Index::Mul(..) => {
                let (factor, read) = if is_read(self.indices, a) { (b, a) } else { (a, b) };
                match self.end(factor, true).as_constant() {
                    Some(c) => self.end(read, greatest == (c >= 0)).scale(c),
                    // A size is at least 0.
                    None if self.is_size(factor) => self.end(read, greatest).mul(&self.end(factor, true)),
                    None => Expr::unknown(),
                }
            }
            _ => Expr::unknown(),
        }
    }

    fn is_size(&self, id: IndexId) -> bool {
        matches!(self.indices.get(id as usize), Some(Index::Dim(_)))
    }
}

/// Whether a range is empty for every size: what is inside is never there. All rooms leave out the same.
pub fn is_never((lower, upper): &(Expr, Expr)) -> bool {
    upper.sub(lower).as_constant().is_some_and(|extent| extent <= 0)
}

/// An index as an expression; [`Expr::unknown`] for one that is read from memory or whose axis has no expression.
pub fn index(program: &Program, id: IndexId, scope: &Scope) -> Expr {
    index_over(program, id, scope, &mut |_| Expr::unknown())
}

/// The same, with `of_memory` for what is read from memory.
pub fn index_over(program: &Program, id: IndexId, scope: &Scope, of_memory: &mut dyn FnMut(ValueId) -> Expr) -> Expr {
    match program.algorithm.indices[id as usize] {
        Index::Literal(c) => Expr::constant(i128::from(c)),
        Index::Dim(d) => Expr::var(Var::from(d)),
        Index::Axis(a) => scope.get(&a).cloned().unwrap_or_else(Expr::unknown),
        Index::Value(v) => of_memory(v),
        node => node.sides().map_or_else(Expr::unknown, |sides| {
            let [a, b] = sides.map(|side| index_over(program, side, scope, of_memory));
            of_sides(node, &a, &b)
        }),
    }
}

/// An index that is computed from two others as an expression, given theirs; [`Expr::unknown`] for another kind.
pub fn of_sides(node: Index, a: &Expr, b: &Expr) -> Expr {
    match node {
        Index::Add(..) => a.add(b),
        Index::Sub(..) => a.sub(b),
        Index::Mul(..) => a.mul(b),
        Index::Div(..) => a.floor_div(b),
        Index::Mod(..) => a.modulo(b),
        Index::Min(..) => a.minimum(b),
        Index::Max(..) => a.maximum(b),
        Index::Literal(_) | Index::Dim(_) | Index::Axis(_) | Index::Value(_) => Expr::unknown(),
    }
}
