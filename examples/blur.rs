//! A stencil in two stages: horizontal sums in shared memory, with the rows of halo that the vertical sums ask for,
//! which nobody writes down.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// The mean of each 3 x 3 window
    pub kernel Blur(x: f32[H, W]) -> (y: f32[H - 2, W - 2])
    where H >= 3, W >= 3
    {
        bx[i, j] = (x[i, j] + x[i, j + 1] + x[i, j + 2]) / 3.0;
        y[i, j]  = (bx[i, j] + bx[i + 1, j] + bx[i + 2, j]) / 3.0;

        launch threads(256);
        schedule y {
            split i by 30 -> io, ii;
            split j by 64 -> jo, ji;
            reorder io, jo, ii, ji;
            bind io, jo: grid;
            merge ii, ji -> p;
            split p by 256 -> pr, t;
            bind t: thread;
        }
        schedule bx in shared at y.jo {       // 32 rows of 64
            merge i, j -> p;
            split p by 256 -> pr, t;
            bind t: thread;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Blur::KERNEL);
    for (h, w) in [(3, 3), (7, 33), (33, 67), (100, 3), (200, 300)] {
        let x = Tensor::from_slice(&device, &support::data(h * w, 16), [h, w])?;
        let mut y = Tensor::zeros(&device, [h - 2, w - 2])?;
        let time = support::time(&device, || Blur { x: &x, y: &mut y }.launch(&device))?;
        let reference = Blur { x: &x, y: &mut y }.reference()?;
        support::row(&format!("H = {h}, W = {w}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
