//! TW0209: a stage that grows too large once its intermediates are inlined.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An intermediate without a schedule is computed at every read of it. If each of several equations reads the one
    /// before it twice, the last one holds the first one many times over; a stage has at most 20000 operations.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Power(x: f32[N]) -> (y: f32[N]) {
    ///     a[i] = x[i] * x[i] + 1.0;
    ///     b[i] = a[i] * a[i] * a[i] * a[i];
    ///     c[i] = b[i] * b[i] * b[i] * b[i];
    ///     d[i] = c[i] * c[i] * c[i] * c[i];
    ///     e[i] = d[i] * d[i] * d[i] * d[i];
    ///     f[i] = e[i] * e[i] * e[i] * e[i];
    ///     g[i] = f[i] * f[i] * f[i] * f[i];
    ///     h[i] = g[i] * g[i] * g[i] * g[i];
    ///     y[i] = h[i] * h[i] * h[i] * h[i];
    /// }
    /// ```
    ///
    /// The message names the stage and the limit.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Power(x: f32[N]) -> (y: f32[N]) {
    ///     a[i] = x[i] * x[i] + 1.0;
    ///     y[i] = a[i] * a[i] * a[i] * a[i];
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Make an intermediate an output, and continue from it in a kernel of its own.
    /// - Write the domain of an intermediate so that its own reads are inside for all of it. A read that is inside only
    ///   for those elements that are wanted of it is proved once for each path from an output, and proofs count as
    ///   operations.
    TW0209 "inlined-too-far" Error "a stage that grows too large once its intermediates are inlined"
}

/// TW0209: a stage that grows without bound once its intermediates are inlined.
#[derive(Clone, Debug)]
pub struct InlinedTooFar {
    /// The stage.
    pub stage: String,
    /// Most operations allowed.
    pub limit: u32,
    /// The schedule, or the equation.
    pub span: Span,
}

impl IntoDiagnostic for InlinedTooFar {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, limit, span } = self;
        let title = format!("`{stage}` has more than {limit} operations once its intermediates are inlined");
        Diagnostic::new(Code::TW0209, span, title)
            .note("an intermediate without a schedule is computed at every read of it, and checked there if need be")
            .help("make an intermediate an output, and compute it in a kernel of its own")
            .help(
                "or write its domain, so that its own reads are inside for all of it and need no look at every reader",
            )
    }
}
