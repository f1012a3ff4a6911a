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
use crate::holes;
use crate::holes::neutral::{self, Known};
use crate::plan::roles::copies_around;
use crate::plan::staged::{Staged, Way};
use crate::plan::{Analysed, Demand, Waiver};
use crate::program::{INLINE_LIMIT, Program, expressions};
use crate::schedule::accesses::{Access, Inner, stage_scope};
use crate::schedule::index_of_dims;

/// The predicates that the reduction of a stage need not test before its terms, and the copies in its loops that have
/// to be sent out of bounds for that.
pub fn waive(analysed: &[Analysed], own: usize) -> (Vec<Waiver>, Vec<String>) {
    let reader = &analysed[own];
    let (mut waived, mut redirected) = (Vec::new(), Vec::new());
    let program = &reader.stage.program;
    let reduction = reader.stage.reduction.filter(|_| !reader.holes.kept.is_empty());
    let Some(reduction) = reduction else { return (waived, redirected) };
    let is_product = reader.stage.product.is_some();
    let copies = if is_product { copies_around(analysed, own) } else { reader.staged.iter().collect() };
    let reads = |s: &&&Staged| in_terms(reader).any(|a| s.is_for(a.parameter, a.value));
    // What other stages hold of holes is not known, but of factors.
    let is_unknown = !is_product && reader.reads.iter().any(|read| read.in_terms);
    if !(is_product || copies.iter().any(|s| reads(&s))) || divides(program, reduction, &mut 0) || is_unknown {
        return (waived, redirected);
    }
    // Terms first: what they demand of zeros is worth more than elements that are thrown away.
    let is_term = |p: usize| reader.stage.domain.axes[reader.holes.kept[p].axis].kind == AxisKind::Reduction;
    let mut order: Vec<usize> = (0..reader.holes.kept.len()).collect();
    order.sort_by_key(|p| !is_term(*p));
    let all = Points::all(reader, &copies);
    // Tensor cores read their factors alone: where these lie, the copies ask.
    let is_read = |access: &&Access| !is_product || copies.iter().any(|s| s.is_for(access.parameter, access.value));
    let asks = all.doubtful(in_terms(reader).filter(is_read));
    for predicate in order {
        let tested = |p: &usize| *p != predicate && !waived.iter().any(|w: &Waiver| w.predicate == *p);
        let failing = all.at(tested, predicate);
        if !asks.iter().all(|access| failing.is_safe(access)) {
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
    waived.sort_by_key(|w| w.predicate);
    (waived, redirected)
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
    let copies: Vec<&Staged> = writer.staged.iter().collect();
    let all = Points::all(writer, &copies);
    if !stores.iter().all(|(write, copy)| all.has_slot(copy, write)) {
        return waived;
    }
    let asks = all.doubtful(accesses.iter().filter(|a| !a.is_write));
    for predicate in 0..holes.kept.len() {
        let tested = |p: &usize| *p != predicate && !waived.iter().any(|w| w.predicate == *p);
        let failing = all.at(tested, predicate);
        if stores.iter().all(|(write, copy)| failing.is_left_out(copy, write))
            && asks.iter().all(|a| failing.is_safe(a))
        {
            waived.push(Waiver { predicate, demand: Demand::Clipped });
        }
    }
    waived
}

/// Whether a copy holds zeros wherever a read goes outside of its tensor: tensor cores take these for what `or 0` says.
pub fn is_zero_outside(analysed: &[Analysed], own: usize, access: &Access) -> bool {
    let reader = &analysed[own];
    let (copies, Some(read)) = (copies_around(analysed, own), access.value) else { return false };
    let all = Points::all(reader, &copies);
    let sides = access.indices.iter().zip(all.sizes(access.parameter)).flat_map(|(e, size)| Points::within(e, &size));
    sides.collect::<Vec<_>>().into_iter().all(|inside| {
        let failing = all.outside(all.facts.with_residues(&all.facts.normal(&inside)));
        let asked = Asked { failing: &failing, redirected: Cell::new(false), zeros: RefCell::default() };
        asked.is_zero(read, Source::Parameter(access.parameter), &access.indices) && !asked.redirected.get()
    })
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

/// Points of a stage's loops, inside those over the terms: all of them, or those at which the predicates that are
/// tested hold and one fails.
struct Points<'a> {
    program: &'a Program,
    facts: &'a Facts,
    reader: &'a Analysed,
    /// The copies that it reads or writes.
    copies: &'a [&'a Staged],
    /// Each of them, as a solution.
    system: System,
    /// What the predicate that fails demands, as an expression that is negative.
    failed: Option<Expr>,
}

impl<'a> Points<'a> {
    /// All points, whatever is tested.
    fn all(reader: &'a Analysed, copies: &'a [&'a Staged]) -> Self {
        let (program, facts) = (&reader.stage.program, &reader.stage.facts);
        let mut system = facts.residue_system();
        reader.symbolic.require_ranges(facts, &mut system, |_| true);
        // Copies are for launches in which every size is at least 1 (`lower::index_width::filled`).
        for (d, _) in program.dims.iter().enumerate().filter(|(_, dim)| dim.kind == DimKind::Size) {
            system.require(&facts.with_residues(&facts.normal(&Expr::var(d as Var).sub(&Expr::constant(1)))));
        }
        Self { program, facts, reader, copies, system, failed: None }
    }

    /// Those of all at which some predicates hold, by their numbers, and one fails.
    fn at(&self, tested: impl Fn(&usize) -> bool, failed: usize) -> Self {
        let Self { program, facts, reader, copies, .. } = *self;
        let slack = |p: usize| holes::slack(&reader.stage.domain, facts, &reader.symbolic, &reader.holes.kept[p]);
        let mut system = self.system.clone();
        (0..reader.holes.kept.len()).filter(tested).for_each(|p| system.require(&slack(p)));
        Self { program, facts, reader, copies, system, failed: None }.outside(slack(failed))
    }

    /// Those at which an expression, with residues, is negative.
    fn outside(&self, failed: Expr) -> Self {
        let Self { program, facts, reader, copies, .. } = *self;
        let mut system = self.system.clone();
        system.require(&failed.scale(-1).sub(&Expr::constant(1)));
        Self { program, facts, reader, copies, system, failed: Some(failed) }
    }

    /// Whether no point, with a value of each further axis, has all of these at least 0.
    fn never(&self, inner: &[Inner], conditions: &[Expr]) -> bool {
        let facts = self.facts;
        let mut system = self.system.clone();
        for axis in inner {
            let at = Expr::var(axis.var);
            system.require(&facts.with_residues(&at.sub(&axis.lower)));
            system.require(&facts.with_residues(&axis.upper.sub(&Expr::constant(1)).sub(&at)));
        }
        for condition in conditions {
            system.require(&facts.with_residues(&facts.normal(condition)));
        }
        system.is_infeasible()
    }

    /// Those accesses that are not safe. Most are, whatever is tested.
    fn doubtful<'b>(&self, accesses: impl Iterator<Item = &'b Access>) -> Vec<&'b Access> {
        accesses.filter(|access| !self.is_safe(access)).collect()
    }

    fn staged(&self, parameter: u16, read: Option<ValueId>) -> Option<&Staged> {
        self.copies.iter().copied().find(|s| s.is_for(parameter, read))
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
        let is_one = self.failed.as_ref().is_some_and(|failed| inside.contains(&self.facts.normal(failed)));
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
        let holds = |e: &Expr| self.reader.symbolic.is_in_ranges(e) || self.never(&access.inner, &[negative(e)]);
        ranges.iter().all(|(e, size)| !e.is_unknown() && Self::within(e, size).iter().all(holds))
    }

    /// That an element of an equation is one, as expressions that are at least 0; none if that depends on more than
    /// sizes.
    fn in_equation(&self, equation: u16, indices: &[Expr]) -> Option<Vec<Expr>> {
        let algorithm = &self.program.algorithm;
        let axes = &algorithm.axis_lists[algorithm.equations[usize::from(equation)].axes.range()];
        let mut inside = Vec::new();
        for (axis, index) in axes.iter().zip(indices) {
            let axis = &algorithm.axes[*axis as usize];
            let (lower, upper) = (index_of_dims(algorithm, axis.lower)?, index_of_dims(algorithm, axis.upper)?);
            inside.extend([index.sub(&lower), upper.sub(index).sub(&Expr::constant(1))]);
        }
        Some(inside)
    }

    fn sizes(&self, parameter: u16) -> Vec<Expr> {
        let tensor = expressions::tensor(self.program, parameter);
        tensor.map_or_else(Vec::new, |tensor| expressions::shape(tensor, self.facts))
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
    fn is_zero(&self, read: ValueId, source: Source, indices: &[Expr]) -> bool {
        let parameter = match source {
            Source::Parameter(parameter) => {
                // A copy that threads make has the elements of the tensor.
                if self.failing.reader.reads.iter().any(|r| r.value == read) {
                    let sizes = indices.iter().zip(self.failing.sizes(parameter));
                    let inside: Vec<Expr> = sizes.flat_map(|(e, size)| Points::within(e, &size)).collect();
                    return self.failing.never(&[], &inside);
                }
                parameter
            }
            Source::Equation { equation, component } => {
                let Some(inside) = self.failing.in_equation(equation, indices) else { return false };
                let is_zero =
                    self.failing.reader.reads.iter().any(|r| r.value == read) && self.failing.never(&[], &inside);
                if is_zero {
                    let algorithm = &self.failing.program.algorithm;
                    let components = algorithm.equations[usize::from(equation)].components;
                    let own = &algorithm.components[components.range()][usize::from(component)];
                    self.zeros.borrow_mut().push(own.name.to_string());
                }
                return is_zero;
            }
        };
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
            let is_own = reader.staged.iter().any(|own| std::ptr::eq(own, staged));
            zero = is_own
                && self.failing.never(&[], &inside)
                && staged.level(facts, &reader.symbolic) != Level::Impossible;
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
