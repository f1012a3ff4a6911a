//! Persistent launches of clusters whose blocks take copies together: tiles follow each other in the same slots, and
//! every size and seed gives what `reference()` does.

use crate::support::{finished, outer, prove};
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::Compiled;

/// Transposes with a factor each: the blocks of a cluster read one tile, of which each fetches a part.
fn transpose(cluster: u32) -> String {
    let part = 32 / cluster;
    format!(
        "kernel Scaled(x: f32[M, N], s: f32[B]) -> (y: f32[B, N, M]) where N % 4 == 0 {{
            y[b, j, i] = s[b] * x[i, j];
            launch cluster({cluster}), threads(256), persistent;
            schedule y {{
                split b by {cluster} -> bo, bc; split j by 32 -> jo, j1; split i by 32 -> io, i1;
                split j1 by 4 -> jg, jl; split i1 by 8 -> ig, il;
                reorder bo, jo, io, bc, jg, ig, jl, il;
                bind bo, jo, io: grid; bind bc: cta;
                merge jg, ig -> g; split g by 8 -> r, w; bind w: warp;
                merge jl, il -> lane; bind lane: thread;
            }}
            stage xs[i, j] = x in shared at y.bc via tma {{
                box i by {part} -> ic, ib; box j by 32 -> jc, jb;
                layout [ic, ib, jb]; multicast y.bc by ic;
            }}
        }}"
    )
}

/// Runs under several seeds, with one, two and three clusters at a time, and through the separate checker.
fn check(source: &str, cluster: u32, sizes: &[&[i64]]) -> Compiled {
    let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    let info = kernel.info.as_ref().expect("no error");
    for (n, dims) in (0..).zip(sizes) {
        prove(&kernel, dims);
        for seed in 0..3 {
            let resident = cluster * (seed as u32 % 3 + 1);
            let options = EmulatorOptions::default().seed(3 * n + seed).resident(resident);
            let device = Device::emulator(options);
            let trial = Trial::new(info, dims, seed, &device).unwrap();
            let outcome = trial.run(&device);
            assert!(outcome.is_good(), "{source}\nat {dims:?}: {outcome:#?}\n{}", info.ptx.text);
        }
    }
    kernel
}

#[test]
fn tiles_of_clusters_share_copies() {
    // Tiles of one cluster: none to seven, whole ones and parts.
    let sizes: &[&[i64]] = &[&[1, 4, 1], &[33, 36, 3], &[64, 68, 5], &[100, 32, 9]];
    for cluster in [2, 4] {
        let kernel = check(&transpose(cluster), cluster, sizes);
        let info = kernel.info.as_ref().expect("no error");
        assert!(info.launch.persistent && info.ptx.text.contains(".multicast::cluster"), "{}", info.ptx.text);
    }
}

#[test]
fn rings_go_on_from_tile_to_tile() {
    // Trip counts of the loop inside a tile around the slots of its ring; rows for one, two and more tiles of a
    // cluster.
    let sizes: &[&[i64]] = &[&[1, 4], &[3, 132], &[17, 260], &[9, 388], &[30, 512], &[12, 772]];
    for (cluster, ring, ops) in [
        (2, "", "box j by 64 -> jb, jj; multicast c.ic by jb;"),
        (2, "ring(2)", "box j by 64 -> jb, jj; multicast c.ic by jb;"),
        (4, "ring(3)", "box j by 32 -> jb, jj; multicast c.ic by jb;"),
        (4, "ring(2)", "multicast c.ic;"),
    ] {
        check(&outer(", persistent", cluster, ring, ops), cluster, sizes);
    }
}
