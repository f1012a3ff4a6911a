//! Matrix products on the tensor cores of Hopper: one warpgroup fetches tiles ahead and two multiply, blocks of a
//! cluster share a tile of `b`, each cluster takes several tiles of the result, and the accelerator stores them.

mod support;

use tilewright::{Device, Tensor, bf16, schedule};

schedule! {
    /// c = a · bᵀ
    pub kernel Gemm(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N])
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
            bind mc: cta;                           // two blocks, one above the other
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
    /// c = gelu(a · b + bias), with `b` as it is in memory, row after row of k
    pub kernel Linear(a: bf16[M, K], b: bf16[K, N], bias: f32[N]) -> (c: bf16[M, N])
    where K % 8 == 0, N % 8 == 0
    {
        acc[m, n] = dot(|k| a[m, k] * b[k, n]);
        x[m, n] = acc[m, n] + bias[n];
        t[m, n] = approx::tanh(0.797_884_56 * (x[m, n] + 0.044_715 * x[m, n] * x[m, n] * x[m, n]));
        c[m, n] = (0.5 * x[m, n] * (1.0 + t[m, n])) as bf16;
        schedule c {
            split m by 128, 64 -> mt, mw, m2;
            split n by 128 -> nt, n1;
            reorder mt, nt, mw, m2, n1;
            bind mt, nt: grid;
            bind mw: warpgroup;
            fragment (m2, n1) by wgmma;
            vectorize n1_p;
        }
        schedule acc in registers at c.nt {
            split k by 64 -> ko, ki;
            split m by 64 -> mw, m2;
            reorder ko, mw, m2, n, ki;
            bind mw: warpgroup;
            mma (m2, n, ki) by wgmma;
        }
        stage sa[m, k] = a in shared at acc.ko ring(3) via tma { layout [m, k] swizzle 128; }
        stage sb[k, n] = b in shared at acc.ko ring(3) via tma {
            box n by 64 -> nc, nb;
            layout [nc, k, nb] swizzle 128;
        }
    }
}

fn numbers(n: usize, seed: u64) -> Vec<bf16> {
    support::data(n, seed).into_iter().map(bf16::from_f32).collect()
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Gemm::KERNEL);
    for (m, n, k) in [(1, 8, 8), (256, 256, 64), (300, 264, 200)] {
        let a = Tensor::from_slice(&device, &numbers(m * k, 1), [m, k])?;
        let b = Tensor::from_slice(&device, &numbers(n * k, 2), [n, k])?;
        let mut c = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || Gemm { a: &a, b: &b, c: &mut c }.launch(&device))?;
        let reference = Gemm { a: &a, b: &b, c: &mut c }.reference()?;
        support::row(&format!("M = {m}, N = {n}, K = {k}"), time, &reference.check("c", &c)?);
    }
    println!();
    support::title(&device, Linear::KERNEL);
    for (m, n, k) in [(1, 8, 8), (130, 136, 72)] {
        let a = Tensor::from_slice(&device, &numbers(m * k, 3), [m, k])?;
        let b = Tensor::from_slice(&device, &numbers(k * n, 4), [k, n])?;
        let bias = Tensor::from_slice(&device, &support::data(n, 5), [n])?;
        let mut c = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || Linear { a: &a, b: &b, bias: &bias, c: &mut c }.launch(&device))?;
        let reference = Linear { a: &a, b: &b, bias: &bias, c: &mut c }.reference()?;
        support::row(&format!("M = {m}, N = {n}, K = {k}"), time, &reference.check("c", &c)?);
    }
    Ok(())
}
