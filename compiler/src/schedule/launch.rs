//! What `launch` asks for.

use super::distribution::{BLOCK_LIMIT, CLUSTER_LIMIT};
use crate::diag::Diagnostics;
use crate::diag::codes::BadFactor;
use crate::extent::{Expr, Facts};
use crate::program::Program;
use crate::source::{Span, ast};

/// What `launch` asks for, each with the item that does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Launch {
    /// Threads of a block.
    pub threads: Option<(i128, Span)>,
    /// Blocks of a cluster.
    pub cluster: Option<(i128, Span)>,
    /// Whether blocks take iterations of the grid in turn.
    pub persistent: Option<Span>,
}

/// What `launch` asks for.
pub(super) fn launch(program: &Program, facts: &Facts, diags: &mut Diagnostics) -> Launch {
    let mut launch = Launch::default();
    for item in program.launch.iter().flat_map(|l| &l.items) {
        let (what, expr, most, found) = match &item.kind {
            ast::LaunchItemKind::Threads(e) => {
                ("the number of threads of a block", e, BLOCK_LIMIT, &mut launch.threads)
            }
            ast::LaunchItemKind::Cluster(e) => {
                ("the number of blocks of a cluster", e, CLUSTER_LIMIT, &mut launch.cluster)
            }
            ast::LaunchItemKind::Persistent => {
                launch.persistent = Some(item.span);
                continue;
            }
            // Roles: see `roles`.
            ast::LaunchItemKind::Dependent | ast::LaunchItemKind::Roles(_) => continue,
        };
        let value = constant(program, facts, expr);
        match value.filter(|v| (1..=most).contains(v)) {
            Some(value) => *found = Some((value, item.span)),
            None => diags.report(BadFactor { what, value, least: 1, most, span: expr.span }),
        }
    }
    launch
}

/// A number, or a dimension that facts fix.
pub(super) fn constant(program: &Program, facts: &Facts, e: &ast::Expr) -> Option<i128> {
    match &e.kind {
        ast::ExprKind::Int(literal) => Some(i128::from(literal.value)),
        ast::ExprKind::Name(name) => {
            let d = program.dims.iter().position(|d| d.name == name.text)?;
            facts.normal(&Expr::var(d as u32)).as_constant()
        }
        _ => None,
    }
}
