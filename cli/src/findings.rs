//! Findings as JSON, for editors and other tools: places in the file, and the edits that a message proposes.
//!
//! Property: a file in which the text of an edit stands in place of its range is a file after which the finding is
//! gone, as `tilewright_compiler::diag::Edit` promises for tokens.

use serde_json::{Value, json};
use tilewright_compiler::diag::{Diagnostic, Edit, Level};
use tilewright_compiler::source::Span;

use crate::source::{Invocation, SourceFile};

/// A place between two characters: line and column from 1, columns in characters.
pub type Place = (usize, usize);

/// The findings of a file, errors first within each `schedule!`, all of them.
pub fn list(file: &SourceFile) -> Vec<Value> {
    let of = |invocation: &Invocation| -> Vec<Value> {
        let report = invocation.outcome.diagnostics.clone().finish();
        report.errors.iter().chain(&report.warnings).map(|d| finding(invocation, d)).collect()
    };
    file.invocations.iter().flat_map(of).collect()
}

fn finding(invocation: &Invocation, found: &Diagnostic) -> Value {
    let range = |span: Span| {
        let (from, to) = (token(invocation, span.first.0)?, token(invocation, span.last.0)?);
        Some(range_json(from.0, to.1))
    };
    let labels = found.labels.iter().map(|(span, text)| json!({ "range": range(*span), "text": text }));
    let help = found.help.iter().map(|help| {
        let edit = help.edit.as_ref().and_then(|edit| edit_json(invocation, edit));
        json!({ "text": help.text, "edit": edit })
    });
    let start = (invocation.line, invocation.column);
    json!({
        "code": found.code.to_string(),
        "level": match found.level { Level::Error => "error", Level::Warning => "warning" },
        "title": found.title,
        "range": range(found.primary).unwrap_or_else(|| range_json(start, start)),
        "labels": labels.collect::<Vec<_>>(),
        "notes": found.notes,
        "counterexample": found.counterexample,
        "help": help.collect::<Vec<_>>(),
    })
}

fn range_json(from: Place, to: Place) -> Value {
    json!({ "line": from.0, "column": from.1, "end_line": to.0, "end_column": to.1 })
}

/// Where a token starts and ends.
fn token(invocation: &Invocation, index: u32) -> Option<(Place, Place)> {
    let span = invocation.spans.get(index as usize)?;
    let (start, end) = (span.start(), span.end());
    Some(((start.line, start.column + 1), (end.line, end.column + 1)))
}

/// An edit as a range of the file and the text that takes its place.
pub(crate) fn edited(invocation: &Invocation, edit: &Edit) -> Option<((Place, Place), String)> {
    Some(match (edit.count.checked_sub(1), edit.first.checked_sub(1)) {
        (Some(more), _) => {
            let last = edit.first.checked_add(more)?;
            ((token(invocation, edit.first)?.0, token(invocation, last)?.1), edit.text.clone())
        }
        // What is inserted stands right after the token before.
        (None, Some(before)) => {
            let at = token(invocation, before)?.1;
            let space = if edit.text.starts_with([',', ';']) { "" } else { " " };
            ((at, at), format!("{space}{}", edit.text))
        }
        (None, None) => {
            let at = token(invocation, edit.first)?.0;
            ((at, at), format!("{} ", edit.text))
        }
    })
}

fn edit_json(invocation: &Invocation, edit: &Edit) -> Option<Value> {
    let ((from, to), text) = edited(invocation, edit)?;
    Some(json!({ "range": range_json(from, to), "text": text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with one edit done.
    fn apply(text: &str, edit: &Value) -> String {
        let number = |key: &str| edit["range"][key].as_u64().expect("a number") as usize;
        let offset = |line: usize, column: usize| {
            let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
            let rest = &text[before..];
            before + rest.char_indices().nth(column - 1).map_or(rest.len(), |(at, _)| at)
        };
        let (from, to) = (offset(number("line"), number("column")), offset(number("end_line"), number("end_column")));
        format!("{}{}{}", &text[..from], edit["text"].as_str().expect("a text"), &text[to..])
    }

    /// Every edit of every UI case, done on the file.
    #[test]
    fn edits_of_the_file_do_what_they_say() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui-tests/fail");
        let mut files: Vec<_> = std::fs::read_dir(folder).expect("the UI cases").flatten().map(|e| e.path()).collect();
        files.retain(|f| f.extension().is_some_and(|e| e == "rs"));
        files.sort();
        let mut edits = 0;
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a UI case");
            let Ok(source) = SourceFile::parse("case.rs", &text) else { continue };
            let before = list(&source);
            let same = |list: &[Value], one: &Value| {
                list.iter().filter(|f| f["code"] == one["code"] && f["title"] == one["title"]).count()
            };
            for found in &before {
                for help in found["help"].as_array().expect("a list").iter().filter(|h| !h["edit"].is_null()) {
                    edits += 1;
                    let edited = apply(&text, &help["edit"]);
                    let after = SourceFile::parse("case.rs", &edited).unwrap_or_else(|e| panic!("{e}\n{edited}"));
                    let after = list(&after);
                    assert!(same(&after, found) < same(&before, found), "{}\n{edited}", help["text"]);
                }
            }
        }
        assert!(edits >= 25, "{edits} edits");
    }

    #[test]
    fn ranges_count_characters() {
        let text = "/* ü */ tilewright::schedule! { kernel Kä(x: f32[N]) -> (y: f32[N]) { y[i] = 2 * x[i]; } }";
        let found = list(&SourceFile::parse("k.rs", text).expect("Rust"));
        assert_eq!(found.len(), 1, "{found:?}");
        let start = text.chars().collect::<Vec<_>>().windows(3).position(|w| w == ['=', ' ', '2']).expect("it") as u64;
        // From 1, and two characters on.
        let range = json!({ "line": 1, "column": start + 3, "end_line": 1, "end_column": start + 4 });
        assert_eq!(found[0]["range"], range, "{found:?}");
    }
}
