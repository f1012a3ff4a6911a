//! Collective types: extents of a mixed-radix number of all threads of a cluster, and how much of each a unit has.

use super::ThreadSet;

/// One dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeDim {
    /// Its extent.
    pub extent: u64,
    /// How much of it there is; any amount if that is not said.
    pub part: Option<u64>,
}

impl TypeDim {
    /// Whether it has one coordinate, all of them, or any.
    fn is_aligned(self) -> bool {
        self.part.is_none_or(|part| part == 1 || part == self.extent)
    }
}

/// A collective type, outermost dimension first: the product of the extents is the threads of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveType {
    /// Its dimensions; none has extent 1.
    pub dims: Vec<TypeDim>,
}

/// A box that is neither whole blocks of a pitch nor inside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uneven {
    /// Threads of the box, along its dimension and times its pitch.
    pub part: u64,
    /// The pitch.
    pub pitch: u64,
}

impl CollectiveType {
    /// The threads between neighbours along each dimension.
    pub fn pitches(&self) -> Vec<u64> {
        let mut pitches = vec![1; self.dims.len()];
        for at in (1..self.dims.len()).rev() {
            pitches[at - 1] = pitches[at] * self.dims[at].extent;
        }
        pitches
    }

    /// The same type with every box 1, all or free: box B of extent D becomes (1, B) of (D / B, B).
    ///
    /// # Errors
    /// The first dimension whose box does not divide the extent.
    pub fn aligned(&self) -> Result<Self, TypeDim> {
        let mut dims = Vec::new();
        for dim in &self.dims {
            match dim.part {
                Some(part) if !dim.is_aligned() => {
                    if dim.extent % part != 0 {
                        return Err(*dim);
                    }
                    dims.push(TypeDim { extent: dim.extent / part, part: Some(1) });
                    dims.push(TypeDim { extent: part, part: Some(part) });
                }
                _ => dims.push(*dim),
            }
        }
        Ok(Self { dims })
    }

    /// The same type over the dimensions between more pitches, which divide each other in turn and have its own among
    /// them. A dimension is split at factor f into (D / f, f) with boxes (B / f, f) if B ≥ f, and (1, B) if not.
    ///
    /// # Errors
    /// A box of at least f that f does not divide.
    pub fn completed(&self, chain: &[u64]) -> Result<Self, Uneven> {
        let mut dims = Vec::new();
        for (dim, pitch) in self.dims.iter().zip(self.pitches()) {
            let inside = chain.iter().copied().filter(|p| *p >= pitch && *p < pitch * dim.extent);
            let mut end = pitch * dim.extent;
            for p in inside {
                let part = match dim.part.map(|part| part * pitch) {
                    // All of what is inside one step of this pitch, or a box that ends inside it.
                    Some(threads) if threads < p => Some(1),
                    Some(threads) if threads >= end => Some(end / p),
                    Some(threads) if threads % p != 0 => return Err(Uneven { part: threads, pitch: p }),
                    Some(threads) => Some(threads / p),
                    None => None,
                };
                dims.push(TypeDim { extent: end / p, part });
                end = p;
            }
        }
        Ok(Self { dims })
    }

    /// Whether a set of threads is one of this aligned type (docs/theory.md, Collectives): the image of a product of
    /// coordinates, of which there is one where the box is 1, and all where it is the extent.
    pub fn matches(&self, set: &ThreadSet) -> bool {
        let Some(found) = coordinates(&self.dims.iter().map(|d| d.extent).collect::<Vec<_>>(), set) else {
            return false;
        };
        self.dims.iter().zip(&found).all(|(dim, found)| dim.part.is_none_or(|part| found.len() as u64 == part))
    }

    /// The first thread of the unit that a thread is in: its coordinates where the box is 1, of this aligned type.
    pub fn unit_of(&self, thread: u64) -> u64 {
        let singled = self.dims.iter().zip(self.pitches()).filter(|(dim, _)| dim.part == Some(1));
        singled.map(|(dim, pitch)| thread / pitch % dim.extent * pitch).sum()
    }

    /// Threads of each set that matches; none if their number is free.
    pub fn threads(&self) -> Option<u64> {
        self.dims.iter().try_fold(1, |n: u64, dim| Some(n * dim.part?))
    }

    /// Threads of one unit, of one of those amounts that are free, if they are neighbours.
    pub(super) fn neighbours(&self) -> Option<u64> {
        let part = |dim: &TypeDim| TypeDim { part: Some(dim.part.unwrap_or(1)), ..*dim };
        let one = Self { dims: self.dims.iter().map(part).collect() }.first()?;
        (one == ThreadSet::run(0, one.count())).then(|| one.count())
    }

    /// The set at the origin that matches; none if their number is free.
    pub fn first(&self) -> Option<ThreadSet> {
        let mut threads = vec![0];
        for (dim, pitch) in self.dims.iter().zip(self.pitches()) {
            let part = dim.part?;
            threads = threads.iter().flat_map(|t| (0..part).map(move |c| t + c * pitch)).collect();
        }
        Some(ThreadSet::ascending(threads))
    }
}

/// The coordinates along each dimension, ascending, if the set is the image of their product; none if it is not, or
/// empty.
pub fn coordinates(extents: &[u64], set: &ThreadSet) -> Option<Vec<Vec<u64>>> {
    let mut found: Vec<Vec<u64>> = vec![Vec::new(); extents.len()];
    for thread in set.iter() {
        let mut rest = thread;
        for (extent, found) in extents.iter().zip(&mut found).rev() {
            // Of a run of threads most coordinates are those of the thread before.
            if found.last() != Some(&(rest % extent)) {
                found.push(rest % extent);
            }
            rest /= extent;
        }
    }
    for along in &mut found {
        along.sort_unstable();
        along.dedup();
    }
    // The set lies in the product of its projections; it is the product if it is as large.
    let product = found.iter().fold(1, |n: u64, f| n * f.len() as u64);
    (!set.is_empty() && product == set.count()).then_some(found)
}
