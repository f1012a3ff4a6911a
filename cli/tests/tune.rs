//! `tilewright tune` as its users meet it.

mod common;

use std::path::PathBuf;

use expect_test::{Expect, expect};

use common::{documented, fields, json, sorted, tilewright};

/// A file with a kernel whose row of threads has candidates, alone in a new folder.
fn file(name: &str, tune: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tune").join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("kernel.rs");
    let text = format!(
        "tilewright::schedule! {{
    /// One row a block.
    kernel Rows(x: f32[M, N]) -> (y: f32[M, N])
    where N % 4 == 0
    {{
        y[i, j] = 2.0 * x[i, j];
        {tune} // a comment that stays
        schedule y {{
            split j by V -> jo, v; split jo by T -> r, t;
            bind i: grid; bind t: thread; vectorize v;
        }}
    }}
}}
"
    );
    std::fs::write(&path, text).expect("a file");
    path.to_string_lossy().into_owned()
}

/// What the command prints, without the folder, and without the digest, which every change of the compiler changes.
fn check(arguments: &[&str], path: &str, expected: &Expect) {
    let (code, mut out, err) = tilewright(arguments);
    if let Some(at) = out.find(" by \"").and_then(|at| Some(at + out[at..].find(": ")? + 2)) {
        out.replace_range(at..at + 16, "…");
    }
    let errors = if err.is_empty() { String::new() } else { format!("--- errors\n{err}") };
    expected.assert_eq(&format!("exit code {code}\n{out}{errors}").replace(path, "kernel.rs"));
}

#[test]
fn candidates_are_ranked_and_the_best_written() {
    let path = file("ranked", "tune V in [4, 1, 8], T in [32, 256];");
    let arguments = ["tune", &path, "--dims", "M=300,N=2048"];
    check(
        &arguments,
        &path,
        &expect![[r#"
        exit code 0
        == Rows (kernel.rs:1) on H200 SXM, M=300,N=2048
        6 combinations of V, T, estimated, nothing is measured
            V    T      time  limit                 warps
            4  256  1.024 µs  device memory, asked  64 of 64
            1  256  1.024 µs  device memory, asked  64 of 64
            4   32  1.024 µs  device memory, asked  32 of 64
            1   32  1.024 µs  device memory, asked  32 of 64
        refused
            V = 8, T = 32: [TW0201] cannot vectorise `v`: N is not known to be a multiple of 8
            V = 8, T = 256: [TW0201] cannot vectorise `v`: N is not known to be a multiple of 8
        note: without NVIDIA's assembler (`$PTXAS`), registers limit nothing
        --- kernel.rs
        +++ kernel.rs
        @@ line 5 @@
             {
                 y[i, j] = 2.0 * x[i, j];
        -        tune V in [4, 1, 8], T in [32, 256]; // a comment that stays
        +        tune V in [4, 1, 8], T in [32, 256] = (4, 256) by "h200 at M=300,N=2048: …"; // a comment that stays
                 schedule y {
                     split j by V -> jo, v; split jo by T -> r, t;
        not written: add --write
    "#]],
    );
    let before = std::fs::read_to_string(&path).expect("the file");
    assert!(!before.contains(" by \"h200"), "nothing is written unless it is asked for");
    let (code, out, _) = tilewright(&[&arguments[..], &["--write"]].concat());
    assert!(code == 0 && out.ends_with("written\n"), "{out}");
    let after = std::fs::read_to_string(&path).expect("the file");
    assert!(after.contains("// a comment that stays") && after.contains(" by \"h200 at M=300,N=2048: "), "{after}");
    let (code, out, _) = tilewright(&["check", &path]);
    assert_eq!(code, 0, "{out}");
    // With the sizes and the GPU of the record.
    let (code, out, _) = tilewright(&["tune", &path, "--write"]);
    assert!(code == 0 && out.ends_with("the record says so already\n"), "{out}");
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), after);
    // For another GPU the record is another one, in its place.
    let (code, out, _) = tilewright(&["tune", &path, "--gpu", "a100", "--write"]);
    assert!(code == 0 && out.ends_with("written\n"), "{out}");
    let other = std::fs::read_to_string(&path).expect("the file");
    assert!(other.contains(" by \"a100 at M=300,N=2048: ") && !other.contains("h200"), "{other}");
}

#[test]
fn a_stale_record_is_renewed() {
    let path = file("stale", "tune V in [4], T in [64, 128] = (4, 128) by \"l40s at M=30,N=512: 0123456789abcdef\";");
    let (code, out, _) = tilewright(&["check", &path]);
    assert!(code == 1 && out.contains("error[TW1105]"), "{out}");
    assert!(out.contains("`tilewright tune FILE --kernel Rows --write`"), "{out}");
    // Nothing else is done with such a kernel.
    let (code, _, err) = tilewright(&["run", &path, "--dims", "M=3,N=8"]);
    assert!(code == 1 && err.contains("error[TW1105]"), "{err}");
    let (code, out, err) = tilewright(&["tune", &path, "--kernel", "Rows", "--write"]);
    assert_eq!(code, 0, "{out}{err}");
    let after = std::fs::read_to_string(&path).expect("the file");
    assert!(after.contains(" by \"l40s at M=30,N=512: ") && !after.contains("0123456789abcdef"), "{after}");
    assert_eq!(tilewright(&["check", &path]).0, 0);
    let (code, out, _) = tilewright(&["run", &path, "--dims", "M=3,N=8"]);
    assert_eq!(code, 0, "{out}");
}

#[test]
fn wrong_usage_is_told() {
    let path = file("usage", "tune V in [4, 1], T in [32, 256];");
    check(
        &["tune", &path],
        &path,
        &expect![[r#"
            exit code 2
            --- errors
            error: no value for M, N: add --dims M=…,N=…
        "#]],
    );
    check(
        &["tune", &path, "--dims", "M=3,N=8", "--gpu", "h9000"],
        &path,
        &expect![[r#"
        exit code 2
        --- errors
        error: no GPU is known as `h9000`; there are a100, h100, h200, l40s, rtx4090
    "#]],
    );
    check(
        &["tune", &path, "--dims", "M=3,N=8", "--kernel", "Columns"],
        &path,
        &expect![[r#"
        exit code 2
        --- errors
        error: kernel.rs has no kernel `Columns`; it has Rows
    "#]],
    );
    check(
        &["tune", "good.rs", "--dims", "N=8"],
        &path,
        &expect![[r#"
        exit code 2
        --- errors
        error: good.rs has no kernel with `tune`
    "#]],
    );
    check(
        &["tune", "good.rs", "--dims", "N=8", "--kernel", "Saxpy"],
        &path,
        &expect![[r#"
        exit code 2
        --- errors
        error: kernel Saxpy has no `tune`: write `tune BM in [64, 128];`, and `BM` where its schedule has a number
    "#]],
    );
    let (code, _, err) = tilewright(&["tune", &path, "--dims", "M=3,N=8", "--device"]);
    assert!(code == 2 && err.starts_with("error: --device: "), "{err}");
    // A fact that the sizes break is a reason for each.
    check(
        &["tune", &path, "--dims", "M=3,N=7"],
        &path,
        &expect![[r#"
        exit code 1
        == Rows (kernel.rs:1) on H200 SXM, M=3,N=7
        4 combinations of V, T, estimated, nothing is measured
        refused
            V = 4, T = 32: kernel Rows was not launched: the fact `N % 4 == 0` does not hold with N = 7, where N % 4 = 3
            V = 4, T = 256: kernel Rows was not launched: the fact `N % 4 == 0` does not hold with N = 7, where N % 4 = 3
            V = 1, T = 32: kernel Rows was not launched: the fact `N % 4 == 0` does not hold with N = 7, where N % 4 = 3
            V = 1, T = 256: kernel Rows was not launched: the fact `N % 4 == 0` does not hold with N = 7, where N % 4 = 3
        no combination can be taken
    "#]],
    );
}

#[test]
fn no_combination_and_no_kernel_are_told() {
    let path = file("none", "tune V in [3, 16], T in [2048];");
    check(
        &["tune", &path, "--dims", "M=3,N=8"],
        &path,
        &expect![[r#"
        exit code 1
        == Rows (kernel.rs:1) on H200 SXM, M=3,N=8
        2 combinations of V, T, estimated, nothing is measured
        refused
            V = 3, T = 2048: [TW0602] 2048 threads are needed, and a block has at most 1024
            V = 16, T = 2048: [TW0602] 2048 threads are needed, and a block has at most 1024
        no combination can be taken
        --- errors
        error[TW0602]: 2048 threads are needed, and a block has at most 1024
          --> kernel.rs:10:27
           |
        10 |             bind i: grid; bind t: thread; vectorize v;
           |                           ^^^^^^^^^^^^^^
           = note: bound to threads: `t` 2048
           = note: by `tune`, V = 3, T = 2048 here
           = help: split the axis so that at most 1024 iterations are bound
           = explain: TW0602

    "#]],
    );
    let path = file("broken", "tune V in [], T in [64];");
    let (code, out, err) = tilewright(&["tune", &path, "--dims", "M=3,N=8"]);
    assert!(code == 1 && out.is_empty() && err.contains("error[TW1101]"), "{out}{err}");
}

#[test]
fn tune_json_is_documented() {
    let mut found = Vec::new();
    let path = file("json", "tune V in [4, 8], T in [32, 256];");
    let document = json(&["tune", &path, "--dims", "M=300,N=2048", "--budget", "2000", "--json"]);
    assert_eq!(document["constants"], serde_json::json!(["V", "T"]));
    assert_eq!(document["refused"].as_array().map(Vec::len), Some(2), "{document}");
    fields(&document, "", &mut found);
    // Those of times need a device.
    let mut expected = documented("tune --json");
    expected.retain(|field| !matches!(field.as_str(), "ranked[].least_microseconds" | "ranked[].most_microseconds"));
    assert_eq!(sorted(found), expected);
}
