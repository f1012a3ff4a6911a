//! Where a stage can stand, and what that place does to the loops inside and around.

use super::Plan;
use super::nest::{Given, Loop, Step, steps};
use crate::compose::ast::{Expr, Index, Schedule};

impl Plan<'_> {
    pub(super) fn path(&self, stage: &str) -> Vec<Step> {
        let mut path = self.around.iter().find(|a| a.0 == stage).map(|a| a.1.clone()).unwrap_or_default();
        if let Some((_, nest)) = self.nests.iter().find(|n| n.0 == stage) {
            let place = self.kernel.schedules.iter().find(|s| s.name == stage).and_then(|s| s.at.clone());
            let beside = place.filter(|p| self.is_output(stage) && self.is_output(&p.0));
            // Of an output beside another one, the loops inside the place are its own.
            let own = steps(stage, nest, nest.loops.len().saturating_sub(1));
            let inside = beside.and_then(|p| nest.loops.iter().position(|l| l.name == p.1)).map_or(0, |n| n + 1);
            path.extend(own.into_iter().skip(inside));
        }
        path
    }

    pub(super) fn is_output(&self, stage: &str) -> bool {
        self.kernel.equation(stage).is_some_and(|e| e.output)
    }

    /// The loops around all that read a tensor.
    pub(super) fn common(&self, tensor: &str) -> Vec<Step> {
        // All that one equation defines is computed in one place.
        let all: Vec<&str> =
            self.kernel.equation(tensor).map_or(vec![tensor], |e| e.targets().iter().map(|t| t.0).collect());
        let readers = self.kernel.equations.iter().filter(|e| e.value.tensors().iter().any(|t| all.contains(t)));
        let mut paths = readers.map(|e| self.path(&e.name));
        let Some(mut common) = paths.next() else { return Vec::new() };
        for path in paths {
            let same = common.iter().zip(&path).take_while(|(a, b)| a.stage == b.stage && a.name == b.name).count();
            common.truncate(same);
        }
        common
    }

    /// Whether what reads a tensor asks for it in boxes that differ by more than where they start: what is read there
    /// is then not known to be one box, either (TW0706).
    pub(super) fn several(&self, tensor: &str) -> bool {
        let mut shapes: Vec<Vec<Index>> = Vec::new();
        for reader in &self.kernel.equations {
            reader.value.walk(&mut |e| {
                if let Expr::Read(of, indices, _) = e
                    && of == tensor
                {
                    let shape = indices.iter().map(|i| match i {
                        Index::Axis(axis, factor, _) => Index::Axis(axis.clone(), *factor, 0),
                        other => other.clone(),
                    });
                    shapes.push(shape.collect());
                }
            });
        }
        shapes.windows(2).any(|w| w[0] != w[1])
    }

    /// A place of a path, for a stage with these axes: in registers the loops inside are short, in memory they are
    /// bounded; not always.
    pub(super) fn fitting(&mut self, path: &[Step], axes: &[String], registers: bool) -> Option<(usize, bool)> {
        for _ in 0..6 {
            let at = self.place(path, registers)?;
            if self.inside(path, at, axes, if registers { 16 } else { 256 }) {
                return Some((at, true));
            }
            if self.rng.chance(3) {
                break;
            }
        }
        let at = self.place(path, registers)?;
        Some((at, self.inside(path, at, axes, if registers { 16 } else { 256 })))
    }

    /// Whether a copy by the accelerator starts at a multiple of 16 bytes along its last axis, at a place.
    pub(super) fn aligned(&self, path: &[Step], at: usize, axes: &[String]) -> bool {
        let granule = 16 / self.kernel.ty.bytes() as i64;
        let Some(last) = axes.last() else { return true };
        path.iter().take(at + 1).all(|step| {
            let nest = self.nests.iter().find(|n| n.0 == step.stage);
            let found = nest.and_then(|n| n.1.loops.iter().find(|l| l.name == step.name));
            found.is_none_or(|l| !l.roots.contains(last) || l.step.is_some_and(|s| s % granule == 0))
        })
    }

    /// Whether loops of these axes inside a place have at most so many iterations.
    pub(super) fn inside(&self, path: &[Step], at: usize, axes: &[String], most: i64) -> bool {
        path.iter().skip(at + 1).all(|step| {
            let nest = self.nests.iter().find(|n| n.0 == step.stage);
            let found = nest.and_then(|n| n.1.loops.iter().find(|l| l.name == step.name));
            let limit = |l: &Loop| if l.given == Given::Serial { most } else { 1024 };
            found.is_none_or(|l| !l.roots.iter().any(|r| axes.contains(r)) || l.most.is_some_and(|m| m <= limit(l)))
        })
    }

    /// A place of a path: its number.
    pub(super) fn place(&mut self, path: &[Step], deep: bool) -> Option<usize> {
        let mut fit: Vec<usize> = Vec::new();
        for (n, step) in path.iter().enumerate() {
            // What belongs to a thread has nothing inside, mostly.
            let of_thread = |s: &Schedule| s.name == step.stage && s.place.ends_with("per thread");
            if self.kernel.schedules.iter().any(of_thread) && self.rng.chance(85) {
                continue;
            }
            match step.given {
                Given::Grid | Given::Serial => fit.push(n),
                Given::Unrolled if self.rng.chance(15) => fit.push(n),
                Given::Cta if self.rng.chance(40) => fit.push(n),
                Given::Thread | Given::Warp | Given::Group if self.rng.chance(10) => fit.push(n),
                _ => {}
            }
        }
        // Where another stage stands; or a loop of a stage, or of an output beside another one.
        let at = |s: &Schedule, n: usize| s.at.as_ref().is_some_and(|a| a.0 == path[n].stage && a.1 == path[n].name);
        let shared = |n: &usize| self.kernel.schedules.iter().any(|s| !s.place.is_empty() && at(s, *n));
        let near: Vec<usize> = fit.iter().copied().filter(shared).collect();
        let inner = |n: &usize| {
            let of = self.kernel.schedules.iter().find(|s| s.name == path[*n].stage);
            of.is_some_and(|s| s.at.is_some())
        };
        let nested: Vec<usize> = fit.iter().copied().filter(inner).collect();
        let together = ["several-in-loop", "reductions-in-loop", "mixed-places", "role-chain", "like-chain"];
        let deeper = ["nested-stage", "nested-twice", "stage-of-beside", "copy-in-stage", "copies-of-one"];
        if !near.is_empty() && self.chance(15, &together) {
            fit = near;
        } else if !nested.is_empty() && self.chance(15, &deeper) {
            fit = nested;
        }
        if fit.is_empty() {
            return None;
        }
        if deep && self.rng.chance(60) { fit.last().copied() } else { Some(*self.rng.pick(&fit)) }
    }

    pub(super) fn ring(&mut self, step: &Step) -> Option<String> {
        let nest = self.nests.iter().find(|n| n.0 == step.stage);
        let now = nest.and_then(|n| n.1.loops.iter().find(|l| l.name == step.name)).map_or(step.given, |l| l.given);
        let may = now == Given::Serial || self.persistent && self.roles.is_some() && step.given == Given::Grid;
        let percent = if may { 40 } else { 2 };
        let wanted: &[&str] = match step.given {
            _ if !may => &[],
            Given::Grid => &["ring", "ring-grid"],
            _ => &["ring"],
        };
        self.chance(percent, wanted).then(|| format!("ring({})", self.rng.pick(&[1, 2, 2, 3, 3, 4])))
    }

    /// Loops of others inside a place are written out, so that they can pick registers.
    pub(super) fn write_out(&mut self, path: &[Step], from: usize) {
        for step in path.iter().skip(from + 1) {
            let ring = |s: &Schedule| s.clauses.iter().any(|c| c.starts_with("ring"));
            let here = |s: &Schedule| s.at.as_ref().is_some_and(|a| a.0 == step.stage && a.1 == step.name);
            let runs = self.kernel.schedules.iter().any(|s| ring(s) && here(s));
            if step.given != Given::Serial || runs || self.rng.chance(8) {
                continue;
            }
            let Some((_, nest)) = self.nests.iter_mut().find(|n| n.0 == step.stage) else { continue };
            let Some(l) = nest.loops.iter_mut().find(|l| l.name == step.name) else { continue };
            if l.given == Given::Serial && l.most.is_some_and(|m| m <= 16) {
                l.given = Given::Unrolled;
                if let Some(s) = self.kernel.schedules.iter_mut().find(|s| s.name == step.stage) {
                    s.ops.push(format!("unroll {}", step.name));
                }
            }
        }
    }

    /// Loops around stages are written out, too, if they are short.
    pub(super) fn unroll_around(&mut self) {
        let places: Vec<(String, String)> = self.kernel.schedules.iter().filter_map(|s| s.at.clone()).collect();
        let ring = |s: &&Schedule| s.clauses.iter().any(|c| c.starts_with("ring"));
        let rings: Vec<(String, String)> =
            self.kernel.schedules.iter().filter(ring).filter_map(|s| s.at.clone()).collect();
        for (stage, axis) in places {
            let Some((_, nest)) = self.nests.iter_mut().find(|n| n.0 == stage) else { continue };
            let Some(at) = nest.loops.iter().position(|l| l.name == axis) else { continue };
            for l in &mut nest.loops[..at] {
                let runs = rings.contains(&(stage.clone(), l.name.clone()));
                if runs || l.given != Given::Serial {
                    continue;
                }
                let by = match self.rng.below(100) {
                    0..15 if !self.wanted.contains(&"unrolled-around-stage") => " by 2",
                    0..60 if self.wanted.contains(&"unroll-by-around-stage") => " by 2",
                    0..60 if l.most.is_some_and(|m| m <= 4) => "",
                    _ => continue,
                };
                l.given = Given::Unrolled;
                if let Some(s) = self.kernel.schedules.iter_mut().find(|s| s.name == stage) {
                    s.ops.push(format!("unroll {}{by}", l.name));
                }
            }
            // The place itself, a few times over.
            let l = &mut nest.loops[at];
            let ring = rings.contains(&(stage.clone(), axis.clone()));
            let percent = if self.wanted.contains(&"unroll-by-around-stage") { 60 } else { 6 };
            if !ring && l.given == Given::Serial && self.rng.chance(percent) {
                l.given = Given::Unrolled;
                if let Some(s) = self.kernel.schedules.iter_mut().find(|s| s.name == stage) {
                    s.ops.push(format!("unroll {} by {}", l.name, self.rng.pick(&[2, 3])));
                }
            }
        }
    }
}
