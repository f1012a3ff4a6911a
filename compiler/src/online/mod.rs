//! Sums that follow an extreme in one pass: `online m -> l over jo`.
//!
//! **Property.** [`rewritten`] has the same results as the program that it is given, as the contract of an `online sum`
//! admits: docs/theory.md, Online reductions. **Formula.** The equation of the extreme m becomes a fold with the states
//! m and l; that of each sum reads its state:
//!
//! > m' = max(m, u), l' = l·c(m, m') + t(u, m'),
//!
//! merged in the same way: m' = max(m₁, m₂), l' = l₁·c(m₁, m') + l₂·c(m₂, m'). Its schedule is that of m. By blocks of
//! terms, lowering takes the extreme of all of them first: [`Online`] has the parts. What blocks, threads and units do
//! with a fold they do with this one. The algorithm of the kernel stays what was written, for `reference()` and the
//! separate checker. **Approximation.** None: what has no correction in `tilewright_kernel::online` is refused.

mod blocks;
#[cfg(test)]
mod tests;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{
    Algorithm, Binary, Compare, Component, FoldState, IndexId, Order, Reduction, Run, Source, Value, ValueId,
};
use tilewright_kernel::online::{self, At, Chain, NoChain, Refuted, push, replaced};

use tilewright_sorted::SortedSet;

use crate::diag::Diagnostics;
use crate::diag::codes::{Apart, BadOnline, ChainProblem, NotOnline, OnlineProblem};
use crate::extent::Facts;
use crate::program::{Online, Program};
use crate::source::{Span, ast};

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
                let first = online::extremes(&program.algorithm, equation).first().copied();
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
        NoChain::Type => (ChainProblem::Type, None),
        NoChain::Range => (ChainProblem::Range, None),
        NoChain::Elements => (ChainProblem::Elements, None),
        NoChain::Unread => (ChainProblem::Unread, None),
        NoChain::TooLarge => (ChainProblem::TooLarge, None),
        NoChain::Nested(value) => (ChainProblem::Nested, span(value)),
        NoChain::Obstacle(obstacle) => {
            let found = both.and_then(|(earlier, later)| online::refuted(&program.algorithm, earlier, later));
            (
                ChainProblem::Obstacle(obstacle.why, found.map(|found| Box::new(apart(program, &found)))),
                span(obstacle.value),
            )
        }
        NoChain::Shape(value) => (ChainProblem::Shape, span(value)),
        NoChain::Other(value) => (ChainProblem::Other, span(value)),
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

/// Numbers that no factor corrects, as texts.
fn apart(program: &Program, found: &Refuted) -> Apart {
    // To four digits.
    let number = |x: f64| format!("{}", (x * 1e4).round() / 1e4);
    let given = |all: &Vec<(ValueId, f64)>| {
        let one = |(value, x): &(ValueId, f64)| format!("`{} = {}`", program.printed().value_text(*value), number(*x));
        all.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    Apart {
        given: found.given.each_ref().map(given),
        extremes: found.extremes.map(number),
        terms: found.terms.map(|terms| terms.map(number)),
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
            blocks::rewritten(program, (equation, at), (axis, span), &chains, facts)?
        } else {
            if let Some((stage, span)) = inside(program, equation) {
                return Err((OnlineProblem::Inside { stage }, span));
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

/// Builds values over those of a chain.
struct Build<'a> {
    algorithm: &'a mut Algorithm,
    ty: ElementType,
    /// Before the first term.
    identity: ValueId,
    zero: ValueId,
    one: ValueId,
    /// Numbers of variables of the fold: the extreme before it changes, as it is now, and that as terms take it; those
    /// of states follow.
    variables: [u32; 3],
}

/// A fold of an extreme and the sums that follow it.
struct Fold {
    fold: ValueId,
    /// 0 in the place of an infinite extreme.
    safe: ValueId,
}

impl<'a> Build<'a> {
    fn new(algorithm: &'a mut Algorithm, ty: ElementType, op: Reduction) -> Self {
        let of_values = algorithm.values.iter().filter_map(|v| match v {
            Value::Variable(number) => Some(number + 1),
            _ => None,
        });
        let of_folds = algorithm.folds.iter().flat_map(|s| [s.variable, s.left, s.right]).map(|v| v + 1);
        let start = of_folds.chain(of_values).max().unwrap_or(0);
        let variables = [start, start + 1, start + 2];
        let mut b = Self { algorithm, ty, identity: 0, zero: 0, one: 0, variables };
        let least = if op == Reduction::Min { f64::INFINITY } else { f64::NEG_INFINITY };
        (b.identity, b.zero, b.one) = (b.float(least), b.float(0.0), b.float(1.0));
        b
    }

    fn value(&mut self, value: Value) -> ValueId {
        push(self.algorithm, value, self.ty)
    }

    fn float(&mut self, x: f64) -> ValueId {
        let bits = if self.ty == ElementType::F64 { x.to_bits() } else { u64::from((x as f32).to_bits()) };
        self.value(Value::Literal(bits))
    }

    /// Whether a value is the identity: no term, or none but infinite ones.
    fn is_nothing(&mut self, value: ValueId) -> ValueId {
        push(self.algorithm, Value::Compare(Compare::Eq, value, self.identity), ElementType::Bool)
    }

    /// What terms take for an extreme: 0 while it is infinite, where each exponential is 0 with any later one.
    fn safe(&mut self, value: ValueId) -> ValueId {
        let nothing = self.is_nothing(value);
        self.value(Value::Select(nothing, self.zero, value))
    }

    fn binary(&mut self, op: Binary, a: ValueId, b: ValueId) -> ValueId {
        self.value(Value::Binary(op, a, b))
    }

    /// The factor of a partial sum, over the extreme before it changes and as terms take it.
    fn correction(&mut self, chain: &Chain) -> ValueId {
        let [before, _, safe] = self.variables;
        let [of_before, of_safe] = [before, safe].map(|v| self.value(Value::Variable(v)));
        let is_first = self.is_nothing(of_before);
        let changed = replaced(self.algorithm, chain.correction, &[(chain.before, of_before), (chain.now, of_safe)]);
        self.value(Value::Select(is_first, self.one, changed))
    }

    /// A sum that is multiplied by its correction where the extreme changes.
    fn corrected(&mut self, sum: ValueId, correction: ValueId, from: ValueId, to: ValueId) -> ValueId {
        let [before, _, safe] = self.variables;
        let by = replaced(self.algorithm, correction, &[(before, from), (safe, to)]);
        self.binary(Binary::Mul, sum, by)
    }

    /// The fold over `axes` that takes in a term of the extreme, and then that of each sum, with its correction.
    fn fold(&mut self, op: Reduction, (axes, term): (Run, ValueId), sums: &[(ValueId, ValueId)]) -> Fold {
        let take = if op == Reduction::Min { Binary::Min } else { Binary::Max };
        let [_, now, safe] = self.variables;
        let state = |n: usize| -> [u32; 3] { std::array::from_fn(|k| safe + 1 + 3 * n as u32 + k as u32) };
        let of_now = self.value(Value::Variable(now));
        let as_safe = self.safe(of_now);
        let [variable, left, right] = state(0);
        let of = [variable, left, right].map(|v| self.value(Value::Variable(v)));
        let step = self.binary(take, of[0], term);
        let merge = self.binary(take, of[1], of[2]);
        let (safe_step, safe_merge) = (self.safe(step), self.safe(merge));
        let mut states = vec![FoldState { init: self.identity, variable, step, left, right, merge: Some(merge) }];
        for (n, (correction, term)) in sums.iter().enumerate() {
            let [variable, left, right] = state(n + 1);
            let own = [variable, left, right].map(|v| self.value(Value::Variable(v)));
            let kept = self.corrected(own[0], *correction, of[0], safe_step);
            let one = self.corrected(own[1], *correction, of[1], safe_merge);
            let other = self.corrected(own[2], *correction, of[2], safe_merge);
            let term = replaced(self.algorithm, *term, &[(safe, safe_step)]);
            let step = self.binary(Binary::Add, kept, term);
            let merge = Some(self.binary(Binary::Add, one, other));
            states.push(FoldState { init: self.zero, variable, step, left, right, merge });
        }
        let all = Run { start: self.algorithm.folds.len() as u32, len: states.len() as u32 };
        self.algorithm.folds.to_mut().extend(states);
        Fold { fold: self.value(Value::Fold { axes, states: all }), safe: as_safe }
    }

    /// What is made of the state of a sum: with an infinite extreme, every term of a range that has any is exp(∞ − ∞).
    fn result(&mut self, (extreme, sum): (ValueId, ValueId), (lower, upper): (IndexId, IndexId)) -> ValueId {
        let nothing = self.is_nothing(extreme);
        let has_terms = push(self.algorithm, Value::CompareIndex(Compare::Lt, lower, upper), ElementType::Bool);
        let infinite = push(self.algorithm, Value::Binary(Binary::And, nothing, has_terms), ElementType::Bool);
        let nan = self.float(f64::NAN);
        self.value(Value::Select(infinite, nan, sum))
    }
}

/// The name of a state. No name of the source has this sign.
fn state_name(sum: &str, extreme: &str) -> String {
    format!("{sum}${extreme}")
}

/// The fold in the place of the extreme, and the equations of the sums as reads of it; none if there is no reduction.
fn fold(program: &mut Program, equation: u16, span: Span, chains: &[(u16, Chain)]) -> Option<Online> {
    let first = components(&program.algorithm, equation)[0].clone();
    let ty = program.algorithm.types[first.value as usize];
    let Value::Reduce { op, axes, body, .. } = program.algorithm.values[first.value as usize] else { return None };
    let mut b = Build::new(&mut program.algorithm, ty, op);
    let mut sums = Vec::with_capacity(chains.len());
    for (_, chain) in chains {
        let correction = b.correction(chain);
        let of_safe = b.value(Value::Variable(b.variables[2]));
        sums.push((correction, replaced(b.algorithm, chain.term, &[(chain.now, of_safe)])));
    }
    let Fold { fold, safe } = b.fold(op, (axes, body), &sums);
    let mut parts = vec![Component { value: b.value(Value::Component { fold, component: 0 }), ..first }];
    for (n, (later, chain)) in chains.iter().enumerate() {
        let component = n as u16 + 1;
        let name = state_name(&components(b.algorithm, *later)[0].name, &parts[0].name).into();
        let value = b.value(Value::Component { fold, component });
        parts.push(Component { name, value, parameter: None });
        read(&mut b, (equation, component), *later, chain);
    }
    let run = Run { start: b.algorithm.components.len() as u32, len: parts.len() as u32 };
    b.algorithm.components.to_mut().extend(parts);
    b.algorithm.equations.to_mut()[usize::from(equation)].components = run;
    let variables = b.variables;
    Some(Online { equation, fold, span, variables, safe, sums, blocks: None })
}

/// The equation of a sum reads its state.
fn read(b: &mut Build<'_>, (equation, component): (u16, u16), later: u16, chain: &Chain) {
    let own = components(b.algorithm, later)[0].value;
    let Value::Reduce { axes, .. } = b.algorithm.values[own as usize] else { return };
    let axis = b.algorithm.axis_lists[axes.range()][0];
    let mut element = |component: u16| {
        let indices = Run { start: b.algorithm.index_lists.len() as u32, len: chain.places.len() as u32 };
        b.algorithm.index_lists.to_mut().extend(chain.places.iter().copied());
        b.value(Value::Read { source: Source::Equation { equation, component }, indices, or: None })
    };
    let (extreme, sum) = (element(0), element(component));
    let (lower, upper) = {
        let axis = &b.algorithm.axes[axis as usize];
        (axis.lower, axis.upper)
    };
    let value = b.result((extreme, sum), (lower, upper));
    let at = b.algorithm.equations[usize::from(later)].components.start as usize;
    b.algorithm.components.to_mut()[at].value = value;
}
