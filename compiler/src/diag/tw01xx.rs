//! TW01: names and types.

use super::suggest::closest;
use super::{Code, Diagnostic, IntoDiagnostic};
use crate::syntax::Span;

/// TW0101: a name that nothing defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// What it should name: `tensor`, `axis of y`, `role`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Where it is used.
    pub span: Span,
    /// The names that are valid there, in the order of their definition.
    pub known: Vec<String>,
}

impl IntoDiagnostic for UnknownName {
    fn into_diagnostic(self) -> Diagnostic {
        let UnknownName { kind, name, span, known } = self;
        let mut diagnostic = Diagnostic::new(Code::TW0101, span, format!("there is no {kind} `{name}`"));
        if !known.is_empty() {
            let list: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            diagnostic = diagnostic.note(format!("known here: {}", list.join(", ")));
        }
        match closest(&name, known.iter().map(String::as_str)) {
            Some(meant) => diagnostic.replace(span, meant, format!("did you mean `{meant}`?")),
            None => diagnostic,
        }
    }
}
