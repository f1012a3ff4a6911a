//! Staged copies that run ahead in rings, and staged copies of outputs: launched on the emulator at trip counts below,
//! at and above the length of the rings, at sizes with cut tiles, and compared with `reference()`.

use crate::support::{data, devices};
use tilewright::{Tensor, f16, schedule};

schedule! {
    /// Fused pointwise: two loads run ahead, the store lags behind.
    pub kernel Fused(a: f32, x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N])
    where N % 4 == 0
    {
        z[i, j] = a * x[i, j] + y[i, j];
        launch threads(128);
        schedule z {
            split i by 8 -> io, ii;
            split j by 64 -> jo, jr;
            split jr by 4 -> ji, v;
            reorder io, jo, ii, ji, v;
            bind io: grid;
            merge ii, ji -> t;
            bind t: thread;
            vectorize v;
        }
        stage xs[i, j] = x in shared at z.jo ring(3) via tma { box i by 8 -> ic, ib; box j by 64 -> jc, jb; }
        stage ys[i, j] = y in shared at z.jo ring(2) via tma { box i by 8 -> ic, ib; box j by 32 -> jc, jb; layout [jc, ib, jb] swizzle 128; }
        stage zs[i, j] = z in shared at z.jo ring(2) via tma { box i by 8 -> ic, ib; box j by 64 -> jc, jb; }
    }

    /// A ring over the terms, in a loop over elements that enters it again; results go through shared memory.
    pub kernel Columns(x: f32[K, M]) -> (y: f32[M])
    where M % 4 == 0
    {
        y[m] = sum(|k| x[k, m]);
        launch threads(32);
        schedule y {
            split m by 32 -> mo, mi;
            split mo by 3 -> mg, ms;
            split k by 4 -> ko, ki;
            reorder mg, ms, ko, mi, ki;
            bind mg: grid;
            bind mi: thread;
        }
        stage xs[k, m] = x in shared at y.ko ring(3) via tma { box k by 4 -> kc, kb; box m by 32 -> mc, mb; }
        stage ys[m] = y in shared at y.ms via tma { box m by 32 -> mc, mb; }
    }

    /// One tile a block, both ways, swizzled where columns are read and written.
    #[allow(TW0490)]
    pub kernel Transpose(x: f32[M, N]) -> (y: f32[N, M])
    where N % 4 == 0, M % 4 == 0
    {
        y[j, i] = x[i, j];
        launch threads(256);
        schedule y {
            split j by 32 -> jo, ji;
            split i by 32 -> io, ii;
            split ji by 8 -> r, w;
            reorder jo, io, r, w, ii;
            bind jo, io: grid;
            bind w: warp;
            bind ii: thread;
        }
        stage xs[i, j] = x in shared at y.io via tma { box i by 32 -> ic, ib; box j by 32 -> jc, jb; layout [ib, jb] swizzle 128; }
        stage ys[j, i] = y in shared at y.io via tma { box j by 32 -> jc, jb; box i by 16 -> ic, ib; layout [ic, jb, ib] swizzle 64; }
    }

    /// A store with one buffer in a loop that is unrolled, beside an output that each thread stores.
    pub kernel Pair(x: f16[M, N]) -> (p: f16[M, N], q: f16[M, N])
    where N % 8 == 0
    {
        p[i, j] = x[i, j] + x[i, j];
        q[i, j] = x[i, j] * x[i, j];
        launch threads(64);
        schedule p {
            split i by 4 -> io, ii;
            split j by 64 -> jo, jt;
            split jo by 2 -> jg, js;
            reorder io, jg, js, ii, jt;
            bind io, jg: grid;
            unroll js;
            bind jt: thread;
        }
        schedule q { split j by 64 -> jo, jt; bind i, jo: grid; bind jt: thread; }
        stage ps[i, j] = p in shared at p.js via tma { box i by 4 -> ic, ib; box j by 64 -> jc, jb; layout [ib, jb] swizzle 128; }
    }

    /// Two stores at different loops, and a ring of loads whose loop stands in another one.
    #[allow(TW0490)]
    pub kernel Nested(x: f32[A, B, C]) -> (y: f32[A, B, C], s: f32[A, B])
    where C % 4 == 0, B % 4 == 0
    {
        y[a, b, c] = x[a, b, c] + 1.0;
        s[a, b] = sum(|c| x[a, b, c]);
        launch threads(32);
        schedule y {
            split b by 4 -> bo, bi;
            split c by 8 -> co, ci;
            reorder a, bo, co, bi, ci;
            bind a: grid;
            merge bi, ci -> t;
            bind t: thread;
        }
        schedule s {
            split b by 32 -> bo, bi;
            split c by 4 -> co, ci;
            reorder a, bo, co, bi, ci;
            bind a: grid;
            bind bi: thread;
        }
        stage xs[a, b, c] = x in shared at y.co ring(4) via tma { box a by 1 -> ac, ab; box b by 4 -> bc, bb; box c by 8 -> cc, cb; }
        stage ys[a, b, c] = y in shared at y.co ring(3) via tma { box a by 1 -> ac, ab; box b by 4 -> bc, bb; box c by 8 -> cc, cb; }
        stage xr[a, b, c] = x in shared at s.co ring(2) via tma { box a by 1 -> ac, ab; box b by 32 -> bc, bb; box c by 4 -> cc, cb; }
        stage ss[a, b] = s in shared at s.bo ring(2) via tma { box a by 1 -> ac, ab; box b by 32 -> bc, bb; }
    }

    /// One dimension of bytes, merged from two, with a loop that a fact bounds.
    pub kernel Bytes(x: u8[M, 64]) -> (y: u8[M, 64])
    where M <= 40
    {
        y[i, j] = x[i, j] * 3;
        launch threads(64);
        schedule y { split i by 4 -> io, ii; reorder io, ii, j; bind j: thread; }
        stage xs[i, j] = x in shared at y.io ring(5) via tma { merge i, j -> n; box n by 256 -> nc, nb; }
        stage ys[i, j] = y in shared at y.io ring(3) via tma { split j by 32 -> jo, ji; box i by 4 -> ic, ib; box jo by 1 -> jc, jb; box ji by 32 -> kc, kb; }
    }

    /// Padding with a name of its own, and hints.
    pub kernel Padded(x: f32[M, N]) -> (y: f32[M, N])
    where N % 4 == 0
    {
        y[i, j] = (x[i - 1, j] or 0.0) + (x[i + 1, j] or 0.0);
        launch threads(128);
        schedule y {
            split i by 4 -> io, ii;
            split j by 32 -> jo, ji;
            reorder io, jo, ii, ji;
            bind io: grid;
            merge ii, ji -> t;
            bind t: thread;
        }
        stage xs[i, j] = x in shared at y.jo ring(2) via tma {
            resize i by (1, 1) -> p;
            box p by 6 -> pc, pb;
            box j by 32 -> jc, jb;
            l2 promote(128);
            l2 evict_last;
        }
        stage ys[i, j] = y in shared at y.jo via tma { box i by 4 -> ic, ib; box j by 32 -> jc, jb; l2 evict_first; }
    }

    /// More shared memory than a block has unless it asks.
    pub kernel Large(x: f32[M, N]) -> (y: f32[M, N])
    where N % 4 == 0
    {
        y[i, j] = x[i, j] * 2.0;
        launch threads(256);
        schedule y {
            split i by 64 -> io, ii;
            split j by 64 -> jo, ji;
            split ii by 4 -> ir, iw;
            reorder io, jo, ir, iw, ji;
            bind io: grid;
            merge iw, ji -> t;
            bind t: thread;
        }
        stage xs[i, j] = x in shared at y.jo ring(4) via tma { box i by 64 -> ic, ib; box j by 32 -> jc, jb; layout [jc, ib, jb] swizzle 128; }
        stage ys[i, j] = y in shared at y.jo ring(2) via tma { box i by 64 -> ic, ib; box j by 32 -> jc, jb; layout [jc, ib, jb] swizzle 128; }
    }
}

#[test]
fn loads_run_ahead_and_stores_lag_behind() {
    for device in &devices() {
        for (m, n) in [(8, 64), (16, 128), (8, 192), (9, 256), (7, 324), (24, 516), (1, 4), (0, 4), (3, 0)] {
            let x = data(device, [m, n], |i| i as f32 + 0.5);
            let y = data(device, [m, n], |i| (i % 13) as f32);
            let mut z = Tensor::zeros(device, [m, n]).unwrap();
            let expected = Fused { a: 3.0, x: &x, y: &y, z: &mut z }.reference().unwrap();
            Fused { a: 3.0, x: &x, y: &y, z: &mut z }.launch(device).unwrap();
            expected.check("z", &z).unwrap();
        }
    }
}

#[test]
fn a_ring_that_is_entered_again() {
    for device in &devices() {
        for (k, m) in [(4, 32), (1, 96), (8, 100), (12, 192), (13, 64), (16, 128), (27, 388), (0, 32), (5, 0)] {
            let x = data(device, [k, m], |i| (i % 7) as f32 - 2.5);
            let mut y = Tensor::zeros(device, [m]).unwrap();
            let expected = Columns { x: &x, y: &mut y }.reference().unwrap();
            Columns { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
    }
}

#[test]
fn tiles_go_both_ways() {
    for device in &devices() {
        for (m, n) in [(32, 32), (64, 96), (4, 4), (36, 60), (100, 40)] {
            let x = data(device, [m, n], |i| i as f32);
            let mut y = Tensor::zeros(device, [n, m]).unwrap();
            let expected = Transpose { x: &x, y: &mut y }.reference().unwrap();
            Transpose { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
        for (m, n) in [(4, 64), (5, 128), (8, 264), (3, 8)] {
            let x = data(device, [m, n], |i| f16::from_f32((i % 23) as f32 - 11.0));
            let mut p = Tensor::zeros(device, [m, n]).unwrap();
            let mut q = Tensor::zeros(device, [m, n]).unwrap();
            let expected = Pair { x: &x, p: &mut p, q: &mut q }.reference().unwrap();
            Pair { x: &x, p: &mut p, q: &mut q }.launch(device).unwrap();
            expected.check("p", &p).unwrap();
            expected.check("q", &q).unwrap();
        }
    }
}

#[test]
fn rings_in_loops() {
    for device in &devices() {
        for (a, b, c) in [(1, 4, 8), (2, 8, 16), (3, 12, 40), (1, 36, 4), (2, 68, 12)] {
            let x = data(device, [a, b, c], |i| (i % 17) as f32);
            let mut y = Tensor::zeros(device, [a, b, c]).unwrap();
            let mut s = Tensor::zeros(device, [a, b]).unwrap();
            let expected = Nested { x: &x, y: &mut y, s: &mut s }.reference().unwrap();
            Nested { x: &x, y: &mut y, s: &mut s }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
            expected.check("s", &s).unwrap();
        }
        for m in [1, 4, 5, 12, 16, 17, 23, 40] {
            let x = data(device, [m, 64], |i| i as u8);
            let mut y = Tensor::zeros(device, [m, 64]).unwrap();
            let expected = Bytes { x: &x, y: &mut y }.reference().unwrap();
            Bytes { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
    }
}

#[test]
fn padding_and_hints() {
    for device in &devices() {
        for (m, n) in [(4, 32), (1, 4), (9, 68), (6, 100)] {
            let x = data(device, [m, n], |i| i as f32);
            let mut y = Tensor::zeros(device, [m, n]).unwrap();
            let expected = Padded { x: &x, y: &mut y }.reference().unwrap();
            Padded { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
    }
    let text = &Padded::KERNEL.ptx.text;
    for hint in ["createpolicy.fractional.L2::evict_last.b64", "createpolicy.fractional.L2::evict_first.b64"] {
        assert!(text.contains(hint), "{hint} is not in\n{text}");
    }
    assert_eq!(text.matches("bulk_group.L2::cache_hint").count(), 1, "{text}");
    assert_eq!(Padded::KERNEL.maps[0].promotion, tilewright::kernel::tensor_map::Promotion::B128);
}

#[test]
fn shared_memory_is_asked_for() {
    assert_eq!(Large::KERNEL.entries[0].shared_bytes, 6 * 64 * 64 * 4 + 4 * 8);
    for device in &devices() {
        for (m, n) in [(64, 64), (65, 260), (1, 512)] {
            let x = data(device, [m, n], |i| i as f32);
            let mut y = Tensor::zeros(device, [m, n]).unwrap();
            let expected = Large { x: &x, y: &mut y }.reference().unwrap();
            Large { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
    }
}

/// Vectors of a thread stay vectors in shared memory, and every way of waiting is there.
#[test]
fn what_is_emitted() {
    let text = &Fused::KERNEL.ptx.text;
    for line in [
        "ld.shared.v4.f32",
        "st.shared.v4.f32",
        "fence.proxy.async.shared::cta;",
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group",
        "cp.async.bulk.commit_group;",
        "cp.async.bulk.wait_group.read 0;",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
