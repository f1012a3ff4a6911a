//! Element types, and the numbers that they hold.

/// Element types that are drawn. Floats hold small integers, so that no operation rounds; integers wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `i8`
    I8,
    /// `u8`
    U8,
    /// `i16`
    I16,
    /// `u16`
    U16,
    /// `i32`
    I32,
    /// `u32`
    U32,
    /// `i64`
    I64,
    /// `u64`
    U64,
    /// `e4m3`, which is only stored: integers up to 16.
    E4m3,
    /// `e5m2`, which is only stored: integers up to 8.
    E5m2,
    /// `tf32`, which is only stored: integers up to 2048.
    Tf32,
    /// `f16`: integers up to 2048.
    F16,
    /// `bf16`: integers up to 256.
    Bf16,
    /// `f32`: integers up to 2²⁴.
    F32,
    /// `f64`: integers up to 2⁵³.
    F64,
    /// `bool`: 0 is false, 1 is true; no arithmetic.
    Bool,
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Of an integer type.
    Int(i128),
    /// Of a float type: an integer, an infinity or a NaN.
    Float(f64),
}

impl Number {
    /// As a float, which is exact for what is drawn as one.
    pub fn float(self) -> f64 {
        match self {
            Self::Int(n) => n as f64,
            Self::Float(n) => n,
        }
    }

    /// As an integer: floats towards zero, saturating, NaN to 0.
    pub fn int(self) -> i128 {
        match self {
            Self::Int(n) => n,
            Self::Float(n) => n as i128,
        }
    }

    /// Whether a comparison holds; none does with NaN, but that it is not equal.
    pub fn compare(self, op: &str, other: Self) -> bool {
        let order = match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(&b)),
            (a, b) => a.float().partial_cmp(&b.float()),
        };
        match op {
            ">" => order.is_some_and(std::cmp::Ordering::is_gt),
            ">=" => order.is_some_and(std::cmp::Ordering::is_ge),
            "<" => order.is_some_and(std::cmp::Ordering::is_lt),
            "<=" => order.is_some_and(std::cmp::Ordering::is_le),
            "==" => order.is_some_and(std::cmp::Ordering::is_eq),
            _ => order.is_none_or(std::cmp::Ordering::is_ne),
        }
    }

    /// Equal, or both NaN. A zero has the sign that the order of a sum gives it.
    pub fn same(self, other: Self) -> bool {
        self.compare("==", other) || self.float().is_nan() && other.float().is_nan()
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(n) => n.fmt(f),
            Self::Float(n) => n.fmt(f),
        }
    }
}

impl Type {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
            Self::Tf32 => "tf32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bool => "bool",
        }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::I8 | Self::U8 | Self::E4m3 | Self::E5m2 | Self::Bool => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 | Self::Tf32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether it has a minus sign.
    pub fn is_signed(self) -> bool {
        !matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64 | Self::Bool)
    }

    /// The least and the greatest number of a type that is no float.
    pub fn ends(self) -> Option<(i128, i128)> {
        let bits = 8 * self.bytes() as u32;
        match self {
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => Some((0, (1 << bits) - 1)),
            Self::Bool => Some((0, 1)),
            _ => None,
        }
    }

    /// Whether it is an integer type.
    pub fn is_integer(self) -> bool {
        self.ends().is_some() && self != Self::Bool
    }

    /// Up to where a float has all integers.
    pub fn exact(self) -> f64 {
        match self {
            Self::E5m2 => 8.0,
            Self::E4m3 => 16.0,
            Self::Bf16 => 256.0,
            Self::F16 | Self::Tf32 => 2048.0,
            Self::F32 => 16_777_216.0,
            _ => 9_007_199_254_740_992.0,
        }
    }

    /// Whether it is stored and converted, and nothing else.
    pub fn is_storage(self) -> bool {
        matches!(self, Self::E4m3 | Self::E5m2 | Self::Tf32)
    }

    /// A small integer of this type.
    pub fn number(self, n: i64) -> Number {
        if self.ends().is_some() { Number::Int(self.wrapped(n.into())) } else { Number::Float(n as f64) }
    }

    /// An integer as its low bits are read by an integer type.
    pub fn wrapped(self, n: i128) -> i128 {
        let Some((least, greatest)) = self.ends() else { return n };
        let all = greatest - least + 1;
        let low = n & (all - 1);
        if low > greatest { low - all } else { low }
    }

    /// Bits of an integer type.
    pub fn width(self) -> i128 {
        self.ends().map_or(0, |(least, greatest)| i128::from((greatest - least + 1).ilog2()))
    }

    /// What a `dot` of this type accumulates in.
    pub fn accumulator(self) -> Option<Self> {
        match self {
            Self::F64 => Some(Self::F64),
            Self::I64 | Self::U64 | Self::U32 | Self::Bool => None,
            _ if self.is_integer() => Some(Self::I32),
            _ => Some(Self::F32),
        }
    }
}
