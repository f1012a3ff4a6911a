//! Integer, logic and shift instructions (PTX manual 9.7.1, 9.7.2, 9.7.8), as the meaning for one lane and as rows.
//! A 16-bit value lives zero-extended in 32 bits. What picks single bits, fields and bytes is in `bits`.

mod bits;

use super::{LANES, Mask, Row, Rows, Wide};

pub use bits::{Prmt, bfe_row, bfe32, bfe64, bfi_row, bfi32, bfi64, bmsk, fns, prmt, prmt_row, shf, shf_row, szext};

/// Width of an integer instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// 16 bits in a row of 32.
    W16,
    /// 32 bits.
    W32,
    /// 64 bits.
    W64,
}

impl Width {
    /// Its bits.
    pub const fn bits(self) -> u32 {
        match self {
            Width::W16 => 16,
            Width::W32 => 32,
            Width::W64 => 64,
        }
    }
}

/// Instructions of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Int1 {
    /// Bitwise complement.
    Not,
    /// 1 for 0, else 0.
    Cnot,
    /// Two's complement.
    Neg,
    /// Magnitude; the least value stays itself.
    Abs,
    /// Number of one bits, as 32 bits.
    Popc,
    /// Number of leading zeros, as 32 bits.
    Clz,
    /// Bits in reverse order.
    Brev,
    /// Position of the most significant bit that differs from the sign, as 32 bits; all ones if there is none.
    Bfind {
        /// Look below the sign.
        signed: bool,
        /// Give the shift that brings the bit to the top instead.
        shift: bool,
    },
}

/// Instructions of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Int2 {
    /// Wrapping sum.
    Add,
    /// Wrapping difference.
    Sub,
    /// Low half of the product.
    Mul,
    /// High half of the unsigned product.
    MulHiU,
    /// High half of the signed product.
    MulHiS,
    /// Low half of the product of the low 24 bits, sign-extended when `signed`.
    Mul24 {
        /// Sign-extend the operands.
        signed: bool,
        /// Bits 47..16 of the 48-bit product instead of 31..0.
        high: bool,
    },
    /// Signed sum clamped to the type.
    AddSat,
    /// Signed difference clamped to the type.
    SubSat,
    /// Unsigned quotient; all ones for a zero divisor.
    DivU,
    /// Signed quotient, truncated; all ones for a zero divisor.
    DivS,
    /// Unsigned remainder; the dividend for a zero divisor.
    RemU,
    /// Signed remainder with the dividend's sign; the dividend for a zero divisor.
    RemS,
    /// Unsigned minimum.
    MinU,
    /// Signed minimum.
    MinS,
    /// Unsigned maximum.
    MaxU,
    /// Signed maximum.
    MaxS,
    /// Conjunction.
    And,
    /// Disjunction.
    Or,
    /// Exclusive or.
    Xor,
    /// Left shift; amounts at or above the width give 0.
    Shl,
    /// Logical right shift; amounts at or above the width give 0.
    ShrU,
    /// Arithmetic right shift; amounts at or above the width give copies of the sign.
    ShrS,
}

/// Comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are the manual's")]
pub enum IntCompare {
    Eq,
    Ne,
    LtU,
    LeU,
    GtU,
    GeU,
    LtS,
    LeS,
    GtS,
    GeS,
}

macro_rules! width {
    ($d:tt $module:ident, $u:ty, $s:ty, $wide:ty, $swide:ty, $bits:literal, $row:ty) => {
        pub(crate) mod $module {
            use super::{Int1, Int2, IntCompare, LANES, Mask, Rows};

            type Cell = $row;
            const BITS: u32 = $bits;

            /// The meaning for one lane.
            #[inline(always)]
            pub fn int1(op: Int1, a: Cell) -> Cell {
                let x = a as $u;
                (match op {
                    Int1::Not => !x,
                    Int1::Cnot => <$u>::from(x == 0),
                    Int1::Neg => x.wrapping_neg(),
                    Int1::Abs => (x as $s).wrapping_abs() as $u,
                    Int1::Popc => x.count_ones() as $u,
                    Int1::Clz => x.leading_zeros() as $u,
                    Int1::Brev => x.reverse_bits(),
                    Int1::Bfind { signed, shift } => {
                        let x = if signed && (x as $s) < 0 { !x } else { x };
                        if x == 0 {
                            return Cell::from(u32::MAX);
                        }
                        (if shift { x.leading_zeros() } else { BITS - 1 - x.leading_zeros() }) as $u
                    }
                }) as Cell
            }

            /// The meaning for one lane.
            #[inline(always)]
            pub fn int2(op: Int2, a: Cell, b: Cell) -> Cell {
                let (x, y) = (a as $u, b as $u);
                let (p, q) = (a as $u as $s, b as $u as $s);
                // Shift amounts are 32-bit operands whatever the width, and arrive unnarrowed.
                let amount = b as u32;
                (match op {
                    Int2::Add => x.wrapping_add(y),
                    Int2::Sub => x.wrapping_sub(y),
                    Int2::Mul => x.wrapping_mul(y),
                    Int2::MulHiU => ((x as $wide).wrapping_mul(y as $wide) >> BITS) as $u,
                    Int2::MulHiS => ((p as $swide).wrapping_mul(q as $swide) >> BITS) as $u,
                    Int2::Mul24 { signed, high } => {
                        let cut = |v: $u| {
                            let v = (v as u64) << 40;
                            if signed { (v as i64) >> 40 } else { (v >> 40) as i64 }
                        };
                        let product = cut(x).wrapping_mul(cut(y));
                        (if high { product >> 16 } else { product }) as $u
                    }
                    Int2::AddSat => p.saturating_add(q) as $u,
                    Int2::SubSat => p.saturating_sub(q) as $u,
                    Int2::DivU => x.checked_div(y).unwrap_or(<$u>::MAX),
                    Int2::DivS => if q == 0 { <$u>::MAX } else { p.wrapping_div(q) as $u },
                    Int2::RemU => x.checked_rem(y).unwrap_or(x),
                    Int2::RemS => if q == 0 { x } else { p.wrapping_rem(q) as $u },
                    Int2::MinU => x.min(y),
                    Int2::MinS => p.min(q) as $u,
                    Int2::MaxU => x.max(y),
                    Int2::MaxS => p.max(q) as $u,
                    Int2::And => x & y,
                    Int2::Or => x | y,
                    Int2::Xor => x ^ y,
                    Int2::Shl => if amount < BITS { x << amount } else { 0 },
                    Int2::ShrU => if amount < BITS { x >> amount } else { 0 },
                    Int2::ShrS => (p >> amount.min(BITS - 1)) as $u,
                }) as Cell
            }

            #[inline(always)]
            fn each1(rows: &mut Rows<Cell>, [d, a]: [u32; 2], f: impl Fn(Cell) -> Cell) {
                let a = &rows[a];
                each!(rows[d], i => f(a[i]));
            }

            /// A row of two others by lanes.
            #[inline(always)]
            pub fn each2(rows: &mut Rows<Cell>, [d, a, b]: [u32; 3], f: impl Fn(Cell, Cell) -> Cell) {
                let (a, b) = (&rows[a], &rows[b]);
                each!(rows[d], i => f(a[i], b[i]));
            }

            /// The row.
            #[inline(always)]
            pub fn row1(op: Int1, rows: &mut Rows<Cell>, slots: [u32; 2]) {
                // One loop an operation: the scalar function folds to a single case in each.
                macro_rules! cases {
                    ($d($op:pat => $value:expr),* $d(,)?) => { match op { $d($op => each1(rows, slots, |x| int1($value, x)),)* } };
                }
                cases! {
                    Int1::Not => Int1::Not, Int1::Cnot => Int1::Cnot, Int1::Neg => Int1::Neg, Int1::Abs => Int1::Abs,
                    Int1::Popc => Int1::Popc, Int1::Clz => Int1::Clz, Int1::Brev => Int1::Brev,
                    Int1::Bfind { signed, shift } => Int1::Bfind { signed, shift },
                }
            }

            /// The row.
            #[inline(always)]
            pub fn row2(op: Int2, rows: &mut Rows<Cell>, slots: [u32; 3]) {
                macro_rules! cases {
                    ($d($op:pat => $value:expr),* $d(,)?) => { match op { $d($op => each2(rows, slots, |x, y| int2($value, x, y)),)* } };
                }
                cases! {
                    Int2::Add => Int2::Add, Int2::Sub => Int2::Sub, Int2::Mul => Int2::Mul, Int2::MulHiU => Int2::MulHiU,
                    Int2::MulHiS => Int2::MulHiS, Int2::Mul24 { signed, high } => Int2::Mul24 { signed, high },
                    Int2::AddSat => Int2::AddSat, Int2::SubSat => Int2::SubSat,
                    Int2::DivU => Int2::DivU, Int2::DivS => Int2::DivS, Int2::RemU => Int2::RemU, Int2::RemS => Int2::RemS,
                    Int2::MinU => Int2::MinU, Int2::MinS => Int2::MinS, Int2::MaxU => Int2::MaxU, Int2::MaxS => Int2::MaxS,
                    Int2::And => Int2::And, Int2::Or => Int2::Or, Int2::Xor => Int2::Xor,
                    Int2::Shl => Int2::Shl, Int2::ShrU => Int2::ShrU, Int2::ShrS => Int2::ShrS,
                }
            }

            /// The row of results as a mask. One body for all operations: a `match` with a loop in each arm compiles to
            /// worse code.
            #[inline(always)]
            pub fn compare_row(op: IntCompare, a: &[Cell; LANES], b: &[Cell; LANES]) -> Mask {
                let (lower, equal, signed, not) = match op {
                    IntCompare::Eq => (false, true, false, 0),
                    IntCompare::Ne => (false, true, false, Mask::MAX),
                    IntCompare::LtU => (true, false, false, 0),
                    IntCompare::GeU => (true, false, false, Mask::MAX),
                    IntCompare::LeU => (true, true, false, 0),
                    IntCompare::GtU => (true, true, false, Mask::MAX),
                    IntCompare::LtS => (true, false, true, 0),
                    IntCompare::GeS => (true, false, true, Mask::MAX),
                    IntCompare::LeS => (true, true, true, 0),
                    IntCompare::GtS => (true, true, true, Mask::MAX),
                };
                // Flipping the top bit makes the signed order that of unsigned numbers.
                let flip: $u = if signed { 0 } else { 1 << (BITS - 1) };
                let mut result = 0;
                if lower {
                    result = mask!(i => ((a[i] as $u ^ flip) as $s) < (b[i] as $u ^ flip) as $s);
                }
                if equal {
                    result |= mask!(i => a[i] as $u == b[i] as $u);
                }
                result ^ not
            }
        }
    };
}

width!($ w16, u16, i16, u32, i32, 16, u32);
width!($ w32, u32, i32, u64, i64, 32, u32);
width!($ w64, u64, i64, u128, i128, 64, u64);

/// One operand, 16 or 32 bits.
#[inline(always)]
pub fn row1(op: Int1, width: Width, rows: &mut Rows<u32>, slots: [u32; 2]) {
    if width == Width::W16 { half_row1(op, rows, slots) } else { w32::row1(op, rows, slots) }
}

/// Of 16 bits, which is rare, and not compiled again for every host.
#[inline(never)]
fn half_row1(op: Int1, rows: &mut Rows<u32>, slots: [u32; 2]) {
    w16::row1(op, rows, slots);
}

/// Two operands, 16 or 32 bits.
#[inline(always)]
pub fn row2(op: Int2, width: Width, rows: &mut Rows<u32>, slots: [u32; 3]) {
    if width == Width::W16 { half_row2(op, rows, slots) } else { w32::row2(op, rows, slots) }
}

/// Of 16 bits, which is rare, and not compiled again for every host.
#[inline(never)]
fn half_row2(op: Int2, rows: &mut Rows<u32>, slots: [u32; 3]) {
    w16::row2(op, rows, slots);
}

/// One operand of 64 bits.
#[inline(always)]
pub fn wide1(op: Int1, rows: &mut Rows<u64>, slots: [u32; 2]) {
    w64::row1(op, rows, slots);
}

/// `popc`, `clz`, `bfind` of 64 bits.
#[inline(never)]
pub fn count_wide(op: Int1, a: &Wide, out: &mut Row) {
    each!(*out, i => w64::int1(op, a[i]) as u32);
}

/// Two operands of 64 bits.
#[inline(always)]
pub fn wide2(op: Int2, rows: &mut Rows<u64>, slots: [u32; 3]) {
    w64::row2(op, rows, slots);
}

/// Shifts of 64 bits by 32-bit amounts.
#[inline(always)]
pub fn shift_wide(op: Int2, rows: &mut Rows<u64>, [d, a]: [u32; 2], amounts: &Row) {
    let a = &rows[a];
    match op {
        Int2::Shl => each!(rows[d], i => w64::int2(Int2::Shl, a[i], u64::from(amounts[i]))),
        Int2::ShrU => each!(rows[d], i => w64::int2(Int2::ShrU, a[i], u64::from(amounts[i]))),
        _ => each!(rows[d], i => w64::int2(Int2::ShrS, a[i], u64::from(amounts[i]))),
    }
}

/// Comparison of 16 or 32 bits.
#[inline(always)]
pub fn compare(op: IntCompare, width: Width, a: &Row, b: &Row) -> Mask {
    if width == Width::W16 { half_compare(op, a, b) } else { w32::compare_row(op, a, b) }
}

/// Of 16 bits, which is rare, and not compiled again for every host.
#[inline(never)]
fn half_compare(op: IntCompare, a: &Row, b: &Row) -> Mask {
    w16::compare_row(op, a, b)
}

/// Comparison of 64 bits.
#[inline(always)]
pub fn compare_wide(op: IntCompare, a: &Wide, b: &Wide) -> Mask {
    w64::compare_row(op, a, b)
}

/// `a · b + c` of 16 or 32 bits, low half.
#[inline(always)]
pub fn mad(width: Width, rows: &mut Rows<u32>, [d, a, b, c]: [u32; 4]) {
    let keep = if width == Width::W16 { 0xffff } else { u32::MAX };
    let (a, b, c) = (&rows[a], &rows[b], &rows[c]);
    each!(rows[d], i => a[i].wrapping_mul(b[i]).wrapping_add(c[i]) & keep);
}

/// `a · b + c` of 64 bits, low half.
#[inline(always)]
pub fn mad_wide_low(rows: &mut Rows<u64>, [d, a, b, c]: [u32; 4]) {
    let (a, b, c) = (&rows[a], &rows[b], &rows[c]);
    each!(rows[d], i => a[i].wrapping_mul(b[i]).wrapping_add(c[i]));
}

/// The full 64-bit product of 32-bit operands (`mul.wide`), or its sum with row `c`.
#[inline(always)]
pub fn mul_wide(signed: bool, a: &Row, b: &Row, rows: &mut Rows<u64>, d: u32, c: Option<u32>) {
    macro_rules! go {
        ($i:ident => $product:expr) => {
            match c {
                None => each!(rows[d], $i => $product),
                Some(c) => {
                    let c = &rows[c];
                    each!(rows[d], $i => ($product).wrapping_add(c[$i]));
                }
            }
        };
    }
    if signed {
        go!(i => (i64::from(a[i] as i32) * i64::from(b[i] as i32)) as u64);
    } else {
        go!(i => u64::from(a[i]) * u64::from(b[i]));
    }
}

/// The full 32-bit product of 16-bit operands, plus row `c` if there is one.
#[inline(always)]
pub fn mul_wide16(signed: bool, rows: &mut Rows<u32>, [d, a, b]: [u32; 3], c: Option<u32>) {
    let (a, b) = (&rows[a], &rows[b]);
    let product = row!(i => if signed {
        (i32::from(a[i] as u16 as i16) * i32::from(b[i] as u16 as i16)) as u32
    } else {
        (a[i] & 0xffff).wrapping_mul(b[i] & 0xffff)
    });
    let c = c.map_or([0; LANES], |c| rows[c]);
    each!(rows[d], i => product[i].wrapping_add(c[i]));
}

/// Every bit is the entry of `table` at the index `a b c` (`lop3`).
#[inline(always)]
pub fn lop3(table: u8, a: u32, b: u32, c: u32) -> u32 {
    let entry = |index: u32| 0u32.wrapping_sub(u32::from(table) >> index & 1);
    // A tree of choices: c picks between neighbouring entries, b between pairs, a between halves.
    let by_c = |index: u32| entry(index) ^ (c & (entry(index) ^ entry(index + 1)));
    let by_b = |index: u32| by_c(index) ^ (b & (by_c(index) ^ by_c(index + 2)));
    by_b(0) ^ (a & (by_b(0) ^ by_b(4)))
}

/// [`lop3`] in every lane.
#[inline(always)]
pub fn lop3_row(table: u8, rows: &mut Rows<u32>, [d, a, b, c]: [u32; 4]) {
    let (a, b, c) = (&rows[a], &rows[b], &rows[c]);
    each!(rows[d], i => lop3(table, a[i], b[i], c[i]));
}

/// `dp4a`: four byte products added to `c`.
pub fn dp4a(signed_a: bool, signed_b: bool, a: u32, b: u32, c: u32) -> u32 {
    let byte = |v: u32, n: usize, signed: bool| {
        let raw = v.to_le_bytes()[n];
        if signed { i32::from(raw as i8) } else { i32::from(raw) }
    };
    (0..4).fold(c, |sum, n| sum.wrapping_add(byte(a, n, signed_a).wrapping_mul(byte(b, n, signed_b)) as u32))
}

/// `dp2a`: two products of halves of `a` with bytes of the lower or upper half of `b`, added to `c`.
pub fn dp2a(signed_a: bool, signed_b: bool, high: bool, a: u32, b: u32, c: u32) -> u32 {
    let half = |n: u32| {
        let raw = (a >> (16 * n)) as u16;
        if signed_a { i32::from(raw as i16) } else { i32::from(raw) }
    };
    let byte = |n: u32| {
        let raw = (b >> (8 * n + if high { 16 } else { 0 })) as u8;
        if signed_b { i32::from(raw as i8) } else { i32::from(raw) }
    };
    (0..2).fold(c, |sum, n| sum.wrapping_add(half(n).wrapping_mul(byte(n)) as u32))
}
