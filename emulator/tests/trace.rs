//! What a trace tells of the first cluster, and that nothing else runs.

use crate::common::{Bench, module};
use tilewright_emulator::trace::{Event, SharedPlace, Step, Trace};
use tilewright_emulator::{Options, Report};

/// Behind twelve bytes, at a multiple of eight: the emulator has room in between, of which a trace does not tell.
const BARRIER: SharedPlace = SharedPlace { rank: 0, offset: 16 };

/// Two warps: all meet, the first thread arrives, and the second warp waits for that.
fn program() -> String {
    module(
        ".param .u64 y",
        ".shared .align 4 .b8 before[12];\n.shared .align 8 .b64 bar;\n\
         mov.u32 %r0, %tid.x;\nld.param.u64 %rd1, [y];\nsetp.eq.u32 %p1, %r0, 0;\nsetp.ge.u32 %p2, %r0, 32;\n\
         @%p1 mbarrier.init.shared.b64 [bar], 1;\n@%p1 st.shared.u8 [before], 0;\nbar.sync 0;\n@%p2 bra WAIT;\n\
         @!%p1 bra END;\nmbarrier.arrive.shared.b64 %rd3, [bar];\nbra END;\nWAIT:\n\
         mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;\n@!%p3 bra WAIT;\nEND:\n\
         mul.wide.u32 %rd2, %r0, 4;\nadd.u64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], %r0;\nret;",
    )
}

fn traced(seed: u64, trace: Option<u64>) -> (Report, Vec<u32>) {
    let mut bench = Bench::new(3, 64);
    let y = bench.buffer("y", &[7; 64]);
    bench.options = Options { seed, trace, ..Options::default() };
    let report = bench.run(&program());
    (report, bench.words(y, 64))
}

fn steps(trace: &Trace, of: impl Fn(&Event) -> bool) -> Vec<&Step> {
    trace.events.iter().filter(|event| of(event)).map(|event| &event.step).collect()
}

#[test]
fn events_come_in_an_order_that_can_be() {
    for seed in 0..20 {
        let (report, words) = traced(seed, Some(1 << 16));
        assert!(report.is_clean(), "{:?}", report.findings);
        // One block of three.
        assert_eq!((report.counters.ctas, report.counters.warps), (1, 2));
        assert_eq!(words, (0..64).collect::<Vec<u32>>());
        let trace = report.trace.expect("a trace");
        assert!(trace.complete && trace.warps == 2 && trace.ran.len() == 2);
        assert_eq!(trace.ran.iter().sum::<u64>(), report.counters.warp_instructions);
        let come = Step::Come { id: 0, waits: true };
        let met = Step::Met { rank: 0, id: 0 };
        let is_meeting = |event: &Event| matches!(event.step, Step::Come { .. } | Step::Met { .. });
        assert_eq!(steps(&trace, is_meeting), [&come, &come, &met], "seed {seed}");
        let arrive = Step::Arrive { at: BARRIER, count: 1 };
        let end = Step::PhaseEnd { at: BARRIER, phases: 1 };
        let is_phase = |event: &Event| matches!(event.step, Step::Arrive { .. } | Step::PhaseEnd { .. });
        assert_eq!(steps(&trace, is_phase), [&arrive, &end], "seed {seed}");
        // The second warp looks in vain once at most, as far as is told, and then sees the end.
        let looks = steps(&trace, |event| event.warp == 1 && matches!(event.step, Step::Wait { .. }));
        let ended = Step::Wait { at: BARRIER, ended: true };
        let in_vain = Step::Wait { at: BARRIER, ended: false };
        assert!(looks == [&ended] || looks == [&in_vain, &ended], "seed {seed}: {looks:?}");
        let at = |step: &Step| trace.events.iter().position(|event| event.step == *step);
        assert!(at(&met) < at(&arrive) && at(&end) < at(&ended), "seed {seed}");
        // Instructions of a warp only become more.
        for warp in 0..2 {
            let own: Vec<u64> = trace.events.iter().filter(|e| e.warp == warp).map(|e| e.at).collect();
            assert!(own.is_sorted() && own.last() < Some(&trace.ran[warp as usize]), "seed {seed}: {own:?}");
        }
        assert_eq!(traced(seed, Some(1 << 16)).0.trace, Some(trace));
    }
}

#[test]
fn a_trace_ends_where_it_is_asked_to() {
    let (report, words) = traced(3, Some(5));
    let trace = report.trace.as_ref().expect("a trace");
    assert!(report.is_clean() && !trace.complete, "{:?}", report.findings);
    assert_eq!(trace.ran.iter().sum::<u64>(), 5);
    assert_eq!(words, [7; 64]);
    let (report, words) = traced(3, None);
    assert_eq!((report.trace, report.counters.ctas), (None, 3));
    assert_eq!(words, (0..64).collect::<Vec<u32>>());
}
