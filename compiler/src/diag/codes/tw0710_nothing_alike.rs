//! TW0710: a `like` without a counterpart.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `like y` repeats the ops of `y` on the axes that correspond: those that index the same dimension of a tensor.
    /// `y` is a stage that reads this one, or another one with loops of its own that is computed later.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Shift(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     m[i] = max(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - m[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule m in registers at y.i { like x; reduce t; }
    /// }
    /// ```
    ///
    /// The message lists the stages that can be a model, or says that no axis corresponds.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Shift(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     m[i] = max(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - m[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule m in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    TW0710 "nothing-alike" Error "a `like` without a counterpart"
}

/// TW0710: a model that has nothing in common, or is none.
#[derive(Clone, Debug)]
pub struct NothingAlike {
    /// The stage.
    pub stage: String,
    /// Its model.
    pub other: String,
    /// The stages that can be models; empty if it is one without a common axis.
    pub known: Vec<String>,
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for NothingAlike {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, other, known, span } = self;
        if known.is_empty() {
            return Diagnostic::new(
                Code::TW0710,
                span,
                format!("no axis of `{stage}` corresponds to one of `{other}`"),
            )
            .note("axes correspond that index the same dimension of a tensor")
            .help("write the ops out");
        }
        Diagnostic::new(Code::TW0710, span, format!("`{other}` cannot be a model for `{stage}`"))
            .note("a model is a stage with loops of its own that is computed later: the reader, or another reader's model")
            .help(format!("`like {}`", known.join("` or `like ")))
    }
}
