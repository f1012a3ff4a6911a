//! TW1106: a record of `tune` that does not fit its candidates.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A record has one value for each constant, which is one of its candidates, and after `by` what chose them, with a
    /// digest of sixteen hexadecimal digits at the end. `tilewright tune` writes it.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     tune T in [128, 256] = (512) by "h200 at N=1048576: 0000000000000000";
    ///     schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     tune T in [128, 256];
    ///     schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW1106 "bad-record" Error "a record of `tune` that does not fit its candidates"
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordProblem {
    /// It has so many values, and there are so many constants.
    Count(usize, usize),
    /// The value of this constant is none of these.
    NotListed(String, Vec<u64>),
    /// The text does not end with a digest.
    NoDigest,
}

/// TW1106: a record, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// What is wrong.
    pub problem: RecordProblem,
    /// Where.
    pub span: Span,
    /// The record.
    pub record: Span,
}

impl IntoDiagnostic for BadRecord {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { problem, span, record } = self;
        let new = |title: String| Diagnostic::new(Code::TW1106, span, title);
        let diagnostic = match problem {
            RecordProblem::Count(values, constants) => {
                let s = |n: usize| if n == 1 { "" } else { "s" };
                let (of, to) = (s(values), s(constants));
                new(format!("the record has {values} value{of} for {constants} constant{to}"))
            }
            RecordProblem::NotListed(name, candidates) => {
                let listed: Vec<String> = candidates.iter().map(u64::to_string).collect();
                new(format!("this is no candidate of `{name}`")).note(format!("they are {}", listed.join(", ")))
            }
            RecordProblem::NoDigest => new("the record does not end with a digest".to_owned())
                .note("`tilewright tune` writes what chose the values, and sixteen hexadecimal digits"),
        };
        diagnostic
            .replace(record, "", "leave the record out, and let `tilewright tune FILE --write` write a new one")
    }
}
