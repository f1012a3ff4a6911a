//! Staged copies of a kernel: each is planned for the stage that reads it, or refused with what is wrong.

use super::loops::Reader;
use super::plan::{Around, Planned, Resolved, plan};
use super::{Level, copy_selection, demand, witness};
use crate::diag::Diagnostics;
use crate::diag::codes::{
    ArrivalProblem, AttachPoint, AttachProblem, FilledHole, IdleRole, NoZeroFill, NotSupportedYet, NotTheLast, Parties,
    SharedBudget, WrongRank,
};
use crate::domain::{AxisId, AxisKind, Binding, Unit};
use crate::extent::{Expr, Facts, Var};
use crate::kernel_ir::SharedMap;
use crate::plan::Analysed;
use crate::plan::roles::{ProducerConsumers, consumers, readers, under};
use crate::plan::staged::{Axis, Staged, Way};
use crate::program::{Program, Stage, expressions};
use crate::schedule::accesses::{Access, FromMemory};
use crate::schedule::{self, Attach, Role, after_arrival, cta_rank, place_of};
use crate::source::ast::Place;
use crate::source::{Span, ast};
use crate::target::SHARED_BYTES;

/// Whether blocks that share a reduction would all make a copy to a tensor: of a result of theirs, which one of them
/// writes to its shared memory, or further out than a stage after which only the last of them goes on. A loop goes on
/// with all of them, and what it does after an iteration.
fn goes_with_every_block(analysed: &[Analysed], at: usize, staged: &Staged) -> bool {
    let host = &analysed[at].stage;
    let loops = staged.attach.loops;
    let shared = analysed.iter().map(|a| &a.stage).filter(|s| s.arrives());
    let mut places = shared.filter_map(|s| s.attach.as_ref()).filter(|attach| attach.stage == at);
    host.across_blocks().next().is_some()
        || host.across_ctas()
        || places.any(|place| loops < place.loops || loops == place.loops && loops > 0)
}

/// What is wrong with a copy that the last block of a group alone comes to, and another role makes, or blocks of a
/// cluster do together.
fn is_made_together(analysed: &[Analysed], at: usize, staged: &Staged, span: Span) -> Option<NotTheLast> {
    let stages: Vec<&schedule::Stage> = analysed.iter().map(|a| &a.stage).collect();
    let shared = stages[after_arrival(&stages, at, staged.attach.loops)?];
    let by = match (staged.role == shared.role, &staged.multicast) {
        (false, _) => Parties::Roles,
        (true, Some(_)) => Parties::Blocks,
        (true, None) => return None,
    };
    let attach = shared.attach.as_ref()?;
    let (stage, place) = (shared.name.clone(), place_of(stages[attach.stage], attach));
    let problem = ArrivalProblem::Together { what: staged.name.clone(), is_copy: true, by };
    Some(NotTheLast { stage, place, problem, span })
}

/// Plans every staged copy and hands it to the stage that it stands in.
pub fn stage_copies(
    program: &Program,
    facts: &Facts,
    roles: &[Role],
    analysed: &mut [Analysed],
    diags: &mut Diagnostics,
) {
    // Those that threads make are stages of their own.
    let by_threads = |n: &usize| program.copies.iter().any(|copy| copy.stage == *n);
    let numbered = program.stages.iter().enumerate().filter(|(n, _)| !by_threads(n));
    let mut memory = Vec::new();
    for (_, copy) in numbered {
        let mut one = One { program, facts, copy, analysed, diags, memory: &mut memory };
        let Some((at, parameter)) = one.host(analysed) else { continue };
        let (program, facts) = (&analysed[at].stage.program, &analysed[at].stage.facts);
        let mut one = One { program, facts, copy, analysed, diags, memory: &mut memory };
        let Some((mut staged, gathered)) = one.plan(analysed, at, parameter) else { continue };
        let before = one.diags.found().len();
        staged.role = one.role(roles, analysed, at, &staged);
        if one.diags.found().len() > before {
            continue;
        }
        // Of tiles that follow each other, who makes a copy for itself takes one at a time.
        if let (Some(ring), true) = (&copy.ast.clauses.ring, staged.ring > 1 && staged.attach.loops == 0)
            && ProducerConsumers::of_copy(analysed, &staged).is_none_or(|between| between.consumers.is_empty())
        {
            one.attach(AttachProblem::RingWithoutLoop, Some(&analysed[at]), ring.span);
            continue;
        }
        if let Some(found) = is_made_together(analysed, at, &staged, copy.ast.head) {
            one.diags.report(found);
            continue;
        }
        if staged.way == Way::Store && goes_with_every_block(analysed, at, &staged) {
            let (construct, instead) = ("a staged copy to a result of several blocks", "let the threads store it");
            one.not_yet(construct, copy.ast.head, Some(instead));
            continue;
        }
        analysed[at].staged.push(staged);
        for ((reader, access), indices) in gathered {
            analysed[reader].accesses[access].indices = indices;
        }
    }
    for at in 0..analysed.len() {
        let (waived, redirected) = demand::waive(analysed, at);
        let own = &mut analysed[at];
        own.waived = waived;
        for staged in own.staged.iter_mut().filter(|copy| redirected.contains(&copy.name)) {
            staged.redirect |= staged.level(&own.stage.facts, &own.symbolic) == Level::Redirect;
        }
    }
    if diags.has_errors() {
        return;
    }
    for (n, role) in roles.iter().enumerate() {
        let runs = |a: &Analysed| a.stage.role == Some(n) || a.staged.iter().any(|copy| copy.role == Some(n));
        if !analysed.iter().any(runs) {
            diags.report(IdleRole { role: role.name.clone(), span: role.span });
        }
    }
    let copies: Vec<&Staged> = analysed.iter().flat_map(|a| &a.staged).collect();
    let bytes = |s: &Staged| u64::try_from(s.buffer_bytes()).unwrap_or(u64::MAX >> 8);
    let buffers = copies.iter().map(|s| (bytes(s), u64::from(s.swizzle.alignment())));
    let map = SharedMap::new(buffers, copies.iter().map(|s| u64::from(s.barriers())).sum());
    let size = |copy: &&Stage| copies.iter().find(|s| s.name == copy.ast.name.text).map(|s| bytes(s));
    if map.bytes > SHARED_BYTES
        && let Some(largest) = program.stages.iter().max_by_key(size)
    {
        let sizes = |s: &Staged| s.axes.iter().map(|axis| axis.region.extent).collect();
        let buffers = copies.iter().map(|s| (s.name.clone(), bytes(s), s.ring, sizes(s))).collect();
        let span = largest.ast.head;
        diags.report(SharedBudget { buffers, bytes: map.bytes, limit: SHARED_BYTES, global: false, span });
    }
}

/// The accesses of the last stage of a chain, in the block that runs an iteration of the first one: see
/// [`cta_rank::in_block`].
fn in_block(accesses: &[Access], chain: &[usize], analysed: &[Analysed]) -> Vec<Access> {
    let stage = |at: &usize| &analysed[*at].stage;
    let Some((host, inner)) = chain.split_first() else { return accesses.to_vec() };
    let digits: Vec<(Var, Expr)> = inner.iter().flat_map(|at| cta_rank::in_block(stage(host), stage(at))).collect();
    let digit = |v: Var| digits.iter().find(|(var, _)| *var == v).map(|(_, value)| value.clone());
    let mut accesses = accesses.to_vec();
    for access in &mut accesses {
        let ends = access.inner.iter_mut().flat_map(|inner| [&mut inner.lower, &mut inner.upper]);
        let gathered = access.gathered.as_deref_mut().into_iter();
        let of_memory =
            gathered.flat_map(|g| g.indices.iter_mut().chain(g.reads.iter_mut().flat_map(|r| &mut r.indices)));
        let all = access.indices.iter_mut().chain([&mut access.offset]).chain(ends).chain(of_memory);
        all.for_each(|e| *e = e.substitute(&digit));
    }
    accesses
}

/// One copy.
pub(super) struct One<'a> {
    pub(super) program: &'a Program,
    pub(super) facts: &'a Facts,
    pub(super) copy: &'a Stage,
    pub(super) analysed: &'a [Analysed],
    pub(super) diags: &'a mut Diagnostics,
    /// The integers of memory that copies depend on, by the numbers of their variables.
    pub(super) memory: &'a mut Vec<FromMemory>,
}

impl<'a> One<'a> {
    pub(super) fn show(&self, e: &Expr) -> String {
        e.show(&|v| u16::try_from(v).map_or("?".to_owned(), |d| self.program.dim_name(d).to_owned()))
    }

    pub(super) fn assignment(&self, dims: &[i64]) -> Vec<(String, i128)> {
        (0u16..).zip(dims).map(|(d, v)| (self.program.dim_name(d).to_owned(), i128::from(*v))).collect()
    }

    pub(super) fn not_yet(&mut self, construct: &str, span: Span, instead: Option<&str>) {
        let (construct, instead) = (construct.to_owned(), instead.map(str::to_owned));
        self.diags.report(NotSupportedYet { construct, span, instead });
    }

    /// The stage in whose loop the copy stands, as a position in `analysed`, and the tensor copied.
    fn host(&mut self, analysed: &[Analysed]) -> Option<(usize, u16)> {
        let ast = &self.copy.ast;
        let clauses = &ast.clauses;
        let before = self.diags.found().len();
        let threads = Some("without it, each thread reads the tensor from device memory");
        let is_tma = clauses.via.as_ref().is_some_and(|via| via.value == ast::Engine::Tma);
        // Of a copy that threads make, whose number of axes is why it has no equation.
        if let Some(expected) = self.program.rank_of_source(&ast.source.text).filter(|_| !is_tma)
            && expected != ast.axes.len()
        {
            let declared = self.program.parameters.iter().position(|p| p.name == ast.source.text);
            let declared = declared.and_then(|p| self.program.parameter_spans.get(p).copied());
            let (name, found) = (ast.source.text.clone(), ast.axes.len());
            self.diags.report(WrongRank { name, expected, found, declared, is_copy: true, span: ast.head });
            return None;
        }
        match clauses.place {
            Some(place) if place.value == Place::Shared => {}
            Some(place) => self.not_yet(&format!("stage in {}", place.value), place.span, Some("stage it `in shared`")),
            None => self.not_yet("stage without `in shared`", ast.head, Some("stage it `in shared`")),
        }
        match clauses.via {
            Some(via) if via.value == ast::Engine::Tma => {}
            Some(via) => self.not_yet(&format!("stage via {}", via.value), via.span, Some("copy it `via tma`")),
            None => self.not_yet("stage by ordinary loads", ast.head, Some("copy it `via tma`")),
        }
        if let Some(per) = clauses.per.as_ref().filter(|per| per.text != "cta") {
            self.not_yet("per", per.span, Some("one instance for each block: `per cta`"));
        }
        let source = self.program.parameters.iter().position(|p| p.name == ast.source.text);
        let parameter = source.and_then(|p| u16::try_from(p).ok());
        let tensor = parameter.and_then(|p| expressions::tensor(self.program, p));
        // Names that nothing defines have been reported.
        if tensor.is_none() {
            self.not_yet("stage of an intermediate", ast.source.span, threads);
        }
        if self.diags.found().len() > before {
            return None;
        }
        let Some(at) = &clauses.at else {
            self.attach(AttachProblem::Missing, self.reader(parameter?), ast.head);
            return None;
        };
        let Some(host) = analysed.iter().position(|a| a.stage.name == at.stage.text) else {
            let problem = AttachProblem::NoStage(at.stage.text.clone());
            self.attach(problem, self.reader(parameter?), at.stage.span);
            return None;
        };
        Some((host, parameter?))
    }

    /// The role that makes a copy: the one that is named, else that of its consumers, or of the stage that writes what
    /// is copied.
    fn role(&mut self, roles: &[Role], analysed: &[Analysed], at: usize, staged: &Staged) -> Option<usize> {
        let writer = analysed[at].stage.role;
        let consumers: Vec<usize> = match staged.way {
            Way::Store => Vec::new(),
            Way::Load => consumers(analysed, staged).into_iter().filter_map(|n| analysed[n].stage.role).collect(),
        };
        let otherwise = writer.filter(|_| consumers.is_empty());
        let ast::StagedCopy { clauses, head, .. } = &self.copy.ast;
        schedule::role_of((&staged.name, *head), Some(clauses), roles, (otherwise, consumers), self.diags)
    }

    /// The first stage that reads or writes a tensor.
    fn reader(&self, parameter: u16) -> Option<&'a Analysed> {
        self.analysed.iter().find(|a| a.accesses.iter().any(|access| access.parameter == parameter))
    }

    pub(super) fn attach(&mut self, problem: AttachProblem, reader: Option<&Analysed>, span: Span) {
        let source = self.program.parameters.iter().position(|p| p.name == self.copy.ast.source.text);
        let accesses = |n: &usize| self.analysed[*n].accesses.iter().any(|a| Some(usize::from(a.parameter)) == source);
        let possible = reader.map_or_else(Vec::new, |a| {
            let domain = &a.stage.domain;
            let host = self.analysed.iter().position(|other| other.stage.name == a.stage.name);
            // Who reads the tensor stands inside.
            let is_around = |leaf: AxisId| {
                let place = host.map(|host| Attach::new(host, &a.stage, leaf, Unit::Cta));
                place.is_some_and(|place| under(self.analysed, &place).iter().any(|(n, _)| accesses(n)))
            };
            let terms = domain.leaves.iter().position(|l| domain.axes[*l].kind == AxisKind::Reduction);
            let fits = |(at, leaf): &(usize, &usize)| {
                let outside = terms.is_none_or(|terms| *at < terms);
                let axis = &domain.axes[**leaf];
                match (&problem, axis.binding) {
                    (AttachProblem::RingWithoutLoop, Binding::Serial) => outside || axis.kind == AxisKind::Reduction,
                    (AttachProblem::RingWithoutLoop, _) => false,
                    (AttachProblem::InsideReduction(_), Binding::Serial | Binding::Unroll(_)) => outside,
                    (_, binding) => binding.is_of_blocks() || matches!(binding, Binding::Serial | Binding::Unroll(_)),
                }
            };
            let loops = domain.leaves.iter().enumerate().filter(fits).filter(|(_, leaf)| is_around(**leaf));
            loops.map(|(_, leaf)| format!("{}.{}", a.stage.name, domain.axes[*leaf].name)).collect()
        });
        let at = self.copy.ast.clauses.at.as_ref();
        let leaf = reader.zip(at).and_then(|(a, at)| Some((a, a.stage.domain.leaf(&at.axis.text)?)));
        let persistent =
            problem == AttachProblem::RingWithoutLoop && leaf.is_some_and(|(a, leaf)| a.stage.would_follow(leaf));
        let copy = self.copy.ast.name.text.clone();
        self.diags.report(AttachPoint { copy, problem, possible, persistent, span });
    }

    /// The copy, and indices of accesses over what memory holds, by stage and number.
    fn plan(&mut self, analysed: &[Analysed], at: usize, parameter: u16) -> Option<(Staged, Resolved)> {
        let tensor = expressions::tensor(self.program, parameter)?;
        let ast = &self.copy.ast;
        let host = &analysed[at];
        let other = host.staged.iter().find(|s| s.parameter == parameter);
        if other.is_some_and(|other| other.way == Way::Store) {
            let instead = Some("one copy for each output");
            self.not_yet("a second copy to a tensor", ast.head, instead);
            return None;
        }
        let mut readers = readers(analysed, at, self.copy);
        if tensor.role.is_written() {
            readers.retain(|(reader, _)| *reader == at);
        }
        let of = |n: &usize| (&analysed[*n].stage, &analysed[*n].symbolic);
        let accesses: Vec<Vec<Access>> =
            (readers.iter()).map(|(n, chain)| in_block(&analysed[*n].accesses, chain, analysed)).collect();
        let stages: Vec<usize> = readers.iter().map(|(reader, _)| *reader).collect();
        let readers: Vec<Reader<'_>> = (readers.iter().zip(&accesses))
            .map(|((_, chain), accesses)| Reader { chain: chain.iter().map(of).collect(), accesses })
            .collect();
        let serves = copy_selection::served(self.program, self.copy, &readers, parameter, self.diags).ok()?;
        let along = self.along(analysed, at).ok()?;
        if let Some(along) = along.as_ref().filter(|_| tensor.role.is_written()) {
            self.no_multicast_store(along.span);
            return None;
        }
        let Analysed { stage, symbolic, holes, .. } = host;
        let found = plan(
            Around { stage, at, symbolic, holes, along: along.as_ref() },
            &readers,
            (parameter, tensor),
            (self.copy, serves),
            self.memory,
        );
        let (mut staged, mut gathered) = match found {
            Ok(Planned { staged, gathered }) => (staged, gathered),
            Err(refused) => {
                self.refuse(refused, host, parameter);
                return None;
            }
        };
        let fill = ast.ops.iter().find_map(|op| match &op.kind {
            ast::OpKind::Fill { model } => Some((model.value, op.span)),
            _ => None,
        });
        if let (Some((_, span)), Way::Store) = (fill, staged.way) {
            self.not_yet("`fill` of a copy to a tensor", span, Some("remove it: what lies outside is not written"));
            return None;
        }
        staged.any = matches!(fill, Some((ast::FillModel::Any, _)));
        if let Some((ast::FillModel::Zero, span)) = fill {
            match staged.level(self.facts, &host.symbolic) {
                Level::Free => {}
                Level::Redirect => staged.redirect = true,
                Level::Impossible => {
                    self.no_zero_fill(&staged, host, span);
                    return None;
                }
            }
        }
        gathered.iter_mut().for_each(|((reader, _), _)| *reader = stages[*reader]);
        Some((staged, gathered))
    }

    /// The smallest case in which a copy holds elements that are not the instance's beside those that are.
    pub(super) fn filled_hole(&self, staged: &Staged, reader: &Analysed) -> Option<FilledHole> {
        let found = witness::filled_hole(staged, self.facts, &reader.symbolic)?;
        let along = &staged.axes[found.axis];
        Some(FilledHole {
            dims: self.assignment(&found.dims),
            axis: along.name.clone(),
            start: found.start,
            phase: found.phase,
            slot: found.slot,
            position: found.start + found.phase + found.slot * along.boxed.element_stride,
            extent: found.ends.0,
            end: found.ends.1,
        })
    }

    fn no_zero_fill(&mut self, staged: &Staged, reader: &Analysed, span: Span) {
        let found = self.filled_hole(staged, reader);
        let strided = |a: &&Axis| a.boxed.box_size % a.boxed.element_stride != 0;
        let axis = match &found {
            Some(found) => staged.axes.iter().find(|a| a.name == found.axis).filter(strided),
            None => staged.axes.iter().find(strided),
        };
        let cause = found.as_ref().and_then(|f| staged.axes.iter().find(|a| a.name == f.axis)).or(axis);
        let cause = cause.map(|a| a.boxed.span);
        let strided = axis.map(|a| (a.name.clone(), a.boxed.element_stride, a.boxed.box_size));
        let copy = staged.name.clone();
        self.diags.report(NoZeroFill { copy, strided, witness: found, span, cause: cause.unwrap_or(span) });
    }
}
