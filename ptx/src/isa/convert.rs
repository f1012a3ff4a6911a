//! Moves and conversions (9.7.9.3, 9.7.9.21 onwards).

family! {
    /// Moves, conversions of numbers and of addresses.
    Convert {
        /// Move: registers, constants, special registers, addresses; with a vector, packing and unpacking.
        Mov: "9.7.9.3, 9.7.9.4", None, None, [
            "mov.<u16|u32|u64|s16|s32|s64|f32|f64|pred> d, a:T0&",
            "mov.<b16|b32|b64|b128@8.3/70> d:T0/, a:T0&",
            "mov.<b16|b32|b64|b128@8.3/70> d, a:T0/&",
        ];
        /// Conversion of numbers.
        Cvt: "9.7.9.21", None, None, [
            "cvt.<$int>.<$int> d:T0+, a:T1+&",
            "cvt.sat.u8.<u16|u32|u64|s8|s16|s32|s64> d:T0+, a:T1+",
            "cvt.sat.s8.<u8|u16|u32|u64|s16|s32|s64> d:T0+, a:T1+",
            "cvt.sat.u16.<u32|u64|s8|s16|s32|s64> d:T0+, a:T1+",
            "cvt.sat.s16.<u16|u32|u64|s32|s64> d:T0+, a:T1+",
            "cvt.sat.u32.<u64|s8|s16|s32|s64> d:T0+, a:T1+",
            "cvt.sat.s32.<u32|u64|s64> d:T0+, a:T1+",
            "cvt.sat.u64.<s8|s16|s32|s64> d:T0+, a:T1+",
            "cvt.sat.s64.u64 d:T0+, a:T1+",
            "cvt.<$irnd>[.ftz][.sat].<$int>.f32 d:T0+, a:T1",
            "cvt.<$irnd>[.sat].<$int>.<f16|f64> d:T0+, a:T1",
            "cvt.<$irnd>.<$i16_64>.bf16 d:T0+, a:T1! @7.8/90",
            "cvt.<$frnd>[.sat].<f16|f32|f64>.<$int> d, a:T1+",
            "cvt.<$frnd>.bf16.<$i16_64> d, a:T1+ @7.8/90",
            "cvt[.<$irnd>][.ftz][.sat].f32.f32 d, a:T1",
            "cvt[.<$irnd>][.sat].f64.f64 d, a:T1",
            "cvt[.<$irnd>][.sat].f16.f16 d, a:T1!",
            "cvt.<$frnd>[.ftz][.sat].f32.f64 d, a:T1",
            "cvt[.ftz][.sat].f64.f32 d, a:T1",
            "cvt.<$frnd>[.ftz][.sat].f16.f32 d, a:T1",
            "cvt.<$frnd>[.sat].f16.f64 d, a:T1",
            "cvt[.ftz][.sat].f32.f16 d, a:T1!",
            "cvt[.sat].f64.f16 d, a:T1!",
            "cvt.f32.bf16 d, a:T1! @7.1/80",
            "cvt.<rn|rz>.relu.f16.f32 d, a:T1 @7.0/80",
            "cvt.<rn|rz>[.relu].bf16.f32 d, a:T1 @7.0/80",
            "cvt.<rm|rp>.bf16.f32 d, a:T1 @7.8/80",
            "cvt.<rn|rz>[.relu].satfinite.<f16|bf16>.f32 d, a:T1 @8.1/80",
            "cvt.<$frnd>.bf16.<f16|f64> d, a:T1 @7.8/90",
            "cvt.<$frnd>.f16.bf16 d, a:T1! @7.8/90",
            "cvt.f64.bf16 d, a:T1! @7.8/90",
            "cvt[.<$irnd>].bf16.bf16 d, a:T1! @7.8/90",
            "cvt.<rn|rz>[.relu].<f16x2|bf16x2>.f32 d, a:T1, b:T1 @7.0/80",
            "cvt.<rn|rz>[.relu].satfinite.<f16x2|bf16x2>.f32 d, a:T1, b:T1 @8.1/80",
            "cvt.rna.tf32.f32 d, a:T1 @7.0/80",
            "cvt.rna.satfinite.tf32.f32 d, a:T1 @8.1/80",
            "cvt.<rn|rz>[.relu].tf32.f32 d, a:T1 @7.8/90",
            "cvt.rn.satfinite[.relu].<e4m3x2|e5m2x2>.f32 d, a:T1, b:T1 @8.1/89",
            "cvt.rn.satfinite[.relu].<e4m3x2|e5m2x2>.f16x2 d, a:T1! @8.1/89",
            "cvt.rn[.relu].f16x2.<e4m3x2|e5m2x2> d, a:T1! @8.1/89",
        ];
        /// Saturating conversion of two integers, packed with the result so far.
        CvtPack: "9.7.9.22", None, None, [
            "cvt.pack.sat.<u16|s16>.s32 d:b32, a:T1, b:T1 @6.5/72",
            "cvt.pack.sat.<u8|s8>.s32.b32 d:b32, a:T1, b:T1, c:T2 @6.5/72",
        ];
        /// Generic address of an address in a space, or back with `.to`.
        Cvta: "9.7.9.20", None, None, [
            "cvta.<const|global|local|shared|shared::cta|shared::cluster|param@7.7>.u64 d, a:T0&",
            "cvta.to.<const|global|local|shared|shared::cta|shared::cluster|param@7.7>.u64 d, a:T0!",
        ];
        /// Whether a generic address lies in a space.
        Isspacep: "9.7.9.19", None, None, [
            "isspacep.<const|global|local|shared|shared::cta|shared::cluster|param@7.7> d:pred, a:u64!",
        ];
        /// Address of the same variable in another CTA of the cluster.
        Mapa: "9.7.9.23", None, None, ["mapa[.shared::cluster].<u32|u64> d, a:T0&, b:u32 @7.8/90"];
        /// Rank of the CTA an address belongs to.
        Getctarank: "9.7.9.24", None, None, ["getctarank[.shared::cluster].<u32|u64> d:u32, a:T0& @7.8/90"];
    }
}
