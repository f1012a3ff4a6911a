//! The bit models against a rational sum, and the layouts against enumeration.

use super::fragment;
use super::model::{Matrices, Quick, block, f16_to_f32, multiply, quick_block};
use super::{Element, Product, Sum};
use crate::launch::MatrixModel;
use crate::num::format::{BF16, E4M3, F16, F32, Format, Number, Round, TF32};

/// A stream of numbers.
fn stream(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 24
    }
}

#[test]
fn every_element_of_an_mma_is_held_once() {
    for (m, e, k) in
        [(16, 2, 16), (16, 2, 8), (16, 1, 4), (16, 1, 8), (16, 4, 16), (16, 4, 32), (16, 8, 64), (8, 4, 16), (8, 1, 4)]
    {
        let registers = m * k / 32 / e;
        let mut seen = vec![0; m * k];
        for lane in 0..32 {
            for r in 0..registers {
                for i in 0..e {
                    let (row, col) = fragment::mma_a(m, e, lane, r, i);
                    seen[row * k + col] += 1;
                }
            }
        }
        assert!(seen.iter().all(|n| *n == 1), "A of m{m} k{k}");
        let mut seen = vec![0; 8 * k];
        for lane in 0..32 {
            for r in 0..8 * k / 32 / e {
                for i in 0..e {
                    let (row, col) = fragment::mma_b(e, lane, r, i);
                    seen[row * 8 + col] += 1;
                }
            }
        }
        assert!(seen.iter().all(|n| *n == 1), "B of k{k}");
        let mut seen = vec![0; m * 8];
        for lane in 0..32 {
            for j in 0..m * 8 / 32 {
                let (row, col) = fragment::mma_c(lane, j);
                seen[row * 8 + col] += 1;
            }
        }
        assert!(seen.iter().all(|n| *n == 1), "C of m{m}");
    }
}

/// The register positions that the manual draws for m16n8k16 (9.7.14.5.8), by its own formulas.
#[test]
fn layout_of_m16n8k16_is_the_manuals() {
    for lane in 0..32 {
        let (group, thread) = (lane >> 2, lane % 4);
        for i in 0..8usize {
            let row = if i < 2 || (4..6).contains(&i) { group } else { group + 8 };
            let col = if i < 4 { thread * 2 + (i & 1) } else { thread * 2 + (i & 1) + 8 };
            assert_eq!(fragment::mma_a(16, 2, lane, i / 2, i % 2), (row, col));
        }
        for i in 0..4usize {
            let row = if i < 2 { thread * 2 + (i & 1) } else { thread * 2 + (i & 1) + 8 };
            assert_eq!(fragment::mma_b(2, lane, i / 2, i % 2), (row, group));
        }
        for i in 0..4 {
            let row = if i < 2 { group } else { group + 8 };
            assert_eq!(fragment::mma_c(lane, i), (row, thread * 2 + (i & 1)));
        }
    }
}

/// The block by integers: every term as a multiple of one power of two, cut off below `fraction` bits under the
/// greatest exponent.
fn block_by_integers(c: f32, terms: &[(u16, u16)], fraction: i32) -> f32 {
    // (value scaled by 2^200 would overflow: exponents of the test stay within ±14, so that f64 holds every term
    // exactly.)
    let scale = |bits: u16| i32::from(bits >> 10 & 31).max(1) - 15;
    let value = |bits: u16| half::f16::from_bits(bits).to_f64();
    let mut greatest = i32::MIN;
    if c != 0.0 {
        greatest = (c.abs().to_bits() >> 23) as i32 - 127;
    }
    for (x, y) in terms {
        if value(*x) != 0.0 && value(*y) != 0.0 {
            greatest = greatest.max(scale(*x) + scale(*y));
        }
    }
    if greatest == i32::MIN {
        return 0.0;
    }
    let unit = f64::powi(2.0, greatest - fraction);
    let sum: f64 =
        terms.iter().map(|(x, y)| (value(*x) * value(*y) / unit).trunc()).sum::<f64>() + (f64::from(c) / unit).trunc();
    // Truncation to f32 of an exact f64.
    let exact = sum * unit;
    let near = exact as f32;
    if f64::from(near).abs() > exact.abs() { f32::from_bits(near.to_bits() - 1) } else { near }
}

#[test]
fn blocks_align_and_truncate() {
    let mut next = stream(7);
    for _ in 0..20_000 {
        let half = |bits: u64| {
            // Exponents of 1 to 29: finite, some subnormal when the field is 0.
            let field = (bits >> 16) % 30;
            ((bits & 0x8000) | field << 10 | (bits & 0x3ff)) as u16
        };
        let count = 1 + (next() % 16) as usize;
        let terms: Vec<(u16, u16)> = (0..count).map(|_| (half(next()), half(next()))).collect();
        let c = if next().is_multiple_of(4) {
            0.0
        } else {
            f32::from_bits(((100 + next() % 60) << 23 | next() & 0x807f_ffff) as u32)
        };
        for fraction in [13, 24, 25] {
            let numbers = terms.iter().map(|(x, y)| (F16.unpack(u64::from(*x)), F16.unpack(u64::from(*y))));
            let got = f32::from_bits(block(c.to_bits(), numbers, 20, fraction));
            let want = block_by_integers(c, &terms, fraction as i32);
            assert!(got == want, "c = {c:e}, {terms:x?}, {fraction} bits: {got:e}, not {want:e}");
        }
    }
}

/// What is computed quickly is the same, and nearly everything is.
#[test]
fn quick_blocks_are_blocks() {
    let mut next = stream(11);
    let (mut quick, mut all) = (0, 0);
    for round in 0..20_000u64 {
        // Every bit pattern in some rounds, ordinary values in most.
        let any = round.is_multiple_of(4);
        let mut factor = |format: Format| {
            let bits = next() & ((1 << format.bits()) - 1);
            // Without the topmost bit of the exponent it is finite.
            format.unpack(if any { bits } else { bits & !(1 << (format.bits() - 2)) })
        };
        for (format, count, fraction) in [(F16, 8, 24), (F16, 16, 25), (BF16, 16, 25), (E4M3, 32, 13), (TF32, 8, 25)] {
            let terms: Vec<(Number, Number)> = (0..count).map(|_| (factor(format), factor(format))).collect();
            let c = if any { (round as u32).wrapping_mul(0x9e37_79b9) } else { (round as f32 - 500.0).to_bits() };
            let widths = 2 * format.fraction as i32;
            let slow = block(c, terms.iter().copied(), widths, fraction);
            let pairs = terms.iter().map(|(x, y)| (Quick::new(x), Quick::new(y)));
            let found = quick_block(c, pairs, widths, fraction);
            assert!(found.is_none_or(|found| found == slow), "{c:#x}, {terms:?}: {found:x?}, not {slow:#x}");
            quick += usize::from(found.is_some());
            all += usize::from(!any);
        }
    }
    assert!(quick * 10 > all * 9, "{quick} of {all}");
}

#[test]
fn special_values() {
    let one = F16.unpack(0x3c00);
    let (inf, minus, nan, zero) = (F16.unpack(0x7c00), F16.unpack(0xfc00), F16.unpack(0x7e00), F16.unpack(0));
    let run = |c: f32, terms: &[(Number, Number)]| block(c.to_bits(), terms.iter().copied(), 20, 24);
    let canonical = F32.nan as u32;
    assert_eq!(run(0.0, &[(nan, one)]), canonical);
    assert_eq!(run(0.0, &[(inf, zero)]), canonical);
    assert_eq!(run(0.0, &[(inf, one), (minus, one)]), canonical);
    assert_eq!(run(f32::NEG_INFINITY, &[(inf, one)]), canonical);
    assert_eq!(run(f32::NAN, &[]), canonical);
    assert_eq!(f32::from_bits(run(0.0, &[(minus, one)])), f32::NEG_INFINITY);
    assert_eq!(run(-0.0, &[(zero, one)]), 0, "a sum of zeros of both signs is +0");
    assert_eq!(f32::from_bits(run(f32::MAX, &[(one, one)])), f32::MAX);
}

#[test]
fn an_f16_is_the_f32_of_its_value() {
    for bits in 0..=u16::MAX {
        let (got, wanted) = (f16_to_f32(u32::from(bits)), half::f16::from_bits(bits).to_f32());
        assert!(got.to_bits() == wanted.to_bits() || got.is_nan() && wanted.is_nan(), "{bits:#x}: {got} for {wanted}");
    }
}

/// The models differ by no more than their bounds from the exact sum, and agree where nothing is lost.
#[test]
fn models_keep_their_bounds() {
    let mut next = stream(3);
    let (m, n, k) = (16, 8, 16);
    let product = Product {
        m,
        n,
        k,
        a: Element::F16,
        b: Element::F16,
        c: Sum::F32,
        d: Sum::F32,
        saturate: false,
        and: false,
        round: Round::Nearest,
    };
    for round in 0..50 {
        let small = round % 2 == 0;
        let mut half = || {
            let value = if small { (next() % 17) as f32 - 8.0 } else { (next() % 4001) as f32 / 1000.0 - 2.0 };
            u32::from(half::f16::from_f32(value).to_bits())
        };
        let a: Vec<u32> = (0..m * k).map(|_| half()).collect();
        let b: Vec<u32> = (0..k * n).map(|_| half()).collect();
        let c: Vec<u32> = (0..m * n).map(|i| (i as f32 - 60.0).to_bits()).collect();
        let value = |bits: u32| half::f16::from_bits(bits as u16).to_f64();
        for model in [MatrixModel::Fast, MatrixModel::Ampere, MatrixModel::Hopper] {
            let mut all = Matrices { a: a.clone(), b: b.clone(), c: c.clone(), d: vec![0; m * n] };
            multiply(&product, model, &mut all, &mut Default::default());
            let d = all.d;
            for i in 0..m {
                for j in 0..n {
                    let start = f64::from(f32::from_bits(c[i * n + j]));
                    let terms = (0..k).map(|l| value(a[i * k + l]) * value(b[l * n + j]));
                    let (exact, size) = terms.fold((start, start.abs()), |(s, t), x| (s + x, t + x.abs()));
                    let got = f64::from(f32::from_bits(d[i * n + j]));
                    // One unit of 2^-23 for each of at most k + 1 roundings or truncations of values at most `size`.
                    let bound = if small { 0.0 } else { size * (k + 1) as f64 * f64::powi(2.0, -23) };
                    assert!((got - exact).abs() <= bound, "{model:?}: {got} for {exact}");
                }
            }
        }
    }
}
