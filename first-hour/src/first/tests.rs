//! The twelve kernels of the first hour, each beside plain Rust, with nothing, with one element, with sizes that no
//! tile divides, and with larger ones.

use super::*;
use crate::{assert_close, data};
use tilewright::{Device, Result, Tensor, bf16, f16};

fn halves(numbers: &[f32]) -> Vec<bf16> {
    numbers.iter().map(|x| bf16::from_f32(*x)).collect()
}

#[test]
fn axpby() -> Result<()> {
    let device = Device::best()?;
    for n in [0, 8, 1000, 20_000] {
        let (x, y) = (data(n, 1), data(n, 2));
        let (xt, yt) = (Tensor::from_slice(&device, &halves(&x), [n])?, Tensor::from_slice(&device, &halves(&y), [n])?);
        let mut z = Tensor::zeros(&device, [n])?;
        Axpby { a: 1.5, b: -0.25, x: &xt, y: &yt, z: &mut z }.launch(&device)?;
        let wanted: Vec<bf16> = x.iter().zip(&y).map(|(x, y)| bf16::from_f32(1.5 * x - 0.25 * y)).collect();
        assert_eq!(z.to_vec()?, wanted, "N = {n}");
    }
    Ok(())
}

#[test]
fn row_argmax() -> Result<()> {
    let device = Device::best()?;
    for (m, n) in [(0, 1), (1, 1), (9, 77), (100, 1000)] {
        let x = data(m * n, 3);
        let xt = Tensor::from_slice(&device, &x, [m, n])?;
        let mut y = Tensor::zeros(&device, [m])?;
        RowArgmax { x: &xt, y: &mut y }.launch(&device)?;
        // The first of equals.
        let largest = |row: &[f32]| (0..n).rev().max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap() as u32;
        assert_eq!(y.to_vec()?, x.chunks(n).map(largest).collect::<Vec<u32>>(), "M = {m}, N = {n}");
    }
    Ok(())
}

#[test]
fn smooth() -> Result<()> {
    let device = Device::best()?;
    for (h, w) in [(0, 1), (1, 1), (9, 33), (100, 130)] {
        let x = data(h * w, 4);
        let xt = Tensor::from_slice(&device, &x, [h, w])?;
        let mut y = Tensor::zeros(&device, [h, w])?;
        Smooth { x: &xt, y: &mut y }.launch(&device)?;
        let at = |i: usize, j: usize| if i < h && j < w { f64::from(x[i * w + j]) } else { 0.0 };
        // Before the first row or column an index wraps to one past the last.
        let mean = |i: usize, j: usize| {
            let (up, left) = (i.wrapping_sub(1), j.wrapping_sub(1));
            0.2 * (at(i, j) + at(up, j) + at(i + 1, j) + at(i, left) + at(i, j + 1))
        };
        assert_close("Smooth", &y.to_vec()?, (0..h * w).map(|k| mean(k / w, k % w)), 1e-6);
    }
    Ok(())
}

/// Elements less their mean, over the root of their variance.
fn normal(x: &[f32], eps: f64) -> Vec<f64> {
    let count = x.len() as f64;
    let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
    let var = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / count;
    x.iter().map(|x| (f64::from(*x) - mean) / (var + eps).sqrt()).collect()
}

#[test]
fn layer_norm() -> Result<()> {
    let device = Device::best()?;
    for (m, n) in [(0, 4), (1, 4), (3, 1028), (20, 4096)] {
        let x = data(m * n, 5);
        let xt = Tensor::from_slice(&device, &x, [m, n])?;
        let mut y = Tensor::zeros(&device, [m, n])?;
        LayerNorm { x: &xt, eps: 1e-5, y: &mut y }.launch(&device)?;
        assert_close("LayerNorm", &y.to_vec()?, x.chunks(n).flat_map(|row| normal(row, 1e-5)), 1e-5);
    }
    Ok(())
}

#[test]
fn causal_softmax() -> Result<()> {
    let device = Device::best()?;
    for n in [0, 1, 33, 300] {
        let x = data(n * n, 6);
        let xt = Tensor::from_slice(&device, &x, [n, n])?;
        let mut y = Tensor::zeros(&device, [n, n])?;
        CausalSoftmax { x: &xt, y: &mut y }.launch(&device)?;
        let e = |i: usize, j: usize| if j <= i { f64::from(x[i * n + j]).exp() } else { 0.0 };
        let of = |k: usize| e(k / n, k % n) / (0..n).map(|j| e(k / n, j)).sum::<f64>();
        assert_close("CausalSoftmax", &y.to_vec()?, (0..n * n).map(of), 1e-6);
    }
    Ok(())
}

#[test]
fn mat_mul() -> Result<()> {
    let device = Device::best()?;
    for (m, k, n) in [(0, 4, 4), (3, 0, 4), (1, 4, 4), (33, 36, 40), (70, 128, 132)] {
        let (a, b) = (data(m * k, 7), data(k * n, 8));
        let (at, bt) = (Tensor::from_slice(&device, &a, [m, k])?, Tensor::from_slice(&device, &b, [k, n])?);
        let mut c = Tensor::zeros(&device, [m, n])?;
        MatMul { a: &at, b: &bt, c: &mut c }.launch(&device)?;
        let term = |i: usize, j: usize, l: usize| f64::from(a[i * k + l]) * f64::from(b[l * n + j]);
        let of = |p: usize| (0..k).map(|l| term(p / n, p % n, l)).sum::<f64>();
        assert_close("MatMul", &c.to_vec()?, (0..m * n).map(of), 1e-5);
    }
    Ok(())
}

#[test]
fn embedding_bag() -> Result<()> {
    let device = Device::best()?;
    for (s, k, v, d) in [(0, 1, 1, 1), (1, 0, 1, 1), (5, 3, 7, 130), (20, 9, 50, 200)] {
        // Some indices are none of a row.
        let id: Vec<i32> = (0..s * k).map(|p| (p * 31 % (v + 3)) as i32 - 1).collect();
        let table = data(v * d, 9);
        let (it, tt) = (Tensor::from_slice(&device, &id, [s, k])?, Tensor::from_slice(&device, &table, [v, d])?);
        let mut y = Tensor::zeros(&device, [s, d])?;
        EmbeddingBag { id: &it, table: &tt, y: &mut y }.launch(&device)?;
        let row = |id: i32, j: usize| {
            usize::try_from(id).ok().filter(|id| *id < v).map_or(0.0, |id| f64::from(table[id * d + j]))
        };
        let of = |p: usize| (0..k).map(|n| row(id[p / d * k + n], p % d)).sum::<f64>();
        assert_close("EmbeddingBag", &y.to_vec()?, (0..s * d).map(of), 1e-6);
    }
    Ok(())
}

#[test]
fn histogram() -> Result<()> {
    let device = Device::best()?;
    for n in [0, 1, 1025, 5000] {
        let x: Vec<u8> = (0..n).map(|k: usize| (k * k % 79) as u8).collect();
        let xt = Tensor::from_slice(&device, &x, [n])?;
        let mut count = Tensor::zeros(&device, [64])?;
        Histogram { x: &xt, count: &mut count }.launch(&device)?;
        let of = |b: u8| x.iter().filter(|x| **x == b).count() as u32;
        assert_eq!(count.to_vec()?, (0..64).map(of).collect::<Vec<u32>>(), "N = {n}");
    }
    Ok(())
}

#[test]
fn quantise() -> Result<()> {
    let device = Device::best()?;
    for (m, n) in [(0, 4), (1, 4), (3, 1028), (10, 4096)] {
        let x = data(m * n, 10);
        let xt = Tensor::from_slice(&device, &x, [m, n])?;
        let (mut q, mut scale) = (Tensor::zeros(&device, [m, n])?, Tensor::zeros(&device, [m])?);
        Quantise { x: &xt, q: &mut q, scale: &mut scale }.launch(&device)?;
        let of = |row: &[f32]| row.iter().fold(1e-12_f32, |m, x| m.max(x.abs())) / 127.0;
        assert_eq!(scale.to_vec()?, x.chunks(n).map(of).collect::<Vec<f32>>());
        let bytes = |row: &[f32]| row.iter().map(|x| (x / of(row)).round_ties_even() as i8).collect::<Vec<i8>>();
        assert_eq!(q.to_vec()?, x.chunks(n).flat_map(bytes).collect::<Vec<i8>>());
    }
    Ok(())
}

#[test]
fn transpose() -> Result<()> {
    let device = Device::best()?;
    for (m, n) in [(0, 8), (1, 8), (33, 72), (130, 200)] {
        let x: Vec<f16> = data(m * n, 11).into_iter().map(f16::from_f32).collect();
        let xt = Tensor::from_slice(&device, &x, [m, n])?;
        let mut y = Tensor::zeros(&device, [n, m])?;
        Transpose { x: &xt, y: &mut y }.launch(&device)?;
        assert_eq!(y.to_vec()?, (0..m * n).map(|p| x[p % m * n + p / m]).collect::<Vec<f16>>(), "M = {m}, N = {n}");
    }
    Ok(())
}

#[test]
fn group_norm() -> Result<()> {
    let device = Device::best()?;
    for (b, g, c, p) in [(0, 1, 1, 1), (1, 1, 1, 1), (2, 3, 5, 33), (2, 4, 8, 196)] {
        let x = data(b * g * c * p, 12);
        let xt = Tensor::from_slice(&device, &x, [b, g, c, p])?;
        let mut y = Tensor::zeros(&device, [b, g, c, p])?;
        GroupNorm { x: &xt, eps: 1e-3, y: &mut y }.launch(&device)?;
        assert_close("GroupNorm", &y.to_vec()?, x.chunks(c * p).flat_map(|group| normal(group, 1e-3)), 1e-5);
    }
    Ok(())
}

#[test]
fn rope() -> Result<()> {
    let device = Device::best()?;
    for (s, h, d) in [(0, 1, 1), (1, 1, 1), (7, 3, 11), (16, 8, 32)] {
        let (x, angle) = (data(s * h * d * 2, 13), data(s * d, 14));
        let (xt, at) = (Tensor::from_slice(&device, &x, [s, h, d, 2])?, Tensor::from_slice(&device, &angle, [s, d])?);
        let mut y = Tensor::zeros(&device, [s, h, d, 2])?;
        Rope { x: &xt, angle: &at, y: &mut y }.launch(&device)?;
        let of = |p: usize| {
            let pair = p / 2;
            let (sin, cos) = f64::from(angle[pair / d / h * d + pair % d]).sin_cos();
            let (a, b) = (f64::from(x[2 * pair]), f64::from(x[2 * pair + 1]));
            [a * cos - b * sin, a * sin + b * cos][p % 2]
        };
        assert_close("Rope", &y.to_vec()?, (0..s * h * d * 2).map(of), 1e-6);
    }
    Ok(())
}
