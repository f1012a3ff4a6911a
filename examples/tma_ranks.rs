//! A copy by the tensor memory accelerator in every rank that it has: to shared memory and from there to the output,
//! without a thread reading device memory.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// One dimension.
    pub kernel Copy1(x: f32[A]) -> (y: f32[A])
    where A % 4 == 0
    {
        y[a] = x[a];
        schedule y { split a by 256 -> o, t; bind o: grid; bind t: thread; }
        stage xs[a] = x in shared at y.o via tma { box a by 256 -> ac, ab; }
        stage ys[a] = y in shared at y.o via tma { box a by 256 -> ac, ab; }
    }

    /// Two, in a serial loop over the columns: loads run ahead.
    pub kernel Copy2(x: f32[A, B]) -> (y: f32[A, B])
    where B % 4 == 0
    {
        y[a, b] = x[a, b];
        schedule y {
            split a by 8 -> ao, ai;
            split b by 32 -> bo, bi;
            reorder ao, bo, ai, bi;
            bind ao: grid;
            merge ai, bi -> t;
            bind t: thread;
        }
        stage xs[a, b] = x in shared at y.bo ring(3) via tma { box a by 8 -> ac, ab; box b by 32 -> bc, bb; layout [ab, bb] swizzle 128; }
        stage ys[a, b] = y in shared at y.bo ring(2) via tma { box a by 8 -> ac, ab; box b by 32 -> bc, bb; layout [ab, bb] swizzle 128; }
    }

    /// Three, as two: the outer ones are contiguous to each other.
    pub kernel Copy3(x: f32[A, B, C]) -> (y: f32[A, B, C])
    where C % 4 == 0
    {
        y[a, b, c] = x[a, b, c];
        schedule y {
            merge a, b -> m;
            split m by 4 -> mo, mi;
            split c by 64 -> co, ci;
            reorder mo, co, mi, ci;
            bind mo, co: grid;
            merge mi, ci -> t;
            bind t: thread;
        }
        stage xs[a, b, c] = x in shared at y.co via tma { merge a, b -> m; box m by 4 -> mc, mb; box c by 32 -> cc, cb; }
        stage ys[a, b, c] = y in shared at y.co via tma { merge a, b -> m; box m by 4 -> mc, mb; box c by 32 -> cc, cb; }
    }

    /// Four, in boxes of three axes.
    pub kernel Copy4(x: f32[A, B, C, D]) -> (y: f32[A, B, C, D])
    where D % 4 == 0
    {
        y[a, b, c, d] = x[a, b, c, d];
        schedule y {
            split b by 2 -> bo, bi;
            split c by 4 -> co, ci;
            split d by 16 -> do4, di;
            reorder a, bo, co, do4, bi, ci, di;
            bind a, bo, co: grid;
            merge bi, ci, di -> t;
            bind t: thread;
        }
        stage xs[a, b, c, d] = x in shared at y.do4 ring(2) via tma {
            box a by 1 -> ac, ab; box b by 2 -> bc, bb; box c by 4 -> cc, cb; box d by 16 -> dc, db;
        }
        stage ys[a, b, c, d] = y in shared at y.do4 via tma {
            box a by 1 -> ac, ab; box b by 2 -> bc, bb; box c by 4 -> cc, cb; box d by 16 -> dc, db;
        }
    }

    /// Five.
    pub kernel Copy5(x: f32[A, B, C, D, E]) -> (y: f32[A, B, C, D, E])
    where E % 4 == 0
    {
        y[a, b, c, d, e] = x[a, b, c, d, e];
        schedule y {
            split d by 4 -> do5, di;
            split e by 16 -> eo, ei;
            reorder a, b, c, do5, eo, di, ei;
            bind a, b, c, do5: grid;
            merge di, ei -> t;
            bind t: thread;
        }
        stage xs[a, b, c, d, e] = x in shared at y.eo ring(2) via tma {
            box a by 1 -> ac, ab; box b by 1 -> bc, bb; box c by 1 -> cc, cb; box d by 4 -> dc, db; box e by 16 -> ec, eb;
        }
        stage ys[a, b, c, d, e] = y in shared at y.eo via tma {
            box a by 1 -> ac, ab; box b by 1 -> bc, bb; box c by 1 -> cc, cb; box d by 4 -> dc, db; box e by 16 -> ec, eb;
        }
    }
}

/// One launch of a kernel, compared with its reference.
macro_rules! copy {
    ($device:expr, $kernel:ident, $shape:expr) => {{
        let (device, shape) = ($device, $shape);
        let x = Tensor::from_slice(device, &support::data(shape.iter().product(), 7), shape)?;
        let mut y = Tensor::zeros(device, shape)?;
        let time = support::time(device, || $kernel { x: &x, y: &mut y }.launch(device))?;
        let reference = $kernel { x: &x, y: &mut y }.reference()?;
        support::row(&format!("{} {shape:?}", stringify!($kernel)), time, &reference.check("y", &y)?);
    }};
}

fn main() -> tilewright::Result<()> {
    let device = &Device::best()?;
    support::title(device, Copy1::KERNEL);
    copy!(device, Copy1, [1000]);
    copy!(device, Copy2, [33, 300]);
    copy!(device, Copy3, [3, 5, 100]);
    copy!(device, Copy4, [2, 3, 7, 36]);
    copy!(device, Copy5, [2, 2, 3, 5, 36]);
    Ok(())
}
