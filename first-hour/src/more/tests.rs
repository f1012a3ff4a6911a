//! Six more kernels beside plain Rust.

use tilewright::{Device, Result, Tensor, f16};

use super::*;
use crate::{assert_close, data};

#[test]
fn pad_transpose() -> Result<()> {
    let device = Device::best()?;
    for (m, n) in [(0_usize, 1), (1, 1), (37, 35), (130, 96)] {
        let p = (m + 1).next_multiple_of(8);
        let x: Vec<f16> = data(m * n, 1).into_iter().map(f16::from_f32).collect();
        let xt = Tensor::from_slice(&device, &x, [m, n])?;
        let mut y = Tensor::zeros(&device, [n, p])?;
        PadTranspose { x: &xt, y: &mut y }.launch(&device)?;
        let of = |at: usize| if at % p < m { x[at % p * n + at / p] } else { f16::ZERO };
        assert_eq!(y.to_vec()?, (0..n * p).map(of).collect::<Vec<f16>>(), "M = {m}, N = {n}");
    }
    Ok(())
}

#[test]
fn flip() -> Result<()> {
    let device = Device::best()?;
    for (m, n) in [(0, 8), (1, 8), (3, 40), (20, 512)] {
        let x: Vec<u16> = (0..m * n).map(|k| k as u16).collect();
        let xt = Tensor::from_slice(&device, &x, [m, n])?;
        let mut y = Tensor::zeros(&device, [m, n])?;
        Flip { x: &xt, y: &mut y }.launch(&device)?;
        assert_eq!(y.to_vec()?, x.chunks(n).flat_map(|row| row.iter().rev().copied()).collect::<Vec<u16>>());
    }
    Ok(())
}

#[test]
fn rotate() -> Result<()> {
    let device = Device::best()?;
    for (b, n) in [(0, 1), (1, 1), (3, 101), (4, 500)] {
        let (q, p) = (data(4 * b, 2), data(3 * b * n, 3));
        let (qt, pt) = (Tensor::from_slice(&device, &q, [b, 4])?, Tensor::from_slice(&device, &p, [b, n, 3])?);
        let mut r = Tensor::zeros(&device, [b, n, 3])?;
        Rotate { q: &qt, p: &pt, r: &mut r }.launch(&device)?;
        let cross = |a: [f64; 3], b: [f64; 3]| {
            [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
        };
        let of = |k: usize| {
            let at = |list: &[f32], first: usize| [0, 1, 2].map(|c| f64::from(list[first + c]));
            let (axis, point) = (at(&q, 4 * (k / n) + 1), at(&p, 3 * k));
            let t = cross(axis, point).map(|c| 2.0 * c);
            let turned = cross(axis, t);
            [0, 1, 2].map(|c| point[c] + f64::from(q[4 * (k / n)]) * t[c] + turned[c])
        };
        assert_close("Rotate", &r.to_vec()?, (0..b * n).flat_map(of), 1e-5);
    }
    Ok(())
}

#[test]
fn heat() -> Result<()> {
    let device = Device::best()?;
    for (d, h, w) in [(0, 1, 1), (1, 1, 1), (9, 11, 35), (12, 20, 40)] {
        let u = data(d * h * w, 4);
        let ut = Tensor::from_slice(&device, &u, [d, h, w])?;
        let mut v = Tensor::zeros(&device, [d, h, w])?;
        Heat { u: &ut, k: 0.125, v: &mut v }.launch(&device)?;
        let of = |p: usize| {
            let (z, i, j) = (p / w / h, p / w % h, p % w);
            let at = |p: usize| f64::from(u[p]);
            let is_inner = |at: usize, size: usize| at >= 1 && at + 1 < size;
            if !(is_inner(z, d) && is_inner(i, h) && is_inner(j, w)) {
                return at(p);
            }
            let around: f64 = [1, w, h * w].iter().map(|step| at(p - step) + at(p + step)).sum();
            at(p) + 0.125 * (around - 6.0 * at(p))
        };
        assert_close("Heat", &v.to_vec()?, (0..d * h * w).map(of), 1e-6);
    }
    Ok(())
}

/// The distribution function of normal numbers, by the integral of their density.
fn normal(x: f64) -> f64 {
    let steps = 2000;
    let at = |k: i32| (-(x * f64::from(k) / f64::from(steps)).powi(2) / 2.0).exp();
    let sum: f64 = (0..steps).map(|k| (at(k) + at(k + 1)) / 2.0).sum();
    0.5 + sum * x / f64::from(steps) / (2.0 * std::f64::consts::PI).sqrt()
}

#[test]
fn black_scholes() -> Result<()> {
    let device = Device::best()?;
    for n in [0, 4, 1004, 3000] {
        let of = |seed: usize, least: f32| data(n, seed).into_iter().map(|x| x + least).collect::<Vec<f32>>();
        let (s, k, t) = (of(5, 24.0), of(6, 25.0), of(7, 4.5));
        let tensor = |list: &[f32]| Tensor::from_slice(&device, list, [n]);
        let (st, kt, tt) = (tensor(&s)?, tensor(&k)?, tensor(&t)?);
        let (mut call, mut put) = (Tensor::zeros(&device, [n])?, Tensor::zeros(&device, [n])?);
        let (r, vol) = (0.03125, 0.25);
        BlackScholes { s: &st, k: &kt, t: &tt, r, vol, call: &mut call, put: &mut put }.launch(&device)?;
        let price = |p: usize, is_call: bool| {
            let (s, k, t) = (f64::from(s[p]), f64::from(k[p]), f64::from(t[p]));
            let (r, vol) = (f64::from(r), f64::from(vol));
            let d1 = ((s / k).ln() + (r + vol * vol / 2.0) * t) / (vol * t.sqrt());
            let (n1, n2, f) = (normal(d1), normal(d1 - vol * t.sqrt()), k * (-r * t).exp());
            if is_call { s * n1 - f * n2 } else { f * (1.0 - n2) - s * (1.0 - n1) }
        };
        assert_close("call", &call.to_vec()?, (0..n).map(|p| price(p, true)), 1e-5);
        assert_close("put", &put.to_vec()?, (0..n).map(|p| price(p, false)), 1e-5);
    }
    Ok(())
}

#[test]
fn grey() -> Result<()> {
    let device = Device::best()?;
    for (h, w) in [(0, 4), (1, 4), (3, 1036), (20, 1500)] {
        let x: Vec<u8> = (0..h * w * 3).map(|k: usize| (k * 89 % 256) as u8).collect();
        let xt = Tensor::from_slice(&device, &x, [h, w, 3])?;
        let mut y = Tensor::zeros(&device, [h, w])?;
        Grey { x: &xt, y: &mut y }.launch(&device)?;
        let luma = |c: &[u8]| ((77 * u32::from(c[0]) + 150 * u32::from(c[1]) + 29 * u32::from(c[2]) + 128) >> 8) as u8;
        assert_eq!(y.to_vec()?, x.chunks(3).map(luma).collect::<Vec<u8>>());
    }
    Ok(())
}
