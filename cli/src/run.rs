//! `tilewright run`: one kernel on the emulator with random inputs, against the reference.
//!
//! A sum of many floats may be any number of an interval, and a term that is missing stays inside. So there are two
//! launches. In the first, floats are small integers: while the magnitudes of the terms add up to less than 2²⁴ (of
//! `f32`) no order rounds, and what the reference admits is one value, bit by bit. In the second they are real numbers,
//! and what is said is how wide the intervals are. Between them stands one with 1 and −1, where the first leaves room
//! that it does not.

use serde_json::{Value, json};
use tilewright::kernel::info::{ParameterKind, Role};
use tilewright::{Agreement, Device, EmulatorOptions, EmulatorReport, Error, Reference, Specials, Width};
use tilewright_kernel::KernelInfo;

use crate::data::{self, Data};
use crate::inputs::Floats;
use crate::source::SourceFile;
use crate::trial::{Outcome, Trial, TrialError, Verdict};
use crate::{Output, Status, inspect, sizes, trial};

/// Version of the JSON format.
const FORMAT: u32 = 2;
/// Elements and terms of reductions that the reference evaluates in the time of one warp instruction on the emulator,
/// about.
const TERMS: u64 = 8;
/// Largest magnitudes of integers: the smaller ones where results of the others round.
const MAGNITUDES: [u64; 2] = [8, 1];

/// How a kernel is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Of the inputs, and of the order of execution.
    pub seed: u64,
    /// Whether approximate results are moved within their bounds.
    pub perturb: bool,
    /// Warp instructions of a launch; the reference evaluates eight times as many elements and terms.
    pub budget: u64,
}

/// Runs a kernel.
pub fn run(
    path: &str,
    name: Option<&str>,
    (dims, scalars, data): (&[String], &[String], &[String]),
    options: Options,
    as_json: bool,
) -> Output {
    let file = match SourceFile::read(path) {
        Ok(file) => file,
        Err(error) => return Output::usage(error),
    };
    let (line, kernel) = match inspect::only(&file, name) {
        Ok(found) => found,
        Err(output) => return output,
    };
    let values = match sizes::parse(dims).and_then(|given| sizes::complete(kernel, &given)) {
        Ok(values) => values,
        Err(error) => return Output::usage(error),
    };
    let given = match trial::scalars(scalars) {
        Ok(given) => given,
        Err(error) => return Output::usage(error),
    };
    let mut data = match data::parse(kernel, data) {
        Ok(data) => data,
        Err(error) => return Output::usage(error),
    };
    // It is told with the rest.
    data.extend(data::promised(kernel, &data));
    let head = Head { path, line, kernel, dims: &values, scalars: &given, data: &data, options };
    let runs = match head.runs() {
        Ok(runs) => runs,
        Err(error) => return Output::usage(error),
    };
    let text = if as_json { head.json(&runs) } else { head.text(&runs) };
    let status = if runs.iter().all(|run| run.outcome.is_good()) { Status::Good } else { Status::Bad };
    Output { text, errors: String::new(), status }
}

struct Head<'a> {
    path: &'a str,
    line: usize,
    kernel: &'a KernelInfo,
    dims: &'a [i64],
    /// Scalars that the user has chosen.
    scalars: &'a [(&'a str, &'a str)],
    /// Tensors for which the user has said which numbers they get.
    data: &'a [Data],
    options: Options,
}

/// One launch.
struct Run {
    /// Which floats were drawn; none if all are given, and if it has no floats.
    floats: Option<Floats>,
    scalars: Vec<(String, f64)>,
    outcome: Outcome,
}

impl Head<'_> {
    fn runs(&self) -> Result<Vec<Run>, TrialError> {
        let is_read = |kind: &ParameterKind| !matches!(kind, ParameterKind::Tensor(t) if t.role == Role::Output);
        let is_drawn = |name: &str| self.data.iter().all(|data| data.name != name);
        let has_floats =
            self.kernel.parameters.iter().any(|p| p.element.is_float() && is_read(&p.kind) && is_drawn(&p.name));
        if !has_floats {
            let (trial, device) = self.trial(Floats::Real)?;
            let scalars = named(&trial);
            return Ok(vec![Run { floats: None, scalars, outcome: trial.run(&device) }]);
        }
        let mut runs: Vec<Run> = Vec::new();
        let mut left = usize::MAX;
        for magnitude in MAGNITUDES {
            let floats = Floats::Integers(magnitude);
            let (mut trial, device) = self.trial(floats)?;
            let reference = self.finite(&mut trial);
            let inexact = |reference: &Reference| reference.outputs().map(|output| output.inexact()).sum();
            let count = reference.as_ref().map_or(0, inexact);
            // Smaller ones are taken as well where they leave less room, and not instead: for them a function may have
            // one value only, such as `log(1)`.
            if count < left {
                left = count;
                let scalars = named(&trial);
                runs.push(Run { floats: Some(floats), scalars, outcome: trial.against(reference.as_ref(), &device) });
            }
            if left == 0 {
                break;
            }
        }
        // What is refused for its sizes is so for any data.
        if runs.iter().any(|run| run.outcome.failure.is_some()) {
            return Ok(runs);
        }
        let (mut trial, device) = self.trial(Floats::Real)?;
        let reference = self.finite(&mut trial);
        let scalars = named(&trial);
        runs.push(Run { floats: Some(Floats::Real), scalars, outcome: trial.against(reference.as_ref(), &device) });
        Ok(runs)
    }

    /// The reference; with scalars that are not negative, if there are fewer NaN and infinities so: what is drawn may
    /// stand under a root, or be a divisor.
    fn finite(&self, trial: &mut Trial<'_>) -> Result<Reference, Error> {
        let special = |reference: &Reference| -> usize {
            reference.outputs().map(|output| output.specials()).map(|s| s.nan + s.infinite).sum()
        };
        let first = trial.reference()?;
        let before = trial.clone_scalars();
        let is_given = |name: &str| self.scalars.iter().any(|given| given.0 == name);
        if special(&first) == 0 || !trial.make_positive(&is_given) {
            return Ok(first);
        }
        let second = trial.reference()?;
        if special(&second) < special(&first) {
            return Ok(second);
        }
        trial.restore_scalars(&before);
        Ok(first)
    }

    fn trial(&self, floats: Floats) -> Result<(Trial<'_>, Device), TrialError> {
        let Options { seed, perturb, budget } = self.options;
        let device = Device::emulator(EmulatorOptions::default().seed(seed).perturb(perturb).budget(budget));
        let mut trial = Trial::with_data(self.kernel, self.dims, (seed, floats), self.data, &device)?;
        for (name, value) in self.scalars {
            trial.set_scalar(name, value)?;
        }
        Ok((trial.within(budget.saturating_mul(TERMS)), device))
    }

    /// What was drawn.
    fn inputs(&self, run: &Run) -> String {
        match run.floats {
            Some(floats) => floats.to_string(),
            None if self.data.is_empty() => "no floats".to_owned(),
            None => "no floats but those that are given".to_owned(),
        }
    }

    fn sizes(&self) -> String {
        let named = self.kernel.dims.iter().zip(self.dims).map(|(d, v)| format!("{} = {v}", d.name));
        named.collect::<Vec<_>>().join(", ")
    }

    /// Why nothing was compared, with the sizes if these are too much work.
    fn failure(&self, outcome: &Outcome) -> Option<String> {
        let error = outcome.failure.as_ref()?;
        let budget = self.options.budget;
        Some(match error {
            Error::Emulation(fault) if fault.kind == "Livelock" => {
                let sizes = self.sizes();
                let with = if sizes.is_empty() { String::new() } else { format!(" with {sizes}") };
                format!(
                    "the kernel has not ended{with} after {budget} warp instructions: `--budget` allows more, if it is \
                     to end at all\n{error}"
                )
            }
            // Only where it is the limit that was met.
            Error::Reference(error) if error.limited => format!("{error}: `--budget` allows more than {budget}"),
            _ => error.to_string(),
        })
    }

    fn text(&self, runs: &[Run]) -> String {
        let Self { path, line, kernel, options, .. } = self;
        let mut out = format!("kernel {} ({path}:{line}), seed {}\n", kernel.name, options.seed);
        let sizes = self.sizes();
        if !sizes.is_empty() {
            out.push_str(&format!("    {sizes}\n"));
        }
        if !self.data.is_empty() {
            let list: Vec<String> = self.data.iter().map(ToString::to_string).collect();
            out.push_str(&format!("    data: {}\n", list.join(", ")));
        }
        for run in runs {
            out.push_str(&format!("inputs: {}\n", self.inputs(run)));
            if !run.scalars.is_empty() {
                let list: Vec<String> =
                    run.scalars.iter().map(|(name, v)| format!("{name} = {}", number(*v))).collect();
                out.push_str(&format!("    {}\n", list.join(", ")));
            }
            self.describe(&run.outcome, &mut out);
        }
        // Of the last one: they do not depend on data, mostly.
        if let Some(report) = runs.last().and_then(|run| run.outcome.report.as_ref()) {
            out.push_str(&report.counters.to_string());
        }
        out
    }

    fn describe(&self, outcome: &Outcome, out: &mut String) {
        for verdict in &outcome.verdicts {
            match (&verdict.result, &verdict.measured) {
                (Err(error), _) => out.push_str(&format!("{}: wrong: {error}\n", verdict.output)),
                (Ok(agreement), _) => out.push_str(&format!("{}: right: {}\n", verdict.output, counted(agreement))),
            }
            details(verdict, out);
        }
        if let Some(failure) = self.failure(outcome) {
            out.push_str(&format!("failed: {failure}\n"));
        }
        let Some(EmulatorReport { faults, warnings, .. }) = &outcome.report else { return };
        match (faults.len(), warnings.len()) {
            (0, 0) => out.push_str("sanitizers: no findings\n"),
            (f, w) => out.push_str(&format!("sanitizers: {f} faults, {w} warnings\n")),
        }
        // The first fault is what the launch failed with.
        let told = usize::from(matches!(outcome.failure, Some(Error::Emulation(_))));
        for fault in faults.iter().skip(told).chain(warnings) {
            out.push_str(&format!("{fault}\n"));
        }
    }

    fn json(&self, runs: &[Run]) -> String {
        let Self { path, line, kernel, dims, options, .. } = self;
        let dims: serde_json::Map<String, Value> =
            kernel.dims.iter().zip(*dims).map(|(d, v)| (d.name.to_string(), json!(v))).collect();
        let interval = |width: Option<Width>, index: &[usize]| {
            width.map(
                |w| json!({ "index": index, "low": w.lo, "high": w.hi, "width": w.width(), "relative": w.relative() }),
            )
        };
        let output = |Verdict { output, result, measured, places }: &Verdict| {
            json!({
                "name": output, "right": result.is_ok(),
                "elements": measured.map(|m| m.elements), "exact": measured.map(|m| m.exact),
                "bound_used": measured.map(|m| m.worst),
                "widest": interval(measured.and_then(|m| m.widest), &places.widest),
                "widest_relative": interval(measured.and_then(|m| m.relative), &places.relative),
                "farthest": measured.and_then(|m| m.farthest).map(|(distance, _)| {
                    json!({ "index": places.farthest, "distance": distance })
                }),
                "nan": measured.map(|m| m.found.nan), "infinite": measured.map(|m| m.found.infinite),
                "nan_admitted": measured.map(|m| m.admitted.nan),
                "infinite_admitted": measured.map(|m| m.admitted.infinite),
                "error": result.as_ref().err().map(ToString::to_string),
            })
        };
        let fault = |fault: &tilewright::error::Fault| {
            json!({
                "kind": fault.kind, "message": fault.message, "statement": fault.statement, "element": fault.element,
                "block": fault.thread.map(|t| t.0), "thread": fault.thread.map(|t| t.1),
            })
        };
        let report = |outcome: &Outcome| {
            outcome.report.as_ref().map(|EmulatorReport { faults, warnings, counters: c, .. }| {
                let traffic = |t: &tilewright_emulator::Traffic| {
                    json!({
                        "load_requests": t.load_requests, "store_requests": t.store_requests,
                        "bytes_loaded": t.bytes_loaded, "bytes_stored": t.bytes_stored,
                        "transactions": t.transactions, "ideal_transactions": t.ideal_transactions,
                    })
                };
                json!({
                    "faults": faults.iter().map(fault).collect::<Vec<_>>(),
                    "warnings": warnings.iter().map(fault).collect::<Vec<_>>(),
                    "counters": {
                        "blocks": c.ctas, "warps": c.warps, "warp_instructions": c.warp_instructions,
                        "thread_instructions": c.total(), "uniform_branches": c.uniform_branches,
                        "divergent_branches": c.divergent_branches, "barriers": c.barriers, "atomics": c.atomics,
                        "global": traffic(&c.global), "shared": traffic(&c.shared), "local": traffic(&c.local),
                    },
                })
            })
        };
        let run = |run: &Run| {
            json!({
                "floats": run.floats.map(Floats::name),
                "magnitude": run.floats.and_then(Floats::magnitude),
                "scalars": run.scalars.iter().map(|(name, v)| (name.clone(), json!(v))).collect::<serde_json::Map<_, _>>(),
                "good": run.outcome.is_good(),
                "error": self.failure(&run.outcome),
                "outputs": run.outcome.verdicts.iter().map(output).collect::<Vec<_>>(),
                "emulator": report(&run.outcome),
            })
        };
        let document = json!({
            "format": FORMAT,
            "file": path,
            "line": line,
            "kernel": kernel.name,
            "seed": options.seed,
            "dims": dims,
            "data": self.data.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "good": runs.iter().all(|run| run.outcome.is_good()),
            "runs": runs.iter().map(run).collect::<Vec<_>>(),
        });
        format!("{document:#}\n")
    }
}

fn named(trial: &Trial<'_>) -> Vec<(String, f64)> {
    trial.scalars().into_iter().map(|(name, number)| (name.to_owned(), number)).collect()
}

/// How many elements were compared bit by bit, and how many with an interval.
fn counted(agreement: &Agreement) -> String {
    let Agreement { elements, exact, estimate, .. } = *agreement;
    let noun = if elements == 1 { "element" } else { "elements" };
    let by = if estimate { "estimated interval" } else { "interval" };
    match elements - exact {
        0 => format!("{elements} {noun}, all exact"),
        rest => format!("{elements} {noun}, {exact} exact and {rest} by {by}"),
    }
}

/// How sharp the comparison was, and what is no number.
fn details(Verdict { output, result, measured, places }: &Verdict, out: &mut String) {
    let Some(measured) = measured else { return };
    let at = |index: &[usize]| if index.is_empty() { output.clone() } else { format!("{output}{index:?}") };
    let mut interval = |what: &str, width: &Width, index: &[usize]| {
        let Width { lo, hi, .. } = *width;
        let size = match (width.width(), width.relative()) {
            (wide, relative) if wide.is_finite() && relative.is_finite() => {
                format!("{} wide, {} of the value", short(wide), percent(relative))
            }
            _ => "without bound".to_owned(),
        };
        out.push_str(&format!("    {what}: {} to {} at {}: {size}\n", number(lo), number(hi), at(index)));
    };
    if let Some(widest) = &measured.widest {
        interval("widest interval", widest, &places.widest);
    }
    if let Some(relative) = &measured.relative
        && places.relative != places.widest
    {
        interval("widest for its value", relative, &places.relative);
    }
    if let (Ok(_), Some((distance, _))) = (result, measured.farthest) {
        let (distance, index, worst) = (short(distance), at(&places.farthest), percent(measured.worst));
        out.push_str(&format!(
            "    farthest from the middle: {distance} at {index}; no element more than {worst} of the way to an end\n"
        ));
    }
    let (found, admitted) = (measured.found, measured.admitted);
    let mut special = |what: &str, count: fn(&Specials) -> usize| {
        let (found, admitted) = (count(&found), count(&admitted));
        if found > 0 || admitted > 0 {
            out.push_str(&format!("    {what}: {found} of the kernel's elements, {admitted} of the reference's\n"));
        }
    };
    special("NaN", |s| s.nan);
    special("infinite", |s| s.infinite);
}

fn percent(part: f64) -> String {
    match part * 100.0 {
        percent if percent >= 0.01 => format!("{percent:.2} %"),
        percent => format!("{} %", short(percent)),
    }
}

/// With four digits.
fn short(x: f64) -> String {
    number(format!("{x:.3e}").parse().unwrap_or(x))
}

/// With about seven digits.
fn number(x: f64) -> String {
    let short = x as f32;
    if short.is_finite() && (short != 0.0 || x == 0.0) { format!("{short:?}") } else { format!("{x:?}") }
}
