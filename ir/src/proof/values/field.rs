//! Arithmetic modulo a number, and classes of types.

use tilewright_kernel::ElementType;

use ElementType::{Bf16, E4m3, E5m2, F16, F32, F64, Tf32};

/// A hash (the finaliser of splitmix64 after each word).
pub(in crate::proof) fn mix(words: [u64; 4]) -> u64 {
    words.into_iter().fold(0x9E37_79B9_7F4A_7C15, |hash, word| {
        let hash = (hash ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15);
        let hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        hash ^ hash >> 31
    })
}

pub(super) fn product(a: i64, b: i64, modulus: u64) -> i64 {
    (a.unsigned_abs() as u128 * b.unsigned_abs() as u128 % u128::from(modulus)) as i64
}

/// 1/a by Euclid's algorithm; nothing of what has a factor in common with the modulus.
pub(super) fn inverse(a: i64, modulus: u64) -> Option<i64> {
    let modulus = modulus as i64;
    let (mut rest, mut next) = (modulus, a);
    let (mut before, mut factor) = (0_i64, 1_i64);
    while next != 0 {
        let quotient = rest / next;
        (rest, next) = (next, rest - quotient * next);
        (before, factor) = (factor, before - quotient * factor);
    }
    (rest == 1).then(|| before.rem_euclid(modulus))
}

/// The ring of numbers below p·q, with primes p = 2·q + 1: that of pairs of a number below p and one below q.
pub(super) mod pairs {
    use super::product;

    const Q: u64 = 1_073_741_789;
    const P: u64 = 2 * Q + 1;
    /// The modulus: nearly 2⁶¹.
    pub(in super::super) const MODULUS: u64 = P * Q;

    /// Whether the first number of a pair is a square, 1, or none, −1; 0 of 0. Of a product it is the product: Jacobi's
    /// symbol of it and p.
    pub(in super::super) fn character(pair: i64) -> i32 {
        let (mut a, mut n, mut found) = (pair.unsigned_abs() % P, P, 1);
        while a != 0 {
            let twos = a.trailing_zeros();
            a >>= twos;
            if twos % 2 == 1 && matches!(n % 8, 3 | 5) {
                found = -found;
            }
            if a % 4 == 3 && n % 4 == 3 {
                found = -found;
            }
            (a, n) = (n % a, a);
        }
        if n == 1 { found } else { 0 }
    }

    /// A homomorphism from addition to multiplication: the pair (·, x) becomes (baseˣ, 1). Squares of other numbers
    /// than 0 and 1 have powers that repeat after q, and not before.
    pub(in super::super) fn power(base: u64, x: i64) -> i64 {
        let (mut square, mut left, mut result) = (base as i64, x.unsigned_abs() % Q, 1);
        while left > 0 {
            if left & 1 == 1 {
                result = product(result, square, P);
            }
            square = product(square, square, P);
            left >>= 1;
        }
        // p is 1 modulo q, so that p·(1 − a) + a, which is a modulo p, is 1 modulo q.
        let (own, a) = (u128::from(P), result as u128);
        let below = (u128::from(Q) + 1 - a % u128::from(Q)) % u128::from(Q);
        ((own * below + a) % u128::from(MODULUS)) as i64
    }
}

pub(super) fn class(ty: ElementType) -> u64 {
    match ty {
        F64 => 0,
        F32 => 1,
        Tf32 => 2,
        F16 => 3,
        Bf16 => 4,
        E4m3 => 5,
        _ => 6,
    }
}

/// Whether every number of the type with a class is one of another type.
pub(super) fn contains(ty: ElementType, of: u64) -> bool {
    let within: &[ElementType] = match ty {
        F64 => return true,
        F32 => &[F32, Tf32, F16, Bf16, E4m3, E5m2],
        Tf32 => &[Tf32, F16, Bf16, E4m3, E5m2],
        F16 => &[F16, E4m3, E5m2],
        Bf16 => &[Bf16, E4m3, E5m2],
        E4m3 => &[E4m3],
        _ => &[E5m2],
    };
    within.iter().any(|ty| class(*ty) == of)
}
