//! What the clauses of a stage in shared or global memory say of its buffers: how many instances take in turn, and who
//! fills them.

use tilewright_kernel::algorithm::Source;

use super::buffer_layout::{Columns, SLOT_ALIGNMENT};
use super::{Plan, Stage, literal, roles};
use crate::diag::Diagnostics;
use crate::diag::codes::{AttachPoint, AttachProblem, BadFactor, FetchProblem, NotFetched, NotSupportedYet};
use crate::domain::{AxisId, AxisKind, Binding, Symbolic};
use crate::extent::Facts;
use crate::program::{Program, expressions};
use crate::schedule::vector;
use crate::schedule::vector::Vector;
use crate::source::{Span, ast};
use crate::{domain::Unit, source::ast::Place};

/// Most buffers of a ring.
pub const MOST_SLOTS: i128 = 64;

impl Stage {
    /// Whether a loop of it is one over terms, or stands in one. Blocks arrive once with all results of an instance:
    /// its loops over them count, too.
    pub fn is_inside_reduction(&self, leaf: AxisId) -> bool {
        if self.arrives() {
            return true;
        }
        let sequence = self.sequence();
        let mut around = sequence.into_iter().take_while(|l| *l != leaf).chain([leaf]);
        self.reduction.is_some() && around.any(|l| self.domain.axes[l].kind == AxisKind::Reduction)
    }

    /// Whether instances at a leaf follow each other, so that some can run ahead: in a loop, or in the tiles of a
    /// persistent launch, where another role makes them (`roles` looks whether one does).
    pub fn has_next(&self, leaf: AxisId) -> bool {
        self.is_rolled(leaf) || self.is_of_tiles(leaf) && self.program.is_persistent()
    }

    /// Whether they would in a persistent launch, and do not in this one.
    pub fn would_follow(&self, leaf: AxisId) -> bool {
        self.is_of_tiles(leaf) && !self.program.is_persistent()
    }

    /// Whether a role can be ahead of others by tiles.
    fn is_of_tiles(&self, leaf: AxisId) -> bool {
        self.domain.axes[leaf].binding.is_of_blocks() && roles::role_name(&self.program, Some(0)).is_some()
    }

    /// Whether the iterations of a leaf follow each other in the program, too: it is a loop there.
    pub fn is_rolled(&self, leaf: AxisId) -> bool {
        let axis = &self.domain.axes[leaf];
        // Data loops inside a reduction are written out: their accumulators are registers. So are those of a stage in
        // registers.
        let in_registers = self.place == Place::Registers || self.is_inside_reduction(leaf);
        axis.binding == Binding::Serial && !(axis.kind == AxisKind::Data && in_registers)
    }
}

/// Whether `via` says that threads fetch what a stage holds; none after an error.
pub(super) fn fetches(
    program: &Program,
    (name, copy): (&str, Option<usize>),
    serves: &[Source],
    clauses: &ast::Clauses,
    diags: &mut Diagnostics,
) -> Option<bool> {
    let Some(via) = clauses.via else { return Some(false) };
    if via.value != ast::Engine::CpAsync {
        diags.report(NotSupportedYet {
            construct: format!("via {}", via.value),
            span: via.span,
            instead: Some("copies of inputs can be made `via tma`".to_owned()),
        });
        return None;
    }
    let source = copy.map(|copy| program.stages[copy].ast.source.text.clone());
    let written = |p: &u16| expressions::tensor(program, *p).is_some_and(|tensor| tensor.role.is_written());
    let problem = match (serves, source) {
        _ if clauses.place.is_some_and(|place| place.value != Place::Shared) => FetchProblem::Place,
        (_, None) => FetchProblem::Computed,
        ([Source::Parameter(p)], Some(tensor)) if written(p) => FetchProblem::Written(tensor),
        ([Source::Parameter(_)], Some(_)) => return Some(true),
        (_, Some(tensor)) if program.parameters.iter().any(|p| *p.name == *tensor) => FetchProblem::Written(tensor),
        (_, Some(tensor)) => FetchProblem::Intermediate(tensor),
    };
    diags.report(NotFetched { stage: name.to_owned(), problem, span: via.span });
    None
}

/// How many buffers the instances in the loop `leaf` of `host` take in turn; none after an error.
pub(super) fn ring(
    program: &Program,
    facts: &Facts,
    (host, leaf): (&Stage, AxisId),
    (name, place): (&str, Place),
    clause: Option<(&ast::Expr, Span)>,
    diags: &mut Diagnostics,
) -> Option<u32> {
    let Some((value, span)) = clause else { return Some(1) };
    if place == Place::Registers {
        let instead = Some("put it `in shared`".to_owned());
        diags.report(NotSupportedYet { construct: "ring of a stage in registers".to_owned(), span, instead });
        return None;
    }
    let slots = literal(program, facts, value);
    let known = slots.filter(|n| (1..=MOST_SLOTS).contains(n)).and_then(|n| u32::try_from(n).ok());
    let Some(ring) = known else {
        let (what, most) = ("the number of buffers of a ring", MOST_SLOTS);
        diags.report(BadFactor { what, value: slots, least: 1, most, span });
        return None;
    };
    if ring > 1 && !host.has_next(leaf) {
        diags.report(nothing_ahead(name, host, leaf, span));
        return None;
    }
    Some(ring)
}

/// That a ring at a leaf of `host` has nothing to run ahead of.
pub(super) fn nothing_ahead(name: &str, host: &Stage, leaf: AxisId, span: Span) -> AttachPoint {
    let rolled = host.sequence().into_iter().filter(|leaf| host.is_rolled(*leaf));
    let possible = rolled.map(|leaf| format!("{}.{}", host.name, host.domain.axes[leaf].name)).collect();
    let (problem, persistent) = (AttachProblem::RingWithoutLoop, host.would_follow(leaf));
    AttachPoint { copy: name.to_owned(), problem, possible, persistent, span }
}

/// Lays out the instances of threads: what a stage writes as a vector stays together.
pub(super) fn columns(plan: &mut Plan) {
    for stage in plan.stages.iter_mut().filter(|s| s.has_buffers() && s.owner == Unit::Thread) {
        let algorithm = &stage.program.algorithm;
        let components = &algorithm.components[algorithm.equations[stage.equation].components.range()];
        let bytes = components.iter().map(|c| algorithm.types[c.value as usize].bytes());
        let vector = Vector::of(stage, &stage.facts).filter(|v| v.is_data);
        let symbolic = Symbolic::new(&stage.domain, &stage.facts);
        let together = |bytes: u32| {
            let lanes = vector.as_ref().map_or(1, |v| vector::written(stage, &stage.layout, v, &symbolic, bytes));
            i128::from(lanes).min(SLOT_ALIGNMENT / i128::from(bytes))
        };
        let chunk = bytes.map(together).min().unwrap_or(1).max(1);
        stage.layout.columns = Some(Columns { threads: stage.distribution.block.into(), chunk });
    }
}
