//! The reference: what a kernel's algorithm admits, evaluated on the host, without its schedule.
//!
//! | room | holds |
//! | --- | --- |
//! | [`interval`] | sets of admissible floats, rounding |
//! | [`column`] | values of an expression at a block of points |
//! | [`arith`] | operations, comparisons, conversions |
//! | [`math`] | math functions and their stated bounds |
//! | [`reduce`] | reductions |
//! | [`sum`], [`prod`] | float sums and products of free order, and their error bounds |
//! | [`winner`] | `argmax` and `argmin` |
//! | [`fold`] | the general reduction |
//! | [`scatter`], [`promise`] | terms whose places memory gives; whether each element has the one that was promised |
//! | [`scope`] | where expressions are evaluated, and what does not depend on that |
//! | [`eval`], [`steps`] | expressions, and how reductions run |
//! | [`report`] | the result, and comparing a tensor with it |

mod arith;
mod column;
mod eval;
mod fold;
mod interval;
mod math;
mod prod;
#[cfg(feature = "emulator")]
mod promise;
mod reduce;
mod report;
mod scatter;
mod scope;
mod steps;
mod sum;
mod tensor;
#[cfg(test)]
mod tests;
mod winner;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use column::Column;
use eval::{BLOCK, Evaluator, Work};
pub use interval::Interval;
#[cfg(feature = "emulator")]
pub(crate) use promise::Promise;
use report::Output;
pub use report::{Admissible, Agreement, Reference, ReferenceOutput, Specials, Width};
use scope::{Free, Scope};
use tensor::{Missing, Values, decode, scalar};
use tilewright_kernel::algorithm::{Algorithm, AxisId, Equation, Index, IndexId, Order, Source, Value, ValueId};
use tilewright_kernel::info::{Additions, ParameterKind, Role};
use tilewright_kernel::online::{self, Chain, Rule};
use tilewright_kernel::{KernelInfo, rules, workers};

use crate::error::{Error, ReferenceError, Refusal, Result};
use crate::launch::{Arg, Given, check};

/// Elements of the largest intermediate that is kept.
const MOST_ELEMENTS: i128 = 1 << 31;
/// Deepest nesting of expressions that is evaluated.
const DEEPEST: usize = 4096;
/// Stack of a thread that evaluates them, in bytes; only what is used becomes memory.
const STACK: usize = 256 << 20;
/// Blocks that one thread evaluates before it takes more.
const CHUNK: usize = 16;

/// Evaluates a kernel's algorithm for these arguments. Reads inputs and the old values of in-place tensors; writes
/// nothing.
///
/// # Errors
/// [`Error::Refused`] where a launch with these arguments would be refused for its shapes or facts;
/// [`Error::Reference`] where the algorithm cannot be evaluated; the failure of a device while the inputs are read.
pub fn reference(kernel: &KernelInfo, arguments: &[Arg<'_>]) -> Result<Reference> {
    evaluate(kernel, arguments, u64::MAX, &[])
}

/// The same with narrower float sums: what the additions of the kernel's own schedule may lose, instead of those of any
/// order. With so much work at most, in elements and terms of reductions: a range that asks for more is an error before
/// it is walked.
///
/// # Errors
/// As [`reference()`]; [`Error::Reference`] where so much `work` is not enough.
pub fn reference_as_scheduled(kernel: &KernelInfo, arguments: &[Arg<'_>], work: u64) -> Result<Reference> {
    evaluate(kernel, arguments, work, &kernel.additions)
}

fn evaluate(kernel: &KernelInfo, arguments: &[Arg<'_>], work: u64, additions: &[Additions]) -> Result<Reference> {
    let given: Vec<Given> = arguments.iter().map(|a| a.given.clone()).collect();
    let plan = check(kernel, &given).map_err(|reason| Refusal { kernel: kernel.name.to_string(), reason })?;
    let failure = |error: ReferenceError| Error::Reference(Box::new(error));
    let arguments = decoded(kernel, &given, &|_| true)?;
    let (algorithm, chains) = chains(&kernel.algorithm);
    let mut evaluator = evaluator(kernel, (&algorithm, chains), &plan.dims, arguments, work);
    let known = additions.iter().filter_map(|a| Some((a.sum, u64::try_from(a.most.eval(&plan.dims).ok()?).ok()?)));
    evaluator.additions = known.collect();
    let depth = scope::depth(&algorithm);
    if depth > DEEPEST {
        let message = format!("expressions are nested {depth} deep; {DEEPEST} are evaluated");
        return Err(failure(failed(kernel, "the algorithm", message)));
    }
    // Deep expressions are evaluated on a deep stack.
    let outputs = workers::with_stack(STACK, || evaluator.outputs());
    let outputs = outputs.map_err(|error| failure(failed(kernel, "the host", error.to_string())))?.map_err(failure)?;
    Ok(Reference::new(kernel.name.to_string(), outputs))
}

/// Values of the arguments, by parameter: scalars, and tensors as they are now. Tensors that are not `asked` for are
/// left out. What a launch fills is what it is filled with.
#[derive(Debug)]
struct Arguments {
    scalars: Vec<Option<Column>>,
    tensors: Vec<Option<Values>>,
}

fn decoded(kernel: &KernelInfo, given: &[Given], asked: &dyn Fn(u16) -> bool) -> Result<Arguments> {
    let mut all = Arguments { scalars: Vec::new(), tensors: Vec::new() };
    for (number, (parameter, given)) in (0..).zip(kernel.parameters.iter().zip(given)) {
        let (mut scalar_of, mut tensor_of) = (None, None);
        match (&parameter.kind, given) {
            (ParameterKind::Tensor(declared), Given::Tensor(tensor)) => {
                let bytes = match (kernel.fill(number), declared.role) {
                    (Some(bits), _) => {
                        let elements = rules::elements(&tensor.shape).ok().and_then(|n| usize::try_from(n).ok());
                        let one = bits.to_le_bytes();
                        Some(one[..parameter.element.bytes() as usize].repeat(elements.unwrap_or(0)))
                    }
                    (None, Role::Output) => None,
                    (None, _) if asked(number) => Some(tensor.read()?),
                    (None, _) => None,
                };
                let lower = vec![0; tensor.shape.len()];
                let values = |data| Values { lower, shape: tensor.shape.clone(), data, missing: None };
                tensor_of = bytes.map(|bytes| values(decode(parameter.element, &bytes)));
            }
            (ParameterKind::Scalar, Given::Scalar { bits, .. }) => scalar_of = Some(scalar(parameter.element, *bits)),
            _ => {}
        }
        all.scalars.push(scalar_of);
        all.tensors.push(tensor_of);
    }
    Ok(all)
}

/// What evaluates an algorithm of a kernel with these arguments.
fn evaluator<'a>(
    kernel: &'a KernelInfo,
    (algorithm, chains): (&'a Algorithm, BTreeMap<ValueId, Chain>),
    dims: &'a [i64],
    arguments: Arguments,
    work: u64,
) -> Evaluator<'a> {
    let mut evaluator = Evaluator {
        kernel,
        algorithm,
        chains,
        loose: BTreeSet::new(),
        free: Free::of(algorithm),
        dims,
        additions: BTreeMap::new(),
        scalars: arguments.scalars,
        parameters: arguments.tensors,
        equations: Vec::new(),
        broken: OnceLock::new(),
        work: Work::new(work),
    };
    let sums = evaluator.chains.iter();
    evaluator.loose =
        sums.filter(|sum| multiplies_beside(algorithm, sum, &evaluator.parameters)).map(|sum| *sum.0).collect();
    evaluator
}

/// The chains of online sums, by the sum, with the algorithm that their parts are in.
fn chains(algorithm: &Algorithm) -> (Cow<'_, Algorithm>, BTreeMap<ValueId, Chain>) {
    let (mut all, mut chains) = (Cow::Borrowed(algorithm), BTreeMap::new());
    for (at, equation) in algorithm.equations.iter().enumerate() {
        let component = algorithm.components[equation.components.range()].first();
        let Some(sum) = component.map(|component| component.value) else { continue };
        if let Value::Reduce { order, .. } = algorithm.values[sum as usize]
            && order.is_online()
            && let Ok(chain) = online::chain_of(all.to_mut(), at as u16)
            && !matches!(chain.rule, Rule::Choice { .. })
        {
            chains.insert(sum, chain);
        }
    }
    (all, chains)
}

/// Whether an online product may multiply numbers beside its terms by 0 that are infinite or NaN: if its range depends
/// on the element, those of a block past its end (language, Attention). Of tensors that it reads, all elements count.
fn multiplies_beside(algorithm: &Algorithm, (sum, chain): &(&ValueId, &Chain), parameters: &[Option<Values>]) -> bool {
    let Value::Reduce { order: Order::Dot { .. }, axes, .. } = algorithm.values[**sum as usize] else { return false };
    let depends = |index: IndexId| {
        let mut open = vec![index];
        while let Some(index) = open.pop() {
            match algorithm.indices[index as usize] {
                Index::Axis(_) | Index::Value(_) => return true,
                other => open.extend(other.operands()),
            }
        }
        false
    };
    let is_ragged = |axis: &AxisId| {
        let axis = &algorithm.axes[*axis as usize];
        depends(axis.lower) || depends(axis.upper)
    };
    if !algorithm.axis_lists[axes.range()].iter().any(is_ragged) {
        return false;
    }
    let mut open = vec![chain.weight];
    while let Some(value) = open.pop() {
        match algorithm.values[value as usize] {
            Value::Read { source: Source::Parameter(parameter), .. } => {
                let read = parameters.get(usize::from(parameter)).and_then(Option::as_ref);
                let is_finite = |at: usize| {
                    let set = read.map_or(Interval::ALL, |values| values.data.interval(at));
                    !set.nan && set.lo.is_finite() && set.hi.is_finite()
                };
                if !(0..read.map_or(1, |values| values.data.len())).all(is_finite) {
                    return true;
                }
            }
            // What is computed is not looked at.
            Value::Read { source: Source::Equation { .. }, .. } => return true,
            _ => {}
        }
        open.extend(algorithm.operands(value));
    }
    false
}

fn failed(kernel: &KernelInfo, place: &str, message: String) -> ReferenceError {
    let (kernel, place) = (kernel.name.to_string(), place.to_owned());
    ReferenceError { kernel, place, message, limited: false }
}

/// Some elements of each component, and those that have no value, with the reason.
type Part = (Vec<Column>, Vec<(usize, String)>);

impl Evaluator<'_> {
    /// What the kernel's outputs are, equation after equation.
    fn outputs(&mut self) -> std::result::Result<Vec<Output>, ReferenceError> {
        let kernel = self.kernel;
        let (mut outputs, mut estimated) = (Vec::new(), Vec::new());
        for equation in kernel.algorithm.equations.iter() {
            let components = kernel.algorithm.components.get(equation.components.range()).unwrap_or_default();
            let name = components.first().map_or("?", |c| &*c.name);
            let results = self.equation(equation).map_err(|message| {
                let limited = self.work.is_used_up();
                ReferenceError { limited, ..failed(kernel, name, message) }
            })?;
            let rests = components.iter().map(|c| self.estimates(c.value, &estimated));
            let rests: Result<Vec<bool>, _> = rests.collect();
            let rests = rests.map_err(|message| failed(kernel, name, message))?.contains(&true);
            estimated.push(rests);
            for (component, values) in components.iter().zip(&results) {
                let parameter = component.parameter.and_then(|p| kernel.parameters.get(usize::from(p)));
                if let Some(parameter) = parameter {
                    let (name, values) = (parameter.name.to_string(), values.clone());
                    outputs.push(Output { name, element: parameter.element, values, estimate: rests });
                }
            }
            self.equations.push(results);
        }
        Ok(outputs)
    }

    /// The values of an equation's components.
    fn equation(&self, equation: &Equation) -> Result<Vec<Values>, String> {
        let axes = self.axis_list(equation.axes)?;
        let components = self.algorithm.components.get(equation.components.range()).ok_or("a malformed equation")?;
        let root = Scope::root(self.algorithm, self.free.variables);
        let (mut lower, mut shape) = (Vec::new(), Vec::new());
        for &axis in axes {
            let axis = &self.algorithm.axes[axis as usize];
            let (from, to) = (self.uniform(axis.lower, &root)?, self.uniform(axis.upper, &root)?);
            lower.push(from);
            shape.push(to.checked_sub(from).ok_or("an axis of absurd extent")?.max(0));
        }
        let elements = rules::elements(&shape).ok().filter(|&n| n <= MOST_ELEMENTS);
        elements.ok_or_else(|| format!("a tensor of shape {shape:?} is too large to be evaluated on the host"))?;
        let scatter = self.scatter_of(equation);
        let types = components.iter().map(|c| self.algorithm.types.get(c.value as usize).copied());
        let mut empty: Vec<Column> =
            types.map(|t| t.map(Column::empty).ok_or("a malformed equation")).collect::<Result<_, _>>()?;
        // Where each term belongs.
        empty.extend(scatter.is_some().then(|| Column::Int(Vec::new())));
        let elements = shape.iter().product::<i64>().unsigned_abs();
        self.work
            .take(elements)
            .map_err(|limit| format!("with {} there are {elements} elements to evaluate; {limit}", self.sizes()))?;
        if shape.contains(&0) {
            // Nothing is evaluated: what the value reads may not exist either.
            if let (Some(scatter), [terms, offsets]) = (&scatter, &empty[..]) {
                return Ok(vec![self.taken_in(scatter, [terms, offsets], (axes, &lower, &shape))?]);
            }
            let values = |data| Values { lower: lower.clone(), shape: shape.clone(), data, missing: None };
            return Ok(empty.into_iter().map(values).collect());
        }

        // Blocks along the innermost axis; no axes at all is one block of one point.
        let inner = shape.last().copied().unwrap_or(1) as usize;
        let rows: usize = shape.iter().rev().skip(1).map(|&n| n as usize).product();
        let per_row = inner.div_ceil(BLOCK);
        // A part of a row; nothing is appended if a component has no value there.
        let evaluate = |root: &Scope<'_>, row: usize, start: usize, points: usize, columns: &mut [Column]| {
            let mut row = row;
            let mut scope = Scope::inside(root, self.free.axis_list(axes));
            if let Some((&last, outer)) = axes.split_last() {
                for (i, &axis) in outer.iter().enumerate().rev() {
                    let extent = shape[i] as usize;
                    scope.axes[axis as usize] = scope::Place::At(lower[i] + (row % extent) as i64);
                    row /= extent;
                }
                scope.run(last, lower[axes.len() - 1] + start as i64, points);
            }
            if let Some(scatter) = &scatter {
                let placed = self.placed(scatter, &scope, points)?;
                columns.iter_mut().zip(&placed).for_each(|(column, part)| column.append(part, points));
                return Ok(());
            }
            let values: Vec<_> =
                components.iter().map(|c| self.value(c.value, &scope, None)).collect::<Result<_, String>>()?;
            for (value, column) in values.iter().zip(columns) {
                column.append(&value[0], points);
            }
            Ok::<(), String>(())
        };
        let blocks = rows * per_row;
        let is_intermediate = components.iter().all(|c| c.parameter.is_none());
        let part = |chunk: usize| -> Result<Part, String> {
            let (root, mut columns) = (Scope::root(self.algorithm, self.free.variables), empty.clone());
            let mut missing = Vec::new();
            for block in chunk * CHUNK..((chunk + 1) * CHUNK).min(blocks) {
                let (row, start) = (block / per_row, block % per_row * BLOCK);
                let points = (inner - start).min(BLOCK);
                match evaluate(&root, row, start, points, &mut columns) {
                    // Conditions at the readers may keep away from some elements of the box: one by one.
                    Err(_) if is_intermediate => {
                        for at in start..start + points {
                            if let Err(why) = evaluate(&root, row, at, 1, &mut columns) {
                                columns.iter_mut().for_each(|c| c.append(&c.nothing(), 1));
                                missing.push((row * inner + at, why));
                            }
                        }
                    }
                    done => done?,
                }
            }
            Ok((columns, missing))
        };
        let parts = workers::collected(workers::host_threads(), STACK, blocks.div_ceil(CHUNK), part)?;
        let mut columns = empty.clone();
        let mut missing: Option<Missing> = None;
        for (part, without) in &parts {
            for (column, part) in columns.iter_mut().zip(part) {
                let points = part.len();
                column.append(part, points);
            }
            for (at, why) in without {
                let all = missing.get_or_insert_with(|| Missing { at: vec![false; rows * inner], why: why.clone() });
                all.at[*at] = true;
            }
        }
        if let (Some(scatter), [terms, offsets]) = (&scatter, &columns[..]) {
            return Ok(vec![self.taken_in(scatter, [terms, offsets], (axes, &lower, &shape))?]);
        }
        let values = |data| Values { lower: lower.clone(), shape: shape.clone(), data, missing: missing.clone() };
        Ok(columns.into_iter().map(values).collect())
    }
}
