//! TW0708: a `reduce` of an axis that no unit shares.

use tilewright_kernel::ElementType;

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;
use crate::source::ast::ReduceBy;

row! {
    /// `reduce t` combines what threads have along `t`: an axis of the reduction that is bound to threads or warps. The
    /// reduction must allow it: not if it is `ordered`, nor a `fold` without `merge`. `by warp` asks that the threads
    /// along `t` are lanes of one warp: at most 32 of them, a power of two, bound last. `by grid` and `by atomic`
    /// combine what blocks have, along an axis that is bound to `grid`; atomic operations exist for sums, extremes and
    /// their places, `all` and `any`, of most types.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
    ///     y[i] = sum(|j| x[i, j]);
    ///     launch threads(128);
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; reduce j; }
    /// }
    /// ```
    ///
    /// The message says which of these it is.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
    ///     y[i] = sum(|j| x[i, j]);
    ///     launch threads(128);
    ///     schedule y { split j by 128 -> r, t; reorder i, t, r; bind i: grid; bind t: thread; reduce t; }
    /// }
    /// ```
    TW0708 "not-reduced-here" Error "a `reduce` of an axis that no unit shares"
}

/// TW0708: a `reduce` of an axis that no unit shares.
#[derive(Clone, Debug)]
pub struct NothingToCombine {
    /// The axis.
    pub axis: String,
    /// What is wrong.
    pub problem: CombineProblem,
    /// The op.
    pub span: Span,
}

/// What is wrong with a `reduce`.
#[derive(Clone, Debug)]
pub enum CombineProblem {
    /// It is an axis of the result.
    Data,
    /// One thread takes all its terms.
    Unbound,
    /// It says `by grid`, `by atomic` or `by cluster`, and is not given to such blocks.
    NotOfBlocks(ReduceBy),
    /// Some axes are combined `by grid`, and others `by atomic`.
    TwoWays,
    /// Atomic operations on memory do not do that.
    NotAtomic {
        /// What is reduced.
        what: &'static str,
        /// The type, if it is one.
        element: Option<ElementType>,
    },
    /// It says `by warp`, and is run by more than the lanes of one.
    BeyondWarp,
    /// The terms are taken in order.
    Ordered,
    /// A fold without `merge`.
    NoMerge,
}

impl IntoDiagnostic for NothingToCombine {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, problem, span } = self;
        let (title, help) = match problem {
            CombineProblem::Data => (
                format!("`{axis}` is an axis of the result, and nothing is combined along it"),
                "name an axis that the reduction runs over".to_owned(),
            ),
            CombineProblem::Unbound => (
                format!("one thread takes all terms along `{axis}`"),
                format!(
                    "give it, or a part that `split` makes of it, to threads: `bind {axis}: thread;`; or remove the `reduce`"
                ),
            ),
            CombineProblem::TwoWays => (
                "blocks combine their parts of one result either `by grid` or `by atomic`".to_owned(),
                "write the same for all axes that blocks share".to_owned(),
            ),
            CombineProblem::NotAtomic { what, element } => (
                match element {
                    Some(element) => format!("atomic operations on memory do not combine a {what} of `{element}`"),
                    None => format!("atomic operations on memory do not combine a {what}"),
                },
                format!("write `reduce {axis} by grid;`, which combines everything that threads do"),
            ),
            CombineProblem::NotOfBlocks(by) => {
                let unit = if by == ReduceBy::Cluster { "cta" } else { "grid" };
                (
                    format!("no blocks share `{axis}`"),
                    format!(
                        "give it, or a part that `split` makes of it, to blocks: `bind {axis}: {unit};`; or leave `by {by}` out"
                    ),
                )
            }
            CombineProblem::BeyondWarp => (
                format!("the threads along `{axis}` are not always lanes of one warp"),
                "leave `by warp` out: parts of warps are combined in shared memory".to_owned(),
            ),
            CombineProblem::Ordered => (
                format!("the terms along `{axis}` are taken in order, one after the other"),
                "remove `ordered`, or leave the axis unbound".to_owned(),
            ),
            CombineProblem::NoMerge => (
                format!("parts of this `fold` along `{axis}` cannot be combined: it has no `merge`"),
                "add `merge (p, q) => …`, or leave the axis unbound".to_owned(),
            ),
        };
        Diagnostic::new(Code::TW0708, span, title).help(help)
    }
}
