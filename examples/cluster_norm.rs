//! RMS normalisation of long rows: the eight blocks of a cluster share a row. Each copies its part to shared memory
//! once, by the accelerator, and all of them combine their sums of squares.

mod support;

use tilewright::{Device, Tensor, bf16, schedule};

schedule! {
    /// y = x · w / √(mean of x² + ε), for each row
    pub kernel ClusterNorm(x: bf16[M, N], w: bf16[N], eps: f32) -> (y: bf16[M, N])
    where N % 64 == 0, N <= 262144
    {
        ss[i]   = sum(|j| x[i, j] as f32 * x[i, j] as f32);
        y[i, j] = (x[i, j] as f32 * rsqrt(ss[i] / N as f32 + eps) * w[j] as f32) as bf16;

        launch cluster(8), threads(512);
        schedule y {
            bind i: grid;
            split j by 32768 -> c, jc;        // c counts to 8 at most
            bind c: cta;
            split jc by 8 -> q, v;            // 16 bytes
            split q by 512 -> r, t;
            bind t: thread;
            vectorize v;
        }
        stage xs[i, j] = x in shared at y.c via tma { split j by 64 -> ja, jv; box ja by 256 -> jb, ji; l2 evict_first; }
        schedule ss in registers at y.i             { like y; reduce t; reduce c by cluster; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, ClusterNorm::KERNEL);
    for (m, n) in [(1, 64), (3, 32_832), (2, 99_968), (1, 262_144)] {
        let round = |data: Vec<f32>| data.into_iter().map(bf16::from_f32).collect::<Vec<_>>();
        let x = Tensor::from_slice(&device, &round(support::data(m * n, 10)), [m, n])?;
        let w = Tensor::from_slice(&device, &round(support::data(n, 11)), [n])?;
        let mut y = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || ClusterNorm { x: &x, w: &w, eps: 1e-5, y: &mut y }.launch(&device))?;
        let reference = ClusterNorm { x: &x, w: &w, eps: 1e-5, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
