//! `cargo xtask bless` and `cargo xtask tidy`: runs of tests that rewrite what they expect, or that guard the
//! repository's order.

use crate::{Failure, cargo, run};

/// Refreshes every expected output; `git diff` then shows what changed.
///
/// # Errors
/// A test fails for another reason than an outdated expectation.
pub fn bless() -> Result<(), Failure> {
    // No package is named, so that nothing is built for other features than those of `cargo test`.
    for written in [&["examples", "golden"][..], &["examples", "ladder"], &["work"]] {
        run(cargo().args(["test", "--quiet", "--test"]).args(written).env("TILEWRIGHT_BLESS", "1"))?;
    }
    crate::conformance::write()?;
    let inline =
        ["kernel", "ptx", "theory", "ir", "compiler", "cli"].map(|name| format!("--package=tilewright-{name}"));
    run(cargo().args(["test", "--quiet"]).args(&inline).env("UPDATE_EXPECT", "1"))?;
    // trybuild fails the first time it writes a message; the second run says whether the messages are stable.
    let messages = || {
        let mut command = cargo();
        command.args(["test", "--quiet", "--test", "ui"]);
        command
    };
    let written = run(messages().env("TRYBUILD", "overwrite"));
    if written.is_err() {
        run(&mut messages())?;
    }
    // In a process of its own, which is built from what was taken over.
    run(cargo().args(["xtask", "book"]))?;
    if std::env::var_os("PTXAS").is_none() {
        println!("bless: without `PTXAS` the table of docs/ladder.md stays as it is");
    }
    println!("bless: done; read the changes with `git diff`");
    Ok(())
}

/// Runs the tests of the repository's own order.
///
/// # Errors
/// A test fails.
pub fn tidy() -> Result<(), Failure> {
    run(cargo().args(["test", "--quiet", "--test", "tidy"]))
}
