//! A matrix product whose tile and rings are constants with candidates, and the record of which are best: `tilewright
//! tune examples/tuned_product.rs --write` ranks them and writes it (`docs/tune.md`).

mod support;

use tilewright::{Device, Tensor, bf16, schedule};

schedule! {
    /// c = a · bᵀ
    pub kernel Tuned(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N])
    where K % 8 == 0, N % 8 == 0
    {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n] as bf16;

        tune BN in [64, 128, 256], STAGES in [2, 3, 5]
            = (256, 3) by "h200 at M=2048,K=2048,N=2048: 9679f5ea5a9826ff";
        schedule c {
            split m by 128, 64 -> mt, mw, m2;
            split n by BN -> nt, n1;
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
        stage sa[m, k] = a in shared at acc.ko ring(STAGES) via tma { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(STAGES) via tma { layout [n, k] swizzle 128; }
    }
}

fn numbers(n: usize, seed: u64) -> Vec<bf16> {
    support::data(n, seed).into_iter().map(bf16::from_f32).collect()
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Tuned::KERNEL);
    for (m, n, k) in [(1, 8, 8), (130, 136, 72), (128, 256, 192)] {
        let a = Tensor::from_slice(&device, &numbers(m * k, 1), [m, k])?;
        let b = Tensor::from_slice(&device, &numbers(n * k, 2), [n, k])?;
        let mut c = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || Tuned { a: &a, b: &b, c: &mut c }.launch(&device))?;
        let reference = Tuned { a: &a, b: &b, c: &mut c }.reference()?;
        support::row(&format!("M = {m}, N = {n}, K = {k}"), time, &reference.check("c", &c)?);
    }
    Ok(())
}
