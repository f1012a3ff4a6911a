//! WHAT a kernel computes: from the syntax tree to a typed [`Algorithm`] over named sizes.
//!
//! [`build`] resolves names, gives every expression one static type, orders the equations by what they read, and infers
//! the range of every axis. It is not the place where sizes are compared under facts, reads are proved in bounds, or
//! schedules are looked into: what those rooms still have to prove is listed in [`Definition::obligations`].
//!
//! | room | holds |
//! | --- | --- |
//! | `signature` | dimensions, parameters, shapes, facts, which dimension is told by what |
//! | `names` | the two name spaces, local scopes, closest spellings |
//! | `equations` | one equation after the other, and the context of their expressions |
//! | `order` | which equation reads which, dependency order, cycles |
//! | `nodes` | the lists under construction, a span for every node |
//! | `index` | index expressions: quasi-affine, gathers |
//! | `value` | typed expressions, literals typed by context |
//! | `expressions` | indices and strides as expressions |
//! | `reduction` | `sum` … `argmin`, `dot`, `fold` |
//! | `scatter` | equations whose places memory gives |
//! | `computed` | what to write in the place of other indices on the left |
//! | `function`, `call` | built-in functions and the types they exist for; their calls |
//! | `literal` | decimal literals, rounded once to their type |
//! | `range` | ranges of axes, inferred and compared |
//! | `in_place` | `inout`: each element's only reader is its writer |
//! | `copies` | equations for the staged copies that threads make |
//! | `stages` | which equation a schedule belongs to, statements of the line table |
//!
//! One mistake gives one message: whatever is built from a wrong part is `None` and says nothing more.

mod call;
mod computed;
mod copies;
mod equations;
pub mod expressions;
mod function;
mod in_place;
mod index;
mod literal;
mod names;
mod nodes;
mod order;
mod range;
mod reduction;
mod scatter;
mod signature;
mod stages;
mod value;

pub use scatter::update_of;

#[cfg(test)]
mod tests;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use kernel::algorithm::{AxisId, Binary, Index, IndexId, Source, Value, ValueId};
use kernel::info::{Dim, DimKind, Parameter};
use kernel::{Algorithm, Constraint, Size};
use tilewright_kernel as kernel;

use crate::diag::Diagnostics;
use crate::source::{SourceMap, Span, ast};

/// Most operations that an output may have once its intermediates are inlined.
pub const INLINE_LIMIT: u32 = 20_000;

/// A kernel with every name resolved and every expression typed; its schedules are still syntax. A stage inside loops
/// has one of its own, in which these are dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Sizes and strides known at launch, in order of first appearance.
    pub dims: Vec<Dim>,
    definition: Arc<Definition>,
}

impl Deref for Program {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        &self.definition
    }
}

impl DerefMut for Program {
    fn deref_mut(&mut self) -> &mut Definition {
        Arc::make_mut(&mut self.definition)
    }
}

/// What the stages of a kernel have in common: all of it but the dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The name.
    pub name: ast::Name,
    /// Attributes of the generated struct.
    pub attributes: Vec<ast::Attribute>,
    /// The visibility, if written.
    pub visibility: Option<ast::Verbatim>,
    /// Where each dimension appears first; parallel to [`Program::dims`], but the loops around a stage have none.
    pub dim_spans: Vec<Span>,
    /// Inputs, then outputs, in the order of the signature.
    pub parameters: Vec<Parameter>,
    /// Where each parameter is declared; parallel to `parameters`.
    pub parameter_spans: Vec<Span>,
    /// The `where` clause.
    pub facts: Vec<Fact>,
    /// Dimensions that no argument tells and a fact determines, in an order in which they can be computed.
    pub solved: Vec<Solved>,
    /// The equations.
    pub algorithm: Algorithm,
    /// Parallel to [`Algorithm::indices`].
    pub index_spans: Vec<Span>,
    /// Parallel to [`Algorithm::values`].
    pub value_spans: Vec<Span>,
    /// Parallel to [`Algorithm::axes`].
    pub axis_spans: Vec<Span>,
    /// Parallel to [`Algorithm::components`]: the name on the left-hand side.
    pub component_spans: Vec<Span>,
    /// Parallel to [`Algorithm::equations`]: the whole equation.
    pub equation_spans: Vec<Span>,
    /// What must hold besides that every unguarded read is in bounds; the room of sizes proves it.
    pub obligations: Vec<Obligation>,
    /// The `launch` statement.
    pub launch: Option<ast::Launch>,
    /// The schedule of each scheduled equation, in source order.
    pub schedules: Vec<Schedule>,
    /// Staged copies, in source order.
    pub stages: Vec<Stage>,
    /// The equations of those that threads make: after the equations that were written.
    pub copies: Vec<CopyEquation>,
    /// Equations that an `inline` statement names.
    pub inlined: Vec<Inlined>,
    /// Reductions that are computed in one pass: none but in a program that is scheduled.
    pub online: Vec<Online>,
    /// User-defined collective units.
    pub units: Vec<ast::Unit>,
    /// Every equation, and every statement and op of the schedule, in source order: the lines of the PTX line table.
    pub statements: Vec<Span>,
}

/// A fact of the `where` clause.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What it says.
    pub constraint: Constraint,
    /// The whole fact.
    pub span: Span,
}

/// A dimension that a fact determines.
#[derive(Clone, Debug, PartialEq)]
pub struct Solved {
    /// The dimension.
    pub dim: u16,
    /// Its value: over dimensions that arguments tell, or that come earlier in the list. Where it is an exact quotient,
    /// the fact itself is what checks that the division leaves no remainder.
    pub value: Size,
}

/// Something that is required of an expression and that needs facts about sizes to be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obligation {
    /// The axis of this `argmax` or `argmin` is not empty.
    NonEmpty {
        /// The reduction.
        value: ValueId,
        /// Its axis.
        axis: AxisId,
    },
    /// The divisor of this integer `/` or `%` is not zero.
    DivisorNonZero {
        /// The quotient or remainder, a [`Value::Binary`].
        value: ValueId,
    },
    /// The divisor of this index `/` or `%` is positive; it is an expression of dimensions alone.
    DivisorPositive {
        /// The quotient or remainder.
        index: IndexId,
    },
}

/// The schedule of an equation.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Position in [`Algorithm::equations`].
    pub equation: u16,
    /// Which component of the equation the schedule names.
    pub component: u16,
    /// Position of its head in [`Definition::statements`]; its ops follow.
    pub statement: u32,
    /// What was written.
    pub ast: ast::Schedule,
}

/// A staged copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Position of its head in [`Definition::statements`]; its ops follow.
    pub statement: u32,
    /// What was written.
    pub ast: ast::StagedCopy,
}

/// A staged copy that threads make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyEquation {
    /// Position in [`Definition::stages`].
    pub stage: usize,
    /// Position in [`Algorithm::equations`].
    pub equation: u16,
}

/// An extreme and the sums that follow it: an equation that is a fold with one state for each.
///
/// In a block of terms, what comes first is stepped first: an extreme, or a sum with the number of its terms. Then each
/// follower is corrected, and takes in its terms: both are over the variables that are named here.
#[derive(Clone, Debug, PartialEq)]
pub struct Online {
    /// Position in [`Algorithm::equations`].
    pub equation: u16,
    /// The fold. Its first states are those that are followed.
    pub fold: ValueId,
    /// The op.
    pub span: Span,
    /// The states that are followed, before they change, in corrections.
    pub before: Vec<u32>,
    /// The same as they are now, in `safe` and in terms.
    pub now: Vec<u32>,
    /// `safe`, in corrections and terms.
    pub taken: u32,
    /// What terms take: 0 in the place of an infinite extreme; a mean.
    pub safe: ValueId,
    /// The other states.
    pub followers: Vec<Follower>,
    /// If it takes in blocks of terms: what stages in its loop hold of one.
    pub blocks: Option<Blocks>,
}

/// A reduction that follows another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Follower {
    /// What is done with the result so far where what it follows changes.
    pub corrected: Corrected,
    /// Its correction.
    pub correction: ValueId,
    /// Its term.
    pub term: ValueId,
    /// How terms are taken in.
    pub op: Binary,
}

/// How a result so far is corrected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Corrected {
    /// It is multiplied by the correction.
    Times,
    /// The correction is added.
    Plus,
    /// It becomes this value, unless the correction holds.
    Restarted(ValueId),
}

impl Online {
    /// The operation of what is followed.
    pub fn takes(&self, algorithm: &Algorithm) -> Binary {
        let Value::Fold { states, .. } = algorithm.values[self.fold as usize] else { return Binary::Max };
        let first = algorithm.folds[states.range()].first().map(|state| algorithm.values[state.step as usize]);
        match first {
            Some(Value::Binary(op, ..)) => op,
            _ => Binary::Max,
        }
    }
}

/// What stages hold of a block of terms of an [`Online`].
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    /// The equation of the extreme of a block.
    pub extreme: u16,
    /// That of the sum whose elements are those of the fold.
    pub product: u16,
    /// Its number among the sums.
    pub number: usize,
    /// How the fold reads the extreme of a block.
    pub taken: ValueId,
    /// How it reads each sum of a block.
    pub sums: Vec<ValueId>,
    /// If the range of terms depends on the element: which scores are of terms.
    pub masked: Option<Masked>,
    /// How many blocks all terms have, over dimensions.
    pub count: IndexId,
}

/// Scores that are those of no term where the range of an element ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Masked {
    /// The equation of the scores.
    pub scores: u16,
    /// Whether a score is of a term: in the axes of its equation, and where others read it.
    pub of_scores: ValueId,
    /// The same.
    pub of_readers: ValueId,
    /// The score of no term.
    pub none: ValueId,
}

/// An equation that is computed where it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// Position in [`Algorithm::equations`].
    pub equation: u16,
    /// The statement.
    pub span: Span,
}

impl Program {
    /// The statements as text, one line each.
    pub fn statement_texts(&self, map: &dyn SourceMap) -> Vec<String> {
        self.statements.iter().map(|&span| map.span_text(span)).collect()
    }

    /// The algorithm as text, one line an equation.
    pub fn printed(&self) -> kernel::print::Printed<'_> {
        kernel::print::Printed { algorithm: &self.algorithm, dims: &self.dims, parameters: &self.parameters }
    }

    /// The axes of an equation that what is read of it does not depend on: of a fold over blocks of terms those of the
    /// product alone, if another of its states is read.
    pub fn alike(&self, source: Source) -> Vec<AxisId> {
        let Source::Equation { equation, component } = source else { return Vec::new() };
        let online = self.online.iter().find(|online| online.equation == equation);
        let Some(blocks) = online.and_then(|online| online.blocks.as_ref()) else { return Vec::new() };
        let Value::Read { indices, .. } = self.algorithm.values[blocks.taken as usize] else { return Vec::new() };
        if usize::from(component) == blocks.number + 1 {
            return Vec::new();
        }
        let rows = &self.algorithm.index_lists[indices.range()];
        let is_row = |axis: &AxisId| rows.iter().any(|i| self.algorithm.indices[*i as usize] == Index::Axis(*axis));
        let axes = &self.algorithm.axis_lists[self.algorithm.equations[usize::from(equation)].axes.range()];
        axes.iter().copied().filter(|axis| !is_row(axis)).collect()
    }

    /// Whether blocks take the iterations of the grid in turn.
    pub fn is_persistent(&self) -> bool {
        self.launches(&ast::LaunchItemKind::Persistent)
    }

    /// Whether a launch may begin before the one before it has ended.
    pub fn is_dependent(&self) -> bool {
        self.launches(&ast::LaunchItemKind::Dependent)
    }

    fn launches(&self, kind: &ast::LaunchItemKind) -> bool {
        self.launch.iter().flat_map(|launch| &launch.items).any(|item| item.kind == *kind)
    }

    /// The same kernel for a stage inside loops, which to it are dimensions: `loops` are their names.
    #[must_use]
    pub fn within(&self, loops: impl IntoIterator<Item = String>) -> Self {
        let mut inner = self.clone();
        let dims = loops.into_iter().map(|name| Dim { name: name.into(), kind: DimKind::Stride });
        inner.dims.extend(dims);
        inner
    }

    /// Whether a dimension is one that facts may name: not a loop around a stage.
    pub fn is_nameable(&self, dim: u32) -> bool {
        (dim as usize) < self.dim_spans.len()
    }

    /// The equation that defines `name`, and which component of it.
    pub fn equation(&self, name: &str) -> Option<(u16, u16)> {
        self.algorithm.equations.iter().zip(0..).find_map(|(equation, position)| {
            let components = &self.algorithm.components[equation.components.range()];
            components.iter().zip(0..).find_map(|(c, n)| (c.name == name).then_some((position, n)))
        })
    }

    /// The name of a dimension, for messages.
    pub fn dim_name(&self, dim: u16) -> &str {
        self.dims.get(usize::from(dim)).map_or("?", |d| &d.name)
    }
}

/// Checks a kernel's names, types and ranges; `None` if something is wrong, which has then been reported.
pub fn build(kernel: &ast::Kernel, diags: &mut Diagnostics) -> Option<Program> {
    let mut found = Diagnostics::new();
    let program = build_into(kernel, &mut found);
    let clean = !found.has_errors();
    if clean {
        order::warn_unused(kernel, &mut found);
    }
    diags.append(found);
    program.filter(|_| clean)
}

/// The kernel as it is scheduled: with the equations of staged copies.
pub fn scheduled(program: &Program) -> Program {
    let mut program = program.clone();
    program.add_copies();
    program
}

fn build_into(kernel: &ast::Kernel, diags: &mut Diagnostics) -> Option<Program> {
    let signature = signature::build(kernel, diags);
    let plan = order::plan(kernel, &signature, diags)?;
    scatter::check_reads(kernel, &plan, diags);
    let mut cx = equations::Context::new(&signature, &plan, diags);
    for position in 0..plan.equations.len() {
        cx.equation(position);
    }
    let equations::Built { mut nodes, sites } = cx.finish();
    let stages = stages::build(kernel, &signature, &plan, diags);
    if diags.has_errors() {
        return None;
    }
    range::infer(&signature, &plan, &mut nodes, &sites, diags);
    let scheduled: Vec<&str> = kernel.items.iter().filter_map(|item| Some(item.scheduled()?.0.text.as_str())).collect();
    in_place::check(&signature, &plan, &nodes, (&sites, &scheduled), diags);
    let definition = Definition {
        name: kernel.name.clone(),
        attributes: kernel.attributes.clone(),
        visibility: kernel.visibility.clone(),
        dim_spans: signature.dim_spans,
        parameters: signature.parameters,
        parameter_spans: signature.parameter_spans,
        facts: signature.facts,
        solved: signature.solved,
        index_spans: nodes.index_spans,
        value_spans: nodes.value_spans,
        axis_spans: nodes.axis_spans,
        component_spans: nodes.component_spans,
        equation_spans: plan.equations.iter().map(|e| e.span).collect(),
        obligations: nodes.obligations,
        algorithm: Algorithm {
            indices: nodes.indices.into(),
            values: nodes.values.into(),
            types: nodes.types.into(),
            axes: nodes.axes.into(),
            index_lists: nodes.index_lists.into(),
            axis_lists: nodes.axis_lists.into(),
            folds: nodes.folds.into(),
            components: nodes.components.into(),
            equations: nodes.equations.into(),
        },
        launch: stages.launch,
        schedules: stages.schedules,
        stages: stages.stages,
        copies: Vec::new(),
        inlined: stages.inlined,
        online: Vec::new(),
        units: stages.units,
        statements: stages.statements,
    };
    Some(Program { dims: signature.dims, definition: Arc::new(definition) })
}
