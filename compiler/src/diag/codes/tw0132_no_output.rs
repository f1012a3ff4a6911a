//! TW0132: a kernel that writes nothing.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A kernel computes the tensors that stand after the arrow, and updates those that are `inout`. Without one of
    /// either there is nothing to launch it for.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Double(x: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    /// }
    /// ```
    ///
    /// The message shows where an output is declared.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Double(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    /// }
    /// ```
    TW0132 "no-output" Error "a kernel that writes nothing"
}

/// TW0132: a kernel that writes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoOutput {
    /// The kernel.
    pub name: String,
    /// The first tensor that an equation defines, if there is one, and its number of indices.
    pub defines: Option<(String, usize)>,
    /// The kernel's name.
    pub span: Span,
}

impl IntoDiagnostic for NoOutput {
    fn into_diagnostic(self) -> Diagnostic {
        let (tensor, rank) = self.defines.unwrap_or_else(|| ("y".to_owned(), 1));
        let sizes = ["M", "N", "K"].get(..rank).map_or_else(|| "…".to_owned(), |names| names.join(", "));
        Diagnostic::new(Code::TW0132, self.span, format!("`{}` writes nothing", self.name))
            .help(format!("declare what it computes, after its inputs: `-> ({tensor}: f32[{sizes}])`"))
    }
}
