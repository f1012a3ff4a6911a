//! Tests of the parser: accepted programs, refused ones, and hostile ones.

mod accept;

use super::ast::Program;
use super::{TokenBuffer, parse};
use crate::diag::Diagnostics;

/// Parses source text.
fn parse_text(source: &str) -> (Program, Diagnostics) {
    let stream = source.parse().expect("the test source has balanced brackets and Rust's tokens");
    let (tokens, _) = TokenBuffer::new(stream);
    parse(&tokens)
}

/// Parses source text that must be accepted.
fn accept(source: &str) -> Program {
    let (program, diagnostics) = parse_text(source);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}\n{source}");
    program
}
