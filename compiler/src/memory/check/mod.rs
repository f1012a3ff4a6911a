//! The verdict on a vectorised axis: its guards and its accesses, proved, refuted with a witness, or open.
//!
//! Property: a stage without a finding has, for every admissible size, only vectors that are whole, contiguous and
//! aligned. What the expressions of [`schedule::vector`](crate::schedule::vector) do not prove is searched: admissible
//! sizes by their sum, then points lexicographically. A hit is a witness; a search that visits every point of finitely
//! many sizes and finds none is a proof. Reads may stay open where each lane can read its own element instead.
//!
//! What is said of all that is found is for `finding` to decide.

mod guards;

use tilewright_kernel::info::{DimKind, ParameterKind, TensorParameter};
use tilewright_kernel::rules::is_injective;
use tilewright_kernel::size::{Size, SizeOp};

use super::finding::{Finding, causes};
use super::multiples::{misaligned_terms, proposals};
use crate::diag::Diagnostics;
use crate::diag::codes::{Element, LoopInsideVector, MisalignedVector, ScatteredVector, StraddlingVector, VectorWidth};
use crate::domain::{AxisId, AxisKind, Concrete, Op, Symbolic};
use crate::extent::{Atom, Budget, Expr, Facts, Var, Verdict};
use crate::holes::{self, Holes, Predicate};
use crate::program::Program;
use crate::schedule::Stage;
use crate::schedule::{
    accesses::{Access, Inner},
    neighbours,
    vector::{Along, Vector},
};

/// Most lanes of a vectorised axis: four accesses of 16 one-byte elements, or sixteen of 4 words.
const LANE_LIMIT: i128 = 64;
/// Steps that one witness search may take.
const SEARCH_STEPS: u64 = 100_000;
/// Strides of an output that a search tries, where they matter.
const LAYOUTS: i128 = 3;

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

/// The points that a question is about.
struct Question<'q> {
    /// Dimensions that it depends on beside those of the domain.
    dims: Vec<Var>,
    /// Whether a leaf matters, beside those that predicates mention.
    leaf: &'q dyn Fn(usize) -> bool,
    /// Whether it is asked once a term of the stage's reduction, or once an element.
    in_terms: bool,
    /// Only sizes that come before those with this sum, in the order of the search.
    before: Option<i128>,
}

/// The comparisons ⌊a / b⌋ < e and ⌊a / b⌋ ≥ 0 without their quotient: a < e·b and a ≥ 0, for b > 0.
fn undivided(facts: &Facts, value: &Expr, extent: &Expr) -> (Expr, Expr) {
    let (mut value, mut extent) = (facts.normal(value), extent.clone());
    while let [term] = value.terms()
        && let (1, [Atom::Quotient { of, by }]) = (term.coefficient, &term.atoms[..])
    {
        (value, extent) = (facts.normal(of), facts.normal(&extent.mul(by)));
    }
    (value, extent)
}

/// The dimension that a size is, if it is nothing else.
fn bare_dim(size: &Size) -> Option<Var> {
    match &size.ops[..] {
        [SizeOp::Dim(d)] => Some(Var::from(*d)),
        _ => None,
    }
}

/// A value, or the end of the budget.
fn known(value: Option<i128>, budget: &mut Budget) -> Option<i128> {
    if value.is_none() {
        budget.take(u64::MAX);
    }
    value
}

/// Sizes, leaf indices of lane 0, how many lanes are inside, and a predicate that tells them apart.
type Cut = (Vec<i64>, Vec<i128>, i128, Predicate);

impl Check<'_> {
    fn dim(&self, v: Var) -> String {
        self.program.dim_name(v as u16).to_owned()
    }

    fn dims(&self, dims: &[i64]) -> Vec<(String, i128)> {
        dims.iter().enumerate().map(|(d, v)| (self.dim(d as Var), i128::from(*v))).collect()
    }

    /// What the search for sizes goes by: the sum of the dimensions that nothing else determines.
    fn sum(&self, dims: impl Iterator<Item = i128>) -> i128 {
        let output_strides = self.output_strides();
        let is_free = |v: usize| self.facts.solution(v).is_none() && !output_strides.contains(&(v as Var));
        (0..).zip(dims).filter(|(v, _)| is_free(*v)).map(|(_, d)| d).sum()
    }

    /// The tensors that are written and have strides.
    fn strided_outputs(&self) -> impl Iterator<Item = (&TensorParameter, &[Size])> {
        self.program.parameters.iter().filter_map(|p| match &p.kind {
            ParameterKind::Tensor(tensor) if tensor.role.is_written() => Some((tensor, tensor.strides.as_deref()?)),
            _ => None,
        })
    }

    /// Dimensions that are nothing but the stride of a tensor that is written: sizes decide where they begin.
    fn output_strides(&self) -> Vec<Var> {
        let named = self.strided_outputs().flat_map(|(_, strides)| strides).filter_map(bare_dim);
        let is_stride = |v: &Var| self.program.dims.get(*v as usize).is_some_and(|d| d.kind == DimKind::Stride);
        named.filter(is_stride).filter(|v| self.facts.from(*v, 0).is_some()).collect()
    }

    /// These dimensions with strides of outputs as the launcher asks for them: no tensor that is written overlaps
    /// itself. From the innermost one, each is the first that steps over what is inside; of those in `varied`, the next
    /// ones are tried too.
    fn layouts(&self, dims: &[i64], varied: &[Var]) -> Vec<Vec<i64>> {
        let settable = self.output_strides();
        let value = |size: &Size, dims: &[i64]| size.eval(dims).unwrap_or(0);
        // With how many steps its strides are away from the first ones.
        let mut list = vec![(0, dims.to_vec())];
        let mut set: Vec<Var> = Vec::new();
        for (tensor, strides) in self.strided_outputs() {
            for at in (0..strides.len()).rev() {
                let Some(v) = bare_dim(&strides[at]).filter(|v| settable.contains(v) && !set.contains(v)) else {
                    continue;
                };
                set.push(v);
                let mut next = Vec::new();
                for (far, dims) in list {
                    let inside = (at + 1..strides.len())
                        .map(|d| value(&strides[d], &dims).saturating_mul((value(&tensor.shape[d], &dims) - 1).max(0)));
                    let least = if value(&tensor.shape[at], &dims) > 1 { 1 + inside.sum::<i128>() } else { 0 };
                    let Some((first, step)) = self.facts.from(v, least) else { continue };
                    for k in 0..if varied.contains(&v) { LAYOUTS } else { 1 } {
                        let mut dims = dims.clone();
                        let Ok(stride) = i64::try_from(first + k * step) else { continue };
                        dims[v as usize] = stride;
                        next.push((far + k, dims));
                    }
                }
                list = next;
            }
        }
        let values = |sizes: &[Size], dims: &[i64]| -> Vec<i64> {
            sizes.iter().map(|s| i64::try_from(value(s, dims)).unwrap_or(0)).collect()
        };
        list.sort_by_key(|(far, _)| *far);
        list.retain(|(_, dims)| {
            let apart = |(t, strides): (&TensorParameter, &[Size])| {
                is_injective(&values(&t.shape, dims), &values(strides, dims))
            };
            self.facts.admits(dims) && self.strided_outputs().all(apart)
        });
        list.into_iter().map(|(_, dims)| dims).collect()
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
        // One finding for the guards, and one for what is done to a tensor: the one with the smallest witness, if there
        // is one.
        let mut found: Vec<(Option<(u16, bool)>, Finding)> = Vec::new();
        found.extend(self.guards(vector).map(|f| (None, f)));
        for access in accesses {
            let key = Some((access.parameter, access.is_write));
            let known = found.iter().position(|(k, _)| *k == key);
            let before = known.and_then(|at| found[at].1.sizes()).map(|dims| self.sum(dims.iter().map(|d| d.1)));
            let Some(finding) = self.access(vector, access, before) else { continue };
            match known {
                Some(at) if finding.is_refuted() => found[at].1 = finding,
                Some(_) => {}
                None => found.push((key, finding)),
            }
        }
        let lanes = vector.lanes;
        let has_width = lanes > 0 && lanes <= LANE_LIMIT && lanes & (lanes - 1) == 0;
        let width = (!has_width).then(|| VectorWidth {
            axis: name.clone(),
            lanes,
            limit: LANE_LIMIT,
            is_split: domain.ops.iter().any(|(op, _)| matches!(op, Op::Split { inner, .. } if *inner == vector.axis)),
            span: vector.span,
        });
        for finding in causes(width, found.into_iter().map(|(_, f)| f).collect()) {
            finding.report(diags);
        }
    }

    /// Checks one access; a witness counts only if it comes `before` the one known.
    fn access(&self, vector: &Vector, access: &Access, before: Option<i128>) -> Option<Finding> {
        let domain = &self.stage.domain;
        let axis = domain.axes[vector.axis].name.clone();
        let tensor = self.program.parameters[usize::from(access.parameter)].name.to_string();
        let is_result = access.is_write && vector.is_data;
        if access.is_guarded || access.is_write && !is_result {
            return None; // lane by lane at worst, as any read with `or` may be; or the lanes are terms of one element
        }
        let along = vector.along(&access.offset, self.symbolic, self.facts);
        if let Along::Affine { base, step } = &along
            && step.as_constant() == Some(1)
        {
            return self.alignment(vector, access, base, before);
        }
        // A read that is no run of neighbours, or divides its index itself, is read lane by lane.
        let is_read_by_lane = match along {
            Along::Affine { .. } => !is_result,
            Along::Straddles => {
                let is_vector = self.rows_straddle(vector) && self.is_run(vector, access);
                !(access.is_write || is_vector)
            }
        };
        if is_read_by_lane {
            return None;
        }
        let witness = match self.straddling_lanes(vector, access, before) {
            Verdict::Proved => return None,
            Verdict::Refuted((dims, lanes)) => Some((self.dims(&dims), lanes)),
            Verdict::Undecided if !access.is_write => return None,
            Verdict::Undecided => None,
        };
        let (access_span, span) = (access.span, vector.span);
        if matches!(along, Along::Affine { .. }) || self.is_swizzled(vector) {
            let step = match along {
                Along::Affine { step, .. } => Some(step.show(&|v| self.variable(v))),
                Along::Straddles => None,
            };
            let last = neighbours::along(self.stage, self.symbolic, access);
            let last = last.filter(|axis| domain.axes[*axis].kind == AxisKind::Data);
            return Some(Finding::Scattered(ScatteredVector {
                axis,
                tensor,
                last: last.map(|axis| domain.axes[axis].name.clone()),
                step,
                witness,
                access: access_span,
                is_write: access.is_write,
                span,
            }));
        }
        let instead = (1..vector.lanes).rev().find(|lanes| {
            let smaller = Vector { lanes: *lanes, ..vector.clone() };
            lanes & (lanes - 1) == 0
                && vector.lanes % lanes == 0
                && *lanes > 1
                && smaller.along(&access.offset, self.symbolic, self.facts) != Along::Straddles
        });
        let lanes = vector.lanes;
        let is_alone = true;
        Some(Finding::Straddling(StraddlingVector {
            axis,
            lanes,
            tensor,
            access: access_span,
            span,
            witness,
            instead,
            is_alone,
        }))
    }

    /// Whether the lanes in one row of what was merged are neighbours in memory.
    fn is_run(&self, vector: &Vector, access: &Access) -> bool {
        match vector.inside_row(&access.offset, self.symbolic, self.facts) {
            Along::Affine { step, .. } => step.as_constant() == Some(1),
            Along::Straddles => true,
        }
    }

    /// Checks that a run of neighbours starts at a multiple of the vector.
    fn alignment(&self, vector: &Vector, access: &Access, base: &Expr, before: Option<i128>) -> Option<Finding> {
        let aligned = |facts: &Facts| facts.proves_multiple(base, vector.lanes);
        if aligned(self.facts) {
            return None;
        }
        let facts = proposals(self.program, &misaligned_terms(self.facts, base, vector.lanes), vector.lanes, &aligned);
        if facts.is_empty() && !access.is_write {
            return None; // no fact helps: each lane reads its own element, and `explain` says so
        }
        let witness = match self.misaligned_start(vector, access, before) {
            Verdict::Proved => return None,
            Verdict::Refuted((dims, (indices, offset))) => Some((self.dims(&dims), indices, offset)),
            Verdict::Undecided => None,
        };
        Some(Finding::Misaligned(MisalignedVector {
            axis: self.stage.domain.axes[vector.axis].name.clone(),
            lanes: vector.lanes,
            tensor: self.program.parameters[usize::from(access.parameter)].name.to_string(),
            access: access.span,
            span: vector.span,
            witness,
            facts,
            others: Vec::new(),
        }))
    }

    /// Whether an axis of the stage changes inside the vector other than by counting: a merge of axes that the vector
    /// crosses.
    fn rows_straddle(&self, vector: &Vector) -> bool {
        let straddles =
            |root: &AxisId| vector.along(&self.symbolic.values[*root], self.symbolic, self.facts) == Along::Straddles;
        self.stage.domain.roots.iter().any(straddles)
    }

    /// Whether the vector reaches an axis of the stage through a swizzle.
    fn is_swizzled(&self, vector: &Vector) -> bool {
        let swizzled = |v: &Var| *v != vector.var && self.symbolic.depends_on(&Expr::var(*v), vector.var);
        self.stage.domain.roots.iter().any(|root| self.symbolic.values[*root].vars().iter().any(swizzled))
    }

    fn variable(&self, v: Var) -> String {
        match (v as usize).checked_sub(self.facts.dims()) {
            None => self.dim(v),
            Some(k) => {
                self.stage.domain.leaves.get(k).map_or("?".to_owned(), |a| self.stage.domain.axes[*a].name.clone())
            }
        }
    }

    fn inside(&self, concrete: &Concrete<'_>, point: &[i128], predicates: &[Predicate]) -> bool {
        let values = concrete.from_leaves(point);
        predicates.iter().all(|p| holes::holds(concrete, &values, p))
    }

    /// What an access depends on: its offset, its inner reductions, and whether it belongs to a term.
    fn depends(&self, access: &Access) -> (Vec<Var>, Vec<Var>) {
        let bounds = access.inner.iter().flat_map(|i| [&i.lower, &i.upper]);
        let vars: Vec<Var> = std::iter::once(&access.offset).chain(bounds).flat_map(Expr::vars).collect();
        let mut dims: Vec<Var> = vars.iter().copied().filter(|v| (*v as usize) < self.facts.dims()).collect();
        // Strides decide alignment.
        let of_outputs = self.output_strides();
        let strides = (0..self.program.dims.len()).filter(|d| self.program.dims[*d].kind == DimKind::Stride);
        dims.extend(strides.map(|d| d as Var).filter(|v| !of_outputs.contains(v)));
        (vars, dims)
    }

    /// The first value of the inner axes of an access for which `test` gives something. What has no value, for
    /// overflow, ends the budget: nothing was decided then.
    fn over_inner<W>(
        inner: &[Inner],
        values: &mut Vec<i128>,
        budget: &mut Budget,
        test: &mut dyn FnMut(&[i128], &mut Budget) -> Option<W>,
    ) -> Option<W> {
        let Some((axis, rest)) = inner.split_first() else { return test(values, budget) };
        let (lower, upper) = (known(axis.lower.eval(values), budget)?, known(axis.upper.eval(values), budget)?);
        let at = axis.var as usize;
        if values.len() <= at {
            values.resize(at + 1, 0);
        }
        for value in lower..upper {
            if !budget.take(1) {
                return None;
            }
            values[at] = value;
            if let Some(found) = Self::over_inner(rest, values, budget, test) {
                return Some(found);
            }
        }
        None
    }

    fn element(access: &Access, values: &[i128]) -> Option<Element> {
        let indices = access.indices.iter().map(|e| e.eval(values)).collect::<Option<Vec<_>>>()?;
        Some((indices, access.offset.eval(values)?))
    }

    /// Whether an access can be evaluated at all: not if memory decides an index.
    fn is_known(access: &Access) -> bool {
        let bounds = access.inner.iter().flat_map(|i| [&i.lower, &i.upper]);
        !access.indices.iter().chain([&access.offset]).chain(bounds).any(Expr::is_unknown)
    }

    /// Whether every vector starts at an offset that is a multiple of its lanes; the smallest one that does not.
    fn misaligned_start(&self, vector: &Vector, access: &Access, before: Option<i128>) -> Verdict<(Vec<i64>, Element)> {
        let Some(lane) = self.stage.domain.leaves.iter().position(|a| *a == vector.axis) else {
            return Verdict::Undecided;
        };
        if !Self::is_known(access) {
            return Verdict::Undecided;
        }
        let (vars, dims) = self.depends(access);
        let leaf =
            |k: usize| vars.iter().any(|v| self.symbolic.depends_on(&Expr::var(*v), (self.facts.dims() + k) as Var));
        let question = Question { dims, leaf: &leaf, in_terms: access.in_terms, before };
        let predicates = self.predicates(access.in_terms);
        self.search(&question, Some(lane), |concrete, dims, point, budget| {
            if !self.inside(concrete, point, &predicates) {
                return None;
            }
            let mut values = self.symbolic.assign(dims, point);
            Self::over_inner(&access.inner, &mut values, budget, &mut |values, budget| {
                let offset = known(access.offset.eval(values), budget)?;
                if offset.rem_euclid(vector.lanes) == 0 {
                    return None;
                }
                Some((dims.to_vec(), Self::element(access, values)?))
            })
        })
    }

    /// Whether neighbouring lanes are neighbours in memory; the smallest pair that is not.
    fn straddling_lanes(
        &self,
        vector: &Vector,
        access: &Access,
        before: Option<i128>,
    ) -> Verdict<(Vec<i64>, [Element; 2])> {
        let Some(lane) = self.stage.domain.leaves.iter().position(|a| *a == vector.axis) else {
            return Verdict::Undecided;
        };
        if !Self::is_known(access) {
            return Verdict::Undecided;
        }
        let (vars, dims) = self.depends(access);
        let leaf = |k: usize| {
            k == lane || vars.iter().any(|v| self.symbolic.depends_on(&Expr::var(*v), (self.facts.dims() + k) as Var))
        };
        let question = Question { dims, leaf: &leaf, in_terms: access.in_terms, before };
        let predicates = self.predicates(access.in_terms);
        self.search(&question, None, |concrete, dims, point, budget| {
            let mut next = point.to_vec();
            next[lane] += 1;
            if next[lane] >= vector.lanes
                || !self.inside(concrete, point, &predicates)
                || !self.inside(concrete, &next, &predicates)
            {
                return None;
            }
            let (mut values, other) = (self.symbolic.assign(dims, point), self.symbolic.assign(dims, &next));
            Self::over_inner(&access.inner, &mut values, budget, &mut |values, budget| {
                // The same term at the next lane, if it has that term.
                let mut other = other.clone();
                other.resize(values.len().max(other.len()), 0);
                for axis in &access.inner {
                    let value = values[axis.var as usize];
                    let (lower, upper) = (axis.lower.eval(&other), axis.upper.eval(&other));
                    if !(known(lower, budget)?..known(upper, budget)?).contains(&value) {
                        return None;
                    }
                    other[axis.var as usize] = value;
                }
                let (here, there) = (access.offset.eval(values), access.offset.eval(&other));
                if known(there, budget)? == known(here, budget)?.saturating_add(1) {
                    return None;
                }
                Some((dims.to_vec(), [Self::element(access, values)?, Self::element(access, &other)?]))
            })
        })
    }
}
