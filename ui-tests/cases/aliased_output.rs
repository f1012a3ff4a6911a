//! A tensor that is read and written by one launch.

use tilewright::{Device, Tensor};

tilewright::schedule! {
    pub kernel Scale(a: f32, x: f32[N]) -> (y: f32[N]) {
        y[i] = a * x[i];
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    let mut x = Tensor::from_slice(&device, &[1.0f32, 2.0], [2])?;
    Scale { a: 2.0, x: &x, y: &mut x }.launch(&device)?;
    Ok(())
}
