//! A finished kernel meets the separate checker ([`crate::proof`]) before it is handed out, at a few small sizes and
//! within a small budget: what it finds is a mistake of ours that no test has met. In a macro, which runs at every
//! keystroke, that is a small share of the time ([`Depth::Bounded`]). Larger sizes, and every kernel of the project,
//! are its business in tests.
//!
//! Where a ring runs in a loop, the sizes are such that the loop has each number of iterations up to one more than
//! twice the ring has slots, where some sizes give that number: so the ring is entered, not filled, filled, and comes
//! around twice, with every phase of its barriers at the end.
//!
//! What a trial at given sizes is, which entry points and numbers of blocks it looks at, is one function ([`prove`]):
//! for the macro, for `tilewright check`, for tests and campaigns.

use std::fmt;

use tilewright_kernel::Size;
use tilewright_kernel::info::{DimKind, KernelInfo, ParameterKind};
use tilewright_kernel::size::Constraint;

use crate::extent::{Budget, Expr, Facts, Search};
use crate::lower::Entry;
use crate::plan::Analysed;
use crate::proof::{Kind, Launch, NoLaunch, Verdict, Violation, check, check_paths, check_values};

/// Work for one entry point at one size.
const WORK: u64 = 100_000;
/// The same in a bounded trial for all entry points and numbers of blocks together; its share of the macro's work is in
/// `bench/results.md`.
const BOUNDED_WORK: u64 = 24_000;
/// Tiles of a launch that has as many numbers of blocks to try as there are.
const MANY_TILES: i64 = 1 << 20;
/// At so many of the sizes, the smallest ones, the run is on data as well: which costs more, and finds what is wrong at
/// any of them.
const WITH_VALUES: usize = 2;
/// Steps of the search for the smallest sizes.
const SEARCH_STEPS: u64 = 10_000;
/// Sizes to try beside the smallest ones: each dimension at least this, if it may be.
const LEAST: [i64; 2] = [3, 35];
/// What is added to that for a dimension, in turn: where two sizes are the same, one that is taken for the other is not
/// seen.
const APART: [i64; 3] = [0, 2, 1];
/// Steps of the search for one number of iterations.
const TRIP_STEPS: u64 = 2_000;
/// Sizes to try.
const MOST_SIZES: usize = 24;
/// Paths of one launch.
const PATHS: u64 = 48;
/// What every size and stride is below, where sizes are large: of any tensor that there is, and more.
const LARGEST_TRIED: i64 = 1 << 36;
/// The same for offsets of elements.
const MOST_OFFSET: i64 = 1 << 40;
/// Distances at which the next admissible size is looked for.
const STEPS: [i64; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512];
/// Choices of large sizes for one entry point.
const MOST_LARGE: usize = 5;

/// How much of the checks for mistakes of our own a compilation does. What a kernel becomes does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// As a macro does it, which runs at every keystroke in an editor: a trial of the smallest sizes, and of those with
    /// a 0, within a small budget. The rest was done for this version of the compiler by its tests and campaigns.
    Bounded,
    /// Everything: trials of all sizes that are worth one, and the verifier of PTX. Tests, campaigns, tools and
    /// `tilewright check`.
    Full,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Net {
    /// Every property but the values, on all ways that data may take: [`check`].
    Indices,
    /// Every property on drawn data, and what is stored: [`check_values`].
    Values,
    /// The indices of some threads in some iterations: [`check_paths`], which may be asked at [`large`] sizes.
    Paths,
}

/// How much is done for one entry point, one size and one number of blocks.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// What is looked at.
    pub nets: &'static [Net],
    /// Decides the data.
    pub seed: u64,
    /// Work of each net, see [`check`]; of [`Net::Paths`] their number.
    pub work: u64,
}

/// Verdicts that found nothing wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Everything holds.
    pub held: u64,
    /// It depends on data.
    pub undecided: u64,
    /// Nothing is wrong as far as the work went.
    pub exhausted: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.held += other.held;
        self.undecided += other.undecided;
        self.exhausted += other.exhausted;
    }
}

/// What is wrong with a finished kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Who says so.
    pub net: Net,
    /// The entry point.
    pub entry: String,
    /// The sizes, by the kernel's names.
    pub sizes: String,
    /// Blocks of the launch.
    pub blocks: i64,
    /// What.
    pub violation: Violation,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, sizes, blocks, violation, .. } = self;
        let (many, at) = (if *blocks == 1 { "" } else { "s" }, if sizes.is_empty() { "" } else { " at " });
        write!(f, "{violation}, in `{entry}` by {blocks} block{many}{at}{sizes}")
    }
}

/// What the separate checker says of every entry point that a launch with these sizes may take, by each number of
/// blocks that matters. Sizes without a launch, because a fact forbids them or no output has elements, have nothing to
/// say, nor have entry points whose maps an empty tensor does not have.
///
/// # Errors
/// The first thing that is wrong.
pub fn prove(info: &KernelInfo, entries: &[Entry], dims: &[i64], effort: Effort) -> Result<Tally, Box<Wrong>> {
    let holds = |c: &Constraint| c.holds(dims) == Ok(true);
    let mut tally = Tally::default();
    if info.computes_nothing(dims) || !info.facts.iter().chain(info.requirements.iter()).all(holds) {
        return Ok(tally);
    }
    for entry in entries.iter().filter(|e| e.conditions.iter().all(holds)) {
        let takes_maps = !entry.kernel.signature.maps.is_empty();
        let launch = if takes_maps { Launch::new(info, dims) } else { Launch::without_maps(info, dims) };
        let wrong = |net: Net, blocks: i64, violation: Violation| {
            let size = |(d, n): (usize, &i64)| format!("{} = {n}", info.dim_name(d as u16));
            let sizes = dims.iter().enumerate().map(size).collect::<Vec<_>>().join(", ");
            Err(Box::new(Wrong { net, entry: entry.kernel.signature.name.clone(), sizes, blocks, violation }))
        };
        let launch = match launch {
            Ok(launch) => launch,
            Err(NoLaunch::Own(what)) => {
                let violation = Violation { kind: Kind::NoLaunch, line: 0, block: None, what };
                return wrong(Net::Indices, 0, violation);
            }
            Err(_) => continue,
        };
        for blocks in blocks(info, launch.blocks).into_iter().filter(|blocks| i32::try_from(*blocks).is_ok()) {
            let launch = launch.clone().by(blocks);
            for net in effort.nets {
                let verdict = match net {
                    Net::Paths => check_paths(&entry.kernel, &launch, effort.seed, effort.work),
                    Net::Indices => check(&entry.kernel, &launch, effort.work),
                    Net::Values => check_values(&entry.kernel, &launch, &info.algorithm, effort.seed, effort.work),
                };
                match verdict {
                    Verdict::Holds => tally.held += 1,
                    Verdict::Undecided(_) => tally.undecided += 1,
                    Verdict::Exhausted => tally.exhausted += 1,
                    Verdict::Violated(violation) => return wrong(*net, blocks, violation),
                }
            }
        }
    }
    Ok(tally)
}

/// Sizes at which something is as large as these conditions of an entry point let it be, or as any tensor is: from
/// admissible ones, each size and stride in turn is made as large as it may be while the others are small, then the
/// others; and all of them alike.
pub fn large(info: &KernelInfo, conditions: &[Constraint], base: &[i64]) -> Vec<Vec<i64>> {
    let is_free = |d: &usize| !info.solved.iter().any(|s| usize::from(s.dim) == *d);
    let free: Vec<usize> = (0..base.len()).filter(is_free).collect();
    let mut found: Vec<Vec<i64>> = Vec::new();
    let alike = 1 << (31 / free.len().max(1));
    for (first, most) in (0..free.len().min(MOST_LARGE - 1)).map(|n| (n, LARGEST_TRIED)).chain([(0, alike)]) {
        let mut dims = base.to_vec();
        for most in [most, LARGEST_TRIED] {
            for n in 0..free.len() {
                raise(info, conditions, &mut dims, free[(first + n) % free.len()], most);
            }
        }
        if !found.contains(&dims) && dims != base {
            found.push(dims);
        }
    }
    found
}

/// Makes one size as large as it may be, up to a limit.
fn raise(info: &KernelInfo, conditions: &[Constraint], dims: &mut Vec<i64>, at: usize, most: i64) {
    let larger = |dims: &[i64], by: i64| {
        let mut dims = dims.to_vec();
        dims[at] = dims[at].checked_add(by).filter(|n| *n <= most)?;
        for solved in info.solved.iter() {
            dims[usize::from(solved.dim)] = i64::try_from(solved.value.eval(&dims).ok()?).ok()?;
        }
        is_launched(info, conditions, &dims).then_some(dims)
    };
    let Some(step) = STEPS.into_iter().find(|step| larger(dims, *step).is_some()) else { return };
    for bit in (0..36).rev() {
        if let Some(more) = larger(dims, step << bit) {
            *dims = more;
        }
    }
}

/// Whether there is a launch with these sizes, of an entry point with these conditions.
fn is_launched(info: &KernelInfo, conditions: &[Constraint], dims: &[i64]) -> bool {
    let mut all = info.facts.iter().chain(info.requirements.iter()).chain(conditions);
    if dims.iter().any(|n| *n < 0) || !all.all(|c| c.holds(dims) == Ok(true)) {
        return false;
    }
    let fits = |(first, last): (i64, i64)| -MOST_OFFSET < first && last < MOST_OFFSET;
    Launch::without_maps(info, dims).is_ok_and(|launch| {
        (1..=i64::from(i32::MAX)).contains(&launch.blocks)
            && launch
                .tensors
                .iter()
                .flatten()
                .all(|tensor| tensor.shape.contains(&0) || tensor.reach().is_some_and(fits))
    })
}

/// What [`Net::Paths`] says of every entry point at large sizes, from admissible ones.
///
/// # Errors
/// The first thing that is wrong.
pub fn prove_large(info: &KernelInfo, entries: &[Entry], base: &[i64], seed: u64) -> Result<Tally, Box<Wrong>> {
    let effort = Effort { nets: &[Net::Paths], seed, work: PATHS };
    let mut all: Vec<Vec<i64>> = entries.iter().flat_map(|entry| large(info, &entry.conditions, base)).collect();
    all.sort();
    all.dedup();
    all.iter().try_fold(Tally::default(), |mut tally, dims| {
        tally += prove(info, entries, dims, effort)?;
        Ok(tally)
    })
}

/// What a compilation looks at.
#[derive(Debug)]
pub(crate) struct Trial {
    sizes: Sizes,
    depth: Depth,
}

impl Trial {
    /// That of a kernel.
    pub(crate) fn new(info: &KernelInfo, facts: &Facts, stages: &[Analysed], depth: Depth) -> Self {
        Self { sizes: sizes(info, facts, stages, depth), depth }
    }

    /// What it looks at, each apart from the others.
    pub(crate) fn parts<'t>(&'t self, info: &KernelInfo, entries: &'t [Entry]) -> Vec<Part<'t>> {
        let Sizes { plain, zeros, further } = &self.sizes;
        let runs = entries.len() * blocks(info, MANY_TILES).len();
        let bounded = BOUNDED_WORK / runs.max(1) as u64;
        let (values, indices): (&'static [Net], &'static [Net]) = (&[Net::Values], &[Net::Indices]);
        let mut all: Vec<(&[i64], &'static [Net], u64, bool)> = Vec::new();
        for (n, dims) in plain.iter().enumerate() {
            match self.depth {
                Depth::Bounded if n == 0 => all.push((dims, values, bounded, false)),
                Depth::Bounded => break,
                Depth::Full => all.push((dims, if n < WITH_VALUES { values } else { indices }, WORK, false)),
            }
        }
        // They decide what a kernel is planned for, so that every trial looks at them.
        all.extend(zeros.iter().map(|dims| (&dims[..], values, WORK, true)));
        for dims in further {
            // What has no elements costs little.
            all.push((dims, if dims.contains(&0) { values } else { indices }, WORK, false));
        }
        let mut parts = Vec::with_capacity(all.len() * entries.len());
        for (dims, nets, work, is_of_zeros) in all {
            let effort = Effort { nets, seed: 0, work };
            parts.extend(entries.iter().map(|entry| Part { entry, dims, effort, is_of_zeros }));
        }
        parts
    }

    /// Whether everything was decided where a size is 0, given what each part found. On data everything has a value
    /// there, unless something is divided by that size.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(crate) fn outcome(found: impl IntoIterator<Item = Result<bool, Box<Wrong>>>) -> Result<bool, Box<Wrong>> {
        found.into_iter().try_fold(true, |all, one| Ok(one? && all))
    }

    /// All of it, one part after the other.
    ///
    /// # Errors
    /// The first thing that is wrong.
    #[cfg(test)]
    pub(crate) fn run(&self, info: &KernelInfo, entries: &[Entry]) -> Result<bool, Box<Wrong>> {
        Self::outcome(self.parts(info, entries).into_iter().map(|part| part.run(info)))
    }
}

/// An entry point at some sizes.
pub(crate) struct Part<'t> {
    entry: &'t Entry,
    dims: &'t [i64],
    effort: Effort,
    /// Whether it is one of those that decide what a kernel is planned for.
    is_of_zeros: bool,
}

impl Part<'_> {
    /// Whether everything was decided, if that decides something.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn run(&self, info: &KernelInfo) -> Result<bool, Box<Wrong>> {
        let tally = prove(info, std::slice::from_ref(self.entry), self.dims, self.effort)?;
        Ok(tally.undecided == 0 || !self.is_of_zeros)
    }
}

/// Numbers of blocks to try: of a persistent launch one cluster that takes all tiles, two that share them, and more
/// than there are tiles.
fn blocks(info: &KernelInfo, tiles: i64) -> Vec<i64> {
    let cluster = i64::from(info.launch.cluster);
    if !info.launch.persistent {
        return vec![tiles];
    }
    let mut found = vec![cluster, 2 * cluster, tiles + cluster];
    found.sort_unstable();
    found.dedup();
    found
}

/// The same sizes with strides long enough for the tensors; none if the facts do not have these.
fn apart(info: &KernelInfo, facts: &Facts, mut dims: Vec<i64>) -> Option<Vec<i64>> {
    for parameter in info.parameters.iter() {
        let ParameterKind::Tensor(tensor) = &parameter.kind else { continue };
        let Some(strides) = &tensor.strides else { continue };
        // Beyond all elements that are there by the strides which are known.
        let of_stride = |size: &Size| size.as_dim().filter(|d| info.dims[usize::from(*d)].kind == DimKind::Stride);
        let mut span: i128 = 1;
        let axes = || strides.iter().zip(tensor.shape.iter()).rev();
        let (open, known): (Vec<_>, Vec<_>) = axes().partition(|(stride, _)| of_stride(stride).is_some());
        for (stride, extent) in known.into_iter().chain(open) {
            if let Some(dim) = of_stride(stride) {
                let long = facts.from(dim.into(), span).and_then(|(value, _)| i64::try_from(value).ok());
                let stride = &mut dims[usize::from(dim)];
                *stride = long.unwrap_or(*stride).max(*stride);
            }
            let further = stride.eval(&dims).ok()?.checked_mul(extent.eval(&dims).ok()?.max(1) - 1)?;
            span = span.checked_add(further)?;
        }
    }
    info.facts.iter().all(|fact| fact.holds(&dims) == Ok(true)).then_some(dims)
}

/// Admissible sizes, with strides.
#[derive(Debug, Default)]
struct Sizes {
    /// The smallest ones, and some that are larger in every dimension that may be.
    plain: Vec<Vec<i64>>,
    /// Small ones of which one is 0, for each that may be.
    zeros: Vec<Vec<i64>>,
    /// In a trial of full depth: larger ones of which one is 0, those in which all that may be 0 are 1, and those of
    /// rings.
    further: Vec<Vec<i64>>,
}

/// The sizes of a trial.
fn sizes(info: &KernelInfo, facts: &Facts, stages: &[Analysed], depth: Depth) -> Sizes {
    let all: Vec<u32> = (0..facts.dims() as u32).collect();
    let mut budget = Budget::new(SEARCH_STEPS);
    let Search::Found(smallest) = facts.smallest(&all, &mut budget, |dims, _| Some(dims.to_vec())) else {
        return Sizes::default();
    };
    let mut plain: Vec<Vec<i64>> = apart(info, facts, smallest.clone()).into_iter().collect();
    for least in LEAST {
        let larger = |(v, known): (usize, &i64)| {
            let least = least + APART[v % APART.len()];
            let next = facts.from(v as u32, i128::from(least)).and_then(|(value, _)| i64::try_from(value).ok());
            next.unwrap_or(*known).max(*known)
        };
        let dims = apart(info, facts, smallest.iter().enumerate().map(larger).collect());
        plain.extend(dims.filter(|dims| !plain.contains(dims)));
    }
    let may_be: Vec<usize> = (0..info.dims.len())
        .filter(|d| info.dims[*d].kind == DimKind::Size && facts.lower_bound(&Expr::var(*d as u32)) == Some(0))
        .collect();
    let with = |dims: &[i64], chosen: &[usize], value: i64| chosen_to(info, facts, dims, chosen, value);
    let with_zero = |dims: &Vec<i64>| may_be.iter().filter_map(|d| with(dims, &[*d], 0)).collect::<Vec<_>>();
    let mut found = Sizes { zeros: plain.get(1).map(with_zero).unwrap_or_default(), plain, further: Vec::new() };
    if depth == Depth::Full {
        let ones = found.plain.first().filter(|_| !may_be.is_empty()).and_then(|dims| with(dims, &may_be, 1));
        let zeros = found.plain.iter().skip(2).flat_map(with_zero);
        let known = |dims: &Vec<i64>| found.plain.contains(dims) || found.zeros.contains(dims);
        found.further = ones.into_iter().chain(zeros).filter(|dims| !known(dims)).collect();
        of_rings(info, facts, stages, &mut found);
    }
    found
}

/// These sizes with a value for some of them, from which others that are determined follow.
fn chosen_to(info: &KernelInfo, facts: &Facts, dims: &[i64], chosen: &[usize], value: i64) -> Option<Vec<i64>> {
    let mut dims = dims.to_vec();
    chosen.iter().for_each(|d| dims[*d] = value);
    for solved in info.solved.iter() {
        dims[usize::from(solved.dim)] = i64::try_from(solved.value.eval(&dims).ok()?).ok()?;
    }
    apart(info, facts, dims)
}

/// Adds sizes at which each loop with a ring has each number of iterations, up to one more than twice the ring has
/// slots.
fn of_rings(info: &KernelInfo, facts: &Facts, stages: &[Analysed], all: &mut Sizes) {
    for (trips, slots) in rings(stages, facts) {
        for count in 0..=2 * i128::from(slots) + 1 {
            let mut budget = Budget::new(TRIP_STEPS);
            let found = facts.smallest(&trips.vars(), &mut budget, |dims, _| {
                let values: Vec<i128> = dims.iter().map(|d| i128::from(*d)).collect();
                (trips.eval(&values) == Some(count)).then(|| dims.to_vec())
            });
            let lists = [&all.plain, &all.zeros, &all.further];
            if let Search::Found(dims) = found
                && let Some(dims) = apart(info, facts, dims)
                && lists.iter().map(|list| list.len()).sum::<usize>() < MOST_SIZES
                && !lists.iter().any(|list| list.contains(&dims))
            {
                all.further.push(dims);
            }
        }
    }
}

/// The iterations of every loop in which a ring runs, where sizes alone decide them, and the slots of the ring.
fn rings(stages: &[Analysed], facts: &Facts) -> Vec<(Expr, u32)> {
    let mut found: Vec<(Expr, u32)> = Vec::new();
    for Analysed { stage, staged, .. } in stages {
        let copies = staged.iter().map(|copy| (&copy.attach, copy.ring));
        let own = stage.attach.iter().map(|attach| (attach, stage.ring));
        found.extend(copies.chain(own).filter(|(_, slots)| *slots > 1).filter_map(|(attach, slots)| {
            let host = &stages.get(attach.stage)?.stage;
            Some((facts.normal(&host.domain.axes[attach.innermost()?].extent), slots))
        }));
    }
    let of_sizes = |trips: &Expr| {
        let vars = trips.vars();
        !trips.is_unknown() && !vars.is_empty() && vars.iter().all(|v| (*v as usize) < facts.dims())
    };
    found.retain(|(trips, _)| of_sizes(trips));
    found
}

#[cfg(test)]
mod tests;
