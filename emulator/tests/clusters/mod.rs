//! Clusters: kernels that are right are silent under many seeds, and each mistake in them is found under every seed.

mod exchange;
mod registers;
mod ring;
mod stores;

use crate::common::Bench;
use tilewright_emulator::Kind;

/// Seeds that every kernel runs with.
const SEEDS: u64 = 12;

/// Runs a kernel under many seeds and for several numbers of host threads: it must be silent, its words as expected,
/// and its report one.
fn right(bench: impl Fn() -> (Bench, u64), text: &str, expected: &[u32]) {
    for seed in 0..SEEDS {
        let mut reports = Vec::new();
        for threads in [1, 4] {
            let (mut bench, y) = bench();
            (bench.options.seed, bench.options.threads) = (seed, Some(threads));
            reports.push(bench.clean(text));
            assert_eq!(bench.words(y, expected.len()), expected, "seed {seed}");
        }
        assert_eq!(reports[0], reports[1], "seed {seed}");
    }
}

/// A mistake: what is replaced in the text, and how it is found.
struct Mutation<'m> {
    edits: &'m [(&'m str, &'m str)],
    /// The kinds of which the first finding is one.
    kinds: &'m [Kind],
    /// What some finding says.
    says: &'m str,
}

/// Runs a kernel with a mistake: every seed must find it, and say the same for any number of host threads.
fn broken(bench: impl Fn() -> Bench, text: &str, mutation: &Mutation<'_>) {
    let mut mutated = text.to_owned();
    for (old, new) in mutation.edits {
        assert_eq!(mutated.matches(old).count(), 1, "`{old}` is not there once:\n{mutated}");
        mutated = mutated.replace(old, new);
    }
    for seed in 0..SEEDS {
        let mut reports = Vec::new();
        for threads in [1, 4] {
            let mut bench = bench();
            (bench.options.seed, bench.options.threads) = (seed, Some(threads));
            reports.push(bench.run(&mutated));
        }
        let report = &reports[0];
        let failure = report.findings.iter().find(|finding| finding.kind.is_failure());
        let Some(failure) = failure else { panic!("seed {seed}: nothing was found of {:?}", mutation.edits) };
        assert!(mutation.kinds.contains(&failure.kind), "seed {seed}: {:?}\n{report}", mutation.edits);
        assert!(report.to_string().contains(mutation.says), "seed {seed}: {:?}\n{report}", mutation.edits);
        assert_eq!(reports[0], reports[1], "seed {seed}: {:?}", mutation.edits);
    }
}
