//! `tilewright check`: every kernel of some files, what rustc would say, and what the separate checker says at more
//! sizes than the macro has time for.

use serde_json::{Value, json};
use tilewright_compiler::trial::Tally;

use crate::fix::{self, Fixed};
use crate::source::SourceFile;
use crate::{Output, Status, findings};

/// Version of the JSON format.
const FORMAT: u32 = 1;

/// Shows the edits of files that leave no choice as a diff, does them if they are to be written, and checks what then
/// is there.
pub fn fixed(files: &[String], write: bool, as_json: bool) -> Output {
    let (mut text, mut errors, mut edits) = (String::new(), String::new(), 0);
    for path in files {
        // What cannot be read is said by the check.
        let Ok(before) = std::fs::read_to_string(path) else { continue };
        let Ok(Fixed { text: after, done }) = fix::fix(path, &before) else { continue };
        if done.is_empty() {
            continue;
        }
        edits += done.len();
        text.push_str(&fix::diff(path, &before, &after));
        if let Err(error) = if write { std::fs::write(path, &after) } else { Ok(()) } {
            errors.push_str(&format!("error: {path}: {error}\n"));
        }
    }
    let deed = if write { "done" } else { "not done" };
    text.push_str(&format!(
        "{} that {} no choice, {deed}\n",
        count(edits, "edit"),
        if edits == 1 { "leaves" } else { "leave" }
    ));
    let checked = check(files, as_json);
    if as_json {
        // The document stands alone on standard output.
        return Output { errors: format!("{text}{errors}{}", checked.errors), ..checked };
    }
    let status = if errors.is_empty() { checked.status } else { Status::Usage };
    Output { text: text + &checked.text, errors: errors + &checked.errors, status }
}

/// Checks files.
pub fn check(files: &[String], as_json: bool) -> Output {
    let (mut text, mut errors) = (String::new(), String::new());
    let mut documents: Vec<Value> = Vec::new();
    let (mut kernels, mut wrong, mut warnings, mut unreadable) = (0, 0, 0, 0);
    let mut proved = Tally::default();
    for path in files {
        match SourceFile::read(path) {
            Ok(mut file) => {
                let tally = file.prove();
                proved += tally;
                let found = file.findings();
                text.push_str(&found.text);
                let count = file.kernels().count();
                documents.push(json!({
                    "file": path, "kernels": count, "findings": findings::list(&file), "error": null, "proof": proof(tally),
                }));
                kernels += count;
                wrong += found.errors;
                warnings += found.warnings;
            }
            Err(error) => {
                errors.push_str(&format!("error: {error}\n"));
                documents.push(json!({ "file": path, "kernels": 0, "findings": [], "error": error.to_string(), "proof": proof(Tally::default()) }));
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
    if proved != Tally::default() {
        let Tally { held, undecided, exhausted } = proved;
        text.push_str(&format!(
            "separate checker, at small and large sizes: {} without a fault, {undecided} that depend on data, {exhausted} not to the end\n",
            count(held as usize, "run")
        ));
    }
    if as_json {
        let document = json!({ "format": FORMAT, "files": documents, "errors": wrong, "warnings": warnings });
        text = format!("{document:#}\n");
    }
    let status = match (unreadable, wrong) {
        (0, 0) => Status::Good,
        (0, _) => Status::Bad,
        _ => Status::Usage,
    };
    Output { text, errors, status }
}

/// Verdicts of the separate checker that found nothing wrong.
fn proof(tally: Tally) -> Value {
    json!({ "held": tally.held, "undecided": tally.undecided, "exhausted": tally.exhausted })
}

/// `1 kernel`, `2 kernels`
pub(crate) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
