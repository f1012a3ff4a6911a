//! Roles assemble: rings between a producer and consumers, and registers that they give each other.

use expect_test::expect;
use tilewright_kernel::ElementType::F32;
use tilewright_kernel::info::Argument;

use super::launched::{from_bytes, launch_mapped, to_bytes};
use super::{printed, tensor, text};
use crate::kernel_ir::Memory::Parameter;
use crate::kernel_ir::{Builder, Receivers, Signature, Type};
use crate::proof::roles_tests::{Mistakes, ring};

/// What is copied is waited for and released; what the elected lane does stands in a branch that follows its election.
#[test]
fn rings_assemble() {
    for cluster in [1, 2, 4] {
        let text = text(&ring(cluster, 5, 3, Mistakes::default()).0);
        let lines: Vec<&str> = text.lines().collect();
        let election = lines.windows(2).position(|two| two[0].contains("elect.sync") && two[1].contains("bra"));
        let election = election.expect("the producer elects a lane");
        let mut copies = lines.iter().enumerate().filter(|(_, line)| line.contains("cp.async.bulk"));
        assert!(copies.all(|(n, _)| n > election), "{text}");
        for line in text.lines().filter(|line| line.contains("cp.async.bulk") || line.contains("arrive.expect_tx")) {
            assert_eq!(line.contains("cp.async.bulk") && cluster > 1, line.contains("multicast"), "{text}");
        }
        assert_eq!(text.contains("fence.mbarrier_init"), cluster > 1);
        let barriers = text.lines().filter(|line| line.contains("barrier.cluster.wait"));
        assert_eq!(barriers.count(), if cluster > 1 { 2 } else { 0 });
    }
}

/// What consumers see is the last tile, whatever the number of trips, tiles and slots in use.
#[test]
fn rings_run() {
    for (cluster, seed) in [(1, 0), (1, 7), (2, 0), (2, 7)] {
        for (trips, tiles) in [(0, 1), (1, 2), (2, 3), (3, 1), (5, 2), (7, 3)] {
            let (kernel, launch) = ring(cluster, trips, tiles, Mistakes::default());
            let text = printed(&kernel);
            let elements = |n: usize| launch.tensors[n].as_ref().map_or(0, |t| t.shape[0] as u64);
            let x: Vec<u64> = (0..elements(0)).map(|n| 1 + n * n % 1009).collect();
            let buffers = [to_bytes(F32, &x), vec![0; elements(1) as usize * 4]];
            let blocks = launch.blocks as u32;
            let (report, found) = launch_mapped(&kernel, &text, (trips, blocks), &buffers, (true, seed), &launch.maps);
            assert!(report.is_clean(), "{report:?}\n{kernel}\n{text}");
            let last = |n: u64| x.get(((trips - 1) * 64) as usize..).map_or(0, |tile| tile[n as usize % 64]);
            let expected: Vec<u64> = (0..elements(1)).map(|n| if trips == 0 { 0 } else { last(n) }).collect();
            assert_eq!(from_bytes(F32, &found[1]), expected, "clusters of {cluster}, {trips} trips, {tiles} tiles");
        }
    }
}

#[test]
fn roles_have_registers_and_barriers_of_their_own() {
    let mut b = Builder::new(Signature {
        name: "k".to_owned(),
        parameters: vec![tensor("x", F32, false), tensor("y", F32, true)],
        dims: Vec::new(),
        maps: Vec::new(),
        arguments: vec![Argument::Address(0), Argument::Address(1)],
        threads: 384,
        cluster: 1,
    });
    let (thread, zero) = (b.thread_index(), b.index_literal(Type::I32, 0));
    let done = b.mbarrier_of(1, 8);
    b.bar_sync();
    b.begin_roles();
    b.begin_role("producer", 0..4, Some(24));
    b.mbarrier_wait(done, zero, zero);
    b.end_role();
    b.begin_role("consumer", 4..12, Some(240));
    let x = b.load(Parameter(0), thread, 1, None);
    b.bar_sync();
    b.bar_sync_warpgroup();
    b.store(Parameter(1), thread, &x);
    b.mbarrier_arrive(done, zero, Receivers::Own);
    b.end_role();
    b.end_roles();
    let kernel = b.finish().expect("balanced");
    let expected = expect![[r#"
        .version 8.0
        .target sm_90a
        .address_size 64
        .file 1 "kernel"

        .visible .entry k(
            .param .u64 arg0_x,
            .param .u64 arg1_y
        )
        .reqntid 384, 1, 1
        .minnctapersm 1
        {
            .reg .pred %p<5>;
            .reg .b32 %r<9>;
            .reg .b64 %rd<6>;
            .reg .f32 %f<1>;
            .shared .b64 barriers[1];
            ld.param.u64 %rd0, [arg0_x];
            cvta.to.global.u64 %rd1, %rd0;
            ld.param.u64 %rd2, [arg1_y];
            cvta.to.global.u64 %rd3, %rd2;
            mov.u32 %r0, %tid.x;
            setp.eq.u32 %p0, %r0, 0;
            @!%p0 bra $L0_ready;
            mbarrier.init.shared.b64 [barriers], 8;
            fence.proxy.async.shared::cta;
        $L0_ready:
            mov.u32 %r1, %tid.x;
            mad.wide.s32 %rd4, %r1, 4, %rd1;
            mad.wide.s32 %rd5, %r1, 4, %rd3;
            bar.sync 0;
            mov.u32 %r2, %tid.x;
            shr.u32 %r3, %r2, 5;
            sub.s32 %r4, %r3, 0;
            setp.lt.u32 %p1, %r4, 4;
            @!%p1 bra $L1_role;
            setmaxnreg.dec.sync.aligned.u32 24;
        $L2_wait:
            mbarrier.try_wait.parity.shared.b64 %p2, [barriers], 0;
            @!%p2 bra $L2_wait;
        $L1_role:
            sub.s32 %r5, %r3, 4;
            setp.lt.u32 %p3, %r5, 8;
            @!%p3 bra $L3_role;
            setmaxnreg.inc.sync.aligned.u32 240;
            ld.global.nc.f32 %f0, [%rd4];
            bar.sync 10, 256;
            mov.u32 %r6, %tid.x;
            shr.u32 %r7, %r6, 7;
            add.u32 %r8, %r7, 1;
            bar.sync %r8, 128;
            st.global.f32 [%rd5], %f0;
            bar.warp.sync 4294967295;
            elect.sync _|%p4, 4294967295;
            @%p4 mbarrier.arrive.shared.b64 _, [barriers];
        $L3_role:
            bar.sync 0;
            ret;
        }
    "#]];
    expected.assert_eq(&text(&kernel));
}
