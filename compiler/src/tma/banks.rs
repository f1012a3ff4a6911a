//! Bank conflicts of what reads and writes the buffers of staged copies.
//!
//! **Property.** The cycles counted are those that the emulator counts for the first warp in the first iteration of all loops. **Formula.** The
//! definition: the place of each lane's element, exchanged as the swizzle says, and the banks' rule ([`tilewright_kernel::banks`]).
//! **Approximation.** Other warps and iterations may differ, as may lanes that a predicate keeps away. Nothing is said of places that
//! depend on sizes.

use tilewright_kernel::banks;
use tilewright_kernel::tensor_map::Swizzle;

use super::staged::{Part, Staged, Step, Way};
use crate::extent::{Expr, Facts};
use crate::lower::Analysed;
use crate::memory::vector::Access;
use crate::schedule::WARP;
use crate::syntax::Span;

/// An access of a buffer that takes longer than it has to.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// The read, or the left-hand side.
    pub span: Span,
    /// Cycles of a warp's access.
    pub cycles: u64,
    /// As many without conflicts.
    pub least: u64,
    /// The swizzle for which rows are long enough and that takes the fewest cycles, if fewer.
    pub better: Option<(Swizzle, u64)>,
}

/// The accesses of the buffer of `staged` that take at least twice as long as they would without conflicts.
pub fn conflicts(staged: &Staged, reader: &Analysed) -> Vec<Conflict> {
    let facts = &reader.stage.facts;
    let own = |a: &&Access| match staged.way {
        Way::Load => !a.is_write && staged.is_for(a.parameter, a.value),
        Way::Store => a.is_write && a.parameter == staged.parameter,
    };
    let mut found = Vec::new();
    for access in reader.accesses.iter().filter(own) {
        let vector = reader.vector.as_ref().filter(|_| !access.is_guarded);
        let run = vector.map_or(1, |v| staged.neighbours(&access.indices, v, &reader.symbolic, facts));
        let Some(lanes) = lanes(staged, facts, reader, access) else { continue };
        let count = |swizzle: Swizzle| count(staged, &lanes, run, swizzle);
        let (cycles, least) = count(staged.swizzle);
        if cycles < 2 * least {
            continue;
        }
        let row = staged.axes.last().map_or(0, |axis| axis.boxed.box_size * i128::from(staged.element.bytes()));
        let other = u32::try_from(row).ok().and_then(Swizzle::with_span).filter(|s| *s != staged.swizzle);
        let better = other.map(|swizzle| (swizzle, count(swizzle).0)).filter(|(_, fewer)| *fewer < cycles);
        found.push(Conflict { span: access.span, cycles, least, better });
    }
    found
}

/// The element offset of each lane of the first warp that has an iteration, before the swizzle.
fn lanes(staged: &Staged, facts: &Facts, reader: &Analysed, access: &Access) -> Option<Vec<i128>> {
    let Analysed { stage, symbolic, .. } = reader;
    let distribution = &stage.distribution;
    let places: Vec<Expr> =
        staged.places(&access.indices).into_iter().map(|(_, offset)| facts.normal(&offset)).collect();
    let is_known = |e: &Expr| !e.is_unknown() && e.vars().iter().all(|v| *v as usize >= facts.dims());
    if !places.iter().all(is_known) {
        return None;
    }
    let count = distribution.threads.iter().map(|(_, extent)| extent).product::<i128>().min(WARP);
    let mut found = Vec::new();
    for lane in 0..count {
        let mut leaves = vec![0; stage.domain.leaves.len()];
        let mut rest = lane;
        for (axis, extent) in distribution.threads.iter().rev() {
            let at = stage.domain.leaves.iter().position(|leaf| leaf == axis)?;
            leaves[at] = rest % extent;
            rest /= extent;
        }
        let mut values = symbolic.assign(&vec![1; facts.dims()], &leaves);
        // Axes of inner reductions start at their first value.
        for axis in &access.inner {
            values.resize(values.len().max(axis.var as usize + 1), 0);
            values[axis.var as usize] = axis.lower.eval(&values)?;
        }
        let offsets = places.iter().map(|place| place.eval(&values)).collect::<Option<Vec<i128>>>()?;
        let is_inside = |(offset, axis): (&i128, &super::staged::Axis)| (0..axis.region.extent).contains(offset);
        if offsets.iter().zip(&staged.axes).all(is_inside) {
            found.push(staged.element_at(&offsets));
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Cycles of an access of `run` neighbours a lane, and how many it would take without conflicts.
fn count(staged: &Staged, lanes: &[i128], run: u32, swizzle: Swizzle) -> (u64, u64) {
    let bytes = staged.element.bytes();
    let parts = banks::parts(run * bytes);
    let words = (run * bytes).max(4) as usize / 4;
    let address = |element: &i128| u64::from(swizzle.apply(u32::try_from(*element).unwrap_or(0) * bytes));
    let size = WARP as usize / parts;
    let cycles = lanes.chunks(size).map(|part| banks::cycles(part.iter().map(address), words));
    (cycles.sum(), lanes.chunks(size).len() as u64)
}

impl Staged {
    /// Where an element lies in the buffer before the swizzle, given its offsets in the region: elements from the start of its slot.
    fn element_at(&self, offsets: &[i128]) -> i128 {
        let part = |step: &Step| {
            let boxed = &self.axes[step.axis].boxed;
            let within = offsets[step.axis] % boxed.box_size;
            match step.part {
                Part::Box => offsets[step.axis] / boxed.box_size,
                Part::Phase => within % boxed.element_stride,
                Part::Slot => within / boxed.element_stride,
            }
        };
        self.strides().iter().map(|step| part(step) * step.stride).sum()
    }
}
