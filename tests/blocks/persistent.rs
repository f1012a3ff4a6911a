//! Persistent launches: blocks take the tiles of the grid in turn. Every kernel runs for awkward sizes with several
//! numbers of blocks, gives what `reference()` does and the same bits with each of them; the separate checker runs it
//! with as many, and misses each barrier that is left out.

use std::cell::OnceCell;

use crate::support::{compiled, finished};
use tilewright::kernel::info::{KernelInfo, ParameterKind};
use tilewright::{Device, EmulatorOptions, Error, Reference};
use tilewright_cli::trial::Trial;
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::Code;
use tilewright_compiler::kernel_ir::{Kernel, StatementKind};
use tilewright_compiler::proof::{Launch, Verdict, check};

/// Work of the separate checker for one launch.
const WORK: u64 = 2_000_000;

/// Numbers of blocks, or clusters, for so many tiles: one alone, some that share them, one less, as many, and more.
fn numbers(tiles: i64) -> Vec<i64> {
    let mut list = vec![1, 2, 3, tiles - 1, tiles, tiles + 2];
    list.retain(|n| *n > 0);
    list.sort_unstable();
    list.dedup();
    list
}

/// What is wrong with an entry point of a launch with these sizes, for some number of blocks.
fn violation(kernel: &Kernel, info: &KernelInfo, dims: &[i64]) -> Option<String> {
    // A tensor without elements has no map.
    let launch = Launch::new(info, dims).ok()?;
    let cluster = i64::from(info.launch.cluster);
    numbers(launch.blocks / cluster).into_iter().find_map(|n| {
        let verdict = check(kernel, &launch.clone().by(n * cluster), WORK);
        if let Verdict::Violated(violation) = verdict { Some(format!("by {n}: {violation}")) } else { None }
    })
}

/// Every entry point for sizes that it may be taken for.
fn prove(kernel: &Compiled, dims: &[i64]) {
    let info = kernel.info.as_ref().expect("no error");
    for entry in kernel.entries.iter().filter(|e| e.conditions.iter().all(|c| c.holds(dims) == Ok(true))) {
        if let Some(what) = violation(&entry.kernel, info, dims) {
            panic!("at {dims:?}, {what}\n{}", entry.kernel);
        }
    }
}

/// The bits of all outputs of a good run. The reference of these sizes is evaluated once.
fn outputs(
    info: &KernelInfo,
    dims: &[i64],
    resident: i64,
    seed: u64,
    reference: &OnceCell<Result<Reference, Error>>,
) -> Vec<Vec<u8>> {
    let resident = u32::try_from(resident).expect("few blocks");
    let device = Device::emulator(EmulatorOptions::default().seed(seed).resident(resident));
    // The same values on every device.
    let trial = Trial::new(info, dims, 7, &device).unwrap_or_else(|e| panic!("{dims:?}: {e}"));
    let outcome = trial.against(reference.get_or_init(|| trial.reference()).as_ref(), &device);
    assert!(outcome.is_good(), "at {dims:?} by {resident}: {outcome:#?}\n{}\n{}", info.explanation, info.ptx.text);
    let written = info.parameters.iter().filter(|p| matches!(&p.kind, ParameterKind::Tensor(t) if t.role.is_written()));
    written.map(|p| trial.read(&p.name).expect("values")).collect()
}

/// Compiles, checks, runs; and without a barrier something is wrong.
fn tried(source: &str, sizes: &[&[i64]]) -> Compiled {
    let kernel = ran(source, sizes);
    each_barrier_is_missed(&kernel, sizes);
    kernel
}

/// Compiles, checks, runs.
pub(crate) fn ran(source: &str, sizes: &[&[i64]]) -> Compiled {
    let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    let info = kernel.info.as_ref().expect("no error");
    assert!(info.launch.persistent && info.ptx.text.contains("%nctaid.x"), "{}", info.ptx.text);
    for (seed, dims) in (1..).zip(sizes) {
        prove(&kernel, dims);
        let blocks = i64::try_from(info.launch.blocks.eval(dims).expect("a number")).expect("few");
        let (mut first, reference) = (None::<Vec<Vec<u8>>>, OnceCell::new());
        for n in numbers(blocks / i64::from(info.launch.cluster)) {
            let found = outputs(info, dims, n, seed, &reference);
            assert!(first.get_or_insert_with(|| found.clone()) == &found, "{source}\nother bits at {dims:?} by {n}");
        }
    }
    kernel
}

/// Without any one of the barriers of the first entry point the checker finds something wrong.
fn each_barrier_is_missed(kernel: &Compiled, sizes: &[&[i64]]) {
    each_is_missed(kernel, sizes, |kind| {
        matches!(
            kind,
            StatementKind::BarSync
                | StatementKind::BarWarpSync
                | StatementKind::BarSyncWarpgroup
                | StatementKind::BarrierCluster
        )
    });
}

/// Without any one of such statements of the first entry point the checker finds something wrong, for some size that it
/// is for and number of blocks. How many there are.
pub(crate) fn each_is_missed(kernel: &Compiled, sizes: &[&[i64]], is_such: fn(&StatementKind) -> bool) -> usize {
    let info = kernel.info.as_ref().expect("no error");
    let own = &kernel.entries[0];
    let fits = |dims: &&&[i64]| own.conditions.iter().all(|c| c.holds(dims) == Ok(true));
    // Most changes show at small sizes, and no larger ones are looked at then.
    let mut sizes = sizes.to_vec();
    sizes.sort_by_key(|dims| dims.iter().product::<i64>());
    let mut count = 0;
    for region in 0..own.kernel.regions.len() {
        for at in 0..own.kernel.regions[region].statements.len() {
            let statement = &own.kernel.regions[region].statements[at];
            if !is_such(&statement.kind) {
                continue;
            }
            count += 1;
            let mut mutant = own.kernel.clone();
            mutant.regions[region].statements.remove(at);
            let noticed = sizes.iter().filter(fits).any(|dims| violation(&mutant, info, dims).is_some());
            assert!(noticed, "a needless {:?} in line {}\n{}", statement.kind, statement.line, own.kernel);
        }
    }
    count
}

#[test]
fn elements() {
    for raster in ["", " raster(i: 2)"] {
        let source = format!(
            "kernel Add(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N]) {{
                z[i, j] = x[i, j] + y[i, j];
                launch persistent;
                schedule z {{ split j by 32 -> b, t; bind i, b: grid{raster}; bind t: thread; }}
            }}"
        );
        let kernel = tried(&source, &[&[1, 1], &[2, 70], &[3, 33], &[5, 65], &[1, 500]]);
        assert!(
            kernel.entries[0]
                .kernel
                .regions
                .iter()
                .flat_map(|r| &r.statements)
                .all(|s| s.kind != StatementKind::BarSync)
        );
        let info = kernel.info.as_ref().expect("no error");
        assert!(info.explanation.contains("take the tiles in turn"), "{}", info.explanation);
    }
}

#[test]
fn empty_tensors_launch_nothing() {
    let source = "kernel Twice(x: f32[M, N]) -> (z: f32[M, N]) {
        z[i, j] = x[i, j] * 2.0;
        launch persistent, threads(32);
        schedule z { split j by 32 -> b, t; bind i, b: grid; bind t: thread; }
    }";
    let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    let info = kernel.info.as_ref().expect("no error");
    for dims in [[0, 5], [5, 0]] {
        outputs(info, &dims, 2, 1, &OnceCell::new());
    }
}

/// Outputs with different numbers of tiles: some tiles are of one alone.
#[test]
fn outputs_of_different_grids() {
    let source = "kernel Two(x: f32[M, N]) -> (z: f32[M, N], s: f32[N]) where M >= 1 {
        z[i, j] = x[i, j] * 2.0;
        s[j] = sum(|i| x[i, j]);
        launch persistent;
        schedule z { split j by 32 -> b, t; bind i, b: grid; bind t: thread; }
        schedule s { split j by 32 -> b, t; bind b: grid; bind t: thread; }
    }";
    tried(source, &[&[1, 1], &[3, 33], &[1, 300]]);
}

/// The partials of a tile lie where those of the last one did.
#[test]
fn reductions_of_a_block() {
    for threads in [32, 128, 160] {
        let source = format!(
            "kernel Sums(x: f32[M, N]) -> (y: f32[M]) {{
                y[i] = sum(|j| x[i, j]);
                launch persistent, threads({threads});
                schedule y {{ bind i: grid; split j by {threads} -> r, t; bind t: thread; reduce t; }}
            }}"
        );
        tried(&source, &[&[1, 1], &[2, 70], &[4, 300], &[5, 0]]);
    }
}

const SOFTMAX: &str = "kernel Softmax(x: f32[M, N]) -> (y: f32[M, N]) where N >= 1, N <= 512 {
    m[i] = max(|k| x[i, k]);
    e[i, j] = exp(x[i, j] - m[i]);
    s[i] = sum(|k| e[i, k]);
    y[i, j] = e[i, j] / s[i];
    launch persistent, threads(64);
    schedule y { bind i: grid; split j by 64 -> q, t; bind t: thread; unroll q; }
    stage xs[i, j] = x in registers at y.i { like y; }
    schedule m in registers at y.i { like y; reduce t; }
    schedule e in registers at y.i { like y; }
    schedule s in registers at y.i { like y; reduce t; }
}";

#[test]
fn softmax() {
    tried(SOFTMAX, &[&[1, 1], &[2, 70], &[4, 130], &[5, 64]]);
}

/// Threads read what others wrote: the next tile's elements come after the last reader.
#[test]
fn stages_in_shared_memory() {
    let source = "kernel Blur(x: f32[M, N]) -> (z: f32[M, N]) {
        z[i, j] = (x[i, j - 1] or 0.0) + x[i, j] + (x[i, j + 1] or 0.0);
        launch persistent, threads(64);
        stage xs[i, j] = x in shared at z.b { split j by 64 -> q, t; bind t: thread; }
        schedule z { split j by 64 -> b, t; bind i, b: grid; bind t: thread; }
    }";
    tried(source, &[&[1, 1], &[2, 70], &[3, 130]]);
}

/// Every block has a part of global memory, which its tiles take one after the other.
#[test]
fn stages_in_global_memory() {
    let source = "kernel Blur(x: f32[M, N]) -> (z: f32[M, N]) {
        h[i, j] = (x[i, j - 1] or 0.0) + x[i, j];
        z[i, j] = (h[i, j - 1] or 0.0) + h[i, j];
        launch persistent, threads(64);
        schedule h in global at z.b { split j by 64 -> q, t; bind t: thread; }
        schedule z { split j by 64 -> b, t; bind i, b: grid; bind t: thread; }
    }";
    tried(source, &[&[1, 1], &[2, 70], &[3, 130]]);
}

/// Copies of a tile wait for the readers of the last one, and phases go on where they stopped.
#[test]
fn tiles_of_the_accelerator() {
    let source = "kernel Tiles(x: f32[M, N]) -> (z: f32[M, N]) where N % 4 == 0 {
        z[i, j] = x[i, j] * 2.0;
        launch persistent, threads(32);
        stage xs[i, j] = x in shared at z.jb via tma { box i by 4 -> ic, ii; box j by 32 -> jc, jj; }
        stage zs[i, j] = z in shared at z.jb via tma { box i by 4 -> ic, ii; box j by 32 -> jc, jj; }
        schedule z {
            split i by 4 -> ib, ii; split j by 32 -> jb, t; reorder ib, jb, ii, t;
            bind ib, jb: grid raster(ib: 2); bind t: thread;
        }
    }";
    let kernel = tried(source, &[&[1, 4], &[9, 68], &[13, 100], &[8, 64]]);
    // The accelerator's barrier is made ready once.
    let inits = kernel.info.as_ref().expect("no error").ptx.text.matches("mbarrier.init").count();
    let staged = kernel.entries.iter().filter(|e| !e.kernel.barriers.is_empty()).count();
    assert_eq!(inits, staged);
}

/// Rings in a loop of a tile: slots and phases carry over, for tiles of which the loop has fewer iterations than the
/// ring has slots, and none.
#[test]
fn rings_carry_over_tiles() {
    for (ring, threads) in [(2, 32), (3, 64), (4, 32)] {
        let source = format!(
            "kernel Rows(x: f32[M, N]) -> (y: f32[M]) where N % 4 == 0 {{
                y[i] = sum(|j| x[i, j]);
                launch persistent, threads({threads});
                stage xs[i, j] = x in shared at y.r ring({ring}) via tma {{ box j by {threads} -> jc, jj; }}
                schedule y {{ bind i: grid; split j by {threads} -> r, t; bind t: thread; reduce t; }}
            }}"
        );
        let most = i64::from(threads * (2 * ring + 1));
        tried(&source, &[&[4, 4], &[3, most], &[5, i64::from(threads) + 4], &[4, 0], &[3, most - i64::from(threads)]]);
    }
}

/// Stores in a ring are waited for where their buffer comes around, in the next tile too, and after the last one.
#[test]
fn rings_of_stores_carry_over_tiles() {
    for ring in [1, 2, 3] {
        let source = format!(
            "kernel Copy(x: f32[M, N]) -> (z: f32[M, N]) where N % 4 == 0 {{
                z[i, j] = x[i, j] * 2.0;
                launch persistent, threads(32);
                stage zs[i, j] = z in shared at z.r ring({ring}) via tma {{ box j by 32 -> jc, jj; }}
                schedule z {{ bind i: grid; split j by 32 -> r, t; bind t: thread; }}
            }}"
        );
        tried(&source, &[&[4, 4], &[3, 160], &[5, 36], &[3, 96]]);
    }
}

/// Fetches of a tile are all waited for before the next one's.
#[test]
fn fetched_rings_carry_over_tiles() {
    for ring in [1, 2, 3, 4] {
        let ahead = if ring == 1 { String::new() } else { format!("ring({ring}) ") };
        let source = format!(
            "kernel Rows(x: f32[M, N]) -> (y: f32[M]) {{
                y[i] = sum(|j| x[i, j] * x[i, j]);
                launch persistent, threads(64);
                stage xs[i, j] = x in shared at y.r {ahead}via cp_async {{ bind j: thread; }}
                schedule y {{ bind i: grid; split j by 64 -> r, t; bind t: thread; reduce t; }}
            }}"
        );
        tried(&source, &[&[4, 3], &[3, 64 * 9], &[5, 70], &[4, 0]]);
    }
}

#[test]
fn clusters_take_tiles_together() {
    for raster in ["", " raster(h: 2)"] {
        let source = format!(
            "kernel Sums(x: f32[L, M, N]) -> (y: f32[L, M]) {{
                y[h, i] = sum(|j| x[h, i, j]);
                launch persistent, cluster(2), threads(32);
                schedule y {{
                    bind h, i: grid{raster}; split j into 2 -> c, jc; bind c: cta;
                    split jc by 32 -> r, t; bind t: thread; reduce t; reduce c;
                }}
            }}"
        );
        tried(&source, &[&[1, 1, 3], &[3, 2, 70], &[5, 1, 33]]);
    }
}

/// A block may arrive several times for one result, and be the last of several.
#[test]
fn reductions_across_blocks() {
    for by in ["grid", "atomic"] {
        let source = format!(
            "kernel Columns(x: u32[M, N]) -> (y: u32[N]) {{
                y[j] = sum(|i| x[i, j]);
                launch persistent, threads(32);
                schedule y {{
                    split i by 4 -> ib, ii; split j by 32 -> jb, t; reorder jb, ib, t, ii;
                    bind jb, ib: grid; bind t: thread; reduce ib by {by};
                }}
            }}"
        );
        tried(&source, &[&[1, 1], &[9, 40], &[17, 70], &[0, 7]]);
        let all = format!(
            "kernel All(x: u32[N]) -> (y: u32[]) {{
                y[] = sum(|i| x[i]);
                launch persistent, threads(64);
                schedule y {{ split i by 64 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by {by}; }}
            }}"
        );
        tried(&all, &[&[1], &[64], &[300]]);
    }
}

#[test]
fn stages_that_blocks_share() {
    let source = "kernel Both(x: f32[L, M, N]) -> (y: f32[L, N]) where M >= 1, N <= 64 {
        mu[h, j] = sum(|i| x[h, i, j]);
        y[h, j] = mu[h, j] * 2.0;
        launch persistent, threads(32);
        schedule y { split j by 32 -> jb, t; bind h, jb: grid; bind t: thread; }
        schedule mu in registers at y.jb { like y; split i by 4 -> ib, ii; bind ib: grid; reduce ib by grid; }
    }";
    tried(source, &[&[1, 1, 1], &[2, 9, 40], &[3, 5, 64]]);
}

/// A bit of a phase, a slot or an order that would begin anew in each tile is noticed.
#[test]
fn what_carries_over_is_missed() {
    let source = "kernel Rows(x: f32[M, N]) -> (y: f32[M]) where N % 4 == 0 {
        y[i] = sum(|j| x[i, j]);
        launch persistent, threads(32);
        stage xs[i, j] = x in shared at y.r ring(2) via tma { box j by 32 -> jc, jj; }
        schedule y { bind i: grid; split j by 32 -> r, t; bind t: thread; reduce t; }
    }";
    let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    let info = kernel.info.as_ref().expect("no error");
    let own = &kernel.entries[0].kernel;
    let dims = [4, 96];
    assert_eq!(violation(own, info, &dims), None);
    // The loop over tiles is the last statement that repeats in the body of the kernel.
    let body = own.regions[0].statements.iter().rev().find_map(|s| match &s.kind {
        StatementKind::Loop(l) => Some(l.body),
        _ => None,
    });
    let body = body.expect("a loop over tiles");
    let mut mutants = 0;
    for at in 0..own.regions[0].statements.len() {
        let StatementKind::Declare(variable, value) = own.regions[0].statements[at].kind else { continue };
        let mut mutant = own.clone();
        let mut again = mutant.regions[0].statements[at].clone();
        again.kind = StatementKind::Set(variable, value);
        mutant.regions[body.index()].statements.insert(0, again);
        assert!(violation(&mutant, info, &dims).is_some(), "{mutant}");
        mutants += 1;
    }
    assert_eq!(mutants, 2, "the slot of the ring, and the parity of its barriers");
}

#[test]
fn what_has_one_tile_is_refused() {
    let source = "kernel One(x: f32[64]) -> (z: f32[64]) {
        z[i] = x[i] * 2.0;
        launch persistent;
        schedule z { bind i: thread; }
    }";
    assert_eq!(compiled(source).err().map(|(codes, _)| codes), Some(vec![Code::TW0612]));
}
