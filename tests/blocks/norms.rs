//! Norms whose squares do not overflow: sums of quotients by the largest magnitude, in the pass that finds it.

use super::online::{BY_GRID, WARPS, read, tensor};
use crate::support::{finished, tried};
use tilewright::__private::{Arg, launch, reference};
use tilewright::kernel::ElementType;
use tilewright::{Device, EmulatorOptions};

/// The largest magnitude of each row, and a sum of quotients by it.
fn norm(ty: &str, term: &str, ops: &str) -> String {
    format!(
        "kernel Norm(x: {ty}[M, N], w: {ty}[M, N]) -> (largest: {ty}[M], scaled: {ty}[M]) {{
            m[i] = max(|j| abs(x[i, j]));
            s[i] = online sum(|j| {term});
            largest[i] = m[i];
            scaled[i] = s[i];
            launch threads(128);
            schedule largest {{ split i by 4 -> ib, t; bind ib: grid; bind t: thread; }}
            schedule scaled at largest.ib {{ like largest; }}
            schedule m in shared at largest.ib {{ {ops} online m -> s over jo; }}
        }}"
    )
}

const SIZES: &[&[i64]] = &[&[1, 4], &[3, 128], &[6, 132], &[5, 0], &[0, 8], &[2, 517]];

#[test]
fn ways_to_run_the_terms() {
    let square = "(x[i, j] / m[i]) * (x[i, j] / m[i])";
    let cases = [
        norm("f32", square, WARPS),
        norm("f64", "pow(abs(x[i, j]) / m[i], 2)", WARPS),
        norm("f32", "w[i, j] * -(x[i, j] / m[i]) / 3.0", "split j by 128 -> jo, t; bind t: thread; reduce t;"),
        norm("f32", "pow(x[i, j] / m[i], 3) * w[i, j]", WARPS),
        norm("f32", "pow(abs(x[i, j] / m[i]), 3)", WARPS),
        norm("f64", "w[i, j] * abs(x[i, j] / m[i] * -pow(x[i, j] / m[i], 4))", WARPS),
        norm("f32", square, BY_GRID).replace("threads(128)", "threads(32)"),
    ];
    for source in cases {
        tried(&source, SIZES, 2);
    }
}

#[test]
fn rows_of_all_kinds_are_what_the_equations_say() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for (term, power) in [
        ("(x[i, j] / m[i]) * (x[i, j] / m[i])", 2),
        ("w[i, j] * pow(abs(x[i, j]) / m[i], 3)", 3),
        ("abs(w[i, j] * pow(x[i, j] / m[i], 3))", 3),
    ] {
        let kernel = finished(&norm("f32", term, WARPS)).unwrap_or_else(|(_, report)| panic!("{report}"));
        let info = kernel.info.as_ref().expect("no error");
        let device = Device::emulator(EmulatorOptions::default());
        for n in [1, 4, 300] {
            let of = |each: &dyn Fn(usize) -> f64| (0..n).map(each).collect::<Vec<f64>>();
            let rows = [
                of(&|j| (j as f64 * 0.7).sin()),
                of(&|j| j as f64),
                of(&|j| -(j as f64) * 1.0e35),
                of(&|j| (n - j) as f64 * 1.0e-42),
                of(&|j| 10.0_f64.powi(j as i32 % 70 - 40)),
                of(&|j| if j == n - 1 { 1.0e30 } else { 0.0 }),
                of(&|_| 0.0),
                of(&|j| if j % 2 == 0 { -0.0 } else { 0.0 }),
                of(&|j| if j == n / 2 { inf } else { 1.0 }),
                of(&|j| if j == n / 2 { nan } else { 1.0 }),
                of(&|_| 3.25),
            ];
            let flat = rows.concat();
            let x = tensor(&device, ElementType::F32, &[rows.len(), n], &flat);
            let w = tensor(&device, ElementType::F32, &[rows.len(), n], &vec![0.5; flat.len()]);
            let [largest, scaled] =
                [(), ()].map(|()| tensor(&device, ElementType::F32, &[rows.len()], &vec![0.0; rows.len()]));
            let arguments = [
                Arg::dynamic(&x, false),
                Arg::dynamic(&w, false),
                Arg::dynamic(&largest, true),
                Arg::dynamic(&scaled, true),
            ];
            let admissible = reference(info, &arguments).unwrap_or_else(|e| panic!("{e}"));
            launch(info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}"));
            for (output, tensor) in admissible.outputs().zip([&largest, &scaled]) {
                output.check_raw(&tensor.read().expect("written")).unwrap_or_else(|e| panic!("{}: {e}", output.name()));
            }
            for (row, found) in rows.iter().zip(read(ElementType::F32, &scaled)) {
                let row: Vec<f64> = row.iter().map(|x| f64::from(*x as f32)).collect();
                let m = row.iter().fold(0.0, |m: f64, x| if x.is_nan() { *x } else { m.max(x.abs()) });
                let direct: f64 = row.iter().map(|x| (x.abs() / m).powi(power)).sum();
                let direct = if power == 3 { 0.5 * direct } else { direct };
                let is_close = (found - direct).abs() <= 1.0e-4 * direct || found.is_nan() && direct.is_nan();
                assert!(is_close, "{n} {row:?}: {found} for {direct}");
            }
        }
    }
}
