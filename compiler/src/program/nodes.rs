//! The lists of an algorithm under construction, with a span for every node.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Axis, AxisId, Component, Equation, FoldState, Index, IndexId, Run, Value, ValueId};

use super::Obligation;
use super::expressions::{self, Farthest};
use crate::extent::Expr;
use crate::source::Span;

/// Stands in [`Axis::lower`] and [`Axis::upper`] until the range is inferred.
pub(super) const UNKNOWN: IndexId = IndexId::MAX;

/// See [`tilewright_kernel::Algorithm`].
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub indices: Vec<Index>,
    pub index_spans: Vec<Span>,
    /// Whether the index mentions an axis or a value, so that it is not a constant of the launch.
    pub varies: Vec<bool>,
    /// Whether the index contains an [`Index::Value`].
    pub gathers: Vec<bool>,
    pub values: Vec<Value>,
    pub types: Vec<ElementType>,
    pub value_spans: Vec<Span>,
    pub axes: Vec<Axis>,
    pub axis_spans: Vec<Span>,
    pub index_lists: Vec<IndexId>,
    pub axis_lists: Vec<AxisId>,
    pub folds: Vec<FoldState>,
    /// Number of fold variables so far.
    pub variables: u32,
    pub components: Vec<Component>,
    pub component_spans: Vec<Span>,
    pub equations: Vec<Equation>,
    pub obligations: Vec<Obligation>,
}

/// A list position as an id. Lists are shorter than the token stream times a small constant, whose ids are 32 bits.
fn id(len: usize) -> u32 {
    u32::try_from(len).expect("a program has fewer nodes than 2^32")
}

/// Appends `items` to a pool.
fn run<T>(pool: &mut Vec<T>, items: impl IntoIterator<Item = T>) -> Run {
    let start = id(pool.len());
    pool.extend(items);
    Run { start, len: id(pool.len()) - start }
}

impl Nodes {
    pub fn index(&mut self, node: Index, span: Span) -> IndexId {
        let of = |flags: &[bool], id: IndexId| flags.get(id as usize).copied().unwrap_or(false);
        let (varies, gathers) = match node {
            Index::Literal(_) | Index::Dim(_) => (false, false),
            Index::Axis(_) => (true, false),
            Index::Value(_) => (true, true),
            _ => {
                let any = |flags: &[bool]| node.operands().any(|index| of(flags, index));
                (any(&self.varies), any(&self.gathers))
            }
        };
        self.indices.push(node);
        self.index_spans.push(span);
        self.varies.push(varies);
        self.gathers.push(gathers);
        id(self.indices.len() - 1)
    }

    /// The greatest value of an index, or the least, with `of` for axes: see [`Farthest`].
    pub fn farthest(&self, index: IndexId, greatest: bool, of: &dyn Fn(AxisId) -> Expr) -> Expr {
        let is_unsigned = |value| expressions::is_unsigned(&self.types, value);
        Farthest { indices: &self.indices, of, is_unsigned: &is_unsigned }.end(index, greatest)
    }

    pub fn value(&mut self, node: Value, element: ElementType, span: Span) -> ValueId {
        self.values.push(node);
        self.types.push(element);
        self.value_spans.push(span);
        id(self.values.len() - 1)
    }

    pub fn axis(&mut self, name: String, lower: IndexId, upper: IndexId, span: Span) -> AxisId {
        self.axes.push(Axis { name: name.into(), lower, upper });
        self.axis_spans.push(span);
        id(self.axes.len() - 1)
    }

    pub fn index_list(&mut self, list: Vec<IndexId>) -> Run {
        run(&mut self.index_lists, list)
    }

    pub fn axis_list(&mut self, list: Vec<AxisId>) -> Run {
        run(&mut self.axis_lists, list)
    }

    pub fn fold_states(&mut self, list: Vec<FoldState>) -> Run {
        run(&mut self.folds, list)
    }

    pub fn component_list(&mut self, list: Vec<(Component, Span)>) -> Run {
        self.component_spans.extend(list.iter().map(|(_, span)| *span));
        run(&mut self.components, list.into_iter().map(|(component, _)| component))
    }

    pub fn variable(&mut self) -> u32 {
        self.variables += 1;
        self.variables - 1
    }

    pub fn element(&self, value: ValueId) -> ElementType {
        self.types[value as usize]
    }

    pub fn value_span(&self, value: ValueId) -> Span {
        self.value_spans[value as usize]
    }
}
