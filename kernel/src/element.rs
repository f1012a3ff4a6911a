//! Element types of tensors and scalars.

/// The type of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElementType {
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary32.
    F32,
    /// 8 exponent and 10 fraction bits, kept as a binary32 whose low 13 bits are 0.
    Tf32,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// 8-bit float, 4 exponent and 3 fraction bits, no infinity.
    E4m3,
    /// 8-bit float, 5 exponent and 2 fraction bits.
    E5m2,
    /// Signed 64-bit integer.
    I64,
    /// Signed 32-bit integer.
    I32,
    /// Signed 16-bit integer.
    I16,
    /// Signed 8-bit integer.
    I8,
    /// Unsigned 64-bit integer.
    U64,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 8-bit integer.
    U8,
    /// One byte, 0 or 1.
    Bool,
}

use ElementType::{Bf16, Bool, E4m3, E5m2, F16, F32, F64, I8, I16, I32, I64, Tf32, U8, U16, U32, U64};

impl ElementType {
    /// Every element type, widest floats first, as the language document lists them.
    pub const ALL: [Self; 16] = [F64, F32, Tf32, F16, Bf16, E4m3, E5m2, I64, I32, I16, I8, U64, U32, U16, U8, Bool];

    /// The spelling of every element type, in the order of [`ALL`](Self::ALL).
    pub const NAMES: [&'static str; 16] = {
        let mut names = [""; 16];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].name();
            at += 1;
        }
        names
    };

    /// The spelling in the language.
    pub const fn name(self) -> &'static str {
        match self {
            F64 => "f64",
            F32 => "f32",
            Tf32 => "tf32",
            F16 => "f16",
            Bf16 => "bf16",
            E4m3 => "e4m3",
            E5m2 => "e5m2",
            I64 => "i64",
            I32 => "i32",
            I16 => "i16",
            I8 => "i8",
            U64 => "u64",
            U32 => "u32",
            U16 => "u16",
            U8 => "u8",
            Bool => "bool",
        }
    }

    /// The type with this spelling, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Size of one element in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            F64 | I64 | U64 => 8,
            F32 | Tf32 | I32 | U32 => 4,
            F16 | Bf16 | I16 | U16 => 2,
            E4m3 | E5m2 | I8 | U8 | Bool => 1,
        }
    }

    /// Whether arithmetic on it rounds.
    pub const fn is_float(self) -> bool {
        matches!(self, F64 | F32 | Tf32 | F16 | Bf16 | E4m3 | E5m2)
    }

    /// Whether it is a signed or unsigned integer (`bool` is not).
    pub const fn is_integer(self) -> bool {
        self.is_signed_integer() || matches!(self, U64 | U32 | U16 | U8)
    }

    /// Whether it is a two's complement integer.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, I64 | I32 | I16 | I8)
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
