//! Proposed edits, done: on every wrong example of the pages, and on every case of the UI tests.

use proc_macro2::{TokenStream, TokenTree};
use tilewright_compiler::compile;
use tilewright_compiler::diag::{Code, Diagnostic, Level};
use tilewright_compiler::source::TokenBuffer;

/// The findings in the tokens of one `schedule!`, each with the invocation after every edit that it proposes.
fn findings(stream: TokenStream) -> Vec<(Diagnostic, Vec<(String, String)>)> {
    let (tokens, _) = TokenBuffer::new(stream);
    let outcome = compile(&tokens);
    let edited = |d: &Diagnostic| {
        d.help.iter().filter_map(|h| Some((h.text.clone(), h.edit.as_ref()?.apply(&tokens)))).collect()
    };
    outcome.diagnostics.found().iter().map(|d| (d.clone(), edited(d))).collect()
}

/// The contents of every `schedule! { … }` in some tokens.
fn invocations(stream: TokenStream, found: &mut Vec<TokenStream>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        let TokenTree::Group(group) = tree else { continue };
        let is = |back: usize, text: &str| at >= back && trees[at - back].to_string() == text;
        if is(1, "!") && is(2, "schedule") {
            found.push(group.stream());
        } else {
            invocations(group.stream(), found);
        }
    }
}

/// Everything that is refused on purpose: where it stands, and the contents of a `schedule!`.
fn sources() -> Vec<(String, TokenStream)> {
    let root = xtask::root();
    let mut list = Vec::new();
    for &code in Code::ALL {
        let page = code.row().page();
        let Some((_, section)) = page.split_once("\n## Wrong\n\n```text\n") else { continue };
        let Some((text, _)) = section.split_once("\n```\n") else { continue };
        list.push((format!("page {code}"), text.parse().expect("Rust tokens")));
    }
    for folder in ["ui-tests/fail", "ui-tests/cases"] {
        let mut files: Vec<_> =
            std::fs::read_dir(root.join(folder)).expect(folder).flatten().map(|e| e.path()).collect();
        files.sort();
        for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "rs")) {
            let text = std::fs::read_to_string(file).expect("a UI case");
            let mut found = Vec::new();
            invocations(text.parse().expect("Rust tokens"), &mut found);
            list.extend(found.into_iter().map(|stream| (file.display().to_string(), stream)));
        }
    }
    list
}

#[test]
fn proposed_edits_do_what_they_say() {
    let (mut failures, mut edits) = (String::new(), 0);
    for (place, stream) in sources() {
        let before = findings(stream);
        let errors = before.iter().filter(|(d, _)| d.level == Level::Error).count();
        for (finding, edited) in &before {
            for (text, source) in edited {
                edits += 1;
                if source.split_whitespace().collect::<String>().contains(";;") {
                    failures += &format!("{place}: `{text}` leaves a semicolon without an op:\n{source}\n");
                }
                let Ok(stream) = source.parse() else {
                    failures += &format!("{place}: `{text}` gives no Rust tokens:\n{source}\n");
                    continue;
                };
                let after: Vec<Diagnostic> = findings(stream).into_iter().map(|(d, _)| d).collect();
                let is_same = |d: &&Diagnostic| d.code == finding.code && d.title == finding.title;
                let (times, still) =
                    (before.iter().filter(|(d, _)| is_same(&d)).count(), after.iter().filter(is_same).count());
                if still >= times {
                    failures += &format!("{place}: after `{text}` there is still {}:\n{source}\n", finding.title);
                }
                // The only error, or a warning: what is left compiles.
                let only = errors <= usize::from(finding.level == Level::Error);
                if let Some(left) = after.iter().find(|d| d.level == Level::Error).filter(|_| only) {
                    failures +=
                        &format!("{place}: after `{text}` there is [{}] {}:\n{source}\n", left.code, left.title);
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(edits > 60, "only {edits} edits were proposed");
}
