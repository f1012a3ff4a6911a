//! TW0108: two equations for one tensor.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An equation is a definition, not an assignment: it says what every element is, once.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Clamp(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = max(x[i], 0.0);
    ///     y[i] = min(x[i], 1.0);
    /// }
    /// ```
    ///
    /// The message stands at the second equation and shows the first one.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Clamp(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = min(max(x[i], 0.0), 1.0);
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Give the first one another name and read it in the second: `t[i] = max(x[i], 0.0); y[i] = min(t[i], 1.0);`.
    /// - Join both by a condition: `if i < 8 { … } else { … }`.
    TW0108 "defined-twice" Error "two equations for one tensor"
}

/// TW0108: two equations for one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinedTwice {
    /// The tensor.
    pub name: String,
    /// The first equation's target.
    pub first: Span,
    /// The second one's.
    pub second: Span,
}

impl IntoDiagnostic for DefinedTwice {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0108, self.second, format!("`{}` is defined twice", self.name))
            .label(self.first, format!("`{}` is defined here", self.name))
            .note("an equation is a definition, not an assignment: it says what every element is, once")
            .help("give the second one another name, or join both with `if … { … } else { … }`")
    }
}
