//! The layout of buffers that threads fill: where elements lie changes no result, only how many cycles their accesses
//! take.

use std::collections::BTreeMap;

use crate::support::{Draw, campaign, finished, prove};
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::{Code, Diagnostic};
use tilewright_compiler::source::TokenBuffer;

fn compile(source: &str) -> Compiled {
    finished(source).unwrap_or_else(|(_, report)| panic!("{source}\n{report}"))
}

/// Runs a kernel against its reference; the cycles of its accesses of shared memory, and those without conflicts.
fn run(source: &str, kernel: &Compiled, dims: &[i64], seed: u64) -> (u64, u64) {
    let info = kernel.info.as_ref().expect("no error");
    let device = Device::emulator(EmulatorOptions::default().seed(seed));
    let trial = Trial::new(info, dims, seed, &device).unwrap_or_else(|e| panic!("{source}\n{dims:?}: {e}"));
    let outcome = trial.run(&device);
    assert!(outcome.is_good(), "{source}\nat {dims:?}: {outcome:#?}");
    let shared = outcome.report.expect("the emulator ran").counters.shared;
    (shared.transactions, shared.ideal_transactions)
}

/// A transpose of 32 x 32 tiles through shared memory: written by rows, read by columns.
fn transpose(engine: &str, ops: &str) -> String {
    format!(
        "kernel Transpose(x: f32[M, N]) -> (y: f32[N, M]) {{
            y[j, i] = x[i, j];
            launch threads(256);
            schedule y {{
                split j by 32 -> jo, ji; split i by 32 -> io, ii; reorder jo, io, ji, ii; bind jo, io: grid;
                split ji by 8 -> jr, w; reorder jo, io, jr, w, ii; bind w: warp; bind ii: thread;
            }}
            stage xs[i, j] = x in shared at y.io {engine} {{
                {ops}
            }}
        }}"
    )
}

const PLAIN: &str = "split i by 8 -> ir, w; bind w: warp; bind j: thread;";
const EXCHANGED: &str =
    "swizzle i, j by xor -> i2, j2; split i2 by 8 -> ir, w; bind w: warp; bind j2: thread; layout [i2, j2];";

/// The cycles that the compiler counts for all accesses of shared memory of a block, and those without conflicts; none
/// where it does not look at all of them.
fn counted(kernel: &Compiled) -> Option<(u64, u64)> {
    let uses = kernel.stages.iter().flat_map(|s| &s.banks);
    let degrees: Vec<_> = uses.map(|found| found.degree.as_ref().filter(|d| d.complete)).collect::<Option<_>>()?;
    Some((degrees.iter().map(|d| d.sum.taken).sum(), degrees.iter().map(|d| d.sum.least).sum()))
}

/// The warnings about conflicts: what is said, and the kernel after the first edit that is proposed.
fn warned(source: &str) -> Vec<(String, Option<String>)> {
    let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens"));
    let outcome = tilewright_compiler::compile(&tokens);
    let found = outcome.diagnostics.found().iter().filter(|d| d.code == Code::TW0490);
    let edit = |d: &Diagnostic| d.help.iter().find_map(|h| h.edit.as_ref()).map(|edit| edit.apply(&tokens));
    found.map(|d| (d.title.clone(), edit(d))).collect()
}

#[test]
fn a_transpose_has_no_conflicts_with_padding_or_an_exclusive_or() {
    for engine in ["", "via cp_async"] {
        let conflicts = |ops: &str| {
            let source = transpose(engine, ops);
            let kernel = compile(&source);
            for dims in [[1, 1], [33, 31], [64, 96]] {
                run(&source, &kernel, &dims, 3);
                prove(&kernel, &dims);
            }
            let (taken, ideal) = run(&source, &kernel, &[32, 32], 1);
            let known = counted(&kernel).expect("all accesses");
            if engine.is_empty() {
                assert_eq!(known, (taken, ideal), "{source}");
            }
            let bytes = kernel.entries[0].kernel.shared_map().bytes;
            (known.0 as f64 / known.1 as f64, bytes, warned(&source).len())
        };
        let padded = (31 * 33 + 32) * 4_u64;
        assert_eq!(conflicts(PLAIN), (16.5, 4096, 1));
        assert_eq!(conflicts(&format!("{PLAIN} layout [i, j pad 1];")), (1.0, padded.next_multiple_of(16), 0));
        assert_eq!(conflicts(&format!("{PLAIN} layout [j, i pad 1];")), (1.0, padded.next_multiple_of(16), 0));
        assert_eq!(
            conflicts(&format!("{PLAIN} layout [i pad 7, j pad 3];")),
            (1.0, (31 * 35 + 32) * 4 / 16 * 16 + 16, 0)
        );
        assert_eq!(conflicts(EXCHANGED), (1.0, 4096, 0));
        // Chunks of 16 bytes: eight rows are apart, and each bank has four words of the column.
        assert_eq!(conflicts(&format!("{PLAIN} layout [i, j] swizzle 128;")), (2.5, 4096, 1));
    }
}

#[test]
fn what_is_proposed_removes_the_conflicts() {
    for (engine, ops) in [
        ("", PLAIN),
        ("via cp_async", PLAIN),
        ("", "split i by 8 -> ir, w; bind w: warp; bind j: thread; layout [j, i];"),
    ] {
        let source = transpose(engine, ops);
        let found = warned(&source);
        let [(title, Some(edited))] = &found[..] else { panic!("{source}\n{found:?}") };
        assert!(title.contains("takes 32 cycles") && title.contains("where 1 would do"), "{title}");
        assert!(warned(edited).is_empty(), "{edited}");
        let kernel = compile(edited);
        let (taken, ideal) = run(edited, &kernel, &[96, 40], 2);
        assert_eq!(taken, ideal, "{edited}");
    }
}

/// A copy of one block through shared memory, by random loops and in a random order.
fn random(draw: &mut Draw) -> (String, &'static str) {
    let element = *draw.pick(&["f32", "f32", "f32", "f64", "f16", "u8"]);
    let (i, j) = (*draw.pick(&[1, 5, 8, 16, 32]), *draw.pick(&[7, 16, 32, 33, 64]));
    let threads = *draw.pick(&[8, 32, 32, 48, 64]);
    let flat = format!("merge i, j -> p; split p by {threads} -> pr, t; bind t: thread;");
    let columns = format!("reorder j, i; split j by {threads} -> jr, t; reorder jr, i, t; bind t: thread;");
    let rows = format!("split i by {threads} -> ir, t; reorder ir, j, t; bind t: thread;");
    let transposed = draw.chance(50);
    let reader = if draw.chance(50) { &flat } else { &columns };
    let out = if transposed { "y[j, i]" } else { "y[i, j]" };
    // What lies where.
    let pad = |draw: &mut Draw| {
        if draw.chance(50) { String::new() } else { format!(" pad {}", draw.pick(&[1, 2, 3, 4, 8, 33])) }
    };
    let span = |draw: &mut Draw| {
        if draw.chance(75) { String::new() } else { format!(" swizzle {}", draw.pick(&[32, 64, 128])) }
    };
    let (a, b, s) = (pad(draw), pad(draw), span(draw));
    let order = |x: &str, y: &str, draw: &mut Draw| match draw.chance(50) {
        true => format!("layout [{x}{a}, {y}{b}]{s};"),
        false => format!("layout [{y}{a}, {x}{b}]{s};"),
    };
    let parts = *draw.pick(&[2, 4, 8]);
    let (ops, what) = match draw.below(7) {
        0 => (flat.clone(), "none"),
        1 => (format!("{flat} {}", order("i", "j", draw)), "roots"),
        2 => (format!("{columns} {}", order("i", "j", draw)), "roots"),
        3 => (format!("{rows} {}", order("i", "j", draw)), "roots"),
        // Parts of an axis, in another order than its own.
        4 => {
            let layout = order("jv", "jc", draw).replace("layout [", &format!("layout [i{a}, "));
            (
                format!(
                    "split j by {parts} -> jc, jv; merge i, jc -> p; split p by {threads} -> pr, t; reorder pr, jv, t; bind t: thread; {layout}"
                ),
                "parts",
            )
        }
        // Vectors.
        5 => {
            let layout = if draw.chance(60) {
                format!(
                    "layout [i, jc, jv{}]{s};",
                    if draw.chance(50) { String::new() } else { format!(" pad {parts}") }
                )
            } else {
                format!("layout [i, j pad {}]{s};", 4 * parts)
            };
            let loops = format!(
                "split j by {parts} -> jc, jv; merge i, jc -> p; split p by {threads} -> pr, t; bind t: thread; vectorize jv;"
            );
            (format!("{loops} {layout}"), "vectors")
        }
        _ => {
            let side = *draw.pick(&[8, 16, 32]);
            let loops = format!(
                "split i by {side} -> io, ii; split j by {side} -> jo, ji; swizzle ii, ji by xor -> i2, j2; merge io, jo, i2, j2 -> p; split p by {threads} -> pr, t; bind t: thread;"
            );
            let inner = order("i2", "j2", draw).replace("layout [", "layout [io, jo, ");
            (format!("{loops} {inner}"), "xor")
        }
    };
    let (m, n) = if transposed { (j, i) } else { (i, j) };
    let source = format!(
        "kernel K(x: {element}[{i}, {j}]) -> (y: {element}[{m}, {n}]) {{
            {out} = x[i, j];
            launch threads({threads});
            schedule y {{ split i by {i} -> b, i0; reorder b, i0, j; bind b: grid; {} }}
            stage xs[i, j] = x in shared at y.b {{ {ops} }}
        }}",
        reader.replace(" i,", " i0,").replace("i, j", "i0, j").replace(", i;", ", i0;")
    );
    (source, what)
}

/// `TILEWRIGHT_LAYOUTS=SEED,COUNT` runs others than CI does.
#[test]
fn random_layouts_change_no_result_and_take_the_cycles_that_are_counted() {
    let (seed, count) = campaign("TILEWRIGHT_LAYOUTS", (1, 150));
    let mut seen: BTreeMap<&str, [u32; 3]> = BTreeMap::new();
    for n in 0..count {
        let mut draw = Draw::new(seed, n);
        let (source, what) = random(&mut draw);
        let of = seen.entry(what).or_default();
        let kernel = match finished(&source) {
            Ok(kernel) => kernel,
            Err((codes, report)) => {
                // A region may end inside a vector; padding may take vectors apart.
                assert!(
                    codes
                        .iter()
                        .all(|c| matches!(c, Code::TW0201 | Code::TW0410 | Code::TW0412 | Code::TW0401 | Code::TW0402)),
                    "case {n}\n{source}\n{report}"
                );
                of[1] += 1;
                continue;
            }
        };
        of[0] += 1;
        prove(&kernel, &[]);
        let cycles = run(&source, &kernel, &[], n);
        if let Some(known) = counted(&kernel) {
            of[2] += 1;
            assert_eq!(known, cycles, "case {n}\n{source}");
        }
        for (_, edited) in warned(&source) {
            if let Some(edited) = edited {
                assert!(warned(&edited).is_empty(), "case {n}\n{edited}");
            }
        }
    }
    println!("{seen:?}");
    assert!(
        seen.len() == 5 && seen.values().all(|[accepted, _, known]| *accepted > 4 && 2 * known > *accepted),
        "{seen:?}"
    );
}
