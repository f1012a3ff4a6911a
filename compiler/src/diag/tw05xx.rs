//! TW05: memory and resource budgets.

use super::{Code, Diagnostic, IntoDiagnostic};
use crate::syntax::Span;

/// TW0501: more shared memory than the target has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMemoryExceeded {
    /// The largest stage.
    pub span: Span,
    /// Bytes needed by one block.
    pub needed: u64,
    /// Bytes the target has.
    pub limit: u64,
    /// The target: `sm_90a`.
    pub target: String,
    /// The map: each buffer with its first byte and its bytes.
    pub map: Vec<(String, u64, u64)>,
    /// What fits: `ring(4)`.
    pub fits: Option<String>,
}

impl IntoDiagnostic for SharedMemoryExceeded {
    fn into_diagnostic(self) -> Diagnostic {
        let SharedMemoryExceeded { span, needed, limit, target, map, fits } = self;
        let title = format!("this kernel needs {needed} bytes of shared memory per block; {target} has {limit}");
        let mut diagnostic = Diagnostic::new(Code::TW0501, span, title);
        for (buffer, start, bytes) in map {
            diagnostic = diagnostic.note(format!("`{buffer}` takes {bytes} bytes at {start}"));
        }
        match fits {
            Some(fits) => diagnostic.help(format!("`{fits}` fits")),
            None => diagnostic,
        }
    }
}
