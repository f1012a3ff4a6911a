//! TW04: layout and alignment.

use super::{Code, Diagnostic, IntoDiagnostic};
use crate::syntax::Span;

/// TW0401: a vector access that is not known to be aligned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MisalignedVector {
    /// The element at which a vector starts: `x[1, 0, 0]`.
    pub element: String,
    /// Its offset in elements, in the user's names: `sb`.
    pub offset: String,
    /// Elements per vector.
    pub vector: u64,
    /// The op that makes the vectors.
    pub span: Span,
    /// The access.
    pub access: Option<Span>,
    /// The fact that would decide it: `sb % 4 == 0`.
    pub fact: Option<String>,
}

impl IntoDiagnostic for MisalignedVector {
    fn into_diagnostic(self) -> Diagnostic {
        let MisalignedVector { element, offset, vector, span, access, fact } = self;
        let title = format!("{element} is at element {offset}, not known to be a multiple of {vector}");
        let mut diagnostic = Diagnostic::new(Code::TW0401, span, title)
            .note(format!("a vector of {vector} elements must start at a multiple of {vector} elements"));
        if let Some(access) = access {
            diagnostic = diagnostic.label(access, "accessed here");
        }
        match fact {
            Some(fact) => diagnostic.help(format!("state it, and launches will check it: `where {fact}`")),
            None => diagnostic,
        }
    }
}
