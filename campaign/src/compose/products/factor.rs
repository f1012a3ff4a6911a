//! Copies of the factors in shared memory, and factors that have an equation of their own: lanes hold them, or threads
//! write them to shared memory.

use super::{Engine, Factor, Made, Placed, Product, Threads, Via};
use crate::compose::ast::{Equation, Expr, Extent, Index, Input, PITCHES, Pitch, Reduction, Schedule, Stride, Type};

/// The names of a factor, of its copy, and of its axis that is not of terms.
const NAMES: [[&str; 3]; 2] = [["a", "sa", "m"], ["b", "sb", "n"]];

/// The input that says which one of a batch is multiplied.
const PLACES: &str = "pz";

/// The name of a factor.
pub(super) fn name(n: usize) -> &'static str {
    NAMES[n][0]
}

/// The axis of rows, or of columns.
pub(super) fn axis(n: usize) -> &'static str {
    NAMES[n][2]
}

/// The type of a factor in memory.
fn in_memory(product: &Product, n: usize) -> Type {
    product.held[n].map_or(product.factors[n].ty, |held| held.from)
}

/// The tensor that lanes hold, and the axis of a unit's part of it.
pub(super) const HELD: [[&str; 2]; 2] = [["fa", "m"], ["fb", "n"]];

fn index(axis: &str) -> Index {
    Index::Axis(axis.to_owned(), 1, 0)
}

fn read(product: &Product, tensor: &str, axes: [&str; 2]) -> Expr {
    let axes = product.batch.map(|_| "z").into_iter().chain(axes);
    Expr::Read(tensor.to_owned(), axes.map(index).collect(), None)
}

/// An element of a factor in memory, at the axes of the product.
fn in_tensor(product: &Product, n: usize) -> Expr {
    let factor = &product.factors[n];
    let own = [Index::Axis(axis(n).to_owned(), 1, factor.plus[0])];
    let terms = [Index::Axis("k".to_owned(), 1, factor.plus[1])];
    let placed = product.placed.filter(|placed| placed.of == n);
    let of_batch = |_| match placed {
        Some(Placed { each, .. }) => {
            let each = each.map(|(along, each)| index(["m", "n", "k"][along]).over(Extent::literal(each), false));
            Index::Gather(PLACES.to_owned(), [index("z")].into_iter().chain(each).collect(), None)
        }
        None => index("z"),
    };
    let batch = product.batch.map(of_batch);
    let or = placed.map(|_| Box::new(Expr::Literal(0)));
    let [first, second] = if factor.across { [terms, own] } else { [own, terms] };
    Expr::Read(name(n).to_owned(), batch.into_iter().chain(first).chain(second).collect(), or)
}

/// What says which one of a batch is multiplied.
pub(super) fn places(product: &Product, lengths: [Extent; 3]) -> Option<Input> {
    let each = product.placed?.each.map(|(along, _)| lengths[along]);
    let shape = product.batch.map(Extent::literal).into_iter().chain(each).collect();
    Some(Input { indices: true, ..Input::new(PLACES, Type::I32, shape) })
}

/// An element of a factor as the product reads it.
pub(super) fn element(product: &Product, n: usize) -> Expr {
    match product.held[n] {
        Some(_) => read(product, HELD[n][0], [axis(n), "k"]),
        None => in_tensor(product, n),
    }
}

/// Equations of a factor that lanes hold: what it is, and the product that it is of.
pub(super) fn equations(product: &Product, n: usize, lengths: [Extent; 3]) -> Vec<Equation> {
    let Some(held) = product.held[n] else { return Vec::new() };
    let ty = product.factors[n].ty;
    let all = |names: [&str; 2], extents: [Extent; 2]| {
        let batch = product.batch.map(|n| ("z", Extent::literal(n)));
        let axes = batch.into_iter().chain(names.into_iter().zip(extents));
        axes.map(|(name, extent)| (name.to_owned(), extent)).collect::<Vec<_>>()
    };
    let one = |name: &str, ty: Type, names, extents, value| Equation::new(name, ty, all(names, extents), value, false);
    let own = ([axis(n), "k"], [lengths[n], lengths[2]]);
    let cast = |from: Type, value: Expr| if from == ty { value } else { Expr::Cast(from, Box::new(value)) };
    let binary = |op, a: Expr, b: Expr| Expr::Binary(op, Box::new(a), Box::new(b));
    let wide = |from: Type| if from.is_integer() || from == Type::F32 { from } else { Type::F32 };
    let widened = |from: Type, value: Expr| match wide(from) == from {
        true => value,
        false => Expr::Cast(from, Box::new(value)),
    };
    let value = match held.made {
        Made::Nothing => cast(held.from, in_tensor(product, n)),
        Made::Scaled => {
            let scale = Expr::Read(format!("by{n}"), vec![index(axis(n))], None);
            cast(wide(held.from), binary("*", widened(held.from, in_tensor(product, n)), scale))
        }
        Made::Relu => {
            let value = widened(held.from, in_tensor(product, n));
            cast(wide(held.from), binary("max", value, Expr::Literal(0)))
        }
        Made::Product(_) => {
            let sum = product.sum();
            cast(sum, binary("max", read(product, "s", ["m", "k"]), Expr::Literal(-1)))
        }
    };
    let mut equations = vec![one(HELD[n][0], ty, own.0, own.1, value)];
    if let Some(steps) = product.chain(n) {
        let inner = Extent::literal(steps * product.depth());
        let of_lanes = product.tiles.engine == Engine::MmaSync;
        let [first, second] = if of_lanes { ["fq", "fw"] } else { ["q", "w"] };
        let term = binary("*", read(product, first, ["m", "d"]), read(product, second, ["k", "d"]));
        let dot = Expr::reduce(Reduction::Dot, vec![("d".to_owned(), inner)], ty, term);
        equations.push(one("s", product.sum(), own.0, own.1, dot));
        if of_lanes {
            equations.push(one("fq", ty, ["m", "d"], [lengths[0], inner], read(product, "q", ["m", "d"])));
            equations.push(one("fw", ty, ["k", "d"], [lengths[2], inner], read(product, "w", ["k", "d"])));
        }
    }
    equations
}

/// What the equation of a factor reads beside its tensor, or in its place.
pub(super) fn others(product: &Product, n: usize, lengths: [Extent; 3]) -> Vec<Input> {
    let (Some(held), ty) = (product.held[n], product.factors[n].ty) else { return Vec::new() };
    match held.made {
        Made::Scaled => {
            let ty = if held.from.is_integer() { held.from } else { Type::F32 };
            vec![Input::new(&format!("by{n}"), ty, vec![lengths[n]])]
        }
        Made::Product(steps) => {
            let inner = Extent::literal(steps * product.depth());
            let batch = || product.batch.map(Extent::literal);
            let of = |name, rows| Input::new(name, ty, batch().into_iter().chain([rows, inner]).collect());
            vec![of("q", lengths[n]), of("w", lengths[2])]
        }
        Made::Nothing | Made::Relu => Vec::new(),
    }
}

/// The ops that deal rows (columns) and terms out as tensor cores read them: by `fragment`, or its splits.
pub(super) fn dealt(product: &Product, n: usize, rows: &str, around: Option<&str>) -> Vec<String> {
    let Some(held) = product.held[n] else { return Vec::new() };
    let (engine, each) = (product.tiles.engine, 4 / product.factors[n].ty.bytes());
    let count = product.tiles.unit()[n];
    if each == 2 && !held.by_hand {
        let mut ops = vec![format!("fragment ({rows}, k) by {}", engine.word())];
        ops.extend(held.vector.then(|| "vectorize k_p".to_owned()));
        return ops;
    }
    let mut ops = Vec::new();
    let mut own = rows.to_owned();
    let [mut threads, mut serial] = [Vec::new(), Vec::new()];
    if engine == Engine::Wgmma {
        if count > 64 {
            ops.push(format!("split {own} by 64 -> fo, f64"));
            (own, serial) = ("f64".to_owned(), vec!["fo"]);
        }
        ops.push(format!("split {own} by 16 -> fw, f16"));
        (own, threads) = ("f16".to_owned(), vec!["fw"]);
    }
    ops.push(format!("split {own} by 8 -> fh, fr"));
    ops.push(format!("split k by {} -> fg, f4", 4 * each));
    ops.push(format!("split f4 by {each} -> fq, fp"));
    threads.extend(["fr", "fq"]);
    serial.extend(["fg", "fh", "fp"]);
    let order = around.into_iter().chain(threads).chain(serial);
    ops.push(format!("reorder {}", order.collect::<Vec<_>>().join(", ")));
    ops.extend((engine == Engine::Wgmma).then(|| "bind fw: warp".to_owned()));
    ops.push("bind fr, fq: thread".to_owned());
    ops.extend((held.vector && each > 1).then(|| "vectorize fp".to_owned()));
    ops
}

/// A factor as an input, with the strides that are told at launch.
pub(super) fn input(product: &Product, n: usize, lengths: [Extent; 3], pitches: &mut Vec<Pitch>) -> Input {
    let factor = &product.factors[n];
    let longer = |extent: Extent, plus: i64| Extent { plus: extent.plus + plus, ..extent };
    let own = [longer(lengths[n], factor.plus[0]), longer(lengths[2], factor.plus[1])];
    let own = if factor.across { [own[1], own[0]] } else { own };
    let shape: Vec<Extent> = product.batch.map(Extent::literal).into_iter().chain(own).collect();
    let mut input = Input::new(name(n), in_memory(product, n), shape);
    if factor.pitched && pitches.len() + 2 < PITCHES.len() {
        let mut pitch = |of: Option<usize>, least: Extent| {
            pitches.push(Pitch { of, least, divides: granule(factor), told: false });
            pitches.len() - 1
        };
        let row = pitch(None, own[1]);
        input.strides = vec![Stride::Pitch(row), Stride::Extent(Extent::literal(1))];
        if product.batch.is_some() {
            input.strides.insert(0, Stride::Pitch(pitch(Some(row), own[0])));
        }
    }
    input
}

/// Elements that copies fetch at once.
pub(super) fn granule(factor: &Factor) -> i64 {
    let bytes = match factor.via {
        Via::Tma => 16,
        Via::Threads(threads) => threads.chunk,
    };
    bytes / factor.ty.bytes() as i64
}

/// The copy of a factor.
pub(super) fn copy(product: &Product, n: usize, at: (String, String)) -> Schedule {
    let factor = &product.factors[n];
    let [of, name, x] = NAMES[n];
    let mut axes = if factor.across { vec!["k", x] } else { vec![x, "k"] };
    if product.batch.is_some() {
        axes.insert(0, "z");
    }
    let mut clauses: Vec<String> = Vec::new();
    clauses.extend(factor.ring.map(|ring| format!("ring({ring})")));
    let maker = if product.is_written(n) && product.held[n].is_none() {
        product.roles.map_or("load", |roles| roles.writes.name())
    } else {
        "load"
    };
    let (via, unit) = match factor.via {
        Via::Tma => (Some("via tma"), ""),
        Via::Threads(threads) => {
            (threads.ahead.then_some("via cp_async"), if threads.of_warp { " per warp" } else { "" })
        }
    };
    clauses.extend(via.map(str::to_owned));
    let by = if unit.is_empty() { maker } else { "math" };
    clauses.extend(product.roles.map(|_| format!("by {by}")));
    let ops = match factor.via {
        Via::Tma => tiles(product, n),
        Via::Threads(threads) if product.tiles.engine == Engine::Wgmma && !threads.padded => {
            let axes = if factor.across { ["k", x] } else { [x, "k"] };
            written(product, n, (threads.chunk, factor.across), axes)
        }
        Via::Threads(threads) => by_threads(product, n, threads),
    };
    Schedule {
        name: name.to_owned(),
        copy: Some((axes.into_iter().map(str::to_owned).collect(), of.to_owned())),
        place: format!("shared{unit}"),
        at: Some(at),
        clauses,
        ops,
        loops: Vec::new(),
    }
}

/// Chunks that threads fetch, in rows, and the layout of a tile.
fn by_threads(product: &Product, n: usize, threads: Threads) -> Vec<String> {
    let factor = &product.factors[n];
    let own = if threads.of_warp { product.tiles.unit()[n] } else { product.block()[n] };
    let (rows, columns) = if factor.across { (product.terms(), own) } else { (own, product.terms()) };
    let [outer, inner] = if factor.across { ["k", axis(n)] } else { [axis(n), "k"] };
    let warps = match product.roles {
        _ if threads.of_warp => 1,
        Some(roles) => roles.load,
        None => product.tiles.warps(),
    };
    let (lanes, each) = (32 * warps, granule(factor).max(1));
    let chunks = (columns / each).max(1);
    let beside = (0..8).map(|n| 1 << n).take_while(|n| chunks % n == 0 && lanes % n == 0).last().unwrap_or(1);
    let below = (lanes / beside).min(rows.max(1));
    let mut ops = vec![
        format!("split {inner} by {each} -> cc, cv"),
        format!("split cc by {beside} -> co, ct"),
        format!("split {outer} by {below} -> ro, rt"),
        format!("reorder {}, ro, co, cv", if threads.chunks_outside { "ct, rt" } else { "rt, ct" }),
        format!("bind {}: thread", if threads.chunks_outside { "ct, rt" } else { "rt, ct" }),
        "vectorize cv".to_owned(),
    ];
    if each == 1 {
        ops.pop();
    }
    if factor.bare {
        return ops;
    }
    let end = match (threads.padded, factor.swizzle) {
        (true, _) => format!(" pad {each}]"),
        (_, 0) => "]".to_owned(),
        (_, bytes) => format!("] swizzle {bytes}"),
    };
    ops.push(format!("layout [{outer}, {inner}{end}"));
    ops
}

/// A factor that threads write to shared memory, from its equation.
pub(super) fn made(product: &Product, n: usize, at: &(String, String)) -> Option<Schedule> {
    let written = product.written(n)?;
    let factor = &product.factors[n];
    let across = factor.across ^ written.turned;
    let ring = factor.ring.map(|ring| format!("ring({ring})"));
    let by = product.roles.map(|roles| format!("by {}", roles.writes.name()));
    let mut ops = self::written(product, n, (written.chunk, across), [axis(n), "k"]);
    if written.unrolled {
        ops.push("unroll pr".to_owned());
    }
    Some(Schedule {
        name: HELD[n][0].to_owned(),
        copy: None,
        place: "shared".to_owned(),
        at: Some(at.clone()),
        clauses: ring.into_iter().chain(by).collect(),
        ops,
        loops: Vec::new(),
    })
}

/// Chunks that threads write where tensor cores read them: runs of a swizzle's length, those of one row or column side
/// by side, outside of them rows or columns. `axes` are the order in which the stage has its axes.
fn written(product: &Product, n: usize, (chunk, across): (i64, bool), axes: [&str; 2]) -> Vec<String> {
    let factor = &product.factors[n];
    let bytes = factor.ty.bytes() as i64;
    let (x, own, terms) = (axis(n), product.block()[n], product.terms());
    let ([outer, inner], length) = if across { (["k", x], own) } else { ([x, "k"], terms) };
    let run = factor.swizzle.max(16) / bytes;
    let each = (chunk / bytes).clamp(1, run);
    let mut ops = Vec::new();
    let (mut along, mut runs) = (inner, None);
    if length > run {
        ops.push(format!("split {inner} by {run} -> wr, wx"));
        (along, runs) = ("wx", Some("wr"));
    }
    let (mut chunks, mut lanes) = (along, None);
    if each > 1 {
        ops.push(format!("split {along} by {each} -> wc, wv"));
        (chunks, lanes) = ("wc", Some("wv"));
    }
    let all: Vec<&str> = [outer].into_iter().chain(runs).chain([chunks]).collect();
    if axes != [outer, inner] {
        ops.push(format!("reorder {}", all.iter().copied().chain(lanes).collect::<Vec<_>>().join(", ")));
    }
    ops.push(format!("merge {} -> p", all.join(", ")));
    ops.push(format!("split p by {} -> pr, t", product.writers()));
    ops.push("bind t: thread".to_owned());
    ops.extend(lanes.map(|lanes| format!("vectorize {lanes}")));
    if !factor.bare {
        let end = if factor.swizzle > 0 { format!("] swizzle {}", factor.swizzle) } else { "]".to_owned() };
        let order: Vec<&str> = runs.into_iter().chain([outer, chunks]).chain(lanes).collect();
        ops.push(format!("layout [{}{end}", order.join(", ")));
    }
    ops
}

/// Copies of the factors of a product that is a factor itself, where that is not of lanes.
pub(super) fn copies_of_chain(product: &Product, steps: i64, at: [(String, String); 2]) -> Vec<Schedule> {
    let bytes = steps * product.depth() * product.factors[0].ty.bytes() as i64;
    let one = |([name, of, x], at, ring): ([&str; 3], (String, String), Option<i64>)| {
        let axes = product.batch.map(|_| "z").into_iter().chain([x, "d"]);
        let clauses = ring.map(|n| format!("ring({n})")).into_iter().chain(["via tma".to_owned()]);
        Schedule {
            name: name.to_owned(),
            copy: Some((axes.map(str::to_owned).collect(), of.to_owned())),
            place: "shared".to_owned(),
            at: Some(at),
            clauses: clauses.chain(product.roles.map(|_| "by load".to_owned())).collect(),
            ops: vec![format!("layout [{x}, d] swizzle {bytes}")],
            loops: Vec::new(),
        }
    };
    let [around, inside] = at;
    let ring = product.factors[1].ring.filter(|_| around != inside);
    vec![one((["sq", "q", "m"], around, None)), one((["sw", "w", "k"], inside, ring))]
}

/// Boxes, the layout of a tile, and who takes part in it.
fn tiles(product: &Product, n: usize) -> Vec<String> {
    let factor = &product.factors[n];
    let (x, [block, terms]) = (axis(n), [product.block()[n], product.terms()]);
    let run = factor.swizzle.max(16) / factor.ty.bytes() as i64;
    let mut ops = Vec::new();
    let cut = |ops: &mut Vec<String>, axis: &str, by: Option<i64>| {
        let Some(by) = by else { return (None, axis.to_owned()) };
        ops.push(format!("box {axis} by {by} -> {axis}c, {axis}b"));
        (Some(format!("{axis}c")), format!("{axis}b"))
    };
    let longer = |length: i64, by: i64| (length > by).then_some(by);
    let (along, across) = match factor.across {
        true => (cut(&mut ops, "k", None), cut(&mut ops, x, longer(block, run))),
        false => {
            let rows = cut(&mut ops, x, factor.rows);
            (cut(&mut ops, "k", longer(terms, run)), rows)
        }
    };
    let outer = if factor.rows_outside { [&across.0, &along.0] } else { [&along.0, &across.0] };
    let inner = if factor.across { [&along.1, &across.1] } else { [&across.1, &along.1] };
    // Parts of a tile lie at places of their own.
    let parts =
        product.placed.filter(|p| p.of == n && p.each.is_some_and(|(along, each)| each < product.block()[along]));
    let order = outer.into_iter().flatten().chain(inner).map(String::as_str);
    let order: Vec<&str> = parts.map(|_| "z").into_iter().chain(order).collect();
    if !factor.bare {
        let swizzle = if factor.swizzle > 0 { format!(" swizzle {}", factor.swizzle) } else { String::new() };
        ops.push(format!("layout [{}]{swizzle}", order.join(", ")));
    }
    if let Some(cluster) = product.cluster
        && cluster.multicast
        && cluster.beside == (n == 0)
    {
        // Each block fetches one of as many slices.
        let slices = block / if factor.across { run } else { factor.rows.unwrap_or(block) };
        let parts = across
            .0
            .filter(|_| cluster.parts && slices == cluster.blocks)
            .map(|part| format!(" by {part}"))
            .unwrap_or_default();
        ops.push(format!("multicast c.{}{parts}", if cluster.beside { "nc" } else { "mc" }));
    }
    ops.extend(factor.hint.map(str::to_owned));
    ops
}
