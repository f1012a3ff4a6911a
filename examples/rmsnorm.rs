//! RMS normalisation: bf16 in and out, f32 inside, a weight for each column. The sum of squares of a row is combined
//! across the threads of its block, which read the row once, 16 bytes at a time.

mod support;

use tilewright::{Device, Tensor, bf16, schedule};

schedule! {
    /// y = x · w / √(mean of x² + ε), for each row
    pub kernel RmsNorm(x: bf16[M, N], w: bf16[N], eps: f32) -> (y: bf16[M, N])
    where N % 8 == 0, N <= 32768
    {
        ss[i]   = sum(|j| x[i, j] as f32 * x[i, j] as f32);
        y[i, j] = (x[i, j] as f32 * rsqrt(ss[i] / N as f32 + eps) * w[j] as f32) as bf16;

        launch threads(512);
        schedule y {
            bind i: grid;
            split j by 8 -> jo, v;            // 16 bytes
            split jo by 512 -> r, t;          // r counts to 8 at most
            bind t: thread;
            vectorize v;
            unroll r;
        }
        stage xr[i, j] = x in registers at y.i { like y; }
        schedule ss in registers at y.i        { like y; reduce t; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, RmsNorm::KERNEL);
    for (m, n) in [(1, 8), (7, 32), (31, 40), (33, 1000), (3, 32768)] {
        let round = |data: Vec<f32>| data.into_iter().map(bf16::from_f32).collect::<Vec<_>>();
        let x = Tensor::from_slice(&device, &round(support::data(m * n, 10)), [m, n])?;
        let w = Tensor::from_slice(&device, &round(support::data(n, 11)), [n])?;
        let mut y = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || RmsNorm { x: &x, w: &w, eps: 1e-5, y: &mut y }.launch(&device))?;
        let reference = RmsNorm { x: &x, w: &w, eps: 1e-5, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
