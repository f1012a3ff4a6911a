//! TW0151: two axes of a stage with one name.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Every axis of a stage has a name of its own, also after an op replaced it: so `i` means one thing in a whole
    /// schedule.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 256 -> i, t;
    ///         bind i: grid;
    ///         bind t: thread;
    ///     }
    /// }
    /// ```
    ///
    /// The message shows where the name was introduced first.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 256 -> io, t;
    ///         bind io: grid;
    ///         bind t: thread;
    ///     }
    /// }
    /// ```
    TW0151 "axis-named-twice" Error "two axes of a stage with one name"
}

/// TW0151: a new axis has the name of another one of its stage.
#[derive(Clone, Debug)]
pub struct NameTaken {
    /// The name.
    pub axis: String,
    /// Where it is introduced again.
    pub span: Span,
    /// Where it was introduced first.
    pub first: Span,
    /// The stage.
    pub stage: String,
}

impl IntoDiagnostic for NameTaken {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, span, first, stage } = self;
        Diagnostic::new(Code::TW0151, span, format!("`{axis}` is named twice in the schedule of `{stage}`"))
            .label(first, format!("`{axis}` is named here first"))
            .note("each axis of a stage has a name of its own, also after an op replaced it")
            .help(format!("choose another name, such as `{axis}2`"))
    }
}
