//! TW0690: threads of the block without work.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::domain::WARP;
use crate::source::Span;

row! {
    /// A warning: the kernel is right, and some threads of every block do nothing. It is not given where another stage
    /// of the same loops has work for all of them.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     launch threads(256);
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// The warning counts the idle threads.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     launch threads(256);
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Leave `launch` out: the block then has as many threads as are bound.
    /// - Keep it and write `#[allow(TW0690)]` before the kernel.
    TW0690 "idle-threads" Warning "threads of the block without work"
}

/// TW0690: threads without work.
#[derive(Clone, Debug)]
pub struct IdleThreads {
    /// The stage.
    pub stage: String,
    /// Threads with work.
    pub busy: i128,
    /// Threads of the block.
    pub threads: i128,
    /// Threads that suffice for all stages.
    pub needed: i128,
    /// The `launch` item.
    pub span: Span,
    /// The role whose threads they are, instead of those of the block.
    pub role: Option<String>,
}

impl IntoDiagnostic for IdleThreads {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, busy, threads, needed, span, role } = self;
        let idle = threads - busy;
        let bind = "bind as many iterations as there are threads";
        let diagnostic = Diagnostic::new(
            Code::TW0690,
            span,
            match &role {
                Some(role) => format!("{idle} of {threads} threads of role `{role}` are idle in `{stage}`"),
                None => format!("{idle} of {threads} threads of each block are idle in `{stage}`"),
            },
        );
        let silence = "or silence this with `#[allow(TW0690)]` before the kernel";
        let warps = needed.div_euclid(WARP) + (needed % WARP).min(1);
        match role {
            Some(role) if warps * WARP < threads => {
                let all = if warps == 1 { "warp".to_owned() } else { format!("{warps} warp") };
                diagnostic.help(format!("{bind}, or write `{role}: {all}`"))
            }
            None if needed < threads => {
                let text = format!("{bind}, or write `launch threads({needed});`");
                diagnostic.change(Change::Threads(needed), text)
            }
            _ => diagnostic.help(format!("{bind}, {silence}")),
        }
    }
}
