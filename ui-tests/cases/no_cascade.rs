//! A kernel that is refused keeps its Rust items: its callers add no errors.

use tilewright::{Device, Tensor};

tilewright::schedule! {
    /// Refused: a tail cuts through its vectors.
    pub kernel Scale(a: f32, x: f32[N]) -> (y: f32[N]) {
        y[i] = a * x[i];
        schedule y { split i by 4 -> b, v; bind b: grid; vectorize v; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    let x = Tensor::from_slice(&device, &[1.0f32, 2.0], [2])?;
    let mut y = Tensor::zeros(&device, [2])?;
    Scale { a: 2.0, x: &x, y: &mut y }.launch(&device)?;
    println!("{} {:?}", Scale::KERNEL.name, y.to_vec()?);
    Ok(())
}
