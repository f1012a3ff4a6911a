//! TW0126: a `dot` that is not a sum of products.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `dot` is what tensor cores compute: the sum of products of two factors of one type, accumulated in a wider one.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Dot(x: f16[N], z: f16[N]) -> (y: f32[]) {
    ///     y[] = dot(|k| x[k] + z[k]);
    /// }
    /// ```
    ///
    /// The message stands at the body.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Dot(x: f16[N], z: f16[N]) -> (y: f32[]) {
    ///     y[] = dot(|k| x[k] * z[k]);
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - `sum` takes any term.
    TW0126 "dot-shape" Error "a `dot` that is not a sum of products"
}

/// TW0126: a `dot` that is not a sum of products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotShape {
    /// The body.
    pub span: Span,
}

impl IntoDiagnostic for DotShape {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0126, self.span, "the body of `dot` is a product of two factors")
            .note("tensor cores compute `dot(|k| a[m, k] * b[n, k])`")
            .help("move everything else out of the `dot`, or use `sum`")
    }
}
