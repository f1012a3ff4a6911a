//! Sets of admissible numbers, and the rounding of each float type.

use half::{bf16, f16};
use tilewright_kernel::{ElementType, format};

/// The floats from `lo` to `hi`, and NaN if `nan`. With `lo > hi` there is no number in it: the value is NaN.
///
/// A zero at an end stands for zeros of both signs, unless the interval is a single value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Smallest number.
    pub lo: f64,
    /// Largest number.
    pub hi: f64,
    /// Whether NaN is admissible.
    pub nan: bool,
}

impl Interval {
    /// Only NaN.
    pub const NAN: Self = Self { lo: f64::INFINITY, hi: f64::NEG_INFINITY, nan: true };
    /// Everything.
    pub const ALL: Self = Self { lo: f64::NEG_INFINITY, hi: f64::INFINITY, nan: true };

    /// One value, which may be NaN.
    pub fn exact(value: f64) -> Self {
        if value.is_nan() { Self::NAN } else { Self { lo: value, hi: value, nan: false } }
    }

    /// The numbers between two, in either order.
    pub(super) fn between(lo: f64, hi: f64) -> Self {
        Self { lo, hi, nan: false }
    }

    /// Whether it holds no number.
    pub fn is_empty(&self) -> bool {
        self.lo > self.hi
    }

    /// Whether `value` is admissible.
    pub fn contains(&self, value: f64) -> bool {
        if value.is_nan() { self.nan } else { self.lo <= value && value <= self.hi }
    }

    /// The one value that it holds, if it holds exactly one; NaN counts as a value.
    pub fn single(&self) -> Option<f64> {
        if self.is_empty() {
            return self.nan.then_some(f64::NAN);
        }
        // Zeros of different signs compare equal and are two values.
        (self.lo.to_bits() == self.hi.to_bits() && !self.nan).then_some(self.lo)
    }

    /// Both.
    pub(super) fn hull(self, other: Self) -> Self {
        Self { lo: less(self.lo, other.lo), hi: greater(self.hi, other.hi), nan: self.nan || other.nan }
    }

    /// With zeros of both signs added, if `zero`.
    pub(super) fn or_zero(self, zero: bool) -> Self {
        if zero { self.hull(Self::between(-0.0, 0.0)) } else { self }
    }

    /// Whether it holds a finite number.
    pub(super) fn has_number(self) -> bool {
        self.lo < f64::INFINITY && self.hi > f64::NEG_INFINITY && !self.is_empty()
    }

    /// With `nan` added.
    pub(super) fn or_nan(self, nan: bool) -> Self {
        Self { nan: self.nan || nan, ..self }
    }

    /// The numbers that are both in it and between `lo` and `hi`, which every admissible number is.
    pub(super) fn clamp(self, lo: f64, hi: f64) -> Self {
        if self.is_empty() {
            self
        } else {
            Self { lo: self.lo.clamp(lo, hi), hi: self.hi.clamp(lo, hi), nan: self.nan }
        }
    }

    pub(super) fn has_zero(self) -> bool {
        self.lo <= 0.0 && 0.0 <= self.hi
    }

    pub(super) fn has_infinity(self) -> bool {
        !self.is_empty() && (self.lo == f64::NEG_INFINITY || self.hi == f64::INFINITY)
    }
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.single() {
            Some(value) => write!(f, "exactly {value:?}"),
            None if self.is_empty() => f.write_str("nothing"),
            None => write!(f, "{:?} to {:?}{}", self.lo, self.hi, if self.nan { " or NaN" } else { "" }),
        }
    }
}

/// The smaller, −0 before +0; neither is NaN.
pub(super) fn less(a: f64, b: f64) -> f64 {
    if a.total_cmp(&b).is_le() { a } else { b }
}

/// The larger, +0 after −0; neither is NaN.
pub(super) fn greater(a: f64, b: f64) -> f64 {
    if a.total_cmp(&b).is_ge() { a } else { b }
}

/// What evaluation needs to know of a float type. The values of every type are a subset of those of `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// binary64
    F64,
    /// binary32
    F32,
    /// binary16; its operations are those of binary32, rounded once more
    F16,
    /// bfloat16; likewise
    Bf16,
    /// The types for storage, which are converted to and from.
    Tf32,
    /// An 8-bit float.
    E4m3,
    /// An 8-bit float.
    E5m2,
}

impl Format {
    /// The format of an element type, if it is a float.
    pub(super) fn of(element: ElementType) -> Option<Self> {
        match element {
            ElementType::F64 => Some(Self::F64),
            ElementType::F32 => Some(Self::F32),
            ElementType::F16 => Some(Self::F16),
            ElementType::Bf16 => Some(Self::Bf16),
            ElementType::Tf32 => Some(Self::Tf32),
            ElementType::E4m3 => Some(Self::E4m3),
            ElementType::E5m2 => Some(Self::E5m2),
            _ => None,
        }
    }

    /// Its bits.
    const fn layout(self) -> format::Format {
        let element = match self {
            Self::F64 => ElementType::F64,
            Self::F32 => ElementType::F32,
            Self::F16 => ElementType::F16,
            Self::Bf16 => ElementType::Bf16,
            Self::Tf32 => ElementType::Tf32,
            Self::E4m3 => ElementType::E4m3,
            Self::E5m2 => ElementType::E5m2,
        };
        match format::Format::of(element) {
            Some(layout) => layout,
            None => panic!("a float"),
        }
    }

    /// Number of significant bits.
    pub(super) fn precision(self) -> i32 {
        self.layout().fraction.cast_signed() + 1
    }

    /// Exponent of the smallest normal number, a power of two.
    fn least_exponent(self) -> i32 {
        self.layout().least_exponent()
    }

    /// Half a unit in the last place of 1: the bound of one rounding.
    pub(super) fn unit_roundoff(self) -> f64 {
        power_of_two(-self.precision())
    }

    /// Largest finite number.
    pub(super) fn max(self) -> f64 {
        let layout = self.layout();
        layout.value(layout.largest())
    }

    /// Smallest positive normal number.
    pub(super) fn min_normal(self) -> f64 {
        power_of_two(self.least_exponent())
    }

    /// Smallest positive number.
    pub(super) fn min_positive(self) -> f64 {
        power_of_two(self.least_exponent() - self.precision() + 1)
    }

    /// To nearest, ties to even.
    pub(super) fn round(self, x: f64) -> f64 {
        match self {
            Self::F64 => x,
            Self::F32 => f64::from(x as f32),
            _ => self.layout().value(self.layout().from_f64(x)),
        }
    }

    /// An integer of at most 64 bits, rounded once.
    pub(super) fn round_integer(self, x: i128) -> f64 {
        match self {
            Self::F64 => x as f64,
            Self::F32 => f64::from(x as f32),
            _ => self.layout().value(self.layout().from_integer(x)),
        }
    }

    /// The rounded result of an operation, given the operation in both widths.
    #[inline(always)]
    pub(super) fn operate(self, wide: impl Fn() -> f64, single: impl Fn() -> f32) -> f64 {
        match self {
            Self::F64 => wide(),
            Self::F32 => f64::from(single()),
            Self::F16 => f64::from(f16::from_f32(single()).to_f32()),
            Self::Bf16 => f64::from(bf16::from_f32(single()).to_f32()),
            Self::Tf32 | Self::E4m3 | Self::E5m2 => self.round(f64::from(single())),
        }
    }

    /// Distance between neighbours at the magnitude of `x`: the unit of error bounds. That of infinity is that of the
    /// largest finite number.
    pub(super) fn ulp(self, x: f64) -> f64 {
        let magnitude = x.abs().min(self.max());
        if magnitude < self.min_normal() {
            return self.min_positive();
        }
        // The exponent of a normal f64 (every smaller format's subnormals were sent off above).
        let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
        power_of_two(exponent - self.precision() + 1)
    }
}

/// 2ⁿ; 0 or infinity beyond the range of `f64`.
pub(super) fn power_of_two(n: i32) -> f64 {
    match n {
        -1022..=1023 => f64::from_bits(((n + 1023) as u64) << 52),
        -1074..=-1023 => f64::from_bits(1 << (n + 1074)),
        i32::MIN..=-1075 => 0.0,
        1024..=i32::MAX => f64::INFINITY,
    }
}

/// The value of the lowest set bit of a finite, non-zero number.
pub(super) fn lowest_bit(x: f64) -> f64 {
    let bits = x.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (exponent, significand) = if exponent == 0 { (1, fraction) } else { (exponent, fraction | 1 << 52) };
    power_of_two(exponent - 1075 + significand.trailing_zeros() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMATS: [Format; 4] = [Format::F64, Format::F32, Format::F16, Format::Bf16];

    #[test]
    fn formats_agree_with_their_types() {
        assert_eq!(Format::F32.min_normal(), f64::from(f32::MIN_POSITIVE));
        assert_eq!(Format::F32.min_positive(), f64::from(f32::from_bits(1)));
        assert_eq!(Format::F64.min_positive(), f64::from_bits(1));
        assert_eq!(Format::F16.min_positive(), f16::from_bits(1).to_f64());
        assert_eq!(Format::Bf16.min_positive(), bf16::from_bits(1).to_f64());
        assert_eq!(Format::F16.min_normal(), f16::MIN_POSITIVE.to_f64());
        for format in FORMATS {
            assert_eq!(format.ulp(1.0), 2.0 * format.unit_roundoff());
            assert_eq!(format.ulp(f64::INFINITY), format.ulp(format.max()));
            assert_eq!(format.round(format.max() + format.ulp(format.max())), f64::INFINITY);
            assert_eq!(format.round(1.0 + format.ulp(1.0) / 2.0), 1.0, "ties go to even");
            assert_eq!(format.ulp(format.min_normal()), format.min_positive());
        }
    }

    #[test]
    fn ulp_is_the_distance_of_neighbours() {
        for bits in (1_u32..0x7f7f_ffff).step_by(7_654_321) {
            let (x, next) = (f32::from_bits(bits), f32::from_bits(bits + 1));
            assert_eq!(Format::F32.ulp(f64::from(x)), f64::from(next) - f64::from(x));
        }
        for bits in 0..0x7bff_u16 {
            let (x, next) = (f16::from_bits(bits).to_f64(), f16::from_bits(bits + 1).to_f64());
            assert_eq!(Format::F16.ulp(x), next - x);
        }
    }

    #[test]
    fn lowest_bits() {
        for (x, low) in [(1.0, 1.0), (-3.0, 1.0), (12.0, 4.0), (0.75, 0.25), (f64::from_bits(6), f64::from_bits(2))] {
            assert_eq!(lowest_bit(x), low);
        }
        assert_eq!(power_of_two(-1074), f64::from_bits(1));
        assert_eq!(power_of_two(-1075), 0.0);
        assert_eq!(power_of_two(1024), f64::INFINITY);
    }

    #[test]
    fn signed_zeros_are_two_values() {
        assert_eq!(Interval::exact(-0.0).single().map(f64::to_bits), Some((-0.0_f64).to_bits()));
        assert_eq!(Interval::exact(-0.0).hull(Interval::exact(0.0)).single(), None);
        assert!(Interval::NAN.single().is_some_and(f64::is_nan));
        assert!(Interval::NAN.is_empty() && !Interval::NAN.contains(1.0) && Interval::NAN.contains(f64::NAN));
    }
}
