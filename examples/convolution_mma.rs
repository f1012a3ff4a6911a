//! A convolution by tensor cores: a product for each of nine offsets, whose tiles the accelerator copies from where
//! they lie, with zeros past the edges of the image.

mod support;

use tilewright::{Device, Tensor, bf16, schedule};

schedule! {
    /// y[b, h, w, k] = Σ_{r, s, c} x[b, h + r − 1, w + s − 1, c] · f[r, s, k, c], where x is 0 outside of the image
    pub kernel Convolve(x: bf16[B, H, W, C], f: bf16[3, 3, K, C]) -> (y: bf16[B, H, W, K])
    where C % 8 == 0, K % 8 == 0
    {
        acc[b, h, w, k] = dot(|r, s, c| (x[b, h + r - 1, w + s - 1, c] or 0.0) * f[r, s, k, c]);
        y[b, h, w, k]   = acc[b, h, w, k] as bf16;

        launch roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) };
        schedule y by math {
            split w by 128 -> wt, w1;
            split w1 by 64 -> wg, w2;
            split k by 128 -> kt, k1;
            bind b, h, wt, kt: grid;
            bind wg: warpgroup;
            reorder b, h, wt, kt, wg, w2, k1;
            fragment (w2, k1) by wgmma;
            vectorize k1_p;
        }
        schedule acc in registers at y.kt by math {
            split w by 64 -> wg, w1;
            bind wg: warpgroup;
            split c by 64 -> co, ci;
            reorder r, s, co, wg, w1, k, ci;
            mma (w1, k, ci) by wgmma inflight(1);
        }
        stage sx[b, h, w, c] = x in shared at acc.co ring(4) via tma by load { layout [b, h, w, c] swizzle 128; }
        stage sf[r, s, k, c] = f in shared at acc.co ring(4) via tma by load { layout [r, s, k, c] swizzle 128; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Convolve::KERNEL);
    let data =
        |count: usize, seed: u64| -> Vec<bf16> { support::data(count, seed).into_iter().map(bf16::from_f32).collect() };
    for (b, h, w, c, k) in [(1, 1, 1, 8, 8), (1, 2, 70, 40, 24)] {
        let x = Tensor::from_slice(&device, &data(b * h * w * c, 5), [b, h, w, c])?;
        let f = Tensor::from_slice(&device, &data(9 * k * c, 8), [3, 3, k, c])?;
        let mut y = Tensor::zeros(&device, [b, h, w, k])?;
        let time = support::time(&device, || Convolve { x: &x, f: &f, y: &mut y }.launch(&device))?;
        let check = Convolve { x: &x, f: &f, y: &mut y }.reference()?.check("y", &y)?;
        support::row(&format!("B = {b}, H = {h}, W = {w}, C = {c}, K = {k}"), time, &check);
    }
    Ok(())
}
