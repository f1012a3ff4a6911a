//! `tilewright run`: one kernel on the emulator with random inputs, against the reference.

use serde_json::{Value, json};
use tilewright::{Device, EmulatorOptions, EmulatorReport, Error};
use tilewright_kernel::KernelInfo;

use crate::source::SourceFile;
use crate::trial::{Outcome, Trial, Verdict};
use crate::{Output, Status, inspect, sizes};

/// Version of the JSON format.
const FORMAT: u32 = 1;

/// Runs a kernel, with a seed, and approximate results moved within their bounds or not.
pub fn run(path: &str, name: Option<&str>, dims: &[String], (seed, perturb): (u64, bool), as_json: bool) -> Output {
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
    let device = Device::emulator(EmulatorOptions::default().seed(seed).perturb(perturb));
    let outcome = match Trial::new(kernel, &values, seed, &device) {
        Ok(trial) => trial.run(&device),
        Err(error) => return Output::usage(error),
    };
    let head = Head { path, line, kernel, dims: &values, seed };
    let text = if as_json { head.json(&outcome) } else { head.text(&outcome) };
    let status = if outcome.is_good() { Status::Good } else { Status::Bad };
    Output { text, errors: String::new(), status }
}

struct Head<'a> {
    path: &'a str,
    line: usize,
    kernel: &'a KernelInfo,
    dims: &'a [i64],
    seed: u64,
}

impl Head<'_> {
    fn text(&self, outcome: &Outcome) -> String {
        let Self { path, line, kernel, dims, seed } = self;
        let named = kernel.dims.iter().zip(*dims).map(|(d, v)| format!("{} = {v}", d.name));
        let sizes: Vec<String> = named.collect();
        let mut out = format!("kernel {} ({path}:{line}), seed {seed}\n", kernel.name);
        if !sizes.is_empty() {
            out.push_str(&format!("    {}\n", sizes.join(", ")));
        }
        for Verdict { output, result } in &outcome.verdicts {
            match result {
                Ok(agreement) => out.push_str(&format!("{output}: right: {agreement}\n")),
                Err(error) => out.push_str(&format!("{output}: wrong: {error}\n")),
            }
        }
        if let Some(error) = &outcome.failure {
            out.push_str(&format!("failed: {error}\n"));
        }
        let Some(EmulatorReport { faults, warnings, counters, .. }) = &outcome.report else {
            return out;
        };
        match (faults.len(), warnings.len()) {
            (0, 0) => out.push_str("sanitizers: no findings\n"),
            (f, w) => out.push_str(&format!("sanitizers: {f} faults, {w} warnings\n")),
        }
        // The first fault is what the launch failed with.
        let told = usize::from(matches!(outcome.failure, Some(Error::Emulation(_))));
        for fault in faults.iter().skip(told).chain(warnings) {
            out.push_str(&format!("{fault}\n"));
        }
        out.push_str(&counters.to_string());
        out
    }

    fn json(&self, outcome: &Outcome) -> String {
        let Self { path, line, kernel, dims, seed } = self;
        let dims: serde_json::Map<String, Value> =
            kernel.dims.iter().zip(*dims).map(|(d, v)| (d.name.to_string(), json!(v))).collect();
        let output = |Verdict { output, result }: &Verdict| match result {
            Ok(agreement) => json!({
                "name": output, "right": true, "elements": agreement.elements, "exact": agreement.exact,
                "bound_used": agreement.worst, "error": Value::Null,
            }),
            Err(error) => json!({
                "name": output, "right": false, "elements": Value::Null, "exact": Value::Null,
                "bound_used": Value::Null, "error": error.to_string(),
            }),
        };
        let fault = |fault: &tilewright::error::Fault| {
            json!({
                "kind": fault.kind, "message": fault.message, "statement": fault.statement, "element": fault.element,
                "block": fault.thread.map(|t| t.0), "thread": fault.thread.map(|t| t.1),
            })
        };
        let report = outcome.report.as_ref().map(|EmulatorReport { faults, warnings, counters: c, .. }| {
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
        });
        let document = json!({
            "format": FORMAT,
            "file": path,
            "line": line,
            "kernel": kernel.name,
            "seed": seed,
            "dims": dims,
            "good": outcome.is_good(),
            "error": outcome.failure.as_ref().map(ToString::to_string),
            "outputs": outcome.verdicts.iter().map(output).collect::<Vec<_>>(),
            "emulator": report,
        });
        format!("{document:#}\n")
    }
}
