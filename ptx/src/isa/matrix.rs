//! Tensor cores and the loads that feed them (9.7.14 warp level, 9.7.15 warpgroup level).

/// The shapes of `wmma` for 8- and 16-bit elements.
macro_rules! wide {
    ($head:literal, $rest:literal) => {
        concat!($head, ".<m16n16k16|m8n32k16|m32n8k16>", $rest)
    };
}

/// A load of `wmma` up to its element type; the space may be left out.
macro_rules! fetch {
    ($which:literal, $layout:literal, $shape:literal, $rest:literal) => {
        concat!("wmma.load.", $which, ".sync.aligned.", $layout, ".", $shape, "[.<global|$shared>]", $rest)
    };
}

/// A store of `wmma` up to its element type.
macro_rules! put {
    ($shape:literal, $rest:literal) => {
        concat!("wmma.store.d.sync.aligned.<row|col>.", $shape, "[.<global|$shared>]", $rest)
    };
}

family! {
    /// Matrix instructions.
    Matrix {
        /// Load of 8×8 matrices of 16-bit elements.
        Ldmatrix: "9.7.14.5.15", Read, Aligned, [
            "ldmatrix.sync.aligned.m8n8.<x1|x2|x4>[.trans][.<$shared>].b16 d:b32xX, *a:shared @6.5/75",
        ];
        /// Store of 8×8 matrices of 16-bit elements.
        Stmatrix: "9.7.14.5.16", Write, Aligned, [
            "stmatrix.sync.aligned.m8n8.<x1|x2|x4>[.trans][.<$shared>].b16 *a:shared, b:b32xX @7.8/90",
        ];
        /// Transposition of an 8×8 matrix across a warp.
        Movmatrix: "9.7.14.5.17", None, Aligned, ["movmatrix.sync.aligned.m8n8.trans.b16 d:b32, a:b32! @7.8/75"];
        /// Product and sum of small matrices by a warp.
        Mma: "9.7.14.5.14", None, Aligned, [
            "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 d:b32x2, a:b32x2, b:b32x1, c:b32x2 @6.5/75",
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 d:f32x4, a:b32x2, b:b32x1, c:f32x4 @6.5/75",
            "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 d:b32x2, a:b32x4, b:b32x2, c:b32x2 @7.0/80",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d:f32x4, a:b32x4, b:b32x2, c:f32x4 @7.0/80",
            "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 d:f32x4, a:b32x2, b:b32x1, c:f32x4 @7.0/80",
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 d:f32x4, a:b32x4, b:b32x2, c:f32x4 @7.0/80",
            "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 d:f32x4, a:b32x2, b:b32x1, c:f32x4 @7.0/80",
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 d:f32x4, a:b32x4, b:b32x2, c:f32x4 @7.0/80",
            "mma.sync.aligned.m8n8k4.row.col[.<$frnd>].f64.f64.f64.f64 d:f64x2, a:f64x1, b:f64x1, c:f64x2 @7.0/80",
            "mma.sync.aligned.m16n8k4.row.col[.<$frnd>].f64.f64.f64.f64 d:f64x4, a:f64x2, b:f64x1, c:f64x4 @7.8/90",
            "mma.sync.aligned.m16n8k8.row.col[.<$frnd>].f64.f64.f64.f64 d:f64x4, a:f64x4, b:f64x2, c:f64x4 @7.8/90",
            "mma.sync.aligned.m16n8k16.row.col[.<$frnd>].f64.f64.f64.f64 d:f64x4, a:f64x8, b:f64x4, c:f64x4 @7.8/90",
            "mma.sync.aligned.m8n8k16.row.col[.satfinite].s32.<u8|s8>.<u8|s8>.s32 d:s32x2, a:b32x1, b:b32x1, c:s32x2 @6.5/75",
            "mma.sync.aligned.m16n8k16.row.col[.satfinite].s32.<u8|s8>.<u8|s8>.s32 d:s32x4, a:b32x2, b:b32x1, c:s32x4 @7.0/80",
            "mma.sync.aligned.m16n8k32.row.col[.satfinite].s32.<u8|s8>.<u8|s8>.s32 d:s32x4, a:b32x4, b:b32x2, c:s32x4 @7.0/80",
            "mma.sync.aligned.m16n8k32.row.col[.satfinite].s32.<u4|s4>.<u4|s4>.s32 d:s32x4, a:b32x2, b:b32x1, c:s32x4 @7.0/80",
            "mma.sync.aligned.m16n8k64.row.col[.satfinite].s32.<u4|s4>.<u4|s4>.s32 d:s32x4, a:b32x4, b:b32x2, c:s32x4 @7.0/80",
            "mma.sync.aligned.m8n8k32.row.col[.satfinite].s32.<u4|s4>.<u4|s4>.s32 d:s32x2, a:b32x1, b:b32x1, c:s32x2 @6.5/75",
            "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.<xor|and@7.1/80>.popc d:s32x2, a:b32x1, b:b32x1, c:s32x2 @7.0/75",
            "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.<xor|and@7.1>.popc d:s32x4, a:b32x2, b:b32x1, c:s32x4 @7.0/80",
            "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.<xor|and@7.1>.popc d:s32x4, a:b32x4, b:b32x2, c:s32x4 @7.0/80",
            "mma.sync.aligned.m16n8k32.row.col.f32.<e4m3|e5m2>.<e4m3|e5m2>.f32 d:f32x4, a:b32x4, b:b32x2, c:f32x4 @8.4/89",
            "mma.sync.aligned.m16n8k16.row.col.f32.<e4m3|e5m2>.<e4m3|e5m2>.f32 d:f32x4, a:b32x2, b:b32x1, c:f32x4 @8.7/89",
            "mma.sync.aligned.m16n8k32.row.col.f16.<e4m3|e5m2>.<e4m3|e5m2>.f16 d:b32x2, a:b32x4, b:b32x2, c:b32x2 @8.7/89",
            "mma.sync.aligned.m16n8k16.row.col.f16.<e4m3|e5m2>.<e4m3|e5m2>.f16 d:b32x2, a:b32x2, b:b32x1, c:b32x2 @8.7/89",
        ];
        /// Load of a fragment whose layout in registers is the implementation's own.
        WmmaLoad: "9.7.14.4.3", Read, Aligned, [
            fetch!("<a|b>", "<row|col>", "<m16n16k16|m8n32k16|m32n8k16>", ".f16 d:b32x8, *a, s:u32? @6.1/70"),
            fetch!("c", "<row|col>", "<m16n16k16|m8n32k16|m32n8k16>", ".f16 d:b32x4, *a, s:u32? @6.1/70"),
            fetch!("c", "<row|col>", "<m16n16k16|m8n32k16|m32n8k16>", ".f32 d:f32x8, *a, s:u32? @6.1/70"),
            fetch!("a", "<row|col>", "m16n16k16", ".bf16 d:b32x4, *a, s:u32? @7.0/80"),
            fetch!("b", "<row|col>", "m16n16k16", ".bf16 d:b32x4, *a, s:u32? @7.0/80"),
            fetch!("a", "<row|col>", "m8n32k16", ".bf16 d:b32x2, *a, s:u32? @7.0/80"),
            fetch!("b", "<row|col>", "m8n32k16", ".bf16 d:b32x8, *a, s:u32? @7.0/80"),
            fetch!("a", "<row|col>", "m32n8k16", ".bf16 d:b32x8, *a, s:u32? @7.0/80"),
            fetch!("b", "<row|col>", "m32n8k16", ".bf16 d:b32x2, *a, s:u32? @7.0/80"),
            fetch!("a", "<row|col>", "m16n16k16", ".<u8|s8> d:b32x2, *a, s:u32? @6.3/72"),
            fetch!("b", "<row|col>", "m16n16k16", ".<u8|s8> d:b32x2, *a, s:u32? @6.3/72"),
            fetch!("a", "<row|col>", "m8n32k16", ".<u8|s8> d:b32x1, *a, s:u32? @6.3/72"),
            fetch!("b", "<row|col>", "m8n32k16", ".<u8|s8> d:b32x4, *a, s:u32? @6.3/72"),
            fetch!("a", "<row|col>", "m32n8k16", ".<u8|s8> d:b32x4, *a, s:u32? @6.3/72"),
            fetch!("b", "<row|col>", "m32n8k16", ".<u8|s8> d:b32x1, *a, s:u32? @6.3/72"),
            fetch!("c", "<row|col>", "<m16n16k16|m8n32k16|m32n8k16>", ".s32 d:s32x8, *a, s:u32? @6.3/72"),
            fetch!("<a|b>", "<row|col>", "m16n16k8", ".tf32 d:b32x4, *a, s:u32? @7.0/80"),
            fetch!("c", "<row|col>", "m16n16k8", ".f32 d:f32x8, *a, s:u32? @7.0/80"),
            fetch!("<a|b>", "<row|col>", "m8n8k4", ".f64 d:f64x1, *a, s:u32? @7.0/80"),
            fetch!("c", "<row|col>", "m8n8k4", ".f64 d:f64x2, *a, s:u32? @7.0/80"),
            fetch!("a", "row", "m8n8k32", ".<u4|s4> d:b32x1, *a, s:u32? @6.3/75"),
            fetch!("b", "col", "m8n8k32", ".<u4|s4> d:b32x1, *a, s:u32? @6.3/75"),
            fetch!("c", "<row|col>", "m8n8k32", ".s32 d:s32x2, *a, s:u32? @6.3/75"),
            fetch!("a", "row", "m8n8k128", ".b1 d:b32x1, *a, s:u32? @6.3/75"),
            fetch!("b", "col", "m8n8k128", ".b1 d:b32x1, *a, s:u32? @6.3/75"),
            fetch!("c", "<row|col>", "m8n8k128", ".s32 d:s32x2, *a, s:u32? @6.3/75"),
        ];
        /// Store of such a fragment.
        WmmaStore: "9.7.14.4.4", Write, Aligned, [
            put!("<m16n16k16|m8n32k16|m32n8k16>", ".f16 *a, b:b32x4, s:u32? @6.1/70"),
            put!("<m16n16k16|m8n32k16|m32n8k16>", ".f32 *a, b:f32x8, s:u32? @6.1/70"),
            put!("<m16n16k16|m8n32k16|m32n8k16>", ".s32 *a, b:s32x8, s:u32? @6.3/72"),
            put!("m16n16k8", ".f32 *a, b:f32x8, s:u32? @7.0/80"),
            put!("m8n8k4", ".f64 *a, b:f64x2, s:u32? @7.0/80"),
            put!("<m8n8k32|m8n8k128>", ".s32 *a, b:s32x2, s:u32? @6.3/75"),
        ];
        /// Product and sum of such fragments.
        WmmaMma: "9.7.14.4.5", None, Aligned, [
            wide!("wmma.mma.sync.aligned.<row|col>.<row|col>", ".f16.f16[.satfinite] d:b32x4, a:b32x8, b:b32x8, c:b32x4 @6.1/70"),
            wide!("wmma.mma.sync.aligned.<row|col>.<row|col>", ".f16.f32[.satfinite] d:b32x4, a:b32x8, b:b32x8, c:f32x8 @6.1/70"),
            wide!("wmma.mma.sync.aligned.<row|col>.<row|col>", ".f32.f16[.satfinite] d:f32x8, a:b32x8, b:b32x8, c:b32x4 @6.1/70"),
            wide!("wmma.mma.sync.aligned.<row|col>.<row|col>", ".f32.f32[.satfinite] d:f32x8, a:b32x8, b:b32x8, c:f32x8 @6.1/70"),
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m16n16k16.f32.bf16.bf16.f32 d:f32x8, a:b32x4, b:b32x4, c:f32x8 @7.0/80",
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m8n32k16.f32.bf16.bf16.f32 d:f32x8, a:b32x2, b:b32x8, c:f32x8 @7.0/80",
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m32n8k16.f32.bf16.bf16.f32 d:f32x8, a:b32x8, b:b32x2, c:f32x8 @7.0/80",
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m16n16k16.s32.u8.u8.s32[.satfinite] d:s32x8, a:b32x2, b:b32x2, c:s32x8 @6.3/72",
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m16n16k16.s32.s8.s8.s32[.satfinite] d:s32x8, a:b32x2, b:b32x2, c:s32x8 @6.3/72",
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m8n32k16.s32.u8.u8.s32[.satfinite] d:s32x8, a:b32x1, b:b32x4, c:s32x8 @6.3/72",
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m8n32k16.s32.s8.s8.s32[.satfinite] d:s32x8, a:b32x1, b:b32x4, c:s32x8 @6.3/72",
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m32n8k16.s32.u8.u8.s32[.satfinite] d:s32x8, a:b32x4, b:b32x1, c:s32x8 @6.3/72",
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m32n8k16.s32.s8.s8.s32[.satfinite] d:s32x8, a:b32x4, b:b32x1, c:s32x8 @6.3/72",
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m16n16k8.f32.tf32.tf32.f32 d:f32x8, a:b32x4, b:b32x4, c:f32x8 @7.0/80",
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m8n8k4[.<$frnd>].f64.f64.f64.f64 d:f64x2, a:f64x1, b:f64x1, c:f64x2 @7.0/80",
            "wmma.mma.sync.aligned.<row|col>.<row|col>.m8n8k4.f64.f64.f64.f64.<$frnd> d:f64x2, a:f64x1, b:f64x1, c:f64x2 @7.0/80",
            "wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.u4.s32[.satfinite] d:s32x2, a:b32x1, b:b32x1, c:s32x2 @6.3/75",
            "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32[.satfinite] d:s32x2, a:b32x1, b:b32x1, c:s32x2 @6.3/75",
            "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 d:s32x2, a:b32x1, b:b32x1, c:s32x2 @6.3/75",
            "wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 d:s32x2, a:b32x1, b:b32x1, c:s32x2 @7.1/80",
        ];
        /// Order between registers and later `wgmma`.
        WgmmaFence: "9.7.15.7.1", Sync, Aligned, ["wgmma.fence.sync.aligned @8.0/90a"];
        /// Close of the warpgroup's current group of products.
        WgmmaCommitGroup: "9.7.15.7.2", Sync, Aligned, ["wgmma.commit_group.sync.aligned @8.0/90a"];
        /// Wait until at most this many groups are pending.
        WgmmaWaitGroup: "9.7.15.7.3", Sync, Aligned, ["wgmma.wait_group.sync.aligned #n:0..7 @8.0/90a"];
        /// Asynchronous product and sum by a warpgroup. A comes from shared memory (a descriptor) or registers, B from
        /// shared memory. The operands after B: whether to add to D, signs of A and B, transposition of A and B (16-bit
        /// types).
        WgmmaMmaAsync: "9.7.15.5.2", Async, Aligned, [
            "wgmma.mma_async.sync.aligned.<$m64k16>.f32.f16.f16 d:f32xD, a:b64!, b:b64!, p:pred{0|1}, #u:-1|1, #v:-1|1, #x:0..1, #y:0..1 @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k16>.f32.f16.f16 d:f32xD, a:b32x4, b:b64!, p:pred{0|1}, #u:-1|1, #v:-1|1, #y:0..1 @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k16>.f16.f16.f16 d:b32xH, a:b64!, b:b64!, p:pred{0|1}, #u:-1|1, #v:-1|1, #x:0..1, #y:0..1 @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k16>.f16.f16.f16 d:b32xH, a:b32x4, b:b64!, p:pred{0|1}, #u:-1|1, #v:-1|1, #y:0..1 @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k16>.f32.bf16.bf16 d:f32xD, a:b64!, b:b64!, p:pred{0|1}, #u:-1|1, #v:-1|1, #x:0..1, #y:0..1 @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k16>.f32.bf16.bf16 d:f32xD, a:b32x4, b:b64!, p:pred{0|1}, #u:-1|1, #v:-1|1, #y:0..1 @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k8>.f32.tf32.tf32 d:f32xD, a:b64!, b:b64!, p:pred{0|1}, #u:-1|1, #v:-1|1 @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k8>.f32.tf32.tf32 d:f32xD, a:b32x4, b:b64!, p:pred{0|1}, #u:-1|1, #v:-1|1 @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k32>.f32.<e4m3|e5m2>.<e4m3|e5m2> d:f32xD, a:b64!, b:b64!, p:pred{0|1}, #u:-1|1, #v:-1|1 @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k32>.f32.<e4m3|e5m2>.<e4m3|e5m2> d:f32xD, a:b32x4, b:b64!, p:pred{0|1}, #u:-1|1, #v:-1|1 @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k32>.f16.<e4m3|e5m2>.<e4m3|e5m2> d:b32xH, a:b64!, b:b64!, p:pred{0|1}, #u:-1|1, #v:-1|1 @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k32>.f16.<e4m3|e5m2>.<e4m3|e5m2> d:b32xH, a:b32x4, b:b64!, p:pred{0|1}, #u:-1|1, #v:-1|1 @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k32i>.s32.s8.<s8|u8@8.4>[.satfinite] d:s32xD, a:b64!, b:b64!, p:pred{0|1} @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k32i>.s32.s8.<s8|u8@8.4>[.satfinite] d:s32xD, a:b32x4, b:b64!, p:pred{0|1} @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k32i>.s32.u8.<u8|s8@8.4>[.satfinite] d:s32xD, a:b64!, b:b64!, p:pred{0|1} @8.0/90a",
            "wgmma.mma_async.sync.aligned.<$m64k32i>.s32.u8.<u8|s8@8.4>[.satfinite] d:s32xD, a:b32x4, b:b64!, p:pred{0|1} @8.0/90a",
        ];
    }
}
