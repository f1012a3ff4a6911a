//! TW0990: a read with `or` that is always outside its tensor.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A warning: the kernel is right, and the read gives nothing but what stands after its `or`, for every size and
    /// every element. Indices start at 0 and do not count from the end.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel LastColumn(x: f32[M, N]) -> (y: f32[M]) {
    ///     y[m] = x[m, -1] or 0.0;
    ///     schedule y { split m by 128 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel LastColumn(x: f32[M, N]) -> (y: f32[M]) {
    ///     y[m] = x[m, N - 1];
    ///     schedule y { split m by 128 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW0990 "always-outside" Warning "a read with `or` that is always outside its tensor"
}

/// TW0990: a guarded read that is always outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlwaysOutside {
    /// The read as written, without its `or`: `x[i, -1]`.
    pub read: String,
    /// The tensor.
    pub tensor: String,
    /// Which dimension, from 0.
    pub dimension: usize,
    /// The index there.
    pub index: String,
    /// First index inside and first one outside.
    pub extent: (String, String),
    /// Whether the index is below the first one inside.
    pub below: bool,
    /// Whether the tensor is an intermediate, which ends with its domain.
    pub is_intermediate: bool,
    /// Where the dimension gets its extent.
    pub declared: Span,
    /// The read.
    pub span: Span,
}

impl IntoDiagnostic for AlwaysOutside {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { read, tensor, dimension, index, extent: (first, end), below, .. } = self;
        let title = format!("`{read}` is always outside `{tensor}`: it gives nothing but what stands after `or`");
        let side = if below { "below" } else { "beyond" };
        let what = if self.is_intermediate { "it ends with this domain" } else { "its shape" };
        let diagnostic = Diagnostic::new(Code::TW0990, self.span, title)
            .label(self.declared, what)
            .note(format!("dimension {dimension} is [{first}, {end}), and `{index}` is {side} it for every size"));
        if below && index.starts_with('-') {
            diagnostic.note(format!("indices do not count from the end: the last one is `{end} - 1`"))
        } else {
            diagnostic
        }
    }
}
