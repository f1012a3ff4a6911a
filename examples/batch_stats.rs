//! Statistics of a batch: mean and variance of every column in one pass over the rows, by a `fold` whose states are
//! merged across warps and blocks (T. F. Chan, G. H. Golub, R. J. LeVeque, Updating formulae and a pairwise algorithm
//! for computing sample variances, 1979).
//!
//! Blocks share the rows of their columns. The last one that is done has the states of all of them, and writes both
//! outputs.

mod support;

use tilewright::{Device, Tensor, schedule};

schedule! {
    /// Mean and variance of each column
    pub kernel BatchStatistics(x: f32[M, N]) -> (mean: f32[N], variance: f32[N])
    where M >= 1, N % 4 == 0
    {
        (mu, m2, n)[j] = fold(|i| init (0.0f32, 0.0f32, 0.0f32),
            step (m, s, k) => (
                m + (x[i, j] - m) / (k + 1.0),
                s + (x[i, j] - m) * (x[i, j] - m) * (k / (k + 1.0)),
                k + 1.0
            ),
            merge ((m1, s1, k1), (m2, s2, k2)) => (
                if k1 + k2 == 0.0 { 0.0 } else { m1 + (m2 - m1) * (k2 / (k1 + k2)) },
                if k1 + k2 == 0.0 { 0.0 } else { s1 + s2 + (m2 - m1) * (m2 - m1) * (k1 * (k2 / (k1 + k2))) },
                k1 + k2
            ));
        mean[j] = mu[j];
        variance[j] = m2[j] / n[j];

        schedule mean {
            split j by 4 -> jv, v;
            split jv by 32 -> jb, t;              // 128 columns of a block
            bind jb: grid;
            bind t: thread;
            vectorize v;
        }
        schedule variance at mean.jb { like mean; }
        schedule mu in registers at mean.jb {
            like mean;
            split i by 256 -> ib, ir;             // 256 rows of a block, which its warps take in turn
            split ir by 8 -> iq, w;
            reorder ib, w, t, iq, v;
            bind ib: grid;
            bind w: warp;
            reduce w;
            reduce ib by grid;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, BatchStatistics::KERNEL);
    for (m, n) in [(1, 4), (7, 28), (31, 132), (257, 8), (10_007, 64)] {
        let x = Tensor::from_slice(&device, &support::data(m * n, 17), [m, n])?;
        let (mut mean, mut variance) = (Tensor::zeros(&device, [n])?, Tensor::zeros(&device, [n])?);
        let time = support::time(&device, || {
            BatchStatistics { x: &x, mean: &mut mean, variance: &mut variance }.launch(&device)
        })?;
        let reference = BatchStatistics { x: &x, mean: &mut mean, variance: &mut variance }.reference()?;
        support::row(&format!("M = {m}, N = {n}"), time, &reference.check("mean", &mean)?);
        support::row("", time, &reference.check("variance", &variance)?);
    }
    Ok(())
}
