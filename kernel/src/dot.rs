//! The error contract of `dot`: what a sum of products may lose, on whatever unit computes it.
//!
//! Tensor cores do not round each step. A block of L products, which are exact, and the sum so far are aligned to the
//! greatest exponent among them, cut off F bits below it, added exactly, and the sum is cut off to an `f32` (Fasi,
//! Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021; Xie and others, "MMA-Sim", 2025):
//!
//! | operands | Ampere: L, F | Hopper: L, F |
//! | --- | --- | --- |
//! | `f16`, `bf16` | 8, 24 | 16, 25 |
//! | `tf32` | 4, 24 | 8, 25 |
//! | `e4m3`, `e5m2`, and one with the other | 16, 13 (Ada) | 32, 13; 16, 13 in instructions that take 16 |
//!
//! With S the sum of the magnitudes of all products, a block loses at most c = (L + 1)·2⁻ᶠ + 2⁻²³ times what there is,
//! so that B blocks lose at most ((1 + c)ᴮ − 1)·S. The terms may be dealt to several sums, which are added in `f32`: no
//! more than n additions of 2⁻²⁴ each, which also covers sums without tensor cores. Together
//!
//! > |d − Σab| ≤ (exp(B·c + n·2⁻²⁴) − 1)·S,   B = ⌈n / L⌉
//!
//! with the machine that loses most. `promote p` of 8-bit floats starts a new sum after p terms: B = ⌈min(p, n) / L⌉.
//!
//! **Subnormal operands** of `f16`, `e4m3` and `e5m2` have the exponent of the least normal number m when terms are
//! aligned. In S a factor that is less counts as m, unless it is zero.
//!
//! **Exact sums**: where all products are multiples of one power of two q and S ≤ q·2ᶠ (24 bits at most), nothing is
//! cut off: small integers, in every order.
//!
//! Integers are exact, and wrap. A `dot` of `f32` or `f64` is a `sum`.

use crate::element::ElementType;
use crate::format::Format;

/// What a `dot` of some number of terms may lose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Times the sum of the magnitudes of its products.
    pub relative: f64,
    /// The least magnitudes that factors other than zero count with in these, the left one's first.
    pub least: [f64; 2],
    /// Products that are multiples of q, and whose magnitudes are q · 2^`kept` at most in all, are added exactly.
    pub kept: u32,
}

/// Products that a tensor core adds in one block, and the bits that it keeps below the greatest exponent.
fn units(operand: ElementType) -> &'static [(u64, u32)] {
    match operand {
        ElementType::F16 | ElementType::Bf16 => &[(8, 24), (16, 25)],
        ElementType::Tf32 => &[(4, 24), (8, 25)],
        ElementType::E4m3 | ElementType::E5m2 => &[(16, 13), (32, 13)],
        _ => &[],
    }
}

/// The type that a `dot` of such factors accumulates in; none if there is no such `dot`. Factors of two types are of
/// those that tensor cores multiply with each other: both kinds of 8-bit floats, or of 8-bit integers.
pub const fn accumulator(operands: [ElementType; 2]) -> Option<ElementType> {
    use ElementType::{Bf16, Bool, E4m3, E5m2, F16, F32, F64, I8, I16, I32, I64, Tf32, U8, U16, U32, U64};
    match operands {
        [F64, F64] => Some(F64),
        [F32, F32] | [Tf32, Tf32] | [F16, F16] | [Bf16, Bf16] | [E4m3 | E5m2, E4m3 | E5m2] => Some(F32),
        [I32, I32] | [I16, I16] | [U16, U16] | [I8 | U8, I8 | U8] => Some(I32),
        [Bool | F64 | F32 | Tf32 | F16 | Bf16 | E4m3 | E5m2 | I64 | I32 | I16 | I8 | U64 | U32 | U16 | U8, _] => None,
    }
}

/// The loss of a `dot` of `terms` products of these types, with `promote` as it is written; none for types whose `dot`
/// is exact or a `sum`.
pub fn loss(operands: [ElementType; 2], terms: u64, promote: Option<u32>) -> Option<Loss> {
    let [left, right] = operands;
    let formats = [Format::of(left)?, Format::of(right)?];
    let of = |(length, kept): &(u64, u32)| {
        let together = promote.map_or(terms, |interval| terms.min(u64::from(interval)));
        let each = (length + 1) as f64 * power(-kept.cast_signed()) + power(-23);
        together.div_ceil(*length) as f64 * each
    };
    // Types that are multiplied with each other have the same units.
    let units = units(left);
    let most = units.iter().map(of).reduce(f64::max)?;
    let kept = units.iter().map(|(_, kept)| *kept).min()?;
    Some(Loss {
        relative: (most + terms as f64 * power(-24)).exp_m1(),
        least: formats.map(|format| power(format.least_exponent())),
        kept: kept.min(24),
    })
}

/// 2^`exponent`, in the range of normal numbers.
fn power(exponent: i32) -> f64 {
    2.0_f64.powi(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_types() {
        let relative = |operand, terms, promote| loss([operand; 2], terms, promote).unwrap().relative;
        // Ampere's blocks of 8 lose most: 11 · 2^-24 each, and 2^-24 a term.
        let close = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 1e-3, "{found:e}, {wanted:e}");
        close(relative(ElementType::F16, 4096, None), (512.0 * 11.0 + 4096.0) * power(-24));
        close(relative(ElementType::Bf16, 1, None), 12.0 * power(-24));
        close(relative(ElementType::Tf32, 64, None), (16.0 * 7.0 + 64.0) * power(-24));
        close(
            relative(ElementType::E4m3, 64, None),
            (4.0 * (17.0 * power(-13) + power(-23)) + 64.0 * power(-24)).exp_m1(),
        );
        close(relative(ElementType::E5m2, 4096, Some(128)), (8.0 * 17.0 * power(-13) + 4096.0 * power(-24)).exp_m1());
        assert_eq!(relative(ElementType::F16, 0, None), 0.0);
        assert_eq!(
            loss([ElementType::E4m3, ElementType::E5m2], 1, None).map(|loss| (loss.least, loss.kept)),
            Some(([1.0 / 64.0, power(-14)], 13))
        );
        for exact in [ElementType::F32, ElementType::F64, ElementType::I8, ElementType::Bool] {
            assert_eq!(loss([exact; 2], 100, None), None);
        }
    }
}
