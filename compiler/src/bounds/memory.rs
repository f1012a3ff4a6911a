//! What memory must hold for an index that is read from it to have a given value.

use kernel::algorithm::{Binary, Index, IndexId, Unary, Value, ValueId};
use kernel::format::Format;
use tilewright_kernel as kernel;

use super::interval::{Cell, Interval, Scene, range_of};

/// Whether memory can be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// It can, and the scene holds what it must hold.
    Yes,
    /// It cannot: the same element would have two values, or one that its type does not have.
    No,
    /// How the value comes about is not understood.
    Unknown,
}

impl Settled {
    /// Where only one of several ways was tried.
    fn or_unknown(self) -> Settled {
        if self == Settled::No { Settled::Unknown } else { self }
    }
}

impl Scene<'_> {
    /// Makes an index of single numbers and memory `wanted`, by what memory holds.
    pub fn settle(&mut self, index: IndexId, wanted: i128) -> Settled {
        let known = self.index(index);
        if !known.contains(wanted) {
            return Settled::No;
        }
        if known.as_point().is_some() {
            return Settled::Yes;
        }
        let settled = match self.algorithm.indices.get(index as usize).copied() {
            Some(Index::Value(value)) => self.settle_value(value, wanted),
            Some(Index::Add(a, b)) => match (self.index(a).as_point(), self.index(b).as_point()) {
                (Some(known), _) => self.settle(b, wanted - known),
                (_, Some(known)) => self.settle(a, wanted - known),
                _ => Settled::Unknown,
            },
            Some(Index::Sub(a, b)) => match (self.index(a).as_point(), self.index(b).as_point()) {
                (Some(known), _) => self.settle(b, known - wanted),
                (_, Some(known)) => self.settle(a, wanted + known),
                _ => Settled::Unknown,
            },
            Some(Index::Mul(a, b)) => {
                let (of, by) = match (self.index(a).as_point(), self.index(b).as_point()) {
                    (Some(known), _) => (b, known),
                    (_, Some(known)) => (a, known),
                    _ => return Settled::Unknown,
                };
                match (wanted.checked_rem(by), wanted.checked_div(by)) {
                    (Some(0), Some(quotient)) => self.settle(of, quotient),
                    (Some(_), _) => Settled::No,
                    _ => Settled::Unknown,
                }
            }
            // Of the values that have this quotient, or this remainder, the first that is not negative.
            Some(Index::Div(a, b)) => match self.index(b).as_point() {
                Some(by) if by > 0 => self.settle(a, wanted * by).or_unknown(),
                _ => Settled::Unknown,
            },
            Some(Index::Mod(a, b)) => match self.index(b).as_point() {
                Some(by) if by > 0 => self.settle(a, wanted).or_unknown(),
                _ => Settled::Unknown,
            },
            _ => Settled::Unknown,
        };
        // What was inverted is evaluated: the inversion need not be trusted.
        if settled == Settled::Yes && !self.index(index).contains(wanted) { Settled::Unknown } else { settled }
    }

    /// The same for a value. Of several contents of memory that would do, one is tried.
    fn settle_value(&mut self, id: ValueId, wanted: i128) -> Settled {
        let (Some(&node), Some(&element)) =
            (self.algorithm.values.get(id as usize), self.algorithm.types.get(id as usize))
        else {
            return Settled::Unknown;
        };
        let fits = match (range_of(element), Format::of(element)) {
            (Some(range), _) => range.contains(wanted),
            // Every integer so small is a float of its own.
            (None, Some(format)) => format.value(format.from_integer(wanted)) == wanted as f64,
            (None, None) => false,
        };
        if !fits {
            return Settled::No;
        }
        if let Some((parameter, indices)) = self.address(id) {
            return match self.cell(parameter, &indices) {
                Some(value) if value == wanted => Settled::Yes,
                Some(_) => Settled::No,
                None => {
                    self.memory.push(Cell { parameter, indices, value: wanted });
                    Settled::Yes
                }
            };
        }
        match node {
            Value::Cast(a) => self.settle_value(a, wanted).or_unknown(),
            Value::Unary(Unary::Neg, a) if range_of(element).is_some() => self.settle_value(a, -wanted).or_unknown(),
            Value::Binary(op, a, b) => {
                let (a, known) = match (self.value(a).as_point(), self.value(b).as_point()) {
                    (_, Some(known)) => (a, known),
                    (Some(known), _) if !matches!(op, Binary::Sub | Binary::Div | Binary::Rem) => (b, known),
                    _ => return Settled::Unknown,
                };
                let operand = match op {
                    Binary::Add => wanted - known,
                    Binary::Sub => wanted + known,
                    // Those that leave `wanted` as it is, if it is a value of theirs.
                    Binary::Rem | Binary::And | Binary::Or | Binary::Max | Binary::Min => wanted,
                    _ => return Settled::Unknown,
                };
                let before = self.memory.len();
                let settled = self.settle_value(a, operand).or_unknown();
                if settled == Settled::Yes && self.value(id) != Interval::point(wanted) {
                    self.memory.truncate(before);
                    return Settled::Unknown;
                }
                settled
            }
            _ => Settled::Unknown,
        }
    }
}
