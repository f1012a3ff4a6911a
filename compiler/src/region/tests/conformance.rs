//! The cases by which bounds inference is compared with TVM's InferBound: its ranges, against the cover of what is read.
//!
//! Each row has TVM's range for every dimension, `first; extent`. Where TVM is exact in every iteration, the region must equal it; where
//! it is not, the region must lie within it and be smaller somewhere. In both cases it must be the smallest box around what enumeration
//! finds, and hold all claims that it makes.

use super::nest::{Nest, Unit, check, show};
use super::text::Text;
use crate::region::{Fit, Realisation};

/// How TVM's range compares with the smallest cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tvm {
    /// It is the cover.
    Exact,
    /// It is larger in some iteration.
    Wider,
}

/// A reader, an attach point and TVM's answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub id: &'static str,
    /// Names of dimensions, and the sizes to try.
    pub sizes: (&'static str, &'static [&'static [i64]]),
    /// Of the tensor that is read.
    pub shape: &'static str,
    pub roots: &'static str,
    pub ops: &'static str,
    pub reads: &'static str,
    pub at: &'static str,
    pub unit: Unit,
    pub range: &'static str,
    pub tvm: Tvm,
}

use Tvm::{Exact, Wider};

const NONE: (&str, &[&[i64]]) = ("", &[&[]]);

/// Two fused axes of a tensor that is read at their indices.
const fn fused(id: &'static str, ops: &'static str, at: &'static str, range: &'static str, tvm: Tvm) -> Row {
    let (shape, roots) = ("4, 4", "i 4, j 4");
    Row { id, sizes: NONE, shape, roots, ops, reads: "i, j", at, unit: Unit::Cta, range, tvm }
}

const fn cube(id: &'static str, ops: &'static str, range: &'static str, tvm: Tvm) -> Row {
    let (shape, roots) = ("2, 3, 4", "a 2, b 3, c 4");
    Row { id, sizes: NONE, shape, roots, ops, reads: "a, b, c", at: "o", unit: Unit::Cta, range, tvm }
}

const fn tiled(id: &'static str, ops: &'static str, at: &'static str, range: &'static str) -> Row {
    Row { shape: "8, 8", roots: "i 8, j 8", ..fused(id, ops, at, range, Exact) }
}

const fn blocks(id: &'static str, at: &'static str, unit: Unit, range: &'static str) -> Row {
    let ops = "merge i j f; split f 32 o q; bind o grid; bind q thread";
    Row { shape: "64, 96", roots: "i 64, j 96", unit, ..fused(id, ops, at, range, Exact) }
}

const fn product(id: &'static str, ops: &'static str, range: &'static str, tvm: Tvm) -> Row {
    Row { shape: "12, 8", roots: "i 12, j 10, k 8", reads: "i, k", ..fused(id, ops, "o", range, tvm) }
}

const fn reshaped(id: &'static str, ops: &'static str, range: &'static str, tvm: Tvm) -> Row {
    Row { roots: "p 16", reads: "p / 4, p % 4", ..fused(id, ops, "o", range, tvm) }
}

const FUSED: &[Row] = &[
    fused("F1", "merge i j f; split f 1 o q", "o", "o / 4; 1 | o % 4; 1", Exact),
    fused("F2", "merge i j f; split f 2 o q", "o", "o / 2; 1 | o % 2 * 2; 2", Exact),
    fused("F4", "merge i j f; split f 4 o q", "o", "o; 1 | 0; 4", Exact),
    fused("F5", "merge i j f; split f 5 o q", "o", "o; 2 | 0; 4", Wider),
    fused("F7", "merge i j f; split f 7 o q", "o", "o * 7 / 4; (o * 3 % 4 + 6) / 4 + 1 | 0; 4", Wider),
    fused("F8", "merge i j f; split f 8 o q", "o", "o * 2; 2 | 0; 4", Exact),
    fused("F10", "merge i j f; split f 12 o q", "o", "o * 3; 3 | 0; 4", Wider),
    fused("F11", "merge i j f; split f 16 o q", "o", "0; 4 | 0; 4", Exact),
    Row {
        shape: "12, 6",
        roots: "i 12, j 6",
        ..fused("F13", "merge i j f; split f 10 o q", "o", "o * 10 / 6; (o * 4 % 6 + 9) / 6 + 1 | 0; 6", Wider)
    },
    fused("F14", "merge i j f; into f 2 o q", "o", "o * 2; 2 | 0; 4", Exact),
    fused("F14", "merge i j f; into f 3 o q", "o", "o * 6 / 4; 2 | 0; 4", Wider),
    fused("F14", "merge i j f; into f 4 o q", "o", "o; 1 | 0; 4", Exact),
    fused("F14", "merge i j f; into f 8 o q", "o", "o / 2; 1 | o % 2 * 2; 2", Exact),
    fused("F16", "merge i j f; split f 8 o q; split q 2 a b", "a", "o * 2 + a / 2; 1 | a % 2 * 2; 2", Exact),
    fused(
        "F17",
        "merge i j f; split f 6 o q; split q 3 a b",
        "a",
        "(o * 6 + a * 3) / 4; ((a * 3 + o * 2) % 4 + 2) / 4 + 1 | 0; 4",
        Wider,
    ),
    fused("F19", "merge i j f; split f 8 o q; split q 2 a b", "o", "o * 2; 2 | 0; 4", Exact),
    fused("F19", "merge i j f; split f 8 o q; split q 4 a b", "o", "o * 2; 2 | 0; 4", Exact),
    fused("F19", "merge i j f; split f 6 o q; split q 3 a b", "o", "o * 6 / 4; 2 | 0; 4", Wider),
    fused("F19", "merge i j f; split f 12 o q; split q 4 a b", "o", "o * 3; 3 | 0; 4", Wider),
    tiled(
        "F20",
        "split i 2 io ii; split j 4 jo ji; reorder io jo ii ji; merge io jo t",
        "t",
        "t / 2 * 2; 2 | t % 2 * 4; 4",
    ),
    tiled(
        "F22",
        "split i 2 io ii; split j 4 jo ji; reorder io jo ii ji; merge ii ji t; split t 4 to ti",
        "to",
        "io * 2 + to; 1 | jo * 4; 4",
    ),
    tiled(
        "F23",
        "split i 2 io ii; split j 4 jo ji; reorder io jo ii ji; merge ii ji t; split t 2 to ti",
        "to",
        "io * 2 + to / 2; 1 | jo * 4 + to % 2 * 2; 2",
    ),
    cube("F25", "merge a b g; merge g c f; split f 2 o q", "o / 6; 1 | o % 6 / 2; 1 | o % 2 * 2; 2", Exact),
    cube("F26", "merge a b g; merge g c f; split f 3 o q", "o / 4; 1 | 0; 3 | 0; 4", Wider),
    cube("F28", "merge a b g; merge g c f; split f 6 o q", "o / 2; 1 | 0; 3 | 0; 4", Wider),
    cube("F29", "merge a b g; merge g c f; split f 8 o q", "o * 2 / 3; (o * 2 % 3 + 1) / 3 + 1 | 0; 3 | 0; 4", Wider),
    Row {
        sizes: ("m l", &[&[1, 1], &[2, 1], &[3, 2], &[4, 3], &[5, 4], &[2, 5]]),
        shape: "m, 8 * l",
        roots: "i m, j 8 * l",
        ..fused(
            "F34",
            "merge i j f; split f 16 o q",
            "o",
            "o * 2 / l; (o * 2 + 1) / l - o * 2 / l + 1 | 0; 8 * l",
            Wider,
        )
    },
    blocks("F35", "o", Unit::Cta, "o / 3; 1 | o % 3 * 32; 32"),
    blocks("F35", "q", Unit::Cta, "o / 3; 1 | o % 3 * 32; 32"),
    // One warp per block: what a warp sees is what the block sees.
    blocks("F37", "q", Unit::Cta, "o / 3; 1 | o % 3 * 32; 32"),
    blocks("F38", "o", Unit::Grid, "0; 64 | 0; 96"),
    Row {
        shape: "9, 17",
        roots: "i 8, j 16",
        reads: "i, j; i, j + 1; i + 1, j; i + 1, j + 1",
        ..fused("F40", "merge i j f; split f 6 o q", "o", "o * 6 / 16; (o * 6 % 16 + 5) / 16 + 2 | 0; 17", Wider)
    },
    product("F41", "merge i j f; split f 5 o q", "o / 2; 1 | 0; 8", Exact),
    product("F41", "merge i j f; split f 10 o q", "o; 1 | 0; 8", Exact),
    product("F41", "merge i j f; split f 20 o q", "o * 2; 2 | 0; 8", Exact),
    product("F41", "merge i j f; split f 7 o q", "o * 7 / 10; (o * 7 % 10 + 6) / 10 + 1 | 0; 8", Wider),
    product("F41", "merge i j f; split f 4 o q", "o * 4 / 10; (o * 4 % 10 + 3) / 10 + 1 | 0; 8", Exact),
    reshaped("F43", "split p 2 o q", "o / 2; 1 | o % 2 * 2; 2", Exact),
    reshaped("F43", "split p 3 o q", "o * 3 / 4; (o * 3 % 4 + 2) / 4 + 1 | 0; 4", Wider),
    reshaped("F43", "split p 4 o q", "o; 1 | 0; 4", Exact),
    reshaped("F43", "split p 8 o q", "o * 2; 2 | 0; 4", Exact),
];

/// Compares one row at all its sizes.
fn compare(row: &Row) {
    let nest = Nest::new(row.sizes.0, row.shape, row.roots, row.ops, row.reads, row.at, row.unit);
    let region = nest.region(Realisation::Cover).unwrap_or_else(|why| panic!("{row:?}: {why:?}"));
    let [group] = &region.groups[..] else { panic!("{row:?}: {}", show(&region)) };
    assert!(group.fit >= Fit::Minimal, "{row:?}: {}", show(&region));
    let ranges: Vec<(Text, Text)> = row
        .range
        .split('|')
        .map(|range| {
            let (first, extent) = range.split_once(';').expect("first; extent");
            (Text::new(first), Text::new(extent))
        })
        .collect();
    let mut is_wider = false;
    for sizes in row.sizes.1 {
        check(&nest, &region, sizes, &format!("{row:?}, {sizes:?}"));
        for (key, sets) in nest.oracle(sizes) {
            if sets.iter().all(|set| set.is_empty()) {
                continue;
            }
            let values = nest.point(sizes, &key);
            let names = nest.names(sizes, &key);
            let name = |name: &str| *names.get(name).unwrap_or_else(|| panic!("{name} in {row:?}"));
            assert_eq!(ranges.len(), group.axes.len());
            for (axis, (first, extent)) in group.axes.iter().zip(&ranges) {
                let (first, extent) = (first.number(&name), extent.number(&name));
                let (start, count) = (axis.start.eval(&values).unwrap(), axis.extent.eval(&values).unwrap());
                let last = start + (count - 1) * axis.step;
                assert!(first <= start && last < first + extent, "{row:?} at {key:?}: {}", show(&region));
                is_wider |= count != extent;
            }
        }
    }
    assert_eq!(is_wider, row.tvm == Wider, "{row:?}: {}", show(&region));
}

#[test]
fn ranges_of_fused_axes() {
    for row in FUSED {
        compare(row);
    }
}

/// Every case of the list that this project was given, in its order.
const IDS: &[&str] = &[
    "F1", "F2", "F4", "F5", "F7", "F8", "F10", "F11", "F13", "F14", "F16", "F17", "F19", "F20", "F22", "F23", "F25",
    "F26", "F28", "F29", "F31", "F32", "F34", "F35", "F37", "F38", "F40", "F41", "F43",
];

/// Cases that are tests of their own, or none, and why.
const ELSEWHERE: &[(&str, &str)] = &[
    ("F31", "the factor is a dimension: `symbolic_rows`, on the region itself; a split takes a literal"),
    ("F32", "as F31"),
];

#[test]
fn every_case_is_accounted_for() {
    let rows = FUSED.iter().map(|row| row.id);
    let known: Vec<&str> = rows.chain(ELSEWHERE.iter().map(|e| e.0)).collect();
    let missing: Vec<&&str> = IDS.iter().filter(|id| !known.contains(id)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(known.iter().all(|id| IDS.contains(id)));
    assert!(ELSEWHERE.iter().all(|(id, why)| !why.is_empty() && !FUSED.iter().any(|row| row.id == *id)));
}
