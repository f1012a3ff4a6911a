//! Barriers, fences and mbarriers: two warps that hand something over. What orders nothing once it is gone leaves a
//! race after.

use tilewright_ptx::isa::{Op, Synchronization};
use tilewright_ptx::{Flag, Modifier};

use super::demo::{Demo, ROW, head, spread};

/// The first word of the thread that is 32 further.
fn other(thread: usize, x: &[u32]) -> u32 {
    x[(thread ^ 32) * ROW]
}

const WRITE: &str = "ld.global.b32 %r20, [%rd2];\nst.shared.b32 [%r1], %r20;\n";
const READ: &str = "xor.b32 %r3, %r1, 2048;\nld.shared.b32 %r21, [%r3];\nst.global.b32 [%rd3], %r21;\n";

/// Both warps write, come together, and read what the other has written.
fn meeting(lines: &str) -> Demo {
    Demo::new(format!("{WRITE}{lines}{READ}"), |thread, x| vec![other(thread, x)]).of(64)
}

fn barriers() -> Vec<Demo> {
    let mut all = Vec::new();
    for op in [Synchronization::Bar, Synchronization::Barrier] {
        for form in Op::Synchronization(op).forms() {
            for modifiers in spread(form, |_| false) {
                let head = head(form, &modifiers);
                let has = |flag| modifiers.contains(&Modifier::Flag(flag));
                if has(Flag::Arrive) {
                    // Warp 0 hands over and goes on; warp 1 waits.
                    let body = format!(
                        "{WRITE}setp.lt.u32 %p1, %r0, 32;\n@!%p1 bra B;\n{head} 3, 64;\nbra C;\nB:\nbar.sync 3, 64;\n{READ}C:\n"
                    );
                    all.push(Demo::new(body, |t, x| if t < 32 { vec![] } else { vec![other(t, x)] }).of(64));
                } else if has(Flag::Red) {
                    let source = "and.b32 %r22, %r20, 1;\nsetp.ne.u32 %p2, %r22, 0;\n";
                    let (result, told) =
                        if has(Flag::Popc) { ("%r23", "") } else { ("%p3", "selp.u32 %r23, 1, 0, %p3;\n") };
                    let word: u32 = if has(Flag::Popc) {
                        0
                    } else if has(Flag::And) {
                        1
                    } else {
                        2
                    };
                    for operands in ["0, %p2", "1, 64, !%p2"] {
                        let negated = operands.contains('!');
                        let body = format!(
                            "{WRITE}{source}{head} {result}, {operands};\n{told}st.global.b32 [%rd3+4], %r23;\n{READ}"
                        );
                        all.push(
                            Demo::new(body, move |thread, x| {
                                let set = (0..64).filter(|t| (x[t * ROW] & 1 == 1) != negated).count() as u32;
                                vec![other(thread, x), [set, u32::from(set == 64), u32::from(set > 0)][word as usize]]
                            })
                            .of(64),
                        );
                    }
                } else {
                    all.push(meeting(&format!("{head} 0;\n")));
                    all.push(meeting(&format!("{head} 5, 64;\n")));
                }
            }
        }
    }
    // Lanes of one warp.
    all.push(Demo::new(format!("{WRITE}bar.warp.sync 0xffffffff;\n{}", READ.replace("2048", "960")), |thread, x| {
        vec![x[(thread ^ 15) * ROW]]
    }));
    all
}

/// Warp 0 writes a word and then a flag; warp 1 waits for the flag and reads the word.
fn handover(write: &str, read: &str) -> Demo {
    let body = format!(
        "mov.u32 %r5, tile;\nsetp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.b32 [%r5+4092], 0;\nbar.sync 0;\nsetp.eq.u32 %p2, %r0, 32;\n@%p1 bra A;\n\
         @%p2 bra B;\nbra C;\nA:\nld.global.b32 %r20, [%rd2];\nst.shared.b32 [%r5], %r20;\n{write}st.volatile.shared.b32 [%r5+4092], 1;\nbra C;\n\
         B:\nld.volatile.shared.b32 %r21, [%r5+4092];\nsetp.eq.u32 %p3, %r21, 0;\n@%p3 bra B;\n{read}ld.shared.b32 %r22, [%r5];\n\
         st.global.b32 [%rd3], %r22;\nC:\n"
    );
    Demo::new(body, |thread, x| if thread == 32 { vec![x[0]] } else { vec![] }).of(64)
}

fn fences() -> Vec<Demo> {
    let mut all = Vec::new();
    for op in [Synchronization::Membar, Synchronization::Fence, Synchronization::FenceProxy] {
        for form in Op::Synchronization(op).forms() {
            for modifiers in spread(form, |_| false) {
                let head = head(form, &modifiers);
                if head.contains("proxy.async") && !head.contains("::generic") {
                    all.push(super::copies::proxy(&head));
                } else if head.contains("proxy") || head.contains("restrict") || head.contains("mbarrier_init") {
                    // Between proxies, blocks of a cluster and uses of mbarriers, which are not told apart here.
                    let operands = if head.contains("tensormap::generic.acquire") { " [%rd2], 128" } else { "" };
                    let body = format!("ld.global.b32 %r20, [%rd2];\n{head}{operands};\nst.global.b32 [%rd3], %r20;\n");
                    all.push(Demo::new(body, |thread, x| vec![x[thread * ROW]]).silent());
                } else if head.contains("fence.acquire") {
                    all.push(handover("fence.acq_rel.cta;\n", &format!("{head};\n")));
                } else if head.contains("fence.release") {
                    all.push(handover(&format!("{head};\n"), "fence.acq_rel.cta;\n"));
                } else {
                    all.push(handover(&format!("{head};\n"), &format!("{head};\n")));
                }
            }
        }
    }
    all.push(
        Demo::new("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;\nst.global.b32 [%rd3], 1;\n", |_, _| {
            vec![1]
        })
        .silent(),
    );
    all
}

const INIT: &str =
    "mov.u32 %r35, %tid.x;\nsetp.eq.u32 %p1, %r35, 0;\n@%p1 mbarrier.init.shared.b64 [bar], 64;\nbar.sync 0;\n";
const WAIT: &str = "W:\nmbarrier.test_wait.shared.b64 %p2, [bar], %rd5;\n@!%p2 bra W;\n";
const GENERIC: &str = "mov.u64 %rd6, bar;\ncvta.shared.u64 %rd6, %rd6;\n";

/// The mbarrier as the operand of an instruction: by name where the space is named, else by its generic address.
fn place(head: &str) -> &'static str {
    if head.contains(".shared") { "[bar]" } else { "[%rd6]" }
}

fn mbarriers() -> Vec<Demo> {
    let mut all = Vec::new();
    let each = |op: Synchronization| {
        let forms = Op::Synchronization(op).forms().iter();
        forms.flat_map(|form| spread(form, |_| false).into_iter().map(|modifiers| head(form, &modifiers)))
    };
    for head in each(Synchronization::MbarrierInit) {
        let init =
            format!("{GENERIC}{}", INIT.replace("mbarrier.init.shared.b64 [bar]", &format!("{head} {}", place(&head))));
        all.push(meeting(&format!("{init}mbarrier.arrive.shared.b64 %rd5, [bar];\n{WAIT}")));
    }
    for head in each(Synchronization::MbarrierInval) {
        // Without it, a second initialisation is misuse.
        let again = format!("@%p1 {head} {};\n@%p1 mbarrier.init.shared.b64 [bar], 64;\nbar.sync 0;\n", place(&head));
        all.push(meeting(&format!("{GENERIC}{INIT}{again}mbarrier.arrive.shared.b64 %rd5, [bar];\n{WAIT}")));
    }
    for head in each(Synchronization::MbarrierArrive).chain(each(Synchronization::MbarrierArriveDrop)) {
        let at = place(&head);
        let relaxed = head.contains("relaxed");
        if head.contains("shared::cluster") {
            all.push(remote(&head));
            continue;
        }
        let wait = |body: String| {
            // Relaxed arrivals hand nothing over: a barrier does.
            let order = if relaxed { "bar.sync 0;\n" } else { "" };
            meeting(&format!("{GENERIC}{INIT}{body}{WAIT}{order}"))
        };
        if head.contains("noComplete") {
            let body = format!(
                "{GENERIC}mbarrier.init.shared.b64 [bar], 5;\n{head} %rd5, {at}, 2;\nmbarrier.pending_count.b64 %r20, %rd5;\n\
                 mbarrier.arrive.shared.b64 %rd5, [bar];\nmbarrier.pending_count.b64 %r21, %rd5;\nst.global.v2.b32 [%rd3], {{%r20, %r21}};\n"
            );
            all.push(Demo::new(body, |_, _| vec![5, 3]).of(1));
        } else if head.contains("expect_tx") {
            // Thread 0 brings the bytes that all others expect.
            all.push(wait(format!("{head} %rd5, {at}, 16;\n@%p1 mbarrier.complete_tx.shared.b64 [bar], 1024;\n")));
            let sink = format!(
                "{GENERIC}{INIT}mov.u32 %r6, 0;\n{head} _, {at}, 16;\n@%p1 mbarrier.complete_tx.shared.b64 [bar], 1024;\n"
            );
            let parity = WAIT.replace("test_wait", "test_wait.parity").replace("%rd5", "%r6");
            all.push(meeting(&format!("{sink}{parity}bar.sync 0;\n")));
        } else {
            all.push(wait(format!("{head} %rd5, {at};\n")));
            all.push(wait(format!("{head} %rd5, {at}, 1;\n")));
        }
    }
    for head in each(Synchronization::MbarrierExpectTx).chain(each(Synchronization::MbarrierCompleteTx)) {
        // The phase ends when as many bytes have come as were expected: none, if one of the two is gone.
        let (mut expect, mut complete) =
            ("mbarrier.expect_tx.shared.b64 [bar]".to_owned(), "mbarrier.complete_tx.shared.b64 [bar]".to_owned());
        *(if head.contains("expect") { &mut expect } else { &mut complete }) = format!("{head} {}", place(&head));
        let body = format!(
            "{GENERIC}{INIT}@%p1 {expect}, 48;\nbar.sync 0;\nmbarrier.arrive.shared.b64 %rd5, [bar];\nbar.sync 0;\nselp.u32 %r22, 1, 0, %p1;\n\
             mbarrier.test_wait.shared.b64 %p2, [bar], %rd5;\nselp.u32 %r22, 1, 0, %p2;\nst.global.b32 [%rd3+4], %r22;\nbar.sync 0;\n\
             @%p1 {complete}, 48;\n{WAIT}"
        );
        let demo = Demo::new(format!("{WRITE}{body}{READ}"), |thread, x| vec![other(thread, x), 0]);
        all.push(demo.of(64));
    }
    for head in each(Synchronization::MbarrierTestWait).chain(each(Synchronization::MbarrierTryWait)) {
        let parity = head.contains("parity");
        let (at, phase) = (place(&head), if parity { "%r6" } else { "%rd5" });
        let order = if head.contains("relaxed") { "bar.sync 0;\n" } else { "" };
        let lines = format!(
            "{GENERIC}{INIT}mov.u32 %r6, 0;\nmbarrier.arrive.shared.b64 %rd5, [bar];\nW:\n{head} %p2, {at}, {phase};\n@!%p2 bra W;\n{order}"
        );
        all.push(meeting(&lines));
        if head.contains("try_wait") {
            all.push(meeting(&lines.replace(&format!("{phase};\n@!"), &format!("{phase}, 1000;\n@!"))));
        }
    }
    all
}

/// Arrivals by both blocks of a cluster at the mbarrier of the first, for which that one waits.
fn remote(head: &str) -> Demo {
    let expects = head.contains("expect_tx");
    let (operands, done) = match expects {
        true => (", 16", "setp.eq.u32 %p5, %r0, 0;\n@%p5 mbarrier.complete_tx.shared.b64 [bar], 1024;\n"),
        false => ("", ""),
    };
    // Relaxed arrivals hand nothing over: a barrier does.
    let order = if head.contains("relaxed") { MEET } else { "" };
    let body = format!(
        "{INIT}{MEET}{WRITE}mov.u32 %r5, bar;\nmapa.shared::cluster.u32 %r6, %r5, 0;\nmapa.shared::cluster.u32 %r7, %r1, 1;\n{head} _, [%r6]{operands};\n{done}{order}\
         setp.ge.u32 %p3, %r0, 32;\n@%p3 bra E;\nW:\nmbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra W;\n\
         ld.shared::cluster.b32 %r21, [%r7];\nst.global.b32 [%rd3], %r21;\nE:\n{MEET}"
    );
    Demo::new(body, |thread, x| if thread < 32 { vec![other(thread, x)] } else { vec![] }).of(64).across(2)
}

const MEET: &str = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

/// The barrier of a cluster, and addresses in another block's memory.
fn clusters() -> Vec<Demo> {
    let mut all = Vec::new();
    let form = |at: usize| &Op::Synchronization(Synchronization::BarrierCluster).forms()[at];
    for (at, fenced) in [(0, "fence.acq_rel.cluster;\n"), (1, "")] {
        for modifiers in spread(form(at), |_| false) {
            let head = head(form(at), &modifiers);
            // Relaxed arrivals hand on what a fence releases.
            let fenced = if head.contains("relaxed") { fenced } else { "" };
            let lines = match at {
                0 => format!("{fenced}{head};\nbarrier.cluster.wait;\n"),
                _ => format!("barrier.cluster.arrive;\n{head};\n"),
            };
            all.push(meeting(&lines));
        }
    }
    for (ty, prefix, space) in
        [("u32", "%r", ".shared::cluster"), ("u64", "%rd", ".shared::cluster"), ("u64", "%rd", "")]
    {
        let generic = space.is_empty();
        let widen = match (ty, generic) {
            ("u64", true) => "cvt.u64.u32 %rd16, %r1;\ncvta.shared.u64 %rd16, %rd16;\n",
            ("u64", false) => "cvt.u64.u32 %rd16, %r1;\n",
            _ => "mov.b32 %r16, %r1;\n",
        };
        let from = if generic { "" } else { "shared::cluster." };
        let body = format!(
            "{WRITE}{MEET}xor.b32 %r34, %r33, 1;\n{widen}mapa{space}.{ty} {prefix}17, {prefix}16, %r34;\ngetctarank{space}.{ty} %r22, {prefix}17;\n\
             ld.{from}b32 %r21, [{prefix}17];\nst.global.v2.b32 [%rd3], {{%r21, %r22}};\n{MEET}"
        );
        let want = |thread: usize, x: &[u32]| vec![other(thread, x), 1 - thread as u32 / 32];
        all.push(Demo::new(body, want).of(64).across(2));
    }
    all
}

pub fn demos() -> Vec<Demo> {
    [barriers(), fences(), mbarriers(), clusters()].concat()
}
