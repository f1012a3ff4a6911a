//! The cases by which bounds inference is compared with TVM's InferBound: its ranges, against the cover of what is
//! read.
//!
//! Each row has TVM's range for every dimension, `first; extent`. Where TVM is exact in every iteration, the region
//! must equal it; where it is not, the region must lie within it and be smaller somewhere. In both cases it must be the
//! smallest box around what enumeration finds, and hold all claims that it makes.

use std::collections::BTreeSet;

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

const MATRIX: (&str, &[&[i64]]) = ("m l", &[&[1, 1], &[3, 2], &[8, 8], &[9, 16], &[16, 5], &[17, 9]]);

/// A reader of a tensor of the same shape, over dimensions m and l.
const fn matrix(id: &'static str, ops: &'static str, at: &'static str, range: &'static str, tvm: Tvm) -> Row {
    Row { sizes: MATRIX, shape: "m, l", roots: "i m, j l", ..fused(id, ops, at, range, tvm) }
}

const fn line(id: &'static str, length: &'static str, ops: &'static str, at: &'static str, range: &'static str) -> Row {
    Row { shape: length, roots: "i 10", reads: "i", ..fused(id, ops, at, range, Exact) }
}

const fn plane(id: &'static str, ops: &'static str, at: &'static str, range: &'static str) -> Row {
    Row { shape: "5, 16", roots: "i 5, j 16", ..fused(id, ops, at, range, Exact) }
}

const UNIT_TESTS: &[Row] = &[
    matrix("B1", "split i 8 io ii", "io", "io * 8; 8 | 0; l", Wider),
    matrix("B2", "split i 8 io ii; split j 8 jo ji; reorder io jo ii ji", "jo", "io * 8; 8 | jo * 8; 8", Wider),
    Row { roots: "i 8", ..line("B4", "8", "split i 32 io ii", "io", "0; 8") },
    Row { roots: "i 8", ..line("B5", "8", "into i 32 io ii", "io", "io; 1") },
    Row {
        sizes: ("m l", &[&[32, 3], &[64, 2]]),
        unit: Unit::Warp,
        ..matrix(
            "B10",
            "split i 32 io ii; split ii 16 ty tx; bind io grid; bind ty warp; bind tx thread",
            "j",
            "io * 32 + ty * 16; 16 | j; 1",
            Exact,
        )
    },
    Row {
        shape: "12, 12",
        roots: "i 10, j 10",
        reads: "i + 1, j + 1; i, j + 1; i + 2, j + 1; i + 1, j; i + 1, j + 2",
        ..fused("B13", "", "j", "i; 3 | j; 3", Wider)
    },
    Row { shape: "4, 1", roots: "i 1, ko 4", reads: "ko, i", ..fused("B14", "", "", "0; 4 | 0; 1", Exact) },
    matrix("B16", "", "i", "i; 1 | 0; l", Exact),
    matrix("B16", "", "j", "i; 1 | j; 1", Exact),
    Row {
        sizes: ("m", &[&[1], &[32], &[33], &[70]]),
        shape: "m",
        roots: "i m",
        tvm: Wider,
        ..line("B17", "m", "split i 32 bx tx; bind bx grid; bind tx thread", "tx", "bx * 32; 32")
    },
    Row {
        sizes: ("m", &[&[1], &[32], &[33], &[70]]),
        shape: "m",
        roots: "i m",
        unit: Unit::Thread,
        ..line("B17", "m", "split i 32 bx tx; bind bx grid; bind tx thread", "tx", "bx * 32 + tx; 1")
    },
    Row { reads: "min(3 * i, 4 * i) + min(-3 * i, -2 * i)", tvm: Wider, ..line("B20", "2", "", "", "0; 2") },
    Row { reads: "min(3 * i, 4 * i) + max(-3 * i, -4 * i)", tvm: Wider, ..line("B20", "2", "", "", "0; 2") },
    Row { reads: "-2 * (i / 2) - min(i, -i)", ..line("B20", "2", "", "", "0; 2") },
    Row { reads: "i + (0 - i)", tvm: Wider, ..line("B20", "2", "", "", "0; 2") },
    Row {
        shape: "2, 2, 64, 256",
        roots: "n 256, m 256",
        reads: "n / 128, m / 128, n % 128 / 2, n % 2 * 128 + m % 128",
        ..fused(
            "B22",
            "split n 128 no ni; split m 128 mo mi; split ni 32 p q; reorder no mo p q mi",
            "p",
            "no; 1 | mo; 1 | p * 16; 16 | 0; 256",
            Exact,
        )
    },
    Row {
        roots: "i 128",
        ..line(
            "B25",
            "128",
            "split i 64 oc ic; split oc 2 ooc ioc; split ic 32 oic tx; bind ooc grid; bind tx thread",
            "ioc",
            "ioc * 64; 64",
        )
    },
    Row {
        roots: "i 128",
        unit: Unit::Thread,
        tvm: Wider,
        ..line(
            "B25",
            "128",
            "split i 64 oc ic; split oc 2 ooc ioc; split ic 32 oic tx; bind ooc grid; bind tx thread",
            "ooc",
            "tx; 97",
        )
    },
    matrix("B26", "", "i", "i; 1 | 0; l", Exact),
    Row {
        shape: "10, 10",
        roots: "i 10, j 10",
        ..fused("B28", "split j 2 jo ji", "ji", "i; 1 | jo * 2 + ji; 1", Exact)
    },
    Row { shape: "10, 10", roots: "i 10, j 10", ..fused("B29", "merge i j f", "f", "f / 10; 1 | f % 10; 1", Exact) },
    Row { roots: "i 128", ..line("B32", "128", "split i 16 io ii", "io", "io * 16; 16") },
    Row {
        shape: "8, 64",
        roots: "i 4, j 64, k 8",
        reads: "k, j",
        ..fused("B32", "split j 16 jo ji", "jo", "0; 8 | jo * 16; 16", Exact)
    },
    plane("D1", "", "", "0; 5 | 0; 16"),
    plane("D2", "", "j", "i; 1 | j; 1"),
    Row { shape: "5, 16", roots: "a 4, b 5, c 16", reads: "b, c", ..fused("D4", "", "c", "b; 1 | c; 1", Exact) },
    plane("D5", "split j 8 jo ji", "ji", "i; 1 | jo * 8 + ji; 1"),
    plane("D7", "", "", "0; 5 | 0; 16"),
    Row { roots: "i 2, j 2", reads: "i, j; i + 2, j + 2", ..fused("D8", "", "", "0; 4 | 0; 4", Wider) },
];

const BLOCKS: &str = "split i 8 by ty; split j 16 bx tx; bind by grid; bind ty thread; bind bx grid; bind tx thread";
const VIRTUAL: &str = "split i 8 by w; into w 2 v ty; bind by grid; bind v thread; bind ty thread";

const fn large(id: &'static str, ops: &'static str, at: &'static str, unit: Unit, range: &'static str) -> Row {
    Row { shape: "64, 96", roots: "i 64, j 96", unit, ..fused(id, ops, at, range, Exact) }
}

const OTHERS: &[Row] = &[
    large("G1", BLOCKS, "tx", Unit::Thread, "by * 8 + ty; 1 | bx * 16 + tx; 1"),
    large("G1", BLOCKS, "tx", Unit::Cta, "by * 8; 8 | bx * 16; 16"),
    // A virtual thread is one more axis of threads here.
    large("G2", VIRTUAL, "j", Unit::Cta, "by * 8; 8 | j; 1"),
    large("G2", VIRTUAL, "j", Unit::Thread, "by * 8 + v * 4 + ty; 1 | j; 1"),
    Row { roots: "i 64", reads: "i + 5", ..line("G5", "70", "split i 16 io ii", "", "5; 64") },
    Row { roots: "x 16", reads: "x", ..line("G7", "16", "split x 4 o i", "o", "o * 4; 4") },
    Row { roots: "x 16", reads: "x", ..line("G7", "16", "split x 4 o i", "i", "o * 4 + i; 1") },
    Row { roots: "i 14", reads: "i; i + 2", tvm: Wider, ..line("G10", "16", "", "i", "i; 3") },
    Row { roots: "i 32", reads: "i; i + 1; i + 2", ..line("G11", "34", "split i 8 o q", "o", "o * 8; 10") },
    Row {
        roots: "i 32",
        reads: "i; i + 1; i + 2",
        tvm: Wider,
        ..line("G11", "34", "split i 10 o q", "o", "o * 10; 12")
    },
    Row {
        shape: "6, 32",
        roots: "bx 6, k 32",
        reads: "bx, k",
        ..fused("G13", "split k 8 ko tx; bind bx grid; bind tx thread", "ko", "bx; 1 | ko * 8; 8", Exact)
    },
    Row {
        shape: "6, 32",
        roots: "bx 6, k 32",
        reads: "bx, k",
        unit: Unit::Thread,
        ..fused("G13", "split k 8 ko tx; bind bx grid; bind tx thread", "ko", "bx; 1 | ko * 8 + tx; 1", Exact)
    },
    Row { at: "ko", ..product("G14", "split k 3 ko ki; reorder ko i j ki", "0; 12 | ko * 3; 3", Wider) },
    Row { at: "k", ..product("G14", "reorder i k j", "i; 1 | k; 1", Exact) },
    Row {
        shape: "17, 33",
        roots: "y 8, x 16, kh 3, kw 3",
        reads: "y * 2 + kh, x * 2 + kw",
        ..fused(
            "G16",
            "split y 4 yo yi; split x 8 xo xi; reorder yo xo yi xi; merge yo xo t",
            "t",
            "t / 2 * 8; 9 | t % 2 * 16; 17",
            Exact,
        )
    },
    Row { roots: "i 64", reads: "63 - i", ..line("G17", "64", "split i 8 o q", "o", "56 - o * 8; 8") },
    Row { shape: "16", reads: "i * 4 + j", ..fused("G19", "", "i", "i * 4; 4", Exact) },
    Row { roots: "i 8", reads: "i; i + 2", ..line("G22", "10", "split i 4 o q", "o", "o * 4; 6") },
    Row {
        roots: "i 8",
        reads: "i - 1 if i - 1, 8 - i; i + 1 if i + 1, 6 - i",
        tvm: Wider,
        ..line("G22", "8", "split i 4 o q", "o", "o * 4 - 1; 6")
    },
    Row { roots: "i 8", reads: "i; i + 2", ..line("G22", "10", "split i 4 o q", "", "0; 10") },
    Row {
        roots: "i 8",
        reads: "i - 1 if i - 1, 8 - i; i + 1 if i + 1, 6 - i",
        ..line("G22", "8", "split i 4 o q", "", "0; 8")
    },
    Row {
        shape: "16, 64",
        roots: "i 16, j 64",
        ..fused("G25", "split i 4 a b; reorder a j b", "a", "a * 4; 4 | 0; 64", Exact)
    },
];

/// Compares one row at all its sizes.
fn compare(row: &Row) {
    let nest = Nest::new(row.sizes.0, row.shape, row.roots, row.ops, row.reads, row.at, row.unit);
    let region = nest.region(Realisation::Cover).unwrap_or_else(|why| panic!("{row:?}: {why:?}"));
    assert!(region.groups.iter().all(|g| g.fit >= Fit::Minimal && g.is_known), "{row:?}: {}", show(&region));
    assert!(region.groups.len() == 1 || row.tvm == Wider, "{row:?}: {}", show(&region));
    let ranges: Vec<(Text, Text)> = row
        .range
        .split('|')
        .map(|range| {
            let (first, extent) = range.split_once(';').expect("first; extent");
            (Text::new(first), Text::new(extent))
        })
        .collect();
    let mut is_wider = region.groups.len() > 1;
    for sizes in row.sizes.1 {
        check(&nest, &region, sizes, &format!("{row:?}, {sizes:?}"));
        for (key, sets) in nest.oracle(sizes) {
            if sets.iter().all(BTreeSet::is_empty) {
                continue;
            }
            let values = nest.point(sizes, &key);
            let names = nest.names(sizes, &key);
            let name = |name: &str| *names.get(name).unwrap_or_else(|| panic!("{name} in {row:?}"));
            for group in &region.groups {
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
    }
    assert_eq!(is_wider, row.tvm == Wider, "{row:?}: {}", show(&region));
}

#[test]
fn ranges_of_fused_axes() {
    FUSED.iter().for_each(compare);
}

#[test]
fn ranges_of_unit_tests_and_documents() {
    UNIT_TESTS.iter().for_each(compare);
}

#[test]
fn ranges_of_threads_stencils_and_reductions() {
    OTHERS.iter().for_each(compare);
}

/// Every case of the list that this project was given, in its order.
const IDS: &[&str] = &[
    "B1", "B2", "B4", "B5", "B7", "B8", "B10", "B11", "B13", "B14", "B16", "B17", "B19", "B20", "B22", "B23", "B25",
    "B26", "B28", "B29", "B31", "B32", "D1", "D2", "D4", "D5", "D7", "D8", "F1", "F2", "F4", "F5", "F7", "F8", "F10",
    "F11", "F13", "F14", "F16", "F17", "F19", "F20", "F22", "F23", "F25", "F26", "F28", "F29", "F31", "F32", "F34",
    "F35", "F37", "F38", "F40", "F41", "F43", "G1", "G2", "G4", "G5", "G7", "G8", "G10", "G11", "G13", "G14", "G16",
    "G17", "G19", "G20", "G22", "G23", "G25",
];

/// Cases that are tests of their own, or none, and why.
const ELSEWHERE: &[(&str, &str)] = &[
    ("B7", "extents of the loops of a stage without readers, which the domain gives; there is no region"),
    ("B8", "the factor is a dimension: `symbolic_factor`, on the region itself; a split takes a literal"),
    ("B11", "the language has no scan"),
    ("B19", "the language has no intrinsics with declared regions"),
    ("B23", "the language has no scan"),
    ("B31", "the language has no scan"),
    ("F31", "the factor is a dimension: `symbolic_rows`, on the region itself; a split takes a literal"),
    ("F32", "as F31"),
    ("G4", "extents of the producer's own loops, which follow from the bound of the region"),
    ("G8", "an attach point that is not around the reader: the schedule refuses it before there is a region"),
    ("G20", "the language has no extern stages; reads by indices that are data: `gathers_take_the_whole_dimension`"),
    ("G23", "the language has no scan"),
];

#[test]
fn every_case_is_accounted_for() {
    let rows = || FUSED.iter().chain(UNIT_TESTS).chain(OTHERS).map(|row| row.id);
    let known: Vec<&str> = rows().chain(ELSEWHERE.iter().map(|e| e.0)).collect();
    let missing: Vec<&&str> = IDS.iter().filter(|id| !known.contains(id)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(known.iter().all(|id| IDS.contains(id)));
    assert!(ELSEWHERE.iter().all(|(id, why)| !why.is_empty() && !rows().any(|row| row == *id)));
}
