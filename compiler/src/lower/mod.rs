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
use tilewright_theory::side_by_side::both;

use crate::extent::{Expr, Facts};
use crate::kernel_ir::{Kernel, Type};
use crate::plan::Analysed;
use crate::plan::staged::Staged;
use crate::program::Program;
use crate::schedule::{Mma, Role};
use crate::target::SHARED_BYTES_OF_THREAD;

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
    let offsets = index_width::offsets(program, facts);
    // Without tensor cores readers compute the terms of products.
    let has_product = |s: &Analysed| s.stage.product.as_ref().is_some_and(Mma::is_async);
    let is_staged = stages.iter().any(|s| !s.staged.is_empty() || has_product(s));
    let variant = |index, staged| Variant { index, staged, trip_bytes: u64::from(threads) * SHARED_BYTES_OF_THREAD };
    let (narrowest, widest) = (variant(Type::I32, is_staged), variant(Type::I64, false));
    let wide_of = || index_width::wide(program, facts, stages);
    let last_name = format!("{name}_64");
    // While the narrowest one is made, which most often is needed: what it needs; and where sizes have no limit, the
    // entry point for all of them.
    let (first, (limits, wide, last)) = both(
        are_worth_a_thread(stages),
        || entry_point::nests(of, narrowest, name.clone()),
        || {
            let limits = Limits::new(of, &offsets);
            match limits.narrow.as_ref().is_none_or(Vec::is_empty) {
                true => (limits, None, None),
                false => (limits, Some(wide_of()), entry_point::nests(of, widest, last_name.clone()).ok()),
            }
        },
    );
    let Limits { without_offsets, narrow } = limits;
    let first = narrow.as_ref().map(|_| first).transpose()?;
    let (first, mut last, mut placement) = in_order(of, first.zip(Some(narrowest)), last.zip(Some(widest)))?;
    let mut build =
        |name, variant| entry_point::complete(of, variant, entry_point::nests(of, variant, name)?, &mut placement);
    let blocks = stages.iter().filter(|s| s.stage.has_blocks()).map(|s| grid_reduce::most_blocks(&s.stage, facts));
    let blocks = blocks.reduce(|a, b| a.maximum(&b)).unwrap_or_else(|| Expr::constant(1));
    // One with 32-bit indices, if there are sizes for it; whether its indices need no condition.
    let in_32_bits = |kernel: Kernel, staged: bool, narrow: &[Expr], more: &[Constraint]| {
        let own = without_offsets.as_ref().filter(|_| staged).and_then(|needed| {
            let addressed = index_width::addressed(&kernel);
            let offsets = offsets.iter().filter(|(parameter, _)| addressed.contains(parameter));
            let offsets: Vec<Expr> = offsets.flat_map(|(_, offsets)| offsets.iter().cloned()).collect();
            index_width::needed(facts, needed.clone(), &offsets)
        });
        let by_coordinates = own.is_some();
        let own = own.unwrap_or_else(|| narrow.to_vec());
        let needed = index_width::needed(facts, own, &width::needed(&kernel, &blocks))?;
        let mut conditions = index_width::conditions(program, facts, &needed)?;
        if by_coordinates {
            conditions.extend(index_width::reachable(program, facts, stages, &needed)?);
        }
        let is_any = conditions.is_empty();
        Some((is_any, Entry { kernel, conditions: [conditions, more.to_vec()].concat(), staged }))
    };
    // Elsewhere every thread reads the tensor.
    let filled = if is_staged { index_width::filled(program, facts, stages) } else { Vec::new() };
    let mut is_left = true;
    if let (Some(kernel), Some(narrow)) = (first, &narrow)
        && let Some((is_any, entry)) = in_32_bits(kernel, is_staged, narrow, &filled)
    {
        entries.push(entry);
        is_left = !is_any;
    }
    let mut wide = if is_left { wide.unwrap_or_else(wide_of) } else { None };
    // Sizes of 0 are left to 64-bit indices where these are there for all sizes: nobody waits for such a launch.
    let has_all = wide.as_ref().is_some_and(Vec::is_empty);
    if let (Some(narrow), false, false, false) = (&narrow, entries.is_empty(), filled.is_empty(), has_all) {
        let kernel = build(format!("{name}_plain"), variant(Type::I32, false))?;
        let plain = in_32_bits(kernel, false, narrow, &[]);
        is_left = plain.as_ref().is_none_or(|(is_any, _)| !is_any);
        wide = wide.or_else(|| is_left.then(wide_of).flatten());
        entries.extend(plain.map(|(_, entry)| entry));
    }
    // Where no other entry point has the copies, this one does.
    let mut name = last_name;
    if let Some(wide) = &wide
        && is_staged
        && entries.is_empty()
    {
        let reachable = index_width::reachable(program, facts, stages, &[]).ok_or(UNSIZED)?;
        is_left = !filled.is_empty() || !reachable.is_empty();
        let conditions = [filled, reachable, wide.clone()].concat();
        let plain = format!("{name}_plain");
        last = None;
        let kernel = build(std::mem::replace(&mut name, plain), variant(Type::I64, true))?;
        entries.push(Entry { kernel, conditions, staged: true });
    }
    if let Some(conditions) = wide.filter(|_| is_left) {
        let kernel = last.map_or_else(|| build(name, widest), Ok)?;
        entries.push(Entry { kernel, conditions, staged: false });
    }
    Ok(entries)
}

/// Under which conditions on the sizes 32 bits hold every index.
struct Limits {
    /// The conditions where the accelerator accesses a tensor alone, so that no offset of its elements is computed.
    without_offsets: Option<Vec<Expr>>,
    /// The conditions with these offsets; none if there are no such sizes.
    narrow: Option<Vec<Expr>>,
}

impl Limits {
    /// `offsets` are those of each tensor.
    fn new(of: Input<'_>, offsets: &[(u16, Vec<Expr>)]) -> Self {
        let Input { program, facts, stages, .. } = of;
        let mut bounds = index_width::bounds(program, facts, stages);
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
        Self { without_offsets, narrow }
    }
}

/// Whether two entry points take so long that a thread is worth its time: not those of one equation on elements.
fn are_worth_a_thread(stages: &[Analysed]) -> bool {
    stages.len() > 1
}

/// The nests of an entry point, whose accesses have no order yet.
type Unordered = (Kernel, Variant);

/// The narrowest and the widest entry point in order, as far as they are there, and where the last of them has its
/// barriers. Nothing is said of what is wrong with the widest one, which may not be needed.
fn in_order(
    of: Input<'_>,
    first: Option<Unordered>,
    last: Option<Unordered>,
) -> Result<(Option<Kernel>, Option<Kernel>, Placement), Defect> {
    let complete = |nests: Option<Unordered>, placement: &mut Placement| {
        nests.map(|(kernel, variant)| entry_point::complete(of, variant, kernel, placement)).transpose()
    };
    let is_one = first.as_ref().zip(last.as_ref()).is_some_and(|((a, _), (b, _))| barrier_placement::does_as(a, b));
    let mut placement = Placement::default();
    if is_one {
        // What does the same has the same barriers.
        let first = complete(first, &mut placement)?;
        return Ok((first, complete(last, &mut placement).ok().flatten(), placement));
    }
    let (first, last) = both(
        are_worth_a_thread(of.stages),
        || complete(first, &mut Placement::default()),
        || complete(last, &mut placement),
    );
    Ok((first?, last.ok().flatten(), placement))
}
