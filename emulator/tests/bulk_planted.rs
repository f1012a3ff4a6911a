//! Programs with bulk copies that are right, in which nothing is found at any time at which a copy may happen, and the
//! same with one mistake, which is reported at its line.

use crate::common::{Bench, line_of, module, replaced};
use tilewright_emulator::{Arg, Kind, Options, Report};
use tilewright_kernel::tensor_map::{Dimension, Fill, Format, Promotion, Swizzle, TensorMap};

/// Earliest, latest, and several that draw.
const SEEDS: std::ops::Range<u64> = 0..5;

/// Rows of 32 floats in boxes of 8 rows: 1024 bytes.
fn rows(address: u64, count: u64) -> TensorMap {
    TensorMap {
        format: Format::F32,
        address,
        dimensions: vec![
            Dimension { size: 32, stride: 4, box_size: 32, element_stride: 1 },
            Dimension { size: count, stride: 128, box_size: 8, element_stride: 1 },
        ],
        swizzle: Swizzle::None,
        fill: Fill::Zero,
        promotion: Promotion::None,
    }
}

struct Program {
    text: String,
    /// Rows of both tensors.
    rows: u64,
    block: u32,
}

impl Program {
    /// A kernel with a map of the input, a map of the output, the input, the output, and the number of tiles.
    fn new(block: u32, rows: u64, body: &str) -> Program {
        let params = ".param .align 64 .b8 map_x[128], .param .align 64 .b8 map_y[128], .param .u64 x, .param .u64 y, .param .u32 tiles";
        let prologue = "\
.shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 full[4]; .shared .align 8 .b64 empty[4];
mov.b64 %rd0, map_x; cvta.param.u64 %rd0, %rd0;
mov.b64 %rd1, map_y; cvta.param.u64 %rd1, %rd1;
ld.param.u64 %rd2, [x];
ld.param.u64 %rd3, [y];
ld.param.u32 %r20, [tiles];
mov.u32 %r0, %tid.x;
mov.u32 %r1, tile;
shl.b32 %r2, %r0, 2;
add.u32 %r3, %r1, %r2;
cvt.u64.u32 %rd4, %r2;
add.u64 %rd5, %rd3, %rd4;
add.u64 %rd6, %rd2, %rd4;
setp.eq.u32 %p1, %r0, 0;
";
        Program { text: module(params, &format!("{prologue}{body}\nret;")), rows, block }
    }

    /// With one text in place of another, which is there once.
    fn with(&self, old: &str, new: &str) -> Program {
        Program { text: replaced(&self.text, old, new), ..*self }
    }

    /// Line of a text that is there once.
    fn line(&self, what: &str) -> u32 {
        line_of(&self.text, what)
    }

    fn run(&self, seed: u64) -> (Report, Vec<u32>) {
        let mut bench = Bench::new(1, self.block);
        bench.options = Options { seed, budget: 1 << 24, ..bench.options };
        let words: Vec<u32> = (0..self.rows as u32 * 32).map(|n| n + 1000).collect();
        let x = bench.buffer("x", &words);
        let y = bench.buffer("y", &vec![0; words.len()]);
        let map = |address| Arg(rows(address, self.rows).encode().unwrap().to_vec());
        bench.args = vec![map(x), map(y), x.into(), y.into(), (self.rows as u32 / 8).into()];
        let report = bench.run(&self.text);
        (report, bench.words(y, words.len()))
    }

    /// Nothing is found, and the output is the input plus `plus`.
    fn right(&self, plus: u32) {
        for seed in SEEDS {
            let (report, y) = self.run(seed);
            assert!(report.findings.is_empty(), "seed {seed}: {report}\n{}", self.text);
            let expected: Vec<u32> = (0..self.rows as u32 * 32).map(|n| n + 1000 + plus).collect();
            assert_eq!(y, expected, "seed {seed}");
        }
    }

    /// As [`Program::wrong`], of an access that nothing orders with a copy: it is found at the one that comes second,
    /// which names the other. Memory that nobody has written yet is another sign of a read that comes too early.
    fn unordered(&self, access: &str, copy: &str) {
        let lines = (self.line(access), self.line(copy));
        let expected = [Kind::InFlight, Kind::Race, Kind::UninitialisedRead].map(|kind| (kind, lines.0));
        self.wrong(&[&expected[..], &[(Kind::Race, lines.1)]].concat());
    }

    /// Under every seed something is found, and the first finding is one of these.
    fn wrong(&self, expected: &[(Kind, u32)]) -> Vec<Report> {
        SEEDS
            .map(|seed| {
                let (report, _) = self.run(seed);
                let first = report.findings.first().map(|f| (f.kind, f.place.line));
                assert!(
                    first.is_some_and(|first| expected.contains(&first)),
                    "seed {seed}, expected {expected:?}: {report}\n{}",
                    self.text
                );
                report
            })
            .collect()
    }
}

const INIT: &str = "@%p1 mbarrier.init.shared.b64 [full], 1;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";
const LOAD: &str =
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd0, {0, 0}], [full];";
const EXPECT: &str = "mbarrier.arrive.expect_tx.shared.b64 _, [full], 1024;";
const TRY: &str = "mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;";
const READ: &str = "ld.shared.u32 %r4, [%r3];";

/// One tile, 256 threads.
fn one_load() -> Program {
    Program::new(
        256,
        8,
        &format!(
            "{INIT}@!%p1 bra WAIT;\n{EXPECT}\n{LOAD}\nWAIT:\n{TRY}\n@!%p2 bra WAIT;\n{READ}\nst.global.u32 [%rd5], %r4;"
        ),
    )
}

#[test]
fn one_load_and_its_mistakes() {
    let good = one_load();
    good.right(0);
    // By any thread of another warp, without the tensor's map in a register, and as consecutive bytes.
    good.with("setp.eq.u32 %p1, %r0, 0;", "setp.eq.u32 %p1, %r0, 77;").right(0);
    good.with("[%rd0, {0, 0}]", "[map_x, {0, 0}]").right(0);
    let line = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2], 1024, [full];";
    good.with(LOAD, line).right(0);
    let hinted =
        LOAD.replace("complete_tx::bytes", "complete_tx::bytes.L2::cache_hint").replace("[full];", "[full], %rd2;");
    good.with(LOAD, &hinted).right(0);

    // No wait.
    let mutant = good.with("@!%p2 bra WAIT;\n", "");
    mutant.unordered(READ, LOAD);
    let mutant = good.with(&format!("{TRY}\n@!%p2 bra WAIT;\n"), "");
    mutant.unordered(READ, LOAD);
    // The same by the issuer alone.
    let alone = mutant.with("WAIT:\n", "").with("@!%p1 bra WAIT;", "@!%p1 exit;");
    let reports = alone.wrong(&[(Kind::InFlight, alone.line(READ))]);
    let other = reports[0].findings[0].other.as_ref().unwrap();
    assert_eq!(other.place.line, alone.line(LOAD), "{}", reports[0]);
    // Nor a read: the copy is under way when the block ends.
    let mutant = mutant.with(READ, "mov.u32 %r4, 0;");
    mutant.wrong(&[(Kind::UnfinishedCopy, mutant.line(LOAD))]);
    // Only the thread that has waited may go on.
    let mutant = good.with("@!%p1 bra WAIT;", "@!%p1 bra OVER;").with(READ, &format!("OVER:\n{READ}"));
    mutant.unordered(READ, LOAD);
    mutant.with("OVER:\n", "OVER:\nbar.sync 0;\n").right(0);

    // The wrong parity: a fresh mbarrier lets it pass.
    let mutant = good.with("[full], 0;", "[full], 1;");
    mutant.unordered(READ, LOAD);
    // A relaxed wait orders nothing.
    let mutant =
        good.with("try_wait.parity.shared", "try_wait.parity.relaxed.cta.shared").with(".version 8.3", ".version 8.6");
    mutant.wrong(&[(Kind::InFlight, mutant.line(READ))]);

    // Too many bytes expected: nobody goes on.
    let mutant = good.with("[full], 1024;", "[full], 2048;");
    for report in mutant.wrong(&[(Kind::Deadlock, mutant.line("try_wait"))]) {
        let detail = &report.findings[0].detail;
        assert!(detail.contains("1024 bytes pending: 2048 bytes expected, 1024 arrived"), "{report}");
    }
    // Too few: the phase is short of arrivals of bytes that were never expected.
    let mutant = good.with("[full], 1024;", "[full], 512;");
    for report in mutant.wrong(&[(Kind::Deadlock, mutant.line("try_wait"))]) {
        let detail = &report.findings[0].detail;
        assert!(detail.contains("-512 bytes pending: 512 bytes expected, 1024 arrived"), "{report}");
    }
    // None: the phase ends at once, or never.
    let mutant = good.with(EXPECT, "mbarrier.arrive.shared.b64 _, [full];");
    mutant.wrong(&[(Kind::InFlight, mutant.line(READ)), (Kind::Deadlock, mutant.line("try_wait"))]);
    // Bytes, and nobody arrives.
    let mutant = good.with(EXPECT, "mbarrier.expect_tx.relaxed.cta.shared.b64 [full], 1024;");
    for report in mutant.wrong(&[(Kind::Deadlock, mutant.line("try_wait"))]) {
        assert!(report.findings[0].detail.contains("1 of 1 arrivals and 0 bytes pending"), "{report}");
    }
    // No copy.
    let mutant = good.with(LOAD, "");
    mutant.wrong(&[(Kind::Deadlock, mutant.line("try_wait"))]);
    // Two copies where one is expected: the second one is nobody's.
    let mutant = good.with(LOAD, &format!("{LOAD}\n{}", LOAD.replace("[%r1]", "[%r1+1024]")));
    for seed in SEEDS {
        assert!(!mutant.run(seed).0.is_clean());
    }

    // No mbarrier, at its place or at all.
    let mutant = good.with("@%p1 mbarrier.init.shared.b64 [full], 1;\n", "");
    mutant.wrong(&[
        (Kind::BarrierMisuse, mutant.line("arrive.expect_tx")),
        (Kind::BarrierMisuse, mutant.line("try_wait")),
    ]);
    let mutant = good.with("{0, 0}], [full];", "{0, 0}], [empty];");
    mutant.wrong(&[(Kind::BarrierMisuse, mutant.line(" [%rd0, {0, 0}]"))]);
    // Made by one warp, used by another without a barrier between.
    let mutant = good
        .with("bar.sync 0;\n", "")
        .with("setp.eq.u32 %p1, %r0, 0;", "setp.eq.u32 %p1, %r0, 0;\nsetp.eq.u32 %p3, %r0, 32;");
    let mutant = mutant.with("@!%p1 bra WAIT;", "@!%p3 bra WAIT;");
    for seed in SEEDS {
        assert!(!mutant.run(seed).0.is_clean());
    }
}

#[test]
fn operands_of_copies() {
    let good = one_load();
    let copy = |good: &Program| good.line("cp.async.bulk.tensor");
    let mutant = good.with("tile.mbarrier::complete_tx::bytes [%r1]", "tile.mbarrier::complete_tx::bytes [%r1+64]");
    let report = &mutant.wrong(&[(Kind::Misaligned, copy(&mutant))])[0];
    assert!(report.findings[0].detail.contains("multiple of 128"), "{report}");
    let mutant = good.with("tile.mbarrier::complete_tx::bytes [%r1]", "tile.mbarrier::complete_tx::bytes [%r1+3200]");
    mutant.wrong(&[(Kind::OutOfBounds, copy(&mutant)), (Kind::BarrierMisuse, copy(&mutant))]);
    let mutant = good.with("tensor.2d.shared", "tensor.3d.shared").with("{0, 0}", "{0, 0, 0}");
    let report = &mutant.wrong(&[(Kind::CopyMisuse, copy(&mutant))])[0];
    assert!(report.findings[0].detail.contains("3 coordinates for a tensor map of 2 dimensions"), "{report}");
    // No map at all, or not all of one.
    let mutant = good.with("[%rd0, {0, 0}]", "[%rd2, {0, 0}]");
    let report = &mutant.wrong(&[(Kind::CopyMisuse, copy(&mutant))])[0];
    assert!(report.findings[0].detail.contains("tensor map"), "{report}");
    let mutant = good.with("[%rd0, {0, 0}]", "[%rd0+32, {0, 0}]");
    mutant.wrong(&[(Kind::Misaligned, copy(&mutant))]);
    let mutant = good.with("[%rd0, {0, 0}]", "[%rd0+192, {0, 0}]");
    mutant.wrong(&[(Kind::CopyMisuse, copy(&mutant))]);
    let mutant = good.with("{0, 0}], [full]", "{0, 0}], [full+4]");
    mutant.wrong(&[(Kind::Misaligned, copy(&mutant))]);
    // Consecutive bytes.
    let line = |size: &str, from: &str, to: &str| {
        let copy = format!(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{to}], [{from}], {size}, [full];"
        );
        good.with(LOAD, &format!("mov.u32 %r9, 1000;\n{copy}"))
    };
    let at = |mutant: &Program| mutant.line("cp.async.bulk.shared");
    let mutant = line("%r9", "%rd2", "%r1");
    let report = &mutant.wrong(&[(Kind::CopyMisuse, at(&mutant))])[0];
    assert!(report.findings[0].detail.contains("the size is 1000 bytes"), "{report}");
    let mutant = line("1024", "%rd2+8", "%r1");
    mutant.wrong(&[(Kind::Misaligned, at(&mutant))]);
    let mutant = line("1024", "%rd2", "%r1+8");
    mutant.wrong(&[(Kind::Misaligned, at(&mutant))]);
    let mutant = line("1024", "%rd2+16", "%r1");
    mutant.wrong(&[(Kind::OutOfBounds, at(&mutant))]);
}

const FENCE: &str = "fence.proxy.async.shared::cta;";
const STORE: &str = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {0, 0}], [%r1];";

/// All threads write the tile, one stores it.
fn one_store() -> Program {
    Program::new(
        256,
        8,
        &format!(
            "ld.global.u32 %r4, [%rd6];\nst.shared.u32 [%r3], %r4;\n{FENCE}\nbar.sync 0;\n@!%p1 bra OVER;\n{STORE}\n\
             cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\nOVER:"
        ),
    )
}

#[test]
fn one_store_and_its_mistakes() {
    let good = one_store();
    good.right(0);
    good.with("fence.proxy.async.shared::cta;", "fence.proxy.async;").right(0);
    good.with(STORE, "cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r1], 1024;").right(0);

    // No fence; of the wrong memory; by the thread that stores, after the barrier.
    let store = good.line(STORE);
    let mutant = good.with(FENCE, "mov.u32 %r9, 0;");
    let report = &mutant.wrong(&[(Kind::MissingProxyFence, store)])[0];
    assert_eq!(report.findings[0].other.as_ref().unwrap().place.line, mutant.line("st.shared"), "{report}");
    good.with(FENCE, "fence.proxy.async.global;").wrong(&[(Kind::MissingProxyFence, store)]);
    good.with(FENCE, "fence.acq_rel.cta;").wrong(&[(Kind::MissingProxyFence, store)]);
    good.with(FENCE, "@%p1 fence.proxy.async.shared::cta;").wrong(&[(Kind::MissingProxyFence, store)]);
    let mutant = good.with(&format!("{FENCE}\nbar.sync 0;"), &format!("bar.sync 0;\n{FENCE}"));
    mutant.wrong(&[(Kind::LateProxyFence, store)]).iter().for_each(|report| assert!(report.is_clean(), "{report}"));
    // The same in a thread that does not store.
    let mutant = good.with(&format!("{FENCE}\nbar.sync 0;"), &format!("bar.sync 0;\n@!%p1 {FENCE}"));
    mutant.wrong(&[(Kind::MissingProxyFence, store)]);
    // A fence before the write.
    let mutant = good.with(FENCE, "mov.u32 %r9, 0;").with("st.shared.u32", &format!("{FENCE} st.shared.u32"));
    mutant.wrong(&[(Kind::MissingProxyFence, store)]);
    // No barrier: other warps may not have written yet.
    let mutant = good.with("bar.sync 0;", "mov.u32 %r9, 0;");
    for seed in SEEDS {
        let (report, _) = mutant.run(seed);
        assert!(!report.is_clean(), "{report}");
        assert!(report.findings.iter().any(|f| [Kind::Race, Kind::UninitialisedRead].contains(&f.kind)), "{report}");
    }

    // No wait, no commit, a wait by somebody else, a wait for older groups only.
    good.with("cp.async.bulk.wait_group.read 0;\n", "").wrong(&[(Kind::UnfinishedCopy, store)]);
    good.with("cp.async.bulk.commit_group;", "mov.u32 %r9, 0;").wrong(&[(Kind::UnfinishedCopy, store)]);
    good.with("wait_group.read 0", "wait_group.read 1").wrong(&[(Kind::UnfinishedCopy, store)]);
    let mutant = good.with("cp.async.bulk.wait_group.read 0;\nOVER:", "OVER:\n@!%p1 cp.async.bulk.wait_group.read 0;");
    mutant.wrong(&[(Kind::UnfinishedCopy, store)]);

    // The tile is written again before the store has read it, by its issuer or another warp.
    let again = "st.shared.u32 [%r3], 0;";
    let mutant = good.with("cp.async.bulk.wait_group.read 0;", &format!("{again}\ncp.async.bulk.wait_group.read 0;"));
    mutant.wrong(&[(Kind::Race, mutant.line(again))]);
    let mutant = good.with("OVER:", &format!("OVER:\n{again}"));
    mutant.unordered(again, STORE);
    good.with("OVER:", &format!("OVER:\nbar.sync 0;\n{again}")).right(0);
    // Reading is fine.
    good.with("cp.async.bulk.wait_group.read 0;", "ld.shared.u32 %r4, [%r3];\ncp.async.bulk.wait_group.read 0;")
        .right(0);

    // What was stored is read back: that takes more than the source's being read.
    let back = "ld.global.u32 %r5, [%rd5];";
    let mutant = good.with("OVER:", &format!("OVER:\nbar.sync 0;\n{back}"));
    mutant.wrong(&[(Kind::Race, mutant.line(back))]);
    mutant.with("wait_group.read 0", "wait_group 0").right(0);
    // An ordinary store to the same place.
    let mutant = good.with("OVER:", "OVER:\nst.global.u32 [%rd5], %r4;");
    mutant.unordered("st.global.u32 [%rd5]", STORE);
    let mutant = good.with("bar.sync 0;", "st.global.u32 [%rd5], %r4;\nbar.sync 0;");
    mutant.wrong(&[(Kind::MissingProxyFence, mutant.line(STORE))]);
    mutant.with(FENCE, "mov.u32 %r9, 0;").with("bar.sync 0;", "fence.proxy.async;\nbar.sync 0;").right(0);

    // Nobody wrote a part of the tile.
    let mutant = good.with("st.shared.u32 [%r3], %r4;", "@!%p1 st.shared.u32 [%r3], %r4;");
    mutant.wrong(&[(Kind::UninitialisedRead, mutant.line(STORE))]);
    good.with("{0, 0}", "{0, -1}").wrong(&[(Kind::CopyMisuse, store)]);
    let report = &good.with("{0, 0}", "{-4, 0}").wrong(&[(Kind::CopyMisuse, store)])[0];
    assert!(report.findings[0].detail.contains("negative coordinate: -4 in dimension 0"), "{report}");
}

/// Warp 0 fills a ring of two tiles, the other eight warps add 1 and store what they read, tile after tile.
fn ring() -> Program {
    Program::new(
        288,
        56,
        "@!%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
mbarrier.init.shared.b64 [full+8], 1;
mbarrier.init.shared.b64 [empty], 256;
mbarrier.init.shared.b64 [empty+8], 256;
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0;
mov.u32 %r4, 0;
mov.u32 %r5, full;
mov.u32 %r6, empty;
setp.ge.u32 %p4, %r0, 32;
@%p4 bra CONSUME;
PRODUCE:
and.b32 %r7, %r4, 1;
shl.b32 %r8, %r7, 3;
add.u32 %r9, %r5, %r8;
add.u32 %r10, %r6, %r8;
shr.u32 %r11, %r4, 1;
and.b32 %r11, %r11, 1;
xor.b32 %r12, %r11, 1;
FREE:
mbarrier.try_wait.parity.shared.b64 %p2, [%r10], %r12;
@!%p2 bra FREE;
elect.sync _|%p5, 0xffffffff;
mad.lo.u32 %r13, %r7, 1024, %r1;
shl.b32 %r14, %r4, 3;
@%p5 mbarrier.arrive.expect_tx.shared.b64 _, [%r9], 1024;
@%p5 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r13], [%rd0, {0, %r14}], [%r9];
add.u32 %r4, %r4, 1;
setp.lt.u32 %p3, %r4, %r20;
@%p3 bra PRODUCE;
bra DONE;
CONSUME:
and.b32 %r7, %r4, 1;
shl.b32 %r8, %r7, 3;
add.u32 %r9, %r5, %r8;
add.u32 %r10, %r6, %r8;
shr.u32 %r11, %r4, 1;
and.b32 %r11, %r11, 1;
ARRIVED:
mbarrier.try_wait.parity.shared.b64 %p2, [%r9], %r11;
@!%p2 bra ARRIVED;
mad.lo.u32 %r13, %r7, 1024, %r3;
ld.shared.u32 %r15, [%r13+-128];
mbarrier.arrive.shared.b64 _, [%r10];
add.u32 %r15, %r15, 1;
mad.wide.u32 %rd7, %r4, 1024, %rd5;
st.global.u32 [%rd7+-128], %r15;
add.u32 %r4, %r4, 1;
setp.lt.u32 %p3, %r4, %r20;
@%p3 bra CONSUME;
DONE:",
    )
}

#[test]
fn a_ring_and_its_mistakes() {
    let good = ring();
    good.right(1);
    let (load, read) = (good.line("cp.async.bulk"), good.line("ld.shared.u32"));
    // The producer does not wait, or for the wrong parity: the slot is still read, or the copy before is not over.
    let mutant = good.with("@!%p2 bra FREE;", "mov.u32 %r19, 0;");
    for report in SEEDS.map(|seed| mutant.run(seed).0) {
        assert!(!report.is_clean());
        // At the copy, or at the wait that is now phases behind, or at whoever reads what is overwritten.
        let lines =
            [load, read, mutant.line("[%r9], %r11;"), mutant.line("@%p5 mbarrier"), mutant.line("[%r10], %r12")];
        assert!(lines.contains(&report.findings[0].place.line), "{report}");
    }
    let mutant = good.with("xor.b32 %r12, %r11, 1;", "mov.u32 %r12, %r11;");
    mutant.wrong(&[(Kind::Deadlock, good.line("[%r10], %r12")), (Kind::Deadlock, good.line("[%r9], %r11;"))]);
    // The slot is given back before it is read.
    let mutant = good
        .with("mbarrier.arrive.shared.b64 _, [%r10];\n", "")
        .with("ld.shared.u32 %r15", "mbarrier.arrive.shared.b64 _, [%r10];\nld.shared.u32 %r15");
    let (load, read) = (mutant.line("cp.async.bulk"), mutant.line("ld.shared.u32"));
    mutant.wrong(&[(Kind::Race, load), (Kind::InFlight, read)]);
    // The consumers do not wait.
    let mutant = good.with("@!%p2 bra ARRIVED;", "mov.u32 %r19, 0;");
    for report in SEEDS.map(|seed| mutant.run(seed).0) {
        assert!(!report.is_clean());
    }
    // A slot too small.
    let mutant = good.with("mad.lo.u32 %r13, %r7, 1024, %r1;", "mad.lo.u32 %r13, %r7, 512, %r1;");
    for report in SEEDS.map(|seed| mutant.run(seed).0) {
        assert_eq!(report.findings.first().map(|f| f.kind), Some(Kind::Race), "{report}");
    }
    // A warp more than the producer waits for.
    let mutant = good.with("[empty], 256;", "[empty], 224;").with("[empty+8], 256;", "[empty+8], 224;");
    for report in SEEDS.map(|seed| mutant.run(seed).0) {
        assert!(!report.is_clean());
    }
    // The bytes of the second slot are wrong by a chunk.
    let mutant = good.with("[%r9], 1024;", "[%r9], 1040;");
    mutant.wrong(&[(Kind::Deadlock, good.line("[%r9], %r11;")), (Kind::Deadlock, good.line("[%r10], %r12"))]);
}

/// Load, add 1 in place, store, with one tile that is used again and again.
fn in_place() -> Program {
    Program::new(
        256,
        40,
        "@%p1 mbarrier.init.shared.b64 [full], 1;
fence.mbarrier_init.release.cluster;
bar.sync 0;
mov.u32 %r4, 0;
NEXT:
shl.b32 %r5, %r4, 3;
and.b32 %r6, %r4, 1;
@%p1 cp.async.bulk.wait_group.read 0;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [full], 1024;
@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd0, {0, %r5}], [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], %r6;
@!%p2 bra WAIT;
ld.shared.u32 %r7, [%r3];
add.u32 %r7, %r7, 1;
st.shared.u32 [%r3], %r7;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p1 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {0, %r5}], [%r1];
@%p1 cp.async.bulk.commit_group;
add.u32 %r4, %r4, 1;
setp.lt.u32 %p3, %r4, %r20;
@%p3 bra NEXT;
@%p1 cp.async.bulk.wait_group.read 0;",
    )
}

#[test]
fn a_tile_used_again_and_its_mistakes() {
    let good = in_place();
    good.right(1);
    let load = good.line("[%rd0, {0, %r5}]");
    // The next load does not wait for the store before it.
    good.with("@%p1 cp.async.bulk.wait_group.read 0;\n@%p1 mbarrier", "@%p1 mbarrier").wrong(&[(Kind::Race, load - 1)]);
    good.with(
        "@%p1 cp.async.bulk.wait_group.read 0;\n@%p1 mbarrier",
        "@%p1 cp.async.bulk.wait_group.read 1;\n@%p1 mbarrier",
    )
    .wrong(&[(Kind::Race, load)]);
    // Threads overwrite the tile before all have waited and written: the barrier is missing.
    let mutant = good.with("bar.sync 0;\n@%p1 cp.async.bulk.tensor", "@%p1 cp.async.bulk.tensor");
    for report in SEEDS.map(|seed| mutant.run(seed).0) {
        assert!(!report.is_clean());
    }
    good.with("fence.proxy.async.shared::cta;\n", "")
        .wrong(&[(Kind::MissingProxyFence, good.line("[%rd1, {0, %r5}]") - 1)]);
    // The parity stays the same.
    let mutant = good.with("and.b32 %r6, %r4, 1;", "mov.u32 %r6, 0;");
    for report in SEEDS.map(|seed| mutant.run(seed).0) {
        assert!(!report.is_clean());
    }
}
