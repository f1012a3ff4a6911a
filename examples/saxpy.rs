//! A vectorised pointwise kernel with a run-time size and one divisibility fact.

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// z = a·x + y
    pub kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N])
    where N % 4 == 0
    {
        z[i] = a * x[i] + y[i];

        launch threads(256);
        schedule z {
            split i by 4 -> io, v;        // 16-byte vectors
            split io by 256 -> b, t;      // b < ceil(N / 1024)
            bind b: grid;
            bind t: thread;
            vectorize v;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    let n = 100_000;
    let xs: Vec<f32> = (0..n).map(|i| i as f32 * 0.25).collect();
    let ys: Vec<f32> = (0..n).map(|i| 1.0 - i as f32).collect();
    let x = Tensor::from_slice(&device, &xs, [n])?;
    let y = Tensor::from_slice(&device, &ys, [n])?;
    let mut z = Tensor::zeros(&device, [n])?;

    let reference = Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.reference()?;
    Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.launch(&device)?;
    println!("{:?}", reference.check("z", &z));
    println!("{}", Saxpy::KERNEL.explanation);
    Ok(())
}
