//! `cargo xtask api`: the public items of the crates that are meant to be used, compared with those of `tests/api`. A
//! change that others notice shows in a difference there.
//!
//! rustdoc tells them as JSON, which the pinned toolchain does only where it is told to be unstable: for rustdoc alone,
//! by the script that stands for it, so that nothing is built again.

use public_api::Builder;

use crate::{Failure, cargo, root, run};

/// The crates whose items follow semantic versioning; `docs/security.md` says so of them.
const CRATES: [&str; 4] = ["tilewright", "tilewright-kernel", "tilewright-emulator", "tilewright-ptx"];

/// Writes the lists, or compares them.
///
/// # Errors
/// rustdoc fails; or, unless they are written, a list is another one.
pub fn api(write: bool) -> Result<(), Failure> {
    let mut command = cargo();
    command.args(["doc", "--quiet", "--no-deps", "--features", "tilewright/ndarray"]);
    command.args(CRATES.map(|name| format!("--package={name}"))).env("RUSTDOC", root().join("xtask/rustdoc-unstable"));
    // As a variable, so that cargo does not take pages for lists, nor lists for pages.
    command.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json");
    run(&mut command)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let mut changed = Vec::new();
    for name in CRATES {
        let json = target.join("doc").join(format!("{}.json", name.replace('-', "_")));
        let builder = Builder::from_rustdoc_json(&json).omit_blanket_impls(true);
        let builder = builder.omit_auto_trait_impls(true).omit_auto_derived_impls(true);
        let api = builder.build().map_err(|error| format!("{}: {error}", json.display()))?;
        let found: String = api.items().map(|item| format!("{item}\n")).collect();
        let path = root().join("tests/api").join(format!("{name}.txt"));
        if write {
            std::fs::write(&path, found).map_err(|error| format!("{}: {error}", path.display()))?;
            continue;
        }
        let told = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        changed.extend(difference(&told, &found).into_iter().map(|line| format!("{name}: {line}")));
    }
    if changed.is_empty() {
        return Ok(());
    }
    Err(format!(
        "public items are others than in tests/api; `cargo xtask api write` takes over\n{}",
        changed.join("\n")
    ))
}

/// Lines that went, with `-`, and that came, with `+`.
fn difference(told: &str, found: &str) -> Vec<String> {
    let lines = |text: &'_ str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<String>>();
    let (told, found) = (lines(told), lines(found));
    let went = told.difference(&found).map(|line| format!("- {line}"));
    let came = found.difference(&told).map(|line| format!("+ {line}"));
    went.chain(came).collect()
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn what_went_and_what_came_is_told() {
        assert!(difference("a\nb\n", "a\nb\n").is_empty());
        assert_eq!(difference("a\nb\n", "a\nc\n"), ["- b", "+ c"]);
    }
}
