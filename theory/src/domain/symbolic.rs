//! A domain's index maps as expressions over its leaves, for proofs.
//!
//! Leaf number `k` is the variable `dims + k`. An exclusive or is not quasi-affine: its result is a variable of its
//! own, of which only the range is known.

use super::{Arithmetic, AxisKind, Domain};
use crate::extent::{Atom, Expr, Facts, Family, System, Var};

/// A variable that ranges over `0..extent`.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The variable.
    pub var: Var,
    /// How many values it takes.
    pub extent: Expr,
    /// Whether it counts terms of a reduction: it may have no value at all where elements of the result exist.
    pub is_term: bool,
}

/// The value of every axis as an expression over dimensions and leaves.
#[derive(Clone, Debug)]
pub struct Symbolic {
    /// One expression per axis; [`Expr::unknown`] for an axis that has none.
    pub values: Vec<Expr>,
    /// The leaves, in the order of the domain's, then the results of swizzles.
    pub variables: Vec<Leaf>,
    /// For each swizzle result: its variable, and the two expressions whose exclusive or it is.
    pub opaque: Vec<Xor>,
}

/// A variable that stands for an exclusive or, and the two expressions that it is of.
pub type Xor = (Var, Expr, Expr);

struct Algebra<'a> {
    facts: &'a Facts,
    variables: Vec<Leaf>,
    opaque: Vec<Xor>,
    /// The number of the first variable.
    first: Var,
}

impl Algebra<'_> {
    /// Whether an expression mentions a leaf of a reduction.
    fn is_term(&self, e: &Expr) -> bool {
        let vars = e.vars();
        self.variables.iter().any(|leaf| leaf.is_term && vars.contains(&leaf.var))
    }
}

impl Arithmetic for Algebra<'_> {
    type Value = Expr;

    fn size(&mut self, e: &Expr) -> Expr {
        self.facts.normal(e)
    }
    fn add(&mut self, a: &Expr, b: &Expr) -> Expr {
        a.add(b)
    }
    fn mul(&mut self, a: &Expr, b: &Expr) -> Expr {
        a.mul(b)
    }
    fn div(&mut self, a: &Expr, b: &Expr) -> Expr {
        a.floor_div(b)
    }
    fn modulo(&mut self, a: &Expr, b: &Expr) -> Expr {
        a.modulo(b)
    }
    fn xor(&mut self, a: &Expr, b: &Expr, bound: &Expr) -> Expr {
        let var = self.first + self.variables.len() as Var;
        let (extent, is_term) = (self.facts.normal(bound), self.is_term(a) || self.is_term(b));
        self.variables.push(Leaf { var, extent, is_term });
        self.opaque.push((var, a.clone(), b.clone()));
        Expr::var(var)
    }
}

impl Symbolic {
    /// The index maps of a domain.
    pub fn new(domain: &Domain, facts: &Facts) -> Self {
        let mut values: Vec<Option<Expr>> = vec![None; domain.axes.len()];
        let mut variables = Vec::with_capacity(domain.leaves.len());
        for (k, axis) in domain.leaves.iter().enumerate() {
            let var = (facts.dims() + k) as Var;
            let extent = facts.normal(&domain.axes[*axis].extent);
            // A loop of one iteration has the index 0.
            values[*axis] = Some(if extent.as_constant() == Some(1) { Expr::constant(0) } else { Expr::var(var) });
            variables.push(Leaf { var, extent, is_term: domain.axes[*axis].kind == AxisKind::Reduction });
        }
        let mut algebra = Algebra { facts, variables, opaque: Vec::new(), first: facts.dims() as Var };
        domain.toward_roots(&mut algebra, &mut values);
        let values = values.into_iter().map(|v| v.unwrap_or_else(Expr::unknown)).collect();
        Self { values, variables: algebra.variables, opaque: algebra.opaque }
    }

    /// The same for what is evaluated beside a reduction: it may have no terms there, and units that are given terms
    /// come all the same. As ranges, extents of at least 1 say no more than that.
    pub fn beside_terms(&self, facts: &Facts) -> Self {
        let mut beside = self.clone();
        for leaf in beside.variables.iter_mut().filter(|leaf| leaf.is_term) {
            leaf.extent = facts.normal(&leaf.extent.maximum(&Expr::constant(1)));
        }
        beside
    }

    /// Every axis of a domain for these values of its first roots, over whatever these are over, none where one needs
    /// another root; and the variables in them that stand for exclusive ors, each of two expressions.
    pub fn from_roots(domain: &Domain, facts: &Facts, roots: &[Expr]) -> (Vec<Option<Expr>>, Vec<Xor>) {
        let mut values: Vec<Option<Expr>> = vec![None; domain.axes.len()];
        for (root, value) in domain.roots.iter().zip(roots) {
            values[*root] = Some(value.clone());
        }
        let mut algebra = Algebra { facts, variables: Vec::new(), opaque: Vec::new(), first: Family::XOR.var(0) };
        domain.toward_leaves(&mut algebra, &mut values);
        (values, algebra.opaque)
    }

    /// The leaves of a domain, in order, for these values of its first roots, over whatever these are over;
    /// [`Expr::unknown`] where one needs another root, or an exclusive or.
    pub fn leaves_of(domain: &Domain, facts: &Facts, roots: &[Expr]) -> Vec<Expr> {
        let (values, opaque) = Self::from_roots(domain, facts, roots);
        let opaque: Vec<Var> = opaque.into_iter().map(|o| o.0).collect();
        let known = |e: Expr| if e.vars().iter().any(|v| opaque.contains(v)) { Expr::unknown() } else { e };
        domain.leaves.iter().map(|leaf| values[*leaf].clone().map_or_else(Expr::unknown, known)).collect()
    }

    /// Whether an expression depends on a variable, directly or through a swizzle.
    pub fn depends_on(&self, e: &Expr, var: Var) -> bool {
        e.vars().into_iter().any(|v| {
            // A swizzle's operands mention only variables made before its result.
            v == var
                || (self.opaque.iter()).any(|(o, a, b)| *o == v && (self.depends_on(a, var) || self.depends_on(b, var)))
        })
    }

    /// The value of every variable at a point: dimensions, leaves, then the results of swizzles.
    pub fn assign(&self, dims: &[i64], leaves: &[i128]) -> Vec<i128> {
        let mut values: Vec<i128> = dims.iter().map(|d| i128::from(*d)).collect();
        values.extend_from_slice(leaves);
        for (_, a, b) in &self.opaque {
            let result = a.eval(&values).unwrap_or(0) ^ b.eval(&values).unwrap_or(0);
            values.push(result);
        }
        values
    }

    /// All that is known where `about` has a value: facts about dimensions, ranges of the variables. Those of a
    /// reduction count only if `about` mentions one: elsewhere the reduction may be empty, and its ranges would say
    /// that it is not. Expressions asked about must go through [`Facts::with_residues`].
    pub fn system(&self, facts: &Facts, about: &Expr) -> System {
        let mut system = facts.residue_system();
        let vars = about.vars();
        let has_terms = self.variables.iter().any(|leaf| leaf.is_term && vars.contains(&leaf.var));
        self.require_ranges(facts, &mut system, |leaf| has_terms || !leaf.is_term);
        system
    }

    /// Adds the ranges of those variables that `has_value` says are there, to a system of expressions with residues.
    pub fn require_ranges(&self, facts: &Facts, system: &mut System, has_value: impl Fn(&Leaf) -> bool) {
        for leaf in self.variables.iter().filter(|leaf| has_value(leaf)) {
            system.at_least(leaf.var, 0);
            let last = leaf.extent.sub(&Expr::constant(1)).sub(&Expr::var(leaf.var));
            system.require(&facts.with_residues(&last));
        }
    }

    /// The least and the largest value of a variable, of a loop or not.
    pub fn range(&self, facts: &Facts, v: Var) -> Option<(i128, i128)> {
        match self.variables.iter().find(|leaf| leaf.var == v) {
            Some(leaf) => Some((0, facts.upper_bound(&leaf.extent)? - 1)),
            None => Some((facts.lower_bound(&Expr::var(v))?, facts.upper_bound(&Expr::var(v))?)),
        }
    }

    /// Whether `e ≥ 0` follows from the ranges of loops one by one, as it does of most places in buffers: these are
    /// sums of loops and of their digits.
    pub fn is_in_ranges(&self, e: &Expr) -> bool {
        // Each term as a multiple of ⌊loop / by⌋.
        let mut digits: Vec<(Var, i128, i128)> = Vec::with_capacity(e.terms().len());
        for term in e.terms().iter().filter(|term| !term.atoms.is_empty()) {
            let [atom] = &term.atoms[..] else { return false };
            let (var, by) = match atom {
                Atom::Var(var) => (*var, 1),
                Atom::Quotient { of, by } => match (of.as_var(), by.as_constant()) {
                    (Some(var), Some(by)) => (var, by),
                    _ => return false,
                },
                Atom::Positive { .. } => return false,
            };
            digits.push((var, by, term.coefficient));
        }
        let mut least = e.constant_term();
        while let Some((var, by, coefficient)) = digits.pop() {
            let Some(leaf) = self.variables.iter().find(|leaf| leaf.var == var) else { return false };
            // ⌊v / by⌋ − n·⌊v / (n·by)⌋ = ⌊v / by⌋ mod n
            let other = digits.iter().position(|(v, wide, of)| {
                let (inner, outer) =
                    if by < *wide { ((by, coefficient), (*wide, *of)) } else { ((*wide, *of), (by, coefficient)) };
                *v == var && outer.0 % inner.0 == 0 && inner.1.checked_mul(outer.0 / inner.0) == outer.1.checked_neg()
            });
            let (coefficient, most) = match other.map(|at| digits.swap_remove(at)) {
                Some((_, wide, _)) if by < wide => (coefficient, Some(wide / by - 1)),
                Some((_, wide, of)) => (of, Some(by / wide - 1)),
                None => (coefficient, leaf.extent.as_constant().map(|extent| (extent - 1).max(0) / by)),
            };
            if coefficient < 0 {
                let Some(most) = most else { return false };
                least = least.saturating_add(coefficient.saturating_mul(most));
            }
        }
        !e.is_unknown() && least >= 0
    }

    /// Whether `e ≥ 0` provably holds at every point of every admissible size.
    pub fn proves_nonnegative(&self, facts: &Facts, e: &Expr) -> bool {
        self.proves_nonnegative_where(facts, &[], e)
    }

    /// The same at those points where none of the premises is negative.
    pub fn proves_nonnegative_where(&self, facts: &Facts, premises: &[Expr], e: &Expr) -> bool {
        let e = facts.with_residues(&facts.normal(e));
        if e.is_unknown() {
            return false;
        }
        if let Some(c) = e.as_constant() {
            return c >= 0;
        }
        if self.is_in_ranges(&e) {
            return true;
        }
        let mut system = self.system(facts, &e);
        for premise in premises {
            system.require(&facts.with_residues(&facts.normal(premise)));
        }
        system.require(&e.scale(-1).sub(&Expr::constant(1)));
        system.is_infeasible()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Sums of loops and of their digits, against enumeration.
    #[test]
    fn ranges_of_loops_are_never_wrong() {
        let mut random = Random(11);
        let (mut proved, mut left) = (0, 0);
        for _ in 0..3_000 {
            let extents = [0, 1].map(|_| 1 + random.below(12) as i128);
            let leaf = |(var, extent): (usize, &i128)| {
                let extent = Expr::constant(*extent);
                Leaf { var: var as Var, extent, is_term: false }
            };
            let variables = extents.iter().enumerate().map(leaf).collect();
            let symbolic = Symbolic { values: Vec::new(), variables, opaque: Vec::new() };
            let mut e = Expr::constant(random.below(30) as i128 - 3);
            for _ in 0..3 {
                let [by, radix] = [0, 1].map(|_| Expr::constant(1 + random.below(4) as i128));
                let quotient = Expr::var(random.below(2) as Var).floor_div(&by);
                let digit = if random.below(2) == 0 { quotient } else { quotient.modulo(&radix) };
                e = e.add(&digit.scale(random.below(9) as i128 - 4));
            }
            let points = (0..extents[0]).flat_map(|a| (0..extents[1]).map(move |b| [a, b]));
            let least = points.map(|point| e.eval(&point).expect("a value")).min();
            let holds = least >= Some(0);
            let is_proved = symbolic.is_in_ranges(&e);
            assert!(holds || !is_proved, "{} with {extents:?}", e.show(&|v| format!("v{v}")));
            proved += u32::from(is_proved);
            left += u32::from(holds && !is_proved);
        }
        assert!(proved > 600 && left < proved, "{proved} proved, {left} not");
    }
}
