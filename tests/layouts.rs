//! The layout of buffers that threads fill: where elements lie changes no result, only how many cycles their accesses take.

mod support;

use support::{Draw, finished, prove};
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::Code;

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
                split i by 8 -> ir, w; {ops}
            }}
        }}"
    )
}

const PLAIN: &str = "bind w: warp; bind j: thread;";

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
            let (taken, ideal) = run(&source, &kernel, &[64, 64], 1);
            (taken as f64 / ideal as f64, kernel.entries[0].kernel.shared_map().bytes)
        };
        let (plain, bytes) = conflicts(PLAIN);
        assert!(plain > 10.0 && bytes == 4096, "{plain}, {bytes}");
        assert_eq!(conflicts(&format!("{PLAIN} layout [i, j pad 1];")), (1.0, (31 * 33 + 32) * 4));
        assert_eq!(conflicts(&format!("{PLAIN} layout [j, i pad 1];")), (1.0, (31 * 33 + 32) * 4));
    }
}
