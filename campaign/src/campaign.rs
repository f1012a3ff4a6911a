//! Many cases: in parallel, counted, failures shrunk.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use crate::case::{Failure, check};
use crate::cases::{each, lock};
use crate::compile::{Outcome, compile};
use crate::generate;
use crate::rng::Rng;
use crate::shrink::shrink;

/// What a campaign found.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Cases run.
    pub cases: u64,
    /// Kernels that compiled.
    pub accepted: u64,
    /// Launches on the emulator that were compared.
    pub launches: u64,
    /// Cases per code and verdict, and other counts.
    pub counts: BTreeMap<String, u64>,
    /// Failed cases per class.
    pub failures: BTreeMap<String, u64>,
    /// The first failures of each class, shrunk, with all that is needed to repeat them.
    pub examples: Vec<String>,
}

/// Longest time of the processor that one case may take before the process gives up on it, so that a hang is a failure.
const CASE_TIME: Duration = Duration::from_secs(120);
/// Examples kept of each class.
const EXAMPLES: u64 = 3;
/// Kernels that one shrinking may try.
const SHRINK_TRIES: u32 = 400;

/// Runs cases `first..first + count` of a seed.
pub fn run(seed: u64, first: u64, count: u64) -> Summary {
    let summary = Mutex::new(Summary::default());
    let shown = |index| generate::kernel(&mut Rng::of_case(seed, index)).to_string();
    each(seed, (first, count), CASE_TIME, &shown, &|index| one(seed, index, &summary));
    summary.into_inner().unwrap_or_default()
}

/// Prints the cases that are counted under a name, with the compiler's messages.
pub fn list(seed: u64, first: u64, count: u64, class: &str) {
    for index in first..first + count {
        let mut rng = Rng::of_case(seed, index);
        let kernel = generate::kernel(&mut rng);
        let text = kernel.to_string();
        if let Outcome::Refused(_, messages) = compile(&text)
            && messages.contains(class.split(' ').next().unwrap_or(class))
            && check(&kernel, rng.bits()).counts.iter().any(|c| c == class)
        {
            println!("=== seed {seed}, case {index}\n{text}{messages}");
        }
    }
}

fn one(seed: u64, index: u64, summary: &Mutex<Summary>) {
    let mut rng = Rng::of_case(seed, index);
    let kernel = generate::kernel(&mut rng);
    let data = rng.bits();
    let report = check(&kernel, data);
    let mut fresh: Vec<Failure> = Vec::new();
    {
        let mut s = lock(summary);
        s.cases += 1;
        s.accepted += u64::from(report.accepted);
        s.launches += u64::from(report.launches);
        for count in report.counts {
            *s.counts.entry(count).or_default() += 1;
        }
        for failure in report.failures {
            let times = s.failures.entry(failure.class.clone()).or_default();
            *times += 1;
            if *times <= EXAMPLES {
                fresh.push(failure);
            }
        }
    }
    for failure in fresh {
        let again = |k: &crate::ast::Kernel| check(k, data).failures.into_iter().find(|f| f.class == failure.class);
        let small = shrink(&kernel, SHRINK_TRIES, &|k| again(k).is_some());
        let last = again(&small).unwrap_or_else(|| failure.clone());
        let sizes = last.dims.map_or(String::new(), |d| format!("\nsizes: {d:?}"));
        let text = format!("=== {} (seed {seed}, case {index})\n{small}{}{sizes}\n", last.class, last.detail);
        lock(summary).examples.push(text);
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cases, accepted, launches, counts, failures, examples } = self;
        for example in examples {
            writeln!(f, "{example}")?;
        }
        writeln!(f, "{cases} cases: {accepted} accepted, {launches} launches compared")?;
        for (what, n) in counts {
            writeln!(f, "  {what}: {n}")?;
        }
        for (what, n) in failures {
            writeln!(f, "  FAILED {what}: {n}")?;
        }
        Ok(())
    }
}
