//! Products whose factors lanes hold: weights of 8 bits that threads convert on the way to the tensor cores of Hopper,
//! and products by warps, for compute capability 8.0 and later.

mod support;

use tilewright::{Device, Tensor, bf16, schedule};

schedule! {
    /// y = (w · s) · xᵀ, transposed: weights of 8 bits, a scale for each of their rows, and x as it comes
    pub kernel Weights(w: i8[M, K], s: f32[M], x: bf16[N, K]) -> (y: bf16[N, M])
    where K % 16 == 0
    {
        wide[m, k] = w[m, k] as bf16;
        acc[m, n] = dot(|k| wide[m, k] * x[n, k]);
        y[n, m] = (s[m] * acc[m, n]) as bf16;
        launch roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) };
        schedule y by math {
            split m by 128, 64 -> mt, mw, m2;
            split n by 128 -> nt, n1;
            reorder mt, nt, mw, m2, n1;
            bind mt, nt: grid;
            bind mw: warpgroup;
            fragment (m2, n1) by wgmma;
            unroll n1_p;
        }
        schedule acc in registers at y.nt by math {
            split k by 64 -> ko, ki;
            split m by 64 -> mw, m2;
            reorder ko, mw, m2, n, ki;
            bind mw: warpgroup;
            mma (m2, n, ki) by wgmma;
        }
        schedule wide in registers at acc.ko by math {
            split m by 64 -> mw, m2;
            bind mw: warpgroup;
            fragment (m2, k) by wgmma;
        }
        stage sw[m, k] = w in shared at acc.ko ring(4) via tma by load { layout [m, k] swizzle 64; }
        stage sx[n, k] = x in shared at acc.ko ring(4) via tma by load { layout [n, k] swizzle 128; }
    }
}

schedule! {
    /// c = a · b, by warps: threads fetch tiles ahead, and a warp multiplies what its lanes load of them
    pub kernel Warps(a: bf16[M, K], b: bf16[K, N]) -> (c: bf16[M, N])
    where K % 8 == 0, N % 8 == 0
    {
        fa[m, k] = a[m, k];
        fb[n, k] = b[k, n];
        acc[m, n] = dot(|k| fa[m, k] * fb[n, k]);
        c[m, n] = acc[m, n] as bf16;
        schedule c {
            split m by 128, 64 -> mt, mw, m2;
            split n by 128, 32 -> nt, nw, n2;
            reorder mt, nt, mw, nw, m2, n2;
            bind mt, nt: grid;
            bind mw, nw: warp;                      // eight warps, of 64 × 32 elements
            fragment (m2, n2) by mma_sync;
            vectorize n2_p;
        }
        schedule acc in registers at c.nt {
            split k by 32, 16 -> ko, kk, ki;
            split m by 64 -> mw, m2;
            split n by 32 -> nw, n2;
            reorder ko, kk, mw, nw, m2, n2, ki;
            unroll kk;
            bind mw, nw: warp;
            mma (m2, n2, ki) by mma_sync;
        }
        schedule fa in registers per warp at acc.kk { fragment (m, k) by mma_sync; }
        schedule fb in registers per warp at acc.kk { fragment (n, k) by mma_sync; }
        stage sa[m, k] = a in shared at acc.ko ring(4) via cp_async {
            split m by 64 -> mo, mi;
            split k by 8 -> kc, kv;
            reorder mi, kc, mo, kv;
            bind mi, kc: thread;
            unroll mo;
            vectorize kv;
            layout [m, k] swizzle 64;
        }
        stage sb[k, n] = b in shared at acc.ko ring(4) via cp_async {
            split k by 16 -> kh, kr;
            split n by 64 -> nh, nb;
            split nb by 8 -> nc, nv;
            reorder nh, kr, nc, kh, nv;
            bind nh, kr, nc: thread;
            unroll kh;
            vectorize nv;
            layout [nh, k, nb] swizzle 128;
        }
    }
}

fn numbers(n: usize, seed: u64) -> Vec<bf16> {
    support::data(n, seed).into_iter().map(bf16::from_f32).collect()
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Weights::KERNEL);
    for (m, n, k) in [(1, 1, 16), (130, 37, 80)] {
        let weights: Vec<i8> = support::data(m * k, 1).into_iter().map(|x| (x * 100.0) as i8).collect();
        let w = Tensor::from_slice(&device, &weights, [m, k])?;
        let s = Tensor::from_slice(&device, &support::data(m, 2), [m])?;
        let x = Tensor::from_slice(&device, &numbers(n * k, 3), [n, k])?;
        let mut y = Tensor::zeros(&device, [n, m])?;
        let time = support::time(&device, || Weights { w: &w, s: &s, x: &x, y: &mut y }.launch(&device))?;
        let reference = Weights { w: &w, s: &s, x: &x, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}, K = {k}"), time, &reference.check("y", &y)?);
    }
    println!();
    support::title(&device, Warps::KERNEL);
    for (m, n, k) in [(1, 8, 8), (128, 128, 64), (130, 136, 72)] {
        let a = Tensor::from_slice(&device, &numbers(m * k, 4), [m, k])?;
        let b = Tensor::from_slice(&device, &numbers(k * n, 5), [k, n])?;
        let mut c = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || Warps { a: &a, b: &b, c: &mut c }.launch(&device))?;
        let reference = Warps { a: &a, b: &b, c: &mut c }.reference()?;
        support::row(&format!("M = {m}, N = {n}, K = {k}"), time, &reference.check("c", &c)?);
    }
    Ok(())
}
