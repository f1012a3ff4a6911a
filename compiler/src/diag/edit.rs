//! Proposed edits as data: what a message proposes in words, a tool can do.
//!
//! A payload says what to change in the terms of the language ([`Change`]); once the kernels are known, [`Change::on`]
//! turns it into tokens ([`Edit`]). An edit is a promise: after it the finding is gone, and if it was the only one, the
//! kernel compiles. What leaves a choice to the author stays prose.

use tilewright_kernel::ElementType;

use crate::source::ast::{Expr, Item, Kernel, LaunchItemKind, Op, OpKind, SplitSide};
use crate::source::{Span, SpanId, TokenBuffer};

/// A change in the terms of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// These tokens become this text.
    Replace(Span, String),
    /// This expression is converted to a type.
    Convert(Span, ElementType),
    /// The first of these spans becomes the second one, which lies in it, between two texts.
    Wrap(Span, Span, String, String),
    /// These facts join the `where` clause.
    State(Vec<String>),
    /// This op goes, with its semicolon.
    RemoveOp(Span),
    /// Each of these, in the order of the source, becomes its text. An op that becomes nothing goes with its semicolon.
    Rewrite(Vec<(Span, String)>),
    /// This op goes, and another one comes right after a later op.
    MoveOp {
        /// The op that goes, with its semicolon.
        op: Span,
        /// The later op.
        after: Span,
        /// The other op.
        text: String,
    },
    /// This op becomes the last one of the schedule or the copy that the finding is about.
    AppendOp(String),
    /// The split whose inner result is this axis gets another factor.
    Refactor(String, i128),
    /// `launch threads(n);`
    Threads(i128),
    /// This statement becomes the last one of the kernel.
    AppendStatement(String),
}

/// Text in place of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The first token replaced, or the one that the text is put before.
    pub first: u32,
    /// How many tokens are replaced; 0 only inserts.
    pub count: u32,
    /// The text.
    pub text: String,
}

impl Edit {
    /// The whole invocation with the edit done. Layout and comments are not kept.
    #[must_use]
    pub fn apply(&self, source: &TokenBuffer) -> String {
        let part = |from: u32, to: u32| match to.checked_sub(1) {
            Some(last) if from <= last => source.span_text(Span { first: SpanId(from), last: SpanId(last) }),
            _ => String::new(),
        };
        let end = u32::try_from(source.len()).unwrap_or(u32::MAX);
        format!("{} {} {}", part(0, self.first), self.text, part(self.first.saturating_add(self.count), end))
    }

    fn replace(span: Span, text: impl Into<String>) -> Self {
        Self {
            first: span.first.0,
            count: span.last.0.saturating_sub(span.first.0).saturating_add(1),
            text: text.into(),
        }
    }

    fn before(token: SpanId, text: impl Into<String>) -> Self {
        Self { first: token.0, count: 0, text: text.into() }
    }

    fn after(span: Span, text: impl Into<String>) -> Self {
        Self { first: span.last.0.saturating_add(1), count: 0, text: text.into() }
    }
}

impl Change {
    /// The change as an edit of tokens, for a finding at `place`; none where the source has no place for it.
    #[must_use]
    pub fn on(&self, place: Span, kernels: &[&Kernel], source: &TokenBuffer) -> Option<Edit> {
        match self {
            Self::Replace(span, _) | Self::Convert(span, _) if *span == Span::UNKNOWN => return None,
            Self::Replace(span, text) => return Some(Edit::replace(*span, text)),
            Self::Wrap(whole, inner, before, after) => {
                return Some(Edit::replace(*whole, format!("{before}{}{after}", source.span_text(*inner))));
            }
            Self::Convert(span, to) => {
                let text = source.span_text(*span);
                let text = if binds_tightest(&text) { text } else { format!("({text})") };
                // What stands around it may bind more tightly than `as`.
                return Some(Edit::replace(*span, format!("({text} as {to})")));
            }
            _ => {}
        }
        let kernel = kernels.iter().find(|k| k.span.contains(place))?;
        match self {
            Self::Replace(..) | Self::Convert(..) | Self::Wrap(..) => None,
            Self::State(facts) => Some(match kernel.facts.last() {
                Some(last) => Edit::after(last.span, format!(", {}", facts.join(", "))),
                None => Edit::after(kernel.header, format!("where {}", facts.join(", "))),
            }),
            Self::RemoveOp(op) => {
                let semicolon = SpanId(op.last.0.checked_add(1)?);
                (source.text(semicolon.0 as usize) == ";").then(|| Edit::replace(op.to(Span::token(semicolon)), ""))
            }
            Self::Rewrite(parts) => {
                let end = |span: &Span, instead: &str| {
                    let next = span.last.0.saturating_add(1);
                    let goes = instead.is_empty() && source.text(next as usize) == ";";
                    SpanId(if goes { next } else { span.last.0 })
                };
                let ends = |(span, instead): &(Span, String)| Span { first: span.first, last: end(span, instead) };
                let whole = ends(parts.first()?).to(ends(parts.last()?));
                let (mut text, mut next) = (String::new(), whole.first.0);
                for (span, instead) in parts {
                    if let Some(last) = span.first.0.checked_sub(1).filter(|last| next <= *last) {
                        text += &source.span_text(Span { first: SpanId(next), last: SpanId(last) });
                    }
                    text += &format!(" {instead} ");
                    next = end(span, instead).0.checked_add(1)?;
                }
                Some(Edit::replace(whole, text))
            }
            Self::MoveOp { op, after, text } => {
                let [from, to] = [op, after].map(|op| op.last.0.saturating_add(1));
                let is_end = |at: u32| source.text(at as usize) == ";";
                (from < to && is_end(from) && is_end(to)).then(|| {
                    let between = source.span_text(Span { first: SpanId(from + 1), last: SpanId(to) });
                    Edit::replace(Span { first: op.first, last: SpanId(to) }, format!("{between} {text};"))
                })
            }
            Self::AppendOp(op) => {
                let end = schedule(kernel, place)?.0.last;
                Some(match source.text(end.0 as usize) {
                    "}" => Edit::before(end, format!("{op};")),
                    _ => Edit::replace(Span::token(end), format!("{{ {op}; }}")),
                })
            }
            Self::Refactor(axis, factor) => {
                let made = |op: &Op| match &op.kind {
                    OpKind::Split { side: SplitSide::Inner, factor, inner, .. } if inner.text == *axis => {
                        Some(factor.span)
                    }
                    _ => None,
                };
                let span = schedule(kernel, place)?.1.iter().find_map(made)?;
                Some(Edit::replace(span, factor.to_string()))
            }
            Self::Threads(count) => Some(threads(kernel, *count)),
            Self::AppendStatement(statement) => Some(Edit::before(kernel.span.last, statement.as_str())),
        }
    }
}

/// Whether an expression is a name, a read or a call, which needs no parentheses before `as`.
fn binds_tightest(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '.'));
    let mut depth = 0_usize;
    let closes_at = rest.char_indices().find_map(|(at, c)| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at + c.len_utf8())
    });
    rest.is_empty() || (rest.len() < text.len() && rest.starts_with(['(', '[']) && closes_at == Some(rest.len()))
}

/// The schedule or the copy that a place is in, or the schedule that belongs to the equation it is in: the statement,
/// and its ops.
fn schedule(kernel: &Kernel, place: Span) -> Option<(Span, &[Op])> {
    let all = || kernel.items.iter().filter_map(|item| Some((item.span(), item.scheduled()?)));
    let equation = kernel.items.iter().find_map(|item| match item {
        Item::Equation(equation) if equation.span.contains(place) => Some(equation),
        _ => None,
    });
    let is_of = |name: &str| equation.is_some_and(|equation| equation.targets.iter().any(|t| t.text == name));
    let found =
        all().find(|(span, _)| span.contains(place)).or_else(|| all().find(|(_, (stage, _))| is_of(&stage.text)));
    found.map(|(span, (_, ops))| (span, ops))
}

fn threads(kernel: &Kernel, count: i128) -> Edit {
    let launches = || kernel.items.iter().filter_map(|item| if let Item::Launch(l) = item { Some(l) } else { None });
    let written = launches().flat_map(|l| &l.items).find_map(|item| match &item.kind {
        LaunchItemKind::Threads(Expr { span, .. }) => Some(*span),
        _ => None,
    });
    if let Some(span) = written {
        return Edit::replace(span, count.to_string());
    }
    if let Some(last) = launches().find_map(|l| l.items.last()) {
        return Edit::after(last.span, format!(", threads({count})"));
    }
    Edit::before(kernel.span.last, format!("launch threads({count});"))
}
