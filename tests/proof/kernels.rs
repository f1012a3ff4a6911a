//! The separate checker of `kernel_ir` over real kernels: what the compiler derives holds for it too, and no derived
//! statement can be missed without its notice.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::LazyLock;

use rayon::prelude::*;

use crate::support::Draw;
use crate::with_first;
use tilewright::kernel::algorithm::{Binary, Compare};
use tilewright::kernel::info::KernelInfo;
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::sizes;
use tilewright_cli::source::SourceFile;
use tilewright_cli::trial::Trial;
use tilewright_compiler::Compiled;
use tilewright_compiler::kernel_ir::{
    IndexOp, Kernel, Op, RegionId, StatementKind, TensorPart, ValueId, VariableId, verify,
};
use tilewright_compiler::lower::Entry;
use tilewright_compiler::proof::{Launch, Verdict, check, check_values};
use tilewright_compiler::trial::{Effort, Net, prove};

/// Work for one launch.
const BUDGET: u64 = 1_000_000;

/// Work for one launch of a kernel whose smallest launch takes more than [`BUDGET`].
const LARGE_BUDGET: u64 = 30_000_000;

/// Files with kernels: the examples, and the tests that run kernels.
fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open: Vec<PathBuf> = ["examples", "tests"].map(|f| xtask::root().join(f)).into();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// A finished kernel, and what it is called.
struct Named {
    name: String,
    info: KernelInfo,
    entries: Vec<Entry>,
}

/// The kernels of these files, compiled once for all tests here. Never to be asked for first by a task of rayon, since
/// its threads compile them.
fn kernels() -> &'static [Named] {
    static KERNELS: LazyLock<Vec<Named>> = LazyLock::new(|| {
        let of_file = |path: &PathBuf| -> Vec<Named> {
            let Ok(source) = SourceFile::read(&path.to_string_lossy()) else { return Vec::new() };
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let named = |kernel: &Compiled| {
                let (name, entries) = (format!("{stem}::{}", kernel.ast.name.text), kernel.entries.clone());
                kernel.info.clone().map(|info| Named { name, info, entries })
            };
            source.kernels().filter_map(|found| named(found.kernel)).collect()
        };
        files().par_iter().flat_map_iter(of_file).collect()
    });
    &KERNELS
}

/// Sizes to draw from: small ones, and some of whole tiles.
const POOLS: [&[i64]; 3] = [
    &[1, 2, 3, 4, 5, 7, 8, 12],
    &[1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 48, 64, 96, 128],
    &[6, 8, 16, 32, 40, 64, 512, 16384],
];

/// Kernels that read or write where data says, or have as many terms as it says.
const GATHERS: [&str; 11] = [
    "cross_entropy::CrossEntropy",
    "paged::Paged",
    "scatter::Histogram",
    "scatter::EmbeddingGradient",
    "scatter::CacheRows",
    "driver::Gathered",
    "driver::Largest",
    "driver::Moved",
    "corners::Embed",
    "end_to_end::Gather",
    "guarded::Rows",
];

/// The accelerator copies what one entry point of this reads where data says, and threads read it in the other.
const GATHERS_IN_PART: &str = "paged::Experts";

#[test]
fn every_kernel_holds() {
    let gathers = |name: &str| GATHERS.contains(&name) || name == GATHERS_IN_PART;
    let (mut launches, mut quiet) = (0, Vec::new());
    for Named { name, info, entries } in kernels() {
        let mut held = 0;
        let draws = POOLS.iter().flat_map(|pool| (0..3).filter_map(move |seed| sizes::choose(info, pool, seed)));
        // Kernels of one size, or of sizes that facts decide, have the same ones several times.
        let mut all: Vec<_> = draws.map(|given| (sizes::complete(info, &given).expect("complete"), given)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.dedup_by(|a, b| a.0 == b.0);
        for (budget, (dims, given)) in [BUDGET, LARGE_BUDGET].into_iter().flat_map(|b| all.iter().map(move |d| (b, d)))
        {
            if budget == LARGE_BUDGET && held > 0 {
                break;
            }
            let launch = Launch::new(info, dims).unwrap_or_else(|why| panic!("{name} {given:?}: {why:?}"));
            for entry in entries.iter().filter(|e| e.conditions.iter().all(|c| c.holds(dims) == Ok(true))) {
                let verdict = check(&entry.kernel, &launch, budget);
                launches += 1;
                let symbol = &entry.kernel.signature.name;
                match verdict {
                    Verdict::Holds => held += 1,
                    Verdict::Exhausted => {}
                    Verdict::Undecided(_) if gathers(name) => {}
                    Verdict::Undecided(what) | Verdict::Violated(what) => {
                        panic!("{name}, {symbol}, {given:?}: {what}\n{}", entry.kernel)
                    }
                }
            }
        }
        if held == 0 {
            quiet.push(name.as_str());
        }
    }
    assert!(launches > 1000, "{launches}");
    assert_eq!(quiet, GATHERS, "no launch of these was checked to the end");
}

/// Every entry point, whatever sizes it is for: narrower ones at sizes for which they hold.
#[test]
fn every_kernel_stores_what_the_algorithm_says() {
    let (mut launches, mut exhausted, mut held) = (0, 0, 0);
    for Named { name, info, entries } in kernels() {
        for (seed, pool) in (0..).zip(POOLS) {
            let Some(given) = sizes::choose(info, pool, seed) else { continue };
            let dims = sizes::complete(info, &given).expect("complete");
            let launch = Launch::new(info, &dims).unwrap_or_else(|why| panic!("{name} {given:?}: {why:?}"));
            for entry in entries.iter().filter(|e| e.conditions.iter().all(|c| c.holds(&dims) == Ok(true))) {
                launches += 1;
                match check_values(&entry.kernel, &launch, &info.algorithm, seed, BUDGET) {
                    Verdict::Holds => held += 1,
                    Verdict::Exhausted => exhausted += 1,
                    Verdict::Undecided(what) | Verdict::Violated(what) => {
                        panic!("{name}, {}, {given:?}: {what}\n{}", entry.kernel.signature.name, entry.kernel)
                    }
                }
            }
        }
    }
    println!("{launches} launches, {held} right, {exhausted} too much work");
    assert!(launches > 500 && held > 2 * launches / 3, "{launches} launches, {held} right");
}

/// A barrier that threads meet at stands once in the text for each in the program: one that is written into several
/// branches is several barriers, at which some wait for others that are at another.
#[test]
fn every_barrier_is_emitted_once() {
    let (mut barriers, mut other) = (0, Vec::new());
    for Named { name, info, entries } in kernels() {
        let texts: Vec<&str> = info.ptx.text.split(".visible .entry ").skip(1).collect();
        assert_eq!(texts.len(), entries.len(), "{name}");
        for (entry, text) in entries.iter().zip(texts) {
            assert!(text.starts_with(&format!("{}(", entry.kernel.signature.name)), "{name}");
            // Roles meet when all of them have ended.
            let is_one = |kind: &StatementKind| {
                matches!(kind, StatementKind::BarSync | StatementKind::BarSyncWarpgroup | StatementKind::Roles(_))
            };
            let statements = entry.kernel.regions.iter().flat_map(|region| &region.statements);
            let expected = statements.filter(|statement| is_one(&statement.kind)).count();
            let found = text.lines().filter(|line| line.trim_start().starts_with("bar.sync")).count();
            barriers += expected;
            // A loop that is cut is several loops, one after the other: each has the barriers of its body.
            let is_cut = |kind: &StatementKind| matches!(kind, StatementKind::Loop(l) if !l.cuts.is_empty());
            let cut = entry.kernel.regions.iter().flat_map(|region| &region.statements).any(|s| is_cut(&s.kind));
            if found != expected && !(cut && found > expected) {
                other.push(format!("{name}, {}: {found} of {expected}", entry.kernel.signature.name));
            }
        }
    }
    assert!(barriers > 200, "{barriers}");
    assert!(other.is_empty(), "{other:#?}");
}

/// One value or statement of a finished kernel changed, as a mistake of lowering would change it: what was changed, and
/// the kernel.
fn mistakes(kernel: &Kernel, draw: &mut Draw) -> Option<(String, Kernel)> {
    let mut mutant = kernel.clone();
    let is_reached = |of: &Kernel, n: usize| {
        let bound = |s: &tilewright_compiler::kernel_ir::Statement| s.kind == StatementKind::Let(ValueId(n as u32));
        of.regions.iter().any(|region| region.statements.iter().any(bound))
    };
    if draw.chance(60) {
        let n = draw.below(kernel.values.len());
        if !is_reached(kernel, n) {
            return None;
        }
        let of = &mut mutant.values[n];
        // A value of the same type that is bound around it: found by the verifier if it is not.
        let other = ValueId(draw.below(n.max(1)) as u32);
        let fits = |old: ValueId| kernel.value(other).ty == kernel.value(old).ty && other != old;
        of.op = match of.op {
            Op::Index(IndexOp::Add, a, b) => Op::Index(IndexOp::Sub, a, b),
            Op::Index(IndexOp::Sub, a, b) => Op::Index(IndexOp::Add, a, b),
            Op::Index(IndexOp::Mul, a, b) => Op::Index(IndexOp::Add, a, b),
            Op::Index(IndexOp::Div, a, b) => Op::Index(IndexOp::Mod, a, b),
            Op::Index(IndexOp::Mod, a, b) => Op::Index(IndexOp::Div, a, b),
            Op::Select(c, a, b) => Op::Select(c, b, a),
            Op::Binary(op, a, b) if fits(b) => Op::Binary(op, a, other),
            Op::Binary(op @ (Binary::Sub | Binary::Div), a, b) => Op::Binary(op, b, a),
            Op::Fma(a, b, c) if fits(c) => Op::Fma(a, b, other),
            Op::Unary(op, a) if fits(a) => Op::Unary(op, other),
            Op::Get(_) => Op::Get(VariableId(draw.below(kernel.variables.len()) as u32)),
            Op::CompareIndex(Compare::Lt, a, b) => Op::CompareIndex(Compare::Le, a, b),
            Op::InRange(a, b) => Op::CompareIndex(Compare::Le, a, b),
            _ => return None,
        };
        let what = format!("%{n}: {:?} → {:?}", kernel.values[n].op, mutant.values[n].op);
        return (mutant.values[n].op != kernel.values[n].op).then_some((what, mutant));
    }
    let region = draw.below(kernel.regions.len());
    let statements = &mut mutant.regions[region].statements;
    if statements.is_empty() {
        return None;
    }
    let at = draw.below(statements.len());
    let what = format!("statement {at} of region {region}: {:?}", statements[at].kind);
    match &mut statements[at].kind {
        StatementKind::Set(..) => drop(statements.remove(at)),
        StatementKind::Store(store) if store.values.len() > 1 => store.values.rotate_left(1),
        StatementKind::Load(load) if load.predicate.is_some() => {
            load.predicate = None;
            load.otherwise.clear();
        }
        StatementKind::If(branch) if branch.otherwise.is_none() => {
            let inner = branch.then.index();
            let body = std::mem::take(&mut mutant.regions[inner].statements);
            mutant.regions[region].statements.splice(at..=at, body);
            let moved: Vec<usize> =
                (0..mutant.values.len()).filter(|v| mutant.values[*v].region.index() == inner).collect();
            moved.into_iter().for_each(|v| mutant.values[v].region = RegionId(region as u32));
        }
        StatementKind::Shuffle { mask, .. } => *mask ^= if *mask > 1 { 1 } else { 2 },
        _ => return None,
    }
    Some((what, mutant))
}

/// What the emulator finds wrong with an entry point in place of the first one: what the PTX's verifier refuses, a
/// fault, a race, an output that is not the reference's. It knows nothing of the loop program or its checkers.
fn found_by_emulator(info: &KernelInfo, entries: &[Entry], first: &Kernel, dims: &[i64]) -> Option<String> {
    let info = match with_first(info, entries, first) {
        Ok(info) => info,
        Err(error) => return Some(format!("no PTX: {error}")),
    };
    let device = Device::emulator(EmulatorOptions::default().budget(50_000_000));
    let outcome = Trial::new(&info, dims, 0, &device).unwrap_or_else(|e| panic!("{dims:?}: {e}")).run(&device);
    if outcome.is_good() {
        return None;
    }
    let failure = outcome.failure.iter().map(ToString::to_string);
    let outputs = outcome.verdicts.iter().filter_map(|v| v.result.as_ref().err().map(ToString::to_string));
    let report = outcome.report.iter().flat_map(|r| r.faults.iter().chain(&r.warnings)).map(ToString::to_string);
    Some(failure.chain(outputs).chain(report).collect::<Vec<_>>().join("; "))
}

/// What became of changes.
#[derive(Default)]
struct Tally {
    tried: u64,
    noticed: u64,
    /// Noticed without data.
    by_order: u64,
    /// Those that nobody notices.
    none: Vec<String>,
    /// Those that only the emulator notices.
    missed: Vec<String>,
}

impl Tally {
    fn and(mut self, other: Tally) -> Tally {
        self.tried += other.tried;
        self.noticed += other.noticed;
        self.by_order += other.by_order;
        self.none.extend(other.none);
        self.missed.extend(other.missed);
        self
    }
}

/// So many changes of the first entry point of a kernel.
fn changed(Named { name, info, entries }: &Named, seed: u64, changes: u64) -> Tally {
    // Sizes of several tiles, blocks and iterations along some axis: where there is one of each, many changes are none.
    const LARGER: [&[i64]; 3] = [&[1, 3, 33, 96, 130], &[2, 3, 257, 300, 512], &[1, 2, 3, 1028, 2052, 4100]];
    const WORK: u64 = 2 * BUDGET;
    let mut tally = Tally::default();
    let first = &entries[0];
    // What is changed in one kernel does not depend on which others there are.
    let n = name.bytes().fold(0_u64, |n, byte| n.wrapping_mul(31).wrapping_add(byte.into()));
    let drawn = |entry: &Entry, dims: &[i64], nets: &'static [Net], seed: u64, work: u64| {
        prove(info, std::slice::from_ref(entry), dims, Effort { nets, seed, work })
    };
    let say = |entry: &Entry, dims: &[i64], nets: &'static [Net]| drawn(entry, dims, nets, 1, WORK);
    // The emulator takes the first entry point whose conditions hold: the changed one, at these sizes.
    let is_right = |dims: &Vec<i64>| {
        first.conditions.iter().all(|c| c.holds(dims) == Ok(true))
            && say(first, dims, &[Net::Values]).is_ok_and(|t| t.held > 0 && t.undecided + t.exhausted == 0)
    };
    let pools = POOLS.iter().chain(&LARGER).flat_map(|pool| (0..2).map(move |seed| (pool, seed)));
    let drawn_dims = pools.filter_map(|(pool, seed)| sizes::complete(info, &sizes::choose(info, pool, seed)?).ok());
    // Most changes show at small sizes, and no larger ones are looked at then.
    let mut all: Vec<Vec<i64>> = drawn_dims.collect();
    all.sort_by_cached_key(|dims| (dims.iter().map(|n| i128::from(*n)).product::<i128>(), dims.clone()));
    all.dedup();
    let known: Vec<OnceCell<bool>> = vec![OnceCell::new(); all.len()];
    let usable = || all.iter().zip(&known).filter(|(dims, known)| *known.get_or_init(|| is_right(dims)));
    let dims = || usable().map(|(dims, _)| dims);
    let mut draw = Draw::new(seed, n);
    for _ in 0..40 * changes {
        if tally.tried == changes || dims().next().is_none() {
            break;
        }
        let Some((what, mutant)) = mistakes(&first.kernel, &mut draw) else { continue };
        if verify(&mutant).is_err() {
            continue;
        }
        tally.tried += 1;
        let changed = Entry { kernel: mutant, ..first.clone() };
        let is_seen = |nets| dims().any(|dims| say(&changed, dims, nets).map_or(true, |t| t.undecided > 0));
        let in_order = is_seen(&[Net::Indices]);
        tally.by_order += u64::from(in_order);
        // What depends on data shows for some data, and threads that differ take more work.
        let by_other_data = || {
            let mut seeds = dims().flat_map(|dims| (2..6).map(move |seed| (dims, seed)));
            seeds.any(|(dims, seed)| {
                drawn(&changed, dims, &[Net::Values], seed, 4 * WORK).map_or(true, |t| t.undecided > 0)
            })
        };
        if in_order || is_seen(&[Net::Values]) {
            tally.noticed += 1;
            continue;
        }
        // Before other data, which are much work: what the emulator does not notice need not show in any.
        match dims().find_map(|dims| Some((dims, found_by_emulator(info, entries, &changed.kernel, dims)?))) {
            Some(_) if by_other_data() => tally.noticed += 1,
            Some((dims, why)) => tally.missed.push(format!("{name} {dims:?}: {what}: {why}")),
            None => tally.none.push(format!("{name}: {what}")),
        }
    }
    tally
}

/// A changed operand, a dropped predicate, a lost statement: what makes an output wrong on the emulator, or makes it
/// find a fault there, the two checkers of the loop program find as well. What none of them finds is printed, as it
/// changes nothing at these sizes: predicates that hold everywhere, sums with a zero, registers that no element is in.
#[test]
fn changes_that_the_emulator_notices_are_noticed() {
    let (seed, changes) = crate::support::campaign("TILEWRIGHT_CHANGES", (77, 1));
    let each = kernels().par_iter().map(|kernel| changed(kernel, seed, changes));
    let Tally { tried, noticed, by_order, none, missed } = each.reduce(Tally::default, Tally::and);
    let list = none.join("\n");
    println!(
        "{tried} changes, {noticed} noticed, {by_order} of them without data; {} change nothing:\n{list}",
        none.len()
    );
    assert!(tried > 100 && noticed * 4 > tried * 3, "{noticed} of {tried}");
    assert!(by_order * 5 < noticed * 4, "{by_order} of {noticed} without data");
    assert!(missed.is_empty(), "{} missed:\n{}", missed.len(), missed.join("\n"));
}

/// The kernel of a file.
fn kernel(file: &str, name: &str) -> Compiled {
    let path = xtask::root().join(file);
    let source = SourceFile::read(&path.to_string_lossy()).expect(file);
    source.kernels().find(|found| found.kernel.ast.name.text == name).expect(name).kernel.clone()
}

/// What is done to a statement: none if it is left out; nothing if it does not concern it.
type Change = fn(&StatementKind) -> Option<Option<StatementKind>>;

const MISTAKES: [(&str, Change); 8] = [
    ("left out", |kind| {
        use StatementKind::{
            BarSync, BulkCommitGroup, BulkCopy, BulkWaitGroupRead, CpAsync, CpAsyncCommitGroup, CpAsyncWaitGroup,
            FenceProxyAsync, MbarrierExpectTx, MbarrierWait,
        };
        let derived = matches!(
            kind,
            BarSync
                | FenceProxyAsync
                | BulkCommitGroup
                | MbarrierWait { .. }
                | BulkWaitGroupRead { .. }
                | MbarrierExpectTx { .. }
                | BulkCopy(_)
                | CpAsyncCommitGroup
                | CpAsyncWaitGroup { .. }
                | CpAsync(_)
        );
        derived.then_some(None)
    }),
    ("a barrier of warps", |kind| (*kind == StatementKind::BarSync).then_some(Some(StatementKind::BarWarpSync))),
    ("no bytes of a phase", |kind| match kind {
        StatementKind::MbarrierExpectTx { barrier, slot, .. } => {
            Some(Some(StatementKind::MbarrierExpectTx { barrier: *barrier, slot: *slot, bytes: 0 }))
        }
        _ => None,
    }),
    ("one group too many pending", |kind| match kind {
        StatementKind::BulkWaitGroupRead { pending } => {
            Some(Some(StatementKind::BulkWaitGroupRead { pending: pending + 1 }))
        }
        StatementKind::CpAsyncWaitGroup { pending } => {
            Some(Some(StatementKind::CpAsyncWaitGroup { pending: pending + 1 }))
        }
        _ => None,
    }),
    ("too many bytes", |kind| expecting(kind, 16)),
    ("too few bytes", |kind| expecting(kind, -16)),
    ("a longer run", |kind| running(kind, 16)),
    ("a shorter run", |kind| running(kind, -16)),
];

fn expecting(kind: &StatementKind, more: i32) -> Option<Option<StatementKind>> {
    let StatementKind::MbarrierExpectTx { barrier, slot, bytes } = *kind else { return None };
    Some(Some(StatementKind::MbarrierExpectTx { barrier, slot, bytes: bytes.checked_add_signed(more)? }))
}

fn running(kind: &StatementKind, more: i32) -> Option<Option<StatementKind>> {
    let StatementKind::BulkCopy(transfer) = kind else { return None };
    let mut transfer = transfer.clone();
    let TensorPart::Run { bytes, .. } = &mut transfer.part else { return None };
    *bytes = bytes.checked_add_signed(more).filter(|bytes| *bytes > 0)?;
    Some(Some(StatementKind::BulkCopy(transfer)))
}

#[test]
fn each_derived_statement_is_missed() {
    let cases: [(&str, &[&[i64]]); 10] = [
        ("Fused", &[&[9, 160], &[4, 64]]),
        ("Columns", &[&[9, 512], &[2, 64]]),
        ("Stored", &[&[19]]),
        ("Plain", &[&[19]]),
        ("Runs", &[&[24]]),
        ("Looped", &[&[50, 64]]),
        ("Halo", &[&[6, 96]]),
        ("Terms", &[&[8, 64]]),
        ("Fetched", &[&[16, 64], &[16, 36]]),
        ("Turns", &[&[2, 322]]),
    ];
    let mut mutants = 0;
    let mut unnoticed = Vec::new();
    for (name, sizes) in cases {
        let compiled = kernel("tests/proof/mutants.rs", name);
        let (info, kernel) = (compiled.info.as_ref().expect("no error"), &compiled.entries[0].kernel);
        let launches: Vec<Launch> = sizes.iter().map(|dims| Launch::new(info, dims).expect("sizes")).collect();
        let verdicts = |kernel: &Kernel| launches.iter().map(|l| check(kernel, l, BUDGET)).collect::<Vec<_>>();
        assert!(verdicts(kernel).iter().all(|verdict| *verdict == Verdict::Holds), "{name}: {:?}", verdicts(kernel));
        for (region, at) in
            (0..kernel.regions.len()).flat_map(|r| (0..kernel.regions[r].statements.len()).map(move |at| (r, at)))
        {
            for (mistake, change) in MISTAKES {
                let Some(change) = change(&kernel.regions[region].statements[at].kind) else { continue };
                let mut mutant = kernel.clone();
                let statements = &mut mutant.regions[region].statements;
                let what = format!("{name}: {mistake}: {:?}", statements[at].kind);
                match change {
                    Some(kind) => statements[at].kind = kind,
                    None => drop(statements.remove(at)),
                }
                mutants += 1;
                let found = verdicts(&mutant);
                if !found.iter().any(|verdict| matches!(verdict, Verdict::Violated(_))) {
                    unnoticed.push((what, found));
                }
            }
        }
    }
    assert!(mutants > 80, "{mutants}");
    assert!(unnoticed.is_empty(), "{} of {mutants}: {unnoticed:#?}", unnoticed.len());
}
