//! A padded stencil: reads outside the tensor are written `or 0.0`. Without it, the read of column W does not compile.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// The mean of each element and its four neighbours, with zeros around the tensor
    pub kernel Smooth(x: f32[H, W]) -> (y: f32[H, W])
    {
        rows[i, j] = (x[i - 1, j] or 0.0) + (x[i + 1, j] or 0.0);
        cols[i, j] = (x[i, j - 1] or 0.0) + (x[i, j + 1] or 0.0);
        y[i, j]    = (x[i, j] + rows[i, j] + cols[i, j]) / 5.0;

        launch threads(128);
        schedule y {
            split i by 4 -> io, ii;
            split j by 32 -> jo, ji;
            reorder io, jo, ii, ji;
            bind io, jo: grid;
            merge ii, ji -> p;
            bind p: thread;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Smooth::KERNEL);
    for (h, w) in [(1, 1), (1, 7), (31, 33), (100, 3), (200, 300)] {
        let x = Tensor::from_slice(&device, &support::data(h * w, 7), [h, w])?;
        let mut y = Tensor::zeros(&device, [h, w])?;
        let time = support::time(&device, || Smooth { x: &x, y: &mut y }.launch(&device))?;
        let reference = Smooth { x: &x, y: &mut y }.reference()?;
        support::row(&format!("H = {h}, W = {w}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
