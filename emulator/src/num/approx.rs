//! Approximate instructions: the function in double precision, rounded once to the result type, and a test mode that
//! moves the result within the manual's error bound (PTX manual 9.7.3, tables "maximum error"). A kernel whose test
//! passes only with the unmoved values relies on something that no GPU promises.

use tilewright_kernel::math::{Host, double};

use super::elementary;
use super::exact;
use super::float::{FloatMode, FloatType};
use super::format::{F32, F64, Format, Round};

/// An approximate function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Approx {
    /// 1/a.
    Rcp,
    /// √a.
    Sqrt,
    /// 1/√a.
    Rsqrt,
    /// 2^a.
    Ex2,
    /// log₂ a.
    Lg2,
    /// Sine of radians.
    Sin,
    /// Cosine of radians.
    Cos,
    /// Hyperbolic tangent.
    Tanh,
}

/// How far a perturbed result may be from the exact one.
enum Bound {
    /// Relative to the result.
    Relative(f64),
    /// Absolute.
    Absolute(f64),
}

fn bound(op: Approx, mode: FloatMode, value: f64) -> Bound {
    use Bound::{Absolute, Relative};
    let two = |e: f64| e.exp2();
    match (op, mode.ty) {
        // With `.ftz` a rough value of 20 bits; without it a library's, within a unit.
        (Approx::Rsqrt, FloatType::F64) if !mode.ftz => Relative(two(-52.0)),
        (Approx::Ex2, FloatType::F16) => Relative(two(-9.9)),
        (Approx::Ex2, FloatType::Bf16) => Relative(two(-7.0)),
        (Approx::Tanh, FloatType::F16) => Absolute(two(-10.987)),
        (Approx::Tanh, FloatType::Bf16) => Absolute(two(-8.0)),
        (Approx::Tanh, _) => Relative(two(-11.0)),
        (Approx::Rcp | Approx::Rsqrt, FloatType::F64) => Relative(two(-19.0)),
        (Approx::Rcp, _) => Relative(two(-23.0)),
        (Approx::Sqrt, _) => Relative(two(-23.0)),
        (Approx::Rsqrt, _) => Relative(two(-22.9)),
        (Approx::Ex2, _) => Relative(two(-22.0)),
        (Approx::Lg2, _) if value.abs() <= 1.0 => Absolute(two(-22.0)),
        (Approx::Lg2, _) => Relative(two(-22.0)),
        (Approx::Sin | Approx::Cos, _) => Absolute(two(-20.5)),
    }
}

/// A number in [-1, 1] that depends on nothing but its arguments: the same operand always moves the same way, as on a
/// GPU.
fn noise(seed: u64, salt: u64, a: u64, b: u64) -> f64 {
    let mut x = seed ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for word in [a, b] {
        x = (x ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^= x >> 29;
        x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 32;
    }
    (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn to_f64(format: Format, bits: u64) -> f64 {
    f64::from_bits(exact::convert(format, F64, Round::Nearest, bits))
}

fn finish(mode: FloatMode, value: f64) -> u64 {
    mode.result(exact::convert(F64, mode.ty.format(), Round::Nearest, value.to_bits()))
}

/// The word of an f64 that `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64` read and write.
const UPPER: u64 = 0xffff_ffff_0000_0000;

/// A result of those two: rounded to 20 bits of the fraction, the lower word zero, a NaN of its own (PTX manual
/// 9.7.3.14, 9.7.3.17).
fn finish_upper(mode: FloatMode, value: f64) -> u64 {
    if value.is_nan() {
        return 0x7fff_ffff_0000_0000;
    }
    // A carry out of the fraction runs into the exponent, and infinities have none.
    mode.result(value.to_bits().wrapping_add(1 << 31) & UPPER)
}

/// The function's result; `perturb` is the seed of the test mode.
pub fn approx(op: Approx, mode: FloatMode, a: u64, perturb: Option<u64>) -> u64 {
    let format = mode.ty.format();
    let upper = mode.ty == FloatType::F64 && mode.ftz;
    let a = if upper { a & UPPER } else { a };
    let a = if mode.ftz { format.flush(a) } else { a };
    let x = to_f64(format, a);
    let finish = |mode, value| if upper { finish_upper(mode, value) } else { finish(mode, value) };
    let value = match op {
        Approx::Rcp => 1.0 / x,
        Approx::Sqrt => x.sqrt(),
        Approx::Rsqrt => 1.0 / x.sqrt(),
        Approx::Ex2 => elementary::exp2(x),
        Approx::Lg2 => elementary::log2(x),
        // The same on every host, unlike those of a platform's library.
        Approx::Sin => double::sin(&mut Host::<f64>::default(), x),
        Approx::Cos => double::cos(&mut Host::<f64>::default(), x),
        Approx::Tanh => double::tanh(&mut Host::<f64>::default(), x),
    };
    let Some(seed) = perturb else { return finish(mode, value) };
    // The manual does not say that powers of two are exact; CUDA's `erf` of doubles rests on it.
    let power = op == Approx::Ex2 && x.fract() == 0.0;
    let exact_result = x == 0.0 || value == 0.0 || !value.is_finite() || power;
    if exact_result {
        return finish(mode, value);
    }
    let amount = noise(seed, op as u64 + 1, a, 0);
    // Rounding to the result type adds half a unit, so the noise stays clear of the bound by as much.
    let half_unit = 0.5 * (-f64::from(if upper { 20 } else { format.fraction })).exp2();
    // Subnormal results have fewer bits.
    let half_unit = half_unit * (to_f64(format, 1 << format.fraction) / value.abs()).max(1.0);
    let moved = match bound(op, mode, value) {
        Bound::Relative(r) => value * (1.0 + amount * (r - half_unit).max(r * 0.25)),
        Bound::Absolute(r) => value + amount * (r - half_unit).max(r * 0.25),
    };
    let moved = if op == Approx::Tanh { moved.clamp(-1.0, 1.0) } else { moved };
    finish(mode, moved)
}

/// `div.approx` and `div.full` of f32: at most 2 units in the last place. `div.approx` gives zero for divisors above
/// 2^126, and NaN when the dividend is infinite as well (PTX manual 9.7.3.8).
pub fn div(mode: FloatMode, full_range: bool, a: u64, b: u64, perturb: Option<u64>) -> u64 {
    let (a, b) = if mode.ftz { (F32.flush(a), F32.flush(b)) } else { (a, b) };
    let (x, y) = (to_f64(F32, a), to_f64(F32, b));
    let huge = y.abs() > 126f64.exp2() && y.is_finite();
    let value = if huge && !full_range {
        if x.is_infinite() || x.is_nan() { f64::NAN } else { 0.0 * x * y.signum() }
    } else {
        x / y
    };
    match perturb {
        Some(seed) if value != 0.0 && value.is_finite() => {
            // The power of two below the value is 2^23 units of it.
            let unit = f64::from_bits(value.to_bits() & 0x7ff0_0000_0000_0000) * (-23f64).exp2();
            finish(mode, value + noise(seed, 99, a, b) * 1.5 * unit)
        }
        _ => finish(mode, value),
    }
}
