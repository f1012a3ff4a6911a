//! Warpgroups of a role that take tiles in turn (ping-pong). Every kernel runs for awkward sizes with several numbers
//! of blocks and gives what `reference()` does; the separate checker runs it with as many, and finds something wrong if
//! a wait or an arrival is taken out, those of the turns included.

use crate::persistent::{each_is_missed, ran};
use crate::products::{all_is_noticed, positions};
use crate::support::{finished, runs};
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::Code;
use tilewright_compiler::kernel_ir::{Kernel, StatementKind};
use tilewright_compiler::proof::{Launch, Verdict, check};

/// Without any one wait or arrival of the first entry point the checker finds something wrong. How many there are.
fn each_phase_is_missed(kernel: &Compiled, sizes: &[&[i64]]) -> usize {
    each_is_missed(kernel, sizes, |kind| {
        matches!(kind, StatementKind::MbarrierWait { .. } | StatementKind::MbarrierArrive { .. })
    })
}

/// Rows that are summed, copied to a ring.
fn rows(launch: &str, ring: u32, copies: &str) -> String {
    format!(
        "kernel Rows(x: f32[M, N]) -> (y: f32[M]) where N % 4 == 0 {{
            y[i] = sum(|j| x[i, j]);
            launch persistent, {launch};
            schedule y by math {{ bind i: grid; split j by 128 -> r, t; bind t: thread; reduce t; }}
            stage xs[i, j] = x in shared at y.r ring({ring}) {copies}
        }}"
    )
}

const VIA_TMA: &str = "via tma by load { box j by 128 -> jc, jj; }";

#[test]
fn a_ring_for_all_units() {
    for (units, ring) in [(2, 1), (2, 2), (3, 2), (2, 3)] {
        let launch = format!("roles {{ math: {units} warpgroup alternate, load: warp }}");
        let kernel = ran(&rows(&launch, ring, VIA_TMA), &[&[1, 4], &[5, 132], &[7, 644], &[4, 0], &[6, 384]]);
        // For each unit: a turn and a slot to wait for and to hand on; the slots of the role that copies.
        let phases = each_phase_is_missed(&kernel, &[&[7, 644], &[6, 384]]);
        assert_eq!(phases, units * 4 + 1);
    }
}

/// What one unit stores while the other one adds: each has its own buffers, and waits for its own copies.
#[test]
fn each_unit_has_what_it_alone_uses() {
    for ring in [1, 2, 3] {
        let source = format!(
            "kernel Copy(x: f32[M, N]) -> (z: f32[M, N]) where N % 4 == 0 {{
                h[i, j] = 2.0 * x[i, j];
                z[i, j] = h[i, j] + 1.0;
                launch persistent, roles {{ math: 2 warpgroup alternate, load: warp }};
                schedule z by math {{ bind i: grid; split j by 128 -> r, t; bind t: thread; }}
                schedule h in shared at z.r by math {{ split j by 4 -> t, u; bind t: thread; }}
                stage xs[i, j] = x in shared at z.r ring(2) via tma by load {{ box j by 32 -> jc, jj; }}
                stage zs[i, j] = z in shared at z.r ring({ring}) via tma by math {{ box j by 128 -> jc, jj; }}
            }}"
        );
        let kernel = ran(&source, &[&[1, 4], &[5, 132], &[4, 644], &[6, 384]]);
        each_phase_is_missed(&kernel, &[&[4, 644], &[6, 384]]);
        let buffers = &kernel.entries[0].kernel.buffers;
        let count = |name: &str| buffers.iter().filter(|b| b.name == name).count();
        assert_eq!([count("xs"), count("h"), count("zs")], [1, 2, 2]);
    }
}

/// A role that computes for units in turn, units in turn that compute for others, and both; and a role that stores.
#[test]
fn roles_hand_over_to_units_in_turn() {
    let cases = [
        ("math: 2 warpgroup alternate, make: 4 warp, store: warp", 3),
        ("math: 4 warp, make: 2 warpgroup alternate, store: warp", 2),
        ("math: 3 warpgroup alternate, make: 2 warpgroup alternate, store: warp", 2),
    ];
    for (roles, ring) in cases {
        let source = format!(
            "kernel Blur(x: f32[M, N]) -> (z: f32[M, N]) where N % 4 == 0 {{
                h[i, j] = 2.0 * x[i, j];
                z[i, j] = (h[i, j - 1] or 0.0) + h[i, j];
                launch persistent, roles {{ {roles} }};
                schedule z by math {{ bind i: grid; split j by 128 -> r, t; bind t: thread; }}
                schedule h in shared at z.r ring({ring}) by make {{ split j by 128 -> q, t; bind t: thread; }}
                stage zs[i, j] = z in shared at z.r ring(2) via tma by store {{ box j by 128 -> jc, jj; }}
            }}"
        );
        let kernel = ran(&source, &[&[1, 4], &[5, 132], &[7, 388], &[6, 384]]);
        each_phase_is_missed(&kernel, &[&[7, 388], &[6, 384]]);
    }
}

/// A unit that stores hands its slots back in its own turn: the other ones need them before it has another.
#[test]
fn a_ring_of_tiles() {
    for (math, save) in [(2, 3), (3, 2), (1, 2)] {
        let math = if math == 1 { "warpgroup".to_owned() } else { format!("{math} warpgroup alternate") };
        let source = format!(
            "kernel Copy(x: f32[M, N]) -> (z: f32[M, N]) where N % 4 == 0 {{
                z[i, j] = x[i, j] + 1.0;
                launch persistent, roles {{ math: {math}, save: {save} warpgroup alternate }};
                schedule z by math {{ split j by 128 -> b, t; bind i, b: grid; bind t: thread; }}
                stage zs[i, j] = z in shared at z.b ring(3) via tma by save {{ box j by 128 -> jc, jj; }}
            }}"
        );
        let kernel = ran(&source, &[&[1, 4], &[9, 132], &[13, 128]]);
        each_phase_is_missed(&kernel, &[&[9, 132], &[13, 128]]);
    }
}

/// Without tensor cores there is no factor that another role writes: nobody waits for it, and no turn is taken.
#[test]
fn factors_that_threads_write_for_units_in_turn() {
    let source = "kernel P(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n];
        launch persistent, roles { load: warpgroup, math: 2 warpgroup alternate };
        schedule c by math {
            split m by 64 -> mt, mi; split n by 16 -> nt, ni; reorder mt, nt, mi, ni;
            bind mt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt by math { split k by 32 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko by load {
            split k by 8 -> kc, kv; merge m, kc -> p; split p by 128 -> pr, t; bind t: thread; vectorize kv;
            layout [m, k] swizzle 64;
        }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma by load { layout [n, k] swizzle 64; }
    }";
    let kernel = ran(source, &[&[1, 8, 1], &[200, 72, 33], &[64, 0, 16]]);
    let plain = kernel.entries.iter().find(|entry| !entry.staged).expect("an entry point without tensor cores");
    assert!(plain.kernel.barriers.is_empty() && plain.kernel.buffers.is_empty());
}

/// Where nothing is handed over, a tile of another unit is nothing to go through.
#[test]
fn nothing_to_wait_for() {
    let source = "kernel Sums(x: f32[M, N]) -> (y: f32[M]) {
        t[i] = sum(|j| x[i, j] * x[i, j]);
        y[i] = t[i] + 1.0;
        launch persistent, roles { math: 2 warpgroup alternate };
        schedule y by math { split i by 128 -> b, l; bind b: grid; bind l: thread; }
        schedule t in registers per thread at y.l by math { split j by 4 -> jo, jl; unroll jl; }
    }";
    let kernel = ran(source, &[&[1, 4], &[300, 7], &[700, 0]]);
    assert!(kernel.entries[0].kernel.barriers.is_empty());
}

/// Tiles that one output does not have leave its turns out; a loop of an output has several instances in a turn.
#[test]
fn outputs_of_different_grids() {
    let source = "kernel Two(x: f32[M, N]) -> (z: f32[M, N], s: f32[M]) where N % 4 == 0, N >= 1 {
        z[i, j] = x[i, j] * 2.0;
        s[i] = sum(|j| x[i, j]);
        launch persistent, roles { math: 2 warpgroup alternate, load: warp };
        schedule z by math { split j by 128 -> b, t; bind i, b: grid; bind t: thread; }
        stage zx[i, j] = x in shared at z.b ring(2) via tma by load { box j by 128 -> jc, jj; }
        schedule s by math { bind i: grid; split j by 128 -> r, t; bind t: thread; reduce t; }
        stage sx[i, j] = x in shared at s.r ring(3) via tma by load { box j by 128 -> jc, jj; }
    }";
    let kernel = ran(source, &[&[1, 4], &[3, 132], &[5, 520], &[6, 128]]);
    each_phase_is_missed(&kernel, &[&[3, 132], &[5, 520]]);
}

/// A stage of an output that conditions may leave out hands its turn on all the same.
#[test]
fn tiles_without_an_instance() {
    let source = "kernel Shifted(x: f32[M, N], w: f32[128]) -> (y: f32[M, 128]) where N % 4 == 0 {
        t[i] = sum(|j| x[i, j]);
        y[i, l] = t[i] * w[l];
        launch persistent, roles { math: 2 warpgroup alternate, load: warp };
        schedule y by math { resize i by (3, 2) -> ii; bind ii: grid; bind l: thread; }
        schedule t in registers at y.ii by math { split j by 128 -> r, l; bind l: thread; reduce l; }
        stage xs[i, j] = x in shared at t.r ring(2) via tma by load { box j by 128 -> jc, jj; }
    }";
    let kernel = ran(source, &[&[1, 4], &[3, 132], &[4, 520], &[6, 128]]);
    each_phase_is_missed(&kernel, &[&[3, 132], &[4, 520]]);
}

/// Blocks of a cluster that share copies and sums take a tile in the same turn.
#[test]
fn clusters() {
    let source = "kernel Outer(a: f32[M], b: f32[N]) -> (c: f32[M, N]) where N % 4 == 0 {
        c[i, j] = a[i] * b[j];
        launch cluster(2), persistent, roles { math: 2 warpgroup alternate, load: warp };
        schedule c by math {
            split i by 2 -> io, ic; bind io: grid; bind ic: cta;
            split j by 256 -> jo, ji; split ji by 128 -> r, t; bind t: thread;
        }
        stage bs[j] = b in shared at c.jo ring(2) via tma by load { box j by 128 -> jb, jj; multicast c.ic by jb; }
    }";
    let kernel = ran(source, &[&[1, 4], &[5, 132], &[9, 772]]);
    each_phase_is_missed(&kernel, &[&[5, 132], &[9, 772]]);
    let sums = "kernel Sums(x: f32[M, N]) -> (y: f32[M]) where N % 8 == 0 {
        y[i] = sum(|j| x[i, j]);
        launch cluster(2), persistent, roles { math: 2 warpgroup alternate, load: warp };
        schedule y by math {
            bind i: grid; split j into 2 -> c, jc; bind c: cta;
            split jc by 128 -> r, t; bind t: thread; reduce t; reduce c;
        }
        stage xs[i, j] = x in shared at y.r ring(2) via tma by load { box j by 128 -> jb, jj; }
    }";
    let kernel = ran(sums, &[&[1, 8], &[5, 520], &[6, 1032]]);
    each_phase_is_missed(&kernel, &[&[5, 520], &[6, 1032]]);
}

/// Products by tensor cores, with a group under way; with an epilogue by the accelerator.
#[test]
fn products() {
    let gemm = |launch: &str, multicast: &str| {
        let cta = if launch.contains("cluster") { "bind mc: cta;" } else { "" };
        format!(
            "kernel P(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N]) where K % 8 == 0, N % 8 == 0 {{
                acc[m, n] = dot(|k| a[m, k] * b[n, k]);
                c[m, n] = acc[m, n] as bf16;
                launch {launch};
                schedule c by math {{
                    split m by 128 -> mt, m1; split m1 by 64 -> mc, m2; split n by 64 -> nt, n1; split n1 by 32 -> ns, n2;
                    reorder mt, nt, mc, ns, m2, n2;
                    bind mt, nt: grid; {cta} unroll ns; fragment (m2, n2) by wgmma; vectorize n2_p;
                }}
                stage cs[m, n] = c in shared at c.ns ring(2) via tma by math {{ layout [m, n] swizzle 64; }}
                schedule acc in registers at c.mc by math {{
                    split k by 32 -> ko, ki; mma (m, n, ki) by wgmma inflight(1);
                }}
                stage sa[m, k] = a in shared at acc.ko ring(3) via tma by load {{ layout [m, k] swizzle 64; }}
                stage sb[n, k] = b in shared at acc.ko ring(3) via tma by load {{
                    box n by 32 -> nh, nb; layout [nh, nb, k] swizzle 64; {multicast}
                }}
            }}"
        )
    };
    let roles = "persistent, roles { load: warpgroup regs(40), math: 2 warpgroup alternate regs(232) }";
    let three = "persistent, roles { load: warpgroup regs(40), math: 3 warpgroup alternate regs(152) }";
    for (launch, multicast) in [(roles, ""), (three, "")] {
        let source =
            gemm(launch, multicast).replace("split m1 by 64 -> mc, m2;", "").replace("128 -> mt, m1", "64 -> mt, m2");
        let source = source.replace("reorder mt, nt, mc,", "reorder mt, nt,").replace("at c.mc", "at c.nt");
        let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
        // No rows, no terms, one turn, several of each unit, terms for fewer slots than there are and for more.
        runs(&source, &kernel, &[&[0, 8, 8], &[5, 0, 8], &[1, 8, 8], &[200, 40, 136], &[130, 200, 264]], 2);
    }
    let source = gemm(&format!("cluster(2), {roles}"), "multicast c.mc by nh;");
    let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    runs(&source, &kernel, &[&[1, 8, 8], &[300, 40, 136], &[400, 200, 200]], 2);
}

/// Blocks share the terms of a tile, and units of each block take its parts in turn: the last part of all goes on to
/// the epilogue, whichever unit of whichever block has it.
#[test]
fn parts_of_products() {
    let launch = "persistent, roles { load: warpgroup regs(40), math: 2 warpgroup alternate regs(232) }";
    let into = "split k by 32 -> kt, ki; split kt into 3 -> ks, ko;";
    let by = "split k by 64, 32 -> ks, ko, ki;";
    let source = |launch: &str, split: &str, inflight: u32, store: &str| {
        format!(
            "kernel P(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N]) where K % 8 == 0, N % 8 == 0 {{
                acc[m, n] = dot(|k| a[m, k] * b[n, k]);
                c[m, n] = acc[m, n] as bf16;
                launch {launch};
                schedule c by math {{
                    split m by 64 -> mt, m2; split n by 64 -> nt, n1; split n1 by 32 -> ns, n2;
                    reorder mt, nt, ns, m2, n2;
                    bind mt, nt: grid; unroll ns; fragment (m2, n2) by wgmma; vectorize n2_p;
                }}
                {store}
                schedule acc in registers at c.nt by math {{
                    {split} bind ks: grid; mma (m, n, ki) by wgmma inflight({inflight}); reduce ks by grid;
                }}
                stage sa[m, k] = a in shared at acc.ko ring(4) via tma by load {{ layout [m, k] swizzle 64; }}
                stage sb[n, k] = b in shared at acc.ko ring(4) via tma by load {{ layout [n, k] swizzle 64; }}
            }}"
        )
    };
    let store = "stage cs[m, n] = c in shared at c.ns ring(2) via tma by math { layout [m, n] swizzle 64; }";
    let three = launch.replace("2 warpgroup", "3 warpgroup").replace("232", "152");
    let clusters = format!("cluster(2), {launch}");
    for (launch, split, inflight, store) in [
        (launch, into, 1, store),
        (launch, by, 2, ""),
        (&three, by, 1, store),
        (&three, into, 2, ""),
        (&clusters, by, 1, store),
    ] {
        let mut source = source(launch, split, inflight, store);
        if launch.contains("cluster") {
            source = source
                .replace("split m by 64 -> mt, m2;", "split m by 128 -> mt, m1; split m1 by 64 -> mc, m2;")
                .replace("reorder mt, nt, ns", "reorder mt, nt, mc, ns")
                .replace("bind mt, nt: grid;", "bind mt, nt: grid; bind mc: cta;")
                .replace("at c.nt", "at c.mc")
                .replace(
                    "layout [n, k] swizzle 64;",
                    "box n by 32 -> nh, nb; layout [nh, nb, k] swizzle 64; multicast c.mc by nh;",
                );
        }
        let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
        // No rows, no terms, one part, parts for one unit and for several of each.
        runs(&source, &kernel, &[&[0, 8, 8], &[5, 0, 8], &[1, 8, 8], &[130, 72, 136], &[70, 200, 264]], 2);
    }
    let kernel =
        finished(&source(launch, by, 1, store)).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    all_is_noticed(&kernel, &[&[130, 72, 264], &[70, 40, 136]]);
    arrivals_order_units(&kernel);
    let integers = source(launch, by, 1, "")
        .replace("bf16[M, K]", "i8[M, K]")
        .replace("bf16[N, K]", "u8[N, K]")
        .replace("c: bf16", "c: i32")
        .replace(" as bf16", "")
        .replace("% 8", "% 16")
        .replace("64, 32 -> ks", "128, 64 -> ks")
        .replace("by grid", "by atomic");
    let kernel = finished(&integers).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{integers}\n{report}"));
    runs(&integers, &kernel, &[&[1, 16, 16], &[130, 80, 144], &[70, 192, 272]], 2);
}

/// Nothing but arrivals orders what units wrote and what the last one reads, be they of one block or of two. Who is the
/// last of one block, the order in which the checker runs its units decides: of two it is the second one.
fn arrivals_order_units(kernel: &Compiled) {
    let info = kernel.info.as_ref().expect("no error");
    let of = &kernel.entries[0].kernel;
    let launches = [1, 2].map(|blocks| Launch::new(info, &[130, 264, 40]).expect("a launch").by(blocks));
    let verdicts =
        |kernel: &Kernel| launches.iter().map(|launch| check(kernel, launch, 40_000_000)).collect::<Vec<_>>();
    assert!(verdicts(of).iter().all(|verdict| *verdict == Verdict::Holds));
    let (mut changed, mut of_one_block) = (0, 0);
    for (region, at) in positions(of) {
        for forgets in [0, 1] {
            let mut mutant = of.clone();
            let kind = &mut mutant.regions[region.index()].statements[at].kind;
            let StatementKind::LastBlockTicket { releases, acquires, .. } = kind else { continue };
            *[releases, acquires][forgets] = false;
            changed += 1;
            let found = verdicts(&mutant);
            let is_violated = |verdict: &Verdict| matches!(verdict, Verdict::Violated(_));
            assert!(found.iter().any(is_violated), "{forgets} at {region:?} {at}: {found:?}");
            of_one_block += usize::from(is_violated(&found[0]));
        }
    }
    // A ticket of each unit. Sizes are M, K, N.
    assert!(changed == 4 && of_one_block >= 2, "{changed} {of_one_block}");
}

/// An output that is itself a reduction across blocks, in memory and in words, and with a copy of another role in its
/// loops.
#[test]
fn outputs_across_blocks() {
    let columns = "kernel Columns(x: f32[M, N]) -> (y: f32[N]) {
        y[j] = sum(|i| x[i, j]);
        launch persistent, roles { math: 2 warpgroup alternate };
        schedule y by math {
            split i by 4 -> ib, ii; split j by 128 -> jb, t; reorder jb, ib, t, ii;
            bind jb, ib: grid; bind t: thread; reduce ib by grid;
        }
    }";
    let sizes: &[&[i64]] = &[&[0, 3], &[1, 1], &[13, 300], &[40, 128], &[5, 0]];
    ran(columns, sizes);
    ran(&columns.replace("f32", "u32").replace("by grid", "by atomic"), sizes);
    let copied = "kernel Columns(x: f32[M, N]) -> (y: f32[N]) where N % 4 == 0 {
        y[j] = sum(|i| x[i, j]);
        launch persistent, roles { math: 2 warpgroup alternate, load: warp };
        schedule y by math {
            split i by 4 -> ib, ii; split j by 128 -> jb, t; reorder jb, ib, ii, t;
            bind jb, ib: grid; bind t: thread; reduce ib by grid;
        }
        stage xs[i, j] = x in shared at y.ii ring(3) via tma by load { }
    }";
    let kernel = ran(copied, &[&[1, 4], &[13, 300], &[40, 128], &[0, 4]]);
    each_phase_is_missed(&kernel, &[&[13, 300], &[40, 128]]);
}

#[test]
fn what_takes_no_turns() {
    let refused = |source: &str, code: Code, words: &str| {
        let Err((codes, report)) = finished(source).map(drop) else { panic!("accepted:\n{source}") };
        assert_eq!(codes, [code], "{report}");
        assert!(report.contains(words), "{words}:\n{report}");
    };
    let roles = |role: &str| rows(&format!("roles {{ math: {role}, load: warp }}"), 2, VIA_TMA);
    refused(&roles("warpgroup alternate"), Code::TW0506, "nobody to take turns with");
    refused(&roles("4 warp alternate"), Code::TW0506, "only warpgroups take tiles in turn");
    let once = roles("2 warpgroup alternate").replace("launch persistent, ", "launch ");
    refused(&once, Code::TW0506, "launch persistent");
    refused(&roles("7 warpgroup alternate"), Code::TW0506, "at most 7 roles");
    let in_global = "kernel Blur(x: f32[M, N]) -> (z: f32[M, N]) {
        h[i, j] = (x[i, j - 1] or 0.0) + x[i, j];
        z[i, j] = (h[i, j - 1] or 0.0) + h[i, j];
        launch persistent, roles { math: 2 warpgroup alternate };
        schedule h in global at z.b by math { split j by 128 -> q, t; bind t: thread; }
        schedule z by math { split j by 128 -> b, t; bind i, b: grid; bind t: thread; }
    }";
    refused(in_global, Code::TW0005, "place it in shared memory");
}
