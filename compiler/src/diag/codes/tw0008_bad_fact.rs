//! TW0008: a fact that is not one comparison.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::shorten;
use crate::source::Span;

row! {
    /// Each fact of `where` is one comparison of two expressions over sizes and strides: `N % 8 == 0`, `K <= 4096`,
    /// `M == 2 * N`. Facts are separated by commas; all of them hold. The compiler uses them in its proofs, and a
    /// launch checks them.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Copy(x: f32[N]) -> (y: f32[N])
    /// where N % 8 == 0 && N <= 4096
    /// {
    ///     y[i] = x[i];
    /// }
    /// ```
    ///
    /// The message shows the fact that is not one comparison.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Copy(x: f32[N]) -> (y: f32[N])
    /// where N % 8 == 0, N <= 4096
    /// {
    ///     y[i] = x[i];
    /// }
    /// ```
    TW0008 "bad-fact" Error "a fact that is not one comparison"
}

/// TW0008: a fact that is not one comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFact {
    /// The fact.
    pub span: Span,
    /// Its text.
    pub text: String,
    /// What stands where the comparison should, and is none: `=`, `=>`.
    pub operator: Option<(&'static str, Span)>,
}

impl IntoDiagnostic for BadFact {
    fn into_diagnostic(self) -> Diagnostic {
        let BadFact { span, text, operator } = self;
        if let Some((operator, place)) = operator {
            let meant = if operator == "=" { "==" } else { ">=" };
            return Diagnostic::new(Code::TW0008, place, format!("`{operator}` compares nothing"))
                .note("a fact is a comparison: `==`, `!=`, `<`, `<=`, `>` or `>=`")
                .replace(place, meant, format!("write `{meant}`"));
        }
        Diagnostic::new(Code::TW0008, span, format!("the fact `{}` is not one comparison", shorten(&text)))
            .note("a fact compares two expressions over sizes: `N % 8 == 0`, `K <= 4096`")
            .help("separate several facts by commas")
    }
}
