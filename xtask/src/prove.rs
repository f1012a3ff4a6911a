//! `cargo xtask prove`: every kernel of the repository before the separate checker, each entry point at sizes of all
//! kinds, on index values and on data, with so much work that few runs do not come to their end.

use rayon::prelude::*;
use tilewright_cli::prove;
use tilewright_compiler::trial::Tally;

use crate::{Failure, kernels};

/// Work of each net for one entry point at one size.
const WORK: u64 = 20_000_000;

/// Proves them, and prints how many runs came to their end.
///
/// # Errors
/// A kernel does not compile, or is wrong.
pub fn prove() -> Result<(), Failure> {
    let kernels = kernels::all()?;
    let one = |kernel: &kernels::Kernel| {
        let found = prove::at_all_sizes(&kernel.info, &kernel.entries, WORK);
        found.map_err(|wrong| format!("{} of {}: {wrong}", kernel.info.name, kernel.source))
    };
    let found: Vec<Result<Tally, String>> = kernels.par_iter().map(one).collect();
    let (mut all, mut wrong) = (Tally::default(), Vec::new());
    for result in found {
        match result {
            Ok(tally) => all += tally,
            Err(what) => wrong.push(what),
        }
    }
    let Tally { held, undecided, exhausted } = all;
    let (count, failures) = (kernels.len(), wrong.len());
    println!(
        "prove: {count} kernels, {held} runs without a fault, {undecided} that depend on data, {exhausted} not to the end, {failures} failures"
    );
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
