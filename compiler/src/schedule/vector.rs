//! Vector legality: contiguity, alignment, divisibility, decided at the axis that is finally vectorised.
//!
//! Property: every access called [`Class::Vector`] has, at every point whose lane 0 passes the guards, all V lanes
//! inside, at neighbouring offsets, starting at a multiple of V elements; so one aligned access serves all lanes.
//!
//! An offset is a quasi-affine expression E over the leaves, E = E(…, v, …). Quotients that contain the lane v are
//! *frozen*: ⌊(A + c·v) / N⌋ = ⌊A / N⌋ for 0 ≤ v < V if c·V | A and c·V | N (merging discontiguous axes is legal
//! exactly when the vector divides the inner extent: *Divisibility of Split*, discontiguous IterDomains), or if 0 ≤ A
//! and A + c·(V−1) < N, and then both are 0. After that E = base + step·v with both free of v; a contiguous merge
//! cancels its quotients by itself, which is the alternative to a factor that divides (docs/theory.md, Vectors). The
//! access is a vector iff step = 1 and V | base. A guard `index < extent` is uniform over the lanes iff its index is
//! frozen to step 0, or to step 1 with V | base and V | extent. That a read with `or` is inside is such a guard for
//! each dimension; integers of memory are free in it, and are the same for all lanes where they are read at one place.
//!
//! Approximated: divisibility is proved by residues. What cannot be proved here is decided in `memory`.
//!
//! Lanes that a thread accesses together in the buffer of a stage in shared memory ([`written`], [`read`]) are
//! neighbours in the buffer, and start at a multiple of their number: the formula above, for the place of an element in
//! the buffer; where chunks of 16 bytes change places, lanes of one chunk. An exclusive or is the same for all lanes
//! where both its operands are.

use super::accesses::{Access, FromMemory, of_roots};
use super::{BufferLayout, Spot, Stage};
use crate::domain::{AxisId, AxisKind, Binding, Symbolic};
use crate::extent::{Atom, Expr, Facts, Var};
use crate::source::Span;

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
    /// Whether its lanes are elements of the result, rather than terms of one.
    pub is_data: bool,
    /// The op.
    pub span: Span,
}

impl Vector {
    /// The vectorised leaf of a stage, if it has one.
    pub fn of(stage: &Stage, facts: &Facts) -> Option<Self> {
        let at = stage.domain.leaves.iter().position(|a| stage.domain.axes[*a].binding == Binding::Vector)?;
        let axis = stage.domain.leaves[at];
        let lanes = stage.domain.axes[axis].extent.as_constant()?;
        let is_data = stage.domain.axes[axis].kind == AxisKind::Data;
        Some(Self { axis, var: (facts.dims() + at) as Var, lanes, is_data, span: stage.domain.axes[axis].binding_span })
    }

    /// How `e` changes along the lanes.
    pub fn along(&self, e: &Expr, symbolic: &Symbolic, facts: &Facts) -> Along {
        let e = facts.normal(e);
        if e.is_unknown() {
            return Along::Straddles;
        }
        match self.freeze(&e, symbolic, facts, false) {
            Some(frozen) => self.step(&frozen, symbolic),
            None => Along::Straddles,
        }
    }

    /// Whether `e ≥ 0` provably holds for all lanes where it holds for one: e does not change, or falls by one a lane
    /// from one below a multiple of their number, or rises by one from such a multiple.
    pub fn is_uniform(&self, e: &Expr, symbolic: &Symbolic, facts: &Facts) -> bool {
        let Along::Affine { base, step } = self.along(e, symbolic, facts) else { return false };
        match step.as_constant() {
            Some(0) => true,
            Some(-1) => facts.proves_multiple(&base.add(&Expr::constant(1)), self.lanes),
            Some(1) => facts.proves_multiple(&base, self.lanes),
            _ => false,
        }
    }

    /// How `e` changes along lanes that no quotient tells apart: inside one row of what was merged.
    pub fn inside_row(&self, e: &Expr, symbolic: &Symbolic, facts: &Facts) -> Along {
        match self.freeze(&facts.normal(e), symbolic, facts, true) {
            Some(frozen) => self.step(&frozen, symbolic),
            None => Along::Straddles,
        }
    }

    /// Start and step of an expression whose quotients are free of the lane.
    fn step(&self, frozen: &Expr, symbolic: &Symbolic) -> Along {
        if frozen.vars().iter().any(|v| *v != self.var && symbolic.depends_on(&Expr::var(*v), self.var)) {
            return Along::Straddles; // through a swizzle
        }
        let (mut base, mut step) = (Expr::constant(0), Expr::constant(0));
        for term in frozen.terms() {
            let product = |atoms: &[Atom]| Expr::from_atoms(atoms).scale(term.coefficient);
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

    /// `e` with every quotient that contains the lane replaced by one that does not; none if one changes inside the
    /// vector. `in_row` supposes that none does.
    fn freeze(&self, e: &Expr, symbolic: &Symbolic, facts: &Facts, in_row: bool) -> Option<Expr> {
        if !e.vars().contains(&self.var) {
            return Some(e.clone());
        }
        let mut sum = Expr::constant(0);
        for term in e.terms() {
            let mut product = Expr::constant(term.coefficient);
            for atom in &term.atoms {
                let factor = match atom {
                    Atom::Var(v) => Expr::var(*v),
                    Atom::Quotient { of, by } => self.freeze_quotient(of, by, symbolic, facts, in_row)?,
                    Atom::Positive { of } if of.vars().contains(&self.var) => return None,
                    Atom::Positive { of } => of.positive(),
                };
                product = product.mul(&factor);
            }
            sum = sum.add(&product);
        }
        Some(sum)
    }

    fn freeze_quotient(&self, of: &Expr, by: &Expr, symbolic: &Symbolic, facts: &Facts, in_row: bool) -> Option<Expr> {
        let of = self.freeze(of, symbolic, facts, in_row)?;
        if by.vars().contains(&self.var) {
            return None;
        }
        let base = of.substitute(&|v| (v == self.var).then(|| Expr::constant(0)));
        let moving = of.sub(&base);
        if moving == Expr::constant(0) || in_row {
            return Some(base.floor_div(by));
        }
        // moving = c·v with a literal c ≥ 1
        let [term] = moving.terms() else { return None };
        if term.atoms != [Atom::Var(self.var)] || term.coefficient < 1 {
            return None;
        }
        let run = term.coefficient.checked_mul(self.lanes)?;
        let last = base.add(&Expr::constant(run.checked_sub(term.coefficient)?));
        let inside = symbolic.proves_nonnegative(facts, &base)
            && symbolic.proves_nonnegative(facts, &by.sub(&last).sub(&Expr::constant(1)));
        if inside {
            return Some(Expr::constant(0));
        }
        (facts.proves_multiple(&base, run) && facts.proves_multiple(by, run)).then(|| base.floor_div(by))
    }

    /// How an access of an accepted stage behaves.
    pub fn class(&self, access: &Access, symbolic: &Symbolic, facts: &Facts) -> Class {
        match access {
            Access { is_guarded: true, .. } if !self.has_one_guard(access, symbolic, facts) => Class::PerLane,
            // The lanes are elements, and they were found to be one vector; or terms of one element.
            Access { is_write: true, .. } if self.is_data && self.lanes > 1 => Class::Vector,
            Access { is_write: true, .. } => Class::Uniform,
            Access { gathered: Some(gathered), .. } => self.classify(&gathered.offset, symbolic, facts),
            _ => self.classify(&access.offset, symbolic, facts),
        }
    }

    /// Whether an expression is the same for all lanes.
    fn is_same(&self, e: &Expr, symbolic: &Symbolic, facts: &Facts) -> bool {
        match self.along(e, symbolic, facts) {
            Along::Affine { step, .. } => step.as_constant() == Some(0),
            Along::Straddles => false,
        }
    }

    /// Whether what decides that a read is made decides it for all lanes.
    pub fn has_one_guard(&self, access: &Access, symbolic: &Symbolic, facts: &Facts) -> bool {
        let gathered = access.gathered.as_deref();
        let indices = gathered.map_or(&access.indices, |gathered| &gathered.indices);
        let reads = gathered.map_or(&[][..], |gathered| &gathered.reads);
        !access.is_guarded || self.is_within_together((indices, &access.within), reads, symbolic, facts)
    }

    /// Whether elements with these indices, over what is read, are inside these sizes for all lanes or for none.
    pub fn is_within_together(
        &self,
        (indices, sizes): (&[Expr], &[Expr]),
        reads: &[FromMemory],
        symbolic: &Symbolic,
        facts: &Facts,
    ) -> bool {
        let is_together = |(index, size): (&Expr, &Expr)| {
            let left = size.sub(&Expr::constant(1)).sub(index);
            self.is_uniform(index, symbolic, facts) && self.is_uniform(&left, symbolic, facts)
        };
        let is_same = |e: &Expr| self.is_same(e, symbolic, facts);
        indices.len() == sizes.len()
            && indices.iter().zip(sizes).all(is_together)
            && reads.iter().flat_map(|read| &read.indices).all(is_same)
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

/// Bytes that change places together in a swizzle.
const CHUNK_BYTES: u32 = 16;

/// Of elements of so many bytes that the stage writes: the lanes that are written together; 1 where each lane goes by
/// itself.
pub fn written(stage: &Stage, layout: &BufferLayout, vector: &Vector, symbolic: &Symbolic, bytes: u32) -> u32 {
    let place = of_roots(&stage.place_in(layout), stage, symbolic);
    together(vector.classify(&place, symbolic, &stage.facts), layout, vector, bytes)
}

/// Of elements of `held` that a stage with a vector reads at `indices`.
pub fn read(
    (held, layout): (&Stage, &BufferLayout),
    indices: &[Expr],
    (vector, symbolic, facts): (&Vector, &Symbolic, &Facts),
    bytes: u32,
) -> u32 {
    let Spot { offset, opaque } = held.spot_in(layout, indices);
    let is_same = |e: &Expr| vector.is_same(e, symbolic, facts);
    if !opaque.iter().all(|(_, a, b)| is_same(a) && is_same(b)) {
        return 1;
    }
    together(vector.classify(&offset, symbolic, facts), layout, vector, bytes)
}

fn together(class: Class, layout: &BufferLayout, vector: &Vector, bytes: u32) -> u32 {
    let lanes = u32::try_from(vector.lanes).unwrap_or(1);
    let chunk = layout.columns.and_then(|columns| u32::try_from(columns.chunk).ok());
    match (class, chunk) {
        (Class::Vector, Some(chunk)) => return lanes.min(chunk),
        (_, Some(_)) => return 1,
        _ => {}
    }
    match class {
        Class::Vector if layout.is_swizzled() => lanes.min(CHUNK_BYTES / bytes.min(CHUNK_BYTES)),
        Class::Vector => lanes,
        Class::Uniform | Class::PerLane => 1,
    }
}
