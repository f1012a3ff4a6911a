//! `tilewright check`: every kernel of some files, what rustc would say, and what the separate checker says at more
//! sizes than the macro has time for.

use serde_json::{Value, json};
use tilewright_compiler::trial::Tally;

use crate::source::SourceFile;
use crate::{Output, Status, findings};

/// Version of the JSON format.
const FORMAT: u32 = 1;

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
