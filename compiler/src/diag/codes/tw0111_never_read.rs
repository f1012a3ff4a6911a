//! TW0111: an intermediate that nothing reads.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An equation that is no output and that nothing reads is a mistake more often than not, so it is refused.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     t[i] = x[i] * x[i];
    ///     y[i] = 2.0 * x[i];
    /// }
    /// ```
    ///
    /// The message names the equation.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     t[i] = x[i] * x[i];
    ///     y[i] = 2.0 * t[i];
    /// }
    /// ```
    TW0111 "never-read" Error "an intermediate that nothing reads"
}

/// TW0111: an intermediate that nothing reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeverRead {
    /// The intermediate.
    pub name: String,
    /// The target.
    pub span: Span,
}

impl IntoDiagnostic for NeverRead {
    fn into_diagnostic(self) -> Diagnostic {
        let name = &self.name;
        Diagnostic::new(Code::TW0111, self.span, format!("`{name}` is no output and nothing reads it"))
            .help(format!("remove the equation, or declare `{name}` as an output"))
    }
}
