//! TW0507: registers that the roles of a block cannot have.

use crate::collectives::{LaunchFault, WARP};
use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;
use crate::target::{REGISTER_STEP, ROLE_REGISTERS};

row! {
    /// `math: 2 warpgroup regs(232)` gives each thread of a role so many registers: a multiple of 8, from 24 to 240,
    /// for whole warpgroups. At the launch all threads have the same number, an equal part of the 65536 of a
    /// multiprocessor in steps of
    /// 8. Roles that ask for more wait until others have given back enough, so all of them together can have no more
    /// than the block had.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Twice(x: f32[M, 128]) -> (y: f32[M, 128]) {
    ///     y[i, j] = x[i, j] * 2.0;
    ///     launch roles { load: warpgroup regs(240), math: 2 warpgroup regs(232) };
    ///     schedule y by math { split i by 8 -> ib, ii; bind ib: grid; split ii by 2 -> i1, i2; reorder i2, i1;
    ///         bind i2: warpgroup; bind j: thread; }
    ///     stage xs[i, j] = x in shared at y.i1 ring(2) via tma by load { }
    /// }
    /// ```
    ///
    /// The message gives the registers of each role, and how many the block has.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Twice(x: f32[M, 128]) -> (y: f32[M, 128]) {
    ///     y[i, j] = x[i, j] * 2.0;
    ///     launch roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) };
    ///     schedule y by math { split i by 8 -> ib, ii; bind ib: grid; split ii by 2 -> i1, i2; reorder i2, i1;
    ///         bind i2: warpgroup; bind j: thread; }
    ///     stage xs[i, j] = x in shared at y.i1 ring(2) via tma by load { }
    /// }
    /// ```
    TW0507 "role-registers" Error "registers that the roles of a block cannot have"
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
