//! How a fact is sorted into what is known.

use tilewright_kernel::size::{Constraint, Relation};

use super::{Facts, merge_residues, modular_inverse, reduce, remainder};
use crate::extent::expr::{Atom, Expr, Var, gcd};

impl Facts {
    /// Takes in one fact; none if it contradicts what is known.
    pub(super) fn learn(&mut self, constraint: &Constraint) -> Option<()> {
        if let Some((of, modulus, residue)) = remainder(constraint) {
            let of = self.normal(&Expr::from_size(&of));
            return match constraint.relation {
                Relation::Eq => self.learn_congruence(&of.sub(&Expr::constant(residue)), modulus),
                // Other relations of a remainder are evaluated only on witnesses.
                _ => Some(()),
            };
        }
        let lhs = self.normal(&Expr::from_size(&constraint.lhs));
        let rhs = self.normal(&Expr::from_size(&constraint.rhs));
        let difference = lhs.sub(&rhs);
        let one = Expr::constant(1);
        match constraint.relation {
            Relation::Eq => self.learn_zero(&difference),
            Relation::Le => self.learn_nonnegative(&difference.scale(-1)),
            Relation::Lt => self.learn_nonnegative(&difference.scale(-1).sub(&one)),
            Relation::Ge => self.learn_nonnegative(&difference),
            Relation::Gt => self.learn_nonnegative(&difference.sub(&one)),
            Relation::Ne => self.learn_nonzero(&difference),
        }
    }

    pub(super) fn learn_zero(&mut self, e: &Expr) -> Option<()> {
        if let Some(c) = e.as_constant() {
            return (c == 0).then_some(());
        }
        if e.is_unknown() {
            return Some(());
        }
        // A dimension that stands alone in a term, with ±1 (or alone with a constant), is determined.
        for term in e.terms() {
            let [Atom::Var(v)] = term.atoms[..] else { continue };
            let rest = e.sub(&Expr::var(v).scale(term.coefficient));
            if rest.vars().contains(&v) {
                continue;
            }
            let value = match (term.coefficient, rest.as_constant()) {
                (1, _) => rest.scale(-1),
                (-1, _) => rest,
                (c, Some(k)) => {
                    if k % c != 0 {
                        return None;
                    }
                    Expr::constant(-(k / c))
                }
                _ => continue,
            };
            return self.solve(v, value);
        }
        self.inequalities.push(e.clone());
        self.inequalities.push(e.scale(-1));
        Some(())
    }

    /// Replaces dimension `v` by `value` everywhere; its range and residue carry over to `value`.
    pub(super) fn solve(&mut self, v: Var, value: Expr) -> Option<()> {
        let range = self.ranges[v as usize].clone();
        for (_, known) in &mut self.solved {
            *known = known.substitute(&|w| (w == v).then(|| value.clone()));
        }
        self.solved.push((v, value.clone()));
        let (congruences, inequalities) =
            (std::mem::take(&mut self.congruences), std::mem::take(&mut self.inequalities));
        for (e, m) in congruences {
            self.learn_congruence(&self.normal(&e), m)?;
        }
        for e in inequalities {
            self.learn_nonnegative(&self.normal(&e))?;
        }
        self.learn_nonnegative(&value.sub(&Expr::constant(range.lower)))?;
        if let Some(upper) = range.upper {
            self.learn_nonnegative(&Expr::constant(upper).sub(&value))?;
        }
        self.learn_congruence(&value.sub(&Expr::constant(range.residue)), range.modulus)
    }

    pub(super) fn learn_nonnegative(&mut self, e: &Expr) -> Option<()> {
        if e.is_unknown() {
            return Some(());
        }
        if let Some(c) = e.as_constant() {
            return (c >= 0).then_some(());
        }
        let k = e.constant_term();
        if let [term] = e.sub(&Expr::constant(k)).terms()
            && let [Atom::Var(v)] = term.atoms[..]
        {
            // c·v + k ≥ 0
            let range = &mut self.ranges[v as usize];
            let c = term.coefficient;
            if c > 0 {
                range.lower = range.lower.max(-(k.div_euclid(c)));
            } else {
                let bound = k.div_euclid(-c);
                range.upper = Some(range.upper.map_or(bound, |u| u.min(bound)));
            }
            return self.settle(v);
        }
        self.inequalities.push(e.clone());
        Some(())
    }

    /// Carries upper bounds through inequalities: `M <= N` and `N <= 5` bound M.
    pub(super) fn propagate(&mut self) -> Option<()> {
        // Each round passes bounds on by one fact; chains of facts are short.
        for _ in 0..4 {
            let mut learned = Vec::new();
            for e in &self.inequalities {
                for term in e.terms().iter().filter(|t| t.coefficient < 0) {
                    let [Atom::Var(v)] = term.atoms[..] else { continue };
                    // c·v ≤ rest, for the largest rest.
                    let rest = e.sub(&Expr::var(v).scale(term.coefficient));
                    let Some(most) = self.upper_bound(&rest) else { continue };
                    let bound = most.div_euclid(-term.coefficient);
                    if self.ranges.get(v as usize).is_some_and(|r| r.upper.is_none_or(|u| bound < u)) {
                        learned.push(Expr::constant(bound).sub(&Expr::var(v)));
                    }
                }
            }
            if learned.is_empty() {
                break;
            }
            for e in learned {
                self.learn_nonnegative(&self.normal(&e))?;
            }
        }
        Some(())
    }

    pub(super) fn learn_nonzero(&mut self, e: &Expr) -> Option<()> {
        if let Some(c) = e.as_constant() {
            return (c != 0).then_some(());
        }
        // Only the ends of a range can be moved; holes inside are evaluated on witnesses.
        let k = e.constant_term();
        if let [term] = e.sub(&Expr::constant(k)).terms()
            && let [Atom::Var(v)] = term.atoms[..]
            && k % term.coefficient == 0
        {
            let excluded = -(k / term.coefficient);
            let range = &mut self.ranges[v as usize];
            if excluded == range.lower {
                range.lower += range.modulus;
            }
            if Some(excluded) == range.upper {
                range.upper = Some(excluded - range.modulus);
            }
            return self.settle(v);
        }
        Some(())
    }

    /// Takes in `e ≡ 0 (mod modulus)`.
    pub(super) fn learn_congruence(&mut self, e: &Expr, modulus: i128) -> Option<()> {
        if modulus <= 1 || e.is_unknown() {
            return (modulus >= 1).then_some(());
        }
        let e = reduce(e, modulus);
        if let Some(c) = e.as_constant() {
            return (c % modulus == 0).then_some(());
        }
        let k = e.constant_term();
        if let [term] = e.sub(&Expr::constant(k)).terms()
            && let [Atom::Var(v)] = term.atoms[..]
        {
            // c·v ≡ −k (mod m): solvable iff g = gcd(c, m) divides k; then v is determined mod m / g.
            let g = gcd(term.coefficient, modulus);
            if k % g != 0 {
                return None;
            }
            let (c, m) = (term.coefficient / g, modulus / g);
            let inverse = modular_inverse(c.rem_euclid(m.max(1)), m)?;
            let residue = (-(k / g)).rem_euclid(m).checked_mul(inverse)?.rem_euclid(m);
            let range = &mut self.ranges[v as usize];
            let (modulus, residue) = merge_residues((range.modulus, range.residue), (m, residue))?;
            (range.modulus, range.residue) = (modulus, residue);
            return self.settle(v);
        }
        self.congruences.push((e, modulus));
        Some(())
    }

    /// Moves the ends of a range to members of its residue class; a range of one value is solved.
    pub(super) fn settle(&mut self, v: Var) -> Option<()> {
        if self.solved.iter().any(|(w, _)| *w == v) {
            return Some(());
        }
        let range = &mut self.ranges[v as usize];
        range.lower += (range.residue - range.lower).rem_euclid(range.modulus);
        if let Some(upper) = &mut range.upper {
            *upper -= (*upper - range.residue).rem_euclid(range.modulus);
            if *upper < range.lower {
                return None;
            }
            if *upper == range.lower {
                let value = Expr::constant(range.lower);
                return self.solve(v, value);
            }
        }
        Some(())
    }
}
