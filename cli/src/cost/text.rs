//! The text of `tilewright inspect --cost`.

use std::fmt::Write;

use tilewright_emulator::{Bulk, Factor, Traffic};

use super::bounds::Bound;
use super::occupancy::Limit;
use super::{Cost, architecture};

/// A number with three digits that count.
fn short(x: f64) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    let digits = (2 - x.abs().log10().floor() as i32).clamp(0, 9) as usize;
    format!("{x:.digits$}")
}

fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

fn plural(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// One line of a section.
fn row(out: &mut String, name: &str, what: &str) {
    let _ = writeln!(out, "    {name:<22} {what}");
}

/// The page of a launch.
pub fn page(cost: &Cost<'_>) -> String {
    let Cost { path, line, kernel, dims, gpu, .. } = cost;
    let mut out = format!("== {} ({path}:{line}) on {}, compute capability ", kernel.name, gpu.title);
    out.push_str(&format!("{}\n", gpu.capability_text()));
    let sizes: Vec<String> = kernel.dims.iter().zip(*dims).map(|(d, value)| format!("{} = {value}", d.name)).collect();
    if !sizes.is_empty() {
        out.push_str(&format!("    {}\n", sizes.join(", ")));
    }
    launch(cost, &mut out);
    let doubts = cost.doubts();
    let exact = match doubts.is_empty() {
        true => "of all blocks, alike for two sets of data".to_owned(),
        false => format!("which are estimates: {}", doubts.join("; ")),
    };
    out.push_str(&format!("counts {exact}\n"));
    counts(cost, &mut out);
    bounds(cost, &mut out);
    out
}

fn launch(cost: &Cost<'_>, out: &mut String) {
    let Cost { kernel, entry, waves, occupancy, grid, .. } = cost;
    let (cluster, threads) = (kernel.launch.cluster.max(1), kernel.launch.threads);
    let blocks = cost.counts.blocks;
    let clusters = if cluster > 1 { format!(" in clusters of {cluster}") } else { String::new() };
    out.push_str(&format!("launch of entry {entry}\n"));
    row(out, "blocks", &format!("{blocks} of {}{clusters}", plural(threads.into(), "thread")));
    let registers = match &cost.registers {
        Ok(usage) => {
            let spills = match (usage.spill_stores, usage.spill_loads) {
                (0, 0) => "no spills".to_owned(),
                (stores, loads) => format!("spills of {stores} bytes stored and {loads} loaded"),
            };
            format!("{} a thread, {spills} (ptxas for {})", usage.registers, architecture(kernel, cost.gpu))
        }
        Err(why) => format!("not known: {why}"),
    };
    row(out, "registers", &registers);
    let [fixed, dynamic] = cost.shared;
    row(out, "shared memory", &format!("{fixed} bytes static, {dynamic} dynamic"));
    let limits: Vec<&str> = occupancy.limits().map(Limit::name).collect();
    let most = if cost.registers.is_ok() { "" } else { "at most " };
    row(
        out,
        "occupancy",
        &format!(
            "{most}{} a multiprocessor, {} of {} warps; limited by {}",
            plural(occupancy.blocks.into(), "block"),
            occupancy.warps,
            occupancy.most_warps,
            limits.join(" and ")
        ),
    );
    let (at_once, last) = (waves.at_once, percent(waves.last));
    let waves = if kernel.launch.persistent {
        let (tiles, takers) = (grid / cluster, if cluster > 1 { "cluster" } else { "block" });
        let each = f64::from(tiles) / f64::from((blocks / cluster).max(1));
        let tiles = plural(tiles.into(), "tile");
        format!("persistent: {tiles}, {} for each {takers}, the last turn {last} full", short(each))
    } else {
        format!("{} of {} at one time, the last {last} full", short(waves.waves), plural(at_once.into(), "block"))
    };
    row(out, "waves", &waves);
    if cost.filled > 0 {
        row(out, "filled before", &format!("{} bytes, not counted below", cost.filled));
    }
    let busy = cost.bounds.busy;
    if busy < cost.gpu.multiprocessors {
        row(out, "multiprocessors", &format!("{busy} of {} have a block", cost.gpu.multiprocessors));
    }
}

fn traffic(out: &mut String, traffic: &Traffic, unit: &str) {
    let Traffic { load_requests, store_requests, bytes_loaded, bytes_stored, transactions, ideal_transactions } =
        *traffic;
    row(out, "asked", &format!("{bytes_loaded} bytes loaded, {bytes_stored} stored"));
    let requests = load_requests + store_requests;
    let each = transactions as f64 / requests.max(1) as f64;
    row(
        out,
        unit,
        &format!("{transactions}, at best {ideal_transactions}; {} for each of {requests} requests", short(each)),
    );
}

fn bulk(out: &mut String, name: &str, bulk: &Bulk) {
    let Bulk { copies, whole_bytes, bytes, shared_bytes } = *bulk;
    if copies > 0 {
        let inside = if bytes == whole_bytes { String::new() } else { format!(", {bytes} inside the tensor") };
        let shared = if shared_bytes == whole_bytes { String::new() } else { format!(", {shared_bytes} by receiver") };
        row(out, name, &format!("{} of {whole_bytes} bytes{inside}{shared}", copies_of(copies)));
    }
}

fn copies_of(n: u64) -> String {
    if n == 1 { "1 copy".to_owned() } else { format!("{n} copies") }
}

fn counts(cost: &Cost<'_>, out: &mut String) {
    let all = &cost.counts.all;
    let [read, written] = cost.least;
    out.push_str("  global memory\n");
    row(out, "least", &format!("{read} bytes read, {written} written"));
    traffic(out, &all.global, "sectors of 32 bytes");
    if all.fetched_bytes > 0 {
        row(out, "of these by cp.async", &format!("{} bytes", all.fetched_bytes));
    }
    bulk(out, "of these bulk loads", &all.bulk_loads);
    bulk(out, "of these bulk stores", &all.bulk_stores);
    if all.shared.transactions > 0 {
        out.push_str("  shared memory\n");
        traffic(out, &all.shared, "wavefronts");
        row(out, "bank conflicts", &plural(all.bank_conflicts(), "wavefront"));
    }
    if all.local.transactions > 0 {
        out.push_str("  local memory\n");
        traffic(out, &all.local, "sectors of 32 bytes");
    }
    out.push_str("  operations\n");
    let work = &all.work;
    for factor in Factor::ALL.into_iter().filter(|factor| work.of(*factor) > 0) {
        row(out, &format!("tensor cores, {}", factor.name()), &work.of(factor).to_string());
    }
    for (name, unit) in [("f32", work.f32), ("f16 and bf16", work.half), ("f64", work.f64)] {
        if unit.instructions > 0 {
            row(out, name, &format!("{} by {} instructions of a thread", unit.operations, unit.instructions));
        }
    }
    if work.special > 0 {
        row(out, "special functions", &work.special.to_string());
    }
    if let (Some(least), Some(asked)) = (cost.intensity(read + written), cost.intensity(cost.sector_bytes())) {
        row(out, "intensity", &format!("{} a byte of least, {} of asked", short(least), short(asked)));
    }
}

fn bounds(cost: &Cost<'_>, out: &mut String) {
    let bounds = &cost.bounds;
    let limits = [&bounds.least, &bounds.asked].map(|memory| bounds.limit(memory));
    out.push_str("bounds in microseconds, with cold caches: it takes no less, and each is used no more\n");
    for bound in [&bounds.least, &bounds.asked].into_iter().chain(&bounds.units) {
        let Some(time) = bound.microseconds else {
            row(out, &bound.name, "not known: there is no peak for it");
            continue;
        };
        // What is asked for counts only where no cache answers.
        let limit = limits[usize::from(std::ptr::eq(bound, &bounds.asked))];
        let share = time / limit.microseconds.unwrap_or(time);
        row(out, &bound.name, &format!("{:>9}  {:>5} of its peak", short(time), percent(share)));
    }
    let said = |bound: &Bound| format!("{}, {} µs", bound.name, short(bound.microseconds.unwrap_or_default()));
    row(out, "limit", &said(limits[0]));
    if limits[1].name != limits[0].name {
        row(out, "without hits in L2", &said(limits[1]));
    }
    for what in cost.assumptions() {
        row(out, "assumed", what);
    }
    row(out, "not known", "latencies, hits in L2, instructions that are no arithmetic, the clock under load");
}
