//! Protocols of rings, roles and clusters, one planted mistake after the other. Each is planted in the loop program of a kernel of the language: the separate
//! checker finds it there; and the PTX that is emitted from the same program is found wrong by the emulator, which knows nothing of either, under one of
//! a few orders of execution. Without a mistake both find nothing.
//! `TILEWRIGHT_TRIPS=SEED,COUNT` runs numbers of trips under other seeds than CI does.

mod support;

use support::{campaign, finished};
use tilewright::kernel::algorithm::Compare;
use tilewright::kernel::info::KernelInfo;
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::Compiled;
use tilewright_compiler::kernel_ir::{
    BarrierId, Facts, If, IndexOp, Kernel, Op, Region, RegionId, Statement, StatementKind, Type, Value, ValueId,
};
use tilewright_compiler::lower::emit::emit;
use tilewright_compiler::proof::{Launch, Verdict, check};

/// Work of the separate checker for one launch.
const WORK: u64 = 2_000_000;
/// Orders of execution that the emulator tries.
const SEEDS: u64 = 8;

/// Sums of rows of `x`: a loop of `T` trips around a ring, for each of several tiles of a block if it is persistent.
fn rows(ring: u32, launch: &str, [math, load]: [&str; 2]) -> String {
    format!(
        "kernel Rows(x: f32[M, T, 32]) -> (y: f32[M, 32]) {{
            y[i, j] = sum(|t| x[i, t, j]);
            launch {launch};
            schedule y {math} {{ bind i: grid; bind j: thread; reorder i, j, t; }}
            stage xs[i, t, j] = x in shared at y.t ring({ring}) via tma {load} {{ }}
        }}"
    )
}

const ROLES: &str = "roles { load: warp, math: warp }";
const BY_ROLES: [&str; 2] = ["by math", "by load"];

/// The same by two roles, of which one copies and one adds, in blocks that take several tiles.
fn persistent(ring: u32) -> String {
    rows(ring, &format!("persistent, {ROLES}"), BY_ROLES)
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

/// Kernels with one mistake each.
type Plant = fn(&Kernel) -> Vec<Kernel>;

/// All statements: region and position.
fn places(kernel: &Kernel) -> impl Iterator<Item = (usize, usize)> + use<'_> {
    (0..kernel.regions.len()).flat_map(|r| (0..kernel.regions[r].statements.len()).map(move |at| (r, at)))
}

/// A value that a region binds in front of a statement.
fn bind(kernel: &mut Kernel, (region, at): (usize, usize), op: Op, ty: Type, facts: Facts) -> ValueId {
    let id = ValueId(kernel.values.len() as u32);
    let literal = matches!(op, Op::Literal(_));
    let of = if literal { Kernel::BODY } else { RegionId(region as u32) };
    kernel.values.push(Value { op, ty, region: of, facts });
    if !literal {
        let line = kernel.regions[region].statements.get(at).map_or(0, |s| s.line);
        kernel.regions[region].statements.insert(at, Statement { line, kind: StatementKind::Let(id) });
    }
    id
}

fn literal(kernel: &mut Kernel, bits: u64, ty: Type) -> ValueId {
    let like = |v: &&Value| matches!(v.op, Op::Literal(_));
    let facts = kernel.values.iter().find(like).map_or(Facts::NONE, |v| v.facts);
    let facts = Facts { range: Facts::NONE.range, uniform: true, cluster: facts.cluster };
    bind(kernel, (0, 0), Op::Literal(bits), ty, facts)
}

/// A wait asks for the other parity.
fn other_parity(kernel: &Kernel) -> Vec<Kernel> {
    let plant = |(region, at): (usize, usize)| {
        let StatementKind::Await { barrier, slot, parity } = kernel.regions[region].statements[at].kind else {
            return None;
        };
        let mut mutant = kernel.clone();
        let facts = kernel.values[parity.index()].facts;
        let one = literal(&mut mutant, 1, Type::I32);
        let op = Op::Index(IndexOp::Xor, parity, one);
        let other = bind(&mut mutant, (region, at), op, Type::I32, Facts { uniform: true, ..facts });
        mutant.regions[region].statements[at + 1].kind = StatementKind::Await { barrier, slot, parity: other };
        Some(mutant)
    };
    places(kernel).filter_map(plant).collect()
}

/// What a role counts from tile to tile begins anew in each.
fn reset_per_tile(kernel: &Kernel) -> Vec<Kernel> {
    let mut mutants = Vec::new();
    for role in kernel.roles() {
        let statements = &kernel.region(role.body).statements;
        let tiles = statements.iter().find_map(|s| match &s.kind {
            StatementKind::Loop(l) => Some(l.body),
            _ => None,
        });
        let Some(tiles) = tiles else { continue };
        for statement in statements {
            let StatementKind::Declare(variable, value) = statement.kind else { continue };
            let mut mutant = kernel.clone();
            let again = Statement { line: statement.line, kind: StatementKind::Set(variable, value) };
            mutant.regions[tiles.index()].statements.insert(0, again);
            mutants.push(mutant);
        }
    }
    mutants
}

/// A slot is handed back right behind the wait for what it holds.
fn early_release(kernel: &Kernel) -> Vec<Kernel> {
    let plant = |(region, at): (usize, usize)| {
        let statements = &kernel.regions[region].statements;
        let StatementKind::Release { barrier, to, .. } = statements[at].kind else { return None };
        let awaited = statements[..at].iter().position(|s| matches!(s.kind, StatementKind::Await { .. }))?;
        let StatementKind::Await { slot, .. } = statements[awaited].kind else { return None };
        let mut mutant = kernel.clone();
        let mut moved = mutant.regions[region].statements.remove(at);
        moved.kind = StatementKind::Release { barrier, slot, to };
        mutant.regions[region].statements.insert(awaited + 1, moved);
        Some(mutant)
    };
    places(kernel).filter_map(plant).collect()
}

/// The first block of the cluster alone expects what is copied to all; then nobody does.
fn unarmed(kernel: &Kernel) -> Vec<Kernel> {
    let mut mutants = Vec::new();
    for (region, at) in places(kernel) {
        if !matches!(kernel.regions[region].statements[at].kind, StatementKind::Expect { .. }) {
            continue;
        }
        let mut nobody = kernel.clone();
        let expect = nobody.regions[region].statements.remove(at);
        if kernel.signature.cluster > 1 {
            let mut first = nobody.clone();
            let inner = RegionId(first.regions.len() as u32);
            let depth = first.regions[region].depth + 1;
            let line = expect.line;
            first.regions.push(Region { depth, statements: vec![expect] });
            let facts = Facts { uniform: true, ..Facts::NONE };
            let rank = bind(&mut first, (region, at), Op::ClusterRank, Type::I32, facts);
            let zero = literal(&mut first, 0, Type::I32);
            let op = Op::CompareIndex(Compare::Eq, rank, zero);
            let condition = bind(&mut first, (region, at + 1), op, Type::PRED, facts);
            let kind = StatementKind::If(If { condition, then: inner, otherwise: None });
            first.regions[region].statements.insert(at + 2, Statement { line, kind });
            mutants.push(first);
        }
        mutants.push(nobody);
    }
    mutants
}

/// A barrier of the cluster is left out, or is one of each block.
fn no_cluster_barrier(kernel: &Kernel) -> Vec<Kernel> {
    let mut mutants = Vec::new();
    for (region, at) in places(kernel) {
        if kernel.regions[region].statements[at].kind == StatementKind::SyncCluster {
            let (mut without, mut weaker) = (kernel.clone(), kernel.clone());
            without.regions[region].statements.remove(at);
            weaker.regions[region].statements[at].kind = StatementKind::Sync;
            mutants.extend([without, weaker]);
        }
    }
    mutants
}

/// Whether a region starts a copy to shared memory, in whatever it has inside.
fn fills(kernel: &Kernel, region: RegionId) -> bool {
    kernel.region(region).statements.iter().any(|s| match &s.kind {
        StatementKind::Expect { .. } => true,
        StatementKind::Elect(part) => fills(kernel, *part),
        StatementKind::If(branch) => {
            fills(kernel, branch.then) || branch.otherwise.is_some_and(|other| fills(kernel, other))
        }
        _ => false,
    })
}

/// A copy that runs ahead of a loop is made whether there is a trip for it or not: the n-th of them.
fn unguarded(kernel: &Kernel, n: usize) -> Vec<Kernel> {
    // Those ahead of the loop are written first.
    let guarded = |(region, at): &(usize, usize)| matches!(&kernel.regions[*region].statements[*at].kind, StatementKind::If(branch) if fills(kernel, branch.then));
    let mut mutant = kernel.clone();
    let Some((region, at)) = places(kernel).filter(guarded).nth(n) else { return Vec::new() };
    let always = literal(&mut mutant, 1, Type::PRED);
    if let StatementKind::If(branch) = &mut mutant.regions[region].statements[at].kind {
        branch.condition = always;
    }
    vec![mutant]
}

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
    let own = rows(3, "threads(32)", ["", ""]);
    vec![
        // The wait for what is there, and the one for what has been read.
        row("wrong parity, roles", &persistent(2), other_parity, &[3, 5], 3, 2),
        row("wrong parity, blocks of a cluster", SHARED, other_parity, &[5, 772], 3, 1),
        // Slot and parity, of both roles.
        row("counter reset per tile", &persistent(2), reset_per_tile, &[4, 3], 1, 4),
        row("early release", &persistent(2), early_release, &[2, 7], 2, 1),
        row("unarmed receiver, of a cluster", SHARED, unarmed, &[5, 772], 3, 6),
        row("unarmed receiver, of roles", &persistent(3), unarmed, &[3, 5], 3, 1),
        row("missing cluster barrier, of copies", SHARED, no_cluster_barrier, &[5, 772], 3, 4),
        row("missing cluster barrier, of sums", COMBINED, no_cluster_barrier, &[2, 100], 3, 4),
        row("fewer trips than slots", &own, |kernel| unguarded(kernel, 1), &[3, 1], 3, 1),
    ]
}

/// Whether the emulator finds something wrong with the PTX of an entry point in place of the first one.
fn is_noticed(compiled: &Compiled, first: &Kernel, dims: &[i64], resident: u32) -> bool {
    let mut info = compiled.info.as_ref().expect("no error").clone();
    let mut kernels: Vec<Kernel> = compiled.entries.iter().map(|entry| entry.kernel.clone()).collect();
    kernels[0] = first.clone();
    let module = emit(&kernels, &info.name).unwrap_or_else(|error| panic!("{error}\n{first}"));
    info.ptx.text = module.to_string().into();
    (0..SEEDS).any(|seed| !is_good(&info, dims, seed, resident))
}

/// Whether a launch gives what the reference does, without a finding.
fn is_good(info: &KernelInfo, dims: &[i64], seed: u64, resident: u32) -> bool {
    let options = EmulatorOptions::default().seed(seed).resident(resident).budget(2_000_000);
    let device = Device::emulator(options);
    Trial::new(info, dims, seed, &device).unwrap_or_else(|e| panic!("{dims:?}: {e}")).run(&device).is_good()
}

#[test]
fn every_planted_mistake_is_found_by_both() {
    let mut missed = Vec::new();
    for Row { name, source, plant, dims, resident, mistakes } in matrix() {
        let compiled = accepted(&source);
        let (info, kernel) = (compiled.info.as_ref().expect("no error"), &compiled.entries[0].kernel);
        let holds = compiled.entries[0].conditions.iter().all(|c| c.holds(dims) == Ok(true));
        assert!(holds, "{name}: another entry point is taken");
        let launch = Launch::new(info, dims).expect("sizes");
        let launch = if info.launch.persistent { launch.by(resident.into()) } else { launch };
        assert_eq!(check(kernel, &launch, WORK), Verdict::Holds, "{name}\n{kernel}");
        assert!(!is_noticed(&compiled, kernel, dims, resident), "{name}: it is right");
        let mutants = plant(kernel);
        if mutants.len() != mistakes {
            missed.push(format!("{name}: {} mistakes are planted, not {mistakes}\n{kernel}", mutants.len()));
        }
        for (n, mutant) in mutants.iter().enumerate() {
            let verdict = check(mutant, &launch, WORK);
            if !matches!(verdict, Verdict::Violated(_)) {
                missed.push(format!("{name}, {n}: the checker: {verdict:?}\n{mutant}"));
            }
            if !is_noticed(&compiled, mutant, dims, resident) {
                missed.push(format!("{name}, {n}: the emulator\n{mutant}"));
            }
        }
    }
    assert!(missed.is_empty(), "{} missed\n{}", missed.len(), missed.join("\n"));
}

fn accepted(source: &str) -> Compiled {
    finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"))
}

/// Rings of one to four slots, with loops of one trip to two more than twice the slots: each block has one such loop, or, of persistent ones, several, one
/// after the other.
#[test]
fn every_number_of_trips_is_right() {
    let (seed, count) = campaign("TILEWRIGHT_TRIPS", (1, 4));
    for ring in 1..=4 {
        for (source, residents) in [(rows(ring, ROLES, BY_ROLES), vec![3]), (persistent(ring), vec![1, 2])] {
            let compiled = accepted(&source);
            let info = compiled.info.as_ref().expect("no error");
            for (dims, &resident) in
                (1..=2 * i64::from(ring) + 2).flat_map(|trips| residents.iter().map(move |r| ([5, trips], r)))
            {
                let entry = &compiled.entries[0];
                assert!(
                    entry.conditions.iter().all(|c| c.holds(&dims) == Ok(true)),
                    "{dims:?}: another entry point is taken"
                );
                let launch = Launch::new(info, &dims).expect("sizes");
                let launch = if info.launch.persistent { launch.by(resident.into()) } else { launch };
                assert_eq!(check(&entry.kernel, &launch, WORK), Verdict::Holds, "{dims:?} by {resident}\n{source}");
                for seed in seed..seed + count {
                    assert!(is_good(info, &dims, seed, resident), "{dims:?} by {resident}, seed {seed}\n{source}");
                }
            }
        }
    }
}

/// A barrier that waits for an arrival more than comes is found by both, whichever it is.
#[test]
fn arrivals_are_counted_by_both() {
    let compiled = accepted(&persistent(2));
    let info = compiled.info.as_ref().expect("no error");
    let (dims, kernel) = ([3, 5], &compiled.entries[0].kernel);
    let launch = Launch::new(info, &dims).expect("sizes").by(2);
    assert_eq!(check(kernel, &launch, WORK), Verdict::Holds);
    for barrier in (0..kernel.barriers.len() as u32).map(BarrierId) {
        let mut mutant = kernel.clone();
        mutant.barriers[barrier.index()].arrivals += 1;
        let verdict = check(&mutant, &launch, WORK);
        assert!(matches!(verdict, Verdict::Violated(_)), "{barrier:?}: {verdict:?}");
        assert!(is_noticed(&compiled, &mutant, &dims, 2), "{barrier:?}");
    }
}
