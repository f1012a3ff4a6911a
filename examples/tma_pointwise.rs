//! A fused pointwise kernel as a pipeline: the accelerator brings tiles of both inputs to rings in shared memory,
//! several tiles ahead of the threads, and takes results from a ring of their own while the next tile is computed.
//!
//! Twice: for any size by tiles of a tensor map, which cuts the last one, and for whole tiles by runs of memory
//! (`cp.async.bulk`).

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// z = a·x + y, eight tiles a block.
    pub kernel Axpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N])
    where N % 4 == 0
    {
        z[i] = a * x[i] + y[i];
        launch threads(256);
        schedule z {
            split i by 2048 -> tile, ti;
            split tile by 8 -> b, s;
            split ti by 4 -> tv, v;
            split tv by 256 -> r, t;
            bind b: grid;
            bind t: thread;
            vectorize v;
        }
        stage xs[i] = x in shared at z.s ring(4) via tma { box i by 256 -> ic, ib; }
        stage ys[i] = y in shared at z.s ring(4) via tma { box i by 256 -> ic, ib; }
        stage zs[i] = z in shared at z.s ring(2) via tma { box i by 256 -> ic, ib; }
    }

    /// The same of whole tiles: each copy is one run of 8 KiB, and there is no tensor map.
    pub kernel AxpyRuns(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N])
    where N % 16384 == 0
    {
        z[i] = a * x[i] + y[i];
        launch threads(256);
        schedule z {
            split i by 2048 -> tile, ti;
            split tile by 8 -> b, s;
            split ti by 4 -> tv, v;
            split tv by 256 -> r, t;
            bind b: grid;
            bind t: thread;
            vectorize v;
        }
        stage xs[i] = x in shared at z.s ring(4) via tma { l2 evict_first; }
        stage ys[i] = y in shared at z.s ring(4) via tma { l2 evict_first; }
        stage zs[i] = z in shared at z.s ring(2) via tma { }
    }
}

/// One launch of a kernel, compared with its reference.
macro_rules! axpy {
    ($device:expr, $kernel:ident, $n:expr) => {{
        let (device, n) = ($device, $n);
        let x = Tensor::from_slice(device, &support::data(n, 5), [n])?;
        let y = Tensor::from_slice(device, &support::data(n, 6), [n])?;
        let mut z = Tensor::zeros(device, [n])?;
        let time = support::time(device, || $kernel { a: 2.5, x: &x, y: &y, z: &mut z }.launch(device))?;
        let reference = $kernel { a: 2.5, x: &x, y: &y, z: &mut z }.reference()?;
        support::row(&format!("{} N = {n}", stringify!($kernel)), time, &reference.check("z", &z)?);
    }};
}

fn main() -> tilewright::Result<()> {
    let device = &Device::best()?;
    support::title(device, Axpy::KERNEL);
    for n in [4, 2048, 16_384, 16_388, 100_000] {
        axpy!(device, Axpy, n);
    }
    for n in [16_384, 98_304] {
        axpy!(device, AxpyRuns, n);
    }
    Ok(())
}
