//! TW09: bounds.

use super::{Code, Diagnostic, IntoDiagnostic};
use crate::syntax::Span;

/// TW0901: a read outside its tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// The tensor.
    pub tensor: String,
    /// The read.
    pub span: Span,
    /// Which of its axes, from 0.
    pub axis: usize,
    /// The index there, in the user's names: `W`.
    pub index: String,
    /// The size of the axis: `W`.
    pub size: String,
    /// The smallest failing case: `W = 3, i = 0, j = 0: x[0, 3]`.
    pub witness: Option<String>,
    /// The read as written: `x[i, j + 3]`.
    pub read: String,
    /// What a read outside gives when the author does not care: `0.0`, `0`.
    pub zero: &'static str,
}

impl IntoDiagnostic for OutOfBounds {
    fn into_diagnostic(self) -> Diagnostic {
        let OutOfBounds { tensor, span, axis, index, size, witness, read, zero } = self;
        let title = format!("`{tensor}` is read at {index} on axis {axis}, outside [0, {size})");
        let mut diagnostic = Diagnostic::new(Code::TW0901, span, title);
        diagnostic.counterexample = witness;
        diagnostic.replace(span, format!("{read} or {zero}"), format!("say what is outside: `{read} or {zero}`"))
    }
}
