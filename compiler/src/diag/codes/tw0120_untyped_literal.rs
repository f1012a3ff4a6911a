//! TW0120: a literal whose type nothing fixes.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A literal takes its type from the other operand or from the output that it becomes. Where neither exists it
    /// needs a suffix.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Below(x: i32[N]) -> (y: bool[N]) {
    ///     y[i] = 1.0 < 2.0;
    /// }
    /// ```
    ///
    /// The message shows the literal and two ways to give it a type.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Below(x: f32[N]) -> (y: bool[N]) {
    ///     y[i] = 1.0 < x[i];
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Write the type: `1.0f32`.
    TW0120 "untyped-literal" Error "a literal whose type nothing fixes"
}

/// TW0120: a literal whose type nothing fixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntypedLiteral {
    /// An integer; else a float.
    pub is_integer: bool,
    /// As it is written.
    pub text: String,
    /// The literal.
    pub span: Span,
}

impl IntoDiagnostic for UntypedLiteral {
    fn into_diagnostic(self) -> Diagnostic {
        let (text, element) = (self.text, if self.is_integer { "i32" } else { "f32" });
        // `inf` and `nan` are words, which take no suffix.
        let example = if text.ends_with(char::is_alphabetic) {
            format!("`{text} as {element}`")
        } else {
            format!("`{text}{element}` or `{text} as {element}`")
        };
        Diagnostic::new(Code::TW0120, self.span, "nothing here says which type this literal has")
            .help(format!("give it one: {example}"))
    }
}
