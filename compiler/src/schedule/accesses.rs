//! Every access that a stage makes to a tensor parameter, as expressions over dimensions and leaves; intermediates are
//! followed into their equations, as lowering inlines them.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{self, Binary, IndexId, Run, Source, Value, ValueId};
use tilewright_kernel::info::{Role, TensorParameter};

use super::Stage;
use crate::domain::Symbolic;
use crate::extent::{Expr, Facts, Family, Var};
use crate::program::expressions::{self, Scope, index, index_over, offset, tensor};
use crate::program::{INLINE_LIMIT, Program};
use crate::source::Span;

/// An access of a tensor parameter as expressions over dimensions and leaves.
#[derive(Clone, Debug)]
pub struct Access {
    /// Position of the parameter.
    pub parameter: u16,
    /// The read; none for the write.
    pub value: Option<ValueId>,
    /// Index of each dimension.
    pub indices: Vec<Expr>,
    /// Element offset from the base.
    pub offset: Expr,
    /// The read, or the left-hand side.
    pub span: Span,
    /// Whether it is the write of the stage's result.
    pub is_write: bool,
    /// Whether something decides whether it is made: a read with `or`, a gather, or one inside an `if`.
    pub is_guarded: bool,
    /// Whether it is a read with `or`, which is made only inside the tensor.
    pub has_or: bool,
    /// The size of each dimension, where nothing but these decides whether it is made: of a read with `or` in no `if`.
    pub within: Vec<Expr>,
    /// The axes of inner reductions around it, outermost first: it happens once for each of their values.
    pub inner: Vec<Inner>,
    /// Whether it happens once for each term of the stage's own reduction.
    pub in_terms: bool,
    /// Its indices over integers that memory holds, of a read with such indices.
    pub gathered: Option<Box<Gathered>>,
}

impl Access {
    /// The index of each dimension, over integers that memory holds where there are such.
    pub fn all_indices(&self) -> impl Iterator<Item = &Expr> {
        let gathered = self.gathered.as_deref();
        let of_memory =
            gathered.into_iter().flat_map(|g| g.indices.iter().chain(g.reads.iter().flat_map(|r| &r.indices)));
        self.indices.iter().filter(move |_| gathered.is_none()).chain(of_memory)
    }
}

/// The indices of a read that depend on memory.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// Index of each dimension; what is read is a variable of [`Family::MEMORY`], by its position in `reads`.
    pub indices: Vec<Expr>,
    /// Element offset from the base.
    pub offset: Expr,
    /// What is read for them.
    pub reads: Vec<FromMemory>,
}

/// An integer that an input holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromMemory {
    /// The input.
    pub parameter: u16,
    /// Where.
    pub indices: Vec<Expr>,
    /// The bits of what it is outside of the input; none where that is never asked for.
    pub or: Option<u64>,
    /// If it stands for several, one for each box of an instance: how they follow each other.
    pub listed: Option<Listed>,
}

/// Integers of an input that follow each other along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The dimension.
    pub along: usize,
    /// How many they are; at least 2.
    pub count: i64,
}

impl FromMemory {
    /// Each integer that it stands for.
    pub fn each(&self) -> impl Iterator<Item = Self> {
        let numbers = 0..self.listed.map_or(1, |listed| listed.count);
        numbers.map(|n| {
            let mut one = Self { listed: None, ..self.clone() };
            if let Some(listed) = self.listed {
                one.indices[listed.along] = one.indices[listed.along].add(&Expr::constant(n.into()));
            }
            one
        })
    }

    /// It as it would be written in the loops of a stage.
    pub fn display(&self, stage: &Stage) -> String {
        let name = |v: Var| stage.name_of(v).unwrap_or_else(|| "?".to_owned());
        let indices: Vec<String> = self.indices.iter().map(|e| e.show(&name)).collect();
        format!("{}[{}]", stage.program.parameters[usize::from(self.parameter)].name, indices.join(", "))
    }
}

/// An axis of a reduction that is no loop of the stage.
#[derive(Clone, Debug)]
pub struct Inner {
    /// The axis of the algorithm.
    pub axis: algorithm::AxisId,
    /// Its variable.
    pub var: Var,
    /// Its first value.
    pub lower: Expr,
    /// One past its last value.
    pub upper: Expr,
}

/// An expression over the roots of a stage, as [`Stage::indices`] are, or over other axes of it, over its leaves.
pub fn of_roots(e: &Expr, stage: &Stage, symbolic: &Symbolic) -> Expr {
    e.substitute(&|v| symbolic.values.get(stage.domain.axis_of(v)?).cloned())
}

/// The expressions of a stage's own axes.
pub fn stage_scope(stage: &Stage, symbolic: &Symbolic) -> Scope {
    stage.indices.iter().map(|(axis, e)| (*axis, of_roots(e, stage, symbolic))).collect()
}

/// A read of what another stage holds.
#[derive(Clone, Debug)]
pub struct StageRead {
    /// What is read.
    pub source: Source,
    /// The read.
    pub value: ValueId,
    /// Index of each dimension.
    pub indices: Vec<Expr>,
    /// Where it is written.
    pub span: Span,
    /// The axes of inner reductions around it, outermost first.
    pub inner: Vec<Inner>,
    /// Whether each lane decides on its own whether it reads.
    pub is_guarded: bool,
    /// Whether it is a read with `or`.
    pub has_or: bool,
    /// Whether it is in the terms of the stage's own reduction.
    pub in_terms: bool,
}

/// What a stage accesses.
#[derive(Clone, Debug, Default)]
pub struct Accesses {
    /// Accesses of tensors in device memory, writes last.
    pub tensors: Vec<Access>,
    /// Reads of what other stages hold.
    pub stages: Vec<StageRead>,
}

/// Whether a read of a source is served by another stage: what it reads, its value, and whether it is in the terms of
/// the stage's reduction.
pub type Serves<'a> = dyn Fn(Source, ValueId, bool) -> bool + 'a;

/// The accesses of a stage, of which others serve some reads. None if inlining passes [`INLINE_LIMIT`].
pub fn collect_served(
    program: &Program,
    facts: &Facts,
    stage: &Stage,
    symbolic: &Symbolic,
    served: &Serves<'_>,
) -> Option<Accesses> {
    let mut collector = Collector {
        program,
        facts,
        served,
        stages: Vec::new(),
        accesses: Vec::new(),
        nodes: 0,
        next: (facts.dims() + symbolic.variables.len()) as Var,
        exposed: stage.reduction,
        conditional: false,
        inner: Vec::new(),
        in_terms: false,
        never: false,
    };
    let scope = stage_scope(stage, symbolic);
    let equation = &program.algorithm.equations[stage.equation];
    let components = equation.components.range();
    for component in components.clone() {
        collector.value(program.algorithm.components[component].value, &scope)?;
    }
    let indices: Vec<Expr> =
        program.algorithm.axis_lists[equation.axes.range()].iter().map(|a| scope[a].clone()).collect();
    for at in components {
        let component = &program.algorithm.components[at];
        let Some(parameter) = component.parameter else { continue };
        // Where memory says which element is meant, there is nothing to know.
        if matches!(program.algorithm.values[component.value as usize], Value::Scatter { .. }) {
            continue;
        }
        collector.push(parameter, (indices.clone(), None), program.component_spans[at], None, false);
    }
    Some(Accesses { tensors: collector.accesses, stages: collector.stages })
}

/// The indices of a read of a tensor over what memory holds; none if it is more than single elements of inputs that
/// they depend on.
pub fn gathered(
    (program, facts): (&Program, &Facts),
    tensor: &TensorParameter,
    list: &[IndexId],
    scope: &Scope,
) -> Option<Gathered> {
    let mut reads: Vec<FromMemory> = Vec::new();
    let mut of_memory = |value: ValueId| {
        let Some(read) = element((program, facts), value, scope) else { return Expr::unknown() };
        let known = reads.iter().position(|other| *other == read);
        let number = known.unwrap_or_else(|| {
            reads.push(read);
            reads.len() - 1
        });
        Family::MEMORY.expr(number)
    };
    let indices: Vec<Expr> = list.iter().map(|i| index_over(program, *i, scope, &mut of_memory)).collect();
    if indices.iter().any(Expr::is_unknown) {
        return None;
    }
    let offset = offset(tensor, &indices, facts);
    Some(Gathered { indices, offset, reads })
}

/// The element of an input that a value is.
fn element((program, facts): (&Program, &Facts), value: ValueId, scope: &Scope) -> Option<FromMemory> {
    let algorithm = &program.algorithm;
    let Value::Read { source: Source::Parameter(parameter), indices, or } = algorithm.values[value as usize] else {
        return None;
    };
    tensor(program, parameter).filter(|tensor| tensor.role == Role::Input)?;
    let or = match or.map(|or| &algorithm.values[or as usize]) {
        None => None,
        Some(Value::Literal(bits)) => Some(*bits),
        Some(_) => return None,
    };
    let list = &algorithm.index_lists[indices.range()];
    let indices: Vec<Expr> = list.iter().map(|i| facts.normal(&index(program, *i, scope))).collect();
    (!indices.iter().any(Expr::is_unknown)).then_some(FromMemory { parameter, indices, or, listed: None })
}

struct Collector<'a> {
    program: &'a Program,
    facts: &'a Facts,
    served: &'a Serves<'a>,
    stages: Vec<StageRead>,
    accesses: Vec<Access>,
    nodes: u32,
    /// Next free variable, for axes of inner reductions.
    next: Var,
    exposed: Option<ValueId>,
    /// Inside a side of an `if`: lanes may disagree on whether the read happens, and its proof holds only where it
    /// does.
    conditional: bool,
    /// The axes of the inner reductions around, outermost first.
    inner: Vec<Inner>,
    /// Inside the terms of the stage's own reduction.
    in_terms: bool,
    /// Inside a reduction whose range is empty for every size.
    never: bool,
}

impl Collector<'_> {
    fn push(
        &mut self,
        parameter: u16,
        (indices, gathered): (Vec<Expr>, Option<Box<Gathered>>),
        span: Span,
        value: Option<ValueId>,
        has_or: bool,
    ) {
        let is_write = value.is_none();
        let Some(tensor) = tensor(self.program, parameter) else { return };
        if self.never && !is_write {
            return;
        }
        let offset = offset(tensor, &indices, self.facts);
        let (inner, in_terms) = (self.inner.clone(), self.in_terms && !is_write);
        let is_guarded = has_or || self.conditional && !is_write;
        let within = if has_or && !self.conditional { expressions::shape(tensor, self.facts) } else { Vec::new() };
        self.accesses.push(Access {
            parameter,
            value,
            indices,
            offset,
            span,
            is_write,
            is_guarded,
            has_or,
            within,
            inner,
            in_terms,
            gathered,
        });
    }

    fn value(&mut self, id: ValueId, scope: &Scope) -> Option<()> {
        self.nodes += 1;
        if self.nodes > INLINE_LIMIT {
            return None;
        }
        let algorithm = &self.program.algorithm;
        match algorithm.values[id as usize] {
            Value::Read { source, indices, or } => {
                let list = &algorithm.index_lists[indices.range()];
                let exprs: Vec<Expr> = list.iter().map(|i| index(self.program, *i, scope)).collect();
                for operand in algorithm.operands(id) {
                    self.value(operand, scope)?;
                }
                match source {
                    source if (self.served)(source, id, self.in_terms) => {
                        if self.never {
                            return Some(());
                        }
                        let is_guarded = self.conditional || or.is_some();
                        let same = |read: &&mut StageRead| {
                            read.value == id && read.in_terms == self.in_terms && read.indices == exprs
                        };
                        // What is computed once for all that take it is read once.
                        let read = self.stages.iter_mut().find(same).filter(|_| self.inner.is_empty());
                        if let Some(read) = read.filter(|read| read.inner.is_empty()) {
                            read.is_guarded &= is_guarded;
                            return Some(());
                        }
                        self.stages.push(StageRead {
                            source,
                            value: id,
                            indices: exprs,
                            span: self.program.value_spans[id as usize],
                            inner: self.inner.clone(),
                            is_guarded,
                            has_or: or.is_some(),
                            in_terms: self.in_terms,
                        });
                    }
                    Source::Parameter(parameter) => {
                        let span = self.program.value_spans[id as usize];
                        let is_gather = exprs.iter().any(Expr::is_unknown);
                        let of = tensor(self.program, parameter).filter(|_| is_gather);
                        let both = (self.program, self.facts);
                        let gathered = of.and_then(|tensor| gathered(both, tensor, list, scope)).map(Box::new);
                        self.push(parameter, (exprs, gathered), span, Some(id), or.is_some());
                    }
                    Source::Equation { equation, component } => {
                        let definition = &algorithm.equations[usize::from(equation)];
                        let inner: Scope =
                            algorithm.axis_lists[definition.axes.range()].iter().copied().zip(exprs).collect();
                        let components = &algorithm.components[definition.components.range()];
                        // With `or`, the intermediate is computed only where it has a domain.
                        let outer = self.conditional;
                        self.conditional |= or.is_some();
                        self.value(components[usize::from(component)].value, &inner)?;
                        self.conditional = outer;
                    }
                }
            }
            Value::Reduce { axes, body, .. } => self.terms(id, axes, &[body], scope)?,
            Value::Fold { axes, states } => {
                let states = &algorithm.folds[states.range()];
                for part in states.iter().flat_map(|s| [s.init].into_iter().chain(s.merge)) {
                    self.value(part, scope)?;
                }
                let steps: Vec<ValueId> = states.iter().map(|s| s.step).collect();
                self.terms(id, axes, &steps, scope)?;
            }
            Value::Select(condition, then, otherwise) => {
                self.value(condition, scope)?;
                let outer = std::mem::replace(&mut self.conditional, true);
                self.value(then, scope)?;
                self.value(otherwise, scope)?;
                self.conditional = outer;
            }
            Value::Binary(Binary::And | Binary::Or, first, second)
                if algorithm.types[id as usize] == ElementType::Bool =>
            {
                self.value(first, scope)?;
                let outer = std::mem::replace(&mut self.conditional, true);
                self.value(second, scope)?;
                self.conditional = outer;
            }
            _ => {
                for operand in algorithm.operands(id) {
                    self.value(operand, scope)?;
                }
            }
        }
        Some(())
    }

    /// The terms of a reduction.
    fn terms(&mut self, id: ValueId, axes: Run, bodies: &[ValueId], scope: &Scope) -> Option<()> {
        let (mark, in_terms, never) = (self.inner.len(), self.in_terms, self.never);
        let mut inside = scope.clone();
        let is_exposed = self.exposed == Some(id);
        self.in_terms |= is_exposed;
        for axis in &self.program.algorithm.axis_lists[axes.range()] {
            // What decides the range is read with the terms around.
            for end in self.program.algorithm.values_of_range(*axis) {
                self.value(end, &inside)?;
            }
            let range = expressions::range(self.program, *axis, self.facts, &inside);
            self.never |= expressions::is_never(&range);
            if !is_exposed {
                let (lower, upper) = range;
                inside.insert(*axis, Expr::var(self.next));
                self.inner.push(Inner { axis: *axis, var: self.next, lower, upper });
                self.next += 1;
            }
        }
        for body in bodies {
            self.value(*body, &inside)?;
        }
        self.inner.truncate(mark);
        (self.in_terms, self.never) = (in_terms, never);
        Some(())
    }
}
