//! Sums that follow an extreme in one pass: per row, the logarithm of the sum of exponentials, and the mean of weights
//! under softmax. A warp has a row and reads it once.
//!
//! `online sum` admits that partial sums are rescaled where a larger element is met; `reference()` has the error.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// Per row: log Σ exp(x), and Σ softmax(x)·w
    #[allow(TW0690)]                                            // four threads of a block write its rows
    pub kernel SoftmaxStatistics(x: f32[M, N], w: f32[M, N]) -> (lse: f32[M], mean: f32[M])
    where N % 4 == 0
    {
        m[i]    = max(|j| x[i, j]);
        p[i, j] = exp(x[i, j] - m[i]);
        l[i]    = online sum(|j| p[i, j]);
        a[i]    = online sum(|j| p[i, j] * w[i, j]);
        lse[i]  = m[i] + log(l[i]);
        mean[i] = a[i] / l[i];

        launch threads(128);
        schedule lse        { split i by 4 -> b, t; bind b: grid; bind t: thread; }
        schedule mean at lse.b { like lse; }
        schedule m in shared at lse.b {
            split j by 256 -> jo, j1; split j1 by 128 -> r, j2; split j2 by 4 -> t, v;
            bind i: warp; bind t: thread; reduce t; unroll r; vectorize v;
            online m -> l, a over jo;
        }
        stage xr[i, j] = x in registers at m.jo { like m; }     // the loops inside of `jo` run twice
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, SoftmaxStatistics::KERNEL);
    for (m, n) in [(1, 4), (7, 32), (3, 260), (32, 1000)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 8), [m, n])?;
        let w = Tensor::from_slice(&device, &support::data(m * n, 3), [m, n])?;
        let (mut lse, mut mean) = (Tensor::zeros(&device, [m])?, Tensor::zeros(&device, [m])?);
        let time = support::time(&device, || {
            SoftmaxStatistics { x: &x, w: &w, lse: &mut lse, mean: &mut mean }.launch(&device)
        })?;
        let reference = SoftmaxStatistics { x: &x, w: &w, lse: &mut lse, mean: &mut mean }.reference()?;
        let sizes = format!("M = {m}, N = {n}");
        support::row(&format!("{sizes}: lse"), time, &reference.check("lse", &lse)?);
        support::row(&format!("{sizes}: mean"), time, &reference.check("mean", &mean)?);
    }
    Ok(())
}
