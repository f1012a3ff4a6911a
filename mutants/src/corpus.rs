//! The kernels that mutants are tried on: compositions of the campaign, what it found once, every kernel of the
//! repository, kernels of every operation on every type, and those of `mutants/kernels`, each of which shows what none
//! of the others does.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use proc_macro2::TokenStream;
use syn::visit::Visit;
use tilewright_campaign::compose;
use tilewright_compiler::diag::{Code, Level, Renderer};
use tilewright_compiler::source::{TokenBuffer, TokenMap};
use tilewright_compiler::{Compiled, compile};

use crate::Failure;

/// A source text for the compiler, by where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Case {
    /// Case `index` of the composing campaign with a seed.
    Composition {
        /// The seed.
        seed: u64,
        /// The number of the case.
        index: u64,
    },
    /// The `schedule!` number `at` in a file of the repository.
    Invocation {
        /// The file, below the root.
        path: PathBuf,
        /// Its number in the file.
        at: usize,
    },
    /// A file that is one kernel.
    Text {
        /// The file, below the root.
        path: PathBuf,
    },
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Composition { seed, index } => write!(f, "composition {seed} {index}"),
            Self::Invocation { path, at } => write!(f, "invocation {at} {}", path.display()),
            Self::Text { path } => write!(f, "text of {}", path.display()),
        }
    }
}

impl FromStr for Case {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let wrong = || format!("no case: {text}");
        let mut words = text.splitn(3, ' ');
        let mut word = || words.next().ok_or_else(wrong);
        let (kind, one, two) = (word()?, word()?, word()?);
        match kind {
            "composition" => {
                let number = |word: &str| word.parse().map_err(|_| wrong());
                Ok(Self::Composition { seed: number(one)?, index: number(two)? })
            }
            "invocation" => Ok(Self::Invocation { path: two.into(), at: one.parse().map_err(|_| wrong())? }),
            "text" => Ok(Self::Text { path: two.into() }),
            _ => Err(wrong()),
        }
    }
}

/// The tokens of every `schedule!` of a file.
fn invocations(path: &Path) -> Result<Vec<TokenStream>, Failure> {
    struct Finder(Vec<TokenStream>);
    impl<'ast> Visit<'ast> for Finder {
        fn visit_macro(&mut self, item: &'ast syn::Macro) {
            if item.path.segments.last().is_some_and(|s| s.ident == "schedule") {
                self.0.push(item.tokens.clone());
            }
        }
    }
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file = syn::parse_file(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut finder = Finder(Vec::new());
    finder.visit_file(&file);
    Ok(finder.0)
}

/// Every `schedule!` in the Rust files of some folders.
///
/// # Errors
/// A file cannot be read or is not Rust.
pub fn of_folders(root: &Path, folders: &[&str]) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for folder in folders {
        for path in xtask::kernels::files(&root.join(folder), "rs")? {
            let count = invocations(&path)?.len();
            let path = path.strip_prefix(root).unwrap_or(&path).to_owned();
            cases.extend((0..count).map(|at| Case::Invocation { path: path.clone(), at }));
        }
    }
    Ok(cases)
}

/// Every file of a folder, as one kernel each.
///
/// # Errors
/// The folder cannot be read.
pub fn of_texts(root: &Path, folder: &Path) -> Result<Vec<Case>, Failure> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    let entries = std::fs::read_dir(root.join(folder)).map_err(failed)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|e| Ok(folder.join(e.map_err(failed)?.file_name()))).collect::<Result<_, Failure>>()?;
    paths.sort();
    Ok(paths.into_iter().map(|path| Case::Text { path }).collect())
}

/// Kernels of every operation on every type, written to a folder.
///
/// # Errors
/// It cannot be written.
pub fn operations(folder: &Path) -> Result<Vec<Case>, Failure> {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let one = |(n, text): (usize, String)| {
        let path = folder.join(format!("{n}.txt"));
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Case::Text { path })
    };
    xtask::ops::texts()?.into_iter().enumerate().map(one).collect()
}

/// What the compiler made of a case.
pub enum Made {
    /// Its kernels.
    Kernels(Vec<Compiled>),
    /// It refused: the first error's code, what failed if that was a defect of its own, and the report.
    Refused(Code, String),
}

impl Case {
    /// Its tokens.
    ///
    /// # Errors
    /// It does not exist.
    pub fn tokens(&self, root: &Path) -> Result<TokenStream, Failure> {
        match self {
            Self::Composition { seed, index } => {
                let text = compose::case(*seed, *index).0.to_string();
                text.parse().map_err(|e| format!("{self}: {e}"))
            }
            Self::Text { path } => {
                let path = root.join(path);
                let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                text.parse().map_err(|e| format!("{self}: {e}"))
            }
            Self::Invocation { path, at } => {
                let mut all = invocations(&root.join(path))?;
                if *at < all.len() { Ok(all.swap_remove(*at)) } else { Err(format!("no such case: {self}")) }
            }
        }
    }

    /// Compiles it.
    ///
    /// # Errors
    /// It does not exist.
    pub fn made(&self, root: &Path) -> Result<Made, Failure> {
        let (tokens, spans) = TokenBuffer::new(self.tokens(root)?);
        let outcome = compile(&tokens);
        let errors = outcome.diagnostics.found();
        let Some(first) = errors.iter().find(|d| d.level == Level::Error) else {
            return Ok(Made::Kernels(outcome.kernels));
        };
        let map = TokenMap { tokens: &tokens, spans: &spans, locate: |_| None };
        let report = Renderer::new(&map).report(&outcome.diagnostics.clone().finish());
        Ok(Made::Refused(first.code, report))
    }
}

/// What users get of kernels, as a number: everything but the explanation.
pub fn mark(kernels: &[Compiled]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for kernel in kernels {
        let mut info = kernel.info.clone();
        if let Some(info) = &mut info {
            info.explanation = "".into();
        }
        format!("{info:?}").hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read_as_they_are_written() {
        for case in
            [Case::Composition { seed: 3, index: 70 }, Case::Invocation { path: "examples/a b.rs".into(), at: 2 }]
        {
            assert_eq!(case.to_string().parse(), Ok(case));
        }
        for text in ["", "composition 3", "composition x 3", "kernel 1 2"] {
            text.parse::<Case>().expect_err(text);
        }
    }

    #[test]
    fn a_mark_is_of_what_users_get() {
        let case = Case::Composition { seed: 1, index: 0 };
        let root = xtask::root();
        let made =
            || match (0..50).map(|index| Case::Composition { seed: 1, index }.made(&root)).find_map(|m| match m {
                Ok(Made::Kernels(kernels)) => Some(kernels),
                _ => None,
            }) {
                Some(kernels) => kernels,
                None => panic!("nothing is accepted: {case}"),
            };
        assert_eq!(mark(&made()), mark(&made()));
        let mut other = made();
        for kernel in &mut other {
            kernel.info.as_mut().expect("accepted").launch.threads += 1;
        }
        assert_ne!(mark(&made()), mark(&other));
    }
}
