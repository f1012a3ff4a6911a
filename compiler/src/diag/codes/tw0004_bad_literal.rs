//! TW0004: a literal that is not a number of the language.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::suggest::closest;
use crate::diag::words::shorten;
use crate::source::Span;

row! {
    /// A literal is an integer of at most 64 bits or a decimal float, with an optional element type as suffix: `3`,
    /// `0x1F`, `0.5`, `0.5bf16`, `1u32`.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Shift(x: i32[N]) -> (y: i32[N]) {
    ///     y[i] = x[i] + 0.5i32;
    /// }
    /// ```
    ///
    /// The message says what is wrong with the literal: too large, a suffix that is no element type, a fraction of an
    /// integer type, no number at all.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Shift(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = x[i] + 0.5f32;
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Leave the suffix out: a literal takes its type from context.
    TW0004 "bad-literal" Error "a literal that is not a number of the language"
}

/// What is wrong with a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiteralProblem {
    /// A string, a character or bytes.
    NotANumber,
    /// Larger than 64 bits.
    TooLarge,
    /// Not a type after the digits.
    Suffix(String),
    /// A binary, octal or hexadecimal literal of a floating type, or digits that are not of its base.
    Digits,
    /// A fraction or exponent with the suffix of an integer type.
    Fraction(&'static str),
    /// Something else where a string belongs.
    NotAString,
}

/// TW0004: a literal that is not a number of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLiteral {
    /// The literal.
    pub text: String,
    /// What is wrong with it.
    pub problem: LiteralProblem,
    /// Its token.
    pub span: Span,
}

impl IntoDiagnostic for BadLiteral {
    fn into_diagnostic(self) -> Diagnostic {
        let text = shorten(&self.text);
        let new = |title: String| Diagnostic::new(Code::TW0004, self.span, title);
        match self.problem {
            LiteralProblem::NotANumber => new(format!("{text} is not a number")),
            LiteralProblem::TooLarge => {
                new(format!("`{text}` does not fit into 64 bits")).note("the largest integer is 18446744073709551615")
            }
            LiteralProblem::Suffix(suffix) => {
                let known = tilewright_kernel::ElementType::NAMES;
                let diagnostic = new(format!("`{}` is not an element type", shorten(&suffix)));
                match closest(&suffix, known.iter().copied()) {
                    Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")),
                    None => diagnostic.help("leave the suffix out: a literal takes its type from context"),
                }
            }
            LiteralProblem::Digits => new(format!("`{text}` has digits that its base does not have"))
                .help("a floating literal is decimal: `0.5f32`; `0.0bf16` or `0 as bf16` for zero"),
            LiteralProblem::Fraction(ty) => new(format!("`{text}` has a fraction, but {ty} is an integer type")),
            LiteralProblem::NotAString => new(format!("expected a string, found `{text}`")),
        }
    }
}
