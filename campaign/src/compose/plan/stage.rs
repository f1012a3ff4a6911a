//! Stages and copies: where they stand, and how they are computed there.

use super::nest::{Given, Loop, Nest, Step, Units, reduces_alike};
use super::{Plan, alike, bound, plain};
use crate::compose::ast::{Equation, Expr, Index, Schedule, Type};

/// An instance of a stage: its place, clauses and ops, and its loops.
type Instance = (String, Vec<String>, Vec<String>, Nest);

/// What is around an instance.
struct Surroundings {
    /// What each loop of its path down to it is given to.
    outside: Vec<Given>,
    /// Whether it is made inside of what one thread does.
    inside_thread: bool,
    /// Whether loops of the path are given to warps, or to warpgroups.
    warps: bool,
    groups: bool,
}

impl Plan<'_> {
    pub(super) fn stage(&mut self, equation: &Equation) {
        let path = self.common(&equation.name);
        let mut style = self.style();
        self.wild = false;
        for reader in &self.kernel.equations {
            reader.value.walk(&mut |e| {
                if let Expr::Read(tensor, indices, _) = e
                    && equation.defines(tensor)
                {
                    let is = |i: &Index| matches!(i, Index::Gather(..) | Index::Over(_, _, true));
                    self.wild |= indices.iter().any(|i| i.has(&is));
                }
            });
        }
        self.wild &= equation.axes.iter().any(|a| bound(self.kernel, a.1).is_none());
        let axes: Vec<String> = equation.axes.iter().map(|a| a.0.clone()).collect();
        let Some((at, fits)) = self.fitting(&path, &axes, style < 45) else {
            self.around.push((equation.name.clone(), path));
            return;
        };
        if (!fits || self.wild) && style < 52 && self.rng.chance(90) {
            style = 60;
        }
        let own = self.nest_of(equation);
        let dimensions = plain(self.kernel, &equation.name);
        let readers = self.kernel.equations.iter().filter(|e| e.reads(equation));
        let readers: Vec<String> = readers.map(|e| e.name.clone()).collect();
        let alone = readers.iter().all(|r| self.follows(r, &path[at].stage));
        let (place, clauses, ops, nest) = self.instance(own, &axes, &path, at, style, ("", &dimensions, alone));
        let step = path[at].clone();
        let name = equation.name.clone();
        let place_at = Some((step.stage, step.name));
        let loops = nest.loops.iter().map(|l| l.name.clone()).collect();
        self.kernel.schedules.push(Schedule {
            name: name.clone(),
            copy: None,
            place,
            at: place_at,
            clauses,
            ops,
            loops,
        });
        self.nests.push((name.clone(), nest));
        self.around.push((name, path[..=at].to_vec()));
    }

    /// What decides the place of an instance: registers below 45, columns below 52, else memory.
    pub(super) fn style(&mut self) -> usize {
        let style = self.rng.below(100);
        let registers = ["registers", "registers-thread", "registers-warp", "registers-warpgroup", "registers-cluster"];
        let memory = ["shared", "shared-warp", "shared-warpgroup", "global", "global-warp", "global-warpgroup", "ring"];
        let more = ["layout", "region-flat", "region", "cp_async", "other-role", "role-chain", "roles-three"];
        let mut ranges = Vec::new();
        if self.wants(&registers) || self.wants(&["like", "like-chain", "vectorized-registers"]) {
            ranges.push(0..45);
        }
        if self.wants(&["shared-thread", "global-thread", "vectorized-columns"]) {
            ranges.push(45..52);
        }
        if self.wants(&memory) || self.wants(&more) || self.wants(&["vectorized-shared", "vectorized-global"]) {
            ranges.push(52..100);
        }
        if ranges.is_empty() || self.rng.chance(20) {
            return style;
        }
        let range = self.rng.pick(&ranges).clone();
        range.start + style % range.len()
    }

    /// Whether each thread that runs a stage runs its own iterations of another one, so that it can have instances of
    /// its own there.
    pub(super) fn follows(&self, reader: &str, stage: &str) -> bool {
        let scheduled = self.kernel.schedules.iter().find(|s| s.name == reader);
        reader == stage || scheduled.is_none_or(|s| s.place.ends_with("per thread"))
    }

    /// The place and the ops of a stage: registers for a style below 45, columns below 52, else memory.
    pub(super) fn instance(
        &mut self,
        mut own: Nest,
        axes: &[String],
        path: &[Step],
        at: usize,
        style: usize,
        (via, dimensions, alone): (&str, &[(String, usize)], bool),
    ) -> Instance {
        let around = self.surroundings(path, at);
        let in_registers = style < 45 && via.is_empty() && (alone || dimensions.is_empty() || self.rng.chance(60));
        let alone = alone || self.rng.chance(5);
        let columns = !in_registers && via != "tma" && (around.inside_thread || style < 52 && alone);
        if in_registers {
            return self.in_registers(own, (path, at), &around, dimensions, alone);
        }
        // Blocks share its terms.
        let reduced = own.loops.iter().rposition(|l| l.reduced);
        let place = self.kernel.equation(&path[at].stage).is_some_and(|e| e.output);
        let free = self.cluster.is_none() && self.roles.is_none() && !own.ordered && via.is_empty();
        if let Some(last) = reduced.filter(|_| place && free && self.chance(30, &["reduce-grid", "reduce-atomic"])) {
            own.split(last, *self.rng.pick(&[1, 2, 5, 16]), false);
            own.give(last, Given::Grid, "grid");
            let memory = match self.rng.below(10) {
                _ if self.wants(&["shared"]) => "shared",
                _ if self.wants(&["global"]) => "global",
                0..6 => "registers",
                6..9 => "shared",
                _ => "global",
            };
            match self.units {
                Units::One => {}
                units => {
                    let units = Units::Threads(units.threads());
                    let may_reduce = self.rng.chance(60);
                    self.give_threads(&mut own, units, may_reduce);
                }
            }
            self.reduce(&mut own);
            return (memory.to_owned(), Vec::new(), own.ops.clone(), own);
        }
        self.in_memory(own, axes, (path, at), (via, columns), &around)
    }

    fn surroundings(&self, path: &[Step], at: usize) -> Surroundings {
        let outside: Vec<Given> = path[..=at].iter().map(|s| s.given).collect();
        let of_threads = |s: &Schedule| s.place.ends_with("per thread");
        let inside_thread = outside.contains(&Given::Thread)
            || path[..=at].iter().any(|p| self.kernel.schedules.iter().any(|s| s.name == p.stage && of_threads(s)));
        let warps = path.iter().any(|s| s.given == Given::Warp);
        let groups = path.iter().any(|s| s.given == Given::Group) && matches!(self.units, Units::Groups(_));
        Surroundings { outside, inside_thread, warps, groups }
    }

    /// An instance in registers.
    fn in_registers(
        &mut self,
        mut own: Nest,
        (path, at): (&[Step], usize),
        around: &Surroundings,
        dimensions: &[(String, usize)],
        alone: bool,
    ) -> Instance {
        let Surroundings { ref outside, inside_thread, warps, groups } = *around;
        self.write_out(path, at);
        // Who has which element as its reader has it.
        let reader = path.last().map(|s| s.stage.clone()).unwrap_or_default();
        let mut like = self.nests.iter().find(|n| n.0 == reader || n.0 == path[at].stage).cloned();
        // Of a stage that is like another one.
        let chained = |n: &&(String, Nest)| {
            let of = self.kernel.schedules.iter().find(|s| s.name == n.0);
            of.is_some_and(|s| !s.place.is_empty() && s.ops.iter().any(|op| op.starts_with("like ")))
        };
        let chain = self.nests.iter().find(chained).cloned();
        if chain.is_some() && self.chance(15, &["like-chain"]) {
            like = chain;
        }
        let found = like.as_ref().is_some_and(|n| alike(self.kernel, &n.0, dimensions)) || self.rng.chance(6);
        let kind = match self.rng.below(10) {
            kind if self.wants(&["like", "like-chain", "registers-cluster"]) => kind / 2,
            kind if self.wants(&["registers-thread", "vectorized-registers"]) => 6 + kind % 3,
            kind => kind,
        };
        if let Some((name, nest)) = like.filter(|_| found && kind < 6 && !inside_thread && self.units != Units::One) {
            let mut ops = vec![format!("like {name}")];
            let reduced: Vec<&Loop> = own.loops.iter().filter(|l| l.reduced).collect();
            ops.extend(reduces_alike(&nest, &reduced));
            let loops = nest.loops.iter().filter(|l| l.roots.iter().all(|r| own.loops.iter().any(|o| o.name == *r)));
            let loops: Vec<Loop> = loops.cloned().collect();
            let blocks = outside.contains(&Given::Cta) || self.cluster.is_none();
            let per = if blocks || !self.chance(65, &["registers-cluster"]) {
                *self.rng.pick(&["", "", "", " per cta"])
            } else {
                " per cluster"
            };
            let per = if warps && (outside.contains(&Given::Warp) || self.chance(20, &["registers-warp"])) {
                " per warp"
            } else if groups && outside.contains(&Given::Group) {
                " per warpgroup"
            } else {
                per
            };
            let inner = Nest { loops, fresh: 50, ..Nest::default() };
            return (format!("registers{per}"), Vec::new(), ops, inner);
        }
        if kind < 9 && alone || inside_thread || self.units == Units::One {
            self.odd(&mut own, 12);
            let vector = own.loops.iter().rposition(|l| !l.reduced);
            let vector = vector.filter(|at| at + 1 == own.loops.len() && self.chance(8, &["vectorized-registers"]));
            for (n, l) in own.loops.iter_mut().enumerate() {
                let vector = vector == Some(n) && l.most.is_some_and(|m| [2, 4, 8].contains(&m));
                if vector {
                    own.ops.push(format!("vectorize {}", l.name));
                    l.given = Given::Vector;
                } else if !l.reduced && self.rng.chance(85) {
                    own.ops.push(format!("unroll {}", l.name));
                    l.given = Given::Unrolled;
                }
            }
            if self.rng.chance(25) && own.loops.iter().any(|l| l.reduced) {
                let last = own.loops.len() - 1;
                own.split(last, *self.rng.pick(&[2, 3, 4]), false);
            }
            let per = if self.rng.chance(88) || inside_thread { " per thread" } else { "" };
            return (format!("registers{per}"), Vec::new(), own.ops.clone(), own);
        }
        self.give_threads(&mut own, self.units, true);
        self.reduce(&mut own);
        ("registers".to_owned(), Vec::new(), own.ops.clone(), own)
    }

    /// An instance in shared or global memory.
    fn in_memory(
        &mut self,
        mut own: Nest,
        axes: &[String],
        (path, at): (&[Step], usize),
        (via, columns): (&str, bool),
        around: &Surroundings,
    ) -> Instance {
        let Surroundings { ref outside, warps, groups, .. } = *around;
        let mut clauses = Vec::new();
        // Rows whose length nothing bounds go to global memory.
        let is_bounded = !self.wild && self.inside(path, at, axes, 256)
            || own.loops.iter().filter(|l| !l.reduced).all(|l| l.most.is_some());
        let memory = match is_bounded {
            _ if via == "tma" || via == "cp_async" => "shared",
            _ if self.chance(0, &["global", "global-thread", "global-warp", "global-warpgroup"]) => "global",
            true => *self.rng.pick(&["shared", "shared", "shared", "shared", "global"]),
            false => *self.rng.pick(&["global", "global", "global", "global", "shared"]),
        };
        clauses.extend(self.ring(&path[at]));
        if !via.is_empty() {
            clauses.push(format!("via {via}"));
        }
        if columns {
            self.odd(&mut own, 8);
            if self.chance(8, &["vectorized-columns"]) {
                self.lanes(&mut own);
            }
            return (format!("{memory} per thread"), clauses, own.ops.clone(), own);
        }
        // Another role makes it, mostly.
        let mut units = self.units;
        let plain = outside.iter().all(|g| !matches!(g, Given::Warp | Given::Group | Given::Thread));
        if plain && memory == "shared" {
            let (role, own) = self.role(!via.is_empty(), units);
            units = own;
            clauses.extend(role.map(|r| format!("by {r}")));
        }
        if via == "tma" {
            return (memory.to_owned(), clauses, Vec::new(), own);
        }
        let narrow = ["shared-warp", "global-warp", "shared-warpgroup", "global-warpgroup"];
        let block = !(warps || groups) || !self.chance(30, &narrow);
        let per = if plain && block {
            if self.rng.chance(10) { " per cta" } else { "" }
        } else if warps {
            units = Units::Threads(32);
            " per warp"
        } else if groups {
            units = Units::Threads(128);
            " per warpgroup"
        } else {
            ""
        };
        self.region(&mut own, via);
        self.odd(&mut own, 10);
        let halves = self.kernel.ty == Type::F16;
        let lanes = via == "cp_async" && (halves || self.rng.chance(40));
        if lanes || self.chance(8, &["vectorize", "vectorized-shared", "vectorized-global"]) {
            self.lanes(&mut own);
        }
        let flat = own.loops.len() > 1
            && !own.loops.iter().any(|l| l.reduced)
            && own.loops[0].given == Given::Serial
            && own.loops[1].given == Given::Serial
            && self.rng.chance(50);
        if flat {
            own.merge(0);
        }
        let may_reduce = self.rng.chance(70);
        let units = match units {
            Units::Warps(n) if self.rng.chance(40) => Units::Threads(32 * n),
            Units::Groups(n) if self.rng.chance(40) => Units::Threads(128 * n),
            Units::Parts(n, of) if self.rng.chance(50) => Units::Threads(n * of),
            other => other,
        };
        let units = if per.is_empty() || per == " per cta" { self.other_units(units) } else { units };
        self.give_threads(&mut own, units, may_reduce);
        // Vectors stay last; terms inside results, or around them.
        if own.loops.iter().any(|l| l.given == Given::Vector) {
            let mut order: Vec<usize> = (0..own.loops.len()).collect();
            order.sort_by_key(|n| own.loops[*n].given == Given::Vector);
            own.order(&order);
        } else if self.rng.chance(15) {
            let mut order: Vec<usize> = (0..own.loops.len()).collect();
            order.sort_by_key(|n| matches!(own.loops[*n].given, Given::Thread | Given::Serial));
            own.order(&order);
        }
        if self.rng.chance(12)
            && let Some(l) = own.loops.iter_mut().find(|l| l.given == Given::Serial && l.most.is_some_and(|m| m <= 8))
        {
            own.ops.push(format!("unroll {}", l.name));
            l.given = Given::Unrolled;
        }
        self.reduce(&mut own);
        if memory == "shared" && via.is_empty() {
            self.layout(&mut own);
        }
        (format!("{memory}{per}"), clauses, own.ops.clone(), own)
    }

    /// Which elements it has: more than are asked for, exactly those, or a flat run of them.
    fn region(&mut self, own: &mut Nest, via: &str) {
        if !self.wants(&["region-flat"]) && self.chance(8, &["region"]) {
            own.ops.push(format!("region {}", self.rng.pick(&["cover", "exact"])));
        } else if self.chance(4, &["region-flat"]) && via.is_empty() && !own.loops.iter().any(|l| l.reduced) {
            // A run of elements, which is one axis from the beginning.
            let name = own.name("f");
            own.ops.push(format!("region flat -> {name}"));
            let roots = own.loops.iter().flat_map(|l| l.roots.clone()).collect();
            own.loops = vec![Loop {
                name,
                roots,
                reduced: false,
                most: None,
                inner: false,
                step: Some(1),
                given: Given::Serial,
            }];
        }
    }

    /// The axes of a buffer in another order, with padding or a swizzle.
    fn layout(&mut self, own: &mut Nest) {
        let listed: Vec<&Loop> = own.loops.iter().filter(|l| !l.reduced).collect();
        if listed.len() > 1 && self.chance(12, &["layout", "layout-swizzle"]) {
            let mut names: Vec<String> = listed.iter().map(|l| l.name.clone()).collect();
            // The last one stays where vectors are.
            let free = names.len() - usize::from(listed.iter().any(|l| l.given == Given::Vector));
            let (a, b) = (self.rng.below(free), self.rng.below(free));
            names.swap(a, b);
            if self.rng.chance(60)
                && let Some(inner) = names.last_mut()
            {
                inner.push_str(" pad 1");
            }
            let span = if self.chance(15, &["layout-swizzle"]) {
                *self.rng.pick(&[" swizzle 32", " swizzle 64", " swizzle 128"])
            } else {
                ""
            };
            own.ops.push(format!("layout [{}]{span}", names.join(", ")));
        }
    }

    /// Some lanes of the last axis become a vector.
    fn lanes(&mut self, own: &mut Nest) {
        let Some(at) = own.loops.iter().rposition(|l| !l.reduced) else { return };
        let lanes: &[i64] = if self.kernel.ty == Type::F16 { &[2, 4, 8] } else { &[2, 4] };
        own.split(at, *self.rng.pick(lanes), false);
        own.ops.push(format!("vectorize {}", own.loops[at + 1].name));
        own.loops[at + 1].given = Given::Vector;
    }
}
