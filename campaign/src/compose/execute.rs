//! Every entry point of an accepted kernel on the emulator, with every sanitizer, against the values of
//! [`evaluate`](super::evaluate).
//!
//! Not only the entry point that a launcher would take: each whose conditions hold must be right.

use std::collections::BTreeMap;

use tilewright_emulator::{
    Arg, Error, Extent as Allocation, Kind, Launch, Memory, Options, Program, Report, Sanitizers,
};
use tilewright_kernel::info::{Argument, Entry, ParameterKind};
use tilewright_kernel::{Constraint, KernelInfo};

use super::ast::{Dims, Equation, Expr, Extent, Kernel};
use super::data::inputs;
use super::evaluate::{Fault, Tensor, evaluate};
use super::placed::{Placed, compare, prepare};
use crate::proved::values_of;
use crate::rng::Rng;

/// Warp instructions of one launch.
const INSTRUCTIONS: u64 = 1 << 21;
/// Those of a launch that took all of them: what repeats reductions at every read is slow, and no hang.
const MORE: u64 = 1 << 24;
/// Those of a launch with short axes that took all of these, too: a schedule pads an axis to lengths of its own. More
/// of them are a hang.
const MOST: u64 = 1 << 27;
/// Iterations of every axis of a kernel that runs to the end; kernels with more of them may be left out.
const SMALL: i64 = 4;
/// Blocks of one launch; more of them are not run.
const BLOCKS: i128 = 600;

/// Elements of all tensors of a run; more of them are not run: the evaluator holds 32 bytes for each, several times.
const ELEMENTS: i64 = 1 << 22;

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

/// The iterations of the longest axis: small sizes alone do not make a kernel short, since axes may have a length of
/// their own.
fn longest(kernel: &Kernel, dims: &Dims) -> i64 {
    fn inside(value: &Expr, dims: &Dims) -> i64 {
        let own = match value {
            Expr::Reduce(r) => r.axes.iter().map(|(_, extent)| extent.at(dims)).max().unwrap_or(0),
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

/// Elements of all tensors, intermediates included.
fn elements(kernel: &Kernel, dims: &Dims) -> i64 {
    fn of<'a>(extents: impl Iterator<Item = &'a Extent>, dims: &Dims) -> i64 {
        extents.map(|extent| extent.at(dims).max(0)).fold(1, i64::saturating_mul)
    }
    let inputs = kernel.inputs.iter().map(|input| of(input.shape.iter(), dims));
    let computed = kernel
        .equations
        .iter()
        .map(|e| of(e.axes.iter().map(|axis| &axis.1), dims).saturating_mul(e.targets().len() as i64));
    inputs.chain(computed).fold(0, i64::saturating_add)
}

/// The values of a run by tensor.
type Tensors = BTreeMap<String, Tensor>;

/// Inputs, and all tensors with what is computed from them. Sums have to be exact: where those of large numbers are
/// not, smaller ones are drawn. None if no numbers will do.
fn drawn(kernel: &Kernel, dims: &Dims, rng: &mut Rng) -> Result<Option<[Tensors; 2]>, Fault> {
    let first = if rng.chance(25) { Some(None) } else { None };
    for spread in first.into_iter().chain([Some(9), Some(3), Some(1)]) {
        let given = inputs(kernel, dims, spread, rng);
        match evaluate(kernel, dims, given.clone()) {
            Ok(tensors) => return Ok(Some([given, tensors])),
            Err(Fault::Inexact) => {}
            Err(Fault::Outside) => return Err(Fault::Outside),
        }
    }
    Ok(None)
}

/// Puts the parameters into memory, at addresses that are aligned as the kernel asks and no better.
fn place(
    kernel: &Kernel,
    info: &KernelInfo,
    dims: &Dims,
    (given, tensors): (&Tensors, &Tensors),
    memory: &Memory,
    rng: &mut Rng,
) -> Result<Vec<Placed>, (&'static str, String)> {
    let mut placed: Vec<Placed> = Vec::new();
    for parameter in info.parameters.iter() {
        let name = &*parameter.name;
        let alignment = match &parameter.kind {
            ParameterKind::Tensor(tensor) => u64::from(tensor.alignment.max(1)),
            ParameterKind::Scalar => 1,
        };
        let Some(expected) = tensors.get(name) else { return Err(("draw", format!("no tensor {name}"))) };
        let place = Placed::new(kernel, name, (given.get(name), expected), dims);
        let Some(mut place) = place else { return Err(("draw", format!("no tensor {name}"))) };
        if u64::from(parameter.element.bytes()) != place.ty.bytes() {
            return Err(("draw", format!("{name} has elements of {:?}", parameter.element)));
        }
        place
            .allocate(memory, alignment * (2 * rng.range(0, 3) as u64 + 1))
            .map_err(|e| ("emulator", e.to_string()))?;
        placed.push(place);
    }
    Ok(placed)
}

/// The memory that a launch may touch.
fn allocations(info: &KernelInfo, placed: &[Placed], shared: &[(u64, u64)]) -> Vec<Allocation> {
    (placed.iter())
        .filter(|t| !t.by_value)
        .map(|t| Allocation {
            base: t.base(),
            bytes: t.span,
            label: t.name.clone(),
            element: t.ty.bytes() as u32,
            read_only: !t.output,
        })
        .chain(shared.iter().zip(info.workspace.iter()).map(|((base, bytes), workspace)| Allocation {
            base: *base,
            bytes: *bytes,
            label: workspace.name.to_string(),
            element: workspace.element.bytes(),
            read_only: false,
        }))
        .filter(|e| e.bytes > 0)
        .collect()
}

/// The arguments of an entry point; tensor maps are encoded.
fn arguments(
    info: &KernelInfo,
    entry: &Entry,
    values: &[i64],
    (placed, shared): (&[Placed], &[(u64, u64)]),
) -> Result<Vec<Arg>, String> {
    let address = |p: u16| placed.get(usize::from(p)).map_or(0, Placed::base);
    let argument = |a: Argument| match a {
        Argument::Address(p) => Ok(address(p).into()),
        Argument::Scalar(p) => Ok(Arg(placed.get(usize::from(p)).map(Placed::bytes).unwrap_or_default())),
        Argument::Dim(d) => Ok(values.get(usize::from(d)).copied().unwrap_or(0).into()),
        Argument::Workspace(w) => Ok(shared.get(usize::from(w)).map_or(0, |s| s.0).into()),
        Argument::Map(m) => {
            let Some(map) = info.maps.get(usize::from(m)) else { return Ok(Arg(Vec::new())) };
            let map = map.at(address(map.parameter), values).map_err(|e| e.to_string())?;
            let bytes = map.encode().map_err(|e| e.to_string())?;
            Ok(Arg(bytes.to_vec()))
        }
    };
    info.arguments_of(entry).map(argument).collect()
}

/// Runs a kernel for some sizes and strides.
///
/// # Errors
/// What went wrong.
pub fn run(kernel: &Kernel, info: &KernelInfo, dims: &Dims, rng: &mut Rng) -> Result<Ran, Failure> {
    let fail = |class: &str, detail: String| (class.to_owned(), format!("{detail}\nsizes: {dims:?}"));
    let values = values_of(info, |name| dims.get(name));
    let holds = |c: &Constraint| c.holds(&values).unwrap_or(false);
    if !info.requirements.iter().chain(info.facts.iter()).all(holds) {
        return Ok(Ran::Skipped("requirements"));
    }
    if info.computes_nothing(&values) {
        return Ok(Ran::Skipped("no elements"));
    }
    if elements(kernel, dims) > ELEMENTS {
        return Ok(Ran::Skipped("elements"));
    }
    let drawn =
        drawn(kernel, dims, rng).map_err(|_| fail("draw", "the evaluator reads outside of a tensor".to_owned()))?;
    let Some([given, tensors]) = drawn else { return Ok(Ran::Skipped("inexact")) };
    let memory = Memory::new(1 << 28);
    let broken = |e: Error| fail("emulator", e.to_string());
    let placed = place(kernel, info, dims, (&given, &tensors), &memory, rng).map_err(|(class, e)| fail(class, e))?;
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
    // The emulator takes no kernel with more instructions.
    if info.ptx.text.lines().count() > 1 << 18 {
        return Ok(Ran::Skipped("instructions"));
    }
    let program = Program::parse(&info.ptx.text).map_err(|e| fail("ptx", e.to_string()))?;
    let cluster = i128::from(info.launch.cluster.max(1));
    let counts = if info.launch.persistent { vec![cluster, (3 * cluster).min(tiles), tiles] } else { vec![tiles] };
    let extents = allocations(info, &placed, &shared);
    let mut ran = Vec::new();
    for entry in info.entries.iter().filter(|e| e.conditions.iter().all(holds)) {
        let args = arguments(info, entry, &values, (&placed, &shared)).map_err(|e| fail("tensor-map", e))?;
        for count in &counts {
            let launch = Launch {
                entry: entry.name.to_string(),
                grid: [u32::try_from(*count).unwrap_or(1), 1, 1],
                block: [info.launch.threads, 1, 1],
                cluster: (info.launch.cluster > 1).then_some([info.launch.cluster, 1, 1]),
                dependent: info.launch.dependent,
                dynamic_shared: entry.shared_bytes,
                args: args.clone(),
                extents: extents.clone(),
            };
            let options =
                Options { seed: rng.bits(), sanitizers: Sanitizers::ALL, threads: Some(1), ..Options::default() };
            let wide = if info.entries.first().is_some_and(|e| e.name == entry.name) { "first" } else { "other" };
            let shown = |detail: String| format!("{wide} entry {}, {count} blocks: {detail}", entry.name);
            let launched = |budget: u64| {
                prepare(&memory, &placed).map_err(broken)?;
                let ran = program.launch(&launch, &memory, &Options { budget, ..options.clone() });
                ran.map_err(|e| fail("emulator", shown(e.to_string())))
            };
            let took_all = |report: &Report| report.findings.iter().any(|f| f.kind == Kind::Livelock);
            let is_short = longest(kernel, dims) <= SMALL;
            let mut report = launched(INSTRUCTIONS)?;
            for budget in [MORE, MOST].into_iter().take(if is_short { 2 } else { 1 }) {
                if !took_all(&report) {
                    break;
                }
                // A launch that ends leaves zeros for the next one.
                for ((address, bytes), _) in shared.iter().zip(info.workspace.iter()).filter(|(_, w)| w.zeroed) {
                    memory.fill(*address, *bytes, 0).map_err(broken)?;
                }
                report = launched(budget)?;
            }
            if took_all(&report) && !is_short {
                return Ok(Ran::Skipped("slow"));
            }
            if let Some(finding) = report.findings.iter().find(|f| f.kind.is_failure() || f.kind == Kind::SameValueRace)
            {
                return Err(fail(&format!("{:?} in {wide} entry", finding.kind), shown(report.to_string())));
            }
            compare(&memory, &placed).map_err(|(class, detail)| {
                let class = if wide == "first" { class.to_owned() } else { format!("{class} in {wide} entry") };
                fail(&class, shown(detail))
            })?;
        }
        ran.push(entry.name.to_string());
    }
    Ok(Ran::Compared(ran))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::ast::{Input, Reduction, Type};
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
        let sum = Expr::reduce(Reduction::Sum, terms, Type::F32, Expr::Literal(1));
        kernel.equations[0].value = Expr::Binary("+", Box::new(Expr::Literal(1)), Box::new(sum));
        assert_eq!(longest(&kernel, &dims), 64);
    }

    /// Inputs and what is computed, all of it.
    #[test]
    fn elements_of_all_tensors_count() {
        let dims: Dims = [("M", 5), ("N", 7), ("K", 1)].into();
        let (mut kernel, _) = case(1, 0);
        kernel.inputs = vec![Input::new("x", Type::F32, vec![Extent::size(0), Extent::size(1)])];
        let axes = vec![("i".to_owned(), Extent::size(1))];
        kernel.equations = vec![Equation::new("y", Type::F32, axes, Expr::Literal(1), true)];
        assert_eq!(elements(&kernel, &dims), 5 * 7 + 7);
    }
}
