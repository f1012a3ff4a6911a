//! Planted bugs that the plain ones of `findings` do not reach, and correct code that looks like them: each bug is
//! reported at its line, and nothing else is.

use crate::common::{Bench, module, only};
use tilewright_emulator::{Kind, Options};

const XY: &str = ".param .u64 x, .param .u64 y";

/// Shared words `s`, byte offsets 4·tid in `%r4` and 2·tid in `%r5`, the warp in `%r3`.
const PROLOGUE: &str = "\
.shared .align 16 .b8 s[4096];
ld.param.u64 %rd0, [x];
ld.param.u64 %rd1, [y];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %laneid;
shr.u32 %r3, %r0, 5;
mov.u32 %r2, s;
shl.b32 %r4, %r0, 2;
add.u32 %r4, %r4, %r2;
shl.b32 %r5, %r0, 1;
add.u32 %r5, %r5, %r2;
";
/// Line of the first instruction after the prologue.
const BODY: u32 = 16;

fn kernel(body: &str) -> String {
    module(XY, &format!("{PROLOGUE}{body}\nret;"))
}

fn bench(block: u32) -> Bench {
    let mut bench = Bench::new(1, block);
    bench.buffer("x", &vec![7; block as usize]);
    bench.empty("y", block as usize);
    bench
}

#[test]
fn a_race_under_one_order_only() {
    // Warp 0 stores data and raises a flag; warp 1 reads the data if it sees the flag, and no fence or barrier orders
    // the two.
    let body = "setp.eq.u32 %p0, %r0, 0;\n@%p0 st.volatile.shared.u32 [s+1024], 0;\nbar.sync 0;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra READ;\n@%p0 st.shared.u32 [s+512], 5;\n@%p0 st.volatile.shared.u32 [s+1024], 1;\nbra DONE;\nREAD:\nld.volatile.shared.u32 %r6, [s+1024];\nsetp.ne.u32 %p2, %r6, 0;\n@%p2 ld.shared.u32 %r7, [s+512];\nDONE:";
    let mut bench = bench(64);
    let mut seen = [0; 2];
    for seed in 0..32 {
        bench.options = Options { seed, ..bench.options };
        let report = bench.run(&kernel(body));
        if report.findings.is_empty() {
            seen[0] += 1;
            continue;
        }
        let finding = only(&report, Kind::Race, BODY + 11);
        assert_eq!(finding.other.as_ref().unwrap().place.line, BODY + 5, "{finding}");
        seen[1] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}: both orders occur");
}

#[test]
fn halves_of_words_by_pairs_of_lanes() {
    // Every lane reads and writes its own half in place, whole words of a warp at a time.
    let own =
        "cvt.u16.u32 %h0, %r0;\nst.shared.b16 [%r5], %h0;\nld.shared.b16 %h1, [%r5];\nst.shared.b16 [%r5], %h1;\n";
    bench(64).clean(&kernel(own));
    // A neighbour's half in the same epoch is a race, whichever half it is.
    for (flip, line) in [(2, BODY + 6), (4, BODY + 6)] {
        let other = format!("{own}xor.b32 %r6, %r5, {flip};\nmov.u32 %r7, 0;\nld.shared.b16 %h2, [%r6];");
        let report = bench(32).run(&kernel(&other));
        let finding = only(&report, Kind::Race, line);
        assert_eq!(finding.other.as_ref().unwrap().place.line, BODY + 3, "{finding}");
        // A barrier of the warp makes it right.
        bench(32).clean(&kernel(&other.replace("mov.u32 %r7, 0;", "bar.warp.sync 0xffffffff;")));
    }
    // Whole words over halves of two lanes.
    let words = format!("{own}mov.u32 %r7, 0;\nsetp.lt.u32 %p0, %r0, 16;\n@%p0 ld.shared.u32 %r6, [%r4];");
    only(&bench(32).run(&kernel(&words)), Kind::Race, BODY + 6);
    bench(32).clean(&kernel(&words.replace("mov.u32 %r7, 0;", "bar.sync 0;")));
}

#[test]
fn reads_of_one_word_by_many() {
    let body = |barrier: &str| {
        format!(
            "setp.eq.u32 %p0, %r0, 33;\n@%p0 st.shared.u32 [s+64], 1;\nbar.sync 0;\nld.shared.u32 %r6, [s+64];\n{barrier}\n@%p0 st.shared.u32 [s+64], 2;"
        )
    };
    let report = bench(64).run(&kernel(&body("mov.u32 %r7, 0;")));
    assert!(
        report.findings.iter().all(|f| f.kind == Kind::Race && [BODY + 3, BODY + 5].contains(&f.place.line)),
        "{report}"
    );
    assert!(!report.findings.is_empty());
    bench(64).clean(&kernel(&body("bar.sync 0;")));
    // The only reader may write.
    bench(64).clean(&kernel("st.shared.u32 [%r4], 1;\nld.shared.u32 %r6, [%r4];\nst.shared.u32 [%r4], 2;"));
}

#[test]
fn one_store_of_a_warp_to_one_word() {
    for space in ["shared", "global"] {
        let to = if space == "shared" { "s" } else { "%rd1" };
        let report = bench(32).run(&kernel(&format!("st.{space}.u32 [{to}], 5;")));
        only(&report, Kind::SameValueRace, BODY);
        let report = bench(32).run(&kernel(&format!("st.{space}.u32 [{to}], %r0;")));
        assert!(report.findings.iter().all(|f| f.kind == Kind::Race && f.place.line == BODY), "{report}");
        assert!(!report.is_clean());
    }
}

#[test]
fn vectors_and_words_meet() {
    // 16 bytes a lane, read word by word by other lanes.
    let body = |barrier: &str| {
        format!(
            "shl.b32 %r6, %r0, 4;\nadd.u32 %r6, %r6, %r2;\nst.shared.v4.u32 [%r6], {{%r0, %r0, %r0, %r0}};\n{barrier}\nld.shared.u32 %r7, [%r4];"
        )
    };
    only(&bench(64).run(&kernel(&body("mov.u32 %r7, 0;"))), Kind::Race, BODY + 4);
    bench(64).clean(&kernel(&body("bar.sync 0;")));
}

#[test]
fn the_host_makes_no_difference() {
    // What runs on the host's best instructions and on those of every host of its kind is the same, bit for bit.
    let body = "cvt.rn.f32.u32 %f0, %r0;\nfma.rn.f32 %f1, %f0, 0f3EAAAAAB, %f0;\nfma.rn.ftz.f32 %f2, %f1, 0f00800001, 0f80800000;\nex2.approx.f32 %f3, %f1;\nlg2.approx.f32 %f4, %f1;\nadd.f32 %f5, %f2, %f3;\nfma.rn.f32 %f5, %f4, %f5, %f1;\nst.shared.f32 [%r4], %f5;\nxor.b32 %r6, %r4, 4;\nld.shared.f32 %f6, [%r6];\nmul.wide.u32 %rd4, %r0, 4;\nadd.u64 %rd4, %rd4, %rd1;\nst.global.f32 [%rd4], %f6;";
    let run = |baseline: bool| {
        let mut bench = bench(100);
        bench.options = Options { baseline, ..bench.options };
        let report = bench.run(&kernel(body));
        let y = u64::from_le_bytes(bench.args[1].0[..].try_into().unwrap());
        (report, bench.words(y, 100))
    };
    assert_eq!(run(false), run(true));
    assert!(!run(true).0.is_clean(), "the exchange lacks a barrier");
}
