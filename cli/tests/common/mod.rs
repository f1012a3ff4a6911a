//! What the tests of the command share. What it prints does not depend on an assembler of the machine: it finds none.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// Runs the command in the folder of the test kernels: exit code, standard output, standard error.
pub fn tilewright(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(arguments)
        .env("PTXAS", "")
        .env("PATH", "")
        .current_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernels"))
        .output()
        .expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code().expect("an exit code"), text(&output.stdout), text(&output.stderr))
}

/// The fields of a document: `kernels[].name`. Lists of plain values count as one field.
pub fn fields(value: &Value, path: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            if !path.is_empty() {
                into.push(path.to_owned());
            }
            for (key, value) in object {
                // The names of dimensions are the user's.
                if path == "dims" || path == "runs[].scalars" {
                    continue;
                }
                let dot = if path.is_empty() { "" } else { "." };
                fields(value, &format!("{path}{dot}{key}"), into);
            }
        }
        Value::Array(all) => {
            into.push(path.to_owned());
            for value in all.iter().filter(|v| v.is_object()) {
                fields(value, &format!("{path}[]"), into);
            }
        }
        _ => into.push(path.to_owned()),
    }
}

pub fn sorted(mut fields: Vec<String>) -> Vec<String> {
    fields.retain(|f| !f.ends_with("[]"));
    fields.sort();
    fields.dedup();
    fields
}

/// The fields in the tables of a section of `docs/inspect-json.md`.
pub fn documented(section: &str) -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/inspect-json.md");
    let text = std::fs::read_to_string(path).expect("docs/inspect-json.md");
    let start = text.find(&format!("\n## {section}\n")).expect("the section") + 1;
    let end = text[start..].find("\n## ").map_or(text.len(), |at| start + at);
    let rows = text[start..end].lines().filter_map(|line| line.strip_prefix("| `"));
    sorted(rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect())
}

pub fn json(arguments: &[&str]) -> Value {
    let (_, out, err) = tilewright(arguments);
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"))
}
