//! Layouts of staged copies by splits, merges and swizzles of the axes of a tile: the same instructions as by a span,
//! and what they compute.

use crate::support::{compiled, data, devices, is_wrong};
use tilewright::{Tensor, f16, schedule};
use tilewright_compiler::diag::Code;

schedule! {
    /// Both ways: 32 columns of 4 bytes by ops, and 32 of 2.
    #[allow(TW0490)]
    pub kernel Turn(x: f32[M, N]) -> (y: f16[N, M])
    where N % 4 == 0, M % 8 == 0
    {
        y[j, i] = x[i, j] as f16;
        launch threads(256);
        schedule y {
            split j by 32 -> jo, ji;
            split i by 32 -> io, ii;
            reorder jo, io, ji, ii;
            bind jo, io: grid;
            merge ji, ii -> m;
            split m by 256 -> r, t;
            bind t: thread;
        }
        stage xs[i, j] = x in shared at y.io via tma {
            box i by 32 -> ic, ib;
            box j by 32 -> jc, jb;
            split ib by 8 -> eights, row;
            split jb by 4 -> chunk, lane;
            swizzle row, chunk by xor -> row2, chunk2;
            layout [eights, row2, chunk2, lane];
        }
        stage ys[j, i] = y in shared at y.io via tma {
            box j by 32 -> jc, jb;
            box i by 32 -> ic, ib;
            split jb into 4 -> eights, row;
            split row by 2 -> pair, one;
            split ib by 8 -> chunk, lane;
            swizzle pair, chunk by xor -> pair2, chunk2;
            layout [eights, pair2, one, chunk2, lane];
        }
    }

    /// Every third row of boxes whose rows are counted together, and a composite that is merged after the box.
    pub kernel Rows(x: i16[A, 6, B]) -> (y: i32[B])
    where B % 8 == 0
    {
        y[b] = sum(|a, i| x[a, i, b] as i32);
        launch threads(32);
        schedule y {
            split b by 32 -> bo, bi;
            split a by 4 -> ao, ai;
            reorder bo, ao, bi, ai, i;
            bind bo: grid;
            bind bi: thread;
        }
        stage xs[a, i, b] = x in shared at y.ao via tma {
            box a by 4 -> ac, ab;
            box (; i);
            box b by 32 -> bc, bb;
            tile i by 3 -> half, third;
            merge ab, half -> row;
            split row by 8 -> eights, eight;
            split eight by 2 -> pair, one;
            split bb by 8 -> chunk, lane;
            swizzle pair, chunk by xor -> pair2, chunk2;
            layout [ac, third, eights, pair2, one, chunk2, lane];
        }
    }
}

#[test]
fn both_ways_by_ops() {
    for device in &devices() {
        for (m, n) in [(32, 32), (8, 4), (40, 36), (64, 96), (0, 8)] {
            let x = data(device, [m, n], |i| (i % 97) as f32 - 40.5);
            let mut y: Tensor<f16, 2> = Tensor::zeros(device, [n, m]).unwrap();
            let expected = Turn { x: &x, y: &mut y }.reference().unwrap();
            Turn { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
    }
    let text = &Turn::KERNEL.ptx.text;
    assert!(text.contains("xor.b32"), "{text}");
}

#[test]
fn rows_that_are_counted_together() {
    for device in &devices() {
        for (a, b) in [(4, 32), (1, 8), (9, 72), (0, 8)] {
            let x = data(device, [a, 6, b], |i| (i % 301) as i16 - 150);
            let mut y = Tensor::zeros(device, [b]).unwrap();
            let expected = Rows { x: &x, y: &mut y }.reference().unwrap();
            Rows { x: &x, y: &mut y }.launch(device).unwrap();
            expected.check("y", &y).unwrap();
        }
    }
}

/// A copy of a tensor of `ty`, by boxes of 24 × `row` over two dimensions and one element of a third; loaded, or
/// stored.
fn copied(ty: &str, row: usize, way: &str, ops: &str) -> Result<String, Vec<Code>> {
    let source = format!(
        "kernel K(x: {ty}[A, M, N]) -> (y: {ty}[A, M, N]) where N % 32 == 0 {{
            y[a, i, j] = x[a, i, j];
            schedule y {{ split i by 48 -> io, ii; split j by {row} -> jo, ji; reorder a, io, jo, ii, ji; bind a, io, jo: grid; bind ji: thread; }}
            stage s[a, i, j] = {way} in shared at y.jo via tma {{
                box a by 1 -> ac, ab; box i by 24 -> ic, ib; box j by {row} -> jc, jb; {ops} }}
        }}"
    );
    match compiled(&source) {
        Ok(info) => Ok(info.ptx.text.to_string()),
        Err((codes, _)) => Err(codes.into_iter().collect()),
    }
}

/// The ops of a swizzle, and others that come to the same.
#[test]
fn a_swizzle_by_ops_is_the_one_of_its_span() {
    for (ty, bytes) in [("u8", 1), ("bf16", 2), ("i32", 4), ("f64", 8)] {
        for (span, same, chunks) in [(32, 4, 2), (64, 2, 4), (128, 1, 8)] {
            let (row, lanes) = (span / bytes, 16 / bytes);
            let half = 24 / 2;
            let forms = [
                format!(
                    "split ib by 8 -> e, r; split r by {same} -> x, s; split jb by {lanes} -> c, l; swizzle x, c by xor -> x2, c2;
                    layout [ic, e, x2, s, c2, l];"
                ),
                // Without a layout, axes stay where they are.
                format!(
                    "split ib into 3 -> e, r; split r into {chunks} -> x, s; split jb into {chunks} -> c, l; swizzle x, c by xor -> x2, c2;"
                ),
                // All of the tile in one row, as nvFuser has it.
                format!(
                    "merge ab, ib, jb -> w; split w by {row} -> r, n; split r by 8 -> e, o; split o by {same} -> x, s;
                    split n by {lanes} -> c, l; swizzle x, c by xor -> x2, c2; layout [ac, ic, jc, e, x2, s, c2, l];"
                ),
                // Split further, and twice more exchanged than it is.
                format!(
                    "split ib by {half} -> h, q; merge h, q -> w; split w by 8 -> e, r; split r by {same} -> x, s;
                    split jb by {lanes} -> c, l; swizzle x, c by xor -> x2, c2; swizzle x2, c2 by xor -> x3, c3;
                    swizzle x3, c3 by xor -> x4, c4; split l by 1 -> l1, l2; layout [ic, e, x4, s, c4, l1, l2];"
                ),
            ];
            for way in ["x", "y"] {
                let expected = copied(ty, row, way, &format!("layout [ic, ab, ib, jb] swizzle {span};")).unwrap();
                assert!(bytes * row == span && expected.contains("xor.b32"), "{expected}");
                for ops in &forms {
                    assert_eq!(copied(ty, row, way, ops), Ok(expected.clone()), "{ty} {span} {way}: {ops}");
                }
            }
        }
    }
}

/// Views of a tile that change nothing, with a span and without.
#[test]
fn a_view_of_the_tile_changes_nothing() {
    for (plain, view) in [
        ("layout [ic, ab, ib, jb];", "split ib by 4 -> u, v; merge v, jb -> w; layout [ic, u, w];"),
        ("layout [ic, ab, ib, jb];", "split ib by 8 -> u, v; split jb by 4 -> c, l; layout [ic, ab, u, v, c, l];"),
        ("layout [ic, ab, ib, jb] swizzle 128;", "split ib by 8 -> u, v; layout [ic, u, v, jb] swizzle 128;"),
        (
            "layout [ic, ab, ib, jb];",
            "split ib by 8 -> u, v; split jb by 4 -> c, l; swizzle v, c by xor -> v2, c2; swizzle v2, c2 by xor -> v3, c3;
            layout [ic, u, v3, c3, l];",
        ),
    ] {
        let expected = copied("f32", 32, "x", plain).unwrap();
        assert_eq!(copied("f32", 32, "x", view), Ok(expected), "{view}");
    }
}

#[test]
fn what_is_not_written_so_is_refused() {
    let chunks = "split ib by 8 -> e, r; split jb by 4 -> c, l;";
    for (ops, code) in [
        // Rows exchanged by chunks, chunks by the wrong bits of the row, chunks of another size, another order.
        (format!("{chunks} swizzle c, r by xor -> c2, r2; layout [ic, e, r2, c2, l];"), Code::TW0409),
        ("split ib into 8 -> r, e; split jb by 4 -> c, l; swizzle r, c by xor -> r2, c2; layout [ic, r2, e, c2, l];".to_owned(), Code::TW0409),
        ("split ib by 4 -> e, r; split jb by 8 -> c, l; swizzle r, c by xor -> r2, c2; layout [ic, e, r2, c2, l];".to_owned(), Code::TW0409),
        (format!("{chunks} layout [ic, e, c, r, l];"), Code::TW0409),
        (format!("{chunks} layout [ic, e, r, l, c];"), Code::TW0409),
        // The pattern of 64 bytes, which rows of 128 cannot have: it spans less than a row.
        (
            "split ib by 8 -> e, r; split r by 2 -> x, s; split jb by 16 -> h, q; split q by 4 -> c, l; swizzle x, c by xor -> x2, c2;
            layout [ic, e, x2, s, h, c2, l];"
                .to_owned(),
            Code::TW0409,
        ),
        // No square; a remainder inside; gaps between tiles; two swizzles; axes that are gone.
        ("split ib by 4 -> e, r; split jb by 4 -> c, l; swizzle r, c by xor -> r2, c2;".to_owned(), Code::TW0206),
        ("split jb by 5 -> c, l; layout [ic, ib, c, l];".to_owned(), Code::TW0408),
        ("split ib by 9 -> e, r; layout [ic, e, r, jb];".to_owned(), Code::TW0408),
        (format!("{chunks} swizzle r, c by xor -> r2, c2; layout [ic, e, r2, c2, l] swizzle 128;"), Code::TW0407),
        (format!("{chunks} tile ib by 2 -> t, p;"), Code::TW0150),
        (format!("{chunks} layout [ic, ib, jb];"), Code::TW0408),
        ("split ic by 2 -> p, q;".to_owned(), Code::TW0150),
        ("split i by 2 -> p, q;".to_owned(), Code::TW0304),
        ("merge ib, ib -> p;".to_owned(), Code::TW0151),
        ("split ib by 2 -> jb, q;".to_owned(), Code::TW0151),
        ("reorder ib, jb;".to_owned(), Code::TW0005),
    ] {
        assert_eq!(copied("f32", 32, "x", &ops), Err(vec![code]), "{ops}");
    }
    // Narrow rows with the pattern of 128 bytes: recognised, and refused as by its span.
    let ops = "split ib by 2 -> r, h; split jb by 4 -> c, l; split r by 4 -> q, k; swizzle k, c by xor -> k2, c2; layout [ic, q, k2, h, c2, l];";
    assert!(copied("f32", 16, "x", ops).is_ok(), "64 bytes");
    let ops = "merge ib, jb -> w; split w by 256 -> p, o; split o by 32 -> r, n; split n by 4 -> c, l; swizzle r, c by xor -> r2, c2;
        layout [ic, p, r2, c2, l];";
    assert_eq!(copied("f32", 16, "x", ops), Err(vec![Code::TW0407]));
    assert_eq!(copied("f32", 16, "x", "layout [ic, ib, jb] swizzle 128;"), Err(vec![Code::TW0407]));
    // Rows of 256 bytes are longer than any span.
    let ops = "split ib by 8 -> e, r; split jb by 32 -> h, q; split q by 4 -> c, l; swizzle r, c by xor -> r2, c2; layout [ic, e, r2, h, c2, l];";
    assert_eq!(copied("f32", 64, "x", ops), Err(vec![Code::TW0409]));
}

/// However many ops there are, the answer comes.
#[test]
fn many_ops() {
    let splits = |count: usize| {
        let of = |n: usize| if n == 0 { "ib".to_owned() } else { format!("p{}", n - 1) };
        (0..count).map(|n| format!("split {} by 1 -> p{n}, q{n}; ", of(n))).collect::<String>()
    };
    let plain = copied("u8", 32, "x", "");
    assert!(plain.is_ok());
    assert_eq!(copied("u8", 32, "x", &splits(64)), plain);
    assert_eq!(copied("u8", 32, "x", &splits(65)), Err(vec![Code::TW0005]));
}

/// What the accelerator exchanges, it finds in the address: a tile begins at a multiple of the whole pattern, in static
/// and in dynamic memory, whatever lies before it. At a lesser one, readers find other elements.
#[test]
fn tiles_begin_where_their_pattern_does() {
    let source = |span: u32, rows: u32| {
        let columns = span / 4;
        format!(
            "kernel Turn(w: f32[32], x: f32[M, N]) -> (y: f32[N, M]) where N % 4 == 0 {{
                y[j, i] = x[i, j] * w[i % 32];
                launch threads(32);
                schedule y {{
                    split j by {columns} -> jo, ji; split i by {rows} -> io, ii; split ii by 32 -> ir, it;
                    reorder jo, io, ji, ir, it; bind jo, io: grid; bind it: thread;
                }}
                stage ws[i] = w in shared at y.io {{ bind i: thread; }}
                stage xs[i, j] = x in shared at y.io via tma {{
                    box i by 32 -> ic, ib; box j by {columns} -> jc, jb; layout [ic, ib, jb] swizzle {span};
                }}
            }}"
        )
    };
    for span in [32, 64, 128] {
        // In one box, and in more than 48 KiB of them.
        for rows in [32, 65_536 / span] {
            let source = source(span, rows);
            let info = compiled(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
            let text = &info.ptx.text;
            let is_dynamic = info.entries[0].shared_bytes > 48 << 10;
            assert_eq!(is_dynamic, rows > 32, "{source}");
            let found = format!(".shared .align {} ", 8 * span);
            assert!(text.contains(&found), "{found}\n{text}");
            let dims = [i64::from(rows) + 5, 40];
            assert!(!is_wrong(&info, &dims, text.to_string()), "{source}");
            if !is_dynamic {
                // Something before it moves it to another multiple of 128, which is all that a copy needs by itself.
                let moved = |bytes: u32| format!(".shared .align 128 .b8 before[{bytes}];\n    .shared .align 128 ");
                let mut others = (1..=8).map(|n| text.replace(&found, &moved(128 * n)));
                assert!(others.any(|other| is_wrong(&info, &dims, other)), "{source}\n{text}");
            }
        }
    }
}

/// Slots of a ring are whole multiples of what a copy's address must be a multiple of, however small the tile: the
/// second one is not misaligned.
#[test]
fn slots_are_apart_by_whole_granules() {
    for (columns, slots) in [(4, 2), (8, 3), (12, 4), (40, 3)] {
        let source = format!(
            "kernel Sums(x: f32[M, N; ld, 1]) -> (y: f32[M]) where ld % 4 == 0 {{
                y[i] = sum(|j| x[i, j]);
                launch threads(32);
                schedule y {{
                    bind i: grid; split j by {columns} -> jo, ji; split ji by 4 -> r, t; reorder i, jo, r, t;
                    bind t: thread; reduce t;
                }}
                stage xs[i, j] = x in shared at y.jo ring({slots}) via tma {{
                    box i by 1 -> ic, ib; box j by {columns} -> jc, jb; l2 promote(64);
                }}
            }}"
        );
        let info = compiled(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
        assert_eq!(info.maps.len(), 1, "{source}");
        let (tile, slot) = (4 * columns, (4 * columns as u32).next_multiple_of(128));
        let dims = [3, i64::from(columns) * i64::from(slots) * 4 + 5, 1024];
        assert!(!is_wrong(&info, &dims, info.ptx.text.to_string()), "{source}\n{}", info.ptx.text);
        // The next slot right after the tile.
        let step = format!(", {slot}, ");
        assert!(info.ptx.text.contains(&step), "{step}\n{}", info.ptx.text);
        assert!(is_wrong(&info, &dims, info.ptx.text.replace(&step, &format!(", {tile}, "))), "{source}");
    }
}
