//! What is compiled: every Rust file, page and list of kernels of the repository, the target programs beside it, and
//! generated kernels.

use std::collections::BTreeMap;
use std::path::Path;

use tilewright_campaign::rng::Rng;
use tilewright_campaign::{compose, generate};
use tilewright_compiler::diag::Code;

use crate::{Failure, kernels, ops, root};

/// Folders of Rust files with kernels, right and wrong ones, relative to the root. The last lies beside the repository,
/// if it is there.
const FOLDERS: [&str; 7] =
    ["examples", "docs", "tests", "runtime/tests", "ui-tests/fail", "ui-tests/cases", "../shared/programs"];
/// Folders of pages with examples, and of texts with one kernel each.
const PAGES: [(&str, &str); 4] =
    [("docs", "md"), ("campaign/found", "txt"), ("campaign/written", "txt"), ("mutants/kernels", "txt")];
/// Seed of the generated kernels.
const SEED: u64 = 1;
/// Kernels of several equations with stages in all places.
const COMPOSITIONS: u64 = 2_000;
/// Products by tensor cores.
const PRODUCTS: u64 = 200;
/// Kernels of one equation, and the like.
const KERNELS: u64 = 1_000;

/// All sources by name.
///
/// # Errors
/// A file cannot be read.
pub fn all() -> Result<BTreeMap<String, String>, Failure> {
    let mut sources = BTreeMap::new();
    for folder in FOLDERS {
        let path = root().join(folder);
        if !path.is_dir() {
            continue;
        }
        for file in kernels::files(&path, "rs")? {
            sources.insert(named(folder, &path, &file), text(&file)?);
        }
    }
    for (folder, extension) in PAGES {
        let path = root().join(folder);
        for file in kernels::files(&path, extension)? {
            let (name, text) = (named(folder, &path, &file), text(&file)?);
            if extension == "md" {
                sources.extend(examples(&name, &text));
            } else {
                sources.insert(name, text);
            }
        }
    }
    for code in Code::ALL {
        sources.extend(examples(&format!("errors/{code}"), &code.row().page()));
    }
    sources.extend(examples("README.md", &text(&root().join("README.md"))?));
    sources.extend(ops::texts()?.into_iter().enumerate().map(|(number, text)| (format!("ops {number}"), text)));
    for case in 0..COMPOSITIONS {
        sources.insert(format!("composition {case}"), compose::case(SEED, case).0.to_string());
    }
    for case in 0..PRODUCTS {
        sources.insert(format!("product {case}"), compose::product(SEED, case).0.kernel().to_string());
    }
    for case in 0..KERNELS {
        sources.insert(format!("kernel {case}"), generate::kernel(&mut Rng::of_case(SEED, case)).to_string());
    }
    Ok(sources)
}

/// Folder and file, the same on every machine.
fn named(folder: &str, path: &Path, file: &Path) -> String {
    let within = file.strip_prefix(path).unwrap_or(file).components();
    let parts = within.map(|part| part.as_os_str().to_string_lossy().into_owned());
    std::iter::once(folder.to_owned()).chain(parts).collect::<Vec<_>>().join("/")
}

fn text(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))
}

/// The kernels of a page, by its name and their number.
fn examples(name: &str, page: &str) -> Vec<(String, String)> {
    let numbered = blocks(page).into_iter().enumerate();
    numbered.map(|(number, block)| (format!("{name}#{number}"), block)).collect()
}

/// The code blocks of a page that hold whole kernels.
fn blocks(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for line in page.lines() {
        match &mut open {
            Some(block) if line.trim_start().starts_with("```") => {
                if block.contains("kernel ") {
                    found.push(std::mem::take(block));
                }
                open = None;
            }
            Some(block) => {
                block.push_str(line);
                block.push('\n');
            }
            None if line.trim_start().starts_with("```") => open = Some(String::new()),
            None => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_show_kernels() {
        let page = "a\n```rust\nkernel A\n```\nkernel B\n```sh\nls\n```\n```text\nkernel C\n```\n";
        assert_eq!(blocks(page), ["kernel A\n", "kernel C\n"]);
    }

    #[test]
    fn everything_is_found() {
        let sources = all().unwrap();
        let among = |prefix: &str| sources.keys().filter(|name| name.starts_with(prefix)).count();
        assert!(among("examples/") >= 15 && among("ui-tests/fail/") >= 150 && among("errors/") >= 200);
        assert!(among("README.md#") >= 1 && among("campaign/found/") >= 50 && among("ops ") >= 20);
        assert_eq!((among("composition "), among("kernel ")), (2_000, 1_000));
    }
}
