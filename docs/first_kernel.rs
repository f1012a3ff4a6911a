//! The kernel of the page `first-kernel.md`, with its tests.

use tilewright::schedule;

schedule! {
    /// y = x − the mean of its row
    pub kernel Center(x: f32[M, N]) -> (y: f32[M, N])
    where N % 4 == 0, N >= 4, N <= 4096
    {
        mean[i] = sum(|j| x[i, j]) / N as f32;
        y[i, j] = x[i, j] - mean[i];

        launch threads(256);
        schedule y {
            bind i: grid;                     // a block a row
            split j by 4 -> jo, v;            // 16 bytes
            split jo by 256 -> r, t;
            bind t: thread;
            vectorize v;
            unroll r;
        }
        stage xr[i, j] = x in registers at y.i { like y; }
        schedule mean in registers at y.i { like y; reduce t; }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright::{Device, Tensor};

    /// Every element is one that the equations admit, also where no tile divides.
    #[test]
    fn rows_are_centred() -> tilewright::Result<()> {
        let device = Device::best()?; // a GPU if there is one, else the emulator
        for (m, n) in [(1, 4), (3, 1024), (2, 1028), (5, 4096), (0, 8)] {
            let data: Vec<f32> = (0..m * n).map(|k| (k * 37 % 101) as f32 / 8.0).collect();
            let x = Tensor::from_slice(&device, &data, [m, n])?;
            let mut y = Tensor::zeros(&device, [m, n])?;
            Center { x: &x, y: &mut y }.launch(&device)?;
            let reference = Center { x: &x, y: &mut y }.reference()?;
            reference.check("y", &y)?;
        }
        Ok(())
    }

    /// A launch that breaks a fact is refused with the values, and nothing runs.
    #[test]
    fn facts_are_checked() -> tilewright::Result<()> {
        let device = Device::best()?;
        let x = Tensor::from_slice(&device, &[1.0; 12], [2, 6])?;
        let mut y = Tensor::zeros(&device, [2, 6])?;
        let refused = Center { x: &x, y: &mut y }.launch(&device).unwrap_err();
        let why = refused.to_string();
        assert!(why.contains("the fact `N % 4 == 0` does not hold with N = 6, where N % 4 = 2"), "{why}");
        Ok(())
    }
}
