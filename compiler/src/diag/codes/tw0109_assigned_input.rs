//! TW0109: an equation for an input.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Inputs are read only. Outputs stand after the arrow; a tensor that is read and written is `inout` before it.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Double(x: f32[N]) -> (y: f32[N]) {
    ///     x[i] = 2.0;
    ///     y[i] = x[i];
    /// }
    /// ```
    ///
    /// The message shows the declaration as an input.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Double(inout x: f32[N]) -> () {
    ///     x[i] = 2.0 * x[i];
    /// }
    /// ```
    TW0109 "assigned-input" Error "an equation for an input"
}

/// TW0109: an equation for an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedInput {
    /// The input.
    pub name: String,
    /// Its declaration.
    pub declared: Span,
    /// The target.
    pub span: Span,
}

impl IntoDiagnostic for AssignedInput {
    fn into_diagnostic(self) -> Diagnostic {
        let name = &self.name;
        Diagnostic::new(Code::TW0109, self.span, format!("`{name}` is an input and cannot be defined"))
            .label(self.declared, format!("`{name}` is declared as an input"))
            .help(format!("to update it in place, declare it `inout {name}: …`"))
    }
}
