//! TW0006: a word of the language or of Rust used as a name.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `true`, `false`, `inf`, `nan`, `if`, `else`, `as`, `in`, `or` and `_` are not names. A kernel and its parameters
    /// become a Rust struct and its fields, so they also avoid Rust's keywords.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Filter(x: f32[N]) -> (match: bool[N]) {
    ///     match[i] = x[i] > 0.0;
    /// }
    /// ```
    ///
    /// The message says who reserves the word.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Filter(x: f32[N]) -> (matches: bool[N]) {
    ///     matches[i] = x[i] > 0.0;
    /// }
    /// ```
    TW0006 "reserved-name" Error "a word of the language or of Rust used as a name"
}

/// TW0006: a reserved word used as a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedName {
    /// The word.
    pub word: String,
    /// Its token.
    pub span: Span,
    /// Whether Rust reserves it (for a field or a struct), rather than the language.
    pub by_rust: bool,
}

impl IntoDiagnostic for ReservedName {
    fn into_diagnostic(self) -> Diagnostic {
        let ReservedName { word, span, by_rust } = self;
        let diagnostic = Diagnostic::new(Code::TW0006, span, format!("`{word}` cannot be a name"));
        if by_rust {
            diagnostic
                .note("kernels and parameters become a Rust struct and its fields, and Rust reserves this word")
                .help(format!("call it `{word}_`, everywhere in the kernel"))
        } else {
            diagnostic.note(format!("`{word}` has a meaning of its own in expressions"))
        }
    }
}
