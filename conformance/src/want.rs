//! What a result must be, as the files spell it.
//!
//! | text | means |
//! | --- | --- |
//! | `3f800000` | these bits, in hexadecimal |
//! | `nan` | a NaN of the result's format, any of them: the manual leaves open which |
//! | `*` | anything: the manual leaves it open |
//! | `3f7fffff~3f800001` | a number of the format from the one to the other, both included; zeros of either sign are one number, and an infinity is the number after the greatest |
//! | `a/b` | what `a` or what `b` means |
//! | `a,b` | the lower half of the word is `a`, the upper half `b`; each of half the format |

use std::fmt;

/// The format of a result: how its bits are a number, which only NaN and ranges ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// A sign, so many bits of exponent and of fraction.
    Float {
        /// Bits of the exponent.
        exponent: u32,
        /// Bits of the fraction.
        fraction: u32,
    },
    /// An f64 whose lower 32 bits are 0.
    UpperF64,
    /// Bits.
    Bits,
}

impl Format {
    /// The format of this name: `f16`, `bf16`, `f32`, `f64`, `f64.upper`, and any other name for bits.
    pub fn named(name: &str) -> Format {
        let (exponent, fraction) = match name {
            "f16" | "f16x2" => (5, 10),
            "bf16" | "bf16x2" => (8, 7),
            "f32" => (8, 23),
            "f64" => (11, 52),
            "f64.upper" => return Format::UpperF64,
            _ => return Format::Bits,
        };
        Format::Float { exponent, fraction }
    }

    /// Bits of exponent and fraction.
    fn parts(self) -> Option<(u32, u32)> {
        match self {
            Format::Float { exponent, fraction } => Some((exponent, fraction)),
            Format::UpperF64 => Some((11, 52)),
            Format::Bits => None,
        }
    }

    /// Bits of an infinity.
    fn infinity(self) -> Option<u64> {
        let (exponent, fraction) = self.parts()?;
        Some(((1 << exponent) - 1) << fraction)
    }

    /// A number that orders the bits as the numbers that they stand for; none of a NaN, or of what is no number. Both
    /// zeros are 0.
    pub fn order(self, bits: u64) -> Option<i64> {
        let (exponent, fraction) = self.parts()?;
        let sign = 1_u64 << (exponent + fraction);
        let magnitude = bits & (sign - 1);
        if bits >= sign << 1 && exponent + fraction < 63 || magnitude > self.infinity()? {
            return None;
        }
        let magnitude = magnitude as i64;
        Some(if bits & sign == 0 { magnitude } else { -magnitude })
    }

    fn is_nan(self, bits: u64) -> bool {
        let Some((exponent, fraction)) = self.parts() else { return false };
        let sign = 1_u64 << (exponent + fraction);
        let fits = exponent + fraction == 63 || bits < sign << 1;
        fits && self.infinity().is_some_and(|infinity| bits & (sign - 1) > infinity)
    }
}

/// What a result must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Want {
    /// These bits.
    Bits(u64),
    /// Some NaN.
    Nan,
    /// Anything.
    Any,
    /// A number from one to another, as bits of the format.
    Range(u64, u64),
    /// One of these.
    Either(Vec<Want>),
    /// A lower and an upper half, of 16 bits each.
    Halves(Box<Want>, Box<Want>),
}

impl Want {
    /// What a text of the files means.
    ///
    /// # Errors
    /// A text that means nothing, which is named.
    pub fn parse(text: &str) -> Result<Want, String> {
        let bits = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
            let number = u64::from_str_radix(text, 16).ok().filter(|_| digits);
            number.ok_or_else(|| format!("`{text}` is no hexadecimal number of at most 64 bits"))
        };
        if let Some((lower, upper)) = text.split_once(',') {
            return Ok(Want::Halves(Box::new(Want::parse(lower)?), Box::new(Want::parse(upper)?)));
        }
        if text.contains('/') {
            return text.split('/').map(Want::parse).collect::<Result<_, _>>().map(Want::Either);
        }
        if let Some((least, greatest)) = text.split_once('~') {
            return Ok(Want::Range(bits(least)?, bits(greatest)?));
        }
        match text {
            "nan" => Ok(Want::Nan),
            "*" => Ok(Want::Any),
            text => bits(text).map(Want::Bits),
        }
    }

    /// Whether a result of this format is what it must be.
    pub fn admits(&self, format: Format, got: u64) -> bool {
        match self {
            Want::Bits(bits) => got == *bits,
            Want::Nan => format.is_nan(got),
            Want::Any => true,
            Want::Range(least, greatest) => {
                let whole = format != Format::UpperF64 || got & 0xffff_ffff == 0;
                let order = |bits: u64| format.order(bits);
                whole
                    && matches!((order(*least), order(got), order(*greatest)),
                        (Some(least), Some(got), Some(greatest)) if least <= got && got <= greatest)
            }
            Want::Either(all) => all.iter().any(|want| want.admits(format, got)),
            Want::Halves(lower, upper) => {
                got >> 32 == 0 && lower.admits(format, got & 0xffff) && upper.admits(format, got >> 16)
            }
        }
    }

    /// Results of this format that it does not admit, each next to one that it admits: for tests that a judge notices
    /// what is nearly right. None if anything is admitted.
    pub fn near_misses(&self, format: Format) -> Vec<u64> {
        let next = |bits: u64, up: bool| {
            let order = format.order(bits).map_or(0, |order| if up { order + 1 } else { order - 1 });
            let (exponent, fraction) = format.parts().unwrap_or((0, 0));
            if order < 0 { 1 << (exponent + fraction) | order.unsigned_abs() } else { order as u64 }
        };
        let candidates = match self {
            Want::Any => Vec::new(),
            Want::Bits(bits) => vec![bits ^ 1, bits ^ 0x8000],
            Want::Nan => format.infinity().into_iter().chain([0]).collect(),
            Want::Range(least, greatest) => vec![next(*least, false), next(*greatest, true), u64::MAX >> 1],
            Want::Either(all) => all.iter().flat_map(|want| want.near_misses(format)).collect(),
            Want::Halves(lower, upper) => {
                let misses = lower.near_misses(format).into_iter().map(|low| low & 0xffff);
                misses.chain(upper.near_misses(format).into_iter().map(|high| (high & 0xffff) << 16)).collect()
            }
        };
        candidates.into_iter().filter(|bits| !self.admits(format, *bits)).collect()
    }
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Want::Bits(bits) => write!(f, "{bits:x}"),
            Want::Nan => f.write_str("nan"),
            Want::Any => f.write_str("*"),
            Want::Range(least, greatest) => write!(f, "{least:x}~{greatest:x}"),
            Want::Either(all) => {
                for (number, want) in all.iter().enumerate() {
                    write!(f, "{}{want}", if number == 0 { "" } else { "/" })?;
                }
                Ok(())
            }
            Want::Halves(lower, upper) => write!(f, "{lower},{upper}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: Format = Format::Float { exponent: 8, fraction: 23 };
    const F16: Format = Format::Float { exponent: 5, fraction: 10 };

    fn admits(text: &str, format: Format, got: u64) -> bool {
        let want = Want::parse(text).unwrap();
        assert_eq!(want.to_string(), text);
        want.admits(format, got)
    }

    #[test]
    fn texts_mean_what_the_table_says() {
        assert!(admits("3f800000", F32, 0x3f80_0000) && !admits("3f800000", F32, 0x3f80_0001));
        assert!(admits("nan", F32, 0x7f80_0001) && admits("nan", F32, 0xffff_ffff));
        assert!(
            !admits("nan", F32, 0x7f80_0000) && !admits("nan", F32, 0x1_7fc0_0000) && !admits("nan", Format::Bits, 1)
        );
        assert!(admits("*", Format::Bits, 7));
        let one = "3f7fffff~3f800001";
        for (bits, inside) in [(0x3f7f_fffe, false), (0x3f7f_ffff, true), (0x3f80_0001, true), (0x3f80_0002, false)] {
            assert_eq!(admits(one, F32, bits), inside, "{bits:x}");
        }
        // Over zero, whose signs are one number; a NaN is in no range.
        let zero = "80000001~1";
        for (bits, inside) in [
            (0, true),
            (0x8000_0000, true),
            (1, true),
            (2, false),
            (0x8000_0001, true),
            (0x8000_0002, false),
            (0x7fc0_0000, false),
        ] {
            assert_eq!(admits(zero, F32, bits), inside, "{bits:x}");
        }
        assert!(admits("1~2/80000000", F32, 0x8000_0000) && admits("1~2/80000000", F32, 2));
        assert!(!admits("1~2/80000000", F32, 3));
        assert!(admits("nan,3c00", F16, 0x3c00_7e00) && !admits("nan,3c00", F16, 0x3c01_7e00));
        assert!(!admits("nan,3c00", F16, 0x7e00_3c00));
        let upper = Format::named("f64.upper");
        assert!(admits("3ff0000000000000~3ff0000100000000", upper, 0x3ff0_0001_0000_0000));
        assert!(!admits("3ff0000000000000~3ff0000100000000", upper, 0x3ff0_0000_0000_0001));
        for text in ["", "xyz", "1~", "1,", "1/", "-1", "+1~2"] {
            assert!(Want::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_next_to_an_admitted_result_is_a_miss() {
        for (text, format) in [("3f800000", F32), ("nan", F32), ("3f7fffff~3f800001", F32), ("80000001~1", F32)] {
            let want = Want::parse(text).unwrap();
            let misses = want.near_misses(format);
            assert!(!misses.is_empty(), "{text}");
            assert!(misses.iter().all(|bits| !want.admits(format, *bits)), "{text}");
        }
        assert_eq!(Want::Range(0x8000_0001, 1).near_misses(F32)[..2], [0x8000_0002, 2]);
    }
}
