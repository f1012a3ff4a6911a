//! Bulk copies, and stores to other CTAs of a cluster that complete as they do.

use super::AtomicFn;

/// What a bulk instruction does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BulkFn {
    /// A box of a tensor to shared memory.
    LoadTile,
    /// A tile of shared memory to a tensor.
    StoreTile,
    /// A box of a tensor into a cache: only its operands are checked.
    PrefetchTile,
    /// Consecutive bytes to shared memory.
    Load,
    /// Consecutive bytes to global memory.
    Store,
    /// Consecutive bytes of shared memory to that of another CTA.
    Across,
    /// `st.async`: elements of this many bytes.
    Put(u8),
    /// `red.async`: an operation on an element of this many bytes.
    Reduce(AtomicFn, u8),
}

/// A bulk instruction. Its operands are data slots: address in shared memory, address in global memory or of the tensor
/// map, address of the mbarrier, size in bytes, mask of destinations, then coordinates or data; those that it does not
/// have are `None`. `Across` has its source in the second place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bulk {
    /// What it does.
    pub f: BulkFn,
    /// What is added to the three addresses.
    pub offsets: [i64; 3],
    /// Whether the shared memory is the CTA's own; otherwise any of the cluster's.
    pub own: bool,
}

/// Operands before the coordinates.
pub const BULK_OPERANDS: usize = 5;
