//! Attention in other ways: causal, with heads that share keys and the logarithm of each row's sum; with a window; for
//! few queries and many keys, which blocks share; and by the products of warps, for GPUs before Hopper.

mod support;

use tilewright::{Device, Tensor, bf16, schedule};

schedule! {
    /// o = softmax(q · kᵀ / √128) · v over the keys up to the query's own; four heads share keys and values. Blocks of
    /// keys past the last query of a tile are left out, and in those around the diagonal the scores past it are masked.
    pub kernel Causal(q: bf16[4 * G, S, 128], k: bf16[G, S, 128], v: bf16[G, S, 128])
    -> (o: bf16[4 * G, S, 128], lse: f32[4 * G, S]) {
        s[h, i, j]  = dot(|d| q[h, i, d] * k[h / 4, j, d]);
        m[h, i]     = max(|j in 0..=i| s[h, i, j]);
        p[h, i, j]  = approx::exp2(fma(0.127_517_43, s[h, i, j], -0.127_517_43 * m[h, i])); // log₂ e / √128
        pb[h, i, j] = p[h, i, j] as bf16;
        l[h, i]     = online sum(|j in 0..=i| p[h, i, j]);
        a[h, i, e]  = online dot(|j in 0..=i| pb[h, i, j] * v[h / 4, j, e]);
        o[h, i, e]  = (a[h, i, e] / l[h, i]) as bf16;
        lse[h, i]   = 0.088_388_35 * m[h, i] + log(l[h, i]);

        launch roles { load: warpgroup regs(24), math: 2 warpgroup regs(240) };
        schedule o by math {
            split i by 128 -> it, i1;
            split i1 by 64 -> w, i2;
            bind h, it: grid raster(h: 8, it: descending); // of eight heads the longest blocks first
            bind w: warpgroup;
            reorder h, it, w, i2, e;
            fragment (i2, e) by wgmma;
            vectorize e_p;
        }
        schedule lse at o.it by math {
            split i by 128 -> it, i1;
            split i1 by 64 -> w, i2;
            bind h, it: grid;
            bind w: warpgroup;
            fragment (i2) by wgmma;                 // the first lane of a row writes it
        }
        schedule m in registers at o.it by math {
            split i by 64 -> w, i1;
            bind w: warpgroup;
            split j by 128 -> jo, j1;
            reorder jo, w, i1, j1;
            fragment (i1, j1) by wgmma;
            online m -> l, a over jo;
        }
        schedule a  in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; mma (i1, e, j) by wgmma inflight(1); }
        schedule pb in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; fragment (i1, j) by wgmma; }
        schedule p  in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; fragment (i1, j) by wgmma; }
        schedule s  in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; mma (i1, j, d) by wgmma; }
        stage sq[h, i, d] = q in shared at o.it via tma by load {
            box d by 64 -> dx, db;
            layout [dx, h, i, db] swizzle 128;
        }
        stage sk[g, j, d] = k in shared at m.jo ring(2) via tma by load {
            box d by 64 -> dx, db;
            layout [dx, g, j, db] swizzle 128;
        }
        stage sv[g, j, e] = v in shared at m.jo ring(2) via tma by load {
            box e by 64 -> ex, eb;
            layout [ex, g, j, eb] swizzle 128;
        }
    }
}

schedule! {
    /// The same with a window: a query sees the 1,024 keys up to its own. Blocks of keys before the windows of a tile
    /// are left out as well, and in those around their starts the scores before them are masked.
    pub kernel Window(q: bf16[H, S, 128], k: bf16[H, S, 128], v: bf16[H, S, 128]) -> (o: bf16[H, S, 128]) {
        s[h, i, j]  = dot(|d| q[h, i, d] * k[h, j, d]);
        m[h, i]     = max(|j in max(0, i - 1023)..=i| s[h, i, j]);
        p[h, i, j]  = approx::exp2(fma(0.127_517_43, s[h, i, j], -0.127_517_43 * m[h, i])); // log₂ e / √128
        pb[h, i, j] = p[h, i, j] as bf16;
        l[h, i]     = online sum(|j in max(0, i - 1023)..=i| p[h, i, j]);
        a[h, i, e]  = online dot(|j in max(0, i - 1023)..=i| pb[h, i, j] * v[h, j, e]);
        o[h, i, e]  = (a[h, i, e] / l[h, i]) as bf16;

        launch roles { load: warpgroup regs(24), math: 2 warpgroup regs(240) };
        schedule o by math {
            split i by 128 -> it, i1;
            split i1 by 64 -> w, i2;
            bind h, it: grid;
            bind w: warpgroup;
            reorder h, it, w, i2, e;
            fragment (i2, e) by wgmma;
            vectorize e_p;
        }
        schedule m in registers at o.it by math {
            split i by 64 -> w, i1;
            bind w: warpgroup;
            split j by 128 -> jo, j1;
            reorder jo, w, i1, j1;
            fragment (i1, j1) by wgmma;
            online m -> l, a over jo;
        }
        schedule a  in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; mma (i1, e, j) by wgmma; }
        schedule pb in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; fragment (i1, j) by wgmma; }
        schedule p  in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; fragment (i1, j) by wgmma; }
        schedule s  in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; mma (i1, j, d) by wgmma; }
        stage sq[h, i, d] = q in shared at o.it via tma by load {
            box d by 64 -> dx, db;
            layout [dx, h, i, db] swizzle 128;
        }
        stage sk[h, j, d] = k in shared at m.jo ring(2) via tma by load {
            box d by 64 -> dx, db;
            layout [dx, h, j, db] swizzle 128;
        }
        stage sv[h, j, e] = v in shared at m.jo ring(2) via tma by load {
            box e by 64 -> ex, eb;
            layout [ex, h, j, eb] swizzle 128;
        }
    }
}

schedule! {
    /// The same for few queries and many keys: blocks take eight parts of the keys, and the last of them merges what
    /// they have.
    pub kernel Decode(q: bf16[H, S, 64], k: bf16[H, T, 64], v: bf16[H, T, 64]) -> (o: bf16[H, S, 64]) {
        s[h, i, j]  = dot(|d| q[h, i, d] * k[h, j, d]);
        m[h, i]     = max(|j| s[h, i, j]);
        p[h, i, j]  = approx::exp2(fma(0.180_336_88, s[h, i, j], -0.180_336_88 * m[h, i])); // log₂ e / √64
        pb[h, i, j] = p[h, i, j] as bf16;
        l[h, i]     = online sum(|j| p[h, i, j]);
        a[h, i, e]  = online dot(|j| pb[h, i, j] * v[h, j, e]);
        o[h, i, e]  = (a[h, i, e] / l[h, i]) as bf16;

        schedule o {
            split i by 64 -> it, i1;
            bind h, it: grid;
            reorder h, it, i1, e;
            fragment (i1, e) by wgmma;
            vectorize e_p;
        }
        schedule m in registers at o.it {
            split j by 64 -> jo, j1;
            split jo into 8 -> jg, ji;
            bind jg: grid;
            reduce jg by grid;
            fragment (i, j1) by wgmma;
            online m -> l, a over ji;
        }
        schedule a  in registers at m.ji { mma (i, e, j) by wgmma; }
        schedule pb in registers at m.ji { fragment (i, j) by wgmma; }
        schedule p  in registers at m.ji { fragment (i, j) by wgmma; }
        schedule s  in registers at m.ji { mma (i, j, d) by wgmma; }
        stage sq[h, i, d] = q in shared at o.it         via tma { layout [h, i, d] swizzle 128; }
        stage sk[h, j, d] = k in shared at m.ji ring(4) via tma { layout [h, j, d] swizzle 128; }
        stage sv[h, j, e] = v in shared at m.ji ring(4) via tma { layout [h, j, e] swizzle 128; }
    }
}

schedule! {
    /// The same by four warps, for compute capability 8.0: factors are loaded by `ldmatrix` from copies by `cp.async`.
    pub kernel ByWarps(q: bf16[M, 64], k: bf16[N, 64], v: bf16[N, 64]) -> (o: f32[M, 64]) {
        fq[i, d] = q[i, d];
        fk[j, d] = k[j, d];
        fv[e, j] = v[j, e];
        s[i, j]  = dot(|d| fq[i, d] * fk[j, d]);
        m[i]     = max(|j| s[i, j]);
        p[i, j]  = approx::exp2(fma(0.180_336_88, s[i, j], -0.180_336_88 * m[i]));
        pb[i, j] = p[i, j] as bf16;
        l[i]     = online sum(|j| p[i, j]);
        a[i, e]  = online dot(|j| pb[i, j] * fv[e, j]);
        o[i, e]  = a[i, e] / l[i];

        schedule o {
            split i by 64 -> it, i1;
            split i1 by 16 -> w, i2;
            bind it: grid;
            bind w: warp;
            reorder it, w, i2, e;
            fragment (i2, e) by mma_sync;
            vectorize e_p;
        }
        schedule m in registers at o.it {
            split i by 16 -> w, i1;
            bind w: warp;
            split j by 32 -> jo, j1;
            reorder jo, w, i1, j1;
            fragment (i1, j1) by mma_sync;
            online m -> l, a over jo;
        }
        schedule a in registers at m.jo {
            split i by 16 -> w, i1;
            split j by 16 -> jk, ji;
            bind w: warp;
            reorder jk, w, i1, e, ji;
            unroll jk;
            mma (i1, e, ji) by mma_sync;
        }
        schedule pb in registers at m.jo { split i by 16 -> w, i1; bind w: warp; fragment (i1, j) by mma_sync; }
        schedule p  in registers at m.jo { split i by 16 -> w, i1; bind w: warp; fragment (i1, j) by mma_sync; }
        schedule s in registers at m.jo {
            split i by 16 -> w, i1;
            split d by 16 -> dk, di;
            bind w: warp;
            reorder dk, w, i1, j, di;
            unroll dk;
            mma (i1, j, di) by mma_sync;
        }
        schedule fq in registers per warp at s.dk { fragment (i, d) by mma_sync; }
        schedule fk in registers per warp at s.dk { fragment (j, d) by mma_sync; }
        schedule fv in registers per warp at a.jk { fragment (e, j) by mma_sync; }
        stage sq[i, d] = q in shared at o.it via cp_async {
            split i by 16 -> ih, ir;
            split d by 8 -> dc, dv;
            reorder ir, dc, ih, dv;
            bind ir, dc: thread;
            unroll ih;
            vectorize dv;
            layout [i, d] swizzle 128;
        }
        stage sk[j, d] = k in shared at m.jo ring(2) via cp_async {
            split j by 16 -> jh, jr;
            split d by 8 -> dc, dv;
            reorder jr, dc, jh, dv;
            bind jr, dc: thread;
            unroll jh;
            vectorize dv;
            layout [j, d] swizzle 128;
        }
        stage sv[j, e] = v in shared at m.jo ring(2) via cp_async {
            split j by 16 -> jh, jr;
            split e by 8 -> ec, ev;
            reorder jr, ec, jh, ev;
            bind jr, ec: thread;
            unroll jh;
            vectorize ev;
            layout [j, e] swizzle 128;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    let data =
        |count: usize, seed: u64| -> Vec<bf16> { support::data(count, seed).into_iter().map(bf16::from_f32).collect() };
    support::title(&device, Causal::KERNEL);
    for (g, s) in [(1, 1), (1, 150)] {
        let q = Tensor::from_slice(&device, &data(4 * g * s * 128, 5), [4 * g, s, 128])?;
        let k = Tensor::from_slice(&device, &data(g * s * 128, 8), [g, s, 128])?;
        let v = Tensor::from_slice(&device, &data(g * s * 128, 3), [g, s, 128])?;
        let mut o = Tensor::zeros(&device, [4 * g, s, 128])?;
        let mut lse = Tensor::zeros(&device, [4 * g, s])?;
        let run = |o: &mut _, lse: &mut _| Causal { q: &q, k: &k, v: &v, o, lse }.launch(&device);
        let time = support::time(&device, || run(&mut o, &mut lse))?;
        let reference = Causal { q: &q, k: &k, v: &v, o: &mut o, lse: &mut lse }.reference()?;
        support::row(&format!("G = {g}, S = {s}"), time, &reference.check("o", &o)?);
        support::row("", time, &reference.check("lse", &lse)?);
    }
    support::title(&device, Window::KERNEL);
    for (h, s) in [(1, 3), (1, 1100)] {
        let q = Tensor::from_slice(&device, &data(h * s * 128, 5), [h, s, 128])?;
        let k = Tensor::from_slice(&device, &data(h * s * 128, 8), [h, s, 128])?;
        let v = Tensor::from_slice(&device, &data(h * s * 128, 3), [h, s, 128])?;
        let mut o = Tensor::zeros(&device, [h, s, 128])?;
        let time = support::time(&device, || Window { q: &q, k: &k, v: &v, o: &mut o }.launch(&device))?;
        let check = Window { q: &q, k: &k, v: &v, o: &mut o }.reference()?.check("o", &o)?;
        support::row(&format!("H = {h}, S = {s}"), time, &check);
    }
    support::title(&device, Decode::KERNEL);
    for (h, s, t) in [(2, 1, 1000), (1, 5, 3)] {
        let q = Tensor::from_slice(&device, &data(h * s * 64, 5), [h, s, 64])?;
        let k = Tensor::from_slice(&device, &data(h * t * 64, 8), [h, t, 64])?;
        let v = Tensor::from_slice(&device, &data(h * t * 64, 3), [h, t, 64])?;
        let mut o = Tensor::zeros(&device, [h, s, 64])?;
        let time = support::time(&device, || Decode { q: &q, k: &k, v: &v, o: &mut o }.launch(&device))?;
        let check = Decode { q: &q, k: &k, v: &v, o: &mut o }.reference()?.check("o", &o)?;
        support::row(&format!("H = {h}, S = {s}, T = {t}"), time, &check);
    }
    support::title(&device, ByWarps::KERNEL);
    for (m, n) in [(64, 64), (70, 45)] {
        let q = Tensor::from_slice(&device, &data(m * 64, 5), [m, 64])?;
        let k = Tensor::from_slice(&device, &data(n * 64, 8), [n, 64])?;
        let v = Tensor::from_slice(&device, &data(n * 64, 3), [n, 64])?;
        let mut o = Tensor::zeros(&device, [m, 64])?;
        let time = support::time(&device, || ByWarps { q: &q, k: &k, v: &v, o: &mut o }.launch(&device))?;
        let check = ByWarps { q: &q, k: &k, v: &v, o: &mut o }.reference()?.check("o", &o)?;
        support::row(&format!("M = {m}, N = {n}"), time, &check);
    }
    Ok(())
}
