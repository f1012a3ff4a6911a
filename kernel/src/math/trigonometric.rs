//! `sin` and `cos`: reduction to a quarter of a period with a three-part π/2, then two polynomials of which one is
//! chosen. Coefficients come from `derive.py`.

use super::double::trigonometric::large;
use super::ops::{Single, polynomial};

/// Arguments beyond it are reduced by way of f64.
const USUAL: f32 = 131_072.0;
// 0x1.8p23: adding it to a number below 2^22 rounds that number to an integer, which is then the low bits of the sum.
const ROUND: f32 = 12_582_912.0;
/// π/2 as a sum of three f32 numbers, to 2^-71.
const HALF_PI: [f32; 3] = [f32::from_bits(0x3fc9_0fda), 7.549_789_4e-8, 5.390_302_5e-15];
/// sin(r) = r + r·s·P(s), s = r², for |r| ≤ π/4 + 0.05, relative to it, to 2^-27.
const SIN: [f32; 3] = [-0.166_666_5, 0.008_331_836, -0.000_194_729_77];
/// cos(r) = 1 − s/2 + s²·P(s), s = r², for |r| ≤ π/4 + 0.05, relative to it, to 2^-32.
const COS: [f32; 3] = [0.041_666_634, -0.001_388_679_6, 2.437_693_2e-5];

/// Sine, x in radians, over all of f32; NaN of infinities.
pub fn sin<O: Single>(o: &mut O, x: O::F) -> O::F {
    let a = o.abs(x);
    let (r, quadrant) = reduce(o, a);
    let sign = o.bits(x);
    sine_from(o, a, r, quadrant, Some(sign))
}

/// Cosine, x in radians, over all of f32; NaN of infinities. A sine one quadrant on.
pub fn cos<O: Single>(o: &mut O, x: O::F) -> O::F {
    let a = o.abs(x);
    let (r, quadrant) = reduce(o, a);
    let one = o.int(1);
    let quadrant = o.int_add(quadrant, one);
    sine_from(o, a, r, quadrant, None)
}

/// r = a − n·π/2 with |r| ≤ π/4 and a little more, and a number whose two low bits are those of n.
///
/// The first difference is exact: both terms are multiples of 2^-24 and it is below 1. The second is rounded where it
/// is 2^-23 or more, and the third again, by an amount that grows with n: too much from about 500,000 on. Arguments
/// beyond the usual ones go by way of f64.
fn reduce<O: Single>(o: &mut O, a: O::F) -> (O::F, O::I) {
    let (scale, round) = (o.float(std::f32::consts::FRAC_2_PI), o.float(ROUND));
    let t = o.fma(a, scale, round);
    let n = o.sub(t, round);
    let mut r = a;
    for part in HALF_PI {
        let part = o.float(-part);
        r = o.fma(n, part, r);
    }
    let bits = o.bits(t);
    let usual = o.float(USUAL);
    let beyond = o.lt(usual, a);
    let ([r], quadrant) = o.rarely(beyond, ([r], bits), |o| {
        let wide = o.widen(a);
        // The exponent of an f32 is below 128.
        let ([r, _], quadrant) = o.wide(|o| large(o, wide, 1));
        ([o.narrow(r)], o.low(quadrant))
    });
    (r, quadrant)
}

/// sin(r + quadrant·π/2) with the sign of `sign` changing it, or NaN if `a` is not finite.
fn sine_from<O: Single>(o: &mut O, a: O::F, r: O::F, quadrant: O::I, sign: Option<O::I>) -> O::F {
    let (one, minus_half) = (o.float(1.0), o.float(-0.5));
    let s = o.mul(r, r);
    let p = polynomial(o, s, &SIN);
    let p = o.mul(p, s);
    let sine = o.fma(p, r, r);
    let p = polynomial(o, s, &COS);
    let p = o.fma(p, s, minus_half);
    let cosine = o.fma(p, s, one);

    // Quadrants 1 and 3 take the cosine, 2 and 3 change the sign.
    let (one, two) = (o.int(1), o.int(2));
    let odd = o.and(quadrant, one);
    let is_odd = o.is_nonzero(odd);
    let y = o.select(is_odd, cosine, sine);
    let change = o.and(quadrant, two);
    let mut change = o.shl(change, 30);
    if let Some(sign) = sign {
        let top = o.int(1 << 31);
        let sign = o.and(sign, top);
        change = o.xor(change, sign);
    }
    let y = o.bits(y);
    let y = o.xor(y, change);
    let y = o.float_of(y);

    let (infinity, nan) = (o.float(f32::INFINITY), o.float(f32::NAN));
    let finite = o.lt(a, infinity);
    o.select(finite, y, nan)
}
