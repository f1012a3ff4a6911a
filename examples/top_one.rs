//! The most likely class, and its probability, of a classifier whose logits are never stored: the place of the largest
//! logit and the sum of the exponentials follow the maximum, block by block of a product by tensor cores.

mod support;

use tilewright::{Device, Tensor, bf16, schedule};

schedule! {
    /// class[i] = argmax_j s[i, j], probability[i] = max_j softmax(s)[i, j], where s = x · wᵀ
    pub kernel TopOne(x: bf16[N, 64], w: bf16[V, 64]) -> (class: u32[N], probability: f32[N])
    where V >= 1
    {
        s[i, j]        = dot(|d| x[i, d] * w[j, d]);
        m[i]           = max(|j| s[i, j]);
        best[i]        = argmax(|j| s[i, j]);
        l[i]           = online sum(|j| approx::exp(s[i, j] - m[i]));
        class[i]       = best[i];
        probability[i] = 1.0 / l[i];

        schedule class             { split i by 64 -> it, i1; bind it: grid; fragment (i1) by wgmma; }
        schedule probability at class.it { split i by 64 -> it, i1; bind it: grid; fragment (i1) by wgmma; }
        schedule m in registers at class.it {
            split j by 128 -> jo, j1;
            fragment (i, j1) by wgmma;              // lanes of a row combine what they have
            online m -> best, l over jo;
        }
        schedule s in registers at m.jo { mma (i, j, d) by wgmma; }
        stage sx[i, d] = x in shared at class.it     via tma { layout [i, d] swizzle 128; }
        stage sw[j, d] = w in shared at m.jo ring(3) via tma { layout [j, d] swizzle 128; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, TopOne::KERNEL);
    let data =
        |count: usize, seed: u64| -> Vec<bf16> { support::data(count, seed).into_iter().map(bf16::from_f32).collect() };
    for (n, v) in [(1, 1), (100, 300)] {
        let x = Tensor::from_slice(&device, &data(n * 64, 5), [n, 64])?;
        let w = Tensor::from_slice(&device, &data(v * 64, 8), [v, 64])?;
        let (mut class, mut probability) = (Tensor::zeros(&device, [n])?, Tensor::zeros(&device, [n])?);
        let time = support::time(&device, || {
            TopOne { x: &x, w: &w, class: &mut class, probability: &mut probability }.launch(&device)
        })?;
        let reference = TopOne { x: &x, w: &w, class: &mut class, probability: &mut probability }.reference()?;
        let sizes = format!("N = {n}, V = {v}");
        support::row(&format!("{sizes}: class"), time, &reference.check("class", &class)?);
        support::row(&format!("{sizes}: probability"), time, &reference.check("probability", &probability)?);
    }
    Ok(())
}
