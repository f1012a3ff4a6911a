//! `tilewright inspect`: what kernels were compiled to.
//!
//! `view` collects the facts, `copied` and `product` those about staged copies and tensor cores, `memory` those about
//! shared memory, `threads` who runs what, `boxes` what blocks access; `text` and `json` write them, and `draw` draws
//! them.

pub(crate) mod boxes;
pub(crate) mod copied;
mod json;
pub(crate) mod memory;
mod product;
mod text;
pub(crate) mod threads;
pub(crate) mod view;

pub use json::document;
use tilewright_kernel::KernelInfo;

use crate::source::{Found, SourceFile};
use crate::{Output, Status, findings, listed};

/// Inspects one kernel of a file or all of them.
pub fn inspect(path: &str, wanted: Option<&str>, as_json: bool) -> Output {
    let file = match SourceFile::read(path) {
        Ok(file) => file,
        Err(error) => return Output::usage(error),
    };
    let found: Vec<Found<'_>> = match wanted {
        Some(name) => match named(&file, name) {
            Ok(found) => found,
            Err(message) => return Output::usage(message),
        },
        None => file.kernels().collect(),
    };
    let said = file.findings();
    let errors = if said.errors > 0 { said.text } else { String::new() };
    let wrong = said.errors > 0 && (wanted.is_none() || found.iter().any(|f| f.kernel.info.is_none()));
    let text = if as_json {
        let mut text = format!("{:#}", document(path, &found, &findings::list(&file)));
        text.push('\n');
        text
    } else {
        found.iter().filter_map(|f| text::kernel(path, f)).collect()
    };
    Output { text, errors, status: if wrong { Status::Bad } else { Status::Good } }
}

/// The PTX of one kernel of a file.
pub fn ptx(path: &str, wanted: Option<&str>) -> Output {
    let file = match SourceFile::read(path) {
        Ok(file) => file,
        Err(error) => return Output::usage(error),
    };
    match only(&file, wanted) {
        Ok((_, info)) => Output { text: info.ptx.text.to_string(), errors: String::new(), status: Status::Good },
        Err(output) => output,
    }
}

/// The kernels with a name; an error that lists the names there are.
pub(crate) fn named<'a>(file: &'a SourceFile, name: &str) -> Result<Vec<Found<'a>>, String> {
    let found: Vec<_> = file.kernels().filter(|f| f.kernel.ast.name.text == name).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let mut names: Vec<String> = file.kernels().map(|f| f.kernel.ast.name.text.to_string()).collect();
    names.dedup();
    let known = listed(&names, "none");
    Err(format!("{} has no kernel `{}`; it has {known}", file.path, name.escape_debug()))
}

/// The finished kernel with a name, the only one of that name; without a name the only one of the file.
///
/// # Errors
/// What to tell the user, and whether the kernel itself is wrong rather than its name.
pub(crate) fn only<'a>(file: &'a SourceFile, name: Option<&str>) -> Result<(usize, &'a KernelInfo), Output> {
    let found = one(file, name)?;
    found.kernel.info.as_ref().map(|info| (found.line, info)).ok_or_else(|| refused(file))
}

/// What is wrong with a file's kernels.
fn refused(file: &SourceFile) -> Output {
    Output { text: String::new(), errors: file.findings().text, status: Status::Bad }
}

/// The same with all that is known of it.
///
/// # Errors
/// As [`only`].
pub(crate) fn one<'a>(file: &'a SourceFile, name: Option<&str>) -> Result<Found<'a>, Output> {
    let found = match name {
        Some(name) => named(file, name).map_err(Output::usage)?,
        None => file.kernels().collect(),
    };
    let Some(name) = name.or_else(|| found.first().filter(|_| found.len() == 1).map(|f| &*f.kernel.ast.name.text))
    else {
        let names: Vec<String> = found.iter().map(|f| f.kernel.ast.name.text.to_string()).collect();
        let (count, path) = (names.len(), &file.path);
        return Err(match count {
            // What could not be parsed is no kernel.
            0 if file.findings().errors > 0 => refused(file),
            0 => Output::usage(format!("{path} has no kernel")),
            _ => Output::usage(format!(
                "{path} has {count} kernels: add --kernel with one of {}",
                listed(&names, "none")
            )),
        });
    };
    if let [first, second, ..] = &found[..] {
        let path = &file.path;
        return Err(Output::usage(format!(
            "{path} has {} kernels `{name}`, in the `schedule!` at lines {} and {}",
            found.len(),
            first.line,
            second.line
        )));
    }
    if found[0].kernel.info.is_none() { Err(refused(file)) } else { Ok(found[0]) }
}
