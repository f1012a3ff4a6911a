//! A launch whose error nobody looks at.
#![deny(unused_must_use)]

use tilewright::{Device, Tensor};

tilewright::schedule! {
    kernel Scale(a: f32, x: f32[N]) -> (y: f32[N]) {
        y[i] = a * x[i];
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    let x = Tensor::from_slice(&device, &[1.0_f32; 8], [8])?;
    let mut y = Tensor::zeros(&device, [8])?;
    Scale { a: 2.0, x: &x, y: &mut y }.launch(&device);
    Scale { a: 2.0, x: &x, y: &mut y }.prepare(&device)?;
    Ok(())
}
