//! Products on the tensor cores of Hopper with other types, factors and epilogues: the schedule of `Gemm` in
//! `gemm.rs`, where not much has to change.

mod support;

use tilewright::{Device, Tensor, bf16, e4m3, f16, schedule};

schedule! {
    /// c = alpha · a · bᵀ + r
    pub kernel Residual(a: bf16[M, K], b: bf16[N, K], r: bf16[M, N], alpha: f32) -> (c: bf16[M, N])
    where K % 8 == 0, N % 8 == 0
    {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = (alpha * acc[m, n] + r[m, n] as f32) as bf16;
        launch cluster(2), persistent, roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) };
        schedule c by math {
            split m by 256, 128, 64 -> mt, mc, mw, m3;
            split n by 256, 64 -> nt, ns, n2;
            reorder mt, nt, mc, ns, mw, m3, n2;
            bind mt, nt: grid raster(mt: 8);
            bind mc: cta;
            unroll ns;
            bind mw: warpgroup;
            fragment (m3, n2) by wgmma;
            vectorize n2_p;
        }
        stage cs[m, n] = c in shared at c.ns ring(2) via tma by math { layout [m, n] swizzle 128; }
        schedule acc in registers at c.mc by math {
            split k by 64 -> ko, ki;
            split m by 64 -> mw, m3;
            reorder ko, mw, m3, n, ki;
            bind mw: warpgroup;
            mma (m3, n, ki) by wgmma inflight(1);
        }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma by load { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(4) via tma by load {
            box n by 128 -> nh, nb;
            layout [nh, nb, k] swizzle 128;
            multicast c.mc by nh;
        }
    }
}

schedule! {
    /// c = (a · bᵀ) scaled by row and column, of 8-bit floats
    pub kernel Scaled(a: e4m3[M, K], b: e4m3[N, K], u: f32[M], v: f32[N]) -> (c: bf16[M, N])
    where K % 16 == 0, N % 8 == 0
    {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = (acc[m, n] * u[m] * v[n]) as bf16;
        launch cluster(2), persistent, roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) };
        schedule c by math {
            split m by 256, 128, 64 -> mt, mc, mw, m3;
            split n by 256, 64 -> nt, ns, n2;
            reorder mt, nt, mc, ns, mw, m3, n2;
            bind mt, nt: grid raster(mt: 8);
            bind mc: cta;
            unroll ns;
            bind mw: warpgroup;
            fragment (m3, n2) by wgmma;
            vectorize n2_p;
        }
        stage cs[m, n] = c in shared at c.ns ring(2) via tma by math { layout [m, n] swizzle 128; }
        schedule acc in registers at c.mc by math {
            split k by 128 -> ko, ki;           // as many bytes as 64 elements of bf16
            split m by 64 -> mw, m3;
            reorder ko, mw, m3, n, ki;
            bind mw: warpgroup;
            mma (m3, n, ki) by wgmma inflight(1);
        }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma by load { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(4) via tma by load {
            box n by 128 -> nh, nb;
            layout [nh, nb, k] swizzle 128;
            multicast c.mc by nh;
        }
    }
}

schedule! {
    /// c = (a · bᵀ) scaled by row and column, of 8-bit integers: their sums are exact
    pub kernel Int8(a: i8[M, K], b: i8[N, K], u: f32[M], v: f32[N]) -> (c: bf16[M, N])
    where K % 16 == 0, N % 8 == 0
    {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = (acc[m, n] as f32 * u[m] * v[n]) as bf16;
        launch cluster(2), persistent, roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) };
        schedule c by math {
            split m by 256, 128, 64 -> mt, mc, mw, m3;
            split n by 256, 64 -> nt, ns, n2;
            reorder mt, nt, mc, ns, mw, m3, n2;
            bind mt, nt: grid raster(mt: 8);
            bind mc: cta;
            unroll ns;
            bind mw: warpgroup;
            fragment (m3, n2) by wgmma;
            vectorize n2_p;
        }
        stage cs[m, n] = c in shared at c.ns ring(2) via tma by math { layout [m, n] swizzle 128; }
        schedule acc in registers at c.mc by math {
            split k by 128 -> ko, ki;           // as many bytes as 64 elements of bf16
            split m by 64 -> mw, m3;
            reorder ko, mw, m3, n, ki;
            bind mw: warpgroup;
            mma (m3, n, ki) by wgmma inflight(1);
        }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma by load { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(4) via tma by load {
            box n by 128 -> nh, nb;
            layout [nh, nb, k] swizzle 128;
            multicast c.mc by nh;
        }
    }
}

schedule! {
    /// c = a · b for each of a batch, with `b` as it is in memory, row after row of k
    pub kernel Batched(a: f16[B, M, K], b: f16[B, K, N]) -> (c: f16[B, M, N])
    where K % 8 == 0, N % 8 == 0
    {
        acc[z, m, n] = dot(|k| a[z, m, k] * b[z, k, n]);
        c[z, m, n] = acc[z, m, n] as f16;
        launch persistent, roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) };
        schedule c by math {
            split m by 128, 64 -> mt, mw, m3;
            split n by 256, 64 -> nt, ns, n2;
            reorder z, mt, nt, ns, mw, m3, n2;
            bind z, mt, nt: grid;
            unroll ns;
            bind mw: warpgroup;
            fragment (m3, n2) by wgmma;
            vectorize n2_p;
        }
        stage cs[z, m, n] = c in shared at c.ns ring(2) via tma by math { layout [z, m, n] swizzle 128; }
        schedule acc in registers at c.nt by math {
            split k by 64 -> ko, ki;
            split m by 64 -> mw, m3;
            reorder z, ko, mw, m3, n, ki;
            bind mw: warpgroup;
            mma (m3, n, ki) by wgmma inflight(1);
        }
        stage sa[z, m, k] = a in shared at acc.ko ring(4) via tma by load { layout [z, m, k] swizzle 128; }
        stage sb[z, k, n] = b in shared at acc.ko ring(4) via tma by load {
            box n by 64 -> nc, nb;
            layout [nc, z, k, nb] swizzle 128;
        }
    }
}

schedule! {
    /// c = a · bᵀ where k is long and c is small: four blocks share the terms of a tile
    pub kernel SplitK(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N])
    where K % 8 == 0, N % 8 == 0
    {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n] as bf16;
        launch cluster(2), persistent, roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) };
        schedule c by math {
            split m by 256, 128, 64 -> mt, mc, mw, m3;
            split n by 256, 64 -> nt, ns, n2;
            reorder mt, nt, mc, ns, mw, m3, n2;
            bind mt, nt: grid raster(mt: 8);
            bind mc: cta;
            unroll ns;
            bind mw: warpgroup;
            fragment (m3, n2) by wgmma;
            vectorize n2_p;
        }
        stage cs[m, n] = c in shared at c.ns ring(2) via tma by math { layout [m, n] swizzle 128; }
        schedule acc in registers at c.mc by math {
            split k by 64 -> kt, ki;
            split kt into 4 -> ks, ko;
            bind ks: grid;
            split m by 64 -> mw, m3;
            reorder ks, ko, mw, m3, n, ki;
            bind mw: warpgroup;
            mma (m3, n, ki) by wgmma inflight(1);
            reduce ks by grid;                  // the last of the four adds up what they have, and goes on
        }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma by load { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(4) via tma by load {
            box n by 128 -> nh, nb;
            layout [nh, nb, k] swizzle 128;
            multicast c.mc by nh;
        }
    }
}

schedule! {
    /// c = a · bᵀ where k is short: one warpgroup multiplies while the other one finishes and stores its tile
    pub kernel PingPong(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N])
    where K % 8 == 0, N % 8 == 0
    {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n] as bf16;
        launch cluster(2), persistent, roles { load: warpgroup regs(40), math: 2 warpgroup alternate regs(232) };
        schedule c by math {
            split m by 128, 64 -> mt, mc, m2;
            split n by 256, 64 -> nt, ns, n2;
            reorder mt, nt, mc, ns, m2, n2;
            bind mt, nt: grid raster(mt: 8);
            bind mc: cta;
            unroll ns;
            fragment (m2, n2) by wgmma;
            vectorize n2_p;
        }
        stage cs[m, n] = c in shared at c.ns ring(2) via tma by math { layout [m, n] swizzle 128; }
        schedule acc in registers at c.mc by math {
            split k by 64 -> ko, ki;
            reorder ko, m, n, ki;
            mma (m, n, ki) by wgmma inflight(1);
        }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma by load { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(4) via tma by load {
            box n by 128 -> nh, nb;
            layout [nh, nb, k] swizzle 128;
            multicast c.mc by nh;
        }
    }
}

schedule! {
    /// c = silu(a · wᵀ₀) · (a · wᵀ₁): the gate of a layer and what it lets through, with one copy of `a` for both
    pub kernel Gated(a: bf16[M, K], w: bf16[2, N, K]) -> (c: bf16[M, N])
    where K % 8 == 0, N % 8 == 0
    {
        acc[m, h, n] = dot(|k| a[m, k] * w[h, n, k]);
        g[m, n] = acc[m, 0, n];
        c[m, n] = (g[m, n] / (1.0 + approx::exp(-g[m, n])) * acc[m, 1, n]) as bf16;
        launch cluster(2), persistent, roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) };
        schedule c by math {
            split m by 256, 128, 64 -> mt, mc, mw, m3;
            split n by 128, 64 -> nt, ns, n2;
            reorder mt, nt, mc, ns, mw, m3, n2;
            bind mt, nt: grid raster(mt: 8);
            bind mc: cta;
            unroll ns;
            bind mw: warpgroup;
            fragment (m3, n2) by wgmma;
            vectorize n2_p;
        }
        stage cs[m, n] = c in shared at c.ns ring(2) via tma by math { layout [m, n] swizzle 128; }
        schedule acc in registers at c.mc by math {
            split k by 64 -> ko, ki;
            split m by 64 -> mw, m3;
            reorder ko, mw, h, m3, n, ki;
            bind mw: warpgroup;
            unroll h;                           // two groups of products for each slot
            mma (m3, n, ki) by wgmma inflight(1);
        }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma by load { layout [m, k] swizzle 128; }
        stage sw[h, n, k] = w in shared at acc.ko ring(4) via tma by load {
            box h by 1 -> hc, h1;               // each block of the two fetches the weights of one, for both
            layout [hc, h1, n, k] swizzle 128;
            multicast c.mc by hc;
        }
    }
}

/// Values of a type, from numbers in [-1, 1).
fn values<T: Copy>(n: usize, seed: u64, of: impl Fn(f32) -> T) -> Vec<T> {
    support::data(n, seed).into_iter().map(of).collect()
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    let half = |n: usize, seed: u64| values(n, seed, bf16::from_f32);
    let small = |n: usize, seed: u64| values(n, seed, |x| (x * 100.0) as i8);
    let floats = |n: usize, seed: u64| values(n, seed, e4m3::from_f32);
    for (m, n, k) in [(1, 8, 16), (130, 136, 80)] {
        let shape = format!("M = {m}, N = {n}, K = {k}");
        support::title(&device, Residual::KERNEL);
        let a = Tensor::from_slice(&device, &half(m * k, 1), [m, k])?;
        let b = Tensor::from_slice(&device, &half(n * k, 2), [n, k])?;
        let r = Tensor::from_slice(&device, &half(m * n, 3), [m, n])?;
        let mut c = Tensor::zeros(&device, [m, n])?;
        let alpha = 0.5;
        let time = support::time(&device, || Residual { a: &a, b: &b, r: &r, alpha, c: &mut c }.launch(&device))?;
        let reference = Residual { a: &a, b: &b, r: &r, alpha, c: &mut c }.reference()?;
        support::row(&shape, time, &reference.check("c", &c)?);

        let u = Tensor::from_slice(&device, &support::data(m, 4), [m])?;
        let v = Tensor::from_slice(&device, &support::data(n, 5), [n])?;
        support::title(&device, Gated::KERNEL);
        let w = Tensor::from_slice(&device, &half(2 * n * k, 16), [2, n, k])?;
        let time = support::time(&device, || Gated { a: &a, w: &w, c: &mut c }.launch(&device))?;
        let reference = Gated { a: &a, w: &w, c: &mut c }.reference()?;
        support::row(&shape, time, &reference.check("c", &c)?);

        support::title(&device, Scaled::KERNEL);
        let a = Tensor::from_slice(&device, &floats(m * k, 6), [m, k])?;
        let b = Tensor::from_slice(&device, &floats(n * k, 7), [n, k])?;
        let time = support::time(&device, || Scaled { a: &a, b: &b, u: &u, v: &v, c: &mut c }.launch(&device))?;
        let reference = Scaled { a: &a, b: &b, u: &u, v: &v, c: &mut c }.reference()?;
        support::row(&shape, time, &reference.check("c", &c)?);

        support::title(&device, Int8::KERNEL);
        let a = Tensor::from_slice(&device, &small(m * k, 8), [m, k])?;
        let b = Tensor::from_slice(&device, &small(n * k, 9), [n, k])?;
        let time = support::time(&device, || Int8 { a: &a, b: &b, u: &u, v: &v, c: &mut c }.launch(&device))?;
        let reference = Int8 { a: &a, b: &b, u: &u, v: &v, c: &mut c }.reference()?;
        support::row(&shape, time, &reference.check("c", &c)?);
    }
    support::title(&device, Batched::KERNEL);
    for (z, m, n, k) in [(1, 1, 8, 8), (2, 130, 136, 72)] {
        let a = Tensor::from_slice(&device, &values(z * m * k, 10, f16::from_f32), [z, m, k])?;
        let b = Tensor::from_slice(&device, &values(z * k * n, 11, f16::from_f32), [z, k, n])?;
        let mut c = Tensor::zeros(&device, [z, m, n])?;
        let time = support::time(&device, || Batched { a: &a, b: &b, c: &mut c }.launch(&device))?;
        let reference = Batched { a: &a, b: &b, c: &mut c }.reference()?;
        support::row(&format!("B = {z}, M = {m}, N = {n}, K = {k}"), time, &reference.check("c", &c)?);
    }
    support::title(&device, SplitK::KERNEL);
    for (m, n, k) in [(1, 8, 8), (130, 136, 520)] {
        let a = Tensor::from_slice(&device, &half(m * k, 12), [m, k])?;
        let b = Tensor::from_slice(&device, &half(n * k, 13), [n, k])?;
        let mut c = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || SplitK { a: &a, b: &b, c: &mut c }.launch(&device))?;
        let reference = SplitK { a: &a, b: &b, c: &mut c }.reference()?;
        support::row(&format!("M = {m}, N = {n}, K = {k}"), time, &reference.check("c", &c)?);
    }
    support::title(&device, PingPong::KERNEL);
    for (m, n, k) in [(1, 8, 8), (300, 520, 136)] {
        let a = Tensor::from_slice(&device, &half(m * k, 14), [m, k])?;
        let b = Tensor::from_slice(&device, &half(n * k, 15), [n, k])?;
        let mut c = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || PingPong { a: &a, b: &b, c: &mut c }.launch(&device))?;
        let reference = PingPong { a: &a, b: &b, c: &mut c }.reference()?;
        support::row(&format!("M = {m}, N = {n}, K = {k}"), time, &reference.check("c", &c)?);
    }
    Ok(())
}
