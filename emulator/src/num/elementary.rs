//! Elementary functions in double precision, written so that a loop over lanes becomes vector code, and the same on
//! every host: a platform's own library differs in the last bits from another's. Sine, cosine and tangent are those of
//! the kernel crate.
//!
//! Against exact values (`accuracy`) `exp2` is within 5 units in the last place (4.6 found) and `log2` within 4 (1.9
//! found), far more than the 2⁻²⁴ of the results that are rounded from them: those are within 0.500001 units of f32,
//! and the nearest of f16 and bf16 but for ties of that size.

use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// A polynomial for 2^r, |r| ≤ 1/2: the series' terms (r·ln 2)^k / k! up to the 13th, of which the last three are
/// economised: r·T(2r), with the Chebyshev polynomial T of one degree less, is at most 1/2, and a multiple of it that
/// cancels the highest term changes the value by less than 2⁻⁵¹. At r = 0 the value is exact.
const EXP: [f64; 11] = {
    let mut terms = [1.0; 14];
    let mut k = 1;
    while k < 14 {
        terms[k] = terms[k - 1] * LN_2 / k as f64;
        k += 1;
    }
    // Of the polynomials T(2r), by degree, the terms in r.
    let mut chebyshev = [[0.0; 13]; 13];
    chebyshev[0][0] = 1.0;
    chebyshev[1][1] = 2.0;
    let mut n = 2;
    while n < 13 {
        let mut k = 0;
        while k < 13 {
            let raised = if k > 0 { 4.0 * chebyshev[n - 1][k - 1] } else { 0.0 };
            chebyshev[n][k] = raised - chebyshev[n - 2][k];
            k += 1;
        }
        n += 1;
    }
    let mut degree = 13;
    while degree > 10 {
        let factor = terms[degree] / chebyshev[degree - 1][degree - 1];
        let mut k = 1;
        while k <= degree {
            terms[k] -= factor * chebyshev[degree - 1][k - 1];
            k += 1;
        }
        degree -= 1;
    }
    let mut kept = [0.0; 11];
    let mut k = 0;
    while k < 11 {
        kept[k] = terms[k];
        k += 1;
    }
    kept
};

/// Terms of the series of log₂((1+t)/(1−t)) = 2·log₂e·(t + t³/3 + …), where |t| ≤ 3 − 2√2 makes the 12th one below
/// 2⁻⁶⁰.
const LOG: [f64; 12] = {
    let mut terms = [0.0; 12];
    let mut k = 0;
    while k < 12 {
        terms[k] = 2.0 * LOG2_E / (2 * k + 1) as f64;
        k += 1;
    }
    terms
};

/// Adding it rounds to an integer, which the low bits of the sum then hold.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// 2^x.
#[inline(always)]
pub fn exp2(x: f64) -> f64 {
    // Beyond these limits the result is zero or infinite in every format it is rounded to; NaN passes.
    let x = if x > 1000.0 { 1000.0 } else { x };
    let x = if x < -1000.0 { -1000.0 } else { x };
    let shifted = x + ROUND;
    let r = x - (shifted - ROUND);
    let mut sum = EXP[10];
    let mut k = 10;
    while k > 0 {
        k -= 1;
        sum = sum * r + EXP[k];
    }
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    sum * power
}

/// log₂ x.
#[inline(always)]
pub fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    // Dividing by 2^e, where e is chosen so that the mantissa is between √½ and √2.
    let above = (bits & 0x000f_ffff_ffff_ffff) > (SQRT_2.to_bits() & 0x000f_ffff_ffff_ffff);
    let biased = (bits >> 52) + u64::from(above);
    let mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | if above { 1022u64 << 52 } else { 1023 << 52 });
    // The exponent as a float, without a conversion that has no vector form.
    let exponent = f64::from_bits(biased | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 1023.0);
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let mut sum = LOG[11];
    let mut k = 11;
    while k > 0 {
        k -= 1;
        sum = sum * square + LOG[k];
    }
    let value = exponent + sum * t;
    let value = if x == 0.0 { f64::NEG_INFINITY } else { value };
    let value = if x == f64::INFINITY { x } else { value };
    if x < 0.0 || x.is_nan() { f64::NAN } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: f64, theirs: f64, x: f64) {
        let bound = 8.0 * f64::EPSILON * theirs.abs().max(f64::MIN_POSITIVE);
        assert!((ours - theirs).abs() <= bound, "{x:e}: {ours:e}, and the library gives {theirs:e}");
    }

    #[test]
    fn near_the_library() {
        // Every 997th f32 from −160 to 160, and powers of ten over the range of f32.
        for step in 0..200_000u32 {
            let x = (f64::from(step) - 100_000.0) * 0.001_599_87;
            close(exp2(x), x.exp2(), x);
        }
        for step in 0..200_000u32 {
            let x = f64::from(f32::from_bits(1 + step * 10_000));
            close(log2(x), x.log2(), x);
            let near_one = 1.0 + (f64::from(step) - 100_000.0) / 250_000.0;
            close(log2(near_one), near_one.log2(), near_one);
        }
    }

    #[test]
    fn exact_and_special_values() {
        for n in -149..=127i32 {
            let power = f64::from(n).exp2();
            assert_eq!((exp2(f64::from(n)), log2(power)), (power, f64::from(n)));
        }
        assert!(exp2(f64::NAN).is_nan() && log2(f64::NAN).is_nan() && log2(-1.0).is_nan());
        assert_eq!((exp2(f64::NEG_INFINITY) as f32, exp2(f64::INFINITY) as f32), (0.0, f32::INFINITY));
        assert_eq!((exp2(-0.0), log2(0.0), log2(-0.0)), (1.0, f64::NEG_INFINITY, f64::NEG_INFINITY));
        assert_eq!((log2(f64::INFINITY), log2(1.0).to_bits()), (f64::INFINITY, 0));
    }
}
