//! Merging discontiguous axes: legal exactly when the vectorised axis divides the inner extent.
//!
//! `x` may be a slice of a larger tensor, with gaps between rows and between planes. Four elements never cross a row,
//! since 4 divides 64; `split mn by 24` and `vectorize` of the inner part would, and does not compile.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// y = 2·x, for x with any row pitch and any plane pitch that are multiples of 4
    pub kernel Scale(x: f32[B, M, 64; sb, sm, 1]) -> (y: f32[B, M, 64])
    where sm % 4 == 0, sb % 4 == 0
    {
        y[b, m, n] = 2.0 * x[b, m, n];

        launch threads(128);
        schedule y {
            merge m, n -> mn;                 // discontiguous in x: row pitch sm
            split mn by 4 -> q, v;            // 4 divides 64: a vector never crosses a row
            merge b, q -> r;
            split r by 128 -> g, t;
            bind g: grid; bind t: thread; vectorize v;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Scale::KERNEL);
    for (b, m, pitch) in [(1, 1, 64), (2, 3, 68), (5, 7, 100), (16, 31, 64)] {
        // A tensor with `pitch` columns, of which the kernel sees the first 64.
        let whole = Tensor::from_slice(&device, &support::data(b * m * pitch, 3), [b, m, pitch])?;
        let x = whole.slice(2, 0..64)?;
        let mut y = Tensor::zeros(&device, [b, m, 64])?;
        let time = support::time(&device, || Scale { x: &x, y: &mut y }.launch(&device))?;
        let reference = Scale { x: &x, y: &mut y }.reference()?;
        support::row(&format!("B = {b}, M = {m}, sm = {pitch}"), time, &reference.check("y", &y)?);
    }
    Ok(())
}
