//! Sums of columns: the lanes of a warp read neighbouring columns, the warps of a block take rows in turn, and what they have
//! is combined.

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
    Ok(())
}
