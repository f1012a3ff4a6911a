//! TW1002: an integer divided by the literal 0.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `/` and `%` of integers by the literal 0 have no value.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Wrap(x: i32[N]) -> (y: i32[N]) {
    ///     y[i] = x[i] % 0;
    /// }
    /// ```
    ///
    /// The message shows the division.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Wrap(x: i32[N]) -> (y: i32[N]) {
    ///     y[i] = x[i] % 16;
    /// }
    /// ```
    TW1002 "division-by-zero" Error "an integer divided by the literal 0"
}

/// TW1002: an integer divided by the literal 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DivisionByZero {
    /// The divisor.
    pub divisor: Span,
    /// The division.
    pub span: Span,
}

impl IntoDiagnostic for DivisionByZero {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW1002, self.divisor, "an integer is divided by zero").label(self.span, "the division")
    }
}
