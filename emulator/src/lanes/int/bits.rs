//! Instructions that pick bits, fields and bytes of registers: `prmt`, `bfe`, `bfi`, `shf`, `bmsk`, `szext`,
//! `fns`.

use crate::lanes::{Rows, choose};

/// Byte selection of `prmt` (PTX manual 9.7.9.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are the manual's")]
pub enum Prmt {
    Default,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// `prmt` without a mode in every lane.
#[inline(always)]
pub fn prmt_row(rows: &mut Rows<u32>, [d, a, b, c]: [u32; 4]) {
    let (a, b, c) = (&rows[a], &rows[b], &rows[c]);
    each!(rows[d], i => {
        let (x, y, control) = (a[i], b[i], c[i]);
        macro_rules! byte {
            ($n:literal) => {{
                let chosen = control >> (4 * $n);
                let word = choose(chosen & 4 == 0, x, y);
                let value = word >> (8 * (chosen & 3)) & 0xff;
                let sign = if value & 0x80 == 0 { 0 } else { 0xff };
                (if chosen & 8 == 0 { value } else { sign }) << (8 * $n)
            }};
        }
        byte!(0) | byte!(1) | byte!(2) | byte!(3)
    });
}

/// `prmt` of one lane.
pub fn prmt(mode: Prmt, a: u32, b: u32, control: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    let index = |n: u32| -> (usize, bool) {
        let c = control & 3;
        match mode {
            Prmt::Default => ((control >> (4 * n) & 7) as usize, control >> (4 * n) & 8 != 0),
            Prmt::F4e => ((c + n) as usize, false),
            Prmt::B4e => ((c.wrapping_sub(n) & 7) as usize, false),
            Prmt::Rc8 => (c as usize, false),
            Prmt::Ecl => (n.max(c) as usize, false),
            Prmt::Ecr => (n.min(c) as usize, false),
            Prmt::Rc16 => (((c & 1) * 2 + (n & 1)) as usize, false),
        }
    };
    let mut result = [0u8; 4];
    for n in 0..4 {
        let (at, sign) = index(n);
        result[n as usize] = if sign { ((bytes[at] as i8) >> 7) as u8 } else { bytes[at] };
    }
    u32::from_le_bytes(result)
}

macro_rules! fields {
    ($bfe:ident, $bfi:ident, $u:ty, $s:ty) => {
        /// `bfe`: `length` bits from `position`, zero- or sign-extended (PTX manual 9.7.1.19).
        #[inline(always)]
        pub fn $bfe(signed: bool, a: $u, position: u32, length: u32) -> $u {
            let (position, length) = (position & 0xff, length & 0xff);
            let top = <$u>::BITS - 1;
            // Of a field that lies beyond the top, the sign is left.
            let first = position.min(top);
            let width = length.min(top + 1 - first).max(1);
            let high = a << (top + 1 - first - width);
            let unused = top + 1 - width;
            let field = if signed { (high as $s >> unused) as $u } else { high >> unused };
            let beyond = if signed { (a as $s >> top) as $u } else { 0 };
            let field = if position > top { beyond } else { field };
            if length == 0 { 0 } else { field }
        }

        /// `bfi`: `length` bits of `a` put into `b` at `position` (PTX manual 9.7.1.20).
        #[inline(always)]
        pub fn $bfi(a: $u, b: $u, position: u32, length: u32) -> $u {
            let (position, length) = (position & 0xff, length & 0xff);
            let top = <$u>::BITS - 1;
            let first = position.min(top);
            let width = length.min(top + 1 - first).max(1);
            let ones = <$u>::MAX >> (top + 1 - width);
            let result = (b & !(ones << first)) | ((a & ones) << first);
            if position > top || length == 0 { b } else { result }
        }
    };
}
fields!(bfe32, bfi32, u32, i32);
fields!(bfe64, bfi64, u64, i64);

/// [`bfe32`] in every lane.
#[inline(always)]
pub fn bfe_row(signed: bool, rows: &mut Rows<u32>, [d, a, b, c]: [u32; 4]) {
    let (a, b, c) = (&rows[a], &rows[b], &rows[c]);
    if signed {
        each!(rows[d], i => bfe32(true, a[i], b[i], c[i]));
    } else {
        each!(rows[d], i => bfe32(false, a[i], b[i], c[i]));
    }
}

/// [`bfi32`] in every lane.
#[inline(always)]
pub fn bfi_row(rows: &mut Rows<u32>, [d, a, b, c, e]: [u32; 5]) {
    let (a, b, c, e) = (&rows[a], &rows[b], &rows[c], &rows[e]);
    each!(rows[d], i => bfi32(a[i], b[i], c[i], e[i]));
}

/// `shf`: the 64 bits `b a` shifted, upper half for left, lower half for right (PTX manual 9.7.8.3).
#[inline(always)]
pub fn shf(left: bool, wrap: bool, a: u32, b: u32, amount: u32) -> u32 {
    let n = if wrap { amount & 31 } else { amount.min(32) };
    // To the left by n is to the right by 32 − n.
    let n = if left { 32 - n } else { n };
    let low = if n < 32 { a >> (n & 31) } else { 0 };
    let high = if n > 0 { b << (32u32.wrapping_sub(n) & 31) } else { 0 };
    low | high
}

/// [`shf`] in every lane.
#[inline(always)]
pub fn shf_row(left: bool, wrap: bool, rows: &mut Rows<u32>, [d, a, b, c]: [u32; 4]) {
    let (a, b, c) = (&rows[a], &rows[b], &rows[c]);
    each!(rows[d], i => shf(left, wrap, a[i], b[i], c[i]));
}

/// `bmsk`: `length` ones from `position`.
pub fn bmsk(wrap: bool, position: u32, length: u32) -> u32 {
    let (position, length) = if wrap { (position & 31, length & 31) } else { (position.min(32), length.min(32)) };
    let ones = (1u64 << length) - 1;
    ((ones << position) & 0xffff_ffff) as u32
}

/// `szext`: the value's lowest `length` bits, extended to 32.
pub fn szext(signed: bool, wrap: bool, a: u32, length: u32) -> u32 {
    let n = if wrap { length & 31 } else { length.min(32) };
    match n {
        0 => 0,
        32 => a,
        _ if signed => ((a << (32 - n)) as i32 >> (32 - n)) as u32,
        _ => a & ((1 << n) - 1),
    }
}

/// `fns`: the position of the `offset`-th one bit from `base`, upwards for positive offsets, downwards for negative
/// ones.
pub fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    let base = base & 31;
    if offset == 0 {
        return if mask >> base & 1 == 1 { base } else { u32::MAX };
    }
    let mut left = offset.unsigned_abs();
    let mut at = i64::from(base);
    while (0..32).contains(&at) {
        if mask >> at & 1 == 1 {
            left -= 1;
            if left == 0 {
                return at as u32;
            }
        }
        at += i64::from(offset.signum());
    }
    u32::MAX
}
