//! Stages and copies: where they stand, and how they are computed there.

use super::nest::{Given, Loop, Nest, Step, Units, reduces_alike};
use super::{Plan, alike, bound, plain};
use crate::compose::ast::{Equation, Expr, Extent, Index, Schedule, Type};

impl Plan<'_> {
    pub(super) fn stage(&mut self, equation: &Equation) {
        let path = self.common(&equation.name);
        let mut style = self.rng.below(100);
        self.wild = false;
        for reader in &self.kernel.equations {
            reader.value.walk(&mut |e| {
                if let Expr::Read(tensor, indices, _) = e
                    && equation.defines(tensor)
                {
                    self.wild |= indices.iter().any(|i| matches!(i, Index::Gather(..) | Index::Quotient(_, _, true)));
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

    /// Whether each thread that runs a stage runs its own iterations of another one, so that it can have instances of
    /// its own there.
    fn follows(&self, reader: &str, stage: &str) -> bool {
        let scheduled = self.kernel.schedules.iter().find(|s| s.name == reader);
        reader == stage || scheduled.is_none_or(|s| s.place.ends_with("per thread"))
    }

    /// The place and the ops of a stage: registers for a style below 45, columns below 52, else memory.
    fn instance(
        &mut self,
        mut own: Nest,
        axes: &[String],
        path: &[Step],
        at: usize,
        style: usize,
        (via, dimensions, alone): (&str, &[(String, usize)], bool),
    ) -> (String, Vec<String>, Vec<String>, Nest) {
        let outside: Vec<Given> = path[..=at].iter().map(|s| s.given).collect();
        let of_threads = |s: &Schedule| s.place.ends_with("per thread");
        let inside_thread = outside.contains(&Given::Thread)
            || path[..=at].iter().any(|p| self.kernel.schedules.iter().any(|s| s.name == p.stage && of_threads(s)));
        let warps = path.iter().any(|s| s.given == Given::Warp);
        let groups = path.iter().any(|s| s.given == Given::Group) && matches!(self.units, Units::Groups(_));
        let data: Vec<Loop> = own.loops.iter().filter(|l| !l.reduced).cloned().collect();
        let mut clauses = Vec::new();
        let in_registers = style < 45 && via.is_empty() && (alone || dimensions.is_empty() || self.rng.chance(60));
        let alone = alone || self.rng.chance(5);
        let columns = !in_registers && via != "tma" && (inside_thread || style < 52 && alone);
        if in_registers {
            self.write_out(path, at);
            // Who has which element as its reader has it.
            let reader = path.last().map(|s| s.stage.clone()).unwrap_or_default();
            let like = self.nests.iter().find(|n| n.0 == reader || n.0 == path[at].stage).cloned();
            let found = like.as_ref().is_some_and(|n| alike(self.kernel, &n.0, dimensions)) || self.rng.chance(6);
            let kind = self.rng.below(10);
            if let Some((name, nest)) = like.filter(|_| found && kind < 6 && !inside_thread && self.units != Units::One)
            {
                let mut ops = vec![format!("like {name}")];
                let reduced: Vec<&Loop> = own.loops.iter().filter(|l| l.reduced).collect();
                ops.extend(reduces_alike(&nest, &reduced));
                let loops =
                    nest.loops.iter().filter(|l| l.roots.iter().all(|r| own.loops.iter().any(|o| o.name == *r)));
                let loops: Vec<Loop> = loops.cloned().collect();
                let per = if outside.contains(&Given::Cta) || self.cluster.is_none() || self.rng.chance(35) {
                    *self.rng.pick(&["", "", "", " per cta"])
                } else {
                    " per cluster"
                };
                let per = if warps && (outside.contains(&Given::Warp) || self.rng.chance(20)) {
                    " per warp"
                } else if groups && outside.contains(&Given::Group) {
                    " per warpgroup"
                } else {
                    per
                };
                let inner = Nest { loops, fresh: 50, ..Nest::default() };
                return (format!("registers{per}"), clauses, ops, inner);
            }
            if kind < 9 && alone || inside_thread || self.units == Units::One {
                self.odd(&mut own, 12);
                for l in &mut own.loops {
                    if !l.reduced && self.rng.chance(85) {
                        own.ops.push(format!("unroll {}", l.name));
                        l.given = Given::Unrolled;
                    }
                }
                if self.rng.chance(25) && own.loops.iter().any(|l| l.reduced) {
                    let last = own.loops.len() - 1;
                    own.split(last, *self.rng.pick(&[2, 3, 4]), false);
                }
                let per = if self.rng.chance(88) || inside_thread { " per thread" } else { "" };
                return (format!("registers{per}"), clauses, own.ops.clone(), own);
            }
            self.give_threads(&mut own, self.units, true);
            self.reduce(&mut own);
            return ("registers".to_owned(), clauses, own.ops.clone(), own);
        }
        // Blocks share its terms.
        let reduced = own.loops.iter().rposition(|l| l.reduced);
        let place = self.kernel.equation(&path[at].stage).is_some_and(|e| e.output);
        let free = self.cluster.is_none() && self.roles.is_none() && !own.ordered && via.is_empty();
        if let Some(last) = reduced.filter(|_| place && free && self.rng.chance(30)) {
            own.split(last, *self.rng.pick(&[1, 2, 5, 16]), false);
            own.give(last, Given::Grid, "grid");
            let memory = if self.rng.chance(70) { "registers" } else { "shared" };
            match self.units {
                Units::One => {}
                units => {
                    let units = Units::Threads(units.threads());
                    let may_reduce = self.rng.chance(60);
                    self.give_threads(&mut own, units, may_reduce);
                }
            }
            self.reduce(&mut own);
            return (memory.to_owned(), clauses, own.ops.clone(), own);
        }
        // Memory. Rows whose length nothing bounds go to global memory.
        let is_bounded = !self.wild && self.inside(path, at, axes, 256) || data.iter().all(|l| l.most.is_some());
        let memory = match is_bounded {
            _ if via == "tma" || via == "cp_async" => "shared",
            true => *self.rng.pick(&["shared", "shared", "shared", "shared", "global"]),
            false => *self.rng.pick(&["global", "global", "global", "global", "shared"]),
        };
        clauses.extend(self.ring(&path[at]));
        if !via.is_empty() {
            clauses.push(format!("via {via}"));
        }
        if columns {
            self.odd(&mut own, 8);
            return (format!("{memory} per thread"), clauses, own.ops.clone(), own);
        }
        // Another role makes it, mostly.
        let mut units = self.units;
        let plain = outside.iter().all(|g| !matches!(g, Given::Warp | Given::Group | Given::Thread));
        if let Some((own_role, other)) = self.roles
            && plain
            && memory == "shared"
        {
            let role = if self.rng.chance(65) { other } else { own_role };
            if role == other {
                units = Units::Threads(32);
            }
            if role == other || self.rng.chance(50) {
                clauses.push(format!("by {role}"));
            }
        }
        if via == "tma" {
            return (memory.to_owned(), clauses, Vec::new(), own);
        }
        let per = if plain && (!(warps || groups) || self.rng.chance(70)) {
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
        if self.rng.chance(8) {
            own.ops.push(format!("region {}", self.rng.pick(&["cover", "exact"])));
        } else if self.rng.chance(4) && via.is_empty() && !own.loops.iter().any(|l| l.reduced) {
            // A run of elements, which is one axis from the beginning.
            let name = own.name("f");
            own.ops.push(format!("region flat -> {name}"));
            let roots = own.loops.iter().flat_map(|l| l.roots.clone()).collect();
            own.loops = vec![Loop { name, roots, reduced: false, most: None, inner: false, given: Given::Serial }];
        }
        self.odd(&mut own, 10);
        let lanes = via == "cp_async" && (self.kernel.ty == Type::F16 || self.rng.chance(40)) || self.rng.chance(8);
        if lanes && let Some(at) = own.loops.iter().rposition(|l| !l.reduced) {
            own.split(
                at,
                if self.kernel.ty == Type::F16 { *self.rng.pick(&[2, 4, 8]) } else { *self.rng.pick(&[2, 4]) },
                false,
            );
            own.ops.push(format!("vectorize {}", own.loops[at + 1].name));
            own.loops[at + 1].given = Given::Vector;
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
        let listed: Vec<&Loop> = own.loops.iter().filter(|l| !l.reduced).collect();
        if memory == "shared" && via.is_empty() && listed.len() > 1 && self.rng.chance(12) {
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
            own.ops.push(format!("layout [{}]", names.join(", ")));
        }
        (format!("{memory}{per}"), clauses, own.ops.clone(), own)
    }

    /// A copy of an input or an intermediate.
    pub(super) fn copy(&mut self, number: usize) {
        let mut reads: Vec<(String, String, Vec<Index>)> = Vec::new();
        for equation in &self.kernel.equations {
            equation.value.walk(&mut |e| {
                if let Expr::Read(tensor, indices, _) = e
                    && !tensor.starts_with('p')
                {
                    reads.push((equation.name.clone(), tensor.clone(), indices.clone()));
                }
            });
        }
        if reads.is_empty() {
            return;
        }
        let (reader, tensor, indices) = self.rng.pick(&reads).clone();
        let path = self.path(&reader);
        let input = self.kernel.inputs.iter().find(|i| i.name == tensor).cloned();
        let via = match self.rng.below(10) {
            0..4 if input.is_some() => "tma",
            4..6 if input.is_some() => "cp_async",
            _ => "",
        };
        let style = self.rng.below(100);
        let mut style = style;
        let letters = ["i", "j", "k"];
        let axes: Vec<String> = (indices.iter().zip(letters))
            .map(|(index, letter)| match index {
                Index::Axis(axis, ..) | Index::Mirrored(axis, _) | Index::Quotient(axis, ..) => axis.clone(),
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
        let Some((at, fits)) = self.fitting(&path, &axes, via.is_empty() && style < 45) else { return };
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
                given: Given::Serial,
            })
            .collect();
        let own = Nest { loops, ..Nest::default() };
        let alone = self.follows(&reader, &path[at].stage);
        let dimensions: Vec<(String, usize)> = (0..axes.len()).map(|n| (tensor.clone(), n)).collect();
        let (place, clauses, mut ops, nest) = self.instance(own, &axes, &path, at, style, (via, &dimensions, alone));
        if via == "tma" {
            let granule = 16 / self.kernel.ty.bytes() as i64;
            if self.rng.chance(60)
                && let Some(last) = axes.last()
            {
                let by = granule * *self.rng.pick(&[1, 2, 2, 4]);
                ops.push(format!("box {last} by {by} -> {last}c, {last}b"));
            }
            if axes.len() > 1 && self.rng.chance(30) {
                let first = &axes[0];
                ops.push(format!("box {first} by {} -> {first}c, {first}b", self.rng.pick(&[1, 2, 3, 4])));
            }
            let boxed = |axis: &String| ops.iter().any(|op| op.starts_with(&format!("box {axis} ")));
            if axes.last().is_some_and(boxed) && self.rng.chance(30) {
                let counts = axes.iter().filter(|a| boxed(a)).map(|a| format!("{a}c"));
                let tile = axes.iter().map(|a| if boxed(a) { format!("{a}b") } else { a.clone() });
                let list: Vec<String> = counts.chain(tile).collect();
                let span = *self.rng.pick(&["", " swizzle 32", " swizzle 64"]);
                ops.push(format!("layout [{}]{span}", list.join(", ")));
            }
            // Blocks take together what does not depend on which of them they are.
            let blocks = path.iter().find(|s| s.given == Given::Cta);
            let depends = blocks.is_none_or(|step| {
                let nest = self.nests.iter().find(|n| n.0 == step.stage);
                let found = nest.and_then(|n| n.1.loops.iter().find(|l| l.name == step.name));
                found.is_none_or(|l| l.roots.iter().any(|r| axes.contains(r)))
            });
            if let Some(step) = blocks.filter(|_| self.rng.chance(if depends { 5 } else { 75 })) {
                ops.push(format!("multicast {}.{}", step.stage, step.name));
            }
        }
        let narrow = |s: &Step| matches!(s.given, Given::Thread | Given::Warp | Given::Group);
        if via == "tma" && path[..=at].iter().any(narrow) && self.rng.chance(85) {
            return;
        }
        let step = path[at].clone();
        let name = format!("{tensor}{}", ["a", "b"][number % 2]);
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

    /// What an output writes goes through shared memory.
    pub(super) fn store(&mut self) {
        let Some(output) = self.kernel.equations.first().cloned() else { return };
        let path = self.path(&output.name);
        let Some(at) = self.place(&path, false) else { return };
        let mut clauses: Vec<String> = self.ring(&path[at]).into_iter().collect();
        clauses.push("via tma".to_owned());
        let axes: Vec<String> = output.axes.iter().map(|a| a.0.clone()).collect();
        if self.roles.is_some() && self.rng.chance(50) {
            clauses.push("by load".to_owned());
        }
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
