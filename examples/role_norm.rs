//! RMS normalisation by roles in clusters: a warpgroup of each block fetches its part of rows, two combine their sums
//! with those of the other blocks and compute, one stores. Only those that compute wait for other blocks; the others go
//! on, from row to row of a persistent launch.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// y = x · w / √(mean of x² + 10⁻⁵), for each row
    pub kernel RoleNorm(x: f32[M, N], w: f32[N]) -> (y: f32[M, N])
    where N % 4 == 0, N <= 32768
    {
        ss[i]   = sum(|j| x[i, j] * x[i, j]);
        y[i, j] = x[i, j] * rsqrt(ss[i] / N as f32 + 1e-5) * w[j];

        launch cluster(4), persistent, roles { load: warpgroup regs(40), math: 2 warpgroup regs(160), store: warpgroup regs(40) };
        schedule y by math {
            bind i: grid;
            split j by 8192 -> c, jc;         // c counts to 4 at most, by the fact on N
            bind c: cta;
            split jc by 4 -> q, v;
            split q by 256 -> r, t;
            bind t: thread;
            vectorize v;
            unroll r;
        }
        stage xs[i, j] = x in shared at y.i ring(3) via tma by load  { box j by 256 -> jb, jj; }
        stage ys[i, j] = y in shared at y.i ring(2) via tma by store { box j by 256 -> jb, jj; }
        schedule ss in registers at y.i { like y; reduce t; reduce c by cluster; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, RoleNorm::KERNEL);
    for (m, n) in [(1, 4), (3, 8196), (7, 10_000), (2, 32_768)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 13), [m, n])?;
        let w = Tensor::from_slice(&device, &support::data(n, 14), [n])?;
        let mut y = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || RoleNorm { x: &x, w: &w, y: &mut y }.launch(&device))?;
        let reference = RoleNorm { x: &x, w: &w, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
