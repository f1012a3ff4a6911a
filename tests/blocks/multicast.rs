//! Copies that several blocks of a cluster take together: every kernel runs for awkward sizes and gives what
//! `reference()` does, under several seeds; each byte is fetched once for a cluster; each part of the protocol is
//! missed by the separate checker, and by the emulator, when it is taken out.

use crate::support::{compiled, finished, is_noticed, loaded, outer, tried};
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::Code;
use tilewright_compiler::kernel_ir::{Kernel, Op, StatementKind, Type, Value, ValueId};
use tilewright_compiler::proof::{Launch, Verdict, check};

/// Work of the separate checker.
const WORK: u64 = 1_000_000;

/// Trip counts of the loop around from none to one more than twice the slots of a ring of three.
const SIZES: &[&[i64]] = &[&[1, 4], &[3, 132], &[5, 260], &[4, 384], &[9, 388], &[2, 640], &[1, 772], &[7, 896]];

/// Copies by tiles of a map, and by runs of memory: every slice by its block, or all by the first one.
#[test]
fn blocks_share_a_copy() {
    for (cluster, ring, ops) in [
        (4, "", "box j by 32 -> jb, jj; multicast c.ic by jb;"),
        (4, "ring(3)", "box j by 32 -> jb, jj; multicast c.ic by jb;"),
        (2, "ring(2)", "box j by 64 -> jb, jj; multicast c.ic by jb;"),
        (8, "ring(3)", "box j by 16 -> jb, jj; multicast c.ic by jb;"),
        (8, "ring(2)", "multicast c.ic;"),
        (4, "", "multicast c.ic;"),
        // Several boxes in a slice.
        (2, "ring(3)", "split j by 4 -> ja, jv; box ja by 16 -> jb, jj; multicast c.ic by jb;"),
    ] {
        let kernel = tried(&outer("", cluster, ring, ops), SIZES, 2);
        each_part_is_missed(&kernel, &[5, 772]);
        let info = kernel.info.as_ref().expect("no error");
        assert!(info.ptx.text.contains(".multicast::cluster"), "{}", info.ptx.text);
        assert_eq!(&*info.ptx.target, "sm_90a");
        assert!(info.explanation.contains(&format!("goes to the {cluster} blocks along c.ic")), "{}", info.explanation);
        // Beside what threads load, `b` once for each cluster.
        let own = ops.split("multicast").next().unwrap_or_default();
        let single = finished(&outer("", cluster, ring, own)).unwrap_or_else(|(_, report)| panic!("{report}"));
        let (m, n) = (i64::from(2 * cluster), 512);
        let saved = loaded(&single, &[m, n]) - loaded(&kernel, &[m, n]);
        assert_eq!(saved, 2 * u64::from(cluster - 1) * 512 * 4, "{ops}");
    }
}

/// Blocks without work come to the copies that others take with them, and compute no stage that stands there.
#[test]
fn idle_blocks_compute_nothing() {
    let source = "kernel K(x: f32[M, N], v: f32[N]) -> (z: f32[M, N]) where M <= 4, N % 4 == 0, N <= 256 {
        h[i, j] = x[i, j] * 2.0;
        z[i, j] = h[i, j] + h[i, N - 1 - j] + v[j];
        launch cluster(4), threads(32);
        schedule z {
            split j by 128 -> jo, j1; split j1 by 32 -> r, t; reorder jo, i, r, t; bind jo: grid; bind i: cta; bind t: thread;
        }
        schedule h in shared at z.i { split j by 32 -> q, t; bind t: thread; }
        stage vs[j] = v in shared at z.i via tma { box j by 32 -> jb, jj; multicast z.i by jb; }
    }";
    tried(source, &[&[1, 4], &[2, 132], &[3, 256], &[4, 36]], 2);
}

/// By runs of memory, where facts put them inside the tensor.
#[test]
fn runs_are_shared() {
    let by_runs = |ops: &str| {
        let source = outer("", 4, "ring(3)", ops).replace("N % 4 == 0", "N % 128 == 0");
        let kernel = tried(&source, &[&[1, 128], &[5, 384], &[3, 896]], 2);
        each_part_is_missed(&kernel, &[5, 896]);
        let text = kernel.info.as_ref().expect("no error").ptx.text.to_string();
        assert!(
            text.contains("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"),
            "{text}"
        );
    };
    by_runs("box j by 32 -> jb, jj; multicast c.ic by jb;");
    by_runs("multicast c.ic;");
}

/// Clusters of several axes: a copy goes to the blocks that differ along one of them.
#[test]
fn blocks_along_one_of_several_axes() {
    // A product of tiles: what depends on `i` goes along `jc`, what depends on `j` along `ic`.
    let source = |order: &str| {
        format!(
            "kernel Product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) where N % 4 == 0, K % 4 == 0 {{
                c[i, j] = sum(|k| a[i, k] * b[k, j]);
                launch cluster(8), threads(64);
                schedule c {{
                    split i by 16 -> io, i1; split i1 by 8 -> ic, ii; split j by 32 -> jo, j1; split j1 by 8 -> jc, jj;
                    split k by 8 -> ko, kk;
                    reorder io, jo, {order}, ko, ii, jj, kk; bind io, jo: grid; bind {order}: cta; bind ii, jj: thread;
                }}
                stage at[i, k] = a in shared at c.ko ring(2) via tma {{ box i by 2 -> ib, ir; multicast c.jc by ib; }}
                stage bt[k, j] = b in shared at c.ko ring(2) via tma {{ box k by 4 -> kb, kr; multicast c.ic by kb; }}
            }}"
        )
    };
    for order in ["ic, jc", "jc, ic"] {
        let kernel = tried(&source(order), &[&[1, 4, 4], &[17, 20, 36], &[16, 8, 32], &[5, 40, 12]], 2);
        each_part_is_missed(&kernel, &[17, 40, 36]);
        // Each tile once for a cluster.
        let (m, k, n) = (32, 24, 64);
        let (down, across) = (m / 16, n / 32);
        let once = (across * m * k + down * k * n) * 4;
        assert_eq!(loaded(&kernel, &[m, k, n]), once.unsigned_abs());
    }
}

/// A transpose that several blocks make of one tile, each with its own factor.
#[test]
fn a_transpose_for_several_blocks() {
    let source = "kernel Scaled(x: f32[M, N], s: f32[B]) -> (y: f32[B, N, M]) where N % 4 == 0 {
        y[b, j, i] = s[b] * x[i, j];
        launch cluster(4), threads(256);
        schedule y {
            split b by 4 -> bo, bc; split j by 32 -> jo, j1; split i by 32 -> io, i1; split j1 by 8 -> jr, w;
            reorder bo, jo, io, bc, jr, w, i1; bind bo, jo, io: grid; bind bc: cta; bind w: warp; bind i1: thread;
        }
        stage xs[i, j] = x in shared at y.bc via tma { box i by 8 -> ib, ir; layout [ib, ir, j] swizzle 128; multicast y.bc by ib; }
    }";
    let kernel = tried(source, &[&[1, 4, 1], &[33, 36, 3], &[64, 32, 5], &[7, 100, 4]], 3);
    each_part_is_missed(&kernel, &[33, 36, 3]);
    let (m, n, b) = (64, 96, 8);
    let factors = 4 * b * m * n / 32;
    let loaded = loaded(&kernel, &[m, n, b]).cast_signed();
    assert_eq!((loaded - m * n * 4 * b / 4) % factors, 0, "{loaded}");
}

/// Stages of the cluster read what blocks take together, too; blocks without work take part.
#[test]
fn stages_and_idle_blocks() {
    let source = "kernel Centred(x: f32[M, K], y: f32[K]) -> (z: f32[M, 64]) where K % 4 == 0, K <= 512 {
        s[i] = sum(|k| x[i, k] * y[k]);
        z[i, j] = s[i] + (j as f32);
        launch cluster(4), threads(32);
        schedule z { split i by 4 -> io, ic; bind io: grid; bind ic: cta; split j by 32 -> r, t; bind t: thread; }
        schedule s in registers at z.ic { split k by 32 -> q, t; bind t: thread; reduce t; }
        stage ys[k] = y in shared at z.ic via tma { box k by 128 -> kb, kk; multicast z.ic by kb; }
    }";
    // Each instance holds all of `y`.
    match compiled(source) {
        Ok(_) => drop(tried(source, &[&[1, 4], &[5, 36], &[7, 512]], 3)),
        Err((codes, report)) => panic!("{codes:?}\n{report}"),
    }
    let idle = "kernel Rows(x: f32[N], y: f32[M]) -> (z: f32[M, N]) where M <= 4, N % 4 == 0 {
        z[i, j] = x[j] * y[i];
        launch cluster(4), threads(32);
        schedule z { split j by 128 -> jo, j1; split j1 by 32 -> r, t; reorder jo, i, r, t; bind jo: grid; bind i: cta; bind t: thread; }
        stage xs[j] = x in shared at z.i via tma { box j by 32 -> jb, jj; multicast z.i by jb; }
    }";
    let kernel = tried(idle, &[&[4, 1], &[100, 2], &[192, 3], &[260, 4]], 3);
    each_part_is_missed(&kernel, &[100, 2]);
}

#[test]
fn what_blocks_cannot_take_together_is_refused() {
    let along = |ops: &str| outer("", 4, "", ops);
    for (source, words) in [
        (along("multicast c.jo;"), "given to no blocks"),
        (along("multicast c.ic by j;"), "has 128 elements, and no boxes"),
        (along("box j by 64 -> jb, jj; multicast c.ic by jb;"), "makes 2 slices of 128 elements"),
        (along("box j by 32 -> jb, jj; multicast c.ic by jj;"), "counts no boxes of one axis"),
        (along("multicast c.ic;").replace("split i by 4 -> io, ic; bind io: grid; bind ic: cta;", "bind i: grid;").replace("split j by 128 -> jo, ji;", "split j by 512 -> jq, j4; split j4 by 128 -> jo, ji; bind jq: grid; bind jo: cta;").replace("multicast c.ic", "multicast c.jo"), "read different elements"),
        (
            "kernel K(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
                y[i, j] = x[i, j];
                launch cluster(2), threads(32);
                schedule y { split j by 64 -> jo, j1; split j1 by 32 -> c, t; bind i, jo: grid; bind c: cta; bind t: thread; }
                stage ys[i, j] = y in shared at y.c via tma { multicast y.c; }
            }"
            .to_owned(),
            "copy to a tensor",
        ),
        (
            "kernel K(x: f32[N]) -> (y: f32[4, 32]) where N >= 512, N % 4 == 0 {
                s[i] = sum(|j in 0..64 * i + 64| x[j]);
                y[i, k] = s[i] * (k as f32);
                launch cluster(4), threads(32);
                schedule y { split i by 4 -> o, c; bind o: grid; bind c: cta; bind k: thread; }
                schedule s in registers at y.c { split j by 64 -> jo, j1; split j1 by 32 -> r, t; bind t: thread; reduce t; }
                stage xs[j] = x in shared at s.jo via tma { multicast y.c; }
            }"
            .to_owned(),
            "come to different numbers of instances",
        ),
    ] {
        match compiled(&source) {
            Err((codes, report)) => {
                assert_eq!(codes, [Code::TW0319], "{source}\n{report}");
                assert!(report.contains(words), "{words}: {report}");
            }
            Ok(_) => panic!("accepted: {source}"),
        }
    }
}

/// Taking out or weakening any part of the protocol of copies to several blocks is noticed by the separate checker in
/// the first entry point.
fn each_part_is_missed(kernel: &Compiled, dims: &[i64]) {
    let (info, lowered) = (kernel.info.as_ref().expect("no error"), &kernel.entries[0].kernel);
    let launch = Launch::new(info, dims).expect("a launch");
    assert_eq!(check(lowered, &launch, WORK), Verdict::Holds, "{lowered}");
    let cluster = lowered.signature.cluster;
    let mut tried = 0;
    let literal = |kernel: &mut Kernel, value: u64| {
        let facts =
            kernel.values.iter().find(|v| matches!(v.op, Op::Literal(_)) && v.ty == Type::I32).expect("one").facts;
        kernel.values.push(Value { op: Op::Literal(value), ty: Type::I32, region: Kernel::BODY, facts });
        ValueId(kernel.values.len() as u32 - 1)
    };
    for (region, of) in lowered.regions.iter().enumerate() {
        for (at, statement) in of.statements.iter().enumerate() {
            let mut mutants: Vec<Kernel> = Vec::new();
            let mut put = |kind: Option<StatementKind>, mut mutant: Kernel| {
                match kind {
                    Some(kind) => mutant.regions[region].statements[at].kind = kind,
                    None => drop(mutant.regions[region].statements.remove(at)),
                }
                mutants.push(mutant);
            };
            match &statement.kind {
                StatementKind::BarrierCluster => {
                    put(None, lowered.clone());
                    put(Some(StatementKind::BarSync), lowered.clone());
                }
                StatementKind::MbarrierExpectTx { barrier, slot, bytes } => {
                    put(None, lowered.clone());
                    for bytes in [bytes / cluster, bytes - 16, bytes + 16] {
                        put(
                            Some(StatementKind::MbarrierExpectTx { barrier: *barrier, slot: *slot, bytes }),
                            lowered.clone(),
                        );
                    }
                }
                StatementKind::BulkCopy(transfer) if transfer.multicast.is_some() => {
                    put(None, lowered.clone());
                    let mut own = transfer.clone();
                    own.multicast = None;
                    put(Some(StatementKind::BulkCopy(own)), lowered.clone());
                    for mask in [1, (1 << cluster) - 2] {
                        let mut mutant = lowered.clone();
                        let mut other = transfer.clone();
                        other.multicast = Some(literal(&mut mutant, mask));
                        put(Some(StatementKind::BulkCopy(other)), mutant);
                    }
                }
                StatementKind::MbarrierWait { .. } => put(None, lowered.clone()),
                _ => {}
            }
            for mutant in mutants {
                tried += 1;
                let verdict = check(&mutant, &launch, WORK);
                assert!(matches!(verdict, Verdict::Violated(_)), "{:?}: {verdict:?}\n{mutant}", statement.kind);
            }
        }
    }
    assert!(tried > 6, "{tried}");
}

/// The emulator notices the same in PTX.
#[test]
fn the_emulator_notices_each_part() {
    for ring in ["", "ring(2)"] {
        let kernel =
            finished(&outer("", 2, ring, "box j by 64 -> jb, jj; multicast c.ic by jb;")).expect("it is right");
        let info = kernel.info.as_ref().expect("no error");
        let dims = &[5, 772];
        let text = &info.ptx.text;
        assert!(!is_noticed(info, dims, "barrier.cluster", "barrier.cluster"), "it is right");
        // Each barrier of the cluster, and one of the block in its place.
        let (arrive, wait) = ("barrier.cluster.arrive.release.aligned;", "barrier.cluster.wait.acquire.aligned;");
        let lines: Vec<&str> = text.lines().collect();
        let barriers: Vec<usize> = (0..lines.len()).filter(|n| lines[*n].contains(arrive)).collect();
        assert_eq!(barriers.len(), if ring.is_empty() { 1 } else { 2 }, "{text}");
        for at in barriers {
            for instead in ["", "bar.sync 0;"] {
                let mut mutant: Vec<&str> = lines.clone();
                assert!(lines[at + 1].contains(wait), "{}", lines[at + 1]);
                (mutant[at], mutant[at + 1]) = (instead, "");
                let mut changed = info.clone();
                changed.ptx.text = mutant.join("\n").into();
                assert!(is_noticed(&changed, dims, ".version", ".version"), "{ring} {at} {instead}");
            }
        }
        // The bytes of the own slice only, copies to one of the blocks only, a slice that both copy.
        assert!(text.contains(", 512;"), "{text}");
        assert!(is_noticed(info, dims, ", 512;", ", 256;"), "expectation");
        let masks: Vec<&str> = lines.iter().filter(|line| line.contains("cvt.u16.u32")).copied().collect();
        assert!(!masks.is_empty(), "{text}");
        for mask in [1, 2] {
            let mut mutant = text.to_string();
            for line in &masks {
                let register = line.split_whitespace().nth(1).expect("a register");
                mutant = mutant.replace(line, &format!("mov.b16 {register} {mask};"));
            }
            let mut changed = info.clone();
            changed.ptx.text = mutant.into();
            assert!(is_noticed(&changed, dims, ".version", ".version"), "mask {mask}");
        }
        assert!(is_noticed(info, dims, "%cluster_ctarank", "%clusterid.y"), "the slice of the first block by both");
    }
}
