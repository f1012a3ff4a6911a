//! From token ids back to files and lines.

use tilewright_theory::span::{Span, SpanId};

/// The place of one token in its file. Lines and columns count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The path as the compiler shows it.
    pub file: String,
    /// Line of the first character.
    pub line: usize,
    /// Column of the first character.
    pub column: usize,
    /// Line of the last character.
    pub end_line: usize,
    /// Column just after the last character.
    pub end_column: usize,
}

/// Resolves token ids: what diagnostics need to show the source.
///
/// In editors positions are often not available; every user of this trait must get by with `None`.
pub trait SourceMap {
    /// The number of tokens: ids are smaller than it.
    fn token_count(&self) -> usize;
    /// The place of a token; `None` if it is unknown or the id does not exist.
    fn position(&self, id: SpanId) -> Option<Position>;
    /// The text of one token (a delimiter is its bracket); empty if the id does not exist.
    fn token_text(&self, id: SpanId) -> &str;
    /// The text of a range of tokens on one line, spaced as the pretty printer spaces them.
    fn span_text(&self, span: Span) -> String;
}
