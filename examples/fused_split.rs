//! What an iteration of a merged and split axis needs, for factors that divide rows and one that does not:
//! `KERNEL.explanation` names the regions, and none holds more elements than are read. (One thread: the point is the
//! region.)

mod support;

use tilewright::kernel::KernelInfo;
use tilewright::{Device, Tensor, schedule};

schedule! {
    /// Whole rows: each instance of `b` is one
    pub kernel ByRows(a: f32[4, 4]) -> (c: f32[4, 4])
    {
        b[i, j] = a[i, j] + 2.0;
        c[i, j] = b[i, j] * 3.0;
        launch threads(1);
        schedule c { merge i, j -> f; split f by 4 -> fo, fi; }
        schedule b in shared at c.fo {}
    }

    /// Two rows
    pub kernel ByPairs(a: f32[4, 4]) -> (c: f32[4, 4])
    {
        b[i, j] = a[i, j] + 2.0;
        c[i, j] = b[i, j] * 3.0;
        launch threads(1);
        schedule c { merge i, j -> f; split f by 8 -> fo, fi; }
        schedule b in shared at c.fo {}
    }

    /// Three elements, which may be of two rows
    pub kernel ByThrees(a: f32[4, 4]) -> (c: f32[4, 4])
    {
        b[i, j] = a[i, j] + 2.0;
        c[i, j] = b[i, j] * 3.0;
        launch threads(1);
        schedule c { merge i, j -> f; split f by 3 -> fo, fi; }
        schedule b in shared at c.fo {}
    }
}

fn region(kernel: &KernelInfo) -> String {
    let line = kernel.explanation.lines().find(|line| line.contains("region "));
    line.unwrap_or_default().trim().to_owned()
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    let a = Tensor::from_slice(&device, &support::data(16, 17), [4, 4])?;
    let mut c = Tensor::zeros(&device, [4, 4])?;
    macro_rules! try_one {
        ($kernel:ident) => {
            support::title(&device, $kernel::KERNEL);
            println!("{}", region($kernel::KERNEL));
            let time = support::time(&device, || $kernel { a: &a, c: &mut c }.launch(&device))?;
            let reference = $kernel { a: &a, c: &mut c }.reference()?;
            support::row("4 x 4", time, &reference.check("c", &c)?);
        };
    }
    try_one!(ByRows);
    try_one!(ByPairs);
    try_one!(ByThrees);
    Ok(())
}
