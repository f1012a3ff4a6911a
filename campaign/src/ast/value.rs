//! Expressions: indices, which are mathematical integers, and typed values.

use tilewright_kernel::ElementType;

/// A mathematical integer.
#[derive(Clone, Debug, PartialEq)]
pub enum Index {
    /// A literal.
    Literal(i64),
    /// A dimension.
    Dim(String),
    /// An axis in scope.
    Axis(String),
    /// a + b
    Add(Box<Index>, Box<Index>),
    /// a − b
    Sub(Box<Index>, Box<Index>),
    /// a · b, of which one has no axis
    Mul(Box<Index>, Box<Index>),
    /// ⌊a / b⌋, b without axes
    Div(Box<Index>, Box<Index>),
    /// a mod b, b without axes
    Mod(Box<Index>, Box<Index>),
    /// min(a, b)
    Min(Box<Index>, Box<Index>),
    /// max(a, b)
    Max(Box<Index>, Box<Index>),
    /// A value read from memory.
    Gather(Box<Value>),
}

/// A typed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Its type.
    pub ty: ElementType,
    /// What it is.
    pub node: Node,
}

/// An axis of a reduction with its range.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Its name.
    pub axis: String,
    /// First value.
    pub lower: Index,
    /// One past the last value.
    pub upper: Index,
    /// Whether the range is printed, or left to be inferred.
    pub written: bool,
    /// Whether it is printed with its last value, `..=`.
    pub inclusive: bool,
}

/// A state variable of a fold.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Initial value.
    pub init: Value,
    /// Name in the step, and of the left and right part in the merge.
    pub names: [String; 3],
    /// Next value.
    pub step: Value,
    /// Two parts combined.
    pub merge: Option<Value>,
}

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// As printed.
    Literal(String),
    /// A scalar parameter or a fold's variable.
    Name(String),
    /// An index as a value.
    FromIndex(Index),
    /// An element.
    Read {
        /// Of this tensor.
        tensor: String,
        /// At these indices.
        indices: Vec<Index>,
        /// Value outside.
        or: Option<Box<Value>>,
    },
    /// −a or !a
    Prefix(&'static str, Box<Value>),
    /// f(a, …)
    Call(&'static str, Vec<Value>),
    /// a op b
    Infix(&'static str, Box<Value>, Box<Value>),
    /// Comparison of two indices.
    CompareIndex(&'static str, Index, Index),
    /// Condition, then, else.
    Select(Box<Value>, Box<Value>, Box<Value>),
    /// Conversion to the type of the node.
    Cast(Box<Value>),
    /// A reduction.
    Reduce {
        /// Its name with its order: `ordered sum`.
        op: &'static str,
        /// Its axes.
        axes: Vec<Bound>,
        /// Its term.
        body: Box<Value>,
    },
    /// A fold; its type is that of the first state.
    Fold {
        /// Its axes.
        axes: Vec<Bound>,
        /// Its states.
        states: Vec<State>,
    },
}

/// The two indices that one is made of, if it is: by reference or by mutable reference, as the index is given.
macro_rules! sides {
    ($index:expr) => {
        match $index {
            Index::Add(a, b)
            | Index::Sub(a, b)
            | Index::Mul(a, b)
            | Index::Div(a, b)
            | Index::Mod(a, b)
            | Index::Min(a, b)
            | Index::Max(a, b) => Some([a, b]),
            Index::Literal(_) | Index::Dim(_) | Index::Axis(_) | Index::Gather(_) => None,
        }
    };
}

impl Index {
    /// The two indices that it is made of, if it is.
    pub fn sides(&self) -> Option<[&Self; 2]> {
        sides!(self)
    }

    fn sides_mut(&mut self) -> Option<[&mut Self; 2]> {
        sides!(self)
    }

    fn mentions(&self, dim: &str) -> bool {
        match self {
            Self::Dim(d) => d == dim,
            _ => self.sides().into_iter().flatten().any(|side| side.mentions(dim)),
        }
    }

    fn fix(&mut self, dim: &str, value: i64) {
        match self {
            Self::Dim(d) if d == dim => *self = Self::Literal(value),
            Self::Gather(v) => v.fix(dim, value),
            _ => self.sides_mut().into_iter().flatten().for_each(|side| side.fix(dim, value)),
        }
    }
}

impl Value {
    pub(super) fn fix(&mut self, dim: &str, value: i64) {
        match &mut self.node {
            Node::FromIndex(i) => i.fix(dim, value),
            Node::CompareIndex(_, a, b) => {
                a.fix(dim, value);
                b.fix(dim, value);
            }
            Node::Read { indices, .. } => indices.iter_mut().for_each(|i| i.fix(dim, value)),
            Node::Reduce { axes, .. } | Node::Fold { axes, .. } => {
                for bound in axes {
                    // A size that becomes a literal is at least 1, a range may be empty.
                    bound.written |= bound.upper.mentions(dim);
                    bound.lower.fix(dim, value);
                    bound.upper.fix(dim, value);
                }
            }
            _ => {}
        }
        self.operands_mut().into_iter().for_each(|v| v.fix(dim, value));
    }

    /// The operands, mutably; used by the shrinker.
    pub fn operands_mut(&mut self) -> Vec<&mut Value> {
        match &mut self.node {
            Node::Literal(_) | Node::Name(_) | Node::FromIndex(_) | Node::CompareIndex(..) => vec![],
            Node::Read { indices, or, .. } => {
                let mut list: Vec<&mut Value> = Vec::new();
                for index in indices {
                    gathered(index, &mut list);
                }
                list.extend(or.as_deref_mut());
                list
            }
            Node::Prefix(_, a) | Node::Cast(a) => vec![a],
            Node::Call(_, list) => list.iter_mut().collect(),
            Node::Infix(_, a, b) => vec![a, b],
            Node::Select(a, b, c) => vec![a, b, c],
            Node::Reduce { body, .. } => vec![body],
            Node::Fold { states, .. } => {
                states.iter_mut().flat_map(|s| [&mut s.init, &mut s.step].into_iter().chain(s.merge.as_mut())).collect()
            }
        }
    }

    /// The operands.
    pub fn operands(&self) -> Vec<&Value> {
        match &self.node {
            Node::Literal(_) | Node::Name(_) | Node::FromIndex(_) | Node::CompareIndex(..) => vec![],
            Node::Read { indices, or, .. } => {
                let mut list: Vec<&Value> = Vec::new();
                for index in indices {
                    gathered_ref(index, &mut list);
                }
                list.extend(or.as_deref());
                list
            }
            Node::Prefix(_, a) | Node::Cast(a) => vec![a],
            Node::Call(_, list) => list.iter().collect(),
            Node::Infix(_, a, b) => vec![a, b],
            Node::Select(a, b, c) => vec![a, b, c],
            Node::Reduce { body, .. } => vec![body],
            Node::Fold { states, .. } => {
                states.iter().flat_map(|s| [&s.init, &s.step].into_iter().chain(s.merge.as_ref())).collect()
            }
        }
    }
}

fn gathered<'a>(index: &'a mut Index, list: &mut Vec<&'a mut Value>) {
    match index {
        Index::Gather(v) => list.push(v),
        _ => index.sides_mut().into_iter().flatten().for_each(|side| gathered(side, list)),
    }
}

fn gathered_ref<'a>(index: &'a Index, list: &mut Vec<&'a Value>) {
    match index {
        Index::Gather(v) => list.push(v),
        _ => index.sides().into_iter().flatten().for_each(|side| gathered_ref(side, list)),
    }
}
