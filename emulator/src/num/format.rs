//! Number formats: how each float format packs sign, exponent and fraction, and one exact rounding into any of them.
//! No arithmetic here; see `exact`.

/// A binary floating-point format of at most 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Bits of the fraction, without the hidden bit.
    pub fraction: u32,
    /// Bits of the exponent field.
    pub exponent: u32,
    /// The NaN that every operation returns (PTX manual 9.7.3: results that are NaN are canonical).
    pub nan: u64,
    /// Whether the top exponent holds infinities and NaNs (IEEE), or finite numbers and one NaN (e4m3).
    pub ieee: bool,
}

/// IEEE half precision.
pub const F16: Format = Format { fraction: 10, exponent: 5, nan: 0x7fff, ieee: true };
/// The upper half of an f32.
pub const BF16: Format = Format { fraction: 7, exponent: 8, nan: 0x7fff, ieee: true };
/// IEEE single precision.
pub const F32: Format = Format { fraction: 23, exponent: 8, nan: 0x7fff_ffff, ieee: true };
/// IEEE double precision.
pub const F64: Format = Format { fraction: 52, exponent: 11, nan: 0x7ff8_0000_0000_0000, ieee: true };
/// The 19 significant bits of tf32; in a register they are the upper bits of an f32.
pub const TF32: Format = Format { fraction: 10, exponent: 8, nan: 0x3_ffff, ieee: true };
/// 8-bit float with 4 exponent bits: no infinities, one NaN, largest finite value 448.
pub const E4M3: Format = Format { fraction: 3, exponent: 4, nan: 0x7f, ieee: false };
/// 8-bit float with 5 exponent bits.
pub const E5M2: Format = Format { fraction: 2, exponent: 5, nan: 0x7f, ieee: true };

/// Rounding of an inexact result (PTX manual 9.7.3, 9.7.9.21).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Round {
    /// To nearest, ties to even: `.rn`.
    Nearest,
    /// To nearest, ties away from zero: `.rna`.
    NearestAway,
    /// Towards zero: `.rz`.
    Zero,
    /// Towards minus infinity: `.rm`.
    Down,
    /// Towards plus infinity: `.rp`.
    Up,
}

impl Round {
    /// Whether a magnitude that was truncated grows by one unit in the last place.
    fn increments(self, negative: bool, odd: bool, half: bool, below_half: bool) -> bool {
        match self {
            Round::Nearest => half && (below_half || odd),
            Round::NearestAway => half,
            Round::Zero => false,
            Round::Down => negative && (half || below_half),
            Round::Up => !negative && (half || below_half),
        }
    }
}

/// A decoded float. `Finite` means `(-1)^negative · significand · 2^exponent`, significand not zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    /// Not a number.
    Nan,
    /// An infinity.
    Infinity {
        /// Its sign.
        negative: bool,
    },
    /// A zero.
    Zero {
        /// Its sign.
        negative: bool,
    },
    /// Everything else.
    Finite {
        /// Its sign.
        negative: bool,
        /// Power of two of the significand's last bit.
        exponent: i32,
        /// The significand; never zero.
        significand: u128,
    },
}

impl Format {
    /// Size in bits.
    pub const fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }
    /// What is added to a power of two to store it.
    pub const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }
    const fn sign_bit(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }
    /// The bits of plus infinity; for a format without infinities, of its NaN.
    pub const fn infinity(self) -> u64 {
        if self.ieee { ((1 << self.exponent) - 1) << self.fraction } else { self.nan }
    }
    /// The bits of the largest finite value.
    pub const fn max_finite(self) -> u64 {
        self.infinity() - 1
    }
    /// The bits of a signed zero.
    pub const fn zero(self, negative: bool) -> u64 {
        if negative { self.sign_bit() } else { 0 }
    }
    /// The magnitude bits with this sign.
    pub const fn with_sign(self, magnitude: u64, negative: bool) -> u64 {
        if negative { magnitude | self.sign_bit() } else { magnitude }
    }
    /// Whether these bits are a NaN.
    pub const fn is_nan(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign_bit() - 1);
        if self.ieee { magnitude > self.infinity() } else { magnitude == self.nan }
    }
    /// Whether the sign bit is set.
    pub const fn is_negative(self, bits: u64) -> bool {
        bits & self.sign_bit() != 0
    }
    /// Whether these bits are a subnormal number.
    pub const fn is_subnormal(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign_bit() - 1);
        magnitude != 0 && magnitude >> self.fraction == 0
    }
    /// Subnormals become zeros of the same sign (`.ftz`).
    pub const fn flush(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign_bit() } else { bits }
    }

    /// Decodes bits of this format.
    pub fn unpack(self, bits: u64) -> Number {
        let negative = self.is_negative(bits);
        let magnitude = bits & (self.sign_bit() - 1);
        if self.is_nan(bits) {
            return Number::Nan;
        }
        if self.ieee && magnitude == self.infinity() {
            return Number::Infinity { negative };
        }
        if magnitude == 0 {
            return Number::Zero { negative };
        }
        let field = (magnitude >> self.fraction) as i32;
        let fraction = u128::from(magnitude & ((1 << self.fraction) - 1));
        let hidden = if field == 0 { 0 } else { 1u128 << self.fraction };
        let exponent = field.max(1) - self.bias() - self.fraction as i32;
        Number::Finite { negative, exponent, significand: fraction | hidden }
    }

    /// Rounds `(-1)^negative · (significand + sticky) · 2^exponent` once into this format, where `sticky` stands for a
    /// positive amount below one unit of the significand. Overflow gives infinity or the largest finite value, as IEEE
    /// 754 says for the rounding; a format without infinities gives its NaN.
    pub fn round(self, negative: bool, exponent: i32, significand: u128, sticky: bool, mode: Round) -> u64 {
        if significand == 0 {
            return self.zero(negative);
        }
        let width = 128 - significand.leading_zeros() as i32;
        let top = exponent + width - 1;
        let least = 1 - self.bias();
        let scale = top.max(least);
        let last = scale - self.fraction as i32;
        let shift = last - exponent;
        let (mut kept, half, below_half) = if shift <= 0 {
            // A significand that needs no shift right is exact to the last place; a sticky amount is below half of it.
            (significand << -shift, false, sticky)
        } else if shift >= 128 {
            (0, shift == 128 && significand >> 127 == 1, true)
        } else {
            let rest = significand & ((1u128 << shift) - 1);
            let middle = 1u128 << (shift - 1);
            (significand >> shift, rest & middle != 0, rest & (middle - 1) != 0 || sticky)
        };
        if mode.increments(negative, kept & 1 == 1, half, below_half) {
            kept += 1;
        }
        // The carry out of the fraction runs into the exponent field, which is what rounding up to a power of two
        // means.
        let field = (scale - least) as u128;
        let magnitude = (field << self.fraction) + kept;
        if magnitude < u128::from(self.infinity()) {
            return self.with_sign(magnitude as u64, negative);
        }
        let to_infinity = match mode {
            Round::Nearest | Round::NearestAway => true,
            Round::Zero => false,
            Round::Down => negative,
            Round::Up => !negative,
        };
        self.with_sign(if to_infinity { self.infinity() } else { self.max_finite() }, negative)
    }
}
