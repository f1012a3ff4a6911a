//! The kernel that the decisions of a product say.

use super::{Between, Grid, Product, Split, Store, epilogue, factor};
use crate::compose::ast::{End, Expr, Extent, Index, Kernel, Reduction, Schedule};

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
            need(if factor.across { n } else { 2 }, factor::granule(factor));
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
        let read = |n: usize| {
            if n == 1 || self.held.is_none() {
                return Box::new(factor::element(self, n));
            }
            let axes = self.batch.map(|_| "z").into_iter().chain(["m", "k"]);
            let indices = axes.map(|axis| Index::Axis(axis.to_owned(), 1, 0)).collect();
            Box::new(Expr::Read("fa".to_owned(), indices, None))
        };
        let [first, second] = if self.exchanged { [read(1), read(0)] } else { [read(0), read(1)] };
        let terms = vec![("k".to_owned(), lengths[2])];
        let mut dot = Expr::reduce(Reduction::Dot, terms, self.factors[0].ty, Expr::Binary("*", first, second));
        if let Expr::Reduce(reduce) = &mut dot
            && self.fewer
        {
            let end = |plus: Extent| End { axis: None, plus };
            let fewer = Extent { plus: lengths[2].plus - 8, ..lengths[2] };
            reduce.ranges = vec![Some((end(Extent::literal(0)), end(fewer)))];
        }
        dot
    }

    /// The kernel.
    pub fn kernel(&self) -> Kernel {
        let lengths = self.lengths();
        let mut pitches = Vec::new();
        let mut inputs: Vec<_> = (0..2).map(|n| factor::input(self, n, lengths, &mut pitches)).collect();
        inputs.extend(epilogue::inputs(self, lengths));
        let mut least = [0; 3];
        if self.fewer {
            least[2] = 8;
        }
        let mut equations = epilogue::equations(self, lengths, self.terms_of_sums(lengths));
        equations.extend(factor::equation(self, lengths));
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
            inlined: Vec::new(),
            tile: Some(self.whole_tile()),
        };
        let (output, last) = self.output_schedule();
        kernel.schedules.push(output.clone());
        let place = ("c".to_owned(), last);
        if let Store::Shared(swizzle) = self.store {
            kernel.schedules.push(self.store_schedule(swizzle, &place.1));
        }
        if self.also {
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
        let at = |whole: bool| if whole { place.clone() } else { ("acc".to_owned(), "ko".to_owned()) };
        if self.held.is_some() {
            kernel.schedules.push(self.held_factor(&at(self.is_one_iteration())));
        }
        for n in 0..2 {
            let whole = self.factors[n].whole || self.is_one_iteration();
            if n == 1 || self.held.is_none_or(|held| held.copied) {
                kernel.schedules.push(factor::copy(self, n, at(whole)));
            }
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
            let groups = if self.tiles.groups > 1 { format!("{} ", self.tiles.groups) } else { String::new() };
            let load = format!("load: {}{}", roles.load, registers(0));
            let math = format!("math: {groups}warpgroup{}", registers(1));
            let mut all = if roles.math_first { vec![math, load] } else { vec![load, math] };
            if roles.save {
                all.push(if roles.registers.is_some() {
                    "save: warpgroup".to_owned()
                } else {
                    "save: warp".to_owned()
                });
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
        let mut unit = None;
        if self.tiles.groups > 1 {
            let (axis, outer, inner, by) = match self.tiles.beside {
                true => (&mut ni, "nw", "n2", self.tiles.columns),
                false => (&mut mi, "mw", "m2", 64 * self.tiles.rows),
            };
            ops.push(format!("split {axis} by {by} -> {outer}, {inner}"));
            *axis = inner;
            unit = Some(outer);
        }
        if let Some(part) = self.part {
            ops.push(format!("split {ni} by {part} -> ns, ni"));
            ni = "ni";
            order.push("ns");
        }
        order.extend(unit);
        order.extend([mi, ni]);
        ops.push(format!("reorder {}", order.join(", ")));
        let batch = if self.batch.is_some() { "z, " } else { "" };
        match self.grid {
            Grid::Both => ops.push(format!("bind {batch}mt, nt: grid")),
            Grid::Swapped => ops.push(format!("bind {batch}nt, mt: grid")),
            Grid::Raster(n) => ops.push(format!("bind {batch}mt, nt: grid raster(mt: {n})")),
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
        ops.extend(unit.map(|axis| format!("bind {axis}: warpgroup")));
        if self.store == Store::Foreign {
            ops.push(format!("split {mi} by 4 -> mo, mq"));
            ops.push("bind mq: warp".to_owned());
        } else {
            ops.push(format!("fragment ({mi}, {ni}) by wgmma"));
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

    /// Splits that give warpgroups their tiles, in a stage of a block's tile: the axes of a warpgroup's.
    fn groups(&self, ops: &mut Vec<String>) -> (Option<&'static str>, [&'static str; 2]) {
        match (self.tiles.groups, self.tiles.beside) {
            (1, _) => (None, ["m", "n"]),
            (_, true) => {
                ops.push(format!("split n by {} -> nw, n2", self.tiles.columns));
                (Some("nw"), ["m", "n2"])
            }
            (_, false) => {
                ops.push(format!("split m by {} -> mw, m2", 64 * self.tiles.rows));
                (Some("mw"), ["m2", "n"])
            }
        }
    }

    /// The sums.
    fn sums(&self, place: &(String, String)) -> Schedule {
        let mut ops = Vec::new();
        let mut order = Vec::new();
        let terms = if self.is_one_iteration() {
            "k"
        } else {
            let terms = self.terms();
            match self.split {
                None => ops.push(format!("split k by {terms} -> ko, ki")),
                Some(Split::By(n)) => {
                    ops.push(format!("split k by {} -> ks, kp", n * terms));
                    ops.push(format!("split kp by {terms} -> ko, ki"));
                }
                Some(Split::Into(n)) => {
                    ops.push(format!("split k by {terms} -> kp, ki"));
                    ops.push(format!("split kp into {n} -> ks, ko"));
                }
            }
            order.extend(self.split.map(|_| "ks"));
            order.push("ko");
            "ki"
        };
        let split = self.split.filter(|_| terms == "ki");
        let (unit, [m, n]) = self.groups(&mut ops);
        order.extend(unit);
        order.extend([m, n, terms]);
        ops.push(format!("reorder {}", order.join(", ")));
        ops.extend(unit.map(|axis| format!("bind {axis}: warpgroup")));
        let inflight = if self.inflight > 0 { format!(" inflight({})", self.inflight) } else { String::new() };
        ops.extend(split.map(|_| "bind ks: grid".to_owned()));
        ops.push(format!("mma ({m}, {n}, {terms}) by wgmma{inflight}"));
        ops.extend(split.map(|_| format!("reduce ks by {}", if self.atomic { "atomic" } else { "grid" })));
        self.stage("acc", place, ops)
    }

    /// The left factor, as tensor cores read it from registers.
    fn held_factor(&self, place: &(String, String)) -> Schedule {
        let mut ops = Vec::new();
        let mut rows = "m";
        if self.tiles.groups > 1 && !self.tiles.beside {
            ops.push(format!("split m by {} -> mw, m2", 64 * self.tiles.rows));
            ops.push("bind mw: warpgroup".to_owned());
            rows = "m2";
        }
        let mut dealt = factor::dealt(self, rows);
        if rows == "m2" {
            // Warpgroups are outside of all.
            dealt.iter_mut().for_each(|op| *op = op.replace("reorder fw", "reorder mw, fw"));
        }
        ops.extend(dealt);
        self.stage("fa", place, ops)
    }

    /// A stage whose threads have the elements that those of the sums have.
    fn fragment(&self, name: &str, place: &(String, String)) -> Schedule {
        let mut ops = Vec::new();
        let (unit, [m, n]) = self.groups(&mut ops);
        ops.push(format!("reorder {}", unit.into_iter().chain([m, n]).collect::<Vec<_>>().join(", ")));
        ops.extend(unit.map(|axis| format!("bind {axis}: warpgroup")));
        ops.push(format!("fragment ({m}, {n}) by wgmma"));
        ops.push(format!("unroll {n}_p"));
        self.stage(name, place, ops)
    }

    /// A reduction of rows of the sums, by the threads that have them: the splits of a fragment, written out.
    fn row(&self, name: &str, place: &(String, String)) -> Schedule {
        let mut ops = Vec::new();
        let (unit, [m, n]) = self.groups(&mut ops);
        let tiles = self.tiles.rows > 1;
        if tiles {
            ops.push(format!("split {m} by 64 -> mo, m64"));
        }
        ops.push(format!("split {} by 16 -> mx, m16", if tiles { "m64" } else { m }));
        ops.push("split m16 by 8 -> mh, mr".to_owned());
        ops.push(format!("split {n} by 8 -> nj, n8"));
        ops.push("split n8 by 2 -> nq, np".to_owned());
        let serial = if tiles { "mo, nj, mh, np" } else { "nj, mh, np" };
        let around = unit.map(|axis| format!("{axis}, ")).unwrap_or_default();
        ops.push(format!("reorder {around}mx, mr, nq, {serial}"));
        ops.extend(unit.map(|axis| format!("bind {axis}: warpgroup")));
        ops.push("bind mx: warp".to_owned());
        ops.push("bind mr, nq: thread".to_owned());
        ops.extend(serial.split(", ").map(|axis| format!("unroll {axis}")));
        ops.push("reduce nq".to_owned());
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
