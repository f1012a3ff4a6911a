//! Layer normalisation. Once with mean and variance of a row in one pass, by a `fold` whose states are merged across
//! threads (T. F. Chan, G. H. Golub, R. J. LeVeque, Updating formulae and a pairwise algorithm for computing sample
//! variances, 1979); once in two passes over the row, which is in registers: the mean, then the mean square of what is
//! left.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// y = (x − mean) / √(variance + ε) · w + b, for each row
    pub kernel LayerNorm(x: f32[M, N], w: f32[N], b: f32[N], eps: f32) -> (y: f32[M, N])
    where N % 4 == 0, N >= 4, N <= 8192
    {
        (mean, m2, n)[i] = fold(|j| init (0.0f32, 0.0f32, 0.0f32),
            step (mu, s, k) => (
                mu + (x[i, j] - mu) / (k + 1.0),
                s + (x[i, j] - mu) * (x[i, j] - mu) * (k / (k + 1.0)),
                k + 1.0
            ),
            merge ((mu1, s1, k1), (mu2, s2, k2)) => (
                if k1 + k2 == 0.0 { 0.0 } else { mu1 + (mu2 - mu1) * (k2 / (k1 + k2)) },
                if k1 + k2 == 0.0 { 0.0 } else { s1 + s2 + (mu2 - mu1) * (mu2 - mu1) * (k1 * (k2 / (k1 + k2))) },
                k1 + k2
            ));
        y[i, j] = (x[i, j] - mean[i]) * rsqrt(m2[i] / n[i] + eps) * w[j] + b[j];

        launch threads(256);
        schedule y {
            bind i: grid;
            split j by 4 -> jo, v;
            split jo by 256 -> r, t;          // r counts to 8 at most
            bind t: thread;
            vectorize v;
            unroll r;
        }
        stage xr[i, j] = x in registers at y.i      { like y; }
        schedule mean in registers at y.i { like y; reduce t; }
    }

    /// The same in two passes
    pub kernel TwoPassLayerNorm(x: f32[M, N], w: f32[N], b: f32[N], eps: f32) -> (y: f32[M, N])
    where N % 4 == 0, N >= 4, N <= 8192
    {
        mean[i]     = sum(|j| x[i, j]) / N as f32;
        d[i, j]     = x[i, j] - mean[i];
        variance[i] = sum(|j| d[i, j] * d[i, j]) / N as f32;
        y[i, j]     = d[i, j] * rsqrt(variance[i] + eps) * w[j] + b[j];

        launch threads(256);
        schedule y {
            bind i: grid;
            split j by 4 -> jo, v;
            split jo by 256 -> r, t;
            bind t: thread;
            vectorize v;
            unroll r;
        }
        stage xr[i, j] = x in registers at y.i    { like y; }
        schedule mean in registers at y.i         { like y; reduce t; }
        schedule d in registers at y.i            { like y; }
        schedule variance in registers at y.i     { like y; reduce t; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, LayerNorm::KERNEL);
    for (m, n) in [(1, 4), (7, 32), (31, 36), (33, 1000), (3, 8192)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 12), [m, n])?;
        let w = Tensor::from_slice(&device, &support::data(n, 13), [n])?;
        let b = Tensor::from_slice(&device, &support::data(n, 14), [n])?;
        let mut y = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || LayerNorm { x: &x, w: &w, b: &b, eps: 1e-5, y: &mut y }.launch(&device))?;
        let reference = LayerNorm { x: &x, w: &w, b: &b, eps: 1e-5, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("y", &y)?);
    }
    support::title(&device, TwoPassLayerNorm::KERNEL);
    for (m, n) in [(1, 4), (33, 1000), (3, 8192)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 12), [m, n])?;
        let w = Tensor::from_slice(&device, &support::data(n, 13), [n])?;
        let b = Tensor::from_slice(&device, &support::data(n, 14), [n])?;
        let mut y = Tensor::zeros(&device, [m, n])?;

        let time =
            support::time(&device, || TwoPassLayerNorm { x: &x, w: &w, b: &b, eps: 1e-5, y: &mut y }.launch(&device))?;
        let reference = TwoPassLayerNorm { x: &x, w: &w, b: &b, eps: 1e-5, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
