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

use super::equations::{ReadSite, Sites};
use super::form::{Atom, Form, Sizes};
use super::nodes::{Nodes, UNKNOWN};
use super::order::Plan;
use super::signature::Signature;
use crate::diag::Diagnostics;
use crate::diag::tw01xx::{OutputDomain, RangeConflict, RangeReason, UnknownRange};
use crate::syntax::Span;

/// `lower .. upper`
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    lower: Form,
    upper: Form,
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
    sizes: Sizes,
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
    let mut infer = Infer {
        signature,
        sizes: Sizes::new(signature),
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
                let (lower, upper) = (self.sizes.index(self.nodes, lower), self.sizes.index(self.nodes, upper));
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
            let shape = Range { lower: Form::constant(0), upper: self.sizes.size(size) };
            let at = axis as usize;
            match &self.states[at] {
                State::Known(written) if *written != shape => {
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
            if sweeps > 0 && self.from_own_reads() {
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
                let range = size.map(|s| Range { lower: Form::constant(0), upper: self.sizes.size(s) });
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
                && *other != first
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

    /// Gives the first intermediate axis that its readers do not decide the size of what it indexes itself.
    fn from_own_reads(&mut self) -> bool {
        for axis in 0..self.states.len() {
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
    fn at_least(&self, a: &Form, b: &Form) -> Option<bool> {
        match self.sizes.bounds(&a.sub(b)?) {
            (Some(low), _) if low >= 0 => Some(true),
            (_, Some(high)) if high <= 0 => Some(false),
            _ => None,
        }
    }

    /// The values that an index takes at a read.
    fn demand(&self, index: IndexId, site: &ReadSite) -> Result<Range, Stop> {
        let form = self.sizes.index(self.nodes, index);
        let narrowed = self.narrowed(site);
        let lower = self.extreme(&form, false, &narrowed, 0)?;
        let upper = self.extreme(&form, true, &narrowed, 0)?;
        let upper = upper.add(&Form::constant(1)).ok_or(Stop::Never)?;
        Ok(Range { lower, upper })
    }

    /// A bound of `form` over the ranges of its axes: the greatest value, or the least. Exact for each axis that occurs
    /// linearly; an axis inside `/` or `%` is bounded apart from its other occurrences.
    fn extreme(&self, form: &Form, greatest: bool, narrowed: &[(AxisId, Range)], depth: usize) -> Result<Form, Stop> {
        // Each step removes the innermost axis, and bounds mention outer axes only; the limit is for nested divisions.
        if depth > 16 {
            return Err(Stop::Never);
        }
        let mut form = form.clone();
        loop {
            let linear = |(atoms, _): &(Vec<Atom>, i128)| {
                atoms.iter().filter_map(|a| if let Atom::Axis(axis) = a { Some(*axis) } else { None }).max()
            };
            let Some(axis) = form.terms.iter().filter_map(linear).max() else { break };
            let (with, without): (Vec<_>, Vec<_>) = form.terms.into_iter().partition(|(atoms, _)| atoms.contains(&Atom::Axis(axis)));
            let coefficient: Vec<(Vec<Atom>, i128)> = with
                .into_iter()
                .map(|(mut atoms, c)| {
                    let at = atoms.iter().position(|a| *a == Atom::Axis(axis)).unwrap_or(0);
                    atoms.remove(at);
                    (atoms, c)
                })
                .collect();
            let mut sum = Form::constant(0);
            for term in coefficient {
                sum = sum.add(&Form { terms: vec![term] }).ok_or(Stop::Never)?;
            }
            let positive = self.sign(&sum)?;
            let range = match narrowed.iter().find(|(a, _)| *a == axis) {
                Some((_, range)) => range.clone(),
                None => self.known(axis)?,
            };
            let bound = if positive == greatest { range.upper.sub(&Form::constant(1)) } else { Some(range.lower) };
            let moved = bound.and_then(|b| b.mul(&sum)).ok_or(Stop::Never)?;
            form = Form { terms: without }.add(&moved).ok_or(Stop::Never)?;
        }
        let mut result = Form::constant(0);
        for (atoms, coefficient) in form.terms {
            let mut factor = Form::constant(coefficient);
            let varying: Vec<&Atom> = atoms.iter().filter(|a| a.varies()).collect();
            if varying.len() > 1 {
                return Err(Stop::Never);
            }
            let mut rest = Form::constant(coefficient);
            for atom in atoms.iter().filter(|a| !a.varies()) {
                rest = rest.mul(&Form::atom(atom.clone())).ok_or(Stop::Never)?;
            }
            for atom in &atoms {
                let value = match atom {
                    _ if !atom.varies() => Form::atom(atom.clone()),
                    Atom::Div(a, b) if !b.varies() => {
                        let up = self.sign(&rest)? == greatest;
                        self.extreme(a, up, narrowed, depth + 1)?.div(b)
                    }
                    Atom::Mod(_, b) if !b.varies() => {
                        let up = self.sign(&rest)? == greatest;
                        if up { b.sub(&Form::constant(1)).ok_or(Stop::Never)? } else { Form::constant(0) }
                    }
                    _ => return Err(Stop::Never),
                };
                factor = factor.mul(&value).ok_or(Stop::Never)?;
            }
            result = result.add(&factor).ok_or(Stop::Never)?;
        }
        Ok(result)
    }

    /// Whether a coefficient is positive; zero counts as either.
    fn sign(&self, coefficient: &Form) -> Result<bool, Stop> {
        if coefficient.varies() {
            return Err(Stop::Never);
        }
        match self.sizes.bounds(coefficient) {
            (Some(low), _) if low >= 0 => Ok(true),
            (_, Some(high)) if high <= 0 => Ok(false),
            _ => Err(Stop::Never),
        }
    }

    fn known(&self, axis: AxisId) -> Result<Range, Stop> {
        match &self.states[axis as usize] {
            State::Known(range) => Ok(range.clone()),
            State::Unknown => Err(Stop::NotYet),
            State::Poison => Err(Stop::NotYet),
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

    /// Forms that are at least 0 where `condition` holds (or fails).
    fn constraints(&self, condition: ValueId, holds: bool, out: &mut Vec<Form>) {
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
                let (a, b) = (self.sizes.index(self.nodes, a), self.sizes.index(self.nodes, b));
                let op = if holds { op } else { negated(op) };
                let (ge, le) = (a.sub(&b), b.sub(&a));
                let less_one = |form: Option<Form>| form.and_then(|f| f.sub(&Form::constant(1)));
                out.extend(match op {
                    Compare::Ge => [ge, None],
                    Compare::Gt => [less_one(ge), None],
                    Compare::Le => [le, None],
                    Compare::Lt => [less_one(le), None],
                    Compare::Eq => [ge, le],
                    Compare::Ne => [None, None],
                }.into_iter().flatten());
            }
            _ => {}
        }
    }

    /// Narrows the innermost axis of `form`, if it occurs with coefficient ±1, knowing that the form is at least 0.
    fn narrow(&self, form: &Form, ranges: &mut Vec<(AxisId, Range)>) {
        let Some(axis) = form.innermost() else { return };
        let alone = vec![Atom::Axis(axis)];
        let Some((_, coefficient)) = form.terms.iter().find(|(atoms, _)| *atoms == alone) else { return };
        let (coefficient, term) = (*coefficient, Form { terms: vec![(alone, *coefficient)] });
        let Some(rest) = form.sub(&term) else { return };
        if coefficient.abs() != 1 || rest.innermost() == Some(axis) || rest.terms.iter().any(|(a, _)| a.iter().any(|a| matches!(a, Atom::Opaque(_)))) {
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
            let Some(lower) = Form::constant(0).sub(&rest) else { return };
            if self.at_least(&range.lower, &lower) != Some(true) {
                range.lower = lower;
            }
        } else {
            // axis ≤ rest
            let Some(upper) = rest.add(&Form::constant(1)) else { return };
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
            let (lower, upper) = (self.nodes.index_of_form(&range.lower, span), self.nodes.index_of_form(&range.upper, span));
            match (lower, upper) {
                (Some(lower), Some(upper)) => {
                    self.nodes.axes[axis].lower = lower;
                    self.nodes.axes[axis].upper = upper;
                }
                _ => self.unknown(axis, RangeReason::TooLong),
            }
        }
    }

    fn show(&mut self, range: &Range) -> String {
        let mut bound = |form: &Form| {
            let index = self.nodes.index_of_form(form, Span::UNKNOWN);
            let printed = tilewright_kernel::Algorithm {
                indices: self.nodes.indices.clone().into(),
                values: self.nodes.values.clone().into(),
                types: self.nodes.types.clone().into(),
                axes: self.nodes.axes.clone().into(),
                index_lists: self.nodes.index_lists.clone().into(),
                axis_lists: self.nodes.axis_lists.clone().into(),
                folds: vec![].into(),
                components: vec![].into(),
                equations: vec![].into(),
            };
            let text = tilewright_kernel::print::Printed {
                algorithm: &printed,
                dims: &self.signature.dims,
                parameters: &self.signature.parameters,
            };
            index.map_or("?".to_owned(), |i| text.index_text(i))
        };
        let (lower, upper) = (bound(&range.lower), bound(&range.upper));
        format!("{lower}..{upper}")
    }
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
