//! Which instructions copy an instance: tiles of a tensor map, or contiguous runs of memory.
//!
//! **Property.** A copy by runs moves the same elements to the same slots as one by tiles would, and nothing lies
//! outside the tensor. **Formula.** The definition. The slots of a buffer are counted by steps, each with a stride in
//! the buffer; the same step has a stride in memory. Steps whose strides are the same in both, from one element on, are
//! a run; the others count runs. The accelerator moves a run as it is, without a look at the ends of the tensor, so
//! that every box must be dense, have no hole, and lie inside the tensor for all admissible sizes and all loops around;
//! addresses and lengths are multiples of 16 bytes (PTX manual, `cp.async.bulk`). **Approximation.** What cannot be
//! proved is copied by tiles, which are right in any case.

use tilewright_kernel::tensor_map::{GRANULE, MAX_BOX, Promotion, Swizzle};

use crate::domain::Symbolic;
use crate::extent::{Expr, Facts};
use crate::plan::staged::{BETWEEN_NAMES, Form, NotRuns, Part, Staged, Step};
use crate::target::EXPECTED_BYTES;

impl Staged {
    /// Chooses the form. A run needs no tensor map, which a multiprocessor would have to fetch before the first copy,
    /// has no limit of 256 elements, and is one instruction however long it is; but each run is an instruction, where a
    /// tile takes many rows at once. So runs are taken where they are right and no more than the tiles that they
    /// replace, each box cut where it is longer than a map allows.
    pub(super) fn choose(&self, facts: &Facts, symbolic: &Symbolic) -> Form {
        match self.runs(facts, symbolic) {
            Ok(elements) => Form::Runs(elements),
            Err(reason) => Form::Tiles(reason),
        }
    }

    /// The elements of a run.
    fn runs(&self, facts: &Facts, symbolic: &Symbolic) -> Result<i128, NotRuns> {
        if self.swizzle != Swizzle::None {
            return Err(NotRuns::Swizzled);
        }
        if self.promotion != Promotion::None {
            return Err(NotRuns::Promoted);
        }
        let bytes = i128::from(self.element.bytes());
        let boxed = self.axes.iter().try_fold(bytes, |n, a| n.checked_mul(a.boxes().checked_mul(a.boxed.box_size)?));
        if boxed.is_none_or(|n| n > i128::from(EXPECTED_BYTES)) {
            return Err(NotRuns::TooLong);
        }
        for axis in &self.axes {
            let extent = axis.boxes() * axis.boxed.box_size;
            if axis.boxed.element_stride != 1 || axis.region.extent != extent {
                return Err(NotRuns::Holes(axis.name.clone()));
            }
            let room = axis.size.sub(&axis.region.start).sub(&Expr::constant(extent));
            if !(never_negative(&axis.region.start, facts, symbolic) && never_negative(&room, facts, symbolic)) {
                return Err(NotRuns::Ends(axis.name.clone()));
            }
        }
        let granule = i128::from(GRANULE) / bytes;
        let steps: Vec<Step> = self.strides().into_iter().filter(|s| self.axes[s.axis].count(s.part) > 1).collect();
        let mut run = 1;
        let mut outer = steps.iter().peekable();
        while let Some(step) = outer.next_if(|step| {
            if self.is_sliced(step) {
                return false;
            }
            let memory = facts.normal(&self.in_memory(step));
            step.stride == run && memory.as_constant() == Some(run)
        }) {
            run *= self.axes[step.axis].count(step.part);
        }
        let start = self.axes.iter().fold(Expr::constant(0), |sum, a| sum.add(&a.region.start.mul(&a.stride)));
        let aligned = |e: &Expr| facts.proves_multiple(&facts.normal(e), granule);
        let outer: Vec<&Step> = outer.collect();
        let steps_aligned = outer.iter().all(|s| s.stride % granule == 0 && aligned(&self.in_memory(s)));
        if run % granule != 0 || !aligned(&start) || !steps_aligned {
            return Err(NotRuns::Granule);
        }
        let runs = outer.iter().map(|s| self.axes[s.axis].count(s.part)).product();
        let cut = |box_size: i128| (box_size + i128::from(MAX_BOX) - 1).div_euclid(i128::from(MAX_BOX));
        let tiles = self.axes.iter().map(|a| a.boxes() * cut(a.boxed.box_size)).product();
        if runs > tiles {
            return Err(NotRuns::Short(runs, run));
        }
        Ok(run)
    }

    /// Axes outside the one with this number whose boxes are more than 1, if boxes of 1 along all of them would make it
    /// runs: in the order that the buffer has without a layout.
    pub(super) fn rows_as_runs(&self, number: usize, facts: &Facts, symbolic: &Symbolic) -> Option<Vec<String>> {
        let mut rows = self.clone();
        let outside = rows.axes.iter_mut().take(number).filter(|axis| axis.boxed.box_size > 1);
        let names = outside.map(|axis| {
            axis.boxed.box_size = 1;
            axis.name.clone()
        });
        let names: Vec<String> = names.collect();
        rows.outer = (0..rows.axes.len()).map(|axis| (axis, Part::Box)).collect();
        // Axes that share a box have no boxes of their own.
        let apart = names.iter().all(|name| !name.contains(BETWEEN_NAMES));
        (apart && self.layout.is_none() && rows.runs(facts, symbolic).is_ok()).then_some(names)
    }

    /// How far a step takes in memory, in elements.
    fn in_memory(&self, step: &Step) -> Expr {
        let axis = &self.axes[step.axis];
        axis.stride.scale(axis.step(step.part))
    }

    /// Whether a step counts slices, of which each block of a cluster copies one.
    pub(crate) fn is_sliced(&self, step: &Step) -> bool {
        step.part == Part::Box && self.multicast.as_ref().is_some_and(|multicast| multicast.by == Some(step.axis))
    }

    /// Whether it takes a tensor map.
    pub fn has_map(&self) -> bool {
        matches!(self.form, Form::Tiles(_))
    }

    /// Copies of an instance that a block issues: tiles, or runs.
    pub fn copies(&self) -> i128 {
        self.counted().iter().map(|step| self.axes[step.axis].count(step.part)).product()
    }

    /// Bytes of one copy, what lies outside the tensor included.
    pub fn copy_bytes(&self) -> i128 {
        match self.form {
            Form::Tiles(_) => i128::from(self.tile_bytes()),
            Form::Runs(elements) => elements * i128::from(self.element.bytes()),
        }
    }

    /// What counts the copies of an instance that a block issues, outermost first, each with more than one step: all
    /// but the slots of a tile, or all but the elements of a run.
    pub(crate) fn counted(&self) -> Vec<Step> {
        let counts = |step: &Step| match self.form {
            Form::Tiles(_) => step.part != Part::Slot,
            Form::Runs(elements) => step.stride >= elements,
        };
        let several = |step: &Step| self.axes[step.axis].count(step.part) > 1;
        let steps = self.strides().into_iter().rev();
        steps.filter(|step| counts(step) && several(step) && !self.is_sliced(step)).collect()
    }
}

/// Whether `e ≥ 0` for all admissible sizes, wherever the loops that it mentions have an iteration: those around an
/// instance. Of other loops nothing is assumed, because an instance is copied even if what is inside has none.
fn never_negative(e: &Expr, facts: &Facts, symbolic: &Symbolic) -> bool {
    let e = facts.with_residues(&facts.normal(e));
    if e.is_unknown() {
        return false;
    }
    if let Some(c) = e.as_constant() {
        return c >= 0;
    }
    let mut system = facts.residue_system();
    let vars = e.vars();
    symbolic.require_ranges(facts, &mut system, |leaf| vars.contains(&leaf.var));
    system.require(&e.scale(-1).sub(&Expr::constant(1)));
    system.is_infeasible()
}
