//! Indices of a program, and its tensors' strides, as expressions.

use tilewright_kernel::algorithm::{AxisId, Index, IndexId};
use tilewright_kernel::info::{ParameterKind, TensorParameter};
use tilewright_sorted::SortedMap;

use super::Program;
use crate::extent::{Expr, Facts, Var};

/// The value of each axis in scope.
pub type Scope = SortedMap<AxisId, Expr>;

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

/// The first value of an axis, and the end of its range.
pub fn range(program: &Program, axis: AxisId, facts: &Facts, scope: &Scope) -> (Expr, Expr) {
    let declared = &program.algorithm.axes[axis as usize];
    let bound = |id| facts.normal(&index(program, id, scope));
    (bound(declared.lower), bound(declared.upper))
}

/// Whether a range is empty for every size: what is inside is never there. All rooms leave out the same.
pub fn is_never((lower, upper): &(Expr, Expr)) -> bool {
    upper.sub(lower).as_constant().is_some_and(|extent| extent <= 0)
}

/// An index as an expression; [`Expr::unknown`] for one that is read from memory or whose axis has no expression.
pub fn index(program: &Program, id: IndexId, scope: &Scope) -> Expr {
    match program.algorithm.indices[id as usize] {
        Index::Literal(c) => Expr::constant(i128::from(c)),
        Index::Dim(d) => Expr::var(Var::from(d)),
        Index::Axis(a) => scope.get(&a).cloned().unwrap_or_else(Expr::unknown),
        node => node.sides().map_or_else(Expr::unknown, |sides| {
            let [a, b] = sides.map(|side| index(program, side, scope));
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
