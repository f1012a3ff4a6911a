//! `sin` and `cos`: reduction to a quarter of a period with a three-part π/2, then two polynomials of which one is chosen.
//! Coefficients come from `derive.py`.

use super::ops::{Ops, polynomial};

/// Largest |x| that is reduced correctly; NaN beyond.
const RANGE: f32 = tilewright_kernel::math::TRIGONOMETRIC_RANGE as f32;
// 0x1.8p23: adding it to a number below 2^22 rounds that number to an integer, which is then the low bits of the sum.
const ROUND: f32 = 12_582_912.0;
/// π/2 as a sum of three f32 numbers, to 2^-71. All are positive, so that a zero times their negation is −0, which leaves the
/// sign of a zero argument as it is.
const HALF_PI: [f32; 3] = [f32::from_bits(0x3fc9_0fda), 7.549_789_4e-8, 5.390_302_5e-15];
/// sin(r) = r + r·s·P(s), s = r², for |r| ≤ π/4 + 0.05, relative to it, to 2^-27.
const SIN: [f32; 3] = [-0.166_666_5, 0.008_331_836, -0.000_194_729_77];
/// cos(r) = 1 − s/2 + s²·P(s), s = r², for |r| ≤ π/4 + 0.05, relative to it, to 2^-32.
const COS: [f32; 3] = [0.041_666_634, -0.001_388_679_6, 2.437_693_2e-5];

/// Sine, x in radians; NaN for |x| beyond [`TRIGONOMETRIC_RANGE`](tilewright_kernel::math::TRIGONOMETRIC_RANGE).
pub fn sin<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let (r, quadrant) = reduce(o, x);
    sine_from(o, x, r, quadrant)
}

/// Cosine, x in radians; NaN for |x| beyond [`TRIGONOMETRIC_RANGE`](tilewright_kernel::math::TRIGONOMETRIC_RANGE).
///
/// A sine one quadrant on.
pub fn cos<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let (r, quadrant) = reduce(o, x);
    let one = o.int(1);
    let quadrant = o.int_add(quadrant, one);
    sine_from(o, x, r, quadrant)
}

/// r = x − n·π/2 with |r| ≤ π/4 and a little more, and a number whose two low bits are those of n.
///
/// The first difference is exact where x is near a multiple of π/2: both terms are multiples of 2^-24 and it is below 1.
/// The second rounds relative to what is left, which is at least 2^-31 for |x| in range; the third is smaller than that.
fn reduce<O: Ops>(o: &mut O, x: O::F) -> (O::F, O::I) {
    let (scale, round) = (o.float(std::f32::consts::FRAC_2_PI), o.float(ROUND));
    let t = o.fma(x, scale, round);
    let n = o.sub(t, round);
    let mut r = x;
    for part in HALF_PI {
        let part = o.float(-part);
        r = o.fma(n, part, r);
    }
    (r, o.bits(t))
}

/// sin(r + quadrant·π/2), or NaN if x is outside the range.
fn sine_from<O: Ops>(o: &mut O, x: O::F, r: O::F, quadrant: O::I) -> O::F {
    let (zero, one, minus_half) = (o.float(0.0), o.float(1.0), o.float(-0.5));
    let s = o.mul(r, r);
    let p = polynomial(o, s, &SIN);
    // Not a product: it must be +0 for r = ±0, so that the next line keeps the sign of a zero.
    let p = o.fma(p, s, zero);
    let sine = o.fma(p, r, r);
    let p = polynomial(o, s, &COS);
    let p = o.fma(p, s, minus_half);
    let cosine = o.fma(p, s, one);

    // Quadrants 1 and 3 take the cosine, 2 and 3 change the sign.
    let (one, two) = (o.int(1), o.int(2));
    let odd = o.and(quadrant, one);
    let is_odd = o.is_nonzero(odd);
    let y = o.select(is_odd, cosine, sine);
    let sign = o.and(quadrant, two);
    let sign = o.shl(sign, 30);
    let y = o.bits(y);
    let y = o.xor(y, sign);
    let y = o.float_of(y);

    let (range, nan) = (o.float(RANGE), o.float(f32::NAN));
    let a = o.abs(x);
    let outside = o.lt(range, a);
    o.select(outside, nan, y)
}
