//! Online reductions: when terms that depend on the result of an earlier reduction can be taken in before that result
//! is known, and be corrected afterwards.
//!
//! **Property.** `correction` gives c only if, over the reals, term(x, m') = c(m, m') ∘ term(x, m) for all x, m, m',
//! and (∘) distributes over the later reduction's combination (docs/theory.md, Online reductions); `moments`
//! of what is a polynomial of the difference from a mean. `chain` finds the forms that kernels compute.
//! **Approximation.** Incomplete: what is only equal after a transformation that is not in the table of `factor` is
//! refused. Rounding is not looked at here; [`loss`] and [`squares_loss`] bound it.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `coefficient` | what is the same for every term: sums of products |
//! | `factor` | how a term depends on a variable; the correction; what stands in the way |
//! | `chain` | two reductions of an algorithm that are such a pair, and the parts that a kernel computes |
//! | `exponential` | sums of exponentials, which are multiplied by a factor |
//! | `scaled` | sums of quotients by the largest magnitude, the same |
//! | `choice` | what is taken where an extreme is, and the place of one |
//! | `squares` | polynomials of the difference from a mean; sums of squares |
//! | `copy` | terms with something in the place of parts of them |
//! | `key` | when two values are the same, and what they depend on |
//! | `refuted` | terms that no factor corrects, in numbers |
//! | `moved` | lists of terms that nothing corrects where their mean changes |
//! | `weights` | means of weighted terms, and weights that are never negative |

mod chain;
mod choice;
mod coefficient;
mod copy;
mod exponential;
mod factor;
mod key;
mod moved;
mod refuted;
#[cfg(test)]
mod rule_tests;
mod scaled;
mod squares;
#[cfg(test)]
mod tests;
mod weights;

pub use chain::{At, Chain, NoChain, Outside, Rule, chain, chain_of, earlier_ones};
pub use coefficient::Coefficient;
pub use copy::{push, replaced};
pub use exponential::{Exponential, Narrowed};
pub use factor::{Correction, Obstacle, Scale, Shift, Why, correction};
pub use key::is_same;
pub use moved::{Moved, moved};
pub use refuted::{Refuted, refuted};
pub use scaled::Scaled;
pub use squares::{moments, squares_loss, weighted_loss};
pub use weights::Weights;

use crate::algorithm::Unary;
use crate::element::ElementType;
use crate::format::Format;
use crate::math;

/// What corrections may lose in a sum of some number of terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Times the sum of the magnitudes of the terms; the additions of the sum are in it.
    pub relative: f64,
    /// Times the sum of the magnitudes of what the exponentials are multiplied with: the least normal number, for each
    /// exponential that is less.
    pub underflow: f64,
}

/// The loss of an online sum of `terms` terms.
///
/// With u half a unit in the last place of 1, E·u the relative error of the exponential, r the operations that a term
/// has beside it, a those of its argument, and D the largest size of an argument whose exponential is not 0:
///
/// | what | how often | loses |
/// | --- | --- | --- |
/// | an addition | n − 1 | u |
/// | a correction: where the extreme changes; elsewhere it is exp(0) = 1 | n − 1 | (E + 1)·u |
/// | the exponential of a term, here and where the extreme is known | 2 | E·u |
/// | the operations of a term, the same | 2 | r·u |
/// | arguments, the same; those of corrections add up to less than D | 2 | a·D·u |
///
/// An approximate exponential loses up to 2·u times its argument as well, and arguments add up to 2·D at most. A `dot`
/// that rounds multiples of exponentials to a narrower type loses half a unit of that twice, or what is below its least
/// normal number, of that multiple; beside what its additions lose: [`crate::dot::loss`].
pub fn loss(chain: &Exponential, element: ElementType, terms: u64) -> Option<Loss> {
    let (unit, reach, least) = match element {
        ElementType::F32 => (power(-24), 104.0, f64::from(f32::MIN_POSITIVE)),
        ElementType::F64 => (power(-53), 746.0, f64::MIN_POSITIVE),
        _ => return None,
    };
    let bound = math::bound(chain.function, element)?;
    // A unit in the last place is at most 2·u of the number.
    let each = 2.0 * bound.ulp * unit + bound.relative;
    let (n, steps, scales) = (terms as f64, f64::from(chain.steps), f64::from(chain.scales));
    let changes = (n - 1.0).max(0.0);
    // One that is fused may be above 0, by 1 at most: so far others have to add up beyond what they do else.
    let reach = if chain.fused.is_some() { reach + 2.0 } else { reach };
    let arguments = 2.0 * reach * (scales * unit + bound.input);
    let mut all = changes * (each + 2.0 * unit) + 2.0 * (each + steps * unit) + arguments;
    let mut underflow = (n + 1.0) * least;
    for Narrowed { to, scale } in &chain.casts {
        let format = Format::of(*to)?;
        all += 2.0 * format.unit_roundoff();
        underflow += 2.0 * power(format.least_exponent()) / scale;
    }
    Some(Loss { relative: all.exp_m1(), underflow })
}

/// The loss of a sum of quotients by the largest magnitude: as [`loss`], with the operations of a correction in the
/// place of an exponential.
pub fn scaled_loss(scaled: Scaled, element: ElementType, terms: u64) -> Option<Loss> {
    let (unit, least) = match element {
        ElementType::F32 => (power(-24), f64::from(f32::MIN_POSITIVE)),
        ElementType::F64 => (power(-53), f64::MIN_POSITIVE),
        _ => return None,
    };
    let (n, steps, scales) = (terms as f64, f64::from(scaled.steps), f64::from(scaled.scales));
    let changes = (n - 1.0).max(0.0);
    let all = (changes * (scales + 2.0) + 2.0 * steps) * unit;
    Some(Loss { relative: all.exp_m1(), underflow: (n + 1.0) * least })
}

/// 2^`exponent`, in the range of normal numbers.
fn power(exponent: i32) -> f64 {
    2.0_f64.powi(exponent)
}

/// Whether it is an exponential.
const fn is_exponential(function: Unary) -> bool {
    matches!(function, Unary::Exp | Unary::ApproxExp | Unary::ApproxExp2)
}
