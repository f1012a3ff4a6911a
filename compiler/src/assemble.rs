//! The finished kernel as data: everything that the launcher needs.

use tilewright_kernel::info::{self, KernelInfo, ParameterKind};

use crate::extent::Facts;
use crate::lower;
use crate::memory::alignment::alignment;
use crate::plan::Analysed;
use crate::plan::staged::{Axis, Staged};
use crate::program::Program;
use crate::source::TokenBuffer;

/// The kernel; none if a size exceeds 64 bits.
pub(crate) fn assemble(
    program: &Program,
    tokens: &TokenBuffer,
    facts: &Facts,
    stages: &[Analysed],
    entries: &[lower::Entry],
    threads: u32,
    module: &tilewright_ptx::Module,
) -> Option<KernelInfo> {
    let mut parameters = program.parameters.clone();
    for (p, parameter) in parameters.iter_mut().enumerate() {
        if let ParameterKind::Tensor(tensor) = &mut parameter.kind {
            tensor.alignment = alignment(p, parameter.element.bytes(), stages);
        }
    }
    let blocks = lower::launch_blocks(stages, facts)?;
    let target = module.target;
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
            text: module.to_string().into(),
            version: (module.version.major, module.version.minor),
            target: target.to_string().into(),
            capability: (u8::try_from(target.sm / 10).ok()?, u8::try_from(target.sm % 10).ok()?),
            exact_capability: target.specific,
            driver: module.version.cuda_release()?,
        },
        algorithm: program.algorithm.clone(),
        statements: program.statements.iter().map(|s| tokens.span_text(*s).into()).collect(),
        explanation: String::new().into(),
    };
    Some(info)
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
