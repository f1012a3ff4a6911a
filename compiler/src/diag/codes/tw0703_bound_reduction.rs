//! TW0703: a reduction axis given to several units.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;
use crate::source::ast::ReduceBy;

row! {
    /// Threads or blocks that each take some terms of a reduction hold parts of the result, which `reduce` combines:
    /// `reduce t` what threads of a block have, `reduce k by grid` what blocks have.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
    ///     y[i] = sum(|j| x[i, j]);
    ///     schedule y { split j by 32 -> jo, t; bind i: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// The message names the axis.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
    ///     y[i] = sum(|j| x[i, j]);
    ///     schedule y { split j by 32 -> jo, t; bind i: grid; bind t: thread; reduce t; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Leave the axis unbound, and give threads elements of the result: each reduces its own, term after term.
    /// - Where rows are few and long, give blocks parts of a row: `bind jo: grid; reduce jo by grid;`.
    TW0703 "bound-reduction" Error "a reduction axis given to several units"
}

/// TW0703: terms of a reduction given to different threads.
#[derive(Clone, Debug)]
pub struct BoundReduction {
    /// The reduction axis.
    pub axis: String,
    /// Whether it is given to blocks.
    pub blocks: Option<ReduceBy>,
    /// The `bind`.
    pub span: Span,
    /// A `reduce` of it that reaches less far.
    pub reduced: Option<Span>,
}

impl IntoDiagnostic for BoundReduction {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, blocks, span, reduced } = self;
        let unit = if blocks.is_some() { "block" } else { "thread" };
        let diagnostic = Diagnostic::new(
            Code::TW0703,
            span,
            format!("`{axis}` is reduced over, and each {unit} would hold only a part of the result"),
        );
        if let Some(by) = blocks {
            let diagnostic = match reduced {
                Some(op) => diagnostic
                    .label(op, "this combines what the threads of a block have")
                    .help(format!("combine what the blocks have: `reduce {axis} by {by};`")),
                None => diagnostic.change(
                    Change::AppendOp(format!("reduce {axis} by {by}")),
                    format!("combine what the blocks have: `reduce {axis} by {by};`"),
                ),
            };
            return diagnostic.help(format!("or bind `{axis}` to threads, or leave it unbound"));
        }
        diagnostic
            .change(
                Change::AppendOp(format!("reduce {axis}")),
                format!("combine what the threads have: `reduce {axis};`"),
            )
            .change(
                Change::RemoveOp(span),
                format!(
                    "leave `{axis}` unbound, and give elements to threads: each reduces its own terms one after the other"
                ),
            )
    }
}
