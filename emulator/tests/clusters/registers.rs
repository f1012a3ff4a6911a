//! `setmaxnreg`: registers that warpgroups hand to each other.

use super::{Mutation, broken, right};
use crate::common::{Bench, module};
use tilewright_emulator::Kind;

/// Three warpgroups: the first gives registers back, the others take them. 168 of each of 384 threads are 24 +
/// 240 + 240.
const BODY: &str = "\
mov.u32 %r0, %tid.x;
ld.param.u64 %rd0, [y];
mul.wide.u32 %rd1, %r0, 4;
add.u64 %rd1, %rd0, %rd1;
setp.lt.u32 %p0, %r0, 128;
@%p0 bra PRODUCER;
setmaxnreg.inc.sync.aligned.u32 240;
st.global.u32 [%rd1], 2;
bra DONE;
PRODUCER:
setmaxnreg.dec.sync.aligned.u32 24;
st.global.u32 [%rd1], 1;
DONE:
bar.sync 0;
ret;";

fn bench() -> (Bench, u64) {
    let mut bench = Bench::new(1, 384);
    let y = bench.empty("y", 384);
    (bench, y)
}

fn text(body: &str, directives: &str) -> String {
    module(".param .u64 y", body).replace(".param .u64 y) {", &format!(".param .u64 y) {directives} {{"))
}

const USUAL: &str = ".reqntid 384 .minnctapersm 1";

#[test]
fn a_pool_that_balances() {
    let expected: Vec<u32> = (0..384).map(|i| if i < 128 { 1 } else { 2 }).collect();
    right(bench, &text(BODY, USUAL), &expected);
    // Nobody knows how many there are: the assembler ignores the instruction.
    let ignored = BODY.replace("dec.sync.aligned.u32 24", "dec.sync.aligned.u32 200");
    right(bench, &text(&ignored, ".reqntid 384"), &expected);
    // Twice, with a barrier in between.
    let twice = BODY.replace("PRODUCER:\n", "PRODUCER:\nsetmaxnreg.dec.sync.aligned.u32 40;\nbarrier.sync 1, 128;\n");
    right(bench, &text(&twice, USUAL), &expected);
}

#[test]
fn mistakes() {
    let mutant = |mutation: &Mutation<'_>| broken(|| bench().0, &text(BODY, USUAL), mutation);
    // 128 · (2 · 240 + 32) > 168 · 384.
    mutant(&Mutation {
        edits: &[("dec.sync.aligned.u32 24", "dec.sync.aligned.u32 32")],
        kinds: &[Kind::Deadlock],
        says: "waits for 72 more registers a thread",
    });
    mutant(&Mutation {
        edits: &[("setmaxnreg.dec.sync.aligned.u32 24;\n", "")],
        kinds: &[Kind::Deadlock],
        says: "waits for 72 more registers a thread",
    });
    mutant(&Mutation {
        edits: &[("dec.sync.aligned.u32 24", "dec.sync.aligned.u32 200")],
        kinds: &[Kind::RegisterMisuse],
        says: "`.dec` to 200 registers, where a thread has 168",
    });
    mutant(&Mutation {
        edits: &[("inc.sync.aligned.u32 240", "inc.sync.aligned.u32 160")],
        kinds: &[Kind::RegisterMisuse],
        says: "`.inc` to 160 registers, where a thread has 168",
    });
    // One warp of the producers does it.
    mutant(&Mutation {
        edits: &[
            (
                "setmaxnreg.dec.sync.aligned.u32 24;",
                "setp.lt.u32 %p1, %r0, 32;\n@%p1 setmaxnreg.dec.sync.aligned.u32 24;",
            ),
            ("setmaxnreg.inc.sync.aligned.u32 240;\n", ""),
        ],
        kinds: &[Kind::RegisterMisuse],
        says: "all four warps of a warpgroup execute every `setmaxnreg`",
    });
    mutant(&Mutation {
        edits: &[(
            "setmaxnreg.dec.sync.aligned.u32 24;",
            "setp.lt.u32 %p1, %r0, 32;\n@%p1 setmaxnreg.dec.sync.aligned.u32 24;\n@!%p1 setmaxnreg.dec.sync.aligned.u32 24;",
        )],
        kinds: &[Kind::RegisterMisuse],
        says: "of the same warpgroup executes another one",
    });
    mutant(&Mutation {
        edits: &[("PRODUCER:\n", "PRODUCER:\nsetmaxnreg.dec.sync.aligned.u32 40;\n")],
        kinds: &[Kind::RegisterMisuse],
        says: "the warpgroup must synchronise between two of them",
    });
    // Half a warp.
    mutant(&Mutation {
        edits: &[("setp.lt.u32 %p0, %r0, 128;", "setp.lt.u32 %p0, %r0, 144;")],
        kinds: &[Kind::BarrierDivergence, Kind::RegisterMisuse],
        says: "",
    });
}

#[test]
fn a_block_with_half_a_warpgroup() {
    let mut bench = Bench::new(1, 64);
    bench.empty("y", 384);
    let report = bench.run(&text(BODY, ".maxnreg 168"));
    assert!(report.to_string().contains("a warpgroup has four warps; the last one of this block has 2"), "{report}");
}
