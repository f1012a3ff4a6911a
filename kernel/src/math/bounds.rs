//! How far a math function may be from the exact value: one table for documentation, tests and the reference evaluator.
//!
//! The accurate functions give the same bits on every machine. The `approx::` functions wrap approximate instructions,
//! whose results differ between machines within the bounds of the PTX ISA (9.7.3: `ex2`, `lg2`, `sqrt`, `rsqrt`, `sin`,
//! `cos`, `tanh`).

use crate::algorithm::Unary;
use crate::element::ElementType;

/// Error of a function on a range: |result − exact| ≤ `ulp`·ulp(exact) + `relative`·|exact| + `absolute` +
/// `input`·|x·exact|.
///
/// ulp(y) is the distance of neighbouring numbers of the type in the binade of y, at least the least subnormal number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The function.
    pub function: Unary,
    /// Type of argument and result: `F32` or `F64`.
    pub ty: ElementType,
    /// Smallest argument for which the bound holds.
    pub from: f64,
    /// Largest argument for which the bound holds.
    pub to: f64,
    /// Error in units in the last place of the exact value.
    pub ulp: f64,
    /// Error relative to the exact value.
    pub relative: f64,
    /// Error whatever the exact value.
    pub absolute: f64,
    /// Error relative to the product of argument and exact value.
    pub input: f64,
    /// What happens outside the range, and other particulars.
    pub note: &'static str,
}

const WHOLE: Bound = Bound {
    function: Unary::Exp,
    ty: ElementType::F32,
    from: f64::NEG_INFINITY,
    to: f64::INFINITY,
    ulp: 0.0,
    relative: 0.0,
    absolute: 0.0,
    input: 0.0,
    note: "",
};

const DOUBLE: Bound = Bound { ty: ElementType::F64, ..WHOLE };

const TURN: f64 = std::f64::consts::TAU;
const TWO_POW_MINUS_22: f64 = 1.0 / 4_194_304.0;
const TWO_POW_MINUS_23: f64 = TWO_POW_MINUS_22 / 2.0;

/// The bound of every math function, per type.
pub const BOUNDS: [Bound; 24] = [
    Bound { function: Unary::Exp, ulp: 2.0, note: "overflows to inf, underflows gradually to 0", ..WHOLE },
    Bound { function: Unary::Log, ulp: 2.0, note: "log(±0) = -inf; NaN below 0", ..WHOLE },
    Bound { function: Unary::Sqrt, ulp: 0.5, note: "correctly rounded; sqrt(-0) = -0; NaN below 0", ..WHOLE },
    Bound { function: Unary::Rsqrt, ulp: 2.0, note: "rsqrt(±0) = ±inf; NaN below 0", ..WHOLE },
    Bound { function: Unary::Tanh, ulp: 2.0, note: "never beyond ±1; tanh(±0) = ±0", ..WHOLE },
    Bound { function: Unary::Erf, ulp: 2.0, note: "never beyond ±1; erf(±0) = ±0", ..WHOLE },
    Bound { function: Unary::Sin, ulp: 2.0, note: "sin(±0) = ±0; NaN of infinities", ..WHOLE },
    Bound { function: Unary::Cos, ulp: 2.0, note: "NaN of infinities", ..WHOLE },
    Bound { function: Unary::Exp, ulp: 2.0, note: "overflows to inf, underflows gradually to 0", ..DOUBLE },
    Bound { function: Unary::Log, ulp: 2.0, note: "log(±0) = -inf; NaN below 0", ..DOUBLE },
    Bound { function: Unary::Tanh, ulp: 2.0, note: "never beyond ±1; tanh(±0) = ±0", ..DOUBLE },
    Bound { function: Unary::Erf, ulp: 2.0, note: "never beyond ±1; erf(±0) = ±0", ..DOUBLE },
    Bound { function: Unary::Sin, ulp: 2.0, note: "sin(±0) = ±0; NaN of infinities", ..DOUBLE },
    Bound { function: Unary::Cos, ulp: 2.0, note: "NaN of infinities", ..DOUBLE },
    Bound { function: Unary::Sqrt, ulp: 0.5, note: "correctly rounded; sqrt(-0) = -0; NaN below 0", ..DOUBLE },
    Bound { function: Unary::Rsqrt, ulp: 2.0, note: "rsqrt(±0) = ±inf; NaN below 0", ..DOUBLE },
    Bound {
        function: Unary::ApproxExp,
        ulp: 2.0,
        relative: TWO_POW_MINUS_22,
        absolute: f32::MIN_POSITIVE as f64,
        input: TWO_POW_MINUS_23,
        note: "ex2.approx of x·log2(e): the error grows with |x|; subnormal results are 0",
        ..WHOLE
    },
    Bound {
        function: Unary::ApproxExp2,
        ulp: 1.0,
        relative: TWO_POW_MINUS_22,
        absolute: f32::MIN_POSITIVE as f64,
        note: "ex2.approx; subnormal results are 0",
        ..WHOLE
    },
    Bound {
        function: Unary::ApproxLog,
        ulp: 1.0,
        relative: TWO_POW_MINUS_22,
        absolute: TWO_POW_MINUS_22,
        note: "lg2.approx times ln 2: few correct digits near x = 1",
        ..WHOLE
    },
    Bound { function: Unary::ApproxSqrt, ulp: 1.0, relative: TWO_POW_MINUS_23, note: "sqrt.approx", ..WHOLE },
    Bound { function: Unary::ApproxRsqrt, ulp: 1.0, relative: TWO_POW_MINUS_22, note: "rsqrt.approx", ..WHOLE },
    Bound { function: Unary::ApproxTanh, ulp: 1.0, relative: 1.0 / 2048.0, note: "tanh.approx", ..WHOLE },
    Bound {
        function: Unary::ApproxSin,
        from: -TURN,
        to: TURN,
        absolute: 3.0 * TWO_POW_MINUS_22, // 2^-20.5 rounded up
        note: "sin.approx; no promise outside ±2π",
        ..WHOLE
    },
    Bound {
        function: Unary::ApproxCos,
        from: -TURN,
        to: TURN,
        absolute: 3.0 * TWO_POW_MINUS_22, // 2^-20.5 rounded up
        note: "cos.approx; no promise outside ±2π",
        ..WHOLE
    },
];

/// The bound of a function in a type; none where the type has no such function.
///
/// f16, bf16 and tf32 functions are the f32 function of the same argument rounded once, so their bound is that of f32
/// before the final rounding.
pub fn bound(function: Unary, ty: ElementType) -> Option<&'static Bound> {
    let ty = match ty {
        ElementType::F16 | ElementType::Bf16 | ElementType::Tf32 => ElementType::F32,
        other => other,
    };
    BOUNDS.iter().find(|b| b.function == function && b.ty == ty)
}

/// Distance of neighbouring numbers of the type around a finite value: f64 for `F64`, f32 for every other type.
pub fn ulp(ty: ElementType, value: f64) -> f64 {
    let (fraction, least) = if ty == ElementType::F64 { (52, -1022) } else { (23, -126) };
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let exponent = exponent.max(least) - fraction;
    if exponent >= -1022 {
        f64::from_bits(((exponent + 1023) as u64) << 52)
    } else {
        f64::from_bits(1_u64 << (exponent + 1074).max(0))
    }
}

impl Bound {
    /// Whether the bound says anything about an argument; a NaN argument always gives NaN.
    pub fn covers(&self, x: f64) -> bool {
        x.is_nan() || (self.from <= x && x <= self.to)
    }

    /// Largest allowed distance from a finite exact value.
    pub fn tolerance(&self, x: f64, exact: f64) -> f64 {
        let size = exact.abs();
        // The small factor comes first: argument times value may be too large for a double.
        let input = if self.input == 0.0 || size == 0.0 { 0.0 } else { self.input * x.abs() * size };
        self.ulp * ulp(self.ty, exact) + self.relative * size + self.absolute + input
    }

    /// Whether a result is allowed for an argument, given the exact value (to f64 precision). Anything is allowed
    /// outside the range. A finite exact value may overflow where an allowed result exceeds the largest number.
    pub fn admits(&self, x: f64, exact: f64, result: f64) -> bool {
        if !self.covers(x) || (exact.is_nan() && result.is_nan()) || exact == result {
            return true;
        }
        if exact.is_nan() || result.is_nan() || (result.is_infinite() && result.signum() != exact.signum()) {
            return false;
        }
        let largest = if self.ty == ElementType::F64 { f64::MAX } else { f64::from(f32::MAX) };
        match (exact.is_infinite(), result.is_infinite()) {
            (true, _) => false,
            (false, true) => exact.abs() + self.tolerance(x, exact) >= largest,
            // An exact value beyond the largest number: the largest number is allowed if it is near enough.
            (false, false) => (result - exact).abs() <= self.tolerance(x, exact),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_one_bound_per_type() {
        for (i, a) in BOUNDS.iter().enumerate() {
            assert!(BOUNDS[..i].iter().all(|b| (b.function, b.ty) != (a.function, a.ty)), "{:?} twice", a.function);
            assert_eq!(bound(a.function, a.ty), Some(a));
        }
        assert_eq!(bound(Unary::Exp, ElementType::Bf16), bound(Unary::Exp, ElementType::F32));
        assert_eq!(bound(Unary::Exp, ElementType::I32), None);
        assert_eq!(bound(Unary::Neg, ElementType::F32), None);
    }

    #[test]
    fn ulp_is_the_distance_to_the_next_number() {
        for value in [1.0_f32, 1.5, 2.0, 0.99, 1e-38, 1e-42, 3e38, f32::MIN_POSITIVE] {
            assert_eq!(
                ulp(ElementType::F32, f64::from(value)),
                f64::from(value.next_up()) - f64::from(value),
                "{value}"
            );
        }
        for value in [1.0_f64, -3.0, 1e-300, 1e-310, 0.0, 1e308, f64::MIN_POSITIVE] {
            assert_eq!(ulp(ElementType::F64, value), value.abs().next_up() - value.abs(), "{value}");
        }
        assert_eq!(ulp(ElementType::F32, 0.0), f64::from(f32::from_bits(1)));
    }

    #[test]
    fn admits_what_is_near_and_nothing_else() {
        let exp = bound(Unary::Exp, ElementType::F32).unwrap();
        let one = f64::from(1.0_f32.next_up());
        assert!(exp.admits(0.0, 1.0, one) && !exp.admits(0.0, 1.0, 1.0 + 2.5 * (one - 1.0)));
        assert!(exp.admits(f64::NAN, f64::NAN, f64::NAN) && !exp.admits(0.0, 1.0, f64::NAN));
        assert!(!exp.admits(0.0, f64::NAN, 1.0) && !exp.admits(89.0, f64::INFINITY, 1e38));
        let largest = f64::from(f32::MAX);
        assert!(exp.admits(88.7, largest, f64::INFINITY) && !exp.admits(88.0, 1e38, f64::INFINITY));
        assert!(!exp.admits(88.7, largest, f64::NEG_INFINITY) && exp.admits(90.0, 1e39, f64::INFINITY));
        let sin = bound(Unary::ApproxSin, ElementType::F32).unwrap();
        assert!(sin.admits(1e7, 0.4, f64::NAN) && !sin.admits(1.0, 0.8414, f64::NAN));
    }
}
