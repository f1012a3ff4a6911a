//! What is taken where an extreme is, in the pass that finds it: the place of a maximum beside its value, sums and
//! counts of what is there, the best column of a product that is never stored.

use super::online::{BY_GRID, WARPS, read, tensor};
use crate::support::{finished, runs, tried};
use tilewright::__private::{Arg, launch, reference};
use tilewright::kernel::ElementType;
use tilewright::{Device, EmulatorOptions};

/// The best of each row, and where it is.
fn best(ty: &str, extreme: &str, search: &str, ops: &str, more: &str) -> String {
    format!(
        "kernel Best(x: {ty}[M, N]) -> (value: {ty}[M], place: u32[M]) where N >= 1 {{
            m[i] = {extreme}(|j| x[i, j]);
            p[i] = {search}(|j| x[i, j]);
            value[i] = m[i];
            place[i] = p[i];
            launch threads(128);
            schedule value {{ split i by 4 -> ib, t; bind ib: grid; bind t: thread; }}
            schedule place at value.ib {{ like value; }}
            schedule m in shared at value.ib {{ {ops} online m -> p over jo; }}
            {more}
        }}"
    )
}

const SIZES: &[&[i64]] = &[&[1, 4], &[3, 128], &[6, 132], &[0, 8], &[2, 517], &[1, 1]];

#[test]
fn ways_to_run_the_terms() {
    let block = "split j by 128 -> jo, t; bind t: thread; reduce t;";
    let cases = [
        best("f32", "max", "argmax", WARPS, ""),
        best("f64", "min", "argmin", WARPS, ""),
        best(
            "f32",
            "max",
            "argmax",
            block,
            "stage xs[i, j] = x in shared at m.jo ring(3) via cp_async { bind j: thread; }",
        ),
        // Blocks of the grid share the terms.
        best("f32", "max", "argmax", BY_GRID, "").replace("threads(128)", "threads(32)"),
        // A place and a sum of exponentials follow one extreme.
        best("f32", "max", "argmax", WARPS, "")
            .replace("value[i] = m[i];", "l[i] = online sum(|j| exp(x[i, j] - m[i])); value[i] = m[i] + log(l[i]);")
            .replace("online m -> p", "online m -> p, l"),
    ];
    for source in cases {
        tried(&source, SIZES, 2);
    }
}

/// What is taken where the extreme is, by every operation.
fn chosen(ty: &str, equation: &str) -> String {
    format!(
        "kernel Chosen(x: f32[M, N], w: {ty}[M, N]) -> (value: f32[M], taken: {ty}[M]) {{
            m[i] = max(|j| x[i, j]);
            c[i] = {equation};
            value[i] = m[i];
            taken[i] = c[i];
            launch threads(128);
            schedule value {{ split i by 4 -> ib, t; bind ib: grid; bind t: thread; }}
            schedule taken at value.ib {{ like value; }}
            schedule m in shared at value.ib {{ {WARPS} online m -> c over jo; }}
        }}"
    )
}

#[test]
fn operations() {
    let cases = [
        chosen("f32", "sum(|j| if x[i, j] == m[i] { w[i, j] } else { 0.0 })"),
        chosen("f32", "prod(|j| if m[i] <= x[i, j] { w[i, j] } else { 1.0 })"),
        chosen("f32", "max(|j| if x[i, j] != m[i] { -inf } else { w[i, j] })"),
        chosen("f16", "min(|j| if x[i, j] >= m[i] { w[i, j] } else { inf })"),
        chosen("i32", "sum(|j| if x[i, j] == m[i] { 1i32 } else { 0i32 })"),
        chosen("i32", "max(|j| if x[i, j] == m[i] { w[i, j] } else { -2147483648 })"),
        chosen("u8", "min(|j| if x[i, j] == m[i] { w[i, j] } else { 255 })"),
    ];
    for source in cases {
        tried(&source, &[&[1, 4], &[3, 130], &[2, 0], &[0, 3]], 2);
    }
}

/// Ties, NaN, infinities and zeros of both signs, in all positions.
#[test]
fn ties_and_numbers_that_are_none() {
    let kernel = finished(&best("f32", "max", "argmax", WARPS, "")).unwrap_or_else(|(_, report)| panic!("{report}"));
    let info = kernel.info.as_ref().expect("no error");
    let device = Device::emulator(EmulatorOptions::default());
    for n in [1, 2, 33, 300] {
        let of = |each: &dyn Fn(usize) -> f64| (0..n).map(each).collect::<Vec<f64>>();
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let rows = [
            of(&|_| 1.0),
            of(&|j| (j % 7) as f64),
            of(&|j| -(j as f64)),
            of(&|j| j as f64),
            of(&|_| -inf),
            of(&|j| if j == n / 2 { -inf } else { nan }),
            of(&|j| if j == n / 2 { nan } else { inf }),
            of(&|j| if j + 2 >= n { nan } else { j as f64 }),
            of(&|j| if j % 2 == 0 { -0.0 } else { 0.0 }),
            of(&|j| if j % 3 == 2 { inf } else { -inf }),
        ];
        let x = tensor(&device, ElementType::F32, &[rows.len(), n], &rows.concat());
        let value = tensor(&device, ElementType::F32, &[rows.len()], &vec![0.0; rows.len()]);
        let place = tilewright::__private::DynamicTensor::new(
            &device,
            ElementType::U32,
            (&[rows.len()], &[1]),
            &vec![0; 4 * rows.len()],
            0,
        )
        .expect("it fits");
        let arguments = [Arg::dynamic(&x, false), Arg::dynamic(&value, true), Arg::dynamic(&place, true)];
        let admissible = reference(info, &arguments).unwrap_or_else(|e| panic!("{e}"));
        launch(info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}"));
        for (output, tensor) in admissible.outputs().zip([&value, &place]) {
            output.check_raw(&tensor.read().expect("written")).unwrap_or_else(|e| panic!("{n} {}: {e}", output.name()));
        }
        let places = place.read().expect("written");
        for ((row, value), place) in rows.iter().zip(read(ElementType::F32, &value)).zip(places.chunks(4)) {
            let first = row.iter().position(|x| x.is_nan()).unwrap_or_else(|| {
                let most = row.iter().copied().fold(-inf, f64::max);
                row.iter().position(|x| *x == most).expect("one")
            });
            assert_eq!(u32::from_le_bytes(place.try_into().expect("4")), first as u32, "{n}: {row:?}");
            assert_eq!(value.is_nan(), row[first].is_nan());
        }
    }
}

/// The best column of a product that is never stored, and how good it is.
#[test]
fn the_best_of_a_product() {
    let source = "kernel Top(x: bf16[N, 64], w: bf16[V, 64]) -> (value: f32[N], place: u32[N]) where V >= 1 {
        s[i, j] = dot(|d| x[i, d] * w[j, d]);
        m[i] = max(|j| s[i, j]);
        p[i] = argmax(|j| s[i, j]);
        l[i] = online sum(|j| approx::exp(s[i, j] - m[i]));
        value[i] = m[i] + log(l[i]);
        place[i] = p[i];
        schedule value { split i by 64 -> it, i1; bind it: grid; fragment (i1) by wgmma; }
        schedule place at value.it { split i by 64 -> it, i1; bind it: grid; fragment (i1) by wgmma; }
        schedule m in registers at value.it {
            split j by 128 -> jo, j1; fragment (i, j1) by wgmma; online m -> p, l over jo;
        }
        schedule s in registers at m.jo { mma (i, j, d) by wgmma; }
        stage sx[i, d] = x in shared at value.it via tma { layout [i, d] swizzle 128; }
        stage sw[j, d] = w in shared at m.jo ring(3) via tma { layout [j, d] swizzle 128; }
    }";
    let kernel = finished(source).unwrap_or_else(|(_, report)| panic!("{report}"));
    runs(source, &kernel, &[&[1, 1], &[70, 130], &[3, 700]], 2);
}
