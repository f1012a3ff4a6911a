//! `like S`: the ops of stage S, replayed on the axes that correspond.
//!
//! An axis here corresponds to an axis of S if both index the same dimension of some tensor ([`counterparts`]). Every
//! op of S whose axes all have a counterpart is repeated with its names; then the leaves take the order and the binds
//! of those of S. What S gives to blocks is one iteration here, but for an output that stands beside S and shares its
//! blocks.

use tilewright_kernel::Algorithm;
use tilewright_kernel::algorithm::{Index, Source, Value};
use tilewright_sorted::{SortedMap, SortedSet};

use super::Stage;
use super::apply::Apply;
use crate::diag::codes::{HiddenAxis, NameTaken, NothingAlike};
use crate::domain::{AxisId, Binding, NewAxis, Op, Unit};
use crate::source::{Span, ast};

impl Apply<'_> {
    /// Applies the op.
    pub(super) fn like(&mut self, stage: &ast::Name, span: Span) {
        let Some(other) = self.others.iter().find(|s| s.name == stage.text) else {
            let known = self.others.iter().map(|s| s.name.clone()).collect();
            self.diags.report(NothingAlike { stage: self.stage.to_owned(), other: stage.text.clone(), known, span });
            return self.give_up(span);
        };
        let pairs = counterparts(&self.program.algorithm, self.equation, other.equation);
        // By root: of the other stage, and here.
        let mut map: Vec<Option<AxisId>> = vec![None; other.domain.axes.len()];
        for (own, theirs) in pairs {
            let root = |roots: &[(u32, AxisId)], axis: u32| roots.iter().find(|r| r.0 == axis).map(|r| r.1);
            let (Some(here), Some(there)) = (root(self.roots, own), root(&other.root_axes(), theirs)) else { continue };
            if self.domain.leaves.contains(&here) {
                map[there] = Some(here);
            }
        }
        if map.iter().all(Option::is_none) {
            let known = Vec::new();
            self.diags.report(NothingAlike { stage: self.stage.to_owned(), other: stage.text.clone(), known, span });
            return self.give_up(span);
        }
        for (op, _) in &other.domain.ops {
            let inputs: Option<Vec<AxisId>> = op.inputs().into_iter().map(|a| map[a]).collect();
            let Some(inputs) = inputs else { continue };
            // An op on axes of different kinds has no meaning here.
            if inputs.iter().any(|a| self.domain.axes[*a].kind != self.domain.axes[inputs[0]].kind) {
                continue;
            }
            let mut names = Vec::new();
            for output in op.outputs() {
                let axis = &other.domain.axes[output];
                if let Some(first) = self.domain.named(&axis.name).filter(|_| !axis.name.is_empty()) {
                    let first = self.domain.axes[first].span;
                    let stage = self.stage.to_owned();
                    self.diags.report(NameTaken { axis: axis.name.clone(), span, first, stage });
                    return self.give_up(span);
                }
                names.push(NewAxis { name: axis.name.clone(), span });
            }
            let before = self.domain.axes.len();
            if self.replay(op, &inputs, names, (other, stage), span).is_none() {
                continue;
            }
            for (output, own) in op.outputs().into_iter().zip(before..) {
                map[output] = Some(own);
            }
        }
        let unlike = other.domain.axes.iter().filter(|axis| self.domain.named(&axis.name).is_none());
        let hidden = unlike.map(|axis| (axis.name.clone(), HiddenAxis::Unlike(stage.text.clone())));
        self.hidden.extend(hidden.collect::<Vec<_>>());
        self.take_order_and_binds(&map, (other, stage), span);
    }

    /// Applies an op of the other stage to axes here; none if it has no meaning for them.
    fn replay(
        &mut self,
        op: &Op,
        inputs: &[AxisId],
        names: Vec<NewAxis>,
        (other, stage): (&Stage, &ast::Name),
        span: Span,
    ) -> Option<()> {
        let mut names = names.into_iter();
        match op {
            Op::Split { input, outer, factor, .. } => {
                let (a, b) = (names.next()?, names.next()?);
                let same = other.domain.axes[*input].extent == self.domain.axes[inputs[0]].extent;
                let count = other.domain.axes[*outer].extent.as_constant();
                let inner = op.outputs()[1];
                let is_unit = other.domain.leaves.contains(&inner)
                    && !other.domain.axes[inner].binding.is_sequential()
                    && self.takes_over(other.domain.axes[inner].binding, stage);
                let has = self.domain.axes[inputs[0]].extent.as_constant().filter(|_| !is_unit);
                match (factor.as_constant(), count) {
                    // Iterations that the axis does not have here are left out, unless units count on them.
                    (Some(factor), _) => {
                        let factor = has.map_or(factor, |n| factor.min(n.max(1)));
                        self.domain.split_by(inputs[0], factor, self.facts, [a, b], span);
                    }
                    (None, Some(count)) if same => {
                        self.domain.split_into(inputs[0], count, self.facts, [a, b], span);
                    }
                    _ => return None,
                }
            }
            Op::Merge { .. } => {
                self.domain.merge(inputs[0], inputs[1], self.facts, names.next()?, span);
            }
            Op::Resize { left, right, .. } => {
                self.domain.resize(inputs[0], *left, *right, self.facts, names.next()?, span);
            }
            Op::Swizzle { .. } => {
                let (a, b) = (names.next()?, names.next()?);
                let extents = inputs.iter().map(|a| self.domain.axes[*a].extent.clone());
                let theirs = op.inputs().into_iter().map(|a| other.domain.axes[a].extent.clone());
                if !extents.eq(theirs) {
                    return None;
                }
                self.domain.swizzle(inputs[0], inputs[1], [a, b], span);
            }
        }
        Some(())
    }

    /// Gives the leaves the order and the binds of those of the other stage. `map` has the axes here, by theirs.
    fn take_order_and_binds(&mut self, map: &[Option<AxisId>], (other, stage): (&Stage, &ast::Name), span: Span) {
        let leaves: Vec<(AxisId, AxisId)> =
            other.domain.leaves.iter().filter_map(|theirs| Some((*theirs, map[*theirs]?))).collect();
        let mut next =
            leaves.iter().map(|l| l.1).filter(|own| self.domain.leaves.contains(own)).collect::<Vec<_>>().into_iter();
        for slot in &mut self.domain.leaves {
            if leaves.iter().any(|m| m.1 == *slot)
                && let Some(axis) = next.next()
            {
                *slot = axis;
            }
        }
        for (theirs, own) in leaves {
            let binding = other.domain.axes[theirs].binding;
            if !self.takes_over(binding, stage) || !self.domain.leaves.contains(&own) {
                continue;
            }
            self.bind_static(own, binding, span, span);
        }
    }

    /// Whether an axis is bound here as it is in the model: what that gives to units that own an instance here is one
    /// iteration.
    fn takes_over(&self, binding: Binding, model: &ast::Name) -> bool {
        match Unit::of(binding) {
            Some(Unit::Cluster) => self.beside == Some(model.text.as_str()),
            Some(unit) => unit > self.owner,
            None => binding != Binding::Serial,
        }
    }

    /// Axes that a refused op would have made are missing from here on.
    fn give_up(&mut self, span: Span) {
        self.domain.poison(&[], [NewAxis { name: String::new(), span }]);
    }
}

/// What is an index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Axis(u32),
    Dimension(Source, usize),
}

/// Axes and dimensions of tensors that are one index, as sets that are merged: each node points to one of its set, in
/// the end to the first.
#[derive(Default)]
struct Classes {
    nodes: SortedMap<Node, usize>,
    next: Vec<usize>,
}

impl Classes {
    fn first(&self, mut node: usize) -> usize {
        while self.next[node] != node {
            node = self.next[node];
        }
        node
    }

    /// That two are one index.
    fn join(&mut self, a: Node, b: Node) {
        let [a, b] = [a, b].map(|node| {
            let new = self.next.len();
            let at = *self.nodes.entry(node).or_insert(new);
            if at == new {
                self.next.push(new);
            }
            self.first(at)
        });
        self.next[a.max(b)] = a.min(b);
    }

    /// The set of an axis; none if it stands nowhere alone.
    fn of(&self, axis: u32) -> Option<usize> {
        self.nodes.get(&Node::Axis(axis)).map(|at| self.first(*at))
    }
}

/// The axes of equation `own` that index the same dimension of a tensor as exactly one axis of equation `other` does,
/// each with that one; through all tensors that equations read at bare axes.
pub(super) fn counterparts(algorithm: &Algorithm, own: usize, other: usize) -> Vec<(u32, u32)> {
    let mut classes = Classes::default();
    for (position, equation) in algorithm.equations.iter().enumerate() {
        let components = &algorithm.components[equation.components.range()];
        let axes = &algorithm.axis_lists[equation.axes.range()];
        for (number, component) in components.iter().enumerate() {
            let own = Source::Equation { equation: position as u16, component: number as u16 };
            for (d, axis) in axes.iter().enumerate() {
                classes.join(Node::Axis(*axis), Node::Dimension(own, d));
                // An output is the tensor that it is stored in.
                if let Some(p) = component.parameter {
                    classes.join(Node::Axis(*axis), Node::Dimension(Source::Parameter(p), d));
                }
            }
            let mut open = vec![component.value];
            let mut seen = SortedSet::new();
            while let Some(value) = open.pop() {
                if !seen.insert(value) {
                    continue;
                }
                open.extend(algorithm.operands(value));
                let Value::Read { source, indices, .. } = algorithm.values[value as usize] else { continue };
                for (d, index) in algorithm.index_lists[indices.range()].iter().enumerate() {
                    if let Index::Axis(axis) = algorithm.indices[*index as usize] {
                        classes.join(Node::Axis(axis), Node::Dimension(source, d));
                    }
                }
            }
        }
    }
    let axes_of = |equation: usize| {
        let definition = &algorithm.equations[equation];
        let mut list: Vec<u32> = algorithm.axis_lists[definition.axes.range()].to_vec();
        let values = algorithm.components[definition.components.range()].iter().map(|c| c.value);
        let mut open: Vec<u32> = values.collect();
        let mut seen = SortedSet::new();
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            open.extend(algorithm.operands(value));
            if let Value::Reduce { axes, .. } | Value::Fold { axes, .. } = algorithm.values[value as usize] {
                list.extend(&algorithm.axis_lists[axes.range()]);
            }
        }
        list
    };
    let others = axes_of(other);
    let mut pairs = Vec::new();
    for axis in axes_of(own) {
        let class = classes.of(axis);
        let matching: Vec<u32> =
            (others.iter().copied()).filter(|o| *o == axis || class.is_some() && classes.of(*o) == class).collect();
        if let [only] = matching[..] {
            pairs.push((axis, only));
        }
    }
    pairs
}
