//! Copies that happen later: by threads, in bulk, of tiles; what they bring, and what is missing if nobody waits.

use tilewright_emulator::Arg;
use tilewright_kernel::tensor_map::{Dimension, Fill, Format, Promotion, Swizzle, TensorMap};
use tilewright_ptx::isa::{AsyncCopy, Form, Op};

use super::demo::{Demo, ROW, head, spread};

fn spread_of(copy: AsyncCopy) -> impl Iterator<Item = (&'static Form, String)> {
    let forms = Op::AsyncCopy(copy).forms().iter();
    forms.flat_map(|form| spread(form, |_| false).into_iter().map(move |modifiers| (form, head(form, &modifiers))))
}

/// The mask of a copy to several blocks, of which there is one; and the policy that a copy with a hint names last.
fn hinted(head: &str, operands: &str) -> String {
    let mask = if head.contains("multicast") { ", 1" } else { "" };
    let operands = format!("{operands}{mask}");
    match head.contains("L2::cache_hint") {
        true => format!("createpolicy.fractional.L2::evict_first.b64 %rd19;\n{head} {operands}, %rd19;\n"),
        false => format!("{head} {operands};\n"),
    }
}

/// Copies by threads.
fn by_threads() -> Vec<Demo> {
    let mut all = Vec::new();
    let show =
        "ld.shared.v4.b32 {%r24, %r25, %r26, %r27}, [%r1];\nst.global.v4.b32 [%rd3], {%r24, %r25, %r26, %r27};\n";
    for (form, head) in spread_of(AsyncCopy::CpAsync) {
        let by_predicate = form.syntax.contains("s:pred");
        for bytes in [4, 8, 16].into_iter().filter(|bytes| *bytes == 16 || head.contains(".ca.")) {
            let sources = if by_predicate { vec![", %p1"] } else { vec!["", ", %r5"] };
            for source in sources {
                let body = format!(
                    "st.shared.v4.b32 [%r1], {{0, 0, 0, 0}};\nand.b32 %r5, %r0, 3;\nsetp.eq.u32 %p1, %r5, 1;\n{}cp.async.wait_all;\n{show}",
                    hinted(&head, &format!("[%r1], [%rd2], {bytes}{source}"))
                );
                all.push(Demo::new(body, move |thread, x| {
                    let row = x[thread * ROW..][..4].iter().flat_map(|word| word.to_le_bytes());
                    let count = match (source, by_predicate) {
                        ("", _) => bytes,
                        (_, true) => {
                            if thread & 3 == 1 {
                                0
                            } else {
                                bytes
                            }
                        }
                        _ => thread & 3,
                    };
                    let kept: Vec<u8> =
                        row.enumerate().map(|(at, byte)| if at < count.min(bytes) { byte } else { 0 }).collect();
                    kept.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
                }));
            }
        }
    }
    let copy = "cp.async.ca.shared.global [%r1], [%rd2], 16;\n";
    for wait in ["cp.async.commit_group;\ncp.async.wait_group 0;\n", "cp.async.wait_all;\n"] {
        all.push(Demo::new(format!("{copy}{wait}{show}"), |thread, x| x[thread * ROW..][..4].to_vec()));
    }
    for (_, head) in spread_of(AsyncCopy::CpAsyncMbarrierArrive) {
        let place = if head.contains(".shared") { "[bar]" } else { "[%rd6]" };
        let own = if head.contains("noinc") { "" } else { "mbarrier.arrive.shared.b64 _, [bar];\n" };
        let body = format!(
            "mov.u64 %rd6, bar;\ncvta.shared.u64 %rd6, %rd6;\nsetp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared.b64 [bar], 32;\nbar.sync 0;\n\
             {copy}{head} {place};\n{own}mov.u32 %r6, 0;\nW:\nmbarrier.test_wait.parity.shared.b64 %p2, [bar], %r6;\n@!%p2 bra W;\n{show}"
        );
        all.push(Demo::new(body, |thread, x| x[thread * ROW..][..4].to_vec()));
    }
    all
}

const INIT: &str = "mov.u32 %r35, %tid.x;\nsetp.eq.u32 %p1, %r35, 0;\n@%p1 mbarrier.init.shared.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\nbar.sync 0;\n";
const WAIT: &str = "mov.u32 %r6, 0;\nW:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], %r6;\n@!%p2 bra W;\n";

/// Thread 0 has `bytes` brought to `tile`; thread t shows word t.
fn bring(copy: &str, bytes: usize, want: impl Fn(usize, &[u32]) -> u32 + 'static) -> Demo {
    let body = format!(
        "{INIT}@!%p1 bra S;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};\n{copy}S:\n{WAIT}shl.b32 %r5, %r0, 2;\n\
         add.u32 %r5, %r5, %r2;\nsetp.ge.u32 %p3, %r0, {words};\n@%p3 bra E;\nld.shared.b32 %r20, [%r5];\nst.global.b32 [%rd3], %r20;\nE:\n",
        words = bytes / 4
    );
    Demo::new(body, move |thread, x| if thread < bytes / 4 { vec![want(thread, x)] } else { vec![] })
}

/// Every thread writes a word to `tile`, the `fence` makes them visible, and thread 0 sends what `copy` says to y.
fn send(fence: &str, copy: &str, wait: &str, words: usize, commit: &str) -> Demo {
    let body = format!(
        "ld.global.b32 %r20, [%rd2];\nshl.b32 %r5, %r0, 2;\nadd.u32 %r5, %r5, %r2;\nst.shared.b32 [%r5], %r20;\n{fence}bar.sync 0;\n\
         setp.ne.u32 %p1, %r0, 0;\n@%p1 bra E;\n{copy}{commit}{wait}E:\n"
    );
    // y is of rows of 16 words: the copy begins at the first.
    Demo::new(body, move |thread, x| {
        let first = thread * ROW;
        (first..(first + ROW).min(words.max(first))).map(|word| x[word * ROW]).collect()
    })
}

const FENCE: &str = "fence.proxy.async.shared::cta;\n";
const SEND: &str = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 64;\n";
const COMMIT: &str = "cp.async.bulk.commit_group;\n";

/// A proxy fence between writes of threads and a copy of them.
pub fn proxy(head: &str) -> Demo {
    if head.contains("global") {
        // Written to global memory by each thread, brought to shared memory.
        let body = format!(
            "ld.global.b32 %r20, [%rd2];\nmad.wide.u32 %rd7, %r0, 4, %rd1;\nst.global.b32 [%rd7], %r20;\n{head};\n{INIT}@!%p1 bra S;\n\
             mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;\n\
             cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 64, [bar];\nS:\n{WAIT}ld.shared.b32 %r21, [%r2+32];\n\
             st.global.b32 [%rd1+64], %r21;\nbar.sync 0;\n"
        )
        .replace("st.global.b32 [%rd1+64], %r21;\n", "@%p1 st.global.b32 [%rd1+1984], %r21;\n");
        return Demo::new(body, |thread, x| match thread {
            0 | 1 => (0..ROW).map(|word| x[(thread * ROW + word) * ROW]).collect(),
            31 => vec![x[8 * ROW]],
            _ => vec![],
        });
    }
    send(&format!("{head};\n"), SEND, "cp.async.bulk.wait_group 0;\n", 16, COMMIT)
}

/// A map over the first words of a buffer, of this rank: 4 words to a row, two of everything else.
pub fn map(address: u64, rank: usize) -> Arg {
    let dimension = |number: usize| match number {
        0 => Dimension { size: 4, stride: 4, box_size: 4, element_stride: 1 },
        number => Dimension { size: 2, stride: 16 << (number - 1), box_size: 2, element_stride: 1 },
    };
    let map = TensorMap {
        format: Format::U32,
        address,
        dimensions: (0..rank).map(dimension).collect(),
        swizzle: Swizzle::None,
        fill: Fill::Zero,
        promotion: Promotion::None,
    };
    Arg(map.encode().unwrap().to_vec())
}

fn rank(head: &str) -> usize {
    (1..=5).find(|rank| head.contains(&format!(".{rank}d"))).unwrap_or(1)
}

/// Copies in bulk and of tiles.
fn in_bulk() -> Vec<Demo> {
    let mut all = Vec::new();
    for (form, head) in spread_of(AsyncCopy::CpAsyncBulk) {
        if form.syntax.contains("shared::cluster.shared::cta") {
            let copy = format!("@%p1 {head} [%r6], [%r2], 2048, [%r7];\n");
            let body = format!(
                "{INIT}@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 2048;\nld.global.b32 %r20, [%rd2];\nst.shared.b32 [%r1], %r20;\n{FENCE}{MEET}{PEER}{copy}\
                 {WAIT}ld.shared.b32 %r21, [%r1+4096];\nst.global.b32 [%rd3], %r21;\n{MEET}"
            );
            // Only the written words of the tile are looked at, but all are copied.
            let body = body.replace("st.shared.b32 [%r1], %r20;\n", &format!("{FILL}st.shared.b32 [%r1], %r20;\n"));
            all.push(Demo::new(body, |thread, x| vec![x[(thread ^ 32) * ROW]]).of(64).across(2));
            continue;
        }
        all.push(match head.contains("bulk_group") {
            true => send(FENCE, &hinted(&head, "[%rd1], [%r2], 128"), "cp.async.bulk.wait_group 0;\n", 32, COMMIT),
            false => bring(&hinted(&head, "[%r2], [%rd0], 96, [bar]"), 96, |thread, x| x[thread]),
        });
    }
    for (_, head) in spread_of(AsyncCopy::CpAsyncBulkWaitGroup) {
        // Until the copy has read its source, nobody may write over it; until it has written, nobody reads that.
        let then = if head.contains("read") {
            "st.shared.b32 [%r2], 0;\ncp.async.bulk.wait_group 0;\n"
        } else {
            "ld.global.b32 %r20, [%rd1];\nst.global.b32 [%rd1+1024], %r20;\n"
        };
        let demo = send(FENCE, SEND, &format!("{head} 0;\n{then}"), 16, COMMIT);
        let shows = !head.contains("read");
        let body = demo.body.clone();
        all.push(Demo::new(body, move |thread, x| match thread {
            0 => (0..ROW).map(|word| x[word * ROW]).collect(),
            16 if shows => vec![x[0]],
            _ => vec![],
        }));
    }
    let params = ".param .align 64 .b8 map[128]";
    for (form, head) in spread_of(AsyncCopy::CpAsyncBulkTensor) {
        if form.syntax.contains("im2col") {
            continue;
        }
        let rank = rank(&head);
        let start = vec!["0"; rank].join(", ");
        let zeros = "mov.u64 %rd8, map;\ncvta.param.u64 %rd8, %rd8;\nmov.u32 %r10, 0;\n";
        let tensor = format!("[%rd8, {{{}}}]", start.replace('0', "%r10"));
        let bytes = 16 << (rank - 1);
        let demo = match head.contains("bulk_group") {
            true => {
                let words = bytes / 4;
                let body = send(
                    FENCE,
                    &hinted(&head, &format!("{tensor}, [%r2]")),
                    "cp.async.bulk.wait_group 0;\n",
                    words,
                    COMMIT,
                )
                .body;
                Demo::new(format!("{zeros}{body}"), move |thread, x| {
                    let first = thread * ROW;
                    (first..(first + ROW).min(words.max(first))).map(|word| x[word * ROW]).collect()
                })
                .of(64)
                .with(params, move |_, y| vec![map(y, rank)])
            }
            false => {
                let demo = bring(&hinted(&head, &format!("[%r2], {tensor}, [bar]")), bytes, |thread, x| x[thread]);
                Demo { body: format!("{zeros}{}", demo.body), ..demo }
                    .of(64)
                    .with(params, move |x, _| vec![map(x, rank)])
            }
        };
        all.push(demo);
    }
    for (form, head) in spread_of(AsyncCopy::CpAsyncBulkPrefetchTensor) {
        if form.syntax.contains("im2col") {
            continue;
        }
        let rank = rank(&head);
        let start = vec!["%r10"; rank].join(", ");
        let line = hinted(&head, &format!("[%rd8, {{{start}}}]"));
        all.push(
            hint(&format!("mov.u64 %rd8, map;\ncvta.param.u64 %rd8, %rd8;\nmov.u32 %r10, 0;\n{line}"))
                .with(params, move |x, _| vec![map(x, rank)]),
        );
    }
    for (_, head) in spread_of(AsyncCopy::CpAsyncBulkPrefetch) {
        all.push(hint(&hinted(&head, "[%rd0], 128")));
    }
    all
}

const MEET: &str = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
/// The addresses 4096 bytes into the tile, and of the mbarrier, of the other block.
const PEER: &str = "xor.b32 %r34, %r33, 1;\nadd.u32 %r5, %r2, 4096;\nmapa.shared::cluster.u32 %r6, %r5, %r34;\nmov.u32 %r5, bar;\nmapa.shared::cluster.u32 %r7, %r5, %r34;\n";
const FILL: &str = "st.shared.v4.b32 [%r1], {0, 0, 0, 0};\nst.shared.v4.b32 [%r1+16], {0, 0, 0, 0};\nst.shared.v4.b32 [%r1+32], {0, 0, 0, 0};\nst.shared.v4.b32 [%r1+48], {0, 0, 0, 0};\n";

/// Stores and reductions in the other block, which complete there: 16 bytes for each thread.
fn to_peers() -> Vec<Demo> {
    let mut all = Vec::new();
    for (form, head) in spread_of(AsyncCopy::StAsync).chain(spread_of(AsyncCopy::RedAsync)) {
        let has = |word: &str| head.split('.').any(|part| part == word);
        let reduces = form.mnemonic.starts_with("red");
        let bits = if ["b64", "u64", "s64", "f64"].into_iter().any(has) { 64 } else { 32 };
        let count = if has("v4") {
            4
        } else if has("v2") {
            2
        } else {
            1
        };
        let registers = match (bits, has("f32"), has("f64")) {
            (_, true, _) => ["%f10", "%f11", "%f12", "%f13"],
            (_, _, true) => ["%fd10", "%fd11", "%fd12", "%fd13"],
            (64, ..) => ["%rd10", "%rd11", "%rd12", "%rd13"],
            _ => ["%r20", "%r21", "%r22", "%r23"],
        };
        let words = count * bits / 32;
        let load = (0..count).map(|n| format!("ld.global.b{bits} {}, [%rd2+{}];\n", registers[n], n * bits / 8));
        let data = match count {
            1 => registers[0].to_owned(),
            _ => format!("{{{}}}", registers[..count].join(", ")),
        };
        let load: String = load.collect();
        let show: String = (0..words)
            .map(|n| format!("ld.shared.b32 %r24, [%r5+{}];\nst.global.b32 [%rd3+{}], %r24;\n", 4 * n, 4 * n))
            .collect();
        // Each thread has 16 bytes, which begin with what is to be reduced with.
        let fill = if reduces { "st.shared.v2.b32 [%r5], {3, 0};\n" } else { "" };
        let total = 32 * words * 4;
        let body = format!(
            "{INIT}@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], {total};\nmov.u32 %r8, %tid.x;\nmad.lo.u32 %r5, %r8, 16, %r2;\n{fill}{MEET}\
             xor.b32 %r34, %r33, 1;\nmov.u32 %r9, bar;\nmapa.shared::cluster.u32 %r6, %r5, %r34;\nmapa.shared::cluster.u32 %r7, %r9, %r34;\n{load}\
             {head} [%r6], {data}, [%r7];\n{WAIT}{show}{MEET}"
        );
        let head = head.clone();
        all.push(
            Demo::new(body, move |thread, x| {
                let row = &x[(thread ^ 32) * ROW..][..words];
                if !reduces {
                    return row.to_vec();
                }
                let (old, b) = (3_u64, row.iter().rev().fold(0_u64, |sum, word| sum << 32 | u64::from(*word)));
                let has = |word: &str| head.split('.').any(|part| part == word);
                let new = match () {
                    () if has("inc") => {
                        if old >= b {
                            0
                        } else {
                            old + 1
                        }
                    }
                    () if has("dec") => {
                        if old == 0 || old > b {
                            b
                        } else {
                            old - 1
                        }
                    }
                    () if has("min") && has("s32") => (b as i32).min(3) as u32 as u64,
                    () if has("max") && has("s32") => (b as i32).max(3) as u32 as u64,
                    () if has("min") => old.min(b),
                    () if has("max") => old.max(b),
                    () if has("and") => old & b,
                    () if has("or") => old | b,
                    () if has("xor") => old ^ b,
                    () => old.wrapping_add(b),
                };
                (0..words).map(|n| (new >> (32 * n)) as u32).collect()
            })
            .of(64)
            .across(2),
        );
    }
    all
}

fn hint(lines: &str) -> Demo {
    Demo::new(format!("ld.global.b32 %r20, [%rd2];\n{lines}st.global.b32 [%rd3], %r20;\n"), |thread, x| {
        vec![x[thread * ROW]]
    })
    .silent()
}

/// One copy that arrives in both blocks of a cluster, each of which waits by a barrier of its own.
fn to_all() -> Vec<Demo> {
    let body = |setup: &str, copy: &str| {
        format!(
            "{setup}{INIT}@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;\n{MEET}mov.u16 %h1, 3;\nsetp.ne.u32 %p3, %r0, 0;\n\
             @%p3 bra S;\n{copy}, %h1;\nS:\n{WAIT}mov.u32 %r5, %tid.x;\nsetp.ge.u32 %p3, %r5, 16;\n@%p3 bra E;\nshl.b32 %r5, %r5, 2;\n\
             add.u32 %r5, %r5, %r2;\nld.shared.b32 %r20, [%r5];\nst.global.b32 [%rd3], %r20;\nE:\n{MEET}"
        )
    };
    let want = |thread: usize, x: &[u32]| if thread % 32 < 16 { vec![x[thread % 32]] } else { vec![] };
    let by = "shared::cluster.global";
    let line = format!("cp.async.bulk.{by}.mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%rd0], 64, [bar]");
    let tile = format!(
        "cp.async.bulk.tensor.3d.{by}.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%rd8, {{%r10, %r10, %r10}}], [bar]"
    );
    let zeros = "mov.u64 %rd8, map;\ncvta.param.u64 %rd8, %rd8;\nmov.u32 %r10, 0;\n";
    let params = ".param .align 64 .b8 map[128]";
    vec![
        Demo::new(body("", &line), want).of(64).across(2),
        Demo::new(body(zeros, &tile), want).of(64).across(2).with(params, |x, _| vec![map(x, 3)]),
    ]
}

pub fn demos() -> Vec<Demo> {
    [to_all(), by_threads(), in_bulk(), to_peers()].concat()
}
