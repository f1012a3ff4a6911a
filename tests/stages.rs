//! Stages inside the loops of others: regions, places, owners, reductions across threads. Every kernel runs for awkward sizes and gives
//! what `reference()` does.

mod support;

use support::compiled;
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;

/// Compiles, and runs with each list of sizes under several seeds; the explanation.
fn check(source: &str, sizes: &[&[i64]]) -> String {
    let info = compiled(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    for (seed, dims) in (1..).zip(sizes) {
        let device = Device::emulator(EmulatorOptions::default().seed(seed));
        let trial = Trial::new(&info, dims, seed, &device).unwrap_or_else(|e| panic!("{source}\n{dims:?}: {e}"));
        let outcome = trial.run(&device);
        assert!(outcome.is_good(), "{source}\nat {dims:?}: {outcome:#?}\n{}\n{}", info.explanation, info.ptx.text);
    }
    info.explanation.to_string()
}

fn fused(factor: u32, more: &str) -> String {
    format!(
        "kernel Fused(a: f32[4, 4]) -> (c: f32[4, 4]) {{
            b[i, j] = a[i, j] + 2.0;
            c[i, j] = b[i, j] * 3.0;
            launch threads(1);
            schedule c {{ merge i, j -> f; split f by {factor} -> fo, fi; }}
            schedule b in shared at c.fo {{ {more} }}
        }}"
    )
}

#[test]
fn a_fused_axis_is_split() {
    for factor in 1..=17 {
        check(&fused(factor, ""), &[&[]]);
    }
}

const BLUR: &str = "kernel Blur(x: f32[H, W]) -> (y: f32[H - 2, W - 2]) where H >= 3, W >= 3 {
    bx[i, j] = (x[i, j] + x[i, j + 1] + x[i, j + 2]) / 3.0;
    y[i, j] = (bx[i, j] + bx[i + 1, j] + bx[i + 2, j]) / 3.0;
    launch threads(256);
    schedule y {
        split i by 30 -> io, ii; split j by 64 -> jo, ji;
        reorder io, jo, ii, ji;
        bind io, jo: grid;
        merge ii, ji -> p; split p by 256 -> pr, t; bind t: thread;
    }
    schedule bx in shared at y.jo { merge i, j -> p; split p by 256 -> pr, t; bind t: thread; }
}";

#[test]
fn a_stencil_has_its_halo() {
    let explanation = check(BLUR, &[&[3, 3], &[7, 9], &[33, 67], &[65, 130]]);
    assert!(explanation.contains("region 32 x 64, 8192 bytes"), "{explanation}");
}
