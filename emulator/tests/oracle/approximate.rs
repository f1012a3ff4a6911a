//! Roots, reciprocals and transcendental functions (9.7.3.13 onwards, 9.7.4.9 onwards): the exact ones to the bit, the
//! approximate ones by the manual's bounds, with the host's functions of f64 for the values.

use tilewright_ptx::isa::Math;

use super::float::{Mode, unit};
use super::inputs;
use super::meaning::{Meaning, Want, wanted};
use super::real::{self, BF16, F16, F32, F64, Format, Value};
use super::table::Variant;

pub fn meaning(variant: &Variant, math: Math) -> Option<Meaning> {
    let (format, parts) = inputs::format(variant.ty(0))?;
    let mode = Mode::of(variant, format);
    let meaning = match (math, variant.has("approx")) {
        (Math::Rcp, false) => wanted(move |x| mode.write(&real::div(format.decode(format.one()), mode.read(x[0])))),
        (Math::Sqrt, false) => wanted(move |x| mode.write(&real::sqrt(mode.read(x[0])))),
        (_, false) => None,
        (Math::Rcp | Math::Rsqrt, true) if format == F64 && mode.ftz => {
            let root = math == Math::Rsqrt;
            wanted(move |x| upper(mode, root, x[0]))
        }
        (_, true) => wanted(move |x| near(mode, math, mode.operand(x[0]))),
    };
    meaning.map(|meaning| Meaning { halves: parts == 2, ..meaning })
}

/// `rcp.approx.ftz.f64`, `rsqrt.approx.ftz.f64`: only the upper words count, and NaN is one of its own (9.7.3.14,
/// 9.7.3.17).
fn upper(mode: Mode, root: bool, a: u64) -> Want {
    let x = f64::from_bits(mode.operand(a >> 32 << 32));
    let value = if root { 1.0 / x.sqrt() } else { 1.0 / x };
    // 20 bits of the fraction.
    match () {
        () if value.is_nan() => Want::Bits(0x7fff_ffff_0000_0000),
        () if value == 0.0 || value.is_infinite() || value.is_subnormal() => Want::Bits(mode.operand(value.to_bits())),
        () => Want::Upper { value, bound: value.abs() * (-19f64).exp2() },
    }
}

fn function(math: Math, x: f64) -> f64 {
    match math {
        Math::Rcp => 1.0 / x,
        Math::Sqrt => x.sqrt(),
        Math::Rsqrt => 1.0 / x.sqrt(),
        Math::Sin => x.sin(),
        Math::Cos => x.cos(),
        Math::Lg2 => x.log2(),
        Math::Ex2 => x.exp2(),
        Math::Tanh => x.tanh(),
    }
}

/// The manual's bound of the error at a value.
fn bound(format: Format, math: Math, value: f64) -> f64 {
    let relative = |bits: f64| value.abs() * (-bits).exp2();
    match (math, format) {
        (Math::Rsqrt, F64) => relative(51.0),
        (Math::Ex2, F16) => relative(9.9),
        (Math::Ex2, BF16) => relative(7.0),
        (Math::Tanh, F16) => (-10.987f64).exp2(),
        (Math::Tanh, BF16) => (-8f64).exp2(),
        (Math::Tanh, _) => relative(11.0),
        (Math::Rcp | Math::Sqrt, _) => relative(23.0),
        (Math::Rsqrt, _) => relative(22.9),
        (Math::Ex2, _) => relative(22.0),
        (Math::Lg2, _) => (-22f64).exp2().max(relative(22.0)),
        (Math::Sin | Math::Cos, _) => (-20.5f64).exp2(),
    }
}

fn near(mode: Mode, math: Math, a: u64) -> Want {
    let format = mode.format;
    let x = format.to_f64(a);
    let value = function(math, x);
    if value.is_nan() {
        return mode.result(format.nan());
    }
    let rounded = format.encode(&F64.decode(value.to_bits()), real::Round::Even);
    let exact =
        value == 0.0 || value.is_infinite() || matches!(format.decode(rounded), Value::Zero(_) | Value::Infinity(_));
    // A function of zero is exact: 1, 0 or an infinity. A subnormal result that is flushed is a zero.
    if exact || x == 0.0 || mode.ftz && format.is_subnormal(rounded) {
        return mode.result(rounded);
    }
    let bound = bound(format, math, value).max(unit(format, value));
    // Only f32 flushes by instructions that have one result.
    if mode.ftz && format == F32 {
        return Want::NearOrFlushed { format, value, bound };
    }
    Want::Near { format, value, bound }
}
