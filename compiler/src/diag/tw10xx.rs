//! TW10: numerics.

use super::{Code, Diagnostic, IntoDiagnostic};
use crate::syntax::Span;

/// TW1001: an `argmax` or `argmin` over a range that may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyArgmax {
    /// `argmax` or `argmin`.
    pub reduction: &'static str,
    /// The reduction.
    pub span: Span,
    /// The extent of its range, in the user's names.
    pub extent: String,
    /// Sizes for which it is empty.
    pub witness: Option<String>,
    /// The fact that rules it out: `N >= 1`.
    pub fact: Option<String>,
}

impl IntoDiagnostic for EmptyArgmax {
    fn into_diagnostic(self) -> Diagnostic {
        let EmptyArgmax { reduction, span, extent, witness, fact } = self;
        let title = format!("`{reduction}` over {extent} elements may have nothing to choose from");
        let mut diagnostic = Diagnostic::new(Code::TW1001, span, title);
        diagnostic.counterexample = witness;
        match fact {
            Some(fact) => diagnostic.help(format!("state it, and launches will check it: `where {fact}`")),
            None => diagnostic,
        }
    }
}
