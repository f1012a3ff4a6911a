//! How findings look: in rustc, on the command line, and where positions are unknown.

use expect_test::{Expect, expect};

use super::{Code, Diagnostic, Diagnostics, Level, Renderer};
use crate::source::{Position, Span, SpanId, TokenBuffer, TokenMap, locate};

const SOURCE: &str = "
kernel Columns(x: f32[K, M]) -> (y: f32[M]) {
    y[m] = dot(|k| x[k, m] * w[k]);

    stage xs[k, m] = x in shared at y.ko via tma {
        tile kb by 4 -> kt, ks; // a comment
    }
}
";

/// The source under test with what is needed to render over it.
struct Case {
    tokens: TokenBuffer,
    spans: Vec<proc_macro2::Span>,
}

impl Case {
    fn new(source: &str) -> Case {
        let (tokens, spans) = TokenBuffer::new(source.parse().expect("tokens of Rust"));
        Case { tokens, spans }
    }

    /// The span of the first run of tokens with these texts.
    fn find(&self, texts: &str) -> Span {
        let texts: Vec<&str> = texts.split(' ').collect();
        let first = (0..self.tokens.len())
            .find(|&start| texts.iter().enumerate().all(|(step, text)| self.tokens.text(start + step) == *text))
            .expect("the tokens occur");
        let id = |index: usize| SpanId(u32::try_from(index).expect("a short test"));
        Span { first: id(first), last: id(first + texts.len() - 1) }
    }

    /// Runs `then` with a renderer, with or without positions.
    fn with<T>(&self, positions: bool, then: impl FnOnce(&Renderer<'_>) -> T) -> T {
        let map = TokenMap {
            tokens: &self.tokens,
            spans: &self.spans,
            locate: |span| {
                let file = if positions { "src/columns.rs" } else { "" };
                locate(span).map(|position| Position { file: file.to_owned(), ..position })
            },
        };
        then(&Renderer::new(&map))
    }
}

/// A finding with one of everything.
fn strided_hole(case: &Case) -> Diagnostic {
    let title = "a strided tile cannot be zero-filled: element stride 4 does not divide the box of 6";
    Diagnostic::new(Code::TW0204, case.find("tile kb by 4"), title)
        .label(case.find("dot"), "this needs the holes to be zero")
        .note("`y` sums over `k` unpredicated, so holes of `xs` must be 0 (strong correctness)")
        .counterexample(
            "K = 7: box 0, stride phase 2, slot 1 is position 6; it is outside the box [0, 6) but inside the tensor, so TMA \
             loads x[6, ..] instead of 0",
        )
        .help("use a stride that divides the box: `tile kb by 3 -> kt, ks`")
        .help("state `K <= 6`")
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(text);
}

#[test]
fn for_rustc_the_other_place_is_drawn() {
    let case = Case::new(SOURCE);
    let text = case.with(true, |renderer| renderer.message(&strided_hole(&case)));
    check(
        &text,
        expect![[r#"
        [TW0204] a strided tile cannot be zero-filled: element stride 4 does not divide the box of 6
         --> src/columns.rs:3:12
          |
        3 |     y[m] = dot(|k| x[k, m] * w[k]);
          |            --- this needs the holes to be zero
          = note: `y` sums over `k` unpredicated, so holes of `xs` must be 0 (strong correctness)
          = counterexample: K = 7: box 0, stride phase 2, slot 1 is position 6; it is outside the box [0, 6) but inside the
            tensor, so TMA loads x[6, ..] instead of 0
          = help: use a stride that divides the box: `tile kb by 3 -> kt, ks`
          = help: state `K <= 6`
          = explain: TW0204"#]],
    );
}

#[test]
fn for_the_command_line_everything_is_drawn() {
    let case = Case::new(SOURCE);
    let text = case.with(true, |renderer| renderer.text(&strided_hole(&case)));
    check(
        &text,
        expect![[r#"
        error[TW0204]: a strided tile cannot be zero-filled: element stride 4 does not divide the box of 6
         --> src/columns.rs:6:9
          |
        3 |     y[m] = dot(|k| x[k, m] * w[k]);
          |            --- this needs the holes to be zero
        ...
        6 |         tile kb by 4 -> kt, ks;
          |         ^^^^^^^^^^^^
          = note: `y` sums over `k` unpredicated, so holes of `xs` must be 0 (strong correctness)
          = counterexample: K = 7: box 0, stride phase 2, slot 1 is position 6; it is outside the box [0, 6) but inside the
            tensor, so TMA loads x[6, ..] instead of 0
          = help: use a stride that divides the box: `tile kb by 3 -> kt, ks`
          = help: state `K <= 6`
          = explain: TW0204
    "#]],
    );
}

#[test]
fn without_positions_places_are_named() {
    let case = Case::new(SOURCE);
    let found = strided_hole(&case);
    let text = case.with(false, |renderer| format!("{}\n\n{}", renderer.message(&found), renderer.text(&found)));
    check(
        &text,
        expect![[r#"
        [TW0204] a strided tile cannot be zero-filled: element stride 4 does not divide the box of 6
          = note: at `dot`: this needs the holes to be zero
          = note: `y` sums over `k` unpredicated, so holes of `xs` must be 0 (strong correctness)
          = counterexample: K = 7: box 0, stride phase 2, slot 1 is position 6; it is outside the box [0, 6) but inside the
            tensor, so TMA loads x[6, ..] instead of 0
          = help: use a stride that divides the box: `tile kb by 3 -> kt, ks`
          = help: state `K <= 6`
          = explain: TW0204

        error[TW0204]: a strided tile cannot be zero-filled: element stride 4 does not divide the box of 6
         --> at `tile kb by 4`
          = note: at `dot`: this needs the holes to be zero
          = note: `y` sums over `k` unpredicated, so holes of `xs` must be 0 (strong correctness)
          = counterexample: K = 7: box 0, stride phase 2, slot 1 is position 6; it is outside the box [0, 6) but inside the
            tensor, so TMA loads x[6, ..] instead of 0
          = help: use a stride that divides the box: `tile kb by 3 -> kt, ks`
          = help: state `K <= 6`
          = explain: TW0204
    "#]],
    );
}

#[test]
fn unknown_spans_are_left_out() {
    let case = Case::new(SOURCE);
    let found = Diagnostic::new(Code::TW9001, Span::UNKNOWN, "nowhere").label(Span::UNKNOWN, "nor here");
    let text = case.with(true, |renderer| format!("{}\n\n{}", renderer.message(&found), renderer.text(&found)));
    check(
        &text,
        expect![[r#"
        [TW9001] nowhere
          = note: nor here
          = explain: TW9001

        error[TW9001]: nowhere
          = note: nor here
          = explain: TW9001
    "#]],
    );
}

#[test]
fn places_on_several_lines() {
    let case = Case::new(SOURCE);
    let whole = case.find("stage xs").to(case.find("ks ;"));
    let found = Diagnostic::new(Code::TW0702, whole, "a range of several lines is marked on its first")
        .label(case.find("y . ko"), "same line")
        .label(case.find("kernel"), "two lines before")
        .label(case.find("x [ k , m ]"), "");
    let text = case.with(true, |renderer| renderer.text(&found));
    check(
        &text,
        expect![[r#"
        error[TW0702]: a range of several lines is marked on its first
         --> src/columns.rs:5:5
          |
        2 | kernel Columns(x: f32[K, M]) -> (y: f32[M]) {
          | ------ two lines before
        3 |     y[m] = dot(|k| x[k, m] * w[k]);
          |                    -------
        ...
        5 |     stage xs[k, m] = x in shared at y.ko via tma {
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          |                                     ---- same line
          = explain: TW0702
    "#]],
    );
}

#[test]
fn tokens_of_another_file_are_drawn_apart() {
    let case = Case::new(SOURCE);
    let foreign = case.find("4").first.0 as usize;
    let mut places: Vec<Option<Position>> = case.spans.iter().map(|span| locate(*span)).collect();
    for (index, place) in places.iter_mut().enumerate() {
        if let Some(place) = place {
            let here = if index == foreign { "src/macros.rs" } else { "src/columns.rs" };
            here.clone_into(&mut place.file);
        }
    }
    struct Map<'a>(&'a TokenBuffer, Vec<Option<Position>>);
    impl crate::source::SourceMap for Map<'_> {
        fn token_count(&self) -> usize {
            self.0.len()
        }
        fn position(&self, id: SpanId) -> Option<Position> {
            self.1.get(id.0 as usize)?.clone()
        }
        fn token_text(&self, id: SpanId) -> &str {
            self.0.text(id.0 as usize)
        }
        fn span_text(&self, span: Span) -> String {
            self.0.span_text(span)
        }
    }
    let map = Map(&case.tokens, places);
    let found =
        Diagnostic::new(Code::TW0204, case.find("tile kb"), "a stride from a macro").label(case.find("4"), "this");
    check(
        &Renderer::new(&map).text(&found),
        expect![[r#"
        error[TW0204]: a stride from a macro
         --> src/columns.rs:6:9
          |
        6 |         tile kb by   -> kt, ks;
          |         ^^^^^^^
         ::: src/macros.rs:6:20
          |
        6 |                    4
          |                    - this
          = explain: TW0204
    "#]],
    );
}

#[test]
fn what_stands_at_a_place_is_named_as_it_is_printed() {
    let source = "bind t : thread ; split i by - 1 -> a , b ; y [ i , j - 1 ] = - x [ i ] or - 1.0 + f ( a ) * ! b ; \
                  sum ( | k in 0 ..= i , j | - x [ k ] ) ; mma ( m , n , k ) by wgmma ; layout [ a pad 8 ] ; \
                  if a && b || c { 1 } else { 2 } ; approx :: exp ( x ) ; a . b ; launch roles { load : warp }";
    let case = Case::new(source);
    let text = case.tokens.span_text(case.find("bind").to(case.find("}")));
    check(
        &text,
        expect![
            "bind t: thread; split i by -1 -> a, b; y[i, j - 1] = -x[i] or -1.0 + f(a) * !b; sum(|k in 0..=i, j| -x[k]); mma (m, n, k) by wgmma; layout [a pad 8]; if a && b || c { 1 }"
        ],
    );
    let whole = Span { first: SpanId(0), last: SpanId(u32::MAX) };
    check(
        &case.tokens.span_text(whole),
        expect![
            "bind t: thread; split i by -1 -> a, b; y[i, j - 1] = -x[i] or -1.0 + f(a) * !b; sum(|k in 0..=i, j| -x[k]); mma (m, n, k) by wgmma; layout [a pad 8]; if a && b || c { 1 } else { 2 }; approx::exp(x); a.b; launch roles { load: warp }"
        ],
    );
}

#[test]
fn findings_are_sorted_deduplicated_and_capped() {
    let case = Case::new(SOURCE);
    let mut diagnostics = Diagnostics::new();
    for index in (0..11).rev() {
        let span = Span::token(SpanId(index));
        diagnostics.report(Diagnostic::new(Code::TW0101, span, format!("finding {index}")));
        diagnostics.report(Diagnostic::new(Code::TW0101, span, "the same place again"));
    }
    let mut warning = Diagnostic::new(Code::TW0401, Span::token(SpanId(0)), "slow");
    warning.level = Level::Warning;
    diagnostics.report(warning);
    assert!(diagnostics.has_errors());
    let report = diagnostics.finish();
    assert_eq!((report.errors.len(), report.more_errors), (8, 3));
    assert_eq!(report.errors[0].title, "finding 0");
    assert_eq!((report.warnings.len(), report.more_warnings), (1, 0));
    let messages = case.with(true, |renderer| renderer.messages(&report));
    let titles: Vec<&str> = messages.iter().filter_map(|message| message.text.lines().next()).collect();
    check(
        &titles.join("\n"),
        expect![[r#"
        [TW0101] finding 0
        [TW0101] finding 1
        [TW0101] finding 2
        [TW0101] finding 3
        [TW0101] finding 4
        [TW0101] finding 5
        [TW0101] finding 6
        [TW0101] finding 7
        and 3 more errors
        [TW0401] slow"#]],
    );
}

#[test]
fn a_flood_of_findings_is_counted_not_kept() {
    let mut diagnostics = Diagnostics::new();
    for index in 0..5000 {
        diagnostics.report(Diagnostic::new(Code::TW0101, Span::token(SpanId(index)), "again"));
    }
    assert!(diagnostics.found().len() <= 1000);
    let report = diagnostics.finish();
    assert_eq!(report.errors.len() + report.more_errors, 5000);
}

#[test]
fn edits_come_with_the_tokens_they_replace() {
    let found = Diagnostic::new(Code::TW0702, Span::token(SpanId(3)), "too small").help("make it larger");
    let edited = found.replace(Span::token(SpanId(4)), "4", "write 4");
    let change = super::Change::Replace(Span::token(SpanId(4)), "4".to_owned());
    assert_eq!(edited.help[1].change, Some(change));
}

#[test]
fn warnings_can_be_silenced_and_errors_cannot() {
    let mut diagnostics = Diagnostics::new();
    for (code, level) in [
        (Code::TW0401, Level::Warning),
        (Code::TW0401, Level::Error),
        (Code::TW0601, Level::Warning),
        (Code::TW0601, Level::Error),
    ] {
        let mut found = Diagnostic::new(code, Span::token(SpanId(0)), "found");
        found.level = level;
        diagnostics.report(found);
    }
    let code = Code::from_text("TW0401").expect("a code");
    assert!(diagnostics.silence(code));
    assert!(!diagnostics.silence(code));
    let left: Vec<_> = diagnostics.found().iter().map(|found| (found.code, found.level)).collect();
    assert_eq!(left, [(Code::TW0401, Level::Error), (Code::TW0601, Level::Warning), (Code::TW0601, Level::Error)]);
    assert_eq!(Code::from_text("TW9999"), None);
}

/// Rows are in order, and every code names itself by its hundreds and has a name of its own.
#[test]
fn the_table_of_codes_is_well_formed() {
    let rows: Vec<_> = Code::ALL.iter().map(|code| code.row()).collect();
    assert!(rows.windows(2).all(|pair| pair[0].code < pair[1].code));
    for row in &rows {
        assert!(row.code.len() == 6 && row.code.starts_with("TW"), "{row:?}");
        assert!(row.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{row:?}");
        assert_eq!(rows.iter().filter(|other| other.name == row.name).count(), 1, "{row:?}");
    }
}
