//! Two reductions of an algorithm that one pass computes: an earlier one, m, and a later one whose terms read it.
//!
//! | m | the later one | parts | file |
//! | --- | --- | --- | --- |
//! | the largest or smallest u | a sum of y·exp(κ·(u − m)) | are multiplied by exp(κ·(m − m')) | `exponential` |
//! | the largest \|x\| | a sum of y·(x/m)ᵖ | are multiplied by (m/m')ᵖ | `scaled` |
//! | an extreme | takes y where u = m; or the place of m | begin anew unless m = m' | `choice` |
//! | a sum of u, or the mean of u | a sum of (u − μ)², μ that mean | n·(μ − μ')² is added | `squares` |
//! | a sum of w·x, or that over Σ w | a sum of w·(x − μ)², μ that mean, w ≥ 0 | Σw·(μ − μ')² is added | `squares` |
//!
//! This file finds that the two have the same elements and the same terms.

use std::collections::{BTreeMap, BTreeSet};

use super::copy::{Copy, Env};
use super::exponential::Exponential;
use super::key::{has_reduction, index_key, key, size};
use super::scaled::Scaled;
use super::weights::Weights;
use super::{Correction, Obstacle, choice, correction, exponential, scaled, squares};
use crate::algorithm::{Algorithm, AxisId, Binary, Index, IndexId, Order, Reduction, Run, Source, Value, ValueId};
use crate::element::ElementType;

/// Most nodes of a term, once its equations are put in.
const MOST_NODES: u64 = 4096;

/// Whose axes the parts of a chain are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Those of the sum.
    Later,
    /// Those of the extreme.
    Earlier,
}

/// A reduction that follows an earlier one, m. Its parts are values of the algorithm that it was found in, added to it
/// at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The equation of m.
    pub earlier: u16,
    /// Its operation.
    pub op: Reduction,
    /// How parts follow it.
    pub rule: Rule,
    /// The term, where m is the variable `now`; a mean, if the rule is that of squares.
    pub term: ValueId,
    /// What the contract asks for of each term: what an exponential is multiplied with; the magnitude of u.
    pub weight: ValueId,
    /// What the rule corrects parts with, over m as it was, `before`, and as it is, `now`.
    pub correction: ValueId,
    /// Number of the variable that stands for m so far.
    pub now: u32,
    /// The same, before it changed.
    pub before: u32,
    /// With which indices, in the axes of the later reduction, its term reads m.
    pub places: Vec<IndexId>,
    /// The axes of the later one that m lacks.
    pub more: Vec<AxisId>,
}

/// How partial results follow the earlier reduction.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// A sum is multiplied by the correction.
    Exponential(Exponential),
    /// The same, with quotients.
    Scaled(Scaled),
    /// A sum of squares of differences from the mean of its terms so far: the correction is added as often as there are
    /// terms, or times the sum of their weights.
    Squares {
        /// The weights, if the mean has some.
        weights: Option<Weights>,
    },
    /// It begins anew, unless the correction, of type `bool`, holds.
    Choice {
        /// The operation that takes in terms.
        op: Reduction,
        /// What it begins with.
        identity: ValueId,
    },
}

impl Chain {
    /// The exponential, if the rule has one.
    pub const fn exponential(&self) -> Option<&Exponential> {
        match &self.rule {
            Rule::Exponential(exponential) => Some(exponential),
            Rule::Scaled(_) | Rule::Squares { .. } | Rule::Choice { .. } => None,
        }
    }

    /// The weights, if the rule has some.
    pub const fn weights(&self) -> Option<&Weights> {
        match &self.rule {
            Rule::Squares { weights } => weights.as_ref(),
            Rule::Exponential(_) | Rule::Scaled(_) | Rule::Choice { .. } => None,
        }
    }
}

/// What is computed first: an extreme or a sum, which may be divided by the number of its terms, or their weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Earlier {
    pub op: Reduction,
    order: Order,
    pub axes: Run,
    /// The term.
    pub u: ValueId,
    /// What it is divided by.
    pub divisor: Option<ValueId>,
}

/// Why two reductions are no chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoChain {
    /// The earlier one is not a single `max`, `min` or `sum`.
    NotExtreme,
    /// The later one is not a single reduction of a kind that follows another.
    NotSum,
    /// The earlier one has a fixed order.
    Fixed(ValueId),
    /// An `argmax` follows a `max` and an `argmin` a `min`, of the same terms.
    Search(ValueId),
    /// It has more axes than the earlier one, and is no sum of exponentials.
    More,
    /// The later one does not say `online sum`.
    NotOnline(ValueId),
    /// Other types than `f32` and `f64`, or two of them.
    Type,
    /// They have several axes, or not the same range.
    Range,
    /// They do not have the same elements.
    Elements,
    /// The term does not read the extreme.
    Unread,
    /// A reduction in the term reads it.
    Nested(ValueId),
    /// The term has no correction.
    Obstacle(Obstacle),
    /// It has one, but is no product with one exponential.
    Shape(ValueId),
    /// It has one, but is no square of the difference from the mean.
    Square(ValueId),
    /// It has one, if no weight is negative.
    Negative(ValueId),
    /// It has one, and what depends on the earlier one can be taken out of the reduction: how terms depend on it.
    Outside(ValueId, Outside),
    /// The argument of the exponential is not that of the extreme.
    Other(ValueId),
    /// The exponential may be larger than 1.
    Grows(ValueId),
    /// A multiple of the exponential is rounded to a narrower type, by more than a literal that is a number of it with
    /// room above.
    Narrow(ValueId),
    /// The term has too many nodes.
    TooLarge,
}

/// How what depends on an earlier reduction is taken out of a later one. Kernels do not compute the corrections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// A sum of f + k·m is Σ f + n·k·m.
    Sum,
    /// A sum of log (f·mᵖ) is Σ log f + n·p·log m; of what m is at first there may be no logarithm.
    Logarithm,
    /// A product of f·G(m) is Π f · G(m)ⁿ, which rounds without a bound that is worth something, and leaves the range.
    Product,
}

/// The reductions over one axis that the term of an equation's reduction reads, itself or through what it inlines, and
/// may follow: extremes first.
pub fn earlier_ones(algorithm: &Algorithm, equation: u16) -> Vec<u16> {
    let Some((.., body)) = reduction_of(algorithm, equation) else { return Vec::new() };
    let (mut open, mut found, mut seen) = (vec![body], Vec::new(), BTreeSet::new());
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        open.extend(algorithm.operands(value));
        let Value::Read { source: Source::Equation { equation, component }, .. } = algorithm.values[value as usize]
        else {
            continue;
        };
        if let Some(earlier) = earlier_of(algorithm, equation) {
            let rank = (earlier.op == Reduction::Sum, equation);
            if !found.contains(&rank) {
                found.push(rank);
            }
        } else if !has_reduction(algorithm, equation) {
            open.push(component_value(algorithm, equation, component));
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, equation)| equation).collect()
}

/// The chain that an equation `online sum` is the end of.
///
/// # Errors
/// Why there is none: of the first reduction that its term reads.
pub fn chain_of(algorithm: &mut Algorithm, equation: u16) -> Result<Chain, NoChain> {
    let mut first = None;
    for earlier in earlier_ones(algorithm, equation) {
        match chain(algorithm, earlier, equation, At::Later) {
            Ok(chain) => return Ok(chain),
            Err(why) => {
                first.get_or_insert(why);
            }
        }
    }
    Err(first.unwrap_or(NoChain::Unread))
}

pub(super) fn component_value(algorithm: &Algorithm, equation: u16, component: u16) -> ValueId {
    let components = algorithm.equations[usize::from(equation)].components.range();
    algorithm.components[components][usize::from(component)].value
}

/// The value that an equation is.
fn single(algorithm: &Algorithm, equation: u16) -> Option<ValueId> {
    let components = algorithm.equations[usize::from(equation)].components;
    (components.len == 1).then(|| component_value(algorithm, equation, 0))
}

/// What an equation is, if others can follow it.
pub(super) fn earlier_of(algorithm: &Algorithm, equation: u16) -> Option<Earlier> {
    let value = single(algorithm, equation)?;
    let (reduced, divisor) = match algorithm.values[value as usize] {
        Value::Binary(Binary::Div, sum, divisor) => (sum, Some(divisor)),
        _ => (value, None),
    };
    match algorithm.values[reduced as usize] {
        Value::Reduce { op: op @ (Reduction::Max | Reduction::Min), order, axes, body } if divisor.is_none() => {
            Some(Earlier { op, order, axes, u: body, divisor })
        }
        Value::Reduce { op: op @ Reduction::Sum, order, axes, body } if !matches!(order, Order::Dot { .. }) => {
            Some(Earlier { op, order, axes, u: body, divisor })
        }
        _ => None,
    }
}

/// The reduction that an equation is.
pub(super) fn reduction_of(algorithm: &Algorithm, equation: u16) -> Option<(Reduction, Order, Run, ValueId)> {
    match algorithm.values[single(algorithm, equation)? as usize] {
        Value::Reduce { op, order, axes, body } => Some((op, order, axes, body)),
        _ => None,
    }
}

/// Finds the parts of a chain: the values that it names are added to the algorithm.
///
/// # Errors
/// Why the two are no chain; parts of terms are values that were there before.
pub fn chain(algorithm: &mut Algorithm, earlier: u16, later: u16, at: At) -> Result<Chain, NoChain> {
    let (first, mut origins) = (algorithm.values.len(), Vec::new());
    let found = find(algorithm, (earlier, later), at, &mut origins);
    let written = |value: ValueId| {
        let copied = (value as usize).checked_sub(first);
        copied.and_then(|n| origins.get(n)).copied().unwrap_or(value)
    };
    found.map_err(|why| match why {
        NoChain::Nested(value) => NoChain::Nested(written(value)),
        NoChain::Obstacle(Obstacle { value, why }) => NoChain::Obstacle(Obstacle { value: written(value), why }),
        NoChain::Shape(value) => NoChain::Shape(written(value)),
        NoChain::Square(value) => NoChain::Square(written(value)),
        NoChain::Outside(value, how) => NoChain::Outside(written(value), how),
        NoChain::Search(value) => NoChain::Search(written(value)),
        NoChain::Other(value) => NoChain::Other(written(value)),
        NoChain::Grows(value) => NoChain::Grows(written(value)),
        NoChain::Narrow(value) => NoChain::Narrow(written(value)),
        other => other,
    })
}

/// Two reductions with the same elements and the same terms, over the axes of one of them.
pub(super) struct Pair<'a> {
    pub algorithm: &'a mut Algorithm,
    /// The equation of the earlier one.
    pub equation: u16,
    pub earlier: Earlier,
    /// What its axes are here.
    pub places: Env,
    /// The axis of terms.
    pub axis: AxisId,
    /// The key of u, and u itself.
    pub key: String,
    pub u: ValueId,
    /// The term, where the earlier one is the variable `now`. Of a search it is what is searched.
    pub term: ValueId,
    pub now: u32,
    pub before: u32,
    pub is_dot: bool,
}

/// The same; `origins` are what the values that it adds first are copies of.
fn find(
    algorithm: &mut Algorithm,
    (earlier, later): (u16, u16),
    at: At,
    origins: &mut Vec<ValueId>,
) -> Result<Chain, NoChain> {
    let first = earlier_of(algorithm, earlier).ok_or(NoChain::NotExtreme)?;
    let (op, order, of_later, body) = reduction_of(algorithm, later).ok_or(NoChain::NotSum)?;
    let own = component_value(algorithm, later, 0);
    let is_search = matches!(op, Reduction::ArgMax | Reduction::ArgMin);
    // What rounds has to say so; what chooses does not round.
    let is_exact = is_search || !order.is_online();
    if is_search && !matches!((first.op, op), (Reduction::Max, Reduction::ArgMax) | (Reduction::Min, Reduction::ArgMin))
    {
        return Err(NoChain::Search(own));
    }
    if first.order == Order::Ordered {
        return Err(NoChain::Fixed(component_value(algorithm, earlier, 0)));
    }
    if order == Order::Ordered {
        return Err(NoChain::NotOnline(own));
    }
    let mut known = BTreeMap::new();
    if [first.u, body].iter().any(|value| size(algorithm, *value, &mut known) > MOST_NODES) {
        return Err(NoChain::TooLarge);
    }
    let element = algorithm.types[first.u as usize];
    let is_one_type = is_exact || algorithm.types[body as usize] == element;
    if !matches!(element, ElementType::F32 | ElementType::F64) || !is_one_type {
        return Err(NoChain::Type);
    }
    let axes = |equation: u16, run: Run| {
        let own = algorithm.equations[usize::from(equation)].axes;
        (algorithm.axis_lists[own.range()].to_vec(), algorithm.axis_lists[run.range()].to_vec())
    };
    let ((mine, of_u), (yours, of_term)) = (axes(earlier, first.axes), axes(later, of_later));
    let ([j], [k]) = (&of_u[..], &of_term[..]) else { return Err(NoChain::Range) };
    // Element by element: axis for axis, as the term reads the earlier one. A search reads nothing: it has the same.
    let read = if is_search {
        let mut alike = |axis: &AxisId| {
            algorithm.indices.to_mut().push(Index::Axis(*axis));
            (algorithm.indices.len() - 1) as IndexId
        };
        yours.iter().map(&mut alike).collect()
    } else {
        reads(algorithm, body, earlier).ok_or(NoChain::Unread)?
    };
    let mut counterparts: Vec<(AxisId, AxisId)> = vec![(*j, *k)];
    if mine.len() != read.len() {
        return Err(NoChain::Elements);
    }
    for (own, index) in mine.iter().zip(&read) {
        match algorithm.indices[*index as usize] {
            Index::Axis(axis) if yours.contains(&axis) && counterparts.iter().all(|c| c.1 != axis) => {
                counterparts.push((*own, axis));
            }
            _ => return Err(NoChain::Elements),
        }
    }
    let more: Vec<AxisId> = yours.iter().copied().filter(|axis| counterparts.iter().all(|c| c.1 != *axis)).collect();
    // From the axes of each to those that the parts are over.
    let (from_mine, from_yours): (Vec<_>, Vec<_>) = match at {
        At::Later => (counterparts, Vec::new()),
        At::Earlier => (Vec::new(), counterparts.iter().map(|(own, axis)| (*axis, *own)).collect()),
    };
    let names = |from: &[(AxisId, AxisId)]| -> Vec<(AxisId, String)> {
        from.iter().map(|(axis, to)| (*axis, format!("a{to}"))).collect()
    };
    let range = |axis: AxisId, from: &[(AxisId, AxisId)]| {
        let of = &algorithm.axes[axis as usize];
        [of.lower, of.upper].map(|bound| index_key(algorithm, bound, &names(from)))
    };
    if range(*j, &from_mine) != range(*k, &from_yours) {
        return Err(NoChain::Range);
    }
    // What is read was proved to be there. A search reads nothing: the earlier one must have the same elements.
    let is_elsewhere = |(own, axis): (&AxisId, &AxisId)| range(*own, &from_mine) != range(*axis, &from_yours);
    if is_search && mine.iter().zip(&yours).any(is_elsewhere) {
        return Err(NoChain::Elements);
    }
    let axis = if at == At::Later { *k } else { *j };
    let u_key = key(algorithm, first.u, &names(&from_mine));
    let now = variables(algorithm);
    let before = now + 1;
    let wanted = read.iter().map(|i| index_key(algorithm, *i, &names(&from_yours))).collect();
    let mut copy = Copy { algorithm, earlier, wanted, now, failed: None, origins };
    let start: Env = from_yours.iter().map(|(axis, to)| (*axis, copy.index(Index::Axis(*to)))).collect();
    let term = copy.value(body, &start);
    let places: Env = from_mine.iter().map(|(axis, to)| (*axis, copy.index(Index::Axis(*to)))).collect();
    let u = copy.value(first.u, &places);
    if let Some(failed) = copy.failed {
        return Err(failed);
    }
    let is_dot = matches!(order, Order::Dot { .. });
    let mut pair =
        Pair { algorithm, equation: earlier, earlier: first, places, axis, key: u_key, u, term, now, before, is_dot };
    let (rule, parts) = rule(&mut pair, op, (own, is_exact))?;
    if !more.is_empty() && !matches!(rule, Rule::Exponential(_)) {
        return Err(NoChain::More);
    }
    let Parts { term, weight, correction } = parts;
    Ok(Chain { earlier, op: first.op, rule, term, weight, correction, now, before, places: read, more })
}

/// The rule that a reduction follows an earlier one by; of one that is exact there is no correction that rounds.
fn rule(pair: &mut Pair<'_>, op: Reduction, (own, is_exact): (ValueId, bool)) -> Result<(Rule, Parts), NoChain> {
    let why = match choice::find(pair, op) {
        Ok(found) => return Ok(found),
        Err(why) => why,
    };
    match op {
        Reduction::ArgMax | Reduction::ArgMin => return Err(why),
        Reduction::Sum if is_exact => return Err(NoChain::NotOnline(own)),
        _ => {}
    }
    let found = match op {
        Reduction::Sum if pair.earlier.op == Reduction::Sum => squares::find(pair),
        Reduction::Sum => match exponential::find(pair) {
            Err(NoChain::Shape(part)) => scaled::find(pair).map_err(|why| match why {
                NoChain::Obstacle(_) | NoChain::Shape(_) => NoChain::Shape(part),
                other => other,
            }),
            found => found,
        },
        _ => Err(NoChain::NotSum),
    };
    found.map_err(|why| outside(pair, op).map_or(why, |how| NoChain::Outside(pair.term, how)))
}

/// How what depends on the earlier reduction is taken out of the later one, if terms separate.
fn outside(pair: &Pair<'_>, op: Reduction) -> Option<Outside> {
    match correction(pair.algorithm, op, pair.term, pair.now, &[pair.axis]).ok()? {
        Correction::AddEach(shift) if shift.logarithm.is_zero() => Some(Outside::Sum),
        Correction::AddEach(_) => Some(Outside::Logarithm),
        Correction::MultiplyEach(_) => Some(Outside::Product),
        Correction::Keep | Correction::Multiply(_) | Correction::Add(_) => None,
    }
}

/// What a rule finds.
pub(super) struct Parts {
    pub term: ValueId,
    pub weight: ValueId,
    pub correction: ValueId,
}

/// One more than the largest number of a variable.
fn variables(algorithm: &Algorithm) -> u32 {
    let of_folds = algorithm.folds.iter().flat_map(|s| [s.variable, s.left, s.right]);
    let of_values = algorithm.values.iter().filter_map(|v| match v {
        Value::Variable(number) => Some(*number),
        _ => None,
    });
    of_folds.chain(of_values).max().map_or(0, |most| most + 1)
}

/// How a term indexes an equation, in its own axes: where it reads it first. An equation that it inlines must read it
/// element by element as well, which is found when that is copied.
pub(super) fn reads(algorithm: &Algorithm, value: ValueId, earlier: u16) -> Option<Vec<IndexId>> {
    match algorithm.values[value as usize] {
        Value::Read { source: Source::Equation { equation, .. }, indices, .. } if equation == earlier => {
            Some(algorithm.index_lists[indices.range()].to_vec())
        }
        Value::Read { source: Source::Equation { equation, component }, indices, .. }
            if !has_reduction(algorithm, equation) =>
        {
            let inner = reads(algorithm, component_value(algorithm, equation, component), earlier)?;
            let definition = &algorithm.equations[usize::from(equation)];
            let axes = &algorithm.axis_lists[definition.axes.range()];
            let places = &algorithm.index_lists[indices.range()];
            // Of an axis there, what it is here.
            let here = |index: &IndexId| match algorithm.indices[*index as usize] {
                Index::Axis(axis) => Some(places[axes.iter().position(|a| *a == axis)?]),
                _ => Some(*index),
            };
            inner.iter().map(here).collect()
        }
        _ => algorithm.operands(value).into_iter().find_map(|v| reads(algorithm, v, earlier)),
    }
}
