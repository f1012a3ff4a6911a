//! `like S` in a stage that reads S, where tensor cores compute S: its ops, as they are written.
//!
//! Readers are placed before what they read, since that is asked for by them. So there is no stage yet that `like`
//! could follow ([`like`](super::like)); but S is dealt out as tensor cores deal sums of products out, and its ops say
//! how. **Property.** The reader has the axes that S has, but those of terms, with their names, order and binds.
//! **Formula.** Each op of S whose axes all correspond to axes of the reader is repeated on these; `mma (m, n, k)` is
//! `fragment (m, n)`. Order and binds are taken over for the axes that correspond.

use std::borrow::Cow;

use tilewright_kernel::algorithm::{Algorithm, Source, Value};
use tilewright_sorted::SortedSet;

use super::like::counterparts;
use crate::program::Program;
use crate::source::{Span, ast};

/// The ops of a stage, with those of sums of products that it is like in the place of `like`.
pub(super) fn written_out<'a>(
    program: &Program,
    (equation, per): (usize, Option<&ast::Name>),
    ops: &'a [ast::Op],
) -> Cow<'a, [ast::Op]> {
    if ops.iter().all(|op| op.model().is_none()) {
        return Cow::Borrowed(ops);
    }
    let mut all = Vec::new();
    let mut is_changed = false;
    for op in ops {
        match model(program, equation, op) {
            Some((other, model)) => {
                let names = names(&program.algorithm, equation, other);
                all.extend(Repeat { names, per: per.map(|per| per.text.as_str()), span: op.span }.ops(&model));
                is_changed = true;
            }
            None => all.push(op.clone()),
        }
    }
    if is_changed { Cow::Owned(all) } else { Cow::Borrowed(ops) }
}

/// The equation that an op is like and its ops, if the stage reads it and tensor cores deal it out.
fn model<'a>(program: &'a Program, equation: usize, op: &ast::Op) -> Option<(usize, Cow<'a, [ast::Op]>)> {
    let ast::OpKind::Like { stage, operand: None } = &op.kind else { return None };
    let schedule = program.schedules.iter().find(|schedule| schedule.ast.stage.text == stage.text)?;
    let other = usize::from(schedule.equation);
    let is_dealt = |op: &ast::Op| matches!(op.kind, ast::OpKind::Mma { .. } | ast::OpKind::Fragment { .. });
    // What is like another one that it reads is not read by that.
    let is_candidate = |op: &ast::Op| is_dealt(op) || op.model().is_some();
    if !schedule.ast.ops.iter().any(is_candidate) || !reads(&program.algorithm, equation, other) {
        return None;
    }
    let of = (other, schedule.ast.clauses.per.as_ref());
    let ops = written_out(program, of, &schedule.ast.ops);
    ops.iter().any(is_dealt).then_some((other, ops))
}

/// Whether an equation reads another one, itself or through others.
fn reads(algorithm: &Algorithm, equation: usize, other: usize) -> bool {
    let values = |equation: usize| {
        let components = &algorithm.components[algorithm.equations[equation].components.range()];
        components.iter().map(|component| component.value)
    };
    let (mut open, mut seen) = (values(equation).collect::<Vec<_>>(), SortedSet::new());
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        open.extend(algorithm.operands(value));
        if let Value::Read { source: Source::Equation { equation, .. }, .. } = algorithm.values[value as usize] {
            if usize::from(equation) == other {
                return true;
            }
            open.extend(values(usize::from(equation)));
        }
    }
    false
}

/// The names of the other equation's axes that correspond to axes of an equation, each with that.
fn names(algorithm: &Algorithm, equation: usize, other: usize) -> Vec<(String, String)> {
    let name = |axis: u32| algorithm.axes[axis as usize].name.to_string();
    counterparts(algorithm, equation, other).into_iter().map(|(own, theirs)| (name(theirs), name(own))).collect()
}

/// Ops that are repeated.
struct Repeat<'a> {
    /// Axes of the model, and what they are called here.
    names: Vec<(String, String)>,
    /// The unit that has an instance of the stage, if that is said.
    per: Option<&'a str>,
    /// The op that repeats.
    span: Span,
}

impl Repeat<'_> {
    fn ops(mut self, model: &[ast::Op]) -> Vec<ast::Op> {
        let span = self.span;
        model.iter().filter_map(|op| Some(ast::Op { kind: self.op(&op.kind)?, keyword: span, span })).collect()
    }

    /// An axis here, if one corresponds.
    fn axis(&self, name: &ast::Name) -> Option<ast::Name> {
        let found = self.names.iter().rev().find(|(theirs, _)| *theirs == name.text)?;
        Some(ast::Name { text: found.1.clone(), span: self.span })
    }

    fn axes(&self, names: &[ast::Name]) -> Vec<ast::Name> {
        names.iter().filter_map(|name| self.axis(name)).collect()
    }

    /// An axis that an op makes here, too.
    fn made(&mut self, name: &ast::Name) -> ast::Name {
        self.names.push((name.text.clone(), name.text.clone()));
        ast::Name { text: name.text.clone(), span: self.span }
    }

    /// Whether a unit is a part of what has an instance; blocks are around it.
    fn is_inside(&self, unit: &str) -> bool {
        let outside: &[&str] = match self.per {
            Some("thread") => &["grid", "cta", "warpgroup", "warp", "thread"],
            Some("warp") => &["grid", "cta", "warpgroup", "warp"],
            Some("warpgroup") => &["grid", "cta", "warpgroup"],
            Some("cluster") => &["grid"],
            _ => &["grid", "cta"],
        };
        !outside.contains(&unit)
    }

    /// An op here; none if it is about other axes, or about what these are not.
    fn op(&mut self, op: &ast::OpKind) -> Option<ast::OpKind> {
        use ast::OpKind;
        Some(match op {
            OpKind::Split { axis, side, factor, outer, inner } => {
                let axis = self.axis(axis)?;
                let [outer, inner] = [self.made(outer), self.made(inner)];
                OpKind::Split { axis, side: *side, factor: factor.clone(), outer, inner }
            }
            OpKind::Merge { axes, into } => {
                let own = self.axes(axes);
                (own.len() == axes.len()).then(|| OpKind::Merge { axes: own, into: self.made(into) })?
            }
            OpKind::Reorder { axes } => {
                let axes = self.axes(axes);
                (axes.len() > 1).then_some(OpKind::Reorder { axes })?
            }
            OpKind::Resize { axis, left, right, into } => {
                let axis = self.axis(axis)?;
                OpKind::Resize { axis, left: left.clone(), right: right.clone(), into: self.made(into) }
            }
            OpKind::Swizzle { x, y, function, x_into, y_into } => {
                let (x, y) = (self.axis(x)?, self.axis(y)?);
                let [x_into, y_into] = [self.made(x_into), self.made(y_into)];
                OpKind::Swizzle { x, y, function: *function, x_into, y_into }
            }
            OpKind::Bind { axes, scale, unit, range, .. } => {
                let axes = self.axes(axes);
                let is_taken = !axes.is_empty() && self.is_inside(&unit.text);
                let (scale, unit, range) = (scale.clone(), unit.clone(), range.clone());
                is_taken.then_some(OpKind::Bind { axes, scale, unit, range, raster: Vec::new() })?
            }
            OpKind::Vectorize { axis } => OpKind::Vectorize { axis: self.axis(axis)? },
            OpKind::Unroll { axis, by } => OpKind::Unroll { axis: self.axis(axis)?, by: by.clone() },
            OpKind::Mma { m, n, engine, .. } => {
                OpKind::Fragment { m: self.axis(m)?, n: Some(self.axis(n)?), engine: *engine }
            }
            OpKind::Fragment { m, n, engine } => {
                let n = match n {
                    Some(n) => Some(self.axis(n)?),
                    None => None,
                };
                OpKind::Fragment { m: self.axis(m)?, n, engine: *engine }
            }
            _ => return None,
        })
    }
}
