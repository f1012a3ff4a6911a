//! Attention through `tilewright emulate`, against NumPy in float64: what a kernel computes is told by neither the
//! macro nor `reference()`. Wants `python3` with NumPy, or another one in `$TILEWRIGHT_PYTHON`; without it a line is
//! printed.

use std::path::Path;
use std::process::Command;

use tilewright::kernel::info::{Argument, Entry};
use tilewright::kernel::tensor_map::Swizzle;
use tilewright_compiler::compile;
use tilewright_compiler::source::TokenBuffer;
use tilewright_kernel::KernelInfo;

/// Scores of 64 terms, and as many columns; `of` is the range of the terms.
fn attention(rows: &str, of: &str) -> String {
    format!(
        "kernel Attention(q: bf16[{rows}, 64], k: bf16[N, 64], v: bf16[N, 64]) -> (y: f32[{rows}, 64]) {{
            s[i, j] = dot(|d| q[i, d] * k[j, d]);
            m[i] = max(|j{of}| s[i, j]);
            p[i, j] = approx::exp2(0.18 * (s[i, j] - m[i]));
            pb[i, j] = p[i, j] as bf16;
            l[i] = online sum(|j{of}| p[i, j]);
            a[i, e] = online dot(|j{of}| pb[i, j] * v[j, e]);
            y[i, e] = a[i, e] / l[i];
            schedule y {{
                split i by 64 -> it, i1; bind it: grid; reorder it, i1, e; fragment (i1, e) by wgmma; vectorize e_p;
            }}
            schedule m in registers at y.it {{
                split j by 64 -> jo, j1; fragment (i, j1) by wgmma; online m -> l, a over jo;
            }}
            schedule a in registers at m.jo {{ mma (i, e, j) by wgmma; }}
            schedule pb in registers at m.jo {{ fragment (i, j) by wgmma; }}
            schedule p in registers at m.jo {{ fragment (i, j) by wgmma; }}
            schedule s in registers at m.jo {{ mma (i, j, d) by wgmma; }}
            stage sq[i, d] = q in shared at y.it via tma {{ layout [i, d] swizzle 128; }}
            stage sk[j, d] = k in shared at m.jo ring(2) via tma {{ layout [j, d] swizzle 128; }}
            stage sv[j, e] = v in shared at m.jo ring(2) via tma {{ layout [j, e] swizzle 128; }}
        }}"
    )
}

fn compiled(source: &str) -> KernelInfo {
    let (tokens, _) = TokenBuffer::new(source.parse().expect("Rust tokens"));
    let mut outcome = compile(&tokens);
    assert!(!outcome.diagnostics.has_errors(), "{source}\n{:?}", outcome.diagnostics.found());
    outcome.kernels.pop().and_then(|kernel| kernel.info).expect("a kernel")
}

/// A parameter, as the command takes it. Tensors are files of their names.
fn argument(info: &KernelInfo, argument: Argument, dims: &[i64]) -> String {
    match argument {
        Argument::Address(parameter) => match &*info.parameters[usize::from(parameter)].name {
            "y" => format!("out:f32[{},64]=y.npy", dims[0]),
            name => format!("in:{name}.npy"),
        },
        Argument::Dim(dim) => format!("s64:{}", dims[usize::from(dim)]),
        Argument::Map(map) => {
            let map = &info.maps[usize::from(map)];
            let extents: Vec<String> = map.dimensions.iter().rev().map(|d| d.box_size.to_string()).collect();
            assert!(map.swizzle == Swizzle::B128 && extents.len() == 2, "{map:?}");
            format!("map:{},swizzle128:in:{}.npy", extents.join("x"), info.parameters[usize::from(map.parameter)].name)
        }
        other => panic!("{other:?}"),
    }
}

fn emulate(folder: &Path, info: &KernelInfo, entry: &Entry, dims: &[i64]) {
    std::fs::write(folder.join("k.ptx"), &*info.ptx.text).unwrap();
    let blocks = info.launch.blocks.eval(dims).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.current_dir(folder).args(["emulate", "k.ptx", "--entry", &entry.name]);
    command.args(["--grid", &blocks.to_string(), "--block", &info.launch.threads.to_string()]);
    command.args(["--shared", &entry.shared_bytes.to_string(), "--seed", "3"]);
    for parameter in info.arguments_of(entry) {
        command.args(["--arg", &argument(info, parameter, dims)]);
    }
    let output = command.output().unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success() && out.starts_with("no findings"), "{command:?}\n{out}{err}");
}

#[test]
fn attention_is_that_of_numpy() {
    let python = std::env::var("TILEWRIGHT_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_numpy = Command::new(&python).args(["-c", "import numpy"]).output().is_ok_and(|o| o.status.success());
    if !has_numpy {
        println!("not tried: {python} has no NumPy");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attention.py");
    let python = |arguments: &[&str]| {
        let output = Command::new(&python).arg(&script).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text)
    };
    // Rows and terms: whole blocks, ragged ones, and one of each.
    let cases: [(&str, &[[i64; 2]]); 2] =
        [("plain", &[[64, 128], [70, 100], [3, 65], [1, 1], [5, 1]]), ("causal", &[[128, 128], [75, 75], [1, 1]])];
    for (kind, sizes) in cases {
        let source = if kind == "plain" { attention("M", "") } else { attention("N", " in 0..=i") };
        let info = compiled(&source);
        for (number, [m, n]) in sizes.iter().enumerate() {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("numpy_{kind}_{number}"));
            std::fs::create_dir_all(&folder).unwrap();
            let at = folder.to_str().unwrap();
            let seed = (100 * m + n).to_string();
            let made = python(&["make", at, &m.to_string(), &n.to_string(), "64", "64", &seed]);
            assert_eq!(made.0, Some(0), "{}", made.1);
            let dims: Vec<i64> = if kind == "plain" { vec![*m, *n] } else { vec![*n] };
            let entry = info.entries.iter().find(|entry| entry.takes_maps).expect("one with tensor cores");
            emulate(&folder, &info, entry, &dims);
            let (code, said) = python(&["check", at, kind, "0.18"]);
            assert_eq!(code, Some(0), "{kind}, {m} rows, {n} terms: {said}");
            // The same result is none of other equations.
            for (kind, scale) in [(kind, "0.2"), (if kind == "plain" { "causal" } else { "plain" }, "0.18")] {
                if *n > 1 && *m > 1 {
                    assert_eq!(python(&["check", at, kind, scale]).0, Some(1), "{kind} {scale}");
                }
            }
        }
    }
}
