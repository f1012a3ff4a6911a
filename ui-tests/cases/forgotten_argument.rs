//! An argument that is not given.

use tilewright::{Device, Tensor};

tilewright::schedule! {
    pub kernel Scale(a: f32, x: f32[N]) -> (y: f32[N]) {
        y[i] = a * x[i];
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    let x = Tensor::from_slice(&device, &[1.0f32, 2.0], [2])?;
    let mut y = Tensor::<f32, 1>::zeros(&device, [2])?;
    Scale { x: &x, y: &mut y }.launch(&device)?;
    Ok(())
}
