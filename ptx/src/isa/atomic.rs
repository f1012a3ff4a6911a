//! Atomic operations and reductions on memory (9.7.13.5 onwards).

/// Semantics, scope and space of `atom`.
macro_rules! atom {
    ($rest:literal) => {
        concat!(
            "atom[.<relaxed|acquire|release|acq_rel>][.<cta|cluster|gpu|sys>][.<global|shared|shared::cta|shared::cluster>]",
            $rest
        )
    };
}

/// Semantics, scope and space of `red`.
macro_rules! red {
    ($rest:literal) => {
        concat!("red[.<relaxed|release>][.<cta|cluster|gpu|sys>][.<global|shared|shared::cta|shared::cluster>]", $rest)
    };
}

family! {
    /// Atomic operations.
    Atomic {
        /// Atomic operation that returns the old value.
        Atom: "9.7.13.5", ReadWrite, None, [
            atom!(".<and|or|xor>[.L2::cache_hint@7.4/80].<b32|b64> _d, *a, b, e:b64?L2::cache_hint -L2::cache_hint+$any_shared"),
            atom!(".exch[.L2::cache_hint@7.4/80].<b32|b64|b128@8.4/90> _d, *a, b, e:b64?L2::cache_hint -L2::cache_hint+$any_shared"),
            atom!(".cas.<b16|b32|b64|b128@8.4/90> _d, *a, b, c"),
            atom!(".add[.L2::cache_hint@7.4/80].<u32|s32|u64|f32|f64> _d, *a, b, e:b64?L2::cache_hint -L2::cache_hint+$any_shared"),
            atom!(".add.noftz[.L2::cache_hint@7.4/80].<f16|f16x2|bf16@7.8/90|bf16x2@7.8/90> _d, *a, b:T0!, e:b64?L2::cache_hint -L2::cache_hint+$any_shared"),
            atom!(".<inc|dec>[.L2::cache_hint@7.4/80].u32 _d, *a, b, e:b64?L2::cache_hint -L2::cache_hint+$any_shared"),
            atom!(".<min|max>[.L2::cache_hint@7.4/80].<u32|s32|u64|s64> _d, *a, b, e:b64?L2::cache_hint -L2::cache_hint+$any_shared"),
            "atom[.<relaxed|acquire|release|acq_rel>][.<cta|cluster|gpu|sys>][.global].add[.L2::cache_hint].<v2|v4>.f32 \
             _d:T0xV, *a, b:T0xV, e:b64?L2::cache_hint @8.1/90",
            "atom[.<relaxed|acquire|release|acq_rel>][.<cta|cluster|gpu|sys>][.global].<add|min|max>.noftz[.L2::cache_hint].<v2|v4|v8>.<f16|bf16> \
             _d:T0xV, *a, b:T0xV, e:b64?L2::cache_hint @8.1/90",
            "atom[.<relaxed|acquire|release|acq_rel>][.<cta|cluster|gpu|sys>][.global].<add|min|max>.noftz[.L2::cache_hint].<v2|v4>.<f16x2|bf16x2> \
             _d:T0xV, *a, b:T0xV, e:b64?L2::cache_hint @8.1/90",
        ];
        /// Reduction: an atomic operation without a result.
        Red: "9.7.13.6", ReadWrite, None, [
            red!(".<and|or|xor>[.L2::cache_hint@7.4/80].<b32|b64> *a, b, e:b64?L2::cache_hint -L2::cache_hint+$any_shared"),
            red!(".add[.L2::cache_hint@7.4/80].<u32|s32|u64|f32|f64> *a, b, e:b64?L2::cache_hint -L2::cache_hint+$any_shared"),
            red!(".add.noftz[.L2::cache_hint@7.4/80].<f16|f16x2|bf16@7.8/90|bf16x2@7.8/90> *a, b:T0!, e:b64?L2::cache_hint -L2::cache_hint+$any_shared"),
            red!(".<inc|dec>[.L2::cache_hint@7.4/80].u32 *a, b, e:b64?L2::cache_hint -L2::cache_hint+$any_shared"),
            red!(".<min|max>[.L2::cache_hint@7.4/80].<u32|s32|u64|s64> *a, b, e:b64?L2::cache_hint -L2::cache_hint+$any_shared"),
            "red[.<relaxed|release>][.<cta|cluster|gpu|sys>][.global].add[.L2::cache_hint].<v2|v4>.f32 \
             *a, b:T0xV, e:b64?L2::cache_hint @8.1/90",
            "red[.<relaxed|release>][.<cta|cluster|gpu|sys>][.global].<add|min|max>.noftz[.L2::cache_hint].<v2|v4|v8>.<f16|bf16> \
             *a, b:T0xV, e:b64?L2::cache_hint @8.1/90",
            "red[.<relaxed|release>][.<cta|cluster|gpu|sys>][.global].<add|min|max>.noftz[.L2::cache_hint].<v2|v4>.<f16x2|bf16x2> \
             *a, b:T0xV, e:b64?L2::cache_hint @8.1/90",
        ];
    }
}
