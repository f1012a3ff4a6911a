//! The changed copy of the workspace, and its build.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use xtask::COMPILER;

use crate::Failure;
use crate::rewrite::{Numbered, Rewritten, rewrite};
use crate::sites::{Site, Variants, sites, variants};

/// The switch's source.
const SWITCH: &str = include_str!("switch.rs");
/// Texts with fewer bytes than this occur too often in a file to name a place.
const SHORT: usize = 16;
/// Rounds of dropping what does not compile.
const ROUNDS: usize = 16;
/// Folders that are no source.
const NO_SOURCE: [&str; 5] = ["target", ".git", ".venv", "dist", "bench"];

/// One change of the compiler.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Its number.
    pub number: u32,
    /// File, below the compiler's sources.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The operator that made it.
    pub operator: &'static str,
    /// What was written.
    pub before: String,
    /// What stands there instead; empty if it is left out.
    pub after: String,
    /// The whole line, where what was written is too short to say which one it is; else nothing.
    pub context: String,
}

/// The files of some rooms, and all of their mutants.
#[derive(Debug)]
pub struct Sources {
    root: PathBuf,
    /// Path below `root`, text, sites.
    files: Vec<(String, String, Vec<Site>)>,
}

/// A text on one line, with single spaces.
pub fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The Rust files below a folder, sorted, without those of tests.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let files = xtask::kernels::files(folder, "rs")?;
    let is_test = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        stem == "tests" || stem.ends_with("_tests") || path.components().any(|part| part.as_os_str() == "tests")
    };
    Ok(files.into_iter().filter(|path| !is_test(path)).collect())
}

impl Sources {
    /// Reads some rooms of the compiler.
    ///
    /// # Errors
    /// A file cannot be read, or is not Rust.
    pub fn read(root: &Path, rooms: &[String]) -> Result<Self, Failure> {
        let parsed = |path: PathBuf| {
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let file = syn::parse_file(&text).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok((path, text, file))
        };
        let read = |folder: &Path| rust_files(folder)?.into_iter().map(parsed).collect::<Result<Vec<_>, Failure>>();
        let mut units = Variants::new();
        for folder in COMPILER.iter().chain(&["kernel/src"]) {
            read(&root.join(folder))?.iter().for_each(|(_, _, file)| variants(file, &mut units));
        }
        let mut files = Vec::new();
        for room in rooms {
            let folder = COMPILER.iter().map(|folder| root.join(folder).join(room)).find(|folder| folder.exists());
            let folder = folder.ok_or_else(|| format!("no room `{room}` in {COMPILER:?}"))?;
            for (path, text, file) in read(&folder)? {
                let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
                let sites = sites(&text, &file, &units);
                files.push((name, text, sites));
            }
        }
        if files.is_empty() {
            return Err(format!("no Rust file in {rooms:?}"));
        }
        Ok(Self { root: root.to_owned(), files })
    }

    /// All mutants, in order.
    pub fn mutants(&self) -> Vec<Mutant> {
        let mut all = Vec::new();
        for (name, text, sites) in &self.files {
            let lines: Vec<&str> = text.lines().collect();
            for site in sites {
                let is_short = site.before.len() < SHORT;
                let line = lines.get(site.line.saturating_sub(1)).filter(|_| is_short).copied().unwrap_or_default();
                for (operator, after) in &site.alternatives {
                    let file = COMPILER.iter().find_map(|folder| name.strip_prefix(folder)?.strip_prefix('/'));
                    let file = file.unwrap_or(name).to_owned();
                    let (before, after) = (squeezed(&site.before), squeezed(after));
                    let number = all.len() as u32;
                    let context = squeezed(line);
                    all.push(Mutant { number, file, line: site.line, operator, before, after, context });
                }
            }
        }
        all
    }

    /// The files with some mutants in them.
    fn rewritten(&self, kept: &BTreeSet<u32>) -> BTreeMap<String, Rewritten> {
        let mut number = 0;
        let mut one = |site: &Site| {
            let mut numbers = Vec::new();
            for _ in &site.alternatives {
                numbers.push(kept.contains(&number).then_some(number));
                number += 1;
            }
            Numbered { site: site.clone(), numbers }
        };
        let files = self.files.iter().map(|(name, text, sites)| {
            let numbered: Vec<Numbered> = sites.iter().map(&mut one).collect();
            (name.clone(), rewrite(text, &numbered))
        });
        files.collect()
    }

    /// Builds the changed copy in `at` and gives the path of this program in it; from `kept` those are taken out that
    /// do not compile.
    ///
    /// # Errors
    /// It cannot be written or built.
    pub fn build(&self, at: &Path, kept: &mut BTreeSet<u32>) -> Result<PathBuf, Failure> {
        let tree = at.join("tree");
        copy(&self.root, &tree)?;
        let kernel = tree.join("kernel/src");
        write(&kernel.join("switch.rs"), SWITCH)?;
        let lib = kernel.join("lib.rs");
        let text = std::fs::read_to_string(&lib).map_err(|e| format!("{}: {e}", lib.display()))?;
        write(&lib, &text.replacen("\npub mod storage;\n", "\npub mod storage;\npub mod switch;\n", 1))?;
        for round in 0.. {
            let files = self.rewritten(kept);
            for (name, file) in &files {
                write(&tree.join(name), &file.text)?;
            }
            let wrong = errors(&tree, &at.join("build"), &files)?;
            if wrong.is_empty() {
                break;
            }
            if round == ROUNDS {
                return Err(format!("{} mutants still do not compile", wrong.len()));
            }
            eprintln!("{} of {} mutants are not Rust that compiles", wrong.len(), kept.len());
            kept.retain(|number| !wrong.contains(number));
        }
        let mut build = cargo(&tree, &at.join("build"));
        build.args(["build", "--release", "--package", "tilewright-mutants"]);
        xtask::run(&mut build)?;
        Ok(at.join("build/release/mutants"))
    }
}

fn cargo(tree: &Path, build: &Path) -> Command {
    let mut cargo = xtask::cargo();
    cargo.current_dir(tree).env("CARGO_TARGET_DIR", build).env("RUSTFLAGS", "--cap-lints allow");
    cargo
}

/// The mutants that the errors of the changed compiler are about.
fn errors(tree: &Path, build: &Path, files: &BTreeMap<String, Rewritten>) -> Result<BTreeSet<u32>, Failure> {
    let mut check = cargo(tree, build);
    check.args(["check", "--release", "--package", "tilewright-compiler", "--message-format", "json", "--quiet"]);
    let output = check.stderr(Stdio::null()).output().map_err(|e| format!("{check:?}: {e}"))?;
    let (mut wrong, mut between, mut unexplained) = (BTreeSet::new(), BTreeSet::new(), String::new());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let message = &message["message"];
        if message["level"] != "error" {
            continue;
        }
        let mut blamed = Vec::new();
        let spans = message["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
        // The place of the error first; others only if it is in no mutant.
        for is_primary in [true, false] {
            for span in spans.iter().filter(|s| s["is_primary"] == is_primary) {
                if !blamed.is_empty() {
                    break;
                }
                let Some(file) = span["file_name"].as_str().and_then(|name| files.get(name)) else { continue };
                let byte = |name: &str| span[name].as_u64().unwrap_or_default() as usize;
                blamed.extend(file.blamed(&(byte("byte_start")..byte("byte_end"))));
            }
        }
        if blamed.is_empty()
            && let Some(first) = spans.first()
        {
            // Maybe what follows from another error: if not, it is there in the next round.
            unexplained = message["rendered"].as_str().unwrap_or_default().to_owned();
            let same = spans.iter().filter(|s| s["file_name"] == first["file_name"]);
            let byte = |span: &serde_json::Value, name: &str| span[name].as_u64().unwrap_or_default() as usize;
            let all = same.map(|s| byte(s, "byte_start")..byte(s, "byte_end"));
            if let Some(all) = all.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
                && let Some(file) = first["file_name"].as_str().and_then(|name| files.get(name))
            {
                between.extend(file.between(&all));
            }
        }
        wrong.extend(blamed);
    }
    // A statement that is left out shows where what it did is missed.
    if wrong.is_empty() {
        wrong = between;
    }
    if wrong.is_empty() && !output.status.success() {
        return Err(format!("{check:?}: {}, and no mutant explains\n{unexplained}", output.status));
    }
    Ok(wrong)
}

/// Writes a file if it differs, so that builds see what changed.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Copies the sources of the workspace. What an earlier copy has that is no source any more goes.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(to).map_err(|e| format!("{}: {e}", to.display()))?;
    let failed = |e: std::io::Error| format!("{}: {e}", from.display());
    for entry in std::fs::read_dir(to).map_err(failed)? {
        let old = entry.map_err(failed)?.path();
        if old.file_name().is_some_and(|name| !from.join(name).exists()) {
            let gone = if old.is_dir() { std::fs::remove_dir_all(&old) } else { std::fs::remove_file(&old) };
            gone.map_err(|e| format!("{}: {e}", old.display()))?;
        }
    }
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (name, path) = (entry.file_name(), entry.path());
        if NO_SOURCE.iter().any(|folder| name == *folder) {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else {
            let bytes = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let target = to.join(name);
            if !std::fs::read(&target).is_ok_and(|old| old == bytes) {
                std::fs::write(&target, bytes).map_err(|e| format!("{}: {e}", target.display()))?;
            }
        }
    }
    Ok(())
}
