//! Instances that units of a block would meet for a different number of times: threads exchange values, and wait for
//! each other, where all of a block or role come, and a loop whose end a warp decides is no such place.
//!
//! Not every instance of a unit needs that its threads meet: what each takes from itself needs no barrier, nor does
//! what others order. So this is asked for a kernel in which a barrier is needed in such a loop, and says why.

use super::Stage;
use crate::diag::codes::Uneven;
use crate::domain::{AxisId, AxisKind, Unit};
use crate::extent::{Expr, Var};

/// Why units of a block do not come together to what they share; none if there is no such stage.
pub fn uneven(stages: &[&Stage]) -> Option<Uneven> {
    stages.iter().find_map(|stage| {
        // Terms are combined after the loops over them.
        let is_data = |leaf: &AxisId| stage.domain.axes[*leaf].kind == AxisKind::Data;
        let mut own = if stage.reduced.is_empty() { Vec::new() } else { stage.sequence() };
        own.retain(is_data);
        let mut at = (*stage, own);
        loop {
            let (of, loops) = at;
            if let Some((leaf, (unit, decides))) = loops.into_iter().find_map(|l| Some((l, decider(stages, of, l)?))) {
                return Some(Uneven {
                    stage: stage.name.clone(),
                    axis: format!("{}.{}", of.name, of.domain.axes[leaf].name),
                    is_own: std::ptr::eq(of, *stage),
                    fetches: stage.fetches,
                    unit: unit.name(),
                    decides,
                    span: stage.span,
                });
            }
            // Groups of fetches are counted by all threads.
            let attach = of.attach.as_ref().filter(|_| stage.owner < Unit::Thread || stage.fetches)?;
            at = (stages[attach.stage], attach.around.clone());
        }
    })
}

/// The part of a block whose number decides how many iterations a loop has, and the axis that is given to it.
fn decider(stages: &[&Stage], stage: &Stage, leaf: AxisId) -> Option<(Unit, String)> {
    let axis = &stage.domain.axes[leaf];
    if !axis.binding.is_sequential() {
        return None;
    }
    let of_unit = |v: Var| {
        let mut around = stage.attach.as_ref();
        while let Some(attach) = around {
            let host = stages[attach.stage];
            if let Some(n) = (v as usize).checked_sub(host.facts.dims()) {
                let axis = &host.domain.axes[*host.domain.leaves.get(n)?];
                let unit = Unit::of(axis.binding).filter(|unit| *unit > Unit::Cta)?;
                return Some((unit, format!("{}.{}", host.name, axis.name)));
            }
            around = host.attach.as_ref();
        }
        None
    };
    let extent: Expr = stage.facts.normal(&axis.extent);
    extent.vars().into_iter().find_map(of_unit)
}
