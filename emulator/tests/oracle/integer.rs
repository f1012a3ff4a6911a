//! Integers, over `i128`: the exact result, then the bits that are kept.

use tilewright_ptx::ScalarType;
use tilewright_ptx::isa::Arith;

use super::meaning::{Meaning, Want, one, two, wanted};
use super::table::Variant;

/// The number that bits stand for.
pub fn number(bits: u32, signed: bool, raw: u64) -> i128 {
    let raw = i128::from(raw) & ((1 << bits) - 1);
    if signed && raw >> (bits - 1) == 1 { raw - (1 << bits) } else { raw }
}

/// The lowest bits of a number.
pub fn cut(bits: u32, value: i128) -> u64 {
    (value & ((1i128 << bits) - 1)) as u64
}

/// The nearest number of a type.
pub fn clamp(bits: u32, signed: bool, value: i128) -> i128 {
    if signed { value.max(-(1 << (bits - 1))).min((1 << (bits - 1)) - 1) } else { value.max(0).min((1 << bits) - 1) }
}

fn parts(ty: ScalarType) -> (u32, bool, bool) {
    match ty {
        ScalarType::U16x2 => (16, false, true),
        ScalarType::S16x2 => (16, true, true),
        ty => (ty.bits(), ty.is_signed(), false),
    }
}

pub fn meaning(variant: &Variant, arith: Arith) -> Option<Meaning> {
    let (bits, signed, halves) = parts(variant.ty(0));
    let read = move |raw: u64| number(bits, signed, raw);
    let sat = variant.has("sat");
    let relu = variant.has("relu");
    let (hi, wide) = (variant.has("hi"), variant.has("wide"));
    let finish = move |value: i128| {
        let value = if sat { clamp(bits, signed, value) } else { value };
        cut(bits, if relu { value.max(0) } else { value })
    };
    let result = if wide { 2 * bits } else { bits };
    // 24 bits of an operand.
    let read24 = move |raw: u64| number(24, signed, raw);
    let meaning = match arith {
        Arith::Add => one(move |x| finish(read(x[0]) + read(x[1]))),
        Arith::Sub => one(move |x| finish(read(x[0]) - read(x[1]))),
        Arith::Mul => one(move |x| {
            let product = product(read(x[0]), read(x[1]), bits, hi);
            cut(result, product)
        }),
        Arith::Mad => one(move |x| {
            let product = product(read(x[0]), read(x[1]), bits, hi);
            let sum = product.wrapping_add(number(result, signed, x[2]));
            if wide { cut(result, sum) } else { finish(sum) }
        }),
        Arith::Mul24 => one(move |x| cut(32, (read24(x[0]) * read24(x[1])) >> if hi { 16 } else { 0 })),
        Arith::Mad24 => one(move |x| {
            let part = (read24(x[0]) * read24(x[1])) >> if hi { 16 } else { 0 };
            // The part of the product is a register of its own before the sum.
            finish(number(32, signed, cut(32, part)) + read(x[2]))
        }),
        // The manual leaves a quotient by zero open, and the one that does not fit.
        Arith::Div => wanted(move |x| match (read(x[0]), read(x[1])) {
            (_, 0) => Want::Open,
            (a, b) => Want::Bits(cut(bits, a / b)),
        }),
        Arith::Rem => wanted(move |x| match (read(x[0]), read(x[1])) {
            (_, 0) => Want::Open,
            (a, b) => Want::Bits(cut(bits, a % b)),
        }),
        Arith::Abs => one(move |x| cut(bits, read(x[0]).abs())),
        Arith::Neg => one(move |x| cut(bits, -read(x[0]))),
        Arith::Min => one(move |x| finish(read(x[0]).min(read(x[1])))),
        Arith::Max => one(move |x| finish(read(x[0]).max(read(x[1])))),
        Arith::Sad => one(move |x| cut(bits, read(x[2]) + (read(x[0]) - read(x[1])).abs())),
        Arith::Dp4a | Arith::Dp2a => {
            let (a, b) = (variant.ty(0).is_signed(), variant.ty(1).is_signed());
            // `dp2a` multiplies halves of a with two of the bytes of b.
            let (count, step, offset) = match (arith, hi) {
                (Arith::Dp4a, _) => (4, 8, 0),
                (_, false) => (2, 16, 0),
                (_, true) => (2, 16, 16),
            };
            one(move |x| {
                let products = (0..count)
                    .map(|part| number(step, a, x[0] >> (part * step)) * number(8, b, x[1] >> (part * 8 + offset)));
                cut(32, products.sum::<i128>() + i128::from(x[2]))
            })
        }
        _ => None,
    };
    meaning.map(|meaning| Meaning { halves, ..meaning })
}

/// A product of at most 128 bits, or its upper half.
fn product(a: i128, b: i128, bits: u32, hi: bool) -> i128 {
    if !hi {
        return a.wrapping_mul(b);
    }
    if bits < 64 {
        return (a * b) >> bits;
    }
    // Of unsigned 64-bit numbers the product may not fit i128.
    if a >= 0 && b >= 0 { ((a.unsigned_abs() * b.unsigned_abs()) >> 64) as i128 } else { (a * b) >> 64 }
}

/// Extended precision: the carry is the bit above the result, the borrow is set when the difference is negative.
pub fn carry(variant: &Variant, arith: Arith) -> Option<Meaning> {
    let ty = variant.ty(0);
    let (bits, signed, hi) = (ty.bits(), ty.is_signed(), variant.has("hi"));
    let carry_in = variant.carry_in;
    let unsigned = move |raw: u64| number(bits, false, raw);
    two(move |x| {
        let carry = if carry_in { i128::from(*x.last().unwrap_or(&0)) } else { 0 };
        let value = match arith {
            Arith::AddCc | Arith::Addc => unsigned(x[0]) + unsigned(x[1]) + carry,
            Arith::SubCc | Arith::Subc => unsigned(x[0]) - unsigned(x[1]) - carry,
            // The half of the product that is added is a register before the sum.
            _ => {
                let part = cut(bits, product(number(bits, signed, x[0]), number(bits, signed, x[1]), bits, hi));
                i128::from(part) + unsigned(x[2]) + carry
            }
        };
        [Want::Bits(cut(bits, value)), Want::Bits(u64::from(value < 0 || value >> bits != 0))]
    })
}
