//! Rows against scalar meanings: integers against arithmetic in 128 bits, floats against `num::float`, which is itself
//! checked against LLVM's soft floats. Every operation, edge values × edge values and random ones.

use super::int::{self, Int1, Int2, IntCompare, Width};
use super::{LANES, Row, Rows, Wide, float};
use crate::num::approx::{Approx, approx};
use crate::num::float::{Float1, Float2, FloatCompare, FloatMode, FloatType, compare, float1, float2, fma};
use crate::num::format::Round;
use crate::num::tests::{Bits, samples};

fn edges(width: Width) -> Vec<u64> {
    let bits = width.bits();
    let ones = u64::MAX >> (64 - bits);
    let top = 1u64 << (bits - 1);
    let mut all = vec![
        0,
        1,
        2,
        3,
        7,
        31,
        32,
        33,
        63,
        64,
        255,
        0x1234,
        ones,
        ones - 1,
        top,
        top - 1,
        top + 1,
        ones >> 2,
        0x5555_5555_5555_5555 & ones,
    ];
    let mut random = Bits(u64::from(bits));
    all.extend((0..13).map(|_| random.next() & ones));
    all
}

/// All pairs, 32 at a time.
fn pairs(values: &[u64]) -> Vec<(Wide, Wide)> {
    let mut all: Vec<(u64, u64)> = values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b))).collect();
    while !all.len().is_multiple_of(LANES) {
        all.push((1, 1));
    }
    all.chunks(LANES).map(|c| (std::array::from_fn(|i| c[i].0), std::array::from_fn(|i| c[i].1))).collect()
}

/// Runs a function of rows: row `d` gets the result, the operands are rows 1, 2, … Once with a row of its own for the
/// result, and once with each operand's.
fn over<T: Copy + Default + PartialEq + std::fmt::Debug>(
    operands: &[[T; LANES]],
    run: impl Fn(&mut Rows<T>, u32),
) -> [T; LANES] {
    let result = |d: u32| {
        let mut rows = Rows::new(operands.len() + 1);
        for (row, operand) in (1..).zip(operands) {
            rows[row] = *operand;
        }
        run(&mut rows, d);
        rows[d]
    };
    let apart = result(0);
    for d in 1..=operands.len() as u32 {
        assert_eq!(result(d), apart, "the result in the place of operand {d}");
    }
    apart
}

fn narrow(row: &Wide) -> Row {
    row.map(|v| v as u32)
}

const INT2: [Int2; 27] = [
    Int2::Add,
    Int2::Sub,
    Int2::Mul,
    Int2::MulHiU,
    Int2::MulHiS,
    Int2::AddSat,
    Int2::SubSat,
    Int2::DivU,
    Int2::DivS,
    Int2::RemU,
    Int2::RemS,
    Int2::MinU,
    Int2::MinS,
    Int2::MaxU,
    Int2::MaxS,
    Int2::And,
    Int2::Or,
    Int2::Xor,
    Int2::Shl,
    Int2::ShrU,
    Int2::ShrS,
    Int2::Mul24 { signed: false, high: false },
    Int2::Mul24 { signed: false, high: true },
    Int2::Mul24 { signed: true, high: false },
    Int2::Mul24 { signed: true, high: true },
    Int2::Add,
    Int2::Sub,
];

/// The meaning of an operation in unbounded integers.
fn oracle2(op: Int2, bits: u32, a: u64, b: u64) -> u64 {
    let ones = u64::MAX >> (64 - bits);
    let (x, y) = (i128::from(a), i128::from(b));
    let sign = |v: u64| if v >> (bits - 1) & 1 == 1 { i128::from(v) - (1i128 << bits) } else { i128::from(v) };
    let (p, q) = (sign(a), sign(b));
    let (least, greatest) = (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1);
    let amount = b & 0xffff_ffff;
    let low24 = |v: u64, signed: bool| {
        let v = i128::from(v & 0xff_ffff);
        if signed && v >= 1 << 23 { v - (1 << 24) } else { v }
    };
    let value = match op {
        Int2::Add => x + y,
        Int2::Sub => x - y,
        Int2::Mul => x.wrapping_mul(y),
        Int2::MulHiU => ((u128::from(a) * u128::from(b)) >> bits) as i128,
        Int2::MulHiS => (p * q) >> bits,
        Int2::Mul24 { signed, high } => (low24(a, signed) * low24(b, signed)) >> (if high { 16 } else { 0 }),
        Int2::AddSat => (p + q).clamp(least, greatest),
        Int2::SubSat => (p - q).clamp(least, greatest),
        Int2::DivU => {
            if y == 0 {
                -1
            } else {
                x / y
            }
        }
        Int2::DivS => {
            if q == 0 {
                -1
            } else {
                p / q
            }
        }
        Int2::RemU => {
            if y == 0 {
                x
            } else {
                x % y
            }
        }
        Int2::RemS => {
            if q == 0 {
                p
            } else {
                p % q
            }
        }
        Int2::MinU => x.min(y),
        Int2::MinS => p.min(q),
        Int2::MaxU => x.max(y),
        Int2::MaxS => p.max(q),
        Int2::And => x & y,
        Int2::Or => x | y,
        Int2::Xor => x ^ y,
        Int2::Shl => {
            if amount >= u64::from(bits) {
                0
            } else {
                x << amount
            }
        }
        Int2::ShrU => {
            if amount >= u64::from(bits) {
                0
            } else {
                x >> amount
            }
        }
        Int2::ShrS => p >> amount.min(u64::from(bits) - 1),
    };
    value as u64 & ones
}

#[test]
fn integer_rows_of_two() {
    for width in [Width::W16, Width::W32, Width::W64] {
        for (a, b) in pairs(&edges(width)) {
            for op in INT2 {
                let skipped = matches!(op, Int2::Mul24 { .. }) && width != Width::W32;
                if skipped {
                    continue;
                }
                let out: Wide = if width == Width::W64 {
                    over(&[a, b], |rows, d| int::wide2(op, rows, [d, 1, 2]))
                } else {
                    let row = over(&[narrow(&a), narrow(&b)], |rows, d| int::row2(op, width, rows, [d, 1, 2]));
                    row.map(u64::from)
                };
                for lane in 0..LANES {
                    assert_eq!(
                        out[lane],
                        oracle2(op, width.bits(), a[lane], b[lane]),
                        "{op:?} {width:?} {:#x} {:#x}",
                        a[lane],
                        b[lane]
                    );
                }
            }
        }
    }
}

/// A value and its width in bits to the result.
type Oracle1 = fn(u64, u32) -> u64;

#[test]
fn integer_rows_of_one() {
    for width in [Width::W16, Width::W32, Width::W64] {
        let bits = width.bits();
        let ones = u64::MAX >> (64 - bits);
        for (a, _) in pairs(&edges(width)) {
            let ops: [(Int1, Oracle1); 10] = [
                (Int1::Not, |v, _| !v),
                (Int1::Cnot, |v, _| u64::from(v == 0)),
                (Int1::Neg, |v, _| v.wrapping_neg()),
                (Int1::Abs, |v, bits| if v >> (bits - 1) & 1 == 1 { v.wrapping_neg() } else { v }),
                (Int1::Popc, |v, bits| (0..bits).filter(|i| v >> i & 1 == 1).count() as u64),
                (Int1::Clz, |v, bits| (0..bits).rev().take_while(|i| v >> i & 1 == 0).count() as u64),
                (Int1::Brev, |v, bits| (0..bits).fold(0, |r, i| r | (v >> i & 1) << (bits - 1 - i))),
                (Int1::Bfind { signed: false, shift: false }, |v, bits| find(v, bits, false).unwrap_or(0xffff_ffff)),
                (Int1::Bfind { signed: true, shift: false }, |v, bits| find(v, bits, true).unwrap_or(0xffff_ffff)),
                (Int1::Bfind { signed: true, shift: true }, |v, bits| {
                    find(v, bits, true).map_or(0xffff_ffff, |at| u64::from(bits) - 1 - at)
                }),
            ];
            for (op, oracle) in ops {
                if matches!(op, Int1::Bfind { .. }) && width == Width::W16 {
                    continue;
                }
                let out: Wide = if width == Width::W64 {
                    over(&[a], |rows, d| int::wide1(op, rows, [d, 1]))
                } else {
                    let row = over(&[narrow(&a)], |rows, d| int::row1(op, width, rows, [d, 1]));
                    row.map(u64::from)
                };
                for lane in 0..LANES {
                    assert_eq!(out[lane], oracle(a[lane], bits) & ones, "{op:?} {width:?} {:#x}", a[lane]);
                }
            }
        }
    }
}

/// Highest bit that differs from the sign, or from zero.
fn find(v: u64, bits: u32, signed: bool) -> Option<u64> {
    let sign = if signed { v >> (bits - 1) & 1 } else { 0 };
    (0..bits).rev().find(|i| v >> i & 1 != sign).map(u64::from)
}

#[test]
fn integer_comparisons() {
    use IntCompare::*;
    for width in [Width::W16, Width::W32, Width::W64] {
        let bits = width.bits();
        let sign = |v: u64| if v >> (bits - 1) & 1 == 1 { i128::from(v) - (1i128 << bits) } else { i128::from(v) };
        for (a, b) in pairs(&edges(width)) {
            for op in [Eq, Ne, LtU, LeU, GtU, GeU, LtS, LeS, GtS, GeS] {
                let mask = if width == Width::W64 {
                    int::compare_wide(op, &a, &b)
                } else {
                    int::compare(op, width, &narrow(&a), &narrow(&b))
                };
                for lane in 0..LANES {
                    let (u, s) = (a[lane].cmp(&b[lane]), sign(a[lane]).cmp(&sign(b[lane])));
                    let expected = match op {
                        Eq => u.is_eq(),
                        Ne => u.is_ne(),
                        LtU => u.is_lt(),
                        LeU => u.is_le(),
                        GtU => u.is_gt(),
                        GeU => u.is_ge(),
                        LtS => s.is_lt(),
                        LeS => s.is_le(),
                        GtS => s.is_gt(),
                        GeS => s.is_ge(),
                    };
                    assert_eq!(mask >> lane & 1 == 1, expected, "{op:?} {width:?} {:#x} {:#x}", a[lane], b[lane]);
                }
            }
        }
    }
}

#[test]
fn products_and_sums() {
    for (a, b) in pairs(&edges(Width::W32)) {
        let (x, y) = (narrow(&a), narrow(&b));
        let z: Row = std::array::from_fn(|i| x[i] ^ y[31 - i]);
        let low = over(&[x, y, z], |rows, d| int::mad(Width::W32, rows, [d, 1, 2, 3]));
        let low16 = over(&[x, y, z], |rows, d| int::mad(Width::W16, rows, [d, 1, 2, 3]));
        for signed in [true, false] {
            let wide = over(&[], |rows, d| int::mul_wide(signed, &x, &y, rows, d, None));
            let sum = over(&[a], |rows, d| int::mul_wide(signed, &x, &y, rows, d, Some(1)));
            let wide16 = over(&[x, y], |rows, d| int::mul_wide16(signed, rows, [d, 1, 2], None));
            let sum16 = over(&[x, y, z], |rows, d| int::mul_wide16(signed, rows, [d, 1, 2], Some(3)));
            for lane in 0..LANES {
                let (p, q) = (i128::from(x[lane]), i128::from(y[lane]));
                let (sp, sq) = (i128::from(x[lane] as i32), i128::from(y[lane] as i32));
                assert_eq!(wide[lane], (if signed { sp * sq } else { p * q }) as u64);
                let half = |v: u32| if signed { i128::from(v as u16 as i16) } else { i128::from(v as u16) };
                assert_eq!(wide16[lane], (half(x[lane]) * half(y[lane])) as u32);
                assert_eq!(sum[lane], wide[lane].wrapping_add(a[lane]));
                assert_eq!(sum16[lane], wide16[lane].wrapping_add(z[lane]));
                assert_eq!(low[lane], (p * q + i128::from(z[lane])) as u32);
                assert_eq!(low16[lane], (p * q + i128::from(z[lane])) as u16 as u32);
            }
        }
    }
}

#[test]
fn bit_fields() {
    for a in edges(Width::W32).into_iter().chain(edges(Width::W64)) {
        for bits in [32u32, 64] {
            let a = a & (u64::MAX >> (64 - bits));
            for position in [0u32, 1, 5, 31, 32, 40, 63, 64, 255, 256] {
                for length in [0u32, 1, 7, 31, 32, 33, 64, 255, 300] {
                    // By the pseudocode of the manual, bit by bit.
                    let (pos, len) = (position & 0xff, length & 0xff);
                    let bit = |v: u64, i: u32| if i < bits { v >> i & 1 } else { 0 };
                    for signed in [true, false] {
                        let sign = if !signed || len == 0 { 0 } else { bit(a, (pos + len - 1).min(bits - 1)) };
                        let expected = (0..bits)
                            .fold(0, |d, i| d | (if i < len && pos + i < bits { bit(a, pos + i) } else { sign }) << i);
                        let ours = match bits {
                            32 => u64::from(int::bfe32(signed, a as u32, position, length)),
                            _ => int::bfe64(signed, a, position, length),
                        };
                        assert_eq!(ours, expected, "{a:#x} {position} {length}");
                    }
                    let b = a.rotate_left(13) & (u64::MAX >> (64 - bits));
                    let mut expected = b;
                    for i in 0..len {
                        if pos + i < bits {
                            expected = (expected & !(1 << (pos + i))) | bit(a, i) << (pos + i);
                        }
                    }
                    let ours = match bits {
                        32 => u64::from(int::bfi32(a as u32, b as u32, position, length)),
                        _ => int::bfi64(a, b, position, length),
                    };
                    assert_eq!(ours, expected, "{a:#x} {b:#x} {position} {length}");
                }
            }
        }
    }
}

/// Rows of instructions that have a meaning for one lane, on random operands.
#[test]
fn rows_of_bit_fields_and_permutations() {
    let mut bits = Bits(31);
    // Small numbers as often as large ones.
    let mut row =
        || -> Row { std::array::from_fn(|_| (bits.next() as u32) >> [0, 24, 27][(bits.next() % 3) as usize]) };
    for _ in 0..400 {
        let operands = [row(), row(), row(), row()];
        let lane = |n: usize, i: usize| operands[n][i];
        let check = |name: &str, out: Row, meaning: &dyn Fn(u32, u32, u32, u32) -> u32| {
            for (i, out) in out.iter().enumerate() {
                let [a, b, c, e] = [lane(0, i), lane(1, i), lane(2, i), lane(3, i)];
                assert_eq!(*out, meaning(a, b, c, e), "{name} {a:#x} {b:#x} {c:#x} {e:#x}");
            }
        };
        for signed in [false, true] {
            let out = over(&operands, |rows, d| int::bfe_row(signed, rows, [d, 1, 2, 3]));
            check("bfe", out, &|a, b, c, _| int::bfe32(signed, a, b, c));
        }
        let out = over(&operands, |rows, d| int::bfi_row(rows, [d, 1, 2, 3, 4]));
        check("bfi", out, &int::bfi32);
        let out = over(&operands, |rows, d| int::prmt_row(rows, [d, 1, 2, 3]));
        check("prmt", out, &|a, b, c, _| int::prmt(int::Prmt::Default, a, b, c));
        for (left, wrap) in [(false, false), (false, true), (true, false), (true, true)] {
            let out = over(&operands, |rows, d| int::shf_row(left, wrap, rows, [d, 1, 2, 3]));
            check("shf", out, &|a, b, c, _| {
                let pair = u64::from(b) << 32 | u64::from(a);
                let n = if wrap { c & 31 } else { c.min(32) };
                if left { (pair << n >> 32) as u32 } else { (pair >> n) as u32 }
            });
        }
    }
}

#[test]
fn permutations_and_truth_tables() {
    assert_eq!(int::lop3(0x96, 0b1100, 0b1010, 0b0110), 0b1100 ^ 0b1010 ^ 0b0110);
    for table in 0..=255u8 {
        let (a, b, c) = (0xf0, 0xcc, 0xaa);
        assert_eq!(int::lop3(table, a, b, c) & 0xff, u32::from(table), "the operands enumerate the table");
    }
    let prmt = |mode, control| int::prmt(mode, 0x8382_8180, 0x0706_0504, control);
    assert_eq!(prmt(int::Prmt::Default, 0x5410), 0x0504_8180);
    assert_eq!(prmt(int::Prmt::Default, 0xc98b), 0x00ff_ffff, "signs of bytes 3, 0, 1, 4 of the pair");
    assert_eq!(prmt(int::Prmt::F4e, 1), 0x0483_8281);
    assert_eq!(prmt(int::Prmt::B4e, 1), 0x0607_8081);
    assert_eq!(prmt(int::Prmt::Rc8, 2), 0x8282_8282);
    assert_eq!(prmt(int::Prmt::Ecl, 2), 0x8382_8282);
    assert_eq!(prmt(int::Prmt::Ecr, 2), 0x8282_8180);
    assert_eq!(prmt(int::Prmt::Rc16, 1), 0x8382_8382);
    assert_eq!(int::shf(true, true, 0x8000_0001, 0x1, 33), 0b11);
    assert_eq!(int::shf(true, false, 0x8000_0001, 0x1, 33), 0x8000_0001);
    assert_eq!(int::shf(false, false, 0x8000_0001, 0x3, 4), 0x3800_0000);
    assert_eq!(int::dp4a(true, true, 0xff02_03fe, 0x0102_0304, 10), (10i32 - 1 + 4 + 9 - 8) as u32);
    assert_eq!(int::dp2a(true, false, true, 0xffff_0002, 0x0304_0000, 1), (1i32 + 2 * 4 - 3) as u32);
    assert_eq!((int::bmsk(false, 4, 8), int::bmsk(false, 40, 8), int::bmsk(true, 36, 40)), (0xff0, 0, 0xff0));
    assert_eq!((int::szext(true, false, 0xff80, 8), int::szext(false, false, 0xff80, 8)), (0xffff_ff80, 0x80));
    assert_eq!(
        (int::fns(0b1011_0000, 0, 2), int::fns(0b1011_0000, 7, -3), int::fns(0b1011_0000, 0, 9)),
        (5, 4, u32::MAX)
    );
}

fn float_modes(ty: FloatType) -> Vec<FloatMode> {
    let plain = FloatMode::plain(ty);
    let mut modes = vec![plain];
    if ty == FloatType::F32 {
        modes.push(FloatMode { ftz: true, ..plain });
        modes.push(FloatMode { sat: true, ..plain });
        modes.push(FloatMode { round: Round::Up, ..plain });
    }
    modes
}

#[test]
fn float_rows() {
    for ty in [FloatType::F16, FloatType::Bf16, FloatType::F32] {
        let values = samples(ty.format(), 120, 3);
        let thirds = samples(ty.format(), 50, 4);
        for (index, (a, b)) in pairs(&values).into_iter().enumerate() {
            let (x, y) = (narrow(&a), narrow(&b));
            let z: Row = std::array::from_fn(|i| thirds[(index * 7 + i * 5) % thirds.len()] as u32);
            for mode in float_modes(ty) {
                let ops = [
                    Float2::Add,
                    Float2::Sub,
                    Float2::Mul,
                    Float2::Div,
                    Float2::Min { nan: false, xorsign: false },
                    Float2::Max { nan: true, xorsign: false },
                    Float2::Max { nan: false, xorsign: true },
                    Float2::Copysign,
                ];
                for op in ops {
                    let out = over(&[x, y], |rows, d| float::row2(op, mode, false, rows, [d, 1, 2]));
                    for lane in 0..LANES {
                        let expected = float2(op, mode, a[lane], b[lane]) as u32;
                        assert_eq!(out[lane], expected, "{op:?} {mode:?} {:#x} {:#x}", a[lane], b[lane]);
                    }
                }
                let out = over(&[x, y, z], |rows, d| float::row3::<false>(mode, false, rows, [d, 1, 2, 3]));
                let host = over(&[x, y, z], |rows, d| float::row3::<true>(mode, false, rows, [d, 1, 2, 3]));
                assert_eq!(out, host, "{mode:?}");
                for lane in 0..LANES {
                    let expected = fma(mode, a[lane], b[lane], u64::from(z[lane])) as u32;
                    assert_eq!(out[lane], expected, "fma {mode:?} {:#x} {:#x} {:#x}", a[lane], b[lane], z[lane]);
                }
            }
        }
    }
}

#[test]
fn random_fused_rows() {
    // Operands whose product and third operand are close, where wrong double rounding would show.
    for ty in [FloatType::F16, FloatType::Bf16, FloatType::F32] {
        let (format, mode) = (ty.format(), FloatMode::plain(ty));
        let mut bits = Bits(77);
        let mask = u64::MAX >> (64 - format.bits());
        for _ in 0..2000 {
            let (mut x, mut y, mut z) = ([0; LANES], [0; LANES], [0; LANES]);
            for lane in 0..LANES {
                let (a, b) = (bits.next() & mask, bits.next() & mask);
                let product = float2(Float2::Mul, mode, a, b);
                let shift = bits.next() % 3 * u64::from(format.fraction) / 2;
                let near = product.wrapping_sub(shift << format.fraction).wrapping_add(bits.next() % 7)
                    ^ (bits.next() & 1) << (format.bits() - 1);
                (x[lane], y[lane], z[lane]) = (a as u32, b as u32, (near & mask) as u32);
            }
            let out = over(&[x, y, z], |rows, d| float::row3::<false>(mode, false, rows, [d, 1, 2, 3]));
            let host = over(&[x, y, z], |rows, d| float::row3::<true>(mode, false, rows, [d, 1, 2, 3]));
            assert_eq!(out, host, "{ty:?}");
            for lane in 0..LANES {
                let [a, b, c] = [x[lane], y[lane], z[lane]].map(u64::from);
                assert_eq!(u64::from(out[lane]), fma(mode, a, b, c), "{ty:?} {a:#x} {b:#x} {c:#x}");
            }
        }
    }
}

#[test]
fn packed_rows_are_two_rows() {
    let mode = FloatMode::plain(FloatType::Bf16);
    let mut bits = Bits(5);
    let row = |bits: &mut Bits| -> Row { std::array::from_fn(|_| bits.next() as u32) };
    for _ in 0..200 {
        let (a, b, c) = (row(&mut bits), row(&mut bits), row(&mut bits));
        let sum = over(&[a, b], |rows, d| float::row2(Float2::Add, mode, true, rows, [d, 1, 2]));
        let fused = over(&[a, b, c], |rows, d| float::row3::<false>(mode, true, rows, [d, 1, 2, 3]));
        for lane in 0..LANES {
            for shift in [0, 16] {
                let half = |v: u32| u64::from(v >> shift & 0xffff);
                assert_eq!(half(sum[lane]), float2(Float2::Add, mode, half(a[lane]), half(b[lane])));
                assert_eq!(half(fused[lane]), fma(mode, half(a[lane]), half(b[lane]), half(c[lane])));
            }
        }
    }
}

#[test]
fn one_operand_rows() {
    for a in samples(FloatType::F32.format(), 2000, 9).chunks_exact(LANES) {
        let row: Row = std::array::from_fn(|i| a[i] as u32);
        for mode in float_modes(FloatType::F32) {
            for op in [Float1::Abs, Float1::Neg, Float1::Rcp, Float1::Sqrt] {
                let out = over(&[row], |rows, d| float::row1(op, mode, false, rows, [d, 1]));
                for lane in 0..LANES {
                    assert_eq!(u64::from(out[lane]), float1(op, mode, a[lane]), "{op:?} {mode:?} {:#x}", a[lane]);
                }
            }
        }
        for ftz in [false, true] {
            let mode = FloatMode { ftz, ..FloatMode::plain(FloatType::F32) };
            for op in [
                Approx::Rcp,
                Approx::Sqrt,
                Approx::Rsqrt,
                Approx::Ex2,
                Approx::Lg2,
                Approx::Sin,
                Approx::Cos,
                Approx::Tanh,
            ] {
                let out = over(&[row], |rows, d| float::approx_row(op, mode, false, None, rows, [d, 1]));
                for lane in 0..LANES {
                    assert_eq!(u64::from(out[lane]), approx(op, mode, a[lane], None), "{op:?} {:#x}", a[lane]);
                }
            }
        }
    }
}

#[test]
fn quotient_rows() {
    for (a, b) in pairs(&samples(FloatType::F32.format(), 400, 17)) {
        for ftz in [false, true] {
            let mode = FloatMode { ftz, ..FloatMode::plain(FloatType::F32) };
            for full in [false, true] {
                let out = over(&[narrow(&a), narrow(&b)], |rows, d| float::div_approx(mode, full, rows, [d, 1, 2]));
                for lane in 0..LANES {
                    let expected = crate::num::approx::div(mode, full, a[lane], b[lane], None);
                    assert_eq!(u64::from(out[lane]), expected, "{mode:?} {full} {:#x} {:#x}", a[lane], b[lane]);
                }
            }
        }
    }
}

#[test]
fn double_rows() {
    for (a, b) in pairs(&samples(FloatType::F64.format(), 60, 9)) {
        for mode in
            [FloatMode::plain(FloatType::F64), FloatMode { round: Round::Zero, ..FloatMode::plain(FloatType::F64) }]
        {
            for op in [Float2::Add, Float2::Sub, Float2::Mul, Float2::Div, Float2::Min { nan: false, xorsign: false }] {
                let out = over(&[a, b], |rows, d| float::wide2(op, mode, rows, [d, 1, 2]));
                for lane in 0..LANES {
                    assert_eq!(
                        out[lane],
                        float2(op, mode, a[lane], b[lane]),
                        "{op:?} {mode:?} {:#x} {:#x}",
                        a[lane],
                        b[lane]
                    );
                }
            }
            let out = over(&[a, b], |rows, d| float::wide3::<false>(mode, rows, [d, 1, 2, 1]));
            for lane in 0..LANES {
                assert_eq!(out[lane], fma(mode, a[lane], b[lane], a[lane]));
            }
        }
    }
}

#[test]
fn float_comparisons() {
    use FloatCompare::*;
    for ty in [FloatType::F16, FloatType::Bf16, FloatType::F32] {
        for (a, b) in pairs(&samples(ty.format(), 20, 8)) {
            for op in [Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan] {
                for ftz in [false, true] {
                    let mask = float::compare_row(op, ty, ftz, &narrow(&a), &narrow(&b));
                    for lane in 0..LANES {
                        assert_eq!(
                            mask >> lane & 1 == 1,
                            compare(op, ty, ftz, a[lane], b[lane]),
                            "{op:?} {ty:?} {:#x} {:#x}",
                            a[lane],
                            b[lane]
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn half_conversions_round_trip_everything() {
    use crate::num::exact::convert;
    use crate::num::format::{BF16, F16, F32};
    for bits in 0..=0xffffu32 {
        let nan = F16.is_nan(u64::from(bits));
        let single = float::f16_to_f32(bits);
        assert_eq!(nan, single.is_nan());
        if !nan {
            assert_eq!(u64::from(single.to_bits()), convert(F16, F32, Round::Nearest, u64::from(bits)));
            assert_eq!(float::f32_to_f16(single), bits);
        }
        let nan = BF16.is_nan(u64::from(bits));
        if !nan {
            assert_eq!(float::f32_to_bf16(float::bf16_to_f32(bits)), bits);
        }
    }
    for bits in samples(F32, 200_000, 10) {
        let value = f32::from_bits(bits as u32);
        assert_eq!(u64::from(float::f32_to_f16(value)), convert(F32, F16, Round::Nearest, bits), "{bits:#x}");
        assert_eq!(u64::from(float::f32_to_bf16(value)), convert(F32, BF16, Round::Nearest, bits), "{bits:#x}");
    }
    // Every point half way between two neighbouring halves, and its neighbours.
    for bits in 0..0x7c00u64 {
        let low = convert(F16, F32, Round::Nearest, bits);
        let high = convert(F16, F32, Round::Nearest, bits + 1);
        let middle = (low + high) / 2;
        for bits in [middle - 1, middle, middle + 1] {
            let value = f32::from_bits(bits as u32);
            assert_eq!(u64::from(float::f32_to_f16(value)), convert(F32, F16, Round::Nearest, bits), "{bits:#x}");
        }
    }
}
