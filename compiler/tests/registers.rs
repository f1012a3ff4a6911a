//! What a thread must hold is never more than the assembler needs: with fewer registers it spills.

use std::io::Write as _;
use std::process::{Command, Stdio};

use tilewright_compiler::diag::Code;
use tilewright_compiler::kernel_ir::{Held, held};
use tilewright_compiler::source::TokenBuffer;
use tilewright_compiler::target::register_limit;
use tilewright_compiler::{Compiled, compile};

/// The kernel, or the codes of what is wrong with it and the titles.
fn compiled(source: &str) -> Result<Compiled, Vec<(Code, String)>> {
    let (tokens, _) = TokenBuffer::new(source.parse().expect("Rust tokens"));
    let mut outcome = compile(&tokens);
    if outcome.diagnostics.has_errors() {
        return Err(outcome.diagnostics.found().iter().map(|d| (d.code, d.title.clone())).collect());
    }
    Ok(outcome.kernels.remove(0))
}

fn accepted(source: &str) -> Compiled {
    compiled(source).unwrap_or_else(|found| panic!("{source}\n{found:?}"))
}

fn of(kernel: &Compiled) -> Held {
    held(&kernel.entries[0].kernel).remove(0).held
}

/// Registers, and bytes spilled, of the first entry point, where a thread may have at most so many; none without an
/// assembler.
fn assembled(kernel: &Compiled, most: Option<u32>) -> Option<(u32, u32)> {
    let ptxas = std::env::var_os("PTXAS")?;
    let info = kernel.info.as_ref().expect("no error");
    let bound = ".minnctapersm 1";
    assert!(info.ptx.text.contains(bound), "{}", info.ptx.text);
    let text = match most {
        Some(most) => info.ptx.text.replace(bound, &format!(".maxnreg {most}")),
        None => info.ptx.text.to_string(),
    };
    let mut child = Command::new(ptxas)
        .args(["-arch=sm_90", "-v", "-o", "/dev/null", "-"])
        .args(["-e", &info.entries[0].name])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the assembler starts");
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("the assembler reads");
    let output = child.wait_with_output().expect("the assembler ends");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{log}");
    let words: Vec<&str> = log.split_whitespace().map(|w| w.trim_end_matches(',')).collect();
    let number = |before: &str, after: &str| {
        let found = words.windows(3).filter(|w| (w[0] == before || before.is_empty()) && w[2].starts_with(after));
        found.filter_map(|w| w[1].parse::<u32>().ok()).sum::<u32>()
    };
    let spills = words.windows(4).filter(|w| w[1..3] == ["bytes", "spill"]).filter_map(|w| w[0].parse::<u32>().ok());
    Some((number("Used", "registers"), spills.sum()))
}

/// The assembler uses at least what is held, and spills with fewer.
fn is_lower_bound(name: &str, kernel: &Compiled) {
    let found = of(kernel);
    let Some((used, spilled)) = assembled(kernel, None) else { return };
    println!("{name}: holds {} ({:?}), the assembler uses {used}, spills {spilled}", found.words, found.parts);
    assert!(used >= found.words || spilled > 0, "{name}: holds {found:?}, the assembler uses {used}");
    let fewer = found.words.saturating_sub(1) / 8 * 8;
    if fewer >= 24 {
        let (_, spilled) = assembled(kernel, Some(fewer)).expect("as before");
        assert!(spilled > 0, "{name}: holds {found:?}, and does not spill with {fewer}");
    }
}

/// A softmax whose rows are in registers, with so many elements a thread.
fn softmax(element: &str, each: u32, threads: u32, extra: &str) -> String {
    let to = if element == "f32" { "" } else { " as f32" };
    let back = if element == "f32" { String::new() } else { format!(" as {element}") };
    format!(
        "kernel Rows(x: {element}[M, N]) -> (y: {element}[M, N]) where N <= {} {{
            m[i] = max(|j| x[i, j]);
            e[i, j] = exp(x[i, j]{to} - m[i]{to});
            s[i] = sum(|j| e[i, j]);
            y[i, j] = (e[i, j] / s[i]{extra}){back};
            launch threads({threads});
            schedule y {{ bind i: grid; split j by {threads} -> r, t; bind t: thread; unroll r; }}
            stage xr[i, j] = x in registers at y.i {{ like y; }}
            schedule e in registers at y.i {{ like y; }}
            schedule m in registers at y.i {{ like y; reduce t; }}
            schedule s in registers at y.i {{ like y; reduce t; }}
        }}",
        each * threads
    )
}

/// A product of matrices without tensor cores, each thread with a square of accumulators.
fn product(side: u32) -> String {
    format!(
        "kernel Product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) {{
            c[i, j] = sum(|k| a[i, k] * b[k, j]);
            launch threads(256);
            schedule c {{
                split i by {} -> io, ir; split ir by {side} -> it, ii; split j by {} -> jo, jr; split jr by {side} -> jt, ji;
                reorder io, jo, it, jt, k, ii, ji; bind io, jo: grid; bind it, jt: thread;
            }}
        }}",
        16 * side,
        16 * side
    )
}

#[test]
fn figures_are_lower_bounds() {
    for each in [4, 16, 32, 64, 90, 120] {
        for threads in [32, 128, 256] {
            let kernel = accepted(&softmax("f32", each, threads, ""));
            assert!((each..each + 4).contains(&of(&kernel).words), "{each}, {threads}: {:?}", of(&kernel));
            if threads == 128 {
                is_lower_bound(&format!("softmax f32 {each}"), &kernel);
            }
        }
    }
    for each in [16, 64, 100] {
        let kernel = accepted(&softmax("f32", each, 128, " + x[i, j]"));
        assert!((2 * each..2 * each + 4).contains(&of(&kernel).words), "{:?}", of(&kernel));
        is_lower_bound(&format!("two rows f32 {each}"), &kernel);
    }
    for element in ["f16", "bf16"] {
        for each in [32, 64, 150] {
            is_lower_bound(&format!("softmax {element} {each}"), &accepted(&softmax(element, each, 128, "")));
        }
    }
    for side in [2, 4, 8, 10] {
        let kernel = accepted(&product(side));
        assert!(of(&kernel).words >= side * side, "{side}: {:?}", of(&kernel));
        is_lower_bound(&format!("product {side}"), &kernel);
    }
}

#[test]
fn what_a_thread_cannot_hold_is_refused() {
    assert_eq!([32, 256, 257, 512, 1024].map(register_limit), [255, 255, 224, 128, 64]);
    let codes = |source: &str| compiled(source).err().unwrap_or_default();
    for (each, threads) in [(130, 128), (70, 512), (40, 1024)] {
        let two = softmax("f32", each, threads, " + x[i, j]");
        let found = codes(&two);
        let [(code, title)] = &found[..] else { panic!("{two}\n{found:?}") };
        assert_eq!(*code, Code::TW0505);
        assert!(title.contains(&format!("has {}", register_limit(threads))), "{title}");
        assert!(codes(&softmax("f32", each / 2, threads, " + x[i, j]")).is_empty());
    }
}
