//! TW0903: an integer divisor that may be 0.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::state;
use crate::source::Span;
use super::Witness;

row! {
    /// `/` and `%` of integers have no value for the divisor 0. That the divisor is not 0 has to follow from the
    /// conditions around it, or from the facts.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Divide(a: i32[N], b: i32[N]) -> (y: i32[N]) {
    ///     y[i] = a[i] / b[i];
    /// }
    /// ```
    ///
    /// The message names the divisor, and the smallest case in which it is 0 if the sizes decide it.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Divide(a: i32[N], b: i32[N]) -> (y: i32[N]) {
    ///     y[i] = if b[i] != 0 { a[i] / b[i] } else { 0 };
    /// }
    /// ```
    TW0903 "zero-divisor" Error "an integer divisor that may be 0"
}

/// TW0903: an integer divisor that may be 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZeroDivisor {
    /// The divisor as written.
    pub divisor: String,
    /// The quotient or remainder as written.
    pub quotient: String,
    /// Its tokens.
    pub span: Span,
    /// The smallest case in which it is 0.
    pub witness: Option<Witness>,
    /// Whether it depends on data, so that only a condition can rule 0 out.
    pub depends_on_data: bool,
    /// Whether what is divided, or what divides, has a reduction: inside a condition no schedule could name its axes.
    pub has_reduction: bool,
    /// Whether it is an element or an argument itself, which may be anything.
    pub is_data: bool,
    /// Facts that rule it out, proved to.
    pub facts: Vec<String>,
}

impl IntoDiagnostic for ZeroDivisor {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { divisor, quotient, span, witness, depends_on_data, has_reduction, is_data, facts } = self;
        let title = if witness.is_some() || is_data {
            format!("the divisor `{divisor}` may be 0")
        } else {
            format!("the divisor `{divisor}` cannot be shown not to be 0")
        };
        let mut diagnostic = Diagnostic::new(Code::TW0903, span, title);
        if let Some(witness) = witness {
            diagnostic = diagnostic.counterexample(witness.sentence("divides by 0"));
        } else if depends_on_data {
            diagnostic = diagnostic.note("it depends on data, and no condition around it excludes 0");
        }
        if !facts.is_empty() {
            diagnostic = state(diagnostic, facts);
        }
        let guarded = format!("if {divisor} != 0 {{ {quotient} }} else {{ 0 }}");
        if has_reduction {
            let text = "give the reduction an equation of its own, and say what the result is then";
            return diagnostic.help(format!("{text}, such as `if {divisor} != 0 {{ … }} else {{ 0 }}`"));
        }
        let text = format!("say what the result is then: `{guarded}`");
        diagnostic.replace(span, guarded, text)
    }
}
