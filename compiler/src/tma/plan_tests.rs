//! Whole schedules: the dimensions that are inferred, the levels, and what is refused.

use super::Level;
use super::loops::Reader;
use super::plan::{Around, plan};
use super::rules::{NotOne, Refused};
use super::view::Refusal;
use crate::diag::Diagnostics;
use crate::domain::Symbolic;
use crate::extent::Facts;
use crate::plan::staged::{Form, NotRuns, Part, Staged};
use crate::program::{build, expressions};
use crate::region::NotATile;
use crate::schedule;
use crate::schedule::accesses;
use crate::source::TokenBuffer;
use crate::syntax::parse;
use tilewright_kernel::tensor_map::{Fault, Swizzle};

/// Plans the only staged copy of a kernel; dimensions innermost first as ⟨size, bytes between neighbours, box, element
/// stride⟩.
fn planned(source: &str) -> Result<(String, Level, Staged), Refused> {
    let stream = source.parse().expect("the test source has balanced brackets and Rust's tokens");
    let (tokens, _) = TokenBuffer::new(stream);
    let (parsed, mut found) = parse(&tokens);
    let program = build(&parsed.kernels[0], &mut found).expect("the kernel builds");
    assert!(!found.has_errors(), "{source}");
    let constraints: Vec<_> = program.facts.iter().map(|f| f.constraint.clone()).collect();
    let facts = Facts::new(&program.dims, &constraints).expect("the facts of a test are consistent");
    let mut diags = Diagnostics::new();
    let stage = schedule::stage(&program, &facts, 0, &[], &mut diags).expect("the schedule applies");
    assert!(!diags.has_errors(), "{source}");
    let symbolic = Symbolic::new(&stage.domain, &facts);
    let accesses = accesses::collect_served(&program, &facts, &stage, &symbolic, &|_, _, _| false);
    let accesses = accesses.expect("the kernel is small").tensors;
    let copy = &program.stages[0];
    let parameter = program.parameters.iter().position(|p| p.name == copy.ast.source.text).expect("it is an input");
    let tensor = expressions::tensor(&program, parameter as u16).expect("it is a tensor");
    let holes = crate::holes::analyse(&stage.domain, &facts);
    let around = Around { stage: &stage, at: 0, symbolic: &symbolic, holes: &holes, along: None };
    let readers = [Reader { chain: vec![(&stage, &symbolic)], accesses: &accesses }];
    let staged = plan(around, &readers, (parameter as u16, tensor), (copy, None), &mut Vec::new())?.staged;
    let names = |v: u32| program.dim_name(v as u16).to_owned();
    let bytes = i128::from(staged.format.bytes());
    let dimension = |axis: &crate::plan::staged::Axis| {
        let stride = facts.normal(&axis.stride.scale(bytes)).show(&names);
        format!("⟨{}, {stride}, {}, {}⟩", axis.size.show(&names), axis.boxed.box_size, axis.boxed.element_stride)
    };
    let shown: Vec<String> = staged.axes.iter().rev().map(dimension).collect();
    let level = staged.level(&facts, &symbolic);
    Ok((shown.join(" "), level, staged))
}

/// A kernel that copies `x` to `y`, staged: its type and facts, the schedule of `y`, where the copy stands and its ops.
fn copy(
    ty: &str,
    facts: &str,
    axes: &str,
    reader: &str,
    at: &str,
    ops: &str,
) -> Result<(String, Level, Staged), Refused> {
    let plain = ty.split(';').next().unwrap_or(ty).trim_end_matches(']').to_owned() + "]";
    planned(&format!(
        "kernel K(x: {ty}) -> (y: {plain}) {facts} {{
            y[{axes}] = x[{axes}];
            schedule y {{ {reader} }}
            stage xs[{axes}] = x in shared at y.{at} via tma {{ {ops} }}
        }}"
    ))
}

/// The limit of tensor maps that a refusal is about.
fn limit(refused: Refused) -> Option<Fault> {
    if let Refused::Limit(fault, ..) = refused { Some(fault) } else { None }
}

fn dimensions(found: Result<(String, Level, Staged), Refused>) -> String {
    found.expect("the copy is accepted").0
}

#[test]
fn views_of_other_ranks() {
    // Two dimensions as one, and one as two.
    let found = copy(
        "f32[1024, 1024]",
        "",
        "i, j",
        "merge i, j -> m; split m by 32 -> c, b; bind c: grid; bind b: thread;",
        "c",
        "merge i, j -> m; box m by 32 -> mc, mb;",
    );
    assert_eq!(dimensions(found), "⟨1048576, 4, 32, 1⟩");
    let reader = "split i by 1024 -> o, n; split n by 32 -> nc, nb; split o by 4 -> oc, ob; reorder oc, nc, ob, nb;
        bind oc, nc: grid; bind nb: thread;";
    let ops = "split i by 1024 -> o, n; box n by 32 -> nc, nb; box o by 4 -> oc, ob;";
    assert_eq!(dimensions(copy("f32[1048576]", "", "i", reader, "nc", ops)), "⟨1024, 4, 32, 1⟩ ⟨1024, 4096, 4, 1⟩");
    // With a size that is known at launch, the split of the view needs a fact.
    let found = copy("f32[N]", "where N % 1024 == 0", "i", reader, "nc", ops);
    assert_eq!(dimensions(found), "⟨1024, 4, 32, 1⟩ ⟨N / 1024, 4096, 4, 1⟩");
    let refused = copy("f32[N]", "where N % 512 == 0", "i", reader, "nc", ops).unwrap_err();
    assert!(matches!(refused, Refused::View(Refusal::Indivisible { factor: 1024, .. })), "{refused:?}");
}

#[test]
fn strided_tiles() {
    let reader =
        "split i by 32 -> io, ii; split j by 32 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid; bind ji: thread;";
    let ops = "box i by 32 -> ic, ib; tile ib by 2 -> it, is; box j by 32 -> jc, jb;";
    let (shown, level, staged) = copy("f32[1024, 1024]", "", "i, j", reader, "jo", ops).unwrap();
    assert_eq!(shown, "⟨1024, 4, 32, 1⟩ ⟨1024, 4096, 32, 2⟩");
    assert_eq!((level, staged.copies(), staged.tile_bytes()), (Level::Free, 2, 2048));
    let refused = copy("f32[1024, 1024]", "", "i, j", reader, "jo", "box j by 32 -> jc, jb; tile jb by 2 -> jt, js;");
    assert_eq!(limit(refused.unwrap_err()), Some(Fault::InnerElementStride(2)));
    let refused = copy("f32[1024, 1024]", "", "i, j", reader, "jo", "box i by 32 -> ic, ib; tile ib by 9 -> it, is;");
    assert_eq!(limit(refused.unwrap_err()), Some(Fault::ElementStride { dimension: 1, element_stride: 9 }));
}

#[test]
fn strided_boxes_over_rows_of_a_view() {
    let reader = "split i by 32 -> io, ii; bind io: grid; bind ii: thread;";
    let ops = "split i by 8 -> a, q; box a by 4 -> c, b; tile b by 2 -> t, s; box q by 8 -> qc, qb;";
    assert_eq!(dimensions(copy("f32[7976]", "", "i", reader, "io", ops)), "⟨8, 4, 8, 1⟩ ⟨997, 32, 4, 2⟩");
    let refused = copy("f32[997]", "", "i", reader, "io", ops).unwrap_err();
    assert!(matches!(refused, Refused::View(Refusal::Indivisible { factor: 8, .. })), "{refused:?}");
}

/// A tensor whose middle dimension is the one with neighbours in memory.
#[test]
fn memory_order_decides_the_innermost_dimension() {
    let reader = "merge a, b -> m; split m by 8 -> mc, mb; split c by 128 -> cc, cb; reorder cc, mc, cb, mb;
        bind cc, mc: grid; bind mb: thread;";
    let ops = "merge a, b -> m; box m by 8 -> mc, mb; box c by 128 -> cc, cb; layout [cb, mb] swizzle 32;";
    let found = copy("f32[128, 1024, 128; 1024, 1, 131072]", "", "a, b, c", reader, "mc", ops);
    assert_eq!(dimensions(found), "⟨131072, 4, 8, 1⟩ ⟨128, 524288, 128, 1⟩");
}

/// Six dimensions, of which the outer ones only count boxes: two of them are counted as one.
#[test]
fn dimensions_are_counted_together_where_a_map_has_too_few() {
    let reader = "merge a, b, c, d, e -> m; bind m: grid; bind f: thread;";
    let found = copy("f32[2, 3, 4, 5, 6, 32]", "", "a, b, c, d, e, f", reader, "m", "");
    let expected = "⟨32, 4, 32, 1⟩ ⟨6, 128, 1, 1⟩ ⟨5, 768, 1, 1⟩ ⟨4, 3840, 1, 1⟩ ⟨6, 15360, 1, 1⟩";
    assert_eq!(dimensions(found), expected);
    // With gaps between all of them nothing can be counted together, and only a run can be copied.
    let gaps = "f32[2, 3, 4, 5, 6, 32; 140000, 40000, 9600, 1600, 64, 1]";
    let refused = copy(gaps, "", "a, b, c, d, e, f", reader, "m", "l2 promote(128);").unwrap_err();
    assert_eq!(limit(refused), Some(Fault::Rank(6)));
    let found = copy(gaps, "", "a, b, c, d, e, f", reader, "m", "").expect("rows are runs");
    assert_eq!((found.2.form.clone(), found.2.copies()), (Form::Runs(32), 1));
}

#[test]
fn composite_boxes() {
    let reader = "merge a, b, c -> m; bind m: grid; split d by 32 -> e, t; reorder m, e, t; bind t: thread;";
    // The box is the last axis; the others count boxes, one position each.
    let found = copy("f32[4, 8, 16, 32]", "", "a, b, c, d", reader, "m", "box (a, b, c; d);");
    assert_eq!(dimensions(found), "⟨16384, 4, 32, 1⟩");
    // Each axis of its own: rank 4; the region is one element along the outer ones.
    let found = copy("f32[4, 8, 16, 32]", "", "a, b, c, d", reader, "m", "");
    assert_eq!(dimensions(found), "⟨32, 4, 32, 1⟩ ⟨16, 128, 1, 1⟩ ⟨8, 2048, 1, 1⟩ ⟨4, 16384, 1, 1⟩");
    // All axes of the slice as the box, none of them to count.
    let whole = "split a by 4 -> ao, ai; bind ao: grid; bind d: thread; reorder ao, ai, b, c, d;";
    let found = copy("f32[4, 2, 8, 4]", "", "a, b, c, d", whole, "ao", "box (; a, b, c, d);");
    assert_eq!(dimensions(found), "⟨256, 4, 256, 1⟩");
    // Merged beyond a gap: rows that do not follow each other.
    let gap =
        copy("f32[4, 8; ld, 1]", "where ld % 4 == 0", "a, b", "bind a: grid; bind b: thread;", "a", "box (a; b);");
    assert!(matches!(gap.unwrap_err(), Refused::View(Refusal::Discontiguous { .. })));
    let unknown = copy(
        "f32[M, N]",
        "",
        "a, b",
        "bind a: grid; split b by 32 -> bo, t; bind bo: grid; bind t: thread;",
        "bo",
        "box (a; b);",
    );
    assert!(matches!(unknown.unwrap_err(), Refused::View(Refusal::SymbolicBox { .. })));
}

#[test]
fn whole_regions_are_boxes() {
    let reader = "split i by 2 -> io, ii; bind io: grid; bind l: thread; reorder io, ii, j, k, l;";
    let (shown, _, staged) =
        copy("f32[2, 256, 2, 32]", "", "i, j, k, l", reader, "io", "layout [i, j, k, l] swizzle 128;").unwrap();
    assert_eq!(shown, "⟨32, 4, 32, 1⟩ ⟨2, 128, 2, 1⟩ ⟨256, 256, 256, 1⟩ ⟨2, 65536, 2, 1⟩");
    assert_eq!(staged.tile_bytes(), 131_072);
}

#[test]
fn ranks_types_and_swizzles() {
    for (ty, bytes) in [("f16", 2), ("f32", 4), ("f64", 8)] {
        for span in [16, 32, 64, 128] {
            let e = span / bytes;
            for (shape, boxes) in [
                (vec![1_048_576], vec![e]),
                (vec![1024, 128], vec![3, e]),
                (vec![1024, 8, 128], vec![1, 5, e]),
                (vec![4, 8, 1024, 1024], vec![3, 5, 1, e]),
                (vec![4, 8, 1024, 32, 128], vec![1, 3, 1, 5, e]),
            ] {
                let names: Vec<String> = (0..shape.len()).map(|d| format!("i{d}")).collect();
                let mut reader = String::new();
                let mut ops = String::new();
                let (mut outer, mut inner) = (Vec::new(), Vec::new());
                for (name, size) in names.iter().zip(&boxes) {
                    reader += &format!("split {name} by {size} -> c{name}, b{name}; ");
                    ops += &format!("box {name} by {size} -> c{name}, b{name}; ");
                    outer.push(format!("c{name}"));
                    inner.push(format!("b{name}"));
                }
                let layout = match span {
                    16 => String::new(),
                    _ => format!("layout [{}] swizzle {span};", inner.join(", ")),
                };
                reader +=
                    &format!("reorder {}, {}; bind {}: grid;", outer.join(", "), inner.join(", "), outer.join(", "));
                let list = |v: &[i32]| v.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
                let found = copy(
                    &format!("{ty}[{}]", list(&shape)),
                    "",
                    &names.join(", "),
                    &reader,
                    outer.last().unwrap(),
                    &(ops + &layout),
                );
                let mut stride = i64::from(bytes);
                let mut expected = Vec::new();
                for (size, box_size) in shape.iter().zip(&boxes).rev() {
                    expected.push(format!("⟨{size}, {stride}, {box_size}, 1⟩"));
                    stride *= i64::from(*size);
                }
                let (shown, level, _) = found.unwrap();
                assert_eq!((shown, level), (expected.join(" "), Level::Free));
            }
        }
    }
}

#[test]
fn figures_of_the_introduction() {
    let reader = "split j by 128 -> jo, ji; bind jo: grid; bind ji: thread; reorder jo, i, ji;";
    let ops = "box j by 128 -> jc, jb; box i by 4 -> ic, ib; tile ib by 3 -> it, is;";
    let (shown, level, staged) = copy("f64[16, 200]", "", "i, j", reader, "jo", ops).unwrap();
    assert_eq!(shown, "⟨200, 8, 128, 1⟩ ⟨16, 1600, 4, 3⟩");
    // 3 < 4 < 16 and 3 does not divide 4: weak only. Four boxes of three phases.
    assert_eq!((level, staged.copies()), (Level::Impossible, 12));
    let reader = "split i by 4 -> io, ii; bind io: grid; bind j: thread; reorder io, ii, j;";
    let found = copy("f64[16, 10]", "", "i, j", reader, "io", "box i by 4 -> ic, ib; box j by 6 -> jc, jb;");
    assert_eq!(dimensions(found), "⟨10, 8, 6, 1⟩ ⟨16, 80, 4, 1⟩");
    // The tail of the second box along j lies outside the tensor.
    let found = copy("f64[16, 10]", "", "i, j", reader, "io", "box i by 4 -> ic, ib; box j by 6 -> jc, jb;").unwrap();
    assert_eq!((found.1, found.2.copies()), (Level::Free, 2));
}

/// An indivisible split inside the region: the holes that it makes are not copied.
#[test]
fn what_no_iteration_asks_for_is_not_in_the_region() {
    let reader = "split i by 2 -> i2, i3; split i2 by 2 -> i4, i5; split i5 by 4 -> i6, i7; bind i4: grid;";
    let (shown, level, staged) = copy("f64[12]", "", "i", reader, "i4", "box i by 2 -> c, b;").unwrap();
    assert_eq!((shown.as_str(), level, staged.copies()), ("⟨12, 8, 2, 1⟩", Level::Free, 2));
    let reader = "split i by 16 -> o, b; split o by 1 -> o1, u; split u by 2 -> u1, u2; bind o1: grid;";
    let (_, level, staged) = copy("f64[32]", "", "i", reader, "o1", "box i by 16 -> c, x;").unwrap();
    assert_eq!((level, staged.axes[0].region.extent, staged.copies()), (Level::Free, 16, 1));
    // The same along a tensor that ends before the tile.
    let reader = "split i by 64 -> o, t; bind o: grid; bind t: thread;";
    let (shown, ..) = copy("f32[12]", "", "i", reader, "o", "").unwrap();
    assert_eq!(shown, "⟨12, 4, 12, 1⟩");
    let (shown, ..) = copy("f32[N]", "where N <= 12", "i", reader, "o", "").unwrap();
    assert_eq!(shown, "⟨N, 4, 12, 1⟩");
}

#[test]
fn refusals() {
    let reader = "split i by 32 -> c, b; bind c: grid; bind b: thread;";
    let refused = |ty: &str, facts: &str, ops: &str| copy(ty, facts, "i", reader, "c", ops).unwrap_err();
    let small = refused("f32[128]", "", "box i by 2 -> ic, ib;");
    assert_eq!(limit(small), Some(Fault::InnerBoxGranule { bytes: 8 }));
    assert!(matches!(refused("f32[128; s]", "where s >= 1", ""), Refused::InnerStride { .. }));
    let twice = refused("f32[128]", "", "box i by 8 -> ic, ib; box i by 8 -> jc, jb;");
    assert!(matches!(twice, Refused::View(Refusal::Twice { .. })), "{twice:?}");
    let unknown = refused("f32[128]", "", "box j by 8 -> ic, ib;");
    assert!(matches!(unknown, Refused::View(Refusal::NoAxis { .. })), "{unknown:?}");
    let taken = refused("f32[128]", "", "box i by 8 -> ib, ib;");
    assert!(matches!(taken, Refused::View(Refusal::Taken { .. })), "{taken:?}");
    let span = refused("f32[128]", "", "layout [i] swizzle 48;");
    assert!(matches!(span, Refused::Swizzle(_)), "{span:?}");
    // Rows whose distance is not a multiple of 16 bytes.
    let reader =
        "split i by 8 -> io, ii; split j by 32 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid; bind ji: thread;";
    let pitch = |facts: &str| copy("f32[M, N; ld, 1]", facts, "i, j", reader, "jo", "");
    assert!(matches!(pitch("where ld >= N").unwrap_err(), Refused::Pitch { multiple: 4, .. }));
    assert_eq!(dimensions(pitch("where ld >= N, ld % 4 == 0")), "⟨N, 4, 32, 1⟩ ⟨M, 4 * ld, 8, 1⟩");
    // One row again and again, unless there is only one.
    let again = |rows: &str| copy(&format!("f32[{rows}, N; 0, 1]"), "", "i, j", reader, "jo", "");
    assert!(matches!(again("M").unwrap_err(), Refused::Pitch { multiple: 4, .. }));
    assert_eq!(dimensions(again("1")), "⟨N, 4, 32, 1⟩", "what has one element is no dimension");
    // A whole row of unknown length cannot be held.
    let row = copy("f32[M, N]", "where N % 4 == 0", "i, j", "bind i: grid;", "i", "");
    assert!(matches!(row.unwrap_err(), Refused::Unbounded { .. }));
    let inside = copy("f32[M, 32]", "", "i, j", "bind i: grid; bind j: thread;", "j", "");
    assert!(matches!(inside.unwrap_err(), Refused::AttachInsideBlock(_)));
}

/// The second program: a transposed reader, tiles of 32 × 32.
#[test]
fn the_transpose() {
    let (shown, level, staged) = planned(
        "kernel Transpose(x: f32[M, N]) -> (y: f32[N, M]) where N % 4 == 0 {
            y[j, i] = x[i, j];
            schedule y {
                split j by 32 -> jo, j1; split i by 32 -> io, i1; split j1 by 4 -> jg, jl; split i1 by 8 -> ig, il;
                reorder jo, io, jg, ig, jl, il; bind jo, io: grid;
                merge jg, ig -> g; split g by 8 -> r, w; bind w: warp; merge jl, il -> lane; bind lane: thread;
            }
            stage xs[i, j] = x in shared at y.io via tma {
                box i by 32 -> ic, ib; box j by 32 -> jc, jb; layout [ib, jb] swizzle 128;
            }
        }",
    )
    .unwrap();
    assert_eq!(shown, "⟨N, 4, 32, 1⟩ ⟨M, 4 * N, 32, 1⟩");
    assert_eq!((level, staged.copies(), staged.tile_bytes()), (Level::Free, 1, 4096));
    assert!(staged.axes.iter().all(|a| a.region.extent == 32));
}

/// The third program, and its variants: column sums with strided tiles along the reduction.
#[test]
fn strided_columns() {
    let columns = |facts: &str, ops: &str| {
        planned(&format!(
            "kernel StridedColumns(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0 {facts} {{
                y[m] = sum(|k| x[k, m]);
                schedule y {{
                    split m by 32 -> mo, mi; split k by 15 -> ko, ki; reorder mo, ko, mi, ki;
                    bind mo: grid; bind mi: thread;
                }}
                stage xs[k, m] = x in shared at y.ko via tma {{ {ops} box m by 32 -> mc, mb; }}
            }}"
        ))
    };
    let (shown, level, staged) = columns("", "box k by 15 -> kc, kb; tile kb by 3 -> kt, ks;").unwrap();
    assert_eq!(shown, "⟨M, 4, 32, 1⟩ ⟨K, 4 * M, 15, 3⟩");
    assert_eq!((level, staged.copies()), (Level::Free, 3));
    // 4 does not divide 15, and 4 < 15 < K.
    let level = columns("", "box k by 15 -> kc, kb; tile kb by 4 -> kt, ks;").unwrap().1;
    assert_eq!(level, Level::Impossible);
    let level = columns(", K <= 15", "box k by 15 -> kc, kb; tile kb by 4 -> kt, ks;").unwrap().1;
    assert_eq!(level, Level::Free);
    // A stride beyond the box.
    let level = columns("", "box k by 5 -> kc, kb; tile kb by 8 -> kt, ks;").unwrap().1;
    assert_eq!(level, Level::Redirect);
}

/// Boxes that do not divide the region, and halos.
#[test]
fn boxes_that_end_inside_the_tensor() {
    let blocks = |ops: &str, body: &str, facts: &str| {
        planned(&format!(
            "kernel K(x: f32[N]) -> (y: f32[N]) {facts} {{
                y[i] = {body};
                schedule y {{ split i by 40 -> io, ii; bind io: grid; bind ii: thread; }}
                stage xs[i] = x in shared at y.io via tma {{ {ops} }}
            }}"
        ))
    };
    // 64 positions for a region of 40: 24 of them belong to the next block.
    let (shown, level, _) = blocks("box i by 64 -> ic, ib;", "x[i]", "").unwrap();
    assert_eq!((shown.as_str(), level), ("⟨N, 4, 64, 1⟩", Level::Impossible));
    let level = blocks("box i by 64 -> ic, ib;", "x[i]", "where N <= 40").unwrap().1;
    assert_eq!(level, Level::Free);
    let level = blocks("box i by 20 -> ic, ib;", "x[i]", "").unwrap().1;
    assert_eq!(level, Level::Free);
    // Neighbours on both sides: 43 positions from before the tensor on. As a box they are no whole number of 16-byte
    // granules.
    let halo = "(x[i - 1] or 0.0) + x[i] + (x[i + 2] or 0.0)";
    assert_eq!(limit(blocks("", halo, "").unwrap_err()), Some(Fault::InnerBoxGranule { bytes: 172 }));
    // And they start between granules.
    let refused = blocks("box i by 44 -> ic, ib;", halo, "").unwrap_err();
    assert!(matches!(refused, Refused::InnerStart { multiple: 4, .. }), "{refused:?}");
    let halo = "(x[i - 4] or 0.0) + x[i] + (x[i + 2] or 0.0)";
    let (_, level, staged) = blocks("box i by 48 -> ic, ib;", halo, "").unwrap();
    assert_eq!((staged.axes[0].region.extent, staged.axes[0].boxes(), level), (46, 1, Level::Impossible));
}

#[test]
fn what_is_read_must_be_a_tile() {
    let of = |index: &str| {
        planned(&format!(
            "kernel K(x: f32[N], p: i32[N]) -> (y: f32[N]) {{
                y[i] = x[{index}] or 0.0;
                schedule y {{ split i by 32 -> io, ii; bind io: grid; bind ii: thread; }}
                stage xs[i] = x in shared at y.io via tma {{ }}
            }}"
        ))
    };
    let places = of("p[i]").unwrap_err();
    assert!(matches!(places, Refused::FromMemory { why: NotOne::Many { count: 32, most: 16, .. }, .. }), "{places:?}");
    let of_places = of("(p[p[i / 32]] or 0)").unwrap_err();
    assert!(matches!(of_places, Refused::NotATile { why: NotATile::Unknown, .. }), "{of_places:?}");
}

/// Every copy of a kernel planned, and the kernel lowered to its entry points.
fn lowered(source: &str) -> Vec<crate::lower::Entry> {
    let stream = source.parse().expect("the test source has balanced brackets and Rust's tokens");
    let (tokens, _) = TokenBuffer::new(stream);
    let (parsed, mut diags) = parse(&tokens);
    let program = build(&parsed.kernels[0], &mut diags).expect("the kernel builds");
    let constraints: Vec<_> = program.facts.iter().map(|f| f.constraint.clone()).collect();
    let facts = Facts::new(&program.dims, &constraints).expect("the facts of a test are consistent");
    // The schedule of the reader, as if nothing were staged.
    let mut bare = program.clone();
    bare.stages.clear();
    let built = schedule::build(&bare, &facts, &mut diags).expect("the schedule applies");
    let stage = built.stages[0].clone();
    let symbolic = Symbolic::new(&stage.domain, &facts);
    let accesses = accesses::collect_served(&program, &facts, &stage, &symbolic, &|_, _, _| false);
    let accesses = accesses.expect("the kernel is small").tensors;
    let holes = crate::holes::analyse(&stage.domain, &facts);
    let around = Around { stage: &stage, at: 0, symbolic: &symbolic, holes: &holes, along: None };
    let readers = [Reader { chain: vec![(&stage, &symbolic)], accesses: &accesses }];
    let staged = program.stages.iter().map(|copy| {
        let parameter = program.parameters.iter().position(|p| p.name == copy.ast.source.text).expect("an input");
        let tensor = expressions::tensor(&program, parameter as u16).expect("it is a tensor");
        let planned = plan(around, &readers, (parameter as u16, tensor), (copy, None), &mut Vec::new());
        planned.expect("accepted").staged
    });
    let staged = staged.collect();
    let vector = schedule::vector::Vector::of(&stage, &facts);
    let reads = Vec::new();
    let analysed = crate::plan::Analysed {
        stage,
        symbolic,
        holes,
        vector,
        accesses,
        banks: Vec::new(),
        reads,
        staged,
        waived: Vec::new(),
        product: None,
        fragment: None,
        stored: None,
        multiplied: false,
        zero_along: Vec::new(),
        behind: None,
        is_of_groups: false,
    };
    crate::lower::lower(&program, &facts, &[analysed], (built.threads, &[]), true).expect("it can be built")
}

/// Threads wait together and part only after that; each phase of each box is one copy.
#[test]
fn strided_columns_are_staged() {
    let entries = lowered(
        "kernel StridedColumns(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0 {
            y[m] = sum(|k| x[k, m]);
            launch threads(32);
            schedule y {
                split m by 32 -> mo, mi; split k by 15 -> ko, ki; reorder mo, ko, mi, ki;
                bind mo: grid; bind mi: thread;
            }
            stage xs[k, m] = x in shared at y.ko via tma {
                box k by 15 -> kc, kb; tile kb by 3 -> kt, ks; box m by 32 -> mc, mb;
            }
        }",
    );
    // Staged where the tensor has elements; wide, which is also for tensors without any.
    let names: Vec<&str> = entries.iter().map(|e| e.kernel.signature.name.as_str()).collect();
    assert_eq!(names, ["StridedColumns", "StridedColumns_64"]);
    let staged: Vec<bool> = entries.iter().map(|e| e.staged).collect();
    assert_eq!(staged, [true, false]);
    let texts: Vec<&str> = entries[0].conditions.iter().map(|c| &*c.text).collect();
    assert!(texts.contains(&"K >= 1") && texts.contains(&"M >= 1"), "{texts:?}");
    expect_test::expect![[r#"
        kernel StridedColumns(x: f32[], mut y: f32[]; K, M) threads 32 {
            shared xs: f32[480] aligned 128
            var v0: index32 = 0
            // statement 1
            %0: index32 = block
            %1: index32 = thread
            %2: index32 = %0 * 32
            %3: index32 = %1 + %2
            %4: index32 = M
            %5: bool = %3 < %4
            var v1: f32 = 0.0f32
            %6: index32 = K
            %7: index32 = %6 + 14
            %8: index32 = %7 / 15
            for %9 in 0..%8 {
                %10: index32 = %9 * 15
                %11: index32 = %10 + 1
                %12: index32 = %10 + 2
                sync warp
                elect {
                    barrier0 expects 1920 bytes
                    copy map xs at (%2, %10) to xs[0], barrier0
                    copy map xs at (%2, %11) to xs[160], barrier0
                    copy map xs at (%2, %12) to xs[320], barrier0
                }
                %13: index32 = v0
                await barrier0 phase %13
                %14: index32 = 1 ^ %13
                v0 = %14
                if %5 {
                    for %15 in 0..15 {
                        %16: index32 = %10 + %15
                        %17: bool = %16 < %6
                        %18: index32 = %15 / 3
                        %19: index32 = %18 * 32
                        %20: index32 = %1 + %19
                        %21: index32 = %15 % 3
                        %22: index32 = %21 * 160
                        %23: index32 = %20 + %22
                        if %17 {
                            %24: f32 = xs[%23]
                            %25: f32 = v1
                            %26: f32 = %25 + %24
                            v1 = %26
                        }
                    }
                }
            }
            if %5 {
                %27: f32 = v1
                y[%3] = %27
            }
        }
    "#]]
    .assert_eq(&entries[0].kernel.to_string());
    let kernels: Vec<_> = entries.iter().map(|e| &e.kernel).collect();
    let module = crate::emit::emit(&kernels, "StridedColumns").expect("it can be emitted");
    assert_eq!(module.target.to_string(), "sm_90");
    let text = module.to_string();
    for line in [
        ".param .align 64 .b8 arg4_xs[128]",
        ".shared .align 128 .f32 buffer0_xs[480];",
        "mbarrier.init.shared.b64",
        "elect.sync",
        "mbarrier.arrive.expect_tx.shared.b64",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        "mbarrier.try_wait.parity.shared.b64",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

/// The form of a copy of one block, its copies, and the bytes of each.
fn form(found: Result<(String, Level, Staged), Refused>) -> (Form, i128, i128) {
    let (_, level, staged) = found.expect("the copy is accepted");
    assert!(level == Level::Free || staged.has_map());
    (staged.form.clone(), staged.copies(), staged.copy_bytes())
}

/// What is contiguous in memory and in the buffer, and always inside the tensor, needs no tensor map.
#[test]
fn runs_are_copied_without_a_map() {
    let line = |ty: &str, facts: &str, reader: &str, ops: &str| {
        form(copy(ty, facts, "i", &format!("{reader} bind io: grid; bind ii: thread;"), "io", ops))
    };
    let by_128 = "split i by 128 -> io, ii;";
    // However many boxes, and however long.
    let whole = "box i by 32 -> ic, ib;";
    assert_eq!(line("f32[1024]", "", by_128, whole), (Form::Runs(128), 1, 512));
    assert_eq!(line("f32[N]", "where N % 128 == 0", by_128, ""), (Form::Runs(128), 1, 512));
    let long = "split i by 8192 -> io, it; split it by 256 -> iq, ii; reorder io, iq, ii;";
    assert_eq!(line("u8[N]", "where N % 8192 == 0", long, ""), (Form::Runs(8192), 1, 8192));
    // The last block ends past the tensor, some block does, or each is cut where none ends.
    let ends = |name: &str| Form::Tiles(NotRuns::Ends(name.to_owned()));
    assert_eq!(line("f32[1000]", "", by_128, whole).0, ends("i"));
    assert_eq!(line("f32[N]", "where N % 4 == 0", by_128, whole).0, ends("i"));
    let holes = Form::Tiles(NotRuns::Holes("i".to_owned()));
    assert_eq!(line("f32[1024]", "", by_128, "box i by 48 -> ic, ib;").0, holes);
    // What only tiles can do.
    let swizzled = "box i by 32 -> ic, ib; layout [ic, ib] swizzle 128;";
    assert_eq!(line("f32[1024]", "", by_128, swizzled).0, Form::Tiles(NotRuns::Swizzled));
    assert_eq!(
        line("f32[1024]", "", by_128, "box i by 32 -> ic, ib; l2 promote(64);").0,
        Form::Tiles(NotRuns::Promoted)
    );
    assert_eq!(line("f32[1024]", "", by_128, "box i by 32 -> ic, ib; l2 evict_first;").0, Form::Runs(128));
    // Boxes of less than a granule of the buffer's alignment lie apart.
    assert_eq!(line("f32[1024]", "", by_128, "box i by 8 -> ic, ib;"), (Form::Runs(8), 16, 32));
}

/// Rows are runs of their own, or one run where they are whole; more runs than tiles are no gain.
#[test]
fn rows_are_runs_where_that_is_not_more() {
    let rows = |ty: &str, facts: &str, columns: usize, ops: &str| {
        let reader = format!(
            "split i by 8 -> io, ir; split j by {columns} -> jo, jc; reorder io, jo, ir, jc; bind io, jo: grid; bind ir: thread;"
        );
        copy(ty, facts, "i, j", &reader, "jo", ops)
    };
    let whole = "box i by 4 -> ic, ib;";
    assert_eq!(form(rows("f32[64, 96]", "", 96, whole)), (Form::Runs(768), 1, 3072));
    // Boxes side by side are not what lies side by side in memory.
    let tiles = "box i by 8 -> ic, ib; box j by 32 -> jc, jb;";
    assert_eq!(form(rows("f32[64, 96]", "", 96, tiles)).0, Form::Tiles(NotRuns::Short(24, 32)));
    assert_eq!(form(rows("f32[64, 96]", "", 32, tiles)).0, Form::Tiles(NotRuns::Short(8, 32)));
    let by_row = "box i by 1 -> ic, ib; box j by 96 -> jc, jb;";
    assert_eq!(form(rows("f32[64, N]", "where N % 96 == 0", 96, by_row)), (Form::Runs(96), 8, 384));
    // Rows longer than boxes of a map can be.
    let long = "f32[64, N]";
    let fact = "where N % 512 == 0";
    assert_eq!(form(rows(long, fact, 512, "box i by 1 -> ic, ib;")), (Form::Runs(512), 8, 2048));
    let by_ones = |facts: &str, ops: &str| match rows(long, facts, 512, ops).unwrap_err() {
        Refused::Limit(Fault::Box { dimension: 0, box_size: 512 }, _, axes) => axes,
        other => panic!("{other:?}"),
    };
    for ops in ["", "box i by 4 -> ic, ib;"] {
        assert_eq!(by_ones(fact, ops), ["i"]);
        assert_eq!(by_ones("where N % 4 == 0", ops), [""; 0]);
    }
    assert_eq!(by_ones(fact, "layout [i, j] swizzle 128;"), [""; 0]);
    // A row of a width that is not a multiple of 16 bytes starts anywhere.
    let bytes = rows("u8[64, 24]", "", 24, "box i by 1 -> ic, ib; box j by 24 -> jc, jb;").unwrap_err();
    assert_eq!(limit(bytes), Some(Fault::InnerBoxGranule { bytes: 24 }));
    // The order of the buffer is not that of memory: columns of whole rows, kept apart.
    let turned = "box i by 4 -> ic, ib; box j by 32 -> jc, jb; layout [jc, ic, ib, jb];";
    assert_eq!(form(rows("f32[64, 96]", "", 96, turned)).0, Form::Tiles(NotRuns::Short(24, 32)));
}

/// Sizes of boxes in the order of a map, the swizzle, and what counts tiles.
type LaidOut = (Vec<i128>, Swizzle, Vec<(usize, Part)>);

/// What a copy of rows is: the order of its map by sizes of boxes, the swizzle, and what counts tiles.
fn laid_out(ty: &str, rows: &[i128], row: i128, ops: &str) -> Result<LaidOut, Refused> {
    let names = &["a", "b", "c"][..rows.len()];
    let list = |n: &dyn Fn(&str) -> String| names.iter().map(|a| n(a)).collect::<Vec<_>>().join(", ");
    let boxes = names.iter().zip(rows).map(|(n, size)| format!("box {n} by {size} -> {n}c, {n}x; "));
    let splits = names.iter().zip(rows).map(|(n, size)| format!("split {n} by {} -> {n}o, {n}i; ", 2 * size));
    let reader = format!(
        "{}split k by {row} -> ko, ki; reorder {}, ko, {}, ki; bind {}, ko: grid;",
        splits.collect::<String>(),
        list(&|a| format!("{a}o")),
        list(&|a| format!("{a}i")),
        list(&|a| format!("{a}o")),
    );
    let sizes = vec!["1024"; names.len() + 1].join(", ");
    let ops = format!("{}box k by {row} -> kc, kx; {ops}", boxes.collect::<String>());
    let found = copy(&format!("{ty}[{sizes}]"), "", &format!("{}, k", names.join(", ")), &reader, "ko", &ops)?;
    let staged = found.2;
    Ok((staged.axes.iter().map(|a| a.boxed.box_size).collect(), staged.swizzle, staged.outer))
}

/// What a message proposes is accepted, as a span and as ops, and both are the same.
#[test]
fn what_is_proposed_for_a_layout_is_right() {
    let shapes = [vec![2], vec![3], vec![8], vec![20], vec![3, 5], vec![8, 1], vec![1, 4], vec![2, 1, 6]];
    for (ty, bytes) in [("u8", 1), ("f16", 2), ("f32", 4), ("f64", 8)] {
        for (span, rows) in [32, 64, 128].iter().flat_map(|span| shapes.iter().map(move |rows| (*span, rows))) {
            let names = &["a", "b", "c"][..rows.len()];
            let (last, others) = names.split_last().expect("there are rows");
            let counts: Vec<String> = names.iter().map(|n| format!("{n}c")).collect();
            let laid_out = |ops: &str| laid_out(ty, rows, span / bytes, &format!("{ops};"));
            // Chunks stand before rows, and a swizzle changes nothing.
            let tile: Vec<String> = others.iter().map(|n| format!("{n}x")).collect();
            let list = [counts.clone(), vec!["ch".to_owned()], tile].concat().join(", ");
            let refused = laid_out(&format!(
                "split {last}x by 1 -> r, u; split kx by {} -> ch, la; split la by 1 -> l, v; swizzle u, v by xor -> u2, v2;
                layout [{list}, r, u2, l, v2]",
                16 / bytes
            ));
            let Err(Refused::Elsewhere(found)) = refused else { panic!("{ty} {span} {rows:?}: {refused:?}") };
            let tile: Vec<String> = names.iter().map(|n| format!("{n}x")).collect();
            let list = [counts, tile, vec!["kx".to_owned()]].concat().join(", ");
            let expected = laid_out(&format!("layout [{list}] swizzle {span}")).expect(&list);
            assert_eq!(laid_out(&found.sugar).expect(&found.sugar), expected, "{}", found.sugar);
            let ops = found.ops.expect("there are chunks to exchange");
            assert_eq!(laid_out(&ops).expect(&ops), expected, "{ops}");
        }
    }
}
