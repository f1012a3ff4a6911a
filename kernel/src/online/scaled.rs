//! Sums of y·(x/m)ᵖ and y·|x/m|ᵖ, m the largest |x|: norms whose powers do not overflow.
//!
//! No quotient is above 1. Where m changes to m', a sum is multiplied by (m/m')ᵖ. While m is 0, or nothing, all
//! quotients are taken as 0; if it stays so, every term is 0/0.

use super::chain::{NoChain, Pair, Parts, Rule};
use super::copy::{Swap, mentions, push};
use super::key::key;
use super::{Correction, Scale, correction};
use crate::algorithm::{Algorithm, Binary, Reduction, Unary, Value, ValueId};
use crate::element::ElementType;

/// What is known of the quotients of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaled {
    /// Operations of a term.
    pub steps: u32,
    /// Operations of a correction.
    pub scales: u32,
}

/// The parts of such a sum; the correction is (before/now)ᵖ.
pub(super) fn find(pair: &mut Pair<'_>) -> Result<(Rule, Parts), NoChain> {
    let &mut Pair { term, now, before, axis, earlier, u, .. } = pair;
    let algorithm = &mut *pair.algorithm;
    let element = algorithm.types[term as usize];
    let found = correction(algorithm, Reduction::Sum, term, now, &[axis]).map_err(NoChain::Obstacle)?;
    let is_quotient = |scale: &Scale| scale.power < 0 && scale.exponent.is_zero() && scale.binary.is_zero();
    if !matches!(&found, Correction::Multiply(scale) if is_quotient(scale)) {
        return Err(NoChain::Shape(term));
    }
    if earlier.op != Reduction::Max || !pair.key.starts_with("(Abs ") {
        return Err(NoChain::Shape(term));
    }
    let mut quotients = Quotients { algorithm, now, u: &pair.key, element, of: Vec::new(), steps: 0 };
    let weight = quotients.weight(term)?;
    let Quotients { of, steps, .. } = quotients;
    // The product of all quotients, of the extreme as it was.
    let with = Value::Variable(before);
    let as_u = |algorithm: &mut Algorithm, quotient: ValueId| {
        // |x| in the place of x: of the extreme it is that.
        let Value::Binary(op, _, m) = algorithm.values[quotient as usize] else { return quotient };
        push(algorithm, Value::Binary(op, u, m), element)
    };
    let mut all = None;
    for quotient in &of {
        let of_u = as_u(algorithm, *quotient);
        let moved = Swap { algorithm, u: &pair.key, axis, with }.value(of_u).map_err(NoChain::Other)?;
        all = Some(match all {
            Some(all) => push(algorithm, Value::Binary(Binary::Mul, all, moved), element),
            None => moved,
        });
    }
    let correction = all.ok_or(NoChain::Shape(term))?;
    let scales = 2 * of.len() as u32 - 1;
    Ok((Rule::Scaled(Scaled { steps, scales }), Parts { term, weight, correction }))
}

/// The quotients of a product.
struct Quotients<'a> {
    algorithm: &'a mut Algorithm,
    now: u32,
    u: &'a str,
    element: ElementType,
    of: Vec<ValueId>,
    steps: u32,
}

impl Quotients<'_> {
    /// The product with 1 in the place of each quotient.
    fn weight(&mut self, value: ValueId) -> Result<ValueId, NoChain> {
        if !mentions(self.algorithm, value, self.now) {
            return Ok(value);
        }
        if self.algorithm.types[value as usize] != self.element {
            return Err(NoChain::Shape(value));
        }
        self.steps += 1;
        let node = match self.algorithm.values[value as usize] {
            Value::Binary(Binary::Div, x, m) if self.algorithm.values[m as usize] == Value::Variable(self.now) => {
                let own = key(self.algorithm, x, &[]);
                if own != self.u && format!("(Abs {own})") != self.u {
                    return Err(NoChain::Other(value));
                }
                self.of.push(value);
                let one = match self.element {
                    ElementType::F64 => 1.0_f64.to_bits(),
                    _ => 1.0_f32.to_bits().into(),
                };
                Value::Literal(one)
            }
            Value::Unary(op @ (Unary::Neg | Unary::Abs), a) => Value::Unary(op, self.weight(a)?),
            Value::Binary(Binary::Mul, a, b) => Value::Binary(Binary::Mul, self.weight(a)?, self.weight(b)?),
            Value::Binary(Binary::Div, a, b) if !mentions(self.algorithm, b, self.now) => {
                Value::Binary(Binary::Div, self.weight(a)?, b)
            }
            _ => return Err(NoChain::Shape(value)),
        };
        Ok(push(self.algorithm, node, self.element))
    }
}
