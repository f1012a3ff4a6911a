//! Transposes with a factor each: the four blocks of a cluster read one tile, of which each fetches a quarter for all
//! of them.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// y[b] = s[b] · xᵀ
    pub kernel ScaledTranspose(x: f32[M, N], s: f32[B]) -> (y: f32[B, N, M])
    where N % 4 == 0
    {
        y[b, j, i] = s[b] * x[i, j];
        launch cluster(4), threads(256);
        schedule y {
            split b by 4 -> bo, bc;
            split j by 32 -> jo, j1;
            split i by 32 -> io, i1;
            split j1 by 4 -> jg, jl;
            split i1 by 8 -> ig, il;
            reorder bo, jo, io, bc, jg, ig, jl, il;
            bind bo, jo, io: grid;
            bind bc: cta;
            merge jg, ig -> g;
            split g by 8 -> r, w;
            bind w: warp;
            merge jl, il -> lane;
            bind lane: thread;
        }
        stage xs[i, j] = x in shared at y.bc via tma {
            box i by 8 -> ic, ib;
            box j by 32 -> jc, jb;
            layout [ic, ib, jb] swizzle 128;
            multicast y.bc by ic;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, ScaledTranspose::KERNEL);
    for (m, n, b) in [(1, 4, 1), (7, 8, 3), (32, 32, 4), (33, 68, 5), (300, 200, 4)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 4), [m, n])?;
        let s = Tensor::from_slice(&device, &support::data(b, 5), [b])?;
        let mut y = Tensor::zeros(&device, [b, n, m])?;
        let time = support::time(&device, || ScaledTranspose { x: &x, s: &s, y: &mut y }.launch(&device))?;
        let reference = ScaledTranspose { x: &x, s: &s, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}, B = {b}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
