//! TW0991: an `or` that is never taken.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A warning: the kernel is right, and the read is inside its tensor for every size and every element. Without the
    /// `or` it is proved to stay so, and may be read as a vector.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * (x[i] or 0.0);
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - If the schedule makes iterations past the end, nothing has to be said about them: predicates exclude them.
    /// - Keep it and write `#[allow(TW0991)]` before the kernel.
    TW0991 "needless-or" Warning "an `or` that is never taken"
}

/// TW0991: an `or` that is never taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedlessOr {
    /// The read as written, without its `or`.
    pub read: String,
    /// The tensor.
    pub tensor: String,
    /// The read.
    pub span: Span,
}

impl IntoDiagnostic for NeedlessOr {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { read, tensor, span } = self;
        Diagnostic::new(Code::TW0991, span, format!("`{read}` is never outside `{tensor}`: its `or` is never taken"))
            .note("a read with `or` is not read as a vector")
            .replace(span, read.clone(), format!("write `{read}`"))
    }
}
