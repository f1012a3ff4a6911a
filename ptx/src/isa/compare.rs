//! Comparison and selection (9.7.5, 9.7.6).

family! {
    /// Comparisons and selections.
    Compare {
        /// Comparison into a predicate, perhaps combined with another.
        Setp: "9.7.5.2, 9.7.6.2", None, None, [
            "setp.<eq|ne>[.<and|or|xor>].<b16|b32|b64> d[|p]:pred, a:T0, b:T0, !c?and|or|xor",
            "setp.<$ucmp>[.<and|or|xor>].<u16|u32|u64> d[|p]:pred, a:T0, b:T0, !c?and|or|xor",
            "setp.<$cmp>[.<and|or|xor>].<s16|s32|s64> d[|p]:pred, a:T0, b:T0, !c?and|or|xor",
            "setp.<$fcmp>[.<and|or|xor>][.ftz].f32 d[|p]:pred, a:T0, b:T0, !c?and|or|xor",
            "setp.<$fcmp>[.<and|or|xor>].f64 d[|p]:pred, a:T0, b:T0, !c?and|or|xor",
            "setp.<$fcmp>[.<and|or|xor>][.ftz].f16 d:pred, a:T0!, b:T0!, !c?and|or|xor",
            "setp.<$fcmp>[.<and|or|xor>][.ftz].f16x2 d|p:pred, a:T0!, b:T0!, !c?and|or|xor",
            "setp.<$fcmp>[.<and|or|xor>].bf16 d:pred, a:T0!, b:T0!, !c?and|or|xor @7.8/90",
            "setp.<$fcmp>[.<and|or|xor>].bf16x2 d|p:pred, a:T0!, b:T0!, !c?and|or|xor @7.8/90",
        ];
        /// Comparison into a register: all ones (or 1.0) where true.
        Set: "9.7.5.1, 9.7.6.1", None, None, [
            "set.<eq|ne>[.<and|or|xor>].<u32|s32|f32>.<b16|b32|b64> d, a:T1, b:T1, !c?and|or|xor",
            "set.<$ucmp>[.<and|or|xor>].<u32|s32|f32>.<u16|u32|u64> d, a:T1, b:T1, !c?and|or|xor",
            "set.<$cmp>[.<and|or|xor>].<u32|s32|f32>.<s16|s32|s64> d, a:T1, b:T1, !c?and|or|xor",
            "set.<$fcmp>[.<and|or|xor>][.ftz].<u32|s32|f32>.f32 d, a:T1, b:T1, !c?and|or|xor",
            "set.<$fcmp>[.<and|or|xor>].<u32|s32|f32>.f64 d, a:T1, b:T1, !c?and|or|xor",
            "set.<$fcmp>[.<and|or|xor>][.ftz].<f16|u16@6.5|s16@6.5|u32@6.5|s32@6.5>.f16 d, a:T1!, b:T1!, !c?and|or|xor",
            "set.<$fcmp>[.<and|or|xor>][.ftz].<f16x2|u32@6.5|s32@6.5>.f16x2 d, a:T1!, b:T1!, !c?and|or|xor",
            "set.<$fcmp>[.<and|or|xor>].<bf16|u16|s16|u32|s32>.bf16 d, a:T1!, b:T1!, !c?and|or|xor @7.8/90",
            "set.<$fcmp>[.<and|or|xor>].<bf16x2|u32|s32>.bf16x2 d, a:T1!, b:T1!, !c?and|or|xor @7.8/90",
        ];
        /// One of two by a predicate.
        Selp: "9.7.5.3", None, None, [
            "selp.<b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64> d, a, b, !c",
        ];
        /// One of two by the sign of a third.
        Slct: "9.7.5.4", None, None, [
            "slct.<b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64>.s32 d, a, b, c:T1",
            "slct[.ftz].<b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64>.f32 d, a, b, c:T1",
        ];
        /// Class of a floating-point number.
        Testp: "9.7.3.1", None, None, [
            "testp.<finite|infinite|number|notanumber|normal|subnormal>.<f32|f64> d:pred, a",
        ];
    }
}
