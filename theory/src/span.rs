//! Where a piece of the program was written: token ids, and ranges of them.
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
