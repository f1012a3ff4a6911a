//! The book in `docs`: what the command line and the compiler say in its pages, its table of contents, and where its
//! links lead.
//!
//! A page is Markdown that a code host shows and mdBook makes a page of. What a program can tell is not written by
//! hand:
//!
//! - the `text` block after a `sh` block of `tilewright` commands is what these print, and pictures are what they draw;
//! - the `rust,ignore` block after `<!-- kernel FILE NAME -->` is that kernel, and the `text` block after a
//!   `diff wrong` block is what the compiler says of it after that edit;
//! - the `rust,ignore` block after `<!-- tests FILE -->` is the module of tests at the end of that file.
//!
//! Costs have registers, which NVIDIA's assembler tells: without it, they stay as they are. Blocks of `rust` are
//! compiled and run as documentation of the package of tests.
//!
//! | file | holds |
//! | --- | --- |
//! | `kernel` | one kernel of a file, its text, and what is said of it after an edit |
//! | `pages` | a page with all that programs tell |
//! | `links` | links, headings and the table of contents |

pub mod kernel;
pub mod links;
pub mod pages;

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::{Failure, kernels, root};
use pages::Page;

/// Pages that a task of their own brings up to date: the steps of the ladder are numbered by its headings.
const ELSEWHERE: [&str; 2] = ["docs/ladder.md", "docs/model.md"];

/// The pages of the book with their paths from the root, in order.
///
/// # Errors
/// A folder cannot be read.
pub fn files() -> Result<Vec<String>, Failure> {
    let from_root = |path: PathBuf| {
        let path = path.strip_prefix(root()).unwrap_or(&path).to_owned();
        path.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect::<Vec<_>>().join("/")
    };
    Ok(kernels::files(&root().join("docs"), "md")?.into_iter().map(from_root).collect())
}

/// Reads a file of the repository.
///
/// # Errors
/// It cannot be read.
pub fn read(file: &str) -> Result<String, Failure> {
    let text = std::fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"))?;
    Ok(text.replace("\r\n", "\n"))
}

/// All pages of the book, and README, with what programs tell today. Paths in commands are from the root, which must be
/// the current folder.
///
/// # Errors
/// A page cannot be read, a command of it is wrong, or a kernel that it names is not there.
pub fn all() -> Result<Vec<Page>, Failure> {
    let mut names = files()?;
    names.retain(|name| !ELSEWHERE.contains(&name.as_str()));
    names.push("README.md".to_owned());
    names.par_iter().map(|name| Page::new(name, &read(name)?)).collect()
}

/// Makes the root of the workspace the current folder, from which paths in commands start.
///
/// # Errors
/// It cannot be.
pub fn enter() -> Result<(), Failure> {
    std::env::set_current_dir(root()).map_err(|error| format!("{}: {error}", root().display()))
}

/// `cargo xtask book`: writes pages and pictures.
///
/// # Errors
/// As [`all`], or a file cannot be written.
pub fn write() -> Result<(), Failure> {
    enter()?;
    for page in all()? {
        let files = std::iter::once((&page.name, &page.text)).chain(&page.pictures);
        for (name, text) in files {
            if read(name).ok().as_ref() != Some(text) {
                let path = root().join(name);
                std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(|e| format!("{name}: {e}"))?;
                std::fs::write(&path, text).map_err(|error| format!("{name}: {error}"))?;
                println!("book: {name}");
            }
        }
    }
    if tilewright_cli::assembler::assembler().is_none() {
        println!("book: without `PTXAS` the costs stay as they are");
    }
    Ok(())
}

/// The first line in which a text differs from what it should be.
///
/// # Errors
/// There is one: the place, the line and what it should be.
pub fn compare(name: &str, old: &str, new: &str, task: &str) -> Result<(), String> {
    let wrong = old.lines().zip(new.lines()).position(|(old, new)| old != new);
    let Some(line) = wrong.or_else(|| (old != new).then(|| old.lines().count().min(new.lines().count()))) else {
        return Ok(());
    };
    let at = |text: &str| text.lines().nth(line).unwrap_or("(the end)").chars().take(200).collect::<String>();
    let (number, page, now) = (line + 1, at(old), at(new));
    Err(format!(
        "{name}:{number}:\n  page: {page}\n  now:  {now}\nif that is meant, run `cargo xtask {task}` and read the difference"
    ))
}
