//! A finished kernel meets the separate checker ([`crate::proof`]) before it is handed out, at a few small sizes and within a small budget: what it finds is a
//! mistake of ours that no test has met. Larger sizes, and every kernel of the project, are its business in tests.

use tilewright_kernel::info::{DimKind, KernelInfo};

use crate::extent::{Budget, Facts, Search};
use crate::lower::Entry;
use crate::proof::{Launch, Verdict, Violation, check};

/// Work for one entry point at one size: some milliseconds in a build without optimisation.
const WORK: u64 = 100_000;
/// Steps of the search for the smallest sizes.
const SEARCH_STEPS: u64 = 10_000;
/// Sizes to try beside the smallest ones: each dimension at least this, if it may be.
const LEAST: [i64; 2] = [3, 35];

/// The first thing that is wrong, with the sizes.
pub fn run(info: &KernelInfo, facts: &Facts, entries: &[Entry]) -> Option<(Vec<i64>, Violation)> {
    for dims in sizes(info, facts) {
        let Ok(launch) = Launch::new(info, &dims) else { continue };
        for entry in entries.iter().filter(|e| e.conditions.iter().all(|c| c.holds(&dims) == Ok(true))) {
            if let Verdict::Violated(violation) = check(&entry.kernel, &launch, WORK) {
                return Some((dims, violation));
            }
        }
    }
    None
}

/// Admissible sizes: the smallest ones, and some that are larger in every dimension that may be. None of tensors with strides of their own, for which
/// a launch has more rules.
fn sizes(info: &KernelInfo, facts: &Facts) -> Vec<Vec<i64>> {
    if info.dims.iter().any(|dim| dim.kind != DimKind::Size) {
        return Vec::new();
    }
    let all: Vec<u32> = (0..facts.dims() as u32).collect();
    let mut budget = Budget::new(SEARCH_STEPS);
    let Search::Found(smallest) = facts.smallest(&all, &mut budget, |dims, _| Some(dims.to_vec())) else {
        return Vec::new();
    };
    let mut list = vec![smallest.clone()];
    for least in LEAST {
        let larger = |(v, known): (usize, &i64)| {
            let next = facts.from(v as u32, i128::from(least)).and_then(|(value, _)| i64::try_from(value).ok());
            next.unwrap_or(*known).max(*known)
        };
        let dims: Vec<i64> = smallest.iter().enumerate().map(larger).collect();
        if info.facts.iter().all(|fact| fact.holds(&dims) == Ok(true)) && !list.contains(&dims) {
            list.push(dims);
        }
    }
    list
}
