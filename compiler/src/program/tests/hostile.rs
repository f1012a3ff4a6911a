//! Hostile input: no panic, no hang, and an error whenever there is no program.

use proptest::prelude::*;

use super::super::build;
use super::{accepted, kernel, refused, run};
use crate::diag::Diagnostics;
use crate::source::TokenBuffer;
use crate::syntax::parse;

const PROGRAMS: &str = include_str!("../../syntax/tests/programs.txt");
const EXTRA: &str = "kernel Extra(inout x: f32[M, N], w: f32[M, N; ld, 1], t: i32[N], a: bf16[M, K], s: f64[]) -> (m: f32[M], v: f32[M], q: i32[]) \
    where K == 4096, 2 * Q == N { (m, v)[i] = fold(|j| init (-inf, 0.0), step (p, q) => (max(p, w[i, j]), q + 1.0), \
    merge ((p, q), (c, d)) => (max(p, c), q + d)); x[i, j] = if i < N - 1 && !(j >= 2 || true) { x[i, j] } else { -x[i, j] or 0.5 }; \
    q[] = sum(|i in 0..=3| t[i % 4 + Q / 2]) / 3 % 2 + argmax(|k| b[k] as f32) as i32; b[k in 0..M] = dot(|l| a[k, l] * a[k, l]); inline b; }";

/// Pieces of the text between spaces and around punctuation.
fn pieces(source: &str) -> Vec<String> {
    let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens of Rust"));
    (0..tokens.len()).map(|index| tokens.text(index).to_owned()).collect()
}

/// Builds whatever the parser makes of the text.
fn survive(source: &str) {
    let Ok(stream) = source.parse() else { return };
    let (tokens, _) = TokenBuffer::new(stream);
    let (program, _) = parse(&tokens);
    for kernel in &program.kernels {
        let mut found = Diagnostics::new();
        let built = build(kernel, &mut found);
        assert_eq!(built.is_none(), found.has_errors(), "{source}");
        if let Some(built) = built {
            // Every node and every span is there.
            let algorithm = &built.algorithm;
            assert!(!built.printed().to_string().contains('?'));
            assert_eq!(algorithm.values.len(), built.value_spans.len());
            assert_eq!(algorithm.values.len(), algorithm.types.len());
            assert_eq!(algorithm.indices.len(), built.index_spans.len());
            assert_eq!(algorithm.axes.len(), built.axis_spans.len());
            assert_eq!(algorithm.components.len(), built.component_spans.len());
            assert_eq!(algorithm.equations.len(), built.equation_spans.len());
        }
    }
}

#[test]
fn the_unchanged_text_survives() {
    survive(PROGRAMS);
    // Mutations of a refused kernel would test little.
    accepted(EXTRA);
}

/// One change to a list of tokens.
#[derive(Clone, Debug)]
enum Change {
    Delete(usize),
    Swap(usize, usize),
    Copy(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = || any::<usize>();
    prop_oneof![
        at().prop_map(Change::Delete),
        (at(), at()).prop_map(|(a, b)| Change::Swap(a, b)),
        (at(), at()).prop_map(|(a, b)| Change::Copy(a, b)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn mutated_programs_never_panic(changes in prop::collection::vec(change(), 1..6), which in 0..10_usize) {
        let kernels: Vec<&str> = PROGRAMS.split("\n\n").collect();
        let text = if which < 5 { EXTRA.to_owned() } else { kernels[which..].join("\n\n") };
        let mut tokens = pieces(&(if text.parse::<proc_macro2::TokenStream>().is_ok() { text } else { PROGRAMS.to_owned() }));
        for change in changes {
            let n = tokens.len();
            match change {
                Change::Delete(at) => { tokens.remove(at % n); }
                Change::Swap(a, b) => tokens.swap(a % n, b % n),
                Change::Copy(from, to) => tokens[to % n] = tokens[from % n].clone(),
            }
        }
        survive(&tokens.join(" "));
    }
}

#[test]
fn large_kernels_take_little_time() {
    let start = std::time::Instant::now();
    // A chain of inlined equations, each read with an offset.
    let mut body = String::from("b0[i] = x[i];");
    for n in 1..1000 {
        body += &format!("b{n}[i] = b{}[i + 1];", n - 1);
    }
    let (program, findings) = run(&kernel("(x: f32[N]) -> (y: f32[N])", &format!("{body} y[i] = b999[i];")));
    assert!(program.is_some(), "{findings}");
    // Many reads whose demands are compared under facts.
    let reads: Vec<String> = (0..150).map(|n| format!("c[{}]", if n % 2 == 0 { "i" } else { "i + M - N" })).collect();
    let source = format!("y[i] = {}; c[k] = x[k];", reads.join(" + "));
    let (program, findings) = run(&format!("kernel K(x: f32[M]) -> (y: f32[N]) where M >= N {{ {source} }}"));
    assert!(program.is_some(), "{findings}");
    // Equations that infer their ranges from each other, with nothing to start from.
    let mut body = String::from("y[] = sum(|k| e0[k]);");
    for n in 0..600 {
        body += &format!("e{n}[i] = sum(|k| e{}[k]) + 1.0f32;", n + 1);
    }
    let text = refused(&kernel("(x: f32[N]) -> (y: f32[])", &format!("{body} e600[i] = 1.0f32;")));
    assert!(text.contains("more errors"), "{text}");
    // A long cycle.
    let body: String = (0..1000).map(|n| format!("e{n}[i] = e{}[i];", (n + 1) % 1000)).collect();
    let text = refused(&kernel("(x: f32[N]) -> (y: f32[N])", &format!("{body} y[i] = e7[i];")));
    assert!(text.contains("`e4` reads `e5` reads … reads `e0`"), "{text}");
    let spent = start.elapsed();
    assert!(spent.as_secs() < 20, "{spent:?}");
}

#[test]
fn deep_expressions_are_survived() {
    let deep = |n: usize| format!("y[i] = {}x[i]{};", "(1.0 * ".repeat(n), ")".repeat(n));
    survive(&kernel("(x: f32[N]) -> (y: f32[N])", &deep(90)));
    survive(&kernel("(x: f32[N]) -> (y: f32[N])", &deep(2000)));
    let chain = |n: usize| format!("y[i] = x[i]{};", " + 1.0".repeat(n));
    survive(&kernel("(x: f32[N]) -> (y: f32[N])", &chain(150)));
    survive(&kernel("(x: f32[N]) -> (y: f32[N])", &chain(20_000)));
}

#[test]
fn braces_between_parameters_are_stepped_over() {
    survive("kernel K(x: f32[N] {} {}, {} y: f32[N] {}) -> ({} z: f32[N]) { z[i] = x[i]; }");
}

#[test]
fn extreme_numbers_are_survived() {
    for body in [
        "y[i] = x[i + 9223372036854775807] or 0.0;",
        "y[i] = x[i * 9223372036854775807 * 9223372036854775807 * 9223372036854775807] or 0.0;",
        "b[k] = x[k]; y[i] = b[i * 9223372036854775807 * 9223372036854775807 * 9223372036854775807];",
        "y[i in 0..=9223372036854775807] = x[i];",
        "y[i] = sum(|k in -9223372036854775807..=9223372036854775807| x[k]);",
        "y[i] = x[18446744073709551615];",
        "y[i] = 1e-999999999999999999999 * x[i] + 1e999999999;",
        "y[i] = x[i] + 18446744073709551615 as f32 + (1e308 as bf16) as f32;",
        "b[k] = x[k]; y[i] = b[(i + 5) / 4611686018427387904 % 3 * 4611686018427387904];",
    ] {
        survive(&kernel("(x: f32[N]) -> (y: f32[N])", body));
    }
    survive(
        "kernel K(x: f32[N * 9223372036854775807 * 9223372036854775807 * 9223372036854775807, N]) -> (y: f32[N]) { y[i] = sum(|k| x[k, i]); }",
    );
}
