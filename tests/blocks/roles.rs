//! Roles: warps of a block that run stages of their own, and hand slots of shared memory to each other. Every kernel
//! runs for awkward sizes under several seeds and gives what `reference()` does; the separate checker misses each wait
//! and each release.

use crate::support::{Refusal, each_barrier_is_missed, finished, is_wrong, needless, runs, tried};
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::Code;
use tilewright_compiler::kernel_ir::StatementKind;
use tilewright_compiler::proof::{Launch, Verdict, check};

/// A product of rows with a number, copied to and from shared memory by roles of their own.
fn scaled(load: &str, store: &str, rings: [u32; 2]) -> String {
    let [into, out] = rings;
    format!(
        "kernel K(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {{
            y[i, j] = x[i, j] * 2.0;
            launch roles {{ math: 2 warp, load: {load}, store: {store} }};
            schedule y by math {{
                split i by 40 -> it, i1; split i1 by 4 -> ib, ii; split j by 32 -> jt, jl;
                reorder it, jt, ib, ii, jl; bind it, jt: grid; bind jl: thread;
                split ii by 2 -> i2, iw; reorder i2, iw, jl; bind iw: warp;
            }}
            stage xs[i, j] = x in shared at y.ib ring({into}) via tma by load {{ }}
            stage ys[i, j] = y in shared at y.ib ring({out}) via tma by store {{ }}
        }}"
    )
}

/// No tensor map describes a tensor without elements.
const SIZES: &[&[i64]] = &[&[1, 4], &[7, 36], &[41, 64], &[83, 4]];

/// What is left out or changed of what roles say to each other; and that with which the checker finds nothing wrong for
/// any of the sizes.
fn unnoticed(kernel: &Compiled, sizes: &[&[i64]]) -> (usize, Vec<String>) {
    let (info, kernel) = (kernel.info.as_ref().expect("no error"), &kernel.entries[0].kernel);
    let launch = |dims: &&[i64]| {
        let launch = Launch::new(info, dims).ok()?;
        Some(if info.launch.persistent { launch.by(2) } else { launch })
    };
    let launches: Vec<Launch> = sizes.iter().filter_map(launch).collect();
    for launch in &launches {
        assert_eq!(check(kernel, launch, 2_000_000), Verdict::Holds);
    }
    let (mut tried, mut found) = (0, Vec::new());
    for (region, of) in kernel.regions.iter().enumerate() {
        for (at, statement) in of.statements.iter().enumerate() {
            let says = matches!(
                statement.kind,
                StatementKind::MbarrierWait { .. }
                    | StatementKind::MbarrierArrive { .. }
                    | StatementKind::CpAsyncMbarrierArrive { .. }
                    | StatementKind::MbarrierExpectTx { .. }
                    | StatementKind::FenceProxyAsync
            );
            if !says {
                continue;
            }
            tried += 1;
            let mut mutant = kernel.clone();
            mutant.regions[region].statements.remove(at);
            if !launches.iter().any(|launch| matches!(check(&mutant, launch, 2_000_000), Verdict::Violated(_))) {
                found.push(format!("{:?}, statement {at} of region {region}", statement.kind));
            }
        }
    }
    (tried, found)
}

fn accepted(source: &str) -> Compiled {
    finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"))
}

#[test]
fn copies_are_made_by_other_roles() {
    for (load, store, rings) in
        [("warp", "warp", [3, 2]), ("warp", "warp", [1, 1]), ("2 warp", "3 warp", [2, 3]), ("warp", "2 warp", [5, 4])]
    {
        let source = scaled(load, store, rings);
        let kernel = accepted(&source);
        runs(&source, &kernel, SIZES, 4);
        // Among them, of roles of several warps, the one between a wait for a slot and the copy to it: a warp may wait
        // still when another goes on.
        each_barrier_is_missed(&kernel, SIZES);
        let names: Vec<&str> = kernel.entries[0].kernel.roles().iter().map(|role| role.name.as_str()).collect();
        assert_eq!(names, ["math", "load", "store"]);
        let (tried, found) = unnoticed(&kernel, &[&[83, 68]]);
        assert!(tried >= 9, "{tried}");
        assert!(found.is_empty(), "{found:#?}\n{}", kernel.entries[0].kernel);
    }
}

#[test]
fn rings_go_around_for_every_number_of_trips() {
    // One loop of `trips` instances, twice: an instance of the reader has its own copies.
    for ring in 1..4 {
        let source = format!(
            "kernel K(x: f32[M, T, 32]) -> (y: f32[M, 32]) {{
                y[i, j] = sum(|t| x[i, t, j]);
                launch roles {{ load: warp, math: warp }};
                schedule y by math {{ split i by 2 -> ib, ii; bind ib: grid; bind j: thread; reorder ib, ii, j, t; }}
                stage xs[i, t, j] = x in shared at y.t ring({ring}) via tma by load {{ }}
            }}"
        );
        let sizes: Vec<Vec<i64>> = (1..=2 * i64::from(ring) + 2).map(|trips| vec![3, trips]).collect();
        let sizes: Vec<&[i64]> = sizes.iter().map(Vec::as_slice).collect();
        let kernel = tried(&source, &sizes, 4);
        let (_, found) = unnoticed(&kernel, &[&[3, 5]]);
        assert!(found.is_empty(), "{found:#?}\n{}", kernel.entries[0].kernel);
    }
}

#[test]
fn a_softmax_is_split_into_roles_with_registers() {
    let source = "kernel Softmax(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0, N <= 1024 {
        m[i] = max(|j| x[i, j]);
        l[i] = sum(|j| exp(x[i, j] - m[i]));
        y[i, j] = exp(x[i, j] - m[i]) / l[i];
        launch roles { load: warpgroup regs(40), math: warpgroup regs(200), store: warpgroup regs(40) };
        schedule y by math { split i by 8 -> ib, ii; bind ib: grid; split j by 128 -> j1, jt; bind jt: thread; }
        schedule m in registers at y.ii { split j by 128 -> j1, jt; bind jt: thread; reduce jt; }
        schedule l in registers at y.ii { split j by 128 -> j1, jt; bind jt: thread; reduce jt; }
        stage xs[i, j] = x in shared at y.ii ring(2) via tma by load { box j by 128 -> jo, jb; }
        stage ys[i, j] = y in shared at y.ii ring(2) via tma by store { box j by 128 -> jo, jb; }
    }";
    let kernel = tried(source, &[&[1, 4], &[9, 36], &[19, 132], &[8, 1024]], 3);
    let info = kernel.info.as_ref().expect("no error");
    assert_eq!((info.ptx.target.as_ref(), info.launch.threads), ("sm_90a", 384));
    assert!(info.ptx.text.contains("setmaxnreg.inc.sync.aligned.u32 200"), "{}", info.ptx.text);
    assert!(info.explanation.contains("role math: warps 4..8, 200 registers for each thread"), "{}", info.explanation);
    let (_, found) = unnoticed(&kernel, &[&[19, 132]]);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_stage_is_computed_by_one_role_for_others() {
    // Sums by one role, what is read twice by another one, and a chain of three.
    let source = "kernel K(x: f32[M, N]) -> (y: f32[M, N]) where N <= 512 {
        s[i] = sum(|j| x[i, j]);
        c[i, j] = x[i, j] - s[i];
        y[i, j] = c[i, j] * c[i, N - 1 - j];
        launch roles { sums: 4 warp, middle: 2 warp, math: 4 warp };
        schedule y by math {
            split i by 16 -> ib, ii; bind ib: grid; split ii by 4 -> i1, i2; split j by 128 -> j1, jt; bind jt: thread;
            reorder ib, i1, i2, j1, jt;
        }
        schedule c in shared at y.i1 ring(2) by middle { merge i, j -> p; split p by 64 -> q, t; bind t: thread; }
        schedule s in shared at y.i1 ring(3) by sums { split j by 32 -> j1, jt; bind i: warp; bind jt: thread; reduce jt; }
    }";
    let kernel = accepted(source);
    runs(source, &kernel, &[&[1, 1], &[7, 33], &[33, 100], &[17, 512], &[0, 3], &[3, 0]], 4);
    let (_, found) = unnoticed(&kernel, &[&[33, 40]]);
    assert!(found.is_empty(), "{found:#?}\n{}", kernel.entries[0].kernel);
    assert!(needless(&kernel, &[&[33, 40], &[17, 70]]).1.is_empty());
}

#[test]
fn several_roles_read_what_one_makes() {
    let source = "kernel K(x: f32[M, 64]) -> (y: f32[M, 64]) {
        s[i] = max(|j| abs(x[i, j]));
        y[i, j] = x[i, j] / (s[i] + 1.0);
        launch roles { load: warp, scale: warp, math: 2 warp };
        schedule y by math { split i by 6 -> ib, ii; bind ib: grid; bind j: thread; }
        schedule s in shared at y.ii ring(2) by scale { split j by 32 -> j1, jt; bind jt: thread; reduce jt; }
        stage xs[i, j] = x in shared at y.ii ring(3) via tma by load { }
    }";
    let kernel = tried(source, &[&[1], &[6], &[13], &[29]], 6);
    // Who waits for what `scale` made of a row knows that the row is there, and does not wait for that.
    let (tried, found) = unnoticed(&kernel, &[&[13]]);
    assert!(found.is_empty(), "{found:#?}\n{}", kernel.entries[0].kernel);
    // Two waits for empty slots, one for what is there of each role; an expectation; two releases of a row, two of what
    // is made of it.
    assert_eq!(tried, 4 + 1 + 4, "{}", kernel.entries[0].kernel);
}

/// Threads of a role fetch to the slots of a ring, with rows that are not all there and elements that are not; also for
/// themselves.
#[test]
fn a_role_fetches_for_others() {
    let rows = |ring: u32, load: &str, ops: &str| {
        format!(
            "kernel K(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0, N <= 512 {{
                y[i, j] = x[i, j] * x[i, N - 1 - j];
                launch roles {{ math: 2 warp, load: {load} }};
                schedule y by math {{ split i by 9 -> ib, ii; bind ib: grid; split j by 64 -> jo, jt; bind jt: thread; }}
                stage xs[i, j] = x in shared at y.ii ring({ring}) via cp_async by load {{ {ops} }}
            }}"
        )
    };
    let vectors = "split j by 4 -> jq, v; vectorize v; split jq by 32 -> jr, t; bind t: thread;";
    for (ring, load, ops) in [
        (1, "warp", "split j by 32 -> jo, t; bind t: thread;"),
        (3, "2 warp", "split j by 64 -> jo, t; bind t: thread;"),
        (4, "warp", vectors),
    ] {
        let kernel = tried(&rows(ring, load, ops), &[&[1, 4], &[7, 36], &[9, 256], &[19, 132], &[0, 4]], 4);
        let info = kernel.info.as_ref().expect("no error");
        assert!(info.ptx.text.contains("cp.async.mbarrier.arrive.noinc.shared.b64"), "{}", info.ptx.text);
        // Nobody waits for copies but at the end.
        let entries = info.ptx.text.split(".visible .entry").skip(1);
        assert!(entries.clone().all(|entry| entry.matches("cp.async.wait").count() == 1), "{}", info.ptx.text);
        assert!(info.explanation.contains("ahead of the roles that read them"), "{}", info.explanation);
        let (_, found) = unnoticed(&kernel, &[&[19, 132]]);
        assert!(found.is_empty(), "{found:#?}\n{}", kernel.entries[0].kernel);
    }
    // Whole tiles ahead of the other role.
    let tiles = rows(3, "warp", "split j by 32 -> jo, t; bind t: thread;")
        .replace("launch roles", "launch persistent, roles")
        .replace("split i by 9 -> ib, ii; bind ib: grid;", "bind i: grid;")
        .replace("at y.ii", "at y.i");
    let kernel = tried(&tiles, &[&[1, 4], &[29, 36], &[13, 256], &[17, 100]], 4);
    let (_, found) = unnoticed(&kernel, &[&[29, 132]]);
    assert!(found.is_empty(), "{found:#?}\n{}", kernel.entries[0].kernel);
    // A stencil, of which a part lies outside, read by two roles; and by its maker, who waits for it.
    let halo = |by: &str| {
        format!(
            "kernel K(x: f32[M, N]) -> (y: f32[M, N]) {{
                s[i, j] = (x[i - 1, j] or 0.0) + (x[i + 1, j] or 0.0);
                y[i, j] = s[i, j] * 0.5 + x[i, j];
                launch persistent, roles {{ load: warp, sums: warp, math: warp }};
                schedule y by math {{
                    split i by 4 -> io, ii; split j by 32 -> jo, t; reorder io, jo, ii, t; bind io: grid; bind t: thread;
                }}
                schedule s in shared at y.jo by sums {{ bind j: thread; }}
                stage xs[i, j] = x in shared at y.jo ring(3) via cp_async by {by} {{ bind j: thread; }}
            }}"
        )
    };
    for by in ["load", "sums"] {
        let source = match by {
            "load" => halo(by),
            _ => halo(by).replace("load: warp, ", ""),
        };
        let kernel = tried(&source, &[&[1, 1], &[5, 33], &[9, 70], &[4, 230], &[3, 0]], 4);
        let (_, found) = unnoticed(&kernel, &[&[9, 230]]);
        assert!(found.is_empty(), "{by}: {found:#?}\n{}", kernel.entries[0].kernel);
    }
}

/// A reader waits for the last of what is made of one thing, unless it has to do before.
#[test]
fn who_waits_for_what_was_made_of_something_knows_of_it() {
    let source = |own: &str| {
        format!(
            "kernel K(x: f32[M, 64]) -> (y: f32[M, 64]) {{
                s[i] = max(|j| abs(x[i, j]));
                t[i] = s[i] * 2.0 + x[i, 0];
                u[i] = t[i] + x[i, 1] * s[i];
                y[i, j] = x[i, j] * s[i] + t[i] * u[i];
                launch roles {{ load: warp, first: warp, second: 2 warp, math: 2 warp }};
                schedule y by math {{ split i by 6 -> ib, ii; bind ib: grid; bind j: thread; }}
                schedule u in shared at y.ii ring(3) by {own} {{ bind i: thread; }}
                schedule t in shared at y.ii ring(2) by second {{ bind i: thread; }}
                schedule s in shared at y.ii ring(2) by first {{ split j by 32 -> j1, jt; bind jt: thread; reduce jt; }}
                stage xs[i, j] = x in shared at y.ii ring(3) via tma by load {{ }}
            }}"
        )
    };
    let waits = |kernel: &Compiled| {
        let statements = kernel.entries[0].kernel.regions.iter().flat_map(|region| &region.statements);
        statements.filter(|s| matches!(s.kind, StatementKind::MbarrierWait { .. })).count()
    };
    // Waits for full slots: `first` for the row, `second` for its sum. `math` waits for `u`, and for `t` if both are
    // made by `second`; where it makes `u` itself, it waits for `t` before that. Each that makes something waits
    // for an empty slot.
    for (own, waits_of) in [("first", [2, 1, 1]), ("second", [1, 1, 2]), ("math", [1, 1, 1])] {
        let kernel = tried(&source(own), &[&[1], &[6], &[13], &[29]], 6);
        let (_, found) = unnoticed(&kernel, &[&[13]]);
        assert!(found.is_empty(), "{own}: {found:#?}\n{}", kernel.entries[0].kernel);
        let empty = if own == "math" { 3 } else { 4 };
        assert_eq!(waits(&kernel), waits_of.iter().sum::<usize>() + empty, "{own}: {}", kernel.entries[0].kernel);
    }
}

/// Two outputs in one loop nest, each of a role of its own, that read the same slots: with other threads, warps and
/// stages of their own.
#[test]
fn outputs_of_roles_stand_beside_each_other() {
    // What is read is made by a third role, or by that of either output; alone, or with what is reduced from it.
    let shared = |roles: &str, of: [&str; 3], launch: &str| {
        let [t, y, z] = of;
        format!(
            "kernel K(x: f32[M, N]) -> (y: f32[M, N], z: f32[M, N]) where N <= 300 {{
                t[i, j] = x[i, j] * 2.0;
                y[i, j] = t[i, j] + 1.0;
                m[i] = max(|j| t[i, j]);
                z[i, j] = t[i, j] - m[i];
                launch {launch}roles {{ {roles} }};
                schedule y by {y} {{ split i by 4 -> ib, ii; bind ib: grid; split j by 32 -> r, tt; bind tt: thread; }}
                schedule z at y.ii by {z} {{ split i by 4 -> ib, ii; bind ib: grid; split j by 64 -> r, tt; bind tt: thread; }}
                schedule m in registers at z.ii by {z} {{ split j by 64 -> r, tt; bind tt: thread; reduce tt; }}
                schedule t in shared at y.ii ring(2) by {t} {{ split j by 32 -> r, tt; bind tt: thread; }}
            }}"
        )
    };
    let sizes: &[&[i64]] = &[&[1, 1], &[4, 33], &[7, 70], &[9, 300], &[0, 3], &[3, 0]];
    let three = "load: warp, math: warp, more: 2 warp";
    let two = "math: warp, more: 2 warp";
    for (roles, of) in [
        (three, ["load", "math", "more"]),
        (two, ["math", "math", "more"]),
        (two, ["more", "math", "more"]),
        ("more: 2 warp, math: warp", ["math", "math", "more"]),
    ] {
        for launch in ["", "persistent, "] {
            let source = shared(roles, of, launch);
            let kernel = accepted(&source);
            runs(&source, &kernel, sizes, 4);
            let (tried, found) = unnoticed(&kernel, &[&[9, 70], &[13, 300]]);
            assert!(tried >= 4, "{tried}");
            assert!(found.is_empty(), "{found:#?}\n{source}\n{}", kernel.entries[0].kernel);
            each_barrier_is_missed(&kernel, sizes);
        }
    }
    // Copies both ways in the loops of the one output and of the other, and warps that do not take the same rows.
    let source = "kernel K(x: f32[M, N], w: f32[N]) -> (y: f32[M, N], z: f32[M, N]) where N % 4 == 0, N <= 512 {
        y[i, j] = x[i, j] + 1.0;
        z[i, j] = x[i, N - 1 - j] * w[j];
        launch persistent, roles { load: warp, math: 2 warp, more: 4 warp, store: warp };
        schedule y by math {
            split i by 8 -> ib, i8; split i8 by 4 -> io, ii; split j by 32 -> r, t; reorder ib, io, ii, r, t; bind ib: grid;
            split ii by 2 -> ir, iw; reorder ib, io, ir, iw, r, t; bind iw: warp; bind t: thread;
        }
        schedule z at y.io by more {
            split i by 8 -> ib, i8; split i8 by 4 -> io, ii; bind ib: grid; bind ii: warp;
            split j by 32 -> r, t; bind t: thread;
        }
        stage xs[i, j] = x in shared at y.io ring(3) via tma by load { box j by 128 -> jo, jb; }
        stage ws[j] = w in shared at z.io ring(2) via tma by load { box j by 256 -> jo, jb; }
        stage ys[i, j] = y in shared at y.io ring(2) via tma by store { box j by 256 -> jo, jb; }
        stage zs[i, j] = z in shared at z.io ring(2) via tma by store { box j by 256 -> jo, jb; }
    }";
    let kernel = tried(source, &[&[1, 4], &[8, 36], &[19, 132], &[45, 512]], 4);
    let (_, found) = unnoticed(&kernel, &[&[45, 132]]);
    assert!(found.is_empty(), "{found:#?}\n{}", kernel.entries[0].kernel);
}

/// One role of each block adds what another brings, and the blocks of a group combine what those have: the first
/// thread of the role arrives, and its threads learn whether their block is the last.
#[test]
fn roles_combine_what_blocks_have_of_a_reduction() {
    let product = |launch: &str, roles: &str, by: &str| {
        format!(
            "kernel K(a: i32[M, K], b: i32[K, 16]) -> (c: i32[M, 16]) where K % 4 == 0 {{
                c[i, j] = sum(|k| a[i, k] * b[k, j]);
                launch {launch}roles {{ {roles} }};
                schedule c by math {{
                    split i by 4 -> io, ii; split k by 64 -> ks, k1; split k1 by 8 -> ko, kk;
                    reorder io, ks, ko, ii, j, kk; bind io, ks: grid; bind ii, j: thread; reduce ks by {by};
                }}
                stage at[i, k] = a in shared at c.ko ring(2) via tma by load {{ }}
                stage bt[k, j] = b in shared at c.ko ring(2) via tma by load {{ }}
            }}"
        )
    };
    let sizes: &[&[i64]] = &[&[1, 4], &[4, 36], &[7, 132], &[10, 260], &[0, 4]];
    for (launch, roles, by) in [
        ("", "load: warp, math: 2 warp", "grid"),
        ("", "math: 2 warp, load: warp", "grid"),
        ("persistent, ", "load: warp, math: 2 warp", "grid"),
        ("", "load: warp, math: 2 warp", "atomic"),
        ("persistent, ", "load: 2 warp, math: 2 warp", "atomic"),
    ] {
        let source = product(launch, roles, by);
        let kernel = accepted(&source);
        runs(&source, &kernel, sizes, 4);
        each_barrier_is_missed(&kernel, sizes);
        let (_, found) = unnoticed(&kernel, &[&[7, 260], &[5, 388]]);
        assert!(found.is_empty(), "{found:#?}\n{}", kernel.entries[0].kernel);
    }
    // Threads that share a result; one result, which the first thread takes; two roles, each with a reduction.
    for (op, by) in [("sum", "grid"), ("max", "grid"), ("max", "atomic"), ("argmin", "grid"), ("argmax", "atomic")] {
        let ty = if op.starts_with("arg") { "u32" } else { "f32" };
        let source = format!(
            "kernel K(x: f32[M, N]) -> (y: {ty}[M], z: f32[M]) where N >= 1 {{
                y[i] = {op}(|j| x[i, j]);
                z[i] = sum(|j| abs(x[i, j]));
                launch roles {{ most: 2 warp, math: 3 warp }};
                schedule y by math {{
                    bind i: grid; split j by 192 -> js, jr; split jr by 96 -> r, t; bind js: grid; bind t: thread;
                    reduce t; reduce js by {by};
                }}
                schedule z by most {{
                    bind i: grid; split j by 128 -> js, jr; split jr by 64 -> r, t; bind js: grid; bind t: thread;
                    reduce t; reduce js by grid;
                }}
            }}"
        );
        let kernel = accepted(&source);
        let sizes: &[&[i64]] = &[&[1, 1], &[2, 70], &[5, 333], &[3, 1000]];
        runs(&source, &kernel, sizes, 4);
        each_barrier_is_missed(&kernel, sizes);
    }
    // In clusters, with what their blocks combine first.
    let source = "kernel K(x: f32[M, N]) -> (y: f32[M]) where N % 4 == 0 {
        y[i] = sum(|j| x[i, j]);
        launch cluster(2), persistent, roles { load: warp, math: 2 warp };
        schedule y by math {
            bind i: grid; split j by 256 -> js, j1; split j1 by 128 -> c, jc; split jc by 64 -> r, t;
            bind js: grid; bind c: cta; bind t: thread; reduce t; reduce c; reduce js by grid;
        }
        stage xs[i, j] = x in shared at y.c ring(2) via tma by load { }
    }";
    let kernel = accepted(source);
    runs(source, &kernel, &[&[1, 4], &[3, 260], &[2, 1000]], 4);
    // A stage in a loop, whose last block alone goes on.
    let inside = "kernel K(x: f32[M, N]) -> (y: f32[M, N]) {
        s[i] = sum(|j| x[i, j]);
        y[i, j] = x[i, j] - s[i];
        launch roles { load: warp, math: warp };
        schedule y by math { bind i: grid; split j by 32 -> r, t; bind t: thread; }
        schedule s in registers at y.i by math {
            split j by 64 -> js, jr; split jr by 32 -> r, t; bind js: grid; bind t: thread; reduce t; reduce js by grid;
        }
        stage xs[i, j] = x in shared at s.r by load { bind j: thread; }
    }";
    let kernel = accepted(inside);
    runs(inside, &kernel, &[&[1, 1], &[3, 300], &[2, 128], &[2, 0], &[0, 4]], 4);
    // The other role does not know which block that is.
    let after = inside
        .replace("x[i, j] - s[i]", "x[i, j] - s[i] + w[j]")
        .replace("K(x: f32[M, N])", "K(x: f32[M, N], w: f32[N])");
    let after = after.replace("stage xs", "stage ws[j] = w in shared at y.r by load { bind j: thread; } stage xs");
    let (codes, report) = refused(&after);
    assert!(codes.contains(&Code::TW0714) && report.contains("another role runs `ws`"), "{report}");
}

#[test]
fn copies_stand_in_the_loops_of_a_stage_of_another_role() {
    // `load` fills the rings of two stages of two roles, one inside the other's nest.
    let source = "kernel K(x: f32[M, N], w: f32[N]) -> (y: f32[M, N]) where N % 4 == 0 {
        s[i] = sum(|j| x[i, j] * w[j]);
        y[i, j] = x[i, j] + s[i];
        launch roles { load: warp, sums: warp, math: warp };
        schedule y by math { split i by 3 -> ib, ii; bind ib: grid; split j by 32 -> jo, jt; bind jt: thread; }
        schedule s in shared at y.ii by sums { split j by 32 -> jo, jt; bind jt: thread; reduce jt; }
        stage xs[i, j] = x in shared at s.jo ring(2) via tma by load { }
        stage ws[j] = w in shared at s.jo ring(3) via tma by load { }
        stage xy[i, j] = x in shared at y.jo ring(2) via tma by load { }
    }";
    let kernel = accepted(source);
    runs(source, &kernel, &[&[1, 4], &[4, 36], &[7, 132]], 6);
    let (_, found) = unnoticed(&kernel, &[&[4, 132]]);
    assert!(found.is_empty(), "{found:#?}\n{}", kernel.entries[0].kernel);
}

#[test]
fn rings_run_ahead_from_tile_to_tile() {
    let source = |by: &str| {
        format!(
            "kernel K(x: f32[M, N], w: f32[N]) -> (y: f32[M, N]) where N % 4 == 0, N <= 256 {{
                s[i] = sum(|j| x[i, j] * w[j]);
                y[i, j] = x[i, j] + s[i];
                launch persistent, roles {{ load: warp, sums: warp, math: 2 warp, store: warp }};
                schedule y by math {{ bind i: grid; split j by 64 -> jo, jt; bind jt: thread; }}
                schedule s in shared at y.i ring(2) by sums {{ split j by 32 -> jo, jt; bind jt: thread; reduce jt; }}
                stage xs[i, j] = x in shared at y.i ring(3) via tma by {by} {{ }}
                stage ys[i, j] = y in shared at y.i ring(2) via tma by store {{ }}
            }}"
        )
    };
    let text = source("load");
    let kernel = accepted(&text);
    // As many blocks as the device runs, fewer than tiles and more.
    runs(&text, &kernel, &[&[1, 4], &[2, 36], &[13, 100], &[29, 256]], 4);
    let (tried, found) = unnoticed(&kernel, &[&[13, 100], &[29, 100]]);
    assert!(tried > 10, "{tried}");
    assert!(found.is_empty(), "{found:#?}\n{}", kernel.entries[0].kernel);
    // Who copies for itself takes tile after tile.
    let own = "kernel K(x: f32[M, 64]) -> (y: f32[M, 64]) {
        y[i, j] = x[i, j] + 1.0;
        launch persistent, roles { math: 2 warp };
        schedule y { bind i: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.i ring(2) via tma { }
    }";
    assert_eq!(refused(own).0, [Code::TW0310]);
    let own = own.replace("ring(2) via tma { }", "ring(2) { bind j: thread; }");
    assert_eq!(refused(&own).0, [Code::TW0310]);
}

#[test]
fn entries_without_copies_have_the_same_roles() {
    // Rows that no tensor map can describe are read by the threads of `math` alone.
    let kernel = accepted(&scaled("warp", "warp", [2, 2]));
    let (info, dims) = (kernel.info.as_ref().expect("no error"), [0, 8]);
    let device = Device::emulator(EmulatorOptions::default());
    assert!(Trial::new(info, &dims, 1, &device).expect("a trial").run(&device).is_good());
    let plain: Vec<_> = kernel.entries.iter().filter(|e| !e.staged).collect();
    assert!(!plain.is_empty());
    assert!(plain.iter().all(|e| e.kernel.roles().len() == 3));
}

/// The emulator knows nothing of roles: it finds races, lost bytes and threads that wait forever.
#[test]
fn mistakes_of_roles_are_noticed_by_the_emulator() {
    let kernel = accepted(&scaled("warp", "warp", [3, 2]));
    let (info, dims) = (kernel.info.as_ref().expect("no error"), [41, 36]);
    assert!(!is_wrong(info, &dims, info.ptx.text.to_string()));
    // The entry point that is taken.
    let end = info.ptx.text.match_indices(".visible .entry").nth(1).map_or(info.ptx.text.len(), |(at, _)| at);
    let mut tried = 0;
    let mut at = 0;
    for line in info.ptx.text[..end].split_inclusive('\n') {
        let (from, to) = (at, at + line.len());
        at = to;
        let arrives = line.contains("mbarrier.arrive");
        let waits = line.contains("_wait;") && line.contains("bra");
        let begins = line.contains("mbarrier.init");
        if !(arrives || waits || begins) {
            continue;
        }
        // Left out; of what makes barriers ready, one arrival more.
        let more = line.replace(", 1;", ", 3;").replace(", 2;", ", 4;");
        let instead = if begins { more.as_str() } else { "" };
        assert_ne!(line, instead);
        let text = format!("{}{instead}{}", &info.ptx.text[..from], &info.ptx.text[to..]);
        tried += 1;
        assert!(is_wrong(info, &dims, text), "{line}\n{}", info.ptx.text);
    }
    // Ten barriers; an expectation and three releases; four waits.
    assert_eq!(tried, 10 + 4 + 4);
}

fn refused(source: &str) -> Refusal {
    finished(source).err().unwrap_or_else(|| panic!("accepted: {source}"))
}

fn copy(launch: &str, by: [&str; 2], place: &str) -> String {
    let [schedule, stage] = by;
    format!(
        "kernel K(x: f32[M, 64]) -> (y: f32[M, 64]) {{
            y[i, j] = x[i, j] + 1.0;
            launch roles {{ {launch} }};
            schedule y {schedule} {{ split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }}
            stage xs[i, j] = x in {place} at y.ii {stage} {{ {} }}
        }}",
        if place == "registers" { "bind j: thread;" } else { "" }
    )
}

#[test]
fn what_cannot_be_is_refused() {
    let two = "load: warp, math: 2 warp";
    let by = ["by math", "via tma by load"];
    accepted(&copy(two, by, "shared"));
    for (source, code) in [
        (copy(two, ["by maths", "via tma by load"], "shared"), Code::TW0101),
        (copy(two, ["", "via tma by load"], "shared"), Code::TW0508),
        (copy("load: warp, math: 2 warp, rest: warp", by, "shared"), Code::TW0508),
        (copy("load: warp, math: 2 warpgroup", by, "shared"), Code::TW0506),
        (copy("load: 31 warp, math: 2 warp", by, "shared"), Code::TW0506),
        (copy("load: thread, math: 2 warp", by, "shared"), Code::TW0506),
        (copy("load: warp regs(40), math: 2 warp", by, "shared"), Code::TW0507),
        (copy("load: warpgroup regs(44), math: warpgroup", by, "shared"), Code::TW0507),
        (copy("load: 4 warpgroup regs(200), math: 4 warpgroup", by, "shared"), Code::TW0507),
        (copy("load: 2 warp, math: 2 warp", ["by math", "by load"], "registers"), Code::TW0509),
        (copy("load: warp, math: warp", by, "shared"), Code::TW0602),
        (copy("load: warp, load: 2 warp", ["by load", "via tma"], "shared"), Code::TW0102),
    ] {
        let (codes, report) = refused(&source);
        assert_eq!(codes, [code], "{source}\n{report}");
    }
    // One named barrier each.
    let warps: String = (0..6).map(|n| format!("r{n}: warp, ")).collect();
    let (codes, report) = refused(&copy(&format!("{warps}load: warp, math: 2 warp"), by, "shared"));
    assert_eq!(codes, [Code::TW0506], "{report}");
    assert!(report.contains("at most 7 roles") && report.contains("let one role run several stages"), "{report}");
}
