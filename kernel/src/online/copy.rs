//! Copies of terms: with an extreme that becomes a variable, with something in the place of u, with other variables.

use super::NoChain;
use super::chain::component_value;
use super::key::{has_reduction, index_key, key, varies};
use crate::algorithm::{Algorithm, AxisId, Index, IndexId, Run, Source, Value, ValueId};
use crate::element::ElementType;

/// Adds a value.
pub fn push(algorithm: &mut Algorithm, value: Value, ty: ElementType) -> ValueId {
    algorithm.values.to_mut().push(value);
    algorithm.types.to_mut().push(ty);
    (algorithm.values.len() - 1) as ValueId
}

/// Whether a variable is part of a value.
pub(super) fn mentions(algorithm: &Algorithm, value: ValueId, variable: u32) -> bool {
    match algorithm.values[value as usize] {
        Value::Variable(v) => v == variable,
        _ => algorithm.operands(value).into_iter().any(|v| mentions(algorithm, v, variable)),
    }
}

/// The value with others in the place of variables, added to the algorithm.
pub fn replaced(algorithm: &mut Algorithm, value: ValueId, with: &[(u32, ValueId)]) -> ValueId {
    let ty = algorithm.types[value as usize];
    if let Value::Variable(v) = algorithm.values[value as usize] {
        return with.iter().find(|w| w.0 == v).map_or(value, |w| w.1);
    }
    if !with.iter().any(|w| mentions(algorithm, value, w.0)) {
        return value;
    }
    let node = algorithm.values[value as usize];
    // Nothing but operations of a term has the variable of an extreme.
    let node = node.of(|v| replaced(algorithm, v, with));
    push(algorithm, node, ty)
}

/// What axes of copied expressions become.
pub(super) type Env = Vec<(AxisId, IndexId)>;

/// Copies a term with everything in it that reads the extreme, which becomes a variable.
pub(super) struct Copy<'a> {
    pub algorithm: &'a mut Algorithm,
    pub earlier: u16,
    /// With which indices it is to be read, in the axes of the copy.
    pub wanted: Vec<String>,
    pub now: u32,
    pub failed: Option<NoChain>,
    /// What each copy was made of.
    pub origins: &'a mut Vec<ValueId>,
}

impl Copy<'_> {
    pub fn index(&mut self, index: Index) -> IndexId {
        self.algorithm.indices.to_mut().push(index);
        (self.algorithm.indices.len() - 1) as IndexId
    }

    /// Whether a value reads the extreme, also through equations without reductions, or through those with one.
    fn reads(&self, value: ValueId) -> bool {
        let through = match self.algorithm.values[value as usize] {
            Value::Read { source: Source::Equation { equation, .. }, .. } => {
                equation == self.earlier
                    || (self.algorithm.components)[self.algorithm.equations[usize::from(equation)].components.range()]
                        .iter()
                        .any(|c| self.reads(c.value))
            }
            _ => false,
        };
        through || self.algorithm.operands(value).into_iter().any(|v| self.reads(v))
    }

    fn copied_index(&mut self, index: IndexId, env: &Env) -> IndexId {
        let node = self.algorithm.indices[index as usize];
        let node = match node {
            Index::Axis(axis) => return env.iter().find(|e| e.0 == axis).map_or(index, |e| e.1),
            Index::Literal(_) | Index::Dim(_) => return index,
            Index::Value(value) => Index::Value(self.value(value, env)),
            node => node.of(|index| self.copied_index(index, env)),
        };
        self.index(node)
    }

    pub fn indices(&mut self, run: Run, env: &Env) -> Vec<IndexId> {
        let list = self.algorithm.index_lists[run.range()].to_vec();
        list.into_iter().map(|i| self.copied_index(i, env)).collect()
    }

    pub fn value(&mut self, value: ValueId, env: &Env) -> ValueId {
        let ty = self.algorithm.types[value as usize];
        let reads = self.reads(value);
        if !reads && env.is_empty() {
            return value;
        }
        let node = match self.algorithm.values[value as usize] {
            Value::Read { source: Source::Equation { equation, .. }, indices, or } if equation == self.earlier => {
                let found = self.indices(indices, env);
                // The same element as everywhere: that of the sum's own axes.
                let found: Vec<String> = found.iter().map(|i| index_key(self.algorithm, *i, &[])).collect();
                if found != self.wanted || or.is_some() {
                    self.failed.get_or_insert(NoChain::Elements);
                }
                Value::Variable(self.now)
            }
            Value::Read { source: Source::Equation { equation, component }, indices, or } if reads => {
                let places = self.indices(indices, env);
                if or.is_some() || has_reduction(self.algorithm, equation) {
                    self.failed.get_or_insert(NoChain::Nested(value));
                    return value;
                }
                let definition = &self.algorithm.equations[usize::from(equation)];
                let axes = self.algorithm.axis_lists[definition.axes.range()].to_vec();
                let mut inner: Env = axes.into_iter().zip(places).collect();
                // Ranges of axes are over dimensions and other axes of the equation; nothing else is in scope.
                inner.sort_unstable();
                return self.value(component_value(self.algorithm, equation, component), &inner);
            }
            Value::Read { source, indices, or } => {
                let places = self.indices(indices, env);
                let or = or.map(|or| self.value(or, env));
                let start = self.algorithm.index_lists.len() as u32;
                let len = places.len() as u32;
                self.algorithm.index_lists.to_mut().extend(places);
                Value::Read { source, indices: Run { start, len }, or }
            }
            Value::FromIndex(i) => Value::FromIndex(self.copied_index(i, env)),
            Value::CompareIndex(op, a, b) => {
                Value::CompareIndex(op, self.copied_index(a, env), self.copied_index(b, env))
            }
            Value::Reduce { .. } | Value::Fold { .. } | Value::Component { .. } | Value::Scatter { .. } => {
                self.failed.get_or_insert(NoChain::Nested(value));
                return value;
            }
            Value::Literal(_) | Value::Scalar(_) | Value::Variable(_) => return value,
            operation => operation.of(|v| self.value(v, env)),
        };
        self.origins.push(value);
        push(self.algorithm, node, ty)
    }
}

/// Copies an argument with something else in the place of u.
pub(super) struct Swap<'a> {
    pub algorithm: &'a mut Algorithm,
    pub u: &'a str,
    pub axis: AxisId,
    pub with: Value,
}

impl Swap<'_> {
    /// Whether u is a part of a value.
    fn has(&self, value: ValueId) -> bool {
        let is_u = |v: ValueId| key(self.algorithm, v, &[]) == self.u || self.has(v);
        self.algorithm.operands(value).into_iter().any(is_u)
    }

    /// Fails where something is left that differs from term to term.
    pub fn value(&mut self, value: ValueId) -> Result<ValueId, ValueId> {
        let ty = self.algorithm.types[value as usize];
        if key(self.algorithm, value, &[]) == self.u {
            return Ok(push(self.algorithm, self.with, ty));
        }
        // u may be the same for all terms, and is swapped then, too.
        if !varies(self.algorithm, value, &[self.axis]) && !self.has(value) {
            return Ok(value);
        }
        let node = match self.algorithm.values[value as usize] {
            Value::Unary(op, a) => Value::Unary(op, self.value(a)?),
            Value::Binary(op, a, b) => Value::Binary(op, self.value(a)?, self.value(b)?),
            Value::Fma(a, b, c) => Value::Fma(self.value(a)?, self.value(b)?, self.value(c)?),
            _ => return Err(value),
        };
        Ok(push(self.algorithm, node, ty))
    }
}
