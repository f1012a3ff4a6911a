//! Strides of tensors.

use crate::compose::ast::{Equation, Extent, Input, PITCHES, Pitch, Stride, Type};
use crate::rng::Rng;

/// Gives some tensors strides, so that no two elements share a place, but those of inputs along a stride of 0.
pub(super) fn strides(inputs: &mut [Input], equations: &mut [Equation], ty: Type, rng: &mut Rng) -> Vec<Pitch> {
    let mut pitches = Vec::new();
    for input in inputs.iter_mut().filter(|i| !i.by_value && !i.name.starts_with("size")) {
        if rng.chance(8) {
            input.strides = one(&input.shape, input.ty, &mut pitches, rng);
            // One row for all.
            if input.strides.len() > 1 && rng.chance(12) {
                let along = rng.below(input.strides.len());
                input.strides[along] = Stride::Extent(Extent::literal(0));
            }
        }
    }
    for equation in equations.iter_mut().filter(|e| e.output) {
        if rng.chance(8) {
            let shape = equation.shape();
            equation.strides = one(&shape, ty, &mut pitches, rng);
        }
    }
    pitches
}

fn one(shape: &[Extent], ty: Type, pitches: &mut Vec<Pitch>, rng: &mut Rng) -> Vec<Stride> {
    if shape.is_empty() || pitches.len() + shape.len() > PITCHES.len() {
        return Vec::new();
    }
    // Dense rows, but that strides are written.
    if rng.chance(8) && shape.len() == 2 {
        return vec![Stride::Extent(shape[1]), Stride::Extent(Extent::literal(1))];
    }
    // Which dimension is the innermost one, and so on.
    let mut order: Vec<usize> = (0..shape.len()).rev().collect();
    if rng.chance(25) {
        order.reverse();
    } else if shape.len() > 2 && rng.chance(25) {
        order.swap(0, 1);
    }
    let first = match shape.len() {
        1 => *rng.pick(&[1, 2, 3]),
        _ => *rng.pick(&[1, 1, 1, 1, 1, 1, 2]),
    };
    let mut strides = vec![Stride::Extent(Extent::literal(first)); shape.len()];
    let (mut of, mut least) = (None, shape[order[0]].reach(first, 0));
    if shape.len() == 1 && rng.chance(40) {
        pitches.push(Pitch { of: None, least: Extent::literal(1), divides: 1, told: rng.chance(20) });
        return vec![Stride::Pitch(pitches.len() - 1)];
    }
    let granule = (16 / ty.bytes() as i64).max(1);
    for dimension in order.into_iter().skip(1) {
        // One that another tensor has as well.
        if of.is_none()
            && rng.chance(60)
            && let Some(known) = pitches.iter().position(|p| p.of.is_none())
        {
            pitches[known].least = pitches[known].least.join(least);
            (of, least) = (Some(known), shape[dimension]);
            strides[dimension] = Stride::Pitch(known);
            continue;
        }
        let divides = *rng.pick(&[1, 1, granule, granule, granule, 2]);
        pitches.push(Pitch { of, least, divides, told: rng.chance(35) });
        of = Some(pitches.len() - 1);
        least = shape[dimension];
        strides[dimension] = Stride::Pitch(pitches.len() - 1);
    }
    strides
}
