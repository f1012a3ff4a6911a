//! Helps in words, done: what a message of a UI case says to write compiles, and computes what `reference` does.

use tilewright_compiler::compile;
use tilewright_compiler::diag::{Code, Diagnostic};
use tilewright_compiler::source::TokenBuffer;

use super::support::{finished, runs};

/// A kernel of a UI case, as text: of one in `fail`, or in the folder that is named.
pub(crate) fn case(file: &str, kernel: &str) -> String {
    let file = if file.contains('/') { file.to_owned() } else { format!("fail/{file}") };
    let path = xtask::root().join("ui-tests").join(format!("{file}.rs"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let invocations = text.split("tilewright::schedule! {\n").filter_map(|rest| rest.split_once("\n}\n"));
    let is_it = |text: &&str| text.contains(&format!("kernel {kernel}("));
    let mut found = invocations.map(|(text, _)| text).filter(is_it);
    let one = found.next().unwrap_or_else(|| panic!("no {kernel} in {file}"));
    assert!(found.next().is_none(), "{kernel} twice in {file}");
    one.to_owned()
}

/// What the compiler finds.
pub(crate) fn compiled(source: &str) -> Vec<Diagnostic> {
    let (tokens, _) = TokenBuffer::new(source.parse().expect("Rust tokens"));
    compile(&tokens).diagnostics.found().to_vec()
}

/// The findings of a kernel, of which there are some, all with this code.
pub(crate) fn findings(source: &str, code: Code) -> Vec<Diagnostic> {
    let found = compiled(source);
    assert!(!found.is_empty() && found.iter().all(|d| d.code == code), "{source}\n{found:#?}");
    found
}

/// The kernel with text in the place of other text, each of which it has.
pub(crate) fn edited(source: &str, edits: &[(&str, &str)]) -> String {
    edits.iter().fold(source.to_owned(), |source, (from, to)| {
        assert!(source.contains(from), "no `{from}` in {source}");
        source.replace(from, to)
    })
}

/// The kernel is refused with a help that has these words; with the edits done it is accepted, and right
/// at these sizes.
fn helps(source: &str, code: Code, words: &str, edits: &[(&str, &str)], sizes: &[&[i64]]) {
    let found = findings(source, code);
    assert!(found.iter().any(|d| d.help.iter().any(|help| help.text.contains(words))), "{words}\n{found:#?}");
    let source = edited(source, edits);
    let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    runs(&source, &kernel, sizes, 2);
}

#[test]
fn what_warps_hold_stands_in_the_loop_that_is_given_to_them() {
    let file = "TW0704_stage_not_around";
    // Sizes are M, N.
    let sizes: &[&[i64]] = &[&[64, 32], &[70, 41], &[1, 1], &[3, 0]];
    let moved = ("per warp at acc.jo { fragment (i, d)", "per warp at s.iw { fragment (i, d)");
    helps(&case(file, "Chain"), Code::TW0704, "`at s.iw`", &[moved], sizes);
    let both = [
        ("h[i] = sum(|j| x[i, j]);", "h[i] = sum(|j| x[i, j]); g[i] = sum(|j| x[i, j]);"),
        ("a[i] = h[i] * 0.5;", "a[i] = g[i] * 0.5;"),
        (
            "schedule h in registers per warp at y.g { split j by 32 -> r, t; bind t: thread; reduce t; }",
            "schedule h in registers per warp at b.i { split j by 32 -> r, t; bind t: thread; reduce t; }
             schedule g in registers per warp at a.i { split j by 32 -> r, t; bind t: thread; reduce t; }",
        ),
    ];
    helps(
        &case(file, "Each"),
        Code::TW0704,
        "give `a` an intermediate of its own",
        &both,
        &[&[8, 64], &[5, 33], &[1, 0]],
    );
}

#[test]
fn blocks_of_the_grid_share_what_those_of_a_cluster_cannot() {
    let file = "TW0605_unit_inside";
    // Sizes are M, K, N and M, N.
    let cases: [(&str, &str, &str, &[&[i64]]); 2] = [
        ("Product", "kc", "launch cluster(2);", &[&[64, 128, 64], &[70, 200, 41], &[1, 8, 1], &[3, 0, 5]]),
        ("Means", "b", "launch threads(128);", &[&[2, 4096], &[3, 1025], &[1, 1]]),
    ];
    for (kernel, axis, launch, sizes) in cases {
        let source = case(file, kernel);
        let (bind, reduce) = (format!("bind {axis}: cta;"), format!("reduce {axis} by cluster;"));
        let (of_grid, by_grid) = (format!("bind {axis}: grid;"), format!("reduce {axis} by grid;"));
        // Without a reduction of theirs, blocks of a cluster have nothing to share.
        let no_cluster = (launch, if launch.contains("cluster") { "" } else { launch });
        let shared = [(&*bind, &*of_grid), (&*reduce, &*by_grid), no_cluster];
        helps(&source, Code::TW0605, "let blocks of the grid share it", &shared, sizes);
        let alone = [(&*bind, ""), (&*reduce, ""), no_cluster];
        helps(&source, Code::TW0605, &format!("leave `{axis}` unbound, without `reduce {axis}`"), &alone, sizes);
    }
    // An instance of a warp: at a place of the block.
    let whole = [("in registers per warp at y.w { split j", "in registers at y.g { bind i: warp; split j")];
    let words = "leave `per warp` out and attach it to a loop of the block";
    helps(&case(file, "Centred"), Code::TW0605, words, &whole, &[&[4, 2048], &[5, 1025], &[1, 1]]);
}

#[test]
fn a_factor_that_no_tensor_map_copies_is_written_by_threads() {
    let source = case("TW0306_pitch", "Product");
    let written = [
        ("acc[m, n] = dot(|k in 0..64| a[m, k]", "fa[m, k in 0..64] = a[m, k]; acc[m, n] = dot(|k in 0..64| fa[m, k]"),
        (
            "stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 128; }",
            "schedule fa in shared at acc.ko {
                split m by 4 -> mo, w; split k by 32 -> kh, t; bind w: warp; bind t: thread; layout [m, k] swizzle 128;
            }",
        ),
    ];
    // Sizes are M, K.
    let sizes: &[&[i64]] = &[&[64, 64], &[70, 71], &[1, 65]];
    helps(&source, Code::TW0306, "read an equation of its own, `fa[…] = a[…];`", &written, sizes);
    let stated = [("where K >= 64", "where K >= 64, K % 8 == 0")];
    helps(&source, Code::TW0306, "`where K % 8 == 0`", &stated, &[&[64, 64], &[70, 72], &[0, 64]]);
}

#[test]
fn signs_of_factors_are_those_of_sums() {
    let file = "TW0802_operand_place";
    // Sizes are M, K, N.
    let sizes: &[&[i64]] = &[&[64, 64, 64], &[70, 72, 41], &[1, 8, 1], &[3, 0, 5]];
    let minus = [("-a[m, k]", "a[m, k]"), ("= acc[m, n]", "= -acc[m, n]")];
    helps(&case(file, "Minus"), Code::TW0802, "`-acc[…]`", &minus, sizes);
    let both = [("(-a[m, k]) * (-b[n, k])", "a[m, k] * b[n, k]")];
    helps(&case(file, "Both"), Code::TW0802, "leave both signs out", &both, sizes);
    // The least integer is its own negative: a sum has none such.
    let integers = edited(&case(file, "Minus"), &[("bf16", "i8"), ("f32", "i32"), ("K % 8", "K % 16")]);
    let integers = integers.replace("swizzle 128", "swizzle 64");
    let found = findings(&integers, Code::TW0802);
    assert!(found[0].title.contains("is no element of a tensor"), "{found:#?}");
}

/// Columns in few instructions are what the message says, and others are told.
#[test]
fn columns_in_many_instructions_are_told() {
    let source = case("TW0890_many_products", "Product");
    let found = findings(&source, Code::TW0890);
    assert!(found[0].title.contains("328 columns of `acc` take 41 instructions of 8 columns"), "{found:#?}");
    assert!(found[0].help[0].text.contains("320 columns (2 of 160) or 336 columns (2 of 168)"), "{found:#?}");
    for (all, each) in [(320, 160), (336, 168)] {
        let (split, boxed) = (format!("split n by {all}"), format!("box n by {each}"));
        let few = edited(&source, &[("split n by 328", &split), ("box n by 8", &boxed)]);
        let kernel = finished(&few).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{few}\n{report}"));
        assert!(compiled(&few).is_empty(), "{few}");
        // Two in each of the two steps over terms.
        let info = kernel.info.expect("no error");
        let entry = info.ptx.text.split(".entry").nth(1).expect("an entry point");
        let instruction = format!("wgmma.mma_async.sync.aligned.m64n{each}k16");
        assert_eq!(entry.matches(&instruction).count(), 4, "{entry}");
    }
    assert!(compiled(&case("TW0890_many_products", "Meant")).is_empty());
}
