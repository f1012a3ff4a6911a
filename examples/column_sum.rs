//! Sums of columns: the lanes of a warp read neighbouring columns, the warps of a block take rows in turn, and what
//! they have is combined.
//!
//! Once with a block for all rows of its columns; once with rows split over blocks, so that few columns keep a GPU
//! busy, too.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// y = Σ x, for each column
    pub kernel ColumnSum(x: f32[M, N]) -> (y: f32[N])
    {
        y[j] = sum(|i| x[i, j]);

        launch threads(256);
        schedule y {
            split j by 32 -> jo, t;
            split i by 8 -> io, w;
            reorder jo, w, t, io;
            bind jo: grid;
            bind w: warp;
            bind t: thread;
            reduce w;
        }
    }

    /// The same, 16 bytes at a time, eight of them under way in each thread; 512 rows a block
    pub kernel TallColumnSum(x: f32[M, N]) -> (y: f32[N])
    where N % 4 == 0
    {
        y[j] = sum(|i| x[i, j]);

        schedule y {
            split j by 4 -> jv, v;
            split jv by 32 -> jb, t;
            split i by 512 -> ib, ir;
            split ir by 8 -> iw, u;
            split iw by 8 -> iq, w;
            reorder ib, jb, w, t, iq, u, v;
            bind ib, jb: grid;
            bind w: warp;
            bind t: thread;
            vectorize v;
            unroll u;
            reduce w;
            reduce ib by grid;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, ColumnSum::KERNEL);
    for (m, n) in [(1, 1), (7, 31), (31, 33), (100, 7), (1003, 300)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 15), [m, n])?;
        let mut y = Tensor::zeros(&device, [n])?;
        let time = support::time(&device, || ColumnSum { x: &x, y: &mut y }.launch(&device))?;
        let reference = ColumnSum { x: &x, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("y", &y)?);
    }
    support::title(&device, TallColumnSum::KERNEL);
    for (m, n) in [(1, 4), (31, 36), (513, 8), (10_007, 132)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 16), [m, n])?;
        let mut y = Tensor::zeros(&device, [n])?;
        let time = support::time(&device, || TallColumnSum { x: &x, y: &mut y }.launch(&device))?;
        let reference = TallColumnSum { x: &x, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
