//! Sums of squares that follow a mean in one pass: variances, layer norm, statistics whose terms blocks share. Every
//! kernel runs for awkward sizes under several seeds, through the separate checker at all its entry points, and gives
//! what `reference()` does; rows far from 0, constant ones, and rows with infinities and NaN do, too.

use super::online::{BY_GRID, WARPS, read, tensor};
use crate::support::{finished, tried};
use tilewright::__private::{Arg, launch, reference};
use tilewright::kernel::ElementType;
use tilewright::kernel::info::KernelInfo;
use tilewright::{Device, EmulatorOptions};

/// Mean and sum of squares of rows.
fn statistics(ty: &str, ops: &str, more: &str) -> String {
    format!(
        "kernel Statistics(x: {ty}[M, N]) -> (mean: {ty}[M], m2: {ty}[M]) {{
            mu[i] = sum(|j| x[i, j]) / (N as {ty});
            v[i] = online sum(|j| (x[i, j] - mu[i]) * (x[i, j] - mu[i]));
            mean[i] = mu[i];
            m2[i] = v[i];
            launch threads(128);
            schedule mean {{ split i by 4 -> ib, t; bind ib: grid; bind t: thread; }}
            schedule m2 at mean.ib {{ like mean; }}
            schedule mu in shared at mean.ib {{ {ops} online mu -> v over jo; }}
            {more}
        }}"
    )
}

/// Weighted mean, sum of the weights and weighted squares of rows.
fn weighted(ty: &str, weight: &str, ops: &str) -> String {
    format!(
        "kernel Weighted(x: {ty}[M, N], w: {ty}[M, N]) -> (mean: {ty}[M], all: {ty}[M], m2: {ty}[M]) {{
            mu[i] = sum(|j| {weight} * x[i, j]) / sum(|j| {weight});
            v[i] = online sum(|j| {weight} * ((x[i, j] - mu[i]) * (x[i, j] - mu[i])));
            mean[i] = mu[i];
            all[i] = mu[i];
            m2[i] = v[i];
            launch threads(128);
            schedule mean {{ split i by 4 -> ib, t; bind ib: grid; bind t: thread; }}
            schedule all at mean.ib {{ like mean; }}
            schedule m2 at mean.ib {{ like mean; }}
            schedule mu in shared at mean.ib {{ {ops} online mu -> v over jo; }}
        }}"
    )
}

/// The same where the sums have equations of their own, and the weights' sum is read beside.
fn apart(source: &str, weight: &str) -> String {
    source
        .replace(
            &format!("mu[i] = sum(|j| {weight} * x[i, j]) / sum(|j| {weight});"),
            &format!(
                "sw[i] = sum(|j| {weight});
                s[i] = sum(|j| {weight} * x[i, j]);
                mu[i] = s[i] / sw[i];"
            ),
        )
        .replace("all[i] = mu[i]", "all[i] = sw[i]")
        .replace("schedule mu", "schedule s")
        .replace("online mu", "online s")
}

/// Sizes are M, N.
const SIZES: &[&[i64]] = &[&[1, 4], &[3, 128], &[6, 132], &[5, 0], &[0, 8], &[2, 517]];

#[test]
fn ways_to_run_the_terms() {
    let block = "split j by 128 -> jo, t; bind t: thread; reduce t;";
    let cases = [
        statistics("f32", WARPS, ""),
        statistics("f64", WARPS, ""),
        // Other words for it: the sum, and the mean in an equation of its own; the difference in another one.
        statistics("f32", WARPS, "")
            .replace("mu[i] = sum(|j| x[i, j]) / (N as f32);", "s[i] = sum(|j| x[i, j]); mu[i] = s[i] / (N as f32);")
            .replace("schedule mu", "schedule s")
            .replace("online mu", "online s"),
        statistics("f32", WARPS, "").replace(
            "v[i] = online sum(|j| (x[i, j] - mu[i]) * (x[i, j] - mu[i]));",
            "d[i, j] = mu[i] - x[i, j]; v[i] = online sum(|j| pow(d[i, j], 2));",
        ),
        // What the terms are made of is computed.
        statistics("f32", WARPS, "").replace("x[i, j]", "exp(0.5 * x[i, j])"),
        // Copies that run ahead, in the loop of the blocks.
        statistics("f32", block, "stage xs[i, j] = x in shared at mu.jo ring(3) via cp_async { bind j: thread; }"),
        statistics("f32", block, "stage xs[i, j] = x in registers at mu.jo { bind j: thread; }"),
        // A role that loads.
        statistics("f32", block, "stage xs[i, j] = x in shared at mu.jo ring(2) via tma by load;")
            .replace("[M, N])", "[M, N]) ")
            .replace("-> (mean: f32[M], m2: f32[M]) {", "-> (mean: f32[M], m2: f32[M]) where N % 4 == 0 {")
            .replace("launch threads(128);", "launch roles { math: warpgroup, load: warp };")
            .replace("schedule mean {", "schedule mean by math {")
            .replace("at mean.ib {", "at mean.ib by math {"),
        // Blocks of the grid share the terms, and merge what they have.
        statistics("f32", BY_GRID, "").replace("threads(128)", "threads(32)"),
    ];
    for source in cases {
        let sizes = if source.contains("N % 4") { &[&[1, 4][..], &[3, 128], &[6, 132], &[0, 8]][..] } else { SIZES };
        tried(&source, sizes, 2);
    }
}

#[test]
fn weights_of_the_terms() {
    let size = "abs(w[i, j])";
    let cases = [
        weighted("f32", size, WARPS),
        weighted("f64", "max(w[i, j], 0.0)", WARPS),
        apart(&weighted("f32", size, WARPS), size),
        // The sum of the weights has a place of its own.
        apart(&weighted("f32", size, WARPS), size)
            .replace("schedule s in", "schedule sw in shared at mean.ib { bind i: thread; } schedule s in"),
        // Other words for the terms; a mask; one row of weights for all.
        weighted("f32", size, "split j by 128 -> jo, t; bind t: thread; reduce t;").replace(
            "abs(w[i, j]) * ((x[i, j] - mu[i]) * (x[i, j] - mu[i]))",
            "pow(mu[i] - x[i, j], 2) * abs(w[i, j])",
        ),
        weighted("f32", "(if w[i, j] > 0.25 { 1.0f32 } else { 0.0f32 })", WARPS),
        apart(&weighted("f32", "exp(w[0, j])", WARPS), "exp(w[0, j])").replace(
            "-> (mean: f32[M], all: f32[M], m2: f32[M]) {",
            "-> (mean: f32[M], all: f32[M], m2: f32[M]) where M >= 1 {",
        ),
        weighted("f32", size, BY_GRID).replace("threads(128)", "threads(32)"),
    ];
    for source in cases {
        let sizes = if source.contains("where M >= 1") { &SIZES[..4] } else { SIZES };
        tried(&source, sizes, 2);
    }
}

/// A name, the row, its weights.
type Row<'a> = (&'a str, &'a [f64], &'a [f64]);

/// Rows of all kinds with weights of all kinds: what the reference admits, and near what the equations say.
#[test]
fn weighted_rows_of_all_kinds_are_what_the_equations_say() {
    let source = apart(&weighted("f32", "abs(w[i, j])", WARPS), "abs(w[i, j])");
    let kernel = finished(&source).unwrap_or_else(|(_, report)| panic!("{report}"));
    let info = kernel.info.as_ref().expect("no error");
    let device = Device::emulator(EmulatorOptions::default());
    for n in [4, 128, 300] {
        let noise = |j: usize| (j * 7919 % 1013) as f64 / 1013.0;
        let each = |of: &dyn Fn(usize) -> f64| (0..n).map(of).collect::<Vec<f64>>();
        let weights = [
            each(&|_| 1.0),
            each(&noise),
            each(&|j| if j < n / 2 { 0.0 } else { -1.0 }),
            each(&|j| (noise(j) * 60.0 - 30.0).exp2()),
            each(&|_| 0.0),
            each(&|j| if j == n / 3 { f64::NAN } else { 1.0 }),
            each(&|j| if j == n / 3 { f64::INFINITY } else { 1.0 }),
        ];
        let rows = rows(n);
        let all: Vec<Row<'_>> =
            rows.iter().flat_map(|(name, x)| weights.iter().map(|w| (*name, &x[..], &w[..]))).collect();
        let flat = |of: &dyn Fn(&Row<'_>) -> Vec<f64>| all.iter().flat_map(of).collect::<Vec<f64>>();
        let (m, ty) = (all.len(), ElementType::F32);
        let x = tensor(&device, ty, &[m, n], &flat(&|row| row.1.to_vec()));
        let w = tensor(&device, ty, &[m, n], &flat(&|row| row.2.to_vec()));
        let [mean, sums, m2] = [(), (), ()].map(|()| tensor(&device, ty, &[m], &vec![0.0; m]));
        let arguments = [
            Arg::dynamic(&x, false),
            Arg::dynamic(&w, false),
            Arg::dynamic(&mean, true),
            Arg::dynamic(&sums, true),
            Arg::dynamic(&m2, true),
        ];
        let admissible = reference(info, &arguments).unwrap_or_else(|e| panic!("{e}"));
        launch(info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}"));
        for (output, tensor) in admissible.outputs().zip([&mean, &sums, &m2]) {
            output.check_raw(&tensor.read().expect("written")).unwrap_or_else(|e| panic!("{}: {e}", output.name()));
        }
        let near: Vec<f64> = read(ty, &m2).iter().map(|x| x * 1.01).collect();
        let wrong = tensor_bytes(&device, ty, &near);
        assert!(admissible.output("m2").expect("an output").check_raw(&wrong).is_err(), "the interval is too wide");
        let mut compared = 0;
        for ((name, x, w), found) in all.iter().zip(read(ty, &m2)) {
            let pairs = || x.iter().zip(*w).map(|(x, w)| (f64::from(*x as f32), f64::from(w.abs() as f32)));
            let total: f64 = pairs().map(|p| p.1).sum();
            let mu = pairs().map(|(x, w)| w * x).sum::<f64>() / total;
            let direct: f64 = pairs().map(|(x, w)| w * (x - mu) * (x - mu)).sum();
            let size = pairs().map(|p| p.0.abs()).fold(0.0, f64::max);
            if size.is_finite() && size < 1.0e15 && direct.is_finite() {
                let unit = n as f64 * 1.0e-7;
                let slack = 8.0 * unit * (direct + size * (total * direct).sqrt() + unit * size * size * total);
                assert!((found - direct).abs() <= slack + 1.0e-37, "{name}, {n}: {found} for {direct}");
                compared += 1;
            } else if direct.is_nan() && size < 1.0e15 {
                assert!(found.is_nan(), "{name}, {n}: {found}");
            }
        }
        assert!(compared > 30, "{compared}");
    }
}

#[test]
fn norms_of_rows() {
    // The differences are needed again: the loops over terms, then the stores.
    let norm = "kernel Norm(x: f32[M, N]) -> (y: f32[M, N]) {
        mu[i] = sum(|j| x[i, j]) / (N as f32);
        v[i] = online sum(|j| (x[i, j] - mu[i]) * (x[i, j] - mu[i]));
        y[i, j] = (x[i, j] - mu[i]) * rsqrt(v[i] / (N as f32) + 1e-5);
        schedule y { bind i: grid; split j by 128 -> jo, t; bind t: thread; }
        schedule mu in registers at y.i { like y; reduce t; online mu -> v over jo; }
    }";
    tried(norm, &[&[1, 1], &[2, 127], &[3, 300], &[2, 0]], 2);
    // Blocks of a cluster share the terms.
    let cluster = "kernel Norm(x: f32[M, N]) -> (y: f32[M, N]) where N <= 4096 {
        mu[i] = sum(|j| x[i, j]) / (N as f32);
        v[i] = online sum(|j| (x[i, j] - mu[i]) * (x[i, j] - mu[i]));
        y[i, j] = (x[i, j] - mu[i]) * rsqrt(v[i] / (N as f32) + 1e-5);
        launch cluster(2), threads(64);
        schedule y { split j by 64 -> j1, t; split j1 into 2 -> c, jo; bind i: grid; bind c: cta; bind t: thread; }
        schedule mu in registers at y.i { like y; reduce t; reduce c by cluster; online mu -> v over jo; }
    }";
    tried(cluster, &[&[1, 1], &[2, 300], &[1, 64], &[2, 0]], 2);
    // As many terms as the row's number says.
    let prefixes = "kernel Prefixes(x: f32[N, N]) -> (y: f32[N]) {
        mu[i] = sum(|j in 0..=i| x[i, j]) / ((i + 1) as f32);
        v[i] = online sum(|j in 0..=i| (x[i, j] - mu[i]) * (x[i, j] - mu[i]));
        y[i] = v[i] / ((i + 1) as f32);
        launch threads(32);
        schedule y { split i by 4 -> b, t; bind b: grid; bind t: thread; }
        schedule mu in shared at y.b {
            split j by 64 -> jo, j1; split j1 by 32 -> v, t; bind t: thread; reduce t; online mu -> v over jo;
        }
    }";
    tried(prefixes, &[&[1], &[5], &[70]], 2);
}

/// Rows of all kinds.
fn rows(n: usize) -> Vec<(&'static str, Vec<f64>)> {
    let each = |of: &dyn Fn(usize) -> f64| (0..n).map(of).collect::<Vec<f64>>();
    let noise = |j: usize| ((j * 7919 % 1013) as f64 / 1013.0 - 0.5) * 2.0;
    vec![
        ("around 0", each(&noise)),
        ("far from 0", each(&|j| 1000.0 + noise(j))),
        ("a mean that moves", each(&|j| j as f64 * 0.25)),
        ("two levels", each(&|j| if j < n / 2 { -3.0 } else { 5.0 })),
        ("one that is far", each(&|j| if j == n - 1 { 1.0e6 } else { noise(j) })),
        ("equal terms", each(&|_| 3.1)),
        ("zeros", each(&|j| if j % 2 == 0 { 0.0 } else { -0.0 })),
        ("squares that underflow", each(&|j| noise(j) * 1.0e-23)),
        ("subnormal numbers", each(&|j| noise(j) * 1.0e-39)),
        ("squares that overflow", each(&|j| noise(j) * 1.0e30)),
        ("sums that overflow", each(&|j| if j % 2 == 0 { 3.0e38 } else { -3.0e38 })),
        ("infinity", each(&|j| if j == n / 3 { f64::INFINITY } else { 1.0 })),
        ("both infinities", each(&|j| [f64::INFINITY, 1.0, f64::NEG_INFINITY][j % 3])),
        ("NaN", each(&|j| if j == n / 3 { f64::NAN } else { 1.0 })),
    ]
}

/// Means and sums of squares of rows, compared with the reference.
fn run(info: &KernelInfo, ty: ElementType, x: &[Vec<f64>]) -> [Vec<f64>; 2] {
    let (m, n) = (x.len(), x[0].len());
    let device = Device::emulator(EmulatorOptions::default());
    let x = tensor(&device, ty, &[m, n], &x.concat());
    let [mean, m2] = [(), ()].map(|()| tensor(&device, ty, &[m], &vec![0.0; m]));
    let arguments = [Arg::dynamic(&x, false), Arg::dynamic(&mean, true), Arg::dynamic(&m2, true)];
    let admissible = reference(info, &arguments).unwrap_or_else(|e| panic!("{e}"));
    launch(info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}"));
    for (output, tensor) in admissible.outputs().zip([&mean, &m2]) {
        output.check_raw(&tensor.read().expect("written")).unwrap_or_else(|e| panic!("{}: {e}", output.name()));
    }
    // What is off by a little more than the contract says is none.
    let near: Vec<f64> = read(ty, &m2).iter().map(|x| x * 1.002).collect();
    let wrong = tensor_bytes(&device, ty, &near);
    assert!(admissible.output("m2").expect("an output").check_raw(&wrong).is_err(), "the interval is too wide");
    [read(ty, &mean), read(ty, &m2)]
}

fn tensor_bytes(device: &Device, ty: ElementType, values: &[f64]) -> Vec<u8> {
    tensor(device, ty, &[values.len()], values).read().expect("written")
}

#[test]
fn rows_of_all_kinds_are_what_the_equations_say() {
    for (ty, name) in [(ElementType::F32, "f32"), (ElementType::F64, "f64")] {
        let kernel = finished(&statistics(name, WARPS, "")).unwrap_or_else(|(_, report)| panic!("{report}"));
        let info = kernel.info.as_ref().expect("no error");
        for n in [4, 128, 300] {
            let rows = rows(n);
            let x: Vec<Vec<f64>> = rows.iter().map(|(_, row)| row.clone()).collect();
            let [mean, m2] = run(info, ty, &x);
            for (at, (name, row)) in rows.iter().enumerate() {
                let exact = if ty == ElementType::F32 {
                    row.iter().map(|x| f64::from(*x as f32)).collect()
                } else {
                    row.clone()
                };
                let mu = exact.iter().sum::<f64>() / n as f64;
                let direct: f64 = exact.iter().map(|x| (x - mu) * (x - mu)).sum();
                let unit = if ty == ElementType::F32 { 1.0e-7 } else { 1.0e-15 };
                let size = exact.iter().map(|x| x.abs()).fold(0.0, f64::max);
                let slack = n as f64 * (4.0 * unit * direct + unit * size * (direct.sqrt() + n as f64 * unit * size));
                if direct.is_finite() && direct < 1.0e38 && size < 1.0e38 {
                    let is_close = (m2[at] - direct).abs() <= slack + 1.0e-37;
                    assert!(is_close, "{name}, {ty}, {n}: {} for {direct}", m2[at]);
                    assert!((mean[at] - mu).abs() <= n as f64 * unit * size + 1.0e-44, "{name}, {ty}, {n}");
                } else if row.iter().any(|x| !x.is_finite()) {
                    assert!(m2[at].is_nan(), "{name}, {ty}, {n}: {}", m2[at]);
                }
            }
            let mirrored: Vec<Vec<f64>> = x.iter().map(|row| row.iter().rev().copied().collect()).collect();
            run(info, ty, &mirrored);
        }
    }
}
