//! Every kernel of the repository that must compile, found in its Rust files.

use std::path::{Path, PathBuf};

use tilewright::kernel::KernelInfo;
use tilewright_cli::source::SourceFile;
use tilewright_compiler::Compiled;
use tilewright_compiler::lower::Entry;

use crate::{Failure, ops, root};

/// Folders with kernels; files in them that should not compile lie elsewhere, in `ui-tests`.
const FOLDERS: [&str; 4] = ["examples", "docs", "tests", "runtime/tests"];

/// A kernel and where it comes from.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Name of the file without its extension, or of the generator.
    pub source: String,
    /// The kernel.
    pub info: KernelInfo,
    /// Its entry points as loop programs.
    pub entries: Vec<Entry>,
}

/// The finished kernels of a parsed file.
pub(crate) fn finished(file: &SourceFile, source: &str) -> Vec<Kernel> {
    let one = |kernel: &Compiled| {
        let (source, entries) = (source.to_owned(), kernel.entries.clone());
        kernel.info.clone().map(|info| Kernel { source, info, entries })
    };
    file.kernels().filter_map(|found| one(found.kernel)).collect()
}

/// The kernels of one file.
///
/// # Errors
/// It cannot be read, or a kernel in it does not compile.
pub fn of_file(path: &Path) -> Result<Vec<Kernel>, Failure> {
    let file = SourceFile::read(&path.to_string_lossy()).map_err(|e| e.to_string())?;
    let findings = file.findings();
    if findings.errors > 0 {
        return Err(format!("kernels do not compile:\n{}", findings.text));
    }
    let source = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(finished(&file, &source))
}

/// The files below a folder with an extension, sorted.
///
/// # Errors
/// A folder cannot be read.
pub fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Failure> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        let failed = |error| format!("{}: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The Rust files that paths name: a file is itself, a folder the files below it.
///
/// # Errors
/// A folder cannot be read.
pub fn of_paths(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let each = paths.iter().map(|path| if path.is_dir() { files(path, "rs") } else { Ok(vec![path.clone()]) });
    Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
}

/// All kernels of the repository and the generated ones.
///
/// # Errors
/// A file cannot be read, or a kernel does not compile.
pub fn all() -> Result<Vec<Kernel>, Failure> {
    let mut kernels = Vec::new();
    for folder in FOLDERS.map(|f| root().join(f)) {
        if folder.is_dir() {
            for file in files(&folder, "rs")? {
                kernels.extend(of_file(&file)?);
            }
        }
    }
    kernels.extend(ops::kernels()?);
    Ok(kernels)
}
