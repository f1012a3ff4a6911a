//! The separate checker of `kernel_ir` over real kernels: what the compiler derives holds for it too, and no derived statement can be
//! missed without its notice.

use std::path::{Path, PathBuf};

use tilewright_cli::sizes;
use tilewright_cli::source::SourceFile;
use tilewright_compiler::Compiled;
use tilewright_compiler::kernel_ir::{Kernel, StatementKind, TensorPart};
use tilewright_compiler::proof::{Launch, Verdict, check, check_values};

/// Work for one launch.
const BUDGET: u64 = 1_000_000;

/// Files with kernels: the examples, and the tests that run kernels.
fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["examples", "tests", "tests/conformance_tma"] {
        let entries = std::fs::read_dir(root.join(folder)).expect(folder);
        files.extend(
            entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "rs")),
        );
    }
    files.sort();
    files
}

fn kernels() -> Vec<(String, Compiled)> {
    let mut all = Vec::new();
    for path in files() {
        let Ok(source) = SourceFile::read(&path.to_string_lossy()) else { continue };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        all.extend(
            source.kernels().map(|found| (format!("{stem}::{}", found.kernel.ast.name.text), found.kernel.clone())),
        );
    }
    all
}

/// Sizes to draw from: small ones, and some of whole tiles.
const POOLS: [&[i64]; 3] = [
    &[1, 2, 3, 4, 5, 7, 8, 12],
    &[1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 48, 64, 96, 128],
    &[6, 8, 16, 32, 40, 64, 512, 16384],
];

/// Kernels that read where data says.
const GATHERS: [&str; 2] = ["end_to_end::Gather", "language::Embed"];

#[test]
fn every_kernel_holds() {
    let (mut launches, mut quiet) = (0, Vec::new());
    for (name, kernel) in kernels() {
        let Some(info) = &kernel.info else { continue };
        let mut held = 0;
        for (pool, seed) in POOLS.iter().flat_map(|pool| (0..3).map(move |seed| (pool, seed))) {
            let Some(given) = sizes::choose(info, pool, seed) else { continue };
            let dims = sizes::complete(info, &given).expect("complete");
            let launch = Launch::new(info, &dims).unwrap_or_else(|why| panic!("{name} {given:?}: {why:?}"));
            for entry in kernel.entries.iter().filter(|e| e.conditions.iter().all(|c| c.holds(&dims) == Ok(true))) {
                let verdict = check(&entry.kernel, &launch, BUDGET);
                launches += 1;
                let symbol = &entry.kernel.signature.name;
                match verdict {
                    Verdict::Holds => held += 1,
                    Verdict::Exhausted => {}
                    Verdict::Undecided(_) if GATHERS.contains(&&*name) => {}
                    Verdict::Undecided(what) | Verdict::Violated(what) => {
                        panic!("{name}, {symbol}, {given:?}: {what}\n{}", entry.kernel)
                    }
                }
            }
        }
        if held == 0 {
            quiet.push(name);
        }
    }
    assert!(launches > 1000, "{launches}");
    assert_eq!(quiet, GATHERS, "no launch of these was checked to the end");
}

/// Kernels whose merges are equal by laws of functions that the algebra does not have.
const MERGES: [&str; 0] = [];

/// Every entry point, whatever sizes it is for: narrower ones at sizes for which they hold.
#[test]
fn every_kernel_stores_what_the_algorithm_says() {
    let (mut launches, mut exhausted, mut undecided) = (0, 0, std::collections::BTreeMap::<String, usize>::new());
    let mut wrong = Vec::new();
    let mut quiet = Vec::new();
    for (name, kernel) in kernels() {
        let Some(info) = &kernel.info else { continue };
        let mut held = vec![0; kernel.entries.len()];
        for (pool, seed) in POOLS.iter().flat_map(|pool| (0..2).map(move |seed| (pool, seed))) {
            let Some(given) = sizes::choose(info, pool, seed) else { continue };
            let dims = sizes::complete(info, &given).expect("complete");
            let launch = Launch::new(info, &dims).unwrap_or_else(|why| panic!("{name} {given:?}: {why:?}"));
            for (n, entry) in kernel.entries.iter().enumerate() {
                if !entry.conditions.iter().all(|c| c.holds(&dims) == Ok(true)) {
                    continue;
                }
                launches += 1;
                let symbol = &entry.kernel.signature.name;
                match check_values(&entry.kernel, &launch, &info.algorithm, seed, BUDGET) {
                    Verdict::Holds => held[n] += 1,
                    Verdict::Exhausted => exhausted += 1,
                    Verdict::Undecided(what) => *undecided.entry(format!("{name}: {what}")).or_default() += 1,
                    Verdict::Violated(what) => wrong.push(format!("{name}, {symbol}, {given:?}: {what}")),
                }
            }
        }
        for (n, entry) in kernel.entries.iter().enumerate().filter(|(n, _)| held[*n] == 0) {
            quiet.push(format!("{name} {n} {}", entry.kernel.signature.name));
        }
    }
    println!("{launches} launches, {exhausted} exhausted, undecided {undecided:#?}, quiet {quiet:#?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(launches > 1000, "{launches}");
    let _ = MERGES;
}

/// The kernel of a file.
fn kernel(file: &str, name: &str) -> Compiled {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let source = SourceFile::read(&path.to_string_lossy()).expect(file);
    source.kernels().find(|found| found.kernel.ast.name.text == name).expect(name).kernel.clone()
}

/// What is done to a statement: none if it is left out; nothing if it does not concern it.
type Change = fn(&StatementKind) -> Option<Option<StatementKind>>;

const MISTAKES: [(&str, Change); 8] = [
    ("left out", |kind| {
        use StatementKind::{
            Await, AwaitFetches, AwaitReads, Commit, CommitFetches, Expect, Fetch, Publish, Sync, Transfer,
        };
        let derived = matches!(
            kind,
            Sync | Publish
                | Commit
                | Await { .. }
                | AwaitReads { .. }
                | Expect { .. }
                | Transfer(_)
                | CommitFetches
                | AwaitFetches { .. }
                | Fetch(_)
        );
        derived.then_some(None)
    }),
    ("a barrier of warps", |kind| (*kind == StatementKind::Sync).then_some(Some(StatementKind::SyncWarp))),
    ("no bytes of a phase", |kind| match kind {
        StatementKind::Expect { barrier, slot, .. } => {
            Some(Some(StatementKind::Expect { barrier: *barrier, slot: *slot, bytes: 0 }))
        }
        _ => None,
    }),
    ("one group too many pending", |kind| match kind {
        StatementKind::AwaitReads { pending } => Some(Some(StatementKind::AwaitReads { pending: pending + 1 })),
        StatementKind::AwaitFetches { pending } => Some(Some(StatementKind::AwaitFetches { pending: pending + 1 })),
        _ => None,
    }),
    ("too many bytes", |kind| expecting(kind, 16)),
    ("too few bytes", |kind| expecting(kind, -16)),
    ("a longer run", |kind| running(kind, 16)),
    ("a shorter run", |kind| running(kind, -16)),
];

fn expecting(kind: &StatementKind, more: i32) -> Option<Option<StatementKind>> {
    let StatementKind::Expect { barrier, slot, bytes } = *kind else { return None };
    Some(Some(StatementKind::Expect { barrier, slot, bytes: bytes.checked_add_signed(more)? }))
}

fn running(kind: &StatementKind, more: i32) -> Option<Option<StatementKind>> {
    let StatementKind::Transfer(transfer) = kind else { return None };
    let mut transfer = transfer.clone();
    let TensorPart::Run { bytes, .. } = &mut transfer.part else { return None };
    *bytes = bytes.checked_add_signed(more).filter(|bytes| *bytes > 0)?;
    Some(Some(StatementKind::Transfer(transfer)))
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
        let compiled = kernel("tests/tma_mutants.rs", name);
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
