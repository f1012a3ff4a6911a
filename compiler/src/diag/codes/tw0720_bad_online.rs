//! TW0720: reductions that cannot be made online.

use super::tw1011_not_online::ChainProblem;
use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `online m -> l over jo` in the schedule of `m` computes `m`, an extreme or a mean, and what depends on it in one
    /// pass over the terms. In each iteration of `jo` a thread first takes the extreme or the sum of its terms there,
    /// then corrects what follows it, then takes in the terms. The parts of threads and blocks are corrected where they
    /// are merged.
    ///
    /// - `m` is a `max`, a `min`, a `sum`, or a `sum` over the number of its terms. What rounds says `online sum`, and
    ///   has a correction (TW1011); what is taken where an extreme is, as by `argmax`, says nothing;
    /// - the op stands in the schedule of `m`, once;
    /// - `jo` is a loop of `m` over terms: not bound, not vectorised;
    /// - no stage stands in a loop inside of `jo`: these loops run twice. In `jo` itself it may;
    /// - what stands in the loops of `m` does not read `m`, which is known after them.
    ///
    /// A sum with more axes than `m` follows it block by block of terms. There may be one, an `online dot`, which
    /// stands in `jo` and is computed by tensor cores. `jo` is the outer loop of a `split j by B` of all terms, or
    /// comes of it. If B does not divide their number, or their range depends on the element, they are elements of an
    /// equation, and what else is read with them is a factor. It ends where they do, if their end is that of all
    /// elements. Stages in `jo` that read `m` have the extreme of the terms so far.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel LogSumExp(x: f32[M, N]) -> (y: f32[M]) {
    ///     m[i] = max(|j| x[i, j]);
    ///     l[i] = sum(|j| exp(x[i, j] - m[i]));
    ///     y[i] = m[i] + log(l[i]);
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    ///     schedule m in registers per thread at y.t {
    ///         split j by 4 -> jo, ji; unroll ji;
    ///         online m -> l over jo;
    ///     }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel LogSumExp(x: f32[M, N]) -> (y: f32[M]) {
    ///     m[i] = max(|j| x[i, j]);
    ///     l[i] = online sum(|j| exp(x[i, j] - m[i]));
    ///     y[i] = m[i] + log(l[i]);
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    ///     schedule m in registers per thread at y.t {
    ///         split j by 4 -> jo, ji; unroll ji;
    ///         online m -> l over jo;
    ///     }
    /// }
    /// ```
    TW0720 "bad-online" Error "reductions that cannot be made online"
}

/// TW0720: an `online` op that is refused.
#[derive(Clone, Debug)]
pub struct BadOnline {
    /// The extreme, as the op names it.
    pub source: String,
    /// Why.
    pub problem: OnlineProblem,
    /// The part of the op, or of a term.
    pub span: Span,
}

/// Why reductions cannot be made online.
#[derive(Clone, Debug)]
pub enum OnlineProblem {
    /// The op stands in the schedule of something else.
    Elsewhere {
        /// Of what.
        stage: String,
    },
    /// Another op is there already.
    Second {
        /// It.
        first: Span,
    },
    /// A name that is no equation.
    Unknown {
        /// The name.
        target: String,
    },
    /// A sum that is named twice.
    Twice {
        /// It.
        target: String,
    },
    /// A sum that does not admit it.
    NotSaid {
        /// The sum.
        target: String,
        /// Its first word.
        word: Span,
        /// What to write in its place.
        edit: &'static str,
    },
    /// The two are no chain.
    NoChain {
        /// The sum.
        target: String,
        /// Why not.
        problem: ChainProblem,
    },
    /// The axis is no loop over terms.
    Axis {
        /// It.
        axis: String,
        /// Why not.
        why: &'static str,
        /// Axes that are.
        known: Vec<String>,
    },
    /// A stage stands in a loop that runs twice.
    Deeper {
        /// It.
        stage: String,
        /// That loop.
        axis: String,
        /// The loop of the op.
        over: String,
    },
    /// A sum with more axes follows, and blocks of terms cannot be made.
    Blocks {
        /// What is wrong with the loop.
        why: &'static str,
    },
    /// A stage inside the loops reads the extreme.
    Inside {
        /// It.
        stage: String,
    },
}

impl IntoDiagnostic for BadOnline {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { source, problem, span } = self;
        let diagnostic = |title: String| Diagnostic::new(Code::TW0720, span, title);
        match problem {
            OnlineProblem::Elsewhere { stage } => diagnostic(format!("`{source}` is not what this schedule is of"))
                .note(format!("the loops are those of `{stage}`, and the pass is one over the terms of `{source}`"))
                .help(format!("write the op in the schedule of `{source}`")),
            OnlineProblem::Second { first } => diagnostic(format!("`{source}` is online already"))
                .label(first, "here")
                .help("name all sums in one op: `online m -> l, a over jo`"),
            OnlineProblem::Unknown { target } => diagnostic(format!("there is no equation `{target}`")),
            OnlineProblem::Twice { target } => diagnostic(format!("`{target}` is named twice")),
            OnlineProblem::NotSaid { target, word, edit } => {
                let kind = if edit == "online dot" { edit } else { "online sum" };
                diagnostic(format!("`{target}` is not an `{kind}`"))
                    .label(word, "this sum")
                    .note("partial sums are rescaled, which rounds: the sum has to say that it admits that")
                    .replace(word, edit, format!("write `{kind}`"))
            }
            OnlineProblem::NoChain { target, problem } => {
                let found = diagnostic(format!("`{target}` cannot follow `{source}` online"));
                problem.explain(found, &target, Some(&source))
            }
            OnlineProblem::Axis { axis, why, known } => {
                let found = diagnostic(format!("`{axis}` is no loop over the terms of `{source}`")).note(why);
                match known.is_empty() {
                    true => found.help("leave a loop over terms: `split` the axis, and bind or vectorise the inner part"),
                    false => found.help(format!("loops over terms are `{}`", known.join("`, `"))),
                }
            }
            OnlineProblem::Deeper { stage, axis, over } => {
                diagnostic(format!("`{stage}` stands in a loop that runs twice in each iteration of `{over}`"))
                    .note(format!("`{axis}` is inside of `{over}`: it runs for the extreme of the terms, and again for their sums"))
                    .help(format!("attach it to `{source}.{over}`"))
            }
            OnlineProblem::Blocks { why } => diagnostic(format!("the loop of `{source}` {why}"))
                .note("a sum with more axes than the extreme follows it block by block of terms")
                .help(format!(
                    "write `split j by 64 -> jo, j1` in the schedule of `{source}`, and `schedule a in registers at {source}.jo {{ mma (i, e, j) by wgmma; }}`"
                )),
            OnlineProblem::Inside { stage } => {
                diagnostic(format!("`{stage}` reads `{source}`, which is not known before its loops end"))
                    .note(format!("inside of its loops, `{source}` is the extreme of the terms so far"))
                    .help(format!("leave the schedule of `{stage}` out: then it is computed where the sums read it"))
            }
        }
    }
}
