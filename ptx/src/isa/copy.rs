//! Asynchronous copies (9.7.9.25): `cp.async`, bulk copies, tensor copies, and their completion.

/// The completion of a copy into shared memory.
macro_rules! tx {
    () => {
        ".mbarrier::complete_tx::bytes"
    };
}

family! {
    /// Asynchronous copies.
    AsyncCopy {
        /// Copy of 4, 8 or 16 bytes from global to shared memory by the thread.
        CpAsync: "9.7.9.25.3.1", Async, None, [
            "cp.async.ca.<$shared>.global[.L2::cache_hint@7.4/80][.<L2::64B@7.4|L2::128B@7.4|L2::256B@7.4>] \
             *d:shared, *a:global, #n:4|8|16, s:u32?, e:b64?L2::cache_hint @7.0/80",
            "cp.async.cg.<$shared>.global[.L2::cache_hint@7.4/80][.<L2::64B@7.4|L2::128B@7.4|L2::256B@7.4>] \
             *d:shared, *a:global, #n:16, s:u32?, e:b64?L2::cache_hint @7.0/80",
            "cp.async.ca.<$shared>.global[.L2::cache_hint@7.4/80][.<L2::64B@7.4|L2::128B@7.4|L2::256B@7.4>] \
             *d:shared, *a:global, #n:4|8|16, s:pred!, e:b64?L2::cache_hint @7.5/80",
            "cp.async.cg.<$shared>.global[.L2::cache_hint@7.4/80][.<L2::64B@7.4|L2::128B@7.4|L2::256B@7.4>] \
             *d:shared, *a:global, #n:16, s:pred!, e:b64?L2::cache_hint @7.5/80",
        ];
        /// Close of the thread's current group of `cp.async`.
        CpAsyncCommitGroup: "9.7.9.25.3.2", Sync, None, ["cp.async.commit_group @7.0/80"];
        /// Wait until at most this many of the thread's groups are pending.
        CpAsyncWaitGroup: "9.7.9.25.3.3", Sync, None, ["cp.async.wait_group #n:0..2147483647 @7.0/80"];
        /// Wait for all of the thread's `cp.async`.
        CpAsyncWaitAll: "9.7.9.25.3.3", Sync, None, ["cp.async.wait_all @7.0/80"];
        /// Arrival on an mbarrier when the thread's earlier `cp.async` complete.
        CpAsyncMbarrierArrive: "9.7.13.16.15", Async, None, [
            "cp.async.mbarrier.arrive[.noinc][.<$shared>].b64 *a @7.0/80",
        ];
        /// Bulk copy of contiguous bytes.
        CpAsyncBulk: "9.7.9.25.4.1", Async, None, [
            concat!("cp.async.bulk.shared::cluster.global", tx!(), "[.multicast::cluster][.L2::cache_hint] \
                *d:shared::cluster, *a:global, n:u32{0..1048560/16}, *m:shared, c:b16?multicast::cluster, e:b64?L2::cache_hint @8.0/90"),
            concat!("cp.async.bulk.shared::cta.global", tx!(), "[.L2::cache_hint] \
                *d:shared::cta, *a:global, n:u32{0..1048560/16}, *m:shared, e:b64?L2::cache_hint @8.6/90"),
            concat!("cp.async.bulk.shared::cluster.shared::cta", tx!(), " \
                *d:shared::cluster, *a:shared::cta, n:u32{0..1048560/16}, *m:shared::cluster @8.0/90"),
            "cp.async.bulk.global.shared::cta.bulk_group[.L2::cache_hint] \
                *d:global, *a:shared::cta, n:u32{0..1048560/16}, e:b64?L2::cache_hint @8.0/90",
        ];
        /// Bulk reduction of contiguous elements.
        CpReduceAsyncBulk: "9.7.9.25.4.2", Async, None, [
            concat!("cp.reduce.async.bulk.shared::cluster.shared::cta", tx!(), ".<and|or|xor>.b32 \
                *d:shared::cluster, *a:shared::cta, n:u32{0..1048560/16}, *m:shared::cluster @8.0/90"),
            concat!("cp.reduce.async.bulk.shared::cluster.shared::cta", tx!(), ".add.<u32|s32|u64> \
                *d:shared::cluster, *a:shared::cta, n:u32{0..1048560/16}, *m:shared::cluster @8.0/90"),
            concat!("cp.reduce.async.bulk.shared::cluster.shared::cta", tx!(), ".<min|max>.<u32|s32> \
                *d:shared::cluster, *a:shared::cta, n:u32{0..1048560/16}, *m:shared::cluster @8.0/90"),
            concat!("cp.reduce.async.bulk.shared::cluster.shared::cta", tx!(), ".<inc|dec>.u32 \
                *d:shared::cluster, *a:shared::cta, n:u32{0..1048560/16}, *m:shared::cluster @8.0/90"),
            "cp.reduce.async.bulk.global.shared::cta.bulk_group[.L2::cache_hint].<and|or|xor>.<b32|b64> \
                *d:global, *a:shared::cta, n:u32{0..1048560/16}, e:b64?L2::cache_hint @8.0/90",
            "cp.reduce.async.bulk.global.shared::cta.bulk_group[.L2::cache_hint].add.<u32|s32|u64|f32|f64> \
                *d:global, *a:shared::cta, n:u32{0..1048560/16}, e:b64?L2::cache_hint @8.0/90",
            "cp.reduce.async.bulk.global.shared::cta.bulk_group[.L2::cache_hint].<inc|dec>.u32 \
                *d:global, *a:shared::cta, n:u32{0..1048560/16}, e:b64?L2::cache_hint @8.0/90",
            "cp.reduce.async.bulk.global.shared::cta.bulk_group[.L2::cache_hint].<min|max>.<u32|s32|u64|s64|f16|bf16> \
                *d:global, *a:shared::cta, n:u32{0..1048560/16}, e:b64?L2::cache_hint @8.0/90",
            "cp.reduce.async.bulk.global.shared::cta.bulk_group[.L2::cache_hint].add.noftz.<f16|bf16> \
                *d:global, *a:shared::cta, n:u32{0..1048560/16}, e:b64?L2::cache_hint @8.0/90",
        ];
        /// Prefetch of contiguous bytes into L2.
        CpAsyncBulkPrefetch: "9.7.9.25.4.3", Async, None, [
            "cp.async.bulk.prefetch.L2.global[.L2::cache_hint] *a:global, n:u32{0..1048560/16}, e:b64?L2::cache_hint @8.0/90",
        ];
        /// Copy of a box of a tensor.
        CpAsyncBulkTensor: "9.7.9.25.5.2", Async, None, [
            concat!("cp.async.bulk.tensor.<$rank>.shared::cluster.global[.tile]", tx!(), "[.multicast::cluster][.L2::cache_hint] \
                *d:shared::cluster, t:tensor, *m:shared, c:b16?multicast::cluster, e:b64?L2::cache_hint @8.0/90"),
            concat!("cp.async.bulk.tensor.<3d|4d|5d>.shared::cluster.global.im2col", tx!(), "[.multicast::cluster][.L2::cache_hint] \
                *d:shared::cluster, t:tensor, *m:shared, o:b16xO, c:b16?multicast::cluster, e:b64?L2::cache_hint @8.0/90"),
            concat!("cp.async.bulk.tensor.<$rank>.shared::cta.global[.tile]", tx!(), "[.L2::cache_hint] \
                *d:shared::cta, t:tensor, *m:shared, e:b64?L2::cache_hint @8.6/90"),
            concat!("cp.async.bulk.tensor.<3d|4d|5d>.shared::cta.global.im2col", tx!(), "[.L2::cache_hint] \
                *d:shared::cta, t:tensor, *m:shared, o:b16xO, e:b64?L2::cache_hint @8.6/90"),
            "cp.async.bulk.tensor.<$rank>.global.shared::cta[.tile].bulk_group[.L2::cache_hint] \
                t:tensor, *a:shared::cta, e:b64?L2::cache_hint @8.0/90",
            "cp.async.bulk.tensor.<3d|4d|5d>.global.shared::cta.im2col_no_offs.bulk_group[.L2::cache_hint] \
                t:tensor, *a:shared::cta, e:b64?L2::cache_hint @8.0/90",
        ];
        /// Reduction of a box into a tensor; the map says the element type.
        CpReduceAsyncBulkTensor: "9.7.9.25.5.3", Async, None, [
            "cp.reduce.async.bulk.tensor.<$rank>.global.shared::cta.<$redop>[.tile].bulk_group[.L2::cache_hint] \
                t:tensor, *a:shared::cta, e:b64?L2::cache_hint @8.0/90",
            "cp.reduce.async.bulk.tensor.<3d|4d|5d>.global.shared::cta.<$redop>.im2col_no_offs.bulk_group[.L2::cache_hint] \
                t:tensor, *a:shared::cta, e:b64?L2::cache_hint @8.0/90",
        ];
        /// Prefetch of a box into L2.
        CpAsyncBulkPrefetchTensor: "9.7.9.25.5.4", Async, None, [
            "cp.async.bulk.prefetch.tensor.<$rank>.L2.global[.tile][.L2::cache_hint] t:tensor, e:b64?L2::cache_hint @8.0/90",
            "cp.async.bulk.prefetch.tensor.<3d|4d|5d>.L2.global.im2col[.L2::cache_hint] \
                t:tensor, o:b16xO, e:b64?L2::cache_hint @8.0/90",
        ];
        /// Close of the thread's current bulk group.
        CpAsyncBulkCommitGroup: "9.7.9.25.6.1", Sync, None, ["cp.async.bulk.commit_group @8.0/90"];
        /// Wait until at most this many of the thread's bulk groups are pending.
        CpAsyncBulkWaitGroup: "9.7.9.25.6.2", Sync, None, ["cp.async.bulk.wait_group[.read] #n:0..2147483647 @8.0/90"];
        /// Store to another CTA of the cluster that completes on an mbarrier there.
        StAsync: "9.7.9.12", Async, None, [
            concat!("st.async[.weak].shared::cluster", tx!(), "[.v2].<b32|b64|u32|u64|s32|s64|f32|f64> \
                *d:shared::cluster, b:T0xV, *m:shared::cluster @8.1/90"),
            concat!("st.async[.weak].shared::cluster", tx!(), ".v4.<b32|u32|s32|f32> \
                *d:shared::cluster, b:T0xV, *m:shared::cluster @8.1/90"),
        ];
        /// Reduction in another CTA of the cluster that completes on an mbarrier there.
        RedAsync: "9.7.13.7", Async, None, [
            concat!("red.async.relaxed.cluster.shared::cluster", tx!(), ".<inc|dec>.u32 \
                *d:shared::cluster, b, *m:shared::cluster @8.1/90"),
            concat!("red.async.relaxed.cluster.shared::cluster", tx!(), ".<min|max>.<u32|s32> \
                *d:shared::cluster, b, *m:shared::cluster @8.1/90"),
            concat!("red.async.relaxed.cluster.shared::cluster", tx!(), ".<and|or|xor>.b32 \
                *d:shared::cluster, b, *m:shared::cluster @8.1/90"),
            concat!("red.async.relaxed.cluster.shared::cluster", tx!(), ".add.<u32|s32|u64> \
                *d:shared::cluster, b, *m:shared::cluster @8.1/90"),
        ];
        /// Edit of one field of a tensor map.
        TensormapReplace: "9.7.9.26", ReadWrite, None, [
            "tensormap.replace.tile.global_address[.<global|shared::cta>].b1024.b64 *a, b:b64 @8.3/90a",
            "tensormap.replace.tile.rank[.<global|shared::cta>].b1024.b32 *a, b:b32 @8.3/90a",
            "tensormap.replace.tile.<box_dim|global_dim|element_stride>[.<global|shared::cta>].b1024.b32 *a, #n:0..4, b:b32 @8.3/90a",
            "tensormap.replace.tile.global_stride[.<global|shared::cta>].b1024.b64 *a, #n:0..3, b:b64 @8.3/90a",
            "tensormap.replace.tile.elemtype[.<global|shared::cta>].b1024.b32 *a, #n:0..12 @8.3/90a",
            "tensormap.replace.tile.interleave_layout[.<global|shared::cta>].b1024.b32 *a, #n:0..2 @8.3/90a",
            "tensormap.replace.tile.swizzle_mode[.<global|shared::cta>].b1024.b32 *a, #n:0..3 @8.3/90a",
            "tensormap.replace.tile.fill_mode[.<global|shared::cta>].b1024.b32 *a, #n:0..1 @8.3/90a",
        ];
        /// Copy of a tensor map with the release fence that makes it usable.
        TensormapCpFenceproxy: "9.7.13.16.18", ReadWrite, Aligned, [
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.<cta|cluster|gpu|sys>.sync.aligned \
                *d:global, *a:shared::cta, #n:128 @8.3/90",
        ];
    }
}
