//! TW0127: an argmax or argmin over several axes.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `argmax` and `argmin` give one index, a `u32`, so they search along one axis.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Best(x: f32[M, N]) -> (y: u32[])
    /// where N >= 1
    /// {
    ///     y[] = argmax(|i, j| x[i, j]);
    /// }
    /// ```
    ///
    /// The message stands at the second axis.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Best(x: f32[M, N]) -> (y: u32[M])
    /// where N >= 1
    /// {
    ///     y[i] = argmax(|j| x[i, j]);
    /// }
    /// ```
    TW0127 "several-axes" Error "an argmax or argmin over several axes"
}

/// TW0127: a search over several axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeveralAxes {
    /// `argmax` or `argmin`.
    pub reduction: &'static str,
    /// How many axes.
    pub found: usize,
    /// The second axis.
    pub span: Span,
}

impl IntoDiagnostic for SeveralAxes {
    fn into_diagnostic(self) -> Diagnostic {
        let title = format!("`{}` searches one axis, and this has {}", self.reduction, self.found);
        Diagnostic::new(Code::TW0127, self.span, title).note("its result is one index, a `u32`")
    }
}
