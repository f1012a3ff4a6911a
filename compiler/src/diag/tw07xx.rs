//! TW07: dependences, ownership, synchronisation.

use super::{Code, Diagnostic, IntoDiagnostic};
use crate::syntax::Span;

/// TW0701: a register element read by a thread that does not hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTheOwner {
    /// The stage in registers.
    pub stage: String,
    /// The stage that reads it.
    pub reader: String,
    /// The deciding op or statement of `stage`.
    pub span: Span,
    /// The read.
    pub read: Option<Span>,
    /// The element: `e[0, 4]`.
    pub element: String,
    /// The thread that holds it.
    pub holder: u64,
    /// The thread that reads it.
    pub wanted_by: u64,
}

impl IntoDiagnostic for NotTheOwner {
    fn into_diagnostic(self) -> Diagnostic {
        let NotTheOwner { stage, reader, span, read, element, holder, wanted_by } = self;
        let title = format!("`{reader}` reads elements of `{stage}` that other threads hold");
        let mut diagnostic = Diagnostic::new(Code::TW0701, span, title)
            .counterexample(format!("{element} is held by thread {holder} and read by thread {wanted_by}"))
            .help(format!("distribute it like its reader: `like {reader};`"))
            .help(format!("or share it: `schedule {stage} in shared …`"));
        if let Some(read) = read {
            diagnostic = diagnostic.label(read, "read here");
        }
        diagnostic
    }
}
