//! Scalar types, state spaces and matrix shapes, as the PTX manual names them (5.1 state spaces, 5.2 types).

use std::fmt;

/// Declares an enum whose variants have one PTX spelling each.
macro_rules! spelled {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        pub enum $name { $(#[doc = concat!("`", $text, "`")] $(#[$vmeta])* $variant,)* }
        impl $name {
            /// Every variant, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];
            /// The PTX spelling, without the leading dot.
            pub const fn text(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
            /// The variant with this spelling (without the leading dot).
            pub fn from_text(text: &str) -> Option<Self> {
                static SORTED: [$name; $name::ALL.len()] = {
                    let mut all = [$($name::$variant),*];
                    // Insertion: a constant is computed without iterators.
                    let mut next = 1;
                    while next < all.len() {
                        let mut at = next;
                        while at > 0 && crate::types::is_before(all[at].text(), all[at - 1].text()) {
                            (all[at], all[at - 1]) = (all[at - 1], all[at]);
                            at -= 1;
                        }
                        next += 1;
                    }
                    all
                };
                SORTED.binary_search_by(|one| one.text().cmp(text)).ok().map(|at| SORTED[at])
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.text()) }
        }
    };
}
pub(crate) use spelled;

/// Whether a text comes before another one in the order of their bytes.
pub(crate) const fn is_before(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    a.len() < b.len()
}

spelled! {
    /// A scalar or packed type (PTX manual 5.2).
    ScalarType {
        Pred = "pred",
        B8 = "b8", B16 = "b16", B32 = "b32", B64 = "b64", B128 = "b128",
        U8 = "u8", U16 = "u16", U32 = "u32", U64 = "u64",
        S8 = "s8", S16 = "s16", S32 = "s32", S64 = "s64",
        F16 = "f16", F16x2 = "f16x2", Bf16 = "bf16", Bf16x2 = "bf16x2", Tf32 = "tf32", F32 = "f32", F64 = "f64",
        U16x2 = "u16x2", S16x2 = "s16x2",
        E4m3 = "e4m3", E5m2 = "e5m2", E4m3x2 = "e4m3x2", E5m2x2 = "e5m2x2",
        U4 = "u4", S4 = "s4", B1 = "b1",
        B1024 = "b1024",
        F32x2 = "f32x2",
    }
}

/// The class of a scalar type, which decides what register may hold it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum TypeClass {
    /// Predicates: compatible with nothing else.
    Predicate,
    /// Untyped bits: compatible with every type of the same size.
    Bits,
    /// Signed and unsigned integers: compatible with each other at the same size.
    Integer,
    /// Floating point with registers of its own: `f16 f16x2 f32 f64`.
    Float,
    /// Types that live in registers of untyped bits: `bf16 tf32 e4m3x2` and other packed types.
    Packed,
}

impl ScalarType {
    /// Size in bits; a predicate counts as one bit.
    pub const fn bits(self) -> u32 {
        use ScalarType::*;
        match self {
            Pred | B1 => 1,
            U4 | S4 => 4,
            B8 | U8 | S8 | E4m3 | E5m2 => 8,
            B16 | U16 | S16 | F16 | Bf16 | E4m3x2 | E5m2x2 => 16,
            B32 | U32 | S32 | F32 | F16x2 | Bf16x2 | Tf32 | U16x2 | S16x2 => 32,
            B64 | U64 | S64 | F64 | F32x2 => 64,
            B128 => 128,
            B1024 => 1024,
        }
    }

    /// Size in bytes of a value in memory, rounded up.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// The class that decides register compatibility.
    pub const fn class(self) -> TypeClass {
        use ScalarType::*;
        match self {
            Pred => TypeClass::Predicate,
            B1 | B8 | B16 | B32 | B64 | B128 | B1024 => TypeClass::Bits,
            U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 => TypeClass::Integer,
            F16 | F16x2 | F32 | F64 => TypeClass::Float,
            Bf16 | Bf16x2 | Tf32 | U16x2 | S16x2 | E4m3 | E5m2 | E4m3x2 | E5m2x2 | U4 | S4 | F32x2 => TypeClass::Packed,
        }
    }

    /// Whether this is a signed integer type.
    pub const fn is_signed(self) -> bool {
        use ScalarType::*;
        matches!(self, S4 | S8 | S16 | S32 | S64 | S16x2)
    }

    /// Whether values are floating point, packed or not.
    pub const fn is_float(self) -> bool {
        use ScalarType::*;
        matches!(self, F16 | F16x2 | Bf16 | Bf16x2 | Tf32 | F32 | F64 | F32x2 | E4m3 | E5m2 | E4m3x2 | E5m2x2)
    }

    /// Whether a register or variable may be declared with this type (5.2.2: the fundamental types).
    pub const fn is_fundamental(self) -> bool {
        use ScalarType::*;
        matches!(
            self,
            Pred | B8 | B16 | B32 | B64 | B128 | U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 | F16 | F16x2 | F32 | F64
        )
    }

    /// The type of twice the width, for `.wide` results: `s16`→`s32`, `u32`→`u64` and so on.
    pub const fn widened(self) -> Option<ScalarType> {
        use ScalarType::*;
        Some(match self {
            U16 => U32,
            S16 => S32,
            U32 => U64,
            S32 => S64,
            B16 => B32,
            B32 => B64,
            _ => return None,
        })
    }

    /// The untyped bits of the same size, where PTX has them.
    pub const fn as_bits(self) -> ScalarType {
        use ScalarType::*;
        match self.bits() {
            8 => B8,
            16 => B16,
            32 => B32,
            64 => B64,
            128 => B128,
            _ => self,
        }
    }

    /// Whether a register of this type may be an operand of instruction type `inst` of the same size (9.4, table of
    /// operand agreement): bits agree with everything, signed with unsigned, floating-point types with themselves,
    /// packed types with bits alone.
    pub const fn agrees_with(self, inst: ScalarType) -> bool {
        if self.bits() != inst.bits() {
            return false;
        }
        match (self.class(), inst.class()) {
            (TypeClass::Predicate, TypeClass::Predicate) => true,
            (TypeClass::Predicate, _) | (_, TypeClass::Predicate) => false,
            (TypeClass::Bits, _) | (_, TypeClass::Bits) => true,
            (TypeClass::Integer, TypeClass::Integer) => true,
            // `.f16x2` and `.f32` have the same size but do not agree.
            (TypeClass::Float, TypeClass::Float) => self as u8 == inst as u8,
            _ => false,
        }
    }
}

spelled! {
    /// A state space as a modifier or in a declaration (5.1).
    StateSpace {
        Reg = "reg",
        Global = "global",
        Shared = "shared",
        /// The own CTA's shared memory, spelled out (PTX 7.8).
        SharedCta = "shared::cta",
        /// The shared memory of any CTA of the cluster.
        SharedCluster = "shared::cluster",
        Local = "local",
        Const = "const",
        Param = "param",
        /// Parameters of the entry function, spelled out (PTX 8.3).
        ParamEntry = "param::entry",
        /// Parameters of the device function, spelled out (PTX 8.3).
        ParamFunc = "param::func",
    }
}

impl StateSpace {
    /// The space without its sub-qualifier: `shared::cta` → `shared`, `param::entry` → `param`.
    pub const fn base(self) -> StateSpace {
        match self {
            StateSpace::SharedCta | StateSpace::SharedCluster => StateSpace::Shared,
            StateSpace::ParamEntry | StateSpace::ParamFunc => StateSpace::Param,
            other => other,
        }
    }
}

/// A matrix shape such as `m16n8k16`, or `m8n8` where `k` is 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Shape {
    /// Rows.
    pub m: u16,
    /// Columns.
    pub n: u16,
    /// Depth of the contraction; 0 when the shape has none.
    pub k: u16,
}

impl Shape {
    /// Reads `m16n8k16` or `m8n8`.
    pub fn from_text(text: &str) -> Option<Shape> {
        let number = |digits: &str| -> Option<u16> {
            if digits.is_empty() || digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            digits.parse().ok()
        };
        let (m, rest) = text.strip_prefix('m')?.split_once('n')?;
        let (n, k) = match rest.split_once('k') {
            Some((n, k)) => (n, number(k)?),
            None => (rest, 0),
        };
        Some(Shape { m: number(m)?, n: number(n)?, k })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}n{}", self.m, self.n)?;
        if self.k != 0 { write!(f, "k{}", self.k) } else { Ok(()) }
    }
}
