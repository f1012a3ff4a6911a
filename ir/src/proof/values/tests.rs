//! Laws of the algebra.

use tilewright_kernel::ElementType::{F16, F32, F64, I32, U32};
use tilewright_kernel::algorithm::{Binary, Compare};

use super::algebra::{Algebra, Freedom};
use crate::kernel_ir::UnaryOp;

/// Of a kernel without reductions, and of one with a sum in any order.
const ROUNDED: Freedom = Freedom { add: false, mul: false, merge: false, online: false, signs: false };
const SUMMED: Freedom = Freedom { add: true, mul: false, merge: false, online: false, signs: false };

/// Some terms: elements of a tensor.
fn terms(algebra: &Algebra) -> Vec<i64> {
    (0..6).map(|at| algebra.element(0, at, F32)).collect()
}

#[test]
fn only_what_the_contract_frees_is_equal() {
    let algebra = Algebra::new(ROUNDED, 1, 8);
    let [a, b, c, ..] = terms(&algebra)[..] else { panic!("terms") };
    let op = |op, a, b| algebra.binary(op, F32, a, b).expect("known");
    let add = |a, b| op(Binary::Add, a, b);
    assert_eq!(add(a, b), add(b, a));
    assert_ne!(add(add(a, b), c), add(a, add(b, c)), "it rounds");
    assert_ne!(op(Binary::Sub, a, b), op(Binary::Sub, b, a));
    assert_ne!(op(Binary::Mul, a, add(b, c)), add(op(Binary::Mul, a, b), op(Binary::Mul, a, c)));
    assert_ne!(algebra.fma(F32, a, b, c), Some(add(op(Binary::Mul, a, b), c)));
    assert_eq!((add(a, 0), op(Binary::Mul, a, 1), op(Binary::Mul, 0, 0)), (a, a, 0));

    let free = Algebra::new(SUMMED, 1, 8);
    let add = |a, b| free.binary(Binary::Add, F32, a, b).expect("known");
    assert_eq!(add(add(a, b), c), add(a, add(b, c)));
    assert_ne!(add(add(a, b), c), add(add(a, b), b));
    let mul = |a, b| free.binary(Binary::Mul, F32, a, b).expect("known");
    assert_ne!(mul(a, add(b, c)), add(mul(a, b), mul(a, c)), "only sums have no order");
}

#[test]
fn constants_are_computed() {
    let algebra = Algebra::new(ROUNDED, 1, 8);
    let literal = |x: f32| algebra.of_bits(F32, x.to_bits().into()).expect("known");
    for (x, y) in [(0.1f32, 0.2), (3.0, -7.5), (1e30, 1e30), (-0.5, 0.5)] {
        let op = |op| algebra.binary(op, F32, literal(x), literal(y)).expect("known");
        assert_eq!(op(Binary::Add), literal(x + y));
        assert_eq!(op(Binary::Sub), literal(x - y));
        assert_eq!(op(Binary::Mul), literal(x * y));
        assert_eq!(op(Binary::Div), literal(x / y));
        assert_eq!(op(Binary::Max), literal(x.max(y)));
        assert_eq!(algebra.fma(F32, literal(x), literal(y), literal(x)), Some(literal(x.mul_add(y, x))));
        assert_eq!(algebra.compare(Compare::Lt, F32, literal(x), literal(y)), x < y);
        assert_eq!(algebra.unary(UnaryOp::Neg, F32, literal(x)), Some(literal(-x)));
        assert_eq!(algebra.cast(F32, I32, literal(x)), Some(i64::from(x as i32)));
    }
    for x in [f32::NAN, f32::INFINITY, 0.1] {
        // Also where no other constant has been met.
        let algebra = Algebra::new(ROUNDED, 1, 8);
        let literal = |x: f32| algebra.of_bits(F32, x.to_bits().into()).expect("known");
        let negative = algebra.unary(UnaryOp::Neg, F32, literal(x)).expect("known");
        let difference = algebra.binary(Binary::Sub, F32, 1, negative);
        assert_eq!((negative, difference), (literal(-x), Some(literal(1.0 + x))), "{x}");
    }
    assert_eq!(algebra.cast(F64, F32, algebra.of_bits(F64, 0.1f64.to_bits()).expect("known")), Some(literal(0.1)));
}

#[test]
fn terms_have_an_order_bits_and_a_type() {
    for freedom in [ROUNDED, SUMMED] {
        let algebra = Algebra::new(freedom, 1, 8);
        let all = terms(&algebra);
        for &a in &all {
            let negative = algebra.unary(UnaryOp::Neg, F32, a).expect("known");
            assert_eq!(algebra.unary(UnaryOp::Neg, F32, negative), Some(a));
            assert_eq!(algebra.unary(UnaryOp::Abs, F32, a), algebra.unary(UnaryOp::Abs, F32, negative));
            let bits = algebra.same_bits(F32, U32, a).expect("known");
            assert_eq!(algebra.same_bits(U32, F32, bits), Some(a));
            assert_eq!(algebra.same_bits(U32, F32, bits ^ 1 << 31), Some(negative));
            let narrow = algebra.cast(F32, F16, a).expect("known");
            assert_eq!(algebra.cast(F16, F32, narrow), Some(narrow), "wider is the same");
            assert_eq!(algebra.cast(F32, F16, narrow), Some(narrow), "it is rounded once");
            assert_eq!(narrow == a, freedom == SUMMED, "rounding is free where sums are");
            for &b in &all {
                let less = |a, b| algebra.compare(Compare::Lt, F32, a, b);
                assert_eq!(less(a, b), a != b && !less(b, a));
                let max = |a, b| algebra.binary(Binary::Max, F32, a, b).expect("known");
                assert_eq!((max(a, b), max(a, a)), (max(b, a), a));
                all.iter().for_each(|&c| assert_eq!(max(max(a, b), c), max(a, max(b, c))));
            }
        }
    }
}

/// Of a kernel with an online sum.
const ONLINE: Freedom = Freedom { add: true, mul: false, merge: true, online: true, signs: false };

#[test]
fn magnitudes_are_homomorphisms_beside_an_online_sum() {
    for signs in [true, false] {
        let algebra = Algebra::new(Freedom { signs, ..ONLINE }, 1, 8);
        let op = |op, a, b| algebra.binary(op, F32, a, b).expect("known");
        let unary = |op, a| algebra.unary(op, F32, a).expect("known");
        let (size, negated) = (|a| unary(UnaryOp::Abs, a), |a| unary(UnaryOp::Neg, a));
        let all: Vec<i64> = (0..40).map(|at| algebra.element(3, at, F32)).collect();
        let (mut alike, mut negative, mut added) = (0, 0, 0);
        for &a in &all {
            assert_eq!((size(a), size(size(a))), (size(negated(a)), size(a)));
            assert!(!algebra.compare(Compare::Lt, F32, size(a), 0) && algebra.compare(Compare::Gt, F32, size(a), 0));
            negative += u32::from(size(a) != a);
            let exponential = super::math::exp(&algebra, F32, a).expect("known");
            assert!(!signs || size(exponential) == exponential);
            for &b in &all {
                let [of_both, both] = [size(op(Binary::Mul, a, b)), op(Binary::Mul, size(a), size(b))];
                let [of_ratio, ratio] = [size(op(Binary::Div, a, b)), op(Binary::Div, size(a), size(b))];
                assert!(!signs || (of_both, of_ratio) == (both, ratio));
                alike += u32::from(of_both == both);
                added += u32::from(size(op(Binary::Add, a, b)) == op(Binary::Add, size(a), size(b)));
            }
        }
        assert!((8..32).contains(&negative), "{negative}");
        assert!((signs || alike < 1200) && added < 800, "{alike} {added}");
    }
}

#[test]
fn exponentials_are_homomorphisms_where_sums_are_corrected() {
    let algebra = Algebra::new(ONLINE, 1, 8);
    let literal = |x: f32| algebra.of_bits(F32, x.to_bits().into()).expect("known");
    let op = |op, a, b| algebra.binary(op, F32, a, b).expect("known");
    let [a, b, c, ..] = terms(&algebra)[..] else { panic!("terms") };
    let two = literal(2.0);
    for ty in [F32, F64] {
        let exp = |x| super::math::exp(&algebra, ty, x).expect("known");
        let apart = |x, y| exp(op(Binary::Sub, x, y));
        assert_eq!(op(Binary::Mul, apart(a, b), apart(b, c)), apart(a, c));
        assert_eq!(op(Binary::Mul, exp(a), exp(a)), exp(op(Binary::Mul, two, a)));
        assert_ne!(op(Binary::Mul, apart(a, b), apart(a, c)), apart(b, c));
        assert_ne!(exp(op(Binary::Mul, a, b)), op(Binary::Mul, exp(a), exp(b)));
        assert_ne!(op(Binary::Add, exp(a), exp(b)), exp(op(Binary::Add, a, b)));
        // A sum of terms, corrected once.
        let sum = op(Binary::Add, apart(a, b), apart(b, b));
        let corrected = op(Binary::Mul, sum, apart(b, c));
        assert_eq!(corrected, op(Binary::Add, apart(a, c), apart(b, c)));
        assert_ne!(corrected, op(Binary::Add, apart(a, c), apart(c, c)));
        // Numbers that are none.
        let [infinity, nan] = [f32::INFINITY, f32::NAN].map(literal);
        let less = algebra.unary(UnaryOp::Neg, F32, infinity).expect("known");
        assert_eq!((exp(0), apart(less, a), exp(infinity), exp(nan)), (1, 0, infinity, nan));
        assert_eq!((apart(less, less), op(Binary::Mul, 0, infinity)), (nan, nan));
        assert_eq!(op(Binary::Add, exp(a), nan), nan);
    }
    let exp2 = |x| algebra.unary(UnaryOp::Exp2Approx, F32, x).expect("known");
    assert_eq!(op(Binary::Mul, exp2(a), exp2(b)), exp2(op(Binary::Add, a, b)));
    assert_ne!(exp2(a), super::math::exp(&algebra, F32, a).expect("known"));
    // Another clamp is none of an exponential.
    let clamped = op(Binary::Max, a, literal(-103.0));
    assert!([a, literal(-103.0)].contains(&clamped));
    // What only looks like the end of an exponential is none.
    assert_ne!(op(Binary::Mul, a, b), super::math::exp(&algebra, F32, a).expect("known"));
}
