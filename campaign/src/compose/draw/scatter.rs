//! Outputs whose terms memory sends to their places.

use crate::compose::ast::{Equation, Extent, Index, Input, Reduction, Scatter, Type};
use crate::rng::Rng;

/// Types that memory has an instruction for.
const TYPES: [Type; 6] = [Type::F32, Type::F64, Type::I32, Type::I64, Type::U32, Type::U64];
/// Types of places.
const PLACES: [Type; 8] = [Type::I32, Type::I32, Type::I32, Type::U32, Type::I64, Type::U64, Type::U8, Type::I16];

/// Types of places that are distinct: there are as many of them as terms.
const DISTINCT: [Type; 4] = [Type::I32, Type::I32, Type::U32, Type::I64];
/// Extents of dimensions that memory gives the index of.
const EXTENTS: [i64; 6] = [1, 2, 3, 5, 8, 33];

/// Makes the terms of a scatter of what an output is, if that can be done to one that nothing reads.
pub(super) fn scatter(equations: &mut [Equation], inputs: &mut Vec<Input>, rng: &mut Rng) {
    let is_only = rng.chance(30);
    let is_free = |n: &usize| {
        let of = &equations[*n];
        let plain = of.output && of.also.is_empty() && !of.in_place && !of.axes.is_empty();
        plain && (is_only || TYPES.contains(&of.ty)) && !equations.iter().any(|reader| reader.reads(of))
    };
    let free: Vec<usize> = (0..equations.len()).filter(is_free).collect();
    if free.is_empty() {
        return;
    }
    let equation = &mut equations[*rng.pick(&free)];
    let by = match rng.below(3) {
        _ if is_only => None,
        1 if equation.ty.is_integer() => Some(Reduction::Max),
        2 if equation.ty.is_integer() => Some(Reduction::Min),
        _ => Some(Reduction::UnorderedSum),
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
    if is_only {
        let (at, place, input) = distinct(&own, &bound, rng);
        inputs.push(input);
        places.insert(at, place);
        shape.insert(at, Extent::literal(*rng.pick(&EXTENTS)));
    } else {
        for n in 0..if rng.chance(20) { 2 } else { 1 } {
            let (at, place, read) = any(n, (&own, &bound), places.len(), rng);
            inputs.extend(read);
            places.insert(at, place);
            shape.insert(at, Extent::literal(*rng.pick(&EXTENTS)));
        }
    }
    equation.axes = own.iter().chain(&bound).cloned().collect();
    equation.in_place = rng.chance(50);
    equation.scatter = Some(Scatter { by, shape, places, bound: bound.len() });
}

type Axes<'a> = &'a [(String, Extent)];

fn read(name: &str, axes: &[&(String, Extent)]) -> Index {
    Index::Gather(name.to_owned(), axes.iter().map(|axis| Index::Axis(axis.0.clone(), 1, 0)).collect(), None)
}

fn of_indices(name: &str, ty: Type, axes: &[&(String, Extent)]) -> Input {
    Input { indices: true, ..Input::new(name, ty, axes.iter().map(|axis| axis.1).collect()) }
}

/// A place that memory gives, anywhere among so many, of some axes, with what is read for it.
fn any(n: usize, (own, bound): (Axes<'_>, Axes<'_>), places: usize, rng: &mut Rng) -> (usize, Index, Vec<Input>) {
    let at = rng.below(places + 1);
    let of = rng.below(bound.len());
    let all: Vec<&(String, Extent)> = own
        .iter()
        .chain(bound)
        .enumerate()
        .filter(|(k, _)| *k == own.len() + of || rng.chance(25))
        .map(|a| a.1)
        .collect();
    let ty = *rng.pick(&PLACES);
    let name = format!("p{n}");
    let mut inputs = vec![of_indices(&name, ty, &all)];
    let mut read = read(&name, &all);
    if rng.chance(20) {
        // A table says where the numbers of another one lead.
        let (table, ty) = (format!("t{n}"), *rng.pick(&PLACES));
        let or = if ty.is_signed() { rng.range(-1, 1) } else { rng.range(0, 1) };
        let entries = ("t".to_owned(), Extent::literal(*rng.pick(&EXTENTS)));
        inputs.push(of_indices(&table, ty, &[&entries]));
        read = Index::Gather(table, vec![read], Some(or));
    }
    let place = match rng.below(8) {
        0 if inputs.iter().all(|input| input.ty.bytes() < 8) => {
            Index::Affine(Box::new(read), rng.range(1, 2), rng.range(-2, 2))
        }
        1 => Index::Over(Box::new(read), Extent::literal(rng.range(2, 5)), rng.chance(50)),
        _ => read,
    };
    (at, place, inputs)
}

/// The place that no two terms have in common: of all axes that are no indices, and some of the others.
fn distinct(own: Axes<'_>, bound: Axes<'_>, rng: &mut Rng) -> (usize, Index, Input) {
    let some: Vec<&(String, Extent)> = own.iter().filter(|_| rng.chance(25)).collect();
    let all: Vec<&(String, Extent)> = some.into_iter().chain(bound).collect();
    let (at, ty) = (rng.below(own.len() + 1), *rng.pick(&DISTINCT));
    let read = read("p0", &all);
    // Not where numbers come together: another place for each number.
    let place = match rng.below(6) {
        0 if ty.bytes() < 8 => Index::Affine(Box::new(read), rng.range(1, 2), rng.range(-2, 2)),
        _ => read,
    };
    (at, place, Input { distinct: true, ..of_indices("p0", ty, &all) })
}
