//! `sin` and `cos` of `f64`, and the reduction of large arguments, which `f32` uses too. Coefficients come from
//! `derive.py`.
//!
//! Both work on |x|, and reduce it to x = n·π/2 + r with |r| ≤ π/4 (and a little more), r as the sum of two numbers.

use crate::math::ops::{Double, polynomial};

/// Arguments beyond it are reduced by [`large`].
const USUAL: f64 = 1_048_576.0;
// 0x1.8p52: adding it to a number below 2^51 rounds that number to an integer, which is then the low bits of the sum.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// π/2 as a sum of three numbers, to 2^-163.
const HALF_PI: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33];
/// sin(r) = r + r·s·P(s), s = r², for |r| ≤ π/4 and a little more, relative to it, to 2^-57.
const SIN: [f64; 6] = [
    -0.166_666_666_666_666_3,
    0.008_333_333_333_321_974,
    -0.000_198_412_698_294_698_37,
    2.755_731_357_840_394e-06,
    -2.505_074_081_947_541e-08,
    1.589_581_599_347_784_2e-10,
];
/// cos(r) = 1 − s/2 + s²·P(s), s = r², for |r| ≤ π/4 and a little more, relative to it, to 2^-59.
const COS: [f64; 6] = [
    0.041_666_666_666_666_595,
    -0.001_388_888_888_887_285,
    2.480_158_728_871_974e-05,
    -2.755_731_414_020_804e-07,
    2.087_569_540_309_584_4e-09,
    -1.135_824_866_785_083_4e-11,
];

/// The bits of 2/π after 53 zeros and the point: bit p, from the top, counts 2^(53 − p).
const TWO_OVER_PI: [u64; 19] = [
    0x0000_0000_0000_028b,
    0xe60d_b939_1054_a7f0,
    0x9d5f_47d4_d377_036d,
    0x8a56_64f1_0e41_07f9,
    0x458e_af7a_ef15_86dc,
    0x91b8_e909_374b_8019,
    0x24bb_a827_4648_73f8,
    0x77ac_72c4_a69c_fba2,
    0x08d7_d4ba_ed12_13a6,
    0x71c0_9ad1_7df9_04e6,
    0x4758_e60d_4ce7_d272,
    0x117e_2ef7_e4a0_ec7f,
    0xe25f_ff78_1660_3fbc,
    0xbc46_2d68_29b4_7db4,
    0xd9fb_3c9f_2c26_dd3d,
    0x18fd_9a79_7fa8_b5d4,
    0x9eeb_1faf_97c5_ecf4,
    0x1ce7_de29_4a4b_a9af,
    0xed7e_c47e_3574_2158,
];

/// Sine, x in radians, over all of `f64`; NaN of infinities.
pub fn sin<O: Double>(o: &mut O, x: O::F) -> O::F {
    let a = o.abs(x);
    let (r, quadrant) = reduce(o, a);
    let sign = o.bits(x);
    sine_from(o, a, r, quadrant, Some(sign))
}

/// Cosine, x in radians, over all of `f64`; NaN of infinities. A sine one quadrant on.
pub fn cos<O: Double>(o: &mut O, x: O::F) -> O::F {
    let a = o.abs(x);
    let (r, quadrant) = reduce(o, a);
    let one = o.int(1);
    let quadrant = o.int_add(quadrant, one);
    sine_from(o, a, r, quadrant, None)
}

/// r and a number whose two low bits are those of n.
///
/// x − n·p₀ is exact: both are multiples of 2^-53 and the difference is below 1. The product n·p₁ is split exactly into
/// a number and its error, and so is the difference from it (Knuth, The Art of Computer Programming 2, section 4.2.2,
/// theorem B).
fn reduce<O: Double>(o: &mut O, a: O::F) -> ([O::F; 2], O::I) {
    let (scale, round) = (o.float(std::f64::consts::FRAC_2_PI), o.float(ROUND));
    let t = o.fma(a, scale, round);
    let n = o.sub(t, round);
    let parts = HALF_PI.map(|p| o.float(-p));
    let first = o.fma(n, parts[0], a);
    let product = o.mul(n, parts[1]);
    let minus_product = o.float(-1.0);
    let minus_product = o.mul(product, minus_product);
    let product_rest = o.fma(n, parts[1], minus_product);
    let high = o.add(first, product);
    let low = rest_of_sum(o, first, product, high);
    let low = o.add(low, product_rest);
    let low = o.fma(n, parts[2], low);
    let bits = o.bits(t);

    let usual = o.float(USUAL);
    let beyond = o.lt(usual, a);
    o.rarely(beyond, ([high, low], bits), |o| large(o, a, 4))
}

/// a + b − sum, exactly, where `sum` is a + b rounded.
fn rest_of_sum<O: Double>(o: &mut O, a: O::F, b: O::F, sum: O::F) -> O::F {
    let from_b = o.sub(sum, a);
    let from_a = o.sub(sum, from_b);
    let a_rest = o.sub(a, from_a);
    let b_rest = o.sub(b, from_b);
    o.add(a_rest, b_rest)
}

/// The reduction of an `a` from 1 to 2^(64·2^`levels`), finite, by its product with those bits of 2/π that matter
/// (Payne and Hanek, "Radian reduction for trigonometric functions", 1983).
///
/// a = m·2^(e − 52). Bits of 2/π that count 2^(54 − e) and more give multiples of 4, of which nothing is needed. The
/// 192 bits from there on, times m and modulo 2^192, are the quotient modulo 4 with 190 bits after the point, of which
/// those below 2^-126 are dropped. No `f64` is nearer than 2^-62 to a multiple of π/2 that is not 0, relative to it
/// (Muller et al., Handbook of Floating-Point Arithmetic, section 11.1), so that 64 bits of r are right.
pub(in crate::math) fn large<O: Double>(o: &mut O, a: O::F, levels: u32) -> ([O::F; 2], O::I) {
    let bits = o.bits(a);
    let (fraction, hidden, bias) = (o.int((1 << 52) - 1), o.int(1 << 52), o.int(1023));
    let m = o.and(bits, fraction);
    let m = o.or(m, hidden);
    let field = o.shr_logical(bits, 52);
    let e = o.int_sub(field, bias);

    // Four words from word e / 64 on, chosen bit by bit of that number.
    let mut words: Vec<O::I> = TWO_OVER_PI[..3 + (1 << levels)].iter().map(|&word| o.int(word)).collect();
    for level in (0..levels).rev() {
        let bit = o.int(1 << (6 + level));
        let bit = o.and(e, bit);
        let further = o.is_nonzero(bit);
        let kept = words.len() - (1 << level);
        words = (0..kept).map(|i| o.int_select(further, words[i + (1 << level)], words[i])).collect();
    }
    // Moved up by e mod 64.
    let low_bits = o.int(63);
    let up = o.and(e, low_bits);
    let down = o.xor(up, low_bits);
    let window: Vec<O::I> = words
        .windows(2)
        .map(|pair| {
            let high = o.shl_by(pair[0], up);
            let low = o.shr_logical(pair[1], 1);
            let low = o.shr_by(low, down);
            o.or(high, low)
        })
        .collect();

    // The upper two words of the product.
    let carried = o.mul_high(m, window[2]);
    let second = o.int_mul(m, window[1]);
    let second = o.int_add(second, carried);
    let carry = o.int_below(second, carried);
    let (zero, one) = (o.int(0), o.int(1));
    let carry = o.int_select(carry, one, zero);
    let middle = o.mul_high(m, window[1]);
    let first = o.int_mul(m, window[0]);
    let first = o.int_add(first, middle);
    let first = o.int_add(first, carry);

    // Two bits before the point; the next one rounds to the nearest quadrant, and is the sign of what is left.
    let quadrant = o.shr_logical(first, 62);
    let next = o.shr_logical(first, 61);
    let next = o.and(next, one);
    let quadrant = o.int_add(quadrant, next);
    let high = o.shl(first, 2);
    let moved = o.shr_logical(second, 62);
    let high = o.or(high, moved);
    let low = o.shl(second, 2);

    // (high + low·2^-64)·2^-64 as two floats: the quarters are exact.
    let half = o.int(u64::from(u32::MAX));
    let quarters =
        [(o.shr(high, 32), -32), (o.and(high, half), -64), (o.shr_logical(low, 32), -96), (o.and(low, half), -128)];
    let [a1, a2, a3, a4] = quarters.map(|(quarter, exponent)| {
        let scale = o.float(f64::from_bits(((exponent + 1023_i64) as u64) << 52));
        let quarter = o.to_float(quarter);
        o.mul(quarter, scale)
    });
    let sum = o.add(a1, a2);
    let rest = rest_of_sum(o, a1, a2, sum);
    let tail = o.add(a3, a4);
    let tail = o.add(tail, rest);
    let high = o.add(sum, tail);
    let low = rest_of_sum(o, sum, tail, high);

    // Times π/2.
    let [half_pi, half_pi_rest, _] = HALF_PI.map(|p| o.float(p));
    let product = o.mul(high, half_pi);
    let minus_product = o.float(-1.0);
    let minus_product = o.mul(product, minus_product);
    let rest = o.fma(high, half_pi, minus_product);
    let rest = o.fma(high, half_pi_rest, rest);
    let rest = o.fma(low, half_pi, rest);
    ([product, rest], quadrant)
}

/// sin(r + quadrant·π/2) with the sign of `sign` changing it, or NaN if `a` is not finite.
fn sine_from<O: Double>(o: &mut O, a: O::F, r: [O::F; 2], quadrant: O::I, sign: Option<O::I>) -> O::F {
    let (one, half, minus_half) = (o.float(1.0), o.float(0.5), o.float(-0.5));
    let [high, low] = r;
    let s = o.mul(high, high);
    // sin(high + low) = high + (high·s·P + low·(1 − s/2))
    let p = polynomial(o, s, &SIN);
    let cube = o.mul(s, high);
    let slope = o.fma(s, minus_half, one);
    let tail = o.mul(low, slope);
    let tail = o.fma(p, cube, tail);
    let sine = o.add(high, tail);
    // cos(high + low) = w + ((1 − w − s/2) + (s²·P − high·low)), w = 1 − s/2 rounded
    let p = polynomial(o, s, &COS);
    let square = o.mul(s, s);
    let halved = o.mul(s, half);
    let w = o.sub(one, halved);
    let lost = o.sub(one, w);
    let lost = o.sub(lost, halved);
    let minus_low = o.float(-1.0);
    let minus_low = o.mul(low, minus_low);
    let tail = o.fma(minus_low, high, lost);
    let tail = o.fma(p, square, tail);
    let cosine = o.add(w, tail);

    // Quadrants 1 and 3 take the cosine, 2 and 3 change the sign.
    let (one, two) = (o.int(1), o.int(2));
    let odd = o.and(quadrant, one);
    let is_odd = o.is_nonzero(odd);
    let y = o.select(is_odd, cosine, sine);
    let change = o.and(quadrant, two);
    let mut change = o.shl(change, 62);
    if let Some(sign) = sign {
        let top = o.int(1 << 63);
        let sign = o.and(sign, top);
        change = o.xor(change, sign);
    }
    let y = o.bits(y);
    let y = o.xor(y, change);
    let y = o.float_of(y);

    let (infinity, nan) = (o.float(f64::INFINITY), o.float(f64::NAN));
    let finite = o.lt(a, infinity);
    o.select(finite, y, nan)
}
