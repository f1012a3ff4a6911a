//! What can go wrong, as data, and the only place that writes prose for users.
//!
//! A check reports a payload struct that holds facts (names, sizes, spans). The file of its code turns the payload into
//! a [`Diagnostic`]; [`Renderer`] turns that into text. To add a diagnostic: one file in `codes`, and its line in the
//! list there.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `codes` | one file a code: row, page, payloads, words |
//! | `words` | phrases that several of them have in common |
//! | `sink` | collects findings: no duplicates, in source order, not too many |
//! | `edit`, `suggest` | proposed edits as data; the closest known name |
//! | `render`, `snippet` | diagnostics as text; the places of the source |

pub mod codes;
mod edit;
mod render;
mod sink;
mod snippet;
#[cfg(test)]
mod tests;
mod words;

pub mod suggest;

pub use codes::{Code, Row};
pub use edit::{Change, Edit};
pub use render::{Message, Renderer};
pub use sink::{Diagnostics, Report};

use crate::source::Span;

/// Whether a finding stops the compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The program is refused.
    Error,
    /// The program is accepted; the author should know.
    Warning,
}

/// One finding, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its code.
    pub code: Code,
    /// Error or warning.
    pub level: Level,
    /// One sentence with the user's names, no capital, no full stop.
    pub title: String,
    /// The deciding place.
    pub primary: Span,
    /// Other places, each with what happens there.
    pub labels: Vec<(Span, String)>,
    /// Why, one fact each.
    pub notes: Vec<String>,
    /// The smallest witness, replayable.
    pub counterexample: Option<String>,
    /// Edits that make it go away, best first.
    pub help: Vec<Suggestion>,
}

/// A proposed edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The proposal in words; code between backticks.
    pub text: String,
    /// The edit itself in the terms of the language; none where the author has to choose.
    pub change: Option<Change>,
    /// The edit in tokens, once the kernels are known.
    pub edit: Option<Edit>,
}

/// A payload that can be put into words.
pub trait IntoDiagnostic {
    /// The words.
    fn into_diagnostic(self) -> Diagnostic;
}

impl IntoDiagnostic for Diagnostic {
    fn into_diagnostic(self) -> Diagnostic {
        self
    }
}

impl Diagnostic {
    /// A finding with the level of its code and nothing but a title.
    #[must_use]
    pub fn new(code: Code, primary: Span, title: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            level: code.row().level,
            title: title.into(),
            primary,
            labels: Vec::new(),
            notes: Vec::new(),
            counterexample: None,
            help: Vec::new(),
        }
    }

    /// Adds another place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push((span, text.into()));
        self
    }

    /// Adds a reason.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Sets the witness.
    #[must_use]
    pub fn counterexample(mut self, text: impl Into<String>) -> Diagnostic {
        self.counterexample = Some(text.into());
        self
    }

    /// Adds a proposal in words.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(Suggestion { text: text.into(), change: None, edit: None });
        self
    }

    /// Adds a proposal with the change that does it.
    #[must_use]
    pub fn change(mut self, change: Change, text: impl Into<String>) -> Diagnostic {
        self.help.push(Suggestion { text: text.into(), change: Some(change), edit: None });
        self
    }

    /// Adds a proposal to replace some tokens.
    #[must_use]
    pub fn replace(self, span: Span, replacement: impl Into<String>, text: impl Into<String>) -> Diagnostic {
        self.change(Change::Replace(span, replacement.into()), text)
    }
}

/// Named numbers of a witness: sizes, or indices.
pub type Assignment = Vec<(String, i128)>;

/// `N = 5, M = 2`.
pub(crate) fn assignment(values: &[(String, i128)]) -> String {
    values.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
}
