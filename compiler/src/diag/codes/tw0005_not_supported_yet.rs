//! TW0005: a construct that is planned and not built yet.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// The language is larger than what this version of the compiler builds. What is refused here is planned and keeps
    /// its meaning.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Shift(x: f32[M, 4096]) -> (y: f32[M, 4096]) {
    ///     m[i] = max(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - m[i];
    ///     schedule y {
    ///         split j into 2 -> c, jc; split jc by 128 -> r, t; bind i: grid; bind c: cta; bind t: thread;
    ///     }
    ///     schedule m in shared per cluster at y.i { like y; reduce t; reduce c by cluster; }
    /// }
    /// ```
    ///
    /// The message names the construct and what works today.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Shift(x: f32[M, 4096]) -> (y: f32[M, 4096]) {
    ///     m[i] = max(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - m[i];
    ///     schedule y {
    ///         split j into 2 -> c, jc; split jc by 128 -> r, t; bind i: grid; bind c: cta; bind t: thread;
    ///     }
    ///     schedule m in registers per cluster at y.i { like y; reduce t; reduce c by cluster; }
    /// }
    /// ```
    TW0005 "not-supported-yet" Error "a construct that is planned and not built yet"
}

/// TW0005: planned and not built yet. Reported by the room that would have to build it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotSupportedYet {
    /// The construct, as it is written in the language: `ring`, `bind … : grid`.
    pub construct: String,
    /// Where it is used.
    pub span: Span,
    /// What works today, if something does.
    pub instead: Option<String>,
}

impl IntoDiagnostic for NotSupportedYet {
    fn into_diagnostic(self) -> Diagnostic {
        let diagnostic = Diagnostic::new(Code::TW0005, self.span, format!("`{}` is not supported yet", self.construct))
            .note("it is part of the language, and this version of the compiler cannot build it");
        match self.instead {
            Some(instead) => diagnostic.help(instead),
            None => diagnostic,
        }
    }
}
