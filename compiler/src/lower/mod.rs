//! From the analysed program to PTX: domains and algorithm → `kernel_ir` → instructions.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `stage` | the loop nest of one stage: units, loops, predicates, stores |
//! | `value` | values of the algorithm as instructions |
//! | `nested_stage` | stages inside the loops of others: where an instance is computed, how it is read |
//! | `staging`, `tma_pipeline` | staged copies: buffers and barriers; where a nest starts, awaits and ends them |
//! | `cp_async_pipeline` | copies by `cp.async`, which run ahead |
//! | `multicast` | copies that several blocks take together |
//! | `pipeline` | the slots of a buffer and their phases: acquire, commit, wait, release |
//! | `role_pipeline` | what roles hand to each other |
//! | `persistent_loop` | the loop of a persistent launch |
//! | `cta_reduce`, `cluster_reduce`, `grid_reduce`, `atomic` | reductions: of a block, of a cluster, across blocks, by atomic operations |
//! | `workspace` | stages in global memory: the part of each block |
//! | `terms`, `guards`, `dependence` | values and conditions as expressions; which exclude each other; who accesses what |
//! | `barrier_elimination`, `pending_accesses` | which barriers are needed, from what happened since the last one |
//! | `shared_allocation` | which buffers lie in the same memory |
//! | `index_width`, `width` | when 32-bit indices are enough |
//! | `unread` | components that nothing reads are not written |
//! | `emit` | `kernel_ir` to PTX |
//! | `defect` | what cannot be built: our own bug |

mod atomic;
mod barrier_elimination;
mod cluster_reduce;
mod cp_async_pipeline;
mod cta_reduce;
mod defect;
mod dependence;
pub mod emit;
mod grid_reduce;
mod guards;
mod index_width;
mod multicast;
pub(crate) mod nested_stage;
mod pending_accesses;
mod persistent_loop;
mod pipeline;
pub(crate) mod role_pipeline;
mod shared_allocation;
mod stage;
mod staging;
mod terms;
mod tma_pipeline;
mod unread;
mod value;
mod width;
mod workspace;

pub use defect::Defect;
pub use grid_reduce::blocks;
use tilewright_kernel::info::Workspace;
use tilewright_kernel::info::{Argument, ParameterKind};
use tilewright_kernel::size::{Constraint, Size, SizeOp};

use crate::extent::{Expr, Facts};
use crate::kernel_ir::{self, Builder, Kernel, Range, Signature, Type, verify};
use crate::plan::Analysed;
use crate::plan::roles::ProducerConsumers;
use crate::plan::staged::Staged;
use crate::program::Program;
use crate::schedule::Role;
use crate::target::{SHARED_BYTES, SHARED_BYTES_OF_THREAD};

/// An entry point and when it is correct.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The program.
    pub kernel: Kernel,
    /// Its conditions; none for the last entry point.
    pub conditions: Vec<Constraint>,
    /// Whether copies are staged.
    pub staged: bool,
}

/// Blocks of a launch: as many as the output with the most has; none if they cannot be written down.
pub fn launch_blocks(stages: &[Analysed], facts: &Facts) -> Option<Size> {
    let outer = stages.iter().filter(|s| s.stage.has_blocks());
    let blocks = outer.map(|s| blocks(&s.stage, facts)).collect::<Option<Vec<_>>>()?;
    blocks.into_iter().reduce(|a, b| Size::binary(SizeOp::Max, &a, &b))
}

/// The memory that a launch provides: what blocks share of reductions, then the buffers of blocks. None if a size
/// cannot be written down.
pub fn workspaces(stages: &[Analysed], facts: &Facts) -> Option<Vec<Workspace>> {
    let mut all = grid_reduce::workspaces(stages.iter().map(|s| &s.stage), facts)?.concat();
    all.extend(workspace::workspaces(stages, facts)?);
    Some(all)
}

/// What each `.param` receives, the same for every entry point.
pub fn arguments(program: &Program, workspaces: usize, maps: usize) -> Vec<Argument> {
    let parameters = program.parameters.iter().enumerate().map(|(p, parameter)| match parameter.kind {
        ParameterKind::Scalar => Argument::Scalar(p as u16),
        ParameterKind::Tensor(_) => Argument::Address(p as u16),
    });
    let dims = (0..program.dims.len()).map(|d| Argument::Dim(d as u16));
    let workspaces = (0..workspaces).map(|w| Argument::Workspace(w as u16));
    parameters.chain(dims).chain(workspaces).chain((0..maps).map(|m| Argument::Map(m as u16))).collect()
}

/// Of what is missing where a workspace or a condition has no size.
const UNSIZED: Defect = Defect::Plan("a size cannot be written down");

/// The entry points of a kernel, narrowest first.
///
/// # Errors
/// What an earlier room let through although it cannot be built: a defect of the compiler.
pub fn lower(
    program: &Program,
    facts: &Facts,
    stages: &[Analysed],
    (threads, roles): (u32, &[Role]),
) -> Result<Vec<Entry>, Defect> {
    let name = &program.name.text;
    let mut entries = Vec::new();
    let bounds = index_width::bounds(program, facts, stages);
    let is_narrow = index_width::conditions(program, facts, &bounds).is_some();
    let is_staged = stages.iter().any(|s| !s.staged.is_empty());
    let build = |name: String, index: Type, staged: bool| {
        let entry =
            |trip_bytes| entry(program, facts, (stages, roles), threads, name.clone(), index, (staged, trip_bytes));
        let mut kernel = entry(u64::from(threads) * SHARED_BYTES_OF_THREAD)?;
        if kernel.shared_map().bytes > SHARED_BYTES {
            // One accumulator at a time.
            kernel = entry(0)?;
        }
        Ok::<Kernel, Defect>(kernel)
    };
    let blocks = stages.iter().filter(|s| s.stage.has_blocks()).map(|s| grid_reduce::most_blocks(&s.stage, facts));
    let blocks = blocks.reduce(|a, b| a.maximum(&b)).unwrap_or_else(|| Expr::constant(1));
    // One with 32-bit indices, if there are sizes for it; whether its indices need no condition.
    let in_32_bits = |name: String, staged: bool, more: &[Constraint]| {
        let kernel = build(name, Type::I32, staged)?;
        let all = [bounds.clone(), width::needed(&kernel, &blocks)].concat();
        let conditions = index_width::conditions(program, facts, &all);
        let entry = conditions.map(|conditions| (conditions.is_empty(), [conditions, more.to_vec()].concat()));
        Ok::<_, Defect>(entry.map(|(is_any, conditions)| (is_any, Entry { kernel, conditions, staged })))
    };
    // Elsewhere every thread reads the tensor.
    let filled = if is_staged { index_width::filled(program, facts, stages) } else { Vec::new() };
    let first = if is_narrow { in_32_bits(name.clone(), is_staged, &filled)? } else { None };
    let mut is_left = true;
    if let Some((is_any, entry)) = first {
        entries.push(entry);
        is_left = !is_any;
        if !filled.is_empty() {
            let plain = in_32_bits(format!("{name}_plain"), false, &[])?;
            is_left = plain.as_ref().is_none_or(|(is_any, _)| !is_any);
            entries.extend(plain.map(|(_, entry)| entry));
        }
    }
    let mut last = format!("{name}_64");
    // Where no other entry point has the copies, this one does.
    if is_staged && entries.is_empty() {
        let reachable = index_width::reachable(program, facts, stages).ok_or(UNSIZED)?;
        let conditions = [filled, reachable].concat();
        is_left = !conditions.is_empty();
        let plain = format!("{last}_plain");
        let kernel = build(std::mem::replace(&mut last, plain), Type::I64, true)?;
        entries.push(Entry { kernel, conditions, staged: true });
    }
    if is_left {
        let kernel = build(last, Type::I64, false)?;
        entries.push(Entry { kernel, conditions: Vec::new(), staged: false });
    }
    Ok(entries)
}

/// What a transformation made of a kernel, verified in debug builds if it `was_valid` before. Emission verifies each
/// kernel once, and may find that threads cannot all come to a barrier as it was scheduled.
fn verified(by: &'static str, was_valid: bool, kernel: Kernel) -> Result<Kernel, Defect> {
    let faults = if was_valid { verify(&kernel).err() } else { None };
    match faults.and_then(|faults| faults.into_iter().next()) {
        Some(fault) => Err(Defect::Transformed(by, fault)),
        None => Ok(kernel),
    }
}

fn entry(
    program: &Program,
    facts: &Facts,
    (stages, roles): (&[Analysed], &[Role]),
    threads: u32,
    name: String,
    index: Type,
    (staged, trip_bytes): (bool, u64),
) -> Result<Kernel, Defect> {
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
        // Zero extents reach the kernel too, whatever the facts say of sizes of at least 1.
        let low = facts.lower_bound(&e).map_or(0, clamp).min(0);
        let most = if index == Type::I32 { index_width::LIMIT } else { i64::MAX };
        let high = facts.upper_bound(&e).map_or(most, clamp).min(most);
        kernel_ir::Dimension { name: dim.name.to_string(), range: Range::new(low, high.max(low)) }
    });
    let map = |staged: &Staged| kernel_ir::Map { name: staged.name.clone(), rank: staged.axes.len() as u32 };
    let copies = stages.iter().filter(|_| staged).flat_map(|s| &s.staged).filter(|s| s.has_map());
    let maps: Vec<kernel_ir::Map> = copies.map(map).collect();
    let of_stages = grid_reduce::workspaces(stages.iter().map(|s| &s.stage), facts).ok_or(UNSIZED)?;
    let counts = of_stages.iter().map(|own| own.len() as u16);
    let first_of = |sum: &mut u16, count| Some(std::mem::replace(sum, *sum + count));
    let first_workspaces: Vec<u16> = counts.scan(0, first_of).collect();
    let first_part = of_stages.iter().map(|own| own.len() as u16).sum();
    let workspaces = workspaces(stages, facts).ok_or(UNSIZED)?;
    let signature = Signature {
        name,
        parameters: parameters.collect(),
        dims: dims.collect(),
        arguments: arguments(program, workspaces.len(), maps.len()),
        maps,
        threads,
        cluster: stages.first().map_or(1, |s| s.stage.distribution.cluster),
    };
    let mut builder = Builder::new(signature);
    for workspace in workspaces {
        let (name, element, zeroed) = (workspace.name.to_string(), workspace.element, workspace.zeroed);
        builder.workspace(kernel_ir::Workspace { name, element, zeroed });
    }
    let mut storage = nested_stage::storage(&mut builder, (stages, roles), first_part);
    let mut copies = staging::copies(&mut builder, (stages, roles), staged, index);
    // What follows sees that the barriers of copies are ready.
    builder.line(0);
    let copied = || stages.iter().flat_map(|s| &s.staged).filter(|copy| staged && copy.barriers() > 0);
    let are_copied_to_all = copied().any(|copy| copy.multicast.is_some());
    // Where blocks combine something in a loop, this one is in place of one in the loop. Roles declare the barriers
    // where they meet on their way.
    if are_copied_to_all || stages.iter().any(|s| s.stage.across_ctas()) {
        builder.barrier_cluster();
    } else if !builder.kernel().barriers.is_empty() {
        builder.bar_sync();
    }
    // What comes before needs no memory of other launches.
    if program.is_dependent() {
        builder.grid_dependency_wait();
    }
    let outer = || stages.iter().filter(|s| s.stage.has_blocks());
    let more_blocks = outer().count() > 1;
    let mut nests = |builder: &mut Builder, role: Option<usize>| {
        let has_part = |between: Option<&ProducerConsumers>, own: Option<usize>| match (role, between) {
            (Some(role), Some(between)) => between.has(role),
            (role, _) => own == role,
        };
        for (storage, analysed) in storage.iter_mut().zip(stages) {
            if has_part(storage.pipeline.between.as_ref().map(|b| &b.roles), analysed.stage.role) {
                storage.begin(builder);
            }
        }
        for copy in copies.iter_mut().flatten() {
            if has_part(copy.pipeline.between.as_ref().map(|b| &b.roles), copy.staged.role) {
                copy.begin(builder, role);
            }
        }
        let workspaces = &first_workspaces;
        let threads = role.map_or(threads, |role| roles[role].threads());
        let tile = program.is_persistent().then(|| persistent_loop::begin(builder, stages, facts, index));
        for (at, analysed) in stages.iter().enumerate().filter(|(_, s)| s.stage.has_blocks()) {
            let comes = |role| analysed.stage.role == Some(role) || role_pipeline::comes(stages, staged, (at, 0), role);
            if !role.is_none_or(comes) {
                continue;
            }
            let (storage, copies) = (&storage, &copies);
            let around =
                stage::Around { threads, role, staged, tile, trip_bytes, index, stages, storage, copies, workspaces };
            let frame = stage::Frame { around, more_blocks, instances: &[], staged: &[], target: None, set: &[] };
            stage::lower(builder, at, &frame)?;
        }
        if tile.is_some() {
            persistent_loop::end(builder, &copies, role);
        }
        let fetches = |storage: &nested_stage::Storage| {
            storage.pipeline.between.as_ref().is_some_and(|b| b.in_background && Some(b.roles.producer) == role)
        };
        if storage.iter().any(fetches) {
            // Threads end when their fetches have.
            builder.cp_async_commit_group();
            builder.cp_async_wait_group(0);
        }
        Ok::<(), Defect>(())
    };
    if roles.is_empty() {
        nests(&mut builder, None)?;
    } else {
        builder.begin_roles();
        for (at, role) in roles.iter().enumerate() {
            builder.begin_role(&role.name, role.range(), role.registers);
            nests(&mut builder, Some(at))?;
            builder.end_role();
        }
        builder.end_roles();
        // Until all blocks have been told what others had to tell them, they are there.
        if are_copied_to_all {
            builder.barrier_cluster();
        }
    }
    let kernel = builder.finish().map_err(|_| Defect::Plan("loops and branches do not pair up"))?;
    let was_valid = cfg!(debug_assertions) && verify(&kernel).is_ok();
    let kernel = verified("what nothing reads", was_valid, unread::without_unread(kernel))?;
    // Memory is shared where that costs no barrier; more of it if there is too little otherwise.
    // There may be any number of blocks that take tiles in turn.
    let blocks = launch_blocks(stages, facts)
        .filter(|_| !program.is_persistent())
        .map(|size| Expr::from_size(&size))
        .filter(|e| !e.is_unknown());
    let blocks = blocks.as_ref();
    let ordered = |kernel| match barrier_elimination::minimise(kernel, blocks) {
        Some(kernel) => verified("the choice of barriers", was_valid, kernel),
        None => Err(Defect::Plan("accesses of a buffer have no order")),
    };
    let tight = shared_allocation::share(ordered(kernel.clone())?, blocks);
    if tight.shared_map().bytes <= SHARED_BYTES {
        return Ok(tight);
    }
    ordered(shared_allocation::share(kernel, blocks))
}
