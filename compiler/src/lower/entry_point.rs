//! One entry point: what it takes, the loop nests of all stages, and the order of its accesses.

use tilewright_kernel::info::{Argument, ParameterKind, Workspace};

use super::barrier_placement::{Pass, Placement};
use super::nested_stage::Storage;
use super::staging::Copy;
use super::{
    Defect, UNSIZED, arguments, barrier_placement, grid_reduce, index_width, launch_blocks, nested_stage,
    persistent_loop, role_pipeline, shared_allocation, stage, staging, unread, workspaces,
};
use crate::extent::{Expr, Facts};
use crate::kernel_ir::{self, Builder, Kernel, Problem, Range, Signature, Type, verify};
use crate::plan::Analysed;
use crate::plan::roles::ProducerConsumers;
use crate::plan::staged::Staged;
use crate::program::Program;
use crate::schedule::Role;
use crate::target::SHARED_BYTES;

/// What every entry point of a kernel is made from.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub program: &'a Program,
    pub facts: &'a Facts,
    pub stages: &'a [Analysed],
    pub roles: &'a [Role],
    /// Threads of a block.
    pub threads: u32,
    /// Whether what each transformation makes is verified.
    pub verifies: bool,
}

/// What one entry point has of its own.
#[derive(Clone, Copy)]
pub(super) struct Variant {
    /// The type of indices.
    pub index: Type,
    /// Whether copies are staged.
    pub staged: bool,
    /// Shared memory that one trip of a reduction may have.
    pub trip_bytes: u64,
}

/// Lowers an entry point. `earlier` is where the one before it has its barriers.
///
/// # Errors
/// What an earlier room let through although it cannot be built.
pub(super) fn entry(of: Input<'_>, variant: Variant, name: String, earlier: &mut Placement) -> Result<Kernel, Defect> {
    let Input { program, facts, stages, roles, .. } = of;
    let of_stages = grid_reduce::workspaces(stages.iter().map(|s| &s.stage), facts).ok_or(UNSIZED)?;
    let counts = of_stages.iter().map(|own| own.len() as u16);
    let first_of = |sum: &mut u16, count| Some(std::mem::replace(sum, *sum + count));
    let first_workspaces: Vec<u16> = counts.scan(0, first_of).collect();
    let first_part = of_stages.iter().map(|own| own.len() as u16).sum();
    let workspaces = workspaces(stages, facts).ok_or(UNSIZED)?;
    let mut builder = Builder::new(signature(of, variant, name, workspaces.len()));
    for Workspace { name, element, zeroed, .. } in workspaces {
        builder.workspace(kernel_ir::Workspace { name: name.to_string(), element, zeroed });
    }
    let storage = nested_stage::storage(&mut builder, (stages, roles), first_part);
    let copies = staging::copies(&mut builder, (stages, roles), variant.staged, variant.index);
    builder.line(0);
    // What comes before needs no memory of other launches.
    if program.is_dependent() {
        builder.grid_dependency_wait();
    }
    let mut nests = Nests { of, variant, storage, copies, first_workspaces };
    if roles.is_empty() {
        nests.lower(&mut builder, None)?;
    } else {
        builder.begin_roles();
        for (at, role) in roles.iter().enumerate() {
            builder.begin_role(&role.name, role.range(), role.registers);
            nests.lower(&mut builder, Some(at))?;
            builder.end_role();
        }
        builder.end_roles();
    }
    let kernel = builder.finish().map_err(|_| Defect::Plan("loops and branches do not pair up"))?;
    ordered(of, kernel, earlier)
}

/// What an entry point takes.
fn signature(of: Input<'_>, variant: Variant, name: String, workspaces: usize) -> Signature {
    let Input { program, facts, stages, threads, .. } = of;
    let parameters = program.parameters.iter().map(|p| kernel_ir::Parameter {
        name: p.name.to_string(),
        element: p.element,
        kind: match &p.kind {
            ParameterKind::Scalar => kernel_ir::ParameterKind::Scalar,
            ParameterKind::Tensor(tensor) => kernel_ir::ParameterKind::Tensor { written: tensor.role.is_written() },
        },
    });
    let dims = program.dims.iter().enumerate().map(|(d, dim)| {
        let e = Expr::var(d as u32);
        let clamp = |v: i128| v.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        let low = facts.lower_bound(&e).map_or(0, clamp);
        let most = if variant.index == Type::I32 { index_width::LIMIT } else { i64::MAX };
        let high = facts.upper_bound(&e).map_or(most, clamp).min(most);
        kernel_ir::Dimension { name: dim.name.to_string(), range: Range::new(low, high.max(low)) }
    });
    let map = |staged: &Staged| kernel_ir::Map { name: staged.name.clone(), rank: staged.axes.len() as u32 };
    let copies = stages.iter().filter(|_| variant.staged).flat_map(|s| &s.staged).filter(|s| s.has_map());
    let maps: Vec<kernel_ir::Map> = copies.map(map).collect();
    let arguments: Vec<Argument> = arguments(program, workspaces, maps.len());
    let cluster = stages.first().map_or(1, |s| s.stage.distribution.cluster);
    Signature { name, parameters: parameters.collect(), dims: dims.collect(), arguments, maps, threads, cluster }
}

/// The loop nests of all outputs, of a whole block or of one role.
struct Nests<'a> {
    of: Input<'a>,
    variant: Variant,
    /// The buffers of each stage.
    storage: Vec<Storage>,
    /// The staged copies of each stage.
    copies: Vec<Vec<Copy<'a>>>,
    /// The first workspace of each stage.
    first_workspaces: Vec<u16>,
}

impl Nests<'_> {
    fn lower(&mut self, builder: &mut Builder, role: Option<usize>) -> Result<(), Defect> {
        let Input { program, facts, stages, roles, .. } = self.of;
        let Variant { index, staged, trip_bytes } = self.variant;
        let has_part = |between: Option<&ProducerConsumers>, own: Option<usize>| match (role, between) {
            (Some(role), Some(between)) => between.has(role),
            (role, _) => own == role,
        };
        for (storage, analysed) in self.storage.iter_mut().zip(stages) {
            if has_part(storage.pipeline.between.as_ref().map(|b| &b.roles), analysed.stage.role) {
                storage.begin(builder);
            }
        }
        for copy in self.copies.iter_mut().flatten().filter(|copy| copy.leads()) {
            if has_part(copy.pipeline.between.as_ref().map(|b| &b.roles), copy.staged.role) {
                copy.begin(builder, role);
            }
        }
        for copies in &mut self.copies {
            for n in 0..copies.len() {
                if let Some(leader) = copies[n].leader {
                    copies[n].pipeline = copies[leader].pipeline.clone();
                }
            }
        }
        let threads = role.map_or(self.of.threads, |role| roles[role].threads());
        let tile = program.is_persistent().then(|| persistent_loop::begin(builder, stages, facts, index));
        let outputs = || stages.iter().enumerate().filter(|(_, s)| s.stage.has_blocks());
        let more_blocks = outputs().count() > 1;
        for (at, analysed) in outputs() {
            let comes = |role| analysed.stage.role == Some(role) || role_pipeline::comes(stages, staged, (at, 0), role);
            if !role.is_none_or(comes) {
                continue;
            }
            let (storage, copies, workspaces) = (&self.storage, &self.copies, &self.first_workspaces);
            let around =
                stage::Around { threads, role, staged, tile, trip_bytes, index, stages, storage, copies, workspaces };
            let frame = stage::Frame { around, more_blocks, instances: &[], staged: &[], target: None, set: &[] };
            stage::lower(builder, at, &frame)?;
        }
        if tile.is_some() {
            persistent_loop::end(builder, &self.copies, role);
        }
        let fetches = |storage: &Storage| {
            storage.pipeline.between.as_ref().is_some_and(|b| b.in_background && Some(b.roles.producer) == role)
        };
        if self.storage.iter().any(fetches) {
            // Threads end when their fetches have.
            builder.cp_async_commit_group();
            builder.cp_async_wait_group(0);
        }
        Ok(())
    }
}

/// The kernel without what nothing reads, with the barriers that it needs. Memory is shared where that costs no
/// barrier; more of it if there is too little otherwise.
fn ordered(of: Input<'_>, kernel: Kernel, earlier: &mut Placement) -> Result<Kernel, Defect> {
    let was_valid = of.verifies && verify(&kernel).is_ok();
    let kernel = verified("what nothing reads", was_valid, unread::without_unread(kernel))?;
    // There may be any number of blocks that take tiles in turn.
    let blocks = launch_blocks(of.stages, of.facts)
        .filter(|_| !of.program.is_persistent())
        .map(|size| Expr::from_size(&size))
        .filter(|e| !e.is_unknown());
    let blocks = blocks.as_ref();
    let mut ordered = |kernel, share: fn(&mut Pass<'_>)| match barrier_placement::place(kernel, blocks, earlier, share)
    {
        Some(kernel) => verified("the choice of barriers", was_valid, kernel),
        None => Err(Defect::Plan("accesses of a buffer have no order")),
    };
    let tight = ordered(kernel.clone(), shared_allocation::share)?;
    if tight.shared_map().bytes <= SHARED_BYTES {
        return Ok(tight);
    }
    // What lies where is decided before its barriers are.
    ordered(shared_allocation::share_with_barriers(kernel, blocks), |_| {})
}

/// What a transformation made of a kernel, verified if it `was_valid` before. Emission verifies each kernel once, and
/// may find that threads cannot all come to a barrier as it was scheduled: that is refused.
fn verified(by: &'static str, was_valid: bool, kernel: Kernel) -> Result<Kernel, Defect> {
    let faults = if was_valid { verify(&kernel).err() } else { None };
    match faults.and_then(|faults| faults.into_iter().find(|fault| fault.problem != Problem::NotCollective)) {
        Some(fault) => Err(Defect::Transformed(by, fault)),
        None => Ok(kernel),
    }
}
