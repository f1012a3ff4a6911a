//! Staged copies by threads as equations: `stage xs[i, j] = x …` computes `xs[i, j] = x[i, j]` for the readers of `x`
//! around it.
//!
//! The equations come after those of the algorithm, which stays what was written: no value refers to them, and only
//! the schedule says which reads take them. Staging adds no rounding, so that the result is the same.

use tilewright_kernel::algorithm::{Axis, AxisId, Component, Equation, Index, IndexId, Run, Source, Value};
use tilewright_kernel::info::ParameterKind;
use tilewright_kernel::size::{Size, SizeOp};

use super::{CopyEquation, Program};
use crate::source::{Span, ast};

impl Program {
    /// Adds an equation for each staged copy that threads make; copies of what does not exist, or with another number
    /// of axes than their source has, get none.
    pub(super) fn add_copies(&mut self) {
        for at in 0..self.stages.len() {
            let stage = &self.stages[at].ast;
            if stage.clauses.via.as_ref().is_some_and(|via| via.value == ast::Engine::Tma) {
                continue;
            }
            let stage = stage.clone();
            if let Some(equation) = self.add_copy(&stage) {
                self.copies.push(CopyEquation { stage: at, equation });
            }
        }
    }

    /// How many axes a copy of that has; none of what is no tensor.
    pub(crate) fn rank_of_source(&self, name: &str) -> Option<usize> {
        if let Some((equation, _)) = self.equation(name) {
            return Some(self.algorithm.equations[usize::from(equation)].axes.range().len());
        }
        match &self.parameters.iter().find(|p| p.name == *name)?.kind {
            ParameterKind::Tensor(tensor) => Some(tensor.shape.len()),
            _ => None,
        }
    }

    fn add_copy(&mut self, copy: &ast::StagedCopy) -> Option<u16> {
        let name = &copy.source.text;
        let parameter = self.parameters.iter().position(|p| p.name == *name);
        let (source, bounds, element) = match self.equation(name) {
            Some((equation, component)) => {
                let definition = &self.algorithm.equations[usize::from(equation)];
                let bounds: Vec<(IndexId, IndexId)> = (self.algorithm.axis_lists[definition.axes.range()].iter())
                    .map(|a| &self.algorithm.axes[*a as usize])
                    .map(|axis| (axis.lower, axis.upper))
                    .collect();
                let value = self.algorithm.components[definition.components.range()][usize::from(component)].value;
                let element = self.algorithm.types[value as usize];
                (Source::Equation { equation, component }, bounds, element)
            }
            None => {
                let parameter = parameter?;
                let ParameterKind::Tensor(tensor) = &self.parameters[parameter].kind else { return None };
                let (shape, element) = (tensor.shape.to_vec(), self.parameters[parameter].element);
                let mut bounds = Vec::with_capacity(shape.len());
                for size in &shape {
                    let zero = self.push_index(Index::Literal(0), copy.span);
                    bounds.push((zero, self.push_size(size, copy.span)?));
                }
                (Source::Parameter(u16::try_from(parameter).ok()?), bounds, element)
            }
        };
        if bounds.len() != copy.axes.len() {
            return None;
        }
        let mut axes: Vec<AxisId> = Vec::new();
        let mut indices: Vec<IndexId> = Vec::new();
        for (name, (lower, upper)) in copy.axes.iter().zip(bounds) {
            let axis = self.algorithm.axes.len() as AxisId;
            self.algorithm.axes.to_mut().push(Axis { name: name.text.clone().into(), lower, upper });
            self.axis_spans.push(name.span);
            axes.push(axis);
            indices.push(self.push_index(Index::Axis(axis), name.span));
        }
        let run = |start: usize, len: usize| Run { start: start as u32, len: len as u32 };
        let lists = run(self.algorithm.index_lists.len(), indices.len());
        self.algorithm.index_lists.to_mut().extend(indices);
        let value = self.algorithm.values.len() as u32;
        self.algorithm.values.to_mut().push(Value::Read { source, indices: lists, or: None });
        self.algorithm.types.to_mut().push(element);
        self.value_spans.push(copy.source.span);
        let axis_run = run(self.algorithm.axis_lists.len(), axes.len());
        self.algorithm.axis_lists.to_mut().extend(axes);
        let components = run(self.algorithm.components.len(), 1);
        let component = Component { name: copy.name.text.clone().into(), value, parameter: None };
        self.algorithm.components.to_mut().push(component);
        self.component_spans.push(copy.name.span);
        let equation = u16::try_from(self.algorithm.equations.len()).ok()?;
        self.algorithm.equations.to_mut().push(Equation { components, axes: axis_run });
        self.equation_spans.push(copy.head);
        Some(equation)
    }

    fn push_index(&mut self, index: Index, span: Span) -> IndexId {
        self.algorithm.indices.to_mut().push(index);
        self.index_spans.push(span);
        (self.algorithm.indices.len() - 1) as IndexId
    }

    /// A size as an index; none for what indices do not have.
    fn push_size(&mut self, size: &Size, span: Span) -> Option<IndexId> {
        let mut stack: Vec<IndexId> = Vec::new();
        for op in size.ops.iter() {
            let index = match *op {
                SizeOp::Const(c) => Index::Literal(c),
                SizeOp::Dim(d) => Index::Dim(d),
                SizeOp::CeilDiv => return None,
                SizeOp::Add | SizeOp::Sub | SizeOp::Mul | SizeOp::Div | SizeOp::Mod | SizeOp::Min | SizeOp::Max => {
                    let (b, a) = (stack.pop()?, stack.pop()?);
                    match op {
                        SizeOp::Add => Index::Add(a, b),
                        SizeOp::Sub => Index::Sub(a, b),
                        SizeOp::Mul => Index::Mul(a, b),
                        SizeOp::Div => Index::Div(a, b),
                        SizeOp::Min => Index::Min(a, b),
                        SizeOp::Max => Index::Max(a, b),
                        _ => Index::Mod(a, b),
                    }
                }
            };
            stack.push(self.push_index(index, span));
        }
        stack.pop()
    }
}
