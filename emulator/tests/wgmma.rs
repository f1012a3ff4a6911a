//! Products by warpgroups that are right, in which nothing is found at any time at which a product may happen, and the
//! same with one mistake, which is reported at its line.

use crate::common::{Bench, line_of, module, replaced};
use tilewright_emulator::{Arg, Kind, Options, Report};
use tilewright_kernel::tensor_map::{Dimension, Fill, Format, Promotion, Swizzle, TensorMap};

/// Earliest, latest, and several that draw.
const SEEDS: std::ops::Range<u64> = 0..6;

/// A program and the lines of its text.
#[derive(Clone)]
struct Program {
    text: String,
    block: u32,
    /// Rows of B and columns of D.
    n: usize,
    /// Columns of A and B.
    k: usize,
}

/// Small integers, as bf16.
fn element(at: usize) -> i64 {
    (at.wrapping_mul(0x9e37_79b9) >> 7) as i64 % 5 - 2
}

fn bf16(count: usize, first: usize) -> Vec<u32> {
    let bits = |at: usize| u32::from(half::bf16::from_f32(element(first + at) as f32).to_bits());
    (0..count / 2).map(|word| bits(2 * word) | bits(2 * word + 1) << 16).collect()
}

impl Program {
    /// With one text in place of another, which is there once.
    fn with(&self, old: &str, new: &str) -> Program {
        Program { text: replaced(&self.text, old, new), ..self.clone() }
    }

    /// Line of a text that is there once.
    fn line(&self, what: &str) -> u32 {
        line_of(&self.text, what)
    }

    fn run(&self, seed: u64) -> (Report, Vec<f32>) {
        let mut bench = Bench::new(1, self.block);
        bench.options = Options { seed, budget: 1 << 20, ..bench.options };
        let a = bench.buffer("a", &bf16(64 * self.k, 0));
        let b = bench.buffer("b", &bf16(self.n * self.k, 10_000));
        let d = bench.buffer("d", &vec![0; 64 * self.n]);
        let map = |address, rows: usize| {
            let map = TensorMap {
                format: Format::Bf16,
                address,
                dimensions: vec![
                    Dimension { size: self.k as u64, stride: 2, box_size: 64, element_stride: 1 },
                    Dimension { size: rows as u64, stride: 2 * self.k as u64, box_size: 64, element_stride: 1 },
                ],
                swizzle: Swizzle::B128,
                fill: Fill::Zero,
                promotion: Promotion::None,
            };
            Arg(map.encode().unwrap().to_vec())
        };
        if self.text.contains("map_a") {
            bench.args = vec![map(a, 64), map(b, self.n), d.into()];
        }
        let report = bench.run(&self.text);
        (report, bench.words(d, 64 * self.n).into_iter().map(f32::from_bits).collect())
    }

    /// Nothing is found, and D is the product.
    fn right(&self) {
        for seed in SEEDS {
            let (report, d) = self.run(seed);
            assert!(report.findings.is_empty(), "seed {seed}: {report}\n{}", self.text);
            for (at, got) in d.iter().enumerate() {
                let (row, column) = (at / self.n, at % self.n);
                let term = |l: usize| element(row * self.k + l) * element(10_000 + column * self.k + l);
                let want: i64 = (0..self.k).map(term).sum();
                assert_eq!(*got, want as f32, "seed {seed}, ({row}, {column})");
            }
        }
    }

    /// Under every seed the first finding is this one, or one of these.
    fn wrong(&self, expected: &[(Kind, &str)]) -> Report {
        let lines: Vec<(Kind, u32)> = expected.iter().map(|(kind, at)| (*kind, self.line(at))).collect();
        let mut last = Report::default();
        for seed in SEEDS {
            (last, _) = self.run(seed);
            let first = last.findings.first().map(|finding| (finding.kind, finding.place.line));
            assert!(
                first.is_some_and(|first| lines.contains(&first)),
                "seed {seed}, expected {lines:?}: {last}\n{}",
                self.text
            );
        }
        last
    }
}

const FENCE: &str = "wgmma.fence.sync.aligned;\n";
const FIRST: &str =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd10, %rd11, 0, 1, 1, 0, 0;\n";
const SECOND: &str =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd12, %rd13, 1, 1, 1, 0, 0;\n";
const COMMIT: &str = "wgmma.commit_group.sync.aligned;\n";
const WAIT: &str = "wgmma.wait_group.sync.aligned 0;\n";
const PROXY: &str = "fence.proxy.async.shared::cta;\n";
const STORE: &str = "st.global.v2.f32 [%rd9], {%f0, %f1};\n";

/// 64 × 8 × 32 by two products of one warpgroup, whose threads have put A and B into shared memory, without swizzle: a
/// thread its half of a row of A.
fn plain() -> Program {
    let copy = "\
.shared .align 1024 .b8 ta[4096]; .shared .align 1024 .b8 tb[512];
ld.param.u64 %rd0, [a]; ld.param.u64 %rd1, [b]; ld.param.u64 %rd2, [d];
mov.u32 %r0, %tid.x; mov.u32 %r1, ta; mov.u32 %r2, tb;
shr.u32 %r3, %r0, 1; and.b32 %r4, %r0, 1;
shr.u32 %r5, %r3, 3; and.b32 %r6, %r3, 7;
shl.b32 %r7, %r5, 9; mad.lo.u32 %r7, %r4, 256, %r7; mad.lo.u32 %r7, %r6, 16, %r7; add.u32 %r8, %r7, %r1;
mad.wide.u32 %rd3, %r0, 32, %rd0;
ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd3]; ld.global.v4.u32 {%r24, %r25, %r26, %r27}, [%rd3+16];
st.shared.v4.u32 [%r8], {%r20, %r21, %r22, %r23};
st.shared.v4.u32 [%r8+128], {%r24, %r25, %r26, %r27};
setp.lt.u32 %p0, %r0, 16; @!%p0 bra READY;
mad.wide.u32 %rd4, %r0, 32, %rd1; add.u32 %r9, %r7, %r2;
ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd4]; ld.global.v4.u32 {%r24, %r25, %r26, %r27}, [%rd4+16];
st.shared.v4.u32 [%r9], {%r20, %r21, %r22, %r23};
st.shared.v4.u32 [%r9+128], {%r24, %r25, %r26, %r27};
READY:
";
    let descriptors = "\
shr.u32 %r10, %r1, 4; cvt.u64.u32 %rd10, %r10; or.b64 %rd10, %rd10, 137439477760;
shr.u32 %r11, %r2, 4; cvt.u64.u32 %rd11, %r11; or.b64 %rd11, %rd11, 137439477760;
add.u64 %rd12, %rd10, 16; add.u64 %rd13, %rd11, 16;
";
    // Row 16 w + l / 4 and the one 8 further down, columns 2 (l mod 4) and the next.
    let store = "\
shr.u32 %r12, %r0, 5; and.b32 %r13, %r0, 31; shr.u32 %r14, %r13, 2; mad.lo.u32 %r12, %r12, 16, %r14;
and.b32 %r13, %r13, 3; mul.lo.u32 %r12, %r12, 32; mad.lo.u32 %r12, %r13, 8, %r12; cvt.u64.u32 %rd8, %r12; add.u64 %rd9, %rd2, %rd8;
";
    let text = module(
        ".param .u64 a, .param .u64 b, .param .u64 d",
        &format!(
            "{copy}{PROXY}bar.sync 0;\n{descriptors}{FENCE}{FIRST}{SECOND}{COMMIT}{WAIT}{store}{STORE}st.global.v2.f32 [%rd9+256], {{%f2, %f3}};\nret;"
        ),
    );
    Program { text, block: 128, n: 8, k: 32 }
}

#[test]
fn two_products_of_one_group() {
    plain().right();
    // Moves between products give registers other names.
    let moved = format!("mov.f32 %f4, %f0;\nmov.f32 %f0, %f4;\n{SECOND}");
    plain().with(SECOND, &moved).right();
    let renamed = SECOND.replace("{%f0, %f1, %f2, %f3}", "{%f4, %f5, %f6, %f7}");
    let moves = "mov.f32 %f4, %f0; mov.f32 %f5, %f1; mov.f32 %f6, %f2; mov.f32 %f7, %f3;\n";
    let back = "mov.f32 %f0, %f4; mov.f32 %f1, %f5; mov.f32 %f2, %f6; mov.f32 %f3, %f7;\n";
    plain().with(SECOND, &format!("{moves}{renamed}")).with(WAIT, &format!("{WAIT}{back}")).right();
    // Two groups, one waited for after the other.
    plain()
        .with(SECOND, &format!("{COMMIT}{SECOND}"))
        .with(WAIT, &format!("wgmma.wait_group.sync.aligned 1;\n{WAIT}"))
        .right();
}

#[test]
fn what_stands_around_products() {
    plain().with(FENCE, "").wrong(&[(Kind::MissingProductFence, FIRST)]);
    plain()
        .with(SECOND, &format!("{COMMIT}{WAIT}add.f32 %f1, %f1, 0f00000000;\n{SECOND}"))
        .wrong(&[(Kind::MissingProductFence, SECOND)]);
    plain().with(COMMIT, "").wrong(&[(Kind::RegisterInFlight, STORE)]);
    plain().with(WAIT, "").wrong(&[(Kind::RegisterInFlight, STORE)]);
    plain().with(WAIT, "wgmma.wait_group.sync.aligned 1;\n").wrong(&[(Kind::RegisterInFlight, STORE)]);
    // In front of the second product and behind it.
    let touched = "add.f32 %f0, %f0, 0f3f800000;\n";
    plain().with(SECOND, &format!("{touched}{SECOND}")).wrong(&[(Kind::RegisterInFlight, touched)]);
    plain().with(COMMIT, &format!("{touched}{COMMIT}")).wrong(&[(Kind::RegisterInFlight, touched)]);
    plain()
        .with(FIRST, &FIRST.replace(", 0, 1, 1", ", 1, 1, 1"))
        .wrong(&[(Kind::UninitialisedRegister, "%rd10, %rd11, 1")]);
    let report = plain().with(WAIT, "exit;\n").wrong(&[(Kind::UnfinishedProduct, FIRST)]);
    assert!(report.findings.iter().all(|finding| finding.kind == Kind::UnfinishedProduct), "{report}");
}

#[test]
fn registers_of_a_and_shapes() {
    let factors = "mov.b32 %r28, 0; mov.b32 %r29, 0; mov.b32 %r30, 0; mov.b32 %r31, 0;\n";
    let third = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, {%r28, %r29, %r30, %r31}, %rd13, 1, 1, 1, 0;\n";
    let right = plain().with(FENCE, &format!("{factors}{FENCE}")).with(COMMIT, &format!("{third}{COMMIT}"));
    right.right();
    let late = "mov.b32 %r29, 5;\n";
    right.with(COMMIT, &format!("{late}{COMMIT}")).wrong(&[(Kind::RegisterInFlight, late)]);
    right.with(third, &format!("{late}{third}")).wrong(&[(Kind::MissingProductFence, third)]);
    // A result as a factor, in flight; a larger product in the place of a smaller one.
    let own = third.replace("%r28, %r29, %r30, %r31", "%r28, %r29, %r30, %r19");
    let result = "mov.b32 %r19, %f0;\n";
    right.with(third, &format!("{result}{own}")).wrong(&[(Kind::RegisterInFlight, &own)]);
    let wide = third.replace("m64n8k16", "m64n16k16").replace("%f2, %f3}", "%f2, %f3, %f4, %f5, %f6, %f7}");
    let written = "mov.f32 %f4, 0f00000000; mov.f32 %f5, %f4; mov.f32 %f6, %f4; mov.f32 %f7, %f4;\n";
    right
        .with(FENCE, &format!("{written}{FENCE}"))
        .with(third, &wide.replace("%rd13", "%rd10"))
        .wrong(&[(Kind::RegisterInFlight, "m64n16k16")]);
}

#[test]
fn shared_memory_of_products() {
    plain().with(PROXY, "").wrong(&[(Kind::MissingProxyFence, FIRST)]);
    plain().with("bar.sync 0;\n", "").wrong(&[
        (Kind::Race, FIRST),
        (Kind::MissingProxyFence, FIRST),
        (Kind::UninitialisedRead, FIRST),
        (Kind::Race, SECOND),
        (Kind::UninitialisedRead, SECOND),
    ]);
    // A tile that is filled again before the product has read it. Who comes first decides which side is reported.
    let refill = "st.shared.u32 [%r8], %r20;\n";
    plain().with(COMMIT, &format!("{COMMIT}{refill}")).wrong(&[
        (Kind::Race, refill),
        (Kind::Race, FIRST),
        (Kind::Race, SECOND),
    ]);
    plain().with(WAIT, &format!("{WAIT}bar.sync 0;\n{refill}")).right();
    // The first product alone reads the first 256 of every 512 bytes of A: others between them are nobody's.
    let one = plain()
        .with(SECOND, "")
        .with(COMMIT, &format!("{COMMIT}setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.u32 [ta+300], %r20;\n"));
    for seed in SEEDS {
        let report = one.run(seed).0;
        assert!(report.findings.is_empty(), "seed {seed}: {report}\n{}", one.text);
    }
    let store = "@%p1 st.shared.u32 [ta+100], %r20;";
    one.with("@%p1 st.shared.u32 [ta+300], %r20;", store).wrong(&[(Kind::Race, store), (Kind::Race, FIRST)]);
}

#[test]
fn descriptors_and_warpgroups() {
    let reserved = "or.b64 %rd10, %rd10, 16384;\n";
    plain().with(FENCE, &format!("{reserved}{FENCE}")).wrong(&[(Kind::ProductMisuse, FIRST)]);
    let far = "add.u64 %rd10, %rd10, 200;\n";
    plain().with(FENCE, &format!("{far}{FENCE}")).wrong(&[(Kind::OutOfBounds, FIRST)]);
    let by_lane = "cvt.u64.u32 %rd14, %r0; add.u64 %rd10, %rd10, %rd14;\n";
    plain().with(FENCE, &format!("{by_lane}{FENCE}")).wrong(&[(Kind::ProductMisuse, FIRST)]);
    let by_warp = "shr.u32 %r15, %r0, 5; cvt.u64.u32 %rd14, %r15; add.u64 %rd10, %rd10, %rd14;\n";
    let report = plain().with(FENCE, &format!("{by_warp}{FENCE}")).wrong(&[(Kind::ProductMisuse, FIRST)]);
    assert!(report.findings[0].detail.contains("of the same warpgroup has descriptors"), "{report}");
    // One warp does without the second product; a block without a fourth warp.
    let some = "setp.ne.u32 %p1, %r15, 2;\n@%p1 ";
    let program =
        plain().with(FENCE, &format!("shr.u32 %r15, %r0, 5;\n{FENCE}")).with(SECOND, &format!("{some}{SECOND}"));
    program.wrong(&[(Kind::ProductMisuse, SECOND), (Kind::ProductMisuse, COMMIT)]);
    Program { block: 96, ..plain() }.wrong(&[(Kind::ProductMisuse, FENCE)]);
    let some = "setp.lt.u32 %p1, %r0, 16;\n@%p1 exit;\n";
    plain().with(FENCE, &format!("{some}{FENCE}")).wrong(&[(Kind::CollectiveMisuse, FENCE)]);
}

const STEPS: usize = 4;

/// 64 × 64 × 256 by a warp that copies boxes of 64 × 64 into a ring of two slots and a warpgroup that multiplies, with
/// one group pending while the next box comes.
fn ring() -> Program {
    let setup = "\
.shared .align 1024 .b8 ta[16384]; .shared .align 1024 .b8 tb[16384]; .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2];
.reg .f32 %s<32>;
mov.b64 %rd0, map_a; cvta.param.u64 %rd0, %rd0; mov.b64 %rd1, map_b; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [d];
mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; mov.u32 %r2, full; mov.u32 %r3, empty; mov.u32 %r4, ta; mov.u32 %r5, tb;
setp.eq.u32 %p0, %r0, 0;
@%p0 mbarrier.init.shared.b64 [%r2], 1; @%p0 mbarrier.init.shared.b64 [%r2+8], 1;
@%p0 mbarrier.init.shared.b64 [%r3], 128; @%p0 mbarrier.init.shared.b64 [%r3+8], 128;
fence.proxy.async.shared::cta; bar.sync 0;
mov.u32 %r6, 0; setp.eq.u32 %p1, %r1, 4; @!%p1 bra CONSUMER;
setp.ne.u32 %p2, %r0, 128; @%p2 bra END;
PRODUCE:
and.b32 %r7, %r6, 1; shr.u32 %r8, %r6, 1; and.b32 %r8, %r8, 1; xor.b32 %r9, %r8, 1;
mad.lo.u32 %r10, %r7, 8, %r3; mad.lo.u32 %r11, %r7, 8, %r2;
EMPTY:
mbarrier.try_wait.parity.shared.b64 %p3, [%r10], %r9;
@!%p3 bra EMPTY;
mbarrier.arrive.expect_tx.shared.b64 _, [%r11], 16384;
mad.lo.u32 %r12, %r7, 8192, %r4; mad.lo.u32 %r13, %r7, 8192, %r5; shl.b32 %r14, %r6, 6;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r12], [%rd0, {%r14, 0}], [%r11];
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r13], [%rd1, {%r14, 0}], [%r11];
";
    let consumer = "\
add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 4; @%p4 bra PRODUCE;
bra END;
CONSUMER:
";
    let sums: Vec<String> = (0..32).map(|i| format!("%s{i}")).collect();
    let zeros: String = sums.iter().map(|sum| format!("mov.f32 {sum}, 0f00000000; ")).collect();
    let mut products = String::new();
    for step in 0..STEPS {
        products += &format!(
            "add.u64 %rd10, %rd6, {at}; add.u64 %rd11, %rd7, {at};\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{}}}, %rd10, %rd11, 1, 1, 1, 0, 0; // {step}\n",
            sums.join(", "),
            at = 2 * step
        );
    }
    let body = "\
CONSUME:
and.b32 %r7, %r6, 1; shr.u32 %r8, %r6, 1; and.b32 %r8, %r8, 1;
mad.lo.u32 %r11, %r7, 8, %r2;
FULL:
mbarrier.try_wait.parity.shared.b64 %p3, [%r11], %r8;
@!%p3 bra FULL;
mad.lo.u32 %r12, %r7, 8192, %r4; mad.lo.u32 %r13, %r7, 8192, %r5;
shr.u32 %r12, %r12, 4; shr.u32 %r13, %r13, 4; cvt.u64.u32 %rd6, %r12; cvt.u64.u32 %rd7, %r13;
or.b64 %rd6, %rd6, 4611686293305294848; or.b64 %rd7, %rd7, 4611686293305294848;
wgmma.fence.sync.aligned; // in the loop
";
    let release = "\
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 1;
setp.eq.u32 %p5, %r6, 0; @%p5 bra NEXT;
xor.b32 %r15, %r7, 1; mad.lo.u32 %r10, %r15, 8, %r3;
mbarrier.arrive.shared.b64 _, [%r10];
NEXT:
add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 4; @%p4 bra CONSUME;
wgmma.wait_group.sync.aligned 0;
and.b32 %r13, %r0, 31; shr.u32 %r14, %r13, 2; mad.lo.u32 %r12, %r1, 16, %r14; and.b32 %r13, %r13, 3;
mul.lo.u32 %r12, %r12, 256; mad.lo.u32 %r12, %r13, 8, %r12; cvt.u64.u32 %rd8, %r12; add.u64 %rd9, %rd2, %rd8;
";
    let mut store = String::new();
    for group in 0..8 {
        let at = |i: usize| 4 * group + i;
        store += &format!(
            "st.global.v2.f32 [%rd9+{}], {{%s{}, %s{}}};\nst.global.v2.f32 [%rd9+{}], {{%s{}, %s{}}};\n",
            32 * group,
            at(0),
            at(1),
            32 * group + 2048,
            at(2),
            at(3)
        );
    }
    let params = ".param .align 64 .b8 map_a[128], .param .align 64 .b8 map_b[128], .param .u64 d";
    let text = module(params, &format!("{setup}{consumer}{zeros}\n{body}{products}{release}{store}END:\nret;"));
    Program { text, block: 160, n: 64, k: 64 * STEPS }
}

/// The product that the label of a step follows.
const OF_RING: &str = "// 0";
const COPY_A: &str = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r12]";

#[test]
fn a_ring_of_copies_and_products() {
    ring().right();
    // Slots are released one product too early, and not waited for.
    let early = ring()
        .with("wgmma.wait_group.sync.aligned 1;", "")
        .with("xor.b32 %r15, %r7, 1;", "mov.u32 %r15, %r7;")
        .with("@%p5 bra NEXT;", "");
    early.wrong(&[(Kind::Race, COPY_A)]);
    ring()
        .with("@!%p3 bra EMPTY;", "")
        .wrong(&[(Kind::Race, COPY_A), (Kind::BarrierMisuse, "mbarrier.arrive.expect_tx")]);
    ring().with("@!%p3 bra FULL;", "").wrong(&[(Kind::InFlight, OF_RING), (Kind::UninitialisedRead, OF_RING)]);
    ring().with("wgmma.fence.sync.aligned; // in the loop", "").wrong(&[(Kind::MissingProductFence, OF_RING)]);
    ring().with("wgmma.wait_group.sync.aligned 0;", "").wrong(&[(Kind::RegisterInFlight, "[%rd9+0]")]);
}

#[test]
fn descriptors_say_how_copies_have_permuted() {
    let other = ring().with("or.b64 %rd7, %rd7, 4611686293305294848;", "or.b64 %rd7, %rd7, 9223372311732682752;");
    let report = other.wrong(&[(Kind::ProductMisuse, OF_RING)]);
    assert!(report.findings[0].detail.contains("swizzle of 128 bytes; the descriptor of B"), "{report}");
}
