//! Drawing places of the source: a line rebuilt from the tokens on it, and marks below it.

use crate::source::{Position, SourceMap, Span, SpanId};

/// A range of the source within one line, or the part of a longer range on its first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of the file in [`Lines`].
    file: usize,
    line: usize,
    /// First column, from 1.
    column: usize,
    /// Column after the last; at least one more than `column`.
    end_column: usize,
}

/// A place to be drawn.
pub(super) struct Mark<'d> {
    pub(super) place: Place,
    /// What to say there; may be empty.
    pub(super) text: &'d str,
    /// Drawn with `^` rather than `-`.
    pub(super) primary: bool,
}

/// Where one token stands, its text included.
struct Token {
    file: usize,
    position: Position,
    text: String,
}

/// The tokens of a macro call by place.
pub(super) struct Lines {
    files: Vec<String>,
    /// By token id; `None` where the place is not known.
    tokens: Vec<Option<Token>>,
}

impl Lines {
    pub(super) fn new(map: &dyn SourceMap) -> Lines {
        let mut files: Vec<String> = Vec::new();
        let count = u32::try_from(map.token_count()).unwrap_or(u32::MAX);
        let tokens = (0..count)
            .map(|id| {
                let position = map.position(SpanId(id))?;
                let file = files.iter().position(|file| *file == position.file).unwrap_or_else(|| {
                    files.push(position.file.clone());
                    files.len() - 1
                });
                Some(Token { file, position, text: map.token_text(SpanId(id)).to_owned() })
            })
            .collect();
        Lines { files, tokens }
    }

    fn token(&self, id: SpanId) -> Option<&Token> {
        self.tokens.get(id.0 as usize)?.as_ref()
    }

    /// The place of a span; of a span over several lines, its first line.
    pub(super) fn place(&self, span: Span) -> Option<Place> {
        let first = self.token(span.first)?;
        let Position { line, column, end_line, end_column, .. } = first.position;
        let mut end = if end_line == line { end_column } else { column + 1 };
        // A multi-line span ends with the last of its tokens that follows on the first line.
        for id in span.first.0..=span.last.0.min(u32::try_from(self.tokens.len()).unwrap_or(u32::MAX)) {
            if let Some(token) = self.token(SpanId(id))
                && token.file == first.file
                && token.position.line == line
                && token.position.end_line == line
            {
                end = end.max(token.position.end_column);
            }
        }
        Some(Place { file: first.file, line, column, end_column: end.max(column + 1) })
    }

    /// The width of the widest line number drawn.
    pub(super) fn gutter(&self, marks: &[Mark<'_>]) -> usize {
        marks.iter().map(|mark| mark.place.line.to_string().len()).max().unwrap_or(1)
    }

    /// The text of a line, as far as tokens of the macro call stand on it. Comments are lost; what overlaps, because it
    /// comes from another macro or is the inside of a doc comment, is left out.
    fn rebuild(&self, file: usize, line: usize) -> String {
        let mut out = String::new();
        let mut width = 0;
        for token in self.tokens.iter().flatten() {
            let Position { line: on, column, end_line, end_column, .. } = token.position;
            let length = token.text.chars().count();
            if token.file != file || on != line || end_line != line || column <= width || column + length != end_column
            {
                continue;
            }
            // A token of a foreign macro may claim any column; a real line is not that long.
            const LONGEST: usize = 1000;
            if end_column > LONGEST {
                continue;
            }
            out.extend(std::iter::repeat_n(' ', column - 1 - width));
            out.push_str(&token.text);
            width = column - 1 + length;
        }
        out
    }

    /// Draws places under their lines, one block per file, the block of the first mark first.
    pub(super) fn draw(&self, marks: &[Mark<'_>], width: usize) -> String {
        let mut out = String::new();
        let mut files: Vec<usize> = Vec::new();
        for mark in marks {
            if !files.contains(&mark.place.file) {
                files.push(mark.place.file);
            }
        }
        for (index, file) in files.into_iter().enumerate() {
            let mut here: Vec<&Mark<'_>> = marks.iter().filter(|mark| mark.place.file == file).collect();
            // The head names the deciding place, or else the first one.
            let head = &here[0].place;
            let arrow = if index == 0 { "-->" } else { ":::" };
            out.push_str(&format!("{:width$}{arrow} {}:{}:{}\n", "", self.files[file], head.line, head.column));
            out.push_str(&format!("{:width$} |\n", ""));
            here.sort_by_key(|mark| (mark.place.line, mark.place.column, !mark.primary));
            let mut last: Option<usize> = None;
            for mark in here {
                let line = mark.place.line;
                if last != Some(line) {
                    if last.is_some_and(|last| last + 1 < line) {
                        out.push_str("...\n");
                    }
                    out.push_str(format!("{line:>width$} | {}", self.rebuild(file, line)).trim_end());
                    out.push('\n');
                    last = Some(line);
                }
                let sign = if mark.primary { "^" } else { "-" };
                let Place { column, end_column, .. } = mark.place;
                let row = format!(
                    "{:width$} | {}{} {}",
                    "",
                    " ".repeat(column.saturating_sub(1).min(1000)),
                    sign.repeat(end_column.saturating_sub(column).min(1000)),
                    mark.text
                );
                out.push_str(row.trim_end());
                out.push('\n');
            }
        }
        out
    }
}
