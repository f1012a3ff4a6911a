//! What values are made of: others, and those by which indices are read from memory.

use super::{Algorithm, AxisId, Index, IndexId, Run, Source, Value, ValueId};

impl Value {
    /// The same operation of other values; what is no operation of values alone stays as it is.
    #[must_use]
    pub fn of(self, mut other: impl FnMut(ValueId) -> ValueId) -> Self {
        match self {
            Self::Unary(op, a) => Self::Unary(op, other(a)),
            Self::Cast(a) => Self::Cast(other(a)),
            Self::Binary(op, a, b) => Self::Binary(op, other(a), other(b)),
            Self::Compare(op, a, b) => Self::Compare(op, other(a), other(b)),
            Self::Fma(a, b, c) => Self::Fma(other(a), other(b), other(c)),
            Self::Select(a, b, c) => Self::Select(other(a), other(b), other(c)),
            Self::Literal(_)
            | Self::Scalar(_)
            | Self::FromIndex(_)
            | Self::CompareIndex(..)
            | Self::Read { .. }
            | Self::Reduce { .. }
            | Self::Fold { .. }
            | Self::Component { .. }
            | Self::Variable(_)
            | Self::Scatter { .. } => self,
        }
    }
}

/// Whether one of these indices is read from memory, or a part of it.
pub fn is_read(indices: &[Index], index: IndexId) -> bool {
    match indices[index as usize] {
        Index::Value(_) => true,
        node => node.operands().any(|operand| is_read(indices, operand)),
    }
}

impl Algorithm {
    /// The values that a value is made of, other than through equations. Those of an index that is read from memory are
    /// among them, be it one where a range begins or ends.
    pub fn operands(&self, value: ValueId) -> Vec<ValueId> {
        match self.values[value as usize] {
            Value::Literal(_) | Value::Scalar(_) | Value::Variable(_) => Vec::new(),
            Value::FromIndex(a) => self.values_of([a]),
            Value::CompareIndex(_, a, b) => self.values_of([a, b]),
            Value::Unary(_, a) | Value::Cast(a) | Value::Component { fold: a, .. } => vec![a],
            Value::Binary(_, a, b) | Value::Compare(_, a, b) => vec![a, b],
            Value::Fma(a, b, c) | Value::Select(a, b, c) => vec![a, b, c],
            Value::Read { indices, or, .. } => {
                let mut list: Vec<ValueId> = or.into_iter().collect();
                list.extend(self.values_of(self.index_lists[indices.range()].iter().copied()));
                list
            }
            Value::Scatter { indices, term, .. } => {
                let mut list = self.values_of(self.index_lists[indices.range()].iter().copied());
                list.push(term);
                list
            }
            Value::Reduce { axes, body, .. } => {
                let mut list = self.values_of_ranges(axes);
                list.push(body);
                list
            }
            Value::Fold { axes, states } => {
                let mut list = self.values_of_ranges(axes);
                let states = &self.folds[states.range()];
                list.extend(states.iter().flat_map(|s| [s.init, s.step].into_iter().chain(s.merge)));
                list
            }
        }
    }

    /// The [`Value::Scatter`] whose terms a parameter takes in; none if memory does not say which of its elements are
    /// written.
    pub fn scatter_of(&self, parameter: u16) -> Option<ValueId> {
        let mut own = self.components.iter().filter(|component| component.parameter == Some(parameter));
        let is_scatter = |value: ValueId| matches!(self.values.get(value as usize), Some(Value::Scatter { .. }));
        own.find(|component| is_scatter(component.value)).map(|component| component.value)
    }

    /// Whether memory says which elements of a parameter are written: it is that of a [`Value::Scatter`].
    pub fn is_scattered(&self, parameter: u16) -> bool {
        self.scatter_of(parameter).is_some()
    }

    /// The parameters whose elements name the places of terms by `only`, each once: where they are distinct, and the
    /// places nothing but these, no two terms belong to one element.
    pub fn promised(&self) -> Vec<u16> {
        let mut all = Vec::new();
        for value in self.values.iter() {
            let Value::Scatter { op: None, indices, .. } = value else { continue };
            for place in self.values_of(self.index_lists[indices.range()].iter().copied()) {
                if let Value::Read { source: Source::Parameter(read), .. } = self.values[place as usize]
                    && !all.contains(&read)
                {
                    all.push(read);
                }
            }
        }
        all
    }

    /// Whether an index is read from memory, or a part of it.
    pub fn is_read(&self, index: IndexId) -> bool {
        is_read(&self.indices, index)
    }

    /// Whether memory decides where the range of an axis begins or ends.
    pub fn is_of_memory(&self, axis: AxisId) -> bool {
        let axis = &self.axes[axis as usize];
        self.is_read(axis.lower) || self.is_read(axis.upper)
    }

    /// The values that decide where the range of an axis begins and ends, if memory does.
    pub fn values_of_range(&self, axis: AxisId) -> Vec<ValueId> {
        let axis = &self.axes[axis as usize];
        self.values_of([axis.lower, axis.upper])
    }

    fn values_of_ranges(&self, axes: Run) -> Vec<ValueId> {
        self.axis_lists[axes.range()].iter().flat_map(|axis| self.values_of_range(*axis)).collect()
    }

    fn values_of(&self, indices: impl IntoIterator<Item = IndexId>) -> Vec<ValueId> {
        let mut list = Vec::new();
        for index in indices {
            self.index_values(index, &mut list);
        }
        list
    }

    /// Adds the values that an index reads from memory to `list`.
    pub fn index_values(&self, index: IndexId, list: &mut Vec<ValueId>) {
        match self.indices[index as usize] {
            Index::Value(value) => list.push(value),
            index => index.operands().for_each(|operand| self.index_values(operand, list)),
        }
    }
}
