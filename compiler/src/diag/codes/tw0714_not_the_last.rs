//! TW0714: a reduction that blocks share where the last of them cannot go on alone.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Blocks can share the reduction of a stage in a loop of an output: `bind k: grid; reduce k by grid;`. Each of
    /// them takes a part of the terms, and the last one to arrive goes on with what stands at that place; the others
    /// have nothing more to do there. That is only right if
    ///
    /// - the loop is one of an output that has blocks of its own: what stands in a loop of a stage would lack the stage
    ///   in all other blocks;
    /// - it is no loop over terms of the output, nor inside one: in each iteration another block may be the last, and
    ///   none would have all terms;
    /// - blocks share no other reduction for that output: after the first arrival one block is left, which has a part
    ///   of the terms of the second;
    /// - sizes alone decide how many blocks there are: not the loops around the place, as in `sum(|k in 0..=i| …)` at
    ///   `y.i`;
    /// - no output stands further out: all blocks would write it;
    /// - one role does all that comes after, and blocks of a cluster do nothing of it together: what roles hand to each
    ///   other, and copies with `multicast`, stand in the loops of the stage, where all blocks come;
    /// - a thread has at most 256 results of an instance, which it keeps until the block arrives.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scores(x: f32[M, N]) -> (y: f32[M, N]) where N >= 1 {
    ///     s[i] = sum(|k| x[i, k]);
    ///     q[i] = sum(|k| x[i, k] * x[i, k]);
    ///     y[i, j] = (x[i, j] - s[i] / (N as f32)) / sqrt(q[i]);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule s in registers at y.i {
    ///         split k by 1024 -> kb, ki; split ki by 128 -> r, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid;
    ///     }
    ///     schedule q in registers at y.i {
    ///         split k by 1024 -> kb, ki; split ki by 128 -> r, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid;
    ///     }
    /// }
    /// ```
    ///
    /// Each of the two would leave the other one to a single block.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scores(x: f32[M, N]) -> (y: f32[M, N]) where N >= 1 {
    ///     (s, q)[i] = fold(|k| init (0.0f32, 0.0f32),
    ///         step (a, b) => (a + x[i, k], b + x[i, k] * x[i, k]),
    ///         merge ((a, b), (c, d)) => (a + c, b + d));
    ///     y[i, j] = (x[i, j] - s[i] / (N as f32)) / sqrt(q[i]);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule s in registers at y.i {
    ///         split k by 1024 -> kb, ki; split ki by 128 -> r, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid;
    ///     }
    /// }
    /// ```
    TW0714 "not-the-last" Error "a reduction that blocks share where the last of them cannot go on alone"
}

/// TW0714: a stage whose reduction blocks share, where the last of them cannot go on alone.
#[derive(Clone, Debug)]
pub struct NotTheLast {
    /// The stage.
    pub stage: String,
    /// Where it stands: `y.i`.
    pub place: String,
    /// Why not.
    pub problem: ArrivalProblem,
    /// Its head.
    pub span: Span,
}

/// Why blocks cannot share a stage.
#[derive(Clone, Debug)]
pub enum ArrivalProblem {
    /// It stands in a loop of something that is no output with blocks of its own: of a stage, or of an output beside
    /// another one.
    Inside {
        /// What has the loop.
        host: String,
        /// The other output.
        beside: Option<String>,
    },
    /// Blocks of the same output share another reduction.
    Second {
        /// The output or stage.
        other: String,
        /// An axis of it that is given to blocks.
        axis: String,
    },
    /// It stands in a loop over terms of its output.
    Terms {
        /// The output.
        host: String,
        /// The loop.
        axis: String,
    },
    /// An output stands further out.
    Around {
        /// It.
        output: String,
    },
    /// Loops around decide how many blocks an axis has.
    Varying {
        /// The axis.
        axis: String,
    },
    /// What comes after is done by several that would not know which block goes on.
    Together {
        /// It: an output, a stage or a copy.
        what: String,
        /// Whether it is a copy.
        is_copy: bool,
        /// Who would have to know.
        by: Parties,
    },
    /// A thread has too many results.
    TooMany {
        /// How many.
        count: i128,
        /// The most.
        most: i128,
    },
}

/// Who does something together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parties {
    /// Roles of a block.
    Roles,
    /// Blocks of a cluster.
    Blocks,
}

impl IntoDiagnostic for NotTheLast {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, place, problem, span } = self;
        let title = format!("blocks cannot share the reduction of `{stage}` at `{place}`");
        let diagnostic = Diagnostic::new(Code::TW0714, span, title);
        let alone = "after a reduction that blocks share, the last of them to arrive goes on alone";
        match problem {
            ArrivalProblem::Inside { host, beside: None } => diagnostic
                .note(format!("`{host}` is a stage itself: {alone}, and the others would go on without `{host}`"))
                .help("attach it to a loop of the output, further out"),
            ArrivalProblem::Inside { host, beside: Some(other) } => diagnostic
                .note(format!("`{host}` stands beside `{other}`, whose blocks are for both of them: {alone}, and the others would go on without it"))
                .help(format!("attach it to the loop of `{other}` that `{host}` stands in")),
            ArrivalProblem::Second { other, axis } => diagnostic
                .note(format!("blocks share the reduction of `{other}`, too, along `{axis}`"))
                .note(format!("{alone}: it would have to do alone what they share after it"))
                .help("make both one `fold`, with the states of both, if neither needs the other")
                .help(format!("or leave `{axis}` to one block, or compute one of the two in a kernel of its own")),
            ArrivalProblem::Terms { host, axis } => diagnostic
                .note(format!("`{axis}` is a loop over terms of `{host}`: another block may be the last to arrive in each of its iterations, and none has all terms"))
                .help(format!("attach it to a loop that `{axis}` is inside of")),
            ArrivalProblem::Around { output } => diagnostic
                .note(format!("`{output}` stands beside it further out: {alone}, and all of them would write `{output}`"))
                .help(format!("write `schedule {output} at {place}`, or attach `{stage}` as far out as `{output}`")),
            ArrivalProblem::Varying { axis } => diagnostic
                .note(format!("the loops around `{place}` decide how many iterations `{axis}` has, and a launch has one number of blocks"))
                .help("write a range of sizes, and in the term the condition: `if … { … } else { 0.0 }`")
                .help(format!("or leave `{axis}` to one block")),
            ArrivalProblem::Together { what, is_copy, by: Parties::Roles } => diagnostic
                .note(format!("another role runs `{what}`, which comes after it: {alone}, and other roles do not know which one that is"))
                .help(match is_copy {
                    true => format!("let the role of `{stage}` make `{what}`, or read the tensor without a copy"),
                    false => format!("let one role run `{stage}` and all that comes after it"),
                }),
            ArrivalProblem::Together { what, is_copy, by: Parties::Blocks } => diagnostic
                .note(format!("the blocks of a cluster make `{what}` together, which comes after it: {alone}, and not with the others of its cluster"))
                .help(match is_copy {
                    true => format!("leave `multicast` of `{what}` out"),
                    false => format!("leave what `{what}` reduces `by cluster` to one block"),
                }),
            ArrivalProblem::TooMany { count, most } => diagnostic
                .note(format!("a block arrives once with all results of an instance, and a thread keeps {} of them in registers; at most {most} have room there", match count {
                    i128::MAX => "an unknown number".to_owned(),
                    count => count.to_string(),
                }))
                .help("bind more of its axes to threads, or attach it where less is asked for"),
        }
    }
}
