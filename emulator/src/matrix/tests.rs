//! The bit models against a rational sum, and the layouts against enumeration.

use tilewright_kernel::{ElementType, dot};

use super::fragment;
use super::model::{Matrices, block, f16_to_f32, multiply};
use super::{Element, Product, Sum};
use crate::launch::MatrixModel;
use crate::num::exact;
use crate::num::format::{BF16, E4M3, E5M2, F16, F32, F64, Format, Number, Round, TF32};

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

/// The block by multiples of one power of two, cut off below `fraction` bits under the greatest exponent. Terms are
/// bits of a format whose products f64 holds exactly, as it holds the sums of so few multiples.
fn block_by_integers(format: Format, c: f32, terms: &[(u64, u64)], fraction: i32) -> f32 {
    let value = |bits: u64| f64::from_bits(exact::convert(format, F64, Round::Nearest, bits));
    // A subnormal has the least exponent of its format.
    let exponent = |bits: u64| {
        let field = (bits >> format.fraction & ((1 << (format.bits() - 1 - format.fraction)) - 1)) as i32;
        field.max(1) - format.bias()
    };
    let products = terms.iter().filter(|(x, y)| value(*x) != 0.0 && value(*y) != 0.0);
    let from_c = (c != 0.0).then(|| ((c.to_bits() >> 23 & 0xff) as i32).max(1) - 127);
    let Some(greatest) = products.map(|(x, y)| exponent(*x) + exponent(*y)).chain(from_c).max() else {
        return 0.0;
    };
    let unit = f64::powi(2.0, greatest - fraction);
    let whole = |value: f64| (value / unit).trunc();
    let sum = terms.iter().map(|(x, y)| whole(value(*x) * value(*y))).sum::<f64>() + whole(f64::from(c));
    let exact = sum * unit;
    if exact.abs() >= f64::powi(2.0, 128) {
        return f32::INFINITY.copysign(exact as f32);
    }
    // Truncation to f32 of an exact f64.
    let near = exact as f32;
    if f64::from(near).abs() > exact.abs() { f32::from_bits(near.to_bits() - 1) } else { near }
}

/// Finite factors of every format, in half of the rounds near each other and in half from the whole format.
#[test]
fn blocks_align_and_truncate() {
    let mut next = stream(7);
    for round in 0..20_000_usize {
        let format = [F16, BF16, TF32, E4M3, E5M2][round % 5];
        let near = (round / 5).is_multiple_of(2);
        let mut factor = || loop {
            let bits = next() & ((1 << format.bits()) - 1);
            // Exponents around that of 1.
            let middle = (format.bias() as u64 - 2 + next() % 4) << format.fraction;
            let kept = 1 << (format.bits() - 1) | ((1 << format.fraction) - 1);
            let bits = if near { bits & kept | middle } else { bits };
            if !matches!(format.unpack(bits), Number::Nan | Number::Infinity { .. }) {
                return bits;
            }
        };
        let terms: Vec<(u64, u64)> = (0..1 + round % 32).map(|_| (factor(), factor())).collect();
        let field = if near { 120 + next() % 14 } else { next() % 255 };
        let sign = ((next() % 2) << 31) as u32;
        let c = if !next().is_multiple_of(8) { (field << 23 | next() & 0x7f_ffff) as u32 } else { 0 };
        let c = f32::from_bits(c | sign);
        for fraction in [13, 24, 25] {
            let numbers = terms.iter().map(|(x, y)| (format.unpack(*x), format.unpack(*y)));
            let got = f32::from_bits(block(c.to_bits(), numbers, 2 * format.fraction as i32, fraction));
            let want = block_by_integers(format, c, &terms, fraction as i32);
            assert!(got == want, "c = {c:e}, {terms:x?}, {fraction} bits: {got:e}, not {want:e}");
        }
    }
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

/// The models keep the contract of `dot`, whose rules are derived from them: factors near each other, from the whole
/// format with its subnormals, and small integers, which are exact; in one instruction, and in several that add to what
/// the one before has left.
#[test]
fn models_keep_the_contract_of_dot() {
    let mut next = stream(3);
    let (m, n) = (16, 8);
    let types = [
        (Element::F16, ElementType::F16, F16, 0),
        (Element::Bf16, ElementType::Bf16, BF16, 0),
        (Element::Tf32, ElementType::Tf32, TF32, 13),
        (Element::E4m3, ElementType::E4m3, E4M3, 0),
        (Element::E5m2, ElementType::E5m2, E5M2, 0),
    ];
    let mut most = [0.0_f64; 5];
    for round in 0..300 {
        let (element, operand, format, shift) = types[round % 5];
        let k = [8, 16, 32, 96, 160][round / 5 % 5];
        let style = round / 25 % 3;
        let value = |bits: u32| f64::from_bits(exact::convert(format, F64, Round::Nearest, u64::from(bits >> shift)));
        let mut factor = || loop {
            let bits = match style {
                // Small integers: sums of 160 products of at most 4 are exact with the 13 bits of fp8, too.
                0 => exact::convert(F64, format, Round::Nearest, ((next() % 5) as f64 - 2.0).to_bits()),
                1 => {
                    let middle = (format.bias() as u64 - 2 + next() % 4) << format.fraction;
                    next() & (1 << (format.bits() - 1) | ((1 << format.fraction) - 1)) | middle
                }
                _ => next() & ((1 << format.bits()) - 1),
            };
            // Products beyond f32 have no contract.
            let magnitude = f64::from_bits(exact::convert(format, F64, Round::Nearest, bits)).abs();
            if !matches!(format.unpack(bits), Number::Nan | Number::Infinity { .. }) && magnitude < 1e15 {
                return (bits << shift) as u32;
            }
        };
        let a: Vec<u32> = (0..m * k).map(|_| factor()).collect();
        let b: Vec<u32> = (0..k * n).map(|_| factor()).collect();
        // The least depth of an instruction, twice that, or all at once.
        let least = if shift == 0 { 128 / element.bits() as usize } else { 4 };
        let depth = [least, 2 * least, k][round / 75 % 3].min(k);
        let product = Product {
            m,
            n,
            k: depth,
            a: element,
            b: element,
            c: Sum::F32,
            d: Sum::F32,
            saturate: false,
            and: false,
            round: Round::Nearest,
        };
        let loss = dot::loss([operand; 2], k as u64, None).unwrap();
        let [least, _] = loss.least;
        let size = |x: f64| if x == 0.0 { 0.0 } else { x.abs().max(least) };
        for model in [MatrixModel::Fast, MatrixModel::Ampere, MatrixModel::Hopper] {
            let mut all = Matrices { d: vec![0; m * n], ..Matrices::default() };
            for first in (0..k).step_by(depth) {
                let part = first..first + depth;
                all.a = (0..m).flat_map(|i| &a[i * k..][part.clone()]).copied().collect();
                all.b = b[part.start * n..part.end * n].to_vec();
                all.c = all.d.clone();
                multiply(&product, model, &mut all, &mut Default::default());
            }
            for (at, got) in all.d.iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let terms = (0..k).map(|l| (value(a[i * k + l]), value(b[l * n + j])));
                let (exact, all) = terms.fold((0.0, 0.0), |(s, t), (x, y)| (s + x * y, t + size(x) * size(y)));
                let got = f64::from(f32::from_bits(*got));
                let off = (got - exact).abs();
                // Our own sums round, and products may underflow.
                let ours = k as f64 * (f64::EPSILON * all + f64::powi(2.0, -148));
                let bound = if style == 0 { 0.0 } else { loss.relative * all + ours };
                assert!(off <= bound, "{model:?}, {operand}, k = {k}: {got:e} for {exact:e} ± {bound:e}");
                if bound > 0.0 {
                    most[round % 5] = most[round % 5].max(off / bound);
                }
            }
        }
    }
    // The bounds are no empty ones.
    assert!(most.iter().all(|share| *share > 0.05), "{most:?}");
}
