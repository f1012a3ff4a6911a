//! `cargo xtask TASK`: the development tasks, listed by [`USAGE`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

use xtask::{api, assemble, bless, book, conformance, device, model, prove, replay};

const USAGE: &str = "\
cargo xtask TASK

  assemble   assembles the PTX of every kernel with $PTXAS for sm_80 and sm_90; fails on errors, spills and other losses
  prove      runs every kernel on the separate checker, at sizes of all kinds; a release build takes about a minute
  bless      refreshes tests/golden, the expected compiler messages of ui-tests, inline snapshots, and the book
  book       writes what the command line and the compiler say in the pages and pictures of docs; costs need $PTXAS
  api [write]
             compares the public items of the crates that are meant to be used with tests/api, or writes them there
  tidy       runs the tests of the repository's own order
  replay save [FILE], replay compare [FILE]
             keeps what the compiler makes of thousands of sources, or compares that with what it makes of them now: barriers,
             and with $PTXAS instructions and registers, of what differs; in a release build, half a minute
  conformance
             writes the conformance files from the tests that have their programs: see docs/conformance.md
  model [M N K]
             what limits the product of examples/gemm.rs on Hopper, on paper: see docs/model.md
  device     bundles release binaries into dist/device, to be run on a machine with a GPU
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["assemble"] => assemble::assemble(),
        ["prove"] => prove::prove(),
        ["bless"] => bless::bless(),
        ["book"] => book::write(),
        ["api"] => api::api(false),
        ["api", "write"] => api::api(true),
        ["tidy"] => bless::tidy(),
        ["replay", "save"] => replay::save(None),
        ["replay", "save", file] => replay::save(Some(file)),
        ["replay", "compare"] => replay::compare(None),
        ["replay", "compare", file] => replay::compare(Some(file)),
        ["model"] => model::print(None),
        ["model", m, n, k] => match [m, n, k].map(str::parse) {
            [Ok(m), Ok(n), Ok(k)] => model::print(Some([m, n, k])),
            _ => Err(format!("`{m} {n} {k}`: three sizes are wanted")),
        },
        ["conformance"] => conformance::write(),
        ["device"] => device::bundle(),
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("error: no task `{}`\n\n{USAGE}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
