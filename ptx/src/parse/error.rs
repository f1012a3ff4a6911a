//! What is wrong with PTX text, and where.

use std::fmt;

use crate::builder::write_select_fault;
use crate::check::SelectFault;
use crate::lex::Pos;

/// A mistake in PTX text.
#[derive(Clone, PartialEq, Debug)]
pub struct ParseError {
    /// Line from 1.
    pub line: u32,
    /// Column from 1, in bytes.
    pub column: u32,
    /// What is wrong.
    pub kind: ParseErrorKind,
}

/// What is wrong.
#[derive(Clone, PartialEq, Debug)]
pub enum ParseErrorKind {
    /// A character that PTX does not use.
    Character(char),
    /// `/*` without `*/`.
    UnclosedComment,
    /// A string without its closing quote.
    UnclosedString,
    /// A number that is none, or does not fit 64 bits.
    Number(String),
    /// Something else was expected.
    Expected {
        /// What was expected, in words.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A name that is not declared here.
    UnknownName(String),
    /// A name that is declared already in this scope.
    DuplicateName(String),
    /// No instruction of the table takes this mnemonic, modifiers and number of operands.
    Instruction {
        /// Mnemonic with modifiers.
        mnemonic: String,
        /// Why.
        fault: SelectFault,
    },
    /// A word that is no modifier of any instruction.
    UnknownModifier {
        /// Mnemonic with modifiers.
        mnemonic: String,
        /// The word.
        modifier: String,
    },
    /// A directive that is not supported, or not here.
    Directive(String),
    /// Something legal in PTX that this crate does not take.
    Unsupported(&'static str),
    /// A number outside its range.
    Range {
        /// What it is a number of.
        what: &'static str,
        /// The number.
        value: i128,
        /// The highest allowed.
        limit: u64,
    },
    /// More of something than this crate takes.
    TooMany {
        /// What.
        what: &'static str,
        /// The most that are taken.
        limit: u64,
    },
}

impl ParseError {
    pub(crate) fn new(pos: Pos, kind: ParseErrorKind) -> Self {
        ParseError { line: pos.line, column: pos.column, kind }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        if let ParseErrorKind::Instruction { mnemonic, .. } | ParseErrorKind::UnknownModifier { mnemonic, .. } =
            &self.kind
            && let Some(section) = crate::isa::absent(mnemonic)
        {
            return write!(f, "`{mnemonic}` is not supported (PTX manual {section})");
        }
        match &self.kind {
            ParseErrorKind::Character(found) => write!(f, "unexpected character {found:?}"),
            ParseErrorKind::UnclosedComment => f.write_str("`/*` without `*/`"),
            ParseErrorKind::UnclosedString => f.write_str("string without closing quote"),
            ParseErrorKind::Number(text) => write!(f, "`{text}` is no number of at most 64 bits"),
            ParseErrorKind::Expected { expected, found } => write!(f, "expected {expected}, found {found}"),
            ParseErrorKind::UnknownName(name) => write!(f, "`{name}` is not declared"),
            ParseErrorKind::DuplicateName(name) => write!(f, "`{name}` is declared twice"),
            ParseErrorKind::Instruction { mnemonic, fault } => {
                write!(f, "`{mnemonic}`: ")?;
                write_select_fault(fault, f)
            }
            ParseErrorKind::UnknownModifier { mnemonic, modifier } => {
                write!(f, "`{mnemonic}`: no instruction has the modifier `.{modifier}`")
            }
            ParseErrorKind::Directive(name) => write!(f, "directive `.{name}` is not supported here"),
            ParseErrorKind::Unsupported(what) => write!(f, "not supported: {what}"),
            ParseErrorKind::Range { what, value, limit } => write!(f, "{what} {value} is not in 0..{limit}"),
            ParseErrorKind::TooMany { what, limit } => write!(f, "more than {limit} {what}"),
        }
    }
}

impl std::error::Error for ParseError {}
