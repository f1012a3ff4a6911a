//! TW0509: what one role holds where another one cannot read it.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;
use crate::source::ast::Place;

row! {
    /// Roles hand over slots of shared memory: one fills a slot, the others read it, and it is filled again when they
    /// are done. Registers belong to the threads of one role, and an instance of a warp or warpgroup to warps that the
    /// other role does not have. A stage that another role reads is `in shared`, with one instance for the block.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Center(x: f32[M, 64]) -> (y: f32[M, 64]) {
    ///     s[i] = sum(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - s[i];
    ///     launch roles { math: 2 warp, sums: warp };
    ///     schedule y by math { split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }
    ///     schedule s in registers at y.ii by sums { split j by 32 -> jo, jt; bind jt: thread; reduce jt; }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Center(x: f32[M, 64]) -> (y: f32[M, 64]) {
    ///     s[i] = sum(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - s[i];
    ///     launch roles { math: 2 warp, sums: warp };
    ///     schedule y by math { split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }
    ///     schedule s in shared at y.ii ring(2) by sums { split j by 32 -> jo, jt; bind jt: thread; reduce jt; }
    /// }
    /// ```
    TW0509 "no-hand-over" Error "what one role holds where another one cannot read it"
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
