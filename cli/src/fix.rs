//! `tilewright check --fix`: edits that leave no choice, done one after the other.
//!
//! **Property.** After each edit its finding is gone: the file is compiled again to see that. An edit of which that is
//! not so is left to the author. What an error kept from being looked at may then be found as well.

use tilewright_compiler::diag::{Code, Diagnostic, Edit};

use crate::findings::{self, Place};
use crate::source::{SourceError, SourceFile};

/// Most edits of a file: each is followed by a compilation.
const MOST: usize = 100;

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The text with all edits done.
    pub text: String,
    /// What they were for.
    pub done: Vec<String>,
}

/// A file's text with the edits done that leave no choice.
///
/// # Errors
/// The text is not Rust.
pub fn fix(path: &str, text: &str) -> Result<Fixed, SourceError> {
    let mut fixed = Fixed { text: text.to_owned(), done: Vec::new() };
    let mut source = SourceFile::parse(path, text)?;
    // Findings whose edit was of no use.
    let mut left: Vec<(Code, String)> = Vec::new();
    while fixed.done.len() < MOST {
        let candidates = certain(&source).into_iter().filter(|(found, ..)| !left.contains(&key(found)));
        let Some((found, range, new)) = candidates.into_iter().next() else { break };
        let edited = replaced(&fixed.text, range, &new);
        let count = |of: &SourceFile| every(of).filter(|other| key(other) == key(&found)).count();
        match SourceFile::parse(path, &edited) {
            Ok(after) if count(&after) < count(&source) => {
                fixed.done.push(format!("[{}] {}", found.code, found.title));
                (fixed.text, source) = (edited, after);
            }
            _ => left.push(key(&found)),
        }
    }
    Ok(fixed)
}

fn key(found: &Diagnostic) -> (Code, String) {
    (found.code, found.title.clone())
}

fn every(source: &SourceFile) -> impl Iterator<Item = &Diagnostic> {
    source.invocations.iter().flat_map(|invocation| invocation.outcome.diagnostics.found())
}

/// The findings with one edit that leaves no choice, each with the range of the file and its new text.
fn certain(source: &SourceFile) -> Vec<(Diagnostic, (Place, Place), String)> {
    let mut all = Vec::new();
    for invocation in &source.invocations {
        for found in invocation.outcome.diagnostics.found().iter().filter(|found| found.code.leaves_no_choice()) {
            let edits: Vec<&Edit> = found.help.iter().filter_map(|help| help.edit.as_ref()).collect();
            let [edit] = edits[..] else { continue };
            if let Some((range, text)) = findings::edited(invocation, edit) {
                all.push((found.clone(), range, text));
            }
        }
    }
    all
}

/// A text with another one in place of a range.
pub(crate) fn replaced(text: &str, (from, to): (Place, Place), new: &str) -> String {
    let offset = |(line, column): Place| {
        let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let rest = &text[before..];
        before + rest.char_indices().nth(column - 1).map_or(rest.len(), |(at, _)| at)
    };
    format!("{}{new}{}", &text[..offset(from)], &text[offset(to)..])
}

/// Lines of context around a difference.
const CONTEXT: usize = 2;

/// What differs between two texts, line by line.
pub fn diff(path: &str, before: &str, after: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let start = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(x, y)| x == y).count();
    let (old, new) = (&a[start..a.len() - end], &b[start..b.len() - end]);
    if old.is_empty() && new.is_empty() {
        return String::new();
    }
    // The longest common subsequence of what is left.
    let mut longest = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i][j] = match old[i] == new[j] {
                true => longest[i + 1][j + 1] + 1,
                false => longest[i + 1][j].max(longest[i][j + 1]),
            };
        }
    }
    let mut lines: Vec<(char, &str)> = Vec::new();
    lines.extend(a[start.saturating_sub(CONTEXT)..start].iter().map(|line| (' ', *line)));
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && longest[i + 1][j] >= longest[i][j + 1] {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    lines.extend(a[a.len() - end..].iter().take(CONTEXT).map(|line| (' ', *line)));
    // Of a long run that did not change, its ends.
    let mut text = format!("--- {path}\n+++ {path}\n@@ line {} @@\n", start.saturating_sub(CONTEXT) + 1);
    let is_near = |at: usize| {
        let near = &lines[at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(lines.len())];
        near.iter().any(|(sign, _)| *sign != ' ')
    };
    let mut skipped = false;
    for (at, (sign, line)) in lines.iter().enumerate() {
        if !is_near(at) {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            text.push_str("@@ … @@\n");
        }
        text.push_str(&format!("{sign}{line}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRONG: &str = "tilewright::schedule! {
    // a comment that stays
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2 * x[i];
        schedul y { bind i: grid; split i by 256 -> b, t; bind tt: thread.x; }
    }
}
fn main() {}
";

    #[test]
    fn edits_are_done_as_long_as_they_leave_no_choice() {
        let fixed = fix("k.rs", WRONG).expect("Rust");
        assert!(fixed.text.contains("// a comment that stays"), "{}", fixed.text);
        assert!(fixed.text.contains("bind t: thread;") && fixed.text.contains("bind b: grid;"), "{}", fixed.text);
        assert!(fixed.text.contains("y[i] = 2.0 * x[i];"), "{}", fixed.text);
        assert!(fixed.done.len() >= 4, "{:?}", fixed.done);
        let after = SourceFile::parse("k.rs", &fixed.text).expect("Rust");
        assert_eq!(after.findings().text, "");
        assert_eq!(fix("k.rs", &fixed.text).expect("Rust"), Fixed { text: fixed.text, done: Vec::new() });
    }

    /// A vector that may be cut: state a fact, or leave it out.
    #[test]
    fn what_leaves_a_choice_stays() {
        let text = "tilewright::schedule! { kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = 2.0 * x[i]; schedule y {
            split i by 4 -> o, v; split o by 32 -> b, t; bind b: grid; bind t: thread; vectorize v; } } }";
        let fixed = fix("k.rs", text).expect("Rust");
        assert_eq!((fixed.text.as_str(), fixed.done.len()), (text, 0));
    }

    #[test]
    fn a_diff_shows_what_changed() {
        let numbers: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        let before = numbers.join("\n");
        let after = before.replace("\n7\n", "\nseven\n").replace("\n30\n", "\n").replace("\n5\n", "\n5\nmore\n");
        let expected =
            "--- f\n+++ f\n@@ line 5 @@\n 4\n 5\n+more\n 6\n-7\n+seven\n 8\n 9\n@@ … @@\n 28\n 29\n-30\n 31\n 32\n";
        assert_eq!(diff("f", &before, &after), expected);
        assert_eq!(diff("f", &before, &before), "");
    }
}
