//! From the analysed program to PTX: domains and algorithm → `kernel_ir` → instructions.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `entry_point` | one entry point: its signature, the nests of all stages, the order of its accesses |
//! | `stage` | the loop nest of one stage: units, loops, predicates, stores |
//! | `value`, `arithmetic` | values of the algorithm as instructions; index maps and layouts as instructions |
//! | `nested_stage` | stages inside the loops of others: where an instance is computed, how it is read |
//! | `staging`, `tma_pipeline` | staged copies: buffers and barriers; where a nest starts, awaits and ends them |
//! | `cp_async_pipeline` | copies by `cp.async`, which run ahead |
//! | `product`, `matrices` | products of tiles by tensor cores; matrices that warps load and store |
//! | `behind` | products that are a block behind in a pass over blocks of terms |
//! | `multicast` | copies that several blocks take together |
//! | `pipeline` | the slots of a buffer and their phases: acquire, commit, wait, release |
//! | `role_pipeline` | what roles hand to each other |
//! | `persistent_loop` | the loop of a persistent launch |
//! | `turns` | units of a role that take tiles in turn |
//! | `cta_reduce`, `cluster_reduce`, `grid_reduce`, `atomic` | reductions: of a block, of a cluster, across blocks, by atomic operations |
//! | `workspace` | stages in global memory: the part of each block |
//! | `terms`, `guards`, `dependence` | values and conditions as expressions; which exclude each other; who accesses what |
//! | `barrier_placement`, `pending_accesses` | where threads wait for each other, from what happened since the last barrier |
//! | `shared_allocation` | which buffers lie in the same memory |
//! | `index_width`, `width` | when 32-bit indices are enough |
//! | `unread` | components that nothing reads are not written |
//! | `defect` | what cannot be built: our own bug |

mod arithmetic;
mod atomic;
mod barrier_placement;
mod behind;
mod cluster_reduce;
mod cp_async_pipeline;
mod cta_reduce;
mod defect;
mod dependence;
mod entry_point;
mod grid_reduce;
mod guards;
mod index_width;
mod matrices;
mod multicast;
pub(crate) mod nested_stage;
mod pending_accesses;
mod persistent_loop;
mod pipeline;
mod product;
pub(crate) mod role_pipeline;
mod shared_allocation;
mod stage;
mod staging;
mod terms;
mod tma_pipeline;
mod turns;
mod unread;
mod value;
mod width;
mod workspace;

use barrier_placement::Placement;
pub use defect::Defect;
use entry_point::{Input, Variant};
pub use grid_reduce::blocks;
use tilewright_kernel::info::{Argument, ParameterKind, Workspace};
use tilewright_kernel::size::{Constraint, Size, SizeOp};
use tilewright_kernel::tensor_map::ENCODED_BYTES;

use crate::extent::{Expr, Facts};
use crate::kernel_ir::{Kernel, Type};
use crate::plan::Analysed;
use crate::plan::staged::Staged;
use crate::program::Program;
use crate::schedule::{Mma, Role};
use crate::target::{SHARED_BYTES, SHARED_BYTES_OF_THREAD};

/// An entry point and when it is correct.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The program.
    pub kernel: Kernel,
    /// Its conditions.
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

/// Bytes that parameters take at most: a word for each that is no map, and the maps after them at their alignment.
pub fn parameter_bytes(arguments: &[Argument]) -> u64 {
    let maps = arguments.iter().filter(|argument| matches!(argument, Argument::Map(_))).count() as u64;
    let words = 8 * (arguments.len() as u64 - maps);
    if maps == 0 { words } else { words.next_multiple_of(64) + ENCODED_BYTES as u64 * maps }
}

/// Of what is missing where a workspace or a condition has no size.
const UNSIZED: Defect = Defect::Plan("a size cannot be written down");

/// The entry points of a kernel, narrowest first; none if its index arithmetic leaves 64 bits for all sizes. What each
/// transformation makes is verified if `verifies`.
///
/// # Errors
/// What an earlier room let through although it cannot be built: a defect of the compiler.
pub fn lower(
    program: &Program,
    facts: &Facts,
    stages: &[Analysed],
    (threads, roles): (u32, &[Role]),
    verifies: bool,
) -> Result<Vec<Entry>, Defect> {
    let of = Input { program, facts, stages, roles, threads, verifies };
    let name = &program.name.text;
    let mut entries = Vec::new();
    let mut bounds = index_width::bounds(program, facts, stages);
    // Where the accelerator accesses a tensor alone, no offset of its elements is computed.
    let offsets = index_width::offsets(program, facts);
    let has_maps = stages.iter().flat_map(|s| &s.staged).any(Staged::has_map);
    let without_offsets = if has_maps { index_width::needed(facts, Vec::new(), &bounds) } else { None };
    if without_offsets.is_some() {
        bounds.clear();
    }
    for offset in offsets.iter().flat_map(|(_, offsets)| offsets) {
        // Tensors of one shape say the same.
        if !bounds.contains(offset) {
            bounds.push(offset.clone());
        }
    }
    let narrow = index_width::needed(facts, without_offsets.clone().unwrap_or_default(), &bounds);
    let narrow = narrow.filter(|needed| needed.iter().all(|e| e.to_size(facts.dims()).is_some()));
    // Without tensor cores readers compute the terms of products.
    let has_product = |s: &Analysed| s.stage.product.as_ref().is_some_and(Mma::is_async);
    let is_staged = stages.iter().any(|s| !s.staged.is_empty() || has_product(s));
    let mut placement = Placement::default();
    let mut build = |name: String, index: Type, staged: bool| {
        let mut entry = |trip_bytes| {
            let variant = Variant { index, staged, trip_bytes };
            entry_point::entry(of, variant, name.clone(), &mut placement)
        };
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
    let mut in_32_bits = |name: String, staged: bool, narrow: &[Expr], more: &[Constraint]| {
        let kernel = build(name, Type::I32, staged)?;
        let own = without_offsets.as_ref().filter(|_| staged).and_then(|needed| {
            let addressed = index_width::addressed(&kernel);
            let offsets = offsets.iter().filter(|(parameter, _)| addressed.contains(parameter));
            let offsets: Vec<Expr> = offsets.flat_map(|(_, offsets)| offsets.iter().cloned()).collect();
            index_width::needed(facts, needed.clone(), &offsets)
        });
        let by_coordinates = own.is_some();
        let own = own.unwrap_or_else(|| narrow.to_vec());
        let needed = index_width::needed(facts, own, &width::needed(&kernel, &blocks));
        let conditions = needed.and_then(|needed| {
            let mut conditions = index_width::conditions(program, facts, &needed)?;
            if by_coordinates {
                conditions.extend(index_width::reachable(program, facts, stages, &needed)?);
            }
            Some(conditions)
        });
        let entry = conditions.map(|conditions| (conditions.is_empty(), [conditions, more.to_vec()].concat()));
        Ok::<_, Defect>(entry.map(|(is_any, conditions)| (is_any, Entry { kernel, conditions, staged })))
    };
    // Elsewhere every thread reads the tensor.
    let filled = if is_staged { index_width::filled(program, facts, stages) } else { Vec::new() };
    let first = match &narrow {
        Some(narrow) => in_32_bits(name.clone(), is_staged, narrow, &filled)?,
        None => None,
    };
    let mut is_left = true;
    if let Some((is_any, entry)) = first {
        entries.push(entry);
        is_left = !is_any;
    }
    let wide_of = || index_width::wide(program, facts, stages);
    let mut wide = if is_left { wide_of() } else { None };
    // Sizes of 0 are left to 64-bit indices where these are there for all sizes: nobody waits for such a launch.
    let has_all = wide.as_ref().is_some_and(Vec::is_empty);
    if let (Some(narrow), false, false, false) = (&narrow, entries.is_empty(), filled.is_empty(), has_all) {
        let plain = in_32_bits(format!("{name}_plain"), false, narrow, &[])?;
        is_left = plain.as_ref().is_none_or(|(is_any, _)| !is_any);
        wide = wide.or_else(|| is_left.then(wide_of).flatten());
        entries.extend(plain.map(|(_, entry)| entry));
    }
    let mut last = format!("{name}_64");
    // Where no other entry point has the copies, this one does.
    if let Some(wide) = &wide
        && is_staged
        && entries.is_empty()
    {
        let reachable = index_width::reachable(program, facts, stages, &[]).ok_or(UNSIZED)?;
        is_left = !filled.is_empty() || !reachable.is_empty();
        let conditions = [filled, reachable, wide.clone()].concat();
        let plain = format!("{last}_plain");
        let kernel = build(std::mem::replace(&mut last, plain), Type::I64, true)?;
        entries.push(Entry { kernel, conditions, staged: true });
    }
    if let Some(conditions) = wide.filter(|_| is_left) {
        let kernel = build(last, Type::I64, false)?;
        entries.push(Entry { kernel, conditions, staged: false });
    }
    Ok(entries)
}
