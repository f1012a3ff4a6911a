//! Ops with conditions of their own: units, merges, orders, swizzles.

use super::{Apply, Reduced, UNROLL_LIMIT};
use crate::diag::codes::{AxisBoundTwice, DiscardedOp, MixedMerge, NameTaken, NotASwizzle, NotStatic};
use crate::domain::{AxisId, Binding, Domain, NewAxis, Op};
use crate::source::{Span, ast};

impl Apply<'_> {
    pub(in crate::schedule) fn bind(&mut self, axis: AxisId, binding: Binding, span: Span, op: Span) {
        let first = &self.domain.axes[axis];
        if first.poisoned {
            return;
        }
        if first.binding != Binding::Serial {
            let axis = first.name.clone();
            self.diags.report(AxisBoundTwice { axis, span, first: first.binding_span });
            return;
        }
        let axis = &mut self.domain.axes[axis];
        axis.binding = binding;
        axis.binding_span = op;
    }

    /// Binds a leaf, if the number of iterations is known where the binding writes all of them out.
    pub(in crate::schedule) fn bind_static(&mut self, leaf: AxisId, binding: Binding, span: Span, op: Span) {
        let is_known = match binding {
            Binding::Vector => self.static_extent(leaf, span, "vectorize", false).is_some(),
            Binding::Unroll(None) => self.static_extent(leaf, span, "unroll", true).is_some(),
            _ => true,
        };
        if is_known {
            self.bind(leaf, binding, span, op);
        }
    }

    /// The extent of a leaf as a literal, or (with `bounded`) a bound that the facts give.
    pub(super) fn static_extent(&mut self, leaf: AxisId, span: Span, op: &'static str, bounded: bool) -> Option<i128> {
        let axis = &self.domain.axes[leaf];
        if axis.poisoned {
            return None;
        }
        let extent =
            axis.extent.as_constant().or_else(|| if bounded { self.facts.upper_bound(&axis.extent) } else { None });
        if let Some(extent) = extent.filter(|e| *e <= UNROLL_LIMIT) {
            return Some(extent);
        }
        let names = |v: u32| self.program.dim_name(v as u16).to_owned();
        self.diags.report(NotStatic {
            axis: axis.name.clone(),
            extent: axis.extent.show(&names),
            sizes: axis.extent.vars().into_iter().map(names).collect(),
            bound: extent,
            limit: UNROLL_LIMIT,
            op,
            span,
        });
        None
    }

    pub(super) fn merge(&mut self, axes: &[ast::Name], into: &ast::Name, span: Span) {
        let all: Vec<&ast::Name> = axes.iter().collect();
        let inputs: Vec<Option<AxisId>> = axes.iter().map(|a| self.leaf(a, &all)).collect();
        let known: Vec<AxisId> = inputs.iter().copied().flatten().collect();
        let name = self.new_axis(into, &[]);
        let mut distinct = known.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let poisoned = known.iter().any(|a| self.domain.axes[*a].poisoned);
        if distinct.len() < known.len() {
            self.diags.report(NameTaken {
                axis: axes.last().map_or(String::new(), |a| a.text.clone()),
                span,
                first: axes[0].span,
                stage: self.stage.to_owned(),
            });
            return self.poison(&distinct, &[into]);
        }
        let (Some(mut name), true, false) = (name, known.len() == inputs.len() && !known.is_empty(), poisoned) else {
            return self.poison(&known, &[into]);
        };
        let kind = |d: &Domain, a: AxisId| d.axes[a].kind;
        if let Some(other) = known.iter().find(|a| kind(self.domain, **a) != kind(self.domain, known[0])) {
            self.diags.report(MixedMerge {
                first: self.domain.axes[known[0]].name.clone(),
                second: self.domain.axes[*other].name.clone(),
                span,
            });
            return self.poison(&known, &[into]);
        }
        let mut merged = known[0];
        for (at, next) in known.iter().enumerate().skip(1) {
            // The axes between the first and the last of a longer merge have no name of their own.
            let last = at + 1 == known.len();
            let step = if last {
                std::mem::replace(&mut name, NewAxis { name: String::new(), span })
            } else {
                NewAxis { name: format!("{}·{at}", into.text), span: into.span }
            };
            merged = self.domain.merge(merged, *next, self.facts, step, span);
        }
        if known.len() == 1 {
            // A merge of one axis only renames it.
            self.domain.resize(merged, 0, 0, self.facts, name, span);
        }
    }

    pub(super) fn reorder(&mut self, axes: &[ast::Name]) {
        let mut order = Vec::new();
        let all: Vec<&ast::Name> = axes.iter().collect();
        for name in axes {
            let Some(axis) = self.leaf(name, &all) else { return };
            if order.contains(&axis) {
                let first = axes.iter().find(|a| a.text == name.text).map_or(name.span, |a| a.span);
                self.diags.report(NameTaken {
                    axis: name.text.clone(),
                    span: name.span,
                    first,
                    stage: self.stage.to_owned(),
                });
                return;
            }
            order.push(axis);
        }
        // The named axes take the places that they hold together, in the new order.
        let mut next = order.iter().copied();
        for slot in &mut self.domain.leaves {
            if order.contains(slot)
                && let Some(axis) = next.next()
            {
                *slot = axis;
            }
        }
    }

    pub(super) fn swizzle(&mut self, op: &ast::Op, inputs: [&ast::Name; 2], outputs: [&ast::Name; 2]) {
        let axes = [self.leaf(inputs[0], &inputs), self.leaf(inputs[1], &inputs)];
        let names = [self.new_axis(outputs[0], &[]), self.new_axis(outputs[1], &[outputs[0]])];
        let known: Vec<AxisId> = axes.iter().copied().flatten().collect();
        let ([Some(x), Some(y)], [Some(a), Some(b)]) = (axes, names) else { return self.poison(&known, &outputs) };
        if self.domain.axes[x].poisoned || self.domain.axes[y].poisoned {
            return self.poison(&known, &outputs);
        }
        let extent = |axis: AxisId| self.domain.axes[axis].extent.as_constant();
        let square = x != y
            && extent(x) == extent(y)
            && extent(x).is_some_and(|e| e > 0 && e & (e - 1) == 0)
            && self.domain.axes[x].kind == self.domain.axes[y].kind;
        if !square {
            let names = |v: u32| self.program.dim_name(v as u16).to_owned();
            let show = |axis: AxisId| (self.domain.axes[axis].name.clone(), self.domain.axes[axis].extent.show(&names));
            self.diags.report(NotASwizzle { x: show(x), y: show(y), span: op.span });
            return self.poison(&known, &outputs);
        }
        self.domain.swizzle(x, y, [a, b], op.span);
    }

    /// Reports the ops that say what becomes of an axis which a later op replaces, and forgets them.
    pub(super) fn discarded(&mut self, ops: &[ast::Op], reduced: &mut Vec<Reduced>) {
        let domain = &*self.domain;
        let bound = (0..domain.axes.len()).filter(|axis| domain.axes[*axis].binding != Binding::Serial);
        let bound = bound.map(|axis| (axis, domain.axes[axis].binding_span));
        for (axis, span) in bound.chain(reduced.iter().map(|r| (r.axis, r.span))) {
            let (Some((by, later)), Some(op)) = (domain.consumer(axis), ops.iter().find(|op| op.span == span)) else {
                continue;
            };
            let Some(said) = said(&op.kind) else { continue };
            let is_free = |result: &&AxisId| {
                let is_reduced = reduced.iter().any(|r| r.axis == **result);
                domain.leaves.contains(result)
                    && if said.word == "reduce" {
                        !is_reduced
                    } else {
                        domain.axes[**result].binding == Binding::Serial
                    }
            };
            // A merge of several axes has steps without names, all of one span.
            let last =
                domain.ops.iter().rfind(|(_, span)| span == later).filter(|(op, _)| matches!(op, Op::Merge { .. }));
            let outputs = last.map_or(by, |(op, _)| op).outputs();
            // Blocks and warps take the outer part, threads and vectors the inner one.
            let preferred = if said.is_outer { outputs.first() } else { outputs.last() };
            let preferred = preferred.filter(is_free).or_else(|| outputs.iter().find(is_free).filter(|_| said.is_any));
            self.diags.report(DiscardedOp {
                word: said.word,
                axis: domain.axes[axis].name.clone(),
                by: match by {
                    Op::Split { .. } => "split",
                    Op::Merge { .. } => "merge",
                    Op::Resize { .. } => "resize",
                    Op::Swizzle { .. } => "swizzle",
                },
                results: outputs.iter().map(|result| domain.axes[*result].name.clone()).collect(),
                instead: preferred.map(|result| format!("{} {}{}", said.word, domain.axes[*result].name, said.rest)),
                is_alone: said.is_alone,
                span,
                later: *later,
            });
        }
        reduced.retain(|r| domain.consumer(r.axis).is_none());
    }
}

/// What an op says of the iterations of an axis.
struct Said {
    word: &'static str,
    /// What stands after the axis; that of units that are parts of others is left to the author.
    rest: String,
    is_alone: bool,
    is_outer: bool,
    /// Whether any result will do.
    is_any: bool,
}

fn said(op: &ast::OpKind) -> Option<Said> {
    use ast::OpKind;
    let inner = |word| Said { word, rest: String::new(), is_alone: true, is_outer: false, is_any: word == "unroll" };
    Some(match op {
        OpKind::Bind { axes, scale, unit, range, raster, .. } => {
            let is_plain = scale.is_none() && range.is_none() && raster.is_empty();
            Said {
                word: "bind",
                rest: format!(": {}", unit.text),
                is_alone: axes.len() == 1 && is_plain,
                is_outer: unit.text != "thread",
                is_any: false,
            }
        }
        OpKind::Vectorize { .. } => inner("vectorize"),
        OpKind::Unroll { by, .. } => Said { is_alone: by.is_none(), ..inner("unroll") },
        OpKind::Reduce { axes, by } => Said { is_alone: axes.len() == 1 && by.is_none(), ..inner("reduce") },
        _ => return None,
    })
}
