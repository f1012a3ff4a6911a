//! TW0002: a word that the grammar does not know here.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::suggest::closest;
use crate::diag::words::{TYPES, shorten};
use crate::source::Span;
use crate::source::ast::{OPS, STATEMENTS};
use super::WordSet;

row! {
    /// At some places the grammar allows one word of a fixed list: an element type, a schedule op, an item of `launch`,
    /// a place, a clause.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N])
    /// where N % 4 == 0
    /// {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 1024 -> b, r;
    ///         split r by 4 -> t, v;
    ///         bind b: grid;
    ///         bind t: thread;
    ///         vectorise v;
    ///     }
    /// }
    /// ```
    ///
    /// The message lists the words that are known there, and the closest one if there is a close one.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N])
    /// where N % 4 == 0
    /// {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 1024 -> b, r;
    ///         split r by 4 -> t, v;
    ///         bind b: grid;
    ///         bind t: thread;
    ///         vectorize v;
    ///     }
    /// }
    /// ```
    TW0002 "unknown-word" Error "a word that the grammar does not know here"
}

/// TW0002: a word that the grammar does not know here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    /// What it should be one of.
    pub set: WordSet,
    /// The word.
    pub word: String,
    /// Its token.
    pub span: Span,
    /// The words that are known.
    pub known: &'static [&'static str],
}

impl IntoDiagnostic for UnknownWord {
    fn into_diagnostic(self) -> Diagnostic {
        let UnknownWord { set, word, span, known } = self;
        let list: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
        let diagnostic =
            Diagnostic::new(Code::TW0002, span, format!("`{}` is not {}", shorten(&word), set.with_article()))
                .note(format!("known here: {}", list.join(", ")));
        match closest(&word, known.iter().copied()) {
            Some(meant) => diagnostic.replace(span, meant, format!("did you mean `{meant}`?")),
            None if set == WordSet::ElementType => diagnostic.help(TYPES),
            None if set == WordSet::Op && STATEMENTS.contains(&word.as_str()) => {
                diagnostic.help(format!("`{word}` is a statement of the kernel: write it outside the braces"))
            }
            None if set == WordSet::Statement && OPS.contains(&word.as_str()) => {
                diagnostic.help(format!("`{word}` is an op: write it inside `schedule … {{ … }}`"))
            }
            // Of units that an axis is given to, each has its own iterations.
            None if set == WordSet::BindOption && word == "alternate" => diagnostic
                .help("units of a role take tiles in turn: `launch persistent, roles { …, math: 2 warpgroup alternate }`"),
            None if set == WordSet::Statement && word == "threads" => diagnostic.help("write `launch threads(256);`"),
            None => diagnostic,
        }
    }
}
