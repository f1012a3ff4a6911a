//! Exact values to nearly f64 precision, by code that shares nothing with the functions under test.

use crate::algorithm::Unary;

/// The function in f64.
pub fn exact(function: Unary, x: f64) -> f64 {
    match function {
        Unary::Exp | Unary::ApproxExp => x.exp(),
        Unary::ApproxExp2 => x.exp2(),
        Unary::Log | Unary::ApproxLog => x.ln(),
        Unary::Sqrt | Unary::ApproxSqrt => x.sqrt(),
        Unary::Rsqrt | Unary::ApproxRsqrt => 1.0 / x.sqrt(),
        Unary::Tanh | Unary::ApproxTanh => x.tanh(),
        Unary::Erf => erf(x),
        Unary::Sin | Unary::ApproxSin => x.sin(),
        Unary::Cos | Unary::ApproxCos => x.cos(),
        Unary::Neg | Unary::Not | Unary::Abs | Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Round => {
            unreachable!("no math function")
        }
    }
}

/// Error function: 2/√π·e^(−x²)·Σ 2ⁿ·x^(2n+1)/(1·3·5···(2n+1)) (Abramowitz and Stegun 7.1.6), whose terms are all of
/// one sign.
pub fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() >= 6.0 {
        return if x.is_nan() { x } else { 1.0_f64.copysign(x) }; // 1 − erf(6) < 2^-55
    }
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > sum.abs() * 1e-18 {
        odd += 2.0;
        term *= 2.0 * x * x / odd;
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

#[test]
fn erf_agrees_with_known_values() {
    // Abramowitz and Stegun, table 7.1.
    for (x, y) in [(0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (1.5, 0.966_105_146_5), (2.0, 0.995_322_265_0)] {
        assert!((erf(x) - y).abs() < 1e-10, "{x}");
        assert_eq!(erf(-x), -erf(x));
    }
    // The complement at 3, 2.209049699858544e-5, needs the digits that 1 − x loses.
    assert!((1.0 - erf(3.0) - 2.209_049_699_858_544e-5).abs() < 1e-15);
    assert_eq!(erf(f64::INFINITY), 1.0);
    assert!(erf(f64::NAN).is_nan() && erf(-0.0).is_sign_negative());
}
