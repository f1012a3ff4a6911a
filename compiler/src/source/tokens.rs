//! The token buffer: a token stream flattened into one vector, each token with its id.
//!
//! A none-delimited group (what `$e:expr` of a user's macro leaves) around a single token vanishes; around several
//! it stays, because it binds like parentheses in an expression. Everywhere else the parser looks through it.

use std::borrow::Cow;

use proc_macro2::{Ident, Literal, Punct, Spacing, TokenStream, TokenTree};

use super::{Position, SourceMap, Span, SpanId};

/// The four kinds of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// `( … )`
    Paren,
    /// `{ … }`
    Brace,
    /// `[ … ]`
    Bracket,
    /// An invisible group.
    None,
}

impl Delimiter {
    /// The opening bracket.
    #[must_use]
    pub fn open(self) -> &'static str {
        match self {
            Delimiter::Paren => "(",
            Delimiter::Brace => "{",
            Delimiter::Bracket => "[",
            Delimiter::None => "",
        }
    }

    /// The closing bracket.
    #[must_use]
    pub fn close(self) -> &'static str {
        match self {
            Delimiter::Paren => ")",
            Delimiter::Brace => "}",
            Delimiter::Bracket => "]",
            Delimiter::None => "",
        }
    }
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// An identifier or keyword, raw or not.
    Word,
    /// A literal of any kind.
    Literal,
    /// One punctuation character.
    Punct {
        /// The character.
        ch: char,
        /// Whether another punctuation character follows without space.
        joint: bool,
    },
    /// The start of a group.
    Open(Delimiter),
    /// The end of a group.
    Close(Delimiter),
}

/// One token of the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    kind: TokenKind,
    text: Cow<'static, str>,
    /// Of a delimiter: the index of the other one. Of any other token: its own.
    partner: usize,
}

/// A flattened token stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenBuffer {
    tokens: Vec<Token>,
    invisible: bool,
}

/// A group whose tokens are being copied.
struct OpenGroup {
    rest: std::vec::IntoIter<TokenTree>,
    /// `None` if the group leaves no delimiters.
    close: Option<(Delimiter, usize, proc_macro2::Span)>,
}

impl TokenBuffer {
    /// Flattens a stream. The second value holds the span of each token, by id.
    #[must_use]
    pub fn new(stream: TokenStream) -> (TokenBuffer, Vec<proc_macro2::Span>) {
        let mut buffer = TokenBuffer::default();
        let mut spans = Vec::new();
        // An explicit stack: a stream may nest deeper than the machine's stack allows.
        let mut stack = vec![OpenGroup { rest: trees(stream), close: None }];
        while let Some(group) = stack.last_mut() {
            let Some(tree) = group.rest.next() else {
                if let Some((delimiter, open, span)) = group.close {
                    let close = buffer.push(TokenKind::Close(delimiter), delimiter.close());
                    buffer.tokens[close].partner = open;
                    buffer.tokens[open].partner = close;
                    spans.push(span);
                }
                stack.pop();
                continue;
            };
            match tree {
                TokenTree::Ident(ident) => {
                    buffer.push(TokenKind::Word, ident.to_string());
                    spans.push(ident.span());
                }
                TokenTree::Punct(punct) => {
                    let joint = punct.spacing() == Spacing::Joint;
                    let ch = punct.as_char();
                    buffer.push(TokenKind::Punct { ch, joint }, punct_text(ch));
                    spans.push(punct.span());
                }
                TokenTree::Literal(literal) => {
                    let mut text = literal.to_string();
                    // A procedural macro may build a negative literal; source text never has one.
                    if text.starts_with('-') {
                        text.remove(0);
                        buffer.push(TokenKind::Punct { ch: '-', joint: false }, "-");
                        spans.push(literal.span());
                    }
                    buffer.push(TokenKind::Literal, text);
                    spans.push(literal.span());
                }
                TokenTree::Group(group) => {
                    let delimiter = match group.delimiter() {
                        proc_macro2::Delimiter::Parenthesis => Delimiter::Paren,
                        proc_macro2::Delimiter::Brace => Delimiter::Brace,
                        proc_macro2::Delimiter::Bracket => Delimiter::Bracket,
                        proc_macro2::Delimiter::None => Delimiter::None,
                    };
                    let rest = trees(group.stream());
                    if delimiter == Delimiter::None && rest.len() <= 1 {
                        stack.push(OpenGroup { rest, close: None });
                        continue;
                    }
                    buffer.invisible |= delimiter == Delimiter::None;
                    let open = buffer.push(TokenKind::Open(delimiter), delimiter.open());
                    spans.push(group.span_open());
                    stack.push(OpenGroup { rest, close: Some((delimiter, open, group.span_close())) });
                }
            }
        }
        (buffer, spans)
    }

    fn push(&mut self, kind: TokenKind, text: impl Into<Cow<'static, str>>) -> usize {
        let index = self.tokens.len();
        self.tokens.push(Token { kind, text: text.into(), partner: index });
        index
    }

    /// The number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Whether an invisible group is left in the buffer.
    #[must_use]
    pub fn has_invisible_groups(&self) -> bool {
        self.invisible
    }

    /// What token `index` is; `None` past the end.
    #[must_use]
    pub fn kind(&self, index: usize) -> Option<TokenKind> {
        self.tokens.get(index).map(|token| token.kind)
    }

    /// The text of token `index`; empty past the end.
    #[must_use]
    pub fn text(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| &token.text)
    }

    /// The other end of the group that token `index` opens or closes; `index` itself for other tokens.
    #[must_use]
    pub fn partner(&self, index: usize) -> usize {
        self.tokens.get(index).map_or(index, |token| token.partner)
    }

    /// The indices of a span, clipped to the buffer.
    fn range(&self, span: Span) -> std::ops::Range<usize> {
        let first = (span.first.0 as usize).min(self.len());
        let last = (span.last.0 as usize).saturating_add(1).min(self.len());
        first..last.max(first)
    }

    /// The tokens of a span as a stream again, for code that is passed through to Rust: attributes and visibilities.
    /// A delimiter without its partner inside the span is left out.
    #[must_use]
    pub fn to_stream(&self, span: Span, spans: &[proc_macro2::Span]) -> TokenStream {
        let range = self.range(span);
        let mut stack: Vec<Vec<TokenTree>> = vec![Vec::new()];
        for index in range.clone() {
            let text = self.text(index);
            let at = spans.get(index).copied().unwrap_or_else(proc_macro2::Span::call_site);
            let tree: TokenTree = match self.tokens[index].kind {
                TokenKind::Word => match text.strip_prefix("r#") {
                    Some(raw) => Ident::new_raw(raw, at).into(),
                    None => Ident::new(text, at).into(),
                },
                TokenKind::Literal => {
                    let Ok(mut literal) = text.parse::<Literal>() else { continue };
                    literal.set_span(at);
                    literal.into()
                }
                TokenKind::Punct { ch, joint } => {
                    let mut punct = Punct::new(ch, if joint { Spacing::Joint } else { Spacing::Alone });
                    punct.set_span(at);
                    punct.into()
                }
                TokenKind::Open(_) => {
                    if range.contains(&self.partner(index)) {
                        stack.push(Vec::new());
                    }
                    continue;
                }
                TokenKind::Close(delimiter) => {
                    if !range.contains(&self.partner(index)) {
                        continue;
                    }
                    let inner = stack.pop().unwrap_or_default().into_iter().collect();
                    let delimiter = match delimiter {
                        Delimiter::Paren => proc_macro2::Delimiter::Parenthesis,
                        Delimiter::Brace => proc_macro2::Delimiter::Brace,
                        Delimiter::Bracket => proc_macro2::Delimiter::Bracket,
                        Delimiter::None => proc_macro2::Delimiter::None,
                    };
                    let mut group = proc_macro2::Group::new(delimiter, inner);
                    group.set_span(at);
                    group.into()
                }
            };
            if let Some(top) = stack.last_mut() {
                top.push(tree);
            }
        }
        stack.into_iter().flatten().collect()
    }

    /// The text of a span on one line. Spacing follows the tokens alone, as positions may be unknown.
    #[must_use]
    pub fn span_text(&self, span: Span) -> String {
        let mut out = String::new();
        let mut previous: Option<usize> = None;
        let mut in_closure = false;
        let mut glued = false;
        for index in self.range(span) {
            let kind = self.tokens[index].kind;
            if matches!(kind, TokenKind::Open(Delimiter::None) | TokenKind::Close(Delimiter::None)) {
                continue;
            }
            let pipe = matches!(kind, TokenKind::Punct { ch: '|', joint: false })
                && !previous.is_some_and(|p| self.kind(p) == Some(TokenKind::Punct { ch: '|', joint: true }));
            if let Some(before) = previous
                && !glued
                && !(pipe && in_closure)
                && self.spaced(before, index)
            {
                out.push(' ');
            }
            out.push_str(self.text(index));
            glued = false;
            if pipe {
                in_closure = !in_closure;
                glued = in_closure;
            }
            // A prefix operator sticks to its operand.
            if matches!(kind, TokenKind::Punct { ch: '-' | '!', joint: _ }) {
                let joined = matches!(kind, TokenKind::Punct { joint: true, .. });
                glued = !joined && !previous.is_some_and(|before| self.ends_operand(before));
            }
            previous = Some(index);
        }
        out
    }

    /// Whether an operand may end with token `index`, so that a following `-` is a difference.
    fn ends_operand(&self, index: usize) -> bool {
        match self.kind(index) {
            Some(TokenKind::Literal | TokenKind::Close(_)) => true,
            Some(TokenKind::Word) => !matches!(self.text(index), "by" | "in" | "or" | "init" | "promote" | "pad"),
            _ => false,
        }
    }

    /// Whether a space stands between two neighbouring tokens.
    fn spaced(&self, before: usize, after: usize) -> bool {
        use Delimiter::{Brace, Bracket, Paren};
        use TokenKind::{Close, Open, Punct, Word};
        match (self.tokens[before].kind, self.tokens[after].kind) {
            // What was apart stays apart: together it might be another operator.
            (Punct { joint, .. }, Punct { .. }) => !joint,
            // A lifetime is one word.
            (Punct { ch: '\'', .. }, Word) => false,
            (_, Punct { ch: ',' | ';' | '.' | '?', .. }) | (Punct { ch: '.' | '#', .. }, _) => false,
            // `0..=i`
            (Punct { ch: '=', .. }, _)
                if before > 0 && self.kind(before - 1) == Some(Punct { ch: '.', joint: true }) =>
            {
                false
            }
            (_, Punct { ch: ':', .. }) => false,
            (Punct { ch: ':', .. }, _) => {
                !(before > 0 && self.kind(before - 1) == Some(Punct { ch: ':', joint: true }))
            }
            (Open(Paren | Bracket), _) | (_, Close(Paren | Bracket)) => false,
            (Open(Brace), Close(Brace)) => false,
            (Word, Open(Paren)) => {
                matches!(
                    self.text(before),
                    "by" | "box" | "mma" | "fragment" | "init" | "step" | "merge" | "in" | "if" | "where"
                )
            }
            (Word, Open(Bracket)) => matches!(self.text(before), "layout" | "in"),
            (Close(_), Open(Bracket)) => false,
            _ => true,
        }
    }
}

/// The text of a punctuation character. Slicing one long text, or allocating for each, costs more than all of parsing
/// at opt-level 0.
fn punct_text(ch: char) -> Cow<'static, str> {
    const ALL: [(char, &str); 23] = [
        (',', ","),
        (';', ";"),
        ('=', "="),
        ('-', "-"),
        ('>', ">"),
        (':', ":"),
        ('.', "."),
        ('|', "|"),
        ('*', "*"),
        ('+', "+"),
        ('/', "/"),
        ('%', "%"),
        ('<', "<"),
        ('&', "&"),
        ('!', "!"),
        ('#', "#"),
        ('?', "?"),
        ('^', "^"),
        ('@', "@"),
        ('$', "$"),
        ('~', "~"),
        ('\'', "'"),
        ('`', "`"),
    ];
    for (known, text) in ALL {
        if known == ch {
            return Cow::Borrowed(text);
        }
    }
    Cow::Owned(ch.to_string())
}

fn trees(stream: TokenStream) -> std::vec::IntoIter<TokenTree> {
    stream.into_iter().collect::<Vec<_>>().into_iter()
}

/// A source map over the spans that came with a buffer. `locate` finds the place of one span: the macro asks rustc,
/// tools ask proc-macro2 ([`locate`]), editors know nothing.
pub struct TokenMap<'a, L> {
    /// The tokens.
    pub tokens: &'a TokenBuffer,
    /// Their spans.
    pub spans: &'a [proc_macro2::Span],
    /// The place of a span, if known.
    pub locate: L,
}

impl<L: Fn(proc_macro2::Span) -> Option<Position>> SourceMap for TokenMap<'_, L> {
    fn token_count(&self) -> usize {
        self.tokens.len()
    }

    fn position(&self, id: SpanId) -> Option<Position> {
        let span = self.spans.get(id.0 as usize)?;
        (self.locate)(*span).filter(known)
    }

    fn token_text(&self, id: SpanId) -> &str {
        self.tokens.text(id.0 as usize)
    }

    fn span_text(&self, span: Span) -> String {
        self.tokens.span_text(span)
    }
}

/// Whether a position is a real one: editors answer `""`, 1, 1 for everything.
fn known(position: &Position) -> bool {
    !position.file.is_empty() && position.line > 0 && position.column > 0
}

/// The place of a span by proc-macro2's own bookkeeping, for tools that parse files.
#[must_use]
pub fn locate(span: proc_macro2::Span) -> Option<Position> {
    let (start, end) = (span.start(), span.end());
    Some(Position {
        file: span.file(),
        line: start.line,
        column: start.column + 1,
        end_line: end.line,
        end_column: end.column + 1,
    })
}
