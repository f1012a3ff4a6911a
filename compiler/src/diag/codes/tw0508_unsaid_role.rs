//! TW0508: a stage without a role, or a role without a stage.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// In a launch with roles each stage and each staged copy runs in one role: in the one that its clause `by` names,
    /// else in that of its consumers. An output has no consumer, and consumers may run in several roles: then `by` is
    /// needed. A role that runs nothing would only wait.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Twice(x: f32[M, 64]) -> (y: f32[M, 64]) {
    ///     y[i, j] = x[i, j] * 2.0;
    ///     launch roles { math: 2 warp, load: warp };
    ///     schedule y { split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }
    ///     stage xs[i, j] = x in shared at y.ii ring(2) via tma by load { }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Twice(x: f32[M, 64]) -> (y: f32[M, 64]) {
    ///     y[i, j] = x[i, j] * 2.0;
    ///     launch roles { math: 2 warp, load: warp };
    ///     schedule y by math { split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }
    ///     stage xs[i, j] = x in shared at y.ii ring(2) via tma by load { }
    /// }
    /// ```
    TW0508 "unsaid-role" Error "a stage without a role, or a role without a stage"
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
