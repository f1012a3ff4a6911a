//! The figures of the documents, with `f64`, so that short rows are whole granules. What holes hold is seen by whether
//! zeros can be demanded of them: as it is, by copies that are sent out of bounds, or not at all.

use super::{Case, compiled, computed, copy};
use tilewright_compiler::diag::Code;

pub fn cases() -> Vec<Case> {
    [layouts(), data()].into_iter().flatten().collect()
}

#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn layouts() -> Vec<Case> {
    // 13a, 14a: boxes of 4 × 128, of which every third row is a tile.
    let strided = |layout: &str, fill: &str| {
        copy(
            "f64[16, 200]",
            "f64[16, 200]",
            "",
            "i, j",
            "split j by 128 -> jo, ji; reorder jo, i, ji; bind jo: grid; bind ji: thread;",
            &format!(
                "stage s[i, j] = x in shared at y.jo via tma {{
                    box i by 4 -> i3, i4; tile i4 by 3 -> i7, i8; box j by 128 -> i5, i6; layout [{layout}]; {fill} }}"
            ),
        )
    };
    let strided_map = "⟨200, 8, 128, 1⟩ ⟨16, 1600, 4, 3⟩";
    // 13b, 14b: rows of 10 in boxes of 6 or 10. 13d: a store of rows of 12 in boxes of 8.
    let rows = |columns: i64, box_size: i64, tensor: &str, layout: &str| {
        let ty = format!("f64[16, {columns}]");
        copy(
            &ty,
            &ty,
            "",
            "i, j",
            "split i by 4 -> io, ii; reorder io, ii, j; bind io: grid; bind j: thread;",
            &format!(
                "stage s[i, j] = {tensor} in shared at y.io via tma {{
                    box i by 4 -> i3, i4; box j by {box_size} -> i5, i6; {layout} }}"
            ),
        )
    };
    let columns = |layout: &str| {
        copy(
            "f64[16, 200]",
            "f64[16, 200]",
            "",
            "i, j",
            "split i by 4 -> io, ii; reorder io, ii, j; bind io: grid; split j by 128 -> jo, ji; bind ji: thread;",
            &format!(
                "stage s[i, j] = x in shared at y.io via tma {{
                    box i by 4 -> i3, i4; box j by 128 -> i5, i6; layout [{layout}]; }}"
            ),
        )
    };
    // 15: the reader sees a tile of 4 × 4 as rows of `by`; the copy does not care.
    let seen = |by: i64, ops: &str| {
        copy(
            "f64[16, 10]",
            "f64[16, 10]",
            "",
            "i, j",
            &format!(
                "split j by 4 -> i5, i6; split i by 4 -> i3, i4; split i6 by {by} -> i7, i8; reorder i3, i5, i4, i7, i8;
                bind i3, i5: grid; merge i4, i7 -> i9; bind i9: thread;"
            ),
            &format!(
                "stage s[i, j] = x in shared at y.i5 via tma {{ box i by 4 -> ic, ib; box j by 4 -> jc, jb; {ops} }}"
            ),
        )
    };
    vec![
        // Phases count tiles: none stands inside one.
        Case::refused("TMADocTest.Figure13a", "", strided("i3, i7, i8, i6", ""), Code::TW0408),
        Case::accepted("TMADocTest.Figure14a", "", strided("i3, i8, i7, i6", ""), &[strided_map], &[2048])
            .runs_unchanged(),
        // 3 < 4 < 16, and 3 does not divide 4.
        Case::refused("TMADocTest.Figure14a", "zeros", strided("i3, i8, i7, i6", "fill zero;"), Code::TW0301),
        // A buffer is made of whole tiles: the rows of the tensor cannot be named in a layout that boxes cut.
        Case::refused("TMADocTest.Figure13b", "", rows(10, 6, "x", "layout [i3, i4, j];"), Code::TW0408),
        Case::accepted(
            "TMADocTest.Figure13b",
            "in whole tiles",
            rows(10, 6, "x", "fill zero;"),
            &["⟨10, 8, 6, 1⟩ ⟨16, 80, 4, 1⟩"],
            &[192],
        )
        .runs_unchanged(),
        Case::accepted(
            "TMADocTest.Figure14b",
            "",
            rows(10, 10, "x", "layout [i3, i5, i4, i6];"),
            &["⟨10, 8, 10, 1⟩ ⟨16, 80, 4, 1⟩"],
            &[320],
        )
        .runs_unchanged(),
        // The figure, not the test, which splits by 1.
        Case::refused("TMADocTest.Figure13c", "", columns("i3, i4, i5, i6"), Code::TW0408),
        Case::accepted(
            "TMADocTest.Figure13c",
            "boxes outside",
            columns("i3, i5, i4, i6"),
            &["⟨200, 8, 128, 1⟩ ⟨16, 1600, 4, 1⟩"],
            &[4096],
        )
        .runs_unchanged(),
        Case::refused("TMADocTest.Figure13d", "", rows(12, 8, "y", "layout [i3, i4, j];"), Code::TW0408),
        // In whole tiles, the second of which lies half outside, it can be stored.
        Case::accepted(
            "TMADocTest.Figure13d",
            "in whole tiles",
            rows(12, 8, "y", ""),
            &["⟨12, 8, 8, 1⟩ ⟨16, 96, 4, 1⟩"],
            &[256],
        )
        .runs_unchanged(),
        Case::accepted("TMADocTest.Figure14d", "", rows(12, 12, "y", ""), &["⟨12, 8, 12, 1⟩ ⟨16, 96, 4, 1⟩"], &[384])
            .runs_unchanged(),
        Case::accepted("TMADocTest.Figure15a", "", seen(2, ""), &["⟨10, 8, 4, 1⟩ ⟨16, 80, 4, 1⟩"], &[128])
            .runs_unchanged(),
        // The tile itself as rows of 2, which changes nothing; as rows of 3 it would have 24 places for 16 slots.
        Case::accepted(
            "TMADocTest.Figure15a",
            "as its layout",
            seen(2, "split jb by 2 -> i7, i8; merge ib, i7 -> i9; layout [ic, jc, i9, i8];"),
            &["⟨10, 8, 4, 1⟩ ⟨16, 80, 4, 1⟩"],
            &[128],
        )
        .runs_unchanged(),
        Case::refused(
            "TMADocTest.Figure15c",
            "",
            seen(2, "split jb by 3 -> i7, i8; merge ib, i7 -> i9; layout [ic, jc, i9, i8];"),
            Code::TW0408,
        ),
        // A reader that sees it so has holes of its own, and reads none of them.
        Case::accepted(
            "TMADocTest.Figure15c",
            "seen by the reader",
            seen(3, ""),
            &["⟨10, 8, 4, 1⟩ ⟨16, 80, 4, 1⟩"],
            &[128],
        )
        .runs_unchanged(),
    ]
}

/// The second figure of the modelling document: boxes of 2 under an indivisible split. There half of the tiles are
/// holes that hold elements of the next block, which copies sent out of bounds would clear. Here an instance has no
/// tiles for what nobody asks for.
fn level_two_by_a_split(fill: &str) -> String {
    copy(
        "f64[12]",
        "f64[12]",
        "",
        "i",
        "split i by 2 -> i2, i3; split i2 by 2 -> i4, i5; split i5 by 4 -> i6, i7; bind i4: grid;",
        &format!("stage s[i] = x in shared at y.i4 via tma {{ box i by 2 -> c, b; {fill} }}"),
    )
}

/// The third: blocks of 2 × 4, counted together, four at a time.
fn level_one(fill: &str) -> String {
    copy(
        "f64[6, 6]",
        "f64[6, 6]",
        "",
        "i, j",
        "split i by 2 -> i3, i4; split j by 4 -> i5, i6; reorder i3, i5, i4, i6; merge i3, i5 -> i7; merge i4, i6 -> i8;
        split i7 by 4 -> i9, i10; bind i9: grid; bind i8: thread;",
        &format!(
            "stage s[i, j] = x in shared at y.i10 via tma {{ box i by 2 -> ic, ib; box j by 4 -> jc, jb; {fill} }}"
        ),
    )
}

/// The fifth and sixth with an element stride of 3; a variant has 5.
fn strided_rows(stride: i64, fill: &str) -> String {
    copy(
        "f64[8, 2]",
        "f64[8, 2]",
        "",
        "i, j",
        &format!(
            "split i by 4 -> i3, i4; split i4 by {stride} -> i5, i6; reorder i3, i6, i5, j; bind i3: grid; bind j: thread;"
        ),
        &format!(
            "stage s[i, j] = x in shared at y.i3 via tma {{
                box i by 4 -> c, b; tile b by {stride} -> t, p; layout [c, p, t, j]; {fill} }}"
        ),
    )
}

fn data() -> Vec<Case> {
    let rows_of = |stride: i64| format!("⟨2, 8, 2, 1⟩ ⟨8, 16, 4, {stride}⟩");
    let strided = |test, stride: i64, fill: &str, tile| {
        Case::accepted(test, fill, strided_rows(stride, fill), &[&rows_of(stride)], &[tile]).runs_unchanged()
    };
    let mut cases = vec![
        strided("Modelling figures 5 and 6", 3, "fill any;", 32),
        Case::refused("Modelling figures 5 and 6", "zeros", strided_rows(3, "fill zero;"), Code::TW0301),
        strided("Modelling figures 5 and 6, element stride 5", 5, "fill any;", 16),
        strided("Modelling figures 5 and 6, element stride 5", 5, "fill zero;", 16),
        // Without a copy: both the axis of the tensor and the one that was split again are guarded.
        Case::accepted(
            "Divisibility figure 2",
            "",
            computed(
                "x: f64[15]",
                "f64[15]",
                "",
                "y[i] = 2.0 * x[i];",
                "split i by 6 -> i1, i2; split i1 by 2 -> i3, i4; split i2 by 4 -> i5, i6; bind i3: grid;",
                "",
            ),
            &[],
            &[],
        )
        .runs_unchanged(),
    ];
    for fill in ["fill any;", "fill zero;"] {
        let test = "Modelling figure 2";
        cases.push(Case::accepted(test, fill, level_two_by_a_split(fill), &["⟨12, 8, 2, 1⟩"], &[16]).runs_unchanged());
        let test = "Modelling figure 3";
        let map = "⟨6, 8, 4, 1⟩ ⟨6, 48, 2, 1⟩";
        cases.push(Case::accepted(test, fill, level_one(fill), &[map], &[64]).runs_unchanged());
    }
    cases
}

/// Of the four tiles that the second figure draws for each block, two are asked for.
#[test]
fn tiles_that_nobody_asks_for_are_not_copied() {
    let info = compiled(&level_two_by_a_split("fill zero;")).unwrap_or_else(|(_, report)| panic!("{report}"));
    assert!(info.explanation.contains("2 runs of 16 bytes"), "{}", info.explanation);
}

/// The second figure with other numbers. Where one loop decides, an instance has tiles for what is asked for and no
/// others; where two loops count together past the end, the tiles there are copied for nobody.
#[test]
fn nested_splits_that_leave_remainders() {
    let mut cases = Vec::new();
    for (n, middle, last) in (1..=4).flat_map(|n| (1..=3).flat_map(move |m| (1..=5).map(move |l| (4 * n, m, l)))) {
        let tensor = format!("f64[{n}]");
        let source = copy(
            &tensor,
            &tensor,
            "",
            "i",
            &format!(
                "split i by 2 -> i2, i3; split i2 by {middle} -> i4, i5; split i5 by {last} -> i6, i7; bind i4: grid;
                bind i3: thread;"
            ),
            "stage s[i] = x in shared at y.i4 via tma { box i by 2 -> c, b; }",
        );
        if last >= middle {
            let info = compiled(&source).unwrap_or_else(|(_, report)| panic!("{source}\n{report}"));
            let count = middle.min(n / 2);
            let found = ["tile", "run"].map(|what| info.explanation.contains(&format!("block: {count} {what}")));
            assert!(found.contains(&true), "{count}:\n{}", info.explanation);
        }
        let map = format!("⟨{n}, 8, 2, 1⟩");
        cases.push(
            Case::accepted("Modelling figure 2", &format!("{n} {middle} {last}"), source, &[&map], &[16])
                .runs_unchanged(),
        );
    }
    super::check_all(&cases);
}

fn text(source: &str) -> String {
    compiled(source).map(|info| info.ptx.text.to_string()).unwrap_or_else(|(_, report)| panic!("{source}\n{report}"))
}

/// Where zeros come by themselves, demanding them changes nothing; where they do not, it does.
#[test]
fn zeros_that_come_by_themselves_cost_nothing() {
    assert_eq!(text(&level_one("fill any;")), text(&level_one("fill zero;")));
    assert_eq!(text(&level_two_by_a_split("fill any;")), text(&level_two_by_a_split("fill zero;")));
    assert_ne!(text(&strided_rows(5, "fill any;")), text(&strided_rows(5, "fill zero;")));
}

/// The third split of "Divisibility figure 2" alone would let iterations through that are past the end of the second.
#[test]
fn what_is_guarded_under_two_splits() {
    let source = computed(
        "x: f64[15]",
        "f64[15]",
        "",
        "y[i] = 2.0 * x[i];",
        "split i by 6 -> i1, i2; split i1 by 2 -> i3, i4; split i2 by 4 -> i5, i6; bind i3: grid;",
        "",
    );
    let info = compiled(&source).unwrap_or_else(|(_, report)| panic!("{report}"));
    for line in ["predicate i < 15", "predicate i2 < 6", "no predicate i1 < 3: Theorem 1"] {
        assert!(info.explanation.lines().any(|l| l.trim() == line), "{line} is not in\n{}", info.explanation);
    }
}
