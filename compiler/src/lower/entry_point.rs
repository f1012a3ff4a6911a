//! One entry point: what it takes, the loop nests of all stages, and the order of its accesses.

use tilewright_kernel::info::{Argument, ParameterKind, Workspace};

use super::barrier_placement::{Pass, Placement};
use super::nested_stage::Storage;
use super::pipeline::Pipeline;
use super::staging::Copy;
use super::turns::Turns;
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

/// The loop nests of an entry point. Its accesses have no order yet, which [`complete`] gives them.
///
/// # Errors
/// What an earlier room let through although it cannot be built.
pub(super) fn nests(of: Input<'_>, variant: Variant, name: String) -> Result<Kernel, Defect> {
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
    let storage = nested_stage::storage(&mut builder, (stages, roles), variant.staged, first_part);
    let copies = staging::copies(&mut builder, (stages, roles), variant.staged, variant.index);
    let first = Memory { storage, copies };
    let most = roles.iter().map(|role| role.turns).max().unwrap_or(1);
    let memory = (1..most).map(|turn| first.of_turn(&mut builder, of, turn)).collect::<Vec<_>>();
    let memory: Vec<Memory<'_>> = std::iter::once(first).chain(memory).collect();
    let Memory { storage, copies } = &memory[0];
    let turns = roles.iter().enumerate().map(|role| Turns::declare(&mut builder, (stages, storage, copies), role));
    let turns = turns.collect();
    builder.line(0);
    // What comes before needs no memory of other launches.
    if program.is_dependent() {
        builder.grid_dependency_wait();
    }
    let mut nests = Nests { of, variant, memory, turns, first_workspaces };
    if roles.is_empty() {
        nests.lower(&mut builder, None, 0)?;
    } else {
        builder.begin_roles();
        for (at, role) in roles.iter().enumerate() {
            for turn in 0..role.turns {
                builder.begin_role(&role.name, role.range(turn), role.registers);
                nests.lower(&mut builder, Some(at), turn)?;
                builder.end_role();
            }
        }
        builder.end_roles();
    }
    builder.finish().map_err(|_| Defect::Plan("loops and branches do not pair up"))
}

/// An entry point from its nests. `earlier` is where the one before it has its barriers.
///
/// # Errors
/// As [`nests`].
pub(super) fn complete(
    of: Input<'_>,
    variant: Variant,
    nests_of: Kernel,
    earlier: &mut Placement,
) -> Result<Kernel, Defect> {
    let name = nests_of.signature.name.clone();
    let kernel = ordered(of, nests_of, earlier)?;
    if kernel.shared_map().bytes <= SHARED_BYTES {
        return Ok(kernel);
    }
    // One accumulator at a time.
    ordered(of, nests(of, Variant { trip_bytes: 0, ..variant }, name)?, earlier)
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
    /// What lies in shared memory, for each of the units that take tiles in turn.
    memory: Vec<Memory<'a>>,
    /// Whose turn it is, for each role.
    turns: Vec<Turns>,
    /// The first workspace of each stage.
    first_workspaces: Vec<u16>,
}

/// What a kernel has in shared memory.
struct Memory<'a> {
    /// The buffers of each stage.
    storage: Vec<Storage>,
    /// The staged copies of each stage.
    copies: Vec<Vec<Copy<'a>>>,
}

impl<'a> Memory<'a> {
    /// The same for the unit whose turn has a number: what its role alone uses it has for itself.
    fn of_turn(&self, builder: &mut Builder, of: Input<'_>, turn: u32) -> Self {
        let alone = |role: Option<usize>, pipeline: &Pipeline| {
            pipeline.between.is_none() && role.is_some_and(|role| of.roles[role].turns > turn)
        };
        let storage = self.storage.iter().zip(of.stages);
        let storage = storage.map(|(storage, analysed)| match alone(analysed.stage.role, &storage.pipeline) {
            true => storage.again(builder),
            false => storage.clone(),
        });
        let storage = storage.collect();
        let copies = self.copies.iter().map(|copies| {
            let mut one = |copy: &Copy<'a>| match alone(copy.staged.role, &copy.pipeline) {
                true => copy.again(builder),
                false => copy.clone(),
            };
            copies.iter().map(&mut one).collect()
        });
        Self { storage, copies: copies.collect() }
    }
}

impl Nests<'_> {
    /// Lowers all nests for a role; of units that take tiles in turn, for the one with the number `turn`.
    fn lower(&mut self, builder: &mut Builder, role: Option<usize>, turn: u32) -> Result<(), Defect> {
        let Input { program, facts, stages, roles, .. } = self.of;
        let Variant { index, staged, trip_bytes } = self.variant;
        let has_part = |between: Option<&ProducerConsumers>, own: Option<usize>| match (role, between) {
            (Some(role), Some(between)) => between.has(role),
            (role, _) => own == role,
        };
        let in_turn = role.is_some_and(|role| roles[role].turns > 1);
        let Memory { storage, copies } = &mut self.memory[turn as usize];
        for (storage, analysed) in storage.iter_mut().zip(stages) {
            if has_part(storage.pipeline.between.as_ref().map(|b| &b.roles), analysed.stage.role) {
                storage.begin(builder);
            }
        }
        for copy in copies.iter_mut().flatten().filter(|copy| copy.leads()) {
            if has_part(copy.pipeline.between.as_ref().map(|b| &b.roles), copy.staged.role) {
                copy.begin(builder, role, in_turn);
            }
        }
        for copies in &mut *copies {
            for n in 0..copies.len() {
                if let Some(leader) = copies[n].leader {
                    copies[n].pipeline = copies[leader].pipeline.clone();
                }
            }
        }
        let mut turns = role.map(|role| &mut self.turns[role]).filter(|turns| turns.units() > 1);
        turns.iter_mut().for_each(|turns| turns.begin(builder, turn));
        let turns = turns.as_deref();
        let threads = role.map_or(self.of.threads, |role| roles[role].threads());
        let tile = program.is_persistent().then(|| persistent_loop::begin(builder, stages, facts, index));
        let outputs = || stages.iter().enumerate().filter(|(_, s)| s.stage.has_blocks());
        let more_blocks = outputs().count() > 1;
        let (storage, copies, workspaces) = (&*storage, &*copies, &self.first_workspaces[..]);
        let tiles = |builder: &mut Builder, turns: Option<&Turns>, passes: bool| {
            for (at, analysed) in outputs() {
                let is_own = |role| analysed.stage.role == Some(role) && !passes;
                let comes = |role| is_own(role) || role_pipeline::comes(stages, staged, (at, 0), (role, passes));
                if !role.is_none_or(comes) {
                    continue;
                }
                let tile = tile.map(|tile| tile.number);
                let around = stage::Around {
                    threads,
                    role,
                    passes,
                    turns,
                    behind: None,
                    staged,
                    tile,
                    trip_bytes,
                    index,
                    stages,
                    storage,
                    copies,
                    workspaces,
                };
                let frame = stage::Frame { around, more_blocks, instances: &[], staged: &[], target: None, set: &[] };
                turns.inspect(|turns| turns.take(builder, at));
                stage::lower(builder, at, &frame)?;
                turns.inspect(|turns| turns.hand_on(builder, at));
            }
            Ok::<(), Defect>(())
        };
        match tile.zip(turns) {
            Some((tile, turns)) => {
                let is_own = persistent_loop::is_turn(builder, tile, (turn, turns.units()));
                builder.begin_if(is_own);
                turns.begin_tile(builder);
                tiles(builder, Some(turns), false)?;
                turns.end_tile(builder);
                builder.begin_else();
                tiles(builder, None, true)?;
                builder.end_if();
            }
            None => tiles(builder, None, false)?,
        }
        if tile.is_some() {
            persistent_loop::end(builder, copies, role);
        }
        let fetches = |storage: &Storage| {
            storage.pipeline.between.as_ref().is_some_and(|b| b.in_background && Some(b.roles.producer) == role)
        };
        if storage.iter().any(fetches) {
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
