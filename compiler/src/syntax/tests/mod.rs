//! Tests of the parser: accepted programs, refused ones, and hostile ones.

mod accept;
mod hostile;
mod refuse;

use super::parse;
use crate::diag::{Diagnostics, Renderer};
use crate::source::ast::Program;
use crate::source::{Position, TokenBuffer, TokenMap, locate};

fn stream(source: &str) -> proc_macro2::TokenStream {
    source.parse().expect("the test source has balanced brackets and Rust's tokens")
}

/// Parses source text.
fn parse_text(source: &str) -> (Program, Diagnostics) {
    let (tokens, _) = TokenBuffer::new(stream(source));
    parse(&tokens)
}

/// Parses source text that must be accepted.
fn accept(source: &str) -> Program {
    let (program, diagnostics) = parse_text(source);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}\n{source}");
    program
}

/// What the command line would print for this source.
fn render(source: &str) -> String {
    let (tokens, spans) = TokenBuffer::new(stream(source));
    let (_, diagnostics) = parse(&tokens);
    let file = || "k.rs".to_owned();
    let map = TokenMap {
        tokens: &tokens,
        spans: &spans,
        locate: |span| locate(span).map(|position| Position { file: file(), ..position }),
    };
    Renderer::new(&map).report(&diagnostics.finish())
}
