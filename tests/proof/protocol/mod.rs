//! Protocols of rings, roles and clusters, one planted mistake after the other. Each is planted in the loop program of
//! a kernel of the language: the separate checker finds it there; and the PTX that is emitted from the same program is
//! found wrong by the emulator, which knows nothing of either, under one of a few orders of execution. Without a
//! mistake both find nothing. `forms` has kernels for every way in which a loop around a ring may have no trips at run
//! time; `trips` runs each for numbers of trips from none on. `TILEWRIGHT_TRIPS=SEED,COUNT` runs them under other seeds
//! than CI does.

mod forms;
mod plant;
mod trips;

use crate::support::finished;
use crate::with_first;
use forms::{BY_ROLES, SLICES, THREE, TWO, product, rows, triangle};
use plant::{
    Plant, awaited_ahead, drained, early_fetches, early_release, no_cluster_barrier, once, other_parity,
    released_behind, reset_per_tile, unarmed, unguarded,
};
use tilewright::kernel::info::KernelInfo;
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::Compiled;
use tilewright_compiler::kernel_ir::{Kernel, MbarrierId};
use tilewright_compiler::proof::{Launch, Verdict, check};

/// Work of the separate checker for one launch.
const WORK: u64 = 2_000_000;
/// Orders of execution that the emulator tries.
const SEEDS: u64 = 8;

/// Two roles, of which one copies and one adds, in blocks that take several tiles.
fn persistent(ring: u32) -> String {
    rows(ring, &format!("persistent, {TWO}"), "T", BY_ROLES)
}

/// Blocks of a cluster that copy slices of one tile to each other.
const SHARED: &str = "kernel Outer(a: f32[M], b: f32[N]) -> (c: f32[M, N]) where N % 4 == 0 {
    c[i, j] = a[i] * b[j];
    launch cluster(2), threads(64);
    schedule c {
        split i by 2 -> io, ic; bind io: grid; bind ic: cta;
        split j by 128 -> jo, ji; split ji by 64 -> r, t; bind t: thread;
    }
    stage bs[j] = b in shared at c.jo ring(2) via tma { box j by 64 -> jb, jj; multicast c.ic by jb; }
}";

/// Blocks of a cluster that combine a sum.
const COMBINED: &str = "kernel Sums(x: f32[M, N]) -> (y: f32[M]) {
    y[i] = sum(|j| x[i, j]);
    launch cluster(2), threads(32);
    schedule y { bind i: grid; split j into 2 -> c, jc; bind c: cta; split jc by 32 -> r, t; bind t: thread; reduce t; reduce c; }
}";

/// What is planted in which kernel, and with which sizes, and blocks at one time, it is looked for.
struct Row {
    name: &'static str,
    source: String,
    plant: Plant,
    dims: &'static [i64],
    resident: u32,
    /// How many mistakes that are.
    mistakes: usize,
}

fn matrix() -> Vec<Row> {
    let row = |name, source: &str, plant: Plant, dims, resident, mistakes| Row {
        name,
        source: source.to_owned(),
        plant,
        dims,
        resident,
        mistakes,
    };
    let own = rows(3, "threads(32)", "T", ["", "via tma", ""]);
    let fetched = rows(2, &format!("persistent, {TWO}"), "T", ["by math", "via cp_async by load", "bind j: thread;"]);
    vec![
        // The wait for what is there, and the one for what has been read.
        row("wrong parity, roles", &persistent(2), other_parity, &[3, 5], 3, 2),
        row("wrong parity, blocks of a cluster", SHARED, other_parity, &[5, 772], 3, 1),
        // Slot and parity, of both roles.
        row("counter reset per tile", &persistent(2), reset_per_tile, &[4, 3], 1, 4),
        row("early release", &persistent(2), early_release, &[2, 7], 2, 1),
        row("early release of fetches", &fetched, early_fetches, &[2, 7], 2, 3),
        row("wrong parity, fetches of roles", &fetched, other_parity, &[3, 5], 3, 2),
        row("unarmed receiver, of a cluster", SHARED, unarmed, &[5, 772], 3, 6),
        row("unarmed receiver, of roles", &persistent(3), unarmed, &[3, 5], 3, 1),
        row("missing cluster barrier, of copies", SHARED, no_cluster_barrier, &[5, 772], 3, 4),
        row("missing cluster barrier, of sums", COMBINED, no_cluster_barrier, &[2, 100], 3, 4),
        row("fewer trips than slots", &own, |kernel| unguarded(kernel, 1), &[3, 1], 3, 1),
    ]
}

/// Whether the emulator finds something wrong with the PTX of an entry point in place of the first one.
fn is_noticed(compiled: &Compiled, first: &Kernel, dims: &[i64], resident: u32) -> bool {
    let info = with_first(compiled.info.as_ref().expect("no error"), &compiled.entries, first)
        .unwrap_or_else(|error| panic!("{error}\n{first}"));
    (0..SEEDS).any(|seed| !is_good(&info, dims, seed, resident))
}

/// Whether a launch gives what the reference does, without a finding.
fn is_good(info: &KernelInfo, dims: &[i64], seed: u64, resident: u32) -> bool {
    let options = EmulatorOptions::default().seed(seed).resident(resident).budget(2_000_000);
    let device = Device::emulator(options);
    Trial::new(info, dims, seed, &device).unwrap_or_else(|e| panic!("{dims:?}: {e}")).run(&device).is_good()
}

/// A launch of a kernel; by so many blocks, if it is persistent.
fn launch(info: &KernelInfo, dims: &[i64], resident: u32) -> Launch {
    let launch = Launch::new(info, dims).expect("sizes");
    if info.launch.persistent { launch.by(resident.into()) } else { launch }
}

/// What is not right about a row: the checker or the emulator finds nothing wrong with one of its kernels.
fn missed(Row { name, source, plant, dims, resident, mistakes }: &Row) -> Vec<String> {
    let mut missed = Vec::new();
    let compiled = accepted(source);
    let (info, kernel) = (compiled.info.as_ref().expect("no error"), &compiled.entries[0].kernel);
    let holds = compiled.entries[0].conditions.iter().all(|c| c.holds(dims) == Ok(true));
    assert!(holds, "{name}: another entry point is taken");
    let launch = launch(info, dims, *resident);
    assert_eq!(check(kernel, &launch, WORK), Verdict::Holds, "{name}\n{kernel}");
    assert!(!is_noticed(&compiled, kernel, dims, *resident), "{name}: it is right");
    let mutants = plant(kernel);
    if mutants.len() != *mistakes {
        missed.push(format!("{name}: {} mistakes are planted, not {mistakes}\n{kernel}", mutants.len()));
    }
    for (n, mutant) in mutants.iter().enumerate() {
        let verdict = check(mutant, &launch, WORK);
        if !matches!(verdict, Verdict::Violated(_)) {
            missed.push(format!("{name}, {n}: the checker: {verdict:?}\n{mutant}"));
        }
        if !is_noticed(&compiled, mutant, dims, *resident) {
            missed.push(format!("{name}, {n}: the emulator\n{mutant}"));
        }
    }
    missed
}

#[test]
fn every_planted_mistake_is_found_by_both() {
    let missed: Vec<String> = matrix().iter().flat_map(missed).collect();
    assert!(missed.is_empty(), "{} missed\n{}", missed.len(), missed.join("\n"));
}

/// Mistakes that are none if every loop has trips, and a kernel and sizes with which it has.
fn zero_trips() -> Vec<(Row, (String, &'static [i64]))> {
    let row =
        |name, source: String, plant: Plant, (dims, right): (&'static [i64], &'static [i64]), resident, mistakes| {
            (Row { name, source: source.clone(), plant, dims, resident, mistakes }, (source, right))
        };
    let own = |launch: &str, copy: &str| rows(2, &format!("{launch}threads(32)"), "T - 1", ["", copy, ""]);
    let fetched =
        |launch: &str| rows(3, &format!("{launch}threads(32)"), "T - 1", ["", "via cp_async", "bind j: thread;"]);
    let loaded = rows(2, &format!("persistent, {TWO}"), "T", ["by math", "by load", "bind j: thread;"]);
    let fetched_by_role =
        rows(2, &format!("persistent, {TWO}"), "T", ["by math", "via cp_async by load", "bind j: thread;"]);
    let copied = |launch: &str| rows(2, &format!("{launch}{TWO}"), "T - 1", BY_ROLES);
    let blocks = |roles: bool| match roles {
        true => product(2, TWO, ["by math", "by load"], SLICES),
        false => product(2, "threads(32)", ["", ""], SLICES),
    };
    let of_tiles = |terms: &str| triangle(2, THREE, terms, ["by math", "by sums", "via tma by load", ""]);
    vec![
        row("copies ahead of no trip", own("", "via tma"), |k| unguarded(k, 0), (&[3, 1], &[3, 3]), 3, 1),
        row(
            "copies ahead of no trip, tiles",
            own("persistent, ", "via tma"),
            |k| unguarded(k, 0),
            (&[5, 1], &[5, 3]),
            2,
            1,
        ),
        row(
            "copies ahead of no trip, of a cluster",
            blocks(false),
            |k| unguarded(k, 0),
            (&[11, 4, 20], &[11, 12, 20]),
            3,
            1,
        ),
        row("fetches ahead of no trip", fetched(""), |k| unguarded(k, 0), (&[3, 1], &[3, 3]), 3, 1),
        row("a body before the question, copies", own("", "via tma"), once, (&[3, 1], &[3, 2]), 3, 1),
        row("a body before the question, fetches", fetched(""), once, (&[3, 1], &[3, 2]), 3, 1),
        row("a body before the question, of a cluster", blocks(false), once, (&[11, 4, 20], &[11, 8, 20]), 3, 1),
        row("a body before the question, roles", copied(""), once, (&[3, 1], &[3, 2]), 3, 2),
        row("a body before the question, roles with loads", loaded.clone(), once, (&[5, 0], &[5, 1]), 1, 2),
        row("a body before the question, roles of a cluster", blocks(true), once, (&[11, 4, 20], &[11, 8, 20]), 3, 2),
        row("a wait ahead of no trip, copies", own("", "via tma"), awaited_ahead, (&[3, 1], &[3, 2]), 3, 1),
        row("a wait ahead of no trip, roles", copied("persistent, "), awaited_ahead, (&[3, 1], &[3, 2]), 2, 1),
        row("a wait ahead of no trip, roles with loads", loaded, awaited_ahead, (&[5, 0], &[5, 1]), 1, 1),
        row(
            "a wait ahead of no trip, roles of a cluster",
            blocks(true),
            awaited_ahead,
            (&[11, 4, 20], &[11, 8, 20]),
            3,
            1,
        ),
        row("a body before the question, fetches of roles", fetched_by_role.clone(), once, (&[5, 0], &[5, 1]), 1, 2),
        row("a wait ahead of no trip, fetches of roles", fetched_by_role, awaited_ahead, (&[5, 0], &[5, 1]), 1, 1),
        row("a wait after no trip, roles", copied(""), drained, (&[3, 1], &[3, 2]), 3, 1),
        row("a wait after no trip, roles of a cluster", blocks(true), drained, (&[11, 4, 20], &[11, 8, 20]), 3, 1),
        // Here a tile has a term more.
        (
            row("a release after no trip, roles", of_tiles("0..i"), released_behind, (&[4], &[4]), 1, 1).0,
            (of_tiles("0..=i"), &[4]),
        ),
    ]
}

/// Where loops have trips, both find nothing wrong with the same kernels.
#[test]
fn every_mistake_of_zero_trips_is_found_by_both() {
    let mut all = Vec::new();
    for (row, (source, right)) in zero_trips() {
        all.extend(missed(&row));
        let compiled = accepted(&source);
        let info = compiled.info.as_ref().expect("no error");
        for (n, mutant) in (row.plant)(&compiled.entries[0].kernel).iter().enumerate() {
            let (name, verdict) = (row.name, check(mutant, &launch(info, right, row.resident), WORK));
            if verdict != Verdict::Holds || is_noticed(&compiled, mutant, right, row.resident) {
                all.push(format!("{name}, {n}: with trips it is wrong, too: {verdict:?}\n{mutant}"));
            }
        }
    }
    assert!(all.is_empty(), "{} missed\n{}", all.len(), all.join("\n"));
}

fn accepted(source: &str) -> Compiled {
    finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"))
}

/// A barrier that waits for an arrival more than comes is found by both, whichever it is.
#[test]
fn arrivals_are_counted_by_both() {
    let compiled = accepted(&persistent(2));
    let info = compiled.info.as_ref().expect("no error");
    let (dims, kernel) = ([3, 5], &compiled.entries[0].kernel);
    let launch = Launch::new(info, &dims).expect("sizes").by(2);
    assert_eq!(check(kernel, &launch, WORK), Verdict::Holds);
    for barrier in (0..kernel.barriers.len() as u32).map(MbarrierId) {
        let mut mutant = kernel.clone();
        mutant.barriers[barrier.index()].arrivals += 1;
        let verdict = check(&mutant, &launch, WORK);
        assert!(matches!(verdict, Verdict::Violated(_)), "{barrier:?}: {verdict:?}");
        assert!(is_noticed(&compiled, &mutant, &dims, 2), "{barrier:?}");
    }
}
