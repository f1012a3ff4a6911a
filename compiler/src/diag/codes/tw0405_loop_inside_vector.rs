//! TW0405: a loop inside a vectorised axis.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::append;
use crate::source::Span;

row! {
    /// The lanes of a vector run together, so no loop can be inside them: a vectorised axis is innermost.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N]) -> (y: f32[M, N])
    /// where N % 4 == 0
    /// {
    ///     y[i, j] = x[i, j];
    ///     schedule y { split j by 4 -> jo, v; reorder v, i, jo; bind jo: grid; vectorize v; }
    /// }
    /// ```
    ///
    /// The help gives the whole `reorder`.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N]) -> (y: f32[M, N])
    /// where N % 4 == 0
    /// {
    ///     y[i, j] = x[i, j];
    ///     schedule y { split j by 4 -> jo, v; reorder jo, i, v; bind jo: grid; vectorize v; }
    /// }
    /// ```
    TW0405 "loop-inside-vector" Error "a loop inside a vectorised axis"
}

/// TW0405: a loop inside a vector.
#[derive(Clone, Debug)]
pub struct LoopInsideVector {
    /// The vectorised axis.
    pub axis: String,
    /// The axis inside it.
    pub inside: String,
    /// The `vectorize` op.
    pub span: Span,
    /// All sequential axes, in an order that works.
    pub order: Vec<String>,
}

impl IntoDiagnostic for LoopInsideVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, inside, span, order } = self;
        Diagnostic::new(
            Code::TW0405,
            span,
            format!("`{axis}` is vectorised, and the loop over `{inside}` is inside it"),
        )
        .note("the lanes of a vector are the innermost loop")
        .change(append(&order), format!("add `reorder {};`", order.join(", ")))
    }
}
