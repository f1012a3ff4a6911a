//! Stencils whose tiles come while the threads compute: a block goes down the rows of an image, and what it needs next
//! is on its way to shared memory. Halos, rings, waits and barriers are derived.
//!
//! Once with copies by threads (`cp.async`), for any size, padding included; once by the accelerator, for three stages
//! in a row.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// A convolution with zeros around the image
    pub kernel Convolution(x: f32[H, W], w: f32[5, 5]) -> (y: f32[H, W])
    {
        y[i, j] = sum(|r, s| (x[i + r - 2, j + s - 2] or 0.0) * w[r, s]);

        launch threads(256);
        schedule y {
            split i by 8 -> it, ii;
            split it by 16 -> ib, is;             // 16 tiles of 8 rows, one after the other
            split j by 64 -> jb, jj;
            split ii by 4 -> iq, ir;
            reorder ib, jb, is, iq, ir, jj, r, s;
            bind ib, jb: grid;
            bind ir, jj: thread;
            unroll iq;
        }
        stage xs[i, j] = x in shared at y.is ring(3) via cp_async {     // 12 rows of 68
            merge i, j -> p;
            split p by 256 -> pr, t;
            bind t: thread;
        }
    }

    /// Two smoothings and what they took away: each stage in shared memory, the image in a ring of tiles
    pub kernel Detail(x: f32[H, W]) -> (y: f32[H - 4, W - 4])
    where H >= 5, W >= 8, W % 4 == 0
    {
        a[i, j] = 0.25 * x[i, j] + 0.5 * x[i, j + 1] + 0.25 * x[i, j + 2];
        b[i, j] = 0.25 * a[i, j] + 0.5 * a[i + 1, j] + 0.25 * a[i + 2, j];
        c[i, j] = b[i, j] + b[i, j + 2] + b[i + 2, j] + b[i + 2, j + 2];
        y[i, j] = x[i + 2, j + 2] - 0.25 * c[i, j];

        launch threads(256);
        schedule y {
            split i by 8 -> it, ii;
            split it by 16 -> ib, is;
            split j by 64 -> jb, jj;
            split ii by 4 -> iq, ir;
            reorder ib, jb, is, iq, ir, jj;
            bind ib, jb: grid;
            bind ir, jj: thread;
            unroll iq;
        }
        stage xs[i, j] = x in shared at y.is ring(3) via tma { box j by 72 -> jc, js; }
        schedule a in shared at y.is { merge i, j -> p; split p by 256 -> pr, t; bind t: thread; }
        schedule b in shared at y.is { merge i, j -> p; split p by 256 -> pr, t; bind t: thread; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Convolution::KERNEL);
    for (h, w) in [(1, 1), (7, 33), (128, 65), (200, 300)] {
        let x = Tensor::from_slice(&device, &support::data(h * w, 21), [h, w])?;
        let weights = Tensor::from_slice(&device, &support::data(25, 22), [5, 5])?;
        let mut y = Tensor::zeros(&device, [h, w])?;
        let time = support::time(&device, || Convolution { x: &x, w: &weights, y: &mut y }.launch(&device))?;
        let reference = Convolution { x: &x, w: &weights, y: &mut y }.reference()?;
        support::row(&format!("H = {h}, W = {w}"), time, &reference.check("y", &y)?);
    }
    support::title(&device, Detail::KERNEL);
    for (h, w) in [(5, 8), (33, 68), (140, 132), (200, 300)] {
        let x = Tensor::from_slice(&device, &support::data(h * w, 23), [h, w])?;
        let mut y = Tensor::zeros(&device, [h - 4, w - 4])?;
        let time = support::time(&device, || Detail { x: &x, y: &mut y }.launch(&device))?;
        let reference = Detail { x: &x, y: &mut y }.reference()?;
        support::row(&format!("H = {h}, W = {w}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
