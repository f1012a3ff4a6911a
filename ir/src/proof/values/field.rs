//! Arithmetic modulo the prime, and classes of types.

use tilewright_kernel::ElementType;

use super::algebra::P;
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

pub(super) fn product(a: i64, b: i64) -> i64 {
    (a.unsigned_abs() as u128 * b.unsigned_abs() as u128 % u128::from(P)) as i64
}

/// 1/a by Fermat; of 0 nothing.
pub(super) fn inverse(a: i64) -> Option<i64> {
    let (mut power, mut left, mut result) = (a, P - 2, 1);
    while left > 0 {
        if left & 1 == 1 {
            result = product(result, power);
        }
        power = product(power, power);
        left >>= 1;
    }
    (a != 0).then_some(result)
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
