//! TW0117: a read at an index from memory, without `or`.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An index that is read from memory may have any value, so nothing can prove that it is inside the tensor. `or`
    /// says what the element is outside.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Gather(x: f32[N], at: i32[M]) -> (y: f32[M]) {
    ///     y[i] = x[at[i]];
    /// }
    /// ```
    ///
    /// The message shows the index that only the data knows.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Gather(x: f32[N], at: i32[M]) -> (y: f32[M]) {
    ///     y[i] = x[at[i]] or 0.0;
    /// }
    /// ```
    TW0117 "unguarded-gather" Error "a read at an index from memory, without `or`"
}

/// TW0117: a gather without `or`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnguardedGather {
    /// The tensor.
    pub tensor: String,
    /// The index that is a value.
    pub index: Span,
    /// The read.
    pub span: Span,
}

impl IntoDiagnostic for UnguardedGather {
    fn into_diagnostic(self) -> Diagnostic {
        let title = format!("`{}` is read at an index that only the data knows", self.tensor);
        Diagnostic::new(Code::TW0117, self.span, title)
            .label(self.index, "this value may lie outside the tensor")
            .help(format!("say what it is outside: `{}[…] or 0.0`", self.tensor))
    }
}
