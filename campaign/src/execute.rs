//! An accepted kernel on the emulator, with every sanitizer, against the reference.
//!
//! Every tensor lies inside a larger allocation, at an address that is aligned as the kernel asks and no better. What
//! is around it, and the gaps between its rows, must not be read and must not change; every element of an output must
//! be written.

use half::{bf16, f16};
use tilewright::__private::{Arg as HostArg, DynamicTensor, reference};
use tilewright::{Device, EmulatorOptions, ReferenceOutput};
use tilewright::{e4m3, e5m2, tf32};
use tilewright_emulator::{Arg, Extent, Kind, Launch, Memory, Options, Program, Sanitizers};
use tilewright_kernel::format::Format;
use tilewright_kernel::info::{Argument, Entry, Parameter as Declared, ParameterKind};
use tilewright_kernel::{ElementType, KernelInfo};

use crate::ast::{Dims, Kernel, Parameter, Role};
use crate::case::Failure;
use crate::proved::values_of;
use crate::rng::Rng;
use crate::sizes;

/// What surrounds tensors and fills their gaps.
const PATTERN: u8 = 0xa5;
/// Bytes after a tensor.
const TAIL: u64 = 48;
/// Warp instructions of one launch: some forty for each operation that sizes admit, as a `sin` of one lane takes.
const INSTRUCTIONS: u64 = 1 << 27;

/// A tensor in the emulator's memory.
struct Placed {
    /// First byte of the allocation, its length, and the first byte of the tensor in it.
    allocation: u64,
    bytes: u64,
    lead: u64,
    /// Bytes from the first to the last element.
    span: u64,
    /// Byte offset of each element in row-major order.
    offsets: Vec<u64>,
    /// The bytes before the launch, from the first to the last element.
    before: Vec<u8>,
    width: u64,
    role: Role,
}

fn random_element(ty: ElementType, wild: bool, rng: &mut Rng) -> Vec<u8> {
    let float = |rng: &mut Rng| -> f64 {
        match rng.below(20) {
            0 if wild => *rng.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-40, 3e38, 65504.0, -7e4]),
            0..4 => rng.range(-1_000_000, 1_000_000) as f64 / 4096.0,
            4 => 0.0,
            _ => rng.range(-16, 16) as f64 / 4.0,
        }
    };
    if let Some(format) = Format::of(ty) {
        return format.from_f64(float(rng)).to_le_bytes()[..ty.bytes() as usize].to_vec();
    }
    match ty {
        ElementType::Bool => vec![u8::from(rng.chance(50))],
        _ => {
            let value = if wild && rng.chance(20) { rng.bits() as i64 } else { rng.range(-3, 12) };
            value.to_le_bytes()[..ty.bytes() as usize].to_vec()
        }
    }
}

/// Byte offsets of all elements in row-major order.
fn offsets(shape: &[i64], strides: &[i64], width: i64) -> Vec<u64> {
    let count: i64 = shape.iter().product();
    (0..count)
        .map(|mut n| {
            let mut offset = 0;
            for (size, stride) in shape.iter().zip(strides).rev() {
                offset += n % size * stride;
                n /= size;
            }
            (offset * width) as u64
        })
        .collect()
}

fn check_output(output: &ReferenceOutput<'_>, bytes: &[u8]) -> Result<(), String> {
    use tilewright::Element;
    macro_rules! each {
        ($($name:ident $rust:ty),*) => {
            match output.element() {
                $(ElementType::$name => output.check_slice::<$rust>(&<$rust as Element>::decode(bytes)).map(|_| ()),)*
            }
        };
    }
    let result = each!(F64 f64, F32 f32, F16 f16, Bf16 bf16, Tf32 tf32, E4m3 e4m3, E5m2 e5m2, I64 i64, I32 i32, I16 i16, I8 i8, U64 u64, U32 u32, U16 u16, U8 u8, Bool bool);
    result.map_err(|e| e.to_string())
}

/// How a run ended that found nothing wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// Launched, and every element compared.
    Compared,
    /// Nothing was launched: there are no elements.
    Empty,
    /// The reference does not say what is right: an index depends on a function that is only approximately known.
    Undetermined,
}

/// Puts a tensor with random elements into the emulator's memory, and the same elements where the reference reads them.
fn place(
    (memory, device): (&Memory, &Device),
    (declared, parameter, alignment): (&Declared, &Parameter, u64),
    dims: &Dims,
    wild: bool,
    rng: &mut Rng,
) -> Result<(Placed, HostArg<'static>), (&'static str, String)> {
    let width = u64::from(declared.element.bytes());
    let (shape, strides) = (parameter.sizes(dims), parameter.pitch(dims));
    let offsets = offsets(&shape, &strides, width as i64);
    let span = offsets.iter().max().map_or(0, |last| last + width);
    let mut before = vec![PATTERN; span as usize];
    for at in &offsets {
        let element = random_element(declared.element, wild, rng);
        before[*at as usize..][..element.len()].copy_from_slice(&element);
    }
    let lead = alignment * (2 * rng.range(0, 3) as u64 + 1);
    let bytes = lead + span + TAIL;
    let allocation = memory.alloc(bytes, &declared.name).map_err(|e| ("emulator-memory", e.to_string()))?;
    let placed_offsets = offsets.clone();
    let placed = Placed { allocation, bytes, lead, span, offsets, before: before.clone(), width, role: parameter.role };
    let writable = parameter.role != Role::Input;
    let size = |n: &i64| usize::try_from(*n).unwrap_or(0);
    let layout: (Vec<usize>, Vec<usize>) = (shape.iter().map(size).collect(), strides.iter().map(size).collect());
    let elements: Vec<u8> =
        placed_offsets.iter().flat_map(|at| before[*at as usize..][..width as usize].iter().copied()).collect();
    let tensor = DynamicTensor::new(device, declared.element, (&layout.0, &layout.1), &elements, PATTERN);
    let tensor = tensor.map_err(|e| ("host-memory", e.to_string()))?;
    Ok((placed, HostArg::dynamic(&tensor, writable)))
}

/// The memory that a launch may touch.
fn extents(info: &KernelInfo, placed: &[Option<Placed>], shared: &[(u64, u64)]) -> Vec<Extent> {
    (placed.iter().zip(info.parameters.iter()))
        .filter_map(|(t, p)| t.as_ref().map(|t| (t, p)))
        .map(|(t, p)| Extent {
            base: t.allocation + t.lead,
            bytes: t.span,
            label: p.name.to_string(),
            element: t.width as u32,
            read_only: t.role == Role::Input,
        })
        .chain(shared.iter().zip(info.workspace.iter()).map(|((base, bytes), workspace)| Extent {
            base: *base,
            bytes: *bytes,
            label: workspace.name.to_string(),
            element: workspace.element.bytes(),
            read_only: false,
        }))
        .collect()
}

/// Runs a kernel for some sizes with random data.
///
/// # Errors
/// What went wrong.
pub fn run(kernel: &Kernel, info: &KernelInfo, dims: &Dims, rng: &mut Rng) -> Result<Ran, Failure> {
    let fail = |class: &str, detail: String| Failure { class: class.to_owned(), detail, dims: Some(dims.clone()) };
    let values = values_of(info, |name| dims.get(name));
    let holds = |c: &tilewright_kernel::Constraint| c.holds(&values).unwrap_or(false);
    if !info.requirements.iter().all(holds) {
        return Ok(Ran::Empty);
    }
    let wild = rng.chance(25);
    let device = Device::emulator(EmulatorOptions::default());
    let memory = Memory::new(1 << 28);
    let (mut placed, mut host, mut scalars) = (Vec::new(), Vec::new(), Vec::new());
    for declared in info.parameters.iter() {
        let Some(parameter) = kernel.parameter(&declared.name) else {
            return Err(fail("parameters", format!("unknown parameter {}", declared.name)));
        };
        let ParameterKind::Tensor(tensor) = &declared.kind else {
            let bytes = random_element(declared.element, wild, rng);
            let mut bits = [0_u8; 8];
            bits[..bytes.len()].copy_from_slice(&bytes);
            host.push(HostArg::bits(declared.element, u64::from_le_bytes(bits)));
            scalars.push(bytes);
            placed.push(None);
            continue;
        };
        let alignment = u64::from(tensor.alignment.max(1));
        let (tensor, argument) = place((&memory, &device), (declared, parameter, alignment), dims, wild, rng)
            .map_err(|(class, detail)| fail(class, detail))?;
        placed.push(Some(tensor));
        scalars.push(Vec::new());
        host.push(argument);
    }
    let expected = match reference(info, &host) {
        Ok(expected) => expected,
        Err(e) if e.to_string().ends_with("not exactly determined") => return Ok(Ran::Undetermined),
        Err(e) => return Err(fail("reference", e.to_string())),
    };
    if sizes::is_empty(kernel, dims) {
        return Ok(Ran::Empty);
    }
    let blocks = info.launch.blocks.eval(&values).ok().and_then(|b| u32::try_from(b).ok()).filter(|b| *b > 0);
    let Some(blocks) = blocks else {
        return Err(fail("blocks", format!("{:?} blocks", info.launch.blocks.eval(&values))));
    };
    let program = Program::parse(&info.ptx.text).map_err(|e| fail("ptx", e.to_string()))?;
    // One for all turns: each leaves it as the next one must find it.
    let mut shared: Vec<(u64, u64)> = Vec::new();
    for workspace in info.workspace.iter() {
        let elements = workspace.elements.eval(&values).ok().and_then(|n| u64::try_from(n).ok());
        let Some(elements) = elements else { return Err(fail("workspace", format!("{:?}", workspace.elements))) };
        let bytes = elements * u64::from(workspace.element.bytes());
        let address = memory.alloc(bytes, &workspace.name).and_then(|address| {
            if workspace.zeroed {
                memory.fill(address, bytes, 0)?;
            }
            Ok(address)
        });
        shared.push((address.map_err(|e| fail("emulator-memory", e.to_string()))?, bytes));
    }
    let args_of = |entry: &Entry| -> Vec<Arg> {
        let argument = |a: Argument| match a {
            Argument::Address(p) => placed[usize::from(p)].as_ref().map_or(0, |t| t.allocation + t.lead).into(),
            Argument::Scalar(p) => Arg(scalars[usize::from(p)].clone()),
            Argument::Dim(d) => values[usize::from(d)].into(),
            Argument::Workspace(w) => shared[usize::from(w)].0.into(),
            Argument::Map(_) => Arg(Vec::new()), // the campaign stages nothing yet
        };
        info.arguments_of(entry).map(argument).collect()
    };
    let extents = extents(info, &placed, &shared);
    for (turn, entry) in info.entries.iter().filter(|e| e.conditions.iter().all(holds)).cycle().take(3).enumerate() {
        prepare(&memory, &placed).map_err(|e| fail("emulator-memory", e.to_string()))?;
        let launch = Launch {
            entry: entry.name.to_string(),
            grid: [blocks, 1, 1],
            block: [info.launch.threads, 1, 1],
            cluster: (info.launch.cluster > 1).then_some([info.launch.cluster, 1, 1]),
            dependent: info.launch.dependent,
            dynamic_shared: entry.shared_bytes,
            args: args_of(entry),
            extents: extents.clone(),
        };
        let perturb = (turn == 1).then(|| rng.bits());
        let options = Options {
            seed: rng.bits(),
            sanitizers: Sanitizers::ALL,
            perturb,
            budget: INSTRUCTIONS,
            threads: Some(1),
            ..Options::default()
        };
        let report = program.launch(&launch, &memory, &options).map_err(|e| fail("emulator", e.to_string()))?;
        if let Some(finding) = report.findings.iter().find(|f| f.kind.is_failure() || f.kind == Kind::SameValueRace) {
            return Err(fail(&format!("finding {:?}", finding.kind), report.to_string()));
        }
        compare(&memory, &placed, info, &expected).map_err(|(class, detail)| {
            let data: String = placed.iter().flatten().zip(info.parameters.iter()).map(|(t, p)| shown(t, p)).collect();
            fail(class, format!("entry {}: {detail}{data}", entry.name))
        })?;
    }
    Ok(Ran::Compared)
}

/// The first elements of a tensor before the launch, as bytes of each.
fn shown(tensor: &Placed, parameter: &Declared) -> String {
    let width = tensor.width as usize;
    let hex =
        |at: &u64| tensor.before[*at as usize..][..width].iter().rev().map(|b| format!("{b:02x}")).collect::<String>();
    let list: Vec<String> = tensor.offsets.iter().take(40).map(hex).collect();
    format!("\n  {} = {}", parameter.name, list.join(" "))
}

/// Fills inputs, marks what surrounds outputs, and leaves their elements unwritten.
fn prepare(memory: &Memory, placed: &[Option<Placed>]) -> Result<(), tilewright_emulator::Error> {
    for tensor in placed.iter().flatten() {
        let base = tensor.allocation + tensor.lead;
        if tensor.role == Role::Input {
            for at in &tensor.offsets {
                memory.write(base + at, &tensor.before[*at as usize..][..tensor.width as usize])?;
            }
            continue;
        }
        if tensor.role == Role::InOut {
            memory.fill(tensor.allocation, tensor.bytes, PATTERN)?;
            memory.write(base, &tensor.before)?;
            continue;
        }
        // Everything but the elements. (Elements written by an earlier turn keep their old bytes: NaN patterns replace
        // them.)
        memory.fill(tensor.allocation, tensor.lead, PATTERN)?;
        memory.fill(base + tensor.span, TAIL, PATTERN)?;
        let mut is_element = vec![false; tensor.span as usize];
        for at in &tensor.offsets {
            is_element[*at as usize..][..tensor.width as usize].fill(true);
        }
        for (at, element) in is_element.iter().enumerate() {
            if !element {
                memory.fill(base + at as u64, 1, PATTERN)?;
            } else if memory.is_initialised(base + at as u64, 1)? {
                memory.fill(base + at as u64, 1, 0x7f)?;
            }
        }
    }
    Ok(())
}

type Problem = (&'static str, String);

fn compare(
    memory: &Memory,
    placed: &[Option<Placed>],
    info: &KernelInfo,
    expected: &tilewright::Reference,
) -> Result<(), Problem> {
    for (tensor, parameter) in placed.iter().zip(info.parameters.iter()) {
        let Some(tensor) = tensor.as_ref().filter(|t| t.role != Role::Input) else { continue };
        let name = &parameter.name;
        let bad = |e: tilewright_emulator::Error| ("emulator-memory", e.to_string());
        let mut after = vec![0; tensor.bytes as usize];
        memory.read(tensor.allocation, &mut after).map_err(bad)?;
        let mut is_element = vec![false; after.len()];
        let mut elements = Vec::new();
        for at in &tensor.offsets {
            let from = (tensor.lead + at) as usize;
            let bytes = from..from + tensor.width as usize;
            if !memory.is_initialised(tensor.allocation + from as u64, tensor.width).map_err(bad)? {
                return Err(("unwritten", format!("byte {at} of `{name}` was never written")));
            }
            is_element[bytes.clone()].fill(true);
            elements.extend_from_slice(&after[bytes]);
        }
        if let Some(at) = (0..after.len()).find(|at| !is_element[*at] && after[*at] != PATTERN) {
            return Err((
                "stray-write",
                format!("byte {} outside the elements of `{name}` changed", at as i64 - tensor.lead as i64),
            ));
        }
        let output = expected.output(name).map_err(|e| ("reference", e.to_string()))?;
        check_output(&output, &elements).map_err(|e| ("mismatch", e))?;
    }
    Ok(())
}
