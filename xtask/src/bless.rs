//! `cargo xtask bless` and `cargo xtask tidy`: runs of tests that rewrite what they expect, or that guard the
//! repository's order.

use std::path::Path;

use crate::{Failure, cargo, root, run};

/// Refreshes every expected output; `git diff` then shows what changed.
///
/// # Errors
/// A test fails for another reason than an outdated expectation.
pub fn bless() -> Result<(), Failure> {
    run(cargo()
        .args(["test", "--quiet", "-p", "tilewright-workspace", "--test", "examples", "golden"])
        .env("TILEWRIGHT_BLESS", "1"))?;
    let inline =
        ["kernel", "ptx", "theory", "ir", "compiler", "cli"].map(|name| format!("--package=tilewright-{name}"));
    run(cargo().args(["test", "--quiet"]).args(&inline).env("UPDATE_EXPECT", "1"))?;
    // trybuild fails the first time it writes a message; the second run says whether the messages are stable.
    let messages = || {
        let mut command = cargo();
        command.args(["test", "--quiet", "-p", "tilewright-ui-tests"]);
        command
    };
    let written = run(messages().env("TRYBUILD", "overwrite"));
    if written.is_err() {
        run(&mut messages())?;
    }
    println!("bless: done; read the changes with `git diff`");
    Ok(())
}

/// Runs the tests named `tidy`, wherever they are.
///
/// # Errors
/// A test fails, or there is none.
pub fn tidy() -> Result<(), Failure> {
    let mut packages = Vec::new();
    for package in ["", "ui-tests", "xtask", "runtime", "compiler"] {
        if Path::new(&root().join(package)).join("tests/tidy.rs").is_file() {
            packages.push(package);
        }
    }
    if packages.is_empty() {
        return Err("no package has a test `tidy`".to_owned());
    }
    for package in packages {
        let manifest = root().join(package).join("Cargo.toml");
        run(cargo().args(["test", "--quiet", "--test", "tidy", "--manifest-path"]).arg(manifest))?;
    }
    Ok(())
}
