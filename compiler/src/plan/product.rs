//! A product that tensor cores compute: its factors in shared memory.

use tilewright_kernel::algorithm::ValueId;
use tilewright_kernel::tensor_map::Swizzle;

/// A `dot` as products of tiles: see [`Mma`](crate::schedule::Mma).
#[derive(Clone, Debug)]
pub struct Product {
    /// The factor with the rows, and the one with the columns.
    pub operands: [Operand; 2],
    /// Columns of an instruction.
    pub columns: u32,
}

impl Product {
    /// Whether a read is one of its factors.
    pub fn reads(&self, read: ValueId) -> bool {
        self.operands.iter().any(|operand| operand.read == read)
    }
}

/// A factor, and how its tiles lie in the copy that holds them.
#[derive(Clone, Debug)]
pub struct Operand {
    /// The tensor.
    pub parameter: u16,
    /// The read of it.
    pub read: ValueId,
    /// The copy, for readers.
    pub copy: String,
    /// Whether neighbours in memory are rows or columns, not terms.
    pub across: bool,
    /// Leading dimension byte offset.
    pub leading: u32,
    /// Stride dimension byte offset.
    pub stride: u32,
    /// How chunks are exchanged.
    pub swizzle: Swizzle,
}
