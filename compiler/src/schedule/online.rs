//! Loops that run twice: those inside of the loop in which sums follow an extreme (docs/theory.md, Online reductions).

use super::Stage;
use crate::diag::Diagnostics;
use crate::diag::codes::{BadOnline, OnlineProblem};
use crate::program::Program;
use crate::source::Span;
use crate::source::ast;

/// Refuses what stands in such a loop.
pub(super) fn check(program: &Program, stages: &[Stage], diags: &mut Diagnostics) {
    for stage in stages {
        let Some(over) = stage.online else { continue };
        let leaves = &stage.domain.leaves;
        let place = |leaf: usize| leaves.iter().position(|l| *l == leaf);
        let schedules = program.schedules.iter().map(|s| (&s.ast.clauses, s.ast.head, s.equation));
        let schedules = schedules.map(|(clauses, head, equation)| {
            let first = program.algorithm.equations[usize::from(equation)].components.start as usize;
            (clauses, head, program.algorithm.components[first].name.to_string())
        });
        let copies = program.stages.iter().map(|s| (&s.ast.clauses, s.ast.head, s.ast.name.text.clone()));
        let all: Vec<(&ast::Clauses, Span, String)> = schedules.chain(copies).collect();
        for (clauses, head, name) in all {
            let Some(at) = clauses.at.as_ref().filter(|at| at.stage.text == stage.name) else { continue };
            let inner = stage.domain.leaf(&at.axis.text).filter(|leaf| place(*leaf) > place(over));
            if inner.is_some() {
                let over = stage.domain.axes[over].name.clone();
                let problem = OnlineProblem::Deeper { stage: name, axis: at.axis.text.clone(), over };
                diags.report(BadOnline { source: stage.name.clone(), problem, span: head });
            }
        }
    }
}
