//! TW0506: warps that the roles of a block cannot have.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `launch roles { load: warp, math: 2 warpgroup };` divides the warps of a block among roles, in the order in
    /// which they are written. A role has whole warps, at most 32 of them together with the others, and there are at
    /// most 7 roles. A warpgroup starts at a warp whose number four divides: a role of warpgroups stands after roles of
    /// whole warpgroups. `math: 2 warpgroup alternate` has two warpgroups that take the tiles of a persistent launch in
    /// turn.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Twice(x: f32[M, 64]) -> (y: f32[M, 64]) {
    ///     y[i, j] = x[i, j] * 2.0;
    ///     launch roles { load: warp, math: warpgroup };
    ///     schedule y by math { split i by 8 -> ib, ii; bind ib: grid; split ii by 2 -> i1, i2; reorder i2, i1;
    ///         split j by 64 -> jo, jt; bind i2: 2 warp; bind jt: thread; }
    ///     stage xs[i, j] = x in shared at y.i1 ring(2) via tma by load { }
    /// }
    /// ```
    ///
    /// The message says what is wrong, and which order would do.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Twice(x: f32[M, 64]) -> (y: f32[M, 64]) {
    ///     y[i, j] = x[i, j] * 2.0;
    ///     launch roles { math: warpgroup, load: warp };
    ///     schedule y by math { split i by 8 -> ib, ii; bind ib: grid; split ii by 2 -> i1, i2; reorder i2, i1;
    ///         split j by 64 -> jo, jt; bind i2: 2 warp; bind jt: thread; }
    ///     stage xs[i, j] = x in shared at y.i1 ring(2) via tma by load { }
    /// }
    /// ```
    TW0506 "role-warps" Error "warps that the roles of a block cannot have"
}

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
    /// Several tiles for a block.
    Persistent,
    /// All of them at each tile.
    Together,
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
            WarpsRemedy::Persistent => {
                found.help("let blocks take several tiles: `launch persistent, …`").help("or leave `alternate` out")
            }
            WarpsRemedy::Together => found.help("leave `alternate` out"),
            WarpsRemedy::Warps => {
                found.help("write `NAME: n warp` or `NAME: n warpgroup`, with at most 32 warps in all")
            }
        }
    }
}
