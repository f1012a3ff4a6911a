//! TW0112: an input that nothing reads.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A warning: the kernel compiles, but a caller has to pass an argument that changes nothing.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(a: f32, x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    /// }
    /// ```
    ///
    /// The warning names the input.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(a: f32, x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = a * x[i];
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Remove the parameter.
    /// - Keep it and put `#[allow(deprecated)]` on the module that holds the call: warnings of `schedule!` are
    ///   deprecated constants.
    TW0112 "unused-input" Warning "an input that nothing reads"
}

/// TW0112: an input that nothing reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedInput {
    /// The input.
    pub name: String,
    /// Its declaration.
    pub span: Span,
}

impl IntoDiagnostic for UnusedInput {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0112, self.span, format!("nothing reads the input `{}`", self.name))
            .help("remove the parameter: every caller has to give it a value")
    }
}
