//! TW1104: no combination of candidates gives a kernel.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Each combination of candidates of `tune` was refused, for reasons that differ. The message has the code and the
    /// first sentence of each reason. A reason that all of them share is reported as for a kernel without `tune`.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     tune T in [0, 2048];
    ///     schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     tune T in [256, 2048];
    ///     schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW1104 "no-combination" Error "no combination of candidates gives a kernel"
}

/// TW1104: what each combination was refused for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoCombination {
    /// The constants.
    pub names: Vec<String>,
    /// Each combination, `BM = 64, BN = 8`, with its first error.
    pub refused: Vec<(String, Code, String)>,
    /// The statement.
    pub span: Span,
}

/// A combination a line, with the code and the first sentence of its reason.
pub(super) fn reasons(refused: &[(String, Code, String)]) -> String {
    let line = |(values, code, title): &(String, Code, String)| format!("{values}: [{code}] {title}");
    refused.iter().map(line).collect::<Vec<_>>().join("\n")
}

impl IntoDiagnostic for NoCombination {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { names, refused, span } = self;
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        Diagnostic::new(Code::TW1104, span, format!("no candidates of {} give a kernel", names.join(", ")))
            .note(format!("each combination is refused:\n{}", reasons(&refused)))
            .help("to see a reason in full, write the numbers of its combination in place of the names")
    }
}
