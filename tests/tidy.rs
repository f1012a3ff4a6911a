//! What no compiler checks: every diagnostic code is used, explained and shown; rooms keep to what they may know.
//!
//! Rules about sources look at code only: comments, strings and characters are blanked first.

#[path = "tidy/failures.rs"]
mod failures;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tilewright_compiler::diag::{Code, Level};
use xtask::COMPILER;

/// Codes without a UI case, each with the reason.
const WITHOUT_CASE: [Code; 2] = [
    Code::TW0131, // needs 65536 parameters; `tests/language/pages.rs` has them
    Code::TW9001, // a defect of the compiler, by definition not known
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// A file of the repository.
struct File {
    /// Its path from the root, with `/`.
    path: String,
    text: String,
}

impl File {
    fn is_in(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|e| e == extension)
    }
}

/// The files with these extensions in a folder, in order; build outputs and hidden folders are left out.
fn files(folder: &str, extensions: &[&str]) -> Vec<File> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        for entry in entries {
            let path = entry.expect("an entry of a folder").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                // What mdBook makes of `docs` lies beside it.
                let is_built = matches!(name.as_str(), "target" | "dist" | "wip") || path == root().join("book");
                if !is_built && !name.starts_with('.') {
                    open.push(path);
                }
            } else if extensions.iter().any(|e| path.extension().is_some_and(|x| x == *e)) {
                let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                let from_root = path.strip_prefix(root()).expect("a path below the root");
                let parts: Vec<_> = from_root.components().map(|c| c.as_os_str().to_string_lossy()).collect();
                found.push(File { path: parts.join("/"), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!found.is_empty(), "there are files in `{folder}`");
    found
}

/// Rust with comments, strings and characters replaced by spaces; lines stay.
fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
    let mut at = 0;
    while at < chars.len() {
        let end = skipped(&chars, at);
        if end > at {
            out.extend(chars[at..end].iter().map(|c| blank(*c)));
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// All files of Rust with their code as text: read once for all rules.
fn all_code() -> &'static [File] {
    static CODE: LazyLock<Vec<File>> = LazyLock::new(|| {
        files(".", &["rs"]).into_iter().map(|file| File { text: code_only(&file.text), ..file }).collect()
    });
    &CODE
}

/// The end of the comment, string or character that starts here; `at` if none does.
fn skipped(chars: &[char], at: usize) -> usize {
    let get = |n: usize| chars.get(n).copied().unwrap_or('\0');
    let find =
        |from: usize, what: &dyn Fn(usize) -> bool| (from..chars.len()).find(|n| what(*n)).unwrap_or(chars.len());
    match (get(at), get(at + 1)) {
        ('/', '/') => find(at, &|n| chars[n] == '\n'),
        ('/', '*') => {
            let (mut depth, mut n) = (1, at + 2);
            while n < chars.len() && depth > 0 {
                match (chars[n], get(n + 1)) {
                    ('/', '*') => (depth, n) = (depth + 1, n + 2),
                    ('*', '/') => (depth, n) = (depth - 1, n + 2),
                    _ => n += 1,
                }
            }
            n
        }
        ('"', _) => string_end(chars, at),
        ('r', '"' | '#')
            if at == 0 || !is_word(get(at - 1)) || (get(at - 1) == 'b' && (at < 2 || !is_word(get(at - 2)))) =>
        {
            let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
            if get(at + 1 + hashes) != '"' {
                return at; // a raw identifier
            }
            let closes = |n: usize| chars[n] == '"' && (1..=hashes).all(|h| get(n + h) == '#');
            (find(at + 2 + hashes, &closes) + 1 + hashes).min(chars.len())
        }
        ('\'', '\\') => (find(at + 3, &|n| chars[n] == '\'') + 1).min(chars.len()),
        ('\'', _) if get(at + 2) == '\'' => at + 3,
        _ => at,
    }
}

fn string_end(chars: &[char], at: usize) -> usize {
    let mut n = at + 1;
    while n < chars.len() && chars[n] != '"' {
        n += if chars[n] == '\\' { 2 } else { 1 };
    }
    (n + 1).min(chars.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c)).filter(|w| !w.is_empty())
}

/// The codes that a text mentions.
fn codes(text: &str) -> BTreeSet<String> {
    let is_code = |w: &&str| w.len() == 6 && w.starts_with("TW") && w[2..].bytes().all(|b| b.is_ascii_digit());
    words(text).filter(is_code).map(str::to_owned).collect()
}

fn all_codes() -> BTreeSet<String> {
    Code::ALL.iter().map(Code::to_string).collect()
}

/// The files of the compiler, and for each its path inside of its crate's folder.
fn compiler_files() -> Vec<(File, String)> {
    let mut all = Vec::new();
    for folder in COMPILER {
        for file in files(folder, &["rs"]) {
            let inside = file.path[folder.len() + 1..].to_owned();
            all.push((file, inside));
        }
    }
    all
}

#[test]
fn code_only_keeps_code() {
    let text =
        "a /* b /* c */ d */ e // f\n\"g \\\" h\" i r#\"j\" k\"# l '\\'' m 'n' o<'p> q br\"s\" r#t '\\u{1F600}' u";
    let code = code_only(text);
    let kept: Vec<&str> = words(&code).collect();
    assert_eq!(kept.join(" "), "a e i l m o p q b r t u");
}

#[test]
fn every_code_has_a_file_and_the_crate_its_page() {
    let in_codes = files("compiler/src/diag/codes", &["rs"]);
    let named = |f: &File| f.path.trim_start_matches("compiler/src/diag/codes/").trim_end_matches(".rs").to_owned();
    let file_of = |code: &Code| format!("{}_{}", code.row().code.to_lowercase(), code.row().name.replace('-', "_"));
    assert_eq!(
        in_codes.iter().map(named).filter(|name| name != "mod").collect::<BTreeSet<_>>(),
        Code::ALL.iter().map(file_of).collect(),
        "files of compiler/src/diag/codes and the list of codes"
    );
    let listed: BTreeSet<String> = tilewright::errors::codes().map(str::to_owned).collect();
    assert_eq!(listed, all_codes(), "the pages of the crate `tilewright` and the list of codes");
    for code in Code::ALL {
        let page = code.row().page();
        assert_eq!(tilewright::errors::page(code.row().code), Some(page.as_str()), "the page of {code}");
        let unknown: Vec<_> = codes(&page).difference(&all_codes()).cloned().collect();
        assert!(unknown.is_empty(), "the page of {code} mentions {unknown:?}");
    }
}

#[test]
fn every_code_has_a_case_that_shows_it_and_nothing_else() {
    let mut shown = BTreeSet::new();
    let stderr: BTreeMap<String, String> =
        files("ui-tests/fail", &["stderr"]).into_iter().map(|f| (f.path, f.text)).collect();
    let sources = files("ui-tests/fail", &["rs"]);
    for file in &sources {
        let name = file.path.trim_start_matches("ui-tests/fail/");
        let code = name.split('_').next().and_then(Code::from_text);
        let code = code.unwrap_or_else(|| panic!("{name} starts with a code of the table"));
        let expected = stderr.get(&file.path.replace(".rs", ".stderr"));
        let expected = expected.unwrap_or_else(|| panic!("{name} has its .stderr"));
        // The reasons of what `tune` leaves out are findings of their own.
        let shows = match code {
            Code::TW1104 | Code::TW1190 => &codes(expected) & &BTreeSet::from([code.to_string()]),
            _ => codes(expected),
        };
        assert_eq!(shows, BTreeSet::from([code.to_string()]), "what {name} shows");
        let title = match code.row().level {
            Level::Error => format!("error: [{code}] "),
            Level::Warning => format!("_::{code}_{}`: ", code.row().name.replace('-', "_")),
        };
        assert!(expected.contains(&title), "{name} shows `{title}`");
        shown.insert(code);
    }
    assert_eq!(stderr.len(), sources.len(), "every .stderr has its source");
    let missing: Vec<_> = Code::ALL.iter().filter(|c| !shown.contains(c) && !WITHOUT_CASE.contains(c)).collect();
    assert!(missing.is_empty(), "codes without a case in ui-tests/fail: {missing:?}");
}

#[test]
fn every_code_is_used() {
    let sources = files("compiler/src", &["rs"]);
    let mut used_words = BTreeSet::new();
    for file in sources.iter().filter(|f| !f.is_in("compiler/src/diag") && !f.path.contains("/tests")) {
        used_words.extend(words(&code_only(&file.text)).map(str::to_owned));
    }
    let mut used = BTreeSet::new();
    for file in sources.iter().filter(|f| f.is_in("compiler/src/diag/codes")) {
        let code = code_only(&file.text);
        for block in code.split("impl IntoDiagnostic for ").skip(1) {
            let payload = words(block).next().expect("the name of a payload");
            let body = block.split("\n}").next().expect("its body");
            if used_words.contains(payload) {
                used.extend(codes(body));
            } else {
                panic!("nothing reports `{payload}` of {}", file.path);
            }
        }
    }
    assert_eq!(used, all_codes(), "codes that a check reports, and the table of codes");
}

#[test]
fn messages_name_no_internals_and_no_machine() {
    // The compiler's types, by the declarations in its rooms.
    let mut types = BTreeSet::new();
    for (file, _) in compiler_files() {
        let code = code_only(&file.text);
        let list: Vec<&str> = words(&code).collect();
        let declared = list.windows(2).filter(|pair| matches!(pair[0], "struct" | "enum" | "trait"));
        let named = declared.map(|pair| pair[1]).filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()));
        types.extend(named.map(str::to_owned));
    }
    assert!(types.contains("Outcome") && types.contains("UnexpectedToken"));
    for file in files("ui-tests", &["stderr"]) {
        let source = std::fs::read_to_string(root().join(file.path.replace(".stderr", ".rs"))).expect("the case");
        let own: BTreeSet<&str> = words(&source).collect();
        for line in file.text.lines() {
            for word in words(line).filter(|w| !own.contains(w)) {
                // `Input` and `Output` are the runtime's traits as well.
                let public = matches!(word, "Input" | "Output" | "Element" | "Tensor" | "Device" | "Sealed");
                assert!(public || !types.contains(word), "{}: the type `{word}` of the compiler in: {line}", file.path);
            }
            let is_path = |w: &str| w.starts_with('/') && w[1..].starts_with(|c: char| c.is_alphabetic());
            let absolute = line.split([' ', '`', '"', '(']).find(|w| is_path(w));
            assert_eq!(absolute, None, "{}: a path of one machine", file.path);
        }
        // The title, its reasons and the place: what is longer is not read.
        for message in file.text.split("\nerror").filter(|m| m.contains("[TW")) {
            let facts = message.lines().filter(|l| l.trim_start().starts_with("= ")).count();
            assert!(facts <= 6, "{}: {facts} facts in one message", file.path);
        }
    }
}

/// Fails for every file of Rust whose code has one of the words.
fn forbid(words_of: &[&str], why: &str, allowed: impl Fn(&File) -> bool) {
    let mut found = Vec::new();
    for file in all_code().iter().filter(|f| !allowed(f)) {
        for (number, line) in (1..).zip(file.text.lines()) {
            if let Some(word) = words(line).find(|w| words_of.contains(w)) {
                found.push(format!("{}:{number}: {word}", file.path));
            }
        }
    }
    assert!(found.is_empty(), "{why}:\n{}", found.join("\n"));
}

#[test]
fn only_the_first_rooms_know_token_streams() {
    forbid(&["syn", "proc_macro2", "quote"], "tokens outside `source`, `syntax`, `macros` and the tools", |f| {
        COMPILER.iter().all(|folder| !f.is_in(folder))
            || f.is_in("compiler/src/source")
            || f.is_in("compiler/src/syntax")
            || f.is_in("compiler/src/diag")
            || f.path.contains("/tests/")
            || f.path.ends_with("/tests.rs")
    });
    forbid(&["proc_macro"], "`proc_macro` outside `macros`", |f| f.is_in("macros"));
}

#[test]
fn unsafe_stays_in_the_rooms_of_driver_and_memory() {
    forbid(
        &["unsafe"],
        "unsafe code outside the runtime's driver and memory and the emulator's choice of a host",
        |f| {
            // And the other side of the driver's interface, for tests; and what a program of a user may do.
            let rooms = [
                "runtime/src/cuda",
                "runtime/src/memory",
                "runtime/tests",
                "fake-driver",
                "tests/driver.rs",
                "interop/examples",
            ];
            rooms.iter().any(|room| f.is_in(room)) || f.path == "emulator/src/exec/host.rs"
        },
    );
}

/// The rows of the page on what is trusted, and the code.
#[test]
fn the_page_on_trust_counts_all_unsafe_code() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).expect("the page");
    let (_, table) = page.split_once("| file | `unsafe` | why it is right |\n").expect("its table");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let row = |line: &str| -> Option<(String, usize)> {
        let mut cells = line.split('|').skip(1).map(str::trim);
        Some((cells.next()?.trim_matches('`').to_owned(), cells.next()?.parse().ok()?))
    };
    let told: BTreeMap<String, usize> = rows.map(|line| row(line).unwrap_or_else(|| panic!("{line}"))).collect();
    let mut found = BTreeMap::new();
    for file in all_code() {
        // Of no program of a user: tests, the other side of the driver, and the examples of other crates.
        let is_test = ["fake-driver", "tests", "runtime/tests", "interop"].iter().any(|folder| file.is_in(folder));
        let count = words(&file.text).filter(|word| *word == "unsafe").count();
        if count > 0 && !is_test {
            found.insert(file.path.clone(), count);
        }
    }
    assert_eq!(told, found, "rows of docs/security.md, and `unsafe` in the code");
}

/// What the macro is made of is a function of tokens.
#[test]
fn the_macro_reads_nothing_but_tokens() {
    let outside = ["fs", "net", "process", "env", "time", "Instant", "SystemTime", "File", "Command", "TcpStream"];
    let mut found = Vec::new();
    for folder in ["sorted", "kernel", "theory", "ptx", "ir", "compiler", "macros"] {
        for file in files(&format!("{folder}/src"), &["rs"]) {
            let is_test = file.path.split(['/', '.']).any(|part| part == "tests" || part.ends_with("_tests"));
            let code = code_only(&file.text);
            let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            for (number, line) in (1..).zip(code.lines()).filter(|_| !is_test) {
                // Names of the standard library: in a path, or imported.
                let is_std = line.contains("std::");
                if let Some(word) = words(line).find(|word| is_std && outside.contains(word)) {
                    found.push(format!("{}:{number}: {word}", file.path));
                }
            }
        }
    }
    assert!(found.is_empty(), "files, connections, programs, environment or clocks:\n{}", found.join("\n"));
}

/// `cudarc` panics where a function is missing: every one that is called is asked for first.
#[test]
fn every_function_of_the_driver_is_asked_for_before_it_is_called() {
    let probe = std::fs::read_to_string(root().join("runtime/src/cuda/probe.rs")).expect("the room's probe");
    let asked: BTreeSet<&str> = probe.split('"').skip(1).step_by(2).filter(|name| name.starts_with("cu")).collect();
    let mut called = BTreeSet::new();
    for file in files("runtime/src/cuda", &["rs"]) {
        let code = code_only(&file.text);
        let is_function =
            |word: &&str| word.starts_with("cu") && word[2..].starts_with(|c: char| c.is_ascii_uppercase());
        called.extend(words(&code).filter(is_function).map(str::to_owned));
    }
    assert!(called.len() > 30, "{called:?}");
    let missing: Vec<_> = called.iter().filter(|name| !asked.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "called, and in no list of probe.rs: {missing:?}");
}

/// All crates of a version belong together: the macro's output fits this runtime and no other.
#[test]
fn crates_ask_for_each_other_by_exact_version() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = ")).expect("a version").trim();
    let exact = format!("version = \"={}\"", version.trim_matches('"'));
    let ours = manifest.lines().filter(|line| line.starts_with("tilewright") && line.contains("version = "));
    let ours: Vec<&str> = ours.collect();
    assert!(ours.len() > 8, "{ours:?}");
    let loose: Vec<_> = ours.iter().filter(|line| !line.contains(&exact)).collect();
    assert!(loose.is_empty(), "without `{exact}`: {loose:#?}");
}

#[test]
fn nothing_depends_on_hash_order_and_nothing_is_left_open() {
    forbid(&["HashMap", "HashSet"], "iteration order that differs from run to run", |_| false);
    let mut found = Vec::new();
    for file in all_code() {
        for (number, line) in (1..).zip(file.text.lines()) {
            if ["todo!", "unimplemented!", "dbg!"].iter().any(|m| line.contains(m)) {
                found.push(format!("{}:{number}", file.path));
            }
        }
    }
    assert!(found.is_empty(), "macros of unfinished work: {found:?}");
}

#[test]
fn the_emulator_and_ptx_do_not_know_the_compiler() {
    for folder in ["ptx", "emulator"] {
        for file in files(folder, &["rs", "toml"]) {
            let text = if file.has_extension("rs") { code_only(&file.text) } else { file.text.replace('-', "_") };
            assert!(!words(&text).any(|w| w == "tilewright_compiler"), "{} mentions the compiler", file.path);
        }
    }
}

#[test]
fn every_room_says_what_is_in_it() {
    for file in files(".", &["rs"]) {
        assert!(file.text.starts_with("//!"), "{} starts with what is in it", file.path);
    }
}

/// Programs of tests are listed, or put together from files: one that is not named is never run.
#[test]
fn no_file_of_tests_is_left_out() {
    for (package, folder) in [("tests", "tests"), ("emulator/tests", "emulator/tests"), ("ptx", "ptx/tests")] {
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let (manifest, program) =
            (read(root().join(package).join("Cargo.toml")), read(root().join(folder).join("main.rs")));
        for file in files(folder, &["rs"]) {
            let name = file.path.strip_prefix(folder).expect("it lies there").trim_start_matches('/');
            let module = match name.split_once('/') {
                None => name.trim_end_matches(".rs"),
                Some((module, "main.rs" | "mod.rs")) => module,
                Some(_) => continue, // a module of those
            };
            let is_named =
                manifest.lines().any(|line| line.starts_with("path =") && line.contains(&format!("{name}\"")));
            let is_part = program.contains(&format!("mod {module};\n")) || module == "support";
            assert!(is_named || is_part, "{} is part of no program", file.path);
        }
    }
}

/// A crate whose own unit tests `cargo test` leaves out has them in `unit-tests`: else they are never run.
#[test]
fn no_unit_tests_are_left_out() {
    let manifests = files(".", &["toml"]);
    let built = &manifests.iter().find(|file| file.path == "unit-tests/Cargo.toml").expect("the package").text;
    let built: BTreeSet<&str> = built.lines().filter_map(|line| line.strip_prefix("path = \"../")).collect();
    let of_crate = |file: &File| {
        let is_left =
            |rest: &str| rest.lines().take_while(|l| !l.starts_with('[')).any(|l| l.starts_with("test = false"));
        let has_tests = file.text.split_once("\n[lib]\n").is_some_and(|(_, rest)| is_left(rest));
        let folder = file.path.strip_suffix("/Cargo.toml").filter(|_| has_tests)?;
        root().join(folder).join("src/lib.rs").exists().then(|| format!("{folder}/src/lib.rs\""))
    };
    let left: Vec<String> = manifests.iter().filter_map(of_crate).collect();
    assert!(left.len() > 3, "{left:?}");
    assert_eq!(left.iter().map(String::as_str).collect::<BTreeSet<_>>(), built);
}

/// The most lines of a file that says nothing about its length; tests are not counted.
const LINES: usize = 500;

#[test]
fn long_files_say_why() {
    let is_test = |file: &File| {
        let folders = ["tests", "ui-tests", "examples"];
        file.path.ends_with("tests.rs") || file.path.split('/').any(|part| folders.contains(&part))
    };
    let mut wrong = Vec::new();
    for file in files(".", &["rs"]).iter().filter(|file| !is_test(file)) {
        let code = file.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let mut header = code.lines().take_while(|line| line.starts_with("//!"));
        let lines = code.lines().count();
        if lines > LINES && !header.any(|line| line.contains("longer than 500 lines")) {
            wrong.push(format!("{}: {lines}", file.path));
        }
    }
    assert!(wrong.is_empty(), "files of more than {LINES} lines whose header does not say why:\n{}", wrong.join("\n"));
}

#[test]
fn no_text_names_a_machine() {
    let needles = [["/", "root", "/"].concat(), ["/", "work", "/"].concat()];
    for file in files(".", &["rs", "md", "toml", "stderr", "ptx", "txt", "yml"]) {
        for needle in &needles {
            assert!(!file.text.contains(needle), "{} names a path of one machine, `{needle}`", file.path);
        }
    }
}

/// The headings of the page of the theory.
fn headings(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("## ")).collect()
}

#[test]
fn citations_of_the_theory_name_its_headings() {
    let page = std::fs::read_to_string(root().join("docs/theory.md")).expect("the page");
    let headings = headings(&page);
    let (mut cited, mut wrong) = (0, Vec::new());
    for file in files(".", &["rs"]).iter().filter(|file| !file.path.ends_with("tests/tidy.rs")) {
        // A comment may break anywhere.
        let lines = file.text.lines().map(|line| line.trim_start().trim_start_matches(['/', '!', ' ']));
        let text = lines.collect::<Vec<_>>().join(" ");
        for after in text.split("docs/theory.md").skip(1) {
            cited += 1;
            if !after.strip_prefix(", ").is_some_and(|rest| headings.iter().any(|heading| rest.starts_with(heading))) {
                wrong.push(format!("{}: docs/theory.md{}", file.path, after.chars().take(40).collect::<String>()));
            }
        }
    }
    assert!(cited > 8, "{cited} citations");
    assert!(wrong.is_empty(), "headings are {headings:?}:\n{}", wrong.join("\n"));
}

#[test]
fn the_tests_that_the_theory_names_exist() {
    let page = std::fs::read_to_string(root().join("docs/theory.md")).expect("the page");
    let code: String = files(".", &["rs"]).into_iter().map(|file| file.text).collect();
    let (mut named, mut wrong) = (0, Vec::new());
    let paragraphs = page.split("\n\n").filter(|paragraph| paragraph.starts_with("Tests: "));
    for name in paragraphs.flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2)) {
        named += 1;
        let is_there = if name.contains(['/', '.']) {
            [""].iter().chain(&COMPILER).any(|folder| root().join(folder).join(name).exists())
                || (!name.contains('/')
                    && compiler_files().iter().any(|(file, _)| file.path.ends_with(&format!("/{name}"))))
        } else {
            !name.contains('_') || code.contains(&format!("fn {name}("))
        };
        if !is_there {
            wrong.push(name);
        }
    }
    assert!(named > 30, "{named} names");
    assert!(wrong.is_empty(), "the page names what is not there: {wrong:?}");
}

/// The longest line of prose.
const COLUMNS: usize = 120;

/// The lines of prose of a file: comments of Rust, everything of a page; without what cannot be broken: tables, code,
/// headings.
fn prose(file: &File) -> Vec<&str> {
    let is_rust = file.has_extension("rs");
    let mut is_code = false;
    let mut found = Vec::new();
    for line in file.text.lines() {
        let text = match is_rust.then(|| line.trim_start()) {
            Some(text) if text.starts_with("//") => text.trim_start_matches(['/', '!']).trim_start(),
            Some(_) => {
                is_code = false;
                continue;
            }
            None => line.trim_start(),
        };
        if text.starts_with("```") {
            is_code = !is_code;
        } else if !is_code && !text.starts_with(['|', '#']) {
            found.push(line);
        }
    }
    found
}

#[test]
fn prose_fits_a_screen() {
    let mut wrong = Vec::new();
    for file in files(".", &["rs", "md"]) {
        for line in prose(&file).into_iter().filter(|line| line.chars().count() > COLUMNS) {
            wrong.push(format!("{}: {line}", file.path));
        }
    }
    assert!(wrong.is_empty(), "lines of more than {COLUMNS} columns:\n{}", wrong.join("\n"));
}

#[test]
fn every_file_of_a_room_has_its_row() {
    let mut wrong = Vec::new();
    let rooms: Vec<File> = compiler_files().into_iter().map(|(file, _)| file).collect();
    for room in rooms.iter().filter(|f| f.path.split('/').count() == 4 && f.path.ends_with("/mod.rs")) {
        let folder = room.path.trim_end_matches("mod.rs");
        let rows = room.text.lines().take_while(|line| line.starts_with("//!"));
        let cells = rows.filter_map(|line| line.strip_prefix("//! | `")?.split(" | ").next());
        let named: BTreeSet<&str> = cells.flat_map(words).collect();
        let inside = rooms.iter().filter_map(|f| f.path.strip_prefix(folder)?.split(['/', '.']).next());
        // Families of diagnostics are named by their codes.
        let is_family = |name: &str| name.starts_with("tw") && name[2..].starts_with(|c: char| c.is_ascii_digit());
        let is_named = |name: &&str| !name.ends_with("tests") && *name != "mod" && !is_family(name);
        let there: BTreeSet<&str> = inside.filter(is_named).collect();
        // A room of few files needs no table.
        if there.len() > 4 {
            wrong.extend(there.difference(&named).map(|name| format!("{}: no row of `{name}`", room.path)));
            wrong.extend(named.difference(&there).map(|name| format!("{}: no file `{name}`", room.path)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rooms of the compiler, each of which imports only rooms before it: so no cycle of files crosses two rooms.
const ROOMS: [&str; 28] = [
    "extent",
    "region",
    "domain",
    "layout",
    "collectives",
    "kernel_ir",
    "proof",
    "emit",
    "source",
    "diag",
    "syntax",
    "allow",
    "tune",
    "program",
    "online",
    "bounds",
    "holes",
    "schedule",
    "plan",
    "memory",
    "tma",
    "mma",
    "banks",
    "lower",
    "trial",
    "made",
    "explain",
    "assemble",
];

/// The rooms that a piece of code names as `crate::ROOM` or `crate::{ROOM, …}`.
fn imported(code: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        // The first name of each item of a list.
        let list = after.strip_prefix('{').and_then(|list| list.split_once("};")).map_or(after, |(list, _)| list);
        let items = if after.starts_with('{') { list.split(',').collect() } else { vec![list] };
        found.extend(items.into_iter().filter_map(|item| words(item).next()));
    }
    found.retain(|name| ROOMS.contains(name));
    found
}

#[test]
fn rooms_import_rooms_before_them() {
    let place = |room: &str| ROOMS.iter().position(|r| *r == room);
    let mut against = Vec::new();
    for (file, inside) in compiler_files() {
        let is_test = file.path.split(['/', '.']).any(|part| part == "tests" || part.ends_with("_tests"));
        let room = inside.split(['/', '.']).next().unwrap_or_default();
        let Some(own) = place(room).filter(|_| !is_test) else {
            assert!(
                is_test || matches!(room, "lib" | "random" | "side_by_side" | "span" | "work"),
                "`{room}` has no place in the order of rooms"
            );
            continue;
        };
        let code = code_only(&file.text);
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let others = imported(code).into_iter().filter(|other| place(other) > Some(own));
        against.extend(others.map(|other| format!("{} imports `{other}`", file.path)));
    }
    assert!(against.is_empty(), "against the order of ROOMS:\n{}", against.join("\n"));
}

#[test]
fn rooms_stand_in_the_table_in_their_order() {
    let page = &files(".", &["md"]).into_iter().find(|f| f.path == "ARCHITECTURE.md").expect("the page").text;
    let (_, table) = page.split_once("| room | asks | gives |\n").expect("the table of rooms");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let named: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert_eq!(named, ROOMS);
}

#[test]
fn the_files_that_the_map_names_exist() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let prose = page.split("```").step_by(2).collect::<String>();
    let names = prose.split('`').skip(1).step_by(2).filter(|name| name.contains('/') && !name.contains(' '));
    let (mut named, mut wrong) = (0, Vec::new());
    for name in names {
        named += 1;
        if ![""].iter().chain(&COMPILER).any(|folder| root().join(folder).join(name).exists()) {
            wrong.push(name);
        }
    }
    assert!(named > 20, "{named} names");
    assert!(wrong.is_empty(), "the page names what is not there: {wrong:?}");
}

#[test]
fn imports_are_read() {
    let code = "use crate::extent::{Expr, tma};\nuse crate::{Compiled, domain::Axis, lower};\nf(crate::proof::run);";
    assert_eq!(imported(code).into_iter().collect::<Vec<_>>(), ["domain", "extent", "lower", "proof"]);
}
