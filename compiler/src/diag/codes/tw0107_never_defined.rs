//! TW0107: an output without an equation.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Each output has exactly one equation.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Split(x: f32[N]) -> (up: f32[N], down: f32[N]) {
    ///     up[i] = max(x[i], 0.0);
    /// }
    /// ```
    ///
    /// The message names the output and the equation to add.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Split(x: f32[N]) -> (up: f32[N], down: f32[N]) {
    ///     up[i] = max(x[i], 0.0);
    ///     down[i] = min(x[i], 0.0);
    /// }
    /// ```
    TW0107 "never-defined" Error "an output without an equation"
}

/// TW0107: an output without an equation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeverDefined {
    /// The output.
    pub name: String,
    /// Its rank.
    pub rank: usize,
    /// Its declaration.
    pub span: Span,
}

impl IntoDiagnostic for NeverDefined {
    fn into_diagnostic(self) -> Diagnostic {
        let axes = ["i", "j", "k", "l"].get(..self.rank).map_or("…".to_owned(), |axes| axes.join(", "));
        Diagnostic::new(Code::TW0107, self.span, format!("no equation defines the output `{}`", self.name))
            .help(format!("add `{}[{axes}] = …;`", self.name))
    }
}
