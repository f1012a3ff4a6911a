//! TW9001: a defect of the compiler.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// The compiler contradicts itself: one of its rooms refused what an earlier one had proved, or it panicked. This
    /// is never the fault of a kernel. Please report it, with the kernel and the message. Until it is fixed, a smaller
    /// schedule (fewer ops, no `vectorize`) may go around it.
    TW9001 "internal" Error "a defect of the compiler"
}

/// TW9001: the compiler contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Internal {
    /// The room that noticed: `lower`, `proof`.
    pub room: &'static str,
    /// What it noticed.
    pub what: String,
    /// The nearest place in the program.
    pub span: Span,
}

impl IntoDiagnostic for Internal {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW9001, self.span, format!("the compiler failed in `{}`: {}", self.room, self.what))
            .note("this is a defect of the compiler, not of your kernel")
            .help(format!("please report it with the kernel; tilewright {}", env!("CARGO_PKG_VERSION")))
    }
}
