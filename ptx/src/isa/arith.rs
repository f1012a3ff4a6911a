//! Arithmetic: integers (9.7.1), extended precision (9.7.2), floating point (9.7.3–9.7.4, without the functions of
//! `math`).

family! {
    /// Integer and floating-point arithmetic.
    Arith {
        /// Sum.
        Add: "9.7.1.1, 9.7.3.3, 9.7.4.1", None, None, [
            "add.<$i16_64> d, a, b",
            "add.sat.s32 d, a, b",
            "add.<u16x2|s16x2> d, a, b @8.0/90",
            "add[.<$frnd>][.ftz][.sat].f32 d, a, b",
            "add[.<$frnd>].f64 d, a, b",
            "add[.rn][.ftz][.sat].<f16|f16x2> d, a:T0!, b:T0!",
            "add[.rn].<bf16|bf16x2> d, a:T0!, b:T0! @7.8/90",
        ];
        /// Difference.
        Sub: "9.7.1.2, 9.7.3.4, 9.7.4.2", None, None, [
            "sub.<$i16_64> d, a, b",
            "sub.sat.s32 d, a, b",
            "sub[.<$frnd>][.ftz][.sat].f32 d, a, b",
            "sub[.<$frnd>].f64 d, a, b",
            "sub[.rn][.ftz][.sat].<f16|f16x2> d, a:T0!, b:T0!",
            "sub[.rn].<bf16|bf16x2> d, a:T0!, b:T0! @7.8/90",
        ];
        /// Product, or a half of it.
        Mul: "9.7.1.3, 9.7.3.5, 9.7.4.3", None, None, [
            "mul.<lo|hi>.<$i16_64> d, a, b",
            "mul.wide.<u16|u32|s16|s32> d:W, a, b",
            "mul[.<$frnd>][.ftz][.sat].f32 d, a, b",
            "mul[.<$frnd>].f64 d, a, b",
            "mul[.rn][.ftz][.sat].<f16|f16x2> d, a:T0!, b:T0!",
            "mul[.rn].<bf16|bf16x2> d, a:T0!, b:T0! @7.8/90",
        ];
        /// Product of 24-bit integers.
        Mul24: "9.7.1.5", None, None, ["mul24.<lo|hi>.<u32|s32> d, a, b"];
        /// Product and sum; the integer forms keep a half of the product, the float forms are fused.
        Mad: "9.7.1.4, 9.7.3.7", None, None, [
            "mad.<lo|hi>.<$i16_64> d, a, b, c",
            "mad.hi.sat.s32 d, a, b, c",
            "mad.wide.<u16|u32|s16|s32> d:W, a, b, c:W",
            "mad.<$frnd>[.ftz][.sat].f32 d, a, b, c",
            "mad.<$frnd>.f64 d, a, b, c",
        ];
        /// Product of 24-bit integers, and sum.
        Mad24: "9.7.1.6", None, None, ["mad24.<lo|hi>.<u32|s32> d, a, b, c", "mad24.hi.sat.s32 d, a, b, c"];
        /// Fused product and sum: one rounding.
        Fma: "9.7.3.6, 9.7.4.4", None, None, [
            "fma.<$frnd>[.ftz][.sat].f32 d, a, b, c",
            "fma.<$frnd>.f64 d, a, b, c",
            "fma.rn[.ftz][.sat].<f16|f16x2> d, a:T0!, b:T0!, c:T0!",
            "fma.rn[.ftz].relu.<f16|f16x2> d, a:T0!, b:T0!, c:T0! @7.0/80",
            "fma.rn[.relu].<bf16|bf16x2> d, a:T0!, b:T0!, c:T0! @7.0/80",
            "fma.rn.oob[.relu].<f16|f16x2|bf16|bf16x2> d, a:T0!, b:T0!, c:T0! @8.1/90",
        ];
        /// Quotient.
        Div: "9.7.1.8, 9.7.3.8", None, None, [
            "div.<$i16_64> d, a, b",
            "div.<approx|full>[.ftz].f32 d, a, b",
            "div.<$frnd>[.ftz].f32 d, a, b",
            "div.<$frnd>.f64 d, a, b",
        ];
        /// Integer remainder.
        Rem: "9.7.1.9", None, None, ["rem.<$i16_64> d, a, b"];
        /// Absolute value.
        Abs: "9.7.1.10, 9.7.3.9, 9.7.4.6", None, None, [
            "abs.<s16|s32|s64> d, a",
            "abs[.ftz].f32 d, a",
            "abs.f64 d, a",
            "abs[.ftz].<f16|f16x2> d, a:T0! @6.5",
            "abs.<bf16|bf16x2> d, a:T0! @7.0/80",
        ];
        /// Negation.
        Neg: "9.7.1.11, 9.7.3.10, 9.7.4.5", None, None, [
            "neg.<s16|s32|s64> d, a",
            "neg[.ftz].f32 d, a",
            "neg.f64 d, a",
            "neg[.ftz].<f16|f16x2> d, a:T0!",
            "neg.<bf16|bf16x2> d, a:T0! @7.0/80",
        ];
        /// Minimum.
        Min: "9.7.1.12, 9.7.3.11, 9.7.4.7", None, None, [
            "min.<$i16_64> d, a, b",
            "min.relu.s32 d, a, b @8.0/90",
            "min.u16x2 d, a, b @8.0/90",
            "min[.relu].s16x2 d, a, b @8.0/90",
            "min.<s32|s16x2>.relu d, a, b @8.0/90",
            "min[.ftz][.NaN@7.0/80].f32 d, a, b",
            "min[.ftz][.NaN].xorsign.abs.f32 d, a, b @7.2/86",
            "min.f64 d, a, b",
            "min[.ftz][.NaN].<f16|f16x2> d, a:T0!, b:T0! @7.0/80",
            "min[.ftz][.NaN].xorsign.abs.<f16|f16x2> d, a:T0!, b:T0! @7.2/86",
            "min[.NaN].<bf16|bf16x2> d, a:T0!, b:T0! @7.0/80",
            "min[.NaN].xorsign.abs.<bf16|bf16x2> d, a:T0!, b:T0! @7.2/86",
        ];
        /// Maximum.
        Max: "9.7.1.13, 9.7.3.12, 9.7.4.8", None, None, [
            "max.<$i16_64> d, a, b",
            "max.relu.s32 d, a, b @8.0/90",
            "max.u16x2 d, a, b @8.0/90",
            "max[.relu].s16x2 d, a, b @8.0/90",
            "max.<s32|s16x2>.relu d, a, b @8.0/90",
            "max[.ftz][.NaN@7.0/80].f32 d, a, b",
            "max[.ftz][.NaN].xorsign.abs.f32 d, a, b @7.2/86",
            "max.f64 d, a, b",
            "max[.ftz][.NaN].<f16|f16x2> d, a:T0!, b:T0! @7.0/80",
            "max[.ftz][.NaN].xorsign.abs.<f16|f16x2> d, a:T0!, b:T0! @7.2/86",
            "max[.NaN].<bf16|bf16x2> d, a:T0!, b:T0! @7.0/80",
            "max[.NaN].xorsign.abs.<bf16|bf16x2> d, a:T0!, b:T0! @7.2/86",
        ];
        /// Sum of absolute differences: `c + |a - b|`.
        Sad: "9.7.1.7", None, None, ["sad.<$i16_64> d, a, b, c"];
        /// Magnitude of `b` with the sign of `a`.
        Copysign: "9.7.3.2", None, None, ["copysign.<f32|f64> d, a, b"];
        /// Dot product of four bytes, and sum.
        Dp4a: "9.7.1.23", None, None, ["dp4a.<u32|s32>.<u32|s32> d:u32, a:u32, b:u32, c:u32"];
        /// Dot product of two halves with two bytes, and sum.
        Dp2a: "9.7.1.24", None, None, ["dp2a.<lo|hi>.<u32|s32>.<u32|s32> d:u32, a:u32, b:u32, c:u32"];
        /// Sum that sets the carry.
        AddCc: "9.7.2.1", None, None, ["add.cc.<$i32_64> d, a, b"];
        /// Sum with carry in.
        Addc: "9.7.2.2", None, None, ["addc[.cc].<$i32_64> d, a, b"];
        /// Difference that sets the borrow.
        SubCc: "9.7.2.3", None, None, ["sub.cc.<$i32_64> d, a, b"];
        /// Difference with borrow in.
        Subc: "9.7.2.4", None, None, ["subc[.cc].<$i32_64> d, a, b"];
        /// Product and sum that sets the carry.
        MadCc: "9.7.2.5", None, None, ["mad.<lo|hi>.cc.<$i32_64> d, a, b, c"];
        /// Product and sum with carry in.
        Madc: "9.7.2.6", None, None, ["madc.<lo|hi>[.cc].<$i32_64> d, a, b, c"];
    }
}
