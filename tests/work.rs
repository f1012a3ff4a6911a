//! What it takes to compile each example as the macro does, counted: against `tests/work.txt`, so that what makes the
//! compiler slower shows as a readable difference. `cargo xtask bless` rewrites it.
//!
//! A program of its own, since what it is linked with counts allocations.

use std::fmt::Write as _;

use tilewright_compiler::compile_to;
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

fn counted() -> String {
    let mut table = String::from("kernels");
    for head in ["allocations", "bytes"].into_iter().chain(Step::ALL.map(|(_, name)| name)) {
        let _ = write!(table, " {head}");
    }
    table.push('\n');
    for (example, text) in invocations::invocations() {
        let (tokens, _) = TokenBuffer::new(text.parse().expect("tokens"));
        // What is read once for all kernels, such as the table of instructions, is read now.
        let once = compile_to(&tokens, Depth::Bounded);
        assert!(!once.diagnostics.has_errors(), "{example}");
        let names: Vec<&str> = once.kernels.iter().map(|kernel| kernel.ast.name.text.as_str()).collect();
        let before = work::counts();
        let memory = allocation_counter::measure(|| drop(compile_to(&tokens, Depth::Bounded)));
        let steps = work::counts().into_iter().zip(before).map(|(after, before)| after - before);
        table.push_str(&names.join("+"));
        for n in [memory.count_total, memory.bytes_total].into_iter().chain(steps) {
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
