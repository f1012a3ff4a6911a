//! The kernel that the decisions of a product say.

use super::{Also, Between, Engine, Grid, Product, Split, Store, Writer, epilogue, factor};
use crate::compose::ast::{End, Expr, Extent, Kernel, Reduction, Schedule, Tile};

/// Clauses of what the role that multiplies computes.
fn by_math(product: &Product) -> Vec<String> {
    product.roles.map(|_| "by math".to_owned()).into_iter().collect()
}

impl Product {
    /// Rows, columns and terms.
    fn lengths(&self) -> [Extent; 3] {
        std::array::from_fn(|n| self.literal[n].map_or(Extent::size(n), Extent::literal))
    }

    /// What must divide each size: what copies, vectors and facts of even tiles need.
    fn divides(&self) -> [i64; 3] {
        let mut divides = [1; 3];
        let mut need = |n: usize, by: i64| divides[n] = lcm(divides[n], by);
        for (n, block) in self.block().into_iter().enumerate().filter(|(n, _)| self.even[*n]) {
            need(n, block);
        }
        if self.unproved {
            return divides;
        }
        for (n, factor) in self.factors.iter().enumerate().filter(|(_, factor)| !factor.pitched) {
            let by = match self.held[n] {
                _ if self.is_copied(n) => factor::granule(factor),
                Some(held) if held.vector => 4 / factor.ty.bytes() as i64,
                _ => 1,
            };
            need(if factor.across { n } else { 2 }, by);
        }
        for n in 0..2 {
            if let Some(written) = self.written(n) {
                let across = self.factors[n].across ^ written.turned;
                need(if across { n } else { 2 }, written.chunk / self.factors[n].ty.bytes() as i64);
            }
        }
        let inner = usize::from(!self.transposed);
        match self.store {
            Store::Vector => need(inner, 2),
            Store::Shared(_) => need(inner, 16 / self.output.bytes() as i64),
            _ => {}
        }
        divides
    }

    /// Whether all terms are in one iteration.
    fn is_one_iteration(&self) -> bool {
        self.factors.iter().any(|f| f.whole) && self.literal[2] == Some(self.terms())
    }

    /// The `dot`.
    fn terms_of_sums(&self, lengths: [Extent; 3]) -> Expr {
        let read = |n: usize| Box::new(factor::element(self, n));
        let [first, second] = if self.exchanged { [read(1), read(0)] } else { [read(0), read(1)] };
        let terms = vec![("k".to_owned(), lengths[2])];
        let mut dot = Expr::reduce(Reduction::Dot, terms, self.factors[0].ty, Expr::Binary("*", first, second));
        if let Expr::Reduce(reduce) = &mut dot
            && self.fewer
        {
            let fewer = Extent { plus: lengths[2].plus - 8, ..lengths[2] };
            reduce.ranges = vec![Some((End::known(Extent::literal(0)), End::known(fewer)))];
        }
        dot
    }

    /// The kernel.
    pub fn kernel(&self) -> Kernel {
        let lengths = self.lengths();
        let mut pitches = Vec::new();
        let in_memory = (0..2).filter(|n| self.chain(*n).is_none());
        let mut inputs: Vec<_> = in_memory.map(|n| factor::input(self, n, lengths, &mut pitches)).collect();
        inputs.extend((0..2).flat_map(|n| factor::others(self, n, lengths)));
        inputs.extend(factor::places(self, lengths));
        inputs.extend(epilogue::inputs(self, lengths));
        let mut least = [0; 3];
        if self.fewer {
            least[2] = 8;
        }
        let mut equations = epilogue::equations(self, lengths, self.terms_of_sums(lengths));
        equations.extend((0..2).flat_map(|n| factor::equations(self, n, lengths)));
        let mut kernel = Kernel {
            ty: self.sum(),
            inputs,
            pitches,
            most: [None; 3],
            divides: self.divides(),
            least,
            relation: None,
            equations,
            launch: self.launch(),
            units: Vec::new(),
            schedules: Vec::new(),
            tuned: Vec::new(),
            inlined: Vec::new(),
            tile: Some(Tile { iterations: self.whole_tile(), literal: self.literal }),
        };
        let (output, last) = self.output_schedule();
        kernel.schedules.push(output.clone());
        let place = ("c".to_owned(), last);
        if let Store::Shared(swizzle) = self.store {
            kernel.schedules.push(self.store_schedule(swizzle, &place.1));
        }
        if self.also == Some(Also::Equation) {
            let mut beside = Schedule { name: "d".to_owned(), at: Some(place.clone()), ..output.clone() };
            // It has no blocks of its own, whose order it could say.
            for op in &mut beside.ops {
                op.truncate(op.find(" raster").unwrap_or(op.len()));
            }
            kernel.schedules.push(beside);
        }
        if self.between == Between::Stage {
            kernel.schedules.push(self.fragment("x", &place));
        }
        for (name, _) in epilogue::rows(self) {
            kernel.schedules.push(self.row(&name, &place));
        }
        kernel.schedules.push(self.sums(&place));
        let around = ("acc".to_owned(), "ko".to_owned());
        let at = |whole: bool| if whole { place.clone() } else { around.clone() };
        let is_one = self.is_one_iteration();
        for n in 0..2 {
            let Some(held) = self.held[n] else { continue };
            let inside = self.tiles.inner > 1 && !held.outside;
            let own = if inside { ("acc".to_owned(), "kk".to_owned()) } else { at(is_one) };
            if let Some(made) = factor::made(self, n, &at(self.factors[n].whole || is_one)) {
                kernel.schedules.push(made);
                continue;
            }
            kernel.schedules.extend(self.held_factor(n, &own));
            if let (Some(steps), Engine::Wgmma) = (self.chain(n), self.tiles.engine) {
                kernel.schedules.extend(factor::copies_of_chain(self, steps, [place.clone(), own]));
            }
        }
        for n in (0..2).filter(|n| self.is_copied(*n)) {
            kernel.schedules.push(factor::copy(self, n, at(self.factors[n].whole || is_one)));
        }
        kernel
    }

    /// Rows, columns and terms of all blocks of a cluster, and of those that share terms.
    fn whole_tile(&self) -> [i64; 3] {
        let mut tile = self.block();
        if let Some(cluster) = self.cluster {
            tile[usize::from(cluster.beside)] *= cluster.blocks;
        }
        if let Some(Split::By(n) | Split::Into(n)) = self.split {
            tile[2] *= n;
        }
        tile
    }

    fn launch(&self) -> Vec<String> {
        let mut items: Vec<String> = self.cluster.map(|c| format!("cluster({})", c.blocks)).into_iter().collect();
        items.extend(self.launch.iter().map(|item| (*item).to_owned()));
        if let Some(roles) = self.roles {
            let registers = |n: usize| roles.registers.map(|r| format!(" regs({})", r[n])).unwrap_or_default();
            let units = |count: i64, unit: &str| if count > 1 { format!("{count} {unit}") } else { unit.to_owned() };
            let (count, unit) = (self.tiles.units[0] * self.tiles.units[1], self.tiles.engine.unit());
            let load = if roles.load == 4 { "warpgroup".to_owned() } else { units(roles.load, "warp") };
            let load = format!("load: {load}{}", registers(0));
            let turns = if roles.turns > 1 { " alternate" } else { "" };
            let math = format!("math: {}{turns}{}", units(count * roles.turns, unit), registers(1));
            let mut all = if roles.math_first { vec![math, load] } else { vec![load, math] };
            if let (Writer::Make(warps), true) = (roles.writes, (0..2).any(|n| self.is_written(n))) {
                let make = if warps == 4 { "warpgroup".to_owned() } else { units(warps, "warp") };
                all.insert(1, format!("make: {make}"));
            }
            if roles.save {
                let is_whole = roles.registers.is_some();
                all.push(if is_whole { "save: warpgroup".to_owned() } else { "save: warp".to_owned() });
            }
            items.push(format!("roles {{ {} }}", all.join(", ")));
        }
        items
    }

    /// The schedule of the output, and the innermost loop of blocks in it.
    fn output_schedule(&self) -> (Schedule, String) {
        let [rows, columns, _] = self.block();
        let mut ops: Vec<String> = Vec::new();
        let mut order: Vec<&str> = Vec::new();
        let shared = |beside: bool| self.cluster.filter(|c| c.beside == beside).map(|c| c.blocks);
        let mut tile = |axis: &str, [outer, all, block, inner]: [&'static str; 4], by: i64, blocks: Option<i64>| {
            match blocks {
                Some(n) => {
                    ops.push(format!("split {axis} by {} -> {outer}, {all}", by * n));
                    ops.push(format!("split {all} by {by} -> {block}, {inner}"));
                }
                None => ops.push(format!("split {axis} by {by} -> {outer}, {inner}")),
            }
            inner
        };
        let mut mi = tile("m", ["mt", "ma", "mc", "mb"], rows, shared(false));
        let mut ni = tile("n", ["nt", "na", "nc", "nb"], columns, shared(true));
        order.extend(self.batch.map(|_| "z"));
        let cta = self.cluster.map(|c| if c.beside { "nc" } else { "mc" });
        match self.grid {
            Grid::Swapped => order.extend(["nt", "mt"].into_iter().chain(cta)),
            // Blocks are outside of loops.
            Grid::Serial => order.extend(["mt"].into_iter().chain(cta).chain(["nt"])),
            _ => order.extend(["mt", "nt"].into_iter().chain(cta)),
        }
        let mut units = Vec::new();
        let mut part_of = |n: usize, axis: &mut &'static str, [outer, inner]: [&'static str; 2]| {
            if self.tiles.units[n] > 1 {
                ops.push(format!("split {axis} by {} -> {outer}, {inner}", self.tiles.unit()[n]));
                *axis = inner;
                units.push(outer);
            }
        };
        part_of(0, &mut mi, ["mw", "m2"]);
        part_of(1, &mut ni, ["nw", "n2"]);
        if let Some(part) = self.part {
            ops.push(format!("split {ni} by {part} -> ns, ni"));
            ni = "ni";
            order.push("ns");
        }
        order.extend(&units);
        order.extend([mi, ni]);
        ops.push(format!("reorder {}", order.join(", ")));
        let batch = if self.batch.is_some() { "z, " } else { "" };
        match self.grid {
            Grid::Both => ops.push(format!("bind {batch}mt, nt: grid")),
            Grid::Swapped => ops.push(format!("bind {batch}nt, mt: grid")),
            Grid::Raster(n) => ops.push(format!("bind {batch}mt, nt: grid raster(mt: {n})")),
            Grid::Descending => ops.push(format!("bind {batch}mt, nt: grid raster(mt: 2, nt: descending)")),
            Grid::Merged => {
                ops.push("merge mt, nt -> t".to_owned());
                ops.push(format!("bind {batch}t: grid"));
            }
            Grid::Serial => ops.push(format!("bind {batch}mt: grid")),
        }
        ops.extend(cta.map(|axis| format!("bind {axis}: cta")));
        if self.part.is_some() {
            ops.push("unroll ns".to_owned());
        }
        ops.extend(self.bind_units(&units));
        if self.store == Store::Foreign {
            let unit = if self.tiles.engine == Engine::Wgmma { "warp" } else { "thread" };
            ops.push(format!("split {mi} by 4 -> mo, mq"));
            ops.push(format!("bind mq: {unit}"));
        } else {
            ops.push(format!("fragment ({mi}, {ni}) by {}", self.tiles.engine.word()));
        }
        ops.extend(self.neighbours(ni));
        let tiles = match self.grid {
            Grid::Merged => "t",
            Grid::Swapped => "mt",
            _ => "nt",
        };
        let schedule = Schedule {
            name: "c".to_owned(),
            copy: None,
            place: String::new(),
            at: None,
            clauses: by_math(self),
            ops,
            loops: Vec::new(),
        };
        let inner = cta.filter(|_| self.grid != Grid::Serial);
        (schedule, inner.unwrap_or(tiles).to_owned())
    }

    /// What becomes of the two neighbours that a lane has.
    fn neighbours(&self, columns: &str) -> Option<String> {
        match self.store {
            Store::Shared(_) if self.transposed => Some(format!("unroll {columns}_p")),
            Store::Vector | Store::Shared(_) => Some(format!("vectorize {columns}_p")),
            Store::Single => Some(format!("unroll {columns}_p")),
            Store::Loop | Store::Foreign => None,
        }
    }

    fn store_schedule(&self, swizzle: i64, last: &str) -> Schedule {
        let mut axes = vec!["m".to_owned(), "n".to_owned()];
        if self.transposed {
            axes.reverse();
        }
        let mut ops = Vec::new();
        if swizzle > 0 {
            ops.push(format!("layout [{}] swizzle {swizzle}", axes.join(", ")));
        }
        if self.batch.is_some() {
            axes.insert(0, "z".to_owned());
        }
        let role = self.roles.map(|roles| if roles.save { "by save" } else { "by math" });
        let ring = self.slots.map(|slots| format!("ring({slots})"));
        Schedule {
            name: "cs".to_owned(),
            copy: Some((axes, "c".to_owned())),
            place: "shared".to_owned(),
            at: Some(("c".to_owned(), if self.part.is_some() { "ns" } else { last }.to_owned())),
            clauses: ring.into_iter().chain(["via tma".to_owned()]).chain(role.map(str::to_owned)).collect(),
            ops,
            loops: Vec::new(),
        }
    }

    /// The bind of the axes of units.
    fn bind_units(&self, units: &[&str]) -> Option<String> {
        (!units.is_empty()).then(|| format!("bind {}: {}", units.join(", "), self.tiles.engine.unit()))
    }

    /// Splits that give units their tiles, in a stage of a block's tile: the axes of units, and those of a tile.
    fn units(&self, ops: &mut Vec<String>) -> (Vec<&'static str>, [&'static str; 2]) {
        let (mut units, mut tile) = (Vec::new(), ["m", "n"]);
        for (n, [outer, inner]) in [["mw", "m2"], ["nw", "n2"]].into_iter().enumerate() {
            if self.tiles.units[n] > 1 {
                ops.push(format!("split {} by {} -> {outer}, {inner}", tile[n], self.tiles.unit()[n]));
                units.push(outer);
                tile[n] = inner;
            }
        }
        (units, tile)
    }

    /// The sums.
    fn sums(&self, place: &(String, String)) -> Schedule {
        let mut ops = Vec::new();
        let mut order = Vec::new();
        let inner = self.tiles.inner > 1;
        let rest = if inner { "k1" } else { "ki" };
        let mut terms = if self.is_one_iteration() {
            "k"
        } else {
            let terms = self.terms();
            match self.split {
                None => ops.push(format!("split k by {terms} -> ko, {rest}")),
                Some(Split::By(n)) => {
                    ops.push(format!("split k by {} -> ks, kp", n * terms));
                    ops.push(format!("split kp by {terms} -> ko, {rest}"));
                }
                Some(Split::Into(n)) => {
                    ops.push(format!("split k by {terms} -> kp, {rest}"));
                    ops.push(format!("split kp into {n} -> ks, ko"));
                }
            }
            order.extend(self.split.map(|_| "ks"));
            order.push("ko");
            rest
        };
        let split = self.split.filter(|_| terms != "k");
        if inner {
            ops.push(format!("split {terms} by {} -> kk, ki", self.tiles.steps * self.depth()));
            order.push("kk");
            terms = "ki";
        }
        let (units, [m, n]) = self.units(&mut ops);
        order.extend(&units);
        order.extend([m, n, terms]);
        ops.push(format!("reorder {}", order.join(", ")));
        ops.extend((inner && self.tiles.unrolled).then(|| "unroll kk".to_owned()));
        ops.extend(self.bind_units(&units));
        let inflight = if self.inflight > 0 { format!(" inflight({})", self.inflight) } else { String::new() };
        ops.extend(split.map(|_| "bind ks: grid".to_owned()));
        ops.push(format!("mma ({m}, {n}, {terms}) by {}{inflight}", self.tiles.engine.word()));
        ops.extend(split.map(|_| format!("reduce ks by {}", if self.atomic { "atomic" } else { "grid" })));
        self.stage("acc", place, ops)
    }

    /// A factor as tensor cores read it from registers, and what it is made of.
    fn held_factor(&self, n: usize, place: &(String, String)) -> Vec<Schedule> {
        let Some(held) = self.held[n] else { return Vec::new() };
        let (engine, [_, axis]) = (self.tiles.engine, factor::HELD[n]);
        let own = engine == Engine::MmaSync && !held.of_block;
        let all = if own { "registers per warp" } else { "registers" };
        let (outer, inner) = if n == 0 { ("mw", "m2") } else { ("nw", "n2") };
        // Of a unit that has an instance of its own, there is nothing to divide.
        let divided = !own && self.tiles.units[n] > 1;
        let begun = || {
            let split = [format!("split {axis} by {} -> {outer}, {inner}", self.tiles.unit()[n])];
            let ops = split.into_iter().chain(self.bind_units(&[outer]));
            if divided { (ops.collect(), inner, Some(outer)) } else { (Vec::new(), axis, None) }
        };
        let stage = |name: &str, ops| Schedule { place: all.to_owned(), ..self.stage(name, place, ops) };
        let (mut ops, rows, around): (Vec<String>, _, _) = begun();
        ops.extend(factor::dealt(self, n, rows, around));
        let mut all = vec![stage(factor::HELD[n][0], ops)];
        if self.chain(n).is_some() {
            let (mut ops, rows, around) = begun();
            ops.push(format!("reorder {}", around.into_iter().chain([rows, "k", "d"]).collect::<Vec<_>>().join(", ")));
            ops.push(format!("mma ({rows}, k, d) by {}", engine.word()));
            all.push(stage("s", ops));
            if engine == Engine::MmaSync {
                let (mut ops, rows, _) = begun();
                ops.push(format!("fragment ({rows}, d) by mma_sync"));
                all.push(stage("fq", ops));
                all.push(stage("fw", vec!["fragment (k, d) by mma_sync".to_owned()]));
            }
        }
        all
    }

    /// A stage whose threads have the elements that those of the sums have.
    fn fragment(&self, name: &str, place: &(String, String)) -> Schedule {
        let mut ops = Vec::new();
        let (units, [m, n]) = self.units(&mut ops);
        ops.push(format!("reorder {}", units.iter().copied().chain([m, n]).collect::<Vec<_>>().join(", ")));
        ops.extend(self.bind_units(&units));
        ops.push(format!("fragment ({m}, {n}) by {}", self.tiles.engine.word()));
        ops.push(format!("unroll {n}_p"));
        self.stage(name, place, ops)
    }

    /// A reduction of rows of the sums, by the threads that have them: the splits of a fragment, written out.
    fn row(&self, name: &str, place: &(String, String)) -> Schedule {
        let mut ops = Vec::new();
        let (units, [m, n]) = self.units(&mut ops);
        let (mut rows, mut serial, mut threads) = (m, Vec::new(), Vec::new());
        if self.tiles.rows > 1 {
            ops.push(format!("split {rows} by {} -> mo, mt", self.tiles.engine.rows()));
            (rows, serial) = ("mt", vec!["mo"]);
        }
        let is_async = self.tiles.engine == Engine::Wgmma;
        if is_async {
            ops.push(format!("split {rows} by 16 -> mx, m16"));
            (rows, threads) = ("m16", vec!["mx"]);
        }
        ops.push(format!("split {rows} by 8 -> mh, mr"));
        ops.push(format!("split {n} by 8 -> nj, n8"));
        ops.push("split n8 by 2 -> nq, np".to_owned());
        threads.extend(["mr", "nq"]);
        serial.extend(["nj", "mh", "np"]);
        let order: Vec<&str> = units.iter().chain(&threads).chain(&serial).copied().collect();
        ops.push(format!("reorder {}", order.join(", ")));
        ops.extend(self.bind_units(&units));
        ops.extend(is_async.then(|| "bind mx: warp".to_owned()));
        ops.push("bind mr, nq: thread".to_owned());
        ops.extend(serial.into_iter().map(|axis| format!("unroll {axis}")));
        ops.push("reduce nq".to_owned());
        ops.extend(units.contains(&"nw").then(|| "reduce nw".to_owned()));
        self.stage(name, place, ops)
    }

    fn stage(&self, name: &str, place: &(String, String), ops: Vec<String>) -> Schedule {
        Schedule {
            name: name.to_owned(),
            copy: None,
            place: "registers".to_owned(),
            at: Some(place.clone()),
            clauses: by_math(self),
            ops,
            loops: Vec::new(),
        }
    }
}

fn lcm(a: i64, b: i64) -> i64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}
