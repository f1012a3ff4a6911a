//! `tilewright check`: every kernel of some files, and what rustc would say.

use crate::source::SourceFile;
use crate::{Output, Status};

/// Checks files.
pub fn check(files: &[String]) -> Output {
    let (mut text, mut errors) = (String::new(), String::new());
    let (mut kernels, mut wrong, mut warnings, mut unreadable) = (0, 0, 0, 0);
    for path in files {
        match SourceFile::read(path) {
            Ok(file) => {
                let findings = file.findings();
                text.push_str(&findings.text);
                kernels += file.kernels().count();
                wrong += findings.errors;
                warnings += findings.warnings;
            }
            Err(error) => {
                errors.push_str(&format!("error: {error}\n"));
                unreadable += 1;
            }
        }
    }
    let read = files.len() - unreadable;
    text.push_str(&format!(
        "{} in {}: {}, {}\n",
        count(kernels, "kernel"),
        count(read, "file"),
        count(wrong, "error"),
        count(warnings, "warning")
    ));
    let status = match (unreadable, wrong) {
        (0, 0) => Status::Good,
        (0, _) => Status::Bad,
        _ => Status::Usage,
    };
    Output { text, errors, status }
}

/// `1 kernel`, `2 kernels`
pub(crate) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
