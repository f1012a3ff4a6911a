//! Value numbering: the same operation on the same operands is the same value.
//!
//! An open-addressing table of our own: the order of its slots never reaches output, and it is fast in the unoptimised
//! builds that procedural macros run in.

use super::super::{Op, Type, ValueId};

/// An operation with its type and operands, as numbers; different operations have different keys.
pub(super) type Key = [u64; 3];

/// Values by key.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    /// Position of an entry plus 1; 0 is free. The length is a power of two.
    slots: Vec<u32>,
    entries: Vec<(Key, ValueId)>,
}

/// The key of an operation.
pub(super) fn key(op: Op, ty: Type) -> Key {
    let ty = match ty {
        Type::I32 => 0,
        Type::I64 => 1,
        Type::Element(element) => 2 + element as u64,
    };
    let pack =
        |tag: u64, sub: u64, a: u32, b: u32, c: u64| [tag << 16 | sub << 8 | ty, u64::from(a) << 32 | u64::from(b), c];
    match op {
        Op::Literal(bits) => pack(0, 0, 0, 0, bits),
        Op::BlockIndex => pack(1, 0, 0, 0, 0),
        Op::ThreadIndex => pack(2, 0, 0, 0, 0),
        Op::Dim(dim) => pack(3, 0, u32::from(dim), 0, 0),
        Op::Scalar(scalar) => pack(4, 0, u32::from(scalar), 0, 0),
        Op::LoopIndex => pack(5, 0, 0, 0, 0),
        Op::Loaded => pack(6, 0, 0, 0, 0),
        Op::Get(variable) => pack(7, 0, variable.0, 0, 0),
        Op::Index(op, a, b) => pack(8, op as u64, a.0, b.0, 0),
        Op::CompareIndex(op, a, b) => pack(9, op as u64, a.0, b.0, 0),
        Op::InRange(a, b) => pack(10, 0, a.0, b.0, 0),
        Op::ConvertIndex(a) => pack(11, 0, a.0, 0, 0),
        Op::Select(a, b, c) => pack(12, 0, a.0, b.0, u64::from(c.0)),
        Op::Unary(op, a) => pack(13, op as u64, a.0, 0, 0),
        Op::Binary(op, a, b) => pack(14, op as u64, a.0, b.0, 0),
        Op::MulHigh(a, b) => pack(15, 0, a.0, b.0, 0),
        Op::Shift(op, a, b) => pack(16, op as u64, a.0, b.0, 0),
        Op::Compare(op, a, b) => pack(17, op as u64, a.0, b.0, 0),
        Op::Fma(a, b, c) => pack(18, 0, a.0, b.0, u64::from(c.0)),
        Op::Cast(a) => pack(19, 0, a.0, 0, 0),
        Op::Bits(a) => pack(20, 0, a.0, 0, 0),
        Op::FromIndex(a) => pack(21, 0, a.0, 0, 0),
        Op::ToIndex(a) => pack(22, 0, a.0, 0, 0),
        Op::Shuffled => pack(23, 0, 0, 0, 0),
        Op::Arrived => pack(24, 0, 0, 0, 0),
        Op::Agreed => pack(25, 0, 0, 0, 0),
        Op::ClusterRank => pack(26, 0, 0, 0, 0),
        Op::BlockCount => pack(27, 0, 0, 0, 0),
        Op::OfWarp(a) => pack(28, 0, a.0, 0, 0),
    }
}

/// Multiplicative hashing; the multiplier is 2⁶⁴ divided by the golden ratio (Knuth, volume 3, 6.4).
fn hash(key: &Key) -> usize {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    // Every value is looked up: no iterators.
    let hash = key[0].wrapping_mul(MULTIPLIER).rotate_left(29);
    let hash = (hash ^ key[1]).wrapping_mul(MULTIPLIER).rotate_left(29);
    let hash = (hash ^ key[2]).wrapping_mul(MULTIPLIER).rotate_left(29);
    (hash ^ hash >> 32) as usize
}

impl Numbering {
    /// The value with this key.
    pub(super) fn get(&self, key: &Key) -> Option<ValueId> {
        if self.slots.is_empty() {
            return None;
        }
        match self.slots[self.slot(key)] {
            0 => None,
            entry => Some(self.entries[entry as usize - 1].1),
        }
    }

    /// Records the value of a key that is not in the table.
    pub(super) fn insert(&mut self, key: Key, value: ValueId) {
        // At most half full, so that probing ends.
        if self.slots.len() <= 2 * self.entries.len() + 2 {
            self.slots = vec![0; (4 * self.entries.len()).next_power_of_two().max(256)];
            for entry in 0..self.entries.len() {
                let slot = self.slot(&self.entries[entry].0);
                self.slots[slot] = entry as u32 + 1;
            }
        }
        let slot = self.slot(&key);
        self.entries.push((key, value));
        self.slots[slot] = self.entries.len() as u32;
    }

    /// Where the key is, or the free slot where it would be.
    fn slot(&self, key: &Key) -> usize {
        let (slots, entries) = (&self.slots[..], &self.entries[..]);
        let mask = slots.len() - 1;
        let mut slot = hash(key) & mask;
        loop {
            let entry = slots[slot] as usize;
            if entry == 0 {
                return slot;
            }
            let own = &entries[entry - 1].0;
            if own[0] == key[0] && own[1] == key[1] && own[2] == key[2] {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }
}
