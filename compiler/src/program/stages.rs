//! The schedule half as far as names go: which equation a schedule belongs to, and the lines of the line table.

use tilewright_sorted::SortedMap;

use super::names::plain;
use super::order::Plan;
use super::signature::Signature;
use super::{Inlined, Schedule, Stage};
use crate::diag::Diagnostics;
use crate::diag::codes::{DuplicateName, InlinedOutput, NotSupportedYet, RepeatedStage, ScheduledInput, UnknownName};
use crate::source::{Span, ast};

/// See [`super::Program`].
#[derive(Debug, Default)]
pub(super) struct Stages {
    pub launch: Option<ast::Launch>,
    pub schedules: Vec<Schedule>,
    pub stages: Vec<Stage>,
    pub inlined: Vec<Inlined>,
    pub units: Vec<ast::Unit>,
    pub statements: Vec<Span>,
}

pub(super) fn build(kernel: &ast::Kernel, signature: &Signature, plan: &Plan<'_>, diags: &mut Diagnostics) -> Stages {
    let mut out = Stages::default();
    // What was said about each equation: scheduled or inlined.
    let mut said: SortedMap<u16, Span> = SortedMap::new();
    let mut copies: SortedMap<&str, Span> = SortedMap::new();
    for item in &kernel.items {
        let statement = u32::try_from(out.statements.len()).expect("there are fewer statements than tokens");
        match item {
            ast::Item::Equation(equation) => out.statements.push(equation.span),
            ast::Item::Launch(launch) => {
                out.statements.push(launch.span);
                match &out.launch {
                    Some(first) => {
                        let first = first.span;
                        diags.report(RepeatedStage { statement: "launch", name: None, first, second: launch.span });
                    }
                    None => out.launch = Some(launch.clone()),
                }
            }
            ast::Item::Schedule(schedule) => {
                out.statements.push(schedule.head);
                out.statements.extend(schedule.ops.iter().map(|op| op.span));
                let Some((equation, component)) = find(&schedule.stage, signature, plan, diags) else { continue };
                if once(&mut said, equation, "schedule", &schedule.stage, schedule.head, diags) {
                    out.schedules.push(Schedule { equation, component, statement, ast: schedule.clone() });
                }
            }
            ast::Item::Stage(copy) => {
                out.statements.push(copy.head);
                out.statements.extend(copy.ops.iter().map(|op| op.span));
                let name = plain(&copy.name);
                let equation = plan.targets.get(name).map(|&(e, _)| plan.equations[usize::from(e)].ast.head);
                let parameter = signature.tensors.get(name).map(|&p| signature.parameter_spans[usize::from(p)]);
                if let Some(first) = equation.or(parameter).or(copies.get(name).copied()) {
                    diags.report(DuplicateName { name: name.to_owned(), first, second: copy.name.span });
                    continue;
                }
                copies.insert(name, copy.name.span);
                out.stages.push(Stage { statement, ast: copy.clone() });
            }
            ast::Item::Inline(inline) => {
                out.statements.push(inline.span);
                let Some((equation, _)) = find(&inline.stage, signature, plan, diags) else { continue };
                if plan.equations[usize::from(equation)].parameters.iter().any(Option::is_some) {
                    let name = plain(&inline.stage).to_owned();
                    diags.report(InlinedOutput { name, span: inline.span });
                    continue;
                }
                if once(&mut said, equation, "inline", &inline.stage, inline.span, diags) {
                    out.inlined.push(Inlined { equation, span: inline.span });
                }
            }
            ast::Item::Unit(unit) => {
                out.statements.push(unit.span);
                out.units.push(unit.clone());
            }
            // Its names are numbers by now.
            ast::Item::Tune(_) => {}
            ast::Item::Pass(pass) => not_yet("pass", pass.span, diags),
        }
    }
    for copy in &out.stages {
        let name = plain(&copy.ast.source);
        let known = signature.tensors.contains_key(name) || plan.targets.contains_key(name);
        if !known {
            unknown(&copy.ast.source, "tensor", signature, plan, diags);
        }
    }
    out
}

fn not_yet(construct: &str, span: Span, diags: &mut Diagnostics) {
    diags.report(NotSupportedYet { construct: construct.to_owned(), span, instead: None });
}

fn unknown(name: &ast::Name, kind: &'static str, signature: &Signature, plan: &Plan<'_>, diags: &mut Diagnostics) {
    let text = plain(name);
    let parameters = signature.parameters.iter().map(|p| &*p.name);
    let inputs =
        parameters.filter(|p| kind == "tensor" && signature.tensors.contains_key(*p) && !plan.targets.contains_key(p));
    let equations = plan.equations.iter().flat_map(|e| &e.ast.targets).map(plain);
    let known = inputs.chain(equations).map(str::to_owned).collect();
    diags.report(UnknownName { kind: kind.to_owned(), name: text.to_owned(), known, span: name.span });
}

/// The equation that a schedule names.
fn find(stage: &ast::Name, signature: &Signature, plan: &Plan<'_>, diags: &mut Diagnostics) -> Option<(u16, u16)> {
    let name = plain(stage);
    if let Some(&found) = plan.targets.get(name) {
        return Some(found);
    }
    if let Some(&parameter) = signature.tensors.get(name) {
        let is_input = signature.tensor(parameter).is_some_and(|t| !t.role.is_written());
        // An output without an equation has been reported.
        if is_input {
            diags.report(ScheduledInput { name: name.to_owned(), span: stage.span });
        }
        return None;
    }
    unknown(stage, "equation", signature, plan, diags);
    None
}

/// Notes what was said about an equation; the second time is an error.
fn once(
    said: &mut SortedMap<u16, Span>,
    equation: u16,
    statement: &'static str,
    name: &ast::Name,
    span: Span,
    diags: &mut Diagnostics,
) -> bool {
    if let Some(&first) = said.get(&equation) {
        let name = Some(plain(name).to_owned());
        diags.report(RepeatedStage { statement, name, first, second: span });
        return false;
    }
    said.insert(equation, span);
    true
}
