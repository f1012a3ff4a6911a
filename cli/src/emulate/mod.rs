//! `tilewright emulate`: kernels of PTX files on the emulator, on data from files. Nothing of the language is needed:
//! the PTX may come from any compiler.
//!
//! A `script` is what to launch, a `session` its launches under one seed. The `judge` makes one list of the findings of
//! all of them, by `rules`; `report`, `sarif` and `junit` tell it.

pub mod argument;
pub mod expect;
mod judge;
mod junit;
pub mod map;
pub mod names;
pub mod npy;
mod report;
pub mod rules;
mod sarif;
pub mod script;
mod session;

use std::ops::Range;

use tilewright_emulator::{MatrixModel, Options};

use self::judge::{Judge, Judged};
use self::rules::{Rules, Verdict};
use self::script::Plan;
use self::session::Ran;
use crate::{Output, Status};

/// Most seeds of a command.
const MOST_SEEDS: u64 = 10_000;

/// What was asked for: the options of the command.
#[derive(Clone, Debug, clap::Args)]
pub struct Request {
    /// A PTX file.
    #[arg(required_unless_present = "script")]
    pub file: Option<String>,
    /// The kernel, or a part of its name as it is written in C++; may be left out if there is only one.
    #[arg(long)]
    pub entry: Option<String>,
    /// Blocks: X, X,Y or X,Y,Z.
    #[arg(long, value_parser = triple, default_value = "1", allow_hyphen_values = true)]
    pub grid: [u32; 3],
    /// Threads of a block: X, X,Y or X,Y,Z.
    #[arg(long, value_parser = triple, allow_hyphen_values = true, required_unless_present = "script")]
    pub block: Option<[u32; 3]>,
    /// An argument; once for every parameter.
    #[arg(long = "arg", allow_hyphen_values = true)]
    pub args: Vec<String>,
    /// Contents of a variable in global or constant memory: NAME=FILE.
    #[arg(long = "symbol")]
    pub symbols: Vec<String>,
    /// Bytes of dynamic shared memory.
    #[arg(long, default_value_t = 0, allow_hyphen_values = true)]
    pub shared: u32,
    /// Several launches on the same memory, as a TOML file says; described in docs/emulate.md.
    #[arg(long, conflicts_with_all = ["file", "entry", "grid", "block", "args", "symbols", "shared"])]
    pub script: Option<String>,
    /// Decides the order of execution.
    #[arg(long, default_value_t = 0, allow_hyphen_values = true, conflicts_with = "seeds")]
    pub seed: u64,
    /// Runs with each of these seeds, A..B without B, and merges what is found.
    #[arg(long, value_parser = range, allow_hyphen_values = true)]
    pub seeds: Option<Range<u64>>,
    /// Severities of kinds of findings and findings that are known: a TOML file; described in docs/emulate.md.
    #[arg(long)]
    pub suppressions: Option<String>,
    /// Move approximate results within the bounds that the manual gives, by the seed.
    #[arg(long)]
    pub perturb: bool,
    /// What tensor cores compute: fast, ampere or hopper.
    #[arg(long, default_value = "fast", value_parser = matrix_model)]
    pub matrix: MatrixModel,
    /// Warp instructions that the launch may execute.
    #[arg(long, allow_hyphen_values = true)]
    pub budget: Option<u64>,
    /// Host threads; all that there are if left out. The result does not depend on it.
    #[arg(long, value_parser = threads, allow_hyphen_values = true)]
    pub threads: Option<usize>,
    /// Write the findings as SARIF 2.1.0 to this file.
    #[arg(long)]
    pub sarif: Option<String>,
    /// Write a test case for each launch as JUnit's XML to this file.
    #[arg(long)]
    pub junit: Option<String>,
    /// Print JSON; the format is described in docs/emulate.md.
    #[arg(long)]
    pub json: bool,
}

impl Request {
    /// The seeds to run with.
    fn seeds(&self) -> Range<u64> {
        self.seeds.clone().unwrap_or(self.seed..self.seed.saturating_add(1))
    }

    /// The file that was asked for, for reports.
    fn name(&self) -> &str {
        self.script.as_deref().or(self.file.as_deref()).unwrap_or_default()
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=1024) => Ok(count),
        _ => Err(format!("`{text}` is no number from 1 to 1024")),
    }
}

fn matrix_model(text: &str) -> Result<MatrixModel, String> {
    match text {
        "fast" => Ok(MatrixModel::Fast),
        "ampere" => Ok(MatrixModel::Ampere),
        "hopper" => Ok(MatrixModel::Hopper),
        _ => Err("it is fast, ampere or hopper".to_owned()),
    }
}

/// `X`, `X,Y` or `X,Y,Z`.
///
/// # Errors
/// That it is none of these.
pub fn triple(text: &str) -> Result<[u32; 3], String> {
    let mut shape = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("at most three numbers are expected: X,Y,Z".to_owned());
    }
    for (extent, part) in shape.iter_mut().zip(parts) {
        *extent = part.trim().parse().map_err(|_| format!("`{part}` is no number from 0 to 4294967295"))?;
    }
    Ok(shape)
}

/// `A..B`: the seeds from A up to, but not including, B.
///
/// # Errors
/// That it is none, or has no seeds, or too many.
pub fn range(text: &str) -> Result<Range<u64>, String> {
    let parts = text.split_once("..").and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    match parts {
        Some((start, end)) if start < end && end - start <= MOST_SEEDS => Ok(start..end),
        Some((start, end)) if start < end => Err(format!("{} seeds are more than {MOST_SEEDS}", end - start)),
        Some(_) => Err(format!("`{text}` has no seeds")),
        None => Err(format!("`{text}` is no range of seeds, such as 0..8")),
    }
}

/// What the launches of a command were, for their report.
struct Done {
    /// One for each seed.
    runs: Vec<Ran>,
    /// What was found in all of them.
    judged: Vec<Judged>,
    /// Findings that are not kept.
    dropped: u64,
    /// Suppressions that have covered nothing.
    unused: Vec<String>,
    /// File and bytes of every output.
    written: Vec<(String, u64)>,
}

impl Done {
    /// Whether nothing that counts was found, and everything compared is as expected.
    fn is_good(&self) -> bool {
        let compared = self.runs.iter().all(|run| run.compared.iter().all(|compared| compared.wrong == 0));
        compared && self.dropped == 0 && !self.judged.iter().any(Judged::fails)
    }
}

/// Runs kernels and writes their outputs.
pub fn emulate(request: &Request) -> Output {
    match launch(request) {
        Err(error) => {
            let text = if request.json { report::refusal(request, &error) } else { String::new() };
            Output { text, ..Output::usage(error) }
        }
        Ok(done) => {
            let text = if request.json { report::json(request, &done) } else { report::text(&done) };
            let status = if done.is_good() { Status::Good } else { Status::Bad };
            Output { text, errors: String::new(), status }
        }
    }
}

fn launch(request: &Request) -> Result<Done, String> {
    let plan = Plan::of(request)?;
    let rules = request.suppressions.as_deref().map(Rules::read).transpose()?.unwrap_or_default();
    for path in [&request.sarif, &request.junit].into_iter().flatten() {
        session::can_be_written(path)?;
    }
    let programs = session::programs(&plan)?;
    let mut runs = Vec::new();
    let (mut judge, mut dropped, mut written) = (Judge::default(), 0, Vec::new());
    for seed in request.seeds() {
        let mut options = Options {
            seed,
            perturb: request.perturb.then_some(seed),
            matrix: request.matrix,
            threads: request.threads,
            ..Options::default()
        };
        if let Some(budget) = request.budget {
            options.budget = budget;
        }
        let mut run = session::run(&plan, &programs, &options)?;
        for (number, (_, report)) in run.launches.iter().enumerate() {
            judge.add(&report.findings, (seed, number), &rules);
            dropped += report.dropped;
        }
        let last = run.launches.len().saturating_sub(1);
        judge.add(&judge::leaks(&run.heap), (seed, last), &rules);
        // Those of the first seed are kept.
        for (path, data, bytes) in std::mem::take(&mut run.outputs) {
            if runs.is_empty() {
                write(&path, &data)?;
                written.push((path, bytes));
            }
        }
        runs.push(run);
    }
    let judged = judge.finish();
    let used = |at: usize| judged.iter().any(|one| matches!(one.verdict, Verdict::Suppressed(Some(by), _) if by == at));
    let all = rules.suppressions().iter().enumerate();
    let unused = all.filter(|(at, _)| !used(*at)).map(|(_, rule)| rule.to_string()).collect();
    let done = Done { runs, judged, dropped, unused, written };
    if let Some(path) = &request.sarif {
        write(path, sarif::document(request, &done).as_bytes())?;
    }
    if let Some(path) = &request.junit {
        write(path, junit::document(request, &done).as_bytes())?;
    }
    Ok(done)
}

fn write(path: &str, data: &[u8]) -> Result<(), String> {
    std::fs::write(path, data).map_err(|error| format!("{path} cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn ranges_of_seeds() {
        assert_eq!(super::range("2..5"), Ok(2..5));
        for bad in ["", "3", "3..3", "5..2", "a..b", "0..10001", "-1..2"] {
            assert!(super::range(bad).is_err(), "{bad}");
        }
    }
}
