//! Conversions: Rust's `as`, with one rounding.
//!
//! PTX converts between most types in one instruction. What it lacks at the lowest target is built with *rounding to
//! odd* (Boldo and Melquiond, "When double rounding is odd", 2004): a wide number is first cut to `f32` towards zero,
//! and its last bit is set if anything was lost. A format with at least two bits fewer, which every narrower float is,
//! is then rounded to correctly. How an `f32` becomes a type for storage is in `storage`.

use tilewright_kernel::ElementType;
use tilewright_ptx::{Operand, RegId, ScalarType};

use super::entry::{Entry, register_type};
use crate::kernel_ir::{Type, ValueId};

use ElementType::{Bf16, Bool, E4m3, E5m2, F16, F32, F64, I8, I16, I32, I64, Tf32, U8, U16, U32, U64};

/// The instruction type of the register of an integer.
const fn integer(element: ElementType) -> ScalarType {
    match element {
        I64 => ScalarType::S64,
        U64 => ScalarType::U64,
        U32 | U16 | U8 => ScalarType::U32,
        _ => ScalarType::S32,
    }
}

/// Smallest and largest value of an integer type of less than 32 bits.
const fn narrow_range(element: ElementType) -> Option<(i32, i32)> {
    match element {
        I8 => Some((i8::MIN as i32, i8::MAX as i32)),
        I16 => Some((i16::MIN as i32, i16::MAX as i32)),
        U8 => Some((0, u8::MAX as i32)),
        U16 => Some((0, u16::MAX as i32)),
        _ => None,
    }
}

/// Whether every value of one integer type is one of another, narrow one.
fn fits(from: ElementType, to: ElementType) -> bool {
    match (narrow_range(from), narrow_range(to)) {
        (Some(from), Some(to)) => to.0 <= from.0 && from.1 <= to.1,
        _ => false,
    }
}

impl Entry<'_> {
    /// A value converted to an element type; an index integer counts as an `i32` or `i64`.
    pub(super) fn cast(&mut self, a: ValueId, to: Type) -> RegId {
        let from = match self.ty(a) {
            Type::I32 => I32,
            Type::I64 => I64,
            Type::Element(element) => element,
        };
        let to = to.element().unwrap_or(F32);
        let x = self.register(a);
        match from {
            Bool => self.cast_bool(x, to),
            I64 | I32 | I16 | I8 | U64 | U32 | U16 | U8 => self.cast_integer(x, from, to),
            F64 => self.cast_f64(x, to),
            F32 | Tf32 => self.cast_f32(x, to),
            F16 => {
                let wide = self.result("cvt.f32.f16", ScalarType::F32, [x.into()]);
                self.cast_f32(wide, to)
            }
            Bf16 => {
                let wide = self.widen_bf16(x);
                self.cast_f32(wide, to)
            }
            E4m3 | E5m2 => {
                let wide = self.widen_fp8(x, from);
                self.cast_f32(wide, to)
            }
        }
    }

    /// bf16 is the upper half of an f32.
    fn widen_bf16(&mut self, x: RegId) -> RegId {
        let zero = self.result("mov.b16", ScalarType::B16, [0.into()]);
        self.result("mov.b32", ScalarType::F32, [Operand::vector([zero, x])])
    }

    fn cast_bool(&mut self, x: RegId, to: ElementType) -> RegId {
        let register = register_type(Type::Element(to));
        let one: Operand = match to {
            F64 => 1.0_f64.into(),
            F32 | Tf32 => 1.0_f32.into(),
            F16 => 0x3C00.into(),
            Bf16 => 0x3F80.into(),
            E4m3 => 0x38.into(),
            E5m2 => 0x3C.into(),
            I64 | I32 | I16 | I8 | U64 | U32 | U16 | U8 => 1.into(),
            Bool => return x,
        };
        let zero: Operand = match to {
            F64 => 0.0_f64.into(),
            F32 | Tf32 => 0.0_f32.into(),
            _ => 0.into(),
        };
        self.result(&format!("selp.{register}"), register, [one, zero, x.into()])
    }

    fn cast_integer(&mut self, x: RegId, from: ElementType, to: ElementType) -> RegId {
        let scalar = integer(from);
        match to {
            I64 | U64 => self.extend(x, from),
            I32 | U32 => self.low_word(x, from),
            I16 | I8 | U16 | U8 => {
                let word = self.low_word(x, from);
                if fits(from, to) { word } else { self.wrap(word, to) }
            }
            F64 => self.result(&format!("cvt.rn.f64.{scalar}"), ScalarType::F64, [x.into()]),
            F32 => self.result(&format!("cvt.rn.f32.{scalar}"), ScalarType::F32, [x.into()]),
            F16 | Bf16 | Tf32 | E4m3 | E5m2 if narrow_range(from).is_some() => {
                let exact = self.result(&format!("cvt.rn.f32.{scalar}"), ScalarType::F32, [x.into()]);
                self.cast_f32(exact, to)
            }
            F16 | Bf16 | Tf32 | E4m3 | E5m2 => {
                let cut = self.result(&format!("cvt.rz.f32.{scalar}"), ScalarType::F32, [x.into()]);
                let register = if scalar.bits() == 64 { ScalarType::B64 } else { ScalarType::B32 };
                let back = self.result(&format!("cvt.rzi.{scalar}.f32"), register, [cut.into()]);
                let lost = self.result(&format!("setp.ne.{scalar}"), ScalarType::Pred, [back.into(), x.into()]);
                let odd = self.make_odd(cut, lost);
                self.cast_f32(odd, to)
            }
            Bool => x, // the verifier has refused it
        }
    }

    /// An integer in 64 bits.
    fn extend(&mut self, x: RegId, from: ElementType) -> RegId {
        match integer(from) {
            ScalarType::S32 => self.result("cvt.s64.s32", ScalarType::B64, [x.into()]),
            ScalarType::U32 => self.result("cvt.u64.u32", ScalarType::B64, [x.into()]),
            _ => x,
        }
    }

    /// The low 32 bits of an integer.
    fn low_word(&mut self, x: RegId, from: ElementType) -> RegId {
        if from.bytes() == 8 { self.result("cvt.u32.u64", ScalarType::B32, [x.into()]) } else { x }
    }

    /// A 32-bit integer wrapped to a narrow type and extended again.
    pub(super) fn wrap(&mut self, x: RegId, to: ElementType) -> RegId {
        let mnemonic = match to {
            I8 => "cvt.s32.s8",
            I16 => "cvt.s32.s16",
            U8 => "cvt.u32.u8",
            U16 => "cvt.u32.u16",
            _ => return x,
        };
        self.result(mnemonic, ScalarType::B32, [x.into()])
    }

    fn cast_f32(&mut self, x: RegId, to: ElementType) -> RegId {
        match to {
            F64 => self.result("cvt.f64.f32", ScalarType::F64, [x.into()]),
            F32 => x,
            F16 => self.result("cvt.rn.f16.f32", ScalarType::B16, [x.into()]),
            Bf16 => self.result("cvt.rn.bf16.f32", ScalarType::B16, [x.into()]),
            Tf32 => self.round_tf32(x),
            E4m3 | E5m2 => self.round_fp8(x, to),
            I64 | I32 | I16 | I8 | U64 | U32 | U16 | U8 => self.float_to_integer(x, ScalarType::F32, to),
            Bool => x, // the verifier has refused it
        }
    }

    fn cast_f64(&mut self, x: RegId, to: ElementType) -> RegId {
        match to {
            F64 => x,
            F32 => self.result("cvt.rn.f32.f64", ScalarType::F32, [x.into()]),
            F16 => self.result("cvt.rn.f16.f64", ScalarType::B16, [x.into()]),
            Bf16 | Tf32 | E4m3 | E5m2 => {
                let cut = self.result("cvt.rz.f32.f64", ScalarType::F32, [x.into()]);
                let back = self.result("cvt.f64.f32", ScalarType::F64, [cut.into()]);
                // True for NaN as well, whose last bit does not matter.
                let lost = self.result("setp.neu.f64", ScalarType::Pred, [back.into(), x.into()]);
                let odd = self.make_odd(cut, lost);
                self.cast_f32(odd, to)
            }
            I64 | I32 | I16 | I8 | U64 | U32 | U16 | U8 => self.float_to_integer(x, ScalarType::F64, to),
            Bool => x, // the verifier has refused it
        }
    }

    /// Sets the last bit of an `f32` where something was lost.
    fn make_odd(&mut self, cut: RegId, lost: RegId) -> RegId {
        let sticky = self.result("selp.b32", ScalarType::B32, [1.into(), 0.into(), lost.into()]);
        let bits = self.result("mov.b32", ScalarType::B32, [cut.into()]);
        let odd = self.result("or.b32", ScalarType::B32, [bits.into(), sticky.into()]);
        self.result("mov.b32", ScalarType::F32, [odd.into()])
    }

    /// Towards zero, saturating, NaN to 0.
    fn float_to_integer(&mut self, x: RegId, from: ScalarType, to: ElementType) -> RegId {
        let scalar = integer(to);
        let register = if scalar.bits() == 64 { ScalarType::B64 } else { ScalarType::B32 };
        // The conversion itself saturates (9.7.9.21).
        let mut result = self.result(&format!("cvt.rzi.{scalar}.{from}"), register, [x.into()]);
        // It gives 0 for NaN only between 32-bit types.
        if from == ScalarType::F64 || scalar.bits() == 64 {
            let nan = self.result(&format!("setp.nan.{from}"), ScalarType::Pred, [x.into(), x.into()]);
            result = self.result(&format!("selp.{register}"), register, [0.into(), result.into(), nan.into()]);
        }
        if let Some((least, greatest)) = narrow_range(to) {
            if least < 0 {
                result = self.result("max.s32", ScalarType::B32, [result.into(), least.into()]);
            }
            result = self.result(&format!("min.{scalar}"), ScalarType::B32, [result.into(), greatest.into()]);
        }
        result
    }

    /// The same bits as another type of the same width.
    pub(super) fn bits(&mut self, a: ValueId, to: Type) -> RegId {
        let x = self.register(a);
        let (from, register) = (register_type(self.ty(a)), register_type(to));
        let element = to.element().unwrap_or(F32);
        match (from, register) {
            (ScalarType::B16, ScalarType::B32) => {
                let sign = if element == I16 { "s" } else { "u" };
                self.result(&format!("cvt.{sign}32.{sign}16"), register, [x.into()])
            }
            (ScalarType::B32, ScalarType::B16) => self.result("cvt.u16.u32", register, [x.into()]),
            _ if from == register && narrow_range(element).is_some() => self.wrap(x, element),
            // Eight-bit floats are kept without a sign.
            _ if from == register && element.bytes() == 1 => self.wrap(x, U8),
            _ if from == register => x,
            _ => self.result(&format!("mov.{}", register.as_bits()), register, [x.into()]),
        }
    }

    /// An integer element as an index.
    pub(super) fn index_of(&mut self, a: ValueId, to: Type) -> RegId {
        let x = self.register(a);
        match (to, self.ty(a)) {
            (Type::I64, Type::Element(element)) => self.extend(x, element),
            _ => x,
        }
    }
}
