//! TW0202: a factor or count that is not a literal in range.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Factors of `split`, counts of `unroll`, amounts of `resize` and the threads of a block are literals in the range
    /// that the message names, or sizes that a fact fixes (`where K == 4096`).
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 0 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// The message names the range and the value.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW0202 "bad-factor" Error "a factor or count that is not a literal in range"
}

/// TW0202: a factor or count that no op accepts.
#[derive(Clone, Debug)]
pub struct BadFactor {
    /// What it is: `a split factor`.
    pub what: &'static str,
    /// Its value, if it is a literal.
    pub value: Option<i128>,
    /// Least value allowed.
    pub least: i128,
    /// Greatest value allowed.
    pub most: i128,
    /// Where it is written.
    pub span: Span,
}

impl IntoDiagnostic for BadFactor {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { what, value, least, most, span } = self;
        let title = match value {
            Some(value) => format!("{what} is between {least} and {most}, and this is {value}"),
            None => format!("{what} is a literal, or a size that a fact fixes"),
        };
        let diagnostic = Diagnostic::new(Code::TW0202, span, title);
        match value {
            Some(_) => diagnostic,
            None => diagnostic.help("write a number, or fix the size with a fact such as `where K == 4096`"),
        }
    }
}
