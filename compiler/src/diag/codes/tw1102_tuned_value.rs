//! TW1102: a constant of `tune` outside of the schedule.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A constant of `tune` stands for a number of the schedule. What a kernel computes, which sizes it takes and which
    /// facts a launch checks do not depend on how it is scheduled, so that no choice of constants changes them.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = T as f32 * x[i];
    ///     tune T in [128, 256];
    ///     schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     tune T in [128, 256];
    ///     schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW1102 "tuned-value" Error "a constant of `tune` outside of the schedule"
}

/// TW1102: a use that is not in the schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunedValue {
    /// The constant.
    pub name: String,
    /// Where it stands: `an equation`.
    pub place: &'static str,
    /// The use.
    pub span: Span,
    /// Its candidates.
    pub tune: Span,
}

impl IntoDiagnostic for TunedValue {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { name, place, span, tune } = self;
        let is_value = place == "an equation";
        Diagnostic::new(Code::TW1102, span, format!("`{name}` is a number of the schedule, and this is {place}"))
            .label(tune, "it has candidates, one of which is chosen")
            .note("what a kernel computes and what it takes do not depend on its schedule")
            .help(if is_value { "write a number here, or a scalar parameter" } else { "write a number here" })
    }
}
