//! What the reader of staged copies demands of their holes, and which of its predicates that makes needless; and which
//! predicates the copy that stores elements makes needless.
//!
//! **Property.** Where the terms of a reduction are computed, a predicate is waived only if the points that it would
//! keep away do no harm: every read stays in its buffer or tensor and is of nothing that the kernel writes, and the
//! term is neutral. Predicates on elements need no neutral term, since what such points accumulate is never stored.
//! **Formula.** docs/theory.md, What readers demand. Per predicate and tensor a reader demands *nothing* (it is
//! predicated), *anything* (a hole may hold any element) or *zero*. A slot is zero if its position lies outside the
//! tensor, which the accelerator fills, or outside the region if the copy's level admits to send whole copies out of
//! bounds (Theorem G). Which it is follows from a linear system: the ranges of all loops, the predicates that are still
//! tested, and the failure of the one in question; a position inside must be infeasible in it. **Approximation.**
//! "Feasible" says nothing: then the predicate is tested.
//!
//! Where a copy stores elements by tiles, a predicate on them is waived only if each point that it would keep away
//! writes a slot of its own for an element outside the tensor, and reads nothing that is not there.
//!
//! Waiving one after the other is sound: of the waived predicates that fail at a point, take the one that was waived
//! last; all that were tested when it was judged hold there.

use std::cell::{Cell, RefCell};

use tilewright_kernel::algorithm::{Binary, Compare, Source, Value, ValueId};
use tilewright_kernel::info::{DimKind, Role};

use super::reach::Level;
use crate::domain::{AxisId, AxisKind, Unit};
use crate::extent::{Expr, Facts, System, Var};
use crate::holes::neutral::{self, Known};
use crate::holes::{self, Predicate};
use crate::plan::staged::{Staged, Way};
use crate::plan::{Analysed, Demand, Waiver};
use crate::program::{INLINE_LIMIT, Program, expressions};
use crate::schedule::accesses::{Access, Inner, stage_scope};

/// The predicates that the reduction of a stage need not test before its terms. Copies that have to be sent out of
/// bounds for that are marked.
pub fn waive(reader: &mut Analysed) -> Vec<Waiver> {
    let mut waived: Vec<Waiver> = Vec::new();
    let (program, facts) = (&reader.stage.program, &reader.stage.facts);
    let Some(reduction) = reader.stage.reduction else { return waived };
    let reads = |s: &&Staged| in_terms(reader).any(|a| s.is_for(a.parameter, a.value));
    if !reader.staged.iter().any(|s| reads(&s)) || divides(program, reduction, &mut 0) {
        return waived;
    }
    // What other stages hold of holes is not known.
    if reader.reads.iter().any(|read| read.in_terms) {
        return waived;
    }
    // Terms first: what they demand of zeros is worth more than elements that are thrown away.
    let is_term = |p: usize| reader.stage.domain.axes[reader.holes.kept[p].axis].kind == AxisKind::Reduction;
    let mut order: Vec<usize> = (0..reader.holes.kept.len()).collect();
    order.sort_by_key(|p| !is_term(*p));
    let mut redirected: Vec<String> = Vec::new();
    for predicate in order {
        let tested = |p: &usize| *p != predicate && !waived.iter().any(|w| w.predicate == *p);
        let tested: Vec<Predicate> =
            (0..reader.holes.kept.len()).filter(tested).map(|p| reader.holes.kept[p]).collect();
        let failing = Points { program, facts, reader, tested, failed: Some(reader.holes.kept[predicate]) };
        if !in_terms(reader).all(|access| failing.is_safe(access)) {
            continue;
        }
        if !is_term(predicate) {
            if !surrounds_terms_alone(reader, reader.holes.kept[predicate].axis) {
                continue;
            }
            waived.push(Waiver { predicate, demand: Demand::Anything });
            continue;
        }
        let asked = Asked { failing: &failing, redirected: Cell::new(false), zeros: RefCell::default() };
        if neutral::is_neutral(program, reduction, &stage_scope(&reader.stage, &reader.symbolic), &asked) {
            let mut zeros = asked.zeros.into_inner();
            zeros.sort();
            zeros.dedup();
            if asked.redirected.get() {
                redirected.extend(zeros.iter().cloned());
            }
            waived.push(Waiver { predicate, demand: Demand::Zero(zeros) });
        }
    }
    let needs = |s: &&mut Staged| redirected.contains(&s.name);
    for staged in reader.staged.iter_mut().filter(needs) {
        staged.redirect |= staged.level(&reader.stage.facts, &reader.symbolic) == Level::Redirect;
    }
    waived.sort_by_key(|w| w.predicate);
    waived
}

/// The predicates that a stage need not test before it writes its elements to shared memory, from where copies store
/// them: those that keep away elements outside the tensor, which such a copy leaves out. The element has a slot of its
/// own, and making it does no harm: it reads what tensor cores made, of which there is all of a tile, slots of copies,
/// and tensors inside their bounds.
pub fn clipped(analysed: &[Analysed], own: usize) -> Vec<Waiver> {
    let writer = &analysed[own];
    let mut waived: Vec<Waiver> = Vec::new();
    let Analysed { stage, holes, accesses, reads, .. } = writer;
    let is_product = |of: &Analysed| of.stage.product.is_some();
    let of_product = |source: &Source| analysed.iter().any(|a| a.stage.serves.contains(source) && is_product(a));
    let mut inner = analysed.iter().filter(|a| a.stage.attach.as_ref().is_some_and(|attach| attach.stage == own));
    // What threads make in its loops they make where they come at all.
    if stage.reduction.is_some() || !inner.all(is_product) || !reads.iter().all(|read| of_product(&read.source)) {
        return waived;
    }
    let mut stores = Vec::new();
    for write in accesses.iter().filter(|a| a.is_write) {
        let copy = |s: &&Staged| s.way == Way::Store && s.parameter == write.parameter && s.has_map();
        let Some(copy) = writer.staged.iter().find(copy) else { return waived };
        stores.push((write, copy));
    }
    let equation = &stage.program.algorithm.equations[stage.equation];
    let components = &stage.program.algorithm.components[equation.components.range()];
    if stores.is_empty() || components.iter().any(|c| divides(&stage.program, c.value, &mut 0)) {
        return waived;
    }
    let points =
        |tested, failed| Points { program: &stage.program, facts: &stage.facts, reader: writer, tested, failed };
    let all = points(Vec::new(), None);
    if !stores.iter().all(|(write, copy)| all.has_slot(copy, write)) {
        return waived;
    }
    // Most reads are safe whatever is tested.
    let asks: Vec<&Access> = accesses.iter().filter(|a| !a.is_write && !all.is_safe(a)).collect();
    for predicate in 0..holes.kept.len() {
        let tested = |p: &usize| *p != predicate && !waived.iter().any(|w| w.predicate == *p);
        let tested = (0..holes.kept.len()).filter(tested).map(|p| holes.kept[p]).collect();
        let failing = points(tested, Some(holes.kept[predicate]));
        if stores.iter().all(|(write, copy)| failing.is_left_out(copy, write))
            && asks.iter().all(|a| failing.is_safe(a))
        {
            waived.push(Waiver { predicate, demand: Demand::Clipped });
        }
    }
    waived
}

/// Whether the predicate on an axis of elements would be tested for the terms alone: it is decided inside the loops
/// over them, or threads disagree on it and have to wait for copies first. Elsewhere one test is for the terms and for
/// the store.
fn surrounds_terms_alone(reader: &Analysed, axis: AxisId) -> bool {
    let domain = &reader.stage.domain;
    let leaves: Vec<AxisId> = domain.leaves.iter().copied().filter(|l| domain.depends_on(axis, *l)).collect();
    let sequence: Vec<AxisId> =
        domain.leaves.iter().copied().filter(|l| domain.axes[*l].binding.is_sequential()).collect();
    let terms = sequence.iter().position(|l| domain.axes[*l].kind == AxisKind::Reduction);
    let is_inside = |leaf: &AxisId| sequence.iter().position(|l| l == leaf) >= Some(terms.unwrap_or(sequence.len()));
    let threads = |leaf: &AxisId| Unit::of(domain.axes[*leaf].binding) > Some(Unit::Cta);
    let waits = reader.staged.iter().any(|s| s.way == Way::Load && is_inside(&s.attach.leaf));
    leaves.iter().any(is_inside) || waits && leaves.iter().any(threads)
}

fn in_terms(reader: &Analysed) -> impl Iterator<Item = &Access> {
    reader.accesses.iter().filter(|a| a.in_terms && !a.is_write)
}

/// Whether a value divides integers by what is no literal: the divisor is known not to be zero where there are terms,
/// only.
fn divides(program: &Program, id: ValueId, nodes: &mut u32) -> bool {
    *nodes += 1;
    let algorithm = &program.algorithm;
    let own = match algorithm.values[id as usize] {
        Value::Binary(Binary::Div | Binary::Rem, _, b) => {
            !algorithm.types[b as usize].is_float() && !matches!(algorithm.values[b as usize], Value::Literal(_))
        }
        Value::Read { source: Source::Equation { equation, component }, .. } => {
            let components = algorithm.equations[usize::from(equation)].components;
            let component = &algorithm.components[components.range()][usize::from(component)];
            divides(program, component.value, nodes)
        }
        _ => false,
    };
    own || *nodes > INLINE_LIMIT || algorithm.operands(id).into_iter().any(|v| divides(program, v, nodes))
}

/// The points of a stage's loops, inside those over the terms, at which the predicates that are tested hold and one, if
/// there is one, fails.
struct Points<'a> {
    program: &'a Program,
    facts: &'a Facts,
    reader: &'a Analysed,
    tested: Vec<Predicate>,
    failed: Option<Predicate>,
}

impl Points<'_> {
    /// Each of them with further axes, as a solution.
    fn system(&self, inner: &[Inner]) -> System {
        let (facts, symbolic) = (self.facts, &self.reader.symbolic);
        let mut system = facts.residue_system();
        let one = Expr::constant(1);
        symbolic.require_ranges(facts, &mut system, |_| true);
        // Copies are for launches in which every size is at least 1 (`lower::index_width::filled`).
        for (d, _) in self.program.dims.iter().enumerate().filter(|(_, dim)| dim.kind == DimKind::Size) {
            system.require(&facts.with_residues(&facts.normal(&Expr::var(d as Var).sub(&one))));
        }
        for axis in inner {
            let at = Expr::var(axis.var);
            system.require(&facts.with_residues(&at.sub(&axis.lower)));
            system.require(&facts.with_residues(&axis.upper.sub(&one).sub(&at)));
        }
        let slack = |p: &Predicate| holes::slack(&self.reader.stage.domain, facts, symbolic, p);
        for p in &self.tested {
            system.require(&slack(p));
        }
        if let Some(failed) = &self.failed {
            system.require(&slack(failed).scale(-1).sub(&one));
        }
        system
    }

    /// Whether no point has all of these at least 0.
    fn never(&self, inner: &[Inner], conditions: &[Expr]) -> bool {
        let mut system = self.system(inner);
        for condition in conditions {
            system.require(&self.facts.with_residues(&self.facts.normal(condition)));
        }
        system.is_infeasible()
    }

    fn staged(&self, parameter: u16, read: Option<ValueId>) -> Option<&Staged> {
        self.reader.staged.iter().find(|s| s.is_for(parameter, read))
    }

    /// `0 ≤ e < size`, as two expressions that are at least 0.
    fn within(e: &Expr, size: &Expr) -> [Expr; 2] {
        [e.clone(), size.sub(e).sub(&Expr::constant(1))]
    }

    /// Whether a read stays inside its buffer or its tensor, and is of nothing that others write: in place, each point
    /// has its own element only.
    fn is_safe(&self, access: &Access) -> bool {
        let is_input = || expressions::tensor(self.program, access.parameter).is_some_and(|t| t.role == Role::Input);
        let ranges: Vec<(Expr, Expr)> = match self.staged(access.parameter, access.value) {
            Some(staged) => return self.has_slot(staged, access),
            None if !is_input() => return false,
            None if access.has_or => return true,
            None => access.indices.iter().cloned().zip(self.sizes(access.parameter)).collect(),
        };
        self.are_within(access, &ranges)
    }

    /// Whether a copy to a tensor leaves out what is written: it lies outside the tensor.
    fn is_left_out(&self, copy: &Staged, write: &Access) -> bool {
        let places = copy.places(&write.indices);
        let inside = places.iter().zip(&copy.axes).flat_map(|((at, _), axis)| Self::within(at, &axis.size));
        let inside: Vec<Expr> = inside.map(|e| self.facts.normal(&e)).collect();
        // Most predicates say that an index lies inside.
        let (domain, symbolic) = (&self.reader.stage.domain, &self.reader.symbolic);
        let failed = self.failed.map(|p| holes::slack(domain, self.facts, symbolic, &p));
        let is_one = failed.is_some_and(|failed| inside.contains(&self.facts.normal(&failed)));
        !inside.iter().any(Expr::is_unknown) && (is_one || self.never(&[], &inside))
    }

    /// Whether an access stays inside the buffer of a copy.
    fn has_slot(&self, staged: &Staged, access: &Access) -> bool {
        let slots = |n: usize| Expr::constant(staged.axes[n].boxes() * staged.axes[n].boxed.box_size);
        let places = staged.places(&access.indices).into_iter().enumerate();
        self.are_within(access, &places.map(|(n, (_, offset))| (offset, slots(n))).collect::<Vec<_>>())
    }

    /// Whether expressions of an access are in `0 ≤ e < size`.
    fn are_within(&self, access: &Access, ranges: &[(Expr, Expr)]) -> bool {
        let negative = |e: &Expr| e.scale(-1).sub(&Expr::constant(1));
        ranges.iter().all(|(e, size)| {
            let below = Self::within(e, size);
            !e.is_unknown() && below.iter().all(|e| self.never(&access.inner, &[negative(e)]))
        })
    }

    fn sizes(&self, parameter: u16) -> Vec<Expr> {
        let tensor = expressions::tensor(self.program, parameter);
        tensor.map_or_else(Vec::new, |t| t.shape.iter().map(|s| self.facts.normal(&Expr::from_size(s))).collect())
    }
}

/// What the term is told about those points, and what it relied on.
struct Asked<'a> {
    failing: &'a Points<'a>,
    /// Whether a zero takes that copies are sent out of bounds.
    redirected: Cell<bool>,
    /// Copies of which a zero was promised.
    zeros: RefCell<Vec<String>>,
}

impl Known for Asked<'_> {
    fn is_zero(&self, read: ValueId, parameter: u16, indices: &[Expr]) -> bool {
        let Some(staged) = self.failing.staged(parameter, Some(read)).filter(|s| !s.any) else { return false };
        let places = staged.places(indices);
        let mut inside: Vec<Expr> = Vec::new();
        for ((position, _), axis) in places.iter().zip(&staged.axes) {
            inside.extend(Points::within(position, &axis.size));
        }
        let mut zero = self.failing.never(&[], &inside);
        if !zero {
            // Not outside the tensor: then outside the region, if all such slots can be had as zeros.
            for ((_, offset), axis) in places.iter().zip(&staged.axes) {
                inside.extend(Points::within(offset, &Expr::constant(axis.region.extent)));
            }
            let Points { facts, reader, .. } = self.failing;
            zero = self.failing.never(&[], &inside) && staged.level(facts, &reader.symbolic) != Level::Impossible;
            self.redirected.set(self.redirected.get() | zero);
        }
        if zero {
            self.zeros.borrow_mut().push(staged.name.clone());
        }
        zero
    }

    fn is_outside(&self, parameter: u16, indices: &[Expr]) -> bool {
        let sizes = self.failing.sizes(parameter);
        let inside: Vec<Expr> = indices.iter().zip(&sizes).flat_map(|(e, size)| Points::within(e, size)).collect();
        self.failing.never(&[], &inside)
    }

    fn compares(&self, op: Compare, a: &Expr, b: &Expr) -> Option<bool> {
        let below = b.sub(a).sub(&Expr::constant(1));
        let above = a.sub(b).sub(&Expr::constant(1));
        let (at_most, at_least) = (b.sub(a), a.sub(b));
        let never = |e: &[&Expr]| {
            let conditions: Vec<Expr> = e.iter().map(|e| (*e).clone()).collect();
            !conditions.iter().any(Expr::is_unknown) && self.failing.never(&[], &conditions)
        };
        let (equal, different) = (never(&[&below]) && never(&[&above]), never(&[&at_most, &at_least]));
        let answer = |holds: bool, fails: bool| if holds { Some(true) } else { fails.then_some(false) };
        match op {
            Compare::Eq => answer(equal, different),
            Compare::Ne => answer(different, equal),
            Compare::Lt => answer(never(&[&at_least]), never(&[&below])),
            Compare::Le => answer(never(&[&above]), never(&[&at_most])),
            Compare::Gt => answer(never(&[&at_most]), never(&[&above])),
            Compare::Ge => answer(never(&[&below]), never(&[&at_least])),
        }
    }
}
