//! The statement `tune`: what it says, and where its names stand.

use super::record::{Ranking, Record};
use super::{COMBINATIONS, Constant, Tuned, each_number};
use crate::diag::Diagnostics;
use crate::diag::codes::{
    BadCandidates, BadRecord, CandidatesProblem, DuplicateName, RecordProblem, RepeatedStage, TooManyCombinations,
    TunedValue, UnknownName,
};
use crate::source::Span;
use crate::source::ast::{self, Expr, ExprKind, Item, Kernel, Name};

/// Names that the domain of a unit knows besides.
const OF_UNITS: [&str; 2] = ["block", "cluster"];

/// The constants of a kernel; none if it has no `tune`, or after an error in it.
pub fn read(kernel: &Kernel, diags: &mut Diagnostics) -> Option<Tuned> {
    let mut statements =
        kernel.items.iter().filter_map(|item| if let Item::Tune(tune) = item { Some(tune) } else { None });
    let tune = statements.next()?;
    let mut found = Diagnostics::new();
    for second in statements {
        let (first, second) = (tune.span, second.span);
        found.report(RepeatedStage { statement: "tune", name: None, first, second });
    }
    let mut constants: Vec<Constant> = Vec::new();
    for written in &tune.constants {
        let taken = constants.iter().find(|c| c.name == written.name.text).map(|c| c.span);
        let parameter = kernel.inputs.iter().chain(&kernel.outputs).find(|p| p.name.text == written.name.text);
        if let Some(first) = taken.or(parameter.map(|p| p.name.span)) {
            found.report(DuplicateName { name: written.name.text.clone(), first, second: written.name.span });
        }
        constants.push(constant(written, &mut found));
    }
    let counts: Vec<usize> = constants.iter().map(|c| c.candidates.len()).collect();
    if counts.iter().fold(1_usize, |product, count| product.saturating_mul(*count)) > COMBINATIONS {
        found.report(TooManyCombinations { counts, limit: COMBINATIONS, span: tune.span });
    }
    places(kernel, &constants, tune.span, &mut found);
    let record = tune.record.as_ref().and_then(|written| record(written, &constants, &mut found));
    let is_right = !found.has_errors();
    diags.append(found);
    is_right.then_some(Tuned { constants, record, chosen: None, span: tune.span })
}

fn constant(written: &ast::Candidates, found: &mut Diagnostics) -> Constant {
    let name = written.name.text.clone();
    let mut report = |problem, span| found.report(BadCandidates { name: name.clone(), problem, span });
    let mut candidates: Vec<(u64, Span)> = Vec::new();
    for value in &written.values {
        match literal(value) {
            None => report(CandidatesProblem::NotAnInteger, value.span),
            Some(number) => match candidates.iter().find(|(known, _)| *known == number) {
                Some((_, first)) => report(CandidatesProblem::Twice(number, *first), value.span),
                None => candidates.push((number, value.span)),
            },
        }
    }
    if written.values.is_empty() {
        report(CandidatesProblem::Empty, written.span);
    }
    Constant { name, candidates: candidates.into_iter().map(|(value, _)| value).collect(), span: written.span }
}

fn literal(value: &Expr) -> Option<u64> {
    match &value.kind {
        ExprKind::Int(literal) if literal.suffix.is_none() => Some(literal.value),
        _ => None,
    }
}

/// Where the names stand: at least once in the schedule, and nowhere else. Other names of the schedule's numbers are
/// sizes.
fn places(kernel: &Kernel, constants: &[Constant], tune: Span, found: &mut Diagnostics) {
    let mut kernel = kernel.clone();
    let mut sizes: Vec<String> = Vec::new();
    let mut outside = |place: &'static str, expr: &mut Expr, names: &mut Vec<String>| {
        expr.visit_mut(&mut |expr| {
            let ExprKind::Name(Name { text, span }) = &expr.kind else { return };
            if constants.iter().any(|constant| constant.name == *text) {
                found.report(TunedValue { name: text.clone(), place, span: *span, tune });
            } else if !names.contains(text) {
                names.push(text.clone());
            }
        });
    };
    for shape in kernel.inputs.iter_mut().chain(&mut kernel.outputs).filter_map(|p| p.ty.shape.as_mut()) {
        let sizes_of = shape.dims.iter_mut().map(|dim| &mut dim.size).chain(shape.strides.iter_mut().flatten());
        sizes_of.for_each(|size| outside("a shape", size, &mut sizes));
    }
    for fact in &mut kernel.facts {
        [&mut fact.lhs, &mut fact.rhs].into_iter().for_each(|side| outside("a fact", side, &mut sizes));
    }
    for item in &mut kernel.items {
        let Item::Equation(equation) = item else { continue };
        let ranges = equation.axes.iter_mut().flat_map(ast::AxisDecl::ends_mut);
        ranges.for_each(|expr| outside("an equation", expr, &mut Vec::new()));
        equation.parts_mut().for_each(|expr| outside("an equation", expr, &mut Vec::new()));
    }
    let mut used = vec![false; constants.len()];
    for item in &mut kernel.items {
        let is_unit = matches!(item, Item::Unit(_));
        each_number(item, &mut |expr| {
            let ExprKind::Name(Name { text, span }) = &expr.kind else { return };
            match constants.iter().position(|constant| constant.name == *text) {
                Some(at) => used[at] = true,
                None if sizes.contains(text) || is_unit && OF_UNITS.contains(&text.as_str()) => {}
                None => {
                    let known = constants.iter().map(|c| c.name.clone()).chain(sizes.iter().cloned()).collect();
                    let kind = "constant or size".to_owned();
                    found.report(UnknownName { kind, name: text.clone(), known, span: *span });
                }
            }
        });
    }
    // A name that stands elsewhere, or is misspelt, was meant to be used.
    let is_clear = !found.has_errors();
    for (constant, _) in constants.iter().zip(used).filter(|(_, is_used)| is_clear && !is_used) {
        let (name, span) = (constant.name.clone(), constant.span);
        found.report(BadCandidates { name, problem: CandidatesProblem::Unused, span });
    }
}

fn record(written: &ast::TuneRecord, constants: &[Constant], found: &mut Diagnostics) -> Option<Record> {
    let mut report = |problem, span| found.report(BadRecord { problem, span, record: written.span });
    if written.values.len() != constants.len() {
        report(RecordProblem::Count(written.values.len(), constants.len()), written.span);
        return None;
    }
    let mut values = Vec::new();
    for (value, constant) in written.values.iter().zip(constants) {
        match literal(value).filter(|number| constant.candidates.contains(number)) {
            Some(number) => values.push(number),
            None => {
                report(RecordProblem::NotListed(constant.name.clone(), constant.candidates.clone()), value.span);
            }
        }
    }
    let Some((ranking, digest)) = Ranking::read(&written.by.value) else {
        report(RecordProblem::NoDigest, written.by.span);
        return None;
    };
    (values.len() == constants.len()).then_some(Record { values, ranking, digest, span: written.span })
}
