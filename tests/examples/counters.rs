//! What kernels of several stages read, write and wait for, as the emulator counts it: each input byte once and in
//! whole sectors, halos by their arithmetic, no bank conflicts.

use crate::support::finished;
use tilewright::kernel::info::KernelInfo;
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;

/// Traffic of one launch.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    /// Bytes that threads and the accelerator load from global memory, and store there.
    loaded: u64,
    stored: u64,
    /// Sectors beyond those that the bytes fill.
    excess: u64,
    /// Cycles of shared memory beyond those without bank conflicts.
    conflicts: u64,
}

fn count(info: &KernelInfo, dims: &[i64]) -> Counted {
    let device = Device::emulator(EmulatorOptions::default());
    let trial = Trial::new(info, dims, 1, &device).unwrap_or_else(|e| panic!("{dims:?}: {e}"));
    let outcome = trial.run(&device);
    assert!(outcome.is_good(), "at {dims:?}: {outcome:#?}");
    let counters = outcome.report.expect("the emulator ran").counters;
    Counted {
        loaded: counters.global.bytes_loaded,
        stored: counters.global.bytes_stored,
        excess: counters.global.transactions - counters.global.ideal_transactions,
        conflicts: counters.shared.transactions - counters.shared.ideal_transactions,
    }
}

/// Of the first kernel of an example.
fn example(name: &str, dims: &[i64]) -> Counted {
    let first = crate::example(name).first().expect("an example has a kernel");
    count(first, dims)
}

fn source(text: &str, dims: &[i64]) -> Counted {
    let kernel = finished(text).unwrap_or_else(|(_, report)| panic!("{report}"));
    count(kernel.info.as_ref().expect("no error, so a kernel"), dims)
}

#[test]
fn rows_are_read_once() {
    for (m, n) in [(3, 128), (1, 4096), (2, 16384)] {
        let bytes = m * n * 4;
        let all = Counted { loaded: bytes, stored: bytes, excess: 0, conflicts: 0 };
        assert_eq!(example("softmax", &[m as i64, n as i64]), all, "{m} x {n}");
        assert_eq!(example("layernorm", &[m as i64, n as i64 / 2]).stored, bytes / 2);
    }
    // The weights once for each row, beside the row.
    for (m, n) in [(3, 256), (1, 8192)] {
        let all = Counted { loaded: 2 * m * n * 2, stored: m * n * 2, excess: 0, conflicts: 0 };
        assert_eq!(example("rmsnorm", &[m as i64, n as i64]), all, "{m} x {n}");
    }
}

/// Tiles of a product come once to a cluster.
#[test]
fn tiles_of_a_product_are_shared() {
    for (m, n, k) in [(256, 64, 32), (512, 192, 96)] {
        // Of `a` for each column of tiles, of `b` for each row of clusters.
        let loaded = 4 * k * ((n / 64) * m + (m / 256) * n);
        let found = example("role_product", &[m as i64, k as i64, n as i64]);
        assert_eq!((found.loaded, found.stored), (loaded, 4 * m * n), "{m} x {n} x {k}");
    }
}

/// Rows that the blocks of a cluster share come once to one of them; so do the weights for each row.
#[test]
fn rows_of_clusters_are_read_once() {
    for (m, n) in [(2, 32768), (1, 99_968), (1, 262_144)] {
        let all = Counted { loaded: 2 * m * n * 2, stored: m * n * 2, excess: 0, conflicts: 0 };
        assert_eq!(example("cluster_norm", &[m as i64, n as i64]), all, "{m} x {n}");
    }
}

/// Rows that blocks of a cluster share, by roles: each byte once, the weights once for each row.
#[test]
fn rows_of_roles_in_clusters_are_read_once() {
    for (m, n) in [(2, 32_768), (3, 16_000)] {
        let all = Counted { loaded: 2 * m * n * 4, stored: m * n * 4, excess: 0, conflicts: 0 };
        assert_eq!(example("role_norm", &[m as i64, n as i64]), all, "{m} x {n}");
    }
}

/// Rows that one role fetches and another one stores: each byte once, by the accelerator, and no conflicts where the
/// third one computes.
#[test]
fn rows_of_roles_are_read_once() {
    for (m, n) in [(5, 1024), (4, 4096)] {
        let bytes = m * n * 4;
        let all = Counted { loaded: bytes, stored: bytes, excess: 0, conflicts: 0 };
        assert_eq!(example("role_softmax", &[m as i64, n as i64]), all, "{m} x {n}");
    }
}

/// A tile comes once for the blocks of a cluster that read it; each element stored takes a factor.
#[test]
fn tiles_are_read_once_for_a_cluster() {
    let (m, n, b) = (64, 96, 8);
    let found = example("multicast_transpose", &[m as i64, n as i64, b as i64]);
    let (clusters, stored) = (b / 4, m * n * b * 4);
    assert_eq!((found.loaded, found.stored, found.conflicts), (clusters * m * n * 4 + stored, stored, 0));
}

/// RMS normalisation whose rows are staged in shared memory, by threads and by the accelerator: each byte of a row
/// still comes once.
#[test]
fn staged_rows_are_read_once() {
    let staged = |stage: &str| {
        format!(
            "kernel RmsNorm(x: bf16[M, N], w: bf16[N], eps: f32) -> (y: bf16[M, N]) where N % 8 == 0, N <= 8192 {{
                ss[i] = sum(|j| x[i, j] as f32 * x[i, j] as f32);
                y[i, j] = (x[i, j] as f32 * rsqrt(ss[i] / N as f32 + eps) * w[j] as f32) as bf16;
                launch threads(256);
                schedule y {{ bind i: grid; split j by 8 -> jo, v; split jo by 256 -> r, t; bind t: thread; vectorize v; }}
                {stage}
                schedule ss in registers at y.i {{ like y; reduce t; }}
            }}"
        )
    };
    let (m, n) = (3, 2048);
    let fetched = source(&staged("stage xs[i, j] = x in shared at y.i via cp_async { like y; }"), &[m, n]);
    let bytes = (m * n * 2) as u64;
    assert_eq!(fetched, Counted { loaded: 2 * bytes, stored: bytes, excess: 0, conflicts: 0 });
    let copied = source(&staged("stage xs[i, j] = x in shared at y.i { like y; }"), &[m, n]);
    assert_eq!(copied, fetched);
    let tiled = source(&staged("stage xs[i, j] = x in shared at y.i via tma { box j by 256 -> jc, jb; }"), &[m, n]);
    assert_eq!(tiled, fetched);
}

#[test]
fn halos_are_read_as_often_as_tiles_overlap() {
    let (down, across) = (2, 3);
    let tiles = down * across;
    let (h, w) = (30 * down + 2, 64 * across + 2);
    // Three loads for each of 32 x 64 smoothed elements of a tile.
    let blur = example("blur", &[h, w]);
    assert_eq!((blur.loaded, blur.stored), ((tiles * 32 * 64 * 3 * 4) as u64, (tiles * 30 * 64 * 4) as u64));
    assert_eq!(blur.conflicts, 0);
    // A tile with its halo, once.
    let staged = source(
        "kernel Blur(x: f32[H, W]) -> (y: f32[H - 2, W - 2]) where H >= 3, W >= 3 {
            bx[i, j] = (x[i, j] + x[i, j + 1] + x[i, j + 2]) / 3.0;
            y[i, j] = (bx[i, j] + bx[i + 1, j] + bx[i + 2, j]) / 3.0;
            launch threads(256);
            schedule y {
                split i by 30 -> io, ii; split j by 64 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid;
                merge ii, ji -> p; split p by 256 -> pr, t; bind t: thread;
            }
            schedule bx in shared at y.jo { merge i, j -> p; split p by 256 -> pr, t; bind t: thread; }
            stage xs[i, j] = x in shared at y.jo via cp_async { split j by 32 -> jr, l; split i by 8 -> ir, w; bind w: warp; bind l: thread; reorder ir, w, jr, l; }
        }",
        &[h, w],
    );
    assert_eq!((staged.loaded, staged.stored), ((tiles * 32 * 66 * 4) as u64, (tiles * 30 * 64 * 4) as u64));
    assert_eq!(staged.conflicts, 0);
}
