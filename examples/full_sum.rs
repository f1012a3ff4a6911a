//! One result of a whole tensor, computed by all blocks: a sum, the place of the largest element, mean and variance.
//! Each block reduces a part, and the last one to arrive merges what all of them have, in an order that does not depend
//! on which block that is.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// y = Σ x
    pub kernel FullSum(x: f32[N]) -> (y: f32[])
    where N % 4 == 0
    {
        y[] = sum(|k| x[k]);

        schedule y {
            split k by 4 -> kv, v;
            split kv by 2048 -> kb, ki;
            split ki by 256 -> r, t;
            bind kb: grid;
            bind t: thread;
            vectorize v;
            unroll r;
            reduce t;
            reduce kb by grid;
        }
    }

    /// The place of the largest element, the first one among equals
    pub kernel FullArgMax(x: f32[N]) -> (y: u32[])
    where N >= 1
    {
        y[] = argmax(|k| x[k]);

        schedule y {
            split k by 4096 -> kb, ki;
            split ki by 256 -> r, t;
            bind kb: grid;
            bind t: thread;
            reduce t;
            reduce kb by grid;
        }
    }

    /// Mean, squared deviations from it, and number of all elements, by Welford's steps and the merge of Chan, Golub
    /// and LeVeque
    pub kernel FullVariance(x: f32[N]) -> (mean: f32[], m2: f32[], count: f32[])
    {
        (mean, m2, count)[] = fold(|k| init (0.0, 0.0, 0.0),
            step (mu, s, n) => (
                mu + (x[k] - mu) / (n + 1.0),
                s + (x[k] - mu) * (x[k] - (mu + (x[k] - mu) / (n + 1.0))),
                n + 1.0),
            merge ((ma, sa, na), (mb, sb, nb)) => (
                ma + (mb - ma) * (nb / max(na + nb, 1.0)),
                sa + sb + (mb - ma) * (mb - ma) * (na * (nb / max(na + nb, 1.0))),
                na + nb));

        schedule mean {
            split k by 4096 -> kb, ki;
            split ki by 256 -> r, t;
            bind kb: grid;
            bind t: thread;
            reduce t;
            reduce kb by grid;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, FullSum::KERNEL);
    for n in [4, 1000, 100_000, 1_000_000] {
        let x = Tensor::from_slice(&device, &support::data(n, 17), [n])?;
        let mut y = Tensor::zeros(&device, [])?;
        let time = support::time(&device, || FullSum { x: &x, y: &mut y }.launch(&device))?;
        let reference = FullSum { x: &x, y: &mut y }.reference()?;
        support::row(&format!("N = {n}"), time, &reference.check("y", &y)?);
    }
    support::title(&device, FullArgMax::KERNEL);
    for n in [1, 1003, 1_000_003] {
        let x = Tensor::from_slice(&device, &support::data(n, 18), [n])?;
        let mut y = Tensor::zeros(&device, [])?;
        let time = support::time(&device, || FullArgMax { x: &x, y: &mut y }.launch(&device))?;
        let reference = FullArgMax { x: &x, y: &mut y }.reference()?;
        support::row(&format!("N = {n}"), time, &reference.check("y", &y)?);
    }
    support::title(&device, FullVariance::KERNEL);
    for n in [1, 1003, 100_003] {
        let x = Tensor::from_slice(&device, &support::data(n, 19), [n])?;
        let mut mean = Tensor::zeros(&device, [])?;
        let mut m2 = Tensor::zeros(&device, [])?;
        let mut count = Tensor::zeros(&device, [])?;
        let mut all = || FullVariance { x: &x, mean: &mut mean, m2: &mut m2, count: &mut count }.launch(&device);
        let time = support::time(&device, &mut all)?;
        let reference = FullVariance { x: &x, mean: &mut mean, m2: &mut m2, count: &mut count }.reference()?;
        support::row(&format!("N = {n}"), time, &reference.check("m2", &m2)?);
    }
    Ok(())
}
