//! The page of what goes wrong in GPU kernels: each row names a mistake once, and a test that is there and of a place
//! that can show what the row says of it, or a reason.

use std::collections::{BTreeMap, BTreeSet};

use crate::{code_only, files, root, words};

/// Mistakes that the page lists. A row that is taken out shows here.
const MISTAKES: usize = 152;

/// Who notices a mistake, as the page has it, and where tests of that are. `NOT_HERE` has a reason instead.
const STAGES: [(&str, &[&str]); 5] = [
    ("compile", &["ui-tests", "compiler", "theory", "kernel", "tests", "runtime"]),
    ("launch", &["runtime", "kernel", "tests"]),
    ("load", &["runtime", "tests"]),
    ("emulator", &["emulator", "cli", "tests"]),
    ("derived", &["compiler", "theory", "ir", "kernel", "ptx", "tests"]),
];

const NOT_HERE: &str = "not here";

/// A row: its name, the mistake in words, and who notices it.
struct Row<'a> {
    name: &'a str,
    mistake: &'a str,
    notices: &'a str,
}

/// The rows of the page: ``| `family::name`: mistake | who notices |``.
fn rows(page: &str) -> Vec<Row<'_>> {
    page.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Row<'_>> {
    let (name, rest) = line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("`: ")?;
    let (mistake, notices) = rest.split_once(" | ")?;
    name.contains("::").then_some(Row { name, mistake, notices })
}

/// The functions of a file that are tests and are not left out: those with `#[test]`, and those that a macro `tests!`
/// gives it.
fn tests_of(text: &str) -> BTreeSet<String> {
    let code = code_only(text);
    let gives = code.find("macro_rules! tests").and_then(|at| code[at..].contains("#[test]").then_some(at));
    let mut found = BTreeSet::new();
    let (mut attributes, mut inside) = (Vec::new(), false);
    for line in code.lines() {
        inside = (inside && line != "}") || (gives.is_some() && line == "tests! {");
        let line = line.trim();
        if line.starts_with("#[") {
            attributes.push(line);
        } else if let Some(rest) = line.strip_prefix("fn ") {
            let is_test = attributes.contains(&"#[test]") || inside;
            let is_left_out = attributes.iter().any(|attribute| attribute.starts_with("#[ignore"));
            found.extend(words(rest).next().filter(|_| is_test && !is_left_out).map(str::to_owned));
            attributes.clear();
        } else if !line.is_empty() {
            attributes.clear();
        }
    }
    found
}

/// What a page names between backticks: a case of `ui-tests/fail` or a file of `ui-tests/cases`, `FILE::TEST`, or
/// `FILE::E0000` for an example of documentation that must not compile. The folder that it is in, or what is wrong.
fn named(name: &str, texts: &BTreeMap<String, String>) -> Result<String, String> {
    let is_there = |path: &str| root().join(path).is_file();
    if !name.contains("::") {
        let path = if name.contains('/') { name.to_owned() } else { format!("ui-tests/fail/{name}.rs") };
        let both = is_there(&path) && is_there(&path.replace(".rs", ".stderr"));
        let is_case = path.starts_with("ui-tests/fail/") || path.starts_with("ui-tests/cases/");
        return if both && is_case { Ok("ui-tests".to_owned()) } else { Err("there is no such case".to_owned()) };
    }
    let (path, test) = name.rsplit_once("::").expect("it has one");
    let text = texts.get(path).ok_or("there is no such file")?;
    let is_error = test.len() == 5 && test.starts_with('E') && test[1..].bytes().all(|b| b.is_ascii_digit());
    let holds =
        if is_error { text.contains(&format!("```compile_fail,{test}")) } else { tests_of(text).contains(test) };
    if holds { Ok(path.split('/').next().unwrap_or_default().to_owned()) } else { Err("it is no test".to_owned()) }
}

/// The names between backticks that are meant for tests; others are code of an explanation.
fn references(text: &str) -> impl Iterator<Item = &str> {
    let is_test = |name: &&str| name.contains(".rs") || (name.starts_with("TW") && name.contains('_'));
    text.split('`').skip(1).step_by(2).filter(is_test)
}

/// What is wrong with a row.
fn faults(row: &Row<'_>, texts: &BTreeMap<String, String>) -> Vec<String> {
    let mut found = Vec::new();
    let mut fault = |what: String| found.push(format!("{}: {what}", row.name));
    if words(row.mistake).count() < 4 {
        fault(format!("`{}` says nothing", row.mistake));
    }
    let mut said = BTreeSet::new();
    for entry in row.notices.split("; ") {
        let Some((stage, rest)) = entry.split_once(": ") else {
            fault(format!("`{entry}` does not say who notices"));
            continue;
        };
        if !said.insert(stage) {
            fault(format!("{stage} is said twice"));
        }
        let mut folders = Vec::new();
        for name in references(rest) {
            match named(name, texts) {
                Ok(folder) => folders.push((name, folder)),
                Err(why) => fault(format!("`{name}`: {why}")),
            }
        }
        match STAGES.iter().find(|(name, _)| *name == stage) {
            Some((_, allowed)) => {
                if references(rest).next().is_none() {
                    fault(format!("{stage} names no test"));
                }
                for (name, folder) in folders.iter().filter(|(_, folder)| !allowed.contains(&&**folder)) {
                    fault(format!("`{name}` in `{folder}` does not show {stage}"));
                }
            }
            None if stage == NOT_HERE && words(rest).count() >= 6 => {}
            None => fault(format!("`{entry}` is neither a stage nor a reason")),
        }
    }
    found
}

fn texts() -> BTreeMap<String, String> {
    files(".", &["rs"]).into_iter().map(|file| (file.path, file.text)).collect()
}

#[test]
fn every_mistake_has_a_test_or_a_reason() {
    let page = std::fs::read_to_string(root().join("docs/failures.md")).expect("the page");
    let rows = rows(&page);
    let names: BTreeSet<&str> = rows.iter().map(|row| row.name).collect();
    assert_eq!((rows.len(), names.len()), (MISTAKES, MISTAKES), "rows, and rows with names of their own");
    assert!(page.contains(&format!("lists {MISTAKES} of them")), "the page says how many there are");
    // What looks like a row and is none would be passed over.
    assert_eq!(page.lines().filter(|line| line.starts_with("| `")).count(), MISTAKES, "rows that are not read");
    let texts = texts();
    let wrong: Vec<String> = rows.iter().flat_map(|row| faults(row, &texts)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tests_are_told_from_other_functions() {
    let text = "#[test]\n/// It tests.\nfn a() {}\nfn b() {}\n#[test]\n#[ignore = \"slow\"]\nfn c() {}\n// #[test]\nfn d() {}\n\
                macro_rules! tests { () => { #[test] } }\ntests! {\n    /// It is one.\n    fn e(LATE) {\n    }\n}\nfn f() {}\n";
    assert_eq!(tests_of(text).into_iter().collect::<Vec<_>>(), ["a", "e"]);
}

/// Each way in which a row can be wrong is told.
#[test]
fn rows_without_a_test_are_told() {
    let texts = BTreeMap::from([
        ("ir/src/a.rs".to_owned(), "#[test]\nfn holds() {}\nfn helps() {}\n".to_owned()),
        ("runtime/src/b.rs".to_owned(), "/// ```compile_fail,E0505\n".to_owned()),
    ]);
    let told = |notices: &str| {
        let row = Row { name: "a::b", mistake: "something that goes wrong", notices };
        faults(&row, &texts).join("; ")
    };
    assert_eq!(told("derived: `ir/src/a.rs::holds` (with `code`); compile: `runtime/src/b.rs::E0505`"), "");
    assert_eq!(told("not here: no schedule can say this at all"), "");
    for (notices, why) in [
        ("", "does not say who notices"),
        ("derived: nothing at all", "names no test"),
        ("derived: `ir/src/a.rs::helps`", "it is no test"),
        ("derived: `ir/src/c.rs::holds`", "there is no such file"),
        ("launch: `ir/src/a.rs::holds`", "does not show launch"),
        ("compile: `TW0000_nothing`", "there is no such case"),
        ("compile: `runtime/src/b.rs::E0506`", "it is no test"),
        ("derived: `ir/src/a.rs::holds`; derived: `ir/src/a.rs::holds`", "said twice"),
        ("seen: `ir/src/a.rs::holds`", "neither a stage nor a reason"),
        ("not here: no", "neither a stage nor a reason"),
    ] {
        assert!(told(notices).contains(why), "{notices}: {}", told(notices));
    }
    let empty = Row { name: "a::b", mistake: "nothing", notices: "not here: no schedule can say this at all" };
    assert!(faults(&empty, &texts)[0].contains("says nothing"));
}
