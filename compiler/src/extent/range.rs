//! Expressions whose variables have ranges: what they can be, and what of them is thereby decided.

use super::expr::{Atom, Expr, Term, Var};

/// An expression in which every quotient that ranges decide is decided; `range` gives the least and the largest value of a variable.
#[must_use]
pub fn collapse(e: &Expr, range: &dyn Fn(Var) -> Option<(i128, i128)>) -> Expr {
    if e.is_unknown() {
        return Expr::unknown();
    }
    let mut sum = Expr::constant(0);
    for term in e.terms() {
        let mut product = Expr::constant(term.coefficient);
        for atom in &term.atoms {
            let factor = match atom {
                Atom::Var(v) => match range(*v) {
                    Some((least, most)) if least == most => Expr::constant(least),
                    _ => Expr::var(*v),
                },
                Atom::Quotient { of, by } => {
                    let (of, by) = (collapse(of, range), collapse(by, range));
                    let ends = by.as_constant().filter(|by| *by > 0).and_then(|by| {
                        // What is a multiple of the divisor comes out of the quotient; the rest may be too small to count.
                        let whole = of.terms().iter().filter(|t| t.coefficient % by == 0);
                        let whole = whole.fold(Expr::constant(0), |s, t| s.add(&from_term(t)));
                        let (least, most) = interval(&of.sub(&whole), range)?;
                        let quotient = least.div_euclid(by);
                        let out = whole.terms().iter().fold(Expr::constant(quotient), |s, t| {
                            s.add(&Expr::from_atoms(&t.atoms).scale(t.coefficient / by))
                        });
                        (quotient == most.div_euclid(by)).then_some(out)
                    });
                    ends.unwrap_or_else(|| of.floor_div(&by))
                }
                Atom::Positive { of } => {
                    let of = collapse(of, range);
                    match interval(&of, range) {
                        Some((least, _)) if least >= 0 => of,
                        Some((_, most)) if most <= 0 => Expr::constant(0),
                        _ => of.positive(),
                    }
                }
            };
            product = product.mul(&factor);
        }
        sum = sum.add(&product);
    }
    sum
}

fn from_term(term: &Term) -> Expr {
    match term.atoms[..] {
        [] => Expr::constant(term.coefficient),
        _ => Expr::from_atoms(&term.atoms).scale(term.coefficient),
    }
}

/// The least and the largest value of an expression, term by term.
pub fn interval(e: &Expr, range: &dyn Fn(Var) -> Option<(i128, i128)>) -> Option<(i128, i128)> {
    let mut sum = (0_i128, 0_i128);
    for term in e.terms() {
        let mut product = (term.coefficient, term.coefficient);
        for atom in &term.atoms {
            let factor = match atom {
                Atom::Var(v) => range(*v)?,
                Atom::Quotient { of, by } => {
                    let by = by.as_constant().filter(|by| *by > 0)?;
                    let (least, most) = interval(of, range)?;
                    (least.div_euclid(by), most.div_euclid(by))
                }
                Atom::Positive { of } => {
                    let (least, most) = interval(of, range)?;
                    (least.max(0), most.max(0))
                }
            };
            let ends = [
                product.0.checked_mul(factor.0)?,
                product.0.checked_mul(factor.1)?,
                product.1.checked_mul(factor.0)?,
                product.1.checked_mul(factor.1)?,
            ];
            product = (*ends.iter().min()?, *ends.iter().max()?);
        }
        sum = (sum.0.checked_add(product.0)?, sum.1.checked_add(product.1)?);
    }
    Some(sum)
}
