//! Launches that may begin before the one before them has ended: every access of memory of the device comes after
//! the wait for that, in each entry point. The separate checker and the emulator find a kernel that does not wait, each
//! by itself.

use crate::support::{finished, runs};
use tilewright::kernel::info::KernelInfo;
use tilewright::{Device, EmulatorOptions, Error};
use tilewright_cli::trial::Trial;
use tilewright_compiler::kernel_ir::StatementKind;
use tilewright_compiler::proof::{Kind, Launch, Verdict, check};

const SIZES: &[&[i64]] = &[&[1, 4], &[3, 36], &[5, 100], &[4, 64]];

const KERNELS: [&str; 6] = [
    "kernel Add(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N]) {
        z[i, j] = x[i, j] + y[i, j];
        launch dependent;
        schedule z { split j by 32 -> b, t; bind i, b: grid; bind t: thread; }
    }",
    "kernel Sums(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        launch dependent, persistent, threads(64);
        schedule y { bind i: grid; split j by 64 -> r, t; bind t: thread; reduce t; }
    }",
    "kernel Tiles(x: f32[M, N]) -> (z: f32[M, N]) where N % 4 == 0 {
        z[i, j] = x[i, j] * 2.0;
        launch dependent, threads(32);
        stage xs[i, j] = x in shared at z.r ring(2) via tma { box j by 32 -> jc, jj; }
        stage zs[i, j] = z in shared at z.r ring(2) via tma { box j by 32 -> jc, jj; }
        schedule z { bind i: grid; split j by 32 -> r, t; bind t: thread; }
    }",
    "kernel Fetched(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j] * x[i, j]);
        launch dependent, threads(64);
        stage xs[i, j] = x in shared at y.r ring(3) via cp_async { bind j: thread; }
        schedule y { bind i: grid; split j by 64 -> r, t; bind t: thread; reduce t; }
    }",
    "kernel All(x: f32[M, N]) -> (y: f32[]) {
        y[] = sum(|i, j| x[i, j]);
        launch dependent, threads(32);
        schedule y { bind i: grid; split j by 32 -> r, t; bind t: thread; reduce t; reduce i by grid; }
    }",
    "kernel Clusters(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        launch dependent, cluster(2), threads(32);
        schedule y {
            bind i: grid; split j into 2 -> c, jc; bind c: cta; split jc by 32 -> r, t; bind t: thread; reduce t; reduce c;
        }
    }",
];

/// The same kernel with other PTX.
fn with_text(info: &KernelInfo, text: String) -> KernelInfo {
    let mut other = info.clone();
    other.ptx.text = text.into();
    other
}

#[test]
fn every_access_comes_behind_the_wait() {
    for source in KERNELS {
        let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
        runs(source, &kernel, SIZES, 2);
        let info = kernel.info.as_ref().expect("no error");
        assert!(info.launch.dependent && info.explanation.contains("dependent: "), "{}", info.explanation);
        assert!(info.ptx.capability >= (9, 0), "{}", info.ptx.target);
        let entries = kernel.entries.len();
        for word in ["griddepcontrol.wait;", "griddepcontrol.launch_dependents;"] {
            assert_eq!(info.ptx.text.matches(word).count(), entries, "{source}\n{}", info.ptx.text);
        }
    }
}

#[test]
fn a_kernel_that_does_not_wait_is_found() {
    for source in KERNELS {
        let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
        let info = kernel.info.as_ref().expect("no error");
        let dims = [3, 36];
        // In the program.
        let launch = Launch::new(info, &dims).expect("a launch");
        for entry in &kernel.entries {
            let mut mutant = entry.kernel.clone();
            mutant.regions[0].statements.retain(|s| s.kind != StatementKind::GridDependencyWait);
            let Verdict::Violated(found) = check(&mutant, &launch, 1_000_000) else { panic!("{source}\n{mutant}") };
            assert_eq!(found.kind, Kind::BeforeWait, "{found}");
        }
        // In the text.
        let mutant = with_text(info, info.ptx.text.replace("griddepcontrol.wait;", ""));
        for seed in 0..4 {
            let device = Device::emulator(EmulatorOptions::default().seed(seed));
            let outcome = Trial::new(&mutant, &dims, seed, &device).expect("a trial").run(&device);
            match outcome.failure {
                Some(Error::Emulation(fault)) => assert_eq!(fault.kind, "BeforeWait", "{source}: {}", fault.message),
                other => panic!("{source}: {other:?}"),
            }
        }
        // A launch that is not dependent need not wait.
        let mut alone = mutant.clone();
        alone.launch.dependent = false;
        let device = Device::emulator(EmulatorOptions::default());
        assert!(Trial::new(&alone, &dims, 1, &device).expect("a trial").run(&device).is_good(), "{source}");
    }
}

/// One warp that waits is not enough.
#[test]
fn each_thread_waits() {
    let kernel = finished(KERNELS[1]).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    let info = kernel.info.as_ref().expect("no error");
    let some = info.ptx.text.replace(
        "griddepcontrol.wait;",
        "{ .reg .pred %first; .reg .b32 %own; mov.u32 %own, %tid.x; setp.lt.u32 %first, %own, 32; @%first griddepcontrol.wait; }",
    );
    let mutant = with_text(info, some);
    let device = Device::emulator(EmulatorOptions::default());
    let outcome = Trial::new(&mutant, &[3, 200], 1, &device).expect("a trial").run(&device);
    assert!(matches!(&outcome.failure, Some(Error::Emulation(fault)) if fault.kind == "BeforeWait"), "{outcome:#?}");
}
