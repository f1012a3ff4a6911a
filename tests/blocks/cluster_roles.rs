//! Roles in clusters: one role of each block makes its part of what the roles of all blocks read, and they tell each
//! other. Every kernel runs for awkward sizes, with several numbers of blocks if it is persistent, under several seeds,
//! and gives what `reference()` does; each byte is fetched once for a cluster; each part of the protocol is missed by
//! the separate checker, and by the emulator.

use crate::support::{Draw, Refusal, Refusals, campaign, finished, is_wrong, loaded};
use tilewright::kernel::info::KernelInfo;
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::Code;
use tilewright_compiler::kernel_ir::{Kernel, Mbarrier, Receivers, StatementKind};
use tilewright_compiler::proof::{Launch, Verdict, check};

/// Work of the separate checker for one launch.
const WORK: u64 = 2_000_000;

/// A matrix product by two blocks, one below the other, which read one tile of `b`.
fn below(launch: &str, rings: [u32; 2], ops: &str) -> String {
    let [of_a, of_b] = rings;
    format!(
        "kernel Product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) where N % 4 == 0, K % 4 == 0 {{
            c[i, j] = sum(|k| a[i, k] * b[k, j]);
            launch cluster(2), {launch} roles {{ load: warp, math: 2 warp }};
            schedule c by math {{
                split i by 16 -> io, i1; split i1 by 8 -> ic, ii; split j by 8 -> jo, jj; split k by 8 -> ko, kk;
                reorder io, jo, ic, ko, ii, jj, kk; bind io, jo: grid; bind ic: cta; bind ii, jj: thread;
            }}
            stage at[i, k] = a in shared at c.ko ring({of_a}) via tma by load {{ }}
            stage bt[k, j] = b in shared at c.ko ring({of_b}) via tma by load {{ {ops} }}
        }}"
    )
}

/// Four blocks: what depends on rows goes along columns, and the other way round.
fn square(launch: &str) -> String {
    format!(
        "kernel Product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) where N % 4 == 0, K % 4 == 0 {{
            c[i, j] = sum(|k| a[i, k] * b[k, j]);
            launch cluster(4), {launch} roles {{ math: 2 warp, load: warp }};
            schedule c by math {{
                split i by 16 -> io, i1; split i1 by 8 -> ic, ii; split j by 16 -> jo, j1; split j1 by 8 -> jc, jj;
                split k by 8 -> ko, kk;
                reorder io, jo, ic, jc, ko, ii, jj, kk; bind io, jo: grid; bind ic, jc: cta; bind ii, jj: thread;
            }}
            stage at[i, k] = a in shared at c.ko ring(2) via tma by load {{ box i by 4 -> ib, ir; multicast c.jc by ib; }}
            stage bt[k, j] = b in shared at c.ko ring(2) via tma by load {{ box k by 4 -> kb, kr; multicast c.ic by kb; }}
        }}"
    )
}

/// Trip counts from none to more than twice the slots of a ring of three; rows for one of two blocks.
const SIZES: &[&[i64]] = &[&[1, 4, 4], &[8, 8, 12], &[17, 20, 36], &[16, 64, 8], &[33, 60, 20], &[5, 28, 8]];

fn accepted(source: &str) -> Compiled {
    finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"))
}

/// Launches of these sizes: by one cluster, by two and by as many as there are tiles, if it is persistent.
fn launches(kernel: &Compiled, dims: &[i64]) -> Vec<Launch> {
    let info = kernel.info.as_ref().expect("no error");
    let launch = Launch::new(info, dims).expect("a launch");
    let cluster = i64::from(info.launch.cluster);
    match info.launch.persistent {
        true => [1, 2, launch.blocks / cluster].into_iter().map(|n| launch.clone().by(n * cluster)).collect(),
        false => vec![launch],
    }
}

/// Compiles, and runs with each list of sizes, those above if no others are given.
fn tried(source: &str) -> Compiled {
    let kernel = tried_at(source, SIZES);
    let unnoticed = unnoticed(&kernel, SIZES);
    assert!(unnoticed.is_empty(), "{unnoticed:#?}\n{}", kernel.entries[0].kernel);
    kernel
}

fn tried_at(source: &str, sizes: &[&[i64]]) -> Compiled {
    let kernel = accepted(source);
    let info = kernel.info.as_ref().expect("no error");
    for (n, dims) in (1..).zip(sizes) {
        for entry in kernel.entries.iter().filter(|e| e.conditions.iter().all(|c| c.holds(dims) == Ok(true))) {
            for launch in launches(&kernel, dims) {
                assert_eq!(check(&entry.kernel, &launch, WORK), Verdict::Holds, "{dims:?}\n{}", entry.kernel);
            }
        }
        for (seed, resident) in [(n, 1), (n + 10, 2), (n + 20, 64)] {
            let device = Device::emulator(EmulatorOptions::default().seed(seed).resident(resident));
            let outcome = Trial::new(info, dims, seed, &device).expect("a trial").run(&device);
            assert!(outcome.is_good(), "{source}\nat {dims:?} by {resident}: {outcome:#?}\n{}", info.ptx.text);
        }
    }
    kernel
}

/// What the separate checker does not miss of waits, releases, expectations, copies and barriers of the cluster that
/// are left out of the first entry point, of releases to the own block only, and of arrivals that are one more or less.
fn unnoticed(kernel: &Compiled, sizes: &[&[i64]]) -> Vec<String> {
    let own = &kernel.entries[0].kernel;
    let launches: Vec<Launch> = sizes.iter().flat_map(|dims| launches(kernel, dims)).collect();
    let mut mutants: Vec<(String, Kernel)> = Vec::new();
    for (region, of) in own.regions.iter().enumerate() {
        for (at, statement) in of.statements.iter().enumerate() {
            let instead = match &statement.kind {
                StatementKind::MbarrierArrive { barrier, slot, to } if *to != Receivers::Own => {
                    vec![
                        Some(StatementKind::MbarrierArrive { barrier: *barrier, slot: *slot, to: Receivers::Own }),
                        None,
                    ]
                }
                StatementKind::MbarrierWait { .. }
                | StatementKind::MbarrierArrive { .. }
                | StatementKind::MbarrierExpectTx { .. }
                | StatementKind::BulkCopy(_) => vec![None],
                StatementKind::BarrierCluster => vec![None, Some(StatementKind::BarSync)],
                _ => continue,
            };
            for instead in instead {
                let mut mutant = own.clone();
                let what = format!("{:?} → {instead:?}", statement.kind);
                match instead {
                    Some(kind) => mutant.regions[region].statements[at].kind = kind,
                    None => drop(mutant.regions[region].statements.remove(at)),
                }
                mutants.push((what, mutant));
            }
        }
    }
    for (n, Mbarrier { slots, arrivals }) in own.barriers.iter().enumerate() {
        for other in [arrivals - 1, arrivals + 1].into_iter().filter(|n| *n > 0) {
            let mut mutant = own.clone();
            mutant.barriers[n] = Mbarrier { slots: *slots, arrivals: other };
            mutants.push((format!("barrier {n}: {other} arrivals for {arrivals}"), mutant));
        }
    }
    assert!(mutants.len() > 12, "{}", mutants.len());
    let noticed =
        |mutant: &Kernel| launches.iter().any(|launch| matches!(check(mutant, launch, WORK), Verdict::Violated(_)));
    mutants.into_iter().filter(|(_, mutant)| !noticed(mutant)).map(|(what, _)| what).collect()
}

#[test]
fn two_blocks_take_a_tile_together() {
    for (rings, ops) in [
        ([1, 1], "box k by 4 -> kb, kr; multicast c.ic by kb;"),
        ([2, 3], "box k by 4 -> kb, kr; multicast c.ic by kb;"),
        ([3, 2], "multicast c.ic;"),
    ] {
        let kernel = tried(&below("", rings, ops));
        let single = accepted(&below("", rings, ops.split("multicast").next().unwrap_or_default()));
        let (m, k, n) = (32, 24, 16);
        let saved = loaded(&single, &[m, k, n]) - loaded(&kernel, &[m, k, n]);
        assert_eq!(saved.cast_signed(), 4 * (m / 16) * k * n, "once for each cluster, not for each block");
    }
}

#[test]
fn phases_carry_over_tiles() {
    tried(&below("persistent,", [2, 3], "box k by 4 -> kb, kr; multicast c.ic by kb;"));
    tried(&below("persistent,", [1, 2], "multicast c.ic;"));
}

#[test]
fn along_both_axes_of_a_cluster() {
    for launch in ["", "persistent,"] {
        let kernel = tried(&square(launch));
        let (m, k, n) = (32, 24, 48);
        // Each tile once for a cluster.
        let once = (n / 16) * m * k + (m / 16) * k * n;
        assert_eq!(loaded(&kernel, &[m, k, n]).cast_signed(), 4 * once);
    }
}

/// A role that reads what it makes for others, too: other blocks wait for it.
#[test]
fn who_makes_a_copy_may_read_it() {
    let source = |launch: &str, roles: [&str; 2], ops: &str| {
        let [sums, maker] = roles;
        format!(
            "kernel Shifted(x: f32[M, N], y: f32[N]) -> (p: f32[M, N]) where N % 4 == 0, N <= 256 {{
                s[i] = max(|j| x[i, j] + y[j]);
                p[i, j] = x[i, j] * y[j] + s[i];
                launch cluster(2), {launch} roles {{ math: 2 warp, sums: 2 warp, load: warp }};
                schedule p by math {{
                    split i by 6 -> io, i1; split i1 by 3 -> ic, ii; bind io: grid; bind ic: cta;
                    split j by 64 -> jr, jj; bind jj: thread;
                }}
                schedule s in shared at p.ii by {sums} {{ split j by 64 -> jr, jj; bind jj: thread; reduce jj; }}
                stage xs[i, j] = x in shared at p.ii ring(2) via tma by load {{ }}
                stage ys[j] = y in shared at p.ii ring(2) via tma by {maker} {{ {ops} }}
            }}"
        )
    };
    for ops in ["box j by 128 -> jb, jv; multicast p.ic by jb;", "multicast p.ic;"] {
        for launch in ["", "persistent,"] {
            for maker in ["sums", "load"] {
                let kernel = tried_at(&source(launch, ["sums", maker], ops), ROWS);
                let unnoticed = unnoticed(&kernel, ROWS);
                assert!(unnoticed.is_empty(), "{unnoticed:#?}\n{}", kernel.entries[0].kernel);
            }
        }
    }
}

/// A role that makes a copy for itself, together with other blocks: it is ahead of itself as far as the ring goes.
#[test]
fn who_makes_a_copy_for_itself_is_ahead() {
    let of_math = |source: &str| {
        let (before, after) = source.split_once("stage bt").expect("a copy of b");
        format!("{before}stage bt{}", after.replacen("by load", "by math", 1))
    };
    for launch in ["", "persistent,"] {
        for (rings, ops) in [
            ([1, 1], "box k by 4 -> kb, kr; multicast c.ic by kb;"),
            ([2, 2], "multicast c.ic;"),
            ([2, 3], "box k by 4 -> kb, kr; multicast c.ic by kb;"),
            ([1, 4], "multicast c.ic;"),
        ] {
            tried(&of_math(&below(launch, rings, ops)));
        }
        tried(&of_math(&square(launch)));
    }
    // Three iterations ahead: two copies before the loop, one in it.
    let kernel = accepted(&of_math(&below("", [1, 3], "multicast c.ic;")));
    let own = &kernel.entries[0].kernel;
    let copies = own.regions.iter().flat_map(|region| &region.statements);
    let of = |kind: &StatementKind| match kind {
        StatementKind::BulkCopy(copy) => own.buffers[copy.buffer.index()].name == "bt",
        _ => false,
    };
    assert_eq!(copies.filter(|s| of(&s.kind)).count(), 3, "{own}");
    // Warps that are ahead of others tell other blocks how far they have come: they wait for each other first.
    let warpgroups = "kernel K(v: f32[N], x: f32[M, N, 4]) -> (y: f32[M]) where N <= 16, N % 16 == 0 {
        y[i] = max(|j, k| v[j] * x[i, j, k]);
        launch roles { load: warpgroup, math: 2 warpgroup };
        schedule y by math {
            split i into 2 -> ic, ir; bind ic: cta; split j by 128 -> jr, jj; bind jj: thread;
            split ir by 2 -> io, ii; bind ii: warpgroup; reduce jj;
        }
        stage xs[i, j, k] = x in shared at y.io ring(2) via tma by load { }
        stage vs[j] = v in shared at y.io via tma { multicast y.ic; }
    }";
    let sizes: &[&[i64]] = &[&[16, 1], &[16, 5], &[16, 19]];
    tried_at(warpgroups, sizes);
    // One tile follows the other without a loop to be ahead in.
    let tiles = "kernel K(x: f32[M, 64], w: f32[64]) -> (y: f32[M, 64]) {
        y[i, j] = x[i, j] + w[j];
        launch cluster(2), persistent, roles { math: 2 warp };
        schedule y { split i by 2 -> io, ic; bind io: grid; bind ic: cta; bind j: thread; }
        stage ws[j] = w in shared at y.io ring(2) via tma { box j by 32 -> jb, jj; multicast y.ic by jb; }
    }";
    assert_eq!(refused(tiles).0, [Code::TW0310]);
}

/// Softmax by so many blocks a row: one role of each copies, one combines its sums with those of the other blocks.
fn softmax(cluster: u32, launch: &str, [load, math]: [&str; 2]) -> String {
    format!(
        "kernel Softmax(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0, N <= {most} {{
            m[i] = max(|j| x[i, j]);
            e[i, j] = exp(x[i, j] - m[i]);
            s[i] = sum(|j| e[i, j]);
            y[i, j] = e[i, j] / s[i];
            launch cluster({cluster}), {launch} roles {{ {load}, {math} }};
            schedule y by math {{
                split i by 5 -> io, r; bind io: grid; split j by 128 -> c, jc; bind c: cta; split jc by 64 -> n, t; bind t: thread; unroll n;
            }}
            stage xs[i, j] = x in shared at y.r ring(2) via tma by load {{ box j by 128 -> jb, jj; }}
            schedule e in registers at y.r {{ like y; }}
            schedule m in registers at y.r {{ like y; reduce t; reduce c by cluster; }}
            schedule s in registers at y.r {{ like y; reduce t; reduce c; }}
        }}",
        most = cluster * 128
    )
}

/// Only the threads of a role wait for those of other blocks: the others go on.
#[test]
fn roles_combine_what_blocks_have() {
    for (cluster, launch, roles) in [
        (2, "", ["load: warp", "math: 2 warp"]),
        (4, "persistent,", ["load: warp", "math: 2 warp"]),
        (2, "persistent,", ["math: 2 warp", "load: warp"]),
        (8, "persistent,", ["load: warp", "math: 2 warp"]),
    ] {
        let kernel = tried_at(&softmax(cluster, launch, roles), ROWS);
        assert_eq!(loaded(&kernel, &[5, 132]), 4 * 5 * 132, "each row once for a cluster");
        let unnoticed = unnoticed(&kernel, ROWS);
        assert!(unnoticed.is_empty(), "{unnoticed:#?}\n{}", kernel.entries[0].kernel);
    }
}

/// One block alone: its roles wait for nobody else.
#[test]
fn roles_of_one_block_have_nothing_to_exchange() {
    let sizes: &[&[i64]] = &[&[1, 4], &[5, 36], &[19, 128], &[12, 100]];
    for (launch, roles) in [("", ["load: warp", "math: 2 warp"]), ("persistent,", ["math: 2 warp", "load: warp"])] {
        let kernel = tried_at(&softmax(1, launch, roles), sizes);
        assert!(kernel.entries[0].kernel.roles().iter().all(|role| role.cluster_mbarrier.is_none()));
        let ptx = &kernel.info.as_ref().expect("no error").ptx.text;
        assert!(!ptx.contains("barrier.cluster") && !ptx.contains("mapa"), "{ptx}");
    }
    // A copy for the blocks of a cluster of one.
    let multicast = below("persistent,", [2, 3], "box k by 8 -> kb, kr; multicast c.ic by kb;")
        .replace("cluster(2)", "cluster(1)")
        .replace("split i by 16 -> io, i1", "split i by 8 -> io, i1");
    tried_at(&multicast, SIZES);
}

/// Two roles that each combine something with their like in other blocks, in no common order.
#[test]
fn several_roles_meet_in_a_cluster() {
    for launch in ["", "persistent,"] {
        let source = format!(
            "kernel Moments(x: f32[M, N]) -> (y: f32[M], z: f32[M, N]) where N % 4 == 0, N <= 256 {{
                y[i] = max(|j| x[i, j]);
                s[i] = sum(|j| x[i, j] * x[i, j]);
                z[i, j] = x[i, j] + s[i];
                launch cluster(2), {launch} roles {{ load: warp, most: 2 warp, math: 2 warp }};
                schedule z by math {{
                    split i by 5 -> io, r; bind io: grid; split j by 128 -> c, jc; bind c: cta; split jc by 64 -> n, t; bind t: thread;
                }}
                schedule y by most {{
                    split i by 5 -> io, r; bind io: grid; split j by 128 -> c, jc; bind c: cta; split jc by 64 -> n, t; bind t: thread;
                    reduce t; reduce c;
                }}
                schedule s in registers at z.r {{ like z; reduce t; reduce c; }}
                stage xs[i, j] = x in shared at z.r ring(2) via tma by load {{ }}
            }}"
        );
        let kernel = tried_at(&source, ROWS);
        let meet = kernel.entries[0].kernel.roles().iter().filter(|role| role.cluster_mbarrier.is_some());
        assert_eq!(meet.count(), 2, "{}", kernel.entries[0].kernel);
        let unnoticed = unnoticed(&kernel, ROWS);
        assert!(unnoticed.is_empty(), "{unnoticed:#?}\n{}", kernel.entries[0].kernel);
    }
}

/// Rows of which both blocks have some, one has some, and one has none.
const ROWS: &[&[i64]] = &[&[1, 4], &[5, 36], &[19, 256], &[12, 132]];

fn refused(source: &str) -> Refusal {
    finished(source).err().unwrap_or_else(|| panic!("accepted: {source}"))
}

/// The PTX of the first entry point, with each wait, arrival and copy left out, and one arrival more at each barrier:
/// how many the emulator noticed. It knows nothing of roles and clusters: it finds races, lost bytes, blocks that are
/// gone, and threads that wait forever.
fn noticed(info: &KernelInfo, dims: &[i64]) -> usize {
    assert!(!is_wrong(info, dims, info.ptx.text.to_string()));
    let (mut noticed, mut at) = (0, 0);
    for line in first_entry(info).split_inclusive('\n') {
        let (from, to) = (at, at + line.len());
        at = to;
        let waits = line.contains("_wait;") && line.contains("bra");
        let said = ["mbarrier.arrive", "barrier.cluster.wait", "cp.async.bulk.tensor"].iter().any(|s| line.contains(s));
        let inits = line.contains("mbarrier.init");
        if !(waits || said || inits) {
            continue;
        }
        // Left out; of what makes barriers ready, one arrival more.
        let more = line.replace(", 1;", ", 3;").replace(", 2;", ", 3;").replace(", 4;", ", 5;");
        let instead = if inits { more.as_str() } else { "" };
        assert_ne!(line, instead);
        let text = format!("{}{instead}{}", &info.ptx.text[..from], &info.ptx.text[to..]);
        assert!(is_wrong(info, dims, text), "{line}\n{}", info.ptx.text);
        noticed += 1;
    }
    noticed
}

/// The PTX up to the end of the entry point that is taken.
fn first_entry(info: &KernelInfo) -> &str {
    let end = info.ptx.text.match_indices(".visible .entry").nth(1).map_or(info.ptx.text.len(), |(at, _)| at);
    &info.ptx.text[..end]
}

#[test]
fn mistakes_are_noticed_by_the_emulator() {
    let combined = accepted(&softmax(2, "persistent,", ["load: warp", "math: 2 warp"]));
    let info = combined.info.as_ref().expect("no error");
    // What blocks write for each other is handed over at the scope of the cluster.
    let has = |what: &str| first_entry(info).matches(what).count();
    let meets = has("mbarrier.try_wait.parity.acquire.cluster");
    assert_eq!(
        (has("mbarrier.arrive.release.cluster.shared::cluster.b64"), meets),
        (2, 2),
        "one for each exchange: the other one is between the two"
    );
    assert!(noticed(info, &[5, 132]) >= 3 + 2 + 2, "{}", info.ptx.text);
    let kernel = accepted(&below("persistent,", [2, 2], "box k by 4 -> kb, kr; multicast c.ic by kb;"));
    let (info, dims) = (kernel.info.as_ref().expect("no error"), [33, 44, 20]);
    // Both copies share their barriers.
    let found = noticed(info, &dims);
    assert!(found >= 10, "{found}\n{}", info.ptx.text);
    // Releases to the first block alone, in place of each lane's.
    let releases = |line: &str| line.contains("mapa.shared::cluster.u32");
    assert!(first_entry(info).lines().any(releases), "{}", info.ptx.text);
    let first = |line: &str| match line.rsplit_once(", ") {
        Some((front, _)) if releases(line) => format!("{front}, 0;"),
        _ => line.to_owned(),
    };
    let text: Vec<String> = info.ptx.text.lines().map(first).collect();
    assert!(is_wrong(info, &dims, text.join("\n")), "releases to the first block");
}

/// Rows shared by the blocks of a cluster, drawn: what is reduced, by how many threads of which roles, and how it comes
/// and goes.
fn rows_by_roles(draw: &mut Draw) -> String {
    let (cluster, warps) = (*draw.pick(&[2, 4, 8]), *draw.pick(&[1, 2, 4]));
    let (threads, turns) = (32 * warps, *draw.pick(&[1, 2, 3]));
    let part = threads * turns;
    let (is_persistent, has_other) = (draw.chance(60), draw.chance(50));
    let several = draw.chance(40);
    let (rows, row) = if several { ("split i by 3 -> io, r; bind io: grid;", "r") } else { ("bind i: grid;", "i") };
    let of_block = format!("split j by {part} -> c, jc; bind c: cta; split jc by {threads} -> n, t; bind t: thread;");
    let unroll = if draw.chance(50) { "unroll n;" } else { "" };
    let ring = if (is_persistent || several) && draw.chance(70) { 2 } else { 1 };
    let mut equations = "m[i] = max(|j| x[i, j]); ".to_owned();
    let mut stages = String::new();
    let mut row_stage = |name: &str| {
        stages += &format!("schedule {name} in registers at z.{row} {{ like z; reduce t; reduce c; }} ");
    };
    row_stage("m");
    let value = match draw.below(3) {
        0 => "x[i, j] * m[i]",
        1 => {
            row_stage("s");
            equations += "s[i] = sum(|j| x[i, j] * x[i, j]); ";
            "x[i, j] * m[i] + s[i]"
        }
        _ => {
            row_stage("s");
            equations += "s[i] = sum(|j| x[i, j] - m[i]); ";
            "x[i, j] * s[i] - m[i]"
        }
    };
    let mut roles = vec![format!("math: {warps} warp")];
    let mut output = "";
    if has_other {
        output = "y: f32[M], ";
        equations += "y[i] = sum(|j| x[i, j] + 1.0); ";
        stages += &format!("schedule y by other {{ {rows} {of_block} reduce t; reduce c; }} ");
        roles.insert(draw.below(2), format!("other: {warps} warp"));
    }
    let from = match draw.below(3) {
        0 => "at z.c",
        _ => &format!("at z.{row}"),
    };
    if draw.chance(80) {
        roles.insert(draw.below(roles.len() + 1), "load: warp".to_owned());
        let width = *draw.pick(&[32, 64, part.min(256)]);
        stages += &format!(
            "stage xs[i, j] = x in shared {from} ring({ring}) via tma by load {{ box j by {width} -> jb, jj; }} "
        );
    }
    if draw.chance(40) {
        roles.push("store: warp".to_owned());
        stages +=
            &format!("stage zs[i, j] = z in shared at z.c via tma by store {{ box j by {} -> jb, jj; }} ", threads);
    }
    if roles.len() == 1 {
        roles.push("other: warp".to_owned());
    }
    let persistent = if is_persistent { "persistent, " } else { "" };
    format!(
        "kernel Rows(x: f32[M, N]) -> ({output}z: f32[M, N]) where N % 4 == 0, N <= {} {{
            {equations} z[i, j] = {value};
            launch cluster({cluster}), {persistent}roles {{ {} }};
            schedule z by math {{ {rows} {of_block} {unroll} }}
            {stages}
        }}",
        cluster * part,
        roles.join(", ")
    )
}

/// Each is right where it is accepted, and the checker misses every meeting of a role.
#[test]
fn random_rows_of_roles_equal_the_reference() {
    let (seed, count) = campaign("TILEWRIGHT_CLUSTER_ROLES", (3, 16));
    let (mut accepted, mut refusals) = (0, Refusals::default());
    for n in 0..count {
        let source = rows_by_roles(&mut Draw::new(seed, n));
        let Some(kernel) = refusals.compiled(n, &source) else { continue };
        accepted += 1;
        let sizes: &[&[i64]] = &[&[1, 4], &[5, 60], &[4, 64]];
        tried_at(&source, sizes);
        let own = &kernel.entries[0].kernel;
        let launches: Vec<Launch> = sizes.iter().flat_map(|dims| launches(&kernel, dims)).collect();
        let places = (0..own.regions.len()).flat_map(|r| (0..own.regions[r].statements.len()).map(move |at| (r, at)));
        for (region, at) in
            places.filter(|(r, at)| own.regions[*r].statements[*at].kind == StatementKind::BarrierCluster)
        {
            let mut mutant = own.clone();
            mutant.regions[region].statements[at].kind = StatementKind::BarSync;
            let is_noticed = launches.iter().any(|launch| matches!(check(&mutant, launch, WORK), Verdict::Violated(_)));
            assert!(is_noticed, "{source}\n{mutant}");
        }
    }
    refusals.tell();
    assert!(accepted * 2 > count, "{accepted} of {count}");
}
