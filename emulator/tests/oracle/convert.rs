//! Conversions (9.7.9.21), moves and packing.

use tilewright_ptx::ScalarType;

use super::float::round;
use super::inputs;
use super::integer::{clamp, cut, number};
use super::meaning::{Meaning, Want, one, wanted};
use super::real::{self, F32, F64, Format, Round, TF32, Value};
use super::table::Variant;

/// What a conversion says besides its types.
#[derive(Clone, Copy, Debug)]
struct Flags {
    round: Round,
    integral: bool,
    ftz: bool,
    sat: bool,
    relu: bool,
    satfinite: bool,
}

fn flags(variant: &Variant) -> Flags {
    let has = |word: &str| variant.has(word);
    Flags {
        round: round(variant),
        integral: ["rni", "rzi", "rmi", "rpi"].into_iter().any(has),
        ftz: has("ftz"),
        sat: has("sat"),
        relu: has("relu"),
        satfinite: has("satfinite"),
    }
}

pub fn cvt(variant: &Variant) -> Option<Meaning> {
    let flags = flags(variant);
    let (to, from) = (variant.ty(0), variant.ty(1));
    let (to_format, from_format) = (inputs::format(to), inputs::format(from));
    let register = variant.results[0].register;
    match (to_format, from_format) {
        (None, None) if from.is_float() || to.is_float() && to != ScalarType::Tf32 => None,
        (None, None) => {
            let (bits, signed) = (to.bits(), to.is_signed());
            let (from_bits, from_signed) = (from.bits(), from.is_signed());
            one(move |x| {
                let value = number(from_bits, from_signed, x[0]);
                let value = if flags.sat { clamp(bits, signed, value) } else { value };
                widened(to, register, cut(bits, value))
            })
        }
        (None, Some((format, 1))) if to == ScalarType::Tf32 => wanted(move |x| {
            let Want::Bits(bits) = float(flags, TF32, &format.decode(x[0])) else { return Want::Nan(F32) };
            // The fraction ends 13 bits above that of an f32. The canonical NaN is all ones in what counts.
            Want::Bits(bits << 13)
        }),
        (None, Some((format, 1))) => one(move |x| {
            let bits = if flags.ftz && format == F32 { format.flushed(x[0]) } else { x[0] };
            widened(to, register, to_integer(flags, to, format, &format.decode(bits)))
        }),
        (Some((format, 1)), None) => wanted(move |x| {
            let value = real::integer(number(from.bits(), from.is_signed(), x[0]));
            float(flags, format, &value)
        }),
        (Some((format, 1)), Some((from, 1))) => wanted(move |x| from_float(flags, format, from, x[0])),
        // Two numbers: the first goes to the upper half.
        (Some((format, 2)), Some((from, 1))) => wanted(move |x| {
            joined(format, from_float(flags, format, from, x[0]), from_float(flags, format, from, x[1]))
        }),
        (Some((format, 2)), Some((from, 2))) => wanted(move |x| {
            let part = |shift: u32| from_float(flags, format, from, x[0] >> shift & (from.sign() | from.nan()));
            joined(format, part(from.bits()), part(0))
        }),
        _ => None,
    }
}

fn joined(format: Format, upper: Want, lower: Want) -> Want {
    match (upper, lower) {
        (Want::Bits(upper), Want::Bits(lower)) => Want::Bits(upper << format.bits() | lower),
        _ => Want::Open,
    }
}

/// A result in a register that may be wider than its type (9.4.1, table of destination operands): extended by the
/// type's sign.
fn widened(ty: ScalarType, register: u32, bits: u64) -> u64 {
    cut(register, number(ty.bits(), ty.is_signed(), bits))
}

fn from_float(flags: Flags, format: Format, from: Format, bits: u64) -> Want {
    let bits = if flags.ftz && from == F32 { from.flushed(bits) } else { bits };
    let value = from.decode(bits);
    if !flags.integral {
        return float(flags, format, &value);
    }
    let rounded = match (real::integral(&value, flags.round), &value) {
        (Some(m), Value::Number(number)) if m == num_bigint::BigUint::ZERO => Value::Zero(number.negative),
        (Some(m), Value::Number(number)) => Value::Number(real::Exact::new(number.negative, m, 0)),
        _ => value,
    };
    float(Flags { round: Round::Even, ..flags }, format, &rounded)
}

/// A value in a floating-point format: rounded, then flushed and clamped.
fn float(flags: Flags, format: Format, value: &Value) -> Want {
    if *value == Value::Nan {
        return if flags.sat { Want::Bits(0) } else { nan(format) };
    }
    let negative = real::is_negative(value);
    let bits = format.encode(value, flags.round);
    let bits = if flags.ftz && format == F32 { format.flushed(bits) } else { bits };
    Want::Bits(match () {
        () if (flags.relu || flags.sat) && negative => 0,
        () if flags.sat => bits.min(format.one()),
        () if flags.satfinite && bits & format.nan() >= format.infinity() => format.greatest() | bits & format.sign(),
        () => bits,
    })
}

/// Which NaN an f64 gets is open; the others have a canonical one.
fn nan(format: Format) -> Want {
    if format == F64 { Want::Nan(format) } else { Want::Bits(format.nan()) }
}

/// Rounded to an integer and clamped. NaN is 0, but the top bit alone if the operand is an f64 or the result has 64
/// bits.
fn to_integer(flags: Flags, to: ScalarType, from: Format, value: &Value) -> u64 {
    let (bits, signed) = (to.bits(), to.is_signed());
    match (value, real::integral(value, flags.round)) {
        (Value::Nan, _) => {
            if from == F64 || bits == 64 {
                1 << (bits - 1)
            } else {
                0
            }
        }
        (Value::Infinity(negative), _) => cut(bits, clamp(bits, signed, if *negative { i128::MIN } else { i128::MAX })),
        (value, integer) => {
            let magnitude = integer.and_then(|integer| i128::try_from(integer).ok()).unwrap_or(i128::MAX);
            let signed_value = if real::is_negative(value) { -magnitude } else { magnitude };
            cut(bits, clamp(bits, signed, signed_value))
        }
    }
}

/// `cvt.pack` (9.7.9.22): a and b clamped, b lowest; 8-bit results shift what was there before.
pub fn pack(variant: &Variant) -> Option<Meaning> {
    let ty = variant.ty(0);
    let (bits, signed) = (ty.bits(), ty.is_signed());
    one(move |x| {
        let part = |raw: u64| cut(bits, clamp(bits, signed, number(32, true, raw)));
        let before = x.get(2).map_or(0, |c| c << (2 * bits));
        (before | part(x[0]) << bits | part(x[1])) & 0xffff_ffff
    })
}

/// Moves of one register.
pub fn mov(variant: &Variant) -> Option<Meaning> {
    (variant.ty(0).bits() <= 64).then(|| one(|x| x[0])).flatten()
}
