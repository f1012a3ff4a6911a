//! Tests of the room: what kernels become, what is refused and in which words, and hostile input.

mod accept;
mod hostile;
mod hull;
mod ranges;
mod refuse;

use super::{Obligation, Program, build};
use crate::diag::{Diagnostics, Renderer};
use crate::source::{Position, TokenBuffer, TokenMap, locate};
use crate::syntax::parse;

/// Parses one kernel and builds it; the findings in words.
fn run(source: &str) -> (Option<Program>, String) {
    let stream = source.parse().expect("the test source has balanced brackets and Rust's tokens");
    let (tokens, spans) = TokenBuffer::new(stream);
    let (program, diagnostics) = parse(&tokens);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}\n{source}");
    let mut found = Diagnostics::new();
    let built = build(&program.kernels[0], &mut found);
    let errors = found.has_errors();
    assert_eq!(built.is_none(), errors, "a refused kernel has an error and an accepted one has none");
    let report = found.finish();
    let locate = |span| locate(span).map(|position| Position { file: "kernel.rs".to_owned(), ..position });
    let map = TokenMap { tokens: &tokens, spans: &spans, locate };
    (built, Renderer::new(&map).report(&report))
}

/// A kernel with the given parameters, and equations for its body.
fn kernel(signature: &str, body: &str) -> String {
    format!("kernel K{signature} {{ {body} }}")
}

/// What an accepted kernel computes.
fn accepted(source: &str) -> Program {
    let (program, findings) = run(source);
    program.unwrap_or_else(|| panic!("{findings}\n{source}"))
}

/// What a refused kernel is told.
fn refused(source: &str) -> String {
    let (program, findings) = run(source);
    assert!(program.is_none(), "accepted:\n{}", program.map_or(String::new(), |p| p.printed().to_string()));
    findings
}

/// Obligations as text.
fn obligations(program: &Program) -> String {
    let printed = program.printed();
    let line = |o: &Obligation| match *o {
        Obligation::NonEmpty { value, .. } => format!("not empty: {}\n", printed.value_text(value)),
        Obligation::DivisorNonZero { value } => format!("divisor not zero: {}\n", printed.value_text(value)),
        Obligation::DivisorPositive { index } => format!("divisor positive: {}\n", printed.index_text(index)),
    };
    program.obligations.iter().map(line).collect()
}
