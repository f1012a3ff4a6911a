//! Reads: of tensors, of staged copies, and of what other stages hold.

use std::rc::Rc;

use tilewright_kernel::Size;
use tilewright_kernel::algorithm::{Compare, Index, IndexId, Run, Source, Value, ValueId as AlgorithmValue};
use tilewright_kernel::info::TensorParameter;

use super::{Bound, ComputedOf, LeavesAt, Neighbours, Scope, Values, as_index, expression};
use crate::extent::{Expr, Var};
use crate::kernel_ir::{Builder, Guard, Memory, Type, ValueId, VariableId};
use crate::lower::defect::Defect;
use crate::lower::nested_stage;
use crate::lower::nested_stage::Instance;
use crate::lower::staging::Held;
use crate::memory::alignment::alignment;
use crate::program::expressions;
use crate::schedule::accesses::{self, FromMemory, Gathered};
use crate::schedule::vector::{Class, Vector};
use crate::schedule::{Reads, Register, Stage, leaves_at, register, vector};

/// More than any index that is inside of a tensor, with room for a factor and for what is added to it.
const FAR: i64 = 1 << 45;

/// Answers of [`Values::leaves_of`] that are kept.
const MOST_LEAVES: usize = 16;

impl<'a> Values<'a> {
    pub(super) fn read(
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
        let exprs = self.indices(id, list, scope);
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
                for ((axis, value), expr) in axes.iter().zip(&values).zip(exprs.iter()) {
                    let value = if b.ty(*value) == self.index { *value } else { b.index_convert(*value, self.index) };
                    inner.bind(*axis, Bound { value, expr: Rc::new(expr.clone()) });
                }
                let in_product = self.in_product;
                let of = ComputedOf::Element(source, values);
                if let (Some([value]), None) = (self.computed_before(b, &of), or) {
                    return *value;
                }
                self.in_product |= self.not_here.contains(&source);
                let (Some(or), Some(inside)) = (or, inside) else {
                    let value = self.value(b, body, &inner);
                    self.in_product = in_product;
                    self.remember(b, of, vec![value]);
                    return value;
                };
                let initial = self.value(b, or, scope);
                let result = b.variable(initial);
                let outer = self.lane.as_ref().map(|l| l.loaded.clone());
                let conditional = std::mem::replace(&mut self.conditional, true);
                b.begin_if(inside);
                let value = self.value(b, body, &inner);
                self.in_product = in_product;
                b.set(result, value);
                b.end_if();
                self.restore(&outer);
                self.conditional = conditional;
                b.get(result)
            }
            Source::Parameter(parameter) => {
                let Some(tensor) = expressions::tensor(program, parameter) else { return b.scalar(parameter) };
                let guard = or.map(|or| (self.in_domain(b, source, &values, scope), or));
                let held = self.staged.iter().find(|held| held.staged.is_for(parameter, Some(id))).cloned();
                let place = match &held {
                    Some(held) if held.staged.memory.is_empty() => {
                        (Memory::Buffer(held.buffer), held.offset(b, &values, self.index))
                    }
                    Some(held) => {
                        let within = self.within_instance(b, held, list, scope);
                        (Memory::Buffer(held.buffer), held.offset(b, &within, self.index))
                    }
                    None => (Memory::Parameter(parameter), self.offset(b, tensor, &values)),
                };
                let is_guarded = guard.is_some();
                let gathered = if is_guarded { self.gathered(tensor, list, &exprs, scope) } else { None };
                let (indices, of_memory) = match &gathered {
                    Some(gathered) => {
                        let of_memory: Vec<Expr> =
                            gathered.reads.iter().flat_map(|read| read.indices.clone()).collect();
                        ([&gathered.indices[..], &of_memory].concat().into(), of_memory.into())
                    }
                    None => (exprs.clone(), Rc::default()),
                };
                self.element(b, id, place, (guard, scope), (&indices, of_memory), |this, vector| {
                    let (symbolic, facts) = (this.symbolic, this.facts);
                    let (indices, reads) = gathered.as_ref().map_or((&exprs[..], &[][..]), |g| (&g.indices, &g.reads));
                    let of_exprs = || expressions::offset(tensor, &exprs, facts);
                    let number = gathered.as_ref().map_or_else(of_exprs, |g| g.offset.clone());
                    let sizes = expressions::shape(tensor, facts);
                    let is_together =
                        !is_guarded || vector.is_within_together((indices, &sizes), reads, symbolic, facts);
                    let run = match &held {
                        _ if !is_together => 1,
                        Some(held) => held.staged.neighbours(&exprs, vector, symbolic, facts),
                        None if vector.classify(&number, symbolic, facts) == Class::Vector => {
                            this.whole(parameter, vector.lanes as u32)
                        }
                        None => 1,
                    };
                    (run, number)
                })
            }
        }
    }

    /// The indices of a read in a vector, over integers of memory; none if all of them are known, or nothing is.
    fn gathered(&self, tensor: &TensorParameter, list: &[IndexId], exprs: &[Expr], scope: &Scope) -> Option<Gathered> {
        let is_asked = self.lane.is_some() && !self.conditional && exprs.iter().any(Expr::is_unknown);
        is_asked.then(|| accesses::gathered((self.program, self.facts), tensor, list, &scope.exprs())).flatten()
    }

    /// The indices of a read that takes an instance, as [`Held::offset`] counts them.
    pub(in crate::lower) fn within_instance(
        &mut self,
        b: &mut Builder,
        held: &Held<'_>,
        list: &[IndexId],
        scope: &Scope,
    ) -> Vec<ValueId> {
        let memory = &held.staged.memory;
        let listed = memory.iter().filter_map(|(_, read)| Some((read.parameter, read.listed?.along)));
        let within = (!memory.is_empty()).then(|| listed.collect());
        let outer = std::mem::replace(&mut self.in_instance, within);
        let within = list.iter().map(|i| self.index(b, *i, scope)).collect();
        self.in_instance = outer;
        within
    }

    /// What an index that is read from memory is in an instance: the number of its box, where memory lists their
    /// places.
    pub(super) fn number_in_instance(
        &mut self,
        b: &mut Builder,
        value: AlgorithmValue,
        listed: &[(u16, usize)],
        scope: &Scope,
    ) -> ValueId {
        let algorithm = &self.program.algorithm;
        if let Value::Read { source: Source::Parameter(parameter), indices, .. } = algorithm.values[value as usize]
            && let Some((_, along)) = listed.iter().find(|(other, _)| *other == parameter)
        {
            return self.index(b, algorithm.index_lists[indices.range()][*along], scope);
        }
        b.index_literal(self.index, 0)
    }

    /// Of lanes that are neighbours in a tensor: how many the address of its base lets a thread read at once.
    fn whole(&self, parameter: u16, lanes: u32) -> u32 {
        let Some(stages) = self.bases else { return lanes };
        let element = self.program.parameters[usize::from(parameter)].element.bytes();
        let base = alignment(usize::from(parameter), element, stages);
        let is_whole = |lanes: &u32| !lanes.is_multiple_of(2) || (lanes * element).min(16) <= base;
        std::iter::successors(Some(lanes), |lanes| Some(lanes / 2)).find(is_whole).unwrap_or(1)
    }

    /// What a read indexes with, as expressions.
    fn indices(&mut self, read: AlgorithmValue, list: &[IndexId], scope: &Scope) -> Rc<[Expr]> {
        if let Some(known) = self.indices.get(&read).filter(|_| scope.is_own) {
            return known.clone();
        }
        let of = scope.exprs();
        let found: Rc<[Expr]> = list.iter().map(|i| expressions::index(self.program, *i, &of)).collect();
        if scope.is_own {
            self.indices.insert(read, found.clone());
        }
        found
    }

    /// Where the element of a tensor with these indices lies.
    pub fn offset(&mut self, b: &mut Builder, tensor: &TensorParameter, indices: &[ValueId]) -> ValueId {
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

    /// An integer that memory holds, in 64 bits: `variable` gives the values of loops. Instances of copies may be begun
    /// where there is no such element, since there is nothing that they are for: then it is anything.
    pub fn of_memory(
        &mut self,
        b: &mut Builder,
        read: &FromMemory,
        variable: &dyn Fn(&mut Builder, Var) -> ValueId,
    ) -> ValueId {
        let program = self.program;
        let Some(tensor) = expressions::tensor(program, read.parameter) else {
            self.unknown(Defect::Instance(program.parameters[usize::from(read.parameter)].name.to_string()));
            return b.index_literal(Type::I64, 0);
        };
        let values: Vec<ValueId> = read.indices.iter().map(|e| expression(b, e, self.index, variable)).collect();
        let predicate = self.in_domain(b, Source::Parameter(read.parameter), &values, &Scope::default());
        let offset = self.offset(b, tensor, &values);
        let element = program.parameters[usize::from(read.parameter)].element;
        let otherwise = [b.literal(element, read.or.unwrap_or(0))];
        let guard = Guard { predicate, otherwise: &otherwise };
        let value = b.load(Memory::Parameter(read.parameter), offset, 1, Some(guard))[0];
        let value = as_index(b, value, element);
        if element.bytes() < 8 {
            return value;
        }
        // Nothing has so many elements; sums with it are outside, and do not wrap.
        let (first, last) = (b.index_literal(Type::I64, -FAR), b.index_literal(Type::I64, FAR));
        let value = b.index_max(value, first);
        b.index_min(value, last)
    }

    /// The instance that a read takes; none if it takes a tensor in device memory, or computes what it reads.
    pub(in crate::lower) fn held(&self, source: Source, read: AlgorithmValue) -> Option<Instance<'a>> {
        let taken = |i: &&Instance<'a>| {
            let Some(kept) = i.holds(source, read) else { return false };
            let is_others = self.in_product && matches!(kept, nested_stage::Kept::Registers(_));
            !(is_others || i.stage.copy.is_some() && self.copies_of.contains(&source))
        };
        // Of a stage that ran several times the last one.
        self.instances.iter().rev().filter(taken).min_by_key(|i| i.stage.nearness(i.at)).cloned()
    }

    /// The leaves of a stage at the element with these indices, as a read of what it holds finds them. Loops that are
    /// written out ask for the same ones in each iteration, so the last answers are kept.
    fn leaves_of(&mut self, stage: &'a Stage, indices: &Rc<[Expr]>) -> Rc<[Expr]> {
        let is_same = |known: &Rc<[Expr]>| Rc::ptr_eq(known, indices) || known == indices;
        let known = self.leaves.iter().find(|known| std::ptr::eq(known.stage, stage) && is_same(&known.indices));
        if let Some(known) = known {
            return known.leaves.clone();
        }
        let (domain, symbolic, facts) = (self.domain, self.symbolic, self.facts);
        let leaves: Rc<[Expr]> =
            leaves_at(stage, indices, Reads { domain, symbolic, facts, range: &|v| self.range(v) }).into();
        if self.leaves.len() == MOST_LEAVES {
            self.leaves.pop_front();
        }
        self.leaves.push_back(LeavesAt { stage, indices: indices.clone(), leaves: leaves.clone() });
        leaves
    }

    /// The variable that holds the element at these indices; none outside of what the instance has.
    fn register_of(
        &mut self,
        instance: &Instance<'a>,
        variables: &[VariableId],
        indices: &Rc<[Expr]>,
    ) -> Result<Option<VariableId>, Defect> {
        let leaves = self.leaves_of(instance.stage, indices);
        let unknown = || Defect::Register(instance.stage.name.clone());
        match register(instance.stage, &leaves, &|e| self.number_at_present(e, &|_| None)) {
            Register::Number(number) => variables.get(number).copied().map(Some).ok_or_else(unknown),
            Register::Outside => Ok(None),
            Register::Unknown => Err(unknown()),
        }
    }

    /// The variable that a read of what another stage holds in registers takes; none if it is no such read.
    pub(in crate::lower) fn variable_of(&mut self, read: AlgorithmValue, scope: &Scope) -> Option<VariableId> {
        let program = self.program;
        let Value::Read { source, indices, or: None } = program.algorithm.values[read as usize] else { return None };
        let exprs = self.indices(read, &program.algorithm.index_lists[indices.range()], scope);
        let instance = self.held(source, read)?;
        let Some(nested_stage::Kept::Registers(variables)) = instance.holds(source, read) else { return None };
        self.register_of(&instance, variables, &exprs).ok().flatten()
    }

    /// A read of what another stage holds.
    pub(super) fn read_held(
        &mut self,
        b: &mut Builder,
        (id, source): (AlgorithmValue, Source),
        instance: &Instance<'a>,
        (values, exprs): (&[ValueId], &Rc<[Expr]>),
        or: Option<AlgorithmValue>,
        scope: &Scope,
    ) -> ValueId {
        let ty = self.program.algorithm.types[id as usize];
        let guard = or.map(|or| (self.in_domain(b, source, values, scope), or));
        match instance.holds(source, id) {
            Some(nested_stage::Kept::Registers(variables)) => {
                let otherwise = guard.map(|(inside, or)| (inside, self.value(b, or, scope)));
                let held = match self.register_of(instance, variables, exprs) {
                    Ok(Some(variable)) => b.get(variable),
                    Ok(None) => b.literal(ty, 0),
                    Err(defect) => {
                        self.unknown(defect);
                        b.literal(ty, 0)
                    }
                };
                match otherwise {
                    Some((inside, otherwise)) => b.select(inside, held, otherwise),
                    None => held,
                }
            }
            Some(&nested_stage::Kept::Buffer { buffer, base, .. }) => {
                let (stage, bytes) = (instance.stage, b.kernel().buffers[buffer.index()].element.bytes());
                let offset = instance.place(b, values, (base, bytes), self.index);
                let (is_guarded, none) = (guard.is_some(), Rc::default());
                self.element(b, id, (Memory::Buffer(buffer), offset), (guard, scope), (exprs, none), |this, vector| {
                    let run = if is_guarded {
                        1
                    } else {
                        vector::read((stage, &stage.layout), exprs, (vector, this.symbolic, this.facts), bytes)
                    };
                    (run, stage.number(exprs))
                })
            }
            None => {
                self.unknown(Defect::Instance(instance.stage.name.clone()));
                b.literal(ty, 0)
            }
        }
    }

    /// The element at an offset, or what a guard gives instead. It is loaded with its neighbours: `neighbours` says how
    /// many lanes of a vector are neighbours there and have one guard, and by which number elements are told apart, for
    /// the same integers of memory.
    fn element(
        &mut self,
        b: &mut Builder,
        id: AlgorithmValue,
        (memory, offset): (Memory, ValueId),
        (guard, scope): (Option<(ValueId, AlgorithmValue)>, &Scope),
        (indices, of_memory): (&Rc<[Expr]>, Rc<[Expr]>),
        neighbours: impl FnOnce(&Self, &Vector) -> (u32, Expr),
    ) -> ValueId {
        // What is written as a number is one for all lanes.
        let is_literal =
            guard.is_none_or(|(_, or)| matches!(self.program.algorithm.values[or as usize], Value::Literal(_)));
        let guard = guard.map(|(predicate, or)| (predicate, self.value(b, or, scope)));
        // Loops that are written out ask for the same indices in each iteration.
        let is_known = self.neighbours.get(&(id, memory)).is_some_and(|known| known.indices == *indices);
        if let Some(lane) = self.lane.as_ref().filter(|_| !self.conditional && !is_known) {
            let (run, number) = neighbours(self, &lane.vector);
            self.neighbours.insert((id, memory), Neighbours { indices: indices.clone(), run, number, first: None });
        }
        let lane = self.lane.as_mut().filter(|_| !self.conditional);
        let known = self.neighbours.get_mut(&(id, memory)).filter(|known| known.run > 1);
        let (Some(lane), Some(Neighbours { run, number, first, .. })) = (lane, known) else {
            return load(b, (memory, offset), 1, guard)[0];
        };
        let (var, run, at) = (lane.vector.var, *run, lane.number % *run);
        let of = lane.number - at;
        let first = match first {
            Some((known, first)) if *known == of => first.clone(),
            _ => {
                let lane = Expr::constant(of.into());
                let found = Rc::new(number.substitute(&|v| (v == var).then(|| lane.clone())));
                *first = Some((of, found.clone()));
                found
            }
        };
        let ty = self.program.algorithm.types[id as usize];
        let loaded = lane.loaded.entry((id, first, of_memory));
        let loaded = loaded.or_insert_with(|| {
            let back = b.index_literal(self.index, -i64::from(at));
            let start = b.index_add(offset, back);
            // What each lane has instead, or else anything.
            let guard = guard.map(|(inside, or)| (inside, if is_literal { or } else { b.literal(ty, 0) }));
            load(b, (memory, start), run, guard)
        });
        let loaded = loaded[at as usize];
        match guard {
            Some((predicate, or)) if !is_literal => b.select(predicate, loaded, or),
            _ => loaded,
        }
    }

    /// Whether an index is one of a dimension with a size.
    fn within(&mut self, b: &mut Builder, index: ValueId, size: &Size) -> ValueId {
        let size = self.size(b, &self.facts.normal(&Expr::from_size(size)));
        let (index, size) = Self::widen(b, index, size);
        b.in_range(index, size)
    }

    /// The element of a tensor that these indices name, wherever they come from: where it lies, if it is there, and
    /// whether it is. An axis that goes no further than its dimension is not asked.
    pub fn place(
        &mut self,
        b: &mut Builder,
        tensor: &TensorParameter,
        indices: Run,
        scope: &Scope,
    ) -> (ValueId, ValueId) {
        let (program, facts) = (self.program, self.facts);
        let list = &program.algorithm.index_lists[indices.range()];
        let values: Vec<ValueId> = list.iter().map(|i| self.index(b, *i, scope)).collect();
        let is_inside = |index: IndexId, size: &Size| {
            let Index::Axis(axis) = program.algorithm.indices[index as usize] else { return false };
            let (lower, upper) = expressions::range(program, axis, facts, &expressions::Scope::default());
            let left = facts.normal(&Expr::from_size(size)).sub(&upper);
            [lower, left].iter().all(|e| !e.is_unknown() && facts.proves_nonnegative(e))
        };
        let mut inside = b.bool_literal(true);
        for ((index, value), size) in list.iter().zip(&values).zip(tensor.shape.iter()) {
            if !is_inside(*index, size) {
                let within = self.within(b, *value, size);
                inside = b.and(inside, within);
            }
        }
        (self.offset(b, tensor, &values), inside)
    }

    /// Whether indices are in the domain of what is read.
    pub(super) fn in_domain(&mut self, b: &mut Builder, source: Source, values: &[ValueId], scope: &Scope) -> ValueId {
        let mut inside = b.bool_literal(true);
        match source {
            Source::Parameter(parameter) => {
                let Some(tensor) = expressions::tensor(self.program, parameter) else { return inside };
                for (value, size) in values.iter().zip(tensor.shape.iter()) {
                    let within = self.within(b, *value, size);
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
}

/// Loads lanes, or takes what there is instead of all of them where the predicate of a guard does not hold.
fn load(
    b: &mut Builder,
    (memory, offset): (Memory, ValueId),
    lanes: u32,
    guard: Option<(ValueId, ValueId)>,
) -> Vec<ValueId> {
    let otherwise = guard.map_or_else(Vec::new, |(_, or)| vec![or; lanes as usize]);
    let guard = guard.map(|(predicate, _)| Guard { predicate, otherwise: &otherwise });
    b.load(memory, offset, lanes, guard)
}
