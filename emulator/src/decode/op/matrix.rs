//! Tensor-core instructions: what they say besides their registers, which are entries of the kernel's list of data
//! slots.

use super::{Address, Narrow, Space};
use crate::matrix::Product;

/// `mma`, or `wmma.mma`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mma {
    /// What is computed.
    pub product: Product,
    /// Whether fragments have the layout of `wmma`, and then whether A and B are column-major.
    pub wmma: Option<[bool; 2]>,
    /// First data slot: those of D, A, B, C follow each other.
    pub data: u32,
    /// Number of slots of D, A, B, C.
    pub counts: [u8; 4],
    /// Number of its [`crate::matrix::places::Places`] in the kernel's list.
    pub places: u32,
}

/// `ldmatrix`, `stmatrix`: 8 × 8 matrices of 16-bit elements in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatrixAccess {
    /// Address of a row, for lanes 8q to 8q+7 one of matrix q.
    pub address: Address,
    /// Whether the address is generic.
    pub generic: bool,
    /// Matrices: 1, 2 or 4.
    pub count: u8,
    /// Transposed.
    pub trans: bool,
    /// Whether it stores.
    pub store: bool,
    /// First data slot, one a matrix.
    pub data: u32,
}

/// `wmma.load`, `wmma.store`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FragmentAccess {
    /// Where.
    pub space: Space,
    /// Address of the matrix, the same in every lane.
    pub address: Address,
    /// Elements between rows (columns, if column-major); the matrix's own if none.
    pub stride: Option<Narrow>,
    /// Elements of a row (column) and rows (columns), as they lie in memory.
    pub extents: [u16; 2],
    /// Bits of an element.
    pub bits: u8,
    /// Whether the fragment's order is across that of memory: C and D that are column-major.
    pub across: bool,
    /// Whether it stores.
    pub store: bool,
    /// First data slot.
    pub data: u32,
    /// Registers of a lane.
    pub count: u8,
    /// A row for parts of a register.
    pub scratch: Narrow,
}

/// `wgmma.mma_async`: what does not change from one execution to the next. Its operands are data slots: D, A if that is
/// in registers, then the descriptors of those of A and B that are in shared memory, and whether D is added to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wgmma {
    /// What a warp computes: 16 of the 64 rows.
    pub product: Product,
    /// Registers of D, and of A where that is in registers.
    pub counts: [u8; 2],
    /// Whether the predicate that adds to D is negated.
    pub add_negated: bool,
    /// Whether A and B are negated.
    pub negate: [bool; 2],
    /// Whether A and B are transposed: neighbours along m or n lie together in memory, not those along k.
    pub across: [bool; 2],
    /// Number of its [`crate::matrix::places::Places`] in the kernel's list.
    pub places: u32,
    /// Number in the kernel's list of flows of the first matrix register; there are as many as registers.
    pub registers: u32,
}
