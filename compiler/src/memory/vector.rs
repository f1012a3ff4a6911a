//! Vector legality: contiguity, alignment, divisibility, decided at the axis that is finally vectorised.
//!
//! Property: every access called [`Class::Vector`] has, at every point whose lane 0 passes the guards, all V lanes inside, at
//! neighbouring offsets, starting at a multiple of V elements; so one aligned access serves all lanes.
//!
//! An offset is a quasi-affine expression E over the leaves, E = E(…, v, …). Quotients that contain the lane v are *frozen*:
//! ⌊(A + c·v) / N⌋ = ⌊A / N⌋ for 0 ≤ v < V if c·V | A and c·V | N (merging discontiguous axes is legal exactly when the vector
//! divides the inner extent: *Divisibility of Split*, discontiguous IterDomains), or if 0 ≤ A and A + c·(V−1) < N, and then both
//! are 0. After that E = base + step·v with both free of v; a contiguous merge cancels its quotients by itself, which is the
//! alternative that theory.md §4 names. The access is a vector iff step = 1 and V | base. A guard `index < extent` is
//! uniform over the lanes iff its index is frozen to step 0, or to step 1 with V | base and V | extent.
//!
//! Approximated: divisibility is proved by residues; what cannot be proved is refused, with a witness if one is in reach.

use crate::diag::Diagnostics;
use crate::diag::tw02xx::SplitVector;
use crate::diag::tw04xx::{
    Element, LoopInsideVector, MisalignedVector, ScatteredVector, StraddlingVector, VectorWidth,
};
use crate::domain::{AxisId, AxisKind, Binding, Concrete, Symbolic};
use crate::extent::{Atom, Budget, Expr, Facts, Search, Var};
use crate::holes::{self, Holes, Side};
use crate::program::Program;
use crate::schedule::Stage;
use crate::syntax::Span;

use tilewright_kernel::info::DimKind;
use tilewright_kernel::size::{Constraint, Relation, Size, SizeOp};

/// Most lanes of a vectorised axis: four accesses of 16 one-byte elements, or sixteen of 4 words.
const LANE_LIMIT: i128 = 64;
/// Steps that one witness search may take.
const SEARCH_STEPS: u64 = 6_000;

/// How an expression changes along the vectorised axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Along {
    /// base + step · lane
    Affine {
        /// Value at lane 0.
        base: Expr,
        /// Difference of neighbouring lanes.
        step: Expr,
    },
    /// It is not affine: a quotient changes inside the vector.
    Straddles,
}

/// How an access behaves along the vectorised axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// All lanes access one element.
    Uniform,
    /// The lanes are one aligned vector.
    Vector,
    /// Each lane accesses its element on its own.
    PerLane,
}

/// The vectorised leaf of a stage.
#[derive(Clone, Debug)]
pub struct Vector {
    /// The leaf.
    pub axis: AxisId,
    /// Its variable in the symbolic domain.
    pub var: Var,
    /// Its extent.
    pub lanes: i128,
    /// The op.
    pub span: Span,
}

impl Vector {
    /// The vectorised leaf of a stage, if it has one.
    pub fn of(stage: &Stage, facts: &Facts) -> Option<Self> {
        let at = stage.domain.leaves.iter().position(|a| stage.domain.axes[*a].binding == Binding::Vector)?;
        let axis = stage.domain.leaves[at];
        let lanes = stage.domain.axes[axis].extent.as_constant()?;
        Some(Self { axis, var: (facts.dims() + at) as Var, lanes, span: stage.domain.axes[axis].binding_span })
    }

    /// How `e` changes along the lanes.
    pub fn along(&self, e: &Expr, symbolic: &Symbolic, facts: &Facts) -> Along {
        let e = facts.normal(e);
        if e.is_unknown() {
            return Along::Straddles;
        }
        let Some(frozen) = self.freeze(&e, symbolic, facts) else { return Along::Straddles };
        if frozen.vars().iter().any(|v| *v != self.var && symbolic.depends_on(&Expr::var(*v), self.var)) {
            return Along::Straddles; // through a swizzle
        }
        let (mut base, mut step) = (Expr::constant(0), Expr::constant(0));
        for term in frozen.terms() {
            let product = |atoms: &[Atom]| {
                atoms.iter().fold(Expr::constant(term.coefficient), |p, a| match a {
                    Atom::Var(v) => p.mul(&Expr::var(*v)),
                    Atom::Quotient { of, by } => p.mul(&of.floor_div(by)),
                })
            };
            match term.atoms.iter().filter(|a| **a == Atom::Var(self.var)).count() {
                0 => base = base.add(&product(&term.atoms)),
                1 => {
                    let others: Vec<Atom> = term.atoms.iter().filter(|a| **a != Atom::Var(self.var)).cloned().collect();
                    step = step.add(&product(&others));
                }
                _ => return Along::Straddles,
            }
        }
        if base.is_unknown() || step.is_unknown() { Along::Straddles } else { Along::Affine { base, step } }
    }

    /// `e` with every quotient that contains the lane replaced by one that does not; none if one changes inside the vector.
    fn freeze(&self, e: &Expr, symbolic: &Symbolic, facts: &Facts) -> Option<Expr> {
        if !e.vars().contains(&self.var) {
            return Some(e.clone());
        }
        let mut sum = Expr::constant(0);
        for term in e.terms() {
            let mut product = Expr::constant(term.coefficient);
            for atom in &term.atoms {
                let factor = match atom {
                    Atom::Var(v) => Expr::var(*v),
                    Atom::Quotient { of, by } => self.freeze_quotient(of, by, symbolic, facts)?,
                };
                product = product.mul(&factor);
            }
            sum = sum.add(&product);
        }
        Some(sum)
    }

    fn freeze_quotient(&self, of: &Expr, by: &Expr, symbolic: &Symbolic, facts: &Facts) -> Option<Expr> {
        let of = self.freeze(of, symbolic, facts)?;
        if by.vars().contains(&self.var) {
            return None;
        }
        let base = of.substitute(&|v| (v == self.var).then(|| Expr::constant(0)));
        let moving = of.sub(&base);
        if moving == Expr::constant(0) {
            return Some(of.floor_div(by));
        }
        // moving = c·v with a literal c ≥ 1
        let [term] = moving.terms() else { return None };
        if term.atoms != [Atom::Var(self.var)] || term.coefficient < 1 {
            return None;
        }
        let run = term.coefficient.checked_mul(self.lanes)?;
        if facts.proves_multiple(&base, run) && facts.proves_multiple(by, run) {
            return Some(base.floor_div(by));
        }
        let last = base.add(&Expr::constant(term.coefficient * (self.lanes - 1)));
        let inside = symbolic.proves_nonnegative(facts, &base)
            && symbolic.proves_nonnegative(facts, &by.sub(&last).sub(&Expr::constant(1)));
        inside.then(|| Expr::constant(0))
    }

    /// How the access at `offset` behaves; reads only.
    pub fn classify(&self, offset: &Expr, symbolic: &Symbolic, facts: &Facts) -> Class {
        match self.along(offset, symbolic, facts) {
            Along::Affine { step, .. } if step.as_constant() == Some(0) => Class::Uniform,
            Along::Affine { base, step }
                if step.as_constant() == Some(1) && facts.proves_multiple(&base, self.lanes) =>
            {
                Class::Vector
            }
            _ => Class::PerLane,
        }
    }
}

/// An access of a tensor parameter as expressions over dimensions and leaves.
#[derive(Clone, Debug)]
pub struct Access {
    /// Position of the parameter.
    pub parameter: u16,
    /// Index of each dimension.
    pub indices: Vec<Expr>,
    /// Element offset from the base.
    pub offset: Expr,
    /// The read, or the left-hand side.
    pub span: Span,
    /// Whether it is the write of the stage's result.
    pub is_write: bool,
    /// Whether each lane decides on its own whether it reads: a read with `or`, a gather, or one inside an `if`.
    pub is_guarded: bool,
}

/// Everything a check of one stage needs.
pub struct Check<'a> {
    /// The kernel.
    pub program: &'a Program,
    /// What is known of its dimensions.
    pub facts: &'a Facts,
    /// The stage.
    pub stage: &'a Stage,
    /// Its index maps.
    pub symbolic: &'a Symbolic,
    /// Its predicates.
    pub holes: &'a Holes,
}

impl Check<'_> {
    fn dim(&self, v: Var) -> String {
        self.program.dim_name(v as u16).to_owned()
    }

    fn dims(&self, dims: &[i64]) -> Vec<(String, i128)> {
        dims.iter().enumerate().map(|(d, v)| (self.dim(d as Var), i128::from(*v))).collect()
    }

    /// Checks the vectorised axis of a stage against its guards and its accesses.
    pub fn run(&self, vector: &Vector, accesses: &[Access], diags: &mut Diagnostics) {
        let domain = &self.stage.domain;
        let sequential: Vec<AxisId> =
            domain.leaves.iter().copied().filter(|a| domain.axes[*a].binding.is_sequential()).collect();
        let name = &domain.axes[vector.axis].name;
        if let Some(last) = sequential.last().filter(|a| **a != vector.axis) {
            let mut order: Vec<String> =
                sequential.iter().filter(|a| **a != vector.axis).map(|a| domain.axes[*a].name.clone()).collect();
            order.push(name.clone());
            let inside = domain.axes[*last].name.clone();
            diags.report(LoopInsideVector { axis: name.clone(), inside, span: vector.span, order });
            return;
        }
        if vector.lanes == 1 {
            return; // no vector: any element will do
        }
        let before = diags.found().len();
        self.guards(vector, diags);
        let mut reported = Vec::new();
        for access in accesses {
            if !reported.contains(&(access.parameter, access.is_write)) && self.access(vector, access, diags) {
                reported.push((access.parameter, access.is_write));
            }
        }
        let lanes = vector.lanes;
        if diags.found().len() == before && !(lanes > 0 && lanes <= LANE_LIMIT && lanes & (lanes - 1) == 0) {
            diags.report(VectorWidth { axis: name.clone(), lanes, limit: LANE_LIMIT, span: vector.span });
        }
    }

    /// Every guard is uniform over the lanes.
    fn guards(&self, vector: &Vector, diags: &mut Diagnostics) {
        let domain = &self.stage.domain;
        for predicate in &self.holes.kept {
            let extent = &domain.axes[predicate.axis].extent;
            let uniform =
                |facts: &Facts| match vector.along(&self.symbolic.values[predicate.axis], self.symbolic, facts) {
                    Along::Affine { base, step } => match step.as_constant() {
                        Some(0) => true,
                        Some(1) => {
                            facts.proves_multiple(&base, vector.lanes)
                                && (predicate.side == Side::Lower || facts.proves_multiple(extent, vector.lanes))
                        }
                        _ => false,
                    },
                    Along::Straddles => false,
                };
            if uniform(self.facts) {
                continue;
            }
            let witness = self.cut_vector(vector).map(|(dims, leaves, inside)| {
                let leaves = (domain.leaves.iter().zip(leaves))
                    .filter(|(a, _)| **a != vector.axis)
                    .map(|(a, v)| (domain.axes[*a].name.clone(), v))
                    .collect();
                (self.dims(&dims), leaves, inside)
            });
            let goal = self.facts.normal(extent);
            let fact = self.proposals(&[goal], vector.lanes, &uniform).into_iter().next();
            diags.report(SplitVector {
                axis: domain.axes[vector.axis].name.clone(),
                lanes: vector.lanes,
                guarded: (domain.axes[predicate.axis].name.clone(), extent.show(&|v| self.dim(v))),
                span: vector.span,
                cause: domain.ops[predicate.op].1,
                witness,
                fact,
            });
            return; // one cause, one message
        }
    }

    /// The smallest vector of which some lanes are inside and others are not.
    fn cut_vector(&self, vector: &Vector) -> Option<(Vec<i64>, Vec<i128>, i128)> {
        let domain = &self.stage.domain;
        let lane = domain.leaves.iter().position(|a| *a == vector.axis)?;
        let others: Vec<usize> = (0..domain.leaves.len()).filter(|k| *k != lane).collect();
        self.search(&others, |concrete, dims, point| {
            let mut point = point.to_vec();
            let inside = (0..vector.lanes)
                .filter(|v| {
                    point[lane] = *v;
                    let values = concrete.from_leaves(&point);
                    self.holes.kept.iter().all(|p| holes::holds(concrete, &values, p))
                })
                .count() as i128;
            point[lane] = 0;
            (inside > 0 && inside < vector.lanes).then(|| (dims.to_vec(), point, inside))
        })
    }

    /// The first hit over admissible dimensions and the points of some leaves.
    fn search<W>(
        &self,
        varying: &[usize],
        mut test: impl FnMut(&Concrete<'_>, &[i64], &[i128]) -> Option<W>,
    ) -> Option<W> {
        let mut relevant = holes::relevant_dims(&self.stage.domain, self.facts);
        // Strides decide alignment.
        relevant.extend(
            (0..self.program.dims.len()).filter(|d| self.program.dims[*d].kind == DimKind::Stride).map(|d| d as Var),
        );
        let mut budget = Budget::new(SEARCH_STEPS);
        let found = self.facts.smallest(&relevant, &mut budget, |dims, budget| {
            let concrete = Concrete::new(&self.stage.domain, dims)?;
            concrete.visit(varying, |point| {
                if !budget.take(1) {
                    return std::ops::ControlFlow::Break(None);
                }
                match test(&concrete, dims, point) {
                    Some(hit) => std::ops::ControlFlow::Break(Some(hit)),
                    None => std::ops::ControlFlow::Continue(()),
                }
            })?
        });
        match found {
            Search::Found(hit) => Some(hit),
            Search::None | Search::GaveUp => None,
        }
    }

    /// Checks one access; true if it was reported.
    fn access(&self, vector: &Vector, access: &Access, diags: &mut Diagnostics) -> bool {
        let domain = &self.stage.domain;
        let axis = domain.axes[vector.axis].name.clone();
        let tensor = self.program.parameters[usize::from(access.parameter)].name.to_string();
        let is_result = access.is_write && domain.axes[vector.axis].kind == AxisKind::Data;
        if access.is_write && !is_result {
            return false; // the lanes are terms of one element
        }
        let scattered = |step: Option<String>| ScatteredVector {
            axis: axis.clone(),
            tensor: tensor.clone(),
            step,
            witness: self.straddling_lanes(vector, access).map(|(dims, lanes)| (self.dims(&dims), lanes)),
            access: access.span,
            span: vector.span,
        };
        match vector.along(&access.offset, self.symbolic, self.facts) {
            Along::Affine { base, step } => match step.as_constant() {
                Some(1) => {
                    let aligned = |facts: &Facts| facts.proves_multiple(&base, vector.lanes);
                    if access.is_guarded || aligned(self.facts) {
                        return false;
                    }
                    let terms: Vec<Expr> = self.misaligned_terms(&base, vector.lanes);
                    let facts = self.proposals(&terms, vector.lanes, &aligned);
                    if facts.is_empty() && !access.is_write {
                        return false; // no fact helps: each lane reads its own element, and `explain` says so
                    }
                    let witness = self.misaligned_start(vector, access);
                    diags.report(MisalignedVector {
                        axis,
                        lanes: vector.lanes,
                        tensor,
                        access: access.span,
                        span: vector.span,
                        witness: witness.map(|(dims, indices, offset)| (self.dims(&dims), indices, offset)),
                        facts,
                    });
                    true
                }
                _ if is_result => {
                    diags.report(scattered(Some(step.show(&|v| self.variable(v)))));
                    true
                }
                _ => false,
            },
            Along::Straddles if access.is_guarded => false,
            // The read itself divides its index: each lane reads its own element.
            Along::Straddles if !access.is_write && !self.rows_straddle(vector) => false,
            Along::Straddles => {
                let witness = self.straddling_lanes(vector, access);
                if witness.is_none() && access.is_write {
                    diags.report(scattered(None));
                    return true;
                }
                let instead = (1..vector.lanes).rev().find(|lanes| {
                    let smaller = Vector { lanes: *lanes, ..vector.clone() };
                    lanes & (lanes - 1) == 0
                        && vector.lanes % lanes == 0
                        && *lanes > 1
                        && smaller.along(&access.offset, self.symbolic, self.facts) != Along::Straddles
                });
                diags.report(StraddlingVector {
                    axis,
                    lanes: vector.lanes,
                    tensor,
                    access: access.span,
                    span: vector.span,
                    witness: witness.map(|(dims, lanes)| (self.dims(&dims), lanes)),
                    instead,
                });
                true
            }
        }
    }

    /// Whether an axis of the stage changes inside the vector other than by counting: a merge of axes that the vector crosses.
    fn rows_straddle(&self, vector: &Vector) -> bool {
        let straddles =
            |root: &AxisId| vector.along(&self.symbolic.values[*root], self.symbolic, self.facts) == Along::Straddles;
        self.stage.domain.roots.iter().any(straddles)
    }

    fn variable(&self, v: Var) -> String {
        match (v as usize).checked_sub(self.facts.dims()) {
            None => self.dim(v),
            Some(k) => {
                self.stage.domain.leaves.get(k).map_or("?".to_owned(), |a| self.stage.domain.axes[*a].name.clone())
            }
        }
    }

    /// Offset and indices of an access at a point; none for an access that depends on values outside the domain.
    fn at(&self, access: &Access, dims: &[i64], point: &[i128]) -> Option<(Vec<i128>, i128)> {
        let values = self.symbolic.assign(dims, point);
        let indices = access.indices.iter().map(|e| e.eval(&values)).collect::<Option<Vec<_>>>()?;
        Some((indices, access.offset.eval(&values)?))
    }

    fn inside(&self, concrete: &Concrete<'_>, point: &[i128]) -> bool {
        let values = concrete.from_leaves(point);
        self.holes.kept.iter().all(|p| holes::holds(concrete, &values, p))
    }

    /// The smallest vector that starts at an offset that is not a multiple of its lanes.
    fn misaligned_start(&self, vector: &Vector, access: &Access) -> Option<(Vec<i64>, Vec<i128>, i128)> {
        let lane = self.stage.domain.leaves.iter().position(|a| *a == vector.axis)?;
        let others: Vec<usize> = (0..self.stage.domain.leaves.len()).filter(|k| *k != lane).collect();
        self.search(&others, |concrete, dims, point| {
            let (indices, offset) = self.at(access, dims, point)?;
            let misaligned = offset.rem_euclid(vector.lanes) != 0 && self.inside(concrete, point);
            misaligned.then(|| (dims.to_vec(), indices, offset))
        })
    }

    /// The smallest pair of neighbouring lanes that are not neighbours in memory.
    fn straddling_lanes(&self, vector: &Vector, access: &Access) -> Option<(Vec<i64>, [Element; 2])> {
        let lane = self.stage.domain.leaves.iter().position(|a| *a == vector.axis)?;
        let all: Vec<usize> = (0..self.stage.domain.leaves.len()).collect();
        self.search(&all, |concrete, dims, point| {
            if point[lane] + 1 >= vector.lanes || !self.inside(concrete, point) {
                return None;
            }
            let mut next = point.to_vec();
            next[lane] += 1;
            if !self.inside(concrete, &next) {
                return None;
            }
            let (a, b) = (self.at(access, dims, point)?, self.at(access, dims, &next)?);
            (b.1 != a.1 + 1).then(|| (dims.to_vec(), [a, b]))
        })
    }

    /// The parts of `e` over dimensions alone that are not known multiples of `m`: what a fact could be about.
    fn misaligned_terms(&self, e: &Expr, m: i128) -> Vec<Expr> {
        let mut parts: Vec<Expr> = Vec::new();
        for term in e.terms() {
            let mut part = Expr::constant(term.coefficient);
            for atom in &term.atoms {
                if let Atom::Var(v) = atom
                    && (*v as usize) < self.facts.dims()
                {
                    part = part.mul(&Expr::var(*v));
                }
            }
            if !self.facts.proves_multiple(&part, m) && !part.vars().is_empty() && !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts
    }

    /// Facts `… % m == 0` that make `goal` true: one per expression, about its last dimension if that suffices.
    fn proposals(&self, of: &[Expr], m: i128, goal: &dyn Fn(&Facts) -> bool) -> Vec<String> {
        let with = |extra: &[Constraint]| -> Option<Facts> {
            let mut all: Vec<Constraint> = self.program.facts.iter().map(|f| f.constraint.clone()).collect();
            all.extend_from_slice(extra);
            Facts::new(&self.program.dims, &all).ok()
        };
        let Ok(modulus) = i64::try_from(m) else { return Vec::new() };
        let multiple = |size: Size, text: String| Constraint {
            lhs: Size::binary(SizeOp::Mod, &size, &Size::constant(modulus)),
            relation: Relation::Eq,
            rhs: Size::constant(0),
            text: format!("{text} % {m} == 0").into(),
        };
        let mut extra: Vec<Constraint> = Vec::new();
        for e in of {
            let vars = e.vars();
            if with(&extra).is_some_and(|facts| facts.proves_multiple(e, m)) {
                continue;
            }
            let simple = vars.iter().rev().map(|v| multiple(Size::dim(*v as u16), self.dim(*v))).find(|c| {
                let mut trial = extra.clone();
                trial.push(c.clone());
                with(&trial).is_some_and(|facts| facts.proves_multiple(e, m))
            });
            let whole = || {
                let text = e.show(&|v| self.dim(v));
                let text = if vars.len() > 1 || e.terms().len() > 1 { format!("({text})") } else { text };
                e.to_size(self.facts.dims()).map(|size| multiple(size, text))
            };
            extra.extend(simple.or_else(whole));
        }
        let enough = !extra.is_empty() && with(&extra).is_some_and(|facts| goal(&facts));
        if enough { extra.into_iter().map(|c| c.text.into_owned()).collect() } else { Vec::new() }
    }
}
