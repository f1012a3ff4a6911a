//! Layer normalisation of rows that fit into no registers: mean and sum of squares in one pass over blocks of a row.
//!
//! The equations are the plain ones, of two passes. `online mean -> m2 over jo` makes them one: a sum of squares
//! follows the mean of the terms so far (B. P. Welford, 1962; for parts, T. F. Chan, G. H. Golub, R. J. LeVeque, 1979),
//! and `online sum` admits what that rounds.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// y = (x − mean) / √(variance + ε) · w + b, for each row
    pub kernel OnlineLayerNorm(x: f32[M, N], w: f32[N], b: f32[N], eps: f32) -> (y: f32[M, N])
    where N % 4 == 0, N >= 4
    {
        mean[i] = sum(|j| x[i, j]) / N as f32;
        m2[i]   = online sum(|j| (x[i, j] - mean[i]) * (x[i, j] - mean[i]));
        y[i, j] = (x[i, j] - mean[i]) * rsqrt(m2[i] / N as f32 + eps) * w[j] + b[j];

        launch threads(256);
        schedule y {
            bind i: grid;
            split j by 2048, 4 -> jo, j1, v;
            split j1 by 256 -> r, t;
            bind t: thread;
            vectorize v;
            unroll r;
        }
        schedule mean in registers at y.i {
            like y;
            reduce t;                                           // parts of threads are merged by the same rule
            online mean -> m2 over jo;
        }
        stage xr[i, j] = x in registers at mean.jo { like mean; }   // the loops inside of `jo` run twice
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, OnlineLayerNorm::KERNEL);
    for (m, n) in [(1, 4), (7, 32), (3, 2052), (2, 8192)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 12), [m, n])?;
        let w = Tensor::from_slice(&device, &support::data(n, 13), [n])?;
        let b = Tensor::from_slice(&device, &support::data(n, 14), [n])?;
        let mut y = Tensor::zeros(&device, [m, n])?;
        let time =
            support::time(&device, || OnlineLayerNorm { x: &x, w: &w, b: &b, eps: 1e-5, y: &mut y }.launch(&device))?;
        let reference = OnlineLayerNorm { x: &x, w: &w, b: &b, eps: 1e-5, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
