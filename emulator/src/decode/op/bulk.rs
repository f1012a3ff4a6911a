//! Bulk copies.

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
}

/// A bulk instruction. Its operands are data slots: address in shared memory, address in global memory or of the tensor map, address of the mbarrier,
/// size in bytes, coordinates; those that it does not have are `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bulk {
    /// What it does.
    pub f: BulkFn,
    /// What is added to the three addresses.
    pub offsets: [i64; 3],
}

/// Operands before the coordinates.
pub const BULK_OPERANDS: usize = 4;
