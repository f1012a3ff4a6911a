//! A transpose by tiles: one copy of the tensor memory accelerator brings a tile to shared memory, swizzled so that a
//! warp reads it across its rows without bank conflicts, and every warp writes whole sectors.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// One load for each tile, swizzled, read across its rows.
    pub kernel Transpose(x: f32[M, N]) -> (y: f32[N, M])
    where N % 4 == 0
    {
        y[j, i] = x[i, j];
        launch threads(256);
        schedule y {
            split j by 32 -> jo, j1;
            split i by 32 -> io, i1;
            split j1 by 4 -> jg, jl;
            split i1 by 8 -> ig, il;
            reorder jo, io, jg, ig, jl, il;
            bind jo, io: grid;
            merge jg, ig -> g;
            split g by 8 -> r, w;
            bind w: warp;
            merge jl, il -> lane;
            bind lane: thread;
        }
        stage xs[i, j] = x in shared at y.io via tma {
            box i by 32 -> ic, ib;
            box j by 32 -> jc, jb;
            layout [ib, jb] swizzle 128;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Transpose::KERNEL);
    for (m, n) in [(1, 4), (7, 8), (32, 32), (33, 68), (300, 200)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 4), [m, n])?;
        let mut y = Tensor::zeros(&device, [n, m])?;
        let time = support::time(&device, || Transpose { x: &x, y: &mut y }.launch(&device))?;
        let reference = Transpose { x: &x, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
