//! Conversions of terms, and what only integers have.

use tilewright_kernel::ElementType;
use tilewright_kernel::format::Format;

use super::algebra::{Algebra, CLASS, Tag};
use super::field::{contains, mix};
use crate::proof::row::{Known, wrapped};

impl Algebra {
    pub fn cast(&self, from: ElementType, to: ElementType, a: i64) -> Known {
        match (from.is_float(), to.is_float()) {
            (false, false) => Some(wrapped(to, a)),
            (false, true) => {
                let exact = if from == ElementType::U64 { i128::from(a as u64) } else { i128::from(a) };
                let format = Format::of(to)?;
                Some(self.constant(format.value(format.from_integer(exact))))
            }
            // Of sums in any order, rounding is in no certain place.
            (true, true) if from == to || self.freedom.is_field() => Some(a),
            (true, true) => {
                if let Some(x) = self.number(a) {
                    let format = Format::of(to)?;
                    return Some(self.constant(format.value(format.from_f64(x))));
                }
                if contains(to, a as u64 & CLASS) {
                    return Some(a);
                }
                Some(self.hashed(Tag::Cast, 0, to, [a, 0]))
            }
            (true, false) => Some(match self.number(a) {
                Some(x) => saturated(to, x),
                None => {
                    let hash = mix([Tag::Integer as u64, a as u64, 0, 0]);
                    wrapped(to, (hash % (self.reach.unsigned_abs() + 5)) as i64 - 2)
                }
            }),
        }
    }

    /// The same bits as another type of the same width.
    pub fn same_bits(&self, from: ElementType, to: ElementType, a: i64) -> Known {
        let mask = u64::MAX >> (64 - 8 * from.bytes());
        let bits = if from.is_float() { self.bits(from, a)? } else { a };
        if to.is_float() { self.of_bits(to, bits as u64 & mask) } else { Some(wrapped(to, bits)) }
    }

    /// The high half of the product of two integers.
    pub fn mul_high(&self, ty: ElementType, a: i64, b: i64) -> Known {
        Some(match ty {
            ElementType::U64 => ((u128::from(a as u64) * u128::from(b as u64)) >> 64) as i64,
            _ => wrapped(ty, ((i128::from(a) * i128::from(b)) >> (8 * ty.bytes())) as i64),
        })
    }
}

/// A float as an integer: to zero, and to the ends of the type.
fn saturated(ty: ElementType, x: f64) -> i64 {
    match ty {
        ElementType::I8 => i64::from(x as i8),
        ElementType::I16 => i64::from(x as i16),
        ElementType::I32 => i64::from(x as i32),
        ElementType::U8 => i64::from(x as u8),
        ElementType::U16 => i64::from(x as u16),
        ElementType::U32 => i64::from(x as u32),
        ElementType::U64 => x as u64 as i64,
        ElementType::Bool => i64::from(x != 0.0),
        _ => x as i64,
    }
}
