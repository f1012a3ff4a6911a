//! TW02: sizes, divisibility, holes.

use super::{Code, Diagnostic, IntoDiagnostic};
use crate::syntax::Span;

/// TW0201: a size that is not known to be a multiple of what an op needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotDivisible {
    /// The op, as written: `vectorize`.
    pub op: String,
    /// The axis it is applied to.
    pub axis: String,
    /// The size, in the user's names: `N`.
    pub size: String,
    /// What must divide it.
    pub factor: u64,
    /// The op.
    pub span: Span,
    /// Values of the sizes for which it fails, `N = 1`, and what happens then.
    pub witness: Option<String>,
    /// The fact that would decide it, `N % 4 == 0`; `None` if the size is fixed and does not divide.
    pub fact: Option<String>,
}

impl IntoDiagnostic for NotDivisible {
    fn into_diagnostic(self) -> Diagnostic {
        let NotDivisible { op, axis, size, factor, span, witness, fact } = self;
        let known = if fact.is_some() { "is not known to be" } else { "is not" };
        let title = format!("cannot {op} `{axis}`: {size} {known} a multiple of {factor}");
        let mut diagnostic = Diagnostic::new(Code::TW0201, span, title);
        diagnostic.counterexample = witness;
        match fact {
            Some(fact) => diagnostic.help(format!("state it, and launches will check it: `where {fact}`")),
            None => diagnostic,
        }
    }
}
