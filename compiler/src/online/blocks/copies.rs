//! Values over other axes, in which the extreme is that of a block and scores are masked.

use tilewright_kernel::algorithm::{AxisId, Component, Index, IndexId, Reduction, Source, Value, ValueId};
use tilewright_kernel::online::push;

use super::{Cut, Env, Found, axes_of, components, fixed, reached, refused};
use crate::extent::Expr;
use crate::online::Build;
use crate::program::expressions;

impl Cut<'_> {
    /// A value over other axes, where the extreme is that of a block: its number, and the axis of terms in the value.
    pub(super) fn value(&mut self, value: ValueId, env: &Env, of: (IndexId, AxisId)) -> Found<ValueId> {
        let ty = self.program.algorithm.types[value as usize];
        let node = match self.program.algorithm.values[value as usize] {
            Value::Read { source, indices, or } => {
                let list = self.program.algorithm.index_lists[indices.range()].to_vec();
                let places: Vec<IndexId> = list.iter().map(|i| self.copied(*i, env)).collect();
                let (block, terms) = of;
                match source {
                    Source::Equation { equation, .. } if equation == self.extreme => {
                        let of_block = self.of_block;
                        let op = match self.program.algorithm.values
                            [components(&self.program.algorithm, of_block)[0].value as usize]
                        {
                            Value::Reduce { op, .. } => op,
                            _ => Reduction::Max,
                        };
                        let read = self.read((of_block, 0), &[&places[..], &[block]].concat());
                        return Ok(Build::new(self.algorithm(), ty, op, None).safe(&[read]));
                    }
                    Source::Equation { equation, .. }
                        if self.mask.as_ref().is_some_and(|mask| mask.scores == equation) && or.is_none() =>
                    {
                        let masked = self.mask.as_ref().map_or(equation, |mask| mask.masked);
                        return Ok(self.read((masked, 0), &places));
                    }
                    Source::Equation { equation, component } if self.reads_extreme(equation) => {
                        let copy = self.between(equation, &list, terms)?;
                        return Ok(self.read((copy, component), &places));
                    }
                    _ => {}
                }
                let or = or.map(|or| self.value(or, env, of)).transpose()?;
                let or = if self.is_past_end(&list, terms) { Some(self.zero(value, (&list, terms), or)?) } else { or };
                self.read_of(source, &places, or)
            }
            Value::FromIndex(i) => Value::FromIndex(self.copied(i, env)),
            Value::CompareIndex(op, a, b) => Value::CompareIndex(op, self.copied(a, env), self.copied(b, env)),
            Value::Unary(op, a) => Value::Unary(op, self.value(a, env, of)?),
            Value::Cast(a) => Value::Cast(self.value(a, env, of)?),
            Value::Binary(op, a, b) => Value::Binary(op, self.value(a, env, of)?, self.value(b, env, of)?),
            Value::Compare(op, a, b) => Value::Compare(op, self.value(a, env, of)?, self.value(b, env, of)?),
            Value::Fma(a, b, c) => {
                Value::Fma(self.value(a, env, of)?, self.value(b, env, of)?, self.value(c, env, of)?)
            }
            Value::Select(a, b, c) => {
                Value::Select(self.value(a, env, of)?, self.value(b, env, of)?, self.value(c, env, of)?)
            }
            Value::Literal(_) | Value::Scalar(_) | Value::Variable(_) => return Ok(value),
            Value::Reduce { .. } | Value::Fold { .. } | Value::Component { .. } | Value::Scatter { .. } => {
                let span = self.program.value_spans.get(value as usize).copied().unwrap_or(self.span);
                return refused("has terms with a reduction in them: give that an equation of its own", span);
            }
        };
        Ok(push(self.algorithm(), node, ty))
    }

    pub(super) fn copied(&mut self, index: IndexId, env: &Env) -> IndexId {
        let node = match self.program.algorithm.indices[index as usize] {
            Index::Axis(axis) => return env.iter().find(|e| e.0 == axis).map_or(index, |e| e.1),
            Index::Literal(_) | Index::Dim(_) => return index,
            Index::Value(value) => Index::Value(self.copied_value(value, env)),
            node => node.of(|index| self.copied(index, env)),
        };
        self.index(node)
    }

    /// An end of ranges over other axes. Tiles of products have rows that are no elements: what memory says of them is
    /// not read.
    pub(super) fn copied_end(&mut self, index: IndexId, env: &Env) -> IndexId {
        let outer = std::mem::replace(&mut self.in_end, true);
        let copied = self.copied(index, env);
        self.in_end = outer;
        copied
    }

    /// A value that an index is read from memory by, over other axes: one without the extreme, and without reductions.
    fn copied_value(&mut self, value: ValueId, env: &Env) -> ValueId {
        let node = self.program.algorithm.values[value as usize];
        let of_extreme = match node {
            Value::Read { source: Source::Equation { equation, .. }, .. } => {
                equation == self.extreme || self.reads_extreme(equation)
            }
            node => matches!(node, Value::Reduce { .. } | Value::Fold { .. } | Value::Component { .. }),
        };
        if of_extreme {
            self.nested.get_or_insert(value);
            return value;
        }
        let node = match node {
            Value::Read { source, indices, or } => {
                let list = self.program.algorithm.index_lists[indices.range()].to_vec();
                let places: Vec<IndexId> = list.iter().map(|i| self.copied(*i, env)).collect();
                let mut or = or.map(|or| self.copied_value(or, env));
                if or.is_none() && self.in_end {
                    let ty = self.program.algorithm.types[value as usize];
                    or = Some(push(self.algorithm(), Value::Literal(0), ty));
                }
                self.read_of(source, &places, or)
            }
            Value::FromIndex(i) => Value::FromIndex(self.copied(i, env)),
            Value::CompareIndex(op, a, b) => Value::CompareIndex(op, self.copied(a, env), self.copied(b, env)),
            node => node.of(|value| self.copied_value(value, env)),
        };
        let ty = self.program.algorithm.types[value as usize];
        push(self.algorithm(), node, ty)
    }

    /// Whether what is read at these indices along the terms has places past their end.
    fn is_past_end(&self, list: &[IndexId], terms: AxisId) -> bool {
        let algorithm = &self.program.algorithm;
        let mut open = list.to_vec();
        while let Some(index) = open.pop() {
            let index = algorithm.indices[index as usize];
            if index == Index::Axis(terms) {
                return self.filled.is_some();
            }
            open.extend(index.operands());
        }
        false
    }

    /// What a factor is past the end of the terms, where it is multiplied by 0: what is read ends there, too.
    fn zero(&mut self, read: ValueId, (list, terms): (&[IndexId], AxisId), or: Option<ValueId>) -> Found<ValueId> {
        let (program, span) = (&*self.program, self.program.value_spans.get(read as usize).copied());
        let span = span.unwrap_or(self.span);
        let Some(filled) = self.filled.as_ref().filter(|_| self.in_product && or.is_none()) else {
            return refused("has blocks of which the last may lack terms, and this is no factor of a product", span);
        };
        let algorithm = &program.algorithm;
        let Value::Read { source, .. } = algorithm.values[read as usize] else { return Ok(read) };
        let mut along = list.iter().enumerate().filter(|(_, i)| self.is_past_end(&[**i], terms));
        let (Some((at, index)), None) = (along.next(), along.next()) else {
            return refused("has blocks of which the last may lack terms, and this is read with them twice", span);
        };
        let end = match source {
            Source::Parameter(parameter) => expressions::tensor(program, parameter)
                .and_then(|tensor| tensor.shape.get(at))
                .map(|size| self.facts.normal(&Expr::from_size(size))),
            Source::Equation { equation, .. } => {
                axes_of(algorithm, equation).get(at).map(|axis| fixed(program, *axis, self.facts).1)
            }
        };
        let is_bare = algorithm.indices[*index as usize] == Index::Axis(terms);
        let is_end = |own: &Expr| end.as_ref() == Some(&self.facts.normal(own)) && !own.is_unknown();
        let ends = filled.end.as_ref().is_none_or(is_end);
        if !(is_bare && ends) {
            return refused(
                "has blocks of which the last may lack terms, and this does not end with them: it would be multiplied \
                 by 0, and may be infinite",
                span,
            );
        }
        let ty = algorithm.types[read as usize];
        Ok(push(self.algorithm(), Value::Literal(0), ty))
    }

    /// Whether an equation without a reduction reads the extreme.
    fn reads_extreme(&self, equation: u16) -> bool {
        let algorithm = &self.program.algorithm;
        reached(algorithm, equation).into_iter().any(|value| match algorithm.values[value as usize] {
            Value::Read { source: Source::Equation { equation: read, .. }, .. } => {
                read == self.extreme || self.reads_extreme(read)
            }
            _ => false,
        })
    }

    /// The copy of an equation that reads the extreme, which is read at these indices along an axis of terms.
    fn between(&mut self, equation: u16, indices: &[IndexId], terms: AxisId) -> Found<u16> {
        if let Some((_, copy)) = self.between.iter().find(|(written, _)| *written == equation) {
            return Ok(*copy);
        }
        let own = axes_of(&self.program.algorithm, equation).to_vec();
        let is_of_terms = |index: &IndexId| self.program.algorithm.indices[*index as usize] == Index::Axis(terms);
        let along = own.iter().zip(indices).find(|(_, index)| is_of_terms(index)).map(|(axis, _)| *axis);
        let (axes, env) = self.like(equation, along);
        let at = along.and_then(|along| env.iter().copied().find(|e| e.0 == along));
        let Some((along, at)) = at else {
            return refused("has terms that read the extreme in an equation without them", self.span);
        };
        let ([lower, _], size) = (self.range, self.size);
        let distance = self.index(Index::Sub(at, lower));
        let block = self.index(Index::Div(distance, size));
        let in_product = std::mem::replace(&mut self.in_product, false);
        let mut parts = Vec::new();
        for Component { name, value, .. } in components(&self.program.algorithm, equation).to_vec() {
            parts.push((name.to_string(), self.value(value, &env, (block, along))?));
        }
        self.in_product = in_product;
        let copy = self.equation(&axes, parts);
        self.between.push((equation, copy));
        Ok(copy)
    }
}
