//! Random kernels with staged copies: whatever is accepted equals the reference under earliest, latest and drawn
//! completion, without a finding. `TILEWRIGHT_TMA=SEED,COUNT` runs others than CI does.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::support::{Draw, finished, prove};
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::diag::Code;

/// An axis of the result or of the reduction, split in two.
struct Axis {
    name: &'static str,
    dim: &'static str,
    factor: usize,
    reduced: bool,
    /// Whether the outer part is a loop of the block rather than an axis of the grid.
    serial: bool,
    /// Whether the inner part is bound to threads.
    threads: bool,
    /// Whether it is not split at all, and bound to the grid.
    whole: bool,
}

/// A kernel as text, and sizes to try.
struct Case {
    source: String,
    sizes: Vec<Vec<i64>>,
}

const NAMES: [(&str, &str); 5] = [("p", "A"), ("q", "B"), ("r", "C"), ("u", "D"), ("w", "E")];

/// A layout by ops on axes of the tile: rows in another view and back, and chunks exchanged, for the most part as the
/// accelerator does it.
fn as_ops(draw: &mut Draw, tile: &[String], span: usize, bytes: usize, layout: &dyn Fn(&[String]) -> String) -> String {
    let (column, rows) = tile.split_last().expect("there are two");
    let mut text = String::new();
    let row = match rows {
        [only] => only.clone(),
        _ => {
            let _ = write!(text, "merge {} -> row; ", rows.join(", "));
            "row".to_owned()
        }
    };
    // Eight rows have room, so that what is left over lies after the tile.
    let _ = write!(text, "split {row} by 8 -> eights, eight; split {column} by {} -> chunk, lane; ", 16 / bytes);
    let chunks = span / 16;
    let mut list: Vec<String> = ["eights", "side", "same", "chunk", "lane"].map(str::to_owned).to_vec();
    let side = if draw.chance(90) { chunks } else { 1 << draw.below(4) };
    if draw.chance(50) {
        let _ = write!(text, "split eight by {} -> side, same; ", 8 / side);
    } else {
        let _ = write!(text, "split eight into {side} -> side, same; ");
    }
    if chunks > 1 {
        let sides = if draw.chance(95) { "side, chunk" } else { "chunk, side" };
        let _ = write!(text, "swizzle {sides} by xor -> x, y; ");
        let (x, y) = if sides.starts_with('s') { ("x", "y") } else { ("y", "x") };
        (list[1], list[3]) = (x.to_owned(), y.to_owned());
    }
    let _ = write!(text, "layout [{}]; ", layout(&list));
    text
}

/// The parts of a copy's `{ … }`.
fn view(draw: &mut Draw, axes: &[&Axis], granule: usize, bytes: usize, strided: bool) -> String {
    let mut text = String::new();
    let mut counts: Vec<String> = Vec::new();
    let mut tile: Vec<String> = Vec::new();
    let last = axes.len() - 1;
    let mut inner_bytes = 0;
    for (n, axis) in axes.iter().enumerate() {
        let region = if axis.whole { 1 } else { axis.factor };
        let name = axis.name;
        if draw.chance(10) && n != last {
            tile.push(name.to_owned());
            continue;
        }
        let sizes: Vec<usize> = (1..=region.max(1)).filter(|b| region % b == 0 || draw.chance(20)).collect();
        let mut size = if draw.chance(50) { region } else { *draw.pick(&sizes) };
        if n == last {
            size = size.next_multiple_of(granule);
            inner_bytes = size * bytes;
        }
        let _ = write!(text, "box {name} by {size} -> {name}c, {name}x; ");
        counts.push(format!("{name}c"));
        if strided && n != last && draw.chance(35) {
            let stride = 1 + draw.below(8);
            let _ = write!(text, "tile {name}x by {stride} -> {name}t, {name}s; ");
            counts.push(format!("{name}s"));
            tile.push(format!("{name}t"));
        } else {
            tile.push(format!("{name}x"));
        }
    }
    if draw.chance(50) {
        for at in (1..counts.len()).rev() {
            counts.swap(at, draw.below(at + 1));
        }
        // Any order of the tile's outer axes: the innermost one stays.
        for at in (1..tile.len() - 1).rev() {
            tile.swap(at, draw.below(at + 1));
        }
        let span = if matches!(inner_bytes, 32 | 64 | 128) && draw.chance(70) { inner_bytes } else { 16 };
        let layout = |tile: &[String]| [&counts, tile].concat().join(", ");
        if tile.len() > 1 && draw.chance(50) {
            text += &as_ops(draw, &tile, span, bytes, &layout);
        } else {
            let swizzle = if span == 16 { String::new() } else { format!(" swizzle {span}") };
            let _ = write!(text, "layout [{}]{swizzle}; ", layout(&tile));
        }
    }
    text
}

#[expect(clippy::too_many_lines, reason = "one draw after the other")]
fn case(draw: &mut Draw) -> Case {
    let (element, bytes) =
        *draw.pick(&[("f32", 4), ("f16", 2), ("i32", 4), ("u8", 1), ("f64", 8), ("bf16", 2), ("i64", 8)]);
    let granule = 16 / bytes;
    let rank = *draw.pick(&[1, 2, 2, 2, 3, 3, 4, 5]);
    let kind = draw.below(4); // pointwise, permuted, reduced, neighbours
    let reduced = (kind == 2 && rank > 1).then(|| draw.below(rank));
    let most: usize = if rank > 3 { 6 } else { 18 };
    let mut axes: Vec<Axis> = NAMES[..rank]
        .iter()
        .enumerate()
        .map(|(n, (name, dim))| {
            let inner = n == rank - 1;
            let factor = if inner {
                granule * *draw.pick(&[1, 1, 2, 3, 4])
            } else {
                1 + draw.below(if rank > 3 { 4 } else { 12 })
            };
            Axis {
                name,
                dim,
                factor,
                reduced: reduced == Some(n),
                serial: false,
                threads: false,
                whole: !inner && draw.chance(20),
            }
        })
        .collect();
    for axis in &mut axes {
        axis.whole &= !axis.reduced;
        axis.serial = axis.reduced || (!axis.whole && draw.chance(40));
        axis.threads = !axis.reduced && !axis.whole && draw.chance(60);
    }
    // A block has threads, and not too many.
    let mut threads = 1;
    for axis in &mut axes {
        if axis.threads && threads * axis.factor > 256 {
            axis.threads = false;
        }
        threads *= if axis.threads { axis.factor } else { 1 };
    }
    let data: Vec<usize> = (0..rank).filter(|n| !axes[*n].reduced).collect();
    let mut order = data.clone();
    if kind == 1 {
        for at in (1..order.len()).rev() {
            order.swap(at, draw.below(at + 1));
        }
    }
    let dims = |list: &[usize]| list.iter().map(|n| axes[*n].dim).collect::<Vec<_>>().join(", ");
    let names = |list: &[usize]| list.iter().map(|n| axes[*n].name).collect::<Vec<_>>().join(", ");
    let all: Vec<usize> = (0..rank).collect();
    let read = format!("x[{}]", names(&all));
    let value = match (kind, reduced) {
        (2, Some(k)) => {
            let (k, is_float) = (axes[k].name, element.starts_with(['f', 'b']));
            // What takes zeros in unchanged, and what does not.
            let mut terms = vec![
                format!("sum(|{k}| {read})"),
                format!("sum(|{k}| {read} * {read})"),
                format!("max(|{k}| {read})"),
                format!("min(|{k}| {read})"),
            ];
            let zero = if is_float { "0.0" } else { "0" };
            terms.push(format!("fold(|{k}| init ({zero}), step (s) => (s + {read}))"));
            terms
                .push(format!("fold(|{k}| init ({zero}), step (s) => (if {read} > {zero} {{ {read} }} else {{ s }}))"));
            if is_float {
                terms.push(format!("sum(|{k}| exp(-abs({read})))"));
                terms.push(format!("sum(|{k}| {read} + 1.0)"));
            } else {
                terms.push(format!("sum(|{k}| {read} + 1)"));
            }
            draw.pick(&terms).clone()
        }
        (3, _) if rank > 1 => {
            let shift = |by: &str| {
                let first = format!("{} {by}", axes[0].name);
                let rest: Vec<&str> = axes[1..].iter().map(|a| a.name).collect();
                format!("x[{first}, {}]", rest.join(", "))
            };
            let zero = if element.starts_with(['f', 'b']) { "0.0" } else { "0" };
            format!("({} or {zero}) + {read} + ({} or {zero})", shift("- 1"), shift("+ 2"))
        }
        _ => format!("{read} + {read}"),
    };
    // The output's rows and the input's rows, both in granules; sometimes nothing is cut at all, so that copies may be
    // runs.
    let whole = draw.chance(35);
    let needs = |n: usize| match whole {
        true => {
            if axes[n].whole {
                1
            } else {
                axes[n].factor
            }
        }
        false => {
            if n == rank - 1 || order.last() == Some(&n) {
                granule
            } else {
                1
            }
        }
    };
    let divisors: Vec<usize> = (0..rank).map(needs).collect();
    let mut facts: Vec<String> = (axes.iter().zip(&divisors))
        .filter(|(_, divisor)| **divisor > 1)
        .map(|(axis, divisor)| format!("{} % {divisor} == 0", axis.dim))
        .collect();
    if let (true, Some(inner)) = (whole, order.last().filter(|n| !divisors[**n].is_multiple_of(granule))) {
        facts.push(format!("{} % {granule} == 0", axes[*inner].dim));
    }
    // With a bound, a whole row of tiles may be inside an instance.
    for (n, axis) in axes.iter().enumerate().filter(|(_, a)| a.serial) {
        if draw.chance(30) {
            facts.push(format!("{} <= {}", axis.dim, most.next_multiple_of(lcm(divisors[n], granule))));
        }
    }
    let mut schedule = String::new();
    let mut loops: Vec<String> = Vec::new();
    let (mut grid, mut serial, mut inside) = (Vec::new(), Vec::new(), Vec::new());
    for n in order.iter().copied().chain(reduced) {
        let axis = &axes[n];
        let name = axis.name;
        if axis.whole {
            grid.push(name.to_owned());
            continue;
        }
        let _ = write!(schedule, "split {name} by {} -> {name}o, {name}i; ", axis.factor);
        if axis.serial {
            serial.push(format!("{name}o"))
        } else {
            grid.push(format!("{name}o"))
        }
        if axis.threads || axis.factor < 3 || draw.chance(75) {
            inside.push(format!("{name}i"));
            continue;
        }
        // Once more: what this overruns is the next tile's.
        let _ = write!(schedule, "split {name}i by {} -> {name}m, {name}n; ", 2 + draw.below(axis.factor - 1));
        inside.extend([format!("{name}m"), format!("{name}n")]);
    }
    loops.extend(grid.iter().chain(&serial).chain(&inside).cloned());
    let bound: Vec<String> =
        order.iter().filter(|n| axes[**n].threads).map(|n| format!("{}i", axes[*n].name)).collect();
    let _ = write!(schedule, "reorder {}; ", loops.join(", "));
    if !grid.is_empty() {
        let _ = write!(schedule, "bind {}: grid; ", grid.join(", "));
    }
    match &bound[..] {
        [] => {}
        [one] => {
            let _ = write!(schedule, "bind {one}: thread; ");
        }
        many => {
            let _ = write!(schedule, "bind {}: thread; ", many.join(", "));
        }
    }
    let places: Vec<&String> = grid.iter().chain(&serial).collect();
    let mut copies = String::new();
    let ring = |draw: &mut Draw, place: &String| match serial.contains(place) && draw.chance(50) {
        true => format!(" ring({})", 1 + draw.below(4)),
        false => String::new(),
    };
    if !places.is_empty() && draw.chance(85) {
        // At the innermost of these loops, mostly: further out, regions are larger than their tiles.
        let place = if draw.chance(80) { places[places.len() - 1] } else { *draw.pick(&places) };
        let ring = ring(draw, place);
        let list: Vec<&Axis> = axes.iter().collect();
        let mut ops = view(draw, &list, granule, bytes, true);
        if draw.chance(25) {
            ops += "fill zero; ";
        }
        let _ = writeln!(copies, "    stage xs[{}] = x in shared at y.{place}{ring} via tma {{ {ops}}}", names(&all));
    }
    let outer: Vec<&String> =
        places.iter().copied().filter(|p| reduced.is_none_or(|k| **p != format!("{}o", axes[k].name))).collect();
    if !outer.is_empty() && draw.chance(60) {
        let place = if draw.chance(75) { outer[outer.len() - 1] } else { *draw.pick(&outer) };
        let ring = ring(draw, place);
        let list: Vec<&Axis> = order.iter().map(|n| &axes[*n]).collect();
        let ops = view(draw, &list, granule, bytes, false);
        let _ = writeln!(copies, "    stage ys[{}] = y in shared at y.{place}{ring} via tma {{ {ops}}}", names(&order));
    }
    let source = format!(
        "kernel K(x: {element}[{}]) -> (y: {element}[{}])\nwhere {}\n{{\n    y[{}] = {value};\n    launch threads({});\n    schedule y {{ {schedule}}}\n{copies}}}\n",
        dims(&all),
        dims(&order),
        if facts.is_empty() { "A >= 1".to_owned() } else { facts.join(", ") },
        names(&order),
        threads.max(1)
    );
    let sizes = (0..3).map(|_| {
        (0..rank)
            .map(|n| {
                let last = n == rank - 1 || order.last() == Some(&n);
                let divisor = if last { lcm(divisors[n], granule) } else { divisors[n] };
                (1 + draw.below(most)).next_multiple_of(divisor) as i64
            })
            .collect()
    });
    Case { source, sizes: sizes.collect() }
}

fn lcm(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// How many kernels were accepted with loads, with stores, with rings, with copies by runs, and with copies in loops;
/// and why the others were not.
fn campaign(seed: u64, count: u64) -> ([usize; 5], BTreeMap<Code, usize>) {
    let mut draw = Draw(seed);
    let mut refused = BTreeMap::new();
    let mut accepted = [0; 5];
    for number in 0..count {
        let Case { source, sizes } = case(&mut draw);
        let kernel = match finished(&source) {
            Ok(kernel) => kernel,
            Err((codes, report)) => {
                assert!(!codes.contains(&Code::TW9001), "seed {seed} case {number}:\n{source}\n{report}");
                codes.into_iter().for_each(|code| *refused.entry(code).or_default() += 1);
                continue;
            }
        };
        let info = kernel.info.as_ref().expect("no error");
        let text = &info.ptx.text;
        let has = [
            text.contains("mbarrier::complete_tx"),
            text.contains("bulk_group"),
            text.contains("mbarrier.try_wait") && source.contains("ring("),
            text.contains("cp.async.bulk.shared") || text.contains("cp.async.bulk.global"),
            copied_in_loops(&info.explanation),
        ];
        accepted.iter_mut().zip(has).for_each(|(n, has)| *n += usize::from(has));
        for (turn, dims) in sizes.iter().enumerate() {
            // Earliest, latest and drawn completion take turns with the seed.
            let device = Device::emulator(EmulatorOptions::default().seed(number + turn as u64));
            let trial = Trial::new(info, dims, seed, &device).unwrap_or_else(|e| panic!("{source}\n{dims:?}: {e}"));
            prove(&kernel, dims);
            let outcome = trial.run(&device);
            assert!(outcome.is_good(), "seed {seed} case {number}:\n{source}\nat {dims:?}: {outcome:#?}");
        }
    }
    (accepted, refused)
}

/// Whether some instance has more copies than are written out.
fn copied_in_loops(explanation: &str) -> bool {
    let words: Vec<&str> = explanation.split_whitespace().collect();
    let count = |pair: &[&str]| matches!(pair[1], "tiles" | "runs").then(|| pair[0].parse::<u32>().ok()).flatten();
    words.windows(2).filter_map(count).any(|n| n > 16)
}

#[test]
fn what_is_accepted_is_right() {
    let (seed, count) = crate::support::campaign("TILEWRIGHT_TMA", (1, 300));
    let ([loads, stores, rings, runs, loops], refused) = campaign(seed, count);
    let count = count as usize;
    println!(
        "{count} kernels: {loads} with loads, {stores} with stores, {rings} with rings, {runs} with runs, {loops} in loops; \
         refused {refused:?}"
    );
    // Most of what is drawn is meant to be right.
    assert!(loads * 4 > count && stores * 6 > count && rings * 12 > count, "{loads} {stores} {rings}: {refused:?}");
    assert!(runs * 20 > count && loops * 20 > count, "{runs} {loops}: {refused:?}");
}
