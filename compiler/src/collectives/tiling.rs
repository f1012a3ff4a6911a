//! The same nests in closed form: how a thread computes from its number which iterations are its own. Guards are
//! emitted from this; the sets decide what is right.

use super::nest::{Bind, LoopFault, Nest, joined};
use super::unit::Typing;
use super::{Shape, ThreadSet};

/// A loop along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Position of the loop in the nest.
    pub step: usize,
    /// Where its first iteration begins, in coordinates of what is around.
    pub offset: u64,
    /// Coordinates of one iteration.
    pub size: u64,
    /// Its iterations.
    pub tiles: u64,
}

/// A dimension of a thread's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    /// Its extent.
    pub extent: u64,
    /// Threads between neighbours.
    pub pitch: u64,
    /// Its loops, outermost first.
    pub ops: Vec<Op>,
}

impl Dim {
    /// Coordinates of one iteration of its innermost loop.
    pub fn narrowed(&self) -> u64 {
        self.ops.last().map_or(self.extent, |op| op.size)
    }

    /// As two: the blocks of `factor` coordinates, and what is inside a block. Loops over whole blocks go outward,
    /// others inward.
    ///
    /// The rule as published lacks a premise, without which a unit is seen in what is smaller: what goes inward must be
    /// inside one block (docs/theory.md, Collectives).
    fn split(&self, factor: u64) -> Result<[Self; 2], usize> {
        let (mut outer, mut inner): (Vec<Op>, Vec<Op>) = self.ops.iter().copied().partition(|op| op.size >= factor);
        for op in &mut outer {
            if op.size % factor != 0 || op.offset % factor != 0 {
                return Err(op.step);
            }
            (op.size, op.offset) = (op.size / factor, op.offset / factor);
        }
        let blocks = outer.last().map_or(self.extent / factor, |op| op.size);
        if let Some(op) = inner.first_mut().filter(|_| blocks != 1) {
            return Err(op.step);
        }
        let (extent, pitch) = (self.extent / factor, self.pitch * factor);
        Ok([Self { extent, pitch, ops: outer }, Self { extent: factor, pitch: self.pitch, ops: inner }])
    }
}

/// A nest in closed form: for iterators σ the threads are a product of intervals, in each dimension [x, x + size) with
/// x the sum of offset + σ · size over its loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// The dimensions, outermost first; none has extent 1.
    pub dims: Vec<Dim>,
    /// Loops that narrow nothing, whose only iteration every thread runs.
    pub trivial: Vec<usize>,
}

/// The loop for which there is no closed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoClosedForm {
    /// It cannot stand there, whatever the form.
    Loop(usize, LoopFault),
    /// It ends inside a block of a dimension that the loop at the second position needs.
    Inexact(usize, usize),
}

impl Tiling {
    /// The place outside of all loops.
    pub fn top(shape: Shape) -> Self {
        let dims = [(shape.cluster(), shape.block()), (shape.block(), 1)];
        let dims = dims.into_iter().filter(|d| d.0 > 1).map(|(extent, pitch)| Dim { extent, pitch, ops: Vec::new() });
        Self { dims: dims.collect(), trivial: Vec::new() }
    }

    /// The closed form of a nest.
    ///
    /// # Errors
    /// A loop of the nest for which the rule of splits is too weak, though its sets are right.
    pub fn of(nest: &Nest) -> Result<Self, NoClosedForm> {
        let steps = nest.steps().iter().map(|s| &s.bind).enumerate();
        steps.into_iter().try_fold(Self::top(nest.shape()), |tiling, (at, bind)| tiling.inside(nest.shape(), at, bind))
    }

    /// The place inside one more loop, which can stand there.
    fn inside(mut self, shape: Shape, at: usize, bind: &Bind) -> Result<Self, NoClosedForm> {
        let fault = |fault| NoClosedForm::Loop(at, fault);
        let own = bind.unit.typed(shape, Typing::Agnostic).map_err(|f| fault(LoopFault::Unit(f)))?;
        let pitches: Vec<u64> = self.dims.iter().map(|d| d.pitch).collect();
        let chain = joined(&pitches, &own.pitches()).map_err(fault)?;
        let uneven = |u: super::types::Uneven| fault(LoopFault::Uneven { part: u.part, pitch: u.pitch });
        let own = own.completed(&chain).map_err(uneven)?;
        let mut dims = Vec::new();
        for mut dim in self.dims {
            let inside = chain.iter().copied().filter(|p| *p > dim.pitch && *p < dim.pitch * dim.extent);
            for pitch in inside.collect::<Vec<_>>() {
                let [outer, inner] =
                    dim.split(pitch / dim.pitch).map_err(|culprit| NoClosedForm::Inexact(culprit, at))?;
                dims.push(outer);
                dim = inner;
            }
            dims.push(dim);
        }
        let narrows = |(dim, own): (&Dim, &super::types::TypeDim)| {
            own.part.is_some_and(|part| part != dim.narrowed() && part != dim.extent)
        };
        let tiled: Vec<usize> = (0..dims.len()).filter(|n| narrows((&dims[*n], &own.dims[*n]))).collect();
        match tiled[..] {
            [] => self.trivial.push(at),
            [one] => {
                let part = own.dims[one].part.unwrap_or(1);
                let Bind { low, high, tiles, .. } = *bind;
                if high * part > dims[one].narrowed() {
                    let most = dims[one].narrowed() / part;
                    return Err(fault(LoopFault::TooMany { asked: high, most }));
                }
                dims[one].ops.push(Op { step: at, offset: low * part, size: part * (high - low) / tiles, tiles });
            }
            _ => {
                let pitches = tiled.iter().map(|t| dims[*t].pitch).collect();
                return Err(fault(LoopFault::Ambiguous { pitches, neighbours: own.neighbours() }));
            }
        }
        self.dims = dims;
        Ok(self)
    }

    /// How each loop is found from a thread's number, dimension by dimension, a loop after those around it.
    pub fn selectors(&self) -> Vec<Selector> {
        let mut all = Vec::new();
        for (n, dim) in self.dims.iter().enumerate() {
            let mut from = Origin::Number { pitch: dim.pitch, extent: (n > 0).then_some(dim.extent) };
            let mut around = dim.extent;
            for op in &dim.ops {
                let ends = op.offset + op.size * op.tiles;
                let below = (op.offset > 0).then_some(op.offset);
                let above = (ends < around).then_some(op.tiles);
                all.push(Selector { step: op.step, from, offset: op.offset, size: op.size, below, above });
                from = Origin::Rest { of: op.step, modulo: (op.tiles > 1).then_some(op.size) };
                around = op.size;
            }
        }
        all
    }

    /// The iterators of the loops for one thread, as the guards compute them; none if they keep it out.
    pub fn select(&self, thread: u64) -> Option<Vec<u64>> {
        let selectors = self.selectors();
        let steps = selectors.len() + self.trivial.len();
        let (mut values, mut rests) = (vec![0; steps], vec![0; steps]);
        for selector in &selectors {
            let at = match selector.from {
                Origin::Number { pitch, extent } => extent.map_or(thread / pitch, |extent| thread / pitch % extent),
                Origin::Rest { of, modulo } => modulo.map_or(rests[of], |modulo| rests[of] % modulo),
            };
            if selector.below.is_some_and(|least| at < least) {
                return None;
            }
            let rest = at - selector.offset;
            values[selector.step] = rest / selector.size;
            if selector.above.is_some_and(|tiles| values[selector.step] >= tiles) {
                return None;
            }
            rests[selector.step] = rest;
        }
        Some(values)
    }

    /// The threads of one combination of iterators, by the product of intervals.
    pub fn threads(&self, values: &[u64]) -> ThreadSet {
        let mut threads = vec![0];
        for dim in &self.dims {
            let start: u64 = dim.ops.iter().map(|op| op.offset + values[op.step] * op.size).sum();
            let along = start..start + dim.narrowed();
            threads = threads.iter().flat_map(|t| along.clone().map(move |c| t + c * dim.pitch)).collect();
        }
        ThreadSet::ascending(threads)
    }
}

/// How the iterator of one loop is found: `(x − offset) / size`, where x is a digit of the thread's number, or what is
/// left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// The loop.
    pub step: usize,
    /// What x is.
    pub from: Origin,
    /// Where the first iteration begins.
    pub offset: u64,
    /// Coordinates of one iteration.
    pub size: u64,
    /// The guard that x is at least so large, unless it always is.
    pub below: Option<u64>,
    /// The guard that the iterator is less than this, unless it always is.
    pub above: Option<u64>,
}

/// What an iterator is found from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A digit of the number: `number / pitch % extent`; the first digit needs no remainder.
    Number {
        /// The divisor.
        pitch: u64,
        /// The modulus.
        extent: Option<u64>,
    },
    /// The rest of another loop, `x − offset` of it, modulo the size of its iterations, if it has several.
    Rest {
        /// Position of the loop.
        of: usize,
        /// The modulus.
        modulo: Option<u64>,
    },
}
