//! Softmax over rows: each element is read once, exponentiated once and written once. A block keeps its row in
//! registers; the maximum and the sum are combined across its threads.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// y = exp(x − max) / Σ exp(x − max), for each row
    pub kernel Softmax(x: f32[M, N]) -> (y: f32[M, N])
    where N % 4 == 0, N <= 16384
    {
        m[i]    = max(|j| x[i, j]);
        e[i, j] = exp(x[i, j] - m[i]);
        s[i]    = sum(|j| e[i, j]);
        y[i, j] = e[i, j] / s[i];

        launch threads(512);
        schedule y {
            bind i: grid;
            split j by 4 -> jo, v;
            split jo by 512 -> r, t;          // r counts to 8 at most, by the fact on N
            bind t: thread;
            vectorize v;
            unroll r;
        }
        stage xr[i, j] = x in registers at y.i { like y; }
        schedule e in registers at y.i         { like y; }
        schedule m in registers at y.i         { like y; reduce t; }
        schedule s in registers at y.i         { like y; reduce t; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Softmax::KERNEL);
    for (m, n) in [(1, 4), (7, 32), (31, 36), (33, 1000), (3, 16384)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 9), [m, n])?;
        let mut y = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || Softmax { x: &x, y: &mut y }.launch(&device))?;
        let reference = Softmax { x: &x, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
