//! The binary as its users meet it: every command, with good and with bad input.

mod common;

use std::path::PathBuf;

use expect_test::{Expect, expect};
use serde_json::Value;

use common::{documented, fields, json, sorted, tilewright};

/// Runs the command and compares what it prints, up to what every change of the compiler changes: PTX, counters.
fn check(arguments: &[&str], expected: &Expect) {
    let (code, mut out, err) = tilewright(arguments);
    for mark in ["\n.version", " thread instructions"] {
        if let Some(at) = out.find(mark) {
            out.truncate(out[..=at].rfind('\n').map_or(0, |end| end + 1));
            out.push_str("…\n");
        }
    }
    let mut all = format!("exit code {code}\n{out}");
    if !err.is_empty() {
        all.push_str(&format!("--- errors\n{err}"));
    }
    expected.assert_eq(&all);
}

/// A file with this text, alone in a new folder.
fn file(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("kernel.rs");
    std::fs::write(&path, text).expect("a file");
    path
}

#[test]
fn check_accepts() {
    check(
        &["check", "good.rs"],
        &expect![[r#"
            exit code 0
            3 kernels in 1 file: 0 errors, 0 warnings
            separate checker, at small and large sizes: 78 runs without a fault, 0 that depend on data, 0 not to the end
        "#]],
    );
}

#[test]
fn check_refuses_at_the_place_in_the_file() {
    check(
        &["check", "wrong.rs", "good.rs"],
        &expect![[r#"
            exit code 1
            error[TW0201]: cannot vectorise `v`: N is not known to be a multiple of 4
              --> wrong.rs:20:13
               |
            16 |             split i by 4 -> io, v;
               |             --------------------- a vector along `v` may pass an end of `i`
            ...
            20 |             vectorize v;
               |             ^^^^^^^^^^^
               = note: a vector is accessed whole: all 4 lanes lie inside `i` or none does
               = counterexample: N = 1: at b = 0, t = 0 the vector has 1 of 4 lanes inside `i`
               = help: state the fact: `where N % 4 == 0`
               = help: or remove `vectorize v`, so that predicates guard the tail, and let `t` be innermost:
                 `split i by 64 -> io, t; split io by 4 -> b, v;`
               = explain: TW0201

            5 kernels in 2 files: 1 error, 0 warnings
            separate checker, at small and large sizes: 101 runs without a fault, 0 that depend on data, 0 not to the end
        "#]],
    );
}

#[test]
fn check_without_kernels_or_files() {
    let (code, out, _) = tilewright(&["check", "../command.rs"]);
    assert_eq!((code, out.as_str()), (0, "0 kernels in 1 file: 0 errors, 0 warnings\n"));
    assert_eq!(tilewright(&["check"]).0, 2);
    assert_eq!(tilewright(&[]).0, 2);
    assert_eq!(tilewright(&["emulate", "x.ptx"]).0, 2);
    // One bad file does not hide the findings in the others.
    let (code, out, err) = tilewright(&["check", "missing.rs", "wrong.rs"]);
    assert_eq!(code, 2);
    assert!(out.contains("error[TW0201]") && out.contains("2 kernels in 1 file: 1 error, 0 warnings"), "{out}");
    assert!(err.starts_with("error: missing.rs: "), "{err}");
}

#[test]
fn files_that_are_not_rust() {
    let path = file("not_rust", "fn f() {\n    let = 3;\n}\n");
    let (code, _, err) = tilewright(&["check", &path.to_string_lossy()]);
    assert_eq!(code, 2);
    assert!(err.contains("kernel.rs:2:9: not valid Rust: "), "{err}");
    let path = file("not_text", "");
    std::fs::write(&path, [0xff, 0xfe, 0x00]).expect("a file");
    let (code, _, err) = tilewright(&["inspect", &path.to_string_lossy()]);
    assert_eq!(code, 2);
    assert!(err.contains("UTF-8"), "{err}");
    // A folder.
    assert_eq!(tilewright(&["check", "."]).0, 2);
    let path = file("deep", &format!("const X: u8 = {}1;\n", "!".repeat(20_000)));
    assert_eq!(tilewright(&["check", &path.to_string_lossy()]).0, 0, "deep expressions have room");
}

#[test]
fn findings_without_a_place_name_the_call() {
    let path = file("empty", "\n  tilewright::schedule! { }\n");
    let (code, out, _) = tilewright(&["check", &path.to_string_lossy()]);
    assert_eq!(code, 1);
    assert!(out.contains("kernel.rs:2:3") && out.contains("error[TW0010]"), "{out}");
}

#[test]
fn inspect_text() {
    check(
        &["inspect", "good.rs", "--kernel", "Saxpy"],
        &expect![[r#"
            exit code 0
            == Saxpy (good.rs:5)

            kernel Saxpy
                z[i in 0..N]: f32 = a * x[i] + y[i]
            launch: ceil(N / 256) blocks of 64 threads; sm_80 PTX 7.0
            entry Saxpy: 256 * ceil(N / 256) + 260 <= 2147483647, N + 255 <= 2147483647
            entry Saxpy_64: always
            stage z in global memory, run by all threads
                axis b: ceil(N / 256), grid
                axis t: 64, thread
                axis v: 4, vector
                no holes: 4 divides N of i
                predicate io < ceil(N / 4)
                read of x: vector of 4 f32
                read of y: vector of 4 f32
                write of z: vector of 4 f32
            accesses of z
                read  x[256 * b + 4 * t + v]: offset 256 * b + 4 * t + v, vector
                read  y[256 * b + 4 * t + v]: offset 256 * b + 4 * t + v, vector
                write z[256 * b + 4 * t + v]: offset 256 * b + 4 * t + v, vector

            …
        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "most of it is one document")]
fn inspect_staged_copies() {
    let document = json(&["inspect", "staged.rs", "--json"]);
    let stage = &document["kernels"][0]["stages"][0];
    expect![[r#"
        [
          {
            "at": "ko",
            "axes": [
              {
                "box": 32,
                "boxes": 1,
                "element_stride": 1,
                "extent": 32,
                "name": "i",
                "size": "M",
                "start": "32 * io",
                "stride": "K"
              },
              {
                "box": 32,
                "boxes": 1,
                "element_stride": 1,
                "extent": 32,
                "name": "k",
                "size": "K",
                "start": "32 * ko",
                "stride": "1"
              }
            ],
            "buffer_bytes": 8192,
            "copies": 1,
            "copy_bytes": 4096,
            "elected": 0,
            "form": "tiles",
            "form_reason": "it is swizzled",
            "holes": "has strong correctness, for its reader folds in its holes; level 1: every hole is zero (Theorem G)",
            "level": 1,
            "model": "strong",
            "multicast": null,
            "name": "xs",
            "places": [
              {
                "count": 32,
                "name": "i",
                "stride": 32
              },
              {
                "count": 32,
                "name": "k",
                "stride": 1
              }
            ],
            "ring": 2,
            "role": null,
            "swizzle": 128,
            "tensor": "x",
            "way": "load",
            "zeros_for": [
              "k < K"
            ]
          }
        ]
        [
          {
            "axis": 0,
            "condition": "i < M",
            "emitted": true,
            "removed_by": null,
            "theorem": null,
            "waived": {
              "because": "not stored",
              "zeros_of": []
            }
          },
          {
            "axis": 1,
            "condition": "k < K",
            "emitted": true,
            "removed_by": null,
            "theorem": null,
            "waived": {
              "because": "neutral",
              "zeros_of": [
                "xs"
              ]
            }
          }
        ]
    "#]]
    .assert_eq(&format!("{:#}\n{:#}\n", stage["copies"], stage["predicates"]));
    // One that leaves the tensor by way of shared memory, as a run.
    let store = &document["kernels"][1]["stages"][0]["copies"][0];
    let fields = ["way", "form", "at", "model", "level", "holes"].map(|f| store[f].clone());
    let expected = [
        Value::from("store"),
        Value::from("runs"),
        Value::Null,
        Value::Null,
        Value::from(1),
        Value::from("writes its region and nothing else"),
    ];
    assert_eq!(fields, expected);
    let (_, out, _) = tilewright(&["inspect", "staged.rs", "--kernel", "RowSum"]);
    let lines: Vec<&str> = out.lines().skip_while(|l| !l.starts_with("axes of")).take(3).collect();
    expect![[r#"
        axes of xs (8192 bytes of shared memory)
            i: size M, stride K; 32 from 32 * io; boxes 1 × 32
            k: size K, stride 1; 32 from 32 * ko; boxes 1 × 32
    "#]]
    .assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn inspect_of_something_else() {
    let (code, out, err) = tilewright(&["inspect", "good.rs", "--kernel", "saxpy"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(err, "error: good.rs has no kernel `saxpy`; it has Saxpy, RowSum, Half\n");
    // A kernel beside a wrong one can be inspected; the wrong one cannot.
    let (code, out, _) = tilewright(&["inspect", "wrong.rs", "--kernel", "Fine"]);
    assert!(code == 0 && out.contains(".entry Fine"), "{out}");
    let (code, out, err) = tilewright(&["inspect", "wrong.rs", "--kernel", "Saxpy"]);
    assert!(code == 1 && out.is_empty() && err.contains("TW0201"), "{out}{err}");
    assert_eq!(tilewright(&["inspect", "wrong.rs"]).0, 1);
}

/// What is told of registers is about the role that holds most of what it has: here 128 sums of 232, and not the role
/// that holds nothing of 40.
#[test]
fn inspect_tells_the_role_with_the_most_registers() {
    let document = json(&["inspect", "../../../examples/gemm.rs", "--kernel", "Gemm", "--json"]);
    let registers = &document["kernels"][0]["registers"];
    assert_eq!((&registers["role"], &registers["limit"]), (&"math".into(), &232.into()), "{registers:#}");
    assert!(registers["least"].as_u64() >= Some(128), "{registers:#}");
}

#[test]
fn inspect_prints_the_ptx_alone() {
    let (code, out, err) = tilewright(&["inspect", "good.rs", "--kernel", "Saxpy", "--ptx"]);
    assert!(code == 0 && err.is_empty() && out.contains(".entry Saxpy"), "{out}{err}");
    let document = json(&["inspect", "good.rs", "--kernel", "Saxpy", "--json"]);
    assert_eq!(document["kernels"][0]["ptx"]["text"], out);
    let (code, out, err) = tilewright(&["inspect", "good.rs", "--ptx"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(err, "error: good.rs has 3 kernels: add --kernel with one of Saxpy, RowSum, Half\n");
    let (code, out, err) = tilewright(&["inspect", "wrong.rs", "--kernel", "Saxpy", "--ptx"]);
    assert!(code == 1 && out.is_empty() && err.contains("TW0201"), "{out}{err}");
    assert_eq!(tilewright(&["inspect", "good.rs", "--ptx", "--json"]).0, 2);
}

#[test]
fn output_is_deterministic() {
    for arguments in [
        &["inspect", "good.rs", "--json"][..],
        &["inspect", "good.rs"],
        &["run", "good.rs", "--kernel", "RowSum", "--dims", "M=40,N=33", "--seed", "3", "--json"],
        &["explain"],
    ] {
        assert_eq!(tilewright(arguments), tilewright(arguments));
    }
}

#[test]
fn run_compares_with_the_reference() {
    check(
        &["run", "good.rs", "--kernel", "Saxpy", "--dims", "N=1000"],
        &expect![[r#"
            exit code 0
            kernel Saxpy (good.rs:5), seed 0
                N = 1000
            inputs: floats are integers from 1 to 8 of either sign
                a = 8.0
            z: right: 1000 elements, all exact
            sanitizers: no findings
            inputs: floats are real numbers
                a = 1.5332432
            z: right: 1000 elements, all exact
            sanitizers: no findings
            4 blocks, 8 warps
            …
        "#]],
    );
    for arguments in [
        &["RowSum", "--dims", "M=100,N=33", "--seed", "5"][..],
        &["RowSum", "--dims", "M=100,N=33", "--seed", "5", "--perturb"],
        &["RowSum", "--dims", "M=7", "--dims", "N=9,ld=20"],
        &["RowSum", "--dims", "M=0,N=4"],
        &["Half", "--dims", "P=100"],
        &["Half", "--dims", "P=100,Q=50"],
    ] {
        let (code, out, err) = tilewright(&[&["run", "good.rs", "--kernel"], arguments].concat());
        assert_eq!(code, 0, "{arguments:?}: {out}{err}");
        assert!(out.contains("y: right: "), "{out}");
    }
}

/// Intervals of long sums are so wide that they say little; integers have one sum.
#[test]
fn run_says_how_sharp_the_comparison_is() {
    check(
        &["run", "good.rs", "--kernel", "RowSum", "--dims", "M=4,N=9999"],
        &expect![[r#"
        exit code 0
        kernel RowSum (good.rs:24), seed 0
            M = 4, N = 9999, ld = 9999
        inputs: floats are integers from 1 to 8 of either sign
        y: right: 4 elements, all exact
        sanitizers: no findings
        inputs: floats are real numbers
        y: right: 4 elements, 0 exact and 4 by interval
            widest interval: 27.650278 to 39.642586 at y[3]: 11.99 wide, 30.25 % of the value
            widest for its value: -25.315947 to -13.47028 at y[2]: 11.85 wide, 46.79 % of the value
            farthest from the middle: 0.0002045 at y[1]; no element more than 0.003439 % of the way to an end
        sanitizers: no findings
        1 block, 1 warp
        …
    "#]],
    );
    let text = "schedule! { kernel Logs(x: f32[N]) -> (y: f32[N]) {
        y[i] = log(x[i]) / (x[i] - x[i]);
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    } }";
    let path = file("logs", text);
    let (code, out, err) = tilewright(&["run", &path.to_string_lossy(), "--dims", "N=50"]);
    assert_eq!(code, 0, "{out}{err}");
    for what in ["    NaN: ", "    infinite: "] {
        assert!(out.contains(what), "{out}");
    }
    // No floats: once.
    let (_, out, _) = tilewright(&["run", "good.rs", "--kernel", "Half", "--dims", "P=100"]);
    assert!(out.matches("inputs: ").count() == 1 && out.contains("inputs: no floats\n"), "{out}");
    // Too many terms of `f16` for larger integers: these are tried, and smaller ones.
    let text = "schedule! { kernel Sum(x: f16[M, N]) -> (y: f16[M]) {
        y[i] = sum(|j| x[i, j]);
        schedule y { bind i: grid; split j by 32 -> r, t; bind t: thread; reduce t; }
    } }";
    let path = file("halves", text);
    let (code, out, err) = tilewright(&["run", &path.to_string_lossy(), "--dims", "M=3,N=1500"]);
    assert_eq!(code, 0, "{out}{err}");
    let small = out.find("inputs: floats are 1 and -1\ny: right: 3 elements, all exact\n");
    assert!(small.is_some() && out.contains("y: right: 3 elements, 0 exact and 3 by interval\n"), "{out}");
}

/// The reference admits one value for integers, whichever way they are summed.
#[test]
fn sums_of_integers_are_exact() {
    for (element, value) in [
        ("f64", "sum(|j| x[i, j])"),
        ("f32", "fold(|j| init 0.0f32, step a => a + x[i, j], merge (a, b) => a + b)"),
        ("f64", "fold(|j| init 0.0f64, step a => a + x[i, j] * x[i, j], merge (a, b) => a + b)"),
        ("f32", "sum(|j| x[i, j] * x[i, j] * 0.125) / 4.0"),
    ] {
        let text = format!(
            "schedule! {{ kernel Sum(x: {element}[M, N]) -> (y: {element}[M]) {{
                y[i] = {value};
                schedule y {{ bind i: grid; split j by 32 -> r, t; bind t: thread; reduce t; }}
            }} }}"
        );
        let path = file("exact", &text);
        let (code, out, err) = tilewright(&["run", &path.to_string_lossy(), "--dims", "M=3,N=9999"]);
        assert_eq!(code, 0, "{text}{out}{err}");
        let first = "inputs: floats are integers from 1 to 8 of either sign\ny: right: 3 elements, all exact\n";
        assert!(out.contains(first), "{text}{out}");
    }
}

/// Ranges of 2³¹ elements: the work is told instead of done.
#[test]
fn run_tells_what_is_too_much_work() {
    // The algorithm has few terms, and the schedule makes a kernel of a longer loop.
    let resized = "schedule! { kernel Least(x: f32[M, N]) -> (y: u32[M]) where N >= 1 {
        y[i] = argmin(|j| x[i, j]);
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; resize j by (0, 2147483648) -> q; }
    } }";
    let path = file("resized", resized);
    let arguments = ["run", &path.to_string_lossy(), "--dims", "M=1,N=5", "--budget", "100000"];
    let (code, out, err) = tilewright(&arguments);
    assert_eq!(code, 1, "{out}{err}");
    let told =
        "failed: the kernel has not ended with M = 1, N = 5 after 100000 warp instructions: `--budget` allows more";
    assert!(out.contains(told), "{out}");
    assert_eq!(out.matches("inputs: ").count(), 1, "{out}");
    // The algorithm has them itself.
    let long = "schedule! { kernel Least(x: f32[M, N]) -> (y: u32[M]) where N >= 1 {
        y[i] = argmin(|j in 0..N + 2147483648| x[i, j] or 0.0);
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    } }";
    let path = file("long", long);
    let (code, out, err) = tilewright(&["run", &path.to_string_lossy(), "--dims", "M=1,N=5"]);
    assert_eq!(code, 1, "{out}{err}");
    let told =
        "with M = 1, N = 5 the reduction along `j` in 0..2147483653 has 2147483653 terms more; at most 2147483648";
    assert!(out.contains(told) && out.contains("`--budget` allows more than 268435456"), "{out}");
}

#[test]
fn run_refuses() {
    check(
        &["run", "good.rs", "--kernel", "Saxpy", "--dims", "N=1001"],
        &expect![[r#"
            exit code 1
            kernel Saxpy (good.rs:5), seed 0
                N = 1001
            inputs: floats are integers from 1 to 8 of either sign
                a = 8.0
            failed: kernel Saxpy was not launched: the fact `N % 4 == 0` does not hold with N = 1001, where N % 4 = 1
        "#]],
    );
    let wrong = |arguments: &[&str]| {
        let (code, out, err) = tilewright(&[&["run", "good.rs", "--kernel"], arguments].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        err
    };
    assert_eq!(wrong(&["Sax"]), "error: good.rs has no kernel `Sax`; it has Saxpy, RowSum, Half\n");
    assert_eq!(wrong(&["Saxpy"]), "error: no value for N: add --dims N=…\n");
    assert_eq!(wrong(&["RowSum", "--dims", "ld=5"]), "error: no value for M, N: add --dims M=…,N=…\n");
    assert_eq!(
        wrong(&["RowSum", "--dims", "M=1,N=1,K=3"]),
        "error: the kernel has no dimension `K`; it has M, N, ld\n"
    );
    assert_eq!(wrong(&["Half", "--dims", "P=7,Q=4"]), "error: Q = 4 is given, but a fact makes it 3\n");
    assert!(wrong(&["Saxpy", "--dims", "N=10 00"]).contains("`N=10 00` is no size"));
    assert!(wrong(&["Saxpy", "--dims", "N=4000000000000"]).contains("bytes; at most 4294967296 are tried"));
    assert!(wrong(&["Saxpy", "--dims", "N=9223372036854775804"]).contains("bytes; at most"));
    assert!(wrong(&["Saxpy", "--seed", "x"]).contains("--seed"));
    // A kernel that does not compile is an error in the kernel.
    let (code, _, err) = tilewright(&["run", "wrong.rs", "--kernel", "Saxpy", "--dims", "N=8"]);
    assert!(code == 1 && err.contains("TW0201"), "{err}");
}

#[test]
fn kernels_of_one_name_cannot_be_told_apart() {
    let kernel = "tilewright::schedule! { kernel A(x: f32[N]) -> (y: f32[N]) { y[i] = x[i];\n\
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; } } }\n";
    let path = file("twice", &format!("mod a {{ {kernel} }}\nmod b {{ {kernel} }}"));
    let (code, _, err) = tilewright(&["run", &path.to_string_lossy(), "--kernel", "A", "--dims", "N=3"]);
    assert!(code == 2 && err.contains("has 2 kernels `A`, in the `schedule!` at lines 1 and 4"), "{err}");
}

#[test]
fn explain_prints_pages() {
    let (code, out, _) = tilewright(&["explain", "TW0201"]);
    assert!(code == 0 && out.starts_with("# TW0201: "), "{out}");
    assert!(out.contains("## Wrong") && out.ends_with("\nerror `not-divisible`\n"), "{out}");
    let (code, out, _) = tilewright(&["explain"]);
    assert!(code == 0 && out.lines().count() > 70 && out.contains("TW0901 error"), "{out}");
    check(
        &["explain", "TW0211"],
        &expect![[r#"
            exit code 2
            --- errors
            error: there is no diagnostic `TW0211`; there is TW0201, TW0011, TW0111
            `tilewright explain` lists all of them
        "#]],
    );
}

#[test]
fn check_json_is_documented() {
    let document = json(&["check", "good.rs", "wrong.rs", "missing.rs", "--json"]);
    let mut found = Vec::new();
    fields(&document, "", &mut found);
    // Fields that are described once.
    found.retain(|f| !f.contains("labels[].range.") && !f.contains("edit.range."));
    assert_eq!(sorted(found), documented("check --json"));
    let errors = document["errors"].as_u64().expect("a number");
    let of = |file: usize| document["files"][file]["findings"].as_array().expect("a list").len() as u64;
    assert_eq!((of(0), of(1), of(2)), (0, errors + document["warnings"].as_u64().expect("a number"), 0));
    assert!(document["files"][2]["error"].is_string());
    let inspected = json(&["inspect", "wrong.rs", "--json"]);
    assert_eq!(inspected["findings"], document["files"][1]["findings"]);
}

#[test]
fn the_only_kernel_needs_no_name() {
    let (code, _, err) = tilewright(&["run", "good.rs", "--dims", "N=64"]);
    assert_eq!(code, 2);
    assert!(err.contains("has 3 kernels: add --kernel with one of Saxpy"), "{err}");
}

#[test]
fn inspect_json_is_documented() {
    let document = json(&["inspect", "good.rs", "--json"]);
    let staged = json(&["inspect", "staged.rs", "--json"]);
    let shared = json(&["inspect", "shared.rs", "--json"]);
    assert_eq!(shared["kernels"][0]["workspace"][0]["zeroed"], true);
    let inner = &shared["kernels"][1]["stages"][1];
    let words = ["place", "owner", "fit"].map(|field| inner[field].as_str().unwrap_or_default());
    assert_eq!(words, ["shared", "cta", "exact"]);
    assert_eq!((&inner["at"]["stage"], &inner["at"]["axis"]), (&Value::from("y"), &Value::from("i")));
    assert_eq!((&inner["region"][1]["most"], &inner["region"][0]["start"]), (&Value::from(128), &Value::from("y.i")));
    let mut found = Vec::new();
    fields(&document, "", &mut found);
    fields(&staged, "", &mut found);
    fields(&shared, "", &mut found);
    let parted = json(&["inspect", "roles.rs", "--json"]);
    fields(&parted, "", &mut found);
    let kernel = &parted["kernels"][0];
    assert_eq!(kernel["launch"]["roles"][1]["name"], "math");
    assert_eq!(
        (&kernel["stages"][0]["role"], &kernel["stages"][0]["copies"][0]["role"]),
        (&"math".into(), &"load".into())
    );
    let clusters = json(&["inspect", "clusters.rs", "--json"]);
    fields(&clusters, "", &mut found);
    let multicast = &clusters["kernels"][0]["stages"][0]["copies"][0]["multicast"];
    assert_eq!(*multicast, serde_json::json!({ "along": "c.ic", "blocks": 4, "stride": 1, "by": "j" }));
    let products = json(&["inspect", "products.rs", "--json"]);
    fields(&products, "", &mut found);
    assert_eq!(sorted(found), documented("inspect --json"));
    assert_eq!(document["kernels"].as_array().map(Vec::len), Some(3));
    let saxpy = &document["kernels"][0];
    assert_eq!((&saxpy["name"], &saxpy["line"]), (&Value::from("Saxpy"), &Value::from(5)));
    assert_eq!(saxpy["stages"][0]["vector"]["lanes"], 4);
    let accesses = saxpy["stages"][0]["accesses"].as_array().expect("a list");
    assert!(accesses.iter().all(|a| a["class"] == "vector"), "{accesses:?}");
}

/// What tensor cores multiply, and how they read it.
#[test]
fn inspect_products() {
    let document = json(&["inspect", "products.rs", "--json"]);
    let stage = |kernel: usize, name: &str| {
        let stages = document["kernels"][kernel]["stages"].as_array().expect("a list");
        stages.iter().find(|stage| stage["name"] == name).expect("a stage").clone()
    };
    let shared = |name: &str, along: &str, leading: u32, stride: u32| {
        serde_json::json!({
            "name": name, "element": "bf16", "place": "shared",
            "descriptor": { "along": along, "leading": leading, "stride": stride, "swizzle": 128 },
        })
    };
    let of_warpgroup = stage(0, "acc")["product"].clone();
    let factors = [shared("fa", "k", 16, 1024), shared("sb", "n", 16, 1024)];
    assert_eq!(
        of_warpgroup,
        serde_json::json!({
            "engine": "wgmma", "instruction": { "m": 64, "n": 64, "k": 16 }, "tile": { "m": 128, "n": 64, "k": 64 },
            "steps": 4, "inflight": 1, "factors": factors,
        })
    );
    let all = serde_json::json!({ "count": 4, "transposed": false });
    assert_eq!((&stage(0, "c")["stmatrix"], &stage(0, "c")["product"]), (&all, &Value::Null));
    let of_warp = stage(1, "acc")["product"].clone();
    assert_eq!(of_warp["instruction"], serde_json::json!({ "m": 16, "n": 8, "k": 16 }));
    assert_eq!(of_warp["tile"], serde_json::json!({ "m": 16, "n": 32, "k": 16 }));
    let held =
        |name: &str| serde_json::json!({ "name": name, "element": "f16", "place": "registers", "descriptor": null });
    assert_eq!(of_warp["factors"], serde_json::json!([held("fa"), held("fb")]));
    assert_eq!(stage(1, "fa")["ldmatrix"], all);
}

#[test]
fn run_json_is_documented() {
    let right = json(&["run", "good.rs", "--kernel", "Saxpy", "--dims", "N=64", "--json"]);
    let refused = json(&["run", "good.rs", "--kernel", "Saxpy", "--dims", "N=65", "--json"]);
    let summed = json(&["run", "good.rs", "--kernel", "RowSum", "--dims", "M=4,N=9999", "--json"]);
    let mut found = Vec::new();
    fields(&right, "", &mut found);
    fields(&summed, "", &mut found);
    fields(&refused, "", &mut found);
    let mut documented = documented("run --json");
    // No kernel of ours makes the sanitizers speak.
    documented.retain(|f| !f.contains("faults[]") && !f.contains("warnings[]"));
    assert_eq!(sorted(found), documented);
    assert_eq!((&right["good"], &right["dims"]["N"]), (&Value::from(true), &Value::from(64)));
    assert_eq!(refused["good"], false);
    assert!(refused["runs"][0]["error"].as_str().is_some_and(|e| e.contains("N % 4 == 0")));
    let outputs = |run: usize| &summed["runs"][run]["outputs"][0];
    assert_eq!((&outputs(0)["exact"], &outputs(0)["widest"]), (&Value::from(4), &Value::Null));
    assert_eq!(outputs(1)["exact"], 0);
    assert!(outputs(1)["widest"]["width"].as_f64().is_some_and(|width| width > 0.0));
}

/// A root of a sum of squares and a scalar: drawn below zero, it would make every element NaN.
const ROOT: &str = "tilewright::schedule! { kernel Root(x: f32[N], eps: f32) -> (y: f32[N]) {
    y[i] = x[i] * rsqrt(x[i] * x[i] * 0.0001 + eps);
    schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
} }";

#[test]
fn scalars_are_given_or_drawn_so_that_values_are_finite() {
    let path = file("scalars", ROOT);
    let path = path.to_str().expect("UTF-8");
    for seed in ["0", "1", "2", "3"] {
        let drawn = json(&["run", path, "--dims", "N=40", "--seed", seed, "--json"]);
        for run in drawn["runs"].as_array().expect("runs") {
            assert_eq!((&run["outputs"][0]["nan"], &run["good"]), (&Value::from(0), &Value::from(true)), "{run}");
        }
    }
    let given = json(&["run", path, "--dims", "N=40", "--arg", "eps=-1", "--json"]);
    assert_eq!(given["runs"][0]["scalars"]["eps"], -1.0);
    assert_eq!(given["runs"][0]["outputs"][0]["nan"], 40);
    for (text, why) in [("eps", "NAME=VALUE"), ("x=1", "no scalar `x`: eps"), ("eps=a", "no number of `eps`")] {
        let (code, _, err) = tilewright(&["run", path, "--dims", "N=40", "--arg", text]);
        assert!(code == 2 && err.contains(why), "{code} {err}");
    }
}

/// A table with more rows than integers that are drawn by themselves reach.
const LOOKUP: &str = "tilewright::schedule! { kernel Lookup(ids: u16[T], table: f32[V, D]) -> (y: f32[T, D]) {
    y[t, d] = table[ids[t], d] or -1.0;
    schedule y { split d by 32 -> q, l; bind t, q: grid; bind l: thread; }
} }";

#[test]
fn tensors_have_the_numbers_that_are_given() {
    fn with<'a>(sized: &[&'a str], data: &[&'a str]) -> Vec<&'a str> {
        sized.iter().copied().chain(data.iter().flat_map(|data| ["--data", *data])).collect()
    }
    let path = file("data", LOOKUP);
    let path = path.to_str().expect("UTF-8");
    let sized = ["run", path, "--dims", "T=50,V=20,D=3"];
    let drawn = json(&[&with(&sized, &["table=normal:0.5", "ids=0..20"])[..], &["--json"]].concat());
    assert_eq!((&drawn["good"], &drawn["data"][1]), (&Value::from(true), &Value::from("ids = 0..20")));
    // One launch, since no floats are left to draw.
    assert_eq!(drawn["runs"].as_array().map(Vec::len), Some(1));
    let (code, out, _) = tilewright(&with(&sized, &["ids=900..901"]));
    assert!(code == 0 && out.contains("    data: ids = 900..901\n"), "{out}");
    for (data, why) in [
        ("ids", "data is given as NAME=FROM..TO"),
        ("y=0..1", "kernel Lookup reads no tensor `y`; it reads ids, table"),
        ("ids=-1..3", "u16 has 0 to 65535"),
        ("table=1..x", "`x` is no number"),
    ] {
        let (code, _, err) = tilewright(&with(&sized, &[data]));
        assert!(code == 2 && err.contains(why) && err.contains(data), "{code} {err}");
    }
    let (code, _, err) = tilewright(&with(&sized, &["ids=0..1", "ids=0..2"]));
    assert!(code == 2 && err.contains("`ids` has data already"), "{err}");
}

/// Terms that memory sends to their places: what is promised of the places is so, unless the user says something else,
/// and what the launch fills before is told.
#[test]
fn places_are_as_promised_and_outputs_filled() {
    let path = file(
        "places",
        "tilewright::schedule! {
    kernel Moved(p: u32[N], x: i32[N]) -> (y: i32[M]) {
        y[p[i]] = only(|i| x[i]);
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    }
    kernel Least(p: u32[N], x: i64[N], inout z: i64[M]) -> (y: i64[M]) {
        y[p[i]] = min(|i| x[i]);
        z[p[i]] min= min(|i| x[i]);
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
        schedule z { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    }
}",
    );
    let path = path.to_str().expect("UTF-8");
    let moved = ["run", path, "--kernel", "Moved", "--dims", "N=500,M=300"];
    let (code, out, _) = tilewright(&moved);
    assert!(code == 0 && out.contains("    data: p = distinct\n"), "{out}");
    let (code, out, _) = tilewright(&[&moved[..], &["--data", "p=0..300"]].concat());
    assert!(
        code == 1 && out.contains("has two terms, those of i = ") && out.contains("    data: p = 0..300\n"),
        "{out}"
    );
    // Nobody meets outside.
    let (code, out, _) = tilewright(&[&moved[..], &["--data", "p=300..400"]].concat());
    assert!(code == 0, "{out}");

    let inspected = json(&["inspect", path, "--json"]);
    let fill = |kernel: usize, parameter: usize| &inspected["kernels"][kernel]["parameters"][parameter]["fill"];
    assert_eq!([fill(0, 0), fill(0, 2)], [&Value::Null, &Value::from("0x0")]);
    assert_eq!([fill(1, 2), fill(1, 3)], [&Value::Null, &Value::from("0x7fffffffffffffff")]);

    let cost = ["inspect", path, "--kernel", "Moved", "--cost", "--dims", "N=500,M=300"];
    let (code, out, _) = tilewright(&cost);
    assert!(code == 0 && out.contains("filled before") && out.contains("1200 bytes, not counted below"), "{out}");
    assert_eq!(json(&[&cost[..], &["--json"]].concat())["global"]["filled_bytes"], Value::from(1200));
}

#[test]
fn fixes_are_shown_and_then_done() {
    let text = "tilewright::schedule! { kernel K(x: f32[N]) -> (y: f32[N]) {
    y[i] = 2.0 * x[i];
    schedule y { bind i: grid; split i by 32 -> b, t; bind t: thread; }
} }
";
    let path = file("fixes", text);
    let shown = path.to_str().expect("UTF-8");
    let line = "bind b: grid; bind t: thread; }";
    let (code, out, _) = tilewright(&["check", "--diff", shown]);
    assert!(
        code == 1
            && out.lines().any(|l| l.starts_with('+') && l.ends_with(line))
            && out.contains("1 edit that leaves no choice, not done"),
        "{code}\n{out}"
    );
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), text);
    let (code, out, _) = tilewright(&["check", "--fix", shown]);
    assert!(
        code == 0
            && out.lines().any(|l| l.starts_with('+') && l.ends_with(line))
            && out.contains("0 errors, 0 warnings"),
        "{code}\n{out}"
    );
    let (code, out, _) = tilewright(&["check", "--fix", shown]);
    assert!(code == 0 && out.starts_with("0 edits"), "{code}\n{out}");
}

#[test]
fn a_new_crate_is_written_once() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("new").join("new-crate");
    let _ = std::fs::remove_dir_all(&folder);
    let folder = folder.to_str().expect("UTF-8");
    // The folder from here, in which these tests run, or the one of the repository.
    let (code, _, err) = tilewright(&["new", folder, "--tilewright", "../runtime"]);
    assert!(code == 2 && err.contains("neither in") && err.contains("/cli/tests/runtime\n"), "{code}\n{err}");
    let (code, out, _) = tilewright(&["new", folder, "--tilewright", "../../.."]);
    assert!(code == 0 && out.contains("Cargo.toml") && out.contains("cargo test"), "{code}\n{out}");
    let manifest = std::fs::read_to_string(PathBuf::from(folder).join("Cargo.toml")).expect("it is written");
    let runtime = PathBuf::from(env!("CARGO_MANIFEST_DIR")).with_file_name("runtime");
    assert!(manifest.contains(&format!("tilewright = {{ path = {runtime:?} }}")), "{manifest}");
    let (code, out, _) = tilewright(&["check", &format!("{folder}/src/lib.rs")]);
    assert!(code == 0 && out.contains("0 errors, 0 warnings"), "{code}\n{out}");
    let (code, _, err) = tilewright(&["new", folder]);
    assert!(code == 2 && err.contains("is there already"), "{code}\n{err}");
    assert_eq!(tilewright(&["new", "2d"]).0, 2);
    // Right from the new crate: it stays as it is given.
    let beside = PathBuf::from(folder).with_file_name("tilewright-beside").join("runtime");
    std::fs::create_dir_all(&beside).expect("a folder");
    std::fs::write(beside.join("Cargo.toml"), "[package]\nname = \"tilewright\"\n").expect("it is written");
    std::fs::remove_dir_all(folder).expect("it was there");
    assert_eq!(tilewright(&["new", folder, "--tilewright", "../tilewright-beside/runtime"]).0, 0);
    let manifest = std::fs::read_to_string(PathBuf::from(folder).join("Cargo.toml")).expect("it is written");
    assert!(manifest.contains("tilewright = { path = \"../tilewright-beside/runtime\" }"), "{manifest}");
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "fish", "zsh"] {
        let (code, out, _) = tilewright(&["completions", shell]);
        assert!(
            code == 0 && ["check", "explain", "--fix"].iter().all(|word| out.contains(word.trim_start_matches('-')))
        );
    }
}
