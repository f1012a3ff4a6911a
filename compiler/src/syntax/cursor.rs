//! The parser's view of the token buffer: lookahead, one-token steps, groups, and recovery after an error.

use crate::diag::Diagnostics;
use crate::diag::codes::{Expected, Found, Named, RepeatedClause, ReservedName, TooDeep, UnexpectedToken};
use crate::source::ast::Name;
use crate::source::{Delimiter, Span, SpanId, TokenBuffer, TokenKind};

/// Something was wrong, and it has been reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported;

pub(super) type Parse<T> = Result<T, Reported>;

/// Levels of groups, prefix operators and right operands that the parser enters: at opt-level 0 it takes about ten
/// kilobytes of stack for one.
const MAX_NESTING: u32 = 64;

/// Levels of an expression's tree, chains of operators included. Later rooms recurse over it, at opt-level 0 and on the
/// stack of rustc.
pub(super) const MAX_HEIGHT: u32 = 200;

/// Operators of more than one character; the longest that fits is taken.
const OPERATORS: [&str; 19] =
    ["..=", "..", "->", "=>", "::", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "<<", ">>", "^="];

/// Words that are never names.
fn is_reserved(word: &str) -> bool {
    matches!(word, "true" | "false" | "inf" | "nan" | "if" | "else" | "as" | "in" | "or" | "_")
}

/// Whether Rust takes this word, or `r#word`, as a name of a struct or a field.
#[must_use]
pub fn is_rust_name(word: &str) -> bool {
    syn::parse_str::<syn::Ident>(word).is_ok()
}

/// The parser: a position in the token buffer and the findings so far.
pub(super) struct Parser<'a> {
    pub(super) tokens: &'a TokenBuffer,
    /// The next token, maybe an invisible delimiter.
    position: usize,
    /// The next visible token, or the end of the group.
    next: usize,
    /// The end of the current group.
    end: usize,
    /// Whether there are invisible groups at all.
    invisible: bool,
    /// The last token taken.
    previous: Option<usize>,
    /// Levels entered.
    depth: u32,
    /// Whether the statement with the last error has been taken to its end.
    pub(super) recovered: bool,
    pub(super) diagnostics: Diagnostics,
}

fn id(index: usize) -> SpanId {
    SpanId(u32::try_from(index).unwrap_or(u32::MAX))
}

impl<'a> Parser<'a> {
    pub(super) fn new(tokens: &'a TokenBuffer) -> Parser<'a> {
        let mut parser = Parser {
            tokens,
            position: 0,
            next: 0,
            invisible: tokens.has_invisible_groups(),
            end: tokens.len(),
            previous: None,
            depth: 0,
            recovered: false,
            diagnostics: Diagnostics::new(),
        };
        parser.seek(0);
        parser
    }

    /// Goes to a token of the current group.
    fn seek(&mut self, position: usize) {
        self.position = position;
        self.next = self.visible(position);
    }

    // ---- looking

    /// The index of the next visible token at or after `index`; the end of the group if there is none.
    fn visible(&self, mut index: usize) -> usize {
        if !self.invisible {
            return index;
        }
        while index < self.end
            && let Some(TokenKind::Open(Delimiter::None) | TokenKind::Close(Delimiter::None)) = self.tokens.kind(index)
        {
            index += 1;
        }
        index
    }

    /// The `n`-th visible token from here, groups not skipped.
    fn nth(&self, n: usize) -> usize {
        let mut index = self.next;
        let mut left = n;
        while left > 0 && index < self.end {
            index = self.visible(index + 1);
            left -= 1;
        }
        index
    }

    fn kind_at(&self, n: usize) -> Option<TokenKind> {
        let index = self.nth(n);
        if index < self.end { self.tokens.kind(index) } else { None }
    }

    /// Whether the current group has no more tokens.
    pub(super) fn at_end(&self) -> bool {
        self.nth(0) >= self.end
    }

    /// Whether the next token is the last one of the current group.
    pub(super) fn is_last(&self) -> bool {
        !self.at_end() && self.nth(1) >= self.end
    }

    /// The next token as a word.
    pub(super) fn word(&self) -> Option<&'a str> {
        self.word_at(0)
    }

    /// The `n`-th token from here as a word.
    pub(super) fn word_at(&self, n: usize) -> Option<&'a str> {
        matches!(self.kind_at(n), Some(TokenKind::Word)).then(|| self.tokens.text(self.nth(n)))
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.word() == Some(word)
    }

    /// The next token as a literal.
    pub(super) fn literal(&self) -> Option<&'a str> {
        matches!(self.kind_at(0), Some(TokenKind::Literal)).then(|| self.tokens.text(self.nth(0)))
    }

    /// The operator that starts at the `n`-th token, longest first, and its number of tokens.
    fn operator_at(&self, n: usize) -> Option<(&'a str, usize)> {
        let first = self.nth(n);
        let Some(TokenKind::Punct { mut joint, .. }) = self.kind_at(n) else { return None };
        if !joint {
            return Some((self.tokens.text(first), 1));
        }
        let mut chars = [0_u8; 3];
        let mut length = 0;
        // Joint characters follow each other directly, without invisible delimiters between them.
        for (step, slot) in chars.iter_mut().enumerate() {
            let index = first + step;
            let Some(TokenKind::Punct { ch, joint: next }) = self.tokens.kind(index).filter(|_| index < self.end)
            else {
                break;
            };
            if (step > 0 && !joint) || !ch.is_ascii() {
                break;
            }
            joint = next;
            *slot = ch as u8;
            length = step + 1;
        }
        let written = &chars[..length];
        for operator in OPERATORS {
            if written.starts_with(operator.as_bytes()) {
                return Some((operator, operator.len()));
            }
        }
        Some((self.tokens.text(first), 1))
    }

    /// The operator here.
    pub(super) fn operator(&self) -> Option<&'a str> {
        self.operator_at(0).map(|(operator, _)| operator)
    }

    /// Whether the `n`-th token starts this operator (a longer one does not count).
    pub(super) fn is_operator_at(&self, n: usize, operator: &str) -> bool {
        self.operator_at(n).is_some_and(|(found, _)| found == operator)
    }

    pub(super) fn is_operator(&self, operator: &str) -> bool {
        self.is_operator_at(0, operator)
    }

    /// Whether the `n`-th token opens such a group.
    pub(super) fn is_open_at(&self, n: usize, delimiter: Delimiter) -> bool {
        self.kind_at(n) == Some(TokenKind::Open(delimiter))
    }

    pub(super) fn is_open(&self, delimiter: Delimiter) -> bool {
        self.is_open_at(0, delimiter)
    }

    /// Whether the group that starts here is followed by a group of this kind.
    pub(super) fn is_open_after_group(&self, delimiter: Delimiter) -> bool {
        let open = self.nth(0);
        if open >= self.end || !matches!(self.tokens.kind(open), Some(TokenKind::Open(_))) {
            return false;
        }
        let next = self.visible(self.tokens.partner(open) + 1);
        next < self.end && self.tokens.kind(next) == Some(TokenKind::Open(delimiter))
    }

    // ---- spans

    /// The token to point at: the next one, or the closing bracket at the end of a group. At the end of an invisible
    /// group it is what follows the group.
    fn pointed(&self) -> usize {
        let mut index = self.next;
        while let Some(TokenKind::Open(Delimiter::None) | TokenKind::Close(Delimiter::None)) = self.tokens.kind(index) {
            index += 1;
        }
        index
    }

    /// The span of the next token; of the closing bracket at the end of a group; of the last token at the very end.
    pub(super) fn here(&self) -> Span {
        let index = self.pointed();
        if index < self.tokens.len() {
            return Span::token(id(index));
        }
        self.previous_span()
    }

    /// The last token taken.
    pub(super) fn previous_span(&self) -> Span {
        self.previous.map_or(Span::UNKNOWN, |index| Span::token(id(index)))
    }

    /// From the start of `first` to the last token taken.
    pub(super) fn since(&self, first: Span) -> Span {
        first.to(self.previous_span())
    }

    // ---- taking

    /// Takes one token.
    pub(super) fn bump(&mut self) -> Span {
        let index = self.nth(0);
        if index < self.end {
            self.previous = Some(index);
            self.seek(index + 1);
        }
        self.previous_span()
    }

    pub(super) fn eat_word(&mut self, word: &str) -> Option<Span> {
        self.is_word(word).then(|| self.bump())
    }

    pub(super) fn eat_operator(&mut self, operator: &str) -> Option<Span> {
        let (found, length) = self.operator_at(0)?;
        if found != operator {
            return None;
        }
        let first = self.bump();
        for _ in 1..length {
            self.bump();
        }
        Some(self.since(first))
    }

    pub(super) fn expect_word(&mut self, word: &'static str) -> Parse<Span> {
        self.eat_word(word).ok_or_else(|| self.unexpected(Expected::Token(word)))
    }

    pub(super) fn expect_operator(&mut self, operator: &'static str) -> Parse<Span> {
        self.eat_operator(operator).ok_or_else(|| self.unexpected(Expected::Token(operator)))
    }

    /// Takes a name. Words with a meaning in expressions are refused, keywords of statements are not.
    pub(super) fn name(&mut self, named: Named) -> Parse<Name> {
        let Some(word) = self.word() else { return Err(self.unexpected(Expected::Name(named))) };
        if is_reserved(word) {
            let span = self.here();
            self.diagnostics.report(ReservedName { word: word.to_owned(), span, by_rust: false });
            return Err(Reported);
        }
        let text = word.to_owned();
        Ok(Name { text, span: self.bump() })
    }

    /// Takes a name that becomes a Rust identifier.
    pub(super) fn rust_name(&mut self, named: Named) -> Parse<Name> {
        let name = self.name(named)?;
        if !is_rust_name(&name.text) {
            self.diagnostics.report(ReservedName { word: name.text.clone(), span: name.span, by_rust: true });
        }
        Ok(name)
    }

    /// Takes a word of the language and remembers it; a second one is reported.
    pub(super) fn once<T>(
        &mut self,
        slot: &mut Option<T>,
        first: &mut Option<Span>,
        clause: &'static str,
        span: Span,
        value: T,
    ) {
        if let Some(first) = *first {
            self.diagnostics.report(RepeatedClause { clause, span, first: Some(first) });
            return;
        }
        *first = Some(span);
        *slot = Some(value);
    }

    // ---- groups

    /// Parses inside a group that starts here. Whatever happens inside, the position is after the group.
    pub(super) fn group<T>(&mut self, delimiter: Delimiter, inside: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if !self.is_open(delimiter) {
            return Err(self.unexpected(Expected::Token(delimiter.open())));
        }
        let open = self.nth(0);
        self.group_at(open, inside)
    }

    /// Parses inside the group opened by token `open`.
    fn group_at<T>(&mut self, open: usize, inside: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let close = self.tokens.partner(open);
        let outer = self.end;
        let visible = self.tokens.kind(open) != Some(TokenKind::Open(Delimiter::None));
        if visible {
            self.previous = Some(open);
        }
        self.end = close;
        self.seek(open + 1);
        let result = self.nested(inside).and_then(|value| {
            if self.at_end() {
                return Ok(value);
            }
            let close = match self.tokens.kind(close) {
                Some(TokenKind::Close(delimiter)) => delimiter.close(),
                _ => "",
            };
            Err(self.unexpected(Expected::End(close)))
        });
        self.end = outer;
        self.seek(close + 1);
        if visible {
            self.previous = Some(close);
        }
        result
    }

    /// If an invisible group starts here, parses inside it.
    pub(super) fn invisible_group<T>(&mut self, inside: impl FnOnce(&mut Self) -> Parse<T>) -> Option<Parse<T>> {
        let open = self.position;
        if open < self.end && self.tokens.kind(open) == Some(TokenKind::Open(Delimiter::None)) {
            return Some(self.group_at(open, inside));
        }
        None
    }

    /// Runs a parser one level deeper.
    pub(super) fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_NESTING {
            return Err(self.too_deep(self.here(), MAX_NESTING));
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    fn too_deep(&mut self, span: Span, limit: u32) -> Reported {
        self.diagnostics.report(TooDeep { span, limit });
        Reported
    }

    /// Refuses an expression whose tree is too high.
    pub(super) fn check_height(&mut self, height: u32, span: Span) -> Parse<()> {
        if height > MAX_HEIGHT {
            return Err(self.too_deep(span, MAX_HEIGHT));
        }
        Ok(())
    }

    /// Parses `item , item , …` to the end of the group or the first token that cannot go on a list; a last comma is
    /// allowed. `stop` says where a list ends that is not the whole group.
    pub(super) fn list<T>(
        &mut self,
        stop: impl Fn(&Self) -> bool,
        mut item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        let mut items = Vec::new();
        while !self.at_end() && !stop(self) {
            items.push(item(self)?);
            if self.eat_operator(",").is_none() {
                break;
            }
        }
        Ok(items)
    }

    /// A list that fills its group: anything but a comma after an item is reported as a missing comma.
    pub(super) fn group_list<T>(
        &mut self,
        delimiter: Delimiter,
        mut item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        self.group(delimiter, |p| {
            let mut items = Vec::new();
            while !p.at_end() {
                items.push(item(p)?);
                if p.eat_operator(",").is_none() {
                    if !p.at_end() {
                        return Err(p.unexpected(Expected::Token(",")));
                    }
                    break;
                }
            }
            Ok(items)
        })
    }

    // ---- errors and recovery

    /// Reports the next token.
    pub(super) fn unexpected(&mut self, expected: Expected) -> Reported {
        let index = self.pointed();
        let found = match self.tokens.kind(index) {
            _ if index == self.next && index < self.end => {
                Found::Token(self.operator().unwrap_or_else(|| self.tokens.text(index)).to_owned())
            }
            Some(TokenKind::Close(delimiter)) => Found::End(delimiter.close()),
            Some(_) => Found::Token(self.tokens.text(index).to_owned()),
            None => Found::End(""),
        };
        let after = self.previous.map(|index| (self.tokens.text(index).to_owned(), self.previous_span()));
        let span = match self.operator_at(0) {
            // Both characters of `=>`.
            Some((_, length)) if index == self.nth(0) => self.here().to(Span::token(id(index + length - 1))),
            _ => self.here(),
        };
        self.diagnostics.report(UnexpectedToken { expected, found, span, after });
        Reported
    }

    /// Takes the `;` that ends a statement. A missing one is reported and nothing is skipped if the next token could
    /// start a statement (`starts`); otherwise the rest of the statement is skipped.
    pub(super) fn end_statement(&mut self, starts: impl Fn(&Self) -> bool) {
        if self.eat_operator(";").is_some() {
            return;
        }
        self.unexpected(Expected::Token(";"));
        if !starts(self) {
            self.skip_statement();
        }
    }

    /// Skips to after the next `;` of this group, to after the next brace group that nothing continues, or to the end.
    pub(super) fn skip_statement(&mut self) {
        if std::mem::take(&mut self.recovered) {
            return;
        }
        while !self.at_end() {
            if self.eat_operator(";").is_some() {
                return;
            }
            let block = self.is_open(Delimiter::Brace);
            self.skip_tree();
            if block && !self.is_word("else") && !self.is_operator(";") && (self.word().is_some() || self.at_end()) {
                return;
            }
        }
    }

    /// Skips to the next brace group of this group if one comes before the next `;`.
    pub(super) fn skip_to_block(&mut self) -> bool {
        while !self.at_end() && !self.is_operator(";") {
            if self.is_open(Delimiter::Brace) {
                return true;
            }
            self.skip_tree();
        }
        false
    }

    /// Takes one token or one whole group.
    pub(super) fn skip_tree(&mut self) {
        let index = self.nth(0);
        if index >= self.end {
            return;
        }
        let last = match self.tokens.kind(index) {
            Some(TokenKind::Open(_)) => self.tokens.partner(index),
            _ => index,
        };
        self.previous = Some(last);
        self.seek(last + 1);
    }
}
