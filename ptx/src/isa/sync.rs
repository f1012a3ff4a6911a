//! Barriers, fences and mbarrier objects (9.7.13).

family! {
    /// Synchronisation.
    Synchronization {
        /// Named barrier of a CTA; every warp that reaches it must be converged.
        Bar: "9.7.13.1", Sync, Aligned, [
            "bar[.cta@7.8].sync a:u32{0..15}, b:u32{0..1024/32}?",
            "bar[.cta@7.8].arrive a:u32{0..15}, b:u32{32..1024/32}",
            "bar[.cta@7.8].red.popc.u32 d:u32, a:u32{0..15}, b:u32{0..1024/32}?, !c",
            "bar[.cta@7.8].red.<and|or>.pred d:pred, a:u32{0..15}, b:u32{0..1024/32}?, !c",
        ];
        /// Named barrier of a CTA, also for diverged warps.
        Barrier: "9.7.13.1", Sync, None, [
            "barrier[.cta@7.8].sync[.aligned] a:u32{0..15}, b:u32{0..1024/32}?",
            "barrier[.cta@7.8].arrive[.aligned] a:u32{0..15}, b:u32{32..1024/32}",
            "barrier[.cta@7.8].red.popc[.aligned].u32 d:u32, a:u32{0..15}, b:u32{0..1024/32}?, !c",
            "barrier[.cta@7.8].red.<and|or>[.aligned].pred d:pred, a:u32{0..15}, b:u32{0..1024/32}?, !c",
        ];
        /// Barrier of the threads of a member mask.
        BarWarp: "9.7.13.2", Sync, Mask, ["bar.warp.sync m:b32"];
        /// Barrier of a cluster.
        BarrierCluster: "9.7.13.3", Sync, None, [
            "barrier.cluster.arrive[.<release@8.0|relaxed@8.0>][.aligned] @7.8/90",
            "barrier.cluster.wait[.acquire@8.0][.aligned] @7.8/90",
        ];
        /// Fence, old spelling.
        Membar: "9.7.13.4", Sync, None, ["membar.<cta|gl|sys>"];
        /// Fence between the threads of a scope.
        Fence: "9.7.13.4", Sync, None, [
            "fence[.<sc|acq_rel>].<cta|cluster|gpu|sys>",
            "fence.<acquire|release>.<cta|cluster|gpu|sys> @8.6/70",
            "fence.acquire.sync_restrict::shared::cluster.cluster @8.6/90",
            "fence.release.sync_restrict::shared::cta.cluster @8.6/90",
            "fence.mbarrier_init.release.cluster @8.0/90",
        ];
        /// Fence between proxies.
        FenceProxy: "9.7.13.4", Sync, None, [
            "fence.proxy.alias @7.5/70",
            "fence.proxy.async[.<global|shared::cta|shared::cluster>] @8.0/90",
            "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster @8.6/90",
            "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster @8.6/90",
            "fence.proxy.tensormap::generic.release.<cta|cluster|gpu|sys> @8.3/90",
            "fence.proxy.tensormap::generic.acquire.<cta|cluster|gpu|sys> *a, #n:128 @8.3/90",
        ];
        /// Creation of an mbarrier with an expected count.
        MbarrierInit: "9.7.13.16.9", Sync, None, ["mbarrier.init[.<$shared>].b64 *a, b:u32{1..1048575} @7.0/80"];
        /// End of an mbarrier's life.
        MbarrierInval: "9.7.13.16.10", Sync, None, ["mbarrier.inval[.<$shared>].b64 *a @7.0/80"];
        /// Raise of the transaction count.
        MbarrierExpectTx: "9.7.13.16.11", Sync, None, [
            "mbarrier.expect_tx[.<shared|shared::cta|shared::cluster>].b64 *a, b:u32 @8.0/90",
            "mbarrier.expect_tx.relaxed.<cta|cluster>[.<shared|shared::cta|shared::cluster>].b64 *a, b:u32 @8.0/90",
        ];
        /// Simulated completion of a transaction.
        MbarrierCompleteTx: "9.7.13.16.12", Sync, None, [
            "mbarrier.complete_tx[.<shared|shared::cta|shared::cluster>].b64 *a, b:u32 @8.0/90",
            "mbarrier.complete_tx.relaxed.<cta|cluster>[.<shared|shared::cta|shared::cluster>].b64 *a, b:u32 @8.0/90",
        ];
        /// Arrival; `.expect_tx` raises the transaction count first.
        MbarrierArrive: "9.7.13.16.13", Sync, None, [
            "mbarrier.arrive[.<$shared>].b64 _d, *a, b:u32?@7.8/90 @7.0/80",
            "mbarrier.arrive.release.<cta|cluster>[.<$shared>].b64 _d, *a, b:u32?@7.8/90 @8.0/80",
            "mbarrier.arrive.relaxed.<cta|cluster>[.<$shared>].b64 _d, *a, b:u32? @8.6/90",
            "mbarrier.arrive.shared::cluster.b64 _, *a, b:u32? @8.0/90",
            "mbarrier.arrive.<release|relaxed@8.6>.<cta|cluster>.shared::cluster.b64 _, *a, b:u32? @8.0/90",
            "mbarrier.arrive.expect_tx[.<$shared>].b64 _d, *a, b:u32 @8.0/90",
            "mbarrier.arrive.expect_tx.<release|relaxed@8.6>.<cta|cluster>[.<$shared>].b64 _d, *a, b:u32 @8.0/90",
            "mbarrier.arrive.expect_tx.shared::cluster.b64 _, *a, b:u32 @8.0/90",
            "mbarrier.arrive.expect_tx.<release|relaxed@8.6>.<cta|cluster>.shared::cluster.b64 _, *a, b:u32 @8.0/90",
            "mbarrier.arrive.noComplete[.<$shared>].b64 d, *a, b:u32 @7.0/80",
            "mbarrier.arrive.noComplete.release.cta[.<$shared>].b64 d, *a, b:u32 @8.0/80",
        ];
        /// Arrival that also lowers the expected count of later phases.
        MbarrierArriveDrop: "9.7.13.16.14", Sync, None, [
            "mbarrier.arrive_drop[.<$shared>].b64 _d, *a, b:u32?@7.8/90 @7.0/80",
            "mbarrier.arrive_drop.release.<cta|cluster>[.<$shared>].b64 _d, *a, b:u32?@7.8/90 @8.0/80",
            "mbarrier.arrive_drop.relaxed.<cta|cluster>[.<$shared>].b64 _d, *a, b:u32? @8.6/90",
            "mbarrier.arrive_drop.shared::cluster.b64 _, *a, b:u32? @8.0/90",
            "mbarrier.arrive_drop.<release|relaxed@8.6>.<cta|cluster>.shared::cluster.b64 _, *a, b:u32? @8.0/90",
            "mbarrier.arrive_drop.expect_tx[.<$shared>].b64 _d, *a, b:u32 @8.0/90",
            "mbarrier.arrive_drop.expect_tx.<release|relaxed@8.6>.<cta|cluster>[.<$shared>].b64 _d, *a, b:u32 @8.0/90",
            "mbarrier.arrive_drop.expect_tx.shared::cluster.b64 _, *a, b:u32 @8.0/90",
            "mbarrier.arrive_drop.expect_tx.<release|relaxed@8.6>.<cta|cluster>.shared::cluster.b64 _, *a, b:u32 @8.0/90",
            "mbarrier.arrive_drop.noComplete[.<$shared>].b64 d, *a, b:u32 @7.0/80",
            "mbarrier.arrive_drop.noComplete.release.cta[.<$shared>].b64 d, *a, b:u32 @8.0/80",
        ];
        /// Test of a phase, without waiting.
        MbarrierTestWait: "9.7.13.16.16", Sync, None, [
            "mbarrier.test_wait[.<$shared>].b64 d:pred, *a, b:b64 @7.0/80",
            "mbarrier.test_wait.<acquire|relaxed@8.6/90>.<cta|cluster>[.<$shared>].b64 d:pred, *a, b:b64 @8.0/80",
            "mbarrier.test_wait.parity[.<$shared>].b64 d:pred, *a, b:u32 @7.1/80",
            "mbarrier.test_wait.parity.<acquire|relaxed@8.6/90>.<cta|cluster>[.<$shared>].b64 d:pred, *a, b:u32 @8.0/80",
        ];
        /// Wait for a phase, up to a limit of the system or of the hint in nanoseconds.
        MbarrierTryWait: "9.7.13.16.16", Sync, None, [
            "mbarrier.try_wait[.<$shared>].b64 d:pred, *a, b:b64, c:u32? @7.8/90",
            "mbarrier.try_wait.<acquire|relaxed@8.6>.<cta|cluster>[.<$shared>].b64 d:pred, *a, b:b64, c:u32? @8.0/90",
            "mbarrier.try_wait.parity[.<$shared>].b64 d:pred, *a, b:u32, c:u32? @7.8/90",
            "mbarrier.try_wait.parity.<acquire|relaxed@8.6>.<cta|cluster>[.<$shared>].b64 d:pred, *a, b:u32, c:u32? @8.0/90",
        ];
        /// Pending count in a state returned by an arrival without completion.
        MbarrierPendingCount: "9.7.13.16.17", None, None, ["mbarrier.pending_count.b64 d:u32, a:b64! @7.0/80"];
        /// Wait for the grids this one depends on, or permission for dependent ones to start.
        Griddepcontrol: "9.7.13.13", Sync, None, ["griddepcontrol.<launch_dependents|wait> @7.8/90"];
    }
}
