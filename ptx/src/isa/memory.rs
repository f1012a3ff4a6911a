//! Loads, stores and cache control (9.7.9).

/// Eviction priority, cache policy and prefetch size, in the order that loads take them.
macro_rules! hints {
    () => {
        "[.<$l1@7.4>][.L2::cache_hint@7.4/80][.<L2::64B@7.4|L2::128B@7.4|L2::256B@7.4/80>]"
    };
}

family! {
    /// Access to memory.
    Memory {
        /// Load.
        Ld: "9.7.9.8", Read, None, [
            "ld[.weak][.<const|global|local|shared|shared::cta|shared::cluster|param|param::entry|param::func>]\
             [.<ca|cg|cs|lu|cv>][.<v2|v4>].<$mem|b128@8.3/70> d:T0xV+, *a -v4+$b64 -v2|v4+b128",
            concat!(
                "ld[.weak][.global][.<ca|cg|cs|lu|cv>]", hints!(),
                "[.<v2|v4>].<$mem|b128@8.3/70> d:T0xV+, *a, e:b64?L2::cache_hint -v4+$b64 -v2|v4+b128 -$l1+ca|cg|cs|lu|cv"
            ),
            "ld.volatile[.<global|$any_shared>][.<v2|v4>].<$mem|b128@8.3/70> d:T0xV+, *a -v4+$b64 -v2|v4+b128",
            concat!(
                "ld.<relaxed|acquire>.<cta|cluster|gpu|sys>[.<global|shared|shared::cta|shared::cluster>]",
                hints!(), "[.<v2|v4>].<$mem|b128@8.3/70> d:T0xV+, *a, e:b64?L2::cache_hint -v4+$b64 -v2|v4+b128 -$hints+$any_shared"
            ),
            "ld.mmio.relaxed.sys[.global].<$mem> d:T0+, *a @8.2/70",
        ];
        /// Load of data that nothing writes while the kernel runs.
        LdNc: "9.7.9.9", Read, None, [
            concat!(
                "ld.global[.<ca|cg|cs>].nc", hints!(),
                "[.<v2|v4>].<$mem|b128@8.3/70> d:T0xV+, *a, e:b64?L2::cache_hint -v4+$b64 -v2|v4+b128 -$l1+ca|cg|cs"
            ),
        ];
        /// Load of data that is the same for the whole warp.
        Ldu: "9.7.9.10", Read, None, ["ldu[.global][.<v2|v4>].<$mem> d:T0xV+, *a -v4+$b64"];
        /// Store.
        St: "9.7.9.11", Write, None, [
            "st[.weak][.<global|local|shared|shared::cta|shared::cluster|param|param::func>]\
             [.<wb|cg|cs|wt>][.<v2|v4>].<$mem|b128@8.3/70> *a, b:T0xV+ -v4+$b64 -v2|v4+b128",
            "st[.weak][.global][.<$l1@7.4>][.L2::cache_hint@7.4/80][.<v2|v4>].<$mem|b128@8.3/70> *a, b:T0xV+, e:b64?L2::cache_hint -v4+$b64 -v2|v4+b128",
            "st.volatile[.<global|$any_shared>][.<v2|v4>].<$mem|b128@8.3/70> *a, b:T0xV+ -v4+$b64 -v2|v4+b128",
            "st.<relaxed|release>.<cta|cluster|gpu|sys>[.<global|shared|shared::cta|shared::cluster>]\
             [.<$l1@7.4>][.L2::cache_hint@7.4/80][.<v2|v4>].<$mem|b128@8.3/70> *a, b:T0xV+, e:b64?L2::cache_hint \
             -v4+$b64 -v2|v4+b128 -$hints+$any_shared",
            "st.mmio.relaxed.sys[.global].<$mem> *a, b:T0+ @8.2/70",
        ];
        /// Prefetch of a cache line.
        Prefetch: "9.7.9.15", None, None, [
            "prefetch[.<global|local>].<L1|L2> *a",
            "prefetch.global.<L2::evict_last|L2::evict_normal> *a @7.4/80",
            "prefetchu.L1 *a",
        ];
        /// Prefetch of a tensor map.
        PrefetchTensormap: "9.7.9.15", None, None, ["prefetch[.<param|const>].tensormap *a @8.0/90"];
        /// Change of the eviction priority of a line.
        Applypriority: "9.7.9.16", None, None, ["applypriority[.global].L2::evict_normal *a, #n:128 @7.4/80"];
        /// Destruction of a line without writing it back.
        Discard: "9.7.9.17", Write, None, ["discard[.global].L2 *a, #n:128 @7.4/80"];
        /// Cache eviction policy.
        Createpolicy: "9.7.9.18", None, None, [
            "createpolicy.fractional.<L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged>\
             [.<L2::evict_first|L2::evict_unchanged>].b64 d, a:f32? @7.4/80",
            "createpolicy.range[.global].<L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged>\
             [.<L2::evict_first|L2::evict_unchanged>].b64 d, *a, b:u32, c:u32 @7.4/80",
        ];
    }
}
