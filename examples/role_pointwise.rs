//! A fused pointwise operation by roles: one warp fetches tiles, eight compute, one stores.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// z = max(x · a + b, 0), with a and b for each column
    pub kernel RolePointwise(x: f32[M, N], a: f32[N], b: f32[N]) -> (z: f32[M, N])
    where N % 4 == 0
    {
        z[i, j] = max(x[i, j] * a[j] + b[j], 0.0);

        launch persistent, roles { math: 8 warp, load: warp, store: warp };
        schedule z by math {
            split i by 128 -> it, i1;  split i1 by 16 -> ib, i2;   // eight slots of sixteen rows for each tile
            split j by 128 -> jt, jr;  split jr by 4 -> t, v;
            split i2 by 8 -> r, w;
            reorder it, jt, ib, r, w, t, v;
            bind it, jt: grid raster(it: 8);
            bind w: warp;
            bind t: thread;
            vectorize v;
        }
        stage xs[i, j] = x in shared at z.ib ring(4) via tma by load  { }
        stage zs[i, j] = z in shared at z.ib ring(3) via tma by store { }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, RolePointwise::KERNEL);
    for (m, n) in [(1, 4), (7, 36), (129, 260), (300, 512)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 3), [m, n])?;
        let a = Tensor::from_slice(&device, &support::data(n, 5), [n])?;
        let b = Tensor::from_slice(&device, &support::data(n, 7), [n])?;
        let mut z = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || RolePointwise { x: &x, a: &a, b: &b, z: &mut z }.launch(&device))?;
        let reference = RolePointwise { x: &x, a: &a, b: &b, z: &mut z }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("z", &z)?);
    }
    Ok(())
}
