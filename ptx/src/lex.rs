//! PTX text as tokens (PTX manual, part 4). Every token knows its line and column; nothing is copied.

use crate::operand::Immediate;
use crate::parse::{ParseError, ParseErrorKind};

/// A place in the text, both from 1; columns count bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Pos {
    pub line: u32,
    pub column: u32,
}

/// A token.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Token<'a> {
    /// `%r1`, `add`, `_`.
    Ident(&'a str),
    /// `.shared::cta`, without the dot.
    Dot(&'a str),
    /// A number with its text.
    Number(&'a str, Immediate),
    /// A string without its quotes.
    Str(&'a str),
    /// Anything else, one character.
    Punct(char),
    /// End of the text.
    End,
}

/// Splits the text into tokens; the last is [`Token::End`].
pub(crate) fn lex(text: &str) -> Result<Vec<(Token<'_>, Pos)>, ParseError> {
    let mut lexer = Lexer { text, at: 0, line: 1, line_start: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let pos = lexer.pos();
        let token = lexer.token()?;
        tokens.push((token, pos));
        if token == Token::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
}

impl<'a> Lexer<'a> {
    fn pos(&self) -> Pos {
        Pos { line: self.line, column: (self.at - self.line_start + 1) as u32 }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn error(&self, kind: ParseErrorKind) -> ParseError {
        ParseError::new(self.pos(), kind)
    }

    /// Passes one byte and keeps count of lines.
    fn step(&mut self) {
        if self.byte(0) == Some(b'\n') {
            self.line += 1;
            self.line_start = self.at + 1;
        }
        self.at += 1;
    }

    fn skip_blanks(&mut self) -> Result<(), ParseError> {
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(b' ' | b'\t' | b'\r' | b'\n'), _) => self.step(),
                (Some(b'/'), Some(b'/')) => {
                    while self.byte(0).is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                (Some(b'/'), Some(b'*')) => {
                    let error = self.error(ParseErrorKind::UnclosedComment);
                    self.at += 2;
                    while (self.byte(0), self.byte(1)) != (Some(b'*'), Some(b'/')) {
                        if self.byte(0).is_none() {
                            return Err(error);
                        }
                        self.step();
                    }
                    self.at += 2;
                }
                _ => return Ok(()),
            }
        }
    }

    /// Passes bytes while they satisfy the test and returns them.
    fn take(&mut self, test: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.byte(0).is_some_and(&test) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn token(&mut self) -> Result<Token<'a>, ParseError> {
        let Some(first) = self.byte(0) else { return Ok(Token::End) };
        match first {
            // Images embedded by other tools end in zero bytes.
            0 if self.text[self.at..].bytes().all(|byte| byte == 0) => Ok(Token::End),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'%' => {
                let start = self.at;
                self.at += 1;
                self.take(is_follow);
                Ok(Token::Ident(&self.text[start..self.at]))
            }
            b'.' if self.byte(1).is_some_and(is_follow) => {
                self.at += 1;
                let start = self.at;
                loop {
                    self.take(is_follow);
                    let more =
                        self.byte(0) == Some(b':') && self.byte(1) == Some(b':') && self.byte(2).is_some_and(is_follow);
                    if !more {
                        return Ok(Token::Dot(&self.text[start..self.at]));
                    }
                    self.at += 2;
                }
            }
            b'0'..=b'9' => self.number(),
            b'"' => {
                let error = self.error(ParseErrorKind::UnclosedString);
                self.at += 1;
                let start = self.at;
                loop {
                    match self.byte(0) {
                        None | Some(b'\n') => return Err(error),
                        Some(b'"') => break,
                        Some(b'\\') if self.byte(1).is_some_and(|next| next != b'\n') => self.at += 2,
                        Some(_) => self.at += 1,
                    }
                }
                let text = self.text.get(start..self.at).ok_or(error)?;
                self.at += 1;
                Ok(Token::Str(text))
            }
            _ => {
                let Some(found) = self.text[self.at..].chars().next() else { return Ok(Token::End) };
                if !found.is_ascii() || found.is_ascii_control() {
                    return Err(self.error(ParseErrorKind::Character(found)));
                }
                self.at += 1;
                Ok(Token::Punct(found))
            }
        }
    }

    fn number(&mut self) -> Result<Token<'a>, ParseError> {
        let pos = self.pos();
        let start = self.at;
        let word = self.take(|byte| byte.is_ascii_alphanumeric());
        let radix_prefix = word.len() > 1 && word.starts_with('0') && !word.as_bytes()[1].is_ascii_digit();
        let mut float = false;
        if !radix_prefix {
            if self.byte(0) == Some(b'.') && self.byte(1).is_some_and(|byte| byte.is_ascii_digit()) {
                float = true;
                self.at += 1;
                self.take(|byte| byte.is_ascii_alphanumeric());
            }
            let so_far = &self.text[start..self.at];
            let exponent = so_far.ends_with(['e', 'E']) && matches!(self.byte(0), Some(b'+' | b'-'));
            if exponent {
                self.at += 1;
                self.take(|byte| byte.is_ascii_digit());
            }
            float |= so_far.contains(['e', 'E']);
        }
        let text = &self.text[start..self.at];
        let value = if float { parse_decimal_float(text) } else { parse_number(text) };
        match value {
            Some(value) => Ok(Token::Number(text, value)),
            None => Err(ParseError::new(pos, ParseErrorKind::Number(text.to_owned()))),
        }
    }
}

fn is_follow(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

fn parse_decimal_float(text: &str) -> Option<Immediate> {
    let value: f64 = text.parse().ok()?;
    value.is_finite().then(|| Immediate::f64(value))
}

/// Integers in four radices with an optional `U`, and exact floating-point bits.
fn parse_number(text: &str) -> Option<Immediate> {
    let hex_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(bits) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0F"))
        && bits.len() == 8
        && hex_digits(bits)
    {
        return u32::from_str_radix(bits, 16).ok().map(Immediate::F32);
    }
    if let Some(bits) = text.strip_prefix("0d").or_else(|| text.strip_prefix("0D"))
        && bits.len() == 16
        && hex_digits(bits)
    {
        return u64::from_str_radix(bits, 16).ok().map(Immediate::F64);
    }
    let digits = text.strip_suffix('U').unwrap_or(text);
    let (digits, radix) = if let Some(digits) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        (digits, 16)
    } else if let Some(digits) = digits.strip_prefix("0b").or_else(|| digits.strip_prefix("0B")) {
        (digits, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (&digits[1..], 8)
    } else {
        (digits, 10)
    };
    let value = u64::from_str_radix(digits, radix).ok()?;
    Some(i64::try_from(value).map_or(Immediate::UInt(value), Immediate::Int))
}
