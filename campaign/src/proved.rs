//! The separate checker of finished kernels, as a net of both campaigns.

use tilewright_compiler::lower::Entry;
use tilewright_compiler::trial::{self, Effort, Net, Tally};
use tilewright_kernel::KernelInfo;

/// Work of the checker for one launch.
pub const WORK: u64 = 300_000;

/// Values of a kernel's dimensions: those of sizes and strides by their names, 0 for what has none.
pub fn values_of<'a>(info: &KernelInfo, of: impl Fn(&str) -> Option<&'a i64>) -> Vec<i64> {
    info.dims.iter().map(|d| of(&d.name).copied().unwrap_or(0)).collect()
}

/// What the checker says of indices at large sizes, from these values.
///
/// # Errors
/// The net, and what is wrong.
pub fn proved_large(info: &KernelInfo, entries: &[Entry], values: &[i64]) -> Result<Vec<String>, (String, String)> {
    let tally =
        trial::prove_large(info, entries, values, 1).map_err(|wrong| ("paths".to_owned(), wrong.to_string()))?;
    Ok((0..tally.held).map(|_| "paths-hold".to_owned()).collect())
}

/// What the checker says of each entry point that a launch with these values may take, to be counted; `work` is for
/// one of them.
///
/// # Errors
/// The net that found something wrong, and what.
pub fn proved(
    info: &KernelInfo,
    entries: &[Entry],
    values: &[i64],
    work: u64,
) -> Result<Vec<String>, (String, String)> {
    let mut counts = Vec::new();
    for (net, nets) in [("proof", &[Net::Indices]), ("values", &[Net::Values])] {
        let tally = trial::prove(info, entries, values, Effort { nets, seed: 1, work });
        let Tally { held, undecided, exhausted } = tally.map_err(|wrong| (net.to_owned(), wrong.to_string()))?;
        // On data everything has a value, unless something is divided by zero, or by less.
        if undecided > 0 && nets == &[Net::Values] {
            return Err((format!("{net}-undecided"), format!("undecided on drawn data, with {values:?}")));
        }
        for (n, what) in [(held, "holds"), (undecided, "undecided"), (exhausted, "exhausted")] {
            counts.extend((0..n).map(|_| format!("{net}-{what}")));
        }
    }
    Ok(counts)
}
