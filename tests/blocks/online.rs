//! Sums that follow an extreme in one pass: log-sum-exp, statistics of softmax, weighted sums. Every kernel runs for
//! awkward sizes under several seeds, through the separate checker at all its entry points, and gives what
//! `reference()` does; rows with infinities, NaN, and as many corrections as there are terms do, too.

use std::iter::repeat_n;

use crate::support::{finished, tried};
use tilewright::__private::{Arg, DynamicTensor, launch, reference};
use tilewright::kernel::ElementType;
use tilewright::kernel::info::KernelInfo;
use tilewright::{Device, EmulatorOptions};
use tilewright_compiler::Compiled;

fn accepted(source: &str) -> Compiled {
    finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"))
}

/// A warp for each row.
pub const WARPS: &str =
    "split j by 128 -> jo, j1; split j1 by 32 -> v, t; bind i: warp; bind t: thread; reduce t; unroll v;";

/// Blocks of the grid share a row, each by a warp.
pub const BY_GRID: &str = "split j by 64 -> jb, j1; split j1 by 32 -> jo, t; reorder jb, i, jo, t; bind jb: grid; \
    bind t: thread; reduce t; reduce jb by grid;";

/// Weighted sums of exponentials: type, extreme, argument of the exponential, and who does what.
fn weighted(ty: &str, extreme: &str, exp: &str, ops: &str, more: &str) -> String {
    format!(
        "kernel Weighted(x: {ty}[M, N], w: {ty}[M, N]) -> (l: {ty}[M], a: {ty}[M]) where N % 4 == 0 {{
            m[i] = {extreme};
            p[i, j] = {exp};
            s[i] = online sum(|j| p[i, j]);
            b[i] = online sum(|j| p[i, j] * w[i, j]);
            l[i] = s[i];
            a[i] = b[i];
            launch threads(128);
            schedule l {{ split i by 4 -> ib, t; bind ib: grid; bind t: thread; }}
            schedule a at l.ib {{ like l; }}
            schedule m in shared at l.ib {{ {ops} online m -> s, b over jo; }}
            {more}
        }}"
    )
}

const MAX: &str = "max(|j| x[i, j])";
const EXP: &str = "exp(x[i, j] - m[i])";

/// Sizes are M, N.
const SIZES: &[&[i64]] = &[&[1, 4], &[3, 128], &[6, 132], &[5, 0], &[0, 8], &[4, 516]];

#[test]
fn ways_to_run_the_terms() {
    let block = "split j by 128 -> jo, t; bind t: thread; reduce t;";
    let cases = [
        weighted("f32", MAX, EXP, WARPS, ""),
        weighted("f64", "min(|j| x[i, j])", "exp(m[i] - x[i, j])", WARPS, ""),
        weighted("f32", MAX, "approx::exp(0.25 * (x[i, j] - m[i]))", WARPS, ""),
        // Vectors, a loop that is written out, several rows of a thread.
        weighted(
            "f32",
            MAX,
            EXP,
            "split j by 256 -> jo, j1; split j1 by 4 -> t, v; bind i: warp; bind t: thread; reduce t; \
            vectorize v; unroll jo by 2;",
            "",
        )
        .replace("by 256", "by 128"),
        weighted("f32", MAX, EXP, "split j by 128 -> jo, t; reorder jo, i, t; bind t: thread; reduce t;", ""),
        // Copies that run ahead, in the loop of the blocks.
        weighted(
            "f32",
            MAX,
            EXP,
            block,
            "stage xs[i, j] = x in shared at m.jo ring(3) via cp_async { bind j: thread; }
            stage ws[i, j] = w in registers at m.jo { bind j: thread; }",
        ),
        weighted("f32", MAX, EXP, block, "stage xs[i, j] = x in shared at m.jo ring(2) via tma;"),
        // A role that loads; blocks of a cluster, and blocks of the grid, that share the terms.
        weighted("f32", MAX, EXP, block, "stage xs[i, j] = x in shared at m.jo ring(2) via tma by load;")
            .replace("launch threads(128);", "launch roles { math: warpgroup, load: warp };")
            .replace("schedule l {", "schedule l by math {")
            .replace("at l.ib {", "at l.ib by math {"),
        weighted("f32", MAX, EXP, BY_GRID, "").replace("threads(128)", "threads(32)"),
    ];
    for source in cases {
        tried(&source, SIZES, 2);
    }
    // Blocks of a cluster share the terms.
    let cluster = "kernel K(x: f32[M, N]) -> (y: f32[M, N]) where N <= 4096 {
        m[i] = max(|j| x[i, j]);
        l[i] = online sum(|j| exp(x[i, j] - m[i]));
        y[i, j] = exp(x[i, j] - m[i]) / l[i];
        launch cluster(2), threads(64);
        schedule y { split j by 64 -> j1, t; split j1 into 2 -> c, jo; bind i: grid; bind c: cta; bind t: thread; }
        schedule m in registers at y.i { like y; reduce t; reduce c by cluster; online m -> l over jo; }
    }";
    tried(cluster, &[&[1, 1], &[2, 300], &[1, 64], &[2, 0]], 2);
    // The exponentials are needed again: the loops over terms, then the stores.
    let softmax = "kernel Softmax(x: f32[M, N]) -> (y: f32[M, N], z: f32[M]) {
        m[i] = max(|j| x[i, j]);
        p[i, j] = exp(x[i, j] - m[i]);
        l[i] = online sum(|j| p[i, j]);
        y[i, j] = p[i, j] / l[i];
        z[i] = m[i] + log(l[i]);
        schedule y { bind i: grid; split j by 128 -> jo, t; bind t: thread; }
        schedule z at y.i { bind i: grid; }
        schedule m in registers at y.i { like y; reduce t; online m -> l over jo; }
    }";
    tried(softmax, &[&[1, 1], &[2, 127], &[3, 300], &[2, 0]], 2);
    let causal = "kernel Causal(x: f32[N, N]) -> (y: f32[N]) {
        m[i] = max(|j in 0..=i| x[i, j]);
        l[i] = online sum(|j in 0..=i| exp(x[i, j] - m[i]));
        y[i] = m[i] + log(l[i]);
        launch threads(32);
        schedule y { split i by 4 -> b, t; bind b: grid; bind t: thread; }
        schedule m in shared at y.b {
            split j by 64 -> jo, j1; split j1 by 32 -> v, t; bind t: thread; reduce t; online m -> l over jo;
        }
    }";
    tried(causal, &[&[1], &[5], &[70]], 2);
}

/// One exponential for each term, and one for each block of terms.
#[test]
fn exponentials_of_a_block_share_a_correction() {
    let source = weighted("f32", MAX, "approx::exp(x[i, j] - m[i])", &WARPS.replace("by 128", "by 256"), "");
    let kernel = accepted(&source);
    let text = &kernel.info.as_ref().expect("no error").ptx.text;
    let entry = text.split(".entry").nth(1).expect("an entry point");
    let inside = entry.split("bra").next().map_or(0, |_| entry.matches("ex2.approx").count());
    // Eight terms and a correction in the loop; five merges of two parts each.
    assert_eq!(inside, 8 + 1 + 2 * 5, "{entry}");
}

/// Rows of all kinds, with what the extremes and sums of them are.
pub(super) fn rows(n: usize) -> Vec<(&'static str, Vec<f64>)> {
    let each = |of: &dyn Fn(usize) -> f64| (0..n).map(of).collect::<Vec<f64>>();
    let infinite = f64::NEG_INFINITY;
    let masked =
        |from: usize, to: usize| each(&|j| if (from..to).contains(&j) { (j as f64 * 0.7).sin() } else { infinite });
    vec![
        ("a correction for every term", each(&|j| j as f64 * 0.01)),
        ("larger ones", each(&|j| j as f64 * 0.9)),
        ("exponentials that vanish", each(&|j| j as f64 * 40.0)),
        ("exponentials near the least normal number", each(&|j| j as f64 * 87.1 / n as f64)),
        ("no correction", each(&|j| -(j as f64) * 0.3)),
        ("up and down", each(&|j| if j % 2 == 0 { j as f64 } else { -(j as f64) })),
        ("equal terms", each(&|_| 3.25)),
        ("large numbers", each(&|j| 1.0e6 + (j * j % 97) as f64 * 0.0625)),
        ("far apart", each(&|j| if j == n / 2 { 3.0e38 } else { -3.0e38 })),
        ("zeros", each(&|j| if j % 2 == 0 { 0.0 } else { -0.0 })),
        ("nothing at first", masked(n / 2, n)),
        ("nothing later", masked(0, 3)),
        ("one term", masked(n - 1, n)),
        ("nothing at all", masked(0, 0)),
        ("infinity", each(&|j| if j == n / 3 { f64::INFINITY } else { 1.0 })),
        ("infinity at last", each(&|j| if j == n - 1 { f64::INFINITY } else { infinite })),
        ("NaN", each(&|j| if j == n / 3 { f64::NAN } else { 1.0 })),
        ("NaN before anything", each(&|j| if j == 0 { f64::NAN } else { infinite })),
    ]
}

pub(super) fn tensor(device: &Device, ty: ElementType, shape: &[usize], values: &[f64]) -> DynamicTensor {
    let bytes: Vec<u8> = match ty {
        ElementType::F64 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        _ => values.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect(),
    };
    let strides: &[usize] = if shape.len() == 2 { &[shape[1], 1] } else { &[1] };
    DynamicTensor::new(device, ty, (shape, strides), &bytes, 0).expect("it fits")
}

pub(super) fn read(ty: ElementType, tensor: &DynamicTensor) -> Vec<f64> {
    let bytes = tensor.read().expect("written");
    match ty {
        ElementType::F64 => bytes.chunks(8).map(|b| f64::from_le_bytes(b.try_into().expect("8"))).collect(),
        _ => bytes.chunks(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().expect("4")))).collect(),
    }
}

/// l and a of each row, which are compared with the reference.
fn run(info: &KernelInfo, ty: ElementType, x: &[Vec<f64>], w: &dyn Fn(usize) -> f64) -> [Vec<f64>; 2] {
    let (m, n) = (x.len(), x[0].len());
    let device = Device::emulator(EmulatorOptions::default());
    let weights: Vec<f64> = (0..m * n).map(w).collect();
    let [x, w] = [&x.concat(), &weights].map(|values| tensor(&device, ty, &[m, n], values));
    let [l, a] = [(), ()].map(|()| tensor(&device, ty, &[m], &vec![0.0; m]));
    let arguments = [Arg::dynamic(&x, false), Arg::dynamic(&w, false), Arg::dynamic(&l, true), Arg::dynamic(&a, true)];
    let admissible = reference(info, &arguments).unwrap_or_else(|e| panic!("{e}"));
    launch(info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}"));
    for (output, tensor) in admissible.outputs().zip([&l, &a]) {
        let bytes = tensor.read().expect("written");
        output.check_raw(&bytes).unwrap_or_else(|e| panic!("{}: {e}", output.name()));
        // One that is off by a little more than the contract says is none.
        let found = read(ty, tensor);
        let wrong: Vec<f64> = found.iter().map(|x| x * 1.002).collect();
        let wrong = self::tensor(&device, ty, &[m], &wrong).read().expect("written");
        if found.iter().any(|x| x.is_finite() && x.abs() > 1.0e-30) {
            assert!(output.check_raw(&wrong).is_err(), "{}: the interval is too wide", output.name());
        }
    }
    [read(ty, &l), read(ty, &a)]
}

#[test]
fn rows_of_all_kinds_are_what_the_equations_say() {
    let of = [
        (ElementType::F32, weighted("f32", MAX, EXP, WARPS, "")),
        (ElementType::F32, weighted("f32", MAX, "approx::exp(x[i, j] - m[i])", WARPS, "")),
        (ElementType::F64, weighted("f64", MAX, EXP, WARPS, "")),
        (ElementType::F32, weighted("f32", MAX, EXP, "split j by 4 -> jo, v; bind i: thread; vectorize v;", "")),
    ];
    for (ty, source) in of {
        let kernel = accepted(&source);
        let info = kernel.info.as_ref().expect("no error");
        for n in [4, 128, 300] {
            let rows = rows(n);
            let x: Vec<Vec<f64>> = rows.iter().map(|(_, row)| row.clone()).collect();
            let [l, a] = run(info, ty, &x, &|at| (at % 7) as f64 - 2.5);
            for ((name, row), l) in rows.iter().zip(&l) {
                let m = row
                    .iter()
                    .fold(f64::NEG_INFINITY, |m, x| if x.is_nan() || m.is_nan() { f64::NAN } else { m.max(*x) });
                let direct: f64 = row.iter().map(|x| (x - m).exp()).sum();
                let close = (l - direct).abs() <= 1.0e-4 * direct || l.is_nan() && direct.is_nan();
                assert!(close, "{name}, {ty}, {n}: {l} for {direct}");
            }
            assert_eq!(a.len(), rows.len());
            // Mirrored, the extremes come first.
            let mirrored: Vec<Vec<f64>> = x.iter().map(|row| row.iter().rev().copied().collect()).collect();
            run(info, ty, &mirrored, &|at| (at % 5) as f64 * 0.125);
        }
    }
}

/// Arguments that are one step with the product: what is taken off is rounded, k·u is not. Rows of numbers whose
/// products round by more than 1 are left open.
#[test]
fn products_fused_with_the_difference_are_corrected_by_rounded_ones() {
    let of = [
        ("f32", MAX, "approx::exp2(fma(0.733, x[i, j], -0.733 * m[i]))"),
        ("f32", MAX, "exp(fma(x[i, j], 1.37, -(m[i] * 1.37)))"),
        ("f32", "min(|j| x[i, j])", "approx::exp(fma(-0.2, x[i, j], 0.2 * m[i]))"),
        ("f32", MAX, "exp(0.5 * fma(0.3, x[i, j], -0.3 * m[i]))"),
        ("f64", MAX, "exp(fma(0.1, x[i, j], -0.1 * m[i]))"),
    ];
    for (ty, extreme, exp) in of {
        let kernel = accepted(&weighted(ty, extreme, exp, WARPS, ""));
        let info = kernel.info.as_ref().expect("no error");
        let ty = if ty == "f64" { ElementType::F64 } else { ElementType::F32 };
        for n in [4, 128, 300] {
            let mut rows: Vec<Vec<f64>> = rows(n).into_iter().map(|(_, row)| row).collect();
            // Extremes that grow, and are rounded by up to a half.
            let from = if ty == ElementType::F64 { 4.0e15 } else { 7.0e6 };
            rows.push((0..n).map(|j| from + (j * 7 % 31) as f64).collect());
            rows.push((0..n).map(|j| (j as f64 - n as f64) * from / n as f64).collect());
            run(info, ty, &rows, &|at| (at % 7) as f64 - 2.5);
            rows.iter_mut().for_each(|row| row.reverse());
            run(info, ty, &rows, &|at| (at % 5) as f64 * 0.125);
        }
    }
}

/// What may overflow on the way is not promised; what must not is.
#[test]
fn weights_that_overflow_are_left_open() {
    let kernel = accepted(&weighted("f32", MAX, EXP, WARPS, ""));
    let info = kernel.info.as_ref().expect("no error");
    let device = Device::emulator(EmulatorOptions::default());
    let n = 256;
    let row: Vec<f64> = (0..n).map(|j| j as f64).collect();
    let x = tensor(&device, ElementType::F32, &[1, n], &row);
    let admits = |weight: f64, value: f64| {
        let w = tensor(&device, ElementType::F32, &[1, n], &repeat_n(weight, n).collect::<Vec<f64>>());
        let [l, a] = [(), ()].map(|()| tensor(&device, ElementType::F32, &[1], &[0.0]));
        let arguments =
            [Arg::dynamic(&x, false), Arg::dynamic(&w, false), Arg::dynamic(&l, true), Arg::dynamic(&a, true)];
        let admissible = reference(info, &arguments).unwrap_or_else(|e| panic!("{e}"));
        admissible.output("a").expect("an output").check_raw(&(value as f32).to_le_bytes()).is_ok()
    };
    let sum = 1.0 / (1.0 - (-1.0_f64).exp());
    assert!(admits(1.0, sum) && !admits(1.0, 1.01 * sum) && !admits(1.0, f64::NAN));
    // 256 of them are more than the largest number.
    assert!(admits(3.0e36, f64::NAN));
}

/// A correction rounds a partial sum of subnormal numbers by half of the least one, as often as the extreme changes.
#[test]
fn corrections_of_subnormal_sums_round() {
    let kernel = accepted(&weighted("f32", MAX, EXP, "split j by 4 -> jo, v; bind i: thread; vectorize v;", ""));
    let info = kernel.info.as_ref().expect("no error");
    let n = 64;
    // Terms of a few of the least number, which shrink a little with every block.
    let rows: Vec<Vec<f64>> = [0.01, 0.03, 0.05].map(|step| (0..n).map(|j| j as f64 * step).collect()).to_vec();
    for first in [7, 20, 41] {
        run(info, ElementType::F32, &rows, &|at| if at % n == 0 { f64::from(f32::from_bits(first)) } else { 0.0 });
    }
}
