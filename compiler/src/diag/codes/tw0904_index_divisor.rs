//! TW0904: the divisor of an index that may be 0 or negative.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::state;
use crate::source::Span;

row! {
    /// `/` and `%` of indices round down and are defined for positive divisors. A divisor is made of sizes, so a fact
    /// can make it positive.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Coarse(x: f32[N]) -> (y: f32[N])
    /// where N >= 2
    /// {
    ///     y[i] = x[i / (N - 2)] or 0.0;
    /// }
    /// ```
    ///
    /// The counterexample gives the smallest sizes for which the divisor is not positive.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Coarse(x: f32[N]) -> (y: f32[N])
    /// where N >= 3
    /// {
    ///     y[i] = x[i / (N - 2)] or 0.0;
    /// }
    /// ```
    TW0904 "index-divisor" Error "the divisor of an index that may be 0 or negative"
}

/// TW0904: the divisor of an index that may be 0 or negative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDivisor {
    /// The divisor as written.
    pub divisor: String,
    /// The quotient or remainder.
    pub span: Span,
    /// The smallest sizes for which it is not positive, and its value there.
    pub witness: Option<(Vec<(String, i64)>, i128)>,
    /// The fact that makes it positive.
    pub facts: Vec<String>,
}

impl IntoDiagnostic for IndexDivisor {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { divisor, span, witness, facts } = self;
        let known = if witness.is_some() { "is not always positive" } else { "cannot be shown to be positive" };
        let title = format!("an index is divided by `{divisor}`, which {known}");
        let mut diagnostic = Diagnostic::new(Code::TW0904, span, title);
        if let Some((sizes, value)) = witness {
            let sizes: Vec<String> = sizes.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            diagnostic = diagnostic.counterexample(format!("{}: `{divisor}` is {value}", sizes.join(", ")));
        }
        if facts.is_empty() { diagnostic } else { state(diagnostic, facts) }
    }
}
