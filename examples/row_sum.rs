//! Reductions over rows of run-time length, one row a warp: mean, largest element and its place. Lanes read
//! neighbouring elements; with a row a thread, each read of a warp would touch 32 rows.
//!
//! A float sum may be taken in any order, so `reference()` gives an interval for it; the other two are exact.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// Per row: mean, maximum, and the index of the maximum
    pub kernel RowStatistics(x: f32[M, N]) -> (mean: f32[M], top: f32[M], place: u32[M])
    where N >= 1
    {
        mean[i]  = sum(|j| x[i, j]) / N as f32;
        top[i]   = max(|j| x[i, j]);
        place[i] = argmax(|j| x[i, j]);

        launch threads(128);
        schedule mean  { split i by 4 -> b, w; split j by 32 -> r, t; bind b: grid; bind w: warp; bind t: thread; reduce t; }
        schedule top   { split i by 4 -> b, w; split j by 32 -> r, t; bind b: grid; bind w: warp; bind t: thread; reduce t; }
        schedule place { split i by 4 -> b, w; split j by 32 -> r, t; bind b: grid; bind w: warp; bind t: thread; reduce t; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, RowStatistics::KERNEL);
    for (m, n) in [(1, 1), (7, 31), (64, 33), (100, 1003)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 8), [m, n])?;
        let (mut mean, mut top) = (Tensor::zeros(&device, [m])?, Tensor::zeros(&device, [m])?);
        let mut place = Tensor::zeros(&device, [m])?;
        let time = support::time(&device, || {
            RowStatistics { x: &x, mean: &mut mean, top: &mut top, place: &mut place }.launch(&device)
        })?;
        let reference = RowStatistics { x: &x, mean: &mut mean, top: &mut top, place: &mut place }.reference()?;
        let sizes = format!("M = {m}, N = {n}");
        support::row(&format!("{sizes}: mean"), time, &reference.check("mean", &mean)?);
        support::row(&format!("{sizes}: top"), time, &reference.check("top", &top)?);
        support::row(&format!("{sizes}: place"), time, &reference.check("place", &place)?);
    }
    Ok(())
}
