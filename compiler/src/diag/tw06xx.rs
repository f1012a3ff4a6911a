//! TW06: collectives.

use super::{Code, Diagnostic, IntoDiagnostic};
use crate::syntax::Span;

/// TW0601: an operation run by other threads than it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongCollective {
    /// The operation: "a plain store", "`wgmma`".
    pub operation: String,
    /// Where it is.
    pub span: Span,
    /// The threads it needs: "exactly one thread per element".
    pub needs: String,
    /// The threads that would run it: "32 threads".
    pub has: String,
    /// One case: the threads and the element.
    pub witness: Option<String>,
    /// Complete edits, in words with their code between backticks.
    pub edits: Vec<String>,
}

impl IntoDiagnostic for WrongCollective {
    fn into_diagnostic(self) -> Diagnostic {
        let WrongCollective { operation, span, needs, has, witness, edits } = self;
        let title = format!("{operation} needs {needs}, and {has} would run it");
        let mut diagnostic = Diagnostic::new(Code::TW0601, span, title);
        diagnostic.counterexample = witness;
        edits.into_iter().fold(diagnostic, Diagnostic::help)
    }
}
