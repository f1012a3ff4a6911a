//! Programs made to break the parser: soup, mutations, depth, length, invisible groups.

use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use proptest::prelude::*;

use super::super::parse;
use super::accept::{EVERYTHING, PROGRAMS};
use super::{accept, parse_text, render, stream};
use crate::diag::Code;
use crate::source::TokenBuffer;
use crate::source::ast::{BinaryOp, Expr, ExprKind, Item, UnaryOp};
use crate::source::print::{print_expr, print_program};

/// Parses a stream; whatever it is, the result can be printed, and an error has a place inside the stream.
fn survive(stream: TokenStream) {
    let (tokens, spans) = TokenBuffer::new(stream);
    assert_eq!(tokens.len(), spans.len());
    let (program, diagnostics) = parse(&tokens);
    if diagnostics.is_empty() {
        let printed = print_program(&program);
        assert_eq!(print_program(&accept(&printed)), printed);
    }
    for found in diagnostics.found() {
        assert!(found.code == Code::TW0010 || (found.primary.last.0 as usize) < tokens.len(), "{found:?}");
        assert!(found.primary.first <= found.primary.last, "{found:?}");
        assert!(found.code == Code::TW0010 || !tokens.span_text(found.primary).is_empty(), "{found:?}");
    }
}

/// Words and marks of the language.
fn leaf() -> impl Strategy<Value = Vec<TokenTree>> {
    const WORDS: &[&str] = &[
        "pub",
        "kernel",
        "where",
        "launch",
        "schedule",
        "stage",
        "inline",
        "unit",
        "tune",
        "pass",
        "split",
        "merge",
        "reorder",
        "resize",
        "swizzle",
        "bind",
        "vectorize",
        "unroll",
        "reduce",
        "like",
        "box",
        "tile",
        "layout",
        "multicast",
        "mma",
        "region",
        "fill",
        "l2",
        "online",
        "in",
        "per",
        "at",
        "via",
        "by",
        "ring",
        "or",
        "as",
        "if",
        "else",
        "fold",
        "init",
        "step",
        "merge",
        "sum",
        "max",
        "dot",
        "ordered",
        "threads",
        "cluster",
        "roles",
        "regs",
        "shared",
        "tma",
        "f32",
        "x",
        "y",
        "i",
        "j",
        "N",
        "true",
        "inf",
        "inout",
        "domain",
        "raster",
        "pad",
        "promote",
        "xor",
        "into",
        "over",
        "_",
        "let",
        "fn",
    ];
    const MARKS: &[&str] = &[
        ";", ",", ":", ".", "=", "->", "=>", "::", "+", "-", "*", "/", "%", "<", "<=", "==", "&&", "||", "|", "..",
        "..=", "!", "?", "#", "&", "'", "@", "$",
    ];
    prop_oneof![
        5 => proptest::sample::select(WORDS).prop_map(|word| vec![Ident::new(word, Span::call_site()).into()]),
        4 => proptest::sample::select(MARKS).prop_map(|marks| {
            let last = marks.len() - 1;
            marks
                .chars()
                .enumerate()
                .map(|(index, ch)| Punct::new(ch, if index < last { Spacing::Joint } else { Spacing::Alone }).into())
                .collect()
        }),
        1 => any::<u64>().prop_map(|value| vec![Literal::u64_unsuffixed(value).into()]),
        1 => any::<i32>().prop_map(|value| vec![Literal::i32_suffixed(value).into()]),
        1 => (-1e9..1e9_f64).prop_map(|value| vec![Literal::f64_unsuffixed(value).into()]),
        1 => Just(vec![Literal::string("s").into()]),
    ]
}

fn soup() -> impl Strategy<Value = Vec<TokenTree>> {
    let many =
        |part: BoxedStrategy<Vec<TokenTree>>| proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat());
    many(leaf().boxed()).prop_recursive(6, 200, 12, move |inner| {
        let delimiters = proptest::sample::select(vec![
            Delimiter::Parenthesis,
            Delimiter::Brace,
            Delimiter::Bracket,
            Delimiter::None,
        ]);
        let group = (delimiters, inner)
            .prop_map(|(delimiter, trees)| vec![TokenTree::Group(Group::new(delimiter, trees.into_iter().collect()))]);
        many(prop_oneof![2 => leaf(), 1 => group].boxed())
    })
}

/// A program with some tokens dropped, doubled, swapped or replaced, in one place or several, at any depth.
fn mutate(stream: TokenStream, edits: &mut Vec<(usize, u8, TokenTree)>, position: &mut usize) -> TokenStream {
    let mut out: Vec<TokenTree> = Vec::new();
    for tree in stream {
        *position += 1;
        let tree = match tree {
            TokenTree::Group(group) => {
                let delimiter = group.delimiter();
                Group::new(delimiter, mutate(group.stream(), edits, position)).into()
            }
            tree => tree,
        };
        match edits.iter().position(|(at, ..)| at == position) {
            None => out.push(tree),
            Some(index) => {
                let (_, kind, other) = edits.swap_remove(index);
                match kind % 5 {
                    0 => {}
                    1 => out.extend([tree.clone(), tree]),
                    2 => out.push(other),
                    3 => out.extend([other, tree]),
                    _ => out.push(Group::new(Delimiter::None, [tree, other].into_iter().collect()).into()),
                }
            }
        }
    }
    out.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn token_soup(trees in soup()) {
        survive(trees.into_iter().collect());
    }

    #[test]
    fn soup_in_a_kernel(trees in soup()) {
        let body: TokenStream = trees.into_iter().collect();
        let body = Group::new(Delimiter::Brace, body);
        let mut kernel = stream("kernel K(x: f32[N]) -> (y: f32[N])");
        kernel.extend([TokenTree::Group(body)]);
        survive(kernel);
    }

    #[test]
    fn mutated_programs(
        edits in proptest::collection::vec((1_usize..1500, any::<u8>(), leaf().prop_map(|trees| trees[0].clone())), 1..6),
        everything in any::<bool>(),
    ) {
        let source = if everything { EVERYTHING } else { PROGRAMS };
        survive(mutate(stream(source), &mut edits.clone(), &mut 0));
    }

    #[test]
    fn mutated_text(at in 0_usize..4000, length in 0_usize..30, with in "[ -~]{0,6}") {
        let source: Vec<char> = PROGRAMS.chars().collect();
        let at = at.min(source.len());
        let before = source[..at].iter().copied();
        let mutated: String = before.chain(with.chars()).chain(source[at..].iter().copied().skip(length)).collect();
        // Unbalanced text never reaches a macro.
        if let Ok(stream) = mutated.parse() {
            survive(stream);
        }
    }

    /// What the printer writes means what was printed, for every nesting of operators.
    #[test]
    fn printed_expressions_parse_to_themselves(expr in expr()) {
        let text = print_expr(&expr);
        let program = accept(&format!("kernel K() {{ y[] = {text}; }}"));
        let Item::Equation(equation) = &program.kernels[0].items[0] else { panic!("an equation") };
        prop_assert_eq!(shape(&equation.value), shape(&expr), "{}", text);
    }
}

/// A fully parenthesised rendering that does not use the printer's precedences.
fn shape(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Unary(op, operand) => format!("({op} {})", shape(operand)),
        ExprKind::Binary(lhs, op, rhs) => format!("({} {} {})", shape(lhs), op.value, shape(rhs)),
        ExprKind::Cast(value, ty) => format!("({} as {})", shape(value), ty.value),
        ExprKind::Read(read) => {
            let indices: Vec<String> = read.indices.iter().map(shape).collect();
            let otherwise = read.otherwise.as_ref().map(|expr| shape(expr));
            format!("({}{indices:?} or {otherwise:?})", read.tensor.text)
        }
        ExprKind::If(parts) => {
            format!("(if {} {} {})", shape(&parts.condition), shape(&parts.then), shape(&parts.otherwise))
        }
        ExprKind::Tuple(parts) => format!("{:?}", parts.iter().map(shape).collect::<Vec<_>>()),
        ExprKind::Reduction(reduction) => format!("({} {})", reduction.kind.value, shape(&reduction.body)),
        ExprKind::Name(name) => name.text.clone(),
        ExprKind::Int(literal) => literal.value.to_string(),
        other => panic!("not generated: {other:?}"),
    }
}

fn expr() -> impl Strategy<Value = Expr> {
    use crate::source::ast::{
        AxisDecl, ElementType, IfExpr, IntLiteral, Name, Read, Reduction, ReductionKind, Spanned,
    };
    let span = crate::source::Span::UNKNOWN;
    let name = move |text: &str| Name { text: text.to_owned(), span };
    let leaf = prop_oneof![
        proptest::sample::select(vec!["x", "or_", "N"]).prop_map(move |text| ExprKind::Name(name(text))),
        any::<u64>().prop_map(|value| ExprKind::Int(IntLiteral { value, suffix: None })),
    ];
    leaf.prop_map(move |kind| Expr { kind, span }).prop_recursive(6, 40, 3, move |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            (boxed.clone(), proptest::sample::select(BinaryOp::ALL), boxed.clone())
                .prop_map(move |(lhs, value, rhs)| ExprKind::Binary(lhs, Spanned { value, span }, rhs)),
            (proptest::sample::select(UnaryOp::ALL), boxed.clone())
                .prop_map(|(op, operand)| ExprKind::Unary(op, operand)),
            (boxed.clone(), proptest::sample::select(ElementType::ALL.to_vec()))
                .prop_map(move |(value, ty)| ExprKind::Cast(value, Spanned { value: ty, span })),
            (proptest::collection::vec(inner.clone(), 0..3), proptest::option::of(boxed.clone()))
                .prop_map(move |(indices, otherwise)| ExprKind::Read(Read { tensor: name("t"), indices, otherwise })),
            proptest::collection::vec(inner.clone(), 1..4).prop_map(ExprKind::Tuple),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(condition, then, otherwise)| {
                ExprKind::If(Box::new(IfExpr { condition, then, otherwise }))
            }),
            inner.prop_map(move |body| {
                let axes = vec![AxisDecl { name: name("k"), range: None, span }];
                let kind = Spanned { value: ReductionKind::Sum, span };
                ExprKind::Reduction(Box::new(Reduction { kind, order: None, axes, body, promote: None }))
            }),
        ]
        .prop_map(move |kind| Expr { kind, span })
    })
}

/// The codes found in an equation with this right-hand side.
fn codes(value: &str) -> Vec<Code> {
    let (_, diagnostics) = parse_text(&format!("kernel K() {{ y[] = {value}; }}"));
    diagnostics.found().iter().map(|found| found.code).collect()
}

#[test]
fn depth_is_bounded() {
    let nested = |open: &str, close: &str, count: usize| format!("{}x{}", open.repeat(count), close.repeat(count));
    for (open, close) in
        [("(", ")"), ("-", ""), ("!", ""), ("x[", "]"), ("exp(", ")"), ("sum(|k| ", ")"), ("1 + (", ")")]
    {
        assert_eq!(codes(&nested(open, close, 30)), [], "{open}");
        assert_eq!(codes(&nested(open, close, 2000)), [Code::TW0003], "{open}");
    }
    let branches = |count: usize| format!("{} {{ 0 }}", "if x { 1 } else ".repeat(count));
    assert_eq!(codes(&branches(50)), []);
    assert_eq!(codes(&branches(5000)), [Code::TW0003]);
}

/// A chain of operators makes a tree as deep as it is long, and later rooms walk it recursively.
#[test]
fn chains_are_bounded() {
    for link in [" + x", " * x", " && x", " as f32"] {
        assert_eq!(codes(&format!("x{}", link.repeat(150))), [], "{link}");
        assert_eq!(codes(&format!("x{}", link.repeat(50_000))), [Code::TW0003], "{link}");
    }
    assert_eq!(codes(&format!("x[0]{}", " or x[0]".repeat(5000))), [Code::TW0003]);
    // Long lists are not deep.
    assert_eq!(codes(&format!("f({})", "x, ".repeat(5000))), []);
}

/// Groups nested as deep as a stream can be: the buffer is made without recursion, the kernel refuses them.
#[test]
fn nested_groups() {
    for delimiter in [Delimiter::Parenthesis, Delimiter::Brace, Delimiter::Bracket, Delimiter::None] {
        let mut inner = stream("x x");
        for _ in 0..3000 {
            let group = TokenTree::Group(Group::new(delimiter, inner));
            inner = [group, Punct::new('+', Spacing::Alone).into()].into_iter().collect();
        }
        let mut kernel = stream("kernel K() { y[] = }");
        survive(inner.clone());
        kernel.extend(inner);
        survive(kernel);
    }
}

/// A thousand mistakes are found in one pass, and the time is linear in the tokens.
#[test]
fn many_mistakes() {
    let body = "y[i] = ; schedule y { spilt i; bind : } foo; ".repeat(2000);
    let (_, diagnostics) = parse_text(&format!("kernel K() {{ {body} }}"));
    let report = diagnostics.finish();
    assert_eq!(report.errors.len(), 8);
    assert!(report.more_errors > 5000);
}

/// `$e:expr` of a user's macro arrives in an invisible group, which binds like parentheses; other fragments do not
/// matter.
#[test]
fn invisible_groups() {
    let hidden = |source: &str| TokenTree::Group(Group::new(Delimiter::None, stream(source)));
    let mut body = stream("y[] = 2 *");
    body.extend([hidden("a + b")]);
    body.extend(stream("- c; z[] ="));
    body.extend([hidden("x")]);
    body.extend(stream("[0] *"));
    body.extend([hidden("x[1]")]);
    body.extend(stream("or 0; schedule"));
    body.extend([hidden("y")]);
    body.extend([TokenTree::Group(Group::new(
        Delimiter::Brace,
        [
            stream("bind i:"),
            [hidden("thread")].into_iter().collect(),
            stream("; split i by"),
            [hidden("2 * 8")].into_iter().collect(),
            stream("-> a, b;"),
        ]
        .into_iter()
        .collect(),
    ))]);
    let mut kernel: TokenStream = [hidden("pub ( crate )"), hidden("")].into_iter().collect();
    kernel.extend(stream("kernel K()"));
    kernel.extend([TokenTree::Group(Group::new(Delimiter::Brace, body))]);
    let (tokens, _) = TokenBuffer::new(kernel);
    let (program, diagnostics) = parse(&tokens);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    expect_test::expect![[r#"
        pub(crate) kernel K()
        {
            y[] = 2 * (a + b) - c;
            z[] = x[0] * x[1] or 0;

            schedule y {
                bind i: thread;
                split i by 2 * 8 -> a, b;
            }
        }
    "#]]
    .assert_eq(&print_program(&program));
}

/// Tensors, axes and stages may have the names of keywords.
#[test]
fn keywords_are_names_where_they_can_be() {
    accept(
        "kernel kernel(launch: f32[N], schedule: f32[N], pub_: f32) -> (stage: f32[N]) {
            stage[by] = launch[by] + schedule[by] + sum(|at, into| sum[at]) + max(fold, dot) + box;
            (split, merge)[bind] = fold(|init| init init, step step => step + merge, merge (merge, by) => by);
            schedule stage at bind.bind { split by by 4 -> into, by; merge merge, box -> like; bind bind, grid: grid; like like; }
            stage stage[i] = stage by by via tma;
            inline inline;
        }",
    );
}

#[test]
fn rendering_survives_everything() {
    for source in
        ["", ";", "kernel K(", "#[doc = 1] kernel K() {}", "/// doc\nkernel", "/** a\nb */ kernel K() -> {}", "#"]
    {
        if source.parse::<TokenStream>().is_ok() {
            assert!(render(source).is_empty() || render(source).contains("TW00"), "{source}");
        }
    }
}

/// Attributes and visibilities go back to Rust as they came.
#[test]
fn tokens_go_back_to_rust() {
    let source = "#[doc = \"a\"] #[cfg(all(unix, not(test)))] pub(in a::b) kernel r#K() {}";
    let (tokens, spans) = TokenBuffer::new(stream(source));
    let (program, _) = parse(&tokens);
    let kernel = &program.kernels[0];
    let visibility = kernel.visibility.as_ref().expect("a visibility");
    assert_eq!(visibility.text, "pub(in a::b)");
    let same = |span, text: &str| assert_eq!(tokens.to_stream(span, &spans).to_string(), stream(text).to_string());
    same(visibility.span, "pub(in a::b)");
    same(kernel.attributes[1].span, "#[cfg(all(unix, not(test)))]");
    same(crate::source::Span { first: crate::source::SpanId(0), last: crate::source::SpanId(u32::MAX) }, source);
}

/// The text of a doc comment may come from a macro of Rust, such as a picture from a file.
#[test]
fn documentation_may_be_a_file() {
    let kernel = "kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; }";
    let source = format!("#[doc = include_str!(\"k.svg\")] {kernel}");
    assert_eq!(render(&source), "");
    let (tokens, spans) = TokenBuffer::new(stream(&source));
    let (program, _) = parse(&tokens);
    let attribute = &program.kernels[0].attributes[0];
    assert_eq!(attribute.doc, None);
    let text = tokens.to_stream(attribute.span, &spans).to_string();
    assert_eq!(text, stream("#[doc = include_str!(\"k.svg\")]").to_string());
    for wrong in ["include_str", "1 + 1", "!", ""] {
        assert!(render(&format!("#[doc = {wrong}] {kernel}")).contains("TW000"), "{wrong}");
    }
}
