//! TW0130: an output passed by value.

use tilewright_kernel::ElementType;

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A scalar parameter, `f32`, is passed by value, so nothing that a kernel writes to it could be seen. A single
    /// element in memory is a tensor without dimensions, `f32[]`.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Sum(x: f32[N]) -> (y: f32) {
    ///     y[] = sum(|k| x[k]);
    /// }
    /// ```
    ///
    /// The message shows the type to write.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Sum(x: f32[N]) -> (y: f32[]) {
    ///     y[] = sum(|k| x[k]);
    /// }
    /// ```
    TW0130 "scalar-output" Error "an output passed by value"
}

/// TW0130: an output passed by value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalarOutput {
    /// The output.
    pub name: String,
    /// Its type.
    pub element: ElementType,
    /// The type.
    pub span: Span,
}

impl IntoDiagnostic for ScalarOutput {
    fn into_diagnostic(self) -> Diagnostic {
        let element = self.element;
        Diagnostic::new(Code::TW0130, self.span, format!("`{}` is written and is passed by value", self.name)).replace(
            self.span,
            format!("{element}[]"),
            format!("a single element in memory is `{element}[]`"),
        )
    }
}
