//! The types that are for storage, as Rust types: `e4m3`, `e5m2` and `tf32`. Tensors on the host hold them, and the
//! launcher and the reference read them.

use std::cmp::Ordering;
use std::fmt;

use crate::element::ElementType;
use crate::format::Format;

macro_rules! storage {
    ($($(#[$doc:meta])* $name:ident: $bits:ident, $element:ident;)*) => { $(
        $(#[$doc])*
        #[allow(non_camel_case_types, reason = "spelled as in the language, like `f32`")]
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $name($bits);

        impl $name {
            const FORMAT: Format = match Format::of(ElementType::$element) {
                Some(format) => format,
                None => panic!("a float"),
            };

            /// The largest finite number.
            pub const MAX: Self = Self(Self::FORMAT.largest() as $bits);
            /// The smallest positive normal number.
            pub const MIN_POSITIVE: Self = Self(1 << (Self::FORMAT.fraction + Self::FORMAT.unused));
            /// A NaN.
            pub const NAN: Self = Self(Self::FORMAT.nan() as $bits);

            /// The nearest to a number, ties to even. A NaN stays one.
            pub const fn from_f32(x: f32) -> Self {
                // Exact: every f32 is an f64.
                Self::from_f64(x as f64)
            }

            /// The nearest to a number, ties to even: one rounding. A NaN stays one.
            pub const fn from_f64(x: f64) -> Self {
                Self(Self::FORMAT.from_f64(x) as $bits)
            }

            /// The same number.
            pub const fn to_f32(self) -> f32 {
                self.to_f64() as f32
            }

            /// The same number.
            pub const fn to_f64(self) -> f64 {
                Self::FORMAT.value(self.0 as u64)
            }

            /// The number with these bits; those that the format does not use are cleared.
            pub const fn from_bits(bits: $bits) -> Self {
                Self(bits >> Self::FORMAT.unused << Self::FORMAT.unused)
            }

            /// The bits.
            pub const fn to_bits(self) -> $bits {
                self.0
            }

            /// Whether it is a NaN.
            pub const fn is_nan(self) -> bool {
                self.to_f64().is_nan()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.to_f64() == other.to_f64()
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                self.to_f64().partial_cmp(&other.to_f64())
            }
        }

        impl From<$name> for f32 {
            fn from(x: $name) -> Self {
                x.to_f32()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }
    )* };
}

storage! {
    /// An 8-bit float with 4 exponent and 3 fraction bits: numbers up to 448, NaN, no infinity.
    ///
    /// Conversion to it saturates: what is too large, infinity included, becomes the largest finite number.
    e4m3: u8, E4m3;

    /// An 8-bit float with 5 exponent and 2 fraction bits: numbers up to 57344, infinities, NaNs.
    ///
    /// Conversion to it saturates: what is too large, infinity included, becomes the largest finite number.
    e5m2: u8, E5m2;

    /// A float with the 8 exponent bits of `f32` and 10 fraction bits, kept as an `f32` whose low 13 bits are 0: what
    /// tensor cores multiply. Conversion to it overflows to infinity, as that to `f32` does.
    tf32: u32, Tf32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_8_bit_pattern_survives_the_way_through_wider_types() {
        for bits in 0..=u8::MAX {
            let (x, y) = (e4m3::from_bits(bits), e5m2::from_bits(bits));
            if x.is_nan() {
                assert!(e4m3::from_f32(x.to_f32()).is_nan() && x != x);
            } else {
                assert_eq!([e4m3::from_f32(x.to_f32()), e4m3::from_f64(x.to_f64())].map(e4m3::to_bits), [bits; 2]);
            }
            if y.is_nan() {
                assert!(e5m2::from_f32(y.to_f32()).is_nan());
            } else if y.to_f32().is_infinite() {
                assert_eq!(e5m2::from_f32(y.to_f32()).to_f32().abs(), e5m2::MAX.to_f32());
            } else {
                assert_eq!(e5m2::from_f32(y.to_f32()).to_bits(), bits);
            }
        }
        assert_eq!((e4m3::MAX.to_f32(), e5m2::MAX.to_f32()), (448.0, 57344.0));
        assert_eq!((e4m3::MIN_POSITIVE.to_f32(), e5m2::MIN_POSITIVE.to_f32()), (1.0 / 64.0, 1.0 / 16384.0));
        assert!(e4m3::NAN.is_nan() && e5m2::NAN.is_nan() && tf32::NAN.is_nan());
    }

    #[test]
    fn tf32_drops_13_bits_to_nearest_even() {
        let round = |bits: u32| tf32::from_f32(f32::from_bits(bits)).to_bits();
        assert_eq!(round(0x3f80_1000), 0x3f80_0000);
        assert_eq!(round(0x3f80_1001), 0x3f80_2000);
        assert_eq!(round(0x3f80_3000), 0x3f80_4000);
        assert_eq!(round(0x8000_1001), 0x8000_2000);
        assert_eq!(round(0x7f7f_ffff), 0x7f80_0000);
        assert_eq!(round(0xff80_0000), 0xff80_0000);
        assert!(tf32::from_f32(f32::from_bits(0x7f80_0001)).is_nan());
        assert_eq!(tf32::from_bits(0x3f80_1fff).to_f32(), 1.0);
        assert_eq!(format!("{} {:?}", tf32::from_f32(0.5), e4m3::from_f32(1.0)), "0.5 1.0");
    }
}
