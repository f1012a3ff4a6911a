//! TW0603: a block that is not made of whole warps or warpgroups.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::domain::Unit;
use crate::source::Span;

row! {
    /// A warp has 32 threads, a warpgroup 128. If an axis is bound to warps or warpgroups, or an instance belongs to
    /// one, the threads of the block are a multiple of 32. If an instance belongs to a warpgroup, they are a multiple
    /// of 128; otherwise a block may have a part of a warpgroup after the whole ones, which is idle.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     launch threads(100);
    ///     schedule y {
    ///         split i by 96 -> b, r;
    ///         split r by 32 -> w, t;
    ///         bind b: grid;
    ///         bind w: warp;
    ///         bind t: thread;
    ///     }
    /// }
    /// ```
    ///
    /// The help names the next multiple.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     launch threads(96);
    ///     schedule y {
    ///         split i by 96 -> b, r;
    ///         split r by 32 -> w, t;
    ///         bind b: grid;
    ///         bind w: warp;
    ///         bind t: thread;
    ///     }
    /// }
    /// ```
    TW0603 "partial-warp" Error "a block that is not made of whole warps or warpgroups"
}

/// TW0603: warps or warpgroups in a block that has a part of one.
#[derive(Clone, Debug)]
pub struct ThreadsOfUnits {
    /// Threads of the block.
    pub threads: i128,
    /// What the block must have whole.
    pub unit: Unit,
    /// Its threads.
    pub size: i128,
    /// The `launch` item, or the schedule.
    pub span: Span,
    /// The role whose threads they are, instead of those of the block.
    pub role: Option<String>,
}

impl IntoDiagnostic for ThreadsOfUnits {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { threads, unit, size, span, role } = self;
        let unit = unit.name();
        let next = threads.div_euclid(size).saturating_add(1).saturating_mul(size);
        if let Some(role) = role {
            let title = format!("role `{role}` of {threads} threads is not made of whole {unit}s");
            return Diagnostic::new(Code::TW0603, span, title)
                .note(format!("an axis is bound to {unit}s, and a {unit} has {size} threads"))
                .help(format!("give it {} warps", next / 32));
        }
        Diagnostic::new(Code::TW0603, span, format!("a block of {threads} threads is not made of whole {unit}s"))
            .note(format!("an axis is bound to {unit}s, and a {unit} has {size} threads"))
            .change(Change::Threads(next), format!("write `launch threads({next});`"))
    }
}
