//! What several of the tests of staged copies need.
#![allow(dead_code, reason = "each test program uses a part of it")]

use tilewright::kernel::info::KernelInfo;
use tilewright::{Device, Element, EmulatorOptions, Tensor};
use tilewright_compiler::diag::{Code, Renderer};
use tilewright_compiler::lower::Analysed;
use tilewright_compiler::proof::{Launch, Verdict, check};
use tilewright_compiler::syntax::{TokenBuffer, TokenMap, locate};
use tilewright_compiler::{Compiled, compile};

/// Devices with different orders of warps, and copies that end at the earliest, at the latest and in between.
pub fn devices() -> Vec<Device> {
    (0..4).map(|seed| Device::emulator(EmulatorOptions::default().seed(seed))).collect()
}

/// A tensor whose elements are given by their number.
pub fn data<T: Element, const R: usize>(
    device: &Device,
    shape: [usize; R],
    value: impl Fn(usize) -> T,
) -> Tensor<T, R> {
    let values: Vec<T> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_slice(device, &values, shape).unwrap()
}

/// Work of the separate checker for one launch.
const PROOF_WORK: u64 = 300_000;

/// Runs the separate checker over every entry point that a launch with these sizes may take. What depends on data, or is too much work, is
/// left open.
pub fn prove(kernel: &Compiled, dims: &[i64]) {
    let info = kernel.info.as_ref().expect("no error");
    let launch = Launch::new(info, dims).unwrap_or_else(|why| panic!("{}, {dims:?}: {why:?}", info.name));
    for entry in kernel.entries.iter().filter(|e| e.conditions.iter().all(|c| c.holds(dims) == Ok(true))) {
        if let Verdict::Violated(violation) = check(&entry.kernel, &launch, PROOF_WORK) {
            panic!("at {dims:?}: {violation}\n{}", entry.kernel);
        }
    }
}

/// The codes of what is wrong, and the report.
pub type Refusal = (Vec<Code>, String);

/// What a kernel became: itself, or the codes of what is wrong with the report.
pub fn compiled(source: &str) -> Result<Box<KernelInfo>, Refusal> {
    analysed(source).map(|(info, _)| info)
}

/// The same, with what was found out about its stages.
pub fn analysed(source: &str) -> Result<(Box<KernelInfo>, Vec<Analysed>), Refusal> {
    finished(source).map(|kernel| (Box::new(kernel.info.expect("no error")), kernel.stages))
}

/// The same, with its entry points.
pub fn finished(source: &str) -> Result<Compiled, Refusal> {
    let stream = source.parse().unwrap_or_else(|error| panic!("no Rust tokens ({error}):\n{source}"));
    let (tokens, spans) = TokenBuffer::new(stream);
    let mut outcome = compile(&tokens);
    if outcome.kernels.first().is_some_and(|kernel| kernel.info.is_some()) {
        return Ok(outcome.kernels.swap_remove(0));
    }
    let codes = outcome.diagnostics.found().iter().map(|found| found.code).collect();
    let map = TokenMap { tokens: &tokens, spans: &spans, locate };
    Err((codes, Renderer::new(&map).report(&outcome.diagnostics.finish())))
}
