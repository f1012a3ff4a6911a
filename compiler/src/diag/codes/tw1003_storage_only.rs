//! TW1003: arithmetic on a type for storage.

use tilewright_kernel::ElementType;

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `tf32`, `e4m3` and `e5m2` are stored, converted by `as`, and multiplied by tensor cores, and have no other
    /// arithmetic: convert to `f32`, compute, and convert back, so that each rounding is seen.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Add(x: tf32[N], z: tf32[N]) -> (y: f32[N]) {
    ///     y[i] = (x[i] + z[i]) as f32;
    /// }
    /// ```
    ///
    /// The message names the type and the operation.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Add(x: tf32[N], z: tf32[N]) -> (y: f32[N]) {
    ///     y[i] = (x[i] as f32) + (z[i] as f32);
    /// }
    /// ```
    TW1003 "storage-only" Error "arithmetic on a type for storage"
}

/// TW1003: arithmetic on a type for storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageOnly {
    /// The operation.
    pub op: String,
    /// The type.
    pub element: ElementType,
    /// The operation's tokens.
    pub span: Span,
}

impl IntoDiagnostic for StorageOnly {
    fn into_diagnostic(self) -> Diagnostic {
        let (op, element) = (self.op, self.element);
        Diagnostic::new(Code::TW1003, self.span, format!("`{element}` has no arithmetic, and this is `{op}`"))
            .note(format!("`{element}` is a type for storage and for the operands of `dot`"))
            .help("convert to `f32` first: `x[i] as f32`")
    }
}
