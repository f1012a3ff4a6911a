//! TW0129: a second statement on the same thing.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// How an equation is computed is said in one place, and so is how the kernel is launched.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 256 -> b, t; }
    ///     schedule y { bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// The message stands at the second statement and shows the first one.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW0129 "repeated-statement" Error "a second statement on the same thing"
}

/// TW0129: a statement that may stand once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedStage {
    /// The keyword of the second statement.
    pub statement: &'static str,
    /// What it is about, if not the kernel.
    pub name: Option<String>,
    /// The first one.
    pub first: Span,
    /// The second one.
    pub second: Span,
}

impl IntoDiagnostic for RepeatedStage {
    fn into_diagnostic(self) -> Diagnostic {
        let title = match &self.name {
            Some(name) => format!("there is a second statement on how `{name}` is computed"),
            None => format!("a second `{}`", self.statement),
        };
        Diagnostic::new(Code::TW0129, self.second, title)
            .label(self.first, "the first one is here")
            .help("join them into one")
    }
}
