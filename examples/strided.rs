//! Strided tensors in and out: the kernel adds a row vector to a window of a larger matrix, and writes into a window of
//! another one. Not a byte outside the window changes.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// y = x + w, for windows x and y with row pitches lx and ly
    pub kernel AddRow(x: f32[M, N; lx, 1], w: f32[N]) -> (y: f32[M, N; ly, 1])
    where N <= 4096
    {
        y[i, j] = x[i, j] + w[j];

        launch threads(128);
        schedule y {
            split j by 128 -> r, t;      // r <= 32 by the fact on N
            reorder i, r, t;
            bind i: grid;
            bind t: thread;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, AddRow::KERNEL);
    for (m, n, lx, ly) in [(1, 1, 1, 1), (3, 5, 8, 6), (10, 129, 200, 130), (64, 1000, 1000, 1024)] {
        let whole = Tensor::from_slice(&device, &support::data(m * lx, 5), [m, lx])?;
        let x = whole.slice(1, 0..n)?;
        let w = Tensor::from_slice(&device, &support::data(n, 6), [n])?;
        let mut target = Tensor::from_slice(&device, &vec![7.0; m * ly], [m, ly])?;
        let (time, agreement) = {
            let mut y = target.view_mut().slice(1, 0..n)?;
            let time = support::time(&device, || AddRow { x: &x, w: &w, y: &mut y }.launch(&device))?;
            let reference = AddRow { x: &x, w: &w, y: &mut y }.reference()?;
            (time, reference.check("y", &y)?)
        };
        let gaps = target.to_vec()?.chunks(ly).all(|row| row[n..].iter().all(|v| *v == 7.0));
        assert!(gaps, "an element outside the window changed");
        support::row(&format!("M = {m}, N = {n}, lx = {lx}, ly = {ly}"), time, &agreement);
    }
    Ok(())
}
