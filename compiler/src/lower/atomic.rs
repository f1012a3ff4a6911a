//! States of a reduction as words that blocks combine by atomic operations, in any order.
//!
//! A word of zero is that of no terms, so that memory that is zero is ready:
//!
//! | reduction | word | combined by |
//! | --- | --- | --- |
//! | `sum` | the sum, in at least 32 bits | `add` |
//! | `any` | 1 for true | `or` |
//! | `all` | 1 for false | `or` |
//! | `max` | the rank of the value | `max` |
//! | `min` | its complement | `max` |
//! | `argmax`, `argmin` | the same in the high half, the complement of the index in the low half | `max` |
//!
//! The rank of an unsigned number is itself, that of a signed one has its highest bit flipped; that of a float is its
//! bits with the highest one set where it is positive, and the complement of its bits where it is negative: it grows
//! with the value, and −0 is below +0. NaN has the greatest word in either direction.

use tilewright_kernel::ElementType::{self, F32, F64, I32, I64, U32, U64};
use tilewright_kernel::algorithm::{Binary, Compare, Reduction};

use crate::kernel_ir::{AtomicOp, Builder, Shift, UnaryOp, ValueId};
use crate::schedule::atomic_word;

/// How a reduction's states are words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    op: Reduction,
    /// Type of the values that are reduced.
    element: ElementType,
    /// Type of the word.
    pub word: ElementType,
}

impl Word {
    /// That of a reduction of such values; none if it has no word.
    pub(super) fn of(op: Reduction, element: ElementType) -> Option<Self> {
        Some(Self { op, element, word: atomic_word(op, element)? })
    }

    /// How two words are combined.
    pub(super) const fn update(self) -> AtomicOp {
        match self.op {
            Reduction::Sum | Reduction::Prod => AtomicOp::Add,
            Reduction::All | Reduction::Any => AtomicOp::Or,
            _ => AtomicOp::Max,
        }
    }

    const fn is_reversed(self) -> bool {
        matches!(self.op, Reduction::Min | Reduction::ArgMin)
    }

    /// The type of ranks: unsigned, and what a value is converted to first.
    fn rank_types(self) -> (ElementType, ElementType) {
        let wide = self.element.bytes() == 8;
        let rank = if wide { U64 } else { U32 };
        let value = match (self.element.is_float(), self.element.is_signed_integer(), wide) {
            (true, _, false) => F32,
            (true, _, true) => F64,
            (_, true, false) => I32,
            (_, true, true) => I64,
            _ => rank,
        };
        (rank, value)
    }

    /// The word of states as [`super::value::Accumulator::variables`] are.
    pub(super) fn encode(self, b: &mut Builder, states: &[ValueId]) -> ValueId {
        let value = states[0];
        match self.op {
            Reduction::Sum | Reduction::Prod => b.cast(value, self.word),
            Reduction::Any | Reduction::All => {
                let (one, zero) = (b.literal(self.word, 1), b.literal(self.word, 0));
                if self.op == Reduction::Any { b.select(value, one, zero) } else { b.select(value, zero, one) }
            }
            Reduction::Max | Reduction::Min => self.rank(b, value),
            Reduction::ArgMax | Reduction::ArgMin => {
                let [value, index, found] = states else { return value };
                let rank = self.rank(b, *value);
                let (high, index) = (b.cast(rank, U64), b.unary(UnaryOp::Not, *index));
                let (low, by) = (b.cast(index, U64), b.literal(U32, 32));
                let high = b.shift(Shift::Left, high, by);
                let (word, none) = (b.binary(Binary::Or, high, low), b.literal(U64, 0));
                b.select(*found, word, none)
            }
        }
    }

    /// The states of a word that blocks have combined.
    pub(super) fn decode(self, b: &mut Builder, word: ValueId) -> Vec<ValueId> {
        match self.op {
            Reduction::Sum | Reduction::Prod => vec![b.cast(word, self.element)],
            Reduction::Any | Reduction::All => {
                let zero = b.literal(self.word, 0);
                let compare = if self.op == Reduction::Any { Compare::Ne } else { Compare::Eq };
                vec![b.compare(compare, word, zero)]
            }
            Reduction::Max | Reduction::Min => vec![self.value(b, word)],
            Reduction::ArgMax | Reduction::ArgMin => {
                let by = b.literal(U32, 32);
                let high = b.shift(Shift::Right, word, by);
                let (rank, low) = (b.cast(high, U32), b.cast(word, U32));
                let (value, index, found) = (self.value(b, rank), b.unary(UnaryOp::Not, low), b.bool_literal(true));
                vec![value, index, found]
            }
        }
    }

    /// The rank of a value, reversed for a minimum.
    fn rank(self, b: &mut Builder, value: ValueId) -> ValueId {
        let (rank, wide) = self.rank_types();
        let mut value = b.cast(value, wide);
        if self.element.is_float() && matches!(self.op, Reduction::ArgMax | Reduction::ArgMin) {
            // Zeros are equal, and the first one counts.
            let zero = b.literal(wide, 0);
            let is_zero = b.compare(Compare::Eq, value, zero);
            value = b.select(is_zero, zero, value);
        }
        let bits = b.bits(value, rank);
        let top = b.literal(rank, 1 << (8 * rank.bytes() - 1));
        let ranked = match (self.element.is_float(), self.element.is_signed_integer()) {
            (true, _) => {
                let (negative, other) = (b.unary(UnaryOp::Not, bits), b.binary(Binary::Or, bits, top));
                let is_negative = b.compare(Compare::Ge, bits, top);
                b.select(is_negative, negative, other)
            }
            (_, true) => b.binary(Binary::Xor, bits, top),
            _ => bits,
        };
        let ranked = if self.is_reversed() { b.unary(UnaryOp::Not, ranked) } else { ranked };
        if !self.element.is_float() {
            return ranked;
        }
        let (is_nan, most) = (b.compare(Compare::Ne, value, value), b.literal(rank, u64::MAX));
        b.select(is_nan, most, ranked)
    }

    /// The value with a rank.
    fn value(self, b: &mut Builder, ranked: ValueId) -> ValueId {
        let (rank, wide) = self.rank_types();
        let own = if self.is_reversed() { b.unary(UnaryOp::Not, ranked) } else { ranked };
        let top = b.literal(rank, 1 << (8 * rank.bytes() - 1));
        let bits = match (self.element.is_float(), self.element.is_signed_integer()) {
            (true, _) => {
                let (negative, other) = (b.unary(UnaryOp::Not, own), b.binary(Binary::Xor, own, top));
                let is_positive = b.compare(Compare::Ge, own, top);
                b.select(is_positive, other, negative)
            }
            (_, true) => b.binary(Binary::Xor, own, top),
            _ => own,
        };
        let value = b.bits(bits, wide);
        b.cast(value, self.element)
    }
}
