//! Reductions across blocks: workspaces, counters, the last block. Every kernel runs for awkward sizes, under seeds
//! that let blocks and warps come in other orders, and gives what `reference()` does; the separate checker and the
//! emulator notice what is left out.
#![allow(deprecated, reason = "warnings of what is slow: these kernels are small, and show what is right")]

use crate::support::{compiled, finished, launched_on, prove, runs, tried};
use tilewright::kernel::KernelInfo;
use tilewright::{Device, EmulatorOptions, Graph, Kernel as _, Tensor, schedule};
use tilewright_cli::trial::Trial;
use tilewright_compiler::diag::Code;
use tilewright_compiler::kernel_ir::StatementKind;
use tilewright_compiler::proof::{Kind, Launch, Verdict, check as prove_one};

schedule! {
    /// One number of everything: a run of each block, a vector at a time, then threads, warps and blocks.
    pub kernel FullSum(x: f32[N]) -> (y: f32[])
    where N % 4 == 0
    {
        y[] = sum(|k| x[k]);
        schedule y {
            split k by 4 -> kv, v;
            split kv by 1024 -> kb, ki;
            split ki by 256 -> r, t;
            bind kb: grid;
            bind t: thread;
            vectorize v;
            reduce t;
            reduce kb by grid;
        }
    }

    /// A split of rows over blocks, with something to do after the sum.
    pub kernel Norms(x: f32[M, N]) -> (y: f32[N])
    {
        y[j] = sqrt(sum(|i| x[i, j] * x[i, j]));
        schedule y {
            split j by 64 -> jb, t;
            split i by 8 -> ib, ii;
            bind jb: grid;
            bind ib: grid;
            bind t: thread;
            reduce ib by grid;
        }
    }

    /// The same with vectors, and warps that take rows; blocks of one column group are far apart.
    pub kernel Columns(x: f32[M, N]) -> (y: f32[N])
    where N % 4 == 0
    {
        y[j] = sum(|i| x[i, j]);
        schedule y {
            split j by 4 -> jo, v;
            split jo by 16 -> jb, t;
            split i by 4 -> ib, w;
            reorder ib, jb, w, t;
            bind ib: grid;
            bind jb: grid;
            bind w: warp;
            bind t: thread;
            vectorize v;
            reduce w;
            reduce ib by grid;
        }
    }

    /// Where the largest element is.
    pub kernel ArgMax(x: f32[N]) -> (y: u32[])
    where N >= 1
    {
        y[] = argmax(|k| x[k]);
        schedule y {
            split k by 256 -> kb, ki;
            split ki by 64 -> r, t;
            bind kb: grid;
            bind t: thread;
            reduce t;
            reduce kb by grid;
        }
    }

    /// Mean and squared deviations of everything (Welford; Chan, Golub and LeVeque for parts).
    pub kernel Variance(x: f32[N]) -> (mean: f32[], m2: f32[], n: f32[])
    {
        (mean, m2, n)[] = fold(|k| init (0.0, 0.0, 0.0),
            step (mu, s, c) => (
                mu + (x[k] - mu) / (c + 1.0),
                s + (x[k] - mu) * (x[k] - (mu + (x[k] - mu) / (c + 1.0))),
                c + 1.0),
            merge ((ma, sa, ca), (mb, sb, cb)) => (
                ma + (mb - ma) * (cb / max(ca + cb, 1.0)),
                sa + sb + (mb - ma) * (mb - ma) * (ca * (cb / max(ca + cb, 1.0))),
                ca + cb));
        schedule mean {
            split k by 256 -> kb, ki;
            split ki by 64 -> r, t;
            bind kb: grid;
            bind t: thread;
            reduce t;
            reduce kb by grid;
        }
    }

    /// Two outputs, each with blocks of its own, and other numbers of them.
    pub kernel Both(x: i32[N]) -> (total: i32[], least: i32[])
    {
        total[] = sum(|k| x[k]);
        least[] = min(|k| x[k]);
        schedule total { split k by 64 -> kb, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid; }
        schedule least { split k by 192 -> kb, ki; split ki by 64 -> r, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid; }
    }

    /// Rows in a loop around the reduction, each with a counter of its own; some results of a thread in registers.
    pub kernel Rows(x: f32[M, N]) -> (y: f32[M])
    {
        y[i] = sum(|j| x[i, j]);
        launch threads(32);
        schedule y {
            split j by 128 -> jb, ji;
            split ji by 32 -> r, t;
            split i by 3 -> io, ii;
            reorder jb, io, r, ii, t;
            bind jb: grid;
            bind t: thread;
            reduce t;
            reduce jb by grid;
        }
    }

    /// Terms of two axes, both over the grid, some of them lanes of one warp; three bytes an element and states of two
    /// types.
    pub kernel AnyNan(x: f16[M, N]) -> (y: bool[])
    {
        y[] = any(|i, j| x[i, j] != x[i, j]);
        schedule y {
            split i by 2 -> ib, w;
            split j by 32 -> jb, t;
            reorder jb, ib, w, t;
            bind ib, jb: grid;
            bind w: warp;
            bind t: thread;
            reduce w, t;
            reduce jb, ib by grid;
        }
    }
}

/// Kernels with one result each, which all blocks update in memory.
macro_rules! updated {
    ($($name:ident: [$from:ident] -> $to:ident $(where $fact:expr)?, $reduction:ident($x:ident[$k:ident] $($map:tt)*);)*) => {$(
        schedule! {
            kernel $name($x: $from[N]) -> (y: $to[]) $(where $fact)? {
                y[] = $reduction(|$k| $x[$k] $($map)*);
                schedule y { split $k by 64 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by atomic; }
            }
        }
    )*};
}

updated! {
    SumNarrow: [i8] -> i8, sum(x[k]);
    SumWide: [u64] -> u64, sum(x[k]);
    MaxSigned: [i16] -> i16, max(x[k]);
    MinUnsigned: [u8] -> u8, min(x[k]);
    MinSigned: [i64] -> i64, min(x[k]);
    MaxHalf: [bf16] -> bf16, max(x[k]);
    MinSingle: [f32] -> f32, min(x[k]);
    MaxDouble: [f64] -> f64, max(x[k]);
    AllTrue: [u8] -> bool, all(x[k] < 255);
    AnyTrue: [u8] -> bool, any(x[k] == 255);
    FirstMax: [f32] -> u32 where N >= 1, argmax(x[k]);
    FirstMin: [f32] -> u32 where N >= 1, argmin(x[k]);
}

schedule! {
    /// Several results of a thread and several groups, and something to do after it.
    kernel ColumnMax(x: f32[M, N]) -> (y: f32[N]) {
        y[j] = exp(max(|i| x[i, j]));
        schedule y {
            split j by 64 -> jb, jt;
            split jt by 2 -> t, p;
            split i by 8 -> ib, ii;
            reorder jb, ib, ii, p, t;
            bind jb, ib: grid;
            bind t: thread;
            unroll p;
            reduce ib by atomic;
        }
    }

    #[allow(TW1090)]
    kernel AnyOrder(x: f32[M, N]) -> (y: f32[N]) {
        y[j] = unordered sum(|i| x[i, j]);
        schedule y { split j by 32 -> jb, t; split i by 4 -> ib, ii; bind jb, ib: grid; bind t: thread; reduce ib by atomic; }
    }

    #[allow(TW1090)]
    kernel AnyOrderWide(x: f64[N]) -> (y: f64[]) {
        y[] = unordered sum(|k| x[k]);
        schedule y { split k by 64 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by atomic; }
    }
}

/// Kernels with sizes.
fn cases() -> Vec<(&'static KernelInfo, Vec<Vec<i64>>)> {
    let lengths = |all: &[i64]| all.iter().map(|n| vec![*n]).collect::<Vec<_>>();
    let tables = |all: &[[i64; 2]]| all.iter().map(|n| n.to_vec()).collect::<Vec<_>>();
    vec![
        (FullSum::KERNEL, lengths(&[0, 4, 28, 4096, 4100, 50_000])),
        (Norms::KERNEL, tables(&[[0, 7], [1, 1], [7, 31], [8, 64], [31, 33], [33, 100]])),
        (Columns::KERNEL, tables(&[[0, 8], [1, 4], [7, 32], [31, 36], [33, 132]])),
        (ArgMax::KERNEL, lengths(&[1, 7, 31, 33, 256, 257, 5003])),
        (Variance::KERNEL, lengths(&[0, 1, 7, 31, 33, 256, 257, 5003])),
        (Both::KERNEL, lengths(&[0, 1, 7, 31, 33, 64, 65, 1003])),
        (Rows::KERNEL, tables(&[[1, 0], [1, 1], [7, 31], [5, 129], [31, 33], [4, 1000]])),
        (AnyNan::KERNEL, tables(&[[0, 3], [1, 1], [7, 31], [5, 129], [31, 33]])),
        (ColumnMax::KERNEL, tables(&[[0, 8], [1, 4], [7, 33], [31, 36], [33, 132]])),
        (AnyOrder::KERNEL, tables(&[[0, 8], [1, 4], [7, 33], [31, 36], [33, 132]])),
        (AnyOrderWide::KERNEL, lengths(&[0, 1, 65, 1003])),
        (FirstMax::KERNEL, lengths(&[1, 7, 65, 1003])),
        (FirstMin::KERNEL, lengths(&[1, 7, 65, 1003])),
    ]
    .into_iter()
    .chain(atomics().map(|info| (info, lengths(&[0, 1, 7, 63, 65, 1003]))))
    .collect()
}

fn atomics() -> impl Iterator<Item = &'static KernelInfo> {
    let first = [SumNarrow::KERNEL, SumWide::KERNEL, MaxSigned::KERNEL, MinUnsigned::KERNEL, MinSigned::KERNEL];
    let second = [MaxHalf::KERNEL, MinSingle::KERNEL, MaxDouble::KERNEL, AllTrue::KERNEL, AnyTrue::KERNEL];
    first.into_iter().chain(second)
}

/// Numbers that compare in their own ways: zeros, infinities, NaN, subnormal ones; at every place in turn.
#[test]
fn ranks_are_in_the_order_of_values() {
    let special =
        [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN, 1e-40, -1e-40, f32::MAX, f32::MIN, 1.5];
    let device = Device::emulator(EmulatorOptions::default());
    for shift in 0..special.len() {
        for stride in 1..special.len() {
            let n = 150;
            let x = crate::support::data(&device, [n], |k| special[(k / 40 * stride + shift) % special.len()]);
            let (mut least, mut first, mut last) = (
                Tensor::zeros(&device, []).unwrap(),
                Tensor::zeros(&device, []).unwrap(),
                Tensor::zeros(&device, []).unwrap(),
            );
            MinSingle { x: &x, y: &mut least }.launch(&device).unwrap();
            FirstMax { x: &x, y: &mut first }.launch(&device).unwrap();
            FirstMin { x: &x, y: &mut last }.launch(&device).unwrap();
            let checked = [
                MinSingle { x: &x, y: &mut least }.reference().unwrap().check("y", &least),
                FirstMax { x: &x, y: &mut first }.reference().unwrap().check("y", &first),
                FirstMin { x: &x, y: &mut last }.reference().unwrap().check("y", &last),
            ];
            for result in checked {
                result.unwrap_or_else(|e| panic!("{shift} {stride}: {e}"));
            }
        }
    }
}

/// Sums of numbers so small that memory adds them as zeros: in the interval of the reference, and not what `by grid`
/// gives.
#[test]
fn memory_adds_no_subnormal_numbers() {
    let device = Device::emulator(EmulatorOptions::default());
    let x = crate::support::data(&device, [40, 3], |_| 1e-41_f32);
    let mut y = Tensor::zeros(&device, [3]).unwrap();
    AnyOrder { x: &x, y: &mut y }.launch(&device).unwrap();
    assert_eq!(y.to_vec().unwrap(), [0.0; 3]);
    AnyOrder { x: &x, y: &mut y }.reference().unwrap().check("y", &y).unwrap();
}

#[test]
fn awkward_sizes_under_many_seeds() {
    for (info, sizes) in cases() {
        for (n, dims) in (0..).zip(&sizes) {
            for seed in [n, 100 + n, 200 + n] {
                let device = Device::emulator(EmulatorOptions::default().seed(seed));
                let outcome = launched_on(info, dims, n, &device);
                assert!(outcome.is_good(), "{} {dims:?}, seed {seed}: {outcome:#?}\n{}", info.name, info.ptx.text);
            }
        }
    }
}

#[test]
fn a_million_elements() {
    let device = Device::emulator(EmulatorOptions::default());
    for (info, n) in [(FullSum::KERNEL, 1_000_004), (ArgMax::KERNEL, 1_000_003)] {
        let outcome = Trial::new(info, &[n], 1, &device).unwrap().run(&device);
        assert!(outcome.is_good(), "{}: {outcome:#?}", info.name);
    }
}

/// Whichever block is the last, and however often the launch runs: what it leaves behind is what the next one needs.
#[test]
fn the_same_bits_every_time() {
    let n = 20_000;
    let mut found = Vec::new();
    for seed in 0..12 {
        let device = Device::emulator(EmulatorOptions::default().seed(seed));
        let x = crate::support::data(&device, [n], |k| ((k * 7919) % 1009) as f32 / 7.0 - 60.0);
        let (mut y, mut z) = (Tensor::zeros(&device, []).unwrap(), Tensor::zeros(&device, []).unwrap());
        FullSum { x: &x, y: &mut y }.launch(&device).unwrap();
        found.push(y.to_vec().unwrap()[0].to_bits());
        let prepared = FullSum { x: &x, y: &mut y }.prepare(&device).unwrap();
        for _ in 0..3 {
            prepared.run().unwrap();
            found.push(y.to_vec().unwrap()[0].to_bits());
        }
        let other = FullSum { x: &x, y: &mut z }.prepare(&device).unwrap();
        let mut graph = Graph::new(&device, [prepared, other]).unwrap();
        for _ in 0..2 {
            graph.run(&device).unwrap();
            found.extend([y.to_vec().unwrap()[0].to_bits(), z.to_vec().unwrap()[0].to_bits()]);
        }
    }
    assert!(found.iter().all(|bits| *bits == found[0]), "{found:x?}");
}

/// Other sizes on one stream, so that memory is used again, for kernels that lay it out otherwise.
#[test]
fn memory_is_used_again() {
    let device = Device::emulator(EmulatorOptions::default());
    for n in [5000, 64, 12_000, 8] {
        let x = crate::support::data(&device, [n], |k| (k % 17) as f32);
        let (mut y, mut at) = (Tensor::zeros(&device, []).unwrap(), Tensor::zeros(&device, []).unwrap());
        FullSum { x: &x, y: &mut y }.launch(&device).unwrap();
        ArgMax { x: &x, y: &mut at }.launch(&device).unwrap();
        let sum: usize = (0..n).map(|k| k % 17).sum();
        assert_eq!((y.to_vec().unwrap()[0], at.to_vec().unwrap()[0]), (sum as f32, 16.min(n as u32 - 1)));
    }
}

/// What a launch leaves that failed, the next one does not find.
#[test]
fn a_failed_launch_leaves_nothing() {
    use tilewright::__private::{Arg, launch};
    let device = Device::emulator(EmulatorOptions::default());
    let x = crate::support::data(&device, [20_000], |k| (k % 17) as f32);
    let mut y = Tensor::zeros(&device, []).unwrap();
    let mut info = FullSum::KERNEL.clone();
    info.ptx.text = info.ptx.text.replace("atom.acq_rel.gpu.global.inc", "atom.relaxed.gpu.global.add").into();
    assert!(launch(&info, &[Arg::input(&x), Arg::output(&mut y)], device.as_ref()).is_err());
    FullSum { x: &x, y: &mut y }.launch(&device).unwrap();
    assert_eq!(y.to_vec().unwrap(), [(0..20_000).map(|k| (k % 17) as f32).sum::<f32>()]);
}

const FULL: &str = "kernel Full(x: f32[N]) -> (y: f32[]) {
    y[] = sum(|k| x[k]);
    schedule y { split k by 128 -> kb, ki; split ki by 64 -> r, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid; }
}";

const SPLIT: &str = "kernel Split(x: f32[M, N]) -> (y: f32[N]) {
    y[j] = sum(|i| x[i, j]);
    schedule y { split j by 64 -> jb, t; split i by 4 -> ib, ii; bind jb, ib: grid; bind t: thread; reduce ib by grid; }
}";

const ATOMIC: &str = "kernel Atomic(x: u32[N]) -> (y: u32[]) {
    y[] = max(|k| x[k]);
    schedule y { split k by 128 -> kb, ki; split ki by 64 -> r, t; bind kb: grid; bind t: thread; reduce t; reduce kb by atomic; }
}";

/// In place: all blocks of a group read what the last of them writes.
const IN_PLACE: &str = "kernel InPlace(x: f32[M, N], inout s: f32[N]) -> () {
    s[j] = s[j] + sum(|i| x[i, j] * s[j]);
    schedule s { split j by 64 -> jb, t; split i by 4 -> ib, ii; bind jb, ib: grid; bind t: thread; reduce ib by grid; }
}";

/// With a stage of its own inside, and with copies by the accelerator that run ahead.
const STAGED: &str = "kernel Staged(x: f32[M, N]) -> (y: f32[N]) where N % 4 == 0 {
    y[j] = sum(|i| x[i, j]);
    schedule y {
        split j by 64 -> jb, t; split i by 32 -> ib, iq; split iq by 8 -> io, ii;
        reorder jb, ib, io, t, ii;
        bind jb, ib: grid; bind t: thread; reduce ib by grid;
    }
    stage xs[i, j] = x in shared at y.io ring(2) via tma { box i by 8 -> ic, bb; box j by 64 -> jc, jj; }
}";

const INNER: &str = "kernel Inner(x: f32[N], w: f32[N]) -> (y: f32[]) {
    e[k] = exp(x[k]) * w[k];
    y[] = sum(|k| e[k] * e[k]);
    schedule y { split k by 256 -> kb, ki; split ki by 64 -> r, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid; }
    schedule e in shared at y.kb { split k by 64 -> r, t; bind t: thread; }
}";

#[test]
fn beside_other_things() {
    let tables: &[&[i64]] = &[&[0, 4], &[1, 4], &[7, 36], &[70, 200]];
    for (source, sizes) in [(IN_PLACE, tables), (STAGED, tables), (INNER, &[&[0], &[7], &[1000]])] {
        let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
        let info = kernel.info.as_ref().unwrap();
        for (seed, dims) in (0..).zip(sizes) {
            // No tensor map has a size of 0: such launches take another entry point.
            if !dims.contains(&0) {
                prove(&kernel, dims);
            }
            let device = Device::emulator(EmulatorOptions::default().seed(seed));
            let outcome = Trial::new(info, dims, seed, &device).unwrap().run(&device);
            assert!(outcome.is_good(), "{} {dims:?}: {outcome:#?}", info.name);
        }
    }
    let stored =
        STAGED.replace("stage xs", "stage ys[j] = y in shared at y.jb via tma { box j by 64 -> jc, jj; } stage xs");
    let (codes, report) = finished(&stored).map(|_| ()).expect_err("the copy would go with every block");
    assert_eq!(codes, [Code::TW0005], "{report}");
}

#[test]
fn the_separate_checker_agrees() {
    let lengths: &[&[i64]] = &[&[0], &[1], &[300], &[512]];
    for (source, sizes) in [(FULL, lengths), (ATOMIC, lengths), (SPLIT, &[&[0, 3], &[1, 1], &[9, 70], &[31, 33]])] {
        let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
        sizes.iter().for_each(|dims| prove(&kernel, dims));
    }
}

/// The separate checker misses whatever is left out: barriers, arrivals, partials; and a wrong number of blocks.
#[test]
fn nothing_is_left_out() {
    let mut tried = 0;
    for (source, dims) in [(FULL, &[900][..]), (ATOMIC, &[900]), (SPLIT, &[9, 70])] {
        let compiled = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
        tried += crate::support::each_part_of_an_arrival_is_missed(&compiled, dims);
    }
    assert!(tried >= 15, "{tried}");
}

/// The threads of the last block know that it is the last, by whatever means, and do not wait for the one that arrived:
/// they read too early.
#[test]
fn the_decision_is_a_barrier() {
    use tilewright_compiler::kernel_ir::{Op, Type, Value};
    for (source, dims) in [(FULL, &[900][..]), (SPLIT, &[9, 40])] {
        let compiled = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
        let (info, kernel) = (compiled.info.as_ref().unwrap(), &compiled.entries[0].kernel);
        let launch = Launch::new(info, dims).unwrap();
        let mut changed = kernel.clone();
        let statements = changed.regions.iter_mut().flat_map(|region| &mut region.statements);
        let agree = statements.into_iter().find(|s| matches!(s.kind, StatementKind::BarRedOr { .. })).unwrap();
        let StatementKind::BarRedOr { result, .. } = agree.kind else { unreachable!() };
        agree.kind = StatementKind::Let(result);
        // There is one group here, and blocks come in order.
        let block = changed.values.iter().position(|v| v.op == Op::BlockIndex).unwrap() as u32;
        let facts = changed.values[block as usize].facts;
        changed.values.push(Value {
            op: Op::Literal(launch.blocks as u64 - 1),
            ty: Type::I32,
            facts,
            ..changed.values[block as usize]
        });
        let last = tilewright_compiler::kernel_ir::ValueId(changed.values.len() as u32 - 1);
        let is_last = Op::CompareIndex(
            tilewright::kernel::algorithm::Compare::Eq,
            tilewright_compiler::kernel_ir::ValueId(block),
            last,
        );
        changed.values[result.index()].op = is_last;
        let verdict = prove_one(&changed, &launch, 1_000_000);
        assert!(matches!(&verdict, Verdict::Violated(v) if v.kind == Kind::Race), "{verdict:?}\n{changed}");
    }
}

#[test]
fn the_emulator_notices_what_orders_nothing() {
    for (info, dims) in [(Norms::KERNEL, &[33, 100][..]), (FullSum::KERNEL, &[50_000]), (ColumnMax::KERNEL, &[33, 132])]
    {
        crate::support::each_order_is_noticed(info, dims);
    }
}

/// Every barrier of every kernel here is missed by the emulator: without it something races, does not end or comes out
/// wrong, under some seed.
#[test]
fn the_emulator_misses_every_barrier() {
    let (mut tried, mut kept) = (0, Vec::new());
    for (info, sizes) in cases() {
        let text = &info.ptx.text;
        let lines: Vec<&str> = text.lines().collect();
        // The entry point that these sizes take is the first one.
        let mut entries = lines.iter().enumerate().filter(|(_, line)| line.contains(".entry")).map(|(at, _)| at);
        let end = entries.nth(1).unwrap_or(lines.len());
        for (at, line) in lines[..end].iter().enumerate() {
            let gone = if line.contains("bar.sync") || line.contains("bar.warp.sync") {
                String::new()
            } else if let Some((result, said)) =
                line.trim().strip_prefix("bar.red.or.pred").and_then(|rest| rest.split_once(", 0, "))
            {
                // Every thread decides for itself.
                format!("or.pred {result}, {said} {said}").replace("; ", ", ")
            } else {
                continue;
            };
            tried += 1;
            let mut mutant = info.clone();
            let changed = lines.iter().enumerate().map(|(n, line)| if n == at { gone.as_str() } else { line });
            mutant.ptx.text = changed.collect::<Vec<_>>().join("\n").into();
            let is_missed = |dims: &Vec<i64>| {
                (0..8).any(|seed| {
                    let device = Device::emulator(EmulatorOptions::default().seed(seed));
                    !Trial::new(&mutant, dims, 1, &device).unwrap().run(&device).is_good()
                })
            };
            if !sizes.iter().rev().any(is_missed) {
                kept.push((&*info.name, line.trim().split('.').nth(1)));
            }
        }
    }
    assert!(kept.is_empty(), "{kept:?}");
    assert!(tried >= 30, "{tried}");
}

schedule! {
    kernel LongRows(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        schedule y { split j by 256 -> r, t; bind i: grid; bind t: thread; reduce t; }
    }
}

/// A wrong sum that some order of 4096 terms could give; the 15 additions of a thread and the 255 of a block cannot.
#[test]
fn sums_are_narrower_as_scheduled() -> tilewright::Result<()> {
    let device = Device::emulator(EmulatorOptions::default());
    let (m, n) = (3, 4096);
    let data: Vec<f32> = (0..m * n).map(|k| 1.0 + (k * 7919 % 4093) as f32 / 4099.0).collect();
    let x = Tensor::from_slice(&device, &data, [m, n])?;
    let mut y = Tensor::zeros(&device, [m])?;
    LongRows { x: &x, y: &mut y }.launch(&device)?;
    let any = LongRows { x: &x, y: &mut y }.reference()?;
    let own = LongRows { x: &x, y: &mut y }.evaluate_as_scheduled()?;
    any.check("y", &y)?;
    own.check("y", &y)?;
    let wrong: Vec<f32> = y.to_vec()?.into_iter().map(|sum| sum + 0.7).collect();
    let wrong = Tensor::from_slice(&device, &wrong, [m])?;
    any.check("y", &wrong)?;
    assert!(own.check("y", &wrong).is_err());
    Ok(())
}

fn refused(schedule: &str) -> (Vec<Code>, String) {
    let source =
        format!("kernel K(x: f32[M, N]) -> (y: f32[M]) {{ y[i] = sum(|j| x[i, j]); schedule y {{ {schedule} }} }}");
    finished(&source).map(|_| ()).expect_err(schedule)
}

#[test]
fn what_is_no_reduction_across_blocks() {
    for schedule in ["bind j: grid;", "bind j: grid; reduce j;", "bind j: grid; reduce j by cta;"] {
        let (codes, report) = refused(schedule);
        assert_eq!(codes, [Code::TW0703], "{report}");
        assert!(report.contains("`reduce j by grid;`"), "{report}");
    }
    let (codes, report) = refused("split j by 32 -> jo, t; bind t: thread; reduce t by grid;");
    assert_eq!(codes, [Code::TW0708], "{report}");
    let (codes, report) = refused("bind j: grid; reduce j by atomic;");
    assert_eq!(codes, [Code::TW1009], "{report}");
    let (codes, report) = refused("bind i: grid; reduce i by grid;");
    assert_eq!(codes, [Code::TW0708], "{report}");
}

/// Random reductions: which axes blocks, warps, threads and loops have, in what order, and how blocks combine.
#[test]
fn random_reductions() {
    let (seed, count) = crate::support::campaign("TILEWRIGHT_GRID", (1, 60));
    let mut accepted = 0;
    for n in 0..count {
        let mut draw = crate::support::Draw::new(seed, n);
        let (element, operation) = *draw.pick(&crate::support::REDUCTIONS);
        let by = if draw.chance(50) && operation != "prod" && (operation, element) != ("sum", "f32") {
            "atomic"
        } else {
            "grid"
        };
        let result = if operation == "argmin" { "u32" } else { element };
        // Rows of the result, terms of each; a term is found along one axis or two.
        let both = draw.chance(30) && operation != "argmin";
        let (shape, index, bound) = if both { ("M, K, L", "i, k, l", "k, l") } else { ("M, K", "i, k", "k") };
        let mut ops = String::new();
        if both {
            ops += "merge k, l -> r; ";
        }
        let terms = if both { "r" } else { "k" };
        let (per_block, threads) = (*draw.pick(&[1, 3, 8, 40, 64]), *draw.pick(&[1, 2, 5, 8, 32]));
        ops += &format!("split {terms} by {per_block} -> kb, ki; split ki by {threads} -> ks, kt; ");
        let (rows, lanes) = (*draw.pick(&[1, 2, 3, 7]), *draw.pick(&[1, 2, 4]));
        ops += &format!("split i by {} -> ib, ii; split ii by {lanes} -> is, it; ", rows * lanes);
        let mut order = ["ib", "kb", "ks", "is", "it", "kt"];
        for last in (1..order.len()).rev() {
            order.swap(last, draw.below(last + 1));
        }
        ops += &format!("reorder {}; ", order.join(", "));
        let rows_of_blocks = draw.chance(60);
        ops += if rows_of_blocks { "bind ib, kb: grid; " } else { "bind kb: grid; " };
        let threads_of_terms = draw.chance(70);
        let threads_of_rows = draw.chance(60);
        if threads_of_rows {
            ops += "bind it: thread; ";
        }
        if threads_of_terms {
            ops += "bind kt: thread; reduce kt; ";
        }
        ops += &format!("reduce kb by {by};");
        let source = format!(
            "kernel Random(x: {element}[{shape}]) -> (y: {result}[M]) where K >= 1 {{
                y[i] = {operation}(|{bound}| x[{index}]);
                schedule y {{ {ops} }}
            }}"
        );
        let kernel = match finished(&source) {
            Ok(kernel) => kernel,
            // Loops over rows that only a size bounds, inside loops over terms.
            Err((codes, report)) => {
                assert!(codes.iter().all(|code| *code == Code::TW0406), "case {n}: {codes:?}\n{source}\n{report}");
                continue;
            }
        };
        accepted += 1;
        let info = kernel.info.as_ref().unwrap();
        for turn in 0..3 {
            let size = |draw: &mut crate::support::Draw| *draw.pick(&[1_i64, 2, 3, 7, 13, 31, 33, 70]);
            let mut dims = vec![size(&mut draw), size(&mut draw)];
            if both {
                dims.push(draw.below(6) as i64);
            }
            prove(&kernel, &dims);
            let device = Device::emulator(EmulatorOptions::default().seed(n * 8 + turn));
            for _ in 0..2 {
                let outcome = launched_on(info, &dims, n, &device);
                assert!(outcome.is_good(), "case {n}, {dims:?}: {outcome:#?}\n{source}\n{}", info.ptx.text);
            }
        }
    }
    assert!(count < 60 || accepted * 3 > count, "{accepted} of {count}");
}

/// Of one result by atomic operations only the first thread of the last block hears: what the others write for another
/// output is before or after its arrival, as the outputs come.
#[test]
fn atomic_results_stand_beside_other_outputs() {
    const PERSISTENT: &str = "launch persistent;";
    let source = |first: &str, second: &str, launch: &str| {
        format!(
            "kernel K(v: i32[N]) -> (y: i32[N], z: i32[1]) {{
                {first}
                {second}
                {launch}
                schedule y {{ split j by 32 -> a, b; bind a: grid; bind b: thread; }}
                schedule z {{
                    split j by 32 -> j3, j4; bind j4: thread; bind j3: grid; reduce j4; reduce j3 by atomic;
                }}
            }}"
        )
    };
    let [y, z] = ["y[j] = v[j];", "z[o] = sum(|j| v[j]);"];
    let sizes: &[&[i64]] = &[&[1], &[33], &[200], &[0]];
    // Nobody waits after the arrival.
    for launch in ["", "launch threads(64);"] {
        tried(&source(z, y, launch), sizes, 3);
    }
    for (first, second, launch) in [(y, z, ""), (y, z, "launch threads(64);"), (y, z, PERSISTENT), (z, y, PERSISTENT)] {
        let source = source(first, second, launch);
        let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
        runs(&source, &kernel, sizes, 3);
    }
}

/// A reduction across the grid has one block where it has no terms, however far its range ends before it begins. What
/// that block shares must have offsets of 32 bits, or the other entry point runs.
#[test]
fn blocks_without_terms_count_for_the_width_of_indices() {
    let source = "kernel K(x: f32[M, N]) -> (y: f32[M, N]) where N <= 32 {
        y[i, j] = sum(|k in 2..N| x[i, k]);
        schedule y { split j by 32 -> j1, j2; bind j2: thread; bind k, i: grid; reduce k by grid; }
    }";
    let kernel = compiled(source).expect("it is accepted");
    let narrow = &kernel.entries[0];
    let takes = |dims: &[i64]| narrow.conditions.iter().all(|c| c.holds(dims) == Ok(true));
    // 32 partials for each row.
    assert!(takes(&[1 << 20, 1]), "{:?}", narrow.conditions);
    assert!(!takes(&[1 << 30, 1]), "{:?}", narrow.conditions);
}
