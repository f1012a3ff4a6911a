//! TW0102: a name defined twice.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A name means one thing in a whole kernel: no name hides another one, so what a name means never depends on the
    /// line that it is read on. Two reductions beside each other may use the same axis name.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
    ///     y[i] = sum(|i| x[i, i]);
    /// }
    /// ```
    ///
    /// The message shows where the name is taken.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
    ///     y[i] = sum(|j| x[i, j]);
    /// }
    /// ```
    TW0102 "duplicate-name" Error "a name defined twice"
}

/// TW0102: a name defined twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateName {
    /// The name.
    pub name: String,
    /// Where it is taken.
    pub first: Span,
    /// Where it is defined again.
    pub second: Span,
}

impl IntoDiagnostic for DuplicateName {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0102, self.second, format!("the name `{}` is taken", self.name))
            .label(self.first, format!("`{}` is defined here", self.name))
            .note("no name hides another one: what a name means never depends on the line it is read on")
            .help("choose another name")
    }
}
