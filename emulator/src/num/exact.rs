//! Exact arithmetic: add, multiply, fused multiply-add, divide, square root and conversion in any format and any
//! rounding. Slow and plain; it is the meaning of the instructions. `lanes` has fast paths for the common cases.

use super::format::{Format, Number, Round};

/// `a · b + c`, rounded once.
pub fn fma(format: Format, mode: Round, a: u64, b: u64, c: u64) -> u64 {
    let product = match (format.unpack(a), format.unpack(b)) {
        (Number::Nan, _) | (_, Number::Nan) => return format.nan,
        (Number::Infinity { .. }, Number::Zero { .. }) | (Number::Zero { .. }, Number::Infinity { .. }) => {
            return format.nan;
        }
        (Number::Infinity { negative: x }, other) | (other, Number::Infinity { negative: x }) => {
            Number::Infinity { negative: x ^ sign(other) }
        }
        (Number::Zero { negative: x }, other) | (other, Number::Zero { negative: x }) => {
            Number::Zero { negative: x ^ sign(other) }
        }
        (
            Number::Finite { negative: x, exponent: e, significand: s },
            Number::Finite { negative: y, exponent: f, significand: t },
        ) => Number::Finite { negative: x ^ y, exponent: e + f, significand: s * t },
    };
    sum(format, mode, product, format.unpack(c))
}

/// `a + b`, rounded once.
pub fn add(format: Format, mode: Round, a: u64, b: u64) -> u64 {
    sum(format, mode, format.unpack(a), format.unpack(b))
}

/// `a · b`, rounded once.
pub fn mul(format: Format, mode: Round, a: u64, b: u64) -> u64 {
    // Adding a zero of the product's sign changes nothing, not even the sign of a zero.
    let negative = format.is_negative(a) ^ format.is_negative(b);
    fma(format, mode, a, b, format.zero(negative))
}

fn sign(number: Number) -> bool {
    match number {
        Number::Nan => false,
        Number::Infinity { negative } | Number::Zero { negative } | Number::Finite { negative, .. } => negative,
    }
}

/// The sum of two numbers whose significands have at most 107 bits.
fn sum(format: Format, mode: Round, x: Number, y: Number) -> u64 {
    match (x, y) {
        (Number::Nan, _) | (_, Number::Nan) => format.nan,
        (Number::Infinity { negative }, Number::Infinity { negative: other }) => {
            if negative == other {
                format.with_sign(format.infinity(), negative)
            } else {
                format.nan
            }
        }
        (Number::Infinity { negative }, _) | (_, Number::Infinity { negative }) => {
            format.with_sign(format.infinity(), negative)
        }
        (Number::Zero { negative }, Number::Zero { negative: other }) => {
            format.zero(if negative == other { negative } else { mode == Round::Down })
        }
        (Number::Zero { .. }, Number::Finite { negative, exponent, significand })
        | (Number::Finite { negative, exponent, significand }, Number::Zero { .. }) => {
            format.round(negative, exponent, significand, false, mode)
        }
        (
            Number::Finite { negative: n, exponent: e, significand: s },
            Number::Finite { negative: m, exponent: f, significand: t },
        ) => {
            let top = |exponent: i32, significand: u128| exponent + 127 - significand.leading_zeros() as i32;
            let swap = top(e, s) < top(f, t);
            let (big, small) = if swap { ((m, f, t), (n, e, s)) } else { ((n, e, s), (m, f, t)) };
            // The larger one moves up to bit 125; the smaller one follows, and what falls off its end is jammed into
            // its last bit. Bits fall off only when the two are so far apart that at most one leading bit can cancel.
            let up = big.2.leading_zeros() as i32 - 2;
            let (base, s) = (big.1 - up, big.2 << up);
            let shift = small.1 - base;
            let t = match shift {
                0.. => small.2 << shift,
                -127..0 => {
                    let kept = small.2 >> -shift;
                    kept | u128::from(kept << -shift != small.2)
                }
                _ => 1,
            };
            if big.0 == small.0 {
                return format.round(big.0, base, s + t, false, mode);
            }
            if s == t {
                return format.zero(mode == Round::Down);
            }
            let (negative, difference) = if s > t { (big.0, s - t) } else { (small.0, t - s) };
            format.round(negative, base, difference, false, mode)
        }
    }
}

/// `a / b`, rounded once.
pub fn div(format: Format, mode: Round, a: u64, b: u64) -> u64 {
    let negative = format.is_negative(a) ^ format.is_negative(b);
    match (format.unpack(a), format.unpack(b)) {
        (Number::Nan, _) | (_, Number::Nan) => format.nan,
        (Number::Infinity { .. }, Number::Infinity { .. }) | (Number::Zero { .. }, Number::Zero { .. }) => format.nan,
        (Number::Infinity { .. }, _) | (_, Number::Zero { .. }) => format.with_sign(format.infinity(), negative),
        (Number::Zero { .. }, _) | (_, Number::Infinity { .. }) => format.zero(negative),
        (Number::Finite { exponent: e, significand: s, .. }, Number::Finite { exponent: f, significand: t, .. }) => {
            let up = s.leading_zeros() as i32;
            let s = s << up;
            format.round(negative, e - up - f, s / t, !s.is_multiple_of(t), mode)
        }
    }
}

/// `sqrt(a)`, rounded once.
pub fn sqrt(format: Format, mode: Round, a: u64) -> u64 {
    match format.unpack(a) {
        Number::Nan => format.nan,
        Number::Zero { negative } => format.zero(negative),
        Number::Infinity { negative: false } => format.infinity(),
        Number::Infinity { .. } | Number::Finite { negative: true, .. } => format.nan,
        Number::Finite { exponent, significand, .. } => {
            let mut up = significand.leading_zeros() as i32;
            if (exponent - up) % 2 != 0 {
                up -= 1;
            }
            let wide = significand << up;
            let root = wide.isqrt();
            format.round(false, (exponent - up) / 2, root, root * root != wide, mode)
        }
    }
}

/// The value of `bits` in format `from`, rounded once into `to`.
pub fn convert(from: Format, to: Format, mode: Round, bits: u64) -> u64 {
    match from.unpack(bits) {
        Number::Nan => to.nan,
        Number::Infinity { negative } => to.with_sign(to.infinity(), negative),
        Number::Zero { negative } => to.zero(negative),
        Number::Finite { negative, exponent, significand } => to.round(negative, exponent, significand, false, mode),
    }
}

/// An integer's value rounded once into `to`. Zero is positive.
pub fn from_integer(to: Format, mode: Round, value: i128) -> u64 {
    to.round(value < 0, 0, value.unsigned_abs(), false, mode)
}

/// The value rounded to an integer of the given range, clamped to it (PTX manual 9.7.9.21: float to integer saturates).
/// NaN becomes `nan`.
pub fn to_integer(from: Format, mode: Round, bits: u64, range: (i128, i128), nan: i128) -> i128 {
    let (least, greatest) = range;
    match from.unpack(bits) {
        Number::Nan => nan,
        Number::Zero { .. } => 0,
        Number::Infinity { negative } => {
            if negative {
                least
            } else {
                greatest
            }
        }
        Number::Finite { negative, exponent, significand } => {
            let magnitude = round_magnitude(negative, exponent, significand, mode);
            if negative { (-magnitude).max(least) } else { magnitude.min(greatest) }
        }
    }
}

/// The value rounded to an integral value of the same format (`cvt.rni.f32.f32` and its kin); the sign of zero is kept.
pub fn round_to_integral(format: Format, mode: Round, bits: u64) -> u64 {
    match format.unpack(bits) {
        Number::Nan => format.nan,
        Number::Infinity { .. } | Number::Zero { .. } => bits,
        Number::Finite { exponent: 0.., .. } => bits,
        Number::Finite { negative, exponent, significand } => {
            let magnitude = round_magnitude(negative, exponent, significand, mode);
            format.round(negative, 0, magnitude.unsigned_abs(), false, Round::Nearest)
        }
    }
}

/// The magnitude of `significand · 2^exponent` rounded to an integer; at most 2^126, which is above every integer
/// range.
fn round_magnitude(negative: bool, exponent: i32, significand: u128, mode: Round) -> i128 {
    const LIMIT: i128 = 1 << 126;
    if exponent >= 0 {
        let fits = exponent <= significand.leading_zeros() as i32 - 2;
        return if fits { (significand << exponent) as i128 } else { LIMIT };
    }
    let down = -exponent;
    if down > 127 {
        let up = matches!((mode, negative), (Round::Up, false) | (Round::Down, true));
        return i128::from(up);
    }
    let kept = (significand >> down) as i128;
    let rest = significand & ((1 << down) - 1);
    let middle = 1u128 << (down - 1);
    let inexact = rest != 0;
    let up = match mode {
        Round::Nearest => rest > middle || (rest == middle && kept & 1 == 1),
        Round::NearestAway => rest >= middle,
        Round::Zero => false,
        Round::Down => negative && inexact,
        Round::Up => !negative && inexact,
    };
    kept + i128::from(up)
}
