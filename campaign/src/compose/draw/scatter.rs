//! Outputs whose terms memory sends to their places.

use crate::compose::ast::{Equation, Extent, Index, Input, Reduction, Scatter, Type};
use crate::rng::Rng;

/// Types that memory has an instruction for.
const TYPES: [Type; 6] = [Type::F32, Type::F64, Type::I32, Type::I64, Type::U32, Type::U64];
/// Types of places.
const PLACES: [Type; 8] = [Type::I32, Type::I32, Type::I32, Type::U32, Type::I64, Type::U64, Type::U8, Type::I16];

/// Makes the terms of a scatter of what an output is, if that can be done to one that nothing reads.
pub(super) fn scatter(equations: &mut [Equation], inputs: &mut Vec<Input>, rng: &mut Rng) {
    let is_free = |n: &usize| {
        let of = &equations[*n];
        let plain = of.output && of.also.is_empty() && !of.in_place && !of.axes.is_empty();
        plain && TYPES.contains(&of.ty) && !equations.iter().any(|reader| reader.reads(of))
    };
    let free: Vec<usize> = (0..equations.len()).filter(is_free).collect();
    if free.is_empty() {
        return;
    }
    let equation = &mut equations[*rng.pick(&free)];
    let by = match rng.below(3) {
        1 if equation.ty.is_integer() => Reduction::Max,
        2 if equation.ty.is_integer() => Reduction::Min,
        _ => Reduction::UnorderedSum,
    };
    // At least one axis has terms for all of its values.
    let mut is_own: Vec<bool> = equation.axes.iter().map(|_| rng.chance(45)).collect();
    let bound = rng.below(is_own.len());
    is_own[bound] = false;
    let (own, bound): (Vec<_>, Vec<_>) = equation.axes.drain(..).zip(is_own).partition(|(_, is_own)| *is_own);
    let axes = |part: Vec<((String, Extent), bool)>| part.into_iter().map(|(axis, _)| axis);
    let (own, bound): (Vec<_>, Vec<_>) = (axes(own).collect(), axes(bound).collect());
    let mut shape: Vec<Extent> = own.iter().map(|axis| axis.1).collect();
    let mut places: Vec<Index> = own.iter().map(|axis| Index::Axis(axis.0.clone(), 1, 0)).collect();
    for n in 0..if rng.chance(20) { 2 } else { 1 } {
        let at = rng.below(places.len() + 1);
        let of = rng.below(bound.len());
        let all: Vec<&(String, Extent)> = own
            .iter()
            .chain(&bound)
            .enumerate()
            .filter(|(k, _)| *k == own.len() + of || rng.chance(25))
            .map(|a| a.1)
            .collect();
        let ty = *rng.pick(&PLACES);
        let name = format!("p{n}");
        inputs.push(Input { indices: true, ..Input::new(&name, ty, all.iter().map(|axis| axis.1).collect()) });
        let read = Index::Gather(name, all.iter().map(|axis| Index::Axis(axis.0.clone(), 1, 0)).collect(), None);
        places.insert(
            at,
            match rng.below(8) {
                0 if ty.bytes() < 8 => Index::Affine(Box::new(read), rng.range(1, 2), rng.range(-2, 2)),
                1 => Index::Over(Box::new(read), Extent::literal(rng.range(2, 5)), rng.chance(50)),
                _ => read,
            },
        );
        shape.insert(at, Extent::literal(*rng.pick(&[1, 2, 3, 5, 8, 33])));
    }
    equation.axes = own.iter().chain(&bound).cloned().collect();
    (equation.in_place, equation.scatter) = (true, Some(Scatter { by, shape, places, bound: bound.len() }));
}
