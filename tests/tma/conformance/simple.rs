//! Copies with one box an instance: every rank, element type and swizzle, as loads and as stores; and tensors with a
//! dimension of one element.

use super::{Case, copy};

const TYPES: [(&str, i64); 3] = [("f16", 2), ("f32", 4), ("f64", 8)];
/// Bytes of the inner box; 16 stands for no swizzle.
const SPANS: [i64; 4] = [16, 128, 64, 32];
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn list(names: &[&str], make: impl Fn(&str) -> String) -> String {
    names.iter().map(|n| make(n)).collect::<Vec<_>>().join(", ")
}

/// Shape, box and sizes to run at; a box and a size of 0 stand for the span and for two spans, a size of −1 for a span
/// and a granule.
type Shape = (&'static [i64], &'static [i64], [&'static [i64]; 2]);

const SHAPES: [Shape; 5] = [
    (&[1_048_576], &[0], [&[0], &[-1]]),
    (&[1024, 128], &[3, 0], [&[3, 0], &[7, -1]]),
    (&[1024, 8, 128], &[1, 5, 0], [&[2, 5, 0], &[1, 7, -1]]),
    (&[4, 8, 1024, 1024], &[3, 5, 1, 0], [&[3, 5, 2, 0], &[4, 6, 1, -1]]),
    (&[4, 8, 1024, 32, 128], &[1, 3, 1, 5, 0], [&[1, 3, 2, 5, 0], &[2, 4, 1, 6, -1]]),
];

/// Rows that are no multiple of the period of the swizzle need no padding: tiles are aligned, and rows follow each
/// other.
pub fn every_rank_type_and_swizzle() -> Vec<Case> {
    let mut cases = Vec::new();
    for (ty, bytes) in TYPES {
        for span in SPANS {
            for shape in SHAPES {
                for load in [true, false] {
                    cases.push(one_box((ty, bytes), span, shape, load, false));
                }
            }
        }
    }
    cases
}

/// The same with swizzles as the suite has them, as ops, beside those with a span.
pub fn swizzles_as_ops() -> Vec<[Case; 2]> {
    let mut cases = Vec::new();
    for (ty, span) in TYPES.iter().flat_map(|ty| SPANS[1..].iter().map(|span| (*ty, *span))) {
        for shape in SHAPES {
            cases.extend([true, false].map(|load| [true, false].map(|ops| one_box(ty, span, shape, load, ops))));
        }
        for shape in ONE_ELEMENT {
            cases.push([true, false].map(|ops| with_one_element(shape, ty, span, ops)));
        }
    }
    cases
}

/// Rows of a span by eights, these by as many as fill 128 bytes, and a row by 16 bytes.
fn exchanged(rows: &str, row: &str, (span, bytes): (i64, i64), counts: &str) -> String {
    format!(
        "split {rows} by 8 -> r1, r8; split r8 by {} -> ra, rb; split {row} by {} -> na, nb;
        swizzle ra, na by xor -> rx, nx; layout [{counts}r1, rx, rb, nx, nb];",
        128 / span,
        16 / bytes
    )
}

fn one_box((ty, bytes): (&str, i64), span: i64, (shape, boxes, runs): Shape, load: bool, as_ops: bool) -> Case {
    let (inner, granule) = (span / bytes, 16 / bytes);
    let rank = shape.len();
    let names = &NAMES[..rank];
    let box_of = |d: usize| if boxes[d] == 0 { inner } else { boxes[d] };
    let at = |name: &str| NAMES.iter().position(|n| *n == name).unwrap_or(0);
    let counts = list(names, |n| format!("{n}c"));
    let inside = list(names, |n| format!("{n}b"));
    let splits: String = names.iter().map(|n| format!("split {n} by {} -> {n}c, {n}b; ", box_of(at(n)))).collect();
    let threads = match rank {
        1 => format!("bind {inside}: thread;"),
        _ => format!("merge {inside} -> t; bind t: thread;"),
    };
    let schedule = format!("{splits}reorder {counts}, {inside}; bind {counts}: grid; {threads}");
    let last = names[rank - 1];
    let boxing: String = names.iter().map(|n| format!("box {n} by {} -> {n}k, {n}x; ", box_of(at(n)))).collect();
    let layout = match span {
        16 => String::new(),
        _ if as_ops => {
            let whole = format!("{last}x");
            let (merge, whole) = match rank {
                1 => (String::new(), whole),
                _ => (format!("merge {} -> w; ", list(names, |n| format!("{n}x"))), "w".to_owned()),
            };
            format!("{merge}split {whole} by {inner} -> r, n; {}", exchanged("r", "n", (span, bytes), ""))
        }
        _ => format!("layout [{}] swizzle {span};", list(names, |n| format!("{n}x"))),
    };
    let axes = names.join(", ");
    let tensor = if load { "x" } else { "y" };
    let copies = format!("stage s[{axes}] = {tensor} in shared at y.{last}c via tma {{ {boxing}{layout} }}");
    let upper = list(names, str::to_uppercase);
    let facts = format!("{} % {granule} == 0", last.to_uppercase());
    let ty_of = format!("{ty}[{upper}]");
    let source = copy(&ty_of, &ty_of, &facts, &axes, &schedule, &copies);
    let mut stride = bytes;
    let mut dimensions = Vec::new();
    for (d, size) in shape.iter().enumerate().rev() {
        dimensions.push(format!("⟨{size}, {stride}, {}, 1⟩", box_of(d)));
        stride *= size;
    }
    let tile = (0..rank).map(box_of).product::<i64>() * bytes;
    let test = if load { "TMASimpleLdstTest.Load" } else { "TMASimpleLdstTest.Store" };
    let swizzle = if span == 16 { "none".to_owned() } else { span.to_string() };
    let size = |n: i64| match n {
        0 => 2 * inner,
        -1 => inner + granule,
        n => n,
    };
    let runs: Vec<Vec<i64>> = runs.iter().map(|r| r.iter().map(|n| size(*n)).collect()).collect();
    Case::accepted(test, &format!("{rank}D_{swizzle}_{ty}"), source, &[&dimensions.join(" ")], &[tile as u64])
        .at(shape)
        // Rows above the first one that a swizzle moves stay where they are.
        .xor(span != 16 && tile / span > 128 / span)
        .with(|a| a.runs = runs)
}

const ONE_ELEMENT: [[i64; 3]; 5] = [[1, 64, 16], [1, 16, 64], [1, 128, 64], [1, 128, 128], [64, 1, 16]];

/// A dimension of one element adds nothing to an address, and no dimension to the map. Boxes that pass the tensor are
/// filled with zeros.
pub fn dimensions_of_one_element() -> Vec<Case> {
    let mut cases = Vec::new();
    for (shape, ty) in ONE_ELEMENT.iter().flat_map(|shape| TYPES.map(|ty| (*shape, ty))) {
        cases.extend(SPANS.map(|span| with_one_element(shape, ty, span, false)));
    }
    cases
}

fn with_one_element(shape: [i64; 3], (ty, bytes): (&str, i64), span: i64, as_ops: bool) -> Case {
    let e = span / bytes;
    // The one of one element is `b`, wherever it stands.
    let (axes, [k, n]) = match shape {
        [1, k, n] => ("b, k, n", [k, n]),
        [k, _, n] => ("k, b, n", [k, n]),
    };
    let layout = match span {
        16 => "layout [kc, nc, kb, nz];".to_owned(),
        _ if as_ops => exchanged("kb", "nz", (span, bytes), "kc, nc, "),
        _ => format!("layout [kc, nc, kb, nz] swizzle {span};"),
    };
    let schedule = format!(
        "split k by 8 -> ko, ki; split n by {e} -> no, ni; reorder b, ko, no, ki, ni; bind b: grid;
        merge ki, ni -> t; bind t: thread;"
    );
    // An instance is a row of boxes.
    let copies = format!(
        "stage s[{axes}] = x in shared at y.ko via tma {{ box k by 8 -> kc, kb; box n by {e} -> nc, nz; {layout} }}"
    );
    let tensor = format!("{ty}[{}, {}, {}]", shape[0], shape[1], shape[2]);
    let source = copy(&tensor, &tensor, "", axes, &schedule, &copies);
    let dimensions = format!("⟨{n}, {bytes}, {e}, 1⟩ ⟨{k}, {}, 8, 1⟩", n * bytes);
    let variant = format!("{shape:?} {ty} {span}");
    let test = "TMALoadTestWithABroadcastDim.LoadWithBroadcast";
    Case::accepted(test, &variant, source, &[&dimensions], &[(8 * span) as u64]).runs_unchanged()
}
