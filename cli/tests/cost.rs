//! `tilewright inspect --cost` as its users meet it.

mod common;

use std::path::PathBuf;
use std::process::Command;

use expect_test::{Expect, expect};
use serde_json::Value;
use tilewright_cli::cost::gpu::GPUS;

use common::{documented, fields, json, sorted, tilewright};

fn check(arguments: &[&str], expected: &Expect) {
    let (code, out, err) = tilewright(&[&["inspect", "--cost"], arguments].concat());
    let errors = if err.is_empty() { String::new() } else { format!("--- errors\n{err}") };
    expected.assert_eq(&format!("exit code {code}\n{out}{errors}"));
}

#[test]
fn saxpy_is_limited_by_memory() {
    check(
        &["../../../examples/saxpy.rs", "--dims", "N=1000000"],
        &expect![[r#"
            exit code 0
            == Saxpy (../../../examples/saxpy.rs:9) on H200 SXM, compute capability 9.0
                N = 1000000
            launch of entry Saxpy
                blocks                 977 of 256 threads
                registers              not known: neither PTXAS nor PATH has NVIDIA's assembler ptxas
                shared memory          0 bytes static, 0 dynamic
                occupancy              at most 8 blocks a multiprocessor, 64 of 64 warps; limited by threads
                waves                  0.925 of 1056 blocks at one time, the last 93 % full
            counts of all blocks, alike for two sets of data
              global memory
                least                  8000000 bytes read, 4000000 written
                asked                  8000000 bytes loaded, 4000000 stored
                sectors of 32 bytes    375000, at best 375000; 16.0 for each of 23439 requests
              operations
                f32                    2000000 by 2000000 instructions of a thread
                intensity              0.167 a byte of least, 0.167 of asked
            bounds in microseconds, with cold caches: it takes no less, and each is used no more
                device memory, least        2.50  100 % of its peak
                device memory, asked        2.50  100 % of its peak
                f32                       0.0598    2 % of its peak
                limit                  device memory, least, 2.50 µs
                without hits in L2     device memory, asked, 2.50 µs
                assumed                registers limit nothing
                not known              latencies, hits in L2, instructions that are no arithmetic, the clock under load
        "#]],
    );
}

#[test]
fn a_product_is_limited_by_tensor_cores() {
    check(
        &["../../../examples/gemm.rs", "--kernel", "Gemm", "--dims", "M=1000,N=1024,K=4096", "--gpu", "H100"],
        &expect![[r#"
            exit code 0
            == Gemm (../../../examples/gemm.rs:8) on H100 SXM5, compute capability 9.0
                M = 1000, K = 4096, N = 1024
            launch of entry Gemm
                blocks                 32 of 384 threads in clusters of 2
                registers              not known: neither PTXAS nor PATH has NVIDIA's assembler ptxas
                shared memory          0 bytes static, 229440 dynamic
                occupancy              at most 1 block a multiprocessor, 12 of 64 warps; limited by shared memory
                waves                  persistent: 16 tiles, 1.00 for each cluster, the last turn 24 % full
                multiprocessors        32 of 132 have a block
            counts of all blocks, alike for two sets of data
              global memory
                least                  16580608 bytes read, 2048000 written
                asked                  66322432 bytes loaded, 2048000 stored
                sectors of 32 bytes    2136576, at best 2136576; 506 for each of 4224 requests
                of these bulk loads    4096 copies of 67108864 bytes, 66322432 inside the tensor, 100663296 by receiver
                of these bulk stores   128 copies of 2097152 bytes, 2048000 inside the tensor
              shared memory
                asked                  169820160 bytes loaded, 102760448 stored
                wavefronts             2129920, at best 2129920; 20.4 for each of 104576 requests
                bank conflicts         0 wavefronts
              operations
                tensor cores, half     8589934592
                intensity              461 a byte of least, 126 of asked
            bounds in microseconds, with cold caches: it takes no less, and each is used no more
                device memory, least        5.56   16 % of its peak
                device memory, asked        20.4   57 % of its peak
                tensor cores, half          35.8  100 % of its peak
                shared memory               33.6   94 % of its peak
                limit                  tensor cores, half, 35.8 µs
                assumed                registers limit nothing
                assumed                clusters always find multiprocessors that are free together
                assumed                a warpgroup's product reads rows in shared memory once, and columns once for all its warps
                not known              latencies, hits in L2, instructions that are no arithmetic, the clock under load
        "#]],
    );
}

/// Blocks that do not run are told, and the numbers are nearly those of a launch that runs whole.
#[test]
fn what_was_not_counted_is_told() {
    let cost = |budget: &str| {
        let dims = ["--dims", "N=300000", "--budget", budget];
        json(&[&["inspect", "good.rs", "--kernel", "Saxpy", "--cost", "--json"], &dims[..]].concat())
    };
    let (some, all) = (cost("3000"), cost("1000000000"));
    assert_eq!((&some["exact"], &all["exact"]), (&Value::from(false), &Value::from(true)));
    let why = some["estimated_because"][0].as_str().unwrap();
    assert!(
        why.ends_with("of 1172 blocks were counted, with 84 to 96 sectors and 448 to 512 operations each"),
        "{why}"
    );
    assert_eq!((&some["sample"]["of"], &all["sample"]), (&Value::from(1172), &Value::Null));
    assert_eq!((&some["global"], &some["operations"]), (&all["global"], &all["operations"]));
    check(
        &["good.rs", "--kernel", "Saxpy", "--dims", "N=300000", "--budget", "10"],
        &expect![[r#"
        exit code 1
        --- errors
        error: one block of kernel Saxpy, or one cluster, has not ended after 10 warp instructions: `--budget` allows more
    "#]],
    );
}

#[test]
fn boxes_are_counted_whole_and_clipped() {
    let all = json(&["inspect", "staged.rs", "--kernel", "RowSum", "--cost", "--json", "--dims", "M=40,K=40"]);
    let loads = &all["global"]["bulk_loads"];
    let [copies, whole, inside] = ["copies", "whole_bytes", "bytes"].map(|name| loads[name].as_u64().unwrap());
    // Two by two boxes of 32 × 32 elements of 4 bytes.
    assert_eq!((copies, whole, inside), (4, 4 * 4096, 40 * 40 * 4), "{all:#}");
    assert_eq!(all["global"]["least"]["bytes_read"].as_u64(), Some(40 * 40 * 4));
}

#[test]
fn what_is_wrong_is_named() {
    check(
        &["good.rs", "--dims", "N=8"],
        &expect![[r#"
        exit code 2
        --- errors
        error: good.rs has 3 kernels: add --kernel with one of Saxpy, RowSum, Half
    "#]],
    );
    check(
        &["good.rs", "--kernel", "Saxpy", "--dims", "N=8", "--gpu", "v100"],
        &expect![[r#"
        exit code 2
        --- errors
        error: no GPU is known as `v100`; there are a100, h100, h200, l40s, rtx4090
    "#]],
    );
    check(
        &["good.rs", "--kernel", "Saxpy", "--dims", "N=8", "--arg", "b=1"],
        &expect![[r#"
        exit code 2
        --- errors
        error: kernel Saxpy has no scalar `b`: a
    "#]],
    );
    check(
        &["good.rs", "--kernel", "Saxpy", "--dims", "N=7"],
        &expect![[r#"
        exit code 1
        --- errors
        error: kernel Saxpy was not launched: the fact `N % 4 == 0` does not hold with N = 7, where N % 4 = 3
    "#]],
    );
    check(
        &["good.rs", "--kernel", "Saxpy", "--dims", "N=0"],
        &expect![[r#"
        exit code 2
        --- errors
        error: kernel Saxpy computes nothing at these sizes: its outputs are empty
    "#]],
    );
    check(
        &["good.rs", "--kernel", "Saxpy", "--dims", "N=100_000_000_000"],
        &expect![[r#"
        exit code 2
        --- errors
        error: the tensors take 2400000000000 bytes; at most 4294967296 are tried
    "#]],
    );
    check(
        &["products.rs", "--kernel", "Scaled", "--dims", "M=8,N=8,K=8", "--gpu", "a100"],
        &expect![[r#"
        exit code 2
        --- errors
        error: kernel Scaled is for sm_90a, compute capability 9.0 only, and A100 SXM4 80 GB has 8.0: try h100, h200
    "#]],
    );
    // What belongs to `--cost` is not taken without it.
    let (code, _, err) = tilewright(&["inspect", "good.rs", "--dims", "N=8"]);
    assert!(code == 2 && err.contains("--cost"), "{err}");
    let (code, _, err) = tilewright(&["inspect", "wrong.rs", "--kernel", "Saxpy", "--cost", "--dims", "N=8"]);
    assert!(code == 1 && err.contains("TW0201"), "{err}");
}

#[test]
fn a_block_that_does_not_fit_is_said() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("large");
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("kernel.rs");
    let text = "tilewright::schedule! { kernel Rows(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0, N <= 32768 {
        s[i] = sum(|j| x[i, j]); y[i, j] = x[i, j] - s[i];
        launch threads(256);
        schedule y { bind i: grid; split j by 4 -> jo, v; split jo by 256 -> r, t; bind t: thread; vectorize v; }
        stage xs[i, j] = x in shared at y.i via cp_async { like y; }
        schedule s in registers at y.i { like y; reduce t; } } }";
    std::fs::write(&path, text).expect("a file");
    let path = path.to_string_lossy();
    let (code, _, err) = tilewright(&["inspect", &path, "--cost", "--dims", "M=3,N=4096", "--gpu", "rtx4090"]);
    let expected = "error: a block of kernel Rows does not fit on GeForce RTX 4090: it has 256 threads and 131104 bytes of \
        shared memory, and a block can have 101376 bytes there\n";
    assert_eq!((code, &*err), (1, expected));
    let (code, out, _) = tilewright(&["inspect", &path, "--cost", "--dims", "M=3,N=4096", "--gpu", "a100"]);
    assert!(code == 0 && out.contains("limited by shared memory"), "{out}");
}

#[test]
fn every_gpu_is_named_where_users_look() {
    let (_, help, _) = tilewright(&["inspect", "--help"]);
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/cost.md");
    let page = std::fs::read_to_string(page).expect("docs/cost.md");
    for gpu in &GPUS {
        assert!(help.contains(gpu.name), "{help}");
        assert!(page.contains(&format!("`{}`", gpu.name)), "docs/cost.md has no {}", gpu.name);
    }
}

#[test]
fn cost_json_is_documented() {
    let mut found = Vec::new();
    let product = ["products.rs", "--kernel", "Scaled", "--dims", "M=128,N=64,K=64"];
    for rest in [&["good.rs", "--kernel", "Saxpy", "--dims", "N=300000", "--budget", "3000"][..], &product] {
        let document = json(&[&["inspect", "--cost", "--json"], rest].concat());
        fields(&document, "", &mut found);
    }
    assert_eq!(sorted(found), documented("inspect --cost --json"));
}

/// With an assembler: registers, and what they allow.
#[test]
fn registers_are_those_of_the_assembler() {
    let Some(ptxas) = std::env::var_os("PTXAS").filter(|path| !path.is_empty()) else {
        println!("skipped: PTXAS is not set (the path of NVIDIA's assembler)");
        return;
    };
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernels");
    let run = |ptxas: &std::ffi::OsStr, gpu: &str| -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_tilewright"))
            .args(["inspect", "good.rs", "--kernel", "Saxpy", "--cost", "--json", "--dims", "N=1000", "--gpu", gpu])
            .env("PTXAS", ptxas)
            .current_dir(&folder)
            .output()
            .expect("the command starts");
        serde_json::from_slice(&output.stdout).expect("a document")
    };
    for (gpu, target) in [("a100", "sm_80"), ("l40s", "sm_89"), ("h200", "sm_90")] {
        let launch = &run(&ptxas, gpu)["launch"];
        assert_eq!((launch["assembled_for"].as_str(), launch["spill_loads"].as_u64()), (Some(target), Some(0)));
        let registers = launch["registers"].as_u64().expect("registers");
        assert!((8..64).contains(&registers), "{launch:#}");
        let allows = &launch["occupancy"]["allows"][0];
        assert_eq!((&allows["limit"], allows["blocks"].as_u64() > Some(8)), (&Value::from("registers"), true));
    }
    let launch = &run("no/such/assembler".as_ref(), "h200")["launch"];
    assert!(launch["registers"].is_null() && launch["occupancy"]["allows"][0]["limit"] != "registers", "{launch:#}");
    let why = launch["not_assembled_because"].as_str().expect("a reason");
    assert!(why.contains("no/such/assembler"), "{why}");
}
