//! Staged copies of tensors whose indices need 64 bits for every size, because a stride is that long: which entry
//! points there are, that the copies take part, and that results are those of `reference()`.

use crate::support::{compiled, data};
use tilewright::{Device, EmulatorOptions, Tensor, schedule};
use tilewright_cli::trial::Trial;
use tilewright_compiler::diag::Code;

/// Compiles, checks the names and conditions of the entry points, and runs sizes on devices that end copies at
/// different times.
fn check(source: &str, entries: &[(&str, &[&str])], sizes: &[&[i64]]) {
    let info = compiled(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    let found: Vec<(&str, Vec<&str>)> =
        info.entries.iter().map(|e| (&*e.name, e.conditions.iter().map(|c| &*c.text).collect())).collect();
    let expected: Vec<(&str, Vec<&str>)> = entries.iter().map(|(name, texts)| (*name, texts.to_vec())).collect();
    assert_eq!(found, expected, "{source}");
    for dims in sizes {
        for seed in 0..4 {
            let device = Device::emulator(EmulatorOptions::default().seed(seed));
            let trial = Trial::new(&info, dims, seed, &device).unwrap_or_else(|e| panic!("{source}\n{dims:?}: {e}"));
            let outcome = trial.run(&device);
            assert!(outcome.is_good(), "{source}\nat {dims:?}: {outcome:#?}");
            let tiles =
                outcome.report.map_or(0, |r| r.counters.shared.load_requests + r.counters.shared.store_requests);
            let is_staged = dims.iter().all(|n| *n > 0);
            assert_eq!(tiles > 0, is_staged, "copies take part, or do not: {dims:?}\n{}", info.ptx.text);
        }
    }
}

const SCHEDULE: &str = "launch threads(32);
     schedule y { split i by 32 -> io, ii; split k by 16 -> ko, ki; reorder io, ii, l, ko, ki; bind io: grid; bind ii: thread; }";

const SIZES: &[&[i64]] = &[&[1, 33, 20], &[1, 5, 16], &[1, 1, 4], &[1, 64, 52], &[1, 0, 4], &[0, 3, 4]];

const FITS: &[&str] = &["L >= 1", "M >= 1", "K >= 1", "L <= 2147483647", "M <= 2147483647", "K <= 2147483647"];

#[test]
fn tiles_with_and_without_a_ring() {
    for ring in ["", "ring(2)"] {
        let source = format!(
            "kernel K(x: f32[L, M, K; 4294967296, K, 1]) -> (y: f32[M]) where K % 4 == 0 {{
                y[i] = sum(|l, k| x[l, i, k]);
                {SCHEDULE}
                stage xs[l, i, k] = x in shared at y.ko {ring} via tma {{ box l by 1 -> lc, lb; box i by 32 -> ic, ib; box k by 16 -> kc, kb; }}
            }}"
        );
        check(&source, &[("K_64", FITS), ("K_64_plain", &[])], SIZES);
    }
}

#[test]
fn copies_that_are_sent_out_of_bounds() {
    let source = "kernel K(x: f32[L, K, M; 4294967296, M, 1]) -> (y: f32[M]) where M % 4 == 0 {
        y[i] = sum(|l, k| x[l, k, i]);
        launch threads(32);
        schedule y {
            split i by 32 -> io, ii; split k by 6 -> ko, kr; split kr by 4 -> ki, kv; reorder io, ii, l, ko, ki, kv;
            bind io: grid; bind ii: thread;
        }
        stage xs[l, k, i] = x in shared at y.ko via tma {
            box l by 1 -> lc, lb; box k by 8 -> kc, kb; tile kb by 8 -> kt, ks; box i by 32 -> ic, ib;
        }
    }";
    let fits = ["L >= 1", "K >= 1", "M >= 1", "L <= 2147483647", "K <= 2147483647", "M <= 2147483647"];
    let sizes: &[&[i64]] = &[&[1, 20, 36], &[1, 6, 4], &[1, 1, 64], &[1, 13, 32]];
    check(source, &[("K_64", &fits), ("K_64_plain", &[])], sizes);
}

#[test]
fn runs_need_no_bounds() {
    let source = "kernel K(x: f32[L, M, 64; 4294967296, 64, 1]) -> (y: f32[M]) where M % 32 == 0 {
        y[i] = sum(|l, k| x[l, i, k]);
        launch threads(32);
        schedule y { split i by 32 -> io, ii; reorder io, ii, l, k; bind io: grid; bind ii: thread; }
        stage xs[l, i, k] = x in shared at y.l via tma { box l by 1 -> lc, lb; }
    }";
    check(source, &[("K_64", &["L >= 1", "M >= 1"]), ("K_64_plain", &[])], &[&[1, 32], &[1, 64], &[0, 32]]);
}

#[test]
fn stores() {
    let source = "kernel K(x: f32[L, M, K]) -> (y: f32[L, M, K; 4294967296, K, 1]) where K % 4 == 0 {
        y[l, i, k] = x[l, i, k] * 2.0;
        launch threads(128);
        schedule y {
            split i by 8 -> io, ii; split k by 16 -> ko, ki; reorder l, io, ko, ii, ki;
            bind l, io: grid; merge ii, ki -> t; bind t: thread;
        }
        stage ys[l, i, k] = y in shared at y.ko ring(2) via tma { box l by 1 -> lc, lb; box i by 8 -> ic, ib; box k by 16 -> kc, kb; }
    }";
    check(source, &[("K_64", FITS), ("K_64_plain", &[])], &[&[1, 9, 20], &[1, 8, 16], &[1, 3, 36]]);
}

schedule! {
    /// Rows that are far apart: from the third on, farther than coordinates reach.
    kernel Steps(x: f32[M, 32], w: f32[32]) -> (y: f32[N, 32]) {
        y[i, j] = (x[i * 1073741824, j] or 0.5) + w[j];
        launch threads(32);
        schedule y { bind i: grid; bind j: thread; }
        stage ws[j] = w in shared at y.i via tma { }
    }
}

#[test]
fn one_index_that_is_far_does_not_keep_others_from_it() {
    for device in crate::support::devices() {
        let x = data(&device, [3, 32], |n| n as f32);
        let w = data(&device, [32], |n| n as f32);
        let mut y = Tensor::zeros(&device, [5, 32]).unwrap();
        Steps { x: &x, w: &w, y: &mut y }.launch(&device).unwrap();
        let expected = |n: usize| if n < 32 { 2.0 * n as f32 } else { 0.5 + (n % 32) as f32 };
        assert_eq!(y.to_vec().unwrap(), (0..160).map(expected).collect::<Vec<f32>>());
    }
}

/// A copy that no launch can use is refused: a size beyond coordinates, or a stride beyond tensor maps.
#[test]
fn what_never_fits_is_refused() {
    let kernel = |stride: &str, fact: &str| {
        format!(
            "kernel K(x: f32[L, M, K; {stride}, K, 1]) -> (y: f32[M]) where K % 4 == 0{fact} {{
                y[i] = sum(|l, k| x[l, i, k]);
                {SCHEDULE}
                stage xs[l, i, k] = x in shared at y.ko via tma {{ box l by 1 -> lc, lb; box i by 32 -> ic, ib; box k by 16 -> kc, kb; }}
            }}"
        )
    };
    let (most, beyond) = ((1i64 << 38) - 4, 1i64 << 38);
    assert!(compiled(&kernel(&most.to_string(), "")).is_ok());
    for (source, why) in [
        (kernel(&beyond.to_string(), ""), "along `l`, neighbours are 274877906944 elements apart"),
        (kernel("ld", ", ld % 4 == 0, ld >= 300000000000"), "along `l`, neighbours are ld elements apart"),
        (kernel("4294967296", ", M >= 2147483648"), "along `i`, there are M elements"),
    ] {
        let (codes, report) = compiled(&source).expect_err("refused");
        assert_eq!(codes, [Code::TW0304], "{report}");
        assert!(report.contains(why), "{report}");
    }
}
