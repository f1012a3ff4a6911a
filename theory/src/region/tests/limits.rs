//! What bounds inference with one interval for each dimension cannot say: the known limitations of InferBound, and the
//! exact answers.

use tilewright_kernel::info::{Dim, DimKind};

use super::nest::{Nest, Unit, check, show, tightest};
use super::text::Text;
use crate::extent::{Expr, Facts};
use crate::region::{Fit, Loops, NotATile, Realisation, Request, of};

/// A reader and the region of each group, `first; extent; step` for each dimension, where something is asked for.
struct Limitation {
    what: &'static str,
    sizes: (&'static str, &'static [&'static [i64]]),
    /// Shape, roots, ops, reads, attach point.
    nest: [&'static str; 5],
    unit: Unit,
    groups: &'static [&'static str],
    /// Elements of all buffers.
    bound: i128,
}

const NONE: (&str, &[&[i64]]) = ("", &[&[]]);

const fn row(what: &'static str, nest: [&'static str; 5], groups: &'static [&'static str], bound: i128) -> Limitation {
    Limitation { what, sizes: NONE, nest, unit: Unit::Cta, groups, bound }
}

const THREADS: &str = "split i 64 oc ic; split oc 2 ooc ioc; split ic 32 oic tx; bind ooc grid; bind tx thread";
const TILES: &str = "split y 4 yo yi; split x 8 xo xi; reorder yo xo kh yi xi kw";

const ROWS: &[Limitation] = &[
    // 5: two access functions; what is read twice where they meet is in both groups.
    Limitation {
        sizes: ("N", &[&[1], &[2], &[5], &[8]]),
        ..row(
            "A[2i, j] + A[i + 1, j]",
            ["2 * N, N", "i N, j N", "", "2 * i, j; i + 1, j", "i"],
            &["2 * i; 1; 1 | 0; N; 1", "i + 1; 1; 1 | 0; N; 1"],
            0,
        )
    },
    // 6 to 10: strides.
    row("B[2i]", ["64", "i 32", "split i 8 o q", "2 * i", "o"], &["o * 16; 8; 2"], 8),
    row("B[i + 5j]", ["26", "i 16, j 3", "", "i + 5 * j", "i"], &["i; 3; 5"], 3),
    row("reordered split", ["32", "i 32", "split i 8 io ii; reorder ii io", "i", "ii"], &["ii; 4; 8"], 4),
    row("reordered split by 4", ["128", "i 128", "split i 4 io ii; reorder ii io", "i", "ii"], &["ii; 32; 4"], 32),
    row(
        "strided window",
        ["17, 33", "y 8, x 16, kh 3, kw 3", TILES, "y * 2 + kh, x * 2 + kw", "kh"],
        &["8 * yo + kh; 4; 2 | 16 * xo; 17; 1"],
        68,
    ),
    Limitation { unit: Unit::Thread, ..row("per thread", ["128", "i 128", THREADS, "i", "ooc"], &["tx; 4; 32"], 4) },
    // 11: boxes apart.
    row(
        "two quarters",
        ["4, 4", "i 2, j 2", "", "i, j; i + 2, j + 2", ""],
        &["0; 2; 1 | 0; 2; 1", "2; 2; 1 | 2; 2; 1"],
        8,
    ),
    row(
        "two rows",
        ["4, 4", "i 2, j 2", "", "i, j; i + 2, j + 2", "i"],
        &["i; 1; 1 | 0; 2; 1", "i + 2; 1; 1 | 2; 2; 1"],
        4,
    ),
    // 12: a cross is a column and two points, or a row and two points.
    row(
        "cross",
        ["12, 12", "i 10, j 10", "", "i, j + 1; i + 1, j; i + 1, j + 1; i + 1, j + 2; i + 2, j + 1", "j"],
        &["i; 3; 1 | j + 1; 1; 1", "i + 1; 1; 1 | j; 2; 2"],
        5,
    ),
    // 13, 16, 17: splits that do not divide.
    row("tail", ["20", "i 20", "split i 16 io ii", "i", "io"], &["io * 16; min(16, 20 - 16 * io); 1"], 16),
    row("producer of a tail", ["48", "i 48", "split i 32 o q", "i", "o"], &["o * 32; min(32, 48 - 32 * o); 1"], 32),
    row("nested, outer", ["96", "i 96", "split i 48 o q; split q 32 m r", "i", "o"], &["o * 48; 48; 1"], 48),
    row(
        "nested, middle",
        ["96", "i 96", "split i 48 o q; split q 32 m r", "i", "m"],
        &["o * 48 + m * 32; 32 - 16 * m; 1"],
        32,
    ),
    row(
        "nested, past the end",
        ["100", "i 100", "split i 48 o q; split q 32 m r", "i", "m"],
        &["o * 48 + m * 32; min(32 - 16 * m, 100 - 48 * o - 32 * m); 1"],
        32,
    ),
    // 14: what cancels.
    row("T[i + (0 - i)]", ["16", "i 8", "", "i + (0 - i)", ""], &["0; 1; 1"], 1),
    row("T[2i - i]", ["16", "i 8", "", "2 * i - i", ""], &["0; 8; 1"], 8),
    // 19, 20: conditions, and ends clipped one by one.
    row(
        "padded",
        ["8", "i 8", "split i 4 o q", "i - 1 if i - 1, 8 - i; i + 1 if i + 1, 6 - i", "o"],
        &["max(0, 4 * o - 1); 5; 1"],
        5,
    ),
    // 22: each block reads only what it wrote.
    row(
        "a block's own rows",
        ["64, 96", "i 64, j 96", "merge i j f; split f 32 o q; bind o grid; bind q thread", "i, j", "o"],
        &["o / 3; 1; 1 | o % 3 * 32; 32; 1"],
        32,
    ),
    // 23, 127 by 32.
    row("vector tail", ["127", "i 127", "split i 32 o q", "i", "o"], &["32 * o; min(32, 127 - 32 * o); 1"], 32),
    // Whole axes of a length that is known at launch, and their tails.
    Limitation {
        sizes: ("N M", &[&[1, 1], &[30, 64], &[31, 65], &[70, 130]]),
        ..row(
            "halo of a tile",
            [
                "N + 2, M",
                "i N, j M, kd 3",
                "split i 30 io ii; split j 64 jo ji; reorder io jo ii ji; merge ii ji p; split p 256 pr t",
                "i + kd, j",
                "jo",
            ],
            &["30 * io; min(32, N + 2 - 30 * io); 1 | 64 * jo; min(64, M - 64 * jo); 1"],
            2048,
        )
    },
];

#[test]
fn every_limitation_has_its_exact_answer() {
    for limitation in ROWS {
        let [shape, roots, ops, reads, at] = limitation.nest;
        let nest = Nest::new(limitation.sizes.0, shape, roots, ops, reads, at, limitation.unit);
        let region = nest.region(Realisation::Cover).unwrap();
        let what = format!("{}: {}", limitation.what, show(&region));
        assert!(region.groups.iter().all(|g| g.fit == Fit::Exact), "{what}");
        assert_eq!(region.groups.len(), limitation.groups.len(), "{what}");
        for sizes in limitation.sizes.1 {
            let figures = check(&nest, &region, sizes, &what);
            if limitation.bound > 0 {
                assert_eq!(figures.bound, limitation.bound, "{what}");
            }
            if limitation.sizes.0.is_empty() {
                assert_eq!(figures.bounds, tightest(&nest, &region, sizes), "{what}");
            }
            for (key, sets) in nest.oracle(sizes) {
                let (values, names) = (nest.point(sizes, &key), nest.names(sizes, &key));
                for (group, expected) in region.groups.iter().zip(limitation.groups) {
                    if group.requests.iter().all(|r| sets[*r].is_empty()) {
                        continue;
                    }
                    for (axis, parts) in group.axes.iter().zip(expected.split('|')) {
                        let parts: Vec<i128> = parts.split(';').map(|e| Text::new(e).number(&|n| names[n])).collect();
                        let at = |e: &Expr| e.eval(&values).unwrap();
                        assert_eq!([at(&axis.start), at(&axis.extent), axis.step], parts[..], "{key:?} {what}");
                    }
                }
            }
        }
    }
}

/// A factor that is a dimension, and a row that is another one.
#[test]
fn symbolic_factor() {
    let dims = ["m", "l", "s"].map(|name| Dim { name: name.into(), kind: DimKind::Size });
    let facts = Facts::new(&dims, &[]).unwrap();
    let [m, l, s, o, q] = [0, 1, 2, 3, 4].map(Expr::var);
    let (total, f) = (m.mul(&l), s.mul(&o).add(&q));
    let axes = vec![(f.clone(), total.clone())];
    let loops = Loops { inside: vec![(4, s.clone())], outside: vec![(3, total.ceil_div(&s))], ..Loops::default() };
    let request = Request { indices: vec![f.floor_div(&l), f.modulo(&l)], conditions: Vec::new(), axes: axes.clone() };
    let zero = Expr::constant(0);
    let found = of(&[request], &loops, &[(zero.clone(), m), (zero, l)], &facts).unwrap();
    let [group] = &found.groups[..] else { panic!("{}", show(&found)) };
    let mut cases = 0;
    for n in 0..125 {
        let [m, l, s] = [n % 5 + 1, n / 5 % 5 + 1, n / 25 + 1];
        for o in 0..(m * l + s - 1) / s {
            let at = |e: &Expr| e.eval(&[m, l, s, o]).unwrap();
            let (first, last) = (o * s, ((o + 1) * s).min(m * l) - 1);
            let (rows, columns) =
                ((first / l, last / l), if first / l == last / l { (first % l, last % l) } else { (0, l - 1) });
            let spans: Vec<(i128, i128)> = match &group.axes[..] {
                [flat] => vec![(at(&flat.start), at(&flat.start) + at(&flat.extent) - 1)],
                axes => axes.iter().map(|a| (at(&a.start), at(&a.start) + at(&a.extent) - 1)).collect(),
            };
            let expected = if spans.len() == 1 { vec![(first, last)] } else { vec![rows, columns] };
            assert_eq!(spans, expected, "{m} {l} {s} {o}: {}", show(&found));
            for (axis, (first, last)) in group.axes.iter().zip(&expected) {
                assert!(last - first < at(&axis.bound), "{}", show(&found));
            }
            cases += 1;
        }
    }
    assert!(cases > 400);
}

/// An index that is data, or lost, or beyond this analysis, takes any value of its dimension; the others keep their
/// own.
#[test]
fn gathers_take_the_whole_dimension() {
    let facts = Facts::new(&[Dim { name: "N".into(), kind: DimKind::Size }], &[]).unwrap();
    let number = Expr::constant;
    let axes = vec![(Expr::var(1).scale(4).add(&Expr::var(2)), number(32))];
    let loops = Loops { inside: vec![(2, number(4))], outside: vec![(1, number(8))], ..Loops::default() };
    let domain = [(number(0), Expr::var(0)), (number(0), number(32))];
    let column = Expr::var(1).scale(4).add(&Expr::var(2));
    let squared = Expr::var(2).mul(&Expr::var(2));
    for index in [Expr::unknown(), squared] {
        let request = Request { indices: vec![index, column.clone()], conditions: Vec::new(), axes: axes.clone() };
        let found = of(&[request], &loops, &domain, &facts).unwrap();
        let [row, column] = &found.groups[0].axes[..] else { panic!("{}", show(&found)) };
        assert_eq!((&row.start, &row.extent, &row.bound), (&number(0), &Expr::var(0), &Expr::var(0)));
        assert_eq!((&column.start, &column.bound), (&Expr::var(1).scale(4), &number(4)));
        assert_eq!(found.groups[0].fit, Fit::Sound);
    }
    // A variable that is no loop is a mistake of the caller, and said.
    let request = Request { indices: vec![Expr::var(9), column], conditions: Vec::new(), axes: axes.clone() };
    assert_eq!(of(&[request], &loops, &domain, &facts), Err(NotATile::Unlisted(9)));
}

/// Axes over variables that are no loops of this region say nothing about it, and do not stand in it.
#[test]
fn axes_of_other_loops_do_not_occur() {
    let facts = Facts::new(&[], &[]).unwrap();
    let number = Expr::constant;
    let index = Expr::var(0).scale(4).add(&Expr::var(1));
    let axes = vec![(index.add(&Expr::var(5)), number(30)), (index.clone(), number(32))];
    let loops = Loops { inside: vec![(1, number(4))], outside: vec![(0, number(8))], ..Loops::default() };
    let request = Request { indices: vec![index], conditions: Vec::new(), axes: axes.clone() };
    let found = of(&[request], &loops, &[(number(0), number(32))], &facts).unwrap();
    let [axis] = &found.groups[0].axes[..] else { panic!("{}", show(&found)) };
    assert_eq!((&axis.start, &axis.extent, &axis.bound), (&Expr::var(0).scale(4), &number(4), &number(4)));
}
