//! A finished kernel at sizes of all kinds: before the separate checker, on index values and on data, and on the
//! emulator. The macro, which users wait for, does a small part of this ([`tilewright_compiler::trial`]).

use tilewright::{Device, EmulatorOptions, Error};
use tilewright_compiler::lower::Entry;
use tilewright_compiler::trial::{Effort, Net, Tally, Wrong, prove, prove_large};
use tilewright_kernel::{KernelInfo, List};

use crate::inputs::Floats;
use crate::sizes;
use crate::trial::Trial;

/// Work of each net for one entry point at one size: a tenth of a second in a build without optimisation.
pub const WORK: u64 = 1_000_000;
/// Sizes to draw from: the smallest ones; small ones; such that there are several tiles, blocks and iterations along
/// some axis, and remainders.
const POOLS: [&[i64]; 6] = [
    &[0, 1, 2],
    &[1, 2, 3],
    &[1, 2, 3, 4, 5, 7, 8, 12],
    &[1, 3, 8, 17, 31, 32, 33, 40, 64],
    &[6, 16, 64, 70],
    &[1, 2, 3, 33, 96, 130, 257, 512],
];

/// Sizes that the facts of a kernel admit, each once: from each pool, and with one of them 0 where others are small.
pub fn drawn(info: &KernelInfo) -> Vec<Vec<i64>> {
    let mut all: Vec<Vec<i64>> = Vec::new();
    for (seed, pool) in (0..).zip(POOLS) {
        let dims = sizes::choose(info, pool, seed).and_then(|given| sizes::complete(info, &given).ok());
        all.extend(dims.filter(|dims| !all.contains(dims)));
    }
    let small = sizes::choose(info, POOLS[1], 1).unwrap_or_default();
    for name in small.keys() {
        let mut empty = small.clone();
        empty.insert(name.clone(), 0);
        all.extend(sizes::admitted(info, &empty).filter(|dims| !all.contains(dims)));
    }
    all
}

/// What the separate checker says of the entry points of a kernel at these sizes. `work` is that of each net for one
/// entry point at one size.
///
/// # Errors
/// The first thing that is wrong.
pub fn at_all_sizes(info: &KernelInfo, entries: &[Entry], work: u64) -> Result<Tally, Box<Wrong>> {
    let effort = Effort { nets: &[Net::Values, Net::Indices], seed: 1, work };
    let mut tally = Tally::default();
    for dims in drawn(info) {
        tally += prove(info, entries, &dims, effort)?;
    }
    let small = sizes::choose(info, POOLS[1], 1).and_then(|given| sizes::complete(info, &given).ok());
    if let Some(base) = small {
        tally += prove_large(info, entries, &base, effort.seed)?;
    }
    Ok(tally)
}

/// What is wrong with a launch on the emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It was refused or stopped, or a sanitizer has found something.
    Launch(String),
    /// What it computed is not what the algorithm admits.
    Result(String),
}

/// The kernel with each one of its entry points alone that these sizes admit, the one that a launch takes first.
pub fn by_entry(info: &KernelInfo, dims: &[i64]) -> Vec<KernelInfo> {
    let holds = |n: &usize| info.entries[*n].conditions.iter().all(|c| c.holds(dims) == Ok(true));
    let one = |n: usize| KernelInfo { entries: List::Owned(vec![info.entries[n].clone()]), ..info.clone() };
    (0..info.entries.len()).filter(holds).map(one).collect()
}

/// Launches a kernel at these sizes on the emulator, under other seeds each and on small numbers and any bits, its
/// entry points in turn, and compares with the reference; gives the number of launches that were compared. `terms`
/// bounds the elements and terms that the reference evaluates; a launch with more, or with tensors that are too large,
/// is left out.
///
/// # Errors
/// The first thing that is wrong.
pub fn on_emulator(info: &KernelInfo, terms: u64) -> Result<u64, Fault> {
    let mut compared = 0;
    let sizes =
        drawn(info).into_iter().flat_map(|dims| [Floats::Real, Floats::Any].map(|floats| (dims.clone(), floats)));
    for (seed, (dims, floats)) in (1..).zip(sizes) {
        let device = Device::emulator(EmulatorOptions::default().seed(seed));
        // By three, so that each meets both kinds of numbers.
        let entries = by_entry(info, &dims);
        let Some(info) = entries.get((seed / 3) as usize % entries.len().max(1)) else { continue };
        let Ok(trial) = Trial::with(info, &dims, (seed, floats), &device) else { continue };
        let outcome = trial.within(terms).run(&device);
        match outcome.failure {
            None => compared += 1,
            Some(Error::Reference(_)) => continue,
            Some(failure) => return Err(Fault::Launch(format!("{dims:?}: {failure}"))),
        }
        if let Some(report) = outcome.report.filter(|r| !r.faults.is_empty() || !r.warnings.is_empty()) {
            return Err(Fault::Launch(format!("{dims:?}: {:?} {:?}", report.faults, report.warnings)));
        }
        if let Some(error) = outcome.verdicts.into_iter().find_map(|v| v.result.err()) {
            return Err(Fault::Result(format!("{dims:?}: {error}")));
        }
    }
    Ok(compared)
}

#[cfg(test)]
mod tests {
    use crate::source::SourceFile;
    use tilewright_compiler::kernel_ir::Op;
    use tilewright_kernel::algorithm::Binary;

    #[test]
    fn a_kernel_that_is_wrong_after_all_is_an_error() {
        let text = "tilewright::schedule! { kernel K(x: f32[N]) -> (y: f32[N]) {
            y[i] = x[i] + 1.0; schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; } } }";
        let mut file = SourceFile::parse("k.rs", text).expect("Rust");
        let tally = file.prove();
        assert!(tally.held > 8 && (tally.undecided, tally.exhausted) == (0, 0), "{tally:?}");
        let kernel = &mut file.invocations[0].outcome.kernels[0];
        for value in kernel.entries.iter_mut().flat_map(|entry| &mut entry.kernel.values) {
            if let Op::Binary(operation @ Binary::Add, ..) = &mut value.op {
                *operation = Binary::Sub;
            }
        }
        file.prove();
        let found = file.findings();
        assert_eq!(found.errors, 1, "{}", found.text);
        let words = ["error[TW9001]: the compiler failed in `proof`", "y[0]", "in `K` by 1 block at N = ", "k.rs:1:32"];
        for word in words {
            assert!(found.text.contains(word), "{word} is not in\n{}", found.text);
        }
        assert!(file.kernels().all(|found| found.kernel.info.is_none()));
    }
}
