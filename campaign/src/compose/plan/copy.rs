//! Copies of inputs and intermediates, and what outputs are written through.

use super::nest::{Given, Loop, Nest, Step};
use super::{Plan, bound};
use crate::compose::ast::{Expr, Extent, Index, LETTERS, Schedule};

/// A read: its reader, the tensor, its indices.
type Read = (String, String, Vec<Index>);

impl Plan<'_> {
    /// A copy of an input or an intermediate.
    pub(super) fn copy(&mut self, number: usize) {
        let mut reads = self.reads();
        if reads.is_empty() {
            return;
        }
        self.prefer(&mut reads);
        let via = self.via();
        if via == "tma" && self.rng.chance(90) {
            reads.retain(|r| self.copied_whole(r));
            let gathers = |r: &Read| r.2.iter().any(Index::gathers);
            if self.wants(&["gather-by-copy"]) && reads.iter().any(gathers) {
                reads.retain(gathers);
            }
        }
        if self.rng.chance(85) {
            reads.retain(|r| !self.several(&r.0));
        }
        if reads.is_empty() {
            return;
        }
        let (reader, tensor, indices) = self.rng.pick(&reads).clone();
        let path = self.path(&reader);
        let input = self.kernel.inputs.iter().find(|i| i.name == tensor).cloned();
        let via = if input.is_some() { via } else { "" };
        let mut style = self.style();
        let axes: Vec<String> = (indices.iter().zip(LETTERS))
            .map(|(index, letter)| match index {
                Index::Axis(axis, ..) | Index::Mirrored(axis, _) => axis.clone(),
                Index::Over(of, ..) if let Index::Axis(axis, ..) = &**of => axis.clone(),
                _ => letter.to_owned(),
            })
            .collect();
        let mut distinct = axes.clone();
        distinct.sort();
        distinct.dedup();
        if distinct.len() != axes.len() {
            return;
        }
        // A copy of a stage stands where that stage is.
        let outer = self.around.iter().find(|a| a.0 == tensor).map_or(0, |a| a.1.len().saturating_sub(1));
        let Some((mut at, mut fits)) = self.fitting(&path, &axes, via.is_empty() && style < 45) else { return };
        if via == "tma" {
            for _ in 0..12 {
                let narrow = |s: &Step| matches!(s.given, Given::Thread | Given::Warp | Given::Group);
                let block = matches!(path[at].given, Given::Serial | Given::Grid) && !path[..at].iter().any(narrow);
                if block && fits && self.aligned(&path, at, &axes) || self.rng.chance(2) {
                    break;
                }
                let Some(other) = self.fitting(&path, &axes, false) else { return };
                (at, fits) = other;
            }
        }
        self.wild = false;
        let of_thread = |s: &Schedule| s.name == tensor && s.place.ends_with("per thread");
        if self.kernel.schedules.iter().any(of_thread) && self.rng.chance(85) {
            return;
        }
        if at <= outer && outer > 0 && self.rng.chance(80)
            || at < outer
            || !fits && !via.is_empty() && self.rng.chance(85)
        {
            return;
        }
        if !fits && style < 45 {
            style = 60;
        }
        let shape: Vec<Extent> = match (&input, self.kernel.equation(&tensor)) {
            (Some(input), _) => input.shape.clone(),
            (_, Some(equation)) => equation.axes.iter().map(|a| a.1).collect(),
            _ => return,
        };
        let loops = (axes.iter().zip(&shape))
            .map(|(a, e)| Loop {
                name: a.clone(),
                roots: vec![a.clone()],
                reduced: false,
                most: bound(self.kernel, *e),
                inner: false,
                step: Some(1),
                given: Given::Serial,
            })
            .collect();
        let own = Nest { loops, ..Nest::default() };
        let alone = self.follows(&reader, &path[at].stage);
        let dimensions: Vec<(String, usize)> = (0..axes.len()).map(|n| (tensor.clone(), n)).collect();
        let (place, clauses, mut ops, nest) = self.instance(own, &axes, &path, at, style, (via, &dimensions, alone));
        if via == "tma" {
            ops = self.tile(&axes, &shape, &path, at);
        }
        let step = path[at].clone();
        let name = format!("{tensor}{}", ["a", "b", "d"][number % 3]);
        let loops = nest.loops.iter().map(|l| l.name.clone()).collect();
        self.kernel.schedules.push(Schedule {
            name,
            copy: Some((axes, tensor)),
            place,
            at: Some((step.stage, step.name)),
            clauses,
            ops,
            loops,
        });
    }

    /// Reader, tensor and indices of every read, those of indices included.
    fn reads(&self) -> Vec<Read> {
        let mut reads: Vec<Read> = Vec::new();
        for equation in &self.kernel.equations {
            equation.value.walk(&mut |e| {
                let Expr::Read(tensor, indices, _) = e else { return };
                reads.push((equation.name.clone(), tensor.clone(), indices.clone()));
                let mut inside: Vec<&Index> = indices.iter().collect();
                while let Some(index) = inside.pop() {
                    if let Index::Gather(tensor, indices, _) = index {
                        reads.push((equation.name.clone(), tensor.clone(), indices.clone()));
                    }
                    inside.extend(index.parts());
                }
            });
        }
        reads
    }

    /// Keeps the reads that have a wanted feature, if there are such. Features are another copy of the same tensor, a
    /// copy for a stage, and a copy of a stage.
    fn prefer(&mut self, reads: &mut Vec<Read>) {
        let copied = self.kernel.schedules.iter().filter_map(|s| s.copy.as_ref()).map(|c| c.1.clone()).next();
        if self.chance(20, &["copies-of-one"]) && reads.iter().any(|r| Some(&r.1) == copied.as_ref()) {
            reads.retain(|r| Some(&r.1) == copied.as_ref());
        }
        let kernel = &*self.kernel;
        let output = |name: &String| kernel.equation(name).is_some_and(|e| e.output);
        let of_stage = |name: &String| kernel.equation(name).is_some();
        if self.wants(&["copy-in-stage", "role-chain"]) && reads.iter().any(|r| !output(&r.0)) {
            reads.retain(|r| !output(&r.0));
        }
        if self.wants(&["copy-of-stage"]) && reads.iter().any(|r| of_stage(&r.1)) {
            reads.retain(|r| of_stage(&r.1));
        }
    }

    /// By which instructions it is copied.
    fn via(&mut self) -> &'static str {
        let tma = [
            "tma",
            "box",
            "tile",
            "tile-ops",
            "swizzle-128",
            "swizzled-tile",
            "l2",
            "l2-promote",
            "fill-zero",
            "fill-any",
        ];
        let more = [
            "multicast",
            "multicast-by",
            "view-split",
            "view-merge",
            "box-composite",
            "resize-copy",
            "both-ways",
            "gather-by-copy",
        ];
        match self.rng.below(10) {
            0..9 if self.wants(&tma) || self.wants(&more) => "tma",
            0..9 if self.wants(&["cp_async"]) => "cp_async",
            0..4 => "tma",
            4..6 => "cp_async",
            _ => "",
        }
    }

    /// Whether the accelerator can copy what a read needs: an interval of each axis of rows of whole 16 bytes.
    fn copied_whole(&self, (_, tensor, indices): &Read) -> bool {
        let Some(input) = self.kernel.inputs.iter().find(|i| i.name == *tensor) else { return false };
        let granule = 16 / self.kernel.ty.bytes() as i64;
        let rows = input.shape.last().is_some_and(|e| {
            let sizes = (0..3).all(|n| e.times[n] * self.kernel.divides[n] % granule == 0);
            sizes && e.plus % granule == 0
        });
        let start = matches!(indices.last(), Some(Index::Axis(_, 1, plus)) if plus % granule == 0);
        // Memory may say where an instance is, if it says one place for it, or a few.
        let alone = |i: &Index| matches!(i, Index::Axis(..) | Index::Over(..) | Index::Mirrored(..));
        let of_memory = |i: &Index| match i {
            Index::Gather(_, inner, _) => inner.iter().all(alone),
            Index::Affine(of, ..) => matches!(&**of, Index::Gather(_, inner, _) if inner.iter().all(alone)),
            _ => false,
        };
        let interval = |i: &Index| match i {
            Index::Axis(..) | Index::Literal(_) => true,
            Index::Both(parts) => parts.iter().all(of_memory),
            _ => of_memory(i),
        };
        let intervals = indices.iter().all(interval);
        intervals && (rows || indices.len() == 1) && start
    }

    /// What an output writes goes through shared memory.
    pub(super) fn store(&mut self) {
        // What a scatter writes is in no buffer.
        let output = self.kernel.equations.first().filter(|output| output.scatter.is_none()).cloned();
        let Some(output) = output else { return };
        let path = self.path(&output.name);
        let axes: Vec<String> = output.axes.iter().map(|a| a.0.clone()).collect();
        let Some((mut at, mut fits)) = self.fitting(&path, &axes, false) else { return };
        // Results are known after the loops over the terms.
        let nest = self.nests.iter().find(|n| n.0 == output.name).map(|n| n.1.clone()).unwrap_or_default();
        for _ in 0..12 {
            let known = nest.loops.iter().take(at + 1).all(|l| !l.reduced);
            let block = path[..=at].iter().all(|s| matches!(s.given, Given::Serial | Given::Grid | Given::Unrolled));
            if known && block && fits && self.aligned(&path, at, &axes) || self.rng.chance(2) {
                break;
            }
            let Some(other) = self.fitting(&path, &axes, false) else { return };
            (at, fits) = other;
        }
        let mut clauses: Vec<String> = self.ring(&path[at]).into_iter().collect();
        clauses.push("via tma".to_owned());
        clauses.extend(self.store_role().map(|role| format!("by {role}")));
        self.kernel.schedules.push(Schedule {
            name: format!("{}w", output.name),
            copy: Some((axes, output.name.clone())),
            place: "shared".to_owned(),
            at: Some((path[at].stage.clone(), path[at].name.clone())),
            clauses,
            ops: Vec::new(),
            loops: Vec::new(),
        });
    }
}
