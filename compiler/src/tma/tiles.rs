//! The tiles of an instance: how many, where they start, where they lie in the buffer, and what zeros in their holes
//! take.

use tilewright_kernel::tensor_map::{self, Fill, Promotion, Swizzle, TensorMap};

use super::reach::{Level, Reach, level};
use crate::domain::Symbolic;
use crate::extent::{Expr, Facts, Family, Var};
use crate::layout::{Digit, Layout, XorSwizzle};
use crate::plan::staged::{Axis, Form, Part, Staged, Step, Way};
use crate::schedule::vector::{Along, Vector};

impl Staged {
    /// The map with what is known while compiling: boxes and strides of elements, innermost first; sizes and addresses
    /// are stand-ins.
    pub(super) fn boxes(&self) -> TensorMap {
        let clamp = |n: i128| u32::try_from(n).unwrap_or(u32::MAX);
        let dimensions = self.axes.iter().rev().map(|axis| tensor_map::Dimension {
            size: 1,
            stride: 0,
            box_size: clamp(axis.boxed.box_size),
            element_stride: clamp(axis.boxed.element_stride),
        });
        TensorMap {
            format: self.format,
            address: 0,
            dimensions: dimensions.collect(),
            swizzle: self.swizzle,
            fill: Fill::Zero,
            promotion: Promotion::None,
        }
    }

    /// Bytes of one tile, out-of-bounds part included.
    pub fn tile_bytes(&self) -> u64 {
        self.boxes().tile_bytes()
    }

    /// Tiles of one instance.
    pub fn tile_count(&self) -> i128 {
        self.axes.iter().map(Axis::tiles).product()
    }

    /// Elements from one tile of the buffer to the next: a tile, rounded up to the alignment of tiles.
    pub fn pitch(&self) -> i128 {
        let bytes = i128::from(self.tile_bytes());
        let alignment = i128::from(self.swizzle.alignment());
        (bytes + alignment - 1).div_euclid(alignment) * alignment / i128::from(self.element.bytes())
    }

    /// Elements of a buffer.
    pub fn elements(&self) -> i128 {
        self.tile_count() * self.pitch()
    }

    /// Bytes of all buffers.
    pub fn buffer_bytes(&self) -> i128 {
        self.elements() * i128::from(self.ring) * i128::from(self.element.bytes())
    }

    /// Barriers: one for each buffer that the accelerator fills.
    pub fn barriers(&self) -> u32 {
        match self.way {
            Way::Load => self.ring,
            Way::Store => 0,
        }
    }

    /// Bytes that an instance copies.
    pub fn bytes(&self) -> i128 {
        self.tile_count() * i128::from(self.tile_bytes())
    }

    /// How far one step takes in the buffer, in elements: what counts tiles, and the slots of a tile in the order of
    /// the axes.
    pub fn strides(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut stride = 1;
        for (axis, a) in self.axes.iter().enumerate().rev() {
            steps.push(Step { axis, part: Part::Slot, stride });
            stride *= a.tile();
        }
        let mut stride = self.pitch();
        for (axis, part) in self.outer.iter().rev() {
            let count = self.axes[*axis].count(*part);
            if count > 1 {
                steps.push(Step { axis: *axis, part: *part, stride });
                stride *= count;
            }
        }
        steps
    }

    /// Where an element of an instance lies in its buffer, in elements, from its offsets in the region along each axis.
    pub fn layout(&self, swizzle: Swizzle) -> Layout<usize, ()> {
        let digit = |step: Step| {
            let axis = &self.axes[step.axis];
            // Of phases past the end of a box there are no elements.
            let most = if step.part == Part::Phase { axis.boxed.box_size } else { i128::MAX };
            let (unit, extent) = (axis.step(step.part), axis.count(step.part).min(most));
            Digit { source: Some(step.axis), unit, extent, target: (), stride: step.stride, low: 0 }
        };
        let digits = self.strides().into_iter().map(digit).collect();
        Layout::new(digits, Vec::new()).swizzled(XorSwizzle::new(swizzle, self.element.bytes()))
    }

    /// Along each axis, where the element of the tensor at `indices` lies: in the axis, and from the start of the
    /// region.
    pub fn places(&self, indices: &[Expr]) -> Vec<(Expr, Expr)> {
        let placed = |v: Var| Family::PLACEHOLDER.number(v).and_then(|d| indices.get(d)).cloned();
        let along = |axis: &Axis| {
            let position = axis.position.substitute(&placed);
            let offset = position.sub(&axis.region.start);
            (position, offset)
        };
        self.axes.iter().map(along).collect()
    }

    /// How many lanes of a vector are neighbours in the buffer and start at a multiple of that many: a power of two,
    /// and no more than 16 bytes, which a swizzle keeps together. `indices` are those of the tensor's element, over the
    /// loops.
    pub fn neighbours(&self, indices: &[Expr], vector: &Vector, symbolic: &Symbolic, facts: &Facts) -> u32 {
        let along: Vec<Along> =
            self.places(indices).iter().map(|(_, offset)| vector.along(offset, symbolic, facts)).collect();
        let (Some(inner), Some((last, outer))) = (self.axes.last(), along.split_last()) else { return 1 };
        let still = |along: &Along| matches!(along, Along::Affine { step, .. } if step.as_constant() == Some(0));
        let Along::Affine { base, step } = last else { return 1 };
        if !outer.iter().all(still) || step.as_constant() != Some(1) || inner.boxed.element_stride != 1 {
            return 1;
        }
        let mut lanes =
            (tensor_map::GRANULE as u32 / self.element.bytes()).min(u32::try_from(vector.lanes).unwrap_or(1));
        while lanes > 1 && !(vector.lanes % i128::from(lanes) == 0 && facts.proves_multiple(base, lanes.into())) {
            lanes /= 2;
        }
        lanes.max(1)
    }

    /// What zeros in every hole would take, over all instances; see [`Level`]. Loops around the instances range over
    /// their extents.
    pub fn level(&self, facts: &Facts, symbolic: &Symbolic) -> Level {
        // Runs have no holes.
        if let Form::Runs(_) = self.form {
            return Level::Free;
        }
        let first = (facts.dims() + symbolic.variables.len()) as Var;
        let mut around = facts.residue_system();
        symbolic.require_ranges(facts, &mut around, |_| true);
        // Every axis has a first box to the one before last, whole, and a last one that may be live in part.
        let mut worst = Level::Free;
        for choice in 0..1u32 << self.axes.len() {
            let is_last = |d: usize| choice >> d & 1 == 1;
            if self.axes.iter().enumerate().any(|(d, axis)| !is_last(d) && axis.boxes() == 1) {
                continue;
            }
            let mut reachable = around.clone();
            let mut dimensions = Vec::with_capacity(self.axes.len());
            for (d, axis) in self.axes.iter().enumerate() {
                let (box_size, boxes) = (axis.boxed.box_size, axis.boxes());
                let (number, live) = if is_last(d) {
                    (Expr::constant(boxes - 1), axis.region.extent - (boxes - 1) * box_size)
                } else {
                    let var = first + d as Var;
                    reachable.at_least(var, 0);
                    reachable.require(&Expr::constant(boxes - 2).sub(&Expr::var(var)));
                    (Expr::var(var), box_size)
                };
                dimensions.push(Reach {
                    size: facts.with_residues(&axis.size),
                    box_size,
                    element_stride: axis.boxed.element_stride,
                    start: facts.with_residues(&axis.region.start.add(&number.scale(box_size))),
                    live: Expr::constant(live),
                });
            }
            worst = worst.max(level(&reachable, &dimensions));
        }
        worst
    }
}
