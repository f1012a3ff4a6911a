//! TW03: the tensor memory accelerator.

use super::{Code, Diagnostic, IntoDiagnostic};
use crate::syntax::Span;

/// TW0301: a strided tile whose holes cannot be made zero (the fundamental theorem of TMA correctness).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StridedHole {
    /// The op that sets the element stride.
    pub span: Span,
    /// The element stride.
    pub stride: u64,
    /// The box.
    pub box_size: u64,
    /// Who demands zeros, and why: one sentence.
    pub demand: String,
    /// The place of that demand.
    pub demand_span: Option<Span>,
    /// The smallest failing case, replayable.
    pub witness: String,
    /// Complete edits, each in words with its code between backticks.
    pub edits: Vec<String>,
}

impl IntoDiagnostic for StridedHole {
    fn into_diagnostic(self) -> Diagnostic {
        let title = format!(
            "a strided tile cannot be zero-filled: element stride {} does not divide the box of {}",
            self.stride, self.box_size
        );
        let mut diagnostic =
            Diagnostic::new(Code::TW0301, self.span, title).note(self.demand).counterexample(self.witness);
        if let Some(span) = self.demand_span {
            diagnostic = diagnostic.label(span, "this needs the holes to be zero");
        }
        self.edits.into_iter().fold(diagnostic, Diagnostic::help)
    }
}
