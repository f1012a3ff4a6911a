//! TW0311: a staged copy that its reader does not read.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A staged copy is a copy of a tensor for the stage that `at` names. It replaces the reads of that stage.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Two(x: f32[N], w: f32[N]) -> (y: f32[N], z: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     z[i] = 2.0 * w[i];
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    ///     schedule z { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    ///     stage xs[i] = x in shared at z.b via tma { box i by 256 -> c, e; }
    /// }
    /// ```
    ///
    /// The message names the stage and the tensor.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Two(x: f32[N], w: f32[N]) -> (y: f32[N], z: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     z[i] = 2.0 * w[i];
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    ///     schedule z { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    ///     stage xs[i] = x in shared at y.b via tma { box i by 256 -> c, e; }
    /// }
    /// ```
    TW0311 "staged-for-nobody" Error "a staged copy that its reader does not read"
}

/// TW0311: a staged copy of something that its stage does not access.
#[derive(Clone, Debug)]
pub struct StagedForNobody {
    /// The copy.
    pub copy: String,
    /// The tensor.
    pub tensor: String,
    /// The stage.
    pub stage: String,
    /// Whether the tensor is an output.
    pub written: bool,
    /// The copy's source.
    pub span: Span,
}

impl IntoDiagnostic for StagedForNobody {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, tensor, stage, written, span } = self;
        let [not, does] = if written { ["write", "computes"] } else { ["read", "reads"] };
        Diagnostic::new(
            Code::TW0311,
            span,
            format!("`{copy}` stages `{tensor}` for `{stage}`, which does not {not} it"),
        )
        .help(format!("remove the copy, or attach it to a stage that {does} the tensor"))
    }
}
