//! How large an expression can get: bounds that are expressions over fewer variables.
//!
//! **Property.** [`absolute`] is at least the absolute value, for sizes, strides and loops that are not negative.
//! **Formula.** Coefficients by their absolute values, and each variable by its bound. **Approximation.** What cancels
//! is counted twice.

use super::{Atom, Expr, Var};

/// Whether an expression has no negative part, so that it is not negative for sizes, strides and loops.
pub fn grows(e: &Expr) -> bool {
    e.terms().iter().all(|t| {
        t.coefficient >= 0
            && t.atoms.iter().all(|atom| match atom {
                Atom::Var(_) => true,
                Atom::Quotient { of, by } => grows(of) && grows(by),
                Atom::Positive { of } => grows(of),
            })
    })
}

/// A bound of the absolute value of an expression; `bound` gives those of variables that are not themselves.
pub fn absolute(e: &Expr, bound: &dyn Fn(Var) -> Option<Expr>) -> Expr {
    if e.is_unknown() {
        return Expr::unknown();
    }
    e.terms().iter().fold(Expr::constant(0), |sum, term| {
        let product = term.atoms.iter().fold(Expr::constant(term.coefficient.abs()), |product, atom| {
            product.mul(&match atom {
                Atom::Var(v) => bound(*v).unwrap_or_else(|| Expr::var(*v)),
                // |⌊a / b⌋| ≤ |a| + 1 for b ≥ 1, and ≤ |a| where a ≥ 0; a negative one is above −|a| − 1.
                Atom::Quotient { of, by } => match by.as_constant() {
                    Some(d) if grows(of) => absolute(of, bound).floor_div(&Expr::constant(d)),
                    _ => absolute(of, bound).add(&Expr::constant(i128::from(!grows(of)))),
                },
                Atom::Positive { of } => absolute(of, bound),
            })
        });
        sum.add(&product)
    })
}
