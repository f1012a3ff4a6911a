//! Axes of two domains that have one value.

use super::{AxisId, Domain, Op, Symbolic};
use crate::extent::{Expr, Facts};

/// For each axis of `held`, whose first roots are at `roots`, an axis of `reader` with the same value; none where none
/// is known.
///
/// **Property.** Where the iteration of the reader is live, the axes have one value. **Formula.** A root has that of an
/// axis if the expressions are equal. A split of both by one factor, of axes with one value, makes quotient and
/// remainder of it on both sides: those of a live iteration are the reader's own variables. A merge of both, of axes
/// with one value and inner ones of one extent, makes one sum. This holds for factors that are known at launch only,
/// where quotients cannot be decided by the ranges of their parts.
pub fn alike(
    held: &Domain,
    roots: &[Expr],
    reader: &Domain,
    symbolic: &Symbolic,
    facts: &Facts,
) -> Vec<Option<AxisId>> {
    let same = |a: &Expr, b: &Expr| !a.is_unknown() && facts.normal(a) == facts.normal(b);
    let mut found: Vec<Option<AxisId>> = vec![None; held.axes.len()];
    for (root, at) in held.roots.iter().zip(roots) {
        found[*root] = symbolic.values.iter().position(|value| same(value, at));
    }
    for (op, _) in &held.ops {
        let theirs = || reader.ops.iter().map(|(op, _)| op);
        match op {
            Op::Split { input, outer, inner, factor, .. } => {
                let of = found[*input];
                let split = |op: &Op| match op {
                    Op::Split { input, outer, inner, factor: by, .. } if Some(*input) == of && same(by, factor) => {
                        Some((*outer, *inner))
                    }
                    _ => None,
                };
                if let Some((o, i)) = theirs().find_map(split) {
                    (found[*outer], found[*inner]) = (Some(o), Some(i));
                }
            }
            Op::Merge { outer, inner, output } => {
                let of = (found[*outer], found[*inner]);
                let extent = &held.axes[*inner].extent;
                let merge = |op: &Op| match op {
                    Op::Merge { outer, inner, output } if (Some(*outer), Some(*inner)) == of => {
                        same(&reader.axes[*inner].extent, extent).then_some(*output)
                    }
                    _ => None,
                };
                found[*output] = theirs().find_map(merge);
            }
            Op::Resize { .. } | Op::Swizzle { .. } => {}
        }
    }
    found
}
#[cfg(test)]
#[path = "alike_tests.rs"]
mod tests;
