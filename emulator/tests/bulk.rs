//! Tiled copies against a scalar model, slot by slot: every rank, element type, swizzle, stride and kind of overhang,
//! at every time at which a copy may happen.

use crate::common::{Bench, module};
use crate::tensors::{Case, Random, slots};
use tilewright_emulator::{Arg, Kind, Options, Report, Sanitizers};
use tilewright_kernel::tensor_map::{Dimension, Fill, Format, Swizzle, TensorMap};

const PARAMS: &str =
    ".param .align 64 .b8 map[128], .param .u64 y, .param .align 4 .b8 start[20], .param .u32 bytes, .param .u32 place";

/// Coordinates in %r10 to %r14, the tile's address in %r2, its bytes in %r3, the thread in %r0.
const PROLOGUE: &str = "\
.shared .align 1024 .b8 tile[66560]; .shared .align 8 .b64 bar;
mov.u32 %r0, %tid.x;
ld.param.u32 %r10, [start]; ld.param.u32 %r11, [start+4]; ld.param.u32 %r12, [start+8]; ld.param.u32 %r13, [start+12]; ld.param.u32 %r14, [start+16];
ld.param.u32 %r3, [bytes];
ld.param.u32 %r4, [place];
ld.param.u64 %rd1, [y];
mov.u32 %r2, tile;
add.u32 %r2, %r2, %r4;
mov.b64 %rd0, map;
cvta.param.u64 %rd0, %rd0;
setp.eq.u32 %p1, %r0, 0;
";

/// Shared words from the tile on to `y`, or back, all threads together.
fn words(copy: &str) -> String {
    format!(
        "shl.b32 %r6, %r0, 2;\nmov.u32 %r9, %ntid.x;\nshl.b32 %r9, %r9, 2;\nNEXT:\nsetp.ge.u32 %p3, %r6, %r3;\n@%p3 bra OVER;\nadd.u32 %r7, %r2, %r6;\n\
         cvt.u64.u32 %rd2, %r6;\nadd.u64 %rd2, %rd1, %rd2;\n{copy}\nadd.u32 %r6, %r6, %r9;\nbra NEXT;\nOVER:\n"
    )
}

fn coordinates(rank: usize) -> String {
    (10..10 + rank).map(|n| format!("%r{n}")).collect::<Vec<_>>().join(", ")
}

fn load(rank: usize, space: &str) -> String {
    let copy = format!(
        "cp.async.bulk.tensor.{rank}d.{space}.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd0, {{{}}}], [bar];",
        coordinates(rank)
    );
    let out = words("ld.shared.u32 %r8, [%r7];\nst.global.u32 [%rd2], %r8;");
    let body = format!(
        "{PROLOGUE}@%p1 mbarrier.init.shared.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\nbar.sync 0;\n\
         @!%p1 bra WAIT;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], %r3;\n{copy}\nWAIT:\n\
         mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n{out}ret;"
    );
    module(PARAMS, &body).replace(".version 8.3", ".version 8.6")
}

fn store(rank: usize) -> String {
    let copy = format!(
        "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [%rd0, {{{}}}], [%r2];",
        coordinates(rank)
    );
    let fill = words("ld.global.u32 %r8, [%rd2];\nst.shared.u32 [%r7], %r8;");
    let body = format!(
        "{PROLOGUE}{fill}fence.proxy.async.shared::cta;\nbar.sync 0;\n@!%p1 bra END;\n{copy}\ncp.async.bulk.commit_group;\n\
         cp.async.bulk.wait_group 0;\nEND:\nret;"
    );
    module(PARAMS, &body)
}

impl Case {
    fn bench(&self, seed: u64) -> (Bench, u64, u64) {
        let mut bench = Bench::new(1, 64);
        // One of them without checks, which change no bytes.
        let sanitizers = if seed == 6 { Sanitizers::NONE } else { Sanitizers::ALL };
        bench.options = Options { seed, sanitizers, ..bench.options };
        let base = bench.memory.alloc(self.tensor.len() as u64, "tensor").unwrap();
        bench.memory.write(base, &self.tensor).unwrap();
        let map = TensorMap { address: base + self.offset, ..self.map.clone() };
        bench.args.push(Arg(map.encode().unwrap().to_vec()));
        let bytes = map.tile_bytes();
        let y = bench.empty("y", bytes as usize / 4);
        let start: Vec<u8> = (0..5).flat_map(|n| self.start.get(n).copied().unwrap_or(0).to_le_bytes()).collect();
        bench.args.push(Arg(start));
        bench.args.push((bytes as u32).into());
        bench.args.push(self.place.into());
        (bench, base, y)
    }
}

fn bytes(bench: &Bench, base: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    bench.memory.read(base, &mut bytes).unwrap();
    bytes
}

fn quiet(report: &Report, case: &Case) {
    assert!(report.findings.is_empty(), "{report}\n{case:?}");
}

/// Every fourth seed has its own timing: earliest, latest, two that draw.
const SEEDS: [u64; 5] = [0, 1, 2, 3, 6];

#[test]
fn loads_bring_what_the_model_says() {
    let mut random = Random(1);
    for round in 0..200 {
        let case = Case::random(&mut random, 1 + round % 5, false);
        let expected = slots(&case);
        for seed in SEEDS {
            let (bench, _, y) = case.bench(seed);
            let space = if seed == 0 { "shared::cta" } else { "shared::cluster" };
            quiet(&bench.run(&load(case.map.dimensions.len(), space)), &case);
            assert_eq!(bytes(&bench, y, expected.len()), expected, "{case:?}");
        }
    }
}

#[test]
fn stores_leave_what_the_model_says() {
    let mut random = Random(2);
    for round in 0..200 {
        let case = Case::random(&mut random, 1 + round % 5, true);
        let image: Vec<u8> = (0..case.map.tile_bytes()).map(|at| (at * 7 + 3) as u8).collect();
        let expected = crate::tensors::stored(&case, &image);
        for seed in SEEDS {
            let (bench, base, y) = case.bench(seed);
            bench.memory.write(y, &image).unwrap();
            quiet(&bench.run(&store(case.map.dimensions.len())), &case);
            assert_eq!(bytes(&bench, base, expected.len()), expected, "{case:?}");
        }
    }
}

fn rows(columns: u64, rows: u64, pitch: u64, box_size: (u32, u32)) -> TensorMap {
    TensorMap {
        format: Format::F32,
        address: 0,
        dimensions: vec![
            Dimension { size: columns, stride: 4, box_size: box_size.0, element_stride: 1 },
            Dimension { size: rows, stride: pitch, box_size: box_size.1, element_stride: 1 },
        ],
        swizzle: Swizzle::None,
        fill: Fill::Zero,
        promotion: tilewright_kernel::tensor_map::Promotion::None,
    }
}

#[test]
fn a_store_reaches_the_end_of_the_chunk() {
    // 5 columns of 8: the store of a row overwrites columns 5 to 7, and no more.
    let case = Case { map: rows(5, 3, 64, (8, 4)), start: vec![0, 1], offset: 0, place: 0, tensor: vec![0xee; 3 * 64] };
    let (bench, base, y) = case.bench(0);
    bench.memory.write(y, &[0x11; 128]).unwrap();
    quiet(&bench.run(&store(2)), &case);
    let found = bytes(&bench, base, 3 * 64);
    for (at, byte) in found.iter().enumerate() {
        let (row, column) = (at / 64, at % 64 / 4);
        assert_eq!(*byte, if row >= 1 && column < 8 { 0x11 } else { 0xee }, "row {row}, column {column}");
    }
}

#[test]
fn a_start_inside_a_chunk_is_found() {
    let case = Case {
        map: rows(64, 8, 256, (8, 2)),
        start: vec![-3, 0],
        offset: 0,
        place: 0,
        tensor: (0..8 * 256).map(|at| at as u8).collect(),
    };
    let (bench, _, y) = case.bench(0);
    let report = bench.run(&load(2, "shared::cluster"));
    let [finding] = &report.findings[..] else { panic!("{report}") };
    assert_eq!(finding.kind, Kind::Misaligned, "{report}");
    assert!(finding.detail.contains("starts -12 bytes into a row"), "{report}");
    assert_eq!(bytes(&bench, y, 64), slots(&case));
}

#[test]
fn host_threads_make_no_difference() {
    // Every block moves a row of boxes through shared memory, turned around by the two maps.
    let body = format!(
        "{PROLOGUE}mov.u32 %r15, %ctaid.x; shl.b32 %r11, %r15, 2;\nld.param.u64 %rd3, [y];\n\
         @%p1 mbarrier.init.shared.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\nbar.sync 0;\n\
         @!%p1 bra WAIT;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], %r3;\n\
         cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd0, {{%r10, %r11}}], [bar];\n\
         WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n@!%p1 bra END;\n\
         cvt.u64.u32 %rd4, %r15;\ncvt.u64.u32 %rd5, %r3;\nmad.lo.u64 %rd3, %rd4, %rd5, %rd3;\n\
         cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r2], %r3;\ncp.async.bulk.commit_group;\n\
         cp.async.bulk.wait_group 0;\nEND:\nret;"
    );
    let text = module(PARAMS, &body);
    for seed in 0..8 {
        let run = |threads: usize| {
            let mut bench = Bench::new(64, 64);
            bench.options = Options { seed, threads: Some(threads), ..bench.options };
            let base = bench.memory.alloc(256 * 128, "tensor").unwrap();
            let tensor: Vec<u8> = (0..256 * 128).map(|at: u32| (at / 3) as u8).collect();
            bench.memory.write(base, &tensor).unwrap();
            let map = TensorMap { address: base, ..rows(32, 256, 128, (32, 4)) };
            bench.args.push(Arg(map.encode().unwrap().to_vec()));
            let y = bench.empty("y", 256 * 32);
            bench.args.extend([Arg(vec![0; 20]), 512u32.into(), 0u32.into()]);
            let report = bench.clean(&text);
            assert_eq!(bytes(&bench, y, tensor.len()), tensor);
            report
        };
        let one = run(1);
        for threads in [2, 3, 8] {
            assert_eq!(run(threads), one, "seed {seed}, {threads} threads");
        }
    }
}
