//! Random schedules: all ops, stages in every place, and what they do to each other.
//!
//! The draw follows the loops that ops make, so that it can keep the obvious rules; it does not always do so.

mod nest;
mod stage;

use super::ast::{Equation, Expr, Extent, Index, Kernel, Schedule, Type};
use crate::rng::Rng;
use nest::{Given, Loop, Nest, Step, Units, outer_first, reduces_alike, steps};

struct Plan<'a> {
    rng: &'a mut Rng,
    kernel: &'a mut Kernel,
    units: Units,
    cluster: Option<i64>,
    persistent: bool,
    /// The role that outputs run by, and one that makes what others read.
    roles: Option<(&'static str, &'static str)>,
    /// Scheduled stages with their loops.
    nests: Vec<(String, Nest)>,
    /// Whether what is being placed is read at indices that no loop bounds.
    wild: bool,
    /// Where each scheduled stage stands: the loops around it.
    around: Vec<(String, Vec<Step>)>,
}

/// Gives a kernel a schedule.
pub fn schedule(kernel: &mut Kernel, rng: &mut Rng) {
    let units = match rng.below(20) {
        0..4 => Units::One,
        4..12 => Units::Threads(*rng.pick(&[2, 4, 8, 8, 16, 32, 32, 33, 64, 64, 128])),
        12..16 => Units::Warps(*rng.pick(&[1, 2, 2, 4])),
        16..18 => Units::Groups(*rng.pick(&[1, 2])),
        _ => Units::Parts(*rng.pick(&[2, 4, 8]), *rng.pick(&[4, 8])),
    };
    let cluster = rng.chance(14).then(|| *rng.pick(&[1, 2, 2, 2, 2, 2, 4, 4, 4, 8]));
    let persistent = rng.chance(14);
    let whole = matches!(units, Units::Warps(_) | Units::Groups(_) | Units::Threads(32 | 64 | 128));
    let roles = (whole && rng.chance(28)).then_some(("math", "load"));
    let mut plan =
        Plan { rng, kernel, units, cluster, persistent, roles, nests: Vec::new(), wild: false, around: Vec::new() };
    plan.all();
}

/// Which dimensions of which tensors an equation's axes index by themselves.
fn plain(kernel: &Kernel, stage: &str) -> Vec<(String, usize)> {
    let Some(equation) = kernel.equation(stage) else { return Vec::new() };
    let mut found: Vec<(String, usize)> = (0..equation.axes.len()).map(|n| (stage.to_owned(), n)).collect();
    equation.value.walk(&mut |e| {
        if let Expr::Read(tensor, indices, _) = e {
            let alone = |n: &usize| matches!(indices[*n], Index::Axis(_, 1, 0));
            found.extend((0..indices.len()).filter(alone).map(|n| (tensor.clone(), n)));
        }
    });
    found
}

/// Whether `like` finds anything.
fn alike(kernel: &Kernel, a: &str, b: &[(String, usize)]) -> bool {
    plain(kernel, a).iter().any(|p| b.contains(p))
}

fn bound(kernel: &Kernel, extent: Extent) -> Option<i64> {
    (0..3).try_fold(extent.plus, |sum, n| match extent.times[n] {
        0 => Some(sum),
        times => Some(sum + times * kernel.most[n]?),
    })
}

impl Plan<'_> {
    fn all(&mut self) {
        let outputs: Vec<Equation> = self.kernel.equations.iter().filter(|e| e.output).cloned().collect();
        for (n, output) in outputs.iter().enumerate() {
            self.output(output, n);
        }
        let rest: Vec<Equation> = self.kernel.equations.iter().filter(|e| !e.output).cloned().collect();
        for equation in &rest {
            let reduces = !equation.value.reductions().is_empty();
            if self.rng.chance(if reduces { 96 } else { 85 }) {
                self.stage(equation);
            } else {
                if reduces {
                    self.kernel.inlined.push(equation.name.clone());
                }
                let around = self.common(&equation.name);
                self.around.push((equation.name.clone(), around));
            }
        }
        for n in 0..2 {
            if self.rng.chance(if n == 0 { 45 } else { 20 }) {
                self.copy(n);
            }
        }
        if self.rng.chance(9) {
            self.store();
        }
        self.unroll_around();
        self.launch();
    }

    fn launch(&mut self) {
        let total = self.units.threads();
        let mut items = Vec::new();
        if let Some(n) = self.cluster.filter(|_| self.rng.chance(60)) {
            items.push(format!("cluster({n})"));
        }
        if self.roles.is_some() {
            let warps = (total / 32).max(1);
            let math = if warps % 4 == 0 && self.rng.chance(40) {
                format!("{} warpgroup", warps / 4)
            } else {
                format!("{warps} warp")
            };
            let load = self.rng.pick(&["warp", "warp", "warp", "2 warp"]);
            let load = if self.kernel.schedules.iter().any(|s| s.clauses.contains(&"by load".to_owned())) {
                format!("load: {load}, ")
            } else {
                String::new()
            };
            items.push(format!("roles {{ {load}math: {math} }}"));
        } else if total > 1 && self.rng.chance(75) {
            items.push(format!("threads({total})"));
        }
        let tiles = self.nests.iter().any(|n| n.1.loops.iter().any(|l| l.given == Given::Grid));
        if self.persistent && (tiles || self.rng.chance(8)) {
            items.push("persistent".to_owned());
        }
        if self.rng.chance(4) {
            items.push("dependent".to_owned());
        }
        self.kernel.launch = items;
    }

    fn nest_of(&self, equation: &Equation) -> Nest {
        let mut loops: Vec<Loop> = Vec::new();
        let mut push = |name: &str, extent: Extent, reduced: bool| {
            loops.push(Loop {
                name: name.to_owned(),
                roots: vec![name.to_owned()],
                reduced,
                most: bound(self.kernel, extent),
                inner: false,
                given: Given::Serial,
            });
        };
        equation.axes.iter().for_each(|(a, e)| push(a, *e, false));
        if let [(_, axes)] = equation.value.reductions()[..] {
            axes.iter().for_each(|(a, e)| push(a, *e, true));
        }
        let by = equation.value.reductions();
        let ordered = by.iter().any(|r| r.0.is_ordered());
        Nest { loops, ordered, ..Nest::default() }
    }

    /// Splits that nobody needs, sizes that change nothing.
    fn odd(&mut self, nest: &mut Nest, percent: u32) {
        if nest.loops.is_empty() || !self.rng.chance(percent) {
            return;
        }
        let at = self.rng.below(nest.loops.len());
        match self.rng.below(5) {
            0 => nest.split(at, 1, false),
            1 => nest.split(at, 1, true),
            2 | 3 => {
                let (l, r) = *self.rng.pick(&[(0, 0), (0, 0), (1, 0), (0, 2), (2, 1)]);
                let name = nest.name("r");
                nest.ops.push(format!("resize {} by ({l}, {r}) -> {name}", nest.loops[at].name));
                nest.loops[at].name = name;
                nest.loops[at].most = nest.loops[at].most.map(|m| m + l + r);
            }
            _ => nest.split(at, *self.rng.pick(&[2, 3, 5]), true),
        }
    }

    /// Gives loops to the threads of the block, or of what an instance belongs to.
    fn give_threads(&mut self, nest: &mut Nest, units: Units, may_reduce: bool) {
        let may_reduce = may_reduce && (!nest.ordered || self.rng.chance(8));
        let pick = |rng: &mut Rng, nest: &Nest, least: usize| -> Option<usize> {
            let fit: Vec<usize> = (0..nest.loops.len())
                .filter(|n| nest.loops[*n].given == Given::Serial && (may_reduce || !nest.loops[*n].reduced))
                .filter(|n| *n >= least && (!nest.loops[*n].inner || rng.chance(40)))
                .collect();
            if rng.chance(75) { fit.last().copied() } else { (!fit.is_empty()).then(|| *rng.pick(&fit)) }
        };
        match units {
            Units::One => {}
            Units::Threads(n) => {
                let Some(at) = pick(self.rng, nest, 0) else { return };
                let second = (0..at).rev().find(|a| nest.loops[*a].given == Given::Serial && !nest.loops[*a].reduced);
                match (self.rng.below(10), second) {
                    (0 | 1, Some(other)) if n % 4 == 0 => {
                        let rows = *self.rng.pick(&[2, 4]);
                        nest.split(at, n / rows, false);
                        nest.give(at + 1, Given::Thread, "thread");
                        nest.split(other, rows, false);
                        nest.give(other + 1, Given::Thread, "thread");
                    }
                    (2, _) if nest.loops[at].most.is_some_and(|m| m <= n) => nest.give(at, Given::Thread, "thread"),
                    (3, _) => {
                        nest.split(at, n, true);
                        nest.give(at, Given::Thread, "thread");
                    }
                    _ => {
                        nest.split(at, n, false);
                        nest.give(at + 1, Given::Thread, "thread");
                    }
                }
            }
            Units::Warps(n) | Units::Groups(n) | Units::Parts(n, _) => {
                let (unit, given, lanes) = match units {
                    Units::Warps(n) if self.rng.chance(10) => (format!("warp 0..{n}"), Given::Warp, 32),
                    Units::Warps(_) => ("warp".to_owned(), Given::Warp, 32),
                    Units::Groups(_) => ("warpgroup".to_owned(), Given::Group, 128),
                    Units::Parts(_, of) => (format!("{of} thread"), Given::Group, of),
                    _ => ("thread".to_owned(), Given::Thread, 1),
                };
                let Some(at) = pick(self.rng, nest, 0) else { return };
                nest.split(at, lanes, false);
                nest.give(at + 1, Given::Thread, "thread");
                let other = (0..=at).filter(|a| nest.loops[*a].given == Given::Serial);
                let others: Vec<usize> = other.filter(|a| may_reduce || !nest.loops[*a].reduced).collect();
                if others.is_empty() {
                    return;
                }
                let other = *self.rng.pick(&others);
                if self.rng.chance(25) {
                    nest.split(other, n, true);
                    nest.give(other, given, &unit);
                } else {
                    nest.split(other, n, false);
                    nest.give(other + 1, given, &unit);
                }
            }
        }
    }

    /// `reduce` for what of a reduction is given to units.
    fn reduce(&mut self, nest: &mut Nest) {
        let of = |nest: &Nest, given: &[Given]| -> Vec<String> {
            let fit = nest.loops.iter().filter(|l| l.reduced && given.contains(&l.given));
            fit.map(|l| l.name.clone()).collect()
        };
        let threads = of(nest, &[Given::Thread, Given::Warp, Given::Group]);
        if !threads.is_empty() && !self.rng.chance(2) {
            let by = *self.rng.pick(&["", "", "", " by cta", " by warp"]);
            nest.ops.push(format!("reduce {}{by}", threads.join(", ")));
        }
        let blocks = of(nest, &[Given::Cta]);
        if !blocks.is_empty() {
            nest.ops.push(format!("reduce {} by cluster", blocks.join(", ")));
        }
        let grid = of(nest, &[Given::Grid]);
        if !grid.is_empty() {
            let by = *self.rng.pick(&["grid", "grid", "atomic"]);
            nest.ops.push(format!("reduce {} by {by}", grid.join(", ")));
        }
    }

    fn output(&mut self, output: &Equation, number: usize) {
        let role = self.roles.map(|r| format!("by {}", r.0));
        // Beside the first one, in its loops.
        let first_alike = number > 0 && alike(self.kernel, &self.nests[0].0, &plain(self.kernel, &output.name));
        if number > 0 && self.rng.chance(if first_alike { 75 } else { 6 }) {
            let (first, nest) = self.nests[0].clone();
            let outer: Vec<usize> = (0..nest.loops.len())
                .take_while(|n| matches!(nest.loops[*n].given, Given::Grid | Given::Serial | Given::Cta))
                .filter(|n| nest.loops[*n].given != Given::Cta)
                .collect();
            if !outer.is_empty() {
                let place = *self.rng.pick(&outer);
                let own = self.nest_of(output);
                let mut ops = vec![format!("like {first}")];
                let reduced: Vec<&Loop> = own.loops.iter().filter(|l| l.reduced).collect();
                ops.extend(reduces_alike(&nest, &reduced));
                let same = self.kernel.equation(&first).is_some_and(|e| e.axes == output.axes) && reduced.is_empty();
                if same && !nest.loops.iter().any(|l| l.reduced) && self.rng.chance(50) {
                    ops = nest.ops.clone();
                }
                let around = steps(&first, &nest, place);
                let at = Some((first.clone(), nest.loops[place].name.clone()));
                self.push(output.name.clone(), String::new(), at, role.into_iter().collect(), ops, &nest);
                self.nests.push((output.name.clone(), nest));
                self.around.push((output.name.clone(), around));
                return;
            }
        }
        let mut nest = self.nest_of(output);
        self.odd(&mut nest, 10);
        // A vector is the last part of the last axis.
        let vector = self.rng.chance(20) && nest.loops.last().is_some_and(|l| !l.reduced);
        let by = *self.rng.pick(&[2, 4, if self.kernel.ty == Type::F16 { 8 } else { 4 }]);
        let last = output.axes.last().map_or(1, |a| match a.1.as_size() {
            Some(size) => self.kernel.divides[size],
            None => a.1.plus,
        });
        let resized = nest.ops.iter().any(|op| op.starts_with("resize"));
        if vector && (last % by == 0 && !resized || self.rng.chance(6)) {
            let at = nest.loops.len() - 1;
            nest.split(at, by, false);
            nest.loops[at + 1].given = Given::Vector;
        }
        for _ in 0..*self.rng.pick(&[0, 1, 1, 2]) {
            let at = self.rng.below(nest.loops.len());
            if nest.loops.get(at).is_some_and(|l| l.given == Given::Serial) {
                let (by, into) = (*self.rng.pick(&[1, 2, 2, 3, 4, 4, 8, 8, 16]), self.rng.chance(15));
                nest.split(at, by, into);
            }
        }
        if let Some(blocks) = self.cluster {
            let fit: Vec<usize> = (0..nest.loops.len())
                .filter(|n| nest.loops[*n].given == Given::Serial && !nest.loops[*n].inner)
                .filter(|n| !nest.ordered || !nest.loops[*n].reduced)
                .collect();
            if let Some(at) = fit.last() {
                let at = if self.rng.chance(60) { *at } else { *self.rng.pick(&fit) };
                let into = self.rng.chance(65);
                nest.split(at, blocks, into);
                nest.give(if into { at } else { at + 1 }, Given::Cta, "cta");
            }
        }
        self.give_threads(&mut nest, self.units, true);
        // An order: what is large outside, with some noise; then pairs that become one.
        let key = |l: &Loop, rng: &mut Rng| -> i64 {
            let key = match l.given {
                Given::Cta => 25,
                Given::Warp | Given::Group => 40,
                Given::Thread => 50,
                Given::Vector => 90,
                _ if l.inner && rng.chance(50) => 60,
                _ if l.inner => 30,
                _ if l.reduced => 35,
                _ => 10,
            };
            key + if l.given != Given::Vector && rng.chance(12) { rng.range(-30, 30) } else { 0 }
        };
        if self.rng.chance(85) {
            let keys: Vec<i64> = nest.loops.iter().map(|l| key(l, self.rng)).collect();
            let mut order: Vec<usize> = (0..nest.loops.len()).collect();
            order.sort_by_key(|n| keys[*n]);
            if self.rng.chance(88) {
                outer_first(nest.loops.as_slice(), &mut order);
            }
            nest.order(&order);
        }
        let pair = (0..nest.loops.len().saturating_sub(1)).find(|n| {
            let (a, b) = (&nest.loops[*n], &nest.loops[n + 1]);
            a.given == Given::Serial && b.given == Given::Serial && a.reduced == b.reduced && a.inner == b.inner
        });
        if let Some(at) = pair.filter(|_| self.rng.chance(12)) {
            nest.merge(at);
        }
        // Elements of a small square change places.
        if self.rng.chance(15) {
            let square = |l: &Loop| {
                l.given == Given::Serial
                    && l.inner
                    && l.roots.len() == 1
                    && l.most.is_some_and(|m| [2, 4, 8].contains(&m))
            };
            let fit: Vec<usize> = (0..nest.loops.len()).filter(|n| square(&nest.loops[*n])).collect();
            let other = |a: usize| fit.iter().copied().find(|b| *b != a && nest.loops[*b].most == nest.loops[a].most);
            if let Some((a, b)) = fit.iter().find_map(|a| other(*a).map(|b| (*a, b))) {
                let (x, y) = (nest.name("x"), nest.name("x"));
                let names = (nest.loops[a].name.clone(), nest.loops[b].name.clone());
                nest.ops.push(format!("swizzle {}, {} by xor -> {x}, {y}", names.0, names.1));
                let roots = nest.loops[a].roots.clone();
                nest.loops[a].name = x;
                nest.loops[b].name = y;
                nest.loops[b].roots.extend(roots);
            }
        }
        // The outermost loops go to blocks.
        let most = if self.rng.chance(82) { *self.rng.pick(&[1, 1, 2]) } else { 0 };
        let grid: Vec<usize> = (0..nest.loops.len())
            .take_while(|n| nest.loops[*n].given == Given::Serial)
            .filter(|n| !nest.loops[*n].inner)
            .filter(|n| !nest.loops[*n].reduced || self.cluster.is_none() && !nest.ordered)
            .take(most)
            .collect();
        if !grid.is_empty() {
            let names: Vec<&str> = grid.iter().map(|n| nest.loops[*n].name.as_str()).collect();
            let raster = if grid.len() == 2 && self.rng.chance(25) {
                format!(" raster({}: {})", names[0], self.rng.pick(&[1, 2, 3, 8]))
            } else {
                String::new()
            };
            nest.ops.push(format!("bind {}: grid{raster}", names.join(", ")));
            grid.iter().for_each(|n| nest.loops[*n].given = Given::Grid);
        }
        for l in &mut nest.loops {
            match l.given {
                Given::Vector => nest.ops.push(format!("vectorize {}", l.name)),
                Given::Serial if l.most.is_some_and(|m| m <= 4) && self.rng.chance(25) => {
                    nest.ops.push(format!("unroll {}", l.name));
                    l.given = Given::Unrolled;
                }
                Given::Serial if self.rng.chance(4) => {
                    nest.ops.push(format!("unroll {} by {}", l.name, self.rng.pick(&[2, 3])));
                }
                _ => {}
            }
        }
        self.reduce(&mut nest);
        self.push(output.name.clone(), String::new(), None, role.into_iter().collect(), nest.ops.clone(), &nest);
        self.nests.push((output.name.clone(), nest));
        self.around.push((output.name.clone(), Vec::new()));
    }

    fn push(
        &mut self,
        name: String,
        place: String,
        at: Option<(String, String)>,
        clauses: Vec<String>,
        ops: Vec<String>,
        nest: &Nest,
    ) {
        let loops = nest.loops.iter().map(|l| l.name.clone()).collect();
        self.kernel.schedules.push(Schedule { name, copy: None, place, at, clauses, ops, loops });
    }

    fn path(&self, stage: &str) -> Vec<Step> {
        let mut path = self.around.iter().find(|a| a.0 == stage).map(|a| a.1.clone()).unwrap_or_default();
        if let Some((_, nest)) = self.nests.iter().find(|n| n.0 == stage) {
            let place = self.kernel.schedules.iter().find(|s| s.name == stage).and_then(|s| s.at.clone());
            let beside = place.is_some_and(|p| self.is_output(stage) && self.is_output(&p.0));
            if !beside {
                path.extend(steps(stage, nest, nest.loops.len().saturating_sub(1)));
            }
        }
        path
    }

    fn is_output(&self, stage: &str) -> bool {
        self.kernel.equation(stage).is_some_and(|e| e.output)
    }

    /// The loops around all that read a tensor.
    fn common(&self, tensor: &str) -> Vec<Step> {
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

    /// A place of a path, for a stage with these axes: in registers the loops inside are short, in memory they are
    /// bounded; not always.
    fn fitting(&mut self, path: &[Step], axes: &[String], registers: bool) -> Option<(usize, bool)> {
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

    /// Whether loops of these axes inside a place have at most so many iterations.
    fn inside(&self, path: &[Step], at: usize, axes: &[String], most: i64) -> bool {
        path.iter().skip(at + 1).all(|step| {
            let nest = self.nests.iter().find(|n| n.0 == step.stage);
            let found = nest.and_then(|n| n.1.loops.iter().find(|l| l.name == step.name));
            let limit = |l: &Loop| if l.given == Given::Serial { most } else { 1024 };
            found.is_none_or(|l| !l.roots.iter().any(|r| axes.contains(r)) || l.most.is_some_and(|m| m <= limit(l)))
        })
    }

    /// A place of a path: its number.
    fn place(&mut self, path: &[Step], deep: bool) -> Option<usize> {
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
        if fit.is_empty() {
            return None;
        }
        if deep && self.rng.chance(60) { fit.last().copied() } else { Some(*self.rng.pick(&fit)) }
    }

    fn ring(&mut self, step: &Step) -> Option<String> {
        let nest = self.nests.iter().find(|n| n.0 == step.stage);
        let now = nest.and_then(|n| n.1.loops.iter().find(|l| l.name == step.name)).map_or(step.given, |l| l.given);
        let may = now == Given::Serial || self.persistent && self.roles.is_some() && step.given == Given::Grid;
        let percent = if may { 40 } else { 2 };
        self.rng.chance(percent).then(|| format!("ring({})", self.rng.pick(&[1, 2, 2, 3, 3, 4])))
    }

    /// Loops of others inside a place are written out, so that they can pick registers.
    fn write_out(&mut self, path: &[Step], from: usize) {
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
    fn unroll_around(&mut self) {
        let places: Vec<(String, String)> = self.kernel.schedules.iter().filter_map(|s| s.at.clone()).collect();
        let ring = |s: &&Schedule| s.clauses.iter().any(|c| c.starts_with("ring"));
        let rings: Vec<(String, String)> =
            self.kernel.schedules.iter().filter(ring).filter_map(|s| s.at.clone()).collect();
        for (stage, axis) in places {
            let Some((_, nest)) = self.nests.iter_mut().find(|n| n.0 == stage) else { continue };
            let Some(at) = nest.loops.iter().position(|l| l.name == axis) else { continue };
            for l in &mut nest.loops[..at] {
                let runs = rings.contains(&(stage.clone(), l.name.clone()));
                if !runs && l.given == Given::Serial && l.most.is_some_and(|m| m <= 4) && self.rng.chance(40) {
                    l.given = Given::Unrolled;
                    if let Some(s) = self.kernel.schedules.iter_mut().find(|s| s.name == stage) {
                        s.ops.push(format!("unroll {}", l.name));
                    }
                }
            }
        }
    }
}
