//! Dependent launches: each way to access global memory is found in a thread that has not waited for earlier launches,
//! and nothing in one that has.

use crate::common::{Bench, module, only};
use tilewright_emulator::{Kind, Launch, Program, Report};

/// `%rd0` and `%rd1` are buffers of 64 words. 5 lines, the first of them line 5.
const PROLOGUE: &str = "\
.shared .align 16 .b8 tile[256]; .shared .align 8 .b64 bar;
ld.param.u64 %rd0, [x];
ld.param.u64 %rd1, [y];
mov.u32 %r0, %tid.x;
mov.u32 %r2, tile;
";
/// Line of the first instruction after the prologue.
const BODY: u32 = 10;

fn run(body: &str, dependent: bool) -> Report {
    let mut bench = Bench::new(1, 1);
    bench.buffer("x", &[7; 64]);
    bench.buffer("y", &[0; 64]);
    let text = module(".param .u64 x, .param .u64 y", &format!("{PROLOGUE}{body}\nret;"));
    let launch = Launch { dependent, ..bench.launch() };
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    program.launch(&launch, &bench.memory, &bench.options).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Each with the line of the access.
const ACCESSES: [(&str, u32); 7] = [
    ("ld.global.u32 %r3, [%rd0];", 0),
    ("ld.global.nc.v4.u32 {%r3, %r4, %r5, %r6}, [%rd0];", 0),
    ("ld.u32 %r3, [%rd0];", 0),
    ("st.global.u32 [%rd1], %r0;", 0),
    ("atom.global.add.u32 %r3, [%rd1], 1;", 0),
    ("cp.async.ca.shared.global [%r2], [%rd0], 16;\ncp.async.wait_all;", 0),
    (
        "mbarrier.init.shared.b64 [bar], 1;\nfence.proxy.async.shared::cta;\n\
         mbarrier.arrive.expect_tx.shared.b64 %rd2, [bar], 64;\n\
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd0], 64, [bar];\n\
         WAIT:\nmbarrier.try_wait.parity.shared.b64 %p0, [bar], 0;\n@!%p0 bra WAIT;",
        3,
    ),
];

#[test]
fn accesses_come_behind_the_wait() {
    for (access, line) in ACCESSES {
        let report = run(access, true);
        let finding = only(&report, Kind::BeforeWait, BODY + line);
        assert!(finding.kind.is_failure() && finding.detail.contains("griddepcontrol.wait"), "{report}");
        let waits = run(&format!("griddepcontrol.wait;\n{access}"), true);
        assert!(waits.findings.is_empty(), "{waits}");
        // To let others begin is not to wait.
        let allows = run(&format!("griddepcontrol.launch_dependents;\n{access}"), true);
        only(&allows, Kind::BeforeWait, BODY + line + 1);
        let late = run(&format!("{access}\ngriddepcontrol.wait;"), true);
        only(&late, Kind::BeforeWait, BODY + line);
        assert!(run(access, false).findings.is_empty(), "other launches begin when those have ended");
    }
}

#[test]
fn shared_memory_and_parameters_are_the_launch_s_own() {
    let report = run("st.shared.u32 [tile], %r0;\nld.shared.u32 %r3, [tile];\nbar.sync 0;", true);
    assert!(report.findings.is_empty(), "{report}");
}
