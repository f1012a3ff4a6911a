//! A matrix product by roles in clusters: one warp fetches tiles ahead, eight multiply, and two blocks read one tile of
//! `b`.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// c = a · bᵀ, each product and each sum rounded to f32: without tensor cores
    pub kernel Product(a: f32[M, K], b: f32[N, K]) -> (c: f32[M, N])
    where K % 4 == 0
    {
        c[m, n] = sum(|k| a[m, k] * b[n, k]);
        launch cluster(2), persistent, roles { math: 8 warp, load: warp };
        schedule c by math {
            split m by 256 -> mt, m1;
            split m1 by 128 -> mc, m2;
            split n by 64 -> nt, n1;
            split m2 by 16 -> mr, ml;
            split n1 by 16 -> nr, nl;
            split k by 32 -> ko, k1;
            split k1 by 4 -> kq, kv;
            reorder mt, nt, mc, ml, nl, ko, kq, mr, nr, kv;
            bind mt, nt: grid;
            bind mc: cta;
            bind ml, nl: thread;
            unroll mr;
            unroll nr;
            vectorize kv;
        }
        stage at[m, k] = a in shared at c.ko ring(3) via tma by load { layout [m, k] swizzle 128; }
        stage bt[n, k] = b in shared at c.ko ring(3) via tma by load {
            box n by 32 -> nb, ni;
            layout [nb, ni, k] swizzle 128;
            multicast c.mc by nb;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Product::KERNEL);
    for (m, n, k) in [(1, 1, 4), (130, 65, 36), (256, 64, 64), (300, 200, 100)] {
        let a = Tensor::from_slice(&device, &support::data(m * k, 4), [m, k])?;
        let b = Tensor::from_slice(&device, &support::data(n * k, 5), [n, k])?;
        let mut c = Tensor::zeros(&device, [m, n])?;
        let time = support::time(&device, || Product { a: &a, b: &b, c: &mut c }.launch(&device))?;
        let reference = Product { a: &a, b: &b, c: &mut c }.reference()?;
        support::row(&format!("M = {m}, N = {n}, K = {k}"), time, &reference.check("c", &c)?);
    }
    Ok(())
}
