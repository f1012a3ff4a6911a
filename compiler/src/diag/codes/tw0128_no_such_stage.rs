//! TW0128: a schedule for an input, or an inlined output.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `schedule` says how an equation is computed; an input has none. `inline` says that an intermediate is computed
    /// where it is read; an output is written, so it cannot be inlined.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule x { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// The message names the tensor and what it is.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW0128 "no-such-stage" Error "a schedule for an input, or an inlined output"
}

/// TW0128: a schedule for an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledInput {
    /// The input.
    pub name: String,
    /// The name in the schedule.
    pub span: Span,
}

impl IntoDiagnostic for ScheduledInput {
    fn into_diagnostic(self) -> Diagnostic {
        let name = &self.name;
        Diagnostic::new(Code::TW0128, self.span, format!("`{name}` is an input: nothing computes it"))
            .help("schedule the equation that reads it")
    }
}

/// TW0128: an output that is asked to be inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedOutput {
    /// The output.
    pub name: String,
    /// The statement.
    pub span: Span,
}

impl IntoDiagnostic for InlinedOutput {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0128, self.span, format!("`{}` is an output and must be written", self.name))
            .note("only an intermediate can be computed where it is read")
    }
}
