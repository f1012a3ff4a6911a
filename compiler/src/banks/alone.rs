//! Launches that leave the machine idle: one block, or one thread of each block, for work of any size.
//!
//! **Property.** What is proposed is refused nowhere: axes of the stage that are loops, in the order in which they are,
//! where nothing of other stages depends on them. Where that is not known, the proposal is in words.

use crate::diag::Diagnostics;
use crate::diag::codes::{Alone, IdleMachine, Share};
use crate::domain::{Axis, AxisId, AxisKind, Binding};
use crate::plan::Analysed;
use crate::program::Program;
use crate::schedule::neighbours::{along, reorders};

/// Warns of outputs with work of any size that one block computes, or blocks of one thread.
pub fn find(program: &Program, analysed: &[Analysed], has_roles: bool, diags: &mut Diagnostics) {
    for at in 0..analysed.len() {
        let stage = &analysed[at].stage;
        if stage.attach.is_some() || stage.beside.is_some() || stage.copy.is_some() {
            continue;
        }
        let of = Output { program, analysed, at };
        let d = &stage.distribution;
        let has_blocks = !d.grid.is_empty() || !d.parts.is_empty() || d.cluster > 1;
        let alone = match (has_blocks, d.block == 1 && !has_roles) {
            (true, false) => continue,
            (true, true) => Alone::ThreadOfBlock,
            (false, true) => Alone::Thread,
            (false, false) => Alone::Block,
        };
        let Some(axis) = of.unbounded(alone) else { continue };
        let axis = &stage.domain.axes[axis];
        diags.report(IdleMachine {
            output: stage.name.clone(),
            alone,
            axis: (axis.name.clone(), axis.extent.show(&|v| stage.program.dim_name(v as u16).to_owned())),
            share: of.share(alone),
            span: stage.span,
        });
    }
}

/// An output.
struct Output<'a> {
    program: &'a Program,
    analysed: &'a [Analysed],
    at: usize,
}

impl Output<'_> {
    fn own(&self) -> &Analysed {
        &self.analysed[self.at]
    }

    fn axis(&self, axis: AxisId) -> &Axis {
        &self.own().stage.domain.axes[axis]
    }

    fn leaves(&self) -> impl Iterator<Item = AxisId> {
        self.own().stage.domain.leaves.iter().copied()
    }

    fn is_loop(&self, leaf: AxisId) -> bool {
        matches!(self.axis(leaf).binding, Binding::Serial | Binding::Unroll(_))
    }

    fn is_unbounded(&self, leaf: AxisId) -> bool {
        self.own().stage.facts.upper_bound(&self.axis(leaf).extent).is_none()
    }

    /// The first axis that has any number of iterations for whoever is alone.
    fn unbounded(&self, alone: Alone) -> Option<AxisId> {
        let is_shared = |leaf: AxisId| alone == Alone::ThreadOfBlock && self.axis(leaf).binding == Binding::Grid;
        let unbounded = || self.leaves().filter(|leaf| self.is_unbounded(*leaf));
        unbounded().find(|leaf| self.is_loop(*leaf)).or_else(|| unbounded().find(|leaf| is_shared(*leaf)))
    }

    /// Whether stages or copies stand in a loop.
    fn has_inside(&self, leaf: AxisId, is_ring: bool) -> bool {
        let of_stage = |a: &Analysed| {
            let attach = a.stage.attach.as_ref().filter(|attach| attach.stage == self.at);
            attach.is_some_and(|attach| attach.around.contains(&leaf)) && (!is_ring || a.stage.ring > 1)
        };
        let copies = || self.own().staged.iter();
        self.analysed.iter().any(of_stage)
            || copies().any(|copy| copy.attach.around.contains(&leaf) && (!is_ring || copy.ring > 1))
    }

    /// What gives the work to more.
    fn share(&self, alone: Alone) -> Share {
        let stage = &self.own().stage;
        let is_untouched =
            stage.domain.ops.is_empty() && self.leaves().all(|leaf| self.axis(leaf).binding == Binding::Serial);
        let hosts = stage.domain.roots.iter().any(|root| self.has_inside(*root, false));
        if is_untouched
            && !hosts
            && let Some(ops) = self.whole()
        {
            let is_written = self.program.schedules.iter().any(|s| usize::from(s.equation) == stage.equation);
            return if is_written { Share::Ops(ops) } else { Share::Schedule(ops) };
        }
        let of_threads = |leaf: &AxisId| !self.is_loop(*leaf);
        if alone == Alone::ThreadOfBlock {
            return self.threads();
        }
        // The first loop over elements, with nothing outside of it that threads run.
        let first = self.leaves().take_while(|leaf| !of_threads(leaf));
        let first = first.filter(|leaf| self.axis(*leaf).kind == AxisKind::Data && self.is_unbounded(*leaf));
        match first.into_iter().next().filter(|leaf| !self.has_inside(*leaf, true)) {
            Some(leaf) => Share::Ops(format!("bind {}: grid", self.axis(leaf).name)),
            None => Share::Words(
                "give an outer axis to blocks: `bind …: grid;`, or parts of a sum: `bind …: grid; reduce … by grid;`"
                    .to_owned(),
            ),
        }
    }

    /// Threads for blocks that have one.
    fn threads(&self) -> Share {
        let inner = self.leaves().filter(|leaf| self.is_loop(*leaf) && self.is_unbounded(*leaf)).last();
        let free = |leaf: &AxisId| !self.has_inside(*leaf, false) && self.axis(*leaf).binding == Binding::Serial;
        match inner.filter(free) {
            Some(leaf) if self.axis(leaf).kind == AxisKind::Data => {
                let (name, [r, t]) = (&self.axis(leaf).name, self.fresh(["r", "t"]));
                Share::Ops(format!("split {name} by 256 -> {r}, {t}; bind {t}: thread"))
            }
            Some(leaf) if reorders(&self.own().stage) => {
                let (name, [r, t]) = (&self.axis(leaf).name, self.fresh(["r", "t"]));
                Share::Ops(format!("split {name} by 256 -> {r}, {t}; bind {t}: thread; reduce {t}"))
            }
            _ => Share::Words(
                "split an axis by 256, and give the inner part to threads: `split … by 256 -> b, t; bind b: grid; \
                 bind t: thread;`"
                    .to_owned(),
            ),
        }
    }

    /// A whole schedule: of elements a thread each, or of a reduction a block each, where threads then read neighbours.
    fn whole(&self) -> Option<String> {
        let own = self.own();
        let of = |kind: AxisKind| self.leaves().filter(|leaf| self.axis(*leaf).kind == kind).collect::<Vec<AxisId>>();
        let name = |axis: &AxisId| self.axis(*axis).name.clone();
        let list = |axes: &[AxisId]| axes.iter().map(name).collect::<Vec<String>>().join(", ");
        let (data, terms) = (of(AxisKind::Data), of(AxisKind::Reduction));
        let reads = || own.accesses.iter().filter(|access| access.in_terms);
        let along_terms = |axis: AxisId| reads().any(|access| along(&own.stage, &own.symbolic, access) == Some(axis));
        if let [k] = terms[..]
            && reorders(&self.own().stage)
            && (data.is_empty() || along_terms(k))
        {
            let k = name(&k);
            return Some(match data.is_empty() {
                true => {
                    let [b, p, r, t] = self.fresh(["b", "p", "r", "t"]);
                    format!(
                        "split {k} by 1024 -> {b}, {p}; split {p} by 256 -> {r}, {t}; bind {b}: grid; \
                         bind {t}: thread; reduce {t}; reduce {b} by grid"
                    )
                }
                false => {
                    let [r, t] = self.fresh(["r", "t"]);
                    format!("bind {}: grid; split {k} by 256 -> {r}, {t}; bind {t}: thread; reduce {t}", list(&data))
                }
            });
        }
        let [all, b, t] = self.fresh(["all", "b", "t"]);
        let rest = |axis: &str| format!("split {axis} by 256 -> {b}, {t}; bind {b}: grid; bind {t}: thread");
        match data[..] {
            [] => None,
            [i] => Some(rest(&name(&i))),
            _ => Some(format!("merge {} -> {all}; {}", list(&data), rest(&all))),
        }
    }

    /// Names that the stage has not yet.
    fn fresh<const N: usize>(&self, names: [&str; N]) -> [String; N] {
        names.map(|name| {
            let is_new = |name: &String| self.own().stage.domain.named(name).is_none();
            let numbered = (1..).map(|n| format!("{name}{n}"));
            [name.to_owned()].into_iter().chain(numbered).find(is_new).unwrap_or_default()
        })
    }
}
