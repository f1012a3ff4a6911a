//! What blocks of clusters do together assembles, for every type and width.

use expect_test::expect;
use tilewright_kernel::ElementType;
use tilewright_kernel::info::Argument;

use super::launched::{from_bytes, to_bytes};
use super::machine::execute;
use super::{tensor, text};
use crate::kernel_ir::Memory::Parameter;
use crate::kernel_ir::{Buffer, Builder, Kernel, Sharing, Signature, Type};

/// Every thread writes `lanes` elements to all blocks, and block `r` stores those of block `cluster − 1 − r`, which it
/// reads from block 1.
fn exchanging(cluster: u32, element: ElementType, lanes: u32) -> Kernel {
    let threads = 64;
    let mut b = Builder::new(Signature {
        name: "k".to_owned(),
        parameters: vec![tensor("x", element, false), tensor("y", element, true)],
        dims: Vec::new(),
        maps: Vec::new(),
        arguments: vec![Argument::Address(0), Argument::Address(1)],
        threads,
        cluster,
    });
    let elements = threads * lanes * cluster;
    let (name, sharing) = ("part".to_owned(), Sharing::Block);
    let buffer = b.buffer(Buffer { name, element, elements, alignment: 16, slots: 1, sharing });
    let [one, last, size] = [1, cluster - 1, lanes].map(|n| b.index_literal(Type::I32, n.into()));
    let (block, thread, rank) = (b.block_index(), b.thread_index(), b.cluster_rank());
    let count = b.index_literal(Type::I32, threads.into());
    let at = |b: &mut Builder, of| {
        let first = b.index_mul(of, count);
        let all = b.index_add(first, thread);
        b.index_mul(all, size)
    };
    let (from, own) = (at(&mut b, block), at(&mut b, rank));
    let x = b.load(Parameter(0), from, lanes, None);
    // Nobody writes before all blocks are there, or reads before all have written.
    b.barrier_cluster();
    b.store_dsmem_all(buffer, own, &x);
    b.barrier_cluster();
    let peer = b.index_sub(last, rank);
    let theirs = at(&mut b, peer);
    let y = b.load_dsmem(one, buffer, theirs, lanes);
    b.barrier_cluster();
    b.store(Parameter(1), from, &y);
    b.finish().expect("balanced")
}

#[test]
fn every_type_goes_to_every_block() {
    for element in ElementType::ALL {
        for (cluster, lanes) in [(2, 1), (3, 2), (8, 16)] {
            text(&exchanging(cluster, element, lanes));
        }
    }
}

/// Every block stores what the block opposite to it loaded.
#[test]
fn blocks_exchange_what_they_have() {
    for (cluster, lanes) in [(2, 1), (3, 2), (4, 4), (8, 4)] {
        let kernel = exchanging(cluster, ElementType::I32, lanes);
        let (blocks, each) = (2 * cluster, u64::from(64 * lanes));
        let all = each * u64::from(blocks);
        let x: Vec<u64> = (0..all).map(|n| n * 7 % 10_007).collect();
        let buffers = [to_bytes(ElementType::I32, &x), vec![0; all as usize * 4]];
        let found = execute(&kernel, 0, blocks, &buffers, true);
        let expected: Vec<u64> = (0..all)
            .map(|n| {
                let (block, rest) = (n / each, n % each);
                let (first, rank) = (block / u64::from(cluster) * u64::from(cluster), block % u64::from(cluster));
                x[((first + u64::from(cluster) - 1 - rank) * each + rest) as usize]
            })
            .collect();
        assert_eq!(from_bytes(ElementType::I32, &found[1]), expected, "clusters of {cluster}, {lanes} lanes");
    }
}

#[test]
fn a_store_is_one_for_each_block() {
    let expected = expect![[r#"
        .version 8.0
        .target sm_90
        .address_size 64
        .file 1 "kernel"

        .visible .entry k(
            .param .u64 arg0_x,
            .param .u64 arg1_y
        )
        .reqntid 64, 1, 1
        .minnctapersm 1
        .reqnctapercluster 2, 1, 1
        .explicitcluster
        {
            .reg .b32 %r<20>;
            .reg .b64 %rd<6>;
            .reg .f32 %f<8>;
            .shared .align 16 .f32 buffer0_part[512];
            ld.param.u64 %rd0, [arg0_x];
            cvta.to.global.u64 %rd1, %rd0;
            ld.param.u64 %rd2, [arg1_y];
            cvta.to.global.u64 %rd3, %rd2;
            mov.u32 %r0, %ctaid.x;
            mov.u32 %r1, %tid.x;
            mov.u32 %r2, %cluster_ctarank;
            mul.lo.s32 %r3, %r0, 64;
            add.s32 %r4, %r1, %r3;
            mul.lo.s32 %r5, %r4, 4;
            mad.wide.s32 %rd4, %r5, 4, %rd1;
            mad.wide.s32 %rd5, %r5, 4, %rd3;
            mul.lo.s32 %r6, %r2, 64;
            add.s32 %r7, %r1, %r6;
            mul.lo.s32 %r8, %r7, 4;
            mov.u32 %r9, buffer0_part;
            mad.lo.s32 %r10, %r8, 4, %r9;
            ld.global.nc.v4.f32 {%f0, %f1, %f2, %f3}, [%rd4];
            barrier.cluster.arrive.release.aligned;
            barrier.cluster.wait.acquire.aligned;
            mapa.shared::cluster.u32 %r11, %r10, 0;
            mapa.shared::cluster.u32 %r12, %r10, 1;
            st.shared::cluster.v4.f32 [%r11], {%f0, %f1, %f2, %f3};
            st.shared::cluster.v4.f32 [%r12], {%f0, %f1, %f2, %f3};
            barrier.cluster.arrive.release.aligned;
            barrier.cluster.wait.acquire.aligned;
            sub.s32 %r13, 1, %r2;
            mul.lo.s32 %r14, %r13, 64;
            add.s32 %r15, %r1, %r14;
            mul.lo.s32 %r16, %r15, 4;
            mov.u32 %r17, buffer0_part;
            mad.lo.s32 %r18, %r16, 4, %r17;
            mapa.shared::cluster.u32 %r19, %r18, 1;
            ld.shared::cluster.v4.f32 {%f4, %f5, %f6, %f7}, [%r19];
            barrier.cluster.arrive.release.aligned;
            barrier.cluster.wait.acquire.aligned;
            st.global.v4.f32 [%rd5], {%f4, %f5, %f6, %f7};
            ret;
        }
    "#]];
    expected.assert_eq(&text(&exchanging(2, ElementType::F32, 4)));
}
