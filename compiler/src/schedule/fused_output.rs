//! Outputs beside outputs: `schedule z at y.b` runs `z` in the iterations of the loops of `y` around `b`, so that both
//! can read the stages that stand there.
//!
//! **Property.** Each output keeps a domain of its own, which covers its tensor. The leaves of both that are around the
//! place are the same: as many, in one order, bound alike, with equal extents; so an iteration of these loops is one of
//! both. They stand first among the leaves of either, where they have the same variables.
//!
//! It is lowered inside the other's nest, after its loops. What the other one decides there is not taken as known of
//! it.

use super::{Attach, Stage};
use crate::diag::Diagnostics;
use crate::diag::codes::{NoInstance, OtherIterations};
use crate::domain::{AxisId, AxisKind, Binding, Unit};
use crate::extent::Expr;
use crate::source::ast;

/// The place of an output in the loops of another one.
#[derive(Clone, Debug)]
pub struct Beside {
    /// The other one: a position in [`Plan::stages`](super::Plan::stages).
    pub stage: usize,
    /// The leaf of that one.
    pub leaf: AxisId,
    /// How many of its sequential loops are around the place.
    pub loops: usize,
    /// How many leaves of both are the same there, the first ones: those around the place, and those of warpgroups and
    /// of warps if they are alike.
    pub around: usize,
}

impl Beside {
    /// Whether what stands at `outer`, a place in the loops of the other output `of`, is there for this one, too: all
    /// that is around it is around both. A thread's own is not, which computes it only where `of` has work for it.
    pub fn sees(&self, outer: &Attach, of: &Stage) -> bool {
        self.stage == outer.stage
            && self.loops >= outer.loops
            && outer.owner != Unit::Thread
            && outer.around.iter().all(|leaf| of.domain.leaves[..self.around].contains(leaf))
    }
}

/// Whether something may stand in loops that are bound so: once for each block, or for each iteration. The lanes of a
/// vector are one access.
pub(super) fn may_hold(binding: Binding) -> bool {
    binding.is_of_blocks() || binding.is_sequential() && binding != Binding::Vector
}

/// Puts the output `own` where `at` says, if it runs in the same iterations.
pub(super) fn place(own: &mut Stage, at: &ast::AxisRef, stages: &mut [Stage], diags: &mut Diagnostics) {
    let place = format!("{}.{}", at.stage.text, at.axis.text);
    let refuse = |problem: &'static str, stages: &[Stage], diags: &mut Diagnostics| {
        let of = stages.iter().find(|s| s.name == at.stage.text && s.has_blocks());
        let leaves = of.into_iter().flat_map(|s| s.domain.leaves.iter().map(move |l| (s, &s.domain.axes[*l])));
        // Not the place itself.
        let is_other = |a: &crate::domain::Axis| a.name != at.axis.text;
        let could = |a: &crate::domain::Axis| is_other(a) && may_hold(a.binding);
        let known = leaves.filter(|(_, a)| could(a)).map(|(s, a)| format!("{}.{}", s.name, a.name)).collect();
        let (stage, place) = (own.name.clone(), Some(place.clone()));
        let problem = problem.to_owned();
        diags.report(NoInstance { stage, place, problem, known, instead: None, span: at.span });
    };
    let Some(stage) = stages.iter().position(|s| s.name == at.stage.text && s.has_blocks()) else {
        return refuse("an output stands beside an output that has blocks of its own", stages, diags);
    };
    let parent = &stages[stage];
    if parent.domain.is_poisoned() || own.domain.is_poisoned() {
        return;
    }
    let Some(leaf) = parent.domain.leaf(&at.axis.text) else {
        return refuse("the stage has no loop of that name", stages, diags);
    };
    let problem = no_place(parent, leaf);
    if let Some(problem) = problem {
        return refuse(problem, stages, diags);
    }
    let loops = Attach::new(stage, parent, leaf, Unit::Cta).loops;
    let (theirs, ours) = (around(parent, loops), around(own, loops));
    let of = |stage: &Stage, list: &[AxisId]| -> Vec<(String, &'static str, String)> {
        let names = |v: u32| stage.program.dim_name(v as u16).to_owned();
        let one = |leaf: &AxisId| {
            let axis = &stage.domain.axes[*leaf];
            let unit = match axis.binding {
                Binding::Grid => "grid",
                Binding::Cta => "cta",
                _ => "loop",
            };
            (axis.name.clone(), unit, stage.facts.normal(&axis.extent).show(&names))
        };
        list.iter().map(one).collect()
    };
    let alike = |(a, b): (&AxisId, &AxisId)| {
        let (a, b) = (&parent.domain.axes[*a], &own.domain.axes[*b]);
        let is_data = a.kind == AxisKind::Data && b.kind == AxisKind::Data;
        is_data && a.binding == b.binding && own.facts.normal(&a.extent.sub(&b.extent)).as_constant() == Some(0)
    };
    if theirs.len() != ours.len() || !theirs.iter().zip(&ours).all(alike) {
        diags.report(OtherIterations {
            stage: own.name.clone(),
            other: parent.name.clone(),
            place,
            theirs: of(parent, &theirs),
            ours: of(own, &ours),
            span: at.span,
        });
        return;
    }
    // Instances of warpgroups and warps are there, too, for those that are given the same.
    let extents = |stage: &Stage, list: &[AxisId]| -> Vec<(Expr, Binding)> {
        let axes = list.iter().map(|leaf| &stage.domain.axes[*leaf]);
        axes.map(|axis| (stage.facts.normal(&axis.extent), axis.binding)).collect()
    };
    let (mut theirs, mut ours) = (theirs, ours);
    for unit in [Unit::Warpgroup, Unit::Warp] {
        let (their_units, our_units) = (given_to(unit, parent), given_to(unit, own));
        if extents(parent, &their_units) != extents(own, &our_units) {
            break;
        }
        theirs.extend(their_units);
        ours.extend(our_units);
    }
    own.beside = Some(Beside { stage, leaf, loops, around: ours.len() });
    lead(own, &ours);
    // What stands further out needs no others in front.
    lead(&mut stages[stage], &theirs);
}

/// Why no output can run in the iterations of a leaf of another one, if that is so.
fn no_place(parent: &Stage, leaf: AxisId) -> Option<&'static str> {
    let around = around(parent, Attach::new(0, parent, leaf, Unit::Cta).loops);
    let is_rolled =
        |l: &AxisId| parent.domain.axes[*l].binding.is_of_blocks() || parent.domain.axes[*l].binding == Binding::Serial;
    match parent.domain.axes[leaf].binding {
        Binding::Vector => Some("the lanes of a vector are one access"),
        Binding::Warpgroup | Binding::Warp | Binding::Thread | Binding::Part(_) => {
            Some("threads run that axis side by side")
        }
        _ if !around.iter().all(is_rolled) => Some("the iterations around it are written out"),
        _ => None,
    }
}

/// Why an output that is put at the place of a stage would still not see it, whatever its own loops are, if that is so.
pub(super) fn unseen(attach: &Attach, parent: &Stage) -> Option<&'static str> {
    let is_term = |leaf: &AxisId| parent.domain.axes[*leaf].kind == AxisKind::Reduction;
    if !parent.has_blocks() {
        return Some("an output runs in the loops of outputs only");
    }
    no_place(parent, attach.leaf)
        .or(attach.around.iter().any(is_term).then_some("that loop goes over terms of a reduction"))
        .or((attach.owner == Unit::Thread).then_some("each thread has its own there"))
}

/// The leaves around the first `loops` sequential loops: those given to blocks, and these loops.
fn around(stage: &Stage, loops: usize) -> Vec<AxisId> {
    let of = |wanted: fn(Binding) -> bool| {
        let axes = &stage.domain.axes;
        stage.domain.leaves.iter().copied().filter(move |l| wanted(axes[*l].binding))
    };
    of(Binding::is_of_blocks).chain(of(Binding::is_sequential).take(loops)).collect()
}

/// The leaves that units of a kind are given.
fn given_to(unit: Unit, stage: &Stage) -> Vec<AxisId> {
    let axes = &stage.domain.axes;
    stage.domain.leaves.iter().copied().filter(|leaf| Unit::of(axes[*leaf].binding) == Some(unit)).collect()
}

/// Puts leaves in front. Units and loops keep their order, so that nothing else changes.
fn lead(stage: &mut Stage, first: &[AxisId]) {
    let rest: Vec<AxisId> = stage.domain.leaves.iter().copied().filter(|l| !first.contains(l)).collect();
    stage.domain.leaves = first.iter().copied().chain(rest).collect();
}
