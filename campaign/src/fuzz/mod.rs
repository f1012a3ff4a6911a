//! Broken inputs by the million: each is read as far as its reader goes, and no further. `mutate` compiles and runs
//! what it breaks; here nothing is lowered and nothing launched but copies by tensor maps, so that one input takes a
//! fraction of a millisecond.
//!
//! **Property.** Whatever the input, its reader answers: it takes it, or says what is wrong. It does not panic, hang or
//! take memory without bound, and what it took it can write and take again. **Formula.** Input n of a seed is one of
//! `INPUTS` that are made of one original; n alone decides it. **Approximation.** A time is limited for all inputs of
//! an original together.

pub mod files;
pub mod language;
pub mod maps;
pub mod ptx;
mod text;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use clap::ValueEnum;

use crate::cases::{each, lock};
use crate::compile::message;
use crate::rng::Rng;

/// Inputs that are made of one original.
const INPUTS: u64 = 64;
/// Longest time of the processor that the inputs of one original may take.
const TIME: Duration = Duration::from_secs(60);
/// Examples kept of each class of failures.
const EXAMPLES: u64 = 3;
/// Inputs that one shrinking may try.
const SHRINK_TRIES: u32 = 2000;

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Source text of kernels: tokens, syntax, names and types, messages and the edits that they propose.
    Language,
    /// PTX of drawn kernels, of the conformance files and of other compilers: parser, verifier, printer, loading.
    Ptx,
    /// What `tilewright` is given beside kernels: command lines, arguments, scripts, suppressions, NumPy's files.
    Files,
    /// Tensor maps: their rules, their bytes, and copies by them on the emulator.
    Maps,
}

/// What a reader made of an input, for the counts: a word or two.
pub type Answer = &'static str;

/// What must not be: a class, and the detail.
pub type Wrong = (&'static str, String);

/// An original with all that its inputs are judged by.
pub trait Original: Sync {
    /// An input, as text that repeats it.
    fn input(&self, rng: &mut Rng) -> String;

    /// What its reader makes of it.
    ///
    /// # Errors
    /// It does not keep what is promised.
    fn judge(&self, input: &str) -> Result<Answer, Wrong>;

    /// Where an input may be cut: the smallest one that still fails is told.
    fn pieces<'a>(&self, input: &'a str) -> Vec<&'a str> {
        text::pieces(input)
    }
}

/// What was tried.
#[derive(Debug, Default)]
pub struct Summary {
    /// Inputs.
    pub inputs: u64,
    /// Inputs by what became of them.
    pub counts: BTreeMap<String, u64>,
    /// Failures by class.
    pub failures: BTreeMap<String, u64>,
    /// The first failures of each class, made small.
    pub examples: Vec<String>,
}

impl Kind {
    /// The original of a number.
    fn original(self, seed: u64, number: u64) -> Box<dyn Original> {
        let mut rng = Rng::of_case(seed ^ 0x6675_7a7a, number);
        match self {
            Self::Language => Box::new(language::draw(&mut rng)),
            Self::Ptx => Box::new(ptx::draw(&mut rng)),
            Self::Files => Box::new(files::draw(&mut rng)),
            Self::Maps => Box::new(maps::draw(&mut rng)),
        }
    }
}

/// Tries inputs `first..first + count` of a seed.
pub fn run(kind: Kind, (seed, first, count): (u64, u64, u64)) -> Summary {
    let summary = Mutex::new(Summary::default());
    let of = |number: u64| (first.max(number * INPUTS), (first + count).min((number + 1) * INPUTS));
    let batch = |number: u64| {
        let original = kind.original(seed, number);
        let mut own = Summary::default();
        let mut fresh = Vec::new();
        let (from, to) = of(number);
        for index in from..to {
            let input = original.input(&mut Rng::of_case(seed, index));
            own.inputs += 1;
            match judged(&*original, &input) {
                Ok(answer) => *own.counts.entry(answer.to_owned()).or_default() += 1,
                Err((class, _)) => {
                    *own.failures.entry(class.to_owned()).or_default() += 1;
                    fresh.push((class, index, input));
                }
            }
        }
        let wanted = {
            let mut all = lock(&summary);
            fresh.retain(|(class, ..)| all.failures.get(*class).is_none_or(|n| *n < EXAMPLES));
            all.add(own);
            fresh
        };
        for (class, index, input) in wanted.into_iter().take(EXAMPLES as usize) {
            let (input, detail) = small(&*original, class, &input);
            let text = format!("=== {class} (seed {seed}, input {index})\n{input}\n--- {detail}\n");
            lock(&summary).examples.push(text);
        }
    };
    let shown = |number: u64| original_of(kind, seed, number);
    let (from, to) = (first / INPUTS, (first + count).div_ceil(INPUTS));
    each(seed, (from, to.saturating_sub(from)), TIME, &shown, &batch);
    summary.into_inner().unwrap_or_default()
}

/// An input of a seed, to look at.
pub fn input(kind: Kind, seed: u64, index: u64) -> String {
    kind.original(seed, index / INPUTS).input(&mut Rng::of_case(seed, index))
}

/// The inputs of an original, for whoever looks for the one that does not end.
fn original_of(kind: Kind, seed: u64, number: u64) -> String {
    let original = kind.original(seed, number);
    let shown = |n: u64| format!("--- input {n}\n{}\n", original.input(&mut Rng::of_case(seed, n)));
    (number * INPUTS..(number + 1) * INPUTS).map(shown).collect()
}

fn judged(original: &dyn Original, input: &str) -> Result<Answer, Wrong> {
    let judge = AssertUnwindSafe(|| original.judge(input));
    catch_unwind(judge).unwrap_or_else(|payload| Err(("panic", message(&*payload))))
}

/// The shortest input found that still fails in the same way, and how: pieces are left out, many at once at first.
fn small(original: &dyn Original, class: &str, input: &str) -> (String, String) {
    let fails = |text: &str| judged(original, text).err().filter(|wrong| wrong.0 == class).map(|wrong| wrong.1);
    let mut best = input.to_owned();
    let mut detail = fails(&best).unwrap_or_default();
    let mut tries = SHRINK_TRIES;
    let mut size = original.pieces(&best).len();
    while size > 0 && tries > 0 {
        let pieces: Vec<String> = original.pieces(&best).into_iter().map(str::to_owned).collect();
        let mut at = 0;
        let mut kept = pieces;
        while at < kept.len() && tries > 0 {
            tries -= 1;
            let end = (at + size).min(kept.len());
            let shorter = [&kept[..at], &kept[end..]].concat();
            match fails(&shorter.concat()) {
                Some(found) => (kept, detail) = (shorter, found),
                None => at = end,
            }
        }
        best = kept.concat();
        size /= 2;
    }
    (best, detail)
}

impl Summary {
    fn add(&mut self, other: Self) {
        self.inputs += other.inputs;
        for (all, own) in [(&mut self.counts, other.counts), (&mut self.failures, other.failures)] {
            own.into_iter().for_each(|(what, n)| *all.entry(what).or_default() += n);
        }
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for example in &self.examples {
            writeln!(f, "{example}")?;
        }
        writeln!(f, "{} inputs", self.inputs)?;
        for (what, n) in &self.counts {
            writeln!(f, "  {what}: {n}")?;
        }
        for (what, n) in &self.failures {
            writeln!(f, "  FAILED {what}: {n}")?;
        }
        Ok(())
    }
}
