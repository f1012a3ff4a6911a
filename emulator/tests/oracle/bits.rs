//! Logic, shifts and fields of bits, bit by bit.

use tilewright_ptx::ScalarType;
use tilewright_ptx::isa::Logic;

use super::integer::{cut, number};
use super::meaning::{Meaning, Want, one, two, wanted};
use super::table::Variant;

fn bit(value: u64, at: u64) -> bool {
    at < 64 && value >> at & 1 == 1
}

/// The number with these bits.
fn from_bits(count: u64, bit: impl Fn(u64) -> bool) -> u64 {
    (0..count).map(|at| u64::from(bit(at)) << at).sum()
}

/// An amount that is clamped or taken modulo 32.
fn limited(wrap: bool, amount: u64, limit: u64) -> u64 {
    if wrap { amount % 32 } else { amount.min(limit) }
}

#[expect(clippy::too_many_lines, reason = "one arm an instruction")]
pub fn meaning(variant: &Variant, logic: Logic) -> Option<Meaning> {
    let ty = variant.types.first().copied().unwrap_or(ScalarType::B32);
    let (bits, signed) = (u64::from(ty.bits()), ty.is_signed());
    let (wrap, left) = (variant.has("wrap"), variant.has("l"));
    match logic {
        Logic::And => one(move |x| from_bits(bits, |i| bit(x[0], i) && bit(x[1], i))),
        Logic::Or => one(move |x| from_bits(bits, |i| bit(x[0], i) || bit(x[1], i))),
        Logic::Xor => one(move |x| from_bits(bits, |i| bit(x[0], i) != bit(x[1], i))),
        Logic::Not => one(move |x| from_bits(bits, |i| !bit(x[0], i))),
        Logic::Cnot => one(|x| u64::from(x[0] == 0)),
        Logic::Lop3 => {
            let (and, or) = (variant.has("and"), variant.has("or"));
            two(move |x| {
                let index = |i| u64::from(bit(x[0], i)) * 4 + u64::from(bit(x[1], i)) * 2 + u64::from(bit(x[2], i));
                let d = from_bits(32, |i| bit(x[3], index(i)));
                let q = x.get(4).is_some_and(|q| *q == 1);
                let p = if or { d != 0 || q } else { and && d != 0 && q };
                [Want::Bits(d), Want::Bits(u64::from(p))]
            })
        }
        // b:a as one number of 64 bits.
        Logic::Shf => one(move |x| {
            let pair = u128::from(x[1]) << 32 | u128::from(x[0]);
            let amount = limited(wrap, x[2], 32);
            if left { (pair << amount >> 32) as u64 & 0xffff_ffff } else { (pair >> amount) as u64 & 0xffff_ffff }
        }),
        Logic::Shl => one(move |x| from_bits(bits, |i| i >= x[1] && bit(x[0], i - x[1]))),
        Logic::Shr => one(move |x| {
            let fill = signed && bit(x[0], bits - 1);
            from_bits(bits, |i| if i + x[1] < bits { bit(x[0], i + x[1]) } else { fill })
        }),
        Logic::Popc => one(move |x| (0..bits).map(|i| u64::from(bit(x[0], i))).sum()),
        Logic::Clz => one(move |x| (0..bits).rev().take_while(|i| !bit(x[0], *i)).count() as u64),
        Logic::Brev => one(move |x| from_bits(bits, |i| bit(x[0], bits - 1 - i))),
        Logic::Bfind => {
            let shift = variant.has("shiftamt");
            one(move |x| {
                let sign = signed && bit(x[0], bits - 1);
                match (0..bits).rev().find(|i| bit(x[0], *i) != sign) {
                    None => 0xffff_ffff,
                    Some(at) => {
                        if shift {
                            bits - 1 - at
                        } else {
                            at
                        }
                    }
                }
            })
        }
        // The pseudocode of 9.7.1.17; a base above 31 is undefined.
        Logic::Fns => wanted(|x| {
            if x[1] > 31 {
                return Want::Open;
            }
            let (base, offset) = (x[1] as i64, number(32, true, x[2]) as i64);
            let set: Vec<i64> = match offset.signum() {
                0 => vec![base],
                1 => (base..32).collect(),
                _ => (0..=base).rev().collect(),
            };
            let mut found = set.into_iter().filter(|at| bit(x[0], *at as u64));
            Want::Bits(found.nth(offset.unsigned_abs().max(1) as usize - 1).map_or(0xffff_ffff, |at| at as u64))
        }),
        // 9.7.1.19 and 9.7.1.20: positions and lengths are bytes.
        Logic::Bfe => one(move |x| {
            let (from, length) = (x[1] & 0xff, x[2] & 0xff);
            let sign = signed && length > 0 && bit(x[0], (from + length - 1).min(bits - 1));
            from_bits(bits, |i| if i < length && from + i < bits { bit(x[0], from + i) } else { sign })
        }),
        Logic::Bfi => one(move |x| {
            let (to, length) = (x[2] & 0xff, x[3] & 0xff);
            from_bits(bits, |i| if i >= to && i < to + length { bit(x[0], i - to) } else { bit(x[1], i) })
        }),
        Logic::Szext => one(move |x| {
            let length = limited(wrap, x[1], 32);
            let sign = signed && length > 0 && bit(x[0], length - 1);
            from_bits(32, |i| if i < length { bit(x[0], i) } else { sign })
        }),
        Logic::Bmsk => one(move |x| {
            let (from, length) = (limited(wrap, x[0], 32), limited(wrap, x[1], 32));
            from_bits(32, |i| i >= from && i < from + length)
        }),
        Logic::Prmt => {
            let mode = variant.words.get(1).cloned().unwrap_or_default();
            one(move |x| {
                let byte = |at: u64| (if at < 4 { x[0] >> (8 * at) } else { x[1] >> (8 * (at - 4)) }) & 0xff;
                let chosen = |at: u64| -> u64 {
                    let c = x[2] & 3;
                    // The tables of 9.7.9.7, from d.b0 to d.b3.
                    let row = match mode.as_str() {
                        "" => {
                            let selector = x[2] >> (4 * at) & 15;
                            let value = byte(selector & 7);
                            return if selector < 8 {
                                value
                            } else if value >= 128 {
                                255
                            } else {
                                0
                            };
                        }
                        "f4e" => [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
                        "b4e" => [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
                        "rc8" => [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]],
                        "ecl" => [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]],
                        "ecr" => [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]],
                        _ => [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
                    };
                    byte(row[c as usize][at as usize])
                };
                cut(32, (0..4).map(|at| i128::from(chosen(at)) << (8 * at)).sum())
            })
        }
    }
}
