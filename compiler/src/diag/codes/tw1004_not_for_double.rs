//! TW1004: an approximate function of `f64`.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// The functions of `approx::` are the approximate instructions of the device, which exist for `f32`. `f16` and
    /// `bf16` go by way of it; for `f64`, which has twice its bits, there are the accurate functions only.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Exp(x: f64[N]) -> (y: f64[N]) {
    ///     y[i] = approx::exp(x[i]);
    /// }
    /// ```
    ///
    /// The message names the function.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Exp(x: f64[N]) -> (y: f64[N]) {
    ///     y[i] = exp(x[i]);
    /// }
    /// ```
    TW1004 "not-for-double" Error "an approximate function of `f64`"
}

/// TW1004: an approximate function of `f64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotForF64 {
    /// The function.
    pub function: &'static str,
    /// The call.
    pub span: Span,
}

impl IntoDiagnostic for NotForF64 {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW1004, self.span, format!("there is no `{}` of `f64`", self.function))
            .note("the approximate instructions compute at most 24 bits")
            .help(format!("where they are enough: `{}(… as f32) as f64`", self.function))
            .help(format!("or the accurate function: `{}`", self.function.trim_start_matches("approx::")))
    }
}
