//! Copies that several blocks of a cluster take together, in a loop nest: which slice a block copies, and to which
//! blocks.
//!
//! ```text
//! sync cluster                    the readers of the last instance are done, in all blocks (`barrier_placement`)
//! elect { expect; copy the own slice to all readers … }
//! await
//! ```
//!
//! The barrier of each block expects all slices. A slice may come before the block has said so: the phase does not end
//! before. That the barrier is in this phase, and the slot read, is what the barrier of the cluster before it says.
//! Roles tell each other without one (`role_pipeline`).

use tilewright_kernel::algorithm::Compare;
use tilewright_sorted::SortedMap;

use super::arithmetic::Emit;
use crate::kernel_ir::{Builder, Range, Receivers, Type, ValueId};
use crate::plan::staged::Multicast;

/// Which of the blocks that take a copy together this one is.
pub(super) fn digit(b: &mut Builder, multicast: &Multicast) -> ValueId {
    let rank = b.cluster_rank();
    multicast.path().of(&mut Emit { b, index: Type::I32 }, &rank)
}

/// The blocks that read what this one copies: a bit for each number in the cluster. See [`Multicast::readers`].
pub(super) fn readers(b: &mut Builder, multicast: &Multicast) -> ValueId {
    let literal = |b: &mut Builder, n: u32| b.index_literal(Type::I32, n.into());
    let groups: SortedMap<u32, u32> =
        (0..multicast.cluster).map(|rank| (multicast.first(rank), multicast.readers(rank))).collect();
    let mut groups = groups.into_iter();
    let Some((_, mask)) = groups.next() else { return literal(b, 1) };
    let mut mask = literal(b, mask);
    if groups.len() == 0 {
        return mask;
    }
    let first = first(b, multicast);
    for (of, readers) in groups {
        let (of, readers) = (literal(b, of), literal(b, readers));
        let is_own = b.index_compare(Compare::Eq, first, of);
        mask = b.select(is_own, readers, mask);
    }
    mask
}

/// The same blocks, as those to whom a barrier is released. See [`Multicast::readers`].
pub(super) fn receivers(b: &mut Builder, multicast: &Multicast) -> Vec<Receivers> {
    if multicast.blocks == multicast.cluster {
        return vec![Receivers::All];
    }
    let first = first(b, multicast);
    let mut one = |n: u32| {
        let further = b.index_literal(Type::I32, (n * multicast.stride).into());
        let rank = b.index_add(first, further);
        b.assume(rank, Range::new(0, i64::from(multicast.cluster) - 1));
        Receivers::One(rank)
    };
    (0..multicast.blocks).map(&mut one).collect()
}

/// Whether this block is the first of those that take a copy together.
pub(super) fn is_first(b: &mut Builder, multicast: &Multicast) -> ValueId {
    let (digit, none) = (digit(b, multicast), b.index_literal(Type::I32, 0));
    b.index_compare(Compare::Eq, digit, none)
}

/// The number of that one.
pub(super) fn first(b: &mut Builder, multicast: &Multicast) -> ValueId {
    if multicast.blocks == multicast.cluster {
        return b.index_literal(Type::I32, 0);
    }
    let (rank, digit) = (b.cluster_rank(), digit(b, multicast));
    let stride = b.index_literal(Type::I32, multicast.stride.into());
    let before = b.index_mul(digit, stride);
    let first = b.index_sub(rank, before);
    b.assume(first, Range::new(0, i64::from(multicast.cluster) - 1));
    first
}
