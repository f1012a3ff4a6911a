//! Operands of decoded instructions: slots of registers, guards, and what comparisons compare.

use crate::lanes::int::{IntCompare, Width};
use crate::num::float::{FloatCompare, FloatType};

/// Index of a row of 32-bit values.
pub type Narrow = u32;
/// Index of a row of 64-bit values.
pub type WideSlot = u32;
/// Index of a predicate mask.
pub type PredSlot = u32;

/// A register slot of any class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Slot {
    /// A predicate.
    Pred(PredSlot),
    /// At most 32 bits.
    Narrow(Narrow),
    /// 64 bits.
    Wide(WideSlot),
}

/// A guard or another predicate operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PredRef {
    /// The predicate.
    pub slot: PredSlot,
    /// Whether it is negated.
    pub negated: bool,
}

/// Boolean combination of a comparison with a predicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Logic {
    /// Conjunction.
    And,
    /// Disjunction.
    Or,
    /// Exclusive or.
    Xor,
}

impl Logic {
    /// On masks.
    pub fn apply(self, a: u32, b: u32) -> u32 {
        match self {
            Logic::And => a & b,
            Logic::Or => a | b,
            Logic::Xor => a ^ b,
        }
    }
}

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// Integers of at most 32 bits.
    Int(IntCompare, Width),
    /// Floats of at most 32 bits.
    Float(FloatCompare, FloatType, bool),
    /// 64-bit integers.
    WideInt(IntCompare),
    /// Doubles.
    WideFloat(FloatCompare),
}
