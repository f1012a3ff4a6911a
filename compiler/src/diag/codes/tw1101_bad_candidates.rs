//! TW1101: a constant of `tune` whose candidates are not what they must be.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `tune BM in [64, 128];` names a constant of the schedule and its candidates: one integer literal at least, each
    /// without a sign and a suffix, none twice. A constant stands in the schedule at least once; one that does not
    /// would only repeat what the others give.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     tune T in [];
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
    TW1101 "bad-candidates" Error "a constant of `tune` whose candidates are not what they must be"
}

/// What is wrong with candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CandidatesProblem {
    /// There are none.
    Empty,
    /// One is no integer literal.
    NotAnInteger,
    /// One is there twice; where it is first.
    Twice(u64, Span),
    /// The schedule does not have the constant.
    Unused,
}

/// TW1101: a constant of `tune` with its problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCandidates {
    /// The constant.
    pub name: String,
    /// What is wrong.
    pub problem: CandidatesProblem,
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for BadCandidates {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { name, problem, span } = self;
        let new = |title: String| Diagnostic::new(Code::TW1101, span, title);
        match problem {
            CandidatesProblem::Empty => {
                new(format!("`{name}` has no candidates")).help(format!("write some: `{name} in [64, 128]`"))
            }
            CandidatesProblem::NotAnInteger => new(format!("a candidate of `{name}` is an integer literal"))
                .note("without a sign, a suffix and names: what is chosen is written down as it stands here"),
            CandidatesProblem::Twice(value, first) => new(format!("`{name}` has the candidate {value} twice"))
                .label(first, "the first time")
                .help("leave it out"),
            CandidatesProblem::Unused => new(format!("the schedule does not have the constant `{name}`"))
                .note("each of its candidates would give the same kernel")
                .help(format!("write `{name}` where the schedule has a number, or leave it out of `tune`")),
        }
    }
}
