//! TW0010: an invocation without a kernel.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An invocation of `schedule!` holds at least one kernel.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// // nothing but a comment
    /// ```
    ///
    /// The message shows the shortest kernel.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    /// }
    /// ```
    TW0010 "empty-invocation" Error "an invocation without a kernel"
}

/// TW0010: no kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyInvocation;

impl IntoDiagnostic for EmptyInvocation {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0010, Span::UNKNOWN, "`schedule!` needs at least one kernel")
            .help("start with `pub kernel Scale(x: f32[N]) -> (y: f32[N]) { y[i] = 2.0 * x[i]; … }`")
    }
}
