//! The loss of a classifier whose logits are never stored: a product by tensor cores, whose blocks are taken into a
//! maximum and a sum as they come.

mod support;

use tilewright::{Device, Tensor, bf16, schedule};

schedule! {
    /// loss[i] = log Σ_j exp(s[i, j]) − s[i, target[i]], where s = x · wᵀ
    pub kernel CrossEntropy(x: bf16[N, 64], w: bf16[V, 64], target: i32[N]) -> (loss: f32[N]) {
        s[i, j] = dot(|d| x[i, d] * w[j, d]);
        m[i]    = max(|j| s[i, j]);
        l[i]    = online sum(|j| approx::exp(s[i, j] - m[i]));
        own[i]  = dot(|d| x[i, d] * (w[target[i], d] or 0.0));
        loss[i] = m[i] + log(l[i]) - own[i];

        schedule loss {
            split i by 64 -> it, i1;
            bind it: grid;
            fragment (i1) by wgmma;                 // the first lane of a row writes it
        }
        schedule own in registers at loss.it { fragment (i, d) by wgmma; }
        schedule m in registers at loss.it {
            split j by 128 -> jo, j1;
            fragment (i, j1) by wgmma;              // lanes of a row combine what they have
            online m -> l over jo;
        }
        schedule s in registers at m.jo { mma (i, j, d) by wgmma; }
        stage sx[i, d] = x in shared at loss.it      via tma { layout [i, d] swizzle 128; }
        stage sw[j, d] = w in shared at m.jo ring(3) via tma { layout [j, d] swizzle 128; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, CrossEntropy::KERNEL);
    let data =
        |count: usize, seed: u64| -> Vec<bf16> { support::data(count, seed).into_iter().map(bf16::from_f32).collect() };
    for (n, v) in [(1, 1), (100, 300)] {
        let x = Tensor::from_slice(&device, &data(n * 64, 5), [n, 64])?;
        let w = Tensor::from_slice(&device, &data(v * 64, 8), [v, 64])?;
        let target: Vec<i32> = (0..n).map(|i| (i * 7 % v) as i32).collect();
        let target = Tensor::from_slice(&device, &target, [n])?;
        let mut loss = Tensor::zeros(&device, [n])?;
        let run = |loss: &mut _| CrossEntropy { x: &x, w: &w, target: &target, loss }.launch(&device);
        let time = support::time(&device, || run(&mut loss))?;
        let reference = CrossEntropy { x: &x, w: &w, target: &target, loss: &mut loss }.reference()?;
        support::row(&format!("N = {n}, V = {v}"), time, &reference.check("loss", &loss)?);
    }
    Ok(())
}
