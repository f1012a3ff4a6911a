//! The two sides of a maximum in a sum: what is said of both is said of it.

use super::{Atom, Expr};

impl Expr {
    /// Expressions that are all at least 0 where this one is, and only there: of a maximum that is taken off, that
    /// holds of both sides.
    pub fn at_least_parts(&self) -> Vec<Self> {
        match self.sides(|coefficient, _| coefficient < 0) {
            Some((_, sides)) => sides.iter().flat_map(Self::at_least_parts).collect(),
            None => vec![self.clone()],
        }
    }

    /// The two sides of a maximum in a sum that `such` holds of, given its coefficient and what it is the positive part
    /// of; and whether this is the smaller one of the two, and not the larger one.
    pub fn sides(&self, such: impl Fn(i128, &Self) -> bool) -> Option<(bool, [Self; 2])> {
        let (coefficient, atoms, of) = self.terms().iter().find_map(|term| match &term.atoms[..] {
            [Atom::Positive { of }] if such(term.coefficient, of) => Some((term.coefficient, &term.atoms, of)),
            _ => None,
        })?;
        let without = self.sub(&Self::from_atoms(atoms).scale(coefficient));
        let with = without.add(&of.scale(coefficient));
        Some((coefficient < 0, [without, with]))
    }

    /// The greatest or least value of a sum that has a maximum which `such` holds of, or one beyond, if `extreme` finds
    /// that of both its sides: min(a, b) is at most the smaller one of the greatest values of a and b.
    pub fn extreme_of_sides(
        &self,
        such: impl Fn(i128, &Self) -> bool,
        extreme: impl Fn(&Self) -> Option<Self>,
    ) -> Option<Self> {
        let (is_smaller, [a, b]) = self.sides(such)?;
        let (a, b) = (extreme(&a)?, extreme(&b)?);
        Some(if is_smaller { a.minimum(&b) } else { a.maximum(&b) })
    }
}
