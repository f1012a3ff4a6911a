//! Softmax by roles: a warpgroup fetches rows, two compute, one stores; each goes on while the others work on other
//! rows, from tile to tile of a persistent launch. Nobody writes a barrier.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// y = exp(x − max) / Σ exp(x − max), for each row
    pub kernel RoleSoftmax(x: f32[M, N]) -> (y: f32[M, N])
    where N % 4 == 0, N <= 4096
    {
        m[i]    = max(|j| x[i, j]);
        e[i, j] = exp(x[i, j] - m[i]);
        s[i]    = sum(|j| e[i, j]);
        y[i, j] = e[i, j] / s[i];

        launch persistent, roles { load: warpgroup regs(40), math: 2 warpgroup regs(200), store: warpgroup regs(40) };
        schedule y by math {
            bind i: grid;
            split j by 4 -> jo, v;
            split jo by 256 -> r, t;          // r counts to 4 at most, by the fact on N
            bind t: thread;
            vectorize v;
            unroll r;
        }
        stage xs[i, j] = x in shared at y.i ring(3) via tma by load  { box j by 256 -> jc, jb; }
        stage ys[i, j] = y in shared at y.i ring(2) via tma by store { box j by 256 -> jc, jb; }
        schedule e in registers at y.i { like y; }
        schedule m in registers at y.i { like y; reduce t; }
        schedule s in registers at y.i { like y; reduce t; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, RoleSoftmax::KERNEL);
    for (m, n) in [(1, 4), (7, 32), (31, 36), (33, 1000), (3, 4096)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 9), [m, n])?;
        let mut y = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || RoleSoftmax { x: &x, y: &mut y }.launch(&device))?;
        let reference = RoleSoftmax { x: &x, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
