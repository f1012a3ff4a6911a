//! Compositions: several equations, scheduled with all ops and stages in all places at once.
//!
//! What is drawn is judged by running it: an evaluator of its own over small integers, for which no order of operations
//! matters, against every entry point of the kernel on the emulator; and by the separate checker at the same sizes.
//! Refusals are only counted.
//!
//! | room | holds |
//! | --- | --- |
//! | [`ast`] | kernels, and their source text |
//! | [`draw`] | random equations |
//! | [`plan`] | random schedules for them |
//! | [`evaluate`] | what they compute |
//! | `data` | inputs and strides of a run |
//! | `placed` | tensors in memory, and what is around them |
//! | [`execute`] | all entry points on the emulator |
//! | [`features`] | what a kernel has |
//! | [`matrix`] | what has met; [`apart`]: what cannot |
//! | [`directed`] | kernels that are drawn for what has not met yet |
//! | [`tuned`] | constants with candidates |
//! | [`products`] | products by tensor cores, drawn by themselves |
//! | [`attention`] | products that follow an extreme, drawn by themselves |
//! | [`shrink`] | the smallest kernel that still fails |
//!
//! This file is longer than 500 lines: kernels of all kinds are drawn, judged and counted by one loop.

pub mod apart;
pub mod ast;
pub mod attention;
mod data;
pub mod directed;
pub mod draw;
pub mod evaluate;
pub mod execute;
pub mod features;
pub mod matrix;
mod placed;
pub mod plan;
pub mod products;
pub mod shrink;
pub mod tuned;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tilewright_compiler::diag::Code;
use tilewright_compiler::lower::Entry;
use tilewright_kernel::KernelInfo;

use crate::cases::{each, lock, timed};
use crate::compile::{Outcome, compile, message};
use crate::proved::{WORK, proved, proved_large, values_of};
use crate::rng::Rng;
use ast::{Dims, Kernel, SIZES, Tile};
use execute::{Failure, Ran};
use matrix::{Matrix, Pair};
pub use products::case::{product, product_for};

/// Longest time of the processor that one compilation may take.
const COMPILE_TIME: Duration = Duration::from_secs(20);
/// Of 100 compositions so many have constants with candidates.
const TUNED: u32 = 8;
/// Longest time of the processor that one case may take before the process gives up on it.
const CASE_TIME: Duration = Duration::from_secs(240);
/// After which the smallest failing kernel found so far is reported: far below [`CASE_TIME`], with which a failure
/// would be lost.
const SHRINK_TIME: Duration = Duration::from_secs(90);
/// Sizes for each accepted kernel.
const SHAPES: usize = 3;
/// The turn from whose sizes large ones are found.
const LARGE_FROM: usize = 0;
/// Examples kept of each class.
const EXAMPLES: u64 = 6;
/// Cases after which it is looked up what has not met yet; every second of the next ones is drawn for that.
const ROUND: u64 = 400;
/// Kernels that one shrinking may try.
const SHRINK_TRIES: u32 = 300;

/// What a campaign found.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Kernels drawn.
    pub cases: u64,
    /// Kernels that compiled.
    pub accepted: u64,
    /// Kernels of which at least one run was compared.
    pub run: u64,
    /// Runs that were compared: sizes.
    pub runs: u64,
    /// First codes of refusals, and other counts.
    pub counts: BTreeMap<String, u64>,
    /// Failed cases per class.
    pub failures: BTreeMap<String, u64>,
    /// The first failures of each class, shrunk.
    pub examples: Vec<String>,
    /// What has met.
    pub matrix: Matrix,
}

/// The result of one case.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Whether it compiled.
    pub accepted: bool,
    /// Runs that were compared.
    pub runs: u64,
    /// What is counted.
    pub counts: Vec<String>,
    /// What went wrong.
    pub failure: Option<Failure>,
    /// What of the entry points ran.
    pub entries: Vec<&'static str>,
}

/// Work of the checker for one launch of a product: a tile has thousands of elements.
const TILE_WORK: u64 = 6 * WORK;
/// Terms of a product that is run.
const TERMS: i64 = 1 << 19;

/// Sizes of a product: the smallest ones, some within a tile, and some beyond it.
fn sizes_of_product(kernel: &Kernel, of: Tile, turn: usize, rng: &mut Rng) -> Dims {
    let Tile { iterations: tile, literal } = of;
    let mut wanted: [i64; 3] = tile.map(|tile| {
        let within = rng.range(1, tile);
        match turn {
            0 => *rng.pick(&[1, 1, 8, 2, 0]),
            1 => *rng.pick(&[tile, tile - 1, 1 + tile / 2, within]),
            _ => *rng.pick(&[tile, 2 * tile, tile + 1, tile + within, 3 * tile - 1, 0]),
        }
    });
    // Not all of nothing, but for no terms.
    if wanted[0] * wanted[1] == 0 && rng.chance(80) {
        wanted = wanted.map(|n| n.max(1));
    }
    let up = |n: usize, size: i64| {
        let divides = kernel.divides[n];
        (size.max(kernel.least[n]) + divides - 1) / divides * divides
    };
    let mut sizes: [i64; 3] = std::array::from_fn(|n| up(n, wanted[n]));
    let all = |sizes: &[i64; 3]| (0..3).map(|n| literal[n].unwrap_or(sizes[n])).product::<i64>();
    while all(&sizes) > TERMS {
        let lengths = (0..3).filter(|n| literal[*n].is_none());
        let Some(longest) = lengths.max_by_key(|n| sizes[*n] / tile[*n].max(1)) else { break };
        let fewer = up(longest, sizes[longest] / 2);
        if fewer == sizes[longest] {
            break;
        }
        sizes[longest] = fewer;
    }
    SIZES.into_iter().zip(sizes).collect()
}

/// Some sizes that the facts allow: the smallest ones first, then awkward ones.
fn sizes(kernel: &Kernel, turn: usize, rng: &mut Rng) -> Dims {
    if let Some(tile) = kernel.tile {
        return sizes_of_product(kernel, tile, turn, rng);
    }
    let one = |n: usize, rng: &mut Rng| {
        let (divides, least) = (kernel.divides[n], kernel.least[n]);
        let most = kernel.most[n].unwrap_or(if n == 0 { 21 } else { 70 });
        let wanted = match turn {
            0 => *rng.pick(&[1, 1, 1, 2]),
            1 => rng.range(1, most.min(if n == 0 { 13 } else { 39 })),
            _ if rng.chance(40) => most,
            _ => rng.range(1, most),
        };
        // Without elements, where that is allowed: outputs are then empty, or reductions.
        if turn == 2 && least == 0 && rng.chance(8) {
            return 0;
        }
        let up = (wanted.max(least) + divides - 1) / divides * divides;
        if up > most { most / divides * divides } else { up }
    };
    let mut sizes: [i64; 3] = std::array::from_fn(|n| one(n, rng));
    if let Some(relation) = kernel.relation {
        relation.settle(&mut sizes, kernel.divides);
    }
    SIZES.into_iter().zip(sizes).collect()
}

/// Sizes and strides of a run.
pub fn dims(kernel: &Kernel, turn: usize, rng: &mut Rng) -> Dims {
    let sizes = sizes(kernel, turn, rng);
    data::pitches(kernel, &sizes, rng)
}

/// What a defect of the compiler is about: its message without names and numbers, so that one defect is one class.
fn gist(report: &str) -> String {
    let line = report.lines().find(|l| l.contains("TW9001")).unwrap_or_default();
    let told = line.split_once("failed in ").map_or(line, |(_, told)| told);
    // Every second piece between backticks is a name; the first one is the room.
    let pieces = told.split('`').enumerate().filter(|(n, _)| n % 2 == 0 || *n == 1);
    let text: String = pieces.map(|(_, piece)| piece).collect();
    let plain: String = text.chars().filter(|c| !c.is_ascii_digit()).take(90).collect();
    format!("internal: {plain}")
}

/// Compiles a kernel and runs it; `seed` decides sizes and data.
pub fn check(kernel: &Kernel, seed: u64) -> Report {
    let mut report = Report::default();
    let (outcome, used) = timed(|| compile(&kernel.to_string()));
    if used > COMPILE_TIME {
        report.failure = Some(("slow".to_owned(), format!("{used:?}")));
    }
    if !kernel.tuned.is_empty()
        && let Err(detail) = tuned::is_the_first(kernel, &outcome)
    {
        report.failure = Some(("tune".to_owned(), detail));
        return report;
    }
    match outcome {
        Outcome::NotTokens => report.failure = Some(("not-tokens".to_owned(), String::new())),
        Outcome::Panicked(message) => report.failure = Some(("panic".to_owned(), message)),
        Outcome::Refused(errors, text) => {
            if errors.iter().any(|e| e.found.code == Code::TW9001) {
                report.failure = Some((gist(&text), text));
            } else if let Some(first) = errors.first() {
                report.counts.push(first.found.code.to_string());
            }
        }
        Outcome::Accepted(info, entries) => {
            report.accepted = true;
            match catch_unwind(AssertUnwindSafe(|| run(kernel, &info, &entries, seed, &mut report))) {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => report.failure = Some(failure),
                Err(payload) => {
                    report.failure = Some(("panic while running".to_owned(), message(&*payload)));
                }
            }
        }
    }
    report
}

fn run(kernel: &Kernel, info: &KernelInfo, entries: &[Entry], seed: u64, report: &mut Report) -> Result<(), Failure> {
    let work = if kernel.tile.is_some() { TILE_WORK } else { WORK };
    let mut rng = Rng::new(seed);
    for turn in 0..SHAPES {
        let dims = dims(kernel, turn, &mut rng);
        let values = values_of(info, |name| dims.get(name));
        let proved = proved(info, entries, &values, work);
        report.counts.extend(proved.map_err(|(net, detail)| (net, format!("{detail}\nsizes: {dims:?}")))?);
        if turn == LARGE_FROM {
            report.counts.extend(proved_large(info, entries, &values)?);
        }
        match execute::run(kernel, info, &dims, &mut rng)? {
            Ran::Skipped(why) => report.counts.push(format!("skipped: {why}")),
            Ran::Compared(ran) => {
                report.runs += 1;
                let whole = info.entries.len();
                let first = info.entries.first().is_some_and(|e| ran.contains(&e.name.to_string()));
                let last = info.entries.last().is_some_and(|e| ran.contains(&e.name.to_string()));
                let found = [
                    (whole > 1 && first, "narrow-entry"),
                    (whole > 1 && last, "wide-entry"),
                    (whole == 1, "only-entry"),
                    (whole > 2 && ran.len() > 2, "three-entries"),
                ];
                report.entries.extend(found.iter().filter(|f| f.0).map(|f| f.1));
            }
        }
    }
    Ok(())
}

/// The kernel of a case, and what decides its sizes and data.
pub fn case(seed: u64, index: u64) -> (Kernel, u64) {
    case_for(seed, index, None)
}

/// The same, drawn for two features.
pub fn case_for(seed: u64, index: u64, wanted: Option<Pair>) -> (Kernel, u64) {
    let mut rng = Rng::of_case(seed, index);
    let mut kernel = match wanted {
        Some(pair) => directed::kernel(&mut rng, pair),
        None => draw::kernel(&mut rng),
    };
    // By numbers of its own: kernels without constants stay what they are.
    let mut own = Rng::of_case(seed ^ 0x7475_6e65, index);
    let is_wanted = wanted.is_some_and(|(a, b)| [a, b].contains(&"tune"));
    if own.chance(if is_wanted { 100 } else { TUNED }) {
        tuned::tune(&mut kernel, &mut own);
    }
    (kernel, rng.bits())
}

/// What a case is drawn as.
#[derive(Clone, Copy, Debug)]
pub enum Family {
    /// A composition, and the features that it is drawn for.
    Composition(Option<Pair>),
    /// A product by tensor cores, and the features that it is drawn for.
    Product(Option<Pair>),
}

impl Family {
    /// The kernel of a case, and what decides its sizes and data.
    pub fn case(self, seed: u64, index: u64) -> (Kernel, u64) {
        match self {
            Self::Composition(wanted) => case_for(seed, index, wanted),
            Self::Product(wanted) => {
                let (product, data) = product_for(seed, index, wanted);
                (product.kernel(), data)
            }
        }
    }

    /// What a kernel of a case has.
    fn features(self, seed: u64, index: u64, kernel: &Kernel) -> BTreeSet<&'static str> {
        match self {
            Self::Composition(_) => features::of(kernel),
            Self::Product(wanted) => products::features::of(&product_for(seed, index, wanted).0),
        }
    }

    /// How a case is asked for.
    fn option(self) -> String {
        match self {
            Self::Composition(Some((a, b))) => format!(", --want {a},{b}"),
            Self::Composition(None) => String::new(),
            Self::Product(Some((a, b))) => format!(", --products --want {a},{b}"),
            Self::Product(None) => ", --products".to_owned(),
        }
    }

    /// The smallest kernel that fails as that of a case does.
    fn shrink(self, seed: u64, index: u64, fails: &dyn Fn(&Kernel) -> bool) -> Kernel {
        let mut tries = SHRINK_TRIES;
        let kernel = match self {
            Self::Composition(wanted) => case_for(seed, index, wanted).0,
            Self::Product(wanted) => {
                let (product, _) = product_for(seed, index, wanted);
                products::shrink(&product, &mut tries, &|p| fails(&p.kernel())).kernel()
            }
        };
        shrink::shrink(&kernel, tries, fails)
    }
}

/// The kernel of a case with its messages, if it is refused by a code first.
pub fn refused(seed: u64, index: u64, family: Family, code: &str) -> Option<String> {
    refusal(&format!("seed {seed}, case {index}"), &family.case(seed, index).0.to_string(), code)
}

/// A text with its messages, if it is refused by a code first.
fn refusal(place: &str, text: &str, code: &str) -> Option<String> {
    let Outcome::Refused(errors, messages) = compile(text) else { return None };
    let found = errors.first().is_some_and(|e| e.found.code.to_string() == code);
    found.then(|| format!("=== {place}\n{text}{messages}"))
}

/// Runs cases `first..first + count` of a seed, all for two features, or in rounds: half of a round is drawn for what
/// has not met in those before. So a case follows from seed, first case and its number; its features are said with
/// failures.
pub fn campaign(seed: u64, first: u64, count: u64, wanted: Option<Pair>) -> Summary {
    let summary = Mutex::new(Summary::default());
    let mut at = first;
    while at < first + count {
        let missing = if at == first { Vec::new() } else { lock(&summary).matrix.missing() };
        let round = ROUND.min(first + count - at);
        let of = |index: u64| {
            let turn = (index / 2) as usize;
            let next = || (index % 2 == 1 && !missing.is_empty()).then(|| missing[turn % missing.len()]);
            Family::Composition(wanted.or_else(next))
        };
        cases(seed, at, round, &of, &summary);
        at += round;
    }
    summary.into_inner().unwrap_or_default()
}

/// Runs cases `first..first + count` of a seed, all of them products, and all for two features.
pub fn campaign_of_products(seed: u64, first: u64, count: u64, wanted: Option<Pair>) -> Summary {
    let summary = Mutex::new(Summary { matrix: Matrix::of_products(), ..Summary::default() });
    cases(seed, first, count, &|_| Family::Product(wanted), &summary);
    summary.into_inner().unwrap_or_default()
}

type Of<'a> = &'a (dyn Fn(u64) -> Family + Sync);

fn cases(seed: u64, first: u64, count: u64, of: Of<'_>, summary: &Mutex<Summary>) {
    let shown = |index| of(index).case(seed, index).0.to_string();
    each(seed, (first, count), CASE_TIME, &shown, &|index| one(seed, index, of(index), summary));
}

fn one(seed: u64, index: u64, family: Family, summary: &Mutex<Summary>) {
    let (kernel, data) = family.case(seed, index);
    judged(
        summary,
        &Drawn {
            place: format!("seed {seed}, case {index}{}", family.option()),
            features: &|| family.features(seed, index, &kernel),
            check: &|kernel| check(kernel, data),
            shrink: &|fails| family.shrink(seed, index, fails),
            case: kernel.clone(),
        },
    );
}

/// What makes a kernel small as long as it fails.
type Shrink<'a, K> = &'a dyn Fn(&dyn Fn(&K) -> bool) -> K;

/// A case: how it is judged, and made small.
struct Drawn<'a, K> {
    case: K,
    /// How it is asked for.
    place: String,
    features: &'a dyn Fn() -> BTreeSet<&'static str>,
    check: &'a dyn Fn(&K) -> Report,
    shrink: Shrink<'a, K>,
}

/// Judges a case, and counts what is found.
fn judged<K: std::fmt::Display + Clone>(summary: &Mutex<Summary>, drawn: &Drawn<'_, K>) {
    let report = (drawn.check)(&drawn.case);
    {
        let mut s = lock(summary);
        s.cases += 1;
        s.accepted += u64::from(report.accepted);
        s.runs += report.runs;
        for count in &report.counts {
            *s.counts.entry(count.clone()).or_default() += 1;
        }
        if report.runs > 0 && report.failure.is_none() {
            s.run += 1;
            let mut features = (drawn.features)();
            features.extend(report.entries.iter().copied());
            s.matrix.count(&features);
        }
    }
    let Some((class, detail)) = report.failure else { return };
    let times = {
        let mut s = lock(summary);
        let times = s.failures.entry(class.clone()).or_default();
        *times += 1;
        *times
    };
    if times > EXAMPLES {
        return;
    }
    // What the checker finds at small sizes, it finds inside the compiler.
    let net =
        |class: &str| class.strip_prefix("internal: ").and_then(|c| c.split(':').next()).unwrap_or(class).to_owned();
    let is_alike =
        |found: &str| found == class || ["proof", "values", "paths"].contains(&&*class) && net(found) == class;
    let again = |k: &K| (drawn.check)(k).failure.filter(|f| is_alike(&f.0));
    let (small, detail) = if class == "slow" {
        (drawn.case.clone(), detail)
    } else {
        let until = Instant::now() + SHRINK_TIME;
        let small = (drawn.shrink)(&|k| Instant::now() < until && again(k).is_some());
        let last = again(&small).map_or(detail, |f| f.1);
        (small, last)
    };
    let text = format!("=== {class} ({})\n{small}{detail}\n", drawn.place);
    eprintln!("{text}");
    lock(summary).examples.push(text);
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for example in &self.examples {
            writeln!(f, "{example}")?;
        }
        let Self { cases, accepted, run, runs, .. } = self;
        writeln!(f, "{cases} kernels: {accepted} accepted, {run} of them run without a failure, {runs} runs compared")?;
        for (what, n) in &self.counts {
            writeln!(f, "  {what}: {n}")?;
        }
        for (what, n) in &self.failures {
            writeln!(f, "  FAILED {what}: {n}")?;
        }
        Ok(())
    }
}
