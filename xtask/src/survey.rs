//! What `device-check` does: every kernel on the emulator and, if there is one, on the GPU, with the same inputs; then
//! times.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use tilewright::kernel::KernelInfo;
use tilewright::{Device, EmulatorOptions, Error};
use tilewright_cli::sizes::{self, Given};
use tilewright_cli::trial::{Outcome, Trial};

use crate::kernels::{self, Kernel};
use crate::timing::{Rotation, Timing};
use crate::{Failure, ops};

/// Sizes of the comparisons: small, odd ones among them.
const SMALL: [i64; 12] = [1, 2, 3, 7, 16, 31, 32, 33, 64, 96, 100, 256];
/// Those of kernels whose facts ask for many whole tiles.
const WHOLE: [i64; 3] = [16_384, 32_768, 98_304];
/// Assignments of sizes that each kernel is compared at.
const ASSIGNMENTS: u64 = 5;
/// Bytes of the tensors of a timed launch: far beyond any cache.
const TIMED_BYTES: std::ops::RangeInclusive<u64> = 200_000_000..=2_000_000_000;
/// Threads of a timed launch, if there are sizes for as many: enough to fill a GPU.
const TIMED_THREADS: i128 = 200_000;

/// What to survey.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Rust files, or folders of them.
    pub paths: Vec<PathBuf>,
    /// Also the generated kernels of every operation and type.
    pub ops: bool,
    /// Also how long kernels take, if there is a GPU.
    pub times: bool,
    /// Seed of the inputs.
    pub seed: u64,
}

/// The result as text and as JSON.
#[derive(Clone, Debug)]
pub struct Survey {
    /// For a reader.
    pub text: String,
    /// For tools.
    pub json: Value,
    /// Comparisons that went wrong.
    pub failures: usize,
}

/// One comparison.
struct Comparison {
    kernel: String,
    dims: String,
    /// Device and what went wrong there; empty if nothing.
    wrong: Vec<String>,
    elements: usize,
    exact: usize,
    /// Output bytes that are the same on both devices, and all of them.
    same: Option<(usize, usize)>,
}

/// Runs everything.
///
/// # Errors
/// Kernels that do not compile, or a GPU that cannot be used; not a wrong result, which is counted.
pub fn survey(options: &Options) -> Result<Survey, Failure> {
    let mut all = Vec::new();
    for file in kernels::of_paths(&options.paths)? {
        all.extend(kernels::of_file(&file)?);
    }
    if options.ops {
        all.extend(ops::kernels()?);
    }
    let gpu = match Device::cuda(0) {
        Ok(device) => Ok(device),
        Err(error @ (Error::NoCuda { .. } | Error::NoDevice { .. })) => Err(error.to_string()),
        Err(error) => return Err(error.to_string()),
    };
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = match &gpu {
        Ok(device) => writeln!(text, "GPU: {}", device.name()),
        Err(why) => writeln!(text, "NO GPU: {why}\nthe kernels run on the emulator only, and nothing is timed"),
    };
    let (mut comparisons, mut skipped) = (Vec::new(), Vec::new());
    for kernel in &all {
        match compare(kernel, gpu.as_ref().ok(), options.seed) {
            Ok(found) => comparisons.extend(found),
            Err(why) => skipped.push((kernel.info.name.to_string(), why)),
        }
    }
    let failures = comparisons.iter().filter(|c| !c.wrong.is_empty()).count();
    let _ = writeln!(text, "\n{} kernels, {} comparisons, {failures} wrong", all.len(), comparisons.len());
    for Comparison { kernel, dims, wrong, elements, exact, same } in &comparisons {
        let verdict = if wrong.is_empty() { "right" } else { "WRONG" };
        let _ = write!(text, "{verdict} {kernel:<24} {dims:<28} {elements:>8} elements, {exact:>8} exact");
        let _ = match same {
            Some((same, of)) => writeln!(text, ", {same} of {of} bytes as on the emulator"),
            None => writeln!(text),
        };
        for line in wrong {
            let _ = writeln!(text, "      {line}");
        }
    }
    for (kernel, why) in &skipped {
        let _ = writeln!(text, "not tried: {kernel}: {why}");
    }
    let (mut timings, mut untimed) = (Vec::new(), Vec::new());
    if let Some(device) = gpu.as_ref().ok().filter(|_| options.times) {
        for kernel in &all {
            match time(kernel, device, options.seed) {
                Ok(timing) => timings.extend(timing),
                // The comparisons above are worth their telling whatever happens here.
                Err(why) => untimed.push((kernel.info.name.to_string(), why)),
            }
        }
    }
    for (kernel, why) in &untimed {
        let _ = writeln!(text, "not timed: {kernel}: {why}");
    }
    let copy = timings.iter().find(|t| t.kernel == "Copy_f32").map(Timing::gigabytes);
    if !timings.is_empty() {
        let _ = writeln!(text, "\nmedians of samples of several launches; Copy_f32 is the yardstick");
        let columns = ("kernel", "sizes", "time", "GB/s", "of copy", "samples");
        let _ = writeln!(
            text,
            "{:<24} {:<28} {:>12} {:>10} {:>8} {:>8}",
            columns.0, columns.1, columns.2, columns.3, columns.4, columns.5
        );
    }
    for timing in &timings {
        let ratio = copy.map_or_else(|| "?".to_owned(), |c| format!("{:.2}", timing.gigabytes() / c));
        let (micros, rate) = (timing.seconds * 1e6, timing.gigabytes());
        let samples = format!("{} x {}", timing.samples.0, timing.samples.1);
        let Timing { kernel, dims, .. } = timing;
        let _ = writeln!(text, "{kernel:<24} {dims:<28} {micros:>10.1}us {rate:>10.1} {ratio:>8} {samples:>8}");
        for loss in &timing.losses {
            let _ = writeln!(text, "      {loss}");
        }
    }
    let json = json!({
        "format": 1,
        "gpu": gpu.as_ref().ok().map(Device::name),
        "seed": options.seed,
        "kernels": all.len(),
        "wrong": failures,
        "comparisons": comparisons.iter().map(Comparison::json).collect::<Vec<_>>(),
        "not_tried": skipped.iter().map(|(k, w)| json!({ "kernel": k, "why": w })).collect::<Vec<_>>(),
        "timings": timings.iter().map(|t| t.json(copy)).collect::<Vec<_>>(),
        "not_timed": untimed.iter().map(|(k, w)| json!({ "kernel": k, "why": w })).collect::<Vec<_>>(),
    });
    Ok(Survey { text, json, failures })
}

impl Comparison {
    fn json(&self) -> Value {
        json!({
            "kernel": self.kernel, "dims": self.dims, "right": self.wrong.is_empty(), "errors": self.wrong,
            "elements": self.elements, "exact": self.exact,
            "bytes_as_emulated": self.same.map(|s| s.0), "bytes": self.same.map(|s| s.1),
        })
    }
}

/// `N = 8, M = 3`
fn shown(given: &Given) -> String {
    given.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
}

/// Compares a kernel at a few sizes; an error says why it cannot be.
fn compare(kernel: &Kernel, gpu: Option<&Device>, seed: u64) -> Result<Vec<Comparison>, String> {
    let info = &kernel.info;
    let mut tried: Vec<Given> = Vec::new();
    let mut comparisons = Vec::new();
    for round in 0..ASSIGNMENTS {
        let Some(given) = small(info, seed.wrapping_add(round)) else {
            return Err("no small sizes satisfy its facts".to_owned());
        };
        if tried.contains(&given) {
            continue;
        }
        // An emulator of its own: a report is that of its last launch, whichever that was.
        let emulator = Device::emulator(EmulatorOptions::default().seed(seed));
        comparisons.push(one(info, &given, &emulator, gpu, seed)?);
        tried.push(given);
    }
    Ok(comparisons)
}

fn one(
    info: &KernelInfo,
    given: &Given,
    emulator: &Device,
    gpu: Option<&Device>,
    seed: u64,
) -> Result<Comparison, String> {
    let dims = sizes::complete(info, given).map_err(|e| e.to_string())?;
    let mut comparison = Comparison {
        kernel: info.name.to_string(),
        dims: shown(given),
        wrong: Vec::new(),
        elements: 0,
        exact: 0,
        same: None,
    };
    let emulated = match Trial::new(info, &dims, seed, emulator) {
        Ok(trial) => trial,
        Err(error) => {
            comparison.wrong.push(format!("emulator: {error}"));
            return Ok(comparison);
        }
    };
    let outcome = emulated.run(emulator);
    if let Some(error @ Error::Reference(_)) = &outcome.failure {
        return Err(error.to_string());
    }
    comparison.take("emulator", &outcome);
    let Some(gpu) = gpu else { return Ok(comparison) };
    let result = Trial::new(info, &dims, seed, gpu).map_err(|e| e.to_string()).and_then(|real| {
        comparison.take("GPU", &real.run(gpu));
        let (mut same, mut all) = (0, 0);
        for parameter in info.parameters.iter() {
            let tilewright::kernel::info::ParameterKind::Tensor(tensor) = &parameter.kind else { continue };
            if tensor.role.is_written() {
                let read = |trial: &Trial<'_>| trial.read(&parameter.name).map_err(|e| e.to_string());
                let (a, b) = (read(&emulated)?, read(&real)?);
                same += a.iter().zip(&b).filter(|(a, b)| a == b).count();
                all += a.len();
            }
        }
        comparison.same = Some((same, all));
        Ok(())
    });
    if let Err(error) = result {
        comparison.wrong.push(format!("GPU: {error}"));
    }
    Ok(comparison)
}

impl Comparison {
    /// Takes the outcome on a device into account.
    fn take(&mut self, device: &str, outcome: &Outcome) {
        if let Some(error) = &outcome.failure {
            self.wrong.push(format!("{device}: {error}"));
        }
        (self.elements, self.exact) = (0, 0);
        for verdict in &outcome.verdicts {
            match &verdict.result {
                Ok(agreement) => {
                    self.elements += agreement.elements;
                    self.exact += agreement.exact;
                }
                Err(error) => self.wrong.push(format!("{device}: {error}")),
            }
        }
        let report = outcome.report.iter().flat_map(|r| r.faults.iter().chain(&r.warnings));
        // A fault has been told as the failure already.
        for fault in report.filter(|_| outcome.failure.is_none()) {
            self.wrong.push(format!("{device}: {fault}"));
        }
    }
}

/// Times a kernel, if there are sizes large enough.
fn time(kernel: &Kernel, gpu: &Device, seed: u64) -> Result<Option<Timing>, String> {
    let Some((given, dims)) = large(&kernel.info, seed) else { return Ok(None) };
    // The tensors are far beyond any cache: one set of them is enough.
    Rotation::new(&kernel.info, &given, &dims, gpu, (seed, 0))?.time().map(Some)
}

/// The smallest sizes found at which the tensors take many bytes and the launch has many threads; those with most
/// threads if none has as many.
fn large(info: &KernelInfo, seed: u64) -> Option<(Given, Vec<i64>)> {
    let mut best: Option<(i128, (Given, Vec<i64>))> = None;
    for exponent in 4..=26 {
        let pool = [1_i64 << exponent, 3 << (exponent - 1), 5 << (exponent - 2), 16];
        for round in 0..8 {
            let Some(given) = sizes::choose(info, &pool, seed.wrapping_add(round)) else { break };
            let Ok(dims) = sizes::complete(info, &given) else { continue };
            let Ok(layouts) = sizes::layouts(info, &dims) else { continue };
            let sized = info.parameters.iter().zip(&layouts);
            let each = sized.filter_map(|(p, l)| l.as_ref()?.elements.checked_mul(u64::from(p.element.bytes())));
            if !TIMED_BYTES.contains(&each.fold(0, u64::saturating_add)) {
                continue;
            }
            let Ok(blocks) = info.launch.blocks.eval(&dims) else { continue };
            let threads = blocks.saturating_mul(i128::from(info.launch.threads));
            if best.as_ref().is_none_or(|(most, _)| threads > *most) {
                best = Some((threads, (given, dims)));
            }
            if threads >= TIMED_THREADS {
                return best.map(|(_, sizes)| sizes);
            }
        }
    }
    best.map(|(_, sizes)| sizes)
}

/// Sizes for a comparison that satisfy the facts of a kernel.
fn small(info: &KernelInfo, seed: u64) -> Option<Given> {
    sizes::choose(info, &SMALL, seed).or_else(|| sizes::choose(info, &WHOLE, seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_sizes_to_be_compared_and_timed_at() {
        for file in kernels::files(&crate::root().join("examples"), "rs").unwrap() {
            for Kernel { info, .. } in kernels::of_file(&file).unwrap() {
                // Shapes that are fixed are what they are.
                if info.dims.is_empty() {
                    continue;
                }
                let (given, dims) = large(&info, 1).unwrap_or_else(|| panic!("no large sizes for {}", info.name));
                let elements: u64 =
                    sizes::layouts(&info, &dims).unwrap().iter().flatten().map(|layout| layout.elements).sum();
                assert!(elements > 10_000_000, "{}: {}", info.name, shown(&given));
                for seed in 0..20 {
                    assert!(small(&info, seed).is_some(), "{}", info.name);
                }
            }
        }
    }

    #[test]
    fn a_wrong_result_is_counted() {
        let file = crate::root().join("examples/saxpy.rs");
        let mut kernel = kernels::of_file(&file).unwrap().remove(0);
        let compared = |kernel: &Kernel| compare(kernel, None, 3).unwrap();
        assert!(compared(&kernel).iter().all(|c| c.wrong.is_empty() && c.elements > 0));
        let wrong = kernel.info.ptx.text.replace("add.rn.f32", "sub.rn.f32");
        kernel.info.ptx.text = wrong.into();
        let found = compared(&kernel);
        assert!(
            found.iter().all(|c| c.wrong.len() == 1 && c.wrong[0].contains("not admissible")),
            "{}",
            found[0].wrong[0]
        );
    }
}
