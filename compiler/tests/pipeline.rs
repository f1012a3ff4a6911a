//! The whole road from source text to PTX: the remarks of the target programs, and what must never happen to a user.

use tilewright_compiler::diag::Renderer;
use tilewright_compiler::source::{TokenBuffer, TokenMap};
use tilewright_compiler::trial::Depth;
use tilewright_compiler::{compile, compile_to};
use tilewright_kernel::KernelInfo;

/// Compiles source text: what every kernel became, or the report.
fn run(source: &str) -> Result<Vec<KernelInfo>, String> {
    let stream = source.parse().expect("Rust tokens");
    let (tokens, spans) = TokenBuffer::new(stream);
    let outcome = compile(&tokens);
    let map = TokenMap { tokens: &tokens, spans: &spans, locate: |_| None };
    if outcome.diagnostics.has_errors() {
        return Err(Renderer::new(&map).report(&outcome.diagnostics.finish()));
    }
    Ok(outcome.kernels.into_iter().map(|k| k.info.expect("no error, so a kernel")).collect())
}

fn accepted(source: &str) -> KernelInfo {
    run(source).unwrap_or_else(|report| panic!("{source}\n{report}")).remove(0)
}

/// The report of a refused kernel, which names exactly these codes.
fn refused(source: &str, codes: &[&str]) -> String {
    let report = match run(source) {
        Ok(_) => panic!("accepted: {source}"),
        Err(report) => report,
    };
    let found: Vec<&str> = report.lines().filter_map(|l| l.strip_prefix("error[")).map(|l| &l[..6]).collect();
    assert_eq!(found, codes, "{report}");
    report
}

fn saxpy(facts: &str, vectorize: &str) -> String {
    format!(
        "pub kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N]) {facts} {{
            z[i] = a * x[i] + y[i];
            launch threads(256);
            schedule z {{
                split i by 4 -> io, v; split io by 256 -> b, t;
                bind b: grid; bind t: thread; {vectorize}
            }}
        }}"
    )
}

/// Program 01 and its remarks.
#[test]
fn saxpy_needs_its_fact_only_for_vectors() {
    let kernel = accepted(&saxpy("where N % 4 == 0", "vectorize v;"));
    assert!(kernel.ptx.text.contains("ld.global.nc.v4.f32") && kernel.ptx.text.contains("st.global.v4.f32"));
    assert_eq!(kernel.ptx.capability, (8, 0));
    let names = |d: u16| kernel.dim_name(d);
    assert_eq!(kernel.launch.blocks.display(&names).to_string(), "ceil(N / 1024)");
    let report = refused(&saxpy("", "vectorize v;"), &["TW0201"]);
    assert!(
        report.contains("N is not known to be a multiple of 4") && report.contains("`where N % 4 == 0`"),
        "{report}"
    );
    assert!(report.contains("counterexample: N = 1"), "{report}");
    let kernel = accepted(&saxpy("", ""));
    assert!(kernel.explanation.contains("predicate i < N"), "{}", kernel.explanation);
}

fn scale(facts: &str, ops: &str) -> String {
    format!(
        "kernel Scale(x: f32[B, M, 64; sb, sm, 1]) -> (y: f32[B, M, 64]) where {facts} {{
            y[b, m, n] = 2.0 * x[b, m, n];
            launch threads(128);
            schedule y {{ merge m, n -> mn; {ops} merge b, q -> r; split r by 128 -> g, t; bind g: grid; bind t: thread; }}
        }}"
    )
}

/// Program 04 and its remarks: the vectorised axis decides, not each split on the way.
#[test]
fn discontiguous_merges_are_decided_at_the_vector() {
    let both = "sm % 4 == 0, sb % 4 == 0";
    let kernel = accepted(&scale(both, "split mn by 4 -> q, v; vectorize v;"));
    assert!(kernel.explanation.contains("read of x: vector of 4 f32"), "{}", kernel.explanation);
    // 4 divides 24 and 64.
    accepted(&scale(both, "split mn by 24 -> q, u; split u by 4 -> w, v; vectorize v;"));
    // 48..72 crosses a row at 64; so does 63..66.
    let report = refused(&scale(both, "split mn by 24 -> q, v; vectorize v;"), &["TW0402"]);
    assert!(report.contains("x[0, 0, 63]") && report.contains("x[0, 1, 0]"), "{report}");
    // No vector has 3 lanes, and nothing else about it is said.
    refused(&scale(both, "split mn by 3 -> q, v; vectorize v;"), &["TW0403"]);
    let report = refused(&scale("sm % 4 == 0", "split mn by 4 -> q, v; vectorize v;"), &["TW0401"]);
    assert!(report.contains("x[1, 0, 0]") && report.contains("`where sb % 4 == 0`"), "{report}");
}

/// The remark of program 08: without a bound thread, each of them would write the same element.
#[test]
fn threads_must_have_work_of_their_own() {
    let kernel =
        |launch: &str| format!("kernel K(x: f32[N]) -> (y: f32[N]) {{ y[i] = x[i]; {launch} schedule y {{ }} }}");
    accepted(&kernel("launch threads(1);"));
    accepted(&kernel(""));
    let report = refused(&kernel("launch threads(32);"), &["TW0601"]);
    assert!(report.contains("32 threads would each write the same element of `y`"), "{report}");
}

/// The remark of program 07.
#[test]
fn reads_outside_are_refused_with_the_way_to_pad() {
    let kernel = |read: &str| format!("kernel K(x: f32[H, W]) -> (y: f32[H, W]) where W >= 4 {{ y[i, j] = {read}; }}");
    let report = refused(&kernel("x[i, j + 3]"), &["TW0901"]);
    assert!(report.contains("`x[i, j + 3] or 0.0`") && report.contains("H = 1, W = 4"), "{report}");
    accepted(&kernel("x[i, j + 3] or 0.0"));
    accepted(&kernel("if j < W - 3 { x[i, j + 3] } else { 0.0 }"));
}

/// What later versions bring is parsed and answered.
#[test]
fn planned_constructs_say_so() {
    let kernel = |ops: &str, items: &str| {
        format!("kernel K(x: f32[64, 64]) -> (y: f32[64, 64]) {{ y[i, j] = x[i, j]; {items} schedule y {{ {ops} }} }}")
    };
    for ops in [
        "box i by 64 -> ic, ib;",
        "tile i by 3 -> it, is;",
        "like y.i;",
        "bind i: 2 cta;",
        "bind i: cta 0..2;",
        "l2 evict_first;",
        "fill zero;",
    ] {
        refused(&kernel(ops, ""), &["TW0005"]);
    }
    refused(&kernel("bind i: cta;", ""), &["TW0610"]);
    refused(&kernel("", "launch cluster(2);"), &["TW0610"]);
    // An output has no buffer.
    refused(&kernel("layout [i, j] swizzle 128;", ""), &["TW0411"]);
    for items in [
        "stage xs[i, j] = x in shared per warp at y.i via tma { }",
        "stage xs[i, j] = x in shared at y.i via tma { resize i by (-1, 1) -> p; }",
        "stage xs[i, j] = x in registers at y.i via tma { }",
        "stage ys[i, j] = y in shared at y.i via tma { fill zero; }",
    ] {
        refused(&kernel("", items), &["TW0005"]);
    }
    refused(&kernel("", "launch roles { load: warp, math: warp };"), &["TW0508"]);
}

/// The same tokens give the same kernel and the same messages. Numbers beyond 32 bits leave no 32-bit entry point,
/// wherever they are written; a size that merely may be large keeps both.
#[test]
fn numbers_beyond_32_bits_need_the_wide_entry_point() {
    let kernel = |shape: &str, facts: &str, value: &str, ops: &str| {
        let axis = if ops.is_empty() { "i" } else { "p" };
        accepted(&format!(
            "pub kernel Wide(x: {shape}) -> (z: f32[N]) {facts} {{
                z[i] = {value};
                launch threads(256);
                schedule z {{ {ops} split {axis} by 256 -> e, f; bind e: grid; bind f: thread; }}
            }}"
        ))
    };
    let wide = [
        kernel("f32[N]", "where N >= 3000000000", "x[i]", ""),
        kernel("f32[N]", "where N == 3000000021", "x[(i * 3 + 1) % N]", ""),
        kernel("f32[N]", "", "if i < 5000000000 { x[i] } else { 0.0 }", ""),
        kernel("f32[N]", "", "sum(|k in 0..3000000000| x[i] * (k as f32))", ""),
        kernel("f32[N, M; 3000000000, 1]", "where M >= 1", "x[i, 0]", ""),
        kernel("f32[N]", "", "x[i]", "split i by 2147483648 -> g, p; bind g: grid;"),
        kernel("f32[N]", "", "x[i]", "resize i by (2147483648, 0) -> p;"),
    ];
    for kernel in &wide {
        let names: Vec<&str> = kernel.entries.iter().map(|e| e.name.as_ref()).collect();
        assert_eq!(names, ["Wide_64"], "{}", kernel.ptx.text);
    }
    assert_eq!(kernel("f32[N]", "", "x[i]", "").entries.len(), 2);
}

#[test]
fn compilation_is_deterministic() {
    let good = saxpy("where N % 4 == 0", "vectorize v;");
    assert_eq!(run(&good), run(&good));
    let bad = scale("sm % 4 == 0", "split mn by 24 -> q, v; vectorize v;");
    assert_eq!(run(&bad), run(&bad));
}

/// A refused op gives one message, not one for everything that would have followed.
#[test]
fn one_mistake_gives_one_message() {
    let report = refused(&saxpy("where N % 4 == 0", "vectorize v;").replace("by 256", "by 0"), &["TW0202"]);
    assert!(report.contains("between 1 and"), "{report}");
    let report = refused(&saxpy("", "").replace("split io by", "split ioo by"), &["TW0150"]);
    assert!(report.contains("did you mean `io`"), "{report}");
}

/// Vectors that no formula proves and that finitely many points do: sizes that facts bound, and literal ones.
#[test]
fn exhausted_searches_are_proofs() {
    // i is always 0, so the stride of its rows does not matter.
    accepted(
        "kernel K(x: f32[1, 24; s, 1]) -> (y: f32[1, 24]) {
            y[i, j] = x[i, j];
            schedule y { merge i, j -> m; split m by 4 -> o, v; bind o: grid; vectorize v; }
        }",
    );
    // Both holes are a whole vector.
    accepted(
        "kernel K(x: f32[8]) -> (y: f32[8]) {
            y[i] = x[i];
            schedule y { resize i by (4, 4) -> p; split p by 4 -> o, v; bind o: grid; vectorize v; }
        }",
    );
    // 4 does not divide 2 · N for N = 1, which the fact excludes.
    let kernel = |facts: &str| {
        format!(
            "kernel K(x: f32[N]) -> (y: f32[2 * N]) where N <= 4, {facts} {{
                y[i] = x[i / 2];
                schedule y {{ split i by 4 -> o, v; bind o: grid; vectorize v; }}
            }}"
        )
    };
    accepted(&kernel("N != 1, N != 3"));
    assert!(refused(&kernel("N != 1"), &["TW0201"]).contains("N = 3"));
}

/// One missing fact, one wrong axis, one wrong width: one message each, and its edit is enough.
#[test]
fn one_fault_has_one_message() {
    let kernel = |facts: &str, read: &str, ops: &str| {
        format!(
            "kernel K(x: f32[M, N]) -> (y: f32[M, N]) {facts} {{
                y[m, n] = {read};
                schedule y {{ split m by 32 -> b, t; {ops} bind b: grid; bind t: thread; vectorize v; }}
            }}"
        )
    };
    let rows = "split n by 4 -> o, v; reorder b, t, o, v;";
    let report = refused(&kernel("", "x[m, n]", rows), &["TW0201"]);
    assert!(report.contains("`where N % 4 == 0`"), "{report}");
    accepted(&kernel("where N % 4 == 0", "x[m, n]", rows));
    // Six lanes: stating N % 6 == 0 would not help.
    let report = refused(&kernel("", "x[m, n]", "split n by 6 -> o, v; reorder b, t, o, v;"), &["TW0403"]);
    assert!(report.contains("split by 4 or 8 instead of 6") && !report.contains("N % 6"), "{report}");
    // Down the columns no fact helps.
    let columns = "split t by 4 -> u, v; reorder b, u, n, v;".replace("bind t", "bind u");
    let report = kernel("", "x[m, n]", &columns).replace("bind t", "bind u");
    let report = refused(&report, &["TW0404"]);
    assert!(report.contains("made of `n`"), "{report}");
    // Two facts are missing: two messages.
    let strided = kernel("", "x[m, n]", rows).replace("x: f32[M, N]", "x: f32[M, N; ld, 1]");
    refused(&strided, &["TW0201", "TW0401"]);
    // Two tensors need a fact each: one message with both.
    let strided = kernel("where N % 4 == 0", "x[m, n] + z[m, n]", rows);
    let strided = strided.replace("x: f32[M, N]", "x: f32[M, N; lx, 1], z: f32[M, N; lz, 1]");
    let report = refused(&strided, &["TW0401"]);
    assert!(report.contains("`where lx % 4 == 0, lz % 4 == 0`"), "{report}");
}

/// Both bounds of one size are one equation.
#[test]
fn two_bounds_are_said_as_one_fact() {
    let kernel = |facts: &str| format!("kernel K(x: f32[M, N]) -> (y: f32[M, N]) {facts} {{ y[m, n] = x[n, m]; }}");
    let report = refused(&kernel(""), &["TW0901"]);
    assert!(report.contains("`where M == N`"), "{report}");
    accepted(&kernel("where M == N"));
    let report = refused("kernel K(x: f32[3]) -> (y: f32[N]) { y[n] = x[n] + x[n + 3 - N]; }", &["TW0901"]);
    assert!(report.contains("`where N <= 3`") && report.contains("`x[n + 3 - N]` needs the same fact"), "{report}");
}

/// What is always so is said, and nothing where it depends on a size.
#[test]
fn what_never_matters_is_a_warning() {
    let warnings = |read: &str, facts: &str| -> Vec<String> {
        let text = format!("kernel K(x: f32[M, N]) -> (y: f32[M, N]) {facts} {{ y[m, n] = {read}; }}");
        let found = compile(&TokenBuffer::new(text.parse().unwrap()).0).diagnostics;
        assert!(!found.has_errors(), "{text}");
        // Without a schedule one block has all of the work, which another warning says.
        let codes = found.finish().warnings.iter().map(|w| w.code.to_string()).collect::<Vec<String>>();
        codes.into_iter().filter(|code| code != "TW0691").collect()
    };
    let one = |code: &str| vec![code.to_owned()];
    assert_eq!(warnings("x[m, -1] or 0.0", ""), one("TW0990"));
    assert_eq!(warnings("x[m, n + N] or 0.0", ""), one("TW0990"));
    assert_eq!(warnings("x[m, 4 * n + 8] or 0.0", "where N <= 8"), one("TW0990"));
    assert!(warnings("x[m, 4 * n + 8] or 0.0", "where N <= 9").is_empty());
    assert_eq!(warnings("x[m, N - 1 - n] or 0.0", ""), one("TW0991"));
    assert!(warnings("x[m, N - 2 - n] or 0.0", "").is_empty());
    assert_eq!(warnings("if n < N { x[m, n] } else { 0.0 }", ""), one("TW0992"));
    assert_eq!(warnings("if m == M { 0.0 } else { x[m, n] }", ""), one("TW0992"));
    assert!(warnings("if m == n { 0.0 } else { x[m, n] }", "").is_empty());
    // A size may be 0 at a launch.
    assert!(warnings("if N > 0 { x[m, n] } else { 0.0 }", "").len() <= 1);
    assert_eq!(warnings("x[m, n] + sum(|k in 3..3| x[m, k] or 0.0)", ""), one("TW0993"));
    // Nothing is said where nothing is executed.
    assert_eq!(warnings("if n < 0 { x[m, -1] or 0.0 } else { 0.0 }", ""), one("TW0992"));
}

/// What cannot be proved of a vector is not said if the vector is refuted anyway.
#[test]
fn a_cut_vector_has_one_message() {
    let report = refused(
        "kernel K() -> (y: f32[5]) {
            y[i] = 1.0;
            schedule y { split i by 5 -> a, b; split b by 4 -> o, v; bind o: thread; bind a: grid; vectorize v; }
        }",
        &["TW0201"],
    );
    assert!(report.contains("at a = 0, o = 1 the vector has 1 of 4 lanes inside `b`"), "{report}");
}

/// Reductions without terms: elements are written, and nothing is read.
#[test]
fn empty_reductions_read_nothing() {
    let kernel = |range: &str| {
        format!(
            "kernel K(x: f32[N, N; ld, 1]) -> (y: f32[N, N]) where N % 4 == 0, ld % 4 == 0 {{
                y[i, j] = sum(|r in {range}| x[j, r + 1] or 0.0) + sum(|q in {range}| x[i, j]);
                schedule y {{ merge i, j -> m; split m by 8 -> o, v; bind o: grid; vectorize v; }}
            }}"
        )
    };
    accepted(&kernel("1..1"));
    let report = refused(&kernel("0..1"), &["TW0402"]);
    assert!(report.contains("one vector holds x["), "{report}");
}

/// A read that is no run inside a row of the merged axes is read lane by lane, wherever rows end.
#[test]
fn what_is_no_run_is_no_vector() {
    let kernel = |read: &str| {
        format!(
            "kernel K(x: f32[N, N; ld, 1]) -> (y: f32[N, N]) where N % 4 == 0, ld % 4 == 0 {{
                y[i, j] = {read};
                schedule y {{ merge i, j -> m; split m by 8 -> o, v; bind o: grid; vectorize v; }}
            }}"
        )
    };
    refused(&kernel("x[i, j]"), &["TW0402"]);
    for read in ["x[j, j]", "x[i, 0]", "x[i, i]", "x[j, i]", "x[i, N - 1 - j]", "x[i, j / 2]"] {
        accepted(&kernel(read));
    }
}

/// Nor does it matter to the elements that there are no terms: each is computed.
#[test]
fn elements_without_terms_are_not_cut_away() {
    let kernel = |range: &str, ops: &str| {
        format!("kernel K() -> (y: f64[5]) {{ y[i] = min(|r in {range}| 1.0f64); schedule y {{ {ops} }} }}")
    };
    for range in ["1..1", "1..2"] {
        let report = refused(&kernel(range, "resize i by (-1, 1) -> p;"), &["TW0204"]);
        let term = if range == "1..2" { " with r = 0" } else { "" };
        assert!(report.contains(&format!("`y[0]`{term} is outside the extent of `p`")), "{report}");
        accepted(&kernel(range, "resize i by (1, 1) -> p;"));
    }
    accepted(&kernel("1..1", "resize r by (-1, 1) -> p;"));
}

/// What is proved for sizes of at least 1 has to hold for 0 too where the result is not empty then; else launches
/// refuse it.
#[test]
fn a_size_of_zero_in_a_shape_that_stays() {
    let kernel = |facts: &str| {
        format!(
            "kernel K(x: f32[N]) -> (y: f32[N + 3]) where {facts} {{
                y[i] = x[i] or 0.0;
                schedule y {{ split i by 4 -> o, v; bind o: grid; vectorize v; }}
            }}"
        )
    };
    let requirements = |facts: &str| {
        let list: Vec<String> = accepted(&kernel(facts)).requirements.iter().map(|c| c.text.to_string()).collect();
        list.join(", ")
    };
    // N is 1 or 5, or 0: then three elements would be one vector of four.
    assert_eq!(requirements("N <= 5, N != 2, N != 3, N != 4"), "N >= 1");
    assert_eq!(requirements("N % 4 == 1"), "");
}

/// What a macro gives is what tools and tests look at, which check more of it: every kernel that was found wrong once,
/// those with sizes of 0 included, which a trial decides about.
#[test]
fn kernels_do_not_depend_on_how_much_is_checked() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../campaign/found");
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).expect("the kernels that were found") {
        let source = std::fs::read_to_string(entry.expect("an entry").path()).expect("a text");
        let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens"));
        let outcomes = [Depth::Full, Depth::Bounded].map(|depth| compile_to(&tokens, depth));
        let [full, bounded] = outcomes.map(|all| all.kernels.into_iter().map(|k| k.info).collect::<Vec<_>>());
        assert_eq!(full, bounded, "{source}");
        compared += full.iter().flatten().count();
    }
    assert!(compared > 50, "{compared} kernels");
}
