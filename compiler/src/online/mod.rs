//! What follows an extreme or a mean in one pass: `online m -> l over jo`.
//!
//! **Property.** [`rewritten`] has the same results as the program that it is given, as the contract of an `online sum`
//! admits: docs/theory.md, Online reductions. **Formula.** The equation of m becomes a fold with the states m and l,
//! and the number of terms if m is a sum; that of each follower reads its state:
//!
//! > m' = max(m, u), l' = c(m, m') ∘ l + t(u, m'),
//!
//! merged in the same way: m' = max(m₁, m₂), l' = c(m₁, m') ∘ l₁ + c(m₂, m') ∘ l₂, where a correction multiplies, is
//! added, or begins anew, and + is the operation of the follower. Its schedule is that of m. By blocks of terms,
//! lowering takes in m of all of them first: [`Online`] has the parts. What blocks, threads and units do
//! with a fold they do with this one. The algorithm of the kernel stays what was written, for `reference()` and the
//! separate checker. **Approximation.** None: what has no correction in `tilewright_kernel::online` is refused.

mod blocks;
mod build;
#[cfg(test)]
mod tests;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{
    Algorithm, Binary, Component, IndexId, Order, Reduction, Run, Source, Value, ValueId,
};
use tilewright_kernel::online::{self, At, Chain, Moved, NoChain, Refuted, Rule, Weights, push};

use tilewright_sorted::SortedSet;

use crate::diag::Diagnostics;
use crate::diag::codes::{Apart, BadOnline, ChainProblem, NotOnline, OnlineProblem};
use crate::extent::Facts;
use crate::program::{Follower, Online, Program};
use crate::source::{Span, ast};
use build::{Build, Fold};

/// What the name of an equation ends with that stands for one block of the terms of the equation before it.
pub const OF_BLOCK: &str = "$b";

/// Refuses sums that say `online` and have no correction; none after an error.
pub fn check(program: &Program, diags: &mut Diagnostics) -> Option<()> {
    let mut is_clean = true;
    for (value, node) in program.algorithm.values.iter().enumerate() {
        let Value::Reduce { order, .. } = node else { continue };
        if !order.is_online() {
            continue;
        }
        let sum = program.value_spans[value];
        let alone = (0..program.algorithm.equations.len() as u16).find(|equation| {
            let components = components(&program.algorithm, *equation);
            matches!(components, [only] if only.value as usize == value)
        });
        let (name, earlier, why) = match alone {
            None => ("this".to_owned(), None, NoChain::NotSum),
            Some(equation) => {
                let mut algorithm = program.algorithm.clone();
                let Err(why) = online::chain_of(&mut algorithm, equation) else { continue };
                let first = online::earlier_ones(&program.algorithm, equation).first().copied();
                (name(program, equation), first, why)
            }
        };
        let (problem, part) = problem(program, earlier.zip(alone), why);
        let earlier = earlier.map(|equation| self::name(program, equation));
        diags.report(NotOnline { name, earlier, problem, span: part.unwrap_or(sum), sum });
        is_clean = false;
    }
    is_clean.then_some(())
}

/// The program with the equations that `online` ops ask for; none after an error.
pub fn rewritten(mut program: Program, facts: &Facts, diags: &mut Diagnostics) -> Option<Program> {
    let mut is_clean = true;
    for at in 0..program.schedules.len() {
        let schedule = &program.schedules[at];
        let mut ops = schedule.ast.ops.iter().filter_map(|op| match &op.kind {
            ast::OpKind::Online { source, targets, axis } => {
                Some((source.clone(), targets.clone(), axis.clone(), op.span))
            }
            _ => None,
        });
        let Some(first) = ops.next() else { continue };
        let mut refuse = |source: &ast::Name, problem, span| {
            diags.report(BadOnline { source: source.text.clone(), problem, span });
            is_clean = false;
        };
        if let Some((source, .., span)) = ops.next() {
            refuse(&source, OnlineProblem::Second { first: first.3 }, span);
            continue;
        }
        let (equation, (source, targets, axis, span)) = (schedule.equation, first);
        let op = Op { source: &source, targets: &targets, axis: &axis, span, at, facts };
        let found = op.apply(&mut program, equation);
        if let Err((problem, span)) = found {
            refuse(&source, problem, span);
        }
    }
    is_clean.then_some(program)
}

fn components(algorithm: &Algorithm, equation: u16) -> &[Component] {
    &algorithm.components[algorithm.equations[usize::from(equation)].components.range()]
}

fn name(program: &Program, equation: u16) -> String {
    components(&program.algorithm, equation).first().map_or_else(String::new, |c| c.name.to_string())
}

/// Why two reductions are no chain, an extreme and a sum, and the part of the term that it is about.
fn problem(program: &Program, both: Option<(u16, u16)>, why: NoChain) -> (ChainProblem, Option<Span>) {
    let span = |value: ValueId| program.value_spans.get(value as usize).copied();
    match why {
        NoChain::NotExtreme => (ChainProblem::NotExtreme, None),
        NoChain::NotSum | NoChain::NotOnline(_) => (ChainProblem::NotSum, None),
        NoChain::Fixed(value) => (ChainProblem::Fixed, span(value)),
        NoChain::Search(value) => (ChainProblem::Search, span(value)),
        NoChain::More => (ChainProblem::More, None),
        NoChain::Square(value) => (ChainProblem::Square, span(value)),
        NoChain::Negative(value) => (ChainProblem::Negative, span(value)),
        NoChain::Outside(value, how) => (ChainProblem::Outside(how), span(value)),
        NoChain::Type => (ChainProblem::Type, None),
        NoChain::Range => (ChainProblem::Range, None),
        NoChain::Elements => (ChainProblem::Elements, None),
        NoChain::Unread => (ChainProblem::Unread, None),
        NoChain::TooLarge => (ChainProblem::TooLarge, None),
        NoChain::Nested(value) => (ChainProblem::Nested, span(value)),
        NoChain::Obstacle(obstacle) => {
            let algorithm = &program.algorithm;
            let found = both.and_then(|(earlier, later)| online::refuted(algorithm, earlier, later));
            let moved = both.and_then(|(earlier, later)| online::moved(algorithm, earlier, later));
            let shown = found.map(|found| apart(program, &found)).or_else(|| moved.map(|moved| lists(program, &moved)));
            (ChainProblem::Obstacle(obstacle.why, shown.map(Box::new)), span(obstacle.value))
        }
        NoChain::Shape(value) => (ChainProblem::Shape, span(value)),
        NoChain::Other(value) => (ChainProblem::Other, span(value)),
        NoChain::Narrow(value) => (ChainProblem::Narrow, span(value)),
        NoChain::Grows(value) => {
            let first = both.and_then(|(equation, _)| components(&program.algorithm, equation).first());
            let op = match first.map(|c| program.algorithm.values[c.value as usize]) {
                Some(Value::Reduce { op, .. }) => op,
                _ => Reduction::Max,
            };
            (ChainProblem::Grows(op), span(value))
        }
    }
}

/// To four digits.
fn number(x: f64) -> String {
    format!("{}", (x * 1e4).round() / 1e4)
}

/// What a term reads, with its numbers.
fn given(program: &Program, all: &[(ValueId, f64)]) -> String {
    let one = |(value, x): &(ValueId, f64)| format!("`{} = {}`", program.printed().value_text(*value), number(*x));
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Numbers that no factor corrects, as texts.
fn apart(program: &Program, found: &Refuted) -> Apart {
    Apart {
        given: found.given.each_ref().map(|all| given(program, all)),
        of: found.extremes.map(number),
        values: found.terms.map(|terms| terms.map(number)),
        is_list: false,
    }
}

/// Lists of terms that nothing corrects, as texts.
fn lists(program: &Program, found: &Moved) -> Apart {
    let list =
        |all: &Vec<Vec<(ValueId, f64)>>| all.iter().map(|term| given(program, term)).collect::<Vec<_>>().join("; ");
    Apart {
        given: found.given.each_ref().map(list),
        of: found.means.map(number),
        values: found.sums.map(|sums| sums.map(number)),
        is_list: true,
    }
}

/// One `online` op.
struct Op<'a> {
    source: &'a ast::Name,
    targets: &'a [ast::Name],
    axis: &'a ast::Name,
    span: Span,
    /// The position of its schedule.
    at: usize,
    facts: &'a Facts,
}

impl Op<'_> {
    /// Makes the equation of the extreme a fold, and that of each sum a read of its state.
    fn apply(&self, program: &mut Program, equation: u16) -> Result<(), (OnlineProblem, Span)> {
        let Self { source, targets, axis, span, at, facts } = *self;
        if program.equation(&source.text) != Some((equation, 0)) {
            return Err((OnlineProblem::Elsewhere { stage: name(program, equation) }, source.span));
        }
        let mut chains: Vec<(u16, Chain)> = Vec::new();
        for target in targets {
            let name = target.text.clone();
            let Some((later, _)) = program.equation(&name) else {
                return Err((OnlineProblem::Unknown { target: name }, target.span));
            };
            if chains.iter().any(|chain| chain.0 == later) {
                return Err((OnlineProblem::Twice { target: name }, target.span));
            }
            let mut algorithm = program.algorithm.clone();
            match online::chain(&mut algorithm, equation, later, At::Earlier) {
                Ok(chain) => {
                    program.algorithm = algorithm;
                    chains.push((later, chain));
                }
                Err(NoChain::NotOnline(sum)) => return Err(self.unsaid(program, (equation, later), sum, target)),
                Err(why) => return Err(no_chain(program, (equation, later), why, target)),
            }
        }
        let online = if chains.iter().any(|(_, chain)| !chain.more.is_empty()) {
            let beside = chains.iter().zip(targets).find(|((_, chain), _)| chain.exponential().is_none());
            if let Some((_, target)) = beside {
                let (target, span) = (target.text.clone(), target.span);
                return Err((OnlineProblem::NoChain { target, problem: ChainProblem::Beside }, span));
            }
            blocks::rewritten(program, (equation, at), (axis, span), &chains, facts)?
        } else {
            if let Some((stage, span)) = inside(program, equation) {
                return Err((OnlineProblem::Inside { stage }, span));
            }
            let mut weighted = chains.iter().zip(targets).map(|((_, chain), target)| (chain.weights(), target));
            let first = weighted.next().and_then(|(weights, _)| weights);
            let differs = |other: Option<&Weights>| match (first, other) {
                (Some(a), Some(b)) => !online::is_same(&program.algorithm, a.term, b.term),
                (a, b) => a.is_some() != b.is_some(),
            };
            if let Some((_, target)) = weighted.find(|(weights, _)| differs(*weights)) {
                let problem = ChainProblem::Divided;
                return Err((OnlineProblem::NoChain { target: target.text.clone(), problem }, target.span));
            }
            let Some(online) = fold(program, equation, span, &chains) else {
                return Err(no_chain(program, (equation, equation), NoChain::NotExtreme, source));
            };
            online
        };
        program.online.push(online);
        // What was added stands for the op.
        let algorithm = &program.algorithm;
        let (values, indices, components) =
            (algorithm.values.len(), algorithm.indices.len(), algorithm.components.len());
        program.value_spans.resize(values, span);
        program.index_spans.resize(indices, span);
        program.component_spans.resize(components, span);
        Ok(())
    }

    /// A sum that does not say `online`: whether the word is all that it lacks.
    fn unsaid(
        &self,
        program: &Program,
        (equation, later): (u16, u16),
        sum: ValueId,
        target: &ast::Name,
    ) -> (OnlineProblem, Span) {
        let mut algorithm = program.algorithm.clone();
        let Value::Reduce { op, order, axes, body } = algorithm.values[sum as usize] else {
            return no_chain(program, (equation, later), NoChain::NotSum, target);
        };
        let (word, said) = match order {
            Order::Free => ("online sum", Order::Online),
            Order::Ordered | Order::Unordered => ("online", Order::Online),
            Order::Dot { operands, promote, online: false } => {
                ("online dot", Order::Dot { operands, promote, online: true })
            }
            Order::Dot { .. } | Order::Online => return no_chain(program, (equation, later), NoChain::NotSum, target),
        };
        algorithm.values.to_mut()[sum as usize] = Value::Reduce { op, order: said, axes, body };
        let found = online::chain(&mut algorithm, equation, later, At::Earlier);
        if let Err(why) = found {
            return no_chain(program, (equation, later), why, target);
        }
        let first = Span::token(program.value_spans[sum as usize].first);
        (OnlineProblem::NotSaid { target: target.text.clone(), word: first, edit: word }, target.span)
    }
}

/// Why two reductions cannot be one pass, and the place.
fn no_chain(program: &Program, both: (u16, u16), why: NoChain, target: &ast::Name) -> (OnlineProblem, Span) {
    let (problem, part) = problem(program, Some(both), why);
    (OnlineProblem::NoChain { target: target.text.clone(), problem }, part.unwrap_or(target.span))
}

/// A stage in the loops of an equation that reads it: its name, and the head of its schedule.
fn inside(program: &Program, equation: u16) -> Option<(String, Span)> {
    let algorithm = &program.algorithm;
    let reads = |of: u16| {
        let mut open: Vec<ValueId> = components(algorithm, of).iter().map(|c| c.value).collect();
        let mut seen = SortedSet::new();
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            if let Value::Read { source: Source::Equation { equation: read, .. }, .. } =
                algorithm.values[value as usize]
            {
                if read == equation {
                    return true;
                }
                open.extend(components(algorithm, read).iter().map(|c| c.value));
            }
            open.extend(algorithm.operands(value));
        }
        false
    };
    let own = name(program, equation);
    let is_there = |s: &&crate::program::Schedule| s.ast.clauses.at.as_ref().is_some_and(|at| at.stage.text == own);
    let found = program.schedules.iter().filter(is_there).find(|s| s.equation != equation && reads(s.equation))?;
    Some((name(program, found.equation), found.ast.head))
}

/// The name of a state. No name of the source has this sign.
fn state_name(sum: &str, extreme: &str) -> String {
    format!("{sum}${extreme}")
}

/// The fold in the place of what is followed, and the equations of the others as reads of it; none if there is no
/// reduction.
fn fold(program: &mut Program, equation: u16, span: Span, chains: &[(u16, Chain)]) -> Option<Online> {
    let first = components(&program.algorithm, equation)[0].clone();
    let ty = program.algorithm.types[first.value as usize];
    // A mean is a sum over the number of its terms, or over their weights.
    let (reduced, divisor) = match program.algorithm.values[first.value as usize] {
        Value::Binary(Binary::Div, sum, by) => (sum, Some(by)),
        _ => (first.value, None),
    };
    let Value::Reduce { op, axes, body, .. } = program.algorithm.values[reduced as usize] else { return None };
    let weights = chains.iter().find_map(|(_, chain)| chain.weights());
    let mut b = Build::new(&mut program.algorithm, ty, op, weights.map(|weights| weights.term));
    let followers: Vec<Follower> = chains.iter().map(|(_, chain)| b.follower(chain)).collect();
    let Fold { fold, safe } = b.fold((axes, body), &followers);
    let mut own = b.value(Value::Component { fold, component: 0 });
    let count_type = b.count_type();
    if let Some(by) = divisor {
        let by = match weights {
            Some(_) => push(b.algorithm, Value::Component { fold, component: 1 }, count_type),
            None => by,
        };
        own = b.value(Value::Binary(Binary::Div, own, by));
    }
    let mut parts = vec![Component { value: own, ..first }];
    let leading = b.now.len() as u16;
    for component in 1..leading {
        let value = push(b.algorithm, Value::Component { fold, component }, count_type);
        parts.push(Component { name: state_name("count", &parts[0].name).into(), value, parameter: None });
    }
    for (n, ((later, chain), follower)) in chains.iter().zip(&followers).enumerate() {
        let component = n as u16 + leading;
        let name = state_name(&components(b.algorithm, *later)[0].name, &parts[0].name).into();
        let ty = b.algorithm.types[follower.term as usize];
        let value = push(b.algorithm, Value::Component { fold, component }, ty);
        parts.push(Component { name, value, parameter: None });
        read(&mut b, (equation, component), *later, chain);
    }
    // The weights are added up in the same pass.
    if let Some((summed, places)) = weights.and_then(|weights| weights.equation.as_ref()) {
        let value = element(&mut b, (equation, 1), places, count_type);
        let at = b.algorithm.equations[usize::from(*summed)].components.start as usize;
        b.algorithm.components.to_mut()[at].value = value;
    }
    let run = Run { start: b.algorithm.components.len() as u32, len: parts.len() as u32 };
    b.algorithm.components.to_mut().extend(parts);
    b.algorithm.equations.to_mut()[usize::from(equation)].components = run;
    let Build { before, now, taken, .. } = b;
    Some(Online { equation, fold, span, before, now, taken, safe, followers, blocks: None })
}

/// A state of a fold, of an element.
fn element(b: &mut Build<'_>, (equation, component): (u16, u16), places: &[IndexId], ty: ElementType) -> ValueId {
    let indices = Run { start: b.algorithm.index_lists.len() as u32, len: places.len() as u32 };
    b.algorithm.index_lists.to_mut().extend(places.iter().copied());
    push(b.algorithm, Value::Read { source: Source::Equation { equation, component }, indices, or: None }, ty)
}

/// The equation of a reduction reads its state.
fn read(b: &mut Build<'_>, (equation, component): (u16, u16), later: u16, chain: &Chain) {
    let own = components(b.algorithm, later)[0].value;
    let Value::Reduce { axes, .. } = b.algorithm.values[own as usize] else { return };
    let axis = b.algorithm.axis_lists[axes.range()][0];
    let ty = b.algorithm.types[own as usize];
    let range = {
        let axis = &b.algorithm.axes[axis as usize];
        (axis.lower, axis.upper)
    };
    let mut element = |component: u16, ty: ElementType| element(b, (equation, component), &chain.places, ty);
    let value = match &chain.rule {
        rule @ (Rule::Exponential(_) | Rule::Scaled(_) | Rule::Squares { weights: Some(_) }) => {
            // The extreme, or the sum of the weights.
            let first = u16::from(chain.weights().is_some());
            let (first, sum) = (element(first, ty), element(component, ty));
            b.result(rule, (first, sum), range)
        }
        Rule::Squares { weights: None } | Rule::Choice { .. } => element(component, ty),
    };
    let at = b.algorithm.equations[usize::from(later)].components.start as usize;
    b.algorithm.components.to_mut()[at].value = value;
}
