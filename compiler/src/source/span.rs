//! Where a piece of the program was written: token ids, ranges of them, and the map back to files and lines.
//!
//! Everything after the token buffer holds only these ids. They are `Send`, comparable and printable, which
//! the spans of a compiler are not, and they order as the source does.

/// The number of one token of a macro invocation, counted from 0 in source order, delimiters included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub u32);

/// An inclusive range of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first token.
    pub first: SpanId,
    /// The last token, itself included.
    pub last: SpanId,
}

impl Span {
    /// The span of things that nobody wrote: programs built by hand in tests and tools.
    pub const UNKNOWN: Span = Span { first: SpanId(u32::MAX), last: SpanId(u32::MAX) };

    /// The span of one token.
    #[must_use]
    pub fn token(id: SpanId) -> Span {
        Span { first: id, last: id }
    }

    /// The smallest range that contains both; an unknown span adds nothing.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        if self == Span::UNKNOWN {
            return other;
        }
        if other == Span::UNKNOWN {
            return self;
        }
        Span { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// Whether `other` lies inside `self`.
    #[must_use]
    pub fn contains(self, other: Span) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

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
