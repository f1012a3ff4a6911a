//! What a launch does, as the emulator counts it: of all blocks, or of some of them as an estimate.
//!
//! **Guarantee**: if [`Counts::is_exact`], each number is the emulator's for the whole launch. Otherwise it is the mean
//! of the clusters that ran, times all clusters. **Formula**: the first and the last cluster count for themselves, and
//! those of a persistent launch that take one tile more than the others are a class of their own. A class is cut into
//! as many equal parts as clusters of it may run, and one is drawn from each; so a pattern that repeats along the grid
//! is met at all its places. Kernels whose blocks hand results to each other run whole or not at all. Products of
//! tensor cores are left out, unless counts turn out to depend on data. **Approximated**: nothing says that what did
//! not run is like what ran; the least and the most of a cluster are told. That counts do not depend on data is tried
//! with two sets of data.

use std::ops::Range;

use tilewright::{__private, Device, EmulatorOptions, Error, Prepared};
use tilewright_emulator::Counters;
use tilewright_kernel::KernelInfo;

use crate::inputs::{Floats, Random};
use crate::trial::{Trial, TrialError};

/// Operations of tensor cores that the emulator does in the time of a warp instruction, about.
const PRODUCTS: u64 = 1 << 8;
/// How much more work a warp instruction may be on the emulator, which checks registers by instructions of its own.
const CHECKS: u64 = 4;
/// Least and most clusters that are drawn.
const LEAST: u64 = 4;
/// See [`LEAST`].
const MOST: u64 = 32;
/// Seeds of the data, and of other data.
const SEEDS: [u64; 2] = [0, 1];

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The kernel.
    pub kernel: &'a KernelInfo,
    /// The value of each dimension.
    pub dims: &'a [i64],
    /// Scalars that the user has chosen.
    pub scalars: &'a [(&'a str, &'a str)],
    /// Clusters of a persistent launch that run at one time.
    pub resident: u32,
    /// Work that is done, in warp instructions.
    pub budget: u64,
}

/// What a launch does.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// Blocks that it starts; 0 if there is nothing to compute.
    pub blocks: u32,
    /// The counters of all of them.
    pub all: Counters,
    /// What they were counted on, if not on all.
    pub sampled: Option<Sample>,
    /// Whether clusters counted otherwise with other data; none if the budget did not allow to try it with products of
    /// tensor cores.
    pub depends_on_data: Option<bool>,
}

/// The clusters that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How many.
    pub ran: u64,
    /// Of how many.
    pub of: u64,
    /// The least and most sectors of global memory that one of them asked for.
    pub sectors: (u64, u64),
    /// The least and most operations that one of them did.
    pub operations: (u64, u64),
}

/// A prepared launch with its data.
struct Run<'a> {
    launch: Prepared<'static>,
    request: &'a Request<'a>,
}

/// Clusters that run; none: all.
type Part = Option<Range<u64>>;

impl<'a> Run<'a> {
    fn new(request: &'a Request<'a>, seed: u64) -> Result<Self, TrialError> {
        let budget = request.budget.saturating_mul(CHECKS);
        let options = EmulatorOptions::default().budget(budget).resident(request.resident);
        let device = Device::emulator(options);
        let mut trial = Trial::with(request.kernel, request.dims, (seed, Floats::Real), &device)?;
        for (name, value) in request.scalars {
            trial.set_scalar(name, value)?;
        }
        Ok(Self { launch: trial.prepare(device.as_ref())?, request })
    }

    /// Counts each of some parts, with or without products of tensor cores.
    fn count(&self, parts: &[Part], products: bool) -> Result<Vec<Counters>, CountError> {
        let one = |clusters: &Part| {
            let part = __private::Part { clusters: clusters.clone(), products };
            __private::count(&self.launch, part).map_err(|error| match error {
                Error::Emulation(fault) if fault.kind == "Livelock" => {
                    let (name, budget) = (self.request.kernel.name.to_string(), self.request.budget);
                    match clusters {
                        Some(_) => CountError::Cluster { name, budget },
                        None => CountError::Whole { name, budget },
                    }
                }
                error => CountError::Trial(error.into()),
            })
        };
        parts.iter().map(one).collect()
    }
}

/// Why nothing could be counted.
#[derive(Debug)]
pub enum CountError {
    /// The launch is refused, or fails.
    Trial(TrialError),
    /// One block, or cluster, is too much work.
    Cluster {
        /// The kernel.
        name: String,
        /// Warp instructions that were allowed.
        budget: u64,
    },
    /// All blocks are too much work, and they must all run.
    Whole {
        /// The kernel.
        name: String,
        /// Warp instructions that were allowed.
        budget: u64,
    },
}

impl std::fmt::Display for CountError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Trial(error) => error.fmt(f),
            Self::Cluster { name, budget } => write!(
                f,
                "one block of kernel {name}, or one cluster, has not ended after {budget} warp instructions: `--budget` \
                 allows more"
            ),
            Self::Whole { name, budget } => write!(
                f,
                "blocks of kernel {name} hand results to each other, so that all must run to be counted, and they have \
                 not ended after {budget} warp instructions: `--budget` allows more"
            ),
        }
    }
}

impl From<TrialError> for CountError {
    fn from(error: TrialError) -> Self {
        Self::Trial(error)
    }
}

impl Counts {
    /// Counts a launch.
    ///
    /// # Errors
    /// As [`CountError`] says.
    pub fn of(request: &Request<'_>) -> Result<Self, CountError> {
        let run = Run::new(request, SEEDS[0])?;
        let blocks = __private::blocks(&run.launch);
        let clusters = u64::from(blocks / request.kernel.launch.cluster.max(1));
        let parts = match request.kernel.workspace.is_empty() {
            true => {
                let mut places = vec![0, clusters / 2, clusters.saturating_sub(1)];
                places.dedup();
                places.into_iter().map(alone).collect()
            }
            false => vec![None],
        };
        let mut tried = run.count(&parts, false)?;
        let affordable = tried.iter().map(products).fold(0, u64::saturating_add) <= request.budget;
        let others = Run::new(request, SEEDS[1])?.count(&parts, affordable)?;
        let depends_on_data = match tried.iter().zip(&others).any(|(a, b)| differ(a, b)) {
            true => Some(true),
            false => affordable.then_some(false),
        };
        let with = depends_on_data == Some(true);
        let work = |c: &Counters| c.warp_instructions + if with { products(c) } else { 0 };
        let whole = |all: Counters| Self { blocks, all, sampled: None, depends_on_data };
        let most = tried.iter().map(work).max().unwrap_or_default().max(1);
        let is_whole = parts == [None];
        if is_whole && !with {
            return Ok(whole(tried.remove(0)));
        }
        if is_whole || most.saturating_mul(clusters) <= request.budget || clusters <= parts.len() as u64 {
            match run.count(&[None], with) {
                // Others have more work than those that were tried.
                Err(CountError::Whole { .. }) if !is_whole => {}
                all => return Ok(whole(all?.remove(0))),
            }
        }
        let count = (request.budget / most).clamp(LEAST, MOST);
        let (mut all, mut counted) = (Counters::default(), Vec::new());
        for class in classes(request, clusters) {
            let of_class = class.end - class.start;
            let drawn = drawn(&class, (count * of_class).div_ceil(clusters).min(of_class));
            let parts: Vec<Part> = drawn.into_iter().map(alone).collect();
            let found = run.count(&parts, with)?;
            let mut sum = Counters::default();
            found.iter().for_each(|one| sum.add(one));
            all.add(&sum.scaled(of_class, found.len() as u64));
            counted.extend(found);
        }
        let sample = Sample {
            ran: counted.len() as u64,
            of: clusters,
            sectors: ends(&counted, |c| c.global.transactions),
            operations: ends(&counted, |c| c.work.operations()),
        };
        Ok(Self { blocks, all, sampled: Some(sample), depends_on_data })
    }

    /// Whether every number is the whole launch's, and two sets of data give the same.
    pub fn is_exact(&self) -> bool {
        self.sampled.is_none() && self.depends_on_data == Some(false)
    }
}

fn alone(cluster: u64) -> Part {
    Some(cluster..cluster + 1)
}

/// Clusters that are likely to be alike.
fn classes(request: &Request<'_>, clusters: u64) -> Vec<Range<u64>> {
    let launch = &request.kernel.launch;
    let ends = match launch.persistent {
        // Of c clusters, the one with the number f takes the tiles that are f modulo c.
        true => {
            let tiles = launch.blocks.eval(request.dims).ok().and_then(|blocks| u64::try_from(blocks).ok());
            [tiles.unwrap_or_default() / u64::from(launch.cluster.max(1)) % clusters, clusters]
        }
        false => [1, clusters - 1],
    };
    let starts = [0, ends[0], ends[1]];
    let all = starts.into_iter().zip([ends[0], ends[1], clusters]).map(|(start, end)| start..end);
    all.filter(|class| !class.is_empty()).collect()
}

/// One number of each of `count` equal parts of a range.
fn drawn(range: &Range<u64>, count: u64) -> Vec<u64> {
    let mut random = Random::new(SEEDS[0]);
    let all = u128::from(range.end - range.start);
    let start = |part: u64| range.start + (all * u128::from(part) / u128::from(count)) as u64;
    (0..count).map(|part| start(part) + random.below(start(part + 1) - start(part))).collect()
}

/// The work that products of tensor cores are on the emulator, in warp instructions.
fn products(counters: &Counters) -> u64 {
    counters.work.tensor.iter().sum::<u64>() / PRODUCTS
}

/// Whether two launches differ in what costs are made of. Loops that wait take as many turns as it comes.
fn differ(a: &Counters, b: &Counters) -> bool {
    let costs = |c: &Counters| (c.global, c.shared, c.local, c.bulk_loads, c.bulk_stores, c.fetched_bytes, c.work);
    costs(a) != costs(b)
}

fn ends(counted: &[Counters], of: impl Fn(&Counters) -> u64) -> (u64, u64) {
    let all = || counted.iter().map(&of);
    (all().min().unwrap_or_default(), all().max().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceFile;

    fn kernel(text: &str) -> KernelInfo {
        let file = SourceFile::parse("k.rs", &format!("tilewright::schedule! {{ kernel {text} }}")).unwrap();
        let findings = file.findings();
        assert_eq!(findings.errors, 0, "{}", findings.text);
        file.kernels().next().unwrap().kernel.info.clone().unwrap()
    }

    fn counted(kernel: &KernelInfo, dims: &[i64], budget: u64) -> Result<Counts, CountError> {
        Counts::of(&Request { kernel, dims, scalars: &[], resident: 50, budget })
    }

    /// All of a launch, and an estimate of some blocks.
    fn both(kernel: &KernelInfo, dims: &[i64], budget: u64) -> (Counts, Counts) {
        let all = counted(kernel, dims, u64::MAX).unwrap();
        assert!(all.is_exact(), "{all:?}");
        let some = counted(kernel, dims, budget).unwrap();
        assert!(!some.is_exact() && some.depends_on_data == Some(false), "{some:?}");
        (all, some)
    }

    #[test]
    fn blocks_that_are_alike_stand_for_all() {
        let copy = "K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + x[i];
            schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; } }";
        // The last block has one element.
        let (all, some) = both(&kernel(copy), &[256 * 499 + 1], 2000);
        let sample = some.sampled.unwrap();
        assert!(sample.of == 500 && (4..=34).contains(&sample.ran), "{sample:?}");
        assert_eq!((all.all.global, all.all.work), (some.all.global, some.all.work));
        assert_eq!((some.blocks, all.all.work.f32.operations), (500, 256 * 499 + 1));
        assert_eq!(sample.operations, (1, 256));
    }

    /// Of fifty blocks twenty take ten tiles and thirty take nine.
    #[test]
    fn blocks_that_take_more_tiles_count_for_themselves() {
        let sums = "K(x: f32[M, N]) -> (y: f32[M]) where N % 4 == 0 { y[i] = sum(|j| x[i, j]);
            launch persistent;
            schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; reduce t; } }";
        let (all, some) = both(&kernel(sums), &[9 * 50 + 20, 1024], 20_000);
        let sample = some.sampled.unwrap();
        assert!(sample.ran == 5 && sample.of == 50 && sample.operations.0 < sample.operations.1, "{sample:?}");
        assert_eq!((all.all.global, all.all.work), (some.all.global, some.all.work));
    }

    #[test]
    fn blocks_that_differ_are_told() {
        let triangle = "K(x: f32[N]) -> (y: f32[N]) { y[i] = sum(|j in 0..i + 1| x[j]);
            schedule y { bind i: grid; } }";
        let (all, some) = both(&kernel(triangle), &[300], 3000);
        let sample = some.sampled.unwrap();
        assert!(sample.ran < 300 && sample.operations.0 < 10 && sample.operations.1 > 250, "{sample:?}");
        let [exact, estimate] = [all, some].map(|counts| counts.all.work.f32.operations as f64);
        assert!((estimate / exact - 1.0).abs() < 0.1, "{estimate} {exact}");
    }

    #[test]
    fn what_depends_on_data_is_noticed() {
        let gather = "K(x: f32[N], k: u32[M]) -> (y: f32[M]) { y[i] = x[k[i]] or 0.0;
            schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; } }";
        let counts = counted(&kernel(gather), &[4, 64], u64::MAX).unwrap();
        assert!(counts.sampled.is_none() && counts.depends_on_data == Some(true) && !counts.is_exact(), "{counts:?}");
    }

    #[test]
    fn blocks_that_hand_results_on_run_all_or_not_at_all() {
        let sum = kernel(
            "K(x: f32[N]) -> (y: f32[]) { y[] = sum(|i| x[i]);
                schedule y { split i by 8192 -> b, r; split r by 256 -> q, t; bind b: grid; bind t: thread; reduce b by grid; reduce t; } }",
        );
        assert!(!sum.workspace.is_empty());
        assert!(counted(&sum, &[1 << 20], u64::MAX).unwrap().is_exact());
        let error = counted(&sum, &[1 << 20], 1000).unwrap_err().to_string();
        assert!(
            error.contains("blocks of kernel K hand results to each other") && error.contains("1000 warp"),
            "{error}"
        );
    }

    #[test]
    fn one_block_that_is_too_much_is_said() {
        let long = "K(x: f32[N]) -> (y: f32[M]) { y[i] = sum(|j| x[j]); schedule y { bind i: grid; } }";
        let error = counted(&kernel(long), &[100_000, 3], 10_000).unwrap_err().to_string();
        assert!(error.starts_with("one block of kernel K, or one cluster, has not ended after 10000"), "{error}");
    }

    #[test]
    fn one_is_drawn_from_each_part() {
        for (first, all, count) in [(0, 1, 1), (5, 10, 3), (0, 64, 64), (1, 1000, 7), (9, u64::from(u32::MAX), 64)] {
            let drawn = drawn(&(first..first + all), count);
            assert_eq!(drawn.len() as u64, count);
            for (part, at) in (0_u128..).zip(&drawn) {
                let [start, end] = [part, part + 1].map(|part| u128::from(all) * part / u128::from(count));
                let at = u128::from(*at - first);
                assert!((start..end).contains(&at), "{at} of part {part} of {count} of {all}");
            }
        }
    }
}
