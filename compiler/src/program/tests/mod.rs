//! Tests of the room: what kernels become, what is refused and in which words, and hostile input.

mod accept;
mod hostile;
mod refuse;

use std::fmt::Write;

use super::{Obligation, Program, build};
use crate::diag::{Diagnostic, Diagnostics, Level};
use crate::syntax::{SourceMap, TokenBuffer, TokenMap, locate, parse};

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
    let map = TokenMap { tokens: &tokens, spans: &spans, locate };
    let all = report.errors.iter().chain(&report.warnings);
    (built, all.map(|d| show(d, &map)).collect())
}

/// A finding as text.
fn show(found: &Diagnostic, map: &dyn SourceMap) -> String {
    let level = if found.level == Level::Error { "error" } else { "warning" };
    let mut out = format!("{level}[{}]: {}\n  at `{}`\n", found.code, found.title, map.span_text(found.primary));
    let mut line = |text: String| writeln!(out, "  {text}").expect("writing to a string");
    for (span, text) in &found.labels {
        line(format!("label: `{}`: {text}", map.span_text(*span)));
    }
    found.notes.iter().for_each(|note| line(format!("note: {note}")));
    found.counterexample.iter().for_each(|text| line(format!("counterexample: {text}")));
    found.help.iter().for_each(|help| line(format!("help: {}", help.text)));
    out
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
