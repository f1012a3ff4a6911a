//! Warnings of what is slow: what they count is what the emulator counts, and what they propose is faster.

use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::compile;
use tilewright_compiler::diag::Code;
use tilewright_compiler::source::TokenBuffer;

use super::support::tried;

/// A finding: its code, its title, and the kernel after each of its edits.
type Finding = (Code, String, Vec<String>);

fn findings(source: &str) -> Vec<Finding> {
    let (tokens, _) = TokenBuffer::new(source.parse().expect("Rust tokens"));
    let outcome = compile(&tokens);
    let edited = |help: &tilewright_compiler::diag::Suggestion| Some(help.edit.as_ref()?.apply(&tokens));
    let found = outcome.diagnostics.found().iter();
    found.map(|d| (d.code, d.title.clone(), d.help.iter().filter_map(edited).collect())).collect()
}

/// Sectors, and accesses of warps, of a launch of a kernel without errors.
fn sectors(source: &str, dims: &[i64]) -> (u64, u64) {
    let kernel = tried(source, &[], 0);
    let device = Device::emulator(EmulatorOptions::default());
    let outcome = Trial::new(kernel.info.as_ref().expect("finished"), dims, 1, &device).unwrap().run(&device);
    assert!(outcome.is_good(), "{source}: {outcome:#?}");
    let global = outcome.report.expect("a report").counters.global;
    (global.transactions, global.load_requests + global.store_requests)
}

/// All accesses of each kernel are alike, so that their mean is each of them.
#[test]
fn sectors_are_those_of_the_emulator() {
    let scale = |schedule: &str| {
        format!(
            "kernel K(x: f32[N]) -> (y: f32[N]) where N % 8 == 0 {{ y[i] = 2.0 * x[i]; schedule y {{ {schedule} }} }}"
        )
    };
    let columns = |schedule: &str| {
        format!("kernel K(x: f16[M, N]) -> (y: f16[M, N]) {{ y[i, j] = x[i, j] * 2.0; schedule y {{ {schedule} }} }}")
    };
    let cases: [(String, &[i64], Option<u64>); 7] = [
        (scale("split i by 4 -> io, v; split io by 64 -> b, t; bind b: grid; bind t: thread;"), &[4096], Some(16)),
        (scale("split i by 8 -> io, v; split io by 64 -> b, t; bind b: grid; bind t: thread;"), &[4096], Some(32)),
        (scale("split i by 64 -> b, t; bind b: grid; bind t: thread;"), &[4096], None),
        (scale("split i by 2 -> io, v; split io by 64 -> b, t; bind b: grid; bind t: thread;"), &[4096], None),
        (
            scale("split i by 4 -> io, v; split io by 64 -> b, t; bind b: grid; bind t: thread; vectorize v;"),
            &[4096],
            None,
        ),
        (columns("merge j, i -> p; split p by 64 -> b, t; bind b: grid; bind t: thread;"), &[64, 128], Some(32)),
        (columns("merge i, j -> p; split p by 64 -> b, t; bind b: grid; bind t: thread;"), &[64, 128], None),
    ];
    for (source, dims, expected) in cases {
        let found = findings(&source);
        let (touched, requests) = sectors(&source, dims);
        let Some(each) = expected else {
            assert!(found.is_empty(), "{source}: {found:?}");
            continue;
        };
        assert_eq!(touched, each * requests, "{source}");
        let [(Code::TW0491, title, edits)] = &found[..] else { panic!("{source}: {found:?}") };
        assert!(title.contains(&format!("touches {each} sectors")), "{source}: {title}");
        // The edit is a kernel with as many accesses that nothing is said of.
        let [edited] = &edits[..] else { panic!("{source}: {edits:?}") };
        assert_eq!(findings(edited), [], "{edited}");
        let (mended, _) = sectors(edited, dims);
        assert!(2 * mended < touched, "{edited}: {mended} sectors instead of {touched}");
    }
}

/// A row that is read from memory: its elements are as far apart as if all threads read the same one.
#[test]
fn gathers_are_looked_at() {
    let rows = |column: &str, schedule: &str| {
        format!(
            "kernel K(id: i32[T], w: f32[V, D]) -> (y: f32[T, D]) where D % 4 == 0 {{
                y[t, d] = w[id[t], {column}] or 0.0; schedule y {{ {schedule} }}
            }}"
        )
    };
    let vectors = "split d by 4 -> dq, v; split dq by 64 -> r, th; bind t, r: grid; bind th: thread; vectorize v;";
    let alone = "split d by 64 -> r, th; bind t, r: grid; bind th: thread;";
    // What begins inside a vector is read lane by lane.
    let by_lanes = rows("d + 1", vectors);
    let found = findings(&by_lanes);
    let [(Code::TW0491, title, _)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(title, "a warp of `y` touches 16 sectors reading `w` where 4 would do");
    let others = [rows("d + 1", alone), rows("d", alone), rows("d", vectors)];
    others.iter().for_each(|source| assert_eq!(findings(source), [], "{source}"));
    let sectors = |source: &String| sectors(source, &[16, 100, 1024]).0;
    let [one_by_one, _, by_vectors] = others.each_ref().map(sectors);
    let slow = sectors(&by_lanes);
    assert!(2 * slow > 3 * one_by_one && 2 * slow > 3 * by_vectors, "{slow} {one_by_one} {by_vectors}");
    // Where the row's elements are data, too, and where each thread has a row of its own, nothing is said of it.
    for source in [
        "kernel K(id: i32[T], w: f32[V]) -> (y: f32[T]) { y[t] = w[id[t]] or 0.0;
            schedule y { split t by 64 -> b, th; bind b: grid; bind th: thread; } }",
        "kernel K(id: i32[T], w: f32[V, 4]) -> (y: f32[4, T]) { y[d, t] = w[id[t], d] or 0.0;
            schedule y { split t by 64 -> b, th; bind d, b: grid; bind th: thread; } }",
    ] {
        assert_eq!(findings(source), [], "{source}");
    }
}

/// Each schedule that is proposed compiles, is right, and has blocks and threads.
#[test]
fn proposed_schedules_use_the_machine() {
    let cases: [(&str, &[i64]); 8] = [
        ("kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = 2.0 * x[i]; }", &[1000]),
        ("kernel K(b: f32[M, N]) -> (y: f32[M, N]) { y[i, t] = 2.0 * b[i, t]; }", &[30, 50]),
        ("kernel K(x: f32[M, N]) -> (y: f32[M]) { y[i] = sum(|j| x[i, j]); }", &[7, 1000]),
        ("kernel K(x: f32[M, N]) -> (y: f32[M]) { y[i] = ordered sum(|j| x[i, j]); }", &[300, 10]),
        ("kernel K(x: f32[M, N]) -> (y: f32[N]) { y[j] = sum(|i| x[i, j]); }", &[10, 300]),
        ("kernel K(x: f32[N]) -> (y: f32[]) { y[] = max(|i| x[i]); }", &[5000]),
        ("kernel K(x: f32[M, N]) -> (y: f32[M]) { y[i] = sum(|j| x[i, j]); schedule y { bind i: grid; } }", &[7, 900]),
        (
            "kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = 2.0 * x[i]; schedule y { split i by 64 -> b, t; bind t: thread; } }",
            &[1000],
        ),
    ];
    for (source, dims) in cases {
        let found = findings(source);
        let [(Code::TW0691, _, edits), ..] = &found[..] else { panic!("{source}: {found:?}") };
        let [edited] = &edits[..] else { panic!("{source}: {edits:?}") };
        let kernel = tried(edited, &[dims], 2);
        let launch = &kernel.info.as_ref().expect("finished").launch;
        assert!(launch.threads > 1 && launch.blocks.eval(dims).expect("a number") > 1, "{edited}");
        assert!(findings(edited).iter().all(|found| found.0 != Code::TW0691), "{edited}");
    }
}

/// In place through intermediates: each element is read before it is written, also by other threads that sum it up.
#[test]
fn helpers_of_what_is_updated_in_place() {
    let elements = "kernel K(inout x: bf16[N], g: f32[N]) {
        f[i] = x[i] as f32; h[i] = f[i] * g[i];
        x[i] = (f[i] + h[i]) as bf16;
        schedule x { split i by 64 -> b, t; bind b: grid; bind t: thread; }
    }";
    let sums = "kernel K(inout x: f32[N], w: f32[N, M]) where M <= 512 {
        f[i] = 2.0 * x[i];
        x[i] = sum(|k| f[i] * w[i, k]);
        schedule x { bind i: grid; bind k: thread; reduce k; }
    }";
    tried(elements, &[&[1], &[1000]], 3);
    tried(sums, &[&[3, 1], &[7, 100], &[5, 512]], 4);
}
