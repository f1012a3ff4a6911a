//! What loads, stores and atomic operations say.

use super::Slot;
use crate::num::float::FloatMode;

/// State space of an access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Space {
    /// Device memory.
    Global,
    /// The CTA's shared memory.
    Shared,
    /// The shared memory of any CTA of the cluster.
    Cluster,
    /// Memory of the thread.
    Local,
    /// Constants of the module.
    Const,
    /// Parameters of the kernel.
    Param,
    /// Told apart by the address.
    Generic,
}

/// An address: a base row and bytes to add.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The base, if any.
    pub base: Option<Slot>,
    /// Bytes to add.
    pub offset: i64,
}

/// How strongly an access is ordered and made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strength {
    /// Ordinary data: races count.
    Weak,
    /// Volatile, relaxed, acquire or release: races only with ordinary accesses. `wide` when its scope is beyond the
    /// CTA; otherwise it is an ordinary access to other CTAs.
    Strong {
        /// See above.
        wide: bool,
    },
    /// Through the read-only cache: nothing may write the data while the kernel runs.
    Constant,
}

impl Strength {
    /// Whether it is strong in any scope.
    pub fn is_strong(self) -> bool {
        matches!(self, Strength::Strong { .. })
    }
}

/// A load or store of 1, 2, 4 or 8 elements a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Where.
    pub space: Space,
    /// Address.
    pub address: Address,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Elements.
    pub count: u8,
    /// Whether narrow loaded elements are sign-extended into their registers.
    pub signed: bool,
    /// Ordering.
    pub strength: Strength,
    /// First of `count` entries in the kernel's list of data slots.
    pub data: u32,
}

impl Access {
    /// Whether a lane accesses one word, and not strongly: the usual case.
    pub fn is_word(&self) -> bool {
        self.bytes == 4 && self.count == 1 && !self.strength.is_strong()
    }
}

/// A fence (PTX manual 8.8, 9.7.13.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fence {
    /// Whether its scope is beyond the CTA.
    pub wide: bool,
    /// Whether another instruction says it.
    pub implied: bool,
    /// Whether what was read before it is ordered before what comes.
    pub acquires: bool,
    /// Whether what came before it is ordered before what is written after it.
    pub releases: bool,
    /// Whether all such fences have one order.
    pub sequential: bool,
}

/// Operation of an atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicFn {
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Integer sum.
    Add,
    /// Float sum.
    AddFloat(FloatMode),
    /// Sum of two packed halves.
    AddPacked(FloatMode),
    /// Minimum.
    Min {
        /// Signed.
        signed: bool,
    },
    /// Maximum.
    Max {
        /// Signed.
        signed: bool,
    },
    /// Minimum or maximum of packed halves.
    ExtremumPacked(FloatMode, bool),
    /// Increment that wraps to 0 at the operand.
    Inc,
    /// Decrement that wraps to the operand at 0 or above it.
    Dec,
    /// Exchange.
    Exch,
    /// Compare and swap.
    Cas,
}

/// Atomic access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Atomic {
    /// Where.
    pub space: Space,
    /// Whether its scope is beyond the CTA.
    pub wide: bool,
    /// Address.
    pub address: Address,
    /// Bytes of an element.
    pub bytes: u8,
    /// Elements.
    pub count: u8,
    /// Operation.
    pub op: AtomicFn,
    /// Whether the old value is returned: the data list holds results, then operands, then swap values.
    pub returns: bool,
    /// First entry in the data list.
    pub data: u32,
}
