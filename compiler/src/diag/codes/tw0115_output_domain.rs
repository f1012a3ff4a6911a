//! TW0115: a written domain that is not the output's shape.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An output is defined at every element of its shape and nowhere else, so a written domain has to be the shape.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Inner(x: f32[N]) -> (y: f32[N]) {
    ///     y[i in 1..N] = x[i];
    /// }
    /// ```
    ///
    /// The message shows the shape and the range that is written.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Inner(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = if i >= 1 { x[i] } else { 0.0 };
    /// }
    /// ```
    TW0115 "output-domain" Error "a written domain that is not the output's shape"
}

/// TW0115: an output's written domain is not its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputDomain {
    /// The axis.
    pub axis: String,
    /// The output.
    pub output: String,
    /// The range written, or given by another output of the same equation.
    pub written: String,
    /// The range that the shape gives.
    pub shape: String,
    /// The declaration of the output.
    pub declared: Span,
    /// The axis.
    pub span: Span,
}

impl IntoDiagnostic for OutputDomain {
    fn into_diagnostic(self) -> Diagnostic {
        let OutputDomain { axis, output, written, shape, declared, span } = self;
        Diagnostic::new(Code::TW0115, span, format!("`{axis}` ranges over {written}, but `{output}` has {shape} there"))
            .label(declared, format!("the shape of `{output}`"))
            .note("an output is defined at every element of its shape, and nowhere else")
            .help(format!("leave the range out, or write `{axis} in {shape}`"))
    }
}
