//! A vectorised pointwise kernel with a run-time size and one divisibility fact.
//!
//! Without the `where` line it does not compile; with a size that breaks the fact, nothing is launched.

mod support;

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
    let device = Device::best()?; // a GPU if there is one, else the emulator
    support::title(&device, Saxpy::KERNEL);
    for n in [4, 1000, 1024, 100_000, 1_000_000] {
        let x = Tensor::from_slice(&device, &support::data(n, 1), [n])?;
        let y = Tensor::from_slice(&device, &support::data(n, 2), [n])?;
        let mut z = Tensor::zeros(&device, [n])?;
        let time = support::time(&device, || Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.launch(&device))?;
        let reference = Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.reference()?;
        support::row(&format!("N = {n}"), time, &reference.check("z", &z)?);
    }
    // The fact is checked before anything runs.
    let x = Tensor::from_slice(&device, &support::data(1001, 1), [1001])?;
    let mut z = Tensor::zeros(&device, [1001])?;
    match (Saxpy { a: 2.0, x: &x, y: &x, z: &mut z }).launch(&device) {
        Ok(()) => unreachable!("1001 is not a multiple of 4"),
        Err(refusal) => println!("{:<28} refused: {refusal}", "N = 1001"),
    }
    Ok(())
}
