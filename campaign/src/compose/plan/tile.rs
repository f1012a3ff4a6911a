//! The ops of a staged copy: a view of the tensor, boxes, tiles, and where they lie.

use super::Plan;
use super::nest::Given;
use super::nest::Step;
use crate::compose::ast::Extent;

/// An axis of the view, and what becomes of it.
#[derive(Clone, Debug)]
struct Axis {
    name: String,
    /// Of which axes of the tensor it is made.
    of: Vec<String>,
    /// Its extent, if it is known to divide something.
    divides: i64,
    /// What counts boxes and phases of tiles.
    counts: Vec<String>,
    /// Elements of a box.
    size: Option<i64>,
    /// What it is in the tile, outermost first; nothing for an axis that only counts.
    tile: Vec<String>,
}

impl Axis {
    /// The op that gives it boxes.
    fn boxed(&mut self, by: i64) -> String {
        let name = &self.name;
        self.counts.push(format!("{name}c"));
        self.tile = vec![format!("{name}b")];
        self.size = Some(by);
        format!("box {name} by {by} -> {name}c, {name}b")
    }
}

impl Plan<'_> {
    /// The ops of a copy of a tensor with these axes and this shape.
    pub(super) fn tile(&mut self, axes: &[String], shape: &[Extent], path: &[Step], at: usize) -> Vec<String> {
        let granule = 16 / self.kernel.ty.bytes() as i64;
        let mut ops = Vec::new();
        let mut view: Vec<Axis> = axes.iter().zip(shape).map(|(a, e)| self.axis(a, *e)).collect();
        // A tensor of one element has no axes.
        if view.is_empty() {
            return ops;
        }
        self.view(&mut view, &mut ops);
        let last = view.len() - 1;
        let deep = ["tile", "tile-ops", "swizzle-128", "layout", "box", "swizzled-tile", "multicast-by"];
        let part = self.part(&view, path, at, granule);
        for (n, axis) in view.iter_mut().enumerate() {
            if let Some((_, by)) = part.filter(|p| p.0 == n) {
                ops.push(axis.boxed(by));
                continue;
            }
            let percent = if n == last { 60 } else { 30 };
            if part.is_none_or(|_| self.rng.chance(30)) && self.chance(percent, &deep) {
                let by = match (n == last, self.wants(&["tile-ops", "swizzle-128"])) {
                    (true, true) => 8 * granule,
                    (true, false) => granule * *self.rng.pick(&[1, 2, 2, 4, 8]),
                    (false, true) => 8,
                    (false, false) => *self.rng.pick(&[1, 2, 3, 4, 6, 8]),
                };
                ops.push(axis.boxed(by));
            }
        }
        self.composite(&mut view, &mut ops);
        // Elements of a row stay side by side.
        let rows = if self.rng.chance(95) { last } else { last + 1 };
        for axis in &mut view[..rows] {
            let Some(size) = axis.size.filter(|s| *s > 1) else { continue };
            if self.chance(7, &["tile"]) {
                let by = *self.rng.pick(&[2, 3, size, 2]);
                let name = axis.tile[0].clone();
                ops.push(format!("tile {name} by {by} -> {name}t, {name}s"));
                axis.counts.push(format!("{name}s"));
                axis.tile = vec![format!("{name}t")];
                axis.size = None;
            }
        }
        if !self.exchange(&mut view, &mut ops, granule)
            && view[last].size.is_some()
            && self.chance(30, &["layout", "swizzled-tile", "swizzle-128"])
        {
            let span = match self.rng.below(5) {
                _ if self.wants(&["swizzle-128"]) => " swizzle 128",
                0 | 1 if !self.wants(&["swizzled-tile"]) => "",
                2 => " swizzle 64",
                3 => " swizzle 128",
                _ => " swizzle 32",
            };
            ops.push(layout(&view, span));
        }
        if self.chance(8, &["l2", "l2-promote"]) {
            let hints = ["promote(64)", "promote(128)", "promote(256)", "evict_first", "evict_last"];
            let wanted = self.wants(&["l2-promote"]);
            ops.push(format!("l2 {}", self.rng.pick(if wanted { &hints[..3] } else { &hints })));
        }
        if self.chance(8, &["fill-zero", "fill-any"]) {
            let kind = match self.wants(&["fill-any"]) {
                true => "any",
                false if self.wants(&["fill-zero"]) => "zero",
                false => *self.rng.pick(&["zero", "any"]),
            };
            ops.push(format!("fill {kind}"));
        }
        let by = part.map(|p| format!(" by {}c", view[p.0].name));
        self.multicast(axes, &view, path, by, &mut ops);
        ops
    }

    /// An axis of which each block of a cluster copies one box, and how long that is.
    fn part(&mut self, view: &[Axis], path: &[Step], at: usize, granule: i64) -> Option<(usize, i64)> {
        let blocks = self.cluster.filter(|_| path.iter().any(|s| s.given == Given::Cta))?;
        if !self.chance(20, &["multicast-by"]) {
            return None;
        }
        let length = |axis: &str| {
            path.iter().skip(at + 1).try_fold(1, |product, step| {
                let nest = self.nests.iter().find(|n| n.0 == step.stage);
                let found = nest.and_then(|n| n.1.loops.iter().find(|l| l.name == step.name));
                let own = found.filter(|l| l.roots.len() == 1 && l.roots[0] == axis);
                own.map_or(Some(product), |l| Some(product * l.most?))
            })
        };
        let box_of = |n: usize| {
            let by = length(&view[n].name).filter(|l| l % blocks == 0).map(|l| l / blocks)?;
            (n + 1 < view.len() || by % granule == 0).then_some((n, by))
        };
        let fit: Vec<(usize, i64)> = (0..view.len()).filter_map(box_of).collect();
        (!fit.is_empty()).then(|| *self.rng.pick(&fit))
    }

    fn axis(&self, name: &str, extent: Extent) -> Axis {
        let divides = match extent.times.iter().position(|t| *t != 0) {
            None => extent.plus,
            Some(n) if extent.plus % self.kernel.divides[n] == 0 => self.kernel.divides[n],
            Some(_) => 1,
        };
        let name = name.to_owned();
        Axis { of: vec![name.clone()], tile: vec![name.clone()], name, divides, counts: Vec::new(), size: None }
    }

    /// What stands before boxes.
    fn view(&mut self, view: &mut Vec<Axis>, ops: &mut Vec<String>) {
        if self.chance(6, &["resize-copy"]) {
            let at = self.rng.below(view.len());
            let (l, r) = *self.rng.pick(&[(0, 0), (1, 1), (1, 0), (0, 1), (2, 0)]);
            let name = view[at].name.clone();
            ops.push(format!("resize {name} by ({l}, {r}) -> {name}r"));
            let to = format!("{name}r");
            view[at] = Axis { name: to.clone(), tile: vec![to], divides: 1, ..view[at].clone() };
        }
        if self.chance(7, &["view-split"]) {
            let fit: Vec<usize> = (0..view.len()).filter(|n| view[*n].divides > 1).collect();
            if !fit.is_empty() {
                let at = *self.rng.pick(&fit);
                let old = view[at].clone();
                let by = (2..=old.divides).filter(|b| old.divides % b == 0).collect::<Vec<i64>>();
                let by = *self.rng.pick(&by);
                let (p, q) = (format!("{}p", old.name), format!("{}q", old.name));
                ops.push(format!("split {} by {by} -> {p}, {q}", old.name));
                let part = |name: &String, divides| Axis {
                    name: name.clone(),
                    tile: vec![name.clone()],
                    divides,
                    ..old.clone()
                };
                view.splice(at..=at, [part(&p, 1), part(&q, by)]);
            }
        }
        if view.len() > 1 && self.chance(8, &["view-merge"]) {
            let at = self.rng.below(view.len() - 1);
            let name = format!("m{}", view[at].name);
            ops.push(format!("merge {}, {} -> {name}", view[at].name, view[at + 1].name));
            let of = [view[at].of.clone(), view[at + 1].of.clone()].concat();
            let divides = view[at + 1].divides;
            view.splice(
                at..=at + 1,
                [Axis { tile: vec![name.clone()], name, of, divides, counts: Vec::new(), size: None }],
            );
        }
    }

    /// Boxes of several axes, or of one that is whole.
    fn composite(&mut self, view: &mut [Axis], ops: &mut Vec<String>) {
        let whole: Vec<usize> = (0..view.len()).filter(|n| view[*n].size.is_none()).collect();
        if whole.is_empty() || !self.chance(7, &["box-composite"]) {
            return;
        }
        let inner = *self.rng.pick(&whole);
        let outer = inner.checked_sub(1).filter(|o| whole.contains(o) && self.rng.chance(60));
        match outer {
            Some(outer) => {
                ops.push(format!("box ({}; {})", view[outer].name, view[inner].name));
                view[outer].counts = vec![view[outer].name.clone()];
                view[outer].tile.clear();
            }
            None => ops.push(format!("box (; {})", view[inner].name)),
        }
    }

    /// Other axes for the tile, as a swizzle would have them, or as it is; whether there are some.
    fn exchange(&mut self, view: &mut [Axis], ops: &mut Vec<String>, granule: i64) -> bool {
        let last = view.len() - 1;
        let Some(row) = view[last].size.filter(|r| *r % granule == 0 && view[last].tile.len() == 1) else {
            return false;
        };
        if !self.chance(8, &["tile-ops"]) {
            return false;
        }
        let rows = (0..last).rev().find(|n| view[*n].size.is_some_and(|s| s % 8 == 0) && view[*n].tile.len() == 1);
        let chunks = row / granule;
        let name = view[last].tile[0].clone();
        ops.push(format!("split {name} by {granule} -> {name}u, {name}l"));
        view[last].tile = vec![format!("{name}u"), format!("{name}l")];
        if let Some(rows) = rows.filter(|_| [2, 4, 8].contains(&chunks)) {
            // Rows of 128 bytes exchange their chunks by the row, shorter ones by every second or fourth.
            let of = view[rows].tile[0].clone();
            ops.push(format!("split {of} by 8 -> {of}e, {of}w"));
            let mut inside = Vec::new();
            let mut square = format!("{of}w");
            if chunks < 8 {
                ops.push(format!("split {of}w by {} -> {of}x, {of}y", 8 / chunks));
                square = format!("{of}x");
                inside.push(format!("{of}y"));
            }
            ops.push(format!("swizzle {square}, {name}u by xor -> {square}2, {name}u2"));
            view[rows].tile = [vec![format!("{of}e"), format!("{square}2")], inside].concat();
            view[last].tile = vec![format!("{name}u2"), format!("{name}l")];
        }
        ops.push(layout(view, ""));
        true
    }

    /// Blocks take together what does not depend on which of them they are.
    fn multicast(&mut self, axes: &[String], view: &[Axis], path: &[Step], by: Option<String>, ops: &mut Vec<String>) {
        let Some(step) = path.iter().find(|s| s.given == Given::Cta) else { return };
        let nest = self.nests.iter().find(|n| n.0 == step.stage);
        let found = nest.and_then(|n| n.1.loops.iter().find(|l| l.name == step.name));
        let depends = found.is_none_or(|l| l.roots.iter().any(|r| axes.contains(r)));
        if !self.rng.chance(if depends { 5 } else { 75 }) {
            return;
        }
        let counts: Vec<&String> = view.iter().flat_map(|a| &a.counts).collect();
        let by = if let Some(by) = by {
            by
        } else if !counts.is_empty() && self.rng.chance(10) {
            format!(" by {}", self.rng.pick(&counts))
        } else {
            String::new()
        };
        ops.push(format!("multicast {}.{}{by}", step.stage, step.name));
    }
}

/// What counts, then the tile.
fn layout(view: &[Axis], span: &str) -> String {
    let counts = view.iter().flat_map(|a| a.counts.iter().cloned());
    let list: Vec<String> = counts.chain(view.iter().flat_map(|a| a.tile.iter().cloned())).collect();
    format!("layout [{}]{span}", list.join(", "))
}
