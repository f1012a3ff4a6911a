//! What the examples compile to, PTX and explanation, against the files in `tests/golden`: a change of the compiler
//! shows as a readable difference. `cargo xtask bless` rewrites them.

use std::collections::BTreeMap;

use crate::{Examples, compiled, examples};

/// What each file in `tests/golden` should hold.
fn expected(examples: &Examples) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for (stem, kernels) in examples {
        for info in kernels {
            files.insert(format!("{stem}.{}.ptx", info.name), info.ptx.text.to_string());
            files.insert(format!("{stem}.{}.txt", info.name), info.explanation.to_string());
        }
    }
    files
}

#[test]
fn examples_compile_to_the_golden_files() {
    let folder = xtask::root().join("tests/golden");
    let expected = expected(examples());
    assert!(expected.len() >= 12, "{} files", expected.len());
    if std::env::var_os("TILEWRIGHT_BLESS").is_some() {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("tests/golden");
        for (name, text) in &expected {
            std::fs::write(folder.join(name), text).expect(name);
        }
        return;
    }
    let mut found: Vec<String> = std::fs::read_dir(&folder)
        .map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    found.sort();
    let mut wrong = Vec::new();
    for (name, text) in &expected {
        let golden = std::fs::read_to_string(folder.join(name)).unwrap_or_default().replace("\r\n", "\n");
        if golden == *text {
            continue;
        }
        let differs = golden.lines().zip(text.lines()).position(|(a, b)| a != b);
        let line = differs.unwrap_or(golden.lines().count().min(text.lines().count()));
        let at = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
        wrong.push(format!("{name}:{}:\n  golden:   {}\n  compiled: {}", line + 1, at(&golden), at(text)));
    }
    let left: Vec<&String> = found.iter().filter(|name| !expected.contains_key(*name)).collect();
    assert!(left.is_empty(), "files of no kernel: {left:?}; run `cargo xtask bless`");
    assert!(
        wrong.is_empty(),
        "{}\nif that is meant, run `cargo xtask bless` and read the difference",
        wrong.join("\n")
    );
}

#[test]
fn compiling_twice_gives_the_same_text() {
    assert_eq!(expected(examples()), expected(&compiled()));
}
