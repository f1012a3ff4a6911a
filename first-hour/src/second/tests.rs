//! The twelve kernels of the second try beside plain Rust: nothing, one element, sizes that no tile divides, and larger
//! ones.

use tilewright::{Device, Result, Tensor, bf16, e4m3, f16};

use super::*;
use crate::{assert_close, data};

/// Numbers, and the same rounded to bf16, which has them all: they are few bits long.
fn halves(count: usize, seed: usize) -> (Vec<f32>, Vec<bf16>) {
    let numbers = data(count, seed);
    let halves = numbers.iter().map(|x| bf16::from_f32(*x)).collect();
    (numbers, halves)
}

#[test]
fn geglu() -> Result<()> {
    let device = Device::best()?;
    for (m, n) in [(0, 8), (1, 8), (3, 24), (20, 1000)] {
        let (x, halves) = halves(m * 2 * n, 1);
        let xt = Tensor::from_slice(&device, &halves, [m, 2 * n])?;
        let mut y = Tensor::zeros(&device, [m, n])?;
        GeGlu { x: &xt, y: &mut y }.launch(&device)?;
        let of = |p: usize| {
            let at = |j: usize| f64::from(x[p / n * 2 * n + j]);
            let (g, up) = (at(p % n), at(p % n + n));
            0.5 * g * (1.0 + (0.797_884_56 * (g + 0.044715 * g * g * g)).tanh()) * up
        };
        let found: Vec<f32> = y.to_vec()?.into_iter().map(f32::from).collect();
        assert_close("GeGlu", &found, (0..m * n).map(of), 1.0 / 256.0);
    }
    Ok(())
}

#[test]
fn upsample() -> Result<()> {
    let device = Device::best()?;
    for (c, h, w) in [(0, 1, 1), (1, 1, 1), (3, 5, 37), (2, 64, 50)] {
        let x = data(c * h * w, 2);
        let xt = Tensor::from_slice(&device, &x, [c, h, w])?;
        let mut y = Tensor::zeros(&device, [c, 2 * h, 2 * w])?;
        Upsample { x: &xt, y: &mut y }.launch(&device)?;
        // Where a pixel of y lies between those of x, which repeat beyond the edge.
        let between = |to: usize, size: usize| {
            let at = ((to as f64 + 0.5) / 2.0 - 0.5).clamp(0.0, size as f64 - 1.0);
            let low = at.floor();
            (low as usize, (low as usize + 1).min(size - 1), at - low)
        };
        let of = |p: usize| {
            let ((i, i1, u), (j, j1, v)) = (between(p / (2 * w) % (2 * h), h), between(p % (2 * w), w));
            let at = |i: usize, j: usize| f64::from(x[(p / (4 * h * w) * h + i) * w + j]);
            (1.0 - u) * ((1.0 - v) * at(i, j) + v * at(i, j1)) + u * ((1.0 - v) * at(i1, j) + v * at(i1, j1))
        };
        assert_close("Upsample", &y.to_vec()?, (0..c * 4 * h * w).map(of), 1e-6);
    }
    Ok(())
}

#[test]
fn nearest() -> Result<()> {
    let device = Device::best()?;
    for (n, d, k) in [(0, 3, 1), (1, 0, 1), (131, 33, 19), (300, 64, 32)] {
        let (x, c) = (data(n * d, 3), data(k * d, 4));
        let (xt, ct) = (Tensor::from_slice(&device, &x, [n, d])?, Tensor::from_slice(&device, &c, [k, d])?);
        let (mut label, mut distance) = (Tensor::zeros(&device, [n])?, Tensor::zeros(&device, [n])?);
        Nearest { x: &xt, c: &ct, label: &mut label, distance: &mut distance }.launch(&device)?;
        // Multiples of 1/64 that are small enough: sums are exact.
        let to = |i: usize, k: usize| (0..d).map(|e| (x[i * d + e] - c[k * d + e]).powi(2)).sum::<f32>();
        let best = |i: usize| (0..k).map(|k| (to(i, k), k as u32)).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        let wanted: Vec<(f32, u32)> = (0..n).map(best).collect();
        assert_eq!(label.to_vec()?, wanted.iter().map(|b| b.1).collect::<Vec<u32>>());
        assert_eq!(distance.to_vec()?, wanted.iter().map(|b| b.0).collect::<Vec<f32>>());
    }
    Ok(())
}

#[test]
fn cosine() -> Result<()> {
    let device = Device::best()?;
    for (m, n) in [(0, 4), (1, 0), (9, 132), (50, 1000)] {
        let (x, y) = (data(m * n, 5), data(m * n, 6));
        let (xt, yt) = (Tensor::from_slice(&device, &x, [m, n])?, Tensor::from_slice(&device, &y, [m, n])?);
        let mut z = Tensor::zeros(&device, [m])?;
        Cosine { x: &xt, y: &yt, z: &mut z }.launch(&device)?;
        let dot = |a: &[f32], b: &[f32], i: usize| {
            (i * n..(i + 1) * n).map(|p| f64::from(a[p]) * f64::from(b[p])).sum::<f64>()
        };
        let of = |i: usize| dot(&x, &y, i) / (dot(&x, &x, i) * dot(&y, &y, i)).max(1e-12).sqrt();
        assert_close("Cosine", &z.to_vec()?, (0..m).map(of), 1e-5);
    }
    Ok(())
}

#[test]
fn momentum() -> Result<()> {
    let device = Device::best()?;
    for n in [0, 4, 1004, 5000] {
        let (p, m, e) = (data(n, 7), data(n, 8), data(n, 9));
        let (g, halves) = halves(n, 10);
        let [mut pt, mut mt, mut et] = [&p, &m, &e].map(|x| Tensor::from_slice(&device, x, [n]).expect("memory"));
        let (gt, mut q) = (Tensor::from_slice(&device, &halves, [n])?, Tensor::zeros(&device, [n])?);
        let (rate, beta, decay) = (0.125, 0.5, 0.75);
        Momentum { p: &mut pt, m: &mut mt, e: &mut et, g: &gt, rate, beta, decay, q: &mut q }.launch(&device)?;
        // Each operation rounds as it does here.
        let moment: Vec<f32> = m.iter().zip(&g).map(|(m, g)| beta * m + g).collect();
        let weight: Vec<f32> = p.iter().zip(&moment).map(|(p, m)| p - rate * m).collect();
        assert_eq!(mt.to_vec()?, moment);
        assert_eq!(pt.to_vec()?, weight);
        assert_eq!(q.to_vec()?, weight.iter().map(|p| bf16::from_f32(*p)).collect::<Vec<bf16>>());
        let average = e.iter().zip(&weight).map(|(e, p)| decay * e + (1.0 - decay) * p);
        assert_eq!(et.to_vec()?, average.collect::<Vec<f32>>());
    }
    Ok(())
}

#[test]
fn haar() -> Result<()> {
    let device = Device::best()?;
    for (h, w) in [(0, 2), (1, 2), (3, 258), (40, 500)] {
        let x = data(4 * h * w, 11);
        let xt = Tensor::from_slice(&device, &x, [2 * h, 2 * w])?;
        let [mut a, mut b, mut c, mut d] = [(); 4].map(|()| Tensor::zeros(&device, [h, w]).expect("memory"));
        Haar { x: &xt, a: &mut a, h: &mut b, v: &mut c, d: &mut d }.launch(&device)?;
        for (found, along, down) in [(&a, 1.0, 1.0), (&b, -1.0, 1.0), (&c, 1.0, -1.0), (&d, -1.0, -1.0)] {
            let of = |p: usize| {
                let at = |r: usize, s: usize| f64::from(x[(2 * (p / w) + r) * 2 * w + 2 * (p % w) + s]);
                0.5 * (at(0, 0) + along * at(0, 1) + down * at(1, 0) + along * down * at(1, 1))
            };
            assert_close("Haar", &found.to_vec()?, (0..h * w).map(of), 0.0);
        }
    }
    Ok(())
}

#[test]
fn masked_mean() -> Result<()> {
    let device = Device::best()?;
    for (b, t, d) in [(0, 1, 2), (1, 0, 2), (5, 7, 66), (6, 64, 200)] {
        let (x, halves) = halves(b * t * d, 12);
        let length: Vec<i32> = (0..b).map(|k| (k * 23 % (t + 1)) as i32 - i32::from(k == 4)).collect();
        let (xt, lt) = (Tensor::from_slice(&device, &halves, [b, t, d])?, Tensor::from_slice(&device, &length, [b])?);
        let mut y = Tensor::zeros(&device, [b, d])?;
        MaskedMean { x: &xt, length: &lt, y: &mut y }.launch(&device)?;
        let of = |p: usize| {
            let count = length[p / d].max(0) as usize;
            let sum: f64 = (0..count).map(|s| f64::from(x[(p / d * t + s) * d + p % d])).sum();
            sum / count.max(1) as f64
        };
        assert_close("MaskedMean", &y.to_vec()?, (0..b * d).map(of), 1e-6);
    }
    Ok(())
}

#[test]
fn mandelbrot() -> Result<()> {
    let device = Device::best()?;
    for (h, w) in [(0, 1), (1, 1), (9, 35), (40, 60)] {
        let mut n = Tensor::zeros(&device, [h, w])?;
        let (x0, y0, step) = (-2.0, -1.25, 1.0 / 16.0);
        Mandelbrot { x0, y0, step, n: &mut n }.launch(&device)?;
        let steps = |p: usize| {
            let (x, y) = (x0 + (p % w) as f32 * step, y0 + (p / w) as f32 * step);
            let (mut a, mut b, mut count) = (0.0_f32, 0.0_f32, 0);
            while count < 64 && a * a + b * b <= 4.0 {
                (a, b, count) = (a * a - b * b + x, 2.0 * a * b + y, count + 1);
            }
            count
        };
        assert_eq!(n.to_vec()?, (0..h * w).map(steps).collect::<Vec<u32>>(), "H = {h}, W = {w}");
    }
    Ok(())
}

#[test]
fn block_sparse() -> Result<()> {
    let device = Device::best()?;
    for (m, z, blocks, n) in [(0, 0, 1, 1), (1, 1, 1, 1), (5, 9, 3, 35), (8, 20, 6, 70)] {
        let k = 16 * blocks;
        let row: Vec<i32> = (0..=m).map(|i| (i * z / m.max(1)) as i32).collect();
        let column: Vec<i32> = (0..z).map(|p| (p * 5 % blocks) as i32).collect();
        let (block, x) = (data(z * 256, 13), data(k * n, 14));
        let (rt, ct) = (Tensor::from_slice(&device, &row, [m + 1])?, Tensor::from_slice(&device, &column, [z])?);
        let (bt, xt) = (Tensor::from_slice(&device, &block, [z, 16, 16])?, Tensor::from_slice(&device, &x, [k, n])?);
        let mut y = Tensor::zeros(&device, [m, 16, n])?;
        BlockSparse { row: &rt, column: &ct, block: &bt, x: &xt, y: &mut y }.launch(&device)?;
        let of = |at: usize| {
            let (i, r, j) = (at / n / 16, at / n % 16, at % n);
            let term = |p: usize, q: usize| {
                f64::from(block[(p * 16 + r) * 16 + q]) * f64::from(x[(16 * column[p] as usize + q) * n + j])
            };
            let of_row = row[i] as usize..row[i + 1] as usize;
            of_row.flat_map(|p| (0..16).map(move |q| (p, q))).map(|(p, q)| term(p, q)).sum::<f64>()
        };
        assert_close("BlockSparse", &y.to_vec()?, (0..m * 16 * n).map(of), 1e-5);
    }
    Ok(())
}

#[test]
fn quantise8() -> Result<()> {
    let device = Device::best()?;
    for (m, n) in [(0, 8), (1, 8), (3, 1000), (10, 4096)] {
        let x = data(m * n, 15);
        let halves: Vec<f16> = x.iter().map(|x| f16::from_f32(*x)).collect();
        let xt = Tensor::from_slice(&device, &halves, [m, n])?;
        let (mut q, mut scale) = (Tensor::zeros(&device, [m, n])?, Tensor::zeros(&device, [m])?);
        Quantise8 { x: &xt, q: &mut q, scale: &mut scale }.launch(&device)?;
        let of = |row: &[f32]| row.iter().fold(0.0_f32, |m, x| m.max(x.abs())).max(1e-6) / 448.0;
        assert_eq!(scale.to_vec()?, x.chunks(n).map(of).collect::<Vec<f32>>());
        // Numbers of so many bits are off by a sixteenth at most, or half of the least number.
        let q: Vec<e4m3> = q.to_vec()?;
        for (row, found) in x.chunks(n).zip(q.chunks(n)) {
            for (x, q) in row.iter().zip(found) {
                let (wanted, found) = (x / of(row), q.to_f32());
                assert!((found - wanted).abs() <= (wanted.abs() / 16.0).max(1.0 / 1024.0), "{x}: {found}, {wanted}");
            }
        }
    }
    Ok(())
}

#[test]
fn gravity() -> Result<()> {
    let device = Device::best()?;
    for n in [0, 1, 131, 300] {
        let (p, mass) = (data(3 * n, 16), data(n, 17));
        let (pt, mt) = (Tensor::from_slice(&device, &p, [n, 3])?, Tensor::from_slice(&device, &mass, [n])?);
        let mut a = Tensor::zeros(&device, [n, 3])?;
        Gravity { p: &pt, mass: &mt, soft: 0.5, a: &mut a }.launch(&device)?;
        let apart = |i: usize, j: usize, c: usize| f64::from(p[3 * j + c]) - f64::from(p[3 * i + c]);
        let of = |at: usize| {
            let (i, c) = (at / 3, at % 3);
            let pull = |j: usize| {
                let r2 = 0.25 + (0..3).map(|c| apart(i, j, c).powi(2)).sum::<f64>();
                f64::from(mass[j]) * apart(i, j, c) / (r2 * r2.sqrt())
            };
            (0..n).map(pull).sum::<f64>()
        };
        assert_close("Gravity", &a.to_vec()?, (0..3 * n).map(of), 1e-4);
    }
    Ok(())
}

#[test]
fn distances() -> Result<()> {
    let device = Device::best()?;
    for (m, n, k) in [(0, 1, 8), (1, 1, 8), (65, 70, 72), (100, 130, 128)] {
        let ((x, xh), (y, yh)) = (halves(m * k, 18), halves(n * k, 19));
        let (xt, yt) = (Tensor::from_slice(&device, &xh, [m, k])?, Tensor::from_slice(&device, &yh, [n, k])?);
        let mut d = Tensor::zeros(&device, [m, n])?;
        Distances { x: &xt, y: &yt, d: &mut d }.launch(&device)?;
        let of = |p: usize| (0..k).map(|l| f64::from(x[p / n * k + l] - y[p % n * k + l]).powi(2)).sum::<f64>();
        assert_close("Distances", &d.to_vec()?, (0..m * n).map(of), 1e-5);
    }
    Ok(())
}
