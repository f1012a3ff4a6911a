//! Every entry point of an accepted kernel on the emulator, with every sanitizer, against the values of
//! [`evaluate`](super::evaluate).
//!
//! Not only the entry point that a launcher would take: each whose conditions hold must be right.

use std::collections::BTreeMap;

use half::f16;
use tilewright_emulator::{Arg, Error, Extent, Kind, Launch, Memory, Options, Program, Sanitizers};
use tilewright_kernel::info::{Argument, Entry, ParameterKind};
use tilewright_kernel::{Constraint, KernelInfo};

use super::ast::{Dims, Equation, Expr, Kernel, Type};
use super::evaluate::{Fault, Tensor, evaluate};
use crate::rng::Rng;

/// What surrounds tensors.
const PATTERN: u8 = 0xa5;
/// Bytes after a tensor.
const TAIL: u64 = 48;
/// Warp instructions of one launch.
const INSTRUCTIONS: u64 = 1 << 21;
/// Those of a launch that took all of them: what repeats reductions at every read is slow, and no hang.
const MORE: u64 = 1 << 24;
/// Iterations of every axis with which that many instructions are a hang; kernels with more of them are left out.
const SMALL: i64 = 4;
/// Blocks of one launch; more of them are not run.
const BLOCKS: i128 = 600;

/// A failed run: what kind, and everything known.
pub type Failure = (String, String);

/// How a run ended that found nothing wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// Compared: the entry points that ran.
    Compared(Vec<String>),
    /// Not run, and why.
    Skipped(&'static str),
}

struct Placed {
    name: String,
    allocation: u64,
    lead: u64,
    bytes: u64,
    total: u64,
    output: bool,
    indices: bool,
}

fn encode(value: f64, ty: Type) -> Vec<u8> {
    match ty {
        Type::I32 => (value as i64 as i32).to_le_bytes().to_vec(),
        Type::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
        Type::F32 => (value as f32).to_le_bytes().to_vec(),
    }
}

fn decode(bytes: &[u8], ty: Type) -> f64 {
    match (ty, bytes) {
        (Type::F16, [a, b]) => f16::from_le_bytes([*a, *b]).to_f64(),
        (Type::I32, [a, b, c, d]) => f64::from(i32::from_le_bytes([*a, *b, *c, *d])),
        (Type::F32, [a, b, c, d]) => f64::from(f32::from_le_bytes([*a, *b, *c, *d])),
        _ => f64::NAN,
    }
}

/// Inputs for some sizes, with elements from `-spread` to `spread`.
fn inputs(kernel: &Kernel, dims: &Dims, spread: i64, rng: &mut Rng) -> BTreeMap<String, Tensor> {
    let one = |input: &super::ast::Input| {
        let shape: Vec<i64> = input.shape.iter().map(|e| e.at(dims)).collect();
        let count: i64 = shape.iter().product();
        let most = dims.values().copied().max().unwrap_or(1);
        let element = |rng: &mut Rng| {
            let n = if input.indices { rng.range(-2, most + 1) } else { rng.range(-spread, spread) };
            n as f64
        };
        (input.name.clone(), Tensor { shape, data: (0..count).map(|_| element(rng)).collect() })
    };
    kernel.inputs.iter().map(one).collect()
}

/// The iterations of the longest axis: small sizes alone do not make a kernel short, since axes may have a length of
/// their own.
fn longest(kernel: &Kernel, dims: &Dims) -> i64 {
    fn inside(value: &Expr, dims: &Dims) -> i64 {
        let own = match value {
            Expr::Reduce(_, axes, _) => axes.iter().map(|(_, extent)| extent.at(dims)).max().unwrap_or(0),
            _ => 0,
        };
        value.parts().into_iter().map(|part| inside(part, dims)).fold(own, i64::max)
    }
    let of = |equation: &Equation| {
        let axes = equation.axes.iter().map(|(_, extent)| extent.at(dims));
        axes.fold(inside(&equation.value, dims), i64::max)
    };
    kernel.equations.iter().map(of).fold(dims.values().copied().max().unwrap_or(0), i64::max)
}

/// Runs a kernel for some sizes.
///
/// # Errors
/// What went wrong.
pub fn run(kernel: &Kernel, info: &KernelInfo, dims: &Dims, rng: &mut Rng) -> Result<Ran, Failure> {
    let fail = |class: &str, detail: String| (class.to_owned(), format!("{detail}\nsizes: {dims:?}"));
    let values: Vec<i64> = info.dims.iter().map(|d| dims.get(&*d.name).copied().unwrap_or(0)).collect();
    let holds = |c: &Constraint| c.holds(&values).unwrap_or(false);
    if !info.requirements.iter().chain(info.facts.iter()).all(holds) {
        return Ok(Ran::Skipped("requirements"));
    }
    if kernel.equations.iter().any(|e| e.output && e.axes.iter().any(|a| a.1.at(dims) <= 0)) {
        return Ok(Ran::Skipped("no elements"));
    }
    // Smaller numbers, if sums of these are too large to be exact.
    let mut expected = None;
    for spread in [9, 3, 1] {
        let given = inputs(kernel, dims, spread, rng);
        match evaluate(kernel, dims, given) {
            Ok(tensors) => {
                expected = Some(tensors);
                break;
            }
            Err(Fault::Inexact) => {}
            Err(Fault::Outside) => return Err(fail("draw", "the evaluator reads outside of a tensor".to_owned())),
        }
    }
    let Some(tensors) = expected else { return Ok(Ran::Skipped("inexact")) };
    let memory = Memory::new(1 << 28);
    let broken = |e: Error| fail("emulator", e.to_string());
    let mut placed: Vec<Placed> = Vec::new();
    for parameter in info.parameters.iter() {
        let ParameterKind::Tensor(tensor) = &parameter.kind else {
            return Err(fail("draw", format!("parameter {} is a scalar", parameter.name)));
        };
        let Some(known) = tensors.get(&*parameter.name) else {
            return Err(fail("draw", format!("no tensor {}", parameter.name)));
        };
        let width = u64::from(parameter.element.bytes());
        let alignment = u64::from(tensor.alignment.max(1));
        let lead = alignment * (2 * rng.range(0, 3) as u64 + 1);
        let bytes = known.data.len() as u64 * width;
        let total = lead + bytes + TAIL;
        let allocation = memory.alloc(total, &parameter.name).map_err(broken)?;
        let name = parameter.name.to_string();
        let indices = kernel.inputs.iter().any(|i| i.name == name && i.indices);
        placed.push(Placed { name, allocation, lead, bytes, total, output: tensor.role.is_written(), indices });
    }
    let mut shared: Vec<(u64, u64)> = Vec::new();
    for workspace in info.workspace.iter() {
        let elements = workspace.elements.eval(&values).ok().and_then(|n| u64::try_from(n).ok());
        let Some(elements) = elements else { return Err(fail("workspace", format!("{:?}", workspace.elements))) };
        let bytes = elements * u64::from(workspace.element.bytes());
        if bytes > 1 << 26 {
            return Ok(Ran::Skipped("workspace"));
        }
        let address = memory.alloc(bytes.max(1), &workspace.name).map_err(broken)?;
        if workspace.zeroed {
            memory.fill(address, bytes, 0).map_err(broken)?;
        }
        shared.push((address, bytes));
    }
    let blocks = info.launch.blocks.eval(&values);
    let Some(tiles) = blocks.clone().ok().filter(|b| *b > 0) else { return Err(fail("blocks", format!("{blocks:?}"))) };
    if tiles > BLOCKS {
        return Ok(Ran::Skipped("blocks"));
    }
    let program = Program::parse(&info.ptx.text).map_err(|e| fail("ptx", e.to_string()))?;
    let cluster = i128::from(info.launch.cluster.max(1));
    let counts = if info.launch.persistent { vec![cluster, (3 * cluster).min(tiles), tiles] } else { vec![tiles] };
    let extents: Vec<Extent> = (placed.iter())
        .map(|t| Extent {
            base: t.allocation + t.lead,
            bytes: t.bytes,
            label: t.name.clone(),
            element: if t.indices { 4 } else { kernel.ty.bytes() as u32 },
            read_only: !t.output,
        })
        .chain(shared.iter().zip(info.workspace.iter()).map(|((base, bytes), workspace)| Extent {
            base: *base,
            bytes: *bytes,
            label: workspace.name.to_string(),
            element: workspace.element.bytes(),
            read_only: false,
        }))
        .filter(|e| e.bytes > 0)
        .collect();
    let args_of = |entry: &Entry| -> Result<Vec<Arg>, Failure> {
        let address = |p: u16| placed.get(usize::from(p)).map_or(0, |t| t.allocation + t.lead);
        let argument = |a: Argument| match a {
            Argument::Address(p) => Ok(address(p).into()),
            Argument::Scalar(p) => Err(fail("draw", format!("argument {p} is a scalar"))),
            Argument::Dim(d) => Ok(values.get(usize::from(d)).copied().unwrap_or(0).into()),
            Argument::Workspace(w) => Ok(shared.get(usize::from(w)).map_or(0, |s| s.0).into()),
            Argument::Map(m) => {
                let Some(map) = info.maps.get(usize::from(m)) else { return Ok(Arg(Vec::new())) };
                let map = map.at(address(map.parameter), &values).map_err(|e| fail("tensor-map", e.to_string()))?;
                let bytes = map.encode().map_err(|e| fail("tensor-map", e.to_string()))?;
                Ok(Arg(bytes.to_vec()))
            }
        };
        info.arguments_of(entry).map(argument).collect()
    };
    let mut ran = Vec::new();
    for entry in info.entries.iter().filter(|e| e.conditions.iter().all(holds)) {
        let args = args_of(entry)?;
        for count in &counts {
            prepare(kernel, &memory, &placed, &tensors).map_err(broken)?;
            let launch = Launch {
                entry: entry.name.to_string(),
                grid: [u32::try_from(*count).unwrap_or(1), 1, 1],
                block: [info.launch.threads, 1, 1],
                cluster: (info.launch.cluster > 1).then_some([info.launch.cluster, 1, 1]),
                dependent: info.launch.dependent,
                dynamic_shared: info.launch.shared_bytes,
                args: args.clone(),
                extents: extents.clone(),
            };
            let options = Options {
                seed: rng.bits(),
                sanitizers: Sanitizers::ALL,
                budget: INSTRUCTIONS,
                threads: Some(1),
                ..Options::default()
            };
            let wide = if info.entries.first().is_some_and(|e| e.name == entry.name) { "first" } else { "other" };
            let shown = |detail: String| format!("{wide} entry {}, {count} blocks: {detail}", entry.name);
            let mut report =
                program.launch(&launch, &memory, &options).map_err(|e| fail("emulator", shown(e.to_string())))?;
            if report.findings.iter().any(|f| f.kind == Kind::Livelock) {
                prepare(kernel, &memory, &placed, &tensors).map_err(broken)?;
                for ((address, bytes), workspace) in shared.iter().zip(info.workspace.iter()) {
                    if workspace.zeroed {
                        memory.fill(*address, *bytes, 0).map_err(broken)?;
                    }
                }
                let options = Options { budget: MORE, ..options };
                report =
                    program.launch(&launch, &memory, &options).map_err(|e| fail("emulator", shown(e.to_string())))?;
            }
            if report.findings.iter().any(|f| f.kind == Kind::Livelock) && longest(kernel, dims) > SMALL {
                return Ok(Ran::Skipped("slow"));
            }
            if let Some(finding) = report.findings.iter().find(|f| f.kind.is_failure() || f.kind == Kind::SameValueRace)
            {
                return Err(fail(&format!("{:?} in {wide} entry", finding.kind), shown(report.to_string())));
            }
            compare(kernel, &memory, &placed, &tensors).map_err(|(class, detail)| {
                let class = if wide == "first" { class.to_owned() } else { format!("{class} in {wide} entry") };
                fail(&class, shown(detail))
            })?;
        }
        ran.push(entry.name.to_string());
    }
    Ok(Ran::Compared(ran))
}

/// Inputs as they are, outputs unwritten or of another pattern, and marks around them.
fn prepare(
    kernel: &Kernel,
    memory: &Memory,
    placed: &[Placed],
    tensors: &BTreeMap<String, Tensor>,
) -> Result<(), Error> {
    for t in placed {
        let base = t.allocation + t.lead;
        memory.fill(t.allocation, t.lead, PATTERN)?;
        memory.fill(base + t.bytes, t.total - t.lead - t.bytes, PATTERN)?;
        if t.output {
            // The first launch finds them unwritten; later ones must write again what earlier ones wrote.
            if t.bytes > 0 && memory.is_initialised(base, t.bytes)? {
                memory.fill(base, t.bytes, 0x7f)?;
            }
            continue;
        }
        let ty = if t.indices { Type::I32 } else { kernel.ty };
        let data = tensors.get(&t.name).map_or(&[][..], |known| &known.data);
        let bytes: Vec<u8> = data.iter().flat_map(|v| encode(*v, ty)).collect();
        if !bytes.is_empty() {
            memory.write(base, &bytes)?;
        }
    }
    Ok(())
}

fn compare(
    kernel: &Kernel,
    memory: &Memory,
    placed: &[Placed],
    tensors: &BTreeMap<String, Tensor>,
) -> Result<(), (&'static str, String)> {
    let bad = |e: Error| ("emulator", e.to_string());
    for t in placed.iter().filter(|t| t.output) {
        let Some(expected) = tensors.get(&t.name) else { continue };
        let width = kernel.ty.bytes();
        let mut after = vec![0; t.total as usize];
        memory.read(t.allocation, &mut after).map_err(bad)?;
        let (elements, outside) = (t.lead as usize..(t.lead + t.bytes) as usize, after.len());
        if let Some(at) = (0..outside).find(|at| !elements.contains(at) && after[*at] != PATTERN) {
            return Err(("stray-write", format!("byte {} of `{}` changed", at as i64 - t.lead as i64, t.name)));
        }
        for (n, (bytes, value)) in after[elements].chunks(width as usize).zip(&expected.data).enumerate() {
            let address = t.allocation + t.lead + n as u64 * width;
            let name = &t.name;
            if !memory.is_initialised(address, width).map_err(bad)? {
                return Err(("unwritten", format!("element {n} of `{name}` (shape {:?})", expected.shape)));
            }
            let got = decode(bytes, kernel.ty);
            // A zero has the sign that the order of a sum gives it.
            if got != *value && !(got.is_nan() && value.is_nan()) {
                let shape = &expected.shape;
                return Err(("mismatch", format!("element {n} of `{name}` (shape {shape:?}) is {got}, not {value}")));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::ast::Extent;
    use crate::compose::case;

    /// An axis with a length of its own counts, however small the sizes are.
    #[test]
    fn lengths_of_axes_count() {
        let dims: Dims = [("M", 1), ("N", 1), ("K", 1)].into();
        let (mut kernel, _) = case(1, 0);
        let Some(first) = kernel.equations.first_mut() else { return };
        first.axes = vec![("i".to_owned(), Extent::size(0))];
        first.value = Expr::Binary("+", Box::new(Expr::Literal(1)), Box::new(Expr::Literal(2)));
        kernel.equations.truncate(1);
        assert_eq!(longest(&kernel, &dims), 1);
        let terms = vec![("j".to_owned(), Extent::literal(64))];
        let sum = Expr::Reduce(crate::compose::ast::Reduction::Sum, terms, Box::new(Expr::Literal(1)));
        kernel.equations[0].value = Expr::Binary("+", Box::new(Expr::Literal(1)), Box::new(sum));
        assert_eq!(longest(&kernel, &dims), 64);
    }
}
