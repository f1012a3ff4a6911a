//! The finished kernel as data: everything that the launcher needs.

use tilewright_kernel::Text;
use tilewright_kernel::algorithm::{Reduction, Value, ValueId};
use tilewright_kernel::info::{self, KernelInfo, ParameterKind};
use tilewright_kernel::size::{Size, SizeOp};

use crate::domain::{AxisKind, Binding};
use crate::extent::{Expr, Facts};
use crate::lower;
use crate::memory::alignment::alignment;
use crate::plan::Analysed;
use crate::plan::staged::{Axis, Staged};
use crate::program::Program;
use crate::source::TokenBuffer;

/// The kernel without its PTX and what that needs, and without its explanation; none if a size exceeds 64 bits.
pub(crate) fn assemble(
    program: &Program,
    facts: &Facts,
    stages: &[Analysed],
    entries: &[lower::Entry],
    threads: u32,
    tokens: &TokenBuffer,
) -> Option<KernelInfo> {
    let mut parameters = program.parameters.clone();
    for (p, parameter) in parameters.iter_mut().enumerate() {
        if let ParameterKind::Tensor(tensor) = &mut parameter.kind {
            tensor.alignment = alignment(p, parameter.element.bytes(), stages);
        }
    }
    let blocks = lower::launch_blocks(stages, facts)?;
    let entry = |e: &lower::Entry| {
        let signature = &e.kernel.signature;
        Some(info::Entry {
            name: signature.name.clone().into(),
            conditions: e.conditions.clone().into(),
            takes_maps: !signature.maps.is_empty(),
            shared_bytes: u32::try_from(e.kernel.shared_map().dynamic_bytes().unwrap_or(0)).ok()?,
        })
    };
    let cluster = entries.first().map_or(1, |e| e.kernel.signature.cluster);
    let mapped = stages.iter().flat_map(|s| &s.staged).filter(|s| s.has_map());
    let maps = mapped.map(|s| map(s, facts)).collect::<Option<Vec<_>>>()?;
    let workspace = lower::workspaces(stages, facts)?;
    let info = KernelInfo {
        name: program.name.text.clone().into(),
        dims: program.dims.clone().into(),
        parameters: parameters.into(),
        solved: program.solved.iter().map(|s| info::Solved { dim: s.dim, value: s.value.clone() }).collect(),
        facts: program.facts.iter().map(|f| f.constraint.clone()).collect(),
        requirements: Vec::new().into(),
        entries: entries.iter().map(entry).collect::<Option<_>>()?,
        arguments: lower::arguments(program, workspace.len(), maps.len()).into(),
        maps: maps.into(),
        workspace: workspace.into(),
        launch: info::Launch {
            blocks,
            threads,
            cluster,
            persistent: program.is_persistent(),
            dependent: program.is_dependent(),
        },
        ptx: info::Ptx {
            text: Text::Borrowed(""),
            version: (0, 0),
            target: Text::Borrowed(""),
            capability: (0, 0),
            exact_capability: false,
            driver: (0, 0),
        },
        algorithm: program.algorithm.clone(),
        additions: additions(program, facts, stages).into(),
        statements: program.statements.iter().map(|s| tokens.span_text(*s).into()).collect(),
        explanation: String::new().into(),
    };
    Some(info)
}

/// What a module needs, its text not printed yet; none if no driver takes it.
pub(crate) fn ptx(module: &tilewright_ptx::Module) -> Option<info::Ptx> {
    let target = module.target;
    Some(info::Ptx {
        text: Text::Borrowed(""),
        version: (module.version.major, module.version.minor),
        target: target.to_string().into(),
        capability: (u8::try_from(target.sm / 10).ok()?, u8::try_from(target.sm % 10).ok()?),
        exact_capability: target.specific,
        driver: module.version.cuda_release()?,
    })
}

/// Through how many additions terms of float sums go at most. A tree of n terms has no path of more than n − 1; what
/// one thread adds up, those of a block, of a cluster and of the grid are trees of each other's results. Sums of which
/// that is not known at launch are left out.
fn additions(program: &Program, facts: &Facts, stages: &[Analysed]) -> Vec<info::Additions> {
    let mut all: Vec<(ValueId, Vec<Expr>)> = Vec::new();
    for stage in stages.iter().map(|s| &s.stage) {
        let Some(sum) = stage.reduction.filter(|_| stage.product.is_none() && stage.online.is_none()) else { continue };
        let algorithm = &program.algorithm;
        let is_sum = matches!(algorithm.values.get(sum as usize), Some(Value::Reduce { op: Reduction::Sum, .. }));
        if !is_sum || !algorithm.types[sum as usize].is_float() {
            continue;
        }
        let mut levels = [(); 4].map(|()| Expr::constant(1));
        for axis in stage.domain.leaves.iter().map(|leaf| &stage.domain.axes[*leaf]) {
            let level = match axis.binding {
                _ if axis.kind != AxisKind::Reduction => continue,
                Binding::Serial | Binding::Unroll(_) | Binding::Vector => 0,
                Binding::Thread | Binding::Warp | Binding::Warpgroup | Binding::Part(_) => 1,
                Binding::Cta => 2,
                Binding::Grid => 3,
            };
            levels[level] = levels[level].mul(&axis.extent);
        }
        // One less of each level.
        let most = levels.iter().fold(Expr::constant(-(levels.len() as i128)), |sum, terms| sum.add(terms));
        match all.iter_mut().find(|known| known.0 == sum) {
            Some((_, known)) => known.push(most),
            None => all.push((sum, vec![most])),
        }
    }
    let largest = |(sum, most): (ValueId, Vec<Expr>)| {
        let sizes = most.iter().map(|e| facts.normal(e).to_size(facts.dims())).collect::<Option<Vec<Size>>>()?;
        let most = sizes.into_iter().reduce(|a, b| Size::binary(SizeOp::Max, &a, &b))?;
        Some(info::Additions { sum, most })
    };
    all.into_iter().filter_map(largest).collect()
}

/// The tensor map of a staged copy; none if a size exceeds 64 bits.
fn map(staged: &Staged, facts: &Facts) -> Option<info::MapInfo> {
    let dimension = |axis: &Axis| {
        Some(info::MapDimension {
            size: facts.normal(&axis.size).to_size(facts.dims())?,
            stride: facts.normal(&axis.stride).to_size(facts.dims())?,
            box_size: u32::try_from(axis.boxed.box_size).ok()?,
            element_stride: u32::try_from(axis.boxed.element_stride).ok()?,
        })
    };
    Some(info::MapInfo {
        name: staged.name.clone().into(),
        parameter: staged.parameter,
        format: staged.format,
        dimensions: staged.axes.iter().rev().map(dimension).collect::<Option<Vec<_>>>()?.into(),
        swizzle: staged.swizzle,
        promotion: staged.promotion,
    })
}
