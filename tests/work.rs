//! What it takes to compile each example as the macro does, counted: against `tests/work.txt`, so that what makes the
//! compiler slower shows as a readable difference. `cargo xtask bless` rewrites it. And how that grows.
//!
//! A program of its own, since what it is linked with counts allocations.

use std::fmt::Write as _;

use tilewright_compiler::compile_to;
use tilewright_compiler::side_by_side;
use tilewright_compiler::source::TokenBuffer;
use tilewright_compiler::trial::Depth;
use tilewright_compiler::work::{self, Step};

#[path = "support/invocations.rs"]
mod invocations;

/// Three digits of a number: less than that changes with every line of the compiler.
fn rounded(n: u64) -> String {
    let unit = 10_u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(2));
    ((n + unit / 2) / unit * unit).to_string()
}

/// What is counted.
fn columns() -> impl Iterator<Item = &'static str> {
    ["allocations", "bytes"].into_iter().chain(Step::ALL.map(|(_, name)| name))
}

/// The names of the kernels of an invocation, and what it takes to compile them.
fn count(text: &str) -> (String, Vec<u64>) {
    let (tokens, _) = TokenBuffer::new(text.parse().expect("tokens"));
    // What is read once for all kernels, such as the table of instructions, is read now.
    let once = compile_to(&tokens, Depth::Bounded);
    assert!(!once.diagnostics.has_errors(), "{text}\n{:?}", once.diagnostics);
    let names: Vec<&str> = once.kernels.iter().map(|kernel| kernel.ast.name.text.as_str()).collect();
    let before = work::counts();
    // On one thread, of which allocations are counted.
    let compile = || side_by_side::alone(|| compile_to(&tokens, Depth::Bounded));
    let memory = allocation_counter::measure(|| drop(compile()));
    let steps = work::counts().into_iter().zip(before).map(|(after, before)| after - before);
    (names.join("+"), [memory.count_total, memory.bytes_total].into_iter().chain(steps).collect())
}

fn counted() -> String {
    let mut table = String::from("kernels");
    for head in columns() {
        let _ = write!(table, " {head}");
    }
    table.push('\n');
    for (_, text) in invocations::invocations() {
        let (names, counts) = count(&text);
        table.push_str(&names);
        for n in counts {
            let _ = write!(table, " {}", rounded(n));
        }
        table.push('\n');
    }
    aligned(&table)
}

/// The columns of a table, the first one to the left and the others to the right.
fn aligned(table: &str) -> String {
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(' ').collect()).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let _ = write!(text, "{:<first$}", row[0], first = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
    }
    text
}

#[test]
fn compiling_the_examples_takes_as_much_work_as_before() {
    let file = xtask::root().join("tests/work.txt");
    let found = counted();
    if std::env::var_os("TILEWRIGHT_BLESS").is_some() {
        std::fs::write(&file, found).expect("tests/work.txt");
        return;
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
    let changed: Vec<String> = found
        .lines()
        .filter(|line| !golden.lines().any(|known| known == *line))
        .map(|line| {
            let name = line.split(' ').next().unwrap_or_default();
            let known = golden.lines().find(|known| known.split(' ').next() == Some(name));
            format!("golden: {}\nnow:    {line}", known.unwrap_or("nothing"))
        })
        .collect();
    let head = found.lines().next().unwrap_or_default();
    assert_eq!(
        found,
        golden,
        "the work changed; if it should, `cargo xtask bless` takes it over\n        {head}\n{}",
        changed.join("\n")
    );
}

/// A kernel with so many of something.
type Growing = fn(usize) -> String;

/// Lines for each number.
fn each(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(line).collect()
}

const BY_THREADS: &str = "split i by 256 -> b, t; bind b: grid; bind t: thread;";

/// One statement after the other on the same elements.
fn outputs(n: usize) -> String {
    let heads: Vec<String> = (0..n).map(|k| format!("y{k}: f32[N]")).collect();
    let lines = each(n, |k| format!("y{k}[i] = x[i] * {k}.5;\n"));
    let rest = each(n - 1, |k| format!("schedule y{} at y0.b {{ like y0; }}\n", k + 1));
    format!("kernel K(x: f32[N]) -> ({}) {{ {lines} schedule y0 {{ {BY_THREADS} }} {rest} }}", heads.join(", "))
}

/// Stages of a value each, one computed from the other.
fn register_stages(n: usize) -> String {
    let value = |k: usize| if k == 0 { "x".to_owned() } else { format!("e{}", k - 1) };
    let lines = each(n, |k| format!("e{k}[i] = {}[i] * 1.5 + {k}.0;\n", value(k)));
    let stages = each(n, |k| format!("schedule e{k} in registers at y.b {{ like y; }}\n"));
    format!(
        "kernel K(x: f32[N]) -> (y: f32[N]) {{ {lines} y[i] = {}[i]; schedule y {{ {BY_THREADS} }} {stages} }}",
        value(n)
    )
}

/// Tiles in shared memory.
fn shared_stages(n: usize) -> String {
    let inputs: Vec<String> = (0..n).map(|k| format!("x{k}: f32[N]")).collect();
    let sum: Vec<String> = (0..n).map(|k| format!("x{k}[N - 1 - i]")).collect();
    let stages =
        each(n, |k| format!("stage s{k}[i] = x{k} in shared at y.b {{ split i by 256 -> o, t; bind t: thread; }}\n"));
    format!(
        "kernel K({}) -> (y: f32[N]) {{ y[i] = {}; schedule y {{ {BY_THREADS} }} {stages} }}",
        inputs.join(", "),
        sum.join(" + ")
    )
}

/// Reductions of a row across threads, each of which reads the one before.
fn reductions(n: usize) -> String {
    let value = |k: usize| if k == 0 { "0.0".to_owned() } else { format!("s{}[i]", k - 1) };
    let lines = each(n, |k| format!("s{k}[i] = sum(|j| x[i, j] - {});\n", value(k)));
    let stages = each(n, |k| format!("schedule s{k} in registers at y.i {{ like y; reduce t; }}\n"));
    format!(
        "kernel K(x: f32[M, N]) -> (y: f32[M, N]) where N <= 4096 {{ {lines} y[i, j] = x[i, j] * {};
        schedule y {{ bind i: grid; split j by 256 -> r, t; bind t: thread; }} {stages} }}",
        value(n)
    )
}

/// Iterations written one after the other.
fn unrolled(n: usize) -> String {
    format!(
        "kernel K(x: f32[M, N]) -> (y: f32[M, N]) where N <= {} {{
        m[i] = max(|j| x[i, j]);
        y[i, j] = x[i, j] - m[i];
        schedule y {{ bind i: grid; split j by 256 -> r, t; bind t: thread; unroll r; }}
        stage xr[i, j] = x in registers at y.i {{ like y; }}
        schedule m in registers at y.i {{ like y; reduce t; }} }}",
        256 * n
    )
}

/// Roles that load, each a tensor of its own.
fn roles(n: usize) -> String {
    let inputs: Vec<String> = (0..n).map(|k| format!("x{k}: f32[N]")).collect();
    let sum: Vec<String> = (0..n).map(|k| format!("x{k}[i]")).collect();
    let names: Vec<String> = (0..n).map(|k| format!("load{k}: warp")).collect();
    let stages = each(n, |k| format!("stage s{k}[i] = x{k} in shared at y.o ring(2) via tma by load{k} {{ }}\n"));
    format!(
        "kernel K({}) -> (y: f32[N]) where N % 4 == 0 {{ y[i] = {};
        launch roles {{ math: 4 warp, {} }};
        schedule y by math {{ split i by 1024 -> b, r; split r by 128 -> o, t; bind b: grid; bind t: thread; }}
        {stages} }}",
        inputs.join(", "),
        sum.join(" + "),
        names.join(", ")
    )
}

/// Terms of one equation, each of which reads another element.
fn terms(n: usize) -> String {
    let sum: Vec<String> = (0..n).map(|k| format!("(x[i - {k}] or 0.0) * {k}.5")).collect();
    format!("kernel K(x: f32[N]) -> (y: f32[N]) {{ y[i] = {}; schedule y {{ {BY_THREADS} }} }}", sum.join(" + "))
}

/// Equations that are computed where they are read.
fn inlined(n: usize) -> String {
    let value = |k: usize| if k == 0 { "x".to_owned() } else { format!("e{}", k - 1) };
    let lines = each(n, |k| format!("e{k}[i] = {}[i] * 1.5 + {k}.0; inline e{k};\n", value(k)));
    let last = value(n);
    format!("kernel K(x: f32[N]) -> (y: f32[N]) {{ {lines} y[i] = {last}[i]; schedule y {{ {BY_THREADS} }} }}")
}

/// Twice as much of something takes at most 2.2 times the work, whichever work is counted.
#[test]
fn work_grows_no_worse_than_linearly() {
    let all: [(&str, Growing, usize); 8] = [
        ("terms", terms, 32),
        ("inlined equations", inlined, 32),
        ("outputs", outputs, 16),
        ("stages in registers", register_stages, 16),
        ("stages in shared memory", shared_stages, 16),
        ("reductions", reductions, 16),
        ("unrolled iterations", unrolled, 64),
        ("roles", roles, 6),
    ];
    for (what, growing, most) in all {
        let [few, many] = [most / 2, most].map(|n| count(&growing(n)).1);
        for ((few, many), counted) in few.iter().zip(&many).zip(columns()) {
            assert!(many * 10 <= few * 22, "{counted} of {most} {what}: {many}, and {few} of half of them");
        }
    }
}
