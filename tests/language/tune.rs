//! Constants with candidates: a kernel with them is the kernel with literals in their place, and a record is about that
//! kernel alone.

use tilewright_compiler::diag::{Code, Diagnostics};
use tilewright_compiler::source::ast::{Expr, ExprKind, Item};
use tilewright_compiler::source::{Span, SpanId, TokenBuffer};
use tilewright_compiler::syntax::parse;
use tilewright_compiler::tune::Ranking;
use tilewright_compiler::{Compiled, Outcome, compile, compile_with};

use crate::invocations;

fn buffer(text: &str) -> TokenBuffer {
    TokenBuffer::new(text.parse().unwrap_or_else(|error| panic!("no Rust tokens ({error}):\n{text}"))).0
}

fn outcome(text: &str) -> Outcome {
    compile(&buffer(text))
}

fn codes(found: &Diagnostics) -> Vec<Code> {
    found.found().iter().map(|finding| finding.code).collect()
}

/// All that a launch takes of a kernel but its explanation and the text of its statements.
fn launched(kernel: &Compiled) -> Option<tilewright::kernel::KernelInfo> {
    let mut info = kernel.info.clone()?;
    (info.explanation, info.statements) = ("".into(), Vec::new().into());
    Some(info)
}

/// A text with other texts in the place of tokens, and one before its last token.
fn with(tokens: &TokenBuffer, mut instead: Vec<(Span, String)>, last: &str) -> String {
    instead.sort_by_key(|(span, _)| *span);
    let part = |from: u32, to: u32| match to.checked_sub(1) {
        Some(end) if from <= end => tokens.span_text(Span { first: SpanId(from), last: SpanId(end) }),
        _ => String::new(),
    };
    let (mut text, mut next) = (String::new(), 0);
    for (span, new) in instead {
        text += &format!("{} {new} ", part(next, span.first.0));
        next = span.last.0 + 1;
    }
    let end = tokens.len() as u32;
    text + &format!("{} {last} {}", part(next, end - 1), part(end - 1, end))
}

/// The numbers of a schedule: the place and the value of each.
fn numbers(kernel: &Compiled) -> Vec<(Span, u64)> {
    let mut found = Vec::new();
    for item in &mut kernel.ast.items.clone() {
        item.numbers_mut(&mut |number| {
            number.visit_mut(&mut |Expr { kind, span }| match kind {
                // Parentheses belong to the place of what is inside.
                ExprKind::Int(literal) if span.first == span.last => found.push((*span, literal.value)),
                _ => {}
            });
        });
    }
    found
}

/// Every number of every schedule of the examples, with a name in its place: the same kernel.
#[test]
fn a_name_is_the_literal_that_it_stands_for() {
    let (mut kernels, mut replaced) = (0, 0);
    for (example, text) in invocations::invocations() {
        let tokens = buffer(&text);
        let (parsed, _) = parse(&tokens);
        for kernel in &parsed.kernels {
            if kernel.items.iter().any(|item| matches!(item, Item::Tune(_))) {
                continue;
            }
            let alone = tokens.span_text(kernel.span);
            let before = outcome(&alone);
            let [plain] = &before.kernels[..] else { panic!("{example}: one kernel") };
            let names: Vec<(Span, String, u64)> = (numbers(plain).into_iter().enumerate())
                .map(|(at, (span, value))| (span, format!("NUMBER{at}"), value))
                .collect();
            if names.is_empty() {
                continue;
            }
            let list: Vec<String> = names.iter().map(|(_, name, value)| format!("{name} in [{value}]")).collect();
            let instead = names.iter().map(|(span, name, _)| (*span, name.clone())).collect();
            let named = with(&buffer(&alone), instead, &format!("tune {};", list.join(", ")));
            let after = outcome(&named);
            assert_eq!(codes(&after.diagnostics), codes(&before.diagnostics), "{example}:\n{named}");
            let [tuned] = &after.kernels[..] else { panic!("{example}: one kernel") };
            assert!(launched(plain).is_some(), "{example}: {alone}");
            assert!(launched(tuned) == launched(plain), "{example}: another kernel\n{named}");
            (kernels, replaced) = (kernels + 1, replaced + names.len());
        }
    }
    assert!(kernels > 40 && replaced > 300, "{replaced} numbers of {kernels} kernels");
}

/// A product with 27 combinations, some of which are refused.
fn product(bn: &str, stages: &str, swizzle: &str, tune: &str) -> String {
    format!(
        "kernel Product(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N]) where K % 8 == 0, N % 8 == 0 {{
            acc[m, n] = dot(|k| a[m, k] * b[n, k]);
            c[m, n] = acc[m, n] as bf16;
            {tune}
            schedule c {{
                split m by 64 -> mt, mi; split n by {bn} -> nt, n1; reorder mt, nt, mi, n1;
                bind mt, nt: grid; fragment (mi, n1) by wgmma; vectorize n1_p;
            }}
            schedule acc in registers at c.nt {{
                split k by 64 -> ko, ki; reorder ko, m, n, ki; mma (m, n, ki) by wgmma;
            }}
            stage sa[m, k] = a in shared at acc.ko ring({stages}) via tma {{ layout [m, k] swizzle {swizzle}; }}
            stage sb[n, k] = b in shared at acc.ko ring({stages}) via tma {{ layout [n, k] swizzle {swizzle}; }}
        }}"
    )
}

/// Each combination gives what literals give: the same kernel, or the same reason.
#[test]
fn every_combination_is_the_literal_schedule() {
    let tune = "tune BN in [64, 256, 100], STAGES in [2, 3, 8], W in [128, 64, 48];";
    let text = product("BN", "STAGES", "W", tune);
    let tokens = buffer(&text);
    let found = compile(&tokens);
    let kernel = &found.kernels[0];
    let tuned = kernel.tuned.as_ref().expect("constants");
    assert_eq!(codes(&found.diagnostics), []);
    assert_eq!(tuned.chosen.as_deref(), Some(&[64, 2, 128][..]));
    let (mut legal, mut refused) = (0, 0);
    let combinations = tuned.combinations();
    assert_eq!((combinations.len(), &combinations[..2]), (27, &[vec![64, 2, 128], vec![64, 2, 64]][..]));
    for values in combinations {
        let (variant, said) = compile_with(&kernel.ast, tuned, &values, &tokens);
        let [bn, stages, swizzle] = [0, 1, 2].map(|at: usize| values[at].to_string());
        let literal = outcome(&product(&bn, &stages, &swizzle, ""));
        assert!(launched(&variant) == launched(&literal.kernels[0]), "{values:?}");
        assert_eq!(codes(&said), codes(&literal.diagnostics), "{values:?}");
        match variant.info {
            Some(_) => legal += 1,
            None => refused += 1,
        }
    }
    assert!(legal >= 5 && refused >= 8, "{legal} legal, {refused} refused");
}

fn scale(equation: &str, fact: &str, tune: &str, op: &str) -> String {
    format!(
        "kernel Scale(x: f32[N]) -> (y: f32[N]) where {fact} {{ y[i] = {equation}; {tune}
        schedule y {{ split i by 4 -> io, v; split io by T -> b, t; bind b: grid; bind t: thread; {op} }} }}"
    )
}

/// A record is about one kernel: other facts, equations, schedules or candidates are noticed.
#[test]
fn a_record_is_about_one_kernel() {
    let plain = scale("2.0 * x[i]", "N % 4 == 0", "tune T in [128, 256];", "vectorize v;");
    let tokens = buffer(&plain);
    let found = compile(&tokens);
    let tuned = found.kernels[0].tuned.as_ref().expect("constants");
    let (chosen, _) = compile_with(&found.kernels[0].ast, tuned, &[256], &tokens);
    let ranking = Ranking { machine: "h200".to_owned(), measured: false, sizes: "N=4096".to_owned() };
    let record = tuned.written(&[256], &ranking, chosen.info.as_ref().expect("a kernel"));
    let with_record = |candidates: &str| format!("tune T in [{candidates}] {record};");
    let now = outcome(&scale("2.0 * x[i]", "N % 4 == 0", &with_record("128, 256"), "vectorize v;"));
    assert_eq!(codes(&now.diagnostics), []);
    assert!(launched(&now.kernels[0]) == launched(&chosen));
    let explained = now.kernels[0].info.as_ref().map(|info| info.explanation.to_string()).unwrap_or_default();
    assert!(explained.ends_with("constants: T = 256 (of 2 combinations; chosen by h200 at N=4096)\n"), "{explained}");
    for other in [
        scale("3.0 * x[i]", "N % 4 == 0", &with_record("128, 256"), "vectorize v;"),
        scale("2.0 * x[i]", "N % 8 == 0", &with_record("128, 256"), "vectorize v;"),
        scale("2.0 * x[i]", "N % 4 == 0", &with_record("128, 256"), "unroll v;"),
        scale("2.0 * x[i]", "N % 4 == 0", &with_record("256, 128"), "vectorize v;"),
        scale("2.0 * x[i]", "N % 4 == 0", &with_record("64, 128, 256"), "vectorize v;"),
    ] {
        let stale = outcome(&other);
        assert_eq!(codes(&stale.diagnostics), [Code::TW1105], "{other}");
        assert!(stale.kernels[0].info.is_none());
    }
}

/// What is wrong whatever the constants are is said once, as without them.
#[test]
fn a_shared_reason_is_said_as_it_is() {
    let tune = "tune T in [128, 256];";
    let found = outcome(&scale("2 * x[i]", "N % 4 == 0", tune, "vectorize v;"));
    assert_eq!(codes(&found.diagnostics), [Code::TW0122]);
    let found = outcome(&scale("2.0 * x[i]", "N % 2 == 0", tune, "vectorize v;"));
    assert_eq!(codes(&found.diagnostics), [Code::TW0201]);
    // Each for a reason of its own.
    let found = outcome(&scale("2.0 * x[i]", "N % 4 == 0", "tune T in [0, 4096];", "vectorize v;"));
    assert_eq!(codes(&found.diagnostics), [Code::TW1104]);
}

/// Edits that want another number leave the choice to the author; the others keep the names.
#[test]
fn no_edit_puts_a_number_over_a_name() {
    let (mut edits, mut left) = (0, 0);
    for (text, code) in [
        (scale("2.0 * x[i]", "N % 2 == 0", "tune T in [128, 256];", "vectorize v;"), Code::TW0201),
        (product("BN", "2", "128", "tune BN in [100];"), Code::TW0801),
        (
            "kernel Scale(x: f32[N]) -> (y: f32[N]) { y[i] = 2.0 * x[i]; tune T in [512]; launch threads(T);
             schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; } }"
                .to_owned(),
            Code::TW0690,
        ),
    ] {
        let tokens = buffer(&text);
        let uses = |text: &str| text.split(|c: char| !c.is_alphanumeric()).filter(|w| *w == "T" || *w == "BN").count();
        let found = compile(&tokens).diagnostics;
        assert_eq!(codes(&found), [code], "{text}");
        for help in found.found().iter().flat_map(|finding| &finding.help) {
            left += usize::from(help.text.contains(" would need the candidate "));
            let Some(edit) = &help.edit else { continue };
            edits += 1;
            assert!(uses(&edit.apply(&tokens)) >= uses(&text), "{}\n{}", help.text, edit.apply(&tokens));
        }
    }
    assert!(edits >= 2 && left >= 2, "{edits} edits, {left} choices");
}

#[test]
fn skipped_candidates_are_warned_of_and_allowed() {
    let kernel = "kernel Scale(x: f32[N]) -> (y: f32[N]) { y[i] = 2.0 * x[i]; tune T in [2048, 256];
        schedule y { split i by T -> b, t; bind b: grid; bind t: thread; } }";
    let found = outcome(kernel);
    assert_eq!(codes(&found.diagnostics), [Code::TW1190]);
    assert_eq!(found.kernels[0].tuned.as_ref().and_then(|tuned| tuned.chosen.clone()), Some(vec![256]));
    assert_eq!(codes(&outcome(&format!("#[allow(TW1190)] {kernel}")).diagnostics), []);
}
