//! Floating-point instructions of one lane: operation, type, rounding, `.ftz`, `.sat`, NaN rules (PTX manual 9.7.3,
//! 9.7.4).

use super::exact;
use super::format::{BF16, F16, F32, F64, Format, Round};

/// The type of a floating-point instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloatType {
    /// `.f16`, and each half of `.f16x2`.
    F16,
    /// `.bf16`, and each half of `.bf16x2`.
    Bf16,
    /// `.f32`.
    F32,
    /// `.f64`.
    F64,
}

impl FloatType {
    /// Its bits.
    pub const fn format(self) -> Format {
        match self {
            FloatType::F16 => F16,
            FloatType::Bf16 => BF16,
            FloatType::F32 => F32,
            FloatType::F64 => F64,
        }
    }
}

/// How a floating-point instruction treats operands and result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FloatMode {
    /// Operand and result type.
    pub ty: FloatType,
    /// Rounding.
    pub round: Round,
    /// Subnormal operands and results become zeros of their sign.
    pub ftz: bool,
    /// The result is clamped to [0, 1] and NaN becomes +0.
    pub sat: bool,
    /// Negative results become +0; NaN stays.
    pub relu: bool,
}

impl FloatMode {
    /// Round to nearest, nothing else.
    pub const fn plain(ty: FloatType) -> Self {
        FloatMode { ty, round: Round::Nearest, ftz: false, sat: false, relu: false }
    }

    /// Whether this is [`FloatMode::plain`], with `.ftz` or without.
    pub fn is_nearest(self) -> bool {
        FloatMode { ftz: false, ..self } == FloatMode::plain(self.ty)
    }

    fn operand(self, bits: u64) -> u64 {
        if self.ftz { self.ty.format().flush(bits) } else { bits }
    }

    /// What happens to every result: flush, clamp, canonical NaN.
    pub fn result(self, bits: u64) -> u64 {
        let format = self.ty.format();
        let bits = if self.ftz { format.flush(bits) } else { bits };
        if format.is_nan(bits) {
            return if self.sat { 0 } else { format.nan };
        }
        if self.sat {
            let one = exact::convert(F32, format, Round::Nearest, u64::from(1f32.to_bits()));
            if format.is_negative(bits) {
                return 0;
            }
            return bits.min(one);
        }
        if self.relu && format.is_negative(bits) {
            return 0;
        }
        bits
    }
}

/// Instructions of one operand that are exact or correctly rounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Float1 {
    /// Magnitude.
    Abs,
    /// Opposite sign.
    Neg,
    /// Correctly rounded reciprocal.
    Rcp,
    /// Correctly rounded square root.
    Sqrt,
}

/// Instructions of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Float2 {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Correctly rounded quotient.
    Div,
    /// Smaller operand; a NaN operand is ignored unless `nan` (`.NaN`) makes it the result. −0 is below +0.
    Min {
        /// `.NaN`.
        nan: bool,
        /// `.xorsign.abs`: compare magnitudes, give the result the product's sign.
        xorsign: bool,
    },
    /// Larger operand, as [`Float2::Min`].
    Max {
        /// `.NaN`.
        nan: bool,
        /// `.xorsign.abs`.
        xorsign: bool,
    },
    /// Magnitude of the second operand with the sign of the first (`copysign d, a, b`).
    Copysign,
}

/// One operand.
pub fn float1(op: Float1, mode: FloatMode, a: u64) -> u64 {
    let format = mode.ty.format();
    let a = mode.operand(a);
    match op {
        Float1::Abs => a & !format.zero(true),
        Float1::Neg => a ^ format.zero(true),
        Float1::Rcp => {
            let one = exact::convert(F32, format, Round::Nearest, u64::from(1f32.to_bits()));
            mode.result(exact::div(format, mode.round, one, a))
        }
        Float1::Sqrt => mode.result(exact::sqrt(format, mode.round, a)),
    }
}

/// Two operands.
pub fn float2(op: Float2, mode: FloatMode, a: u64, b: u64) -> u64 {
    let format = mode.ty.format();
    let (a, b) = (mode.operand(a), mode.operand(b));
    let result = match op {
        Float2::Add => exact::add(format, mode.round, a, b),
        Float2::Sub if format.is_nan(b) => format.nan,
        Float2::Sub => exact::add(format, mode.round, a, b ^ format.zero(true)),
        Float2::Mul => exact::mul(format, mode.round, a, b),
        Float2::Div => exact::div(format, mode.round, a, b),
        Float2::Min { nan, xorsign } => extremum(format, a, b, nan, xorsign, false),
        Float2::Max { nan, xorsign } => extremum(format, a, b, nan, xorsign, true),
        Float2::Copysign => return (b & !format.zero(true)) | (a & format.zero(true)),
    };
    mode.result(result)
}

/// `a · b + c`, rounded once.
pub fn fma(mode: FloatMode, a: u64, b: u64, c: u64) -> u64 {
    mode.result(exact::fma(mode.ty.format(), mode.round, mode.operand(a), mode.operand(b), mode.operand(c)))
}

/// A total order of all numbers in which −0 is below +0.
fn rank(format: Format, bits: u64) -> i64 {
    let magnitude = (bits & !format.zero(true)) as i64;
    if format.is_negative(bits) { -1 - magnitude } else { magnitude }
}

fn extremum(format: Format, a: u64, b: u64, nan: bool, xorsign: bool, greatest: bool) -> u64 {
    let sign = (a ^ b) & format.zero(true);
    let (x, y) = if xorsign { (a & !format.zero(true), b & !format.zero(true)) } else { (a, b) };
    let chosen = match (format.is_nan(x), format.is_nan(y)) {
        (true, true) => return format.nan,
        (true, false) | (false, true) if nan => return format.nan,
        (true, false) => y,
        (false, true) => x,
        (false, false) => {
            if (rank(format, x) < rank(format, y)) == greatest {
                y
            } else {
                x
            }
        }
    };
    if xorsign { chosen | sign } else { chosen }
}

/// Comparison of `setp` and `set` (PTX manual 9.7.6). The `u` forms are true when an operand is NaN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are the manual's")]
pub enum FloatCompare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

/// Compares two operands.
pub fn compare(op: FloatCompare, ty: FloatType, ftz: bool, a: u64, b: u64) -> bool {
    let format = ty.format();
    let (a, b) = if ftz { (format.flush(a), format.flush(b)) } else { (a, b) };
    let unordered = format.is_nan(a) || format.is_nan(b);
    let value = |bits| f64::from_bits(exact::convert(format, F64, Round::Nearest, bits));
    let (x, y) = (value(a), value(b));
    match op {
        FloatCompare::Eq => x == y,
        FloatCompare::Ne => !unordered && x != y,
        FloatCompare::Lt => x < y,
        FloatCompare::Le => x <= y,
        FloatCompare::Gt => x > y,
        FloatCompare::Ge => x >= y,
        FloatCompare::Equ => unordered || x == y,
        FloatCompare::Neu => x != y,
        FloatCompare::Ltu => unordered || x < y,
        FloatCompare::Leu => unordered || x <= y,
        FloatCompare::Gtu => unordered || x > y,
        FloatCompare::Geu => unordered || x >= y,
        FloatCompare::Num => !unordered,
        FloatCompare::Nan => unordered,
    }
}

/// Class tested by `testp` (PTX manual 9.7.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are the manual's")]
pub enum NumberClass {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// Whether the operand is in the class.
pub fn test_class(class: NumberClass, ty: FloatType, a: u64) -> bool {
    let format = ty.format();
    let magnitude = a & !format.zero(true);
    match class {
        NumberClass::Finite => magnitude < format.infinity(),
        NumberClass::Infinite => magnitude == format.infinity(),
        NumberClass::Number => !format.is_nan(a),
        NumberClass::NotANumber => format.is_nan(a),
        // Zeros count as normal.
        NumberClass::Normal => magnitude < format.infinity() && !format.is_subnormal(a),
        NumberClass::Subnormal => format.is_subnormal(a),
    }
}
