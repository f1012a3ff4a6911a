//! Values of the algorithm as instructions: expressions, reads, inner reductions, inlined intermediates.

use std::collections::BTreeMap;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{
    AxisId as AlgorithmAxis, Binary, Compare, FoldState, Index, IndexId, Reduction, Run, Source, Value,
    ValueId as AlgorithmValue,
};
use tilewright_kernel::info::TensorParameter;

use super::emit::functions;
use crate::domain::{Domain, Symbolic};
use crate::extent::{Atom, Expr, Facts, Var};
use crate::kernel_ir::{Builder, Guard, Memory, Type, ValueId, VariableId, reduction};
use crate::program::{Program, expressions};
use crate::schedule::vector::{Class, Vector};
use crate::schedule::{Reads, Register, register, vector};

use super::defect::Defect;
use super::nested_stage::{self, Instance};
use super::staging::Held;

/// An axis of the algorithm in scope.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Its value in this thread.
    pub value: ValueId,
    /// The same as an expression over dimensions and leaves.
    pub expr: Expr,
}

/// What a value may refer to.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Axes by number.
    pub axes: BTreeMap<AlgorithmAxis, Bound>,
    /// Variables of folds.
    pub variables: BTreeMap<u32, ValueId>,
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

/// The lane being computed of a vectorised leaf.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The leaf.
    pub vector: Vector,
    /// The lane, 0 first.
    pub number: u32,
    /// Vectors loaded at this point, by read and offset of lane 0.
    pub loaded: BTreeMap<(AlgorithmValue, Expr), Vec<ValueId>>,
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
    /// What the stage copies, if it is a copy: it does not take that from another one.
    pub copies_of: &'a [Source],
    /// Instances of other stages at this point, the innermost last.
    pub instances: Vec<Instance<'a>>,
    /// Loops that are written out, each at its present iteration.
    pub literals: Vec<(Var, i128)>,
    /// The first thing that is not known here, if there is one: see [`Defect`].
    pub defect: Option<Defect>,
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
                let mut value = self.value(b, v, scope);
                if self.program.algorithm.types[v as usize] == ElementType::U64 {
                    // As an index it is never negative; what does not fit 63 bits lies outside everything, at the
                    // largest index too.
                    let most = b.literal(ElementType::U64, i64::MAX as u64);
                    value = b.binary(Binary::Min, value, most);
                }
                b.to_index(value, Type::I64)
            }
            Index::Add(x, y) | Index::Sub(x, y) | Index::Mul(x, y) | Index::Div(x, y) | Index::Mod(x, y) => {
                let (x, y) = (self.index(b, x, scope), self.index(b, y, scope));
                let (x, y) = Self::widen(b, x, y);
                match index {
                    Index::Add(..) => b.index_add(x, y),
                    Index::Sub(..) => b.index_sub(x, y),
                    Index::Mul(..) => b.index_mul(x, y),
                    Index::Div(..) => b.index_div(x, y),
                    _ => b.index_mod(x, y),
                }
            }
        }
    }

    /// A value of the algorithm.
    pub fn value(&mut self, b: &mut Builder, id: AlgorithmValue, scope: &Scope) -> ValueId {
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
            Value::Select(c, x, y) => {
                let condition = self.value(b, c, scope);
                self.choose(b, condition, Some(x), Some(y), x, scope)
            }
            Value::Cast(x) => {
                let x = self.value(b, x, scope);
                b.cast(x, ty)
            }
            Value::Read { source, indices, or } => self.read(b, id, source, indices, or, scope),
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

    /// Whether evaluating a value where it is not needed could read out of bounds or repeat work: it reads or reduces.
    fn has_effects(&self, id: AlgorithmValue) -> bool {
        let algorithm = &self.program.algorithm;
        matches!(
            algorithm.values[id as usize],
            Value::Read { .. }
                | Value::Reduce { .. }
                | Value::Fold { .. }
                | Value::Binary(Binary::Div | Binary::Rem, ..)
        ) || algorithm.operands(id).into_iter().any(|v| self.has_effects(v))
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

    fn restore(&mut self, loaded: &Option<BTreeMap<(AlgorithmValue, Expr), Vec<ValueId>>>) {
        if let (Some(lane), Some(loaded)) = (&mut self.lane, loaded) {
            lane.loaded.clone_from(loaded);
        }
    }

    fn read(
        &mut self,
        b: &mut Builder,
        id: AlgorithmValue,
        source: Source,
        indices: Run,
        or: Option<AlgorithmValue>,
        scope: &Scope,
    ) -> ValueId {
        let program = self.program;
        let list = &program.algorithm.index_lists[indices.range()];
        let values: Vec<ValueId> = list.iter().map(|i| self.index(b, *i, scope)).collect();
        let exprs_scope: expressions::Scope = scope.axes.iter().map(|(a, bound)| (*a, bound.expr.clone())).collect();
        let exprs: Vec<Expr> = list.iter().map(|i| expressions::index(program, *i, &exprs_scope)).collect();
        if let Some(held) = self.held(source, id) {
            return self.read_held(b, (id, source), &held, (&values, &exprs), or, scope);
        }
        match source {
            Source::Equation { equation, component } => {
                let definition = &program.algorithm.equations[usize::from(equation)];
                let axes = &program.algorithm.axis_lists[definition.axes.range()];
                let components = &program.algorithm.components[definition.components.range()];
                let body = components[usize::from(component)].value;
                let mut inner = Scope::default();
                let inside = or.map(|_| self.in_domain(b, source, &values, scope));
                for ((axis, value), expr) in axes.iter().zip(&values).zip(exprs) {
                    let value = if b.ty(*value) == self.index { *value } else { b.index_convert(*value, self.index) };
                    inner.axes.insert(*axis, Bound { value, expr });
                }
                let (Some(or), Some(inside)) = (or, inside) else { return self.value(b, body, &inner) };
                let initial = self.value(b, or, scope);
                let result = b.variable(initial);
                let outer = self.lane.as_ref().map(|l| l.loaded.clone());
                let conditional = std::mem::replace(&mut self.conditional, true);
                b.begin_if(inside);
                let value = self.value(b, body, &inner);
                b.set(result, value);
                b.end_if();
                self.restore(&outer);
                self.conditional = conditional;
                b.get(result)
            }
            Source::Parameter(parameter) => {
                let Some(tensor) = expressions::tensor(program, parameter) else { return b.scalar(parameter) };
                let guard = or.map(|or| (self.in_domain(b, source, &values, scope), or));
                if let Some(held) = self.staged.iter().find(|held| held.staged.is_for(parameter, Some(id))) {
                    let offset = held.offset(b, &values, self.index);
                    let memory = Memory::Buffer(held.buffer);
                    let Some((predicate, or)) = guard else {
                        return self.staged_lane(b, id, &held.clone(), (tensor, &exprs), offset);
                    };
                    let otherwise = [self.value(b, or, scope)];
                    return b.load(memory, offset, 1, Some(Guard { predicate, otherwise: &otherwise }))[0];
                }
                let offset = self.offset(b, tensor, &values);
                if let Some((predicate, or)) = guard {
                    let otherwise = [self.value(b, or, scope)];
                    return b.load(
                        Memory::Parameter(parameter),
                        offset,
                        1,
                        Some(Guard { predicate, otherwise: &otherwise }),
                    )[0];
                }
                let symbolic = expressions::offset(tensor, &exprs, self.facts);
                let run = self.lane.as_ref().map_or(1, |lane| {
                    let class = lane.vector.classify(&symbolic, self.symbolic, self.facts);
                    if class == Class::Vector { lane.vector.lanes as u32 } else { 1 }
                });
                self.load_lane(b, id, (Memory::Parameter(parameter), offset), symbolic, run)
            }
        }
    }

    /// Where the element of a tensor with these indices lies.
    fn offset(&mut self, b: &mut Builder, tensor: &TensorParameter, indices: &[ValueId]) -> ValueId {
        let mut offset = b.index_literal(self.index, 0);
        for (value, stride) in indices.iter().zip(&expressions::strides(tensor, self.facts)) {
            let value = if b.ty(*value) == self.index { *value } else { b.index_convert(*value, self.index) };
            let stride = self.size(b, stride);
            let scaled = b.index_mul(value, stride);
            offset = b.index_add(offset, scaled);
        }
        offset
    }

    /// The tensor that a read without `or` reads, and where; none if it is no such read.
    pub fn place_read(&mut self, b: &mut Builder, id: AlgorithmValue, scope: &Scope) -> Option<(u16, ValueId)> {
        let program = self.program;
        let Value::Read { source: Source::Parameter(parameter), indices, or: None } =
            program.algorithm.values[id as usize]
        else {
            return None;
        };
        let list = &program.algorithm.index_lists[indices.range()];
        let values: Vec<ValueId> = list.iter().map(|i| self.index(b, *i, scope)).collect();
        Some((parameter, self.offset(b, expressions::tensor(program, parameter)?, &values)))
    }

    /// The instance that a read takes; none if it takes a tensor in device memory, or computes what it reads.
    fn held(&self, source: Source, read: AlgorithmValue) -> Option<Instance<'a>> {
        let taken = |i: &&Instance<'a>| {
            i.holds(source, read).is_some() && !(i.stage.copy.is_some() && self.copies_of.contains(&source))
        };
        // Of a stage that ran several times the last one.
        self.instances.iter().rev().filter(taken).min_by_key(|i| i.stage.nearness(i.at)).cloned()
    }

    /// A read of what another stage holds.
    fn read_held(
        &mut self,
        b: &mut Builder,
        (id, source): (AlgorithmValue, Source),
        instance: &Instance<'_>,
        (values, exprs): (&[ValueId], &[Expr]),
        or: Option<AlgorithmValue>,
        scope: &Scope,
    ) -> ValueId {
        let ty = self.program.algorithm.types[id as usize];
        let guard = or.map(|or| {
            let inside = self.in_domain(b, source, values, scope);
            (inside, self.value(b, or, scope))
        });
        match instance.holds(source, id) {
            Some(nested_stage::Kept::Registers(variables)) => {
                let (domain, symbolic, facts) = (self.domain, self.symbolic, self.facts);
                let (range, present) = (&|v| self.range(v), &|e: &Expr| self.at_present(e));
                let number = register(instance.stage, exprs, Reads { domain, symbolic, facts, range }, present);
                let variable = match number {
                    Register::Number(number) => variables.get(number).copied(),
                    _ => None,
                };
                let held = match (variable, number) {
                    (Some(variable), _) => b.get(variable),
                    (None, Register::Outside) => b.literal(ty, 0),
                    (None, _) => {
                        self.unknown(Defect::Register(instance.stage.name.clone()));
                        b.literal(ty, 0)
                    }
                };
                match guard {
                    Some((inside, otherwise)) => b.select(inside, held, otherwise),
                    None => held,
                }
            }
            Some(&nested_stage::Kept::Buffer { buffer, base }) => {
                let memory = Memory::Buffer(buffer);
                let (stage, bytes) = (instance.stage, b.kernel().buffers[buffer.index()].element.bytes());
                let ty = self.index;
                let offset = instance.place(b, values, (base, bytes), ty);
                if let Some((predicate, otherwise)) = guard {
                    return b.load(memory, offset, 1, Some(Guard { predicate, otherwise: &[otherwise] }))[0];
                }
                let run = self.lane.as_ref().map_or(1, |lane| {
                    let vector = (&lane.vector, self.symbolic, self.facts);
                    vector::read((stage, &stage.layout), exprs, vector, bytes)
                });
                self.load_lane(b, id, (memory, offset), stage.number(exprs), run)
            }
            None => {
                self.unknown(Defect::Instance(instance.stage.name.clone()));
                b.literal(ty, 0)
            }
        }
    }

    /// The element at an offset: with its neighbours, where `run` lanes of the vector are neighbours there. `number`
    /// tells elements apart.
    fn load_lane(
        &mut self,
        b: &mut Builder,
        id: AlgorithmValue,
        (memory, offset): (Memory, ValueId),
        number: Expr,
        run: u32,
    ) -> ValueId {
        let Some(lane) = self.lane.as_mut().filter(|_| run > 1 && !self.conditional) else {
            return b.load(memory, offset, 1, None)[0];
        };
        let (var, at) = (lane.vector.var, lane.number % run);
        let first = Expr::constant(i128::from(lane.number - at));
        let loaded = lane.loaded.entry((id, number.substitute(&|v| (v == var).then(|| first.clone()))));
        let loaded = loaded.or_insert_with(|| {
            let back = b.index_literal(self.index, -i64::from(at));
            let start = b.index_add(offset, back);
            b.load(memory, start, run, None)
        });
        loaded[at as usize]
    }

    /// Whether indices are in the domain of what is read.
    fn in_domain(&mut self, b: &mut Builder, source: Source, values: &[ValueId], scope: &Scope) -> ValueId {
        let mut inside = b.bool_literal(true);
        match source {
            Source::Parameter(parameter) => {
                let Some(tensor) = expressions::tensor(self.program, parameter) else { return inside };
                for (value, size) in values.iter().zip(tensor.shape.iter()) {
                    let size = self.size(b, &self.facts.normal(&Expr::from_size(size)));
                    let (value, size) = Self::widen(b, *value, size);
                    let within = b.in_range(value, size);
                    inside = b.and(inside, within);
                }
            }
            Source::Equation { equation, .. } => {
                let definition = &self.program.algorithm.equations[usize::from(equation)];
                for (axis, value) in self.program.algorithm.axis_lists[definition.axes.range()].iter().zip(values) {
                    let declared = &self.program.algorithm.axes[*axis as usize];
                    let (low, high) = (self.index(b, declared.lower, scope), self.index(b, declared.upper, scope));
                    let (v, low) = Self::widen(b, *value, low);
                    let (w, high) = Self::widen(b, *value, high);
                    let above = b.index_compare(Compare::Ge, v, low);
                    let below = b.index_compare(Compare::Lt, w, high);
                    let both = b.and(above, below);
                    inside = b.and(inside, both);
                }
            }
        }
        inside
    }

    /// An unguarded read of a staged copy: with its neighbours, where the lanes of the vector are neighbours in the
    /// buffer.
    fn staged_lane(
        &mut self,
        b: &mut Builder,
        id: AlgorithmValue,
        held: &Held<'_>,
        (tensor, indices): (&TensorParameter, &[Expr]),
        offset: ValueId,
    ) -> ValueId {
        let memory = Memory::Buffer(held.buffer);
        if let Some(lane) = self.lane.as_mut().filter(|_| !self.conditional) {
            let run = held.staged.neighbours(indices, &lane.vector, self.symbolic, self.facts) as usize;
            let (first, var) = (lane.number as usize / run * run, lane.vector.var);
            // Where the element lies in the tensor tells apart reads of the same value at other indices.
            let symbolic = expressions::offset(tensor, indices, self.facts);
            let key = (id, symbolic.substitute(&|v| (v == var).then(|| Expr::constant(first as i128))));
            if let Some(known) = lane.loaded.get(&key) {
                return known[lane.number as usize - first];
            }
            if run > 1 && lane.number as usize == first {
                let loaded = b.load(memory, offset, run as u32, None);
                let result = loaded[0];
                lane.loaded.insert(key, loaded);
                return result;
            }
        }
        b.load(memory, offset, 1, None)[0]
    }

    /// The states of a reduction or fold: known, or computed here by loops of their own.
    fn reduction(&mut self, b: &mut Builder, id: AlgorithmValue, scope: &Scope) -> Vec<ValueId> {
        if let Some((known, states)) = &self.reduced
            && *known == id
        {
            return states.clone();
        }
        let algorithm = &self.program.algorithm;
        let (Value::Reduce { axes, .. } | Value::Fold { axes, .. }) = algorithm.values[id as usize] else {
            return vec![self.value(b, id, scope)];
        };
        let accumulator = self.start(b, id, scope, None);
        // A vector loaded inside the loops is not there after them.
        let outer = self.lane.as_ref().map(|l| l.loaded.clone());
        let mut inner = scope.clone();
        let list = &algorithm.axis_lists[axes.range()];
        for axis in list {
            let declared = &algorithm.axes[*axis as usize];
            let (low, high) = (self.index(b, declared.lower, &inner), self.index(b, declared.upper, &inner));
            let count = b.index_sub(high, low);
            let at = b.begin_loop(count);
            let value = b.index_add(low, at);
            inner.axes.insert(*axis, Bound { value, expr: Expr::var(self.next_var) });
            self.next_var += 1;
        }
        self.restore(&outer.as_ref().map(|_| BTreeMap::new()));
        self.step(b, id, &accumulator, &inner);
        for _ in list {
            b.end_loop();
        }
        self.restore(&outer);
        self.finish(b, &accumulator)
    }

    /// The accumulators of a reduction, at its identity. Initial values of a fold that read are read only where `guard`
    /// holds, if there is one; elsewhere they are zero.
    pub fn start(&mut self, b: &mut Builder, id: AlgorithmValue, scope: &Scope, guard: Option<ValueId>) -> Accumulator {
        let algorithm = &self.program.algorithm;
        match algorithm.values[id as usize] {
            Value::Reduce { op: Reduction::ArgMax | Reduction::ArgMin, body, .. } => {
                let ty = algorithm.types[body as usize];
                let (zero, none, no) = (b.literal(ty, 0), b.literal(ElementType::U32, 0), b.bool_literal(false));
                Accumulator::Best { value: b.variable(zero), index: b.variable(none), found: b.variable(no) }
            }
            Value::Reduce { op, .. } => {
                let ty = algorithm.types[id as usize];
                let identity = b.literal(ty, reduction::identity(op, ty));
                Accumulator::States(vec![b.variable(identity)])
            }
            Value::Fold { states, .. } => {
                let states = &algorithm.folds[states.range()];
                let guard = guard.filter(|_| states.iter().any(|s| self.has_effects(s.init)));
                let Some(guard) = guard else {
                    let initial: Vec<ValueId> = states.iter().map(|s| self.value(b, s.init, scope)).collect();
                    return Accumulator::States(initial.into_iter().map(|v| b.variable(v)).collect());
                };
                let zero = |s: &FoldState| b.literal(algorithm.types[s.init as usize], 0);
                let zeros: Vec<ValueId> = states.iter().map(zero).collect();
                let variables: Vec<VariableId> = zeros.into_iter().map(|v| b.variable(v)).collect();
                b.begin_if(guard);
                for (state, variable) in states.iter().zip(&variables) {
                    let value = self.value(b, state.init, scope);
                    b.set(*variable, value);
                }
                b.end_if();
                Accumulator::States(variables)
            }
            _ => Accumulator::States(Vec::new()),
        }
    }

    /// Whether a range of a reduction is empty for every size.
    fn has_no_term(&self, axes: Run, scope: &Scope) -> bool {
        let scope: expressions::Scope = scope.axes.iter().map(|(a, bound)| (*a, bound.expr.clone())).collect();
        let range = |axis: &AlgorithmAxis| expressions::range(self.program, *axis, self.facts, &scope);
        self.program.algorithm.axis_lists[axes.range()].iter().any(|axis| expressions::is_never(&range(axis)))
    }

    /// Takes in the term at the axes in scope.
    pub fn step(&mut self, b: &mut Builder, id: AlgorithmValue, accumulator: &Accumulator, scope: &Scope) {
        let algorithm = &self.program.algorithm;
        if let Value::Reduce { axes, .. } | Value::Fold { axes, .. } = algorithm.values[id as usize]
            && self.has_no_term(axes, scope)
        {
            // What its terms read is no access (`schedule::accesses`), and may have no place in an instance.
            return;
        }
        match (algorithm.values[id as usize], accumulator) {
            (Value::Reduce { op, axes, body, .. }, Accumulator::Best { value, index, found }) => {
                let term = self.value(b, body, scope);
                let axis = algorithm.axis_lists[axes.range()][0];
                let Some(at) = scope.axes.get(&axis).map(|bound| bound.value) else {
                    let name = self.program.algorithm.axes[axis as usize].name.to_string();
                    return self.unknown(Defect::Axis(name));
                };
                let at = b.from_index(at, ElementType::U32);
                let (best, best_at, seen) = (b.get(*value), b.get(*index), b.get(*found));
                let better = reduction::precedes(b, op, (term, at), (best, best_at));
                let unseen = b.not(seen);
                let take = b.or(unseen, better);
                let (next, next_at) = (b.select(take, term, best), b.select(take, at, best_at));
                b.set(*value, next);
                b.set(*index, next_at);
                let yes = b.bool_literal(true);
                b.set(*found, yes);
            }
            (Value::Reduce { op, body, .. }, Accumulator::States(variables)) => {
                let term = self.value(b, body, scope);
                let sum = b.get(variables[0]);
                let next = b.binary(reduction::combine(op), sum, term);
                b.set(variables[0], next);
            }
            (Value::Fold { states, .. }, Accumulator::States(variables)) => {
                let states = &algorithm.folds[states.range()];
                let mut inner = scope.clone();
                for (state, variable) in states.iter().zip(variables) {
                    inner.variables.insert(state.variable, b.get(*variable));
                }
                let next: Vec<ValueId> = states.iter().map(|s| self.value(b, s.step, &inner)).collect();
                for (variable, value) in variables.iter().zip(next) {
                    b.set(*variable, value);
                }
            }
            _ => {}
        }
    }

    /// Two parts of a reduction as one: states of the left part and of the right one, as [`Accumulator::variables`]
    /// are.
    pub fn merge(&mut self, b: &mut Builder, id: AlgorithmValue, left: &[ValueId], right: &[ValueId]) -> Vec<ValueId> {
        let algorithm = &self.program.algorithm;
        match algorithm.values[id as usize] {
            Value::Reduce { op: op @ (Reduction::ArgMax | Reduction::ArgMin), .. } => {
                let ([value, at, found], [other, other_at, other_found]) = (left, right) else { return left.to_vec() };
                let better = reduction::precedes(b, op, (*other, *other_at), (*value, *at));
                let unseen = b.not(*found);
                let either = b.or(unseen, better);
                let take = b.and(*other_found, either);
                let any = b.or(*found, *other_found);
                vec![b.select(take, *other, *value), b.select(take, *other_at, *at), any]
            }
            Value::Reduce { op, .. } => {
                left.iter().zip(right).map(|(l, r)| b.binary(reduction::combine(op), *l, *r)).collect()
            }
            Value::Fold { states, .. } => {
                let states = &algorithm.folds[states.range()];
                let mut scope = Scope::default();
                for ((state, l), r) in states.iter().zip(left).zip(right) {
                    scope.variables.insert(state.left, *l);
                    scope.variables.insert(state.right, *r);
                }
                let merged = |s: &FoldState| s.merge;
                states.iter().zip(left).map(|(s, l)| merged(s).map_or(*l, |m| self.value(b, m, &scope))).collect()
            }
            _ => left.to_vec(),
        }
    }

    /// The result of a reduction: one value per state.
    pub fn finish(&mut self, b: &mut Builder, accumulator: &Accumulator) -> Vec<ValueId> {
        match accumulator {
            Accumulator::States(variables) => variables.iter().map(|v| b.get(*v)).collect(),
            Accumulator::Best { index, .. } => vec![b.get(*index)],
        }
    }
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
