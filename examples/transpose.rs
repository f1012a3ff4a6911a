//! A transpose straight through global memory: correct for every size, and slow on purpose; `tiled_transpose` stages
//! tiles.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// y = xᵀ
    #[allow(TW0491)] // what the example shows: each read of a warp touches 32 rows
    pub kernel Transpose(x: f32[M, N]) -> (y: f32[N, M])
    {
        y[j, i] = x[i, j];

        launch threads(256);
        schedule y {
            split j by 8 -> jo, ji;
            split i by 32 -> io, ii;
            reorder jo, io, ji, ii;
            bind jo, io: grid;
            bind ji: warp;        // a row of y for each warp
            bind ii: thread;      // neighbouring lanes write neighbouring elements
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Transpose::KERNEL);
    for (m, n) in [(1, 1), (7, 5), (32, 32), (33, 65), (300, 200)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 4), [m, n])?;
        let mut y = Tensor::zeros(&device, [n, m])?;
        let time = support::time(&device, || Transpose { x: &x, y: &mut y }.launch(&device))?;
        let reference = Transpose { x: &x, y: &mut y }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
