//! `tune`: constants of a schedule, each with candidates, and the record of what was chosen.
//!
//! **Guarantee.** What is compiled is the kernel that has literals in the place of the names: [`Tuned::settled`] puts
//! them there, before any other room sees the kernel, and nothing else differs. Spans stay those of the names. A
//! constant may stand wherever the schedule has a number ([`Item::numbers_mut`] lists them), and nowhere else.
//!
//! **Formula.** With a record, its values are taken, and the kernel has to have its digest. Without one it is the first
//! combination that gives a kernel, in the order written, the last constant changing fastest; at most [`COMBINATIONS`].
//!
//! `read` judges the statement, `choose` compiles combinations, `record` has the digest and the text that stands in the
//! source.

mod choose;
mod read;
mod record;

pub use choose::{Variant, chosen, settled};
pub use read::read;
pub use record::{Ranking, Record, digest};

use crate::diag::codes::NoCombination;
use crate::diag::{Change, Code, Diagnostic, Diagnostics, Level};
use crate::source::ast::{Expr, ExprKind, IntLiteral, Item, Kernel};
use crate::source::{Span, SpanId, TokenBuffer};

/// Most combinations of candidates: without a record each may be compiled.
pub const COMBINATIONS: usize = 64;

/// The constants of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuned {
    /// Each with its candidates, in the order written.
    pub constants: Vec<Constant>,
    /// What was chosen before, if it is written down.
    pub record: Option<Record>,
    /// The values of the kernel that was compiled, one for each constant; none if there is no such kernel.
    pub chosen: Option<Vec<u64>>,
    /// The statement.
    pub span: Span,
}

/// A constant of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// What it may be, in the order written.
    pub candidates: Vec<u64>,
    /// From the name to the last bracket.
    pub span: Span,
}

/// A place of a schedule that has a constant: which, by its number, and where.
type Use = (usize, Span);

impl Tuned {
    /// Every combination of candidates, in the order in which they are tried.
    #[must_use]
    pub fn combinations(&self) -> Vec<Vec<u64>> {
        let mut all: Vec<Vec<u64>> = vec![Vec::new()];
        for constant in &self.constants {
            let with = |before: &Vec<u64>| {
                let before = before.clone();
                constant.candidates.iter().map(move |value| [before.as_slice(), &[*value]].concat())
            };
            all = all.iter().flat_map(with).collect();
        }
        all
    }

    /// `BM = 64, STAGES = 3`
    #[must_use]
    pub fn named(&self, values: &[u64]) -> String {
        let pairs = self.constants.iter().zip(values).map(|(constant, value)| format!("{} = {value}", constant.name));
        pairs.collect::<Vec<_>>().join(", ")
    }

    /// A sentence on what was chosen, and by what.
    #[must_use]
    pub fn told(&self, values: &[u64]) -> String {
        let by = match &self.record {
            Some(record) => format!("chosen by {}", record.ranking),
            None => "the first that gives a kernel".to_owned(),
        };
        let counts: Vec<String> = self.constants.iter().map(|c| c.candidates.len().to_string()).collect();
        format!("constants: {} (of {} combinations; {by})", self.named(values), counts.join(" · "))
    }

    /// The kernel with these values in the place of the names, as if literals stood there.
    #[must_use]
    pub fn settled(&self, kernel: &Kernel, values: &[u64]) -> Kernel {
        let mut kernel = kernel.clone();
        self.substituted(&mut kernel, values);
        kernel
    }

    fn substituted(&self, kernel: &mut Kernel, values: &[u64]) -> Vec<Use> {
        let mut uses = Vec::new();
        for item in &mut kernel.items {
            each_number(item, &mut |expr| {
                let ExprKind::Name(name) = &expr.kind else { return };
                let Some(at) = self.constants.iter().position(|constant| constant.name == name.text) else { return };
                let Some(value) = values.get(at) else { return };
                uses.push((at, name.span));
                expr.kind = ExprKind::Int(IntLiteral { value: *value, suffix: None });
            });
        }
        uses
    }

    /// Findings of the kernel with these values, in the terms of the one that was written: they say what the names
    /// stand for, and no edit puts a number over a name.
    pub fn retold(&self, kernel: &Kernel, values: &[u64], tokens: &TokenBuffer, found: &mut Diagnostics) {
        let uses = self.substituted(&mut kernel.clone(), values);
        if found.is_empty() {
            return;
        }
        found.resolve(&[kernel], tokens);
        let schedule: Vec<Span> =
            kernel.items.iter().filter(|item| !matches!(item, Item::Equation(_))).map(Item::span).collect();
        found.rewrite(|mut finding| {
            self.keep_names(&mut finding, &uses, values);
            let mut near: Vec<usize> = uses.iter().filter(|(_, span)| is_near(&finding, *span)).map(|u| u.0).collect();
            // What is wrong with a stage or the whole kernel may be due to any of them.
            let is_of_schedule =
                || finding.primary == kernel.name.span || schedule.iter().any(|item| item.contains(finding.primary));
            if near.is_empty() && finding.level == Level::Error && is_of_schedule() {
                near = (0..self.constants.len()).collect();
            }
            near.sort_unstable();
            near.dedup();
            if !near.is_empty() {
                let pair = |at: usize| Some(format!("{} = {}", self.constants[at].name, values.get(at)?));
                let pairs: Vec<String> = near.into_iter().filter_map(pair).collect();
                finding.notes.push(format!("by `tune`, {} here", pairs.join(", ")));
            }
            finding
        });
    }

    /// No edit puts a number over a name. One that repeats what is there repeats the names; one that wants another
    /// number is left to the author, who has to choose another candidate.
    fn keep_names(&self, finding: &mut Diagnostic, uses: &[Use], values: &[u64]) {
        for help in &mut finding.help {
            let Some(edit) = &help.edit else { continue };
            let replaced = |span: Span| (edit.first..edit.first.saturating_add(edit.count)).contains(&span.first.0);
            let lost: Vec<usize> = uses.iter().filter(|(_, span)| replaced(*span)).map(|(at, _)| *at).collect();
            let of = |at: usize| (self.constants[at].name.as_str(), values.get(at).copied());
            let is_kept = |text: &str| {
                let count = |at: usize| words(text).filter(|word| *word == of(at).0).count();
                lost.iter().all(|at| count(*at) >= lost.iter().filter(|other| *other == at).count())
            };
            if is_kept(&edit.text) {
                continue;
            }
            let with_names = |text: &str| {
                let name = |word: &str| {
                    let value = word.parse::<u64>().ok();
                    let mut same =
                        lost.iter().map(|at| of(*at)).filter(|(_, other)| value.is_some() && value == *other);
                    let first = same.next()?;
                    same.all(|other| other == first).then(|| first.0.to_owned())
                };
                renamed(text, &name)
            };
            let text = with_names(&edit.text);
            if is_kept(&text)
                && let Some(last) = edit.count.checked_sub(1).and_then(|more| edit.first.checked_add(more))
            {
                let range = Span { first: SpanId(edit.first), last: SpanId(last) };
                help.text = with_names(&help.text);
                (help.change, help.edit) = (Some(Change::Replace(range, text)), None);
                continue;
            }
            let Some(&at) = lost.first() else { continue };
            let Constant { name, candidates, .. } = &self.constants[at];
            let instead = match edit.text.trim().parse::<u64>() {
                Ok(value) if candidates.contains(&value) => format!("`{name}` has the candidate {value}"),
                Ok(value) => format!("`{name}` would need the candidate {value}"),
                Err(_) => format!("in the place of `{name}`"),
            };
            help.text = format!("{} ({instead})", help.text);
            (help.change, help.edit) = (None, None);
        }
    }

    /// What to say where no combination gives a kernel: the errors that all have in common, or what each was refused
    /// for. An error that is there whatever the constants are has nothing to do with them.
    #[must_use]
    pub fn none(&self, refused: &[(Vec<u64>, Diagnostics)]) -> Diagnostics {
        let mut out = Diagnostics::new();
        let Some((_, first)) = refused.first() else { return out };
        let has = |found: &Diagnostics, one: &Diagnostic| {
            found.found().iter().any(|f| f.code == one.code && f.primary == one.primary && f.title == one.title)
        };
        let errors = first.found().iter().filter(|finding| finding.level == Level::Error);
        for shared in errors.filter(|one| refused.iter().all(|(_, found)| has(found, one))) {
            out.report(shared.clone());
        }
        if out.is_empty() {
            let names = self.constants.iter().map(|constant| constant.name.clone()).collect();
            out.report(NoCombination { names, refused: self.reasons(refused), span: self.span });
        }
        out
    }

    /// Each of these combinations with its first error.
    #[must_use]
    pub fn reasons(&self, refused: &[(Vec<u64>, Diagnostics)]) -> Vec<(String, Code, String)> {
        let reason = |(values, found): &(Vec<u64>, Diagnostics)| {
            let report = found.clone().finish();
            let error = report.errors.into_iter().next()?;
            Some((self.named(values), error.code, error.title))
        };
        refused.iter().filter_map(reason).collect()
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Names and numbers of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_of_word(c)).filter(|word| !word.is_empty())
}

/// A text with other words.
fn renamed(text: &str, name: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let is_word = rest.starts_with(is_of_word);
        let end = rest.find(|c| is_of_word(c) != is_word).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        out.push_str(&if is_word { name(part) } else { None }.unwrap_or_else(|| part.to_owned()));
        rest = after;
    }
    out
}

/// Whether a finding points at a place, or at a part of it.
fn is_near(finding: &Diagnostic, place: Span) -> bool {
    let mut pointed = std::iter::once(finding.primary).chain(finding.labels.iter().map(|label| label.0));
    pointed.any(|span| span.contains(place) || place.contains(span))
}

/// Every expression in the numbers of a statement of a schedule.
fn each_number(item: &mut Item, each: &mut dyn FnMut(&mut Expr)) {
    item.numbers_mut(&mut |number| number.visit_mut(each));
}
