//! Float formats: what the bits of an element mean, and the one rounding of numbers into them.
//!
//! | format | exponent and fraction bits | overflow of a conversion |
//! | --- | --- | --- |
//! | `f64`, `f32`, `f16`, `bf16`, `tf32` | 11+52, 8+23, 5+10, 8+7, 8+10 | infinity |
//! | `e4m3` | 4+3, no infinity, NaN only where all bits are set | largest finite number |
//! | `e5m2` | 5+2 | largest finite number |
//!
//! Rounding is to nearest, ties to even. The 8-bit floats saturate, infinities included, as `cvt.rn.satfinite` does
//! (PTX ISA 9.7.9.21; formats: OCP 8-bit Floating Point Specification, sections 5.1 and 5.2).

use crate::element::ElementType;

/// A binary floating-point format of at most 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the exponent field.
    pub exponent: u32,
    /// Bits of the fraction, without the hidden one.
    pub fraction: u32,
    /// Unused low bits of an element in memory: 13 for `tf32`, which is kept as an `f32`.
    pub unused: u32,
    /// Whether the top exponent holds infinities and NaNs, rather than numbers and one NaN.
    pub infinities: bool,
    /// Whether conversions turn what is too large into the largest finite number.
    pub saturates: bool,
}

const fn ieee(exponent: u32, fraction: u32) -> Format {
    Format { exponent, fraction, unused: 0, infinities: true, saturates: false }
}

impl Format {
    /// The format of an element type; none for integers and `bool`.
    pub const fn of(element: ElementType) -> Option<Self> {
        Some(match element {
            ElementType::F64 => ieee(11, 52),
            ElementType::F32 => ieee(8, 23),
            ElementType::F16 => ieee(5, 10),
            ElementType::Bf16 => ieee(8, 7),
            ElementType::Tf32 => Self { unused: 13, ..ieee(8, 10) },
            ElementType::E4m3 => Self { infinities: false, saturates: true, ..ieee(4, 3) },
            ElementType::E5m2 => Self { saturates: true, ..ieee(5, 2) },
            _ => return None,
        })
    }

    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// Exponent of the smallest normal number, a power of two.
    pub const fn least_exponent(self) -> i32 {
        1 - self.bias()
    }

    /// Half a unit in the last place of 1.
    pub const fn unit_roundoff(self) -> f64 {
        power_of_two(-(self.fraction.cast_signed() + 1))
    }

    /// The sign bit.
    pub const fn sign(self) -> u64 {
        1 << (self.exponent + self.fraction + self.unused)
    }

    /// The first magnitude that is no finite number: that of infinity, or of NaN where there is none.
    const fn beyond(self) -> u64 {
        let all_ones = (1 << (self.exponent + self.fraction)) - 1;
        if self.infinities { all_ones & !((1 << self.fraction) - 1) } else { all_ones }
    }

    /// The bits of infinity; none if the format has none.
    pub const fn infinity(self) -> Option<u64> {
        if self.infinities { Some(self.beyond() << self.unused) } else { None }
    }

    /// The bits of the largest finite number.
    pub const fn largest(self) -> u64 {
        (self.beyond() - 1) << self.unused
    }

    /// The bits of a NaN: a quiet one; of the 8-bit formats the one with all magnitude bits set.
    pub const fn nan(self) -> u64 {
        let quiet = if self.saturates { (1 << self.fraction) - 1 } else { 1 << (self.fraction - 1) };
        (self.beyond() | quiet) << self.unused
    }

    /// The number that these bits stand for, which `f64` holds exactly.
    pub const fn value(self, bits: u64) -> f64 {
        let magnitude = (bits & (self.sign() - 1)) >> self.unused;
        let (field, fraction) = (magnitude >> self.fraction, magnitude & ((1 << self.fraction) - 1));
        let size = if magnitude >= self.beyond() {
            if self.infinities && magnitude == self.beyond() { f64::INFINITY } else { f64::NAN }
        } else if self.fraction == 52 {
            f64::from_bits(magnitude)
        } else if field == 0 {
            // Both factors and their product are exact: every format but f64 is far from the ends of f64.
            fraction as f64 * power_of_two(self.least_exponent() - self.fraction.cast_signed())
        } else {
            let exponent = field.cast_signed() + (1023 - self.bias()) as i64;
            f64::from_bits((exponent.cast_unsigned() << 52) | (fraction << (52 - self.fraction)))
        };
        if bits & self.sign() == 0 { size } else { -size }
    }

    /// The bits of (significand + rest) · 2^exponent rounded once, to nearest and ties to even, where the rest is 0, or
    /// with `sticky` some positive number below 1. None if that is too large for a finite number.
    pub const fn magnitude(self, significand: u128, exponent: i32, sticky: bool) -> Option<u64> {
        if significand == 0 {
            // A rest alone is far below half of every smallest number: callers give the leading bits of what is not 0.
            return Some(0);
        }
        let top = exponent + 127 - significand.leading_zeros().cast_signed();
        let scale = if top > self.least_exponent() { top } else { self.least_exponent() };
        let drop = scale - self.fraction.cast_signed() - exponent;
        let kept = if drop <= 0 {
            // All bits fit; a rest is then less than half of the last one.
            significand << -drop
        } else if drop > 127 {
            0
        } else {
            let (kept, cut) = (significand >> drop, significand & ((1 << drop) - 1));
            let half = 1 << (drop - 1);
            if cut > half || cut == half && (sticky || kept & 1 == 1) { kept + 1 } else { kept }
        };
        // A carry out of the fraction moves into the exponent by itself.
        let field = (scale - self.least_exponent()) as u128;
        let magnitude = (field << self.fraction) + kept;
        if magnitude < self.beyond() as u128 { Some((magnitude as u64) << self.unused) } else { None }
    }

    /// The bits of (−1)^negative · significand · 2^exponent rounded once.
    const fn round(self, negative: bool, significand: u128, exponent: i32) -> u64 {
        let magnitude = match self.magnitude(significand, exponent, false) {
            Some(magnitude) => magnitude,
            None => self.overflow(),
        };
        if negative { self.sign() | magnitude } else { magnitude }
    }

    /// The bits that conversions give for what is too large.
    const fn overflow(self) -> u64 {
        match self.infinity() {
            Some(infinity) if !self.saturates => infinity,
            _ => self.largest(),
        }
    }

    /// The bits of a number rounded once. A NaN stays one, with its sign.
    pub const fn from_f64(self, x: f64) -> u64 {
        let bits = x.to_bits();
        let sign = if bits >> 63 == 1 { self.sign() } else { 0 };
        let (field, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
        match field {
            0x7ff if fraction != 0 => sign | self.nan(),
            0x7ff => sign | self.overflow(),
            0 => self.round(sign != 0, fraction as u128, -1074),
            _ => self.round(sign != 0, (fraction | 1 << 52) as u128, field as i32 - 1075),
        }
    }

    /// The bits of an integer rounded once.
    pub const fn from_integer(self, x: i128) -> u64 {
        self.round(x < 0, x.unsigned_abs(), 0)
    }
}

/// 2ⁿ for a normal number of `f64`.
const fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ElementType::{Bf16, E4m3, E5m2, F16, F32, F64, Tf32};

    const FLOATS: [ElementType; 7] = [F64, F32, Tf32, F16, Bf16, E4m3, E5m2];

    fn format(element: ElementType) -> Format {
        Format::of(element).expect("a float")
    }

    /// Magnitudes of a narrow format in ascending order, as bits and value.
    fn magnitudes(element: ElementType) -> Vec<(u64, f64)> {
        let f = format(element);
        (0..=f.largest() >> f.unused).map(|m| (m << f.unused, f.value(m << f.unused))).collect()
    }

    #[test]
    fn known_values() {
        let cases = [
            (F16, 0x3c00, 1.0),
            (F16, 1, 2_f64.powi(-24)),
            (F16, 0xfbff, -65504.0),
            (Bf16, 0x3fc0, 1.5),
            (E4m3, 0x7e, 448.0),
            (E4m3, 1, 2_f64.powi(-9)),
            (E4m3, 0x88, -(2_f64.powi(-6))),
            (E5m2, 0x7b, 57344.0),
            (E5m2, 1, 2_f64.powi(-16)),
            (E5m2, 0xfc, f64::NEG_INFINITY),
            (Tf32, 0x3fc0_0000, 1.5),
            (F32, u64::from(0.1_f32.to_bits()), f64::from(0.1_f32)),
            (F32, 1, f64::from(f32::from_bits(1))),
            (F64, 1, f64::from_bits(1)),
        ];
        for (element, bits, value) in cases {
            assert_eq!(format(element).value(bits), value, "{element} {bits:#x}");
            if value.is_finite() {
                assert_eq!(format(element).from_f64(value), bits, "{element} {value}");
            }
        }
        assert!(format(E4m3).value(0x7f).is_nan() && format(E4m3).value(0xff).is_nan());
        assert_eq!(FLOATS.map(|e| format(e).value(format(e).nan()).is_nan()), [true; 7]);
        assert_eq!(Format::of(ElementType::I32), None);
    }

    /// Every value of the narrow formats, every midpoint, and what lies beside them: the definition of rounding, by
    /// search.
    #[test]
    fn rounds_to_nearest_with_ties_to_even() {
        for element in [Tf32, F16, Bf16, E4m3, E5m2] {
            let f = format(element);
            let all = magnitudes(element);
            for (n, window) in all.windows(2).enumerate() {
                let ((below, x), (above, y)) = (window[0], window[1]);
                if n % 61 != 0 && all.len() > 40_000 {
                    continue;
                }
                let middle = x / 2.0 + y / 2.0;
                let even = if (below >> f.unused) & 1 == 0 { below } else { above };
                let cases =
                    [(x, below), (y, above), (middle, even), (middle.next_down(), below), (middle.next_up(), above)];
                for (value, bits) in cases {
                    assert_eq!(f.from_f64(value), bits, "{element} {value:e}");
                    assert_eq!(f.from_f64(-value), bits | f.sign(), "{element} -{value:e}");
                }
            }
            // Overflow begins half a step beyond the largest number.
            let (largest, x) = all[all.len() - 1];
            let limit = x + (x - all[all.len() - 2].1) / 2.0;
            let over = if f.saturates { largest } else { f.infinity().unwrap() };
            assert_eq!(f.from_f64(limit.next_down()), largest, "{element}");
            assert_eq!([limit, 1e300, f64::INFINITY].map(|x| f.from_f64(x)), [over; 3], "{element}");
        }
    }

    #[test]
    fn agrees_with_the_host_on_f32_and_f64() {
        let (single, double) = (format(F32), format(F64));
        let mut state = 7_u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = state ^ state >> 29;
            // Half of them with an exponent of f32.
            let near_one = (bits & (1 << 63)) | ((bits & ((1 << 62) - 1)) % (300 << 52) + (870 << 52));
            for bits in [bits, near_one] {
                let x = f64::from_bits(bits);
                if !x.is_nan() {
                    assert_eq!(single.from_f64(x), u64::from((x as f32).to_bits()), "{x:e}");
                    assert_eq!(double.from_f64(x), bits);
                    assert_eq!(double.value(bits).to_bits(), bits);
                }
                let shift = bits % 64;
                for n in [i128::from(bits as i64 >> shift), i128::from(bits >> shift)] {
                    assert_eq!(single.from_integer(n), u64::from((n as f32).to_bits()), "{n}");
                    assert_eq!(double.from_integer(n), (n as f64).to_bits(), "{n}");
                }
            }
        }
    }

    /// What two roundings in a row get wrong.
    #[test]
    fn rounds_once() {
        // A tie of bf16, a little more than f32 can see.
        assert_eq!(format(Bf16).from_integer(0x0101_0001), 0x4b81);
        assert_eq!(format(F16).from_f64(1.000_488_281_25 + 1e-12), 0x3c01);
        assert_eq!(format(E4m3).from_f64(1.0625 + 1e-12), 0x39);
        assert_eq!(format(E4m3).magnitude(0x11, -4, true), Some(0x39));
        assert_eq!(format(E4m3).magnitude(479, 0, true), None);
        assert_eq!(format(E4m3).from_integer(i128::from(i64::MIN)), 0xfe);
    }
}
