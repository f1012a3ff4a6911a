//! Inputs of a run, and strides for its tensors.

use std::collections::BTreeMap;

use super::ast::{Dims, Extent, Kernel, Number, PITCHES, Reduction, Stride, Type};
use super::evaluate::{Tensor, points};
use crate::rng::Rng;

/// Sizes with a value for each stride that is told at launch: a little more than what it must hold.
pub(super) fn pitches(kernel: &Kernel, dims: &Dims, rng: &mut Rng) -> Dims {
    let mut all = dims.clone();
    for (n, pitch) in kernel.pitches.iter().enumerate() {
        let unit = pitch.of.and_then(|of| all.get(PITCHES[of]).copied()).unwrap_or(1);
        let least = unit * pitch.least.at(dims).max(1) + if rng.chance(60) { rng.range(0, 5) } else { 0 };
        all.insert(PITCHES[n], (least + pitch.divides - 1) / pitch.divides * pitch.divides);
    }
    all
}

/// A number of a type: from `-spread` to `spread` as far as it has them; without a spread any integer of integer types.
fn element(ty: Type, spread: Option<i64>, rng: &mut Rng) -> Number {
    match (ty.ends(), spread) {
        (Some((least, greatest)), None) => match rng.below(6) {
            0 => Number::Int(*rng.pick(&[least, greatest, least + 1, greatest - 1])),
            1 | 2 => Number::Int(ty.wrapped(rng.range(-9, 9).into())),
            _ => Number::Int(ty.wrapped(rng.bits().into())),
        },
        (Some(_), Some(spread)) => ty.number(rng.range(if ty.is_signed() { -spread } else { 0 }, spread)),
        (None, spread) => {
            let most = spread.unwrap_or(9).min(ty.exact() as i64);
            ty.number(rng.range(-most, most))
        }
    }
}

/// Inputs for some sizes, and what is updated in place.
pub(super) fn inputs(kernel: &Kernel, dims: &Dims, spread: Option<i64>, rng: &mut Rng) -> BTreeMap<String, Tensor> {
    let most = dims.values().copied().max().unwrap_or(1);
    let of = |shape: &[Extent]| -> Vec<i64> { shape.iter().map(|e| e.at(dims)).collect() };
    let mut all = BTreeMap::new();
    for input in &kernel.inputs {
        let shape = of(&input.shape);
        let count: i64 = shape.iter().product();
        let one = |rng: &mut Rng| match (input.indices, input.ty.ends()) {
            (true, Some((least, greatest))) => {
                // Mostly inside, sometimes outside, and sometimes far outside: anywhere, or where the low bits are
                // inside.
                let near = if rng.chance(30) { rng.range(-1, 4) } else { rng.range(-2, most + 1) };
                let n = match rng.below(100) {
                    0 => rng.bits() as i64,
                    1 => near + (rng.range(-4, 4) << rng.range(8, 40)),
                    _ => near,
                };
                Number::Int(i128::from(n).clamp(least, greatest))
            }
            _ => element(input.ty, spread, rng),
        };
        let mut data: Vec<Number> = match input.distinct {
            true => distinct(count, input.ty, rng),
            false => (0..count).map(|_| one(rng)).collect(),
        };
        // Along a stride of 0 there is one element.
        let zero = |n: usize| matches!(input.strides.get(n), Some(Stride::Extent(e)) if *e == Extent::literal(0));
        let first_of = |point: Vec<i64>| {
            let along = point.iter().zip(&shape).enumerate();
            along.fold(0, |at, (n, (i, size))| at * size + if zero(n) { 0 } else { *i }) as usize
        };
        let firsts: Vec<usize> = points(&shape).map(first_of).collect();
        firsts.into_iter().enumerate().for_each(|(at, first)| data[at] = data[first]);
        all.insert(input.name.clone(), Tensor { first: Vec::new(), shape, data });
    }
    for (name, ty, shape, _, _) in kernel.outputs().into_iter().filter(|d| d.4) {
        let shape = of(&shape);
        let count: i64 = shape.iter().product();
        let data = (0..count).map(|_| element(ty, spread, rng)).collect();
        all.insert(name, Tensor { first: Vec::new(), shape, data });
    }
    // Who launches the PTX fills what begins as nothing else.
    for equation in kernel.equations.iter().filter(|equation| !equation.in_place) {
        let Some(scatter) = &equation.scatter else { continue };
        let shape = of(&scatter.shape);
        let count: i64 = shape.iter().product();
        let empty = match (scatter.by, equation.ty.ends()) {
            (Some(Reduction::Max), Some((least, _))) => Number::Int(least),
            (Some(Reduction::Min), Some((_, greatest))) => Number::Int(greatest),
            _ => equation.ty.number(0),
        };
        let data = (0..count).map(|_| empty).collect();
        all.insert(equation.name.clone(), Tensor { first: Vec::new(), shape, data });
    }
    all
}

/// So many indices, no two of which are the same, in any order: most of them are inside.
fn distinct(count: i64, ty: Type, rng: &mut Rng) -> Vec<Number> {
    let first = if ty.is_signed() { rng.range(-2, 1) } else { rng.range(0, 2) };
    let mut left: Vec<i64> = (first..first + count).collect();
    (0..count).map(|_| Number::Int(left.swap_remove(rng.below(left.len())).into())).collect()
}
