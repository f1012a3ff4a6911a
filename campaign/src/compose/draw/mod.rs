//! Random equations: chains, diamonds, halos, strides, gathers and reductions, from outputs to what they read.
//!
//! An extent is whatever the readers drawn so far need, so that every read is inside its tensor by construction.

mod lower;
mod memory;
pub mod online;
mod planned;
mod read;
mod reduce;
mod scatter;
mod value;

use std::collections::BTreeMap;

use super::ast::{Equation, Expr, Extent, Input, Kernel, LETTERS, Reduction, Related, Relation, Type};
use super::plan;
use crate::rng::Rng;
use planned::{Planned, planned};

/// Axes with their extents.
type Axes = Vec<(String, Extent)>;

struct Draw<'a> {
    rng: &'a mut Rng,
    /// The type that most is computed in.
    ty: Type,
    /// What each tensor must have, by what reads it.
    needed: BTreeMap<String, Vec<Extent>>,
    /// Axes that tensors have, by letters.
    letters: BTreeMap<String, Vec<&'static str>>,
    /// Types that are decided.
    types: BTreeMap<String, Type>,
    /// Tensors of indices.
    indices: Vec<String>,
    /// Scalars that are passed by value.
    scalars: Vec<String>,
    /// Extents of the letters.
    sizes: [Extent; 4],
    /// Whether something must have an element.
    least: [i64; 3],
    /// Axes of the equation that begin below 0: nothing is read there without a value for what is outside.
    below: Vec<String>,
}

/// Types that kernels compute in, as often as they are drawn.
const TYPES: [Type; 23] = [
    Type::F32,
    Type::F32,
    Type::F32,
    Type::F32,
    Type::F32,
    Type::F32,
    Type::F32,
    Type::I32,
    Type::I32,
    Type::I32,
    Type::I32,
    Type::F16,
    Type::F16,
    Type::Bf16,
    Type::F64,
    Type::F64,
    Type::I64,
    Type::U32,
    Type::I16,
    Type::U8,
    Type::I8,
    Type::U64,
    Type::U16,
];

/// A random kernel.
pub fn kernel(rng: &mut Rng) -> Kernel {
    kernel_with(rng, 10, 6)
}

/// A random kernel, in which so many of a hundred times something follows something else in one pass, and so many of a
/// hundred times an output is a scatter.
pub fn kernel_with(rng: &mut Rng, online: u32, scattered: u32) -> Kernel {
    let ty = *rng.pick(&TYPES);
    let rank = *rng.pick(&[1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4]);
    let sizes: [Extent; 4] = std::array::from_fn(|n| match n {
        3 => Extent::literal(*rng.pick(&[1, 2, 3, 4, 6])),
        2 if rng.chance(60) => Extent::literal(*rng.pick(&[2, 3, 4, 5])),
        1 if rng.chance(15) => Extent::literal(*rng.pick(&[3, 4, 7, 8, 16, 32, 33, 64])),
        0 if rng.chance(8) => Extent::literal(*rng.pick(&[1, 2, 5, 8])),
        n => Extent::size(n),
    });
    let planned = planned(rng, &LETTERS[..rank], ty);
    let mut draw = Draw {
        rng,
        ty,
        needed: BTreeMap::new(),
        letters: BTreeMap::new(),
        types: BTreeMap::new(),
        indices: Vec::new(),
        scalars: Vec::new(),
        sizes,
        least: [0; 3],
        below: Vec::new(),
    };
    for p in &planned {
        for (name, ty) in p.targets() {
            draw.letters.insert(name.clone(), p.axes.clone());
            draw.types.insert(name, ty);
        }
        if p.output {
            let extents = p.axes.iter().map(|a| sizes[letter(a)]).collect();
            draw.needed.insert(p.name.to_owned(), extents);
        }
    }
    let mut equations = draw.equations(&planned);
    if draw.rng.chance(online) {
        draw.online(&mut equations);
    }
    let mut inputs = draw.inputs(&equations);
    if draw.rng.chance(scattered) {
        scatter::scatter(&mut equations, &mut inputs, draw.rng);
    }
    let mut least = draw.least;
    let rng = draw.rng;
    let mut most: [Option<i64>; 3] = [
        rng.chance(40).then(|| *rng.pick(&[4, 6, 8, 16])),
        rng.chance(55).then(|| *rng.pick(&[8, 12, 16, 32, 40, 64])),
        rng.chance(60).then(|| *rng.pick(&[3, 4, 8, 16])),
    ];
    let granule = 16 / ty.bytes() as i64;
    let mut divides = [
        *rng.pick(&[1, 1, 1, 1, 2, 4]),
        *rng.pick(&[1, 1, 1, granule, granule, granule, 2, 16]),
        *rng.pick(&[1, 1, 1, granule]),
    ];
    for n in 0..3 {
        most[n] = most[n].map(|m| m.max(divides[n]));
        if rng.chance(15) {
            least[n] = least[n].max(rng.range(1, 3));
        }
    }
    // Rows that the accelerator can copy.
    if rng.chance(60) {
        for input in &mut inputs {
            let granule = granule.max(16 / input.ty.bytes() as i64);
            if let Some(last) = input.shape.last_mut() {
                last.plus = (last.plus + granule - 1) / granule * granule;
            }
        }
    }
    let relation = rng.chance(8).then(|| related(&mut most, &mut divides, rng));
    told(&equations, &mut inputs, ty);
    let pitches = memory::strides(&mut inputs, &mut equations, ty, rng);
    let mut kernel = Kernel {
        ty,
        inputs,
        pitches,
        most,
        divides,
        least,
        relation,
        equations,
        launch: Vec::new(),
        units: Vec::new(),
        schedules: Vec::new(),
        tuned: Vec::new(),
        inlined: Vec::new(),
        tile: None,
    };
    kernel.tidy();
    lower::bounds(&mut kernel, rng);
    reduce::infer(&mut kernel, rng);
    plan::schedule(&mut kernel, rng);
    kernel
}

/// How two sizes are related; what else is said of the first must not contradict that.
fn related(most: &mut [Option<i64>; 3], divides: &mut [i64; 3], rng: &mut Rng) -> Relation {
    let of = rng.below(3);
    let by = (of + 1 + rng.below(2)) % 3;
    let to = Extent::size(by).reach(*rng.pick(&[1, 1, 1, 2, 3]), *rng.pick(&[0, 0, 0, 1, 2, 4]));
    divides[of] = 1;
    most[of] = most[of].zip(most[by]).map(|(own, other)| own.max(to.times[by] * other + to.plus));
    let how = *rng.pick(&[Related::Equal, Related::AtLeast, Related::Together]);
    if how == Related::Together {
        let plus = *rng.pick(&[6, 9, 12, 17, 32, 66]);
        most[of] = most[of].map(|_| plus);
        return Relation { how, of, to: Extent { plus, ..to } };
    }
    Relation { how, of, to }
}

/// Inputs that tell sizes which do not stand alone anywhere.
fn told(equations: &[Equation], inputs: &mut Vec<Input>, ty: Type) {
    let alone = |n: usize| {
        let outputs = equations.iter().filter(|e| e.output).flat_map(Equation::shape);
        inputs.iter().flat_map(|i| i.shape.iter().copied()).chain(outputs).any(|e| e.as_size() == Some(n))
    };
    let used = |n: usize| {
        let mut is_used = inputs.iter().any(|i| i.shape.iter().any(|s| s.times[n] != 0));
        for e in equations {
            is_used |= e.axes.iter().any(|a| a.1.times[n] != 0);
            is_used |= e.value.reductions().iter().any(|r| r.1.iter().any(|a| a.1.times[n] != 0));
            e.value.walk(&mut |part| is_used |= *part == Expr::Size(n));
        }
        is_used
    };
    let missing: Vec<usize> = (0..3).filter(|n| used(*n) && !alone(*n)).collect();
    inputs.extend(missing.into_iter().map(|n| Input::new(&format!("size{n}"), ty, vec![Extent::size(n)])));
}

fn letter(axis: &str) -> usize {
    usize::from(axis.as_bytes().first().map_or(0, |c| c.saturating_sub(b'i')))
}

impl Draw<'_> {
    /// Equations, those of readers first.
    fn equations(&mut self, planned: &[Planned]) -> Vec<Equation> {
        // Outputs whose axes correspond can share loops.
        let common = planned.iter().filter(|p| p.output).count() > 1 && self.rng.chance(80);
        let mut equations: Vec<Equation> = Vec::new();
        for p in planned {
            let Some(extents) = self.needed.get(p.name).cloned() else { continue };
            let axes: Axes = p.axes.iter().map(|a| (*a).to_owned()).zip(extents).collect();
            let mut reads: Vec<String> = Vec::new();
            for n in &p.reads {
                let targets = planned[*n].targets();
                reads.push(self.rng.pick(&targets).0.clone());
            }
            let mut equation = Equation::new(p.name, p.ty, axes, Expr::Literal(0), p.output);
            equation.in_place = p.in_place;
            equation.also = p.targets().split_off(1);
            equation.value = self.whole(p, &equation, &reads, p.output && common);
            if !p.beside.is_empty() {
                equation.value = self.tuple(p, &equation, &reads);
            }
            equation.ty = p.targets()[0].1;
            equations.push(equation);
        }
        equations
    }

    fn inputs(&mut self, equations: &[Equation]) -> Vec<Input> {
        let mut inputs: Vec<Input> = Vec::new();
        for (name, shape) in &self.needed {
            if equations.iter().any(|e| e.defines(name)) {
                continue;
            }
            let ty = self.types.get(name).copied().unwrap_or(self.ty);
            let indices = self.indices.contains(name);
            inputs.push(Input { indices, ..Input::new(name, ty, shape.clone()) });
        }
        for name in &self.scalars {
            let ty = self.types.get(name).copied().unwrap_or(self.ty);
            inputs.push(Input { by_value: true, ..Input::new(name, ty, Vec::new()) });
        }
        inputs
    }

    /// Whether a reduction asks for terms, which then must exist.
    fn demand_terms(&mut self, by: Reduction, extent: Extent) {
        if matches!(by, Reduction::Argmax | Reduction::Argmin)
            && let Some(size) = extent.as_size()
        {
            self.least[size] = 1;
        }
    }
}
