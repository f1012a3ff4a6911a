//! Tests of the room: what is accepted, what is refused and in which words, and verdicts against enumeration.

mod accept;
mod brute;
mod gathers;
mod others;
mod refuse;

use tilewright_kernel::size::Constraint;

use super::check;
use crate::diag::{Level, Renderer};
use crate::extent::Facts;
use crate::program::build;
use crate::source::{TokenBuffer, TokenMap, locate};
use crate::syntax::parse;

/// What the room says about a kernel.
struct Said {
    /// What launches must check.
    places: Vec<Constraint>,
    codes: Vec<&'static str>,
    text: String,
    /// What the checks took.
    time: std::time::Duration,
}

/// Parses, builds and checks one kernel.
fn run(source: &str) -> Said {
    let stream = source.parse().expect("the test source has balanced brackets and Rust's tokens");
    let (tokens, spans) = TokenBuffer::new(stream);
    let map = TokenMap { tokens: &tokens, spans: &spans, locate };
    let (parsed, mut found) = parse(&tokens);
    let program = build(&parsed.kernels[0], &mut found);
    let Some(program) = program else {
        panic!("the kernel must build:\n{}\n{source}", Renderer::new(&map).report(&found.finish()));
    };
    assert!(found.is_empty(), "{}\n{source}", Renderer::new(&map).report(&found.finish()));
    let constraints: Vec<_> = program.facts.iter().map(|f| f.constraint.clone()).collect();
    let facts = Facts::new(&program.dims, &constraints).expect("the facts of a test are consistent");
    let start = std::time::Instant::now();
    let places = check(&program, &facts, &mut found);
    let time = start.elapsed();
    let errors = found.found().iter().filter(|d| d.level == Level::Error);
    let codes = errors.map(|d| d.code.row().code).collect();
    let text = Renderer::new(&map).report(&found.finish());
    Said { places, codes, text, time }
}

/// A kernel from its head and body.
fn kernel(head: &str, body: &str) -> String {
    format!("kernel K{head} {{ {body} }}")
}

/// What an accepted kernel's reads are known to be.
fn accepted(head: &str, body: &str) -> Said {
    let said = run(&kernel(head, body));
    assert!(said.codes.is_empty(), "refused:\n{}\n{head} {body}", said.text);
    said
}

/// What a refused kernel is told.
fn refused(head: &str, body: &str) -> String {
    let said = run(&kernel(head, body));
    assert!(!said.codes.is_empty(), "accepted: {head} {body}");
    said.text
}
