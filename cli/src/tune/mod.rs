//! `tilewright tune`: every combination of candidates of a kernel's `tune`, ranked; the best one is written into the
//! source.
//!
//! **Guarantee**: each combination is compiled as the macro would compile it with literals in the place of the names,
//! and a record that is written has the digest that the macro computes. The order depends on the file, the sizes and
//! the GPU alone, and on whether there is an assembler (`docs/tune.md`); with `--device` on measured times.
//!
//! | room | holds |
//! | --- | --- |
//! | `measure` | times of launches on a device |
//! | `report` | what is printed, as text and as JSON |

mod measure;
mod report;

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tilewright_compiler::source::ast::Item;
use tilewright_compiler::tune::{Ranking, Tuned};
use tilewright_compiler::{Compiled, compile_with, diag::Edit};
use tilewright_kernel::KernelInfo;

use crate::cost::{self, estimate::Estimate, gpu::Gpu};
use crate::source::{Invocation, SourceFile};
use crate::{Output, Status, findings, fix, listed, sizes, trial};
use measure::Measured;

/// The GPU that kernels are ranked for unless another is named.
const GPU: &str = "h200";
/// Columns of a line of source that a record is appended to.
const COLUMNS: usize = 100;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The kernel; none: the only one of the file with `tune`.
    pub kernel: Option<&'a str>,
    /// Sizes and strides, such as `N=1000`; empty: those of the record.
    pub dims: &'a [String],
    /// Scalars, such as `eps=1e-5`.
    pub scalars: &'a [String],
    /// The name of a GPU; none: that of the record, or `h200`.
    pub gpu: Option<&'a str>,
    /// Work of counting one combination, in warp instructions.
    pub budget: u64,
    /// Whether launches are timed on the first CUDA device.
    pub device: bool,
    /// Launches that are timed of each combination.
    pub launches: u32,
    /// Whether the record is written to the file.
    pub write: bool,
}

/// How well a combination does.
#[derive(Clone, Debug, PartialEq)]
enum Score {
    Estimated(Estimate),
    Measured(Measured),
}

impl Score {
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        match (self, other) {
            (Self::Estimated(a), Self::Estimated(b)) => a.compare(b),
            (Self::Measured(a), Self::Measured(b)) => a.median.cmp(&b.median),
            // One command has scores of one kind.
            (Self::Estimated(_), Self::Measured(_)) => std::cmp::Ordering::Greater,
            (Self::Measured(_), Self::Estimated(_)) => std::cmp::Ordering::Less,
        }
    }
}

/// Why a combination has no score.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Refused {
    values: Vec<u64>,
    /// The code of the compiler's reason; none where the kernel is right, and cannot be launched so.
    code: Option<String>,
    reason: String,
}

/// A kernel with `tune`, in its file.
struct Subject<'a> {
    path: &'a str,
    invocation: &'a Invocation,
    kernel: &'a Compiled,
    tuned: &'a Tuned,
}

/// What became of the combinations.
struct Ranked<'a> {
    subject: &'a Subject<'a>,
    ranking: Ranking,
    /// The title of the GPU, or the name of the device.
    machine: String,
    /// The best first.
    scored: Vec<(Vec<u64>, Score, KernelInfo)>,
    refused: Vec<Refused>,
    /// What the file says with the record.
    diff: String,
    written: bool,
}

/// Ranks the combinations of one kernel.
pub fn tune(path: &str, request: &Request<'_>, as_json: bool) -> Output {
    match ranked(path, request, as_json) {
        Ok(output) | Err(output) => output,
    }
}

fn ranked(path: &str, request: &Request<'_>, as_json: bool) -> Result<Output, Output> {
    let file = SourceFile::read(path).map_err(Output::usage)?;
    let text = std::fs::read_to_string(path).map_err(|error| Output::usage(format!("{path}: {error}")))?;
    let subject = Subject::of(&file, request.kernel)?;
    let judge = Judge::of(&subject, request).map_err(Output::usage)?;
    let (mut scored, mut refused) = (Vec::new(), Vec::new());
    let combinations = subject.tuned.combinations();
    let bar = ProgressBar::new(combinations.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos} of {len}  {msg}  {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    for values in combinations {
        bar.set_message(subject.tuned.named(&values));
        match subject.compiled(&values) {
            Err(reason) => refused.push(reason),
            Ok(info) => match judge.score(&info) {
                Err(Failure::Usage(error)) => return Err(Output::usage(error)),
                Err(Failure::Combination(reason)) => refused.push(Refused { values, code: None, reason }),
                Ok(score) => scored.push((values, score, info)),
            },
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    // Stable: of equals the one that is written first.
    scored.sort_by(|a, b| a.1.compare(&b.1));
    let (ranking, machine) = judge.ranking(scored.first().map(|best| &best.2));
    let mut ranked =
        Ranked { subject: &subject, ranking, machine, scored, refused, diff: String::new(), written: false };
    // What is wrong with the kernel itself is said as the compiler says it.
    let mut errors = if ranked.scored.is_empty() { file.findings().text } else { String::new() };
    if let Some(edited) = ranked.edited(&text) {
        ranked.diff = fix::diff(path, &text, &edited);
        if request.write && !ranked.diff.is_empty() {
            match std::fs::write(path, &edited) {
                Ok(()) => ranked.written = true,
                Err(error) => errors = format!("error: {path}: {error}\n"),
            }
        }
    }
    let status = match (ranked.scored.is_empty(), errors.is_empty()) {
        (true, _) => Status::Bad,
        (false, false) => Status::Usage,
        (false, true) => Status::Good,
    };
    let text = if as_json { report::document(&ranked) } else { report::page(&ranked) };
    Ok(Output { text, errors, status })
}

impl<'a> Subject<'a> {
    /// The kernel with this name, or the only one with `tune`.
    fn of(file: &'a SourceFile, name: Option<&str>) -> Result<Self, Output> {
        let all = file.invocations.iter().flat_map(|of| of.outcome.kernels.iter().map(move |kernel| (of, kernel)));
        let is_meant = |kernel: &Compiled| match name {
            Some(name) => kernel.ast.name.text == name,
            None => kernel.ast.items.iter().any(|item| matches!(item, Item::Tune(_))),
        };
        let found: Vec<(&Invocation, &Compiled)> = all.filter(|(_, kernel)| is_meant(kernel)).collect();
        let path = &file.path;
        let names: Vec<&str> = found.iter().map(|(_, kernel)| kernel.ast.name.text.as_str()).collect();
        match (&found[..], name) {
            ([(invocation, kernel)], _) => {
                if let Some(tuned) = &kernel.tuned {
                    return Ok(Self { path, invocation, kernel, tuned });
                }
                let has_none = !kernel.ast.items.iter().any(|item| matches!(item, Item::Tune(_)));
                let said = file.findings();
                if has_none || said.errors == 0 {
                    let name = &kernel.ast.name.text;
                    let how = "write `tune BM in [64, 128];`, and `BM` where its schedule has a number";
                    return Err(Output::usage(format!("kernel {name} has no `tune`: {how}")));
                }
                Err(Output { text: String::new(), errors: said.text, status: Status::Bad })
            }
            ([], Some(name)) => {
                let known: Vec<&str> = file.kernels().map(|f| f.kernel.ast.name.text.as_str()).collect();
                let known = listed(&known, "none");
                Err(Output::usage(format!("{path} has no kernel `{}`; it has {known}", name.escape_debug())))
            }
            ([], None) => match file.findings() {
                said if said.errors > 0 => Err(Output { text: String::new(), errors: said.text, status: Status::Bad }),
                _ => Err(Output::usage(format!("{path} has no kernel with `tune`"))),
            },
            (several, Some(name)) => {
                Err(Output::usage(format!("{path} has {} kernels `{}`", several.len(), name.escape_debug())))
            }
            (several, None) => Err(Output::usage(format!(
                "{path} has {} kernels with `tune`: add --kernel with one of {}",
                several.len(),
                listed(&names, "none")
            ))),
        }
    }

    /// The kernel with these values, or why there is none.
    fn compiled(&self, values: &[u64]) -> Result<KernelInfo, Refused> {
        let (compiled, found) = compile_with(&self.kernel.ast, self.tuned, values, self.invocation.tokens());
        compiled.info.ok_or_else(|| {
            let first = found.finish().errors.into_iter().next();
            Refused {
                values: values.to_vec(),
                code: first.as_ref().map(|error| error.code.to_string()),
                reason: first.map_or_else(|| "no kernel, and no reason".to_owned(), |error| error.title),
            }
        })
    }
}

/// Why there is no score.
enum Failure {
    /// The command was used wrongly: no combination will have one.
    Usage(String),
    /// This combination cannot be launched so.
    Combination(String),
}

/// What gives scores.
struct Judge<'a> {
    request: &'a Request<'a>,
    gpu: &'static Gpu,
    device: Option<tilewright::Device>,
    given: sizes::Given,
    scalars: Vec<(&'a str, &'a str)>,
}

impl<'a> Judge<'a> {
    fn of(subject: &Subject<'_>, request: &'a Request<'a>) -> Result<Self, String> {
        let before = subject.tuned.record.as_ref().map(|record| &record.ranking);
        let old: Vec<String> = before.iter().flat_map(|r| r.sizes.split(',')).map(str::to_owned).collect();
        let dims = if request.dims.is_empty() { &old } else { request.dims };
        let given = sizes::parse(dims).map_err(|error| error.to_string())?;
        let scalars = trial::scalars(request.scalars)?;
        let estimated = before.filter(|ranking| !ranking.measured).map(|ranking| ranking.machine.as_str());
        let gpu = match (request.gpu, estimated) {
            (Some(name), _) => Gpu::named(name)?,
            // What is no GPU of the table any more is no reason to rank for none.
            (None, Some(name)) => Gpu::named(name).or_else(|_| Gpu::named(GPU))?,
            (None, None) => Gpu::named(GPU)?,
        };
        let device = if request.device { Some(measure::device()?) } else { None };
        Ok(Self { request, gpu, device, given, scalars })
    }

    fn score(&self, kernel: &KernelInfo) -> Result<Score, Failure> {
        let dims = sizes::complete(kernel, &self.given).map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(device) = &self.device {
            let measured = measure::measured(kernel, &dims, &self.scalars, device, self.request.launches);
            return measured.map(Score::Measured).map_err(Failure::Combination);
        }
        let request = cost::Request {
            kernel: None,
            dims: &[],
            scalars: self.request.scalars,
            gpu: self.gpu.name,
            budget: self.request.budget,
        };
        Estimate::of(kernel, &dims, &request).map(Score::Estimated).map_err(Failure::Combination)
    }

    /// What the record says of the ranking, and the machine in words.
    fn ranking(&self, kernel: Option<&KernelInfo>) -> (Ranking, String) {
        // In the order of the kernel, if there is one.
        let names: Vec<&str> = match kernel {
            Some(kernel) => kernel.dims.iter().map(|dim| &*dim.name).collect(),
            None => self.given.keys().map(String::as_str).collect(),
        };
        let given = names.into_iter().filter_map(|name| Some(format!("{name}={}", self.given.get(name)?)));
        let sizes = given.collect::<Vec<_>>().join(",");
        match &self.device {
            Some(device) => {
                let name = measure::name(device);
                (Ranking { machine: name.clone(), measured: true, sizes }, name)
            }
            None => {
                let machine = self.gpu.name.to_owned();
                (Ranking { machine, measured: false, sizes }, self.gpu.title.to_owned())
            }
        }
    }
}

impl Ranked<'_> {
    /// The record of the best combination.
    fn record(&self) -> Option<String> {
        let (values, _, info) = self.scored.first()?;
        Some(self.subject.tuned.written(values, &self.ranking, info))
    }

    /// The text of the file with the record of the best combination; none without one.
    fn edited(&self, text: &str) -> Option<String> {
        let record = self.record()?;
        let Subject { invocation, tuned, .. } = self.subject;
        let edit = match &tuned.record {
            Some(old) => Edit {
                first: old.span.first.0,
                count: old.span.last.0.checked_sub(old.span.first.0)?.checked_add(1)?,
                text: record,
            },
            None => {
                let last = tuned.constants.last()?.span.last.0;
                Edit { first: last.checked_add(1)?, count: 0, text: record }
            }
        };
        let (range, mut new) = findings::edited(invocation, &edit)?;
        // A record that makes a long line stands on its own, one step in from its statement.
        let statement = invocation.spans.get(tuned.span.first.0 as usize)?.start().column;
        let (line, column) = range.0;
        let is_alone = text.lines().nth(line - 1)?.chars().take(column - 1).all(char::is_whitespace);
        if !is_alone && column + new.trim_end().chars().count() > COLUMNS {
            new = format!("\n{}{}", " ".repeat(statement + 4), new.trim_start());
        }
        Some(fix::replaced(text, range, &new))
    }
}
