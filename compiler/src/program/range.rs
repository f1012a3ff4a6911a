//! The range of every axis.
//!
//! | axis | range |
//! | --- | --- |
//! | with a written range | that one |
//! | of an equation for an output | the output's shape |
//! | of a reduction | the size of each dimension that the bare axis indexes; all must agree |
//! | of an intermediate | the union of what its readers demand |
//!
//! An intermediate's range is *simple* or it must be written: the smallest lower and the largest upper bound among its
//! readers must be comparable by their difference and the facts on single sizes. Reads with `or` demand nothing. Where
//! readers say nothing, because they take their own range from this tensor (`sum(|j| e[i, j])`), the axis takes the size
//! of what it indexes bare in its own equation. For an equation that is inlined the range matters to nobody but readers
//! that infer theirs from it; whether reads are in bounds is proved at the reader.

use tilewright_kernel::algorithm::{AxisId, Binary, Compare, Index, IndexId, Source, Unary, Value, ValueId};
use tilewright_kernel::{Constraint, Size};

use super::equations::{ReadSite, Sites};
use super::nodes::{Nodes, UNKNOWN};
use super::order::Plan;
use super::signature::Signature;
use crate::diag::Diagnostics;
use crate::diag::tw01xx::{OutputDomain, RangeConflict, RangeReason, UnknownRange};
use crate::extent::{Atom, Expr, Facts, Term, Var};
use crate::syntax::Span;

/// `lower .. upper`
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    lower: Expr,
    upper: Expr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Known(Range),
    /// An error was reported.
    Poison,
}

/// Why a demand has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// It depends on a range that is not known yet.
    NotYet,
    /// It has no simple form.
    Never,
    /// It depends on a range that is wrong.
    Poison,
}

/// A dimension of a tensor that an axis indexes bare.
#[derive(Clone, Copy, Debug)]
struct BareUse {
    source: Source,
    dimension: usize,
    span: Span,
}

struct Infer<'a> {
    signature: &'a Signature,
    nodes: &'a mut Nodes,
    sites: &'a Sites,
    facts: Facts,
    states: Vec<State>,
    /// Whether the range is given rather than inferred: written, or of an output.
    given: Vec<bool>,
    /// For an axis of an equation: the equation and the position.
    owner: Vec<Option<(u16, usize)>>,
    bare: Vec<Vec<BareUse>>,
    /// Unguarded reads of each equation.
    readers: Vec<Vec<ReadSite>>,
    diags: &'a mut Diagnostics,
}

/// Infers all ranges and enters them into the axes.
pub(super) fn infer(signature: &Signature, plan: &Plan<'_>, nodes: &mut Nodes, sites: &Sites, diags: &mut Diagnostics) {
    let count = nodes.axes.len();
    let constraints: Vec<Constraint> = signature.facts.iter().map(|f| f.constraint.clone()).collect();
    // Facts that contradict each other are reported by the room of sizes; no range depends on them here.
    let facts = Facts::new(&signature.dims, &constraints)
        .or_else(|_| Facts::new(&signature.dims, &[]))
        .expect("no facts do not contradict each other");
    let mut infer = Infer {
        signature,
        facts,
        states: vec![State::Unknown; count],
        given: vec![false; count],
        owner: vec![None; count],
        bare: vec![Vec::new(); count],
        readers: vec![Vec::new(); sites.axes.len()],
        nodes,
        sites,
        diags,
    };
    infer.prepare(plan);
    infer.solve();
    infer.finish();
}

impl Infer<'_> {
    fn prepare(&mut self, plan: &Plan<'_>) {
        for axis in 0..self.states.len() {
            let (lower, upper) = (self.nodes.axes[axis].lower, self.nodes.axes[axis].upper);
            if lower != UNKNOWN && upper != UNKNOWN {
                let (lower, upper) = (self.expr(lower), self.expr(upper));
                self.states[axis] = State::Known(Range { lower, upper });
                self.given[axis] = true;
            }
        }
        for (equation, axes) in (0..).zip(&self.sites.axes) {
            for (position, &axis) in axes.iter().enumerate() {
                self.owner[axis as usize] = Some((equation, position));
            }
            for &parameter in plan.equations[usize::from(equation)].parameters.iter().flatten() {
                self.take_shape(parameter, axes);
            }
        }
        for site in &self.sites.reads {
            let Value::Read { source, indices, or } = self.nodes.values[site.value as usize] else { continue };
            if or.is_some() {
                continue;
            }
            if let Source::Equation { equation, .. } = source {
                self.readers[usize::from(equation)].push(*site);
            }
            for (dimension, &index) in self.nodes.index_lists[indices.range()].iter().enumerate() {
                if let Index::Axis(axis) = self.nodes.indices[index as usize] {
                    let span = self.nodes.value_span(site.value);
                    self.bare[axis as usize].push(BareUse { source, dimension, span });
                }
            }
        }
    }

    /// The domain of an output is its shape.
    fn take_shape(&mut self, parameter: u16, axes: &[AxisId]) {
        let Some(tensor) = self.signature.tensor(parameter) else { return };
        for (size, &axis) in tensor.shape.iter().zip(axes) {
            let shape = Range { lower: Expr::constant(0), upper: self.size(size) };
            let at = axis as usize;
            match &self.states[at] {
                State::Known(written) if !self.same(written, &shape) => {
                    let (written, shape) = (self.show(&written.clone()), self.show(&shape));
                    let span = self.nodes.axis_spans[at];
                    let axis = self.nodes.axes[at].name.to_string();
                    let declared = self.signature.parameter_spans[usize::from(parameter)];
                    let output = self.signature.parameters[usize::from(parameter)].name.to_string();
                    self.diags.report(OutputDomain { axis, output, written, shape, declared, span });
                    self.states[at] = State::Poison;
                }
                State::Unknown => {
                    self.states[at] = State::Known(shape);
                    self.given[at] = true;
                }
                _ => {}
            }
        }
    }

    /// Applies the rules until nothing changes.
    fn solve(&mut self) {
        // Every sweep costs about as many steps as there are axes and reads.
        let size = self.states.len() + self.sites.reads.len() + 1;
        let mut sweeps = (4_000_000 / size).max(16);
        loop {
            let mut changed = false;
            while sweeps > 0 && self.sweep() {
                changed = true;
                sweeps -= 1;
            }
            if sweeps > 0 && self.take_own_reads() {
                sweeps -= 1;
                continue;
            }
            if !changed || sweeps == 0 {
                break;
            }
        }
        for axis in 0..self.states.len() {
            if self.states[axis] == State::Unknown {
                let reason = match self.owner[axis] {
                    Some(_) => RangeReason::Intermediate,
                    None if self.bare[axis].is_empty() => RangeReason::NeverBare,
                    None => RangeReason::Circular,
                };
                self.unknown(axis, reason);
            }
        }
    }

    fn unknown(&mut self, axis: usize, reason: RangeReason) {
        let name = self.nodes.axes[axis].name.to_string();
        self.diags.report(UnknownRange { axis: name, reason, span: self.nodes.axis_spans[axis] });
        self.states[axis] = State::Poison;
    }

    /// One round; readers come after what they read, so intermediates are visited from the last one.
    fn sweep(&mut self) -> bool {
        let mut changed = false;
        for axis in 0..self.states.len() {
            if self.states[axis] == State::Unknown && self.owner[axis].is_none() {
                changed |= self.reduction_axis(axis);
            }
        }
        for axis in (0..self.states.len()).rev() {
            if self.states[axis] == State::Unknown
                && let Some((equation, position)) = self.owner[axis]
            {
                changed |= self.demanded_axis(axis, equation, position);
            }
        }
        changed
    }

    /// The extent of a dimension of a tensor: its range, and whether it is given rather than inferred.
    fn extent(&self, source: Source, dimension: usize) -> (State, bool) {
        match source {
            Source::Parameter(parameter) => {
                let size = self.signature.tensor(parameter).and_then(|t| t.shape.get(dimension));
                let range = size.map(|s| Range { lower: Expr::constant(0), upper: self.size(s) });
                (range.map_or(State::Poison, State::Known), true)
            }
            Source::Equation { equation, .. } => {
                let axis = self.sites.axes.get(usize::from(equation)).and_then(|axes| axes.get(dimension));
                axis.map_or((State::Poison, true), |&a| (self.states[a as usize].clone(), self.given[a as usize]))
            }
        }
    }

    fn reduction_axis(&mut self, axis: usize) -> bool {
        let uses = self.bare[axis].clone();
        let extents: Vec<(State, bool)> = uses.iter().map(|u| self.extent(u.source, u.dimension)).collect();
        let any_given = extents.iter().any(|(_, given)| *given);
        if !any_given && extents.iter().any(|(state, _)| *state == State::Unknown) {
            return false;
        }
        let counted = uses.iter().zip(extents).filter(|(_, (_, given))| *given || !any_given);
        let counted: Vec<(Span, State)> = counted.map(|(u, (state, _))| (u.span, state)).collect();
        self.agree(axis, &counted)
    }

    /// All of these must be one range, which becomes the axis's; `false` if there is none.
    fn agree(&mut self, axis: usize, extents: &[(Span, State)]) -> bool {
        let Some((first_span, first)) = extents.first() else { return false };
        if extents.iter().any(|(_, state)| *state == State::Poison) {
            self.states[axis] = State::Poison;
            return true;
        }
        let State::Known(first) = first.clone() else { return false };
        for (span, state) in extents {
            if let State::Known(other) = state
                && !self.same(other, &first)
            {
                let (a, b) = (self.show(&first), self.show(other));
                let name = self.nodes.axes[axis].name.to_string();
                let at = self.nodes.axis_spans[axis];
                self.diags.report(RangeConflict { axis: name, first: (*first_span, a), second: (*span, b), span: at });
                self.states[axis] = State::Poison;
                return true;
            }
        }
        self.states[axis] = State::Known(first);
        true
    }

    /// The union of what the readers of an intermediate demand.
    fn demanded_axis(&mut self, axis: usize, equation: u16, position: usize) -> bool {
        let mut union: Option<(Range, Span)> = None;
        for site in self.readers[usize::from(equation)].clone() {
            let Value::Read { indices, .. } = self.nodes.values[site.value as usize] else { continue };
            let Some(&index) = self.nodes.index_lists[indices.range()].get(position) else { continue };
            let span = self.nodes.value_span(site.value);
            // A reduction that takes its range from here demands whatever there is.
            if let Index::Axis(reader) = self.nodes.indices[index as usize]
                && self.states[reader as usize] == State::Unknown
                && self.owner[reader as usize].is_none()
            {
                continue;
            }
            let demand = match self.demand(index, &site) {
                Ok(demand) => demand,
                Err(Stop::NotYet) => return false,
                Err(Stop::Poison) => {
                    self.states[axis] = State::Poison;
                    return true;
                }
                Err(Stop::Never) => {
                    self.unknown(axis, RangeReason::NotSimple(span));
                    return true;
                }
            };
            union = match union {
                None => Some((demand, span)),
                Some((known, first)) => match self.union(&known, &demand) {
                    Some(range) => Some((range, first)),
                    None => {
                        let (a, b) = (self.show(&known), self.show(&demand));
                        self.unknown(axis, RangeReason::NotComparable { first: (first, a), second: (span, b) });
                        return true;
                    }
                },
            };
        }
        let Some((range, _)) = union else { return false };
        self.states[axis] = State::Known(range);
        true
    }

    /// Gives an intermediate axis that its readers do not decide the size of what it indexes itself; readers first, since
    /// what they get decides for what they read.
    fn take_own_reads(&mut self) -> bool {
        for axis in (0..self.states.len()).rev() {
            if self.states[axis] != State::Unknown || self.owner[axis].is_none() {
                continue;
            }
            let extents: Vec<(Span, State)> = (self.bare[axis].iter())
                .map(|u| (u.span, self.extent(u.source, u.dimension).0))
                .filter(|(_, state)| *state != State::Unknown)
                .collect();
            if self.agree(axis, &extents) {
                return true;
            }
        }
        false
    }

    fn union(&self, a: &Range, b: &Range) -> Option<Range> {
        let lower = if self.at_least(&b.lower, &a.lower)? { &a.lower } else { &b.lower };
        let upper = if self.at_least(&b.upper, &a.upper)? { &b.upper } else { &a.upper };
        Some(Range { lower: lower.clone(), upper: upper.clone() })
    }

    /// Whether a ≥ b; `None` if it is not known.
    fn at_least(&self, a: &Expr, b: &Expr) -> Option<bool> {
        self.sign(&a.sub(b)).ok()
    }

    fn same(&self, a: &Range, b: &Range) -> bool {
        let equal = |a: &Expr, b: &Expr| self.facts.normal(&a.sub(b)).as_constant() == Some(0);
        equal(&a.lower, &b.lower) && equal(&a.upper, &b.upper)
    }

    /// The variable that stands for an axis.
    fn var(&self, axis: AxisId) -> Var {
        Var::try_from(self.signature.dims.len()).unwrap_or(Var::MAX).saturating_add(axis)
    }

    fn size(&self, size: &Size) -> Expr {
        self.facts.normal(&Expr::from_size(size))
    }

    /// The normal form of an index; unknown if it is read from memory.
    fn expr(&self, id: IndexId) -> Expr {
        self.facts.normal(
            &self
                .raw_expr(id, &mut |_, a, b, is_quotient| Ok(if is_quotient { a.floor_div(b) } else { a.modulo(b) }))
                .unwrap_or_else(|_| Expr::unknown()),
        )
    }

    /// The normal form of an index, with `divide(divides an axis, a, b, is a quotient)` for `/` and `%`.
    fn raw_expr(&self, id: IndexId, divide: &mut Divide<'_>) -> Result<Expr, Stop> {
        let mut pair = |a, b| Ok((self.raw_expr(a, divide)?, self.raw_expr(b, divide)?));
        Ok(match self.nodes.indices[id as usize] {
            Index::Literal(c) => Expr::constant(i128::from(c)),
            Index::Dim(d) => Expr::var(Var::from(d)),
            Index::Axis(a) => Expr::var(self.var(a)),
            Index::Value(_) => Expr::unknown(),
            Index::Add(a, b) => {
                let (a, b) = pair(a, b)?;
                a.add(&b)
            }
            Index::Sub(a, b) => {
                let (a, b) = pair(a, b)?;
                a.sub(&b)
            }
            Index::Mul(a, b) => {
                let (a, b) = pair(a, b)?;
                a.mul(&b)
            }
            Index::Div(a, b) | Index::Mod(a, b) => {
                let is_quotient = matches!(self.nodes.indices[id as usize], Index::Div(..));
                let varies = self.nodes.varies[a as usize];
                let (a, b) = pair(a, b)?;
                divide(varies, &a, &b, is_quotient)?
            }
        })
    }

    /// The values that an index takes at a read. Exact for axes that occur linearly; a quotient or remainder of axes is
    /// bounded apart from other occurrences of the same axes.
    fn demand(&self, index: IndexId, site: &ReadSite) -> Result<Range, Stop> {
        let narrowed = self.narrowed(site);
        let first_fresh = self.var(AxisId::try_from(self.states.len()).unwrap_or(AxisId::MAX));
        // Quotients and remainders become variables of their own, with ranges.
        let mut fresh: Vec<Range> = Vec::new();
        let form = self.raw_expr(index, &mut |varies, a, b, is_quotient| {
            if !varies {
                return Ok(if is_quotient { a.floor_div(b) } else { a.modulo(b) });
            }
            let range = if is_quotient {
                let (low, high) =
                    (self.extreme(a, false, &narrowed, &fresh)?, self.extreme(a, true, &narrowed, &fresh)?);
                Range { lower: low.floor_div(b), upper: high.floor_div(b).add(&Expr::constant(1)) }
            } else {
                Range { lower: Expr::constant(0), upper: b.clone() }
            };
            fresh.push(range);
            Ok(Expr::var(first_fresh + Var::try_from(fresh.len() - 1).map_err(|_| Stop::Never)?))
        })?;
        let lower = self.extreme(&form, false, &narrowed, &fresh)?;
        let upper = self.extreme(&form, true, &narrowed, &fresh)?.add(&Expr::constant(1));
        Ok(Range { lower, upper })
    }

    /// The greatest value of `form` over the ranges of its variables, or the least.
    fn extreme(
        &self,
        form: &Expr,
        greatest: bool,
        narrowed: &[(AxisId, Range)],
        fresh: &[Range],
    ) -> Result<Expr, Stop> {
        let dims = self.var(0);
        let first_fresh = self.states.len();
        let mut form = self.facts.normal(form);
        // Each step removes the innermost axis: the bounds of an axis mention outer axes only.
        while let Some(var) = form.vars().into_iter().filter(|&v| v >= dims).max() {
            let atom = Atom::Var(var);
            let (with, without): (Vec<&Term>, Vec<&Term>) = form.terms().iter().partition(|t| t.atoms.contains(&atom));
            let mut coefficient = Expr::constant(0);
            for term in with {
                let mut rest = Expr::constant(term.coefficient);
                let mut seen = false;
                for factor in &term.atoms {
                    if *factor == atom && !seen {
                        seen = true;
                    } else {
                        rest = rest.mul(&factor_expr(factor));
                    }
                }
                coefficient = coefficient.add(&rest);
            }
            // Inside a quotient, or multiplied by another axis.
            if coefficient.vars().iter().any(|&v| v >= dims)
                || without.iter().any(|t| term_expr(t).vars().contains(&var))
            {
                return Err(Stop::Never);
            }
            let axis = var - dims;
            let range = match narrowed.iter().find(|(a, _)| *a == axis) {
                Some((_, range)) => range.clone(),
                None => match (axis as usize).checked_sub(first_fresh) {
                    Some(position) => fresh.get(position).cloned().ok_or(Stop::Never)?,
                    None => self.known(axis)?,
                },
            };
            let up = self.sign(&coefficient)? == greatest;
            let bound = if up { range.upper.sub(&Expr::constant(1)) } else { range.lower };
            let rest = without.iter().fold(Expr::constant(0), |sum, t| sum.add(&term_expr(t)));
            form = self.facts.normal(&rest.add(&coefficient.mul(&bound)));
        }
        if form.is_unknown() { Err(Stop::Never) } else { Ok(form) }
    }

    /// Whether an expression of sizes is at least 0, or at most 0.
    fn sign(&self, form: &Expr) -> Result<bool, Stop> {
        let form = self.facts.normal(form);
        match form.as_constant() {
            Some(value) => Ok(value >= 0),
            None if form.is_unknown() => Err(Stop::Never),
            None if self.facts.proves_nonnegative(&form) => Ok(true),
            None if self.facts.proves_nonnegative(&form.scale(-1)) => Ok(false),
            None => Err(Stop::Never),
        }
    }

    fn known(&self, axis: AxisId) -> Result<Range, Stop> {
        match &self.states[axis as usize] {
            State::Known(range) => Ok(range.clone()),
            State::Unknown => Err(Stop::NotYet),
            State::Poison => Err(Stop::Poison),
        }
    }

    /// Ranges of axes as the conditions around a read narrow them.
    fn narrowed(&self, site: &ReadSite) -> Vec<(AxisId, Range)> {
        let mut at_least_zero = Vec::new();
        let mut guard = site.guard;
        while let Some(position) = guard {
            let entry = self.sites.guards[position as usize];
            self.constraints(entry.condition, entry.holds, &mut at_least_zero);
            guard = entry.outer;
        }
        let mut ranges: Vec<(AxisId, Range)> = Vec::new();
        for form in at_least_zero {
            self.narrow(&form, &mut ranges);
        }
        ranges
    }

    /// Exprs that are at least 0 where `condition` holds (or fails).
    fn constraints(&self, condition: ValueId, holds: bool, out: &mut Vec<Expr>) {
        match self.nodes.values[condition as usize] {
            Value::Unary(Unary::Not, inner) => self.constraints(inner, !holds, out),
            Value::Binary(Binary::And, a, b) if holds => {
                self.constraints(a, true, out);
                self.constraints(b, true, out);
            }
            Value::Binary(Binary::Or, a, b) if !holds => {
                self.constraints(a, false, out);
                self.constraints(b, false, out);
            }
            Value::CompareIndex(op, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                let op = if holds { op } else { negated(op) };
                let (ge, le) = (a.sub(&b), b.sub(&a));
                let less_one = |form: Expr| form.sub(&Expr::constant(1));
                match op {
                    Compare::Ge => out.push(ge),
                    Compare::Gt => out.push(less_one(ge)),
                    Compare::Le => out.push(le),
                    Compare::Lt => out.push(less_one(le)),
                    Compare::Eq => out.extend([ge, le]),
                    Compare::Ne => {}
                }
            }
            _ => {}
        }
    }

    /// Narrows the innermost axis of `form`, if it occurs with coefficient ±1, knowing that the form is at least 0.
    fn narrow(&self, form: &Expr, ranges: &mut Vec<(AxisId, Range)>) {
        let dims = self.var(0);
        let Some(var) = form.vars().into_iter().max().filter(|&v| v >= dims && !form.is_unknown()) else { return };
        let axis = var - dims;
        let alone = form.terms().iter().find(|t| t.atoms == [Atom::Var(var)]);
        let Some(coefficient) = alone.map(|t| t.coefficient).filter(|c| c.abs() == 1) else { return };
        let rest = form.sub(&Expr::var(var).scale(coefficient));
        if rest.vars().contains(&var) {
            return;
        }
        let known = ranges.iter().position(|(a, _)| *a == axis);
        let mut range = match known {
            Some(at) => ranges[at].1.clone(),
            None => match self.known(axis) {
                Ok(range) => range,
                Err(_) => return,
            },
        };
        if coefficient > 0 {
            // axis ≥ −rest
            let lower = rest.scale(-1);
            if self.at_least(&range.lower, &lower) != Some(true) {
                range.lower = lower;
            }
        } else {
            // axis ≤ rest
            let upper = rest.add(&Expr::constant(1));
            if self.at_least(&upper, &range.upper) != Some(true) {
                range.upper = upper;
            }
        }
        match known {
            Some(at) => ranges[at].1 = range,
            None => ranges.push((axis, range)),
        }
    }

    /// Enters the ranges into the axes.
    fn finish(&mut self) {
        for axis in 0..self.states.len() {
            let State::Known(range) = self.states[axis].clone() else { continue };
            if self.nodes.axes[axis].lower != UNKNOWN {
                continue;
            }
            let span = self.nodes.axis_spans[axis];
            let (lower, upper) = (self.index_of(&range.lower, span), self.index_of(&range.upper, span));
            match (lower, upper) {
                (Some(lower), Some(upper)) => {
                    self.nodes.axes[axis].lower = lower;
                    self.nodes.axes[axis].upper = upper;
                }
                _ => self.unknown(axis, RangeReason::TooLong),
            }
        }
    }

    /// An index with the value of `form`; `None` if it has none.
    fn index_of(&mut self, form: &Expr, span: Span) -> Option<IndexId> {
        if form.is_unknown() {
            return None;
        }
        // Positive terms first and the constant last, as people write them.
        let mut terms: Vec<&Term> = form.terms().iter().collect();
        terms.sort_by_key(|t| (t.atoms.is_empty(), t.coefficient < 0));
        let mut sum: Option<IndexId> = None;
        for term in terms {
            let magnitude = i64::try_from(term.coefficient.checked_abs()?).ok()?;
            let negative = term.coefficient < 0;
            let mut product: Option<IndexId> = None;
            if magnitude != 1 || term.atoms.is_empty() {
                let value = if negative && sum.is_none() { -magnitude } else { magnitude };
                product = Some(self.nodes.index(Index::Literal(value), span));
            } else if negative && sum.is_none() {
                product = Some(self.nodes.index(Index::Literal(-1), span));
            }
            for atom in &term.atoms {
                let factor = self.index_of_atom(atom, span)?;
                product = Some(match product {
                    Some(product) => self.nodes.index(Index::Mul(product, factor), span),
                    None => factor,
                });
            }
            let product = product?;
            sum = Some(match sum {
                None => product,
                Some(sum) if negative => self.nodes.index(Index::Sub(sum, product), span),
                Some(sum) => self.nodes.index(Index::Add(sum, product), span),
            });
        }
        Some(sum.unwrap_or_else(|| self.nodes.index(Index::Literal(0), span)))
    }

    fn index_of_atom(&mut self, atom: &Atom, span: Span) -> Option<IndexId> {
        let dims = self.var(0);
        match atom {
            Atom::Var(var) if *var < dims => Some(self.nodes.index(Index::Dim(u16::try_from(*var).ok()?), span)),
            Atom::Var(var) => Some(self.nodes.index(Index::Axis(var - dims), span)),
            Atom::Quotient { of, by } => {
                let (of, by) = (self.index_of(of, span)?, self.index_of(by, span)?);
                Some(self.nodes.index(Index::Div(of, by), span))
            }
        }
    }

    fn show(&self, range: &Range) -> String {
        let dims = self.var(0);
        let names = |var: Var| match var.checked_sub(dims) {
            Some(axis) => self.nodes.axes.get(axis as usize).map_or("?".to_owned(), |a| a.name.to_string()),
            None => self.signature.dims.get(var as usize).map_or("?".to_owned(), |d| d.name.to_string()),
        };
        format!("{}..{}", range.lower.show(&names), range.upper.show(&names))
    }
}

/// What becomes of `/` and `%`: see [`Infer::raw_expr`].
type Divide<'d> = dyn FnMut(bool, &Expr, &Expr, bool) -> Result<Expr, Stop> + 'd;

fn factor_expr(atom: &Atom) -> Expr {
    match atom {
        Atom::Var(var) => Expr::var(*var),
        Atom::Quotient { of, by } => of.floor_div(by),
    }
}

fn term_expr(term: &Term) -> Expr {
    term.atoms.iter().fold(Expr::constant(term.coefficient), |product, atom| product.mul(&factor_expr(atom)))
}

fn negated(op: Compare) -> Compare {
    match op {
        Compare::Eq => Compare::Ne,
        Compare::Ne => Compare::Eq,
        Compare::Lt => Compare::Ge,
        Compare::Ge => Compare::Lt,
        Compare::Gt => Compare::Le,
        Compare::Le => Compare::Gt,
    }
}
