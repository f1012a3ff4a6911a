//! Roles: ranges of the warps of a block that run different stages at one time.
//!
//! Every role runs the loops of the kernel in one order, and of what stands in them the stages that are its own. What a
//! stage of one role holds and another role reads lies in shared memory: the two hand it over slot by slot (`lower`,
//! `role_pipeline`). A stage without `by` runs in the only role, or in that of its consumers.

use super::{Plan, Stage, attach, taken};
use crate::collectives::{self, LaunchFault, LaunchRequest, RoleRequest};
use crate::diag::Diagnostics;
use crate::diag::codes::{
    BadFactor, DuplicateName, NoHandOver, NoRoles, NotSupportedYet, RoleRegisters, RoleWarps, UnknownName, UnsaidRole,
    WarpsRemedy,
};
use crate::extent::Facts;
use crate::program::Program;
use crate::source::{Span, ast};
use crate::target::{self, WARP};
use crate::{
    domain::{Unit, WARPGROUP},
    source::ast::Place,
};
use tilewright_kernel::algorithm::Source;

/// A role.
#[derive(Clone, Debug)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// Its first warp.
    pub first: u32,
    /// The warps that run a tile: all of it, or one of its units where these take tiles in turn.
    pub warps: u32,
    /// How many units take tiles in turn; 1 if all of it takes each.
    pub turns: u32,
    /// Registers that each of its threads has; as many as at the launch if not given.
    pub registers: Option<u32>,
    /// What `launch` says of it.
    pub span: Span,
}

impl Role {
    /// The threads that run a tile.
    pub const fn threads(&self) -> u32 {
        self.warps * WARP
    }

    /// All of its threads.
    pub const fn all_threads(&self) -> u32 {
        self.turns * self.threads()
    }

    /// The numbers of the warps whose turn it is.
    pub const fn range(&self, turn: u32) -> std::ops::Range<u32> {
        let first = self.first + turn * self.warps;
        first..first + self.warps
    }
}

/// What `launch` says of roles, with its item.
fn listed(program: &Program) -> Option<(&[ast::Role], Span)> {
    program.launch.iter().flat_map(|l| &l.items).find_map(|item| match &item.kind {
        ast::LaunchItemKind::Roles(roles) => Some((&roles[..], item.span)),
        _ => None,
    })
}

/// The name of a role, from what `launch` says.
pub fn role_name(program: &Program, role: Option<usize>) -> Option<&str> {
    Some(&listed(program)?.0.get(role?)?.name.text)
}

/// Most warps of a block.
const MOST_WARPS: i128 = super::BLOCK_LIMIT / WARP as i128;

/// The roles that `launch` asks for, in the order of their warps; `threads` is its item that says how many threads a
/// block has.
pub(super) fn roles(
    program: &Program,
    facts: &Facts,
    threads: Option<(i128, Span)>,
    diags: &mut Diagnostics,
) -> Vec<Role> {
    let Some((asked, span)) = listed(program) else { return Vec::new() };
    let before = diags.found().len();
    if asked.is_empty() {
        diags.report(RoleWarps { role: None, problem: "there are none".to_owned(), remedy: WarpsRemedy::Warps, span });
        return Vec::new();
    }
    let mut request =
        LaunchRequest { threads: threads.and_then(|t| u64::try_from(t.0).ok()), ..LaunchRequest::default() };
    for (at, role) in asked.iter().enumerate() {
        if let Some(first) = asked[..at].iter().find(|other| other.name.text == role.name.text) {
            let (name, first, second) = (role.name.text.clone(), first.name.span, role.name.span);
            diags.report(DuplicateName { name, first, second });
            continue;
        }
        let each = match role.unit.text.as_str() {
            "warp" => 1,
            "warpgroup" => WARPGROUP / i128::from(WARP),
            unit => {
                let span = role.unit.span;
                let problem = format!("`{unit}` is neither `warp` nor `warpgroup`");
                let role = Some(role.name.text.clone());
                diags.report(RoleWarps { role, problem, remedy: WarpsRemedy::Warps, span });
                continue;
            }
        };
        let (most, what) = (MOST_WARPS / each, "the number of units of a role");
        let count = number(program, facts, role.count.as_ref(), (what, 1, most), diags);
        let (least, most) = target::ROLE_REGISTERS;
        let registers = role.registers.as_ref().map(|e| {
            let what = "the number of registers of a thread";
            number(program, facts, Some(e), (what, i128::from(least), i128::from(most)), diags)
        });
        if let (Some(count), None | Some(Some(_))) = (count, registers) {
            let registers = registers.flatten().and_then(|n| u64::try_from(n).ok());
            let warps = u64::try_from(count * each).unwrap_or(u64::MAX);
            request.roles.push(RoleRequest { name: role.name.text.clone(), warps, registers });
        }
    }
    if diags.found().len() > before {
        return Vec::new();
    }
    if !take_turns(program, asked, &request, diags) {
        return Vec::new();
    }
    if units(asked, &request) > target::ROLE_LIMIT {
        let problem = format!(
            "a block has at most {} roles, one named barrier each; units that take tiles in turn count one by one",
            target::ROLE_LIMIT
        );
        diags.report(RoleWarps { role: None, problem, remedy: WarpsRemedy::Fewer, span });
        return Vec::new();
    }
    let launch = match collectives::Launch::new(&request) {
        Ok(launch) => launch,
        Err(fault) => {
            refuse(fault, &request, asked, span, diags);
            return Vec::new();
        }
    };
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let roles: Vec<Role> = (launch.roles.iter().zip(asked))
        .map(|(role, asked)| Role {
            name: role.name.clone(),
            first: narrow(role.first),
            warps: narrow(role.warps) / turns(asked, role.warps),
            turns: turns(asked, role.warps),
            registers: role.registers.map(narrow),
            span: asked.span,
        })
        .collect();
    // A warpgroup starts at a warp whose number four divides.
    let four = WARPGROUP as u32 / WARP;
    let is_apart = |role: &(&Role, &ast::Role)| {
        let of_groups = role.1.unit.text == "warpgroup" || role.0.registers.is_some();
        of_groups && !(role.0.first.is_multiple_of(four) && role.0.warps.is_multiple_of(four))
    };
    if let Some((role, asked)) = roles.iter().zip(asked).find(is_apart) {
        let problem = match role.warps.is_multiple_of(four) {
            true => format!("its warpgroups would start at warp {}, which 4 does not divide", role.first),
            false => "registers are given to whole warpgroups".to_owned(),
        };
        let remedy = match role.warps.is_multiple_of(four) {
            true => WarpsRemedy::Order(roles.iter().map(|r| (r.name.clone(), r.turns * r.warps)).collect()),
            false => WarpsRemedy::Warps,
        };
        diags.report(RoleWarps { role: Some(role.name.clone()), problem, remedy, span: asked.span });
        return Vec::new();
    }
    roles
}

/// The warps of a warpgroup.
const WARPS_OF_GROUP: u64 = WARPGROUP as u64 / WARP as u64;

/// How many units of a role take tiles in turn; 1 if they do not.
fn turns(asked: &ast::Role, warps: u64) -> u32 {
    let groups = u32::try_from(warps / WARPS_OF_GROUP).unwrap_or(u32::MAX);
    if asked.alternate.is_some() { groups.max(1) } else { 1 }
}

/// Roles, and units that take tiles in turn.
fn units(asked: &[ast::Role], request: &LaunchRequest) -> usize {
    asked.iter().zip(&request.roles).map(|(asked, role)| turns(asked, role.warps) as usize).sum()
}

/// Whether the units of a role that are to take tiles in turn can.
fn take_turns(program: &Program, asked: &[ast::Role], request: &LaunchRequest, diags: &mut Diagnostics) -> bool {
    for (role, found) in asked.iter().zip(&request.roles) {
        let Some(span) = role.alternate else { continue };
        let (problem, remedy) = if role.unit.text != "warpgroup" {
            ("only warpgroups take tiles in turn", WarpsRemedy::Together)
        } else if found.warps < 2 * WARPS_OF_GROUP {
            ("one warpgroup has nobody to take turns with", WarpsRemedy::Together)
        } else if !program.is_persistent() {
            ("its warpgroups take tiles in turn, and a block has one tile", WarpsRemedy::Persistent)
        } else {
            continue;
        };
        diags.report(RoleWarps { role: Some(role.name.text.clone()), problem: problem.to_owned(), remedy, span });
        return false;
    }
    true
}

/// A number in the text, or a dimension that facts fix, from `least` to `most`; 1 if nothing is written.
fn number(
    program: &Program,
    facts: &Facts,
    e: Option<&ast::Expr>,
    (what, least, most): (&'static str, i128, i128),
    diags: &mut Diagnostics,
) -> Option<i128> {
    let Some(e) = e else { return Some(1) };
    let value = super::launch::constant(program, facts, e);
    let found = value.filter(|v| (least..=most).contains(v));
    if found.is_none() {
        diags.report(BadFactor { what, value, least, most, span: e.span });
    }
    found
}

fn refuse(fault: LaunchFault, request: &LaunchRequest, asked: &[ast::Role], span: Span, diags: &mut Diagnostics) {
    let name = |role: usize| request.roles[role].name.clone();
    let of = |role: usize| asked[role].span;
    let mut warps = |role: Option<usize>, problem: String, span| {
        diags.report(RoleWarps { role: role.map(name), problem, remedy: WarpsRemedy::Warps, span });
    };
    match fault {
        LaunchFault::Block { threads } => {
            warps(None, format!("together they have {threads} threads, and a block 1024"), span)
        }
        LaunchFault::ThreadsAndRoles { threads, of_roles } => {
            warps(None, format!("they have {of_roles} threads, and `threads({threads})` says it a second time"), span);
        }
        LaunchFault::EmptyRole { role } => warps(Some(role), "it has no warps".to_owned(), of(role)),
        LaunchFault::NoThreads => warps(None, "there are none".to_owned(), span),
        // Roles are whole warps, their names were compared, and clusters are not asked for here.
        LaunchFault::PartOfWarp { .. } | LaunchFault::Cluster { .. } | LaunchFault::SameName { .. } => {}
        fault @ (LaunchFault::Registers { .. }
        | LaunchFault::PartOfWarpgroup { .. }
        | LaunchFault::MixedWarpgroup { .. }
        | LaunchFault::Pool { .. }) => {
            let threads: u64 = request.roles.iter().map(|r| r.warps * collectives::WARP).sum();
            let held = target::registers_at_launch(threads, 1);
            let roles = request.roles.iter().map(|r| (r.name.clone(), r.warps, r.registers)).collect();
            let span = match fault {
                LaunchFault::Registers { role, .. } | LaunchFault::MixedWarpgroup { roles: (_, role), .. } => of(role),
                _ => span,
            };
            diags.report(RoleRegisters { fault, roles, held, span });
        }
    }
}

/// The clauses of a stage: of an equation, or of the copy that it is.
pub fn clauses<'a>(program: &'a Program, stage: &Stage) -> Option<&'a ast::Clauses> {
    match stage.copy {
        Some(at) => program.stages.get(at).map(|copy| &copy.ast.clauses),
        None => super::schedule_of(program, stage.equation).map(|schedule| &schedule.clauses),
    }
}

/// The role that a clause names; none if it names none, or one that there is not.
fn named(roles: &[Role], clauses: &ast::Clauses, diags: &mut Diagnostics) -> Option<usize> {
    let by = clauses.by.as_ref()?;
    let found = roles.iter().position(|role| role.name == by.text);
    if found.is_none() && roles.is_empty() {
        diags.report(NoRoles { name: by.text.clone(), span: by.span });
    } else if found.is_none() {
        let known = roles.iter().map(|role| role.name.clone()).collect();
        diags.report(UnknownName { kind: "role".to_owned(), name: by.text.clone(), known, span: by.span });
    }
    found
}

/// Gives every stage its role, consumers first.
pub(super) fn assign(program: &Program, roles: &[Role], stages: &mut [Stage], diags: &mut Diagnostics) {
    for at in 0..stages.len() {
        // Consumers were placed before what they read.
        let readers = if roles.is_empty() { Vec::new() } else { readers(stages, at) };
        let consumers = readers.into_iter().filter_map(|n| stages[n].role).collect();
        let beside = stages[at].beside.as_ref().and_then(|beside| stages[beside.stage].role);
        let stage = &stages[at];
        let clauses = clauses(program, stage);
        stages[at].role = role_of((&stage.name, stage.span), clauses, roles, (beside, consumers), diags);
    }
}

/// The role that makes something: the one that its clauses name, else the only one, else `otherwise`, else that of its
/// consumers, if it is one.
pub(crate) fn role_of(
    (name, span): (&str, Span),
    clauses: Option<&ast::Clauses>,
    roles: &[Role],
    (otherwise, mut consumers): (Option<usize>, Vec<usize>),
    diags: &mut Diagnostics,
) -> Option<usize> {
    let before = diags.found().len();
    let said = clauses.and_then(|clauses| named(roles, clauses, diags));
    if roles.is_empty() || diags.found().len() > before {
        return None;
    }
    consumers.sort_unstable();
    consumers.dedup();
    let only = (roles.len() == 1).then_some(0);
    let role = said.or(only).or(otherwise).or(if consumers.len() == 1 { consumers.first().copied() } else { None });
    if role.is_none() {
        let consumers = consumers.iter().map(|role| roles[*role].name.clone()).collect();
        let known = roles.iter().map(|role| role.name.clone()).collect();
        diags.report(UnsaidRole { stage: name.to_owned(), consumers, known, span });
    }
    role
}

/// The stages that read what the stage with a position holds.
pub(super) fn readers(stages: &[Stage], at: usize) -> Vec<usize> {
    let of = |n: usize| stages.get(n);
    let held: Vec<Source> = stages.iter().filter(|s| s.copy.is_none()).flat_map(|s| s.serves.clone()).collect();
    let reads = |reader: &usize| {
        let Stage { program, equation, .. } = &stages[*reader];
        let is_taken = |read| [false, true].into_iter().any(|in_terms| taken(&of, *reader, read, in_terms) == Some(at));
        attach::reads(&program.algorithm, *equation, &held).into_iter().any(is_taken)
    };
    (0..stages.len()).filter(|n| stages[*n].sees.contains(&at)).filter(reads).collect()
}

/// Refuses what roles cannot hand to each other.
pub(super) fn check(plan: &Plan, diags: &mut Diagnostics) {
    if plan.roles.is_empty() {
        return;
    }
    let name = |role: Option<usize>| role.map_or_else(String::new, |role| plan.roles[role].name.clone());
    let takes_turns = |stage: &Stage| stage.role.is_some_and(|role| plan.roles[role].turns > 1);
    for (at, stage) in plan.stages.iter().enumerate() {
        // What a block keeps in device memory is for one tile of it at a time.
        if stage.is_in_workspace() && plan.stages.iter().any(takes_turns) {
            let construct = "in global` where warpgroups take tiles in turn, `alternate".to_owned();
            let instead = Some("place it in shared memory, or leave `alternate` out".to_owned());
            diags.report(NotSupportedYet { construct, span: stage.span, instead });
            continue;
        }
        let parent = stage.attach.as_ref().map(|attach| (&plan.stages[attach.stage], attach.leaf));
        let is_read = |reader: &usize| plan.stages[*reader].role != stage.role;
        let is_handed = readers(&plan.stages, at).iter().any(is_read);
        if let Some((host, leaf)) = parent.filter(|(host, leaf)| stage.ring > 1 && !host.is_rolled(*leaf) && !is_handed)
        {
            diags.report(super::buffers::nothing_ahead(&stage.name, host, leaf, host.domain.axes[leaf].binding_span));
            continue;
        }
        let mut not_yet = |construct: &str, instead: Option<&str>| {
            let (construct, instead) = (construct.to_owned(), instead.map(str::to_owned));
            diags.report(NotSupportedYet { construct, span: stage.span, instead });
        };
        let Some(reader) = readers(&plan.stages, at).into_iter().find(|reader| plan.stages[*reader].role != stage.role)
        else {
            // In the loops of another role's stage there is nothing to hand over, but they must be loops of the whole
            // role.
            let parent = stage.attach.as_ref().map(|attach| &plan.stages[attach.stage]);
            if let Some(parent) = parent.filter(|parent| parent.role != stage.role) {
                // Its axes of warps are those of the other role.
                if stage.owner > Unit::Cta {
                    not_yet("a stage of warps inside another role's stage", Some("write `per cta`"));
                } else if parent.owner > Unit::Cta {
                    not_yet("a stage inside another role's stage of warps", None);
                }
            }
            continue;
        };
        if stage.place != Place::Shared || stage.owner != Unit::Cta {
            diags.report(NoHandOver {
                stage: stage.name.clone(),
                reader: plan.stages[reader].name.clone(),
                roles: (name(stage.role), name(plan.stages[reader].role)),
                place: stage.place,
                owner: stage.owner.name(),
                span: stage.span,
            });
        }
    }
}
