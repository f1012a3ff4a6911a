//! `#[allow(TW0690)]` before a kernel: warnings that its author knows of.
//!
//! The attribute is read here and goes no further: rustc would call the code an unknown lint.

use crate::diag::codes::{UselessAllow, UselessReason};
use crate::diag::{Code, Diagnostics, Level};
use crate::source::{Span, ast};

/// Whether a word inside `allow(…)` is a code of ours: `TW` and digits.
pub fn is_code(word: &str) -> bool {
    let digits = word.strip_prefix("TW");
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

/// The codes that a kernel's attributes allow.
fn codes(kernel: &ast::Kernel) -> impl Iterator<Item = (&str, Span)> {
    let lists = kernel.attributes.iter().filter(|a| a.name.text == "allow");
    lists.flat_map(|a| &a.words).map(|w| (w.text.as_str(), w.span)).filter(|(word, _)| is_code(word))
}

/// Drops the warnings of a kernel that its attributes allow, and warns of attributes that drop nothing. `complete` is
/// whether the kernel was compiled to its end: after an error, warnings that an attribute is for may be missing.
pub(crate) fn apply(kernel: &ast::Kernel, complete: bool, found: &mut Diagnostics) {
    let mut useless = Vec::new();
    for (word, span) in codes(kernel) {
        let reason = match Code::from_text(word) {
            None => {
                let warnings = Code::ALL.iter().map(|c| c.row()).filter(|r| r.level == Level::Warning);
                // Codes are all alike: more than one wrong character tells nothing.
                let near = |code: &&str| {
                    code.len() == word.len() && code.bytes().zip(word.bytes()).filter(|(a, b)| a != b).count() <= 1
                };
                let suggestion = warnings.map(|r| r.code).find(near).map(str::to_owned);
                Some(UselessReason::Unknown { suggestion })
            }
            Some(code) if code.row().level == Level::Error => Some(UselessReason::Error),
            // About this very list: decided below.
            Some(Code::TW0011) => None,
            Some(code) => (!found.silence(code) && complete).then_some(UselessReason::Absent),
        };
        useless.extend(reason.map(|reason| UselessAllow { code: word.to_owned(), reason, span }));
    }
    for finding in useless {
        found.report(finding);
    }
    if codes(kernel).any(|(word, _)| word == Code::TW0011.row().code) {
        found.silence(Code::TW0011);
    }
}
