//! Operations on numbers of a type, by the numeric contract: integers wrap, floats are exact or there is no value.

use super::Fault;
use crate::compose::ast::{Number, Type};

/// A value as its type holds it; `size` bounds all that any order could reach on the way.
pub(super) fn held(value: Number, size: f64, ty: Type) -> Result<Number, Fault> {
    match value {
        Number::Int(n) => Ok(Number::Int(ty.wrapped(n))),
        Number::Float(_) if size.is_finite() && size > ty.exact() => Err(Fault::Inexact),
        Number::Float(_) => Ok(value),
    }
}

/// `as`: integers wrap, floats go to integers towards zero and saturate, NaN is 0 there.
pub(super) fn cast(value: Number, ty: Type) -> Result<Number, Fault> {
    match (value, ty.ends()) {
        (Number::Int(n), Some(_)) => Ok(Number::Int(ty.wrapped(n))),
        (Number::Float(_), Some((least, greatest))) => Ok(Number::Int(value.int().clamp(least, greatest))),
        (_, None) => {
            let float = value.float();
            held(Number::Float(float), float.abs(), ty)
        }
    }
}

pub(super) fn unary(op: &str, a: Number, ty: Type) -> Result<Number, Fault> {
    match (op, a) {
        ("half", Number::Float(a)) => Ok(Number::Float((a / 2.0).floor())),
        ("half-up", Number::Float(a)) => Ok(Number::Float((a / 2.0).ceil())),
        ("half-zero", Number::Float(a)) => Ok(Number::Float((a / 2.0).trunc())),
        ("half-even", Number::Float(a)) => Ok(Number::Float((a / 2.0).round_ties_even())),
        // Nothing, one, or what is no small integer.
        ("exp", Number::Float(a)) => match (a * 1000.0).exp() {
            large if large > 1.0 && large.is_finite() => Err(Fault::Inexact),
            value => Ok(Number::Float(value)),
        },
        ("abs", Number::Float(a)) => Ok(Number::Float(a.abs())),
        (_, Number::Float(a)) => Ok(Number::Float(-a)),
        // The least integer has no opposite: it wraps.
        ("abs", Number::Int(a)) => Ok(Number::Int(ty.wrapped(a.abs()))),
        (_, Number::Int(a)) => Ok(Number::Int(ty.wrapped(-a))),
    }
}

/// The greater one; NaN is passed on.
pub(super) fn max(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Float(x), _) if x.is_nan() => a,
        (_, Number::Float(y)) if y.is_nan() => b,
        _ if a.compare("<", b) => b,
        _ => a,
    }
}

/// The lesser one; NaN is passed on.
pub(super) fn min(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Float(x), _) if x.is_nan() => a,
        (_, Number::Float(y)) if y.is_nan() => b,
        _ if b.compare("<", a) => b,
        _ => a,
    }
}

pub(super) fn binary(op: &str, a: Number, b: Number, ty: Type) -> Result<Number, Fault> {
    let (a, b) = match (op, a, b) {
        ("max", ..) => return Ok(max(a, b)),
        ("min", ..) => return Ok(min(a, b)),
        ("max_num" | "min_num", Number::Float(x), Number::Float(y)) => {
            // These ignore NaN.
            return Ok(match (x.is_nan(), y.is_nan()) {
                (true, _) => b,
                (_, true) => a,
                _ if op == "max_num" => max(a, b),
                _ => min(a, b),
            });
        }
        (_, Number::Int(x), Number::Int(y)) => {
            let result = match op {
                "+" => x.wrapping_add(y),
                "-" => x.wrapping_sub(y),
                "*" => x.wrapping_mul(y),
                "&" => x & y,
                "|" => x | y,
                "^" => x ^ y,
                "<<" => {
                    if (0..ty.width()).contains(&y) {
                        x << y
                    } else {
                        0
                    }
                }
                ">>" => x >> if (0..ty.width()).contains(&y) { y } else { 127 },
                "/" => x.checked_div(y).ok_or(Fault::Outside)?,
                _ => x.checked_rem(y).ok_or(Fault::Outside)?,
            };
            return Ok(Number::Int(ty.wrapped(result)));
        }
        _ => (a.float(), b.float()),
    };
    let result = match op {
        "+" => a + b,
        "-" => a - b,
        "/" => a / b,
        _ => a * b,
    };
    held(Number::Float(result), result.abs(), ty)
}
