//! The loop of a persistent launch: blocks take the iterations of the grid, its tiles, in turn.
//!
//! ```text
//! first = number of the cluster; step = number of clusters
//! for n in 0..⌊(tiles − 1 − first) / step⌋ + 1 { tile first + n · step }
//! ```
//!
//! **Property.** Of c clusters, c ≥ 1, the one with the number f takes the tiles below the number of tiles that are f
//! modulo c: each tile is taken once, whatever c is. All blocks of a cluster come to each iteration, and all threads of
//! a block. **Formula.** For f ≥ `tiles` the quotient, rounded down, is −1 at most: no iteration. Nothing is larger
//! than the number of tiles or of clusters, which fit 31 bits.
//!
//! To what is inside, it is a loop like others: what a tile leaves in shared memory is read before the next one writes
//! it (`barrier_placement`), slots of rings and phases of barriers are variables of the kernel that go on where they
//! stopped, and variables of accumulators are declared anew.
//!
//! Nothing may be concluded from a block's number there, nor from how many blocks there are. What belongs to a block
//! and not to a tile, like its part of a workspace, goes by the number of the block, which is never above that of its
//! tile.

use tilewright_kernel::algorithm::Compare;

use super::grid_reduce::clusters;
use super::staging::Copy;
use crate::extent::Facts;
use crate::kernel_ir::{Builder, Range, Type, ValueId};
use crate::plan::Analysed;
use crate::plan::staged::Way;

/// A tile's number is below this, as that of a block is.
const MOST_TILES: i64 = i32::MAX as i64;

/// The tile at hand.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    /// Its number, an `I32`.
    pub number: ValueId,
    /// How many the block took before it.
    before: ValueId,
}

/// Opens the loop over the tiles of all outputs.
pub(super) fn begin(b: &mut Builder, stages: &[Analysed], facts: &Facts, index: Type) -> Tile {
    let outputs = stages.iter().map(|s| &s.stage).filter(|stage| stage.has_blocks());
    let counts: Vec<ValueId> = outputs.map(|stage| clusters(b, stage, facts, index)).collect();
    let zero = b.index_literal(index, 0);
    let tiles = counts.into_iter().reduce(|a, c| b.index_max(a, c)).unwrap_or(zero);
    let tiles = b.index_convert(tiles, Type::I32);
    let [first, step] = own(b);
    let one = b.index_literal(Type::I32, 1);
    let last = b.index_sub(tiles, one);
    let behind = b.index_sub(last, first);
    let turns = b.index_div(behind, step);
    let turns = b.index_add(turns, one);
    let turn = b.begin_rolled_loop(turns);
    let moved = b.index_mul(turn, step);
    let tile = b.index_add(first, moved);
    b.assume(tile, Range::new(0, MOST_TILES - 1));
    b.assume_tile(tile);
    Tile { number: tile, before: turn }
}

/// Whether a tile is that of the unit whose turn is the one with a number, of so many.
pub(super) fn is_turn(b: &mut Builder, tile: Tile, (turn, turns): (u32, u32)) -> ValueId {
    let (turn, turns) = (b.index_literal(Type::I32, turn.into()), b.index_literal(Type::I32, turns.into()));
    let now = b.index_mod(tile.before, turns);
    b.index_compare(Compare::Eq, now, turn)
}

/// The number of the cluster, and of clusters.
fn own(b: &mut Builder) -> [ValueId; 2] {
    let (block, blocks) = (b.block_index(), b.block_count());
    let of_cluster = b.index_literal(Type::I32, b.kernel().signature.cluster.into());
    let (cluster, clusters) = (b.index_div(block, of_cluster), b.index_div(blocks, of_cluster));
    if b.kernel().index_literal(clusters).is_none() {
        b.assume(clusters, Range::new(1, MOST_TILES));
    }
    [cluster, clusters]
}

/// Closes the loop, of a role or of all threads. Shared memory stays until the accelerator has read what rings still
/// hold.
pub(super) fn end(b: &mut Builder, copies: &[Vec<Copy<'_>>], role: Option<usize>) {
    b.end_loop();
    // A store with one buffer has been waited for.
    let of_role = |copy: &&Copy<'_>| copy.staged.role == role;
    if copies.iter().flatten().filter(of_role).any(|copy| copy.staged.way == Way::Store && copy.staged.ring > 1) {
        b.begin_elect();
        b.bulk_wait_group_read(0);
        b.end_elect();
    }
}
