//! Values of the algorithm as instructions: expressions, reads, inner reductions, inlined intermediates.

mod effects;
mod read;
mod reduce;

use std::collections::VecDeque;
use std::rc::Rc;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{
    AxisId as AlgorithmAxis, Binary, Index, IndexId, Source, Value, ValueId as AlgorithmValue,
};
use tilewright_sorted::SortedMap;

use crate::domain::{Domain, Symbolic};
use crate::emit::functions;
use crate::extent::{Atom, Expr, Facts, Var};
use crate::kernel_ir::{Builder, Memory, RegionId, Type, ValueId, VariableId};
use crate::plan::Analysed;
use crate::program::{Program, expressions};
use crate::schedule::Stage;
use crate::schedule::vector::Vector;

use super::defect::Defect;
use super::nested_stage::Instance;
use super::staging::Held;

/// An axis of the algorithm in scope.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Its value in this thread.
    pub value: ValueId,
    /// The same as an expression over dimensions and leaves.
    pub expr: Rc<Expr>,
}

/// What a value may refer to.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Axes by number.
    axes: SortedMap<AlgorithmAxis, Bound>,
    /// Variables of folds.
    variables: SortedMap<u32, ValueId>,
    /// Whether the axes are the stage's own: they are the same expressions at each point of its loops.
    is_own: bool,
}

impl Scope {
    /// The stage's own axes at a point.
    pub(super) fn of_stage(axes: impl IntoIterator<Item = (AlgorithmAxis, Bound)>) -> Self {
        Self { axes: axes.into_iter().collect(), variables: SortedMap::new(), is_own: true }
    }

    /// The value of an axis in this thread.
    pub(super) fn value(&self, axis: AlgorithmAxis) -> Option<ValueId> {
        self.axes.get(&axis).map(|bound| bound.value)
    }

    /// The same with values of variables.
    pub(super) fn with(&self, variables: &[(u32, ValueId)]) -> Self {
        let mut inner = self.clone();
        inner.variables.extend(variables.iter().copied());
        inner
    }

    /// Adds an axis of another kind: of an inner reduction, or of an equation that is read.
    fn bind(&mut self, axis: AlgorithmAxis, bound: Bound) {
        self.axes.insert(axis, bound);
        self.is_own = false;
    }

    /// The axes as expressions.
    fn exprs(&self) -> expressions::Scope {
        self.axes.iter().map(|(axis, bound)| (*axis, (*bound.expr).clone())).collect()
    }
}

/// Accumulators of a reduction or fold.
#[derive(Clone, Debug)]
pub enum Accumulator {
    /// Everything but argmax and argmin.
    States(Vec<VariableId>),
    /// Best value, its index, and whether there is one.
    Best {
        /// The best term so far.
        value: VariableId,
        /// Its index, `u32`.
        index: VariableId,
        /// Whether a term was seen.
        found: VariableId,
    },
}

impl Accumulator {
    /// Its variables.
    pub fn variables(&self) -> Vec<VariableId> {
        match self {
            Self::States(variables) => variables.clone(),
            Self::Best { value, index, found } => vec![*value, *index, *found],
        }
    }
}

/// Vectors, by read and number of the element of lane 0; where that is over integers of memory, by what these are.
type Loaded = SortedMap<(AlgorithmValue, Rc<Expr>, Rc<[Expr]>), Vec<ValueId>>;

/// The lane being computed of a vectorised leaf.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The leaf.
    pub vector: Vector,
    /// The lane, 0 first.
    pub number: u32,
    /// What was loaded at this point.
    pub loaded: Loaded,
}

/// Lowers values of one stage.
pub struct Values<'a> {
    /// The kernel.
    pub program: &'a Program,
    /// What is known of its dimensions.
    pub facts: &'a Facts,
    /// The stage's axes.
    pub domain: &'a Domain,
    /// The stage's index maps.
    pub symbolic: &'a Symbolic,
    /// Type of index integers.
    pub index: Type,
    /// The lane being computed.
    pub lane: Option<Lane>,
    /// The result of the stage's own reduction, once it is known: one value per state.
    pub reduced: Option<(AlgorithmValue, Vec<ValueId>)>,
    /// Next free variable of expressions, for axes of inner reductions.
    pub next_var: u32,
    /// Whether lanes may disagree on being here: then a read is not a vector.
    pub conditional: bool,
    /// Tensors whose staged copies are in shared memory at this point.
    pub staged: Vec<Held<'a>>,
    /// All stages, where products are computed without tensor cores: what is read for them here is read elsewhere
    /// otherwise, and no address is known to be better than others ask for.
    pub bases: Option<&'a [Analysed]>,
    /// What the stage copies, if it is a copy: it does not take that from another one.
    pub copies_of: &'a [Source],
    /// Instances of other stages at this point, the innermost last.
    pub instances: Vec<Instance<'a>>,
    /// Sums that tensor cores have elsewhere, and readers compute here.
    pub not_here: Vec<Source>,
    /// Conditions that hold here.
    pub known: Vec<AlgorithmValue>,
    /// Whether terms of one of these are being computed: other threads have what registers hold of its factors.
    pub in_product: bool,
    /// If indices are those in an instance of a copy, without what memory adds to them: the inputs that list places,
    /// and the dimension along which they do.
    pub in_instance: Option<Rc<[(u16, usize)]>>,
    /// Loops that are written out, each at its present iteration.
    pub literals: Vec<(Var, i128)>,
    /// What reads index with the stage's own axes, as expressions: the same at each point of its loops.
    pub indices: SortedMap<AlgorithmValue, Rc<[Expr]>>,
    /// Of each read of a memory what it had last.
    pub neighbours: SortedMap<(AlgorithmValue, Memory), Neighbours>,
    /// Of reductions over the stage's own axes, whether they have no term.
    pub empty: SortedMap<AlgorithmValue, bool>,
    /// Where reads of held elements looked last.
    pub leaves: VecDeque<LeavesAt<'a>>,
    /// Elements of equations and reductions that were computed for the value at hand.
    pub computed: Vec<Computed>,
    /// Whether a value is at hand.
    pub is_inside: bool,
    /// The first thing that is not known here, if there is one: see [`Defect`].
    pub defect: Option<Defect>,
}

/// What was computed where it is read. It is there as long as its region is open.
pub struct Computed {
    of: ComputedOf,
    /// Whether for terms of a product: see [`Values::in_product`].
    in_product: bool,
    region: RegionId,
    values: Vec<ValueId>,
}

#[derive(PartialEq, Eq)]
enum ComputedOf {
    /// The element of an equation with these indices.
    Element(Source, Vec<ValueId>),
    /// The states of a reduction, where axes and variables have these values.
    Reduction(AlgorithmValue, Vec<(AlgorithmAxis, ValueId)>, Vec<(u32, ValueId)>),
}

/// A read along the lanes of a vector.
pub struct Neighbours {
    /// What it indexes with.
    indices: Rc<[Expr]>,
    /// How many lanes are neighbours in memory.
    run: u32,
    /// The number of the element.
    number: Expr,
    /// A lane, and the number of the element there.
    first: Option<(u32, Rc<Expr>)>,
}

/// The leaves of a stage at an element.
pub struct LeavesAt<'a> {
    stage: &'a Stage,
    /// The element.
    indices: Rc<[Expr]>,
    leaves: Rc<[Expr]>,
}

impl<'a> Values<'a> {
    /// A size as an index integer.
    pub fn size(&self, b: &mut Builder, e: &Expr) -> ValueId {
        size(b, e, self.index)
    }

    /// Two index integers in one width: the wider.
    fn widen(b: &mut Builder, x: ValueId, y: ValueId) -> (ValueId, ValueId) {
        match (b.ty(x), b.ty(y)) {
            (Type::I32, Type::I64) => (b.index_convert(x, Type::I64), y),
            (Type::I64, Type::I32) => (x, b.index_convert(y, Type::I64)),
            _ => (x, y),
        }
    }

    /// An index of the algorithm; in 64 bits if it was read from memory.
    pub fn index(&mut self, b: &mut Builder, id: IndexId, scope: &Scope) -> ValueId {
        let index = self.program.algorithm.indices[id as usize];
        match index {
            Index::Literal(c) => b.index_literal(self.index, c),
            Index::Dim(d) => b.dim(d, self.index),
            Index::Axis(a) => match scope.axes.get(&a) {
                Some(bound) => bound.value,
                None => {
                    let name = self.program.algorithm.axes[a as usize].name.to_string();
                    self.unknown(Defect::Axis(name));
                    b.index_literal(self.index, 0)
                }
            },
            Index::Value(v) => {
                if let Some(listed) = self.in_instance.clone() {
                    return self.number_in_instance(b, v, &listed, scope);
                }
                let value = self.value(b, v, scope);
                as_index(b, value, self.program.algorithm.types[v as usize])
            }
            Index::Add(x, y)
            | Index::Sub(x, y)
            | Index::Mul(x, y)
            | Index::Div(x, y)
            | Index::Mod(x, y)
            | Index::Min(x, y)
            | Index::Max(x, y) => {
                let (x, y) = (self.index(b, x, scope), self.index(b, y, scope));
                let (x, y) = Self::widen(b, x, y);
                match index {
                    Index::Add(..) => b.index_add(x, y),
                    Index::Sub(..) => b.index_sub(x, y),
                    Index::Mul(..) => b.index_mul(x, y),
                    Index::Div(..) => b.index_div(x, y),
                    Index::Min(..) => b.index_min(x, y),
                    Index::Max(..) => b.index_max(x, y),
                    _ => b.index_mod(x, y),
                }
            }
        }
    }

    /// A value of the algorithm.
    pub fn value(&mut self, b: &mut Builder, id: AlgorithmValue, scope: &Scope) -> ValueId {
        self.together(|this| this.one(b, id, scope))
    }

    /// Evaluates values between which nothing is stored: elements of equations are computed once for all of them.
    fn together<T>(&mut self, values: impl FnOnce(&mut Self) -> T) -> T {
        if !self.is_inside {
            self.computed.clear();
        }
        let is_inside = std::mem::replace(&mut self.is_inside, true);
        let found = values(self);
        self.is_inside = is_inside;
        found
    }

    /// What was computed already for the value at hand.
    fn computed_before(&self, b: &Builder, of: &ComputedOf) -> Option<&[ValueId]> {
        let is_it = |c: &&Computed| c.of == *of && c.in_product == self.in_product && b.is_open(c.region);
        self.computed.iter().find(is_it).map(|c| &c.values[..])
    }

    fn remember(&mut self, b: &Builder, of: ComputedOf, values: Vec<ValueId>) {
        self.computed.push(Computed { of, in_product: self.in_product, region: b.region(), values });
    }

    fn one(&mut self, b: &mut Builder, id: AlgorithmValue, scope: &Scope) -> ValueId {
        let algorithm = &self.program.algorithm;
        let ty = algorithm.types[id as usize];
        match algorithm.values[id as usize] {
            Value::Literal(bits) => b.literal(ty, bits),
            Value::Scalar(p) => b.scalar(p),
            Value::FromIndex(i) => {
                let index = self.index(b, i, scope);
                b.from_index(index, ty)
            }
            Value::CompareIndex(op, x, y) => {
                let (x, y) = (self.index(b, x, scope), self.index(b, y, scope));
                let (x, y) = Self::widen(b, x, y);
                b.index_compare(op, x, y)
            }
            Value::Unary(op, x) => {
                let x = self.value(b, x, scope);
                functions::unary(b, op, x).unwrap_or_else(|missing| {
                    // The program room admits only functions that exist for the type.
                    self.unknown(missing.into());
                    x
                })
            }
            Value::Binary(op, x, y) if ty == ElementType::Bool && matches!(op, Binary::And | Binary::Or) => {
                self.short_circuit(b, op, x, y, scope)
            }
            Value::Binary(op, x, y) => {
                let (x, y) = (self.value(b, x, scope), self.value(b, y, scope));
                b.binary(op, x, y)
            }
            Value::Compare(op, x, y) => {
                let (x, y) = (self.value(b, x, scope), self.value(b, y, scope));
                b.compare(op, x, y)
            }
            Value::Fma(x, y, z) => {
                let (x, y, z) = (self.value(b, x, scope), self.value(b, y, scope), self.value(b, z, scope));
                b.fma(x, y, z)
            }
            Value::Select(c, x, _) if self.known.contains(&c) => self.value(b, x, scope),
            Value::Select(c, x, y) => {
                let condition = self.value(b, c, scope);
                self.choose(b, condition, Some(x), Some(y), x, scope)
            }
            Value::Cast(x) => {
                let x = self.value(b, x, scope);
                b.cast(x, ty)
            }
            Value::Read { source, indices, or } => self.read(b, id, source, indices, or, scope),
            Value::Scatter { term, .. } => self.value(b, term, scope),
            Value::Reduce { .. } | Value::Fold { .. } => {
                let states = self.reduction(b, id, scope);
                states[0]
            }
            Value::Component { fold, component } => {
                let states = self.reduction(b, fold, scope);
                states[usize::from(component)]
            }
            Value::Variable(v) => match scope.variables.get(&v) {
                Some(value) => *value,
                None => {
                    self.unknown(Defect::Variable);
                    b.literal(ty, 0)
                }
            },
        }
    }

    /// Something is not known; what stands for it is never emitted.
    pub fn unknown(&mut self, defect: Defect) {
        self.defect.get_or_insert(defect);
    }

    /// `x && y` or `x || y`; the second operand only where the first does not decide.
    fn short_circuit(
        &mut self,
        b: &mut Builder,
        op: Binary,
        x: AlgorithmValue,
        y: AlgorithmValue,
        scope: &Scope,
    ) -> ValueId {
        let first = self.value(b, x, scope);
        if !self.has_effects(y) {
            let second = self.value(b, y, scope);
            return b.binary(op, first, second);
        }
        if op == Binary::And {
            self.choose(b, first, Some(y), None, y, scope)
        } else {
            self.choose(b, first, None, Some(y), y, scope)
        }
    }

    /// One of two values; a side that has effects is evaluated only where it is chosen. No side means the condition
    /// itself.
    fn choose(
        &mut self,
        b: &mut Builder,
        condition: ValueId,
        then: Option<AlgorithmValue>,
        otherwise: Option<AlgorithmValue>,
        typed: AlgorithmValue,
        scope: &Scope,
    ) -> ValueId {
        let side = |this: &mut Self, b: &mut Builder, v: Option<AlgorithmValue>| match v {
            Some(v) => this.value(b, v, scope),
            None => condition,
        };
        let effects = [then, otherwise].into_iter().flatten().any(|v| self.has_effects(v));
        if !effects {
            let (x, y) = (side(self, b, then), side(self, b, otherwise));
            return b.select(condition, x, y);
        }
        let ty = self.program.algorithm.types[typed as usize];
        let initial = b.literal(ty, 0);
        let result = b.variable(initial);
        // What is loaded on one side is not there on the other.
        let outer = self.lane.as_ref().map(|l| l.loaded.clone());
        let conditional = std::mem::replace(&mut self.conditional, true);
        b.begin_if(condition);
        let x = side(self, b, then);
        b.set(result, x);
        self.restore(&outer);
        b.begin_else();
        let y = side(self, b, otherwise);
        b.set(result, y);
        b.end_if();
        self.restore(&outer);
        self.conditional = conditional;
        b.get(result)
    }

    fn restore(&mut self, loaded: &Option<Loaded>) {
        if let (Some(lane), Some(loaded)) = (&mut self.lane, loaded) {
            lane.loaded.clone_from(loaded);
        }
    }
}

/// A value that was read as an index integer of 64 bits.
fn as_index(b: &mut Builder, mut value: ValueId, ty: ElementType) -> ValueId {
    if ty == ElementType::U64 {
        // As an index it is never negative; what does not fit 63 bits lies outside everything, at the largest index
        // too.
        let most = b.literal(ElementType::U64, i64::MAX as u64);
        value = b.binary(Binary::Min, value, most);
    }
    b.to_index(value, Type::I64)
}

/// An expression over dimensions as an index integer.
pub fn size(b: &mut Builder, e: &Expr, ty: Type) -> ValueId {
    expression(b, e, ty, &|b, v| b.dim(v as u16, ty))
}

/// An expression as an index integer; `variable` gives the values of its variables.
pub fn expression(b: &mut Builder, e: &Expr, ty: Type, variable: &dyn Fn(&mut Builder, Var) -> ValueId) -> ValueId {
    let mut sum = b.index_literal(ty, 0);
    for term in e.terms() {
        let coefficient = i64::try_from(term.coefficient).unwrap_or(i64::MAX);
        let mut product = b.index_literal(ty, coefficient);
        for atom in &term.atoms {
            let factor = match atom {
                Atom::Var(v) => variable(b, *v),
                Atom::Quotient { of, by } => {
                    let (of, by) = (expression(b, of, ty, variable), expression(b, by, ty, variable));
                    b.index_div(of, by)
                }
                Atom::Positive { of } => {
                    let (of, zero) = (expression(b, of, ty, variable), b.index_literal(ty, 0));
                    b.index_max(of, zero)
                }
            };
            product = b.index_mul(product, factor);
        }
        sum = b.index_add(sum, product);
    }
    sum
}
