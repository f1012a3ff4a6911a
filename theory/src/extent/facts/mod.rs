//! What is known about the dimensions: equalities solved, congruences merged, ranges kept.
//!
//! Facts of the `where` clause are sorted into four kinds: an equality that determines a dimension is solved and
//! substituted; congruences of one dimension are merged by the Chinese remainder theorem (checking fact by fact would
//! refuse falsely); bounds of one dimension become its range; what involves several dimensions is kept as an inequality
//! or a congruence of an expression. Every fact is also kept as it was written, for the evaluation of witnesses.

mod learn;

use tilewright_kernel::info::{Dim, DimKind};
use tilewright_kernel::size::{Constraint, Relation, Size, SizeOp};

use super::expr::{Atom, Expr, Var, gcd, lcm};
use super::linear::System;
use super::range::bound;

/// Most residue classes that one divisibility proof looks at.
const RESIDUE_LIMIT: i128 = 512;

/// Range and residue class of one dimension.
#[derive(Clone, Debug)]
struct Range {
    lower: i128,
    upper: Option<i128>,
    modulus: i128,
    residue: i128,
}

/// Facts about the dimensions of a kernel.
#[derive(Clone, Debug)]
pub struct Facts {
    ranges: Vec<Range>,
    /// Solved dimensions; a right side mentions no solved dimension.
    solved: Vec<(Var, Expr)>,
    /// Expressions over several dimensions that are multiples of a number.
    congruences: Vec<(Expr, i128)>,
    /// Expressions over several dimensions that are at least 0.
    inequalities: Vec<Expr>,
    constraints: Vec<Constraint>,
}

/// The facts exclude every size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Position of the fact that cannot hold together with the earlier ones.
    pub fact: usize,
}

impl Facts {
    /// The facts of a kernel with these dimensions: sizes are at least 1, strides at least 0.
    ///
    /// # Errors
    /// The first fact that contradicts those before it, as far as the four kinds tell.
    pub fn new(dims: &[Dim], constraints: &[Constraint]) -> Result<Self, Contradiction> {
        Self::with_zeros(dims, constraints, &[])
    }

    /// As [`Facts::new`], but the sizes named in `zeros` may also be 0.
    ///
    /// # Errors
    /// As [`Facts::new`].
    pub fn with_zeros(dims: &[Dim], constraints: &[Constraint], zeros: &[u16]) -> Result<Self, Contradiction> {
        let floor = |(at, dim): (usize, &Dim)| {
            let positive = dim.kind == DimKind::Size && !zeros.iter().any(|z| usize::from(*z) == at);
            Range { lower: i128::from(positive), upper: None, modulus: 1, residue: 0 }
        };
        let mut facts = Self {
            ranges: dims.iter().enumerate().map(floor).collect(),
            solved: Vec::new(),
            congruences: Vec::new(),
            inequalities: Vec::new(),
            constraints: constraints.to_vec(),
        };
        // Equalities first: what they determine simplifies everything else.
        let (equalities, others): (Vec<_>, Vec<_>) =
            constraints.iter().enumerate().partition(|(_, c)| c.relation == Relation::Eq && remainder(c).is_none());
        for (at, constraint) in equalities.into_iter().chain(others) {
            facts.learn(constraint).ok_or(Contradiction { fact: at })?;
        }
        facts.propagate().ok_or(Contradiction { fact: constraints.len().saturating_sub(1) })?;
        // Ranges and inequalities together may still exclude everything.
        if facts.system().is_infeasible() {
            return Err(Contradiction { fact: constraints.len().saturating_sub(1) });
        }
        Ok(facts)
    }

    /// The same facts for what stands inside loops, which to it are dimensions: one more for each extent, from 0 on and
    /// below the extent; without an extent, 0.
    ///
    /// # Errors
    /// Loops that have no iteration for any size; the position is that of the last fact.
    pub fn within(&self, loops: &[Option<Expr>]) -> Result<Self, Contradiction> {
        let mut inner = self.clone();
        let contradiction = Contradiction { fact: self.constraints.len().saturating_sub(1) };
        for extent in loops {
            let v = inner.ranges.len() as Var;
            inner.ranges.push(Range { lower: 0, upper: None, modulus: 1, residue: 0 });
            let last = extent.as_ref().map_or(Expr::constant(0), |e| inner.normal(e).sub(&Expr::constant(1)));
            if let Some(most) = inner.upper_bound(&last) {
                inner
                    .learn_nonnegative(&Expr::constant(most).sub(&Expr::var(v)))
                    .ok_or_else(|| contradiction.clone())?;
            }
            if last.as_constant().is_none() {
                inner.learn_nonnegative(&last.sub(&Expr::var(v))).ok_or_else(|| contradiction.clone())?;
            }
            let size = |e: &Expr| e.to_size(inner.ranges.len());
            if let (Some(lhs), Some(rhs)) = (size(&Expr::var(v)), size(&last)) {
                inner.constraints.push(Constraint { lhs, relation: Relation::Le, rhs, text: "".into() });
            }
        }
        Ok(inner)
    }

    /// Number of dimensions.
    pub fn dims(&self) -> usize {
        self.ranges.len()
    }

    /// The expression with every solved dimension replaced.
    #[must_use]
    pub fn normal(&self, e: &Expr) -> Expr {
        if self.solved.is_empty() {
            return e.clone();
        }
        e.substitute(&|v| self.solved.iter().find(|(w, _)| *w == v).map(|(_, value)| value.clone()))
    }

    /// A system that holds all linear facts, to which a question is added.
    pub fn system(&self) -> System {
        let mut system = System::new();
        for (v, range) in self.ranges.iter().enumerate() {
            let v = v as Var;
            if self.solved.iter().any(|(w, _)| *w == v) {
                continue;
            }
            system.at_least(v, range.lower);
            if let Some(upper) = range.upper {
                system.require(&Expr::constant(upper).sub(&Expr::var(v)));
            }
        }
        for e in &self.inequalities {
            system.require(e);
        }
        system
    }

    /// Whether `e ≥ 0` provably holds for every admissible size.
    pub fn proves_nonnegative(&self, e: &Expr) -> bool {
        let e = self.with_residues(&self.normal(e));
        if e.is_unknown() {
            return false;
        }
        if let Some(c) = e.as_constant() {
            return c >= 0;
        }
        let mut system = self.residue_system();
        system.require(&e.scale(-1).sub(&Expr::constant(1)));
        system.is_infeasible()
    }

    /// Each dimension with a residue class written as modulus · itself + residue, so that quotients simplify.
    #[must_use]
    pub fn with_residues(&self, e: &Expr) -> Expr {
        if self.ranges.iter().all(|range| range.modulus == 1) {
            return e.clone();
        }
        if self.ranges.iter().all(|range| range.residue == 0)
            && let Some(e) = e.with_factors(&|v| self.ranges.get(v as usize).map_or(1, |range| range.modulus))
        {
            return e;
        }
        e.substitute(&|v| {
            let range = self.ranges.get(v as usize)?;
            (range.modulus > 1).then(|| Expr::var(v).scale(range.modulus).add(&Expr::constant(range.residue)))
        })
    }

    /// As [`Facts::system`], for expressions that went through [`Facts::with_residues`].
    pub fn residue_system(&self) -> System {
        let mut system = System::new();
        for (v, range) in self.ranges.iter().enumerate() {
            let v = v as Var;
            if self.solved.iter().any(|(w, _)| *w == v) {
                continue;
            }
            system.at_least(v, (range.lower - range.residue).div_euclid(range.modulus));
            if let Some(upper) = range.upper {
                system.require(&Expr::constant((upper - range.residue).div_euclid(range.modulus)).sub(&Expr::var(v)));
            }
        }
        for e in &self.inequalities {
            system.require(&self.with_residues(e));
        }
        system
    }

    /// Whether `e` is provably a multiple of `m` (m ≥ 1) for every admissible size.
    pub fn proves_multiple(&self, e: &Expr, m: i128) -> bool {
        if m == 1 {
            return !e.is_unknown();
        }
        let e = self.normal(e);
        if e.is_unknown() || m < 1 {
            return false;
        }
        if is_multiple(&self.with_residues(&e), m) || self.by_congruence(&e, m) {
            return true;
        }
        self.by_residues(&e, m)
    }

    /// e ≡ t · c (mod m) for a known congruence c ≡ 0 (mod k) with m | t·k.
    fn by_congruence(&self, e: &Expr, m: i128) -> bool {
        self.congruences.iter().any(|(c, k)| {
            (1..=m.min(64)).any(|t| (t * k) % m == 0 && is_multiple(&self.with_residues(&e.sub(&c.scale(t))), m))
        })
    }

    /// Every residue class of every dimension by itself: N = L·q + r makes ⌊(bN + c) / d⌋ linear in q.
    fn by_residues(&self, e: &Expr, m: i128) -> bool {
        let vars = e.vars();
        let mut classes: Vec<(Var, i128, Vec<i128>)> = Vec::new();
        let mut count = 1_i128;
        let Some(period) = divisors_product(e).and_then(|p| p.checked_mul(m)) else { return false };
        for v in vars {
            let Some(range) = self.ranges.get(v as usize) else { return false };
            let Some(l) = lcm(range.modulus, period) else { return false };
            count = count.saturating_mul(l / range.modulus);
            if count > RESIDUE_LIMIT {
                return false;
            }
            let residues = (0..l / range.modulus).map(|i| range.residue + i * range.modulus).collect();
            classes.push((v, l, residues));
        }
        let mut pick = vec![0_usize; classes.len()];
        loop {
            let value = e.substitute(&|v| {
                let at = classes.iter().position(|c| c.0 == v)?;
                let (_, l, residues) = &classes[at];
                Some(Expr::var(v).scale(*l).add(&Expr::constant(residues[pick[at]])))
            });
            if !is_multiple(&value, m) {
                return false;
            }
            let Some(next) = (0..pick.len()).find(|i| pick[*i] + 1 < classes[*i].2.len()) else { return true };
            pick[next] += 1;
            pick[..next].fill(0);
        }
    }

    /// Largest value that `e` can take, as far as ranges tell: a literal that is at least as large.
    pub fn upper_bound(&self, e: &Expr) -> Option<i128> {
        e.as_constant().or_else(|| self.bound(&self.normal(e), true))
    }

    /// A literal that is at most the smallest value that `e` can take.
    pub fn lower_bound(&self, e: &Expr) -> Option<i128> {
        e.as_constant().or_else(|| self.bound(&self.normal(e), false))
    }

    fn bound(&self, e: &Expr, upper: bool) -> Option<i128> {
        bound(e, upper, &|v, upper| {
            let range = self.ranges.get(v as usize)?;
            if upper { range.upper } else { Some(range.lower) }
        })
    }

    /// First admissible value and step of a dimension, and its largest value if there is one.
    pub(super) fn progression(&self, v: usize) -> (i128, i128, Option<i128>) {
        let range = &self.ranges[v];
        (range.lower, range.modulus, range.upper)
    }

    /// The smallest value of a dimension from `least` on that its range and residue allow, and the step to the next
    /// one; none if the dimension depends on others, or ends before.
    pub fn from(&self, v: Var, least: i128) -> Option<(i128, i128)> {
        let is_tied = self.ties().iter().flatten().any(|d| Var::from(*d) == v);
        if is_tied || self.solution(v as usize).is_some() {
            return None;
        }
        let (first, step, last) = self.progression(v as usize);
        let value = first + (least - first).max(0).checked_add(step - 1)? / step * step;
        last.is_none_or(|last| value <= last).then_some((value, step))
    }

    /// The value of a solved dimension.
    pub fn solution(&self, v: usize) -> Option<&Expr> {
        self.solved.iter().find(|(w, _)| *w as usize == v).map(|(_, e)| e)
    }

    /// Whether concrete dimensions satisfy every fact as written, and the floors of sizes and strides.
    pub fn admits(&self, dims: &[i64]) -> bool {
        self.constraints.iter().all(|c| c.holds(dims) == Ok(true))
            && self.ranges.iter().zip(dims).all(|(r, d)| i128::from(*d) >= r.lower.min(1))
    }

    /// Groups of dimensions that occur together in a fact: each dimension with the others it is tied to.
    pub(super) fn ties(&self) -> Vec<Vec<u16>> {
        self.constraints.iter().map(Constraint::dims).filter(|d| d.len() > 1).collect()
    }
}

/// `e % m rel r` with literals m ≥ 1 and r, as (e, m, r).
fn remainder(constraint: &Constraint) -> Option<(Size, i128, i128)> {
    let r = constraint.rhs.as_constant()?;
    match *constraint.lhs.ops {
        [ref of @ .., SizeOp::Const(m), SizeOp::Mod] if m >= 1 => {
            Some((Size { ops: of.to_vec().into() }, i128::from(m), i128::from(r)))
        }
        _ => None,
    }
    .filter(|(_, m, r)| (0..*m).contains(r) || constraint.relation != Relation::Eq)
}

/// Coefficients reduced modulo m.
fn reduce(e: &Expr, m: i128) -> Expr {
    e.terms().iter().fold(Expr::constant(0), |sum, t| {
        let c = t.coefficient.rem_euclid(m);
        sum.add(&if t.atoms.is_empty() { Expr::constant(c) } else { Expr::from_atoms(&t.atoms).scale(c) })
    })
}

/// Whether every coefficient is a multiple of m.
fn is_multiple(e: &Expr, m: i128) -> bool {
    !e.is_unknown() && e.terms().iter().all(|t| t.coefficient % m == 0)
}

impl Expr {
    /// A common period of its quotients: the product of their literal divisors. None if one is symbolic or it is large.
    pub fn divisors(&self) -> Option<i128> {
        divisors_product(self)
    }
}

/// Product of the literal divisors in `e`; none if one is symbolic or the product is large.
fn divisors_product(e: &Expr) -> Option<i128> {
    let mut product = 1_i128;
    for atom in e.terms().iter().flat_map(|t| &t.atoms) {
        let period = match atom {
            Atom::Var(_) => 1,
            Atom::Quotient { of, by } => by.as_constant()?.checked_mul(divisors_product(of)?)?,
            // Not periodic: a residue class has members on both sides of 0.
            Atom::Positive { .. } => return None,
        };
        product = lcm(product, period)?;
        if product > RESIDUE_LIMIT {
            return None;
        }
    }
    Some(product)
}

/// x with c·x ≡ 1 (mod m), for c coprime to m.
fn modular_inverse(c: i128, m: i128) -> Option<i128> {
    if m == 1 {
        return Some(0);
    }
    let (mut old, mut new) = ((c, 1_i128), (m, 0_i128));
    while new.0 != 0 {
        let q = old.0 / new.0;
        (old, new) = (new, (old.0 - q * new.0, old.1 - q * new.1));
    }
    (old.0 == 1).then(|| old.1.rem_euclid(m))
}

/// Chinese remainders of two classes (modulus, residue); none if they do not meet, or the modulus would be huge.
fn merge_residues(a: (i128, i128), b: (i128, i128)) -> Option<(i128, i128)> {
    let g = gcd(a.0, b.0);
    if (a.1 - b.1) % g != 0 {
        return None;
    }
    let m = lcm(a.0, b.0)?;
    let step = modular_inverse((a.0 / g).rem_euclid(b.0 / g), b.0 / g)?;
    let t = ((b.1 - a.1) / g).checked_mul(step)?.rem_euclid(b.0 / g);
    Some((m, (a.1 + a.0.checked_mul(t)?).rem_euclid(m)))
}
