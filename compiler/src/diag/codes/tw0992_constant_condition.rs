//! TW0992: a comparison of indices that always gives the same.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A warning: the kernel is right, and one branch is never taken. What follows from the ranges of the axes needs no
    /// test; in particular no `if i < N`, since the iterations that a split adds are excluded by predicates.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = if i < N { 2.0 * x[i] } else { 0.0 };
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Keep it and write `#[allow(TW0992)]` before the kernel.
    TW0992 "constant-condition" Warning "a comparison of indices that always gives the same"
}

/// TW0992: a comparison that always gives the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstantCondition {
    /// The comparison as written.
    pub condition: String,
    /// What it always is.
    pub holds: bool,
    /// Its tokens.
    pub span: Span,
}

impl IntoDiagnostic for ConstantCondition {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { condition, holds, span } = self;
        let title = format!("`{condition}` is {} for every size", if holds { "always true" } else { "never true" });
        Diagnostic::new(Code::TW0992, span, title)
            .note("it follows from the ranges of the axes, the facts and the conditions around it")
    }
}
