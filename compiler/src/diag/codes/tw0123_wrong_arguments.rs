//! TW0123: a wrong number of arguments.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::count;
use crate::source::Span;

row! {
    /// Functions take a fixed number of arguments: one for `exp`, `sqrt` and their like, two for `min` and `max`, three
    /// for `fma`.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Clamp(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = min(x[i], 0.0, 1.0);
    /// }
    /// ```
    ///
    /// The message counts both.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Clamp(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = min(max(x[i], 0.0), 1.0);
    /// }
    /// ```
    TW0123 "wrong-arguments" Error "a wrong number of arguments"
}

/// TW0123: a wrong number of arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongArgumentCount {
    /// The function.
    pub function: String,
    /// How many it takes.
    pub expected: usize,
    /// How many there are.
    pub found: usize,
    /// The call.
    pub span: Span,
}

impl IntoDiagnostic for WrongArgumentCount {
    fn into_diagnostic(self) -> Diagnostic {
        let takes = count(self.expected, "argument", "arguments");
        Diagnostic::new(
            Code::TW0123,
            self.span,
            format!("`{}` takes {takes} and is given {}", self.function, self.found),
        )
    }
}
