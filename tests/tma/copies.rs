//! Staged copies by the tensor memory accelerator, through the public interface: launched on the emulator at sizes with
//! whole and with cut tiles, and compared with `reference()`.
#![allow(deprecated, reason = "warnings of what is slow: these kernels are small, and show what is right")]

use crate::support::{data, devices, is_wrong};
use tilewright::{Tensor, f16, schedule};

schedule! {
    /// One load for each tile, swizzled, read across its rows.
    pub kernel Transpose(x: f32[M, N]) -> (y: f32[N, M])
    where N % 4 == 0
    {
        y[j, i] = x[i, j];
        launch threads(256);
        schedule y {
            split j by 32 -> jo, j1;
            split i by 32 -> io, i1;
            split j1 by 4 -> jg, jl;
            split i1 by 8 -> ig, il;
            reorder jo, io, jg, ig, jl, il;
            bind jo, io: grid;
            merge jg, ig -> g;
            split g by 8 -> r, w;
            bind w: warp;
            merge jl, il -> lane;
            bind lane: thread;
        }
        stage xs[i, j] = x in shared at y.io via tma {
            box i by 32 -> ic, ib;
            box j by 32 -> jc, jb;
            layout [ib, jb] swizzle 128;
        }
    }

    /// Strided tiles in a loop over the terms.
    pub kernel StridedColumns(x: f32[K, M]) -> (y: f32[M])
    where M % 4 == 0
    {
        y[m] = sum(|k| x[k, m]);
        launch threads(32);
        schedule y {
            split m by 32 -> mo, mi;
            split k by 15 -> ko, ki;
            reorder mo, ko, mi, ki;
            bind mo: grid;
            bind mi: thread;
        }
        stage xs[k, m] = x in shared at y.ko via tma {
            box k by 15 -> kc, kb;
            tile kb by 3 -> kt, ks;
            box m by 32 -> mc, mb;
        }
    }

    /// The same with a stride that does not divide the box: nothing reads what else is loaded.
    pub kernel WeakColumns(x: f32[K, M]) -> (y: f32[M])
    where M % 4 == 0
    {
        y[m] = sum(|k| x[k, m]);
        launch threads(32);
        schedule y {
            split m by 32 -> mo, mi;
            split k by 15 -> ko, ki;
            reorder mo, ko, mi, ki;
            bind mo: grid;
            bind mi: thread;
        }
        stage xs[k, m] = x in shared at y.ko via tma {
            box k by 15 -> kc, kb;
            tile kb by 4 -> kt, ks;
            box m by 32 -> mc, mb;
            layout [kc, ks, kt, mb];
            fill any;
        }
    }

    /// Two tensors, several boxes for each instance, and a result that reads its tensor again after the terms.
    #[allow(TW0490)]
    pub kernel Two(a: f16[M, K], b: f16[M, K]) -> (y: f32[M], z: f16[M, K])
    where K % 8 == 0
    {
        y[i] = sum(|k| a[i, k] as f32 * b[i, k] as f32);
        z[i, k] = a[i, k] + b[i, k];
        launch threads(64);
        schedule y {
            split i by 64 -> io, ii;
            split k by 24 -> ko, ki;
            reorder io, ko, ii, ki;
            bind io: grid;
            bind ii: thread;
        }
        schedule z {
            split i by 16 -> io, ii;
            split k by 64 -> ko, ki;
            reorder io, ko, ii, ki;
            bind io, ko: grid;
            bind ki: thread;
        }
        stage asy[i, k] = a in shared at y.ko via tma { box i by 32 -> ic, ib; box k by 8 -> kc, kb; }
        stage bsy[i, k] = b in shared at y.ko via tma { box i by 64 -> ic, ib; box k by 24 -> kc, kb; }
        stage asz[i, k] = a in shared at z.ko via tma { box i by 16 -> ic, ib; box k by 64 -> kc, kb; layout [ib, kb] swizzle 128; }
    }

    /// One dimension.
    pub kernel Rank1(x: u8[N]) -> (y: u8[N])
    {
        y[i] = x[i] * 3;
        launch threads(128);
        schedule y { split i by 256 -> b, r; split r by 128 -> q, t; bind b: grid; bind t: thread; }
        stage xs[i] = x in shared at y.b via tma { box i by 64 -> ic, ib; }
    }

    /// Three dimensions, the innermost short.
    pub kernel Rank3(x: i32[A, B, C]) -> (y: i32[A, C, B])
    where C % 4 == 0
    {
        y[a, c, b] = x[a, b, c];
        launch threads(32);
        schedule y {
            split c by 8 -> co, ci;
            split b by 4 -> bo, bi;
            reorder a, co, bo, ci, bi;
            bind a, co, bo: grid;
            merge ci, bi -> t;
            bind t: thread;
        }
        stage xs[a, b, c] = x in shared at y.bo via tma { box a by 1 -> ac, ab; box b by 4 -> bc, bb; box c by 8 -> cc, cb; }
    }

    /// A neighbour above and one below, before the tensor and after it, and vectors of the innermost axis.
    #[allow(TW0490)]
    pub kernel Halo(x: f32[M, N], w: f32[M, N]) -> (y: f32[M, N])
    where N % 4 == 0
    {
        y[i, j] = (x[i - 1, j] or 0.5) + 2.0 * w[i, j] + (x[i + 1, j] or -0.5) + (if i % 3 == 0 { x[i, j] } else { 1.0 });
        launch threads(64);
        schedule y {
            split i by 8 -> io, ii;
            split j by 32 -> jo, jr;
            split jr by 4 -> ji, v;
            reorder io, jo, ii, ji, v;
            bind io, jo: grid;
            merge ii, ji -> t;
            bind t: thread;
            vectorize v;
        }
        stage xs[i, j] = x in shared at y.jo via tma { box i by 10 -> ic, ib; box j by 32 -> jc, jb; layout [ib, jb] swizzle 128; }
        stage ws[i, j] = w in shared at y.jo via tma { box i by 8 -> ic, ib; box j by 16 -> jc, jb; layout [jc, ib, jb] swizzle 64; }
    }

    /// Five dimensions, and an element of 8 bytes.
    pub kernel Rank5(x: f64[A, B, C, D, E]) -> (y: f64[A, B, C, D, E])
    where E % 2 == 0
    {
        y[a, b, c, d, e] = x[a, b, c, d, e] + 1.0;
        launch threads(32);
        schedule y {
            split d by 4 -> do1, di;
            split e by 8 -> eo, ei;
            reorder a, b, c, do1, eo, di, ei;
            bind a, b, c, do1, eo: grid;
            merge di, ei -> t;
            bind t: thread;
        }
        stage xs[a, b, c, d, e] = x in shared at y.eo via tma {
            box a by 1 -> ac, ab;
            box b by 1 -> bc, bb;
            box c by 1 -> cc, cb;
            box d by 4 -> dc, db;
            box e by 8 -> ec, eb;
            layout [db, eb] swizzle 64;
        }
    }
}

schedule! {
    /// A store from tiles whose numbers are one axis of the grid.
    pub kernel Merged(x: f32[M, N]) -> (y: f32[M, N])
    where N % 4 == 0
    {
        y[i, j] = 2.0 * x[i, j];
        launch threads(32);
        schedule y {
            split i by 8 -> it, ib;
            split j by 32 -> jt, jb;
            reorder it, jt, ib, jb;
            merge it, jt -> t;
            bind t: grid;
            bind jb: thread;
        }
        stage ys[i, j] = y in shared at y.t via tma { }
    }
}

#[test]
fn tiles_of_a_merged_grid_are_stored() {
    for device in &devices() {
        for (m, n) in [(8, 32), (1, 4), (17, 36), (9, 100), (0, 8), (30, 0)] {
            let x = data(device, [m, n], |i| i as f32);
            let mut y = Tensor::zeros(device, [m, n]).unwrap();
            let expected = Merged { x: &x, y: &mut y }.reference().unwrap();
            Merged { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
    }
}

#[test]
fn tiles_are_transposed() {
    for device in &devices() {
        for (m, n) in [(32, 32), (64, 96), (1, 4), (33, 36), (70, 100), (0, 8), (8, 0)] {
            let x = data(device, [m, n], |i| i as f32 + 0.5);
            let mut y = Tensor::zeros(device, [n, m]).unwrap();
            let expected = Transpose { x: &x, y: &mut y }.reference().unwrap();
            Transpose { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
    }
}

#[test]
fn strided_tiles_are_summed() {
    for device in &devices() {
        for (k, m) in [(15, 32), (16, 4), (45, 36), (1, 8), (0, 4), (29, 68)] {
            let x = data(device, [k, m], |i| (i % 7) as f32 - 2.5);
            let mut y = Tensor::zeros(device, [m]).unwrap();
            let expected = StridedColumns { x: &x, y: &mut y }.reference().unwrap();
            StridedColumns { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
            let mut y = Tensor::zeros(device, [m]).unwrap();
            WeakColumns { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
    }
}

#[test]
fn two_tensors_and_several_boxes() {
    for device in &devices() {
        for (m, k) in [(64, 48), (1, 8), (65, 40), (100, 24), (3, 0), (0, 8)] {
            let a = data(device, [m, k], |i| f16::from_f32((i % 9) as f32 - 4.0));
            let b = data(device, [m, k], |i| f16::from_f32((i % 5) as f32 * 0.5));
            let mut y = Tensor::zeros(device, [m]).unwrap();
            let mut z = Tensor::zeros(device, [m, k]).unwrap();
            let expected = Two { a: &a, b: &b, y: &mut y, z: &mut z }.reference().unwrap();
            Two { a: &a, b: &b, y: &mut y, z: &mut z }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
            expected.check("z", &z).unwrap();
        }
    }
}

#[test]
fn neighbours_and_vectors() {
    for device in &devices() {
        for (m, n) in [(8, 32), (1, 4), (17, 36), (9, 100)] {
            let x = data(device, [m, n], |i| i as f32);
            let w = data(device, [m, n], |i| (i % 11) as f32 - 3.0);
            let mut y = Tensor::zeros(device, [m, n]).unwrap();
            let expected = Halo { x: &x, w: &w, y: &mut y }.reference().unwrap();
            Halo { x: &x, w: &w, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
    }
}

#[test]
fn every_rank() {
    for device in &devices() {
        for n in [0, 1, 16, 255, 256, 1000] {
            let x = data(device, [n], |i| i as u8);
            let mut y = Tensor::zeros(device, [n]).unwrap();
            let expected = Rank1 { x: &x, y: &mut y }.reference().unwrap();
            Rank1 { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
        for (a, b, c) in [(1, 1, 4), (2, 4, 8), (3, 7, 12), (2, 5, 20)] {
            let x = data(device, [a, b, c], |i| i as i32);
            let mut y = Tensor::zeros(device, [a, c, b]).unwrap();
            let expected = Rank3 { x: &x, y: &mut y }.reference().unwrap();
            Rank3 { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
        for shape in [[1, 1, 1, 1, 2], [2, 1, 2, 5, 10], [1, 3, 2, 4, 8]] {
            let x = data(device, shape, |i| i as f64);
            let mut y = Tensor::zeros(device, shape).unwrap();
            let expected = Rank5 { x: &x, y: &mut y }.reference().unwrap();
            Rank5 { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
    }
}

/// What the launcher took: the entry with tensor maps where there are elements, and the plain one else.
#[test]
fn maps_are_part_of_the_kernel() {
    let info = Transpose::KERNEL;
    assert_eq!(info.maps.len(), 1);
    assert_eq!(info.ptx.capability, (9, 0));
    assert!(info.ptx.text.contains("cp.async.bulk.tensor.2d."), "{}", info.ptx.text);
    assert!(info.entries[0].takes_maps && !info.entries[1].takes_maps);
}

/// A map is a parameter at a multiple of 64 bytes, and copies name it by its generic address: at another place, and by
/// its address among the parameters, there is none.
#[test]
fn maps_are_found_where_copies_look() {
    let info = Transpose::KERNEL;
    let text = &info.ptx.text;
    let (aligned, generic) = (".param .align 64 .b8 ", "cvta.param.u64 ");
    assert_eq!(text.matches(aligned).count(), 1, "{text}");
    assert!(text.contains(generic), "{text}");
    let dims = [40, 36];
    assert!(!is_wrong(info, &dims, text.to_string()));
    assert!(is_wrong(info, &dims, text.replace(aligned, ".param .align 8 .b8 ")), "another alignment");
    assert!(is_wrong(info, &dims, text.replace(generic, "mov.b64 ")), "an address among the parameters");
}
