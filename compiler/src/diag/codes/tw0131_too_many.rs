//! TW0131: more of something than a kernel can have.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A kernel has at most 1024 parameters, sizes, equations, and axes of one left-hand side or reduction: more would
    /// make the checks slow. Its parameters take at most 32764 bytes, 128 of them for the tensor map of each copy. The
    /// message names what there is too much of. No kernel that a person writes comes near; a generated one should be
    /// cut into several.
    TW0131 "too-many" Error "more of something than a kernel can have"
}

/// TW0131: more of something than is handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooMany {
    /// What.
    pub what: &'static str,
    /// The most that is handled.
    pub limit: usize,
    /// The first one beyond.
    pub span: Span,
}

impl IntoDiagnostic for TooMany {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0131, self.span, format!("a kernel has at most {} {}", self.limit, self.what))
    }
}
