//! TW1190: candidates that give no kernel were skipped.

use super::tw1104_no_combination::reasons;
use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A `tune` without a record takes the first combination of candidates that gives a kernel, in the order in which
    /// they are written; the last constant changes fastest. The combinations before it were compiled as well, each time
    /// that the crate is, and refused.
    ///
    /// A warning: the kernel is right, and is the one that the message names.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     tune T in [2048, 256];
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
    ///
    /// ## Other ways out
    ///
    /// - Let `tilewright tune FILE --write` choose: with a record, only what it names is compiled.
    /// - Leave the candidates out that give no kernel.
    TW1190 "first-refused" Warning "candidates that give no kernel were skipped"
}

/// TW1190: what was skipped, and what was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRefused {
    /// The combinations before, `BM = 64, BN = 8`, each with its first error.
    pub refused: Vec<(String, Code, String)>,
    /// The one that is taken.
    pub taken: String,
    /// The statement.
    pub span: Span,
}

impl IntoDiagnostic for FirstRefused {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { refused, taken, span } = self;
        Diagnostic::new(Code::TW1190, span, format!("{taken} is taken, after candidates that give no kernel"))
            .note(format!("refused before it:\n{}", reasons(&refused)))
            .help("choose: `tilewright tune FILE --write` ranks what is legal, and writes down what is best")
    }
}
