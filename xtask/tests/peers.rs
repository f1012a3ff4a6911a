//! The benchmark of the device bundle beside PyTorch and Triton: ours over a CUDA driver library without a GPU
//! (`fake-driver`), the others over stand-ins (`stand_in`). Wants `python3`, or another one in `$TILEWRIGHT_PYTHON`;
//! without it a line is printed and nothing tried.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

fn python() -> Option<String> {
    let python = std::env::var("TILEWRIGHT_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if Command::new(&python).arg("--version").output().is_ok_and(|o| o.status.success()) {
        return Some(python);
    }
    println!("not tried: there is no Python `{python}`");
    None
}

fn executable(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A folder for a run of the benchmark, with the programs and libraries that it finds.
struct Bench {
    python: String,
    folder: PathBuf,
}

/// Rows of small sizes.
fn rows() -> Value {
    json!({ "rows": [
        { "kernel": "Gemm", "dims": { "M": 16, "N": 8, "K": 8 }, "work": "product" },
        { "kernel": "Attention", "dims": { "H": 1, "S": 4, "T": 8 }, "work": "attention" },
        { "kernel": "Softmax", "dims": { "M": 4, "N": 8 }, "work": "softmax" },
    ] })
}

impl Bench {
    fn new(name: &str) -> Option<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("peers-{name}"));
        let bench = Self { python: python()?, folder };
        let _ = fs::remove_dir_all(&bench.folder);
        fs::create_dir_all(&bench.folder).unwrap();
        let test = std::env::current_exe().unwrap();
        let library = test.parent().unwrap().join("libtilewright_fake_driver.so");
        assert!(library.exists(), "{} was not built", library.display());
        std::os::unix::fs::symlink(library, bench.file("libcuda.so.1")).unwrap();
        executable(&bench.file("nvidia-smi"), "#!/bin/sh\necho '1755, 612.50, [N/A]'\n");
        // What is asked for is noted in the same file as the launches of the stand-ins.
        executable(
            &bench.file("program"),
            &format!(
                "#!/bin/bash\nLD_LIBRARY_PATH={} exec {} \"$@\" \\\n\
                 < <(while read -r line; do echo \"ours $line\" >>\"$STAND_IN_LOG\"; echo \"$line\"; done)\n",
                bench.folder.display(),
                env!("CARGO_BIN_EXE_device-check")
            ),
        );
        fs::write(bench.file("rows.json"), rows().to_string()).unwrap();
        Some(bench)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand_in"));
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("STAND_IN_LOG", self.file("log")).env("STAND_IN_CACHE", "512");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.folder.display()));
        command
    }

    fn run(&self, options: &[&str], variables: &[(&str, &str)]) -> (Output, String, Value) {
        let (source, json) =
            (Path::new(env!("CARGO_MANIFEST_DIR")).join("src/device/peers.py"), self.file("found.json"));
        let mut command = self.command();
        command.arg(source).arg("--json").arg(&json).args(["--seconds", "0.3"]).args(options);
        command.arg(self.file("rows.json")).arg(self.file("program"));
        command.args(["gemm.rs", "attention.rs", "softmax.rs"].map(|file| xtask::root().join("examples").join(file)));
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let found = fs::read_to_string(json).ok().and_then(|text| serde_json::from_str(&text).ok());
        (output, text, found.unwrap_or_default())
    }
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

/// Who may be in a row, apart from ours and the copy.
const WAYS: [&[(&str, &str)]; 3] = [
    &[
        ("PyTorch", "default"),
        ("PyTorch", "cuBLASLt"),
        ("Triton", "descriptors, 128 x 256"),
        ("Triton", "descriptors, 128 x 128"),
        ("Triton", "descriptors, 64 x 128"),
        ("Triton", "pointers"),
    ],
    &[("PyTorch", "FlashAttention"), ("PyTorch", "cuDNN"), ("Triton", "pointers")],
    &[("PyTorch", "default"), ("Triton", "pointers")],
];

#[test]
fn all_take_turns_over_several_sets_of_memory() {
    let Some(bench) = Bench::new("turns") else { return };
    let (output, text, found) = bench.run(&[], &[]);
    assert!(output.status.success() && found["not_timed"] == json!([]), "{text}");
    let rows = list(&found["rows"]);
    assert_eq!((rows.len(), found["cache_bytes"].as_u64()), (3, Some(512)), "{text}");
    for (row, expected) in rows.iter().zip(WAYS) {
        let ways = list(&row["ways"]);
        let names: Vec<_> = ways.iter().map(|w| (w["peer"].as_str().unwrap(), w["by"].as_str().unwrap())).collect();
        let all: Vec<_> = [("ours", ""), ("copy", "")].into_iter().chain(expected.iter().copied()).collect();
        assert_eq!(names, all, "{text}");
        let (rounds, sets) = (row["rounds"].as_u64().unwrap(), row["sets"].as_u64().unwrap());
        assert!(rounds >= 2 && sets >= 2 && sets * row["set_bytes"].as_u64().unwrap() >= 1024, "{row}");
        for way in ways {
            let mut samples: Vec<f64> = list(&way["samples"]).iter().map(number).collect();
            assert_eq!(samples.len() as u64, rounds);
            samples.sort_by(f64::total_cmp);
            let middle = [(samples.len() - 1) / 2, samples.len() / 2].map(|at| samples[at]);
            assert!((number(&way["median"]) - (middle[0] + middle[1]) / 2.0).abs() < 1e-12, "{way}");
        }
        // The fastest way stands for its peer.
        for peer in ["PyTorch", "Triton"] {
            let of = ways.iter().filter(|w| w["peer"] == peer).map(|w| number(&w["median"]));
            assert_eq!(number(&row[peer]), of.fold(f64::INFINITY, f64::min), "{row}");
        }
        assert_eq!(
            row["clocks"]["sm_megahertz"],
            json!({ "least": 1755.0, "median": 1755.0, "most": 1755.0 }),
            "{row}"
        );
        assert!(number(&row["clocks"]["watts"]["median"]) == 612.5 && row["clocks"]["celsius"].is_null(), "{row}");
    }
    let by = |row: usize, peer: &str| rows[row]["by"][peer].as_str().unwrap();
    assert_eq!((by(0, "PyTorch"), by(1, "PyTorch"), by(2, "PyTorch")), ("cuBLASLt", "cuDNN", "default"));
    assert!(by(0, "Triton").starts_with("descriptors"), "{text}");
    // A launch takes 4 ms there, and ours some operations of the driver.
    assert_eq!((number(&rows[0]["PyTorch"]), number(&rows[0]["copy"])), (4e-3, 1e-3));

    // The order of samples and of launches, as it was.
    let log = fs::read_to_string(bench.file("log")).unwrap();
    let samples = samples_of(&log);
    for work in ["matmul by default", "matmul by cublaslt", "_persistent_product", "_product", "attention by cudnn"] {
        assert!(samples.iter().any(|sample| sample.first().is_some_and(|launch| launch.0 == work)), "{work}: {log}");
    }
    for sample in &samples {
        assert!(sample.len() > 1, "{log}");
        let works: BTreeSet<_> = sample.iter().map(|launch| launch.0).collect();
        assert_eq!(works.len(), 1, "{sample:?}");
        assert!(sample.windows(2).all(|pair| pair[0].1 != pair[1].1), "memory of the launch before: {sample:?}");
    }
    // All take a sample once in a round, and another one begins each round; before them all take one that is not told.
    let (product, _) = log.split_once("attention by").unwrap();
    let (mut events, mut is_ours) = (0, Vec::new());
    for line in product.lines() {
        events += usize::from(line == "event");
        if line.starts_with("ours") {
            is_ours.push(true);
        } else if line == "event" && events % 2 == 0 {
            is_ours.push(false);
        }
    }
    let rounds: Vec<_> = is_ours.chunks_exact(8).collect();
    assert_eq!(rounds.len() as u64, 1 + rows[0]["rounds"].as_u64().unwrap(), "{log}");
    assert!(rounds[0][0] && rounds.iter().all(|round| round.iter().filter(|ours| **ours).count() == 1), "{log}");
    for (turn, round) in rounds[1..].iter().enumerate() {
        assert!(round[(8 - turn % 8) % 8], "round {turn}: {log}");
    }
}

/// The launches of each sample, the one before its first event too: what is launched, and the number of its memory.
fn samples_of(log: &str) -> Vec<Vec<(&str, u32)>> {
    let (mut samples, mut launches, mut is_open) = (Vec::new(), Vec::new(), false);
    for line in log.lines().filter(|line| !line.starts_with("ours")) {
        if line != "event" {
            let (work, memory) = line.rsplit_once(' ').unwrap();
            launches.push((work, memory.parse().unwrap()));
        } else if is_open {
            samples.push(std::mem::take(&mut launches));
            is_open = false;
        } else {
            // What was launched to try all ways is none of a sample.
            launches.drain(..launches.len() - 1);
            is_open = true;
        }
    }
    samples
}

#[test]
fn goals_are_met_or_not() {
    let Some(bench) = Bench::new("goals") else { return };
    for (cost, met) in [("1000", true), ("0.001", false)] {
        let (output, text, found) = bench.run(&["--only", "product,attention"], &[("STAND_IN_COST", cost)]);
        assert!(output.status.success(), "{text}");
        assert_eq!(list(&found["rows"]).len(), 2, "{text}");
        let goals: Vec<_> = list(&found["summaries"]).iter().filter(|s| !s["goal"].is_null()).collect();
        assert_eq!(goals.len(), 2, "{text}");
        for goal in goals {
            assert_eq!(goal["met"], json!(met), "{text}");
        }
        assert!(text.contains(if met { "the goal is 0.97: met" } else { "the goal is 0.97: NOT MET" }), "{text}");
    }
}

/// Means and goals of rows whose ratios are known.
#[test]
fn means_are_geometric_and_need_every_row() {
    let Some(bench) = Bench::new("means") else { return };
    let code = "\
import json, sys
sys.path.insert(0, sys.argv[1])
from peers import summaries
dims = lambda m: {'K': 8192, 'M': m, 'N': 8192}
wanted = [{'work': 'product', 'dims': dims(m)} for m in (8192, 16)] + [{'work': 'causal_attention', 'dims': {'G': 1, 'S': 2}}]
row = lambda m, p: {'work': 'product', 'dims': dims(m), 'ours': 1.0, 'PyTorch': p}
both = [row(8192, 0.99), row(16, 0.96), {'work': 'causal_attention', 'dims': {}, 'ours': 2.0, 'PyTorch': 8.0, 'Triton': 3.0}]
print(json.dumps([summaries(both, wanted), summaries(both[:1], wanted)]))
";
    let mut command = bench.command();
    let output =
        command.arg("-c").arg(code).arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/device")).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
    let told = |at: usize, summary: usize| &found[at][summary];
    let mean = |at: usize, summary: usize| number(&told(at, summary)["geometric_mean"]);
    assert!((mean(0, 0) - 0.99).abs() < 1e-12 && told(0, 0)["met"] == json!(false), "{found}");
    assert!((mean(0, 1) - (0.99_f64 * 0.96).sqrt()).abs() < 1e-12 && told(0, 1)["met"] == json!(true), "{found}");
    assert!(told(0, 2)["geometric_mean"].is_null() && told(0, 2)["timed"] == json!(0), "{found}");
    assert!((mean(0, 3) - 1.5).abs() < 1e-12 && told(0, 3)["met"] == json!(true), "{found}");
    assert!((mean(0, 4) - 4.0).abs() < 1e-12, "{found}");
    assert_eq!((&told(1, 1)["met"], &told(1, 1)["of"]), (&Value::Null, &json!(2)), "{found}");
    assert_eq!((&told(1, 3)["met"], &told(1, 0)["met"]), (&Value::Null, &json!(false)), "{found}");
}

#[test]
fn what_is_not_there_or_wrong_is_not_timed() {
    let Some(bench) = Bench::new("missing") else { return };
    let (output, text, found) = bench.run(&["--only", "product"], &[("STAND_IN_OLD", "1")]);
    assert!(output.status.success(), "{text}");
    let row = &found["rows"][0];
    assert_eq!(row["by"], json!({ "PyTorch": "default", "Triton": "pointers" }), "{text}");
    assert!(text.contains("this Triton has no tensor descriptors"), "{text}");

    let (output, text, found) = bench.run(&["--only", "product"], &[("STAND_IN_WRONG", "_persistent_product")]);
    assert!(output.status.success(), "{text}");
    assert_eq!(found["rows"][0]["by"]["Triton"], json!("pointers"), "{text}");
    assert_eq!(list(&found["not_timed"]).len(), 3, "{text}");
    assert!(text.contains("Triton (descriptors, 64 x 128), product: its result is wrong"), "{text}");

    // What another way has left in the same memory is no result of this one.
    let (output, text, found) = bench.run(&["--only", "product"], &[("STAND_IN_IDLE", "_product")]);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("Triton (pointers), product: its result is wrong"), "{text}");
    assert_eq!(list(&found["rows"][0]["ways"]).len(), 7, "{text}");

    executable(&bench.file("nvidia-smi"), "#!/bin/sh\necho denied >&2\nexit 4\n");
    let (output, text, found) = bench.run(&["--only", "softmax"], &[]);
    assert!(
        output.status.success() && text.contains("clocks: nvidia-smi: RuntimeError: exit code 4: denied"),
        "{text}"
    );
    assert_eq!(found["rows"][0]["clocks"], json!({ "readings": 0 }), "{text}");

    let (output, text, found) = bench.run(&["--budget", "0"], &[]);
    assert!(output.status.success() && list(&found["rows"]).is_empty(), "{text}");
    assert!(text.contains("not timed: Softmax M=4,N=8: 0 s were over"), "{text}");
}

#[test]
fn failures_are_told() {
    let Some(bench) = Bench::new("failures") else { return };
    let rows = json!({ "rows": [
        { "kernel": "Nothing", "dims": { "M": 4, "N": 8 }, "work": "softmax" },
        { "kernel": "Softmax", "dims": { "M": 4, "N": 7 }, "work": "softmax" },
        { "kernel": "Softmax", "dims": { "M": 4, "N": 8 }, "work": "softmax" },
    ] });
    fs::write(bench.file("rows.json"), rows.to_string()).unwrap();
    let (output, text, found) = bench.run(&[], &[]);
    assert_eq!((output.status.code(), list(&found["rows"]).len()), (Some(1), 1), "{text}");
    let failed = list(&found["failed"]);
    assert_eq!(failed.len(), 2, "{text}");
    assert!(failed[0].as_str().unwrap().contains("there is no kernel `Nothing`"), "{text}");
    assert!(failed[1].as_str().unwrap().contains("Softmax M=4,N=7"), "{text}");

    let (output, text, _) = bench.run(&[], &[("STAND_IN_NO_GPU", "1")]);
    assert_eq!((output.status.code(), text.trim()), (Some(3), "no peers: torch finds no GPU"));
    let (output, text, _) = bench.run(&["--seconds", "few"], &[]);
    assert!(output.status.code() == Some(2) && text.contains("invalid float value: 'few'"), "{text}");

    let usage = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_device-check")).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (arguments, told) in [
        (&["--serve"][..], "--serve needs --row"),
        (&["--row", "Softmax", "M=4", "--cache", "many"], "--cache needs a number of bytes"),
    ] {
        let (code, text) = usage(arguments);
        assert!(code == Some(2) && text.contains(told), "{text}");
    }
}
