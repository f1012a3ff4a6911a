//! From the tokens of `schedule!` to checked PTX. A pure function of its input: no files, no environment, no clocks, no
//! GPU.
//!
//! [`compile`] is the whole road on one screen. Each room takes what the rooms before it found out, reports what it
//! refuses, and hands on facts; errors flush at the end of a room, so that one mistake gives one message.
//!
//! **Not for use on its own.** This crate is published because `tilewright` is made of it. Any version may change
//! anything here, and all crates of one version belong together.
#![forbid(unsafe_code)]

pub mod allow;
mod assemble;
pub mod banks;
pub mod bounds;
pub mod diag;
pub mod explain;
pub mod holes;
#[cfg(test)]
#[path = "../../ir/src/emit/tests/launched.rs"]
mod launched;
pub mod lower;
mod made;
pub mod memory;
pub mod mma;
pub mod online;
pub mod plan;
pub mod program;
pub mod schedule;
pub mod source;
pub mod syntax;
pub mod tma;
pub mod trial;
pub mod tune;

pub use tilewright_ir::{emit, kernel_ir, proof};
pub use tilewright_kernel::target;
pub use tilewright_theory::{collectives, domain, extent, layout, region, side_by_side, work};

use tilewright_kernel::info::KernelInfo;
use tilewright_kernel::size::Constraint;

use crate::diag::codes::{self, Internal};
use crate::diag::{Code, Diagnostics};
use crate::domain::Symbolic;
use crate::emit::Emission;
use crate::extent::Facts;
use crate::made::Made;
use crate::memory::check::Check;
use crate::plan::Analysed;
use crate::program::Program;
use crate::schedule::accesses;
use crate::schedule::vector::Vector;
use crate::source::{TokenBuffer, ast};
use crate::trial::{Depth, Trial};
use crate::tune::Tuned;

/// What became of one `schedule! { … }`.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Every kernel that could be parsed, in source order.
    pub kernels: Vec<Compiled>,
    /// Errors and warnings.
    pub diagnostics: Diagnostics,
}

/// A kernel, and what it was compiled to.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// What was written.
    pub ast: ast::Kernel,
    /// The constants of its schedule that have candidates, and which were taken; none without `tune`, or after an error
    /// in it.
    pub tuned: Option<Tuned>,
    /// The finished kernel; none after an error in it.
    pub info: Option<KernelInfo>,
    /// What was found out about each stage, for tools; empty after an error.
    pub stages: Vec<Analysed>,
    /// Its entry points as loop programs, in the order of [`KernelInfo::entries`]; empty after an error.
    pub entries: Vec<lower::Entry>,
}

/// A finished kernel, the stages it was made of, and its entry points.
type Finished = (KernelInfo, Vec<Analysed>, Vec<lower::Entry>);

impl tune::Variant for Finished {
    fn info(&mut self) -> &mut KernelInfo {
        &mut self.0
    }
}

impl Compiled {
    fn new(ast: ast::Kernel, tuned: Option<Tuned>, finished: Option<Finished>) -> Self {
        let (info, stages, entries) = match finished {
            Some((info, stages, entries)) => (Some(info), stages, entries),
            None => (None, Vec::new(), Vec::new()),
        };
        Self { ast, tuned, info, stages, entries }
    }
}

impl Outcome {
    /// Takes a finished kernel back of which the separate checker says, after all, that it is wrong.
    pub fn take_back(&mut self, kernel: usize, wrong: &trial::Wrong) {
        let Some(kernel) = self.kernels.get_mut(kernel) else { return };
        (kernel.info, kernel.stages, kernel.entries) = (None, Vec::new(), Vec::new());
        let span = kernel.ast.name.span;
        self.diagnostics.report(Internal { room: "proof", what: wrong.to_string(), span });
    }
}

/// Compiles everything in one invocation, and checks it as far as a compilation ever does.
pub fn compile(tokens: &TokenBuffer) -> Outcome {
    compile_to(tokens, Depth::Full)
}

/// Compiles everything in one invocation; `depth` decides how much is done to find mistakes of the compiler itself.
pub fn compile_to(tokens: &TokenBuffer, depth: Depth) -> Outcome {
    let (parsed, mut diagnostics) = syntax::parse(tokens);
    let clean = !diagnostics.has_errors();
    let mut kernels = Vec::new();
    for ast in parsed.kernels {
        // After a syntax error the rest of the kernel may be missing; what is missing is not reported again.
        let mut found = Diagnostics::new();
        let compile = |ast: &ast::Kernel, found: &mut Diagnostics| judged(ast, tokens, depth, found);
        let (compiled, tuned) = match clean {
            true => tune::chosen(&ast, tokens, &compile, &mut found),
            false => (None, None),
        };
        allow::apply(&ast, compiled.is_some(), &mut found);
        diagnostics.append(found);
        kernels.push(Compiled::new(ast, tuned, compiled));
    }
    let written: Vec<&ast::Kernel> = kernels.iter().map(|k| &k.ast).collect();
    diagnostics.resolve(&written, tokens);
    Outcome { kernels, diagnostics }
}

/// One kernel with these values of its constants; for tools, which compare them. Errors and warnings beside it: those
/// that the kernel's attributes allow are left out.
#[must_use]
pub fn compile_with(ast: &ast::Kernel, tuned: &Tuned, values: &[u64], tokens: &TokenBuffer) -> (Compiled, Diagnostics) {
    let compile = |ast: &ast::Kernel, found: &mut Diagnostics| judged(ast, tokens, Depth::Full, found);
    let (finished, mut found) = tune::settled(ast, tuned, values, tokens, &compile);
    allow::apply(ast, finished.is_some(), &mut found);
    let tuned = Tuned { chosen: finished.is_some().then(|| values.to_vec()), ..tuned.clone() };
    (Compiled::new(ast.clone(), Some(tuned), finished), found)
}

/// One kernel, and what is worth saying of it.
fn judged(ast: &ast::Kernel, tokens: &TokenBuffer, depth: Depth, diags: &mut Diagnostics) -> Option<Finished> {
    let mut found = Diagnostics::new();
    let finished = kernel(ast, tokens, depth, &mut found);
    found.said_once(ast);
    if found.has_errors() {
        // What is wrong comes first.
        for code in Code::OF_SPEED {
            found.silence(code);
        }
    }
    diags.append(found);
    finished
}

/// One kernel, room by room.
fn kernel(ast: &ast::Kernel, tokens: &TokenBuffer, depth: Depth, diags: &mut Diagnostics) -> Option<Finished> {
    let written = program::build(ast, diags)?;
    let facts = facts(&written, diags)?;
    // What is read and how it is scheduled are judged apart: both may be wrong in one kernel.
    let places = bounds_proved(&written, &facts, diags);
    online::check(&written, diags)?;
    let program = online::rewritten(program::scheduled(&written), &facts, diags)?;
    let kernel = Kernel { written: &written, program: &program, tokens, depth };
    let Some(places) = places else {
        kernel.scheduled(&facts, diags);
        return None;
    };
    let zeros = bounds::zeros(&written, &facts, &places);
    let required = |dims: &[u16]| -> Vec<Constraint> {
        let mut dims: Vec<u16> = zeros.refused.iter().chain(dims).copied().collect();
        dims.sort_unstable();
        let sizes = dims.into_iter().map(|d| bounds::at_least_one(&written, d));
        sizes.chain(zeros.places.iter().cloned()).collect()
    };
    // A schedule that is right for sizes of 0 as well is taken, if the checker can tell; else launches must not have
    // them.
    if !zeros.admitted.is_empty()
        && let Some(facts) = bounds::admitting(&written, &zeros.admitted)
    {
        let mut found = Diagnostics::new();
        let finished = kernel.finished(&facts, required(&[]), &mut found);
        let is_defect = found.found().iter().any(|f| f.code == Code::TW9001);
        if is_defect || finished.as_ref().is_some_and(|(_, is_decided)| *is_decided) {
            diags.append(found);
            return finished.map(|(finished, _)| finished);
        }
    }
    kernel.finished(&facts, required(&zeros.admitted), diags).map(|(finished, _)| finished)
}

/// One kernel that is right for sizes of at least 1, and says nothing of others: what the nets must notice at 0.
#[cfg(test)]
pub(crate) fn never_empty(ast: &ast::Kernel, tokens: &TokenBuffer) -> Option<Finished> {
    let mut diags = Diagnostics::new();
    let written = program::build(ast, &mut diags)?;
    let facts = facts(&written, &mut diags)?;
    let program = online::rewritten(program::scheduled(&written), &facts, &mut diags)?;
    Kernel { written: &written, program: &program, tokens, depth: Depth::Full }
        .finished(&facts, Vec::new(), &mut diags)
        .map(|found| found.0)
}

/// A kernel on its way through the rooms, as far as what is known of sizes does not matter.
struct Kernel<'a> {
    /// As it was written, and with the equations that its schedule adds.
    written: &'a Program,
    program: &'a Program,
    tokens: &'a TokenBuffer,
    depth: Depth,
}

impl Kernel<'_> {
    /// The stages; none after an error.
    fn scheduled(&self, facts: &Facts, diags: &mut Diagnostics) -> Option<Analyses> {
        let plan = schedule::build(self.program, facts, diags)?;
        let analysed = || {
            let mut found = Diagnostics::new();
            (analyse(self.program, facts, plan.clone(), &mut found), found)
        };
        let (analysed, found) = schedule::check_reads(&plan, analysed, diags)?;
        diags.append(found);
        analysed
    }

    /// The finished kernel for sizes that facts admit, with what launches are required to have beside them; and whether
    /// its trial decided everything where a size is 0.
    fn finished(&self, facts: &Facts, required: Vec<Constraint>, diags: &mut Diagnostics) -> Option<(Finished, bool)> {
        let Self { written, program, tokens, depth } = *self;
        let Analyses { mut stages, threads, roles } = self.scheduled(facts, diags)?;
        let entries = match lower::lower(program, facts, &stages, (threads, &roles), depth == Depth::Full) {
            Ok(entries) => entries,
            Err(defect) => return bug(diags, program, "lower", defect.to_string()),
        };
        if entries.is_empty() {
            let instead = Some("indices are at most 2^63 in size, holes of the schedule included".to_owned());
            let construct = "index arithmetic beyond 64 bits".to_owned();
            diags.report(codes::NotSupportedYet { construct, span: program.name.span, instead });
            return None;
        }
        fits(program, &stages, &entries, diags)?;
        passes(program, &entries, diags)?;
        let Some(mut info) = assemble::assemble(written, facts, &stages, &entries, threads, tokens) else {
            return bug(diags, program, "assemble", "a size could not be written down".to_owned());
        };
        info.requirements = required.into();
        let emission = Emission::new(entries.iter().map(|e| &e.kernel).collect(), &program.name.text);
        let trial = Trial::new(&info, facts, &stages, depth);
        let from = made::Input { program, facts, stages: &stages, has_roles: !roles.is_empty(), entries: &entries };
        let made = Made::of(from, &info, &emission, &trial);
        holds(program, &stages, made.held.iter().zip(&entries), diags)?;
        let module = made.entry_points.and_then(|entry_points| match depth {
            Depth::Bounded => Ok(emission.finish_unverified(entry_points)),
            Depth::Full => emission.finish(entry_points),
        });
        let module = match module {
            Ok(module) => module,
            Err(error) => {
                let scheduled: Vec<&schedule::Stage> = stages.iter().map(|s| &s.stage).collect();
                if let Some(found) = schedule::uneven(&scheduled).filter(|_| error.is_of_meeting()) {
                    diags.report(found);
                    return None;
                }
                return bug(diags, program, "emit", error.to_string());
            }
        };
        let is_decided = match made.tried {
            Ok(is_decided) => is_decided,
            Err(wrong) => return bug(diags, program, "proof", wrong.to_string()),
        };
        let (banks, warnings) = made.banks;
        diags.append(warnings);
        for (stage, banks) in stages.iter_mut().zip(banks) {
            stage.banks = banks;
        }
        let Some(ptx) = assemble::ptx(&module) else {
            return bug(diags, program, "assemble", "no driver takes the PTX".to_owned());
        };
        info.ptx = ptx;
        let first = (entries.first().map(|e| &e.kernel), made.held.into_iter().next().unwrap_or_default());
        let (text, explanation) = made::printed(module, &entries, || explain::text(written, &stages, first, &info));
        (info.ptx.text, info.explanation) = (text.into(), explanation.into());
        Some(((info, stages, entries), is_decided))
    }
}

/// Whether a launch can pass what the entry points take; none after a report that it cannot. Tensor maps are what makes
/// parameters large.
fn passes(program: &Program, entries: &[lower::Entry], diags: &mut Diagnostics) -> Option<()> {
    let bytes = entries.iter().map(|entry| lower::parameter_bytes(&entry.kernel.signature.arguments)).max()?;
    if bytes <= target::PARAMETER_BYTES {
        return Some(());
    }
    let limit = target::PARAMETER_BYTES as usize;
    let span = program.stages.last().map_or(program.name.span, |stage| stage.ast.head);
    diags.report(codes::TooMany { what: "bytes of parameters, of which each tensor map takes 128", limit, span });
    None
}

/// Whether a block has the shared memory that the entry points need; none after a report that it does not.
fn fits(program: &Program, stages: &[Analysed], entries: &[lower::Entry], diags: &mut Diagnostics) -> Option<()> {
    let bytes = |entry: &&lower::Entry| entry.kernel.shared_map().bytes;
    let Some(largest) = entries.iter().max_by_key(bytes).filter(|e| bytes(e) > target::SHARED_BYTES) else {
        return Some(());
    };
    let kernel = &largest.kernel;
    // Buffers that lie in the memory of others take none.
    let placed = kernel.buffers.iter().zip(&kernel.alias_of).enumerate().filter(|(n, (_, b))| b.index() == *n);
    let buffers: Vec<&kernel_ir::Buffer> = placed.map(|(_, (buffer, _))| buffer).collect();
    let name = buffers.iter().max_by_key(|b| b.bytes()).map(|b| b.name.as_str());
    let stage = stages.iter().find(|s| Some(s.stage.name.as_str()) == name);
    let copy = program.stages.iter().find(|s| Some(s.ast.name.text.as_str()) == name);
    let sizes = |name: &str| -> Vec<i128> {
        let staged = stages.iter().flat_map(|s| &s.staged).find(|staged| staged.name == name);
        let own = stages.iter().find(|s| s.stage.name == name);
        let most = |s: &Analysed| s.stage.coordinates.iter().map(|along| along.most.as_constant()).collect();
        let of_copy = staged.map(|staged| staged.axes.iter().map(|axis| axis.region.extent).collect());
        of_copy.or_else(|| own.and_then(most)).unwrap_or_default()
    };
    let head = stage.map(|s| s.stage.span).or(copy.map(|c| c.ast.head));
    diags.report(codes::SharedBudget {
        buffers: buffers.iter().map(|b| (b.name.clone(), b.bytes(), b.slots, sizes(&b.name))).collect(),
        bytes: bytes(&largest),
        limit: target::SHARED_BYTES,
        global: stage.is_some_and(|s| !s.stage.fetches),
        span: head.unwrap_or(program.name.span),
    });
    None
}

/// Whether a thread has the registers for what it must hold at one time, in all entry points; none after a report that
/// it does not.
fn holds<'k>(
    program: &Program,
    stages: &[Analysed],
    all: impl Iterator<Item = (&'k Vec<kernel_ir::HeldIn<'k>>, &'k lower::Entry)>,
    diags: &mut Diagnostics,
) -> Option<()> {
    let found = all.flat_map(|(of_entry, e)| of_entry.iter().map(move |held| (held, e)));
    let above = found.filter(|(found, _)| found.held.words > found.limit);
    let Some((found, entry)) = above.max_by_key(|(found, _)| found.held.words) else { return Some(()) };
    let mut parts = found.held.parts.clone();
    parts.sort_by_key(|part| std::cmp::Reverse(part.1));
    let largest = stages.iter().find(|s| parts.first().is_some_and(|part| part.0 == s.stage.name));
    diags.report(codes::RegisterPressure {
        words: found.held.words,
        limit: found.limit,
        threads: (found.limit < target::REGISTER_LIMIT).then_some(entry.kernel.signature.threads),
        role: found.role.map(|role| role.name.clone()),
        parts,
        span: largest.map_or(program.name.span, |s| s.stage.span),
    });
    None
}

fn bug<T>(diags: &mut Diagnostics, program: &Program, room: &'static str, what: String) -> Option<T> {
    diags.report(Internal { room, what, span: program.name.span });
    None
}

/// The facts of the `where` clause, unless they contradict each other.
fn facts(program: &Program, diags: &mut Diagnostics) -> Option<Facts> {
    let constraints: Vec<Constraint> = program.facts.iter().map(|f| f.constraint.clone()).collect();
    match Facts::new(&program.dims, &constraints) {
        Ok(facts) => Some(facts),
        Err(contradiction) => {
            let fact = &program.facts[contradiction.fact];
            let alone = Facts::new(&program.dims, std::slice::from_ref(&fact.constraint)).is_err();
            let dims = fact.constraint.dims();
            let related =
                |f: &&program::Fact| f.span != fact.span && f.constraint.dims().iter().any(|d| dims.contains(d));
            let earlier =
                if alone { Vec::new() } else { program.facts.iter().filter(related).map(|f| f.span).collect() };
            diags.report(codes::Contradiction { span: fact.span, earlier, alone });
            None
        }
    }
}

/// Every read in bounds, every divisor non-zero, and what launches must check for that; none after an error.
fn bounds_proved(program: &Program, facts: &Facts, diags: &mut Diagnostics) -> Option<Vec<Constraint>> {
    let mut found = Diagnostics::new();
    let places = bounds::check(program, facts, &mut found);
    let clean = !found.has_errors();
    diags.append(found);
    clean.then_some(places)
}

/// The stages, analysed.
struct Analyses {
    stages: Vec<Analysed>,
    /// Threads of a block.
    threads: u32,
    /// Roles of a block.
    roles: Vec<schedule::Role>,
}

/// Holes, predicates, accesses and vectors of every stage.
fn analyse(program: &Program, facts: &Facts, plan: schedule::Plan, diags: &mut Diagnostics) -> Option<Analyses> {
    let mut analysed: Vec<Analysed> = Vec::new();
    let mut found = Diagnostics::new();
    let accesses: Vec<_> = (plan.stages.iter().enumerate())
        .map(|(at, stage)| {
            let symbolic = Symbolic::new(&stage.domain, &stage.facts);
            let accesses = plan.accesses(at, &symbolic);
            (symbolic, accesses)
        })
        .collect();
    for (stage, (symbolic, accesses)) in plan.stages.into_iter().zip(accesses) {
        let holes = holes::analyse(&stage.domain, &stage.facts);
        schedule::check_loops(&stage.program, &stage.facts, &stage, &mut found);
        let Some(accesses::Accesses { tensors: accesses, stages: reads }) = accesses else {
            let (limit, span) = (program::INLINE_LIMIT, program.equation_spans[stage.equation]);
            found.report(codes::InlinedTooFar { stage: stage.name.clone(), limit, span });
            continue;
        };
        let vector = Vector::of(&stage, &stage.facts);
        if let Some(vector) = &vector {
            for limit in &stage.limits {
                let of_terms = schedule::is_of_terms(limit, &stage.domain);
                let limit = accesses::of_roots(limit, &stage, &symbolic);
                if !vector.is_uniform(&limit, &symbolic, &stage.facts) {
                    found.report(codes::CutVector {
                        stage: stage.name.clone(),
                        axis: stage.domain.axes[vector.axis].name.clone(),
                        lanes: vector.lanes,
                        span: vector.span,
                        of_terms,
                        head: stage.span,
                    });
                    break;
                }
            }
            Check { program: &stage.program, facts: &stage.facts, stage: &stage, symbolic: &symbolic, holes: &holes }
                .run(vector, &accesses, &mut found);
        }
        let apart = vector.as_ref().is_some_and(|v| memory::buffer::check_written(&stage, v, &symbolic, &mut found));
        if stage.fetches && !apart {
            memory::fetch::check(&stage, vector.as_ref(), &symbolic, &accesses, &mut found);
        }
        let (staged, waived, banks) = (Vec::new(), Vec::new(), Vec::new());
        let (product, fragment, stored) = (None, None, None);
        analysed.push(Analysed {
            stage,
            symbolic,
            holes,
            vector,
            accesses,
            banks,
            reads,
            staged,
            waived,
            product,
            fragment,
            multiplied: false,
            zero_along: Vec::new(),
            behind: None,
            stored,
            is_of_groups: false,
        });
    }
    if !found.has_errors() {
        memory::buffer::check_reads(&analysed, &mut found);
    }
    tma::check::stage_copies(program, facts, &plan.roles, &mut analysed, &mut found);
    if !found.has_errors() {
        mma::check(&plan.roles, &mut analysed, &mut found);
        for at in 0..analysed.len() {
            let clipped = tma::demand::clipped(&analysed, at);
            analysed[at].waived.extend(clipped);
        }
        mma::stores(&mut analysed);
    }
    let clean = !found.has_errors();
    diags.append(found);
    clean.then_some(Analyses { stages: analysed, threads: plan.threads, roles: plan.roles })
}
