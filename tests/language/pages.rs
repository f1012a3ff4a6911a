//! The pages of the diagnostic codes: the wrong example is refused with exactly this code, the right one compiles.

use std::collections::BTreeSet;

use tilewright_compiler::compile;
use tilewright_compiler::diag::{Code, Level, Renderer};
use tilewright_compiler::source::{TokenBuffer, TokenMap, locate};

/// Codes that no text of a page can show, each with the test that shows it instead.
const WITHOUT_EXAMPLE: [Code; 2] = [
    Code::TW0131, // 1025 parameters: `too_many`
    Code::TW9001, // a defect of the compiler, by definition not known
];

/// What is reported about an example of the page of a code: the codes, and the text of the command line. Most examples
/// are too short to be fast.
fn check(source: &str, of: Code) -> (BTreeSet<Code>, String) {
    let stream = source.parse().unwrap_or_else(|error| panic!("no Rust tokens ({error}):\n{source}"));
    let (tokens, spans) = TokenBuffer::new(stream);
    let outcome = compile(&tokens);
    let codes = outcome.diagnostics.found().iter().map(|found| found.code);
    let codes = codes.filter(|code| *code == of || !Code::OF_SPEED.contains(code)).collect();
    let map = TokenMap { tokens: &tokens, spans: &spans, locate };
    let report = outcome.diagnostics.finish();
    assert_eq!(
        report.errors.is_empty(),
        outcome.kernels.iter().all(|kernel| kernel.info.is_some()) && !outcome.kernels.is_empty(),
        "a kernel is finished if and only if nothing was refused:\n{source}"
    );
    (codes, Renderer::new(&map).report(&report))
}

/// The text of the code block under a heading.
fn example<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
    let (_, section) = page.split_once(&format!("\n## {heading}\n\n```text\n"))?;
    section.split_once("\n```\n").map(|(text, _)| text)
}

#[test]
fn wrong_examples_are_refused_with_their_code() {
    let mut failures = String::new();
    for &code in Code::ALL.iter().filter(|code| !WITHOUT_EXAMPLE.contains(code)) {
        let page = code.row().page();
        let Some(source) = example(&page, "Wrong") else {
            failures += &format!("{code} has no wrong example\n");
            continue;
        };
        let (codes, report) = check(source, code);
        if codes != BTreeSet::from([code]) {
            failures += &format!("{code}:\n{source}\n{report}\n");
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn right_examples_compile() {
    let mut failures = String::new();
    for &code in Code::ALL.iter().filter(|code| !WITHOUT_EXAMPLE.contains(code)) {
        let page = code.row().page();
        let Some(source) = example(&page, "Right") else {
            failures += &format!("{code} has no right example\n");
            continue;
        };
        let (codes, report) = check(source, code);
        if !codes.is_empty() {
            failures += &format!("{code}:\n{source}\n{report}\n");
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn pages_have_one_form() {
    for &code in Code::ALL {
        let page = code.row().page();
        let title = format!("# {code}: {}\n\n", code.row().summary);
        assert!(page.starts_with(&title), "the page of {code} starts with its row of the table: {title}");
        assert_eq!(
            page.contains("\n\nA warning:"),
            code.row().level == Level::Warning,
            "the page of {code} says whether it is a warning"
        );
        assert!(page.ends_with('\n') && page.len() < 4000, "the page of {code} is short");
        let prose = page.split("```").step_by(2).flat_map(str::lines);
        for line in prose {
            assert!(line.chars().count() <= 120, "a line of the page of {code} is too long: {line}");
        }
    }
}

#[test]
fn too_many() {
    let scalars: Vec<String> = (0..1025).map(|n| format!("a{n}: f32")).collect();
    let source = format!("kernel Huge({}) -> (y: f32[N]) {{ y[i] = 0.0; }}", scalars.join(", "));
    let (tokens, _) = TokenBuffer::new(source.parse().expect("Rust tokens"));
    let outcome = compile(&tokens);
    assert!(outcome.diagnostics.found().iter().any(|found| found.code == Code::TW0131));
}

/// Each tensor map is a parameter of 128 bytes, and a launch passes 32764: so many copies are refused, not emitted.
#[test]
fn too_many_bytes_of_parameters() {
    let refused = |copies: usize| {
        let names: Vec<String> = (0..copies).map(|n| format!("x{n}")).collect();
        let parameters: Vec<String> = names.iter().map(|x| format!("{x}: f32[M, N]")).collect();
        // A sum of sums: operators in a row are levels of an expression.
        let sum = |terms: &[String]| terms.iter().map(|x| format!("{x}[i, j]")).collect::<Vec<_>>().join(" + ");
        let parts: Vec<String> =
            names.chunks(50).enumerate().map(|(n, part)| format!("p{n}[i, j] = {};", sum(part))).collect();
        let all: Vec<String> = (0..parts.len()).map(|n| format!("p{n}")).collect();
        let stages = names.iter().map(|x| {
            format!(
                "stage s{x}[i, j] = {x} in shared at y.jo via tma {{ box i by 4 -> ic, ib; box j by 32 -> jc, jb; }}"
            )
        });
        let source = format!(
            "kernel Many({}) -> (y: f32[M, N]) where N % 4 == 0 {{
                {} y[i, j] = {};
                launch threads(32);
                schedule y {{
                    split i by 4 -> io, ii; split j by 32 -> jo, ji; reorder io, jo, ii, ji;
                    bind io, jo: grid; bind ji: thread;
                }}
                {}
            }}",
            parameters.join(", "),
            parts.join("\n"),
            sum(&all),
            stages.collect::<String>()
        );
        let (tokens, _) = TokenBuffer::new(source.parse().expect("Rust tokens"));
        let outcome = compile(&tokens);
        let of = |found: &tilewright_compiler::diag::Diagnostic| (found.code, found.title.clone());
        outcome.diagnostics.found().iter().filter(|d| d.code.row().level == Level::Error).map(of).collect::<Vec<_>>()
    };
    // 8 bytes for each address and both sizes, in steps of 64, and the maps: 1984 + 128 · 240, and one map more.
    assert_eq!(refused(240), []);
    let told = "a kernel has at most 32764 bytes of parameters, of which each tensor map takes 128";
    assert_eq!(refused(241), [(Code::TW0131, told.to_owned())]);
}
