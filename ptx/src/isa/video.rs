//! Video instructions (9.7.18): those on two halves or four bytes at a time, for all lanes of the result, without
//! selectors. The mnemonic says operation and number of lanes.

family! {
    /// Arithmetic on parts of registers.
    Video {
        /// `vadd2`, `vabsdiff4` and so on: lane by lane, or with `.add` the sum of all lanes and `c`.
        Simd: "9.7.18.2", None, None, [
            "vadd2.<u32|s32>.<u32|s32>.<u32|s32>[.sat] d:T0, a:T1!, b:T2!, c:T0!",
            "vadd2.<u32|s32>.<u32|s32>.<u32|s32>.add d:T0, a:T1!, b:T2!, c:T0!",
            "vadd4.<u32|s32>.<u32|s32>.<u32|s32>[.sat] d:T0, a:T1!, b:T2!, c:T0!",
            "vadd4.<u32|s32>.<u32|s32>.<u32|s32>.add d:T0, a:T1!, b:T2!, c:T0!",
            "vsub2.<u32|s32>.<u32|s32>.<u32|s32>[.sat] d:T0, a:T1!, b:T2!, c:T0!",
            "vsub2.<u32|s32>.<u32|s32>.<u32|s32>.add d:T0, a:T1!, b:T2!, c:T0!",
            "vsub4.<u32|s32>.<u32|s32>.<u32|s32>[.sat] d:T0, a:T1!, b:T2!, c:T0!",
            "vsub4.<u32|s32>.<u32|s32>.<u32|s32>.add d:T0, a:T1!, b:T2!, c:T0!",
            "vavrg2.<u32|s32>.<u32|s32>.<u32|s32>[.sat] d:T0, a:T1!, b:T2!, c:T0!",
            "vavrg2.<u32|s32>.<u32|s32>.<u32|s32>.add d:T0, a:T1!, b:T2!, c:T0!",
            "vavrg4.<u32|s32>.<u32|s32>.<u32|s32>[.sat] d:T0, a:T1!, b:T2!, c:T0!",
            "vavrg4.<u32|s32>.<u32|s32>.<u32|s32>.add d:T0, a:T1!, b:T2!, c:T0!",
            "vabsdiff2.<u32|s32>.<u32|s32>.<u32|s32>[.sat] d:T0, a:T1!, b:T2!, c:T0!",
            "vabsdiff2.<u32|s32>.<u32|s32>.<u32|s32>.add d:T0, a:T1!, b:T2!, c:T0!",
            "vabsdiff4.<u32|s32>.<u32|s32>.<u32|s32>[.sat] d:T0, a:T1!, b:T2!, c:T0!",
            "vabsdiff4.<u32|s32>.<u32|s32>.<u32|s32>.add d:T0, a:T1!, b:T2!, c:T0!",
            "vmin2.<u32|s32>.<u32|s32>.<u32|s32>[.sat] d:T0, a:T1!, b:T2!, c:T0!",
            "vmin2.<u32|s32>.<u32|s32>.<u32|s32>.add d:T0, a:T1!, b:T2!, c:T0!",
            "vmin4.<u32|s32>.<u32|s32>.<u32|s32>[.sat] d:T0, a:T1!, b:T2!, c:T0!",
            "vmin4.<u32|s32>.<u32|s32>.<u32|s32>.add d:T0, a:T1!, b:T2!, c:T0!",
            "vmax2.<u32|s32>.<u32|s32>.<u32|s32>[.sat] d:T0, a:T1!, b:T2!, c:T0!",
            "vmax2.<u32|s32>.<u32|s32>.<u32|s32>.add d:T0, a:T1!, b:T2!, c:T0!",
            "vmax4.<u32|s32>.<u32|s32>.<u32|s32>[.sat] d:T0, a:T1!, b:T2!, c:T0!",
            "vmax4.<u32|s32>.<u32|s32>.<u32|s32>.add d:T0, a:T1!, b:T2!, c:T0!",
        ];
    }
}
