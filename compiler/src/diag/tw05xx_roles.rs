//! TW05: roles, their warps and registers, and what they hand to each other.

use super::{Code, Diagnostic, IntoDiagnostic};
use crate::collectives::{LaunchFault, WARP};
use crate::source::Span;
use crate::source::ast::Place;
use crate::target::{REGISTER_STEP, ROLE_REGISTERS};

/// TW0506: warps that the roles of a block cannot have.
#[derive(Clone, Debug)]
pub struct RoleWarps {
    /// The role; none if it is about all of them.
    pub role: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What would do.
    pub remedy: WarpsRemedy,
    /// The role, or all of them.
    pub span: Span,
}

/// What roles that have no warps are told to do.
#[derive(Clone, Debug)]
pub enum WarpsRemedy {
    /// Other warps.
    Warps,
    /// Another order of all roles, which have these warps.
    Order(Vec<(String, u32)>),
    /// Fewer roles.
    Fewer,
}

impl IntoDiagnostic for RoleWarps {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { role, problem, remedy, span } = self;
        let whose = role.map_or_else(|| "the roles".to_owned(), |role| format!("role `{role}`"));
        let found = Diagnostic::new(Code::TW0506, span, format!("{whose} cannot have these warps: {problem}"))
            .note("roles are ranges of the warps of one block, in the order in which they are written");
        match remedy {
            WarpsRemedy::Order(mut list) => {
                list.sort_by_key(|(_, warps)| warps % 4 != 0);
                let list = list.into_iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                found.help(format!("write the roles that are whole warpgroups first: {list}"))
            }
            WarpsRemedy::Fewer => found.help("let one role run several stages"),
            WarpsRemedy::Warps => {
                found.help("write `NAME: n warp` or `NAME: n warpgroup`, with at most 32 warps in all")
            }
        }
    }
}

/// TW0507: registers that the roles of a block cannot have.
#[derive(Clone, Debug)]
pub struct RoleRegisters {
    /// What is wrong.
    pub fault: LaunchFault,
    /// Name, warps and registers of each role.
    pub roles: Vec<(String, u64, Option<u64>)>,
    /// Registers of a thread at the launch.
    pub held: u64,
    /// The role, or all of them.
    pub span: Span,
}

impl IntoDiagnostic for RoleRegisters {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { fault, roles, held, span } = self;
        let (least, most) = ROLE_REGISTERS;
        let name = |role: usize| format!("`{}`", roles[role].0);
        match fault {
            LaunchFault::Registers { role, asked } => {
                let title = format!("{} cannot have {asked} registers", name(role));
                let down = (asked / REGISTER_STEP * REGISTER_STEP).clamp(least, most);
                Diagnostic::new(Code::TW0507, span, title)
                    .note(format!("a role has a multiple of {REGISTER_STEP}, from {least} to {most}"))
                    .help(format!("write `regs({down})`"))
            }
            LaunchFault::Pool { asked, pool, .. } => {
                let list = roles.iter().map(|(name, warps, registers)| {
                    let registers = registers.unwrap_or(held);
                    format!("`{name}` {} · {registers}", warps * WARP)
                });
                let list = list.collect::<Vec<_>>().join(", ");
                let title = format!("the roles ask for {asked} registers, and the block has {pool}");
                let threads = pool / held.max(1);
                Diagnostic::new(Code::TW0507, span, title)
                    .note(format!(
                        "threads · registers: {list}; at the launch each of the {threads} threads has {held}"
                    ))
                    .note("a role that asks for more waits until others have given back enough: these never do")
                    .help("give another role fewer registers, or this one")
            }
            LaunchFault::MixedWarpgroup { group, roles: (first, second) } => {
                let title = format!("{} and {} share a warpgroup, and not its registers", name(first), name(second));
                Diagnostic::new(Code::TW0507, span, title)
                    .note(format!("the four warps of warpgroup {group} change their registers together"))
                    .help("make each role whole warpgroups")
            }
            // The other faults of a launch are no matter of registers.
            _ => {
                let threads: u64 = roles.iter().map(|(_, warps, _)| warps * WARP).sum();
                let title = format!("registers change for whole warpgroups, and the block has {threads} threads");
                Diagnostic::new(Code::TW0507, span, title)
                    .note("a warpgroup has 128 threads")
                    .help("make each role whole warpgroups, or leave `regs` out")
            }
        }
    }
}

/// TW0508: a stage of which nothing says in which role it runs, or a role that runs nothing.
#[derive(Clone, Debug)]
pub struct UnsaidRole {
    /// The stage.
    pub stage: String,
    /// The roles of its consumers.
    pub consumers: Vec<String>,
    /// All roles.
    pub known: Vec<String>,
    /// Its head.
    pub span: Span,
}

impl IntoDiagnostic for UnsaidRole {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, consumers, known, span } = self;
        let list = |names: &[String]| names.iter().map(|n| format!("`by {n}`")).collect::<Vec<_>>().join(" or ");
        let found = Diagnostic::new(Code::TW0508, span, format!("which role runs `{stage}`?"));
        let found = match consumers.len() {
            0 => found.note("nothing in the kernel consumes it, and there are several roles"),
            _ => {
                let names = consumers.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" and ");
                found.note(format!("its consumers run in the roles {names}"))
            }
        };
        found.help(format!("write {} in its clauses", list(&known)))
    }
}

/// The same code: a role that runs nothing.
#[derive(Clone, Debug)]
pub struct IdleRole {
    /// The role.
    pub role: String,
    /// What `launch` says of it.
    pub span: Span,
}

impl IntoDiagnostic for IdleRole {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { role, span } = self;
        Diagnostic::new(Code::TW0508, span, format!("role `{role}` runs nothing"))
            .note("a stage runs in the role that its clause `by` names, else in that of its consumers")
            .help(format!("write `by {role}` in the clauses of a stage, or leave the role out"))
    }
}

/// TW0509: what one role holds where another one cannot read it.
#[derive(Clone, Debug)]
pub struct NoHandOver {
    /// The stage.
    pub stage: String,
    /// A stage that reads it.
    pub reader: String,
    /// The roles of both.
    pub roles: (String, String),
    /// Where it is held.
    pub place: Place,
    /// Who owns an instance.
    pub owner: &'static str,
    /// Its head.
    pub span: Span,
}

impl IntoDiagnostic for NoHandOver {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, reader, roles: (role, other), place, owner, span } = self;
        let title = format!("`{reader}` in role `{other}` cannot read `{stage}`, which role `{role}` holds");
        let found = Diagnostic::new(Code::TW0509, span, title);
        match place {
            Place::Registers => found.note(format!("it is in registers, and those of `{role}` nobody else sees")),
            Place::Global => found.note("roles hand over slots of shared memory, one after the other"),
            Place::Shared => {
                found.note(format!("an instance belongs to a {owner} of `{role}`, and `{other}` has others"))
            }
        }
        .help(format!("hold it `in shared per cta`, or run both in one role: `by {other}`"))
    }
}
