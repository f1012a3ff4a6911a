//! Uniform control: an operation of several threads is reached by all of them, or by none.

use tilewright_sorted::SortedMap;

use super::nest::{Instance, Nest};

/// A thread that another one of its collective leaves alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotUniform {
    /// The iterators of the loops around the operation.
    pub values: Vec<u64>,
    /// A thread that reaches it.
    pub reaches: u64,
    /// One that needs to and does not.
    pub stays_away: u64,
}

/// Whether conditions inside a nest let all threads of the place inside its first `depth` loops pass, or none of them;
/// `holds` says for the iterators of all loops of the nest whether they pass. Threads that the inner loops leave idle
/// pass nothing.
///
/// # Errors
/// The first two threads of one collective of which one passes and one does not.
pub fn uniform(nest: &Nest, depth: usize, holds: &dyn Fn(&[u64]) -> bool) -> Result<(), NotUniform> {
    let depth = depth.min(nest.steps().len());
    let Ok(around) = Nest::of(nest.shape(), nest.steps()[..depth].iter().map(|s| &s.bind)) else { return Ok(()) };
    let mut passing: SortedMap<&[u64], Vec<u64>> = SortedMap::new();
    for Instance { values, threads } in nest.instances() {
        let passes = holds(values);
        let of = passing.entry(&values[..depth]).or_default();
        of.extend(threads.iter().filter(|_| passes));
    }
    for Instance { values, threads } in around.instances() {
        let Some(passing) = passing.get_mut(&values[..]) else { continue };
        passing.sort_unstable();
        let stays_away = threads.iter().find(|t| passing.binary_search(t).is_err());
        if let (Some(reaches), Some(stays_away)) = (passing.first().copied(), stays_away) {
            return Err(NotUniform { values: values.clone(), reaches, stays_away });
        }
    }
    Ok(())
}
