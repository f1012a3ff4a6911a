//! TW1005: a `dot` of a type that it does not exist for.

use tilewright_kernel::ElementType;

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `dot` accumulates floats in `f32`, `f64` in `f64`, and integers of at most 32 bits in `i32`. For other types
    /// there is no accumulator.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Dot(x: i64[N], z: i64[N]) -> (y: i64[]) {
    ///     y[] = dot(|k| x[k] * z[k]);
    /// }
    /// ```
    ///
    /// The message names the type of the factors.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Dot(x: i64[N], z: i64[N]) -> (y: i64[]) {
    ///     y[] = sum(|k| x[k] * z[k]);
    /// }
    /// ```
    TW1005 "dot-type" Error "a `dot` of a type that it does not exist for"
}

/// TW1005: a `dot` of a type that it does not exist for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotType {
    /// The type of the factors.
    pub element: ElementType,
    /// The product.
    pub span: Span,
}

impl IntoDiagnostic for DotType {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW1005, self.span, format!("there is no `dot` of `{}`", self.element))
            .note("`dot` accumulates floats in `f32`, `f64` in `f64`, and integers of at most 32 bits in `i32`")
            .help("use `sum`, which accumulates in the type of its terms")
    }
}
