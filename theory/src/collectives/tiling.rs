//! The same nests in closed form: which digits of a thread's number are its iterations. Guards are emitted from this;
//! the sets decide what is right.

use super::Shape;
use super::nest::{Bind, LoopFault, Nest, joined};
use super::unit::Typing;
use crate::layout::{Digit, Layout};

/// A loop along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Op {
    /// Position of the loop in the nest.
    step: usize,
    /// Where its first iteration begins, in coordinates of what is around.
    offset: u64,
    /// Coordinates of one iteration.
    size: u64,
    /// Its iterations.
    tiles: u64,
}

/// A dimension of a thread's number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Dim {
    /// Its extent.
    extent: u64,
    /// Threads between neighbours.
    pitch: u64,
    /// Its loops, outermost first.
    ops: Vec<Op>,
}

impl Dim {
    /// Coordinates of one iteration of its innermost loop.
    fn narrowed(&self) -> u64 {
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
    dims: Vec<Dim>,
    /// Loops that narrow nothing, whose only iteration every thread runs.
    trivial: Vec<usize>,
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

    /// Which iteration of each loop a thread runs: the digits of its number, by position of the loop. Others tell
    /// threads of one iteration apart.
    pub fn layout(&self) -> Layout<usize, ()> {
        let digit = |source, extent: u64, stride: u64, low: u64| {
            let [extent, stride, low] = [extent, stride, low].map(i128::from);
            Digit { source, unit: 1, extent, target: (), stride, low }
        };
        let mut digits = Vec::new();
        for Dim { pitch, ops, .. } in &self.dims {
            digits.extend(ops.iter().map(|op| digit(Some(op.step), op.tiles, pitch * op.size, pitch * op.offset)));
        }
        let narrowed = self.dims.iter().map(|dim| (dim.narrowed(), dim.pitch)).filter(|(extent, _)| *extent > 1);
        digits.extend(narrowed.map(|(extent, pitch)| digit(None, extent, pitch, 0)));
        digits.extend(self.trivial.iter().map(|step| digit(Some(*step), 1, 0, 0)));
        let threads: u64 = self.dims.iter().map(|dim| dim.extent).product();
        Layout::new(digits, vec![((), threads.into())])
    }
}
