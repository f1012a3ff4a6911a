//! TW0122: a literal that its type does not have.

use tilewright_kernel::ElementType;

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A literal has to be a value of the type that its place needs. An integer literal is no float: write `2.0`.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2 * x[i];
    /// }
    /// ```
    ///
    /// The message names the type and, for integers, its range.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    /// }
    /// ```
    TW0122 "wrong-literal" Error "a literal that its type does not have"
}

/// What is wrong with a literal for its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralFault {
    /// Outside the type's range.
    OutOfRange {
        /// The least value.
        least: i128,
        /// The greatest value.
        greatest: i128,
    },
    /// Rounds to infinity.
    Overflow,
    /// An integer literal for a floating type.
    IntegerForFloat,
    /// A literal of another kind.
    NotThatKind,
    /// A type for storage only that does not have this value.
    NotExact,
    /// The type has no infinity.
    NoInfinity,
}

/// TW0122: a literal that its type does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongLiteral {
    /// The literal.
    pub text: String,
    /// The type that its place needs.
    pub element: ElementType,
    /// What is wrong.
    pub problem: LiteralFault,
    /// The literal's tokens.
    pub span: Span,
}

impl IntoDiagnostic for WrongLiteral {
    fn into_diagnostic(self) -> Diagnostic {
        let WrongLiteral { text, element, problem, span } = self;
        let new = |title: String| Diagnostic::new(Code::TW0122, span, title);
        match problem {
            LiteralFault::OutOfRange { least, greatest } => {
                let diagnostic =
                    new(format!("{text} is no `{element}`")).note(format!("`{element}` holds {least} to {greatest}"));
                match wider(&text) {
                    Some(wider) => diagnostic
                        .help(format!("`{wider}` has it: compute with `… as {wider}`, and convert the result")),
                    None => diagnostic,
                }
            }
            LiteralFault::Overflow => new(format!("{text} is larger than every finite `{element}`")),
            LiteralFault::IntegerForFloat => new(format!("{text} is an integer, and its place needs `{element}`"))
                .replace(span, format!("{text}.0"), format!("write `{text}.0`")),
            LiteralFault::NotThatKind => new(format!("{text} is no `{element}`, which its place needs")),
            LiteralFault::NotExact => new(format!("`{element}` does not have the value {text}"))
                .note(format!("`{element}` is a type for storage: its literals must be exact"))
                .help(format!("convert it, which rounds: `{text}f32 as {element}`")),
            LiteralFault::NoInfinity => new(format!("`{element}` has no infinity")),
        }
    }
}

/// The narrowest of the types that sums and indices mostly have, if one has the value of a literal.
fn wider(text: &str) -> Option<ElementType> {
    let value: i128 = text.replace('_', "").parse().ok()?;
    match value {
        _ if i32::try_from(value).is_ok() => Some(ElementType::I32),
        _ if u32::try_from(value).is_ok() => Some(ElementType::U32),
        _ if i64::try_from(value).is_ok() => Some(ElementType::I64),
        _ => None,
    }
}
