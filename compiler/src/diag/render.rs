//! Diagnostics to text: the message of one `compile_error!`, and what the command line prints.
//!
//! rustc shows one place per error, so the other places are drawn into the message: their lines are rebuilt from the
//! tokens of the macro call, which needs no file. Where positions are unknown, as in editors, a place is named by what
//! stands there: at `bind t: thread`.

use super::snippet::{Lines, Mark};
use super::{Code, Diagnostic, Level, Report};
use crate::source::{SourceMap, Span};

/// The longest line of prose.
const WIDTH: usize = 120;

/// Turns findings into text.
pub struct Renderer<'a> {
    map: &'a dyn SourceMap,
    lines: Lines,
}

/// One message for rustc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Error or warning.
    pub level: Level,
    /// The code; `None` for "and 3 more errors".
    pub code: Option<Code>,
    /// Where to show it; [`Span::UNKNOWN`] means the whole call.
    pub span: Span,
    /// The text, without `error: `.
    pub text: String,
}

impl<'a> Renderer<'a> {
    /// A renderer for the findings of one macro call.
    #[must_use]
    pub fn new(map: &'a dyn SourceMap) -> Renderer<'a> {
        Renderer { map, lines: Lines::new(map) }
    }

    /// The message of one finding, to be shown by rustc at its primary place.
    #[must_use]
    pub fn message(&self, diagnostic: &Diagnostic) -> String {
        let mut out = format!("[{}] {}", diagnostic.code, diagnostic.title);
        let marks = self.known_labels(diagnostic);
        let width = self.lines.gutter(&marks);
        if !marks.is_empty() {
            out.push('\n');
            out.push_str(self.lines.draw(&marks, width).trim_end());
        }
        self.facts(&mut out, diagnostic, &" ".repeat(width + 1));
        out
    }

    /// One finding as rustc would show it.
    #[must_use]
    pub fn text(&self, diagnostic: &Diagnostic) -> String {
        let level = match diagnostic.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        let mut out = format!("{level}[{}]: {}", diagnostic.code, diagnostic.title);
        let mut marks = self.known_labels(diagnostic);
        if let Some(place) = self.lines.place(diagnostic.primary) {
            marks.insert(0, Mark { place, text: "", primary: true });
        }
        let width = self.lines.gutter(&marks);
        let indent = " ".repeat(width + 1);
        if marks.iter().any(|mark| mark.primary) {
            out.push('\n');
            out.push_str(self.lines.draw(&marks, width).trim_end());
        } else {
            if diagnostic.primary != Span::UNKNOWN {
                out.push_str(&format!("\n{}--> at `{}`", " ".repeat(width), self.map.span_text(diagnostic.primary)));
            }
            if !marks.is_empty() {
                out.push('\n');
                out.push_str(self.lines.draw(&marks, width).trim_end());
            }
        }
        self.facts(&mut out, diagnostic, &indent);
        out.push('\n');
        out
    }

    /// Everything shown of a run, for rustc: errors, then warnings, each level in source order.
    #[must_use]
    pub fn messages(&self, report: &Report) -> Vec<Message> {
        let mut messages = Vec::new();
        let levels = [
            (Level::Error, &report.errors, report.more_errors),
            (Level::Warning, &report.warnings, report.more_warnings),
        ];
        for (level, shown, more) in levels {
            for found in shown {
                let text = self.message(found);
                messages.push(Message { level, code: Some(found.code), span: found.primary, text });
            }
            if more > 0 {
                messages.push(Message { level, code: None, span: Span::UNKNOWN, text: and_more(level, more) });
            }
        }
        messages
    }

    /// Everything shown of a run, for the command line.
    #[must_use]
    pub fn report(&self, report: &Report) -> String {
        let mut out = String::new();
        let levels = [
            (Level::Error, &report.errors, report.more_errors),
            (Level::Warning, &report.warnings, report.more_warnings),
        ];
        for (level, shown, more) in levels {
            for found in shown {
                out.push_str(&self.text(found));
                out.push('\n');
            }
            if more > 0 {
                out.push_str(&and_more(level, more));
                out.push_str("\n\n");
            }
        }
        out
    }

    /// The labels whose place is known.
    fn known_labels<'d>(&self, diagnostic: &'d Diagnostic) -> Vec<Mark<'d>> {
        let labels = diagnostic.labels.iter();
        labels.filter_map(|(span, text)| Some(Mark { place: self.lines.place(*span)?, text, primary: false })).collect()
    }

    /// The lines that start with `=`.
    fn facts(&self, out: &mut String, diagnostic: &Diagnostic, indent: &str) {
        for (span, text) in &diagnostic.labels {
            if self.lines.place(*span).is_none() {
                let text = match self.map.span_text(*span) {
                    place if place.is_empty() => text.clone(),
                    place => format!("at `{place}`: {text}"),
                };
                fact(out, indent, "note", &text);
            }
        }
        for note in &diagnostic.notes {
            fact(out, indent, "note", note);
        }
        if let Some(counterexample) = &diagnostic.counterexample {
            fact(out, indent, "counterexample", counterexample);
        }
        for help in &diagnostic.help {
            fact(out, indent, "help", &help.text);
        }
        fact(out, indent, "explain", diagnostic.code.row().code);
    }
}

fn and_more(level: Level, more: usize) -> String {
    let what = match (level, more) {
        (Level::Error, 1) => "error",
        (Level::Error, _) => "errors",
        (Level::Warning, 1) => "warning",
        (Level::Warning, _) => "warnings",
    };
    format!("and {more} more {what}")
}

/// Appends `= kind: text`, wrapped; further lines are aligned under the kind.
fn fact(out: &mut String, indent: &str, kind: &str, text: &str) {
    let mut line = format!("{indent}= {kind}:");
    let further = format!("{indent}  ");
    for paragraph in text.split('\n') {
        for word in words(paragraph) {
            let fits = line.chars().count() + 1 + word.chars().count() <= WIDTH;
            if !fits && line.len() > further.len() {
                out.push('\n');
                out.push_str(&line);
                line.clone_from(&further);
                line.push_str(word);
                continue;
            }
            if line.len() > further.len() {
                line.push(' ');
            }
            line.push_str(word);
        }
        out.push('\n');
        out.push_str(line.trim_end());
        line.clone_from(&further);
    }
}

/// Splits at spaces, but not inside backticks: code must stay in one piece to be pasted.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut in_code = false;
    for (index, c) in text.char_indices() {
        match c {
            '`' => in_code = !in_code,
            ' ' if !in_code => {
                if start < index {
                    words.push(&text[start..index]);
                }
                start = index + 1;
            }
            _ => {}
        }
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}
