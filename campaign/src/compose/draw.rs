//! Random equations: chains, diamonds, halos, strides, gathers and reductions, from outputs to what they read.
//!
//! An extent is whatever the readers drawn so far need, so that every read is inside its tensor by construction.

use std::collections::BTreeMap;

use super::ast::{Equation, Expr, Extent, Index, Input, Kernel, Reduction, Type};
use super::plan;
use crate::rng::Rng;

/// The tensors that are not inputs, as they are decided before their equations are drawn.
struct Planned {
    name: &'static str,
    /// Its axes, by letters.
    axes: Vec<&'static str>,
    output: bool,
    /// The axis that its equation reduces over.
    reduces: Option<&'static str>,
    /// Numbers of intermediates that it reads.
    reads: Vec<usize>,
}

struct Draw<'a> {
    rng: &'a mut Rng,
    /// What each tensor must have, by what reads it.
    needed: BTreeMap<String, Vec<Extent>>,
    /// Axes that tensors have, by letters.
    letters: BTreeMap<String, Vec<&'static str>>,
    indices: Vec<String>,
    /// Whether something must have an element.
    least: [i64; 3],
}

/// A random kernel.
pub fn kernel(rng: &mut Rng) -> Kernel {
    let ty = *rng.pick(&[Type::F32, Type::F32, Type::F32, Type::I32, Type::I32, Type::F16]);
    let rank = *rng.pick(&[1, 2, 2, 2, 2, 2, 3]);
    let all = ["i", "j", "k"];
    let sizes: [Extent; 3] = std::array::from_fn(|n| match n {
        2 if rng.chance(60) => Extent::literal(*rng.pick(&[2, 3, 4, 5])),
        1 if rng.chance(15) => Extent::literal(*rng.pick(&[3, 4, 7, 8, 16, 32, 33, 64])),
        0 if rng.chance(8) => Extent::literal(*rng.pick(&[1, 2, 5, 8])),
        n => Extent::size(n),
    });
    let planned = planned(rng, &all[..rank]);
    let mut draw = Draw { rng, needed: BTreeMap::new(), letters: BTreeMap::new(), indices: Vec::new(), least: [0; 3] };
    for p in &planned {
        draw.letters.insert(p.name.to_owned(), p.axes.clone());
        if p.output {
            let extents = p.axes.iter().map(|a| sizes[letter(a)]).collect();
            draw.needed.insert(p.name.to_owned(), extents);
        }
    }
    // Outputs whose axes correspond can share loops.
    let common = planned.iter().filter(|p| p.output).count() > 1 && draw.rng.chance(80);
    let mut equations: Vec<Equation> = Vec::new();
    for p in &planned {
        let Some(extents) = draw.needed.get(p.name).cloned() else { continue };
        let axes: Vec<(String, Extent)> = p.axes.iter().map(|a| (*a).to_owned()).zip(extents).collect();
        let reads: Vec<&str> = p.reads.iter().map(|n| planned[*n].name).collect();
        let value = draw.value(&axes, p.reduces.map(|a| (a, sizes[letter(a)])), &reads, p.output && common);
        equations.push(Equation { name: p.name.to_owned(), axes, value, output: p.output });
    }
    let (needed, indices, mut least) = (draw.needed, draw.indices, draw.least);
    let names: Vec<String> = equations.iter().map(|e| e.name.clone()).collect();
    let mut inputs: Vec<Input> = (needed.into_iter())
        .filter(|(name, _)| !names.contains(name))
        .map(|(name, shape)| Input { indices: indices.contains(&name), name, shape })
        .collect();
    let mut most: [Option<i64>; 3] = [
        rng.chance(40).then(|| *rng.pick(&[4, 6, 8, 16])),
        rng.chance(55).then(|| *rng.pick(&[8, 12, 16, 32, 40, 64])),
        rng.chance(60).then(|| *rng.pick(&[3, 4, 8, 16])),
    ];
    let granule = 16 / ty.bytes() as i64;
    let divides = [
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
            if let Some(last) = input.shape.last_mut() {
                last.plus = (last.plus + granule - 1) / granule * granule;
            }
        }
    }
    // A size must stand alone somewhere.
    let alone = |n: usize| {
        let outputs = equations.iter().filter(|e| e.output).flat_map(|e| e.axes.iter().map(|a| a.1));
        inputs.iter().flat_map(|i| i.shape.iter().copied()).chain(outputs).any(|e| e.as_size() == Some(n))
    };
    let reduced = |n: usize| {
        let of = |e: &Equation| e.value.reductions().iter().any(|r| r.1.iter().any(|a| a.1.times[n] != 0));
        equations.iter().any(|e| of(e) || e.axes.iter().any(|a| a.1.times[n] != 0))
            || inputs.iter().any(|i| i.shape.iter().any(|s| s.times[n] != 0))
    };
    let more: Vec<Input> = (0..3)
        .filter(|n| reduced(*n) && !alone(*n))
        .map(|n| Input { name: format!("size{n}"), shape: vec![Extent::size(n)], indices: false })
        .collect();
    inputs.extend(more);
    let mut kernel = Kernel {
        ty,
        inputs,
        most,
        divides,
        least,
        equations,
        launch: Vec::new(),
        units: Vec::new(),
        schedules: Vec::new(),
        inlined: Vec::new(),
    };
    kernel.tidy();
    plan::schedule(&mut kernel, rng);
    kernel
}

fn letter(axis: &str) -> usize {
    usize::from(axis.as_bytes().first().map_or(0, |c| c.saturating_sub(b'i')))
}

/// Which tensors there are, and who reads whom: each intermediate is read by one or two of those in front of it.
fn planned(rng: &mut Rng, axes: &[&'static str]) -> Vec<Planned> {
    let mut list: Vec<Planned> = Vec::new();
    let outputs = if rng.chance(28) { 2 } else { 1 };
    for name in &["y", "z"][..outputs] {
        let mut own = axes.to_vec();
        let mut reduces = None;
        if own.len() > 1 && rng.chance(if *name == "y" { 22 } else { 35 }) {
            reduces = if rng.chance(80) { own.pop() } else { Some(own.remove(0)) };
        }
        list.push(Planned { name, axes: own, output: true, reduces, reads: Vec::new() });
    }
    let count = *rng.pick(&[0, 1, 1, 1, 2, 2, 2, 3]);
    for name in &["t", "u", "s"][..count] {
        let mut own = axes.to_vec();
        let mut reduces = None;
        if rng.chance(35) {
            if own.len() > 1 {
                reduces = if rng.chance(80) { own.pop() } else { Some(own.remove(0)) };
            } else {
                reduces = Some("j");
            }
        }
        let at = list.len();
        list.push(Planned { name, axes: own, output: false, reduces, reads: Vec::new() });
        let reader = if rng.chance(60) { at - 1 } else { rng.below(at) };
        list[reader].reads.push(at);
        if rng.chance(35) {
            let other = rng.below(at);
            if !list[other].reads.contains(&at) {
                list[other].reads.push(at);
            }
        }
    }
    list
}

impl Draw<'_> {
    fn need(&mut self, tensor: &str, dimension: usize, extent: Extent) {
        let known = self.needed.entry(tensor.to_owned()).or_default();
        while known.len() <= dimension {
            known.push(Extent::literal(1));
        }
        known[dimension] = known[dimension].join(extent);
    }

    fn value(
        &mut self,
        axes: &[(String, Extent)],
        reduces: Option<(&str, Extent)>,
        reads: &[&str],
        common: bool,
    ) -> Expr {
        let mut around = axes.to_vec();
        around.extend(reduces.map(|(a, e)| (a.to_owned(), e)));
        let mut terms: Vec<Expr> = Vec::new();
        for tensor in reads {
            for n in 0..*self.rng.pick(&[1, 1, 2, 2, 3]) {
                let plain = n == 0 && self.rng.chance(65);
                terms.push(self.read(tensor, &around, plain));
            }
        }
        if common {
            let tensor = if around.len() >= 3 { "x3" } else { "x" };
            let own: &[&'static str] = if around.len() >= 3 { &["i", "j", "k"] } else { &["i", "j"] };
            self.letters.entry(tensor.to_owned()).or_insert_with(|| own.to_vec());
            terms.push(self.read(tensor, &around, true));
        }
        let others = if terms.is_empty() { *self.rng.pick(&[1, 1, 2, 3]) } else { *self.rng.pick(&[0, 0, 1, 1, 2]) };
        for _ in 0..others {
            let tensor = self.input(&around);
            let plain = self.rng.chance(25);
            terms.push(self.read(tensor, &around, plain));
        }
        if self.rng.chance(8) {
            terms.push(Expr::Literal(self.rng.range(-3, 3)));
        }
        if self.rng.chance(6) {
            let axis = self.rng.pick(&around).0.clone();
            terms.push(Expr::Axis(axis));
        }
        let mut value = terms.pop().unwrap_or(Expr::Literal(1));
        while let Some(next) = terms.pop() {
            let op = *self.rng.pick(&["+", "+", "+", "-", "-", "max", "min", "*"]);
            let (a, b) = if self.rng.chance(50) { (value, next) } else { (next, value) };
            value = match self.rng.below(14) {
                0 => Expr::If(self.rng.pick(&around).0.clone(), self.rng.range(1, 6), Box::new(a), Box::new(b)),
                1 => Expr::Above(Box::new(a.clone()), self.rng.range(-2, 2), Box::new(a), Box::new(b)),
                _ => Expr::Binary(op, Box::new(a), Box::new(b)),
            };
        }
        let Some((axis, extent)) = reduces else { return value };
        let by = *self.rng.pick(&[
            Reduction::Sum,
            Reduction::Sum,
            Reduction::Sum,
            Reduction::Max,
            Reduction::Min,
            Reduction::Argmax,
            Reduction::Argmin,
            Reduction::Fold,
            Reduction::Last,
            Reduction::OrderedSum,
            Reduction::Any,
        ]);
        if matches!(by, Reduction::Argmax | Reduction::Argmin)
            && let Some(size) = extent.as_size()
        {
            self.least[size] = 1;
        }
        let reduced = Expr::Reduce(by, vec![(axis.to_owned(), extent)], Box::new(value));
        // A value beside what is reduced, of the axes outside.
        if matches!(by, Reduction::Fold | Reduction::Last) || !self.rng.chance(25) {
            return reduced;
        }
        let tensor = self.input(axes);
        let beside = self.read(tensor, axes, false);
        Expr::Binary("+", Box::new(reduced), Box::new(beside))
    }

    /// An input that fits some axes, mostly.
    fn input(&mut self, axes: &[(String, Extent)]) -> &'static str {
        let names: &[&str] = if axes.len() >= 3 { &["x3", "x3", "x", "v"] } else { &["x", "x", "x", "w", "v", "c"] };
        let name = *self.rng.pick(names);
        let own: &[&'static str] = match name {
            "x3" => &["i", "j", "k"],
            "v" => &["j"],
            "c" => &["i"],
            _ => &["i", "j"],
        };
        self.letters.entry(name.to_owned()).or_insert_with(|| own.to_vec());
        name
    }

    /// An element of a tensor; a plain one is at the axes themselves, so that they correspond.
    fn read(&mut self, tensor: &str, axes: &[(String, Extent)], plain: bool) -> Expr {
        let mut own = self.letters.get(tensor).cloned().unwrap_or_default();
        let stored = !plain && self.indices.is_empty() && self.rng.chance(5);
        if !plain && self.rng.chance(3) {
            own.reverse();
        }
        let outside = stored || !plain && self.rng.chance(15);
        let (mut indices, mut or) = (Vec::new(), outside);
        for (dimension, letter) in own.iter().enumerate() {
            let found = axes.iter().find(|a| a.0 == *letter).or_else(|| axes.get(dimension)).cloned();
            let Some((axis, extent)) = found.filter(|_| plain || !self.rng.chance(2)) else {
                let at = self.rng.range(0, 2);
                self.need(tensor, dimension, Extent::literal(at + 1));
                indices.push(Index::Literal(at));
                continue;
            };
            if stored && dimension == 0 {
                let name = "p".to_owned();
                self.need(&name, 0, extent);
                self.indices.push(name.clone());
                indices.push(Index::Gather(name, vec![Index::Axis(axis, 1, 0)]));
                // Rows to point at.
                self.need(tensor, dimension, extent);
                continue;
            }
            let plus = if plain { 0 } else { *self.rng.pick(&[0, 0, 0, 1, 1, 1, 2, 3]) };
            if outside {
                // Anywhere: what is outside has a value.
                let plus = *self.rng.pick(&[0, 0, -1, -2, 1, 2]);
                let factor = if self.rng.chance(6) { 2 } else { 1 };
                self.need(tensor, dimension, extent);
                indices.push(Index::Axis(axis, factor, plus));
                continue;
            }
            let (index, reach) = match self.rng.below(if plain { 1 } else { 40 }) {
                0 if plain => (Index::Axis(axis, 1, 0), extent),
                0 | 1 => (Index::Axis(axis, 2, plus), extent.reach(2, plus)),
                2 => (Index::Axis(axis, 3, 0), extent.reach(3, 0)),
                3 => (Index::Quotient(axis, 2, false), extent),
                4 => (Index::Quotient(axis, 4, true), Extent::literal(4)),
                5 | 6 if extent.as_size().is_some() => {
                    let size = extent.as_size().unwrap_or(0);
                    (Index::Mirrored(axis, size), extent)
                }
                _ => (Index::Axis(axis, 1, plus), extent.reach(1, plus)),
            };
            self.need(tensor, dimension, reach);
            indices.push(index);
        }
        or |= indices.iter().any(|i| matches!(i, Index::Gather(..)));
        let or = or.then(|| self.rng.range(-2, 2));
        Expr::Read(tensor.to_owned(), indices, or)
    }
}
