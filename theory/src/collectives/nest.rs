//! Nests of parallel loops: for every combination of their iterators, the set of threads that runs it.

use super::types::coordinates;
use super::unit::{Typing, Unit, UnitFault};
use super::{Shape, ThreadSet};

/// A loop over units of the current threads, or a range of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// The unit.
    pub unit: Unit,
    /// The first of the units that take part.
    pub low: u64,
    /// After the last one.
    pub high: u64,
    /// The iterations, each of which has equally many units.
    pub tiles: u64,
}

impl Bind {
    /// A loop of so many iterations, one for each unit from the first one on.
    pub const fn each(tiles: u64, unit: Unit) -> Self {
        Self { unit, low: 0, high: tiles, tiles }
    }

    /// Units of a range, each of which runs an iteration.
    pub const fn each_of(low: u64, high: u64, unit: Unit) -> Self {
        Self { unit, low, high, tiles: high.saturating_sub(low) }
    }

    /// Units of a range, which run one iteration together.
    pub const fn range(low: u64, high: u64, unit: Unit) -> Self {
        Self { unit, low, high, tiles: 1 }
    }
}

/// A loop of a nest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What was asked for.
    pub bind: Bind,
    /// From the first thread of one iteration to that of the next; 0 if there is one iteration.
    pub pitch: u64,
    /// Threads that ran what is around the loop and run no iteration of it, in the first iteration around.
    pub idle: ThreadSet,
}

/// The values of the iterators, outermost first, with who runs the place then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The values.
    pub values: Vec<u64>,
    /// The threads.
    pub threads: ThreadSet,
}

/// A place inside loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nest {
    shape: Shape,
    /// The pitches of the dimensions that the loops know, each a multiple of the next.
    chain: Vec<u64>,
    steps: Vec<Step>,
    /// Every combination of iterators, in lexicographic order.
    instances: Vec<Instance>,
}

/// Why a loop cannot stand where it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoopFault {
    /// No iterations, or a range that iterations do not share equally.
    Range {
        /// What was asked for.
        bind: Bind,
    },
    /// The unit is none of this launch.
    Unit(UnitFault),
    /// Pitches of which neither divides the other: groups of so many threads do not nest.
    Pitches {
        /// The larger one.
        large: u64,
        /// The smaller one.
        small: u64,
    },
    /// A unit that ends inside a group of threads that a loop around or the unit itself takes apart.
    Uneven {
        /// Threads of the unit, along one dimension.
        part: u64,
        /// The group.
        pitch: u64,
    },
    /// Threads that are not whole groups of the unit's dimensions, nor inside one.
    NotABox {
        /// The values of the iterators around.
        values: Vec<u64>,
        /// The threads.
        threads: ThreadSet,
        /// The extents of the dimensions.
        extents: Vec<u64>,
    },
    /// More units than there are.
    TooMany {
        /// Units that the loop needs.
        asked: u64,
        /// Units that there are.
        most: u64,
    },
    /// Nothing to narrow: what is around is one unit, or is inside one.
    Already {
        /// Units that the loop needs.
        asked: u64,
        /// Threads of the first iteration around.
        threads: ThreadSet,
    },
    /// The unit narrows in several directions at once.
    Ambiguous {
        /// Pitches of the dimensions.
        pitches: Vec<u64>,
        /// Threads of one unit, if these are neighbours.
        neighbours: Option<u64>,
    },
}

impl Nest {
    /// The place outside of all loops: every thread of a cluster runs it.
    pub fn top(shape: Shape) -> Self {
        let extents = [shape.cluster(), shape.block()];
        let pitches = [shape.block(), 1];
        let chain = pitches.into_iter().zip(extents).filter(|(_, e)| *e > 1).map(|(p, _)| p).collect();
        let instances = vec![Instance { values: Vec::new(), threads: shape.all() }];
        Self { shape, chain, steps: Vec::new(), instances }
    }

    /// The place inside all of these loops, outermost first.
    ///
    /// # Errors
    /// The position of the first loop that cannot stand there, and why.
    pub fn of<'a>(shape: Shape, binds: impl IntoIterator<Item = &'a Bind>) -> Result<Self, (usize, LoopFault)> {
        binds
            .into_iter()
            .enumerate()
            .try_fold(Self::top(shape), |nest, (at, bind)| nest.inside(bind).map_err(|f| (at, f)))
    }

    /// The launch.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// The loops, outermost first.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Every combination of iterators, in lexicographic order, with who runs it.
    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    /// Who runs the first iteration.
    pub fn first(&self) -> &ThreadSet {
        &self.instances[0].threads
    }

    /// The threads that run some iteration.
    pub fn busy(&self) -> ThreadSet {
        ThreadSet::union(self.instances.iter().map(|i| &i.threads))
    }

    /// The threads that run none.
    pub fn idle(&self) -> ThreadSet {
        self.shape.all().without(&self.busy())
    }

    /// Who runs it, over the iterators, of which there are as many names as loops.
    pub fn show(&self, names: &[&str]) -> String {
        let iterators: Vec<(&str, u64)> = names.iter().copied().zip(self.steps.iter().map(|s| s.pitch)).collect();
        self.first().over(&iterators)
    }

    /// Whether every instance is what an operation needs (docs/theory.md, Collectives).
    ///
    /// # Errors
    /// The unit is none of this launch.
    pub fn matches(&self, unit: &Unit) -> Result<bool, UnitFault> {
        let needed = unit.needed(self.shape)?;
        Ok(self.instances.iter().all(|instance| needed.matches(&instance.threads)))
    }

    fn extents(&self, chain: &[u64]) -> Vec<u64> {
        let mut end = self.shape.threads();
        chain.iter().map(|p| std::mem::replace(&mut end, *p) / p).collect()
    }

    /// The place inside one more loop (docs/theory.md, Collectives).
    ///
    /// # Errors
    /// Why it cannot stand here.
    pub fn inside(&self, bind: &Bind) -> Result<Self, LoopFault> {
        let Bind { unit, low, high, tiles } = bind;
        let (low, high, tiles) = (*low, *high, *tiles);
        if low >= high || tiles == 0 || (high - low) % tiles != 0 {
            return Err(LoopFault::Range { bind: bind.clone() });
        }
        let own = unit.typed(self.shape, Typing::Agnostic).map_err(LoopFault::Unit)?;
        let chain = joined(&self.chain, &own.pitches())?;
        let own =
            own.completed(&chain).map_err(|uneven| LoopFault::Uneven { part: uneven.part, pitch: uneven.pitch })?;
        let extents = self.extents(&chain);
        // Along each dimension, how many coordinates every instance has: loops narrow all instances alike.
        let mut boxes: Vec<u64> = Vec::new();
        let mut starts: Vec<Vec<u64>> = Vec::new();
        for Instance { values, threads } in &self.instances {
            let found = coordinates(&extents, threads);
            let alike =
                found.filter(|f| boxes.is_empty() || f.iter().map(Vec::len).eq(boxes.iter().map(|b| *b as usize)));
            let Some(found) = alike else {
                let (values, threads) = (values.clone(), threads.clone());
                return Err(LoopFault::NotABox { values, threads, extents });
            };
            boxes = found.iter().map(|f| f.len() as u64).collect();
            starts.push(found.iter().map(|f| f.first().copied().unwrap_or(0)).collect());
        }
        let narrows = |at: &usize| own.dims[*at].part.is_some_and(|p| p != boxes[*at] && p != extents[*at]);
        let tiled: Vec<usize> = (0..extents.len()).filter(narrows).collect();
        let mut nest = Self { shape: self.shape, chain, steps: self.steps.clone(), instances: Vec::new() };
        let step = |pitch, idle| Step { bind: bind.clone(), pitch, idle };
        let [at] = tiled[..] else {
            if tiled.len() > 1 {
                let (pitches, neighbours) = (tiled.into_iter().map(|t| nest.chain[t]).collect(), own.neighbours());
                return Err(LoopFault::Ambiguous { pitches, neighbours });
            }
            if (low, high, tiles) != (0, 1, 1) {
                return Err(LoopFault::Already { asked: high, threads: self.first().clone() });
            }
            nest.steps.push(step(0, ThreadSet::default()));
            nest.instances.clone_from(&self.instances);
            nest.instances.iter_mut().for_each(|instance| instance.values.push(0));
            return Ok(nest);
        };
        let part = own.dims[at].part.unwrap_or(1);
        if high.checked_mul(part).is_none_or(|end| end > boxes[at]) {
            return Err(LoopFault::TooMany { asked: high, most: boxes[at] / part });
        }
        let (pitch, extent) = (nest.chain[at], extents[at]);
        let size = part * (high - low) / tiles;
        for (Instance { values, threads }, start) in self.instances.iter().zip(&starts) {
            let mut taken = vec![ThreadSet::default(); tiles as usize];
            for (first, count) in threads.runs() {
                let mut thread = first;
                while thread < first + count {
                    let along = thread / pitch % extent - start[at];
                    // The iteration that takes it, and where the next coordinate begins of which that is not so.
                    let (tile, end) = if along < low * part {
                        (None, low * part)
                    } else if along < high * part {
                        let tile = (along - low * part) / size;
                        (Some(tile), low * part + (tile + 1) * size)
                    } else {
                        (None, extent - start[at])
                    };
                    let length = ((end - along) * pitch - thread % pitch).min(first + count - thread);
                    if let Some(tile) = tile {
                        taken[tile as usize].push(thread, length);
                    }
                    thread += length;
                }
            }
            for (value, threads) in (0..).zip(taken) {
                let mut of = Vec::with_capacity(values.len() + 1);
                of.extend_from_slice(values);
                of.push(value);
                nest.instances.push(Instance { values: of, threads });
            }
        }
        let of_first = ThreadSet::union(nest.instances[..tiles as usize].iter().map(|i| &i.threads));
        let pitch = if tiles > 1 { pitch * size } else { 0 };
        nest.steps.push(step(pitch, self.first().without(&of_first)));
        Ok(nest)
    }
}

/// The pitches of both, if each is a multiple of the next.
pub(super) fn joined(left: &[u64], right: &[u64]) -> Result<Vec<u64>, LoopFault> {
    let mut chain: Vec<u64> = left.iter().chain(right).copied().collect();
    chain.sort_unstable_by(|a, b| b.cmp(a));
    chain.dedup();
    match chain.windows(2).find(|two| two[0] % two[1] != 0) {
        Some(two) => Err(LoopFault::Pitches { large: two[0], small: two[1] }),
        None => Ok(chain),
    }
}
