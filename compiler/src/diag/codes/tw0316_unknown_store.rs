//! TW0316: a staged output that is written in a way not confirmed on hardware.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// What a copy to a tensor does with an element stride, and what it does when it starts before the tensor, is not
    /// specified or not confirmed on hardware. Both are refused.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
    ///     y[i, j] = x[i, j];
    ///     schedule y { split i by 8 -> io, ii; split j by 32 -> jo, t; reorder io, jo, ii, t; bind io, jo: grid; bind t: thread; }
    ///     stage ys[i, j] = y in shared at y.jo via tma {
    ///         box i by 8 -> ic, ib;
    ///         tile ib by 2 -> it, is;
    ///         box j by 32 -> jc, jb;
    ///     }
    /// }
    /// ```
    ///
    /// A dense box writes the same elements.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
    ///     y[i, j] = x[i, j];
    ///     schedule y { split i by 8 -> io, ii; split j by 32 -> jo, t; reorder io, jo, ii, t; bind io, jo: grid; bind t: thread; }
    ///     stage ys[i, j] = y in shared at y.jo via tma {
    ///         box i by 8 -> ic, ib;
    ///         box j by 32 -> jc, jb;
    ///     }
    /// }
    /// ```
    TW0316 "unknown-store" Error "a staged output that is written in a way not confirmed on hardware"
}

/// A copy to a tensor that is not confirmed on hardware.
#[derive(Clone, Debug)]
pub enum UnknownStoreProblem {
    /// With an element stride along this axis.
    Strided(String),
    /// Starting before the tensor.
    Negative {
        /// The axis.
        axis: String,
        /// Where regions start.
        start: String,
    },
}

/// TW0316: a copy to a tensor of which nobody knows what the hardware does.
#[derive(Clone, Debug)]
pub struct UnknownStore {
    /// The copy.
    pub copy: String,
    /// What is unknown.
    pub problem: UnknownStoreProblem,
    /// The op, or the copy.
    pub span: Span,
}

impl IntoDiagnostic for UnknownStore {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, problem, span } = self;
        match problem {
            UnknownStoreProblem::Strided(axis) => {
                Diagnostic::new(Code::TW0316, span, format!("`{copy}` would write a strided tile along `{axis}`"))
                    .note("what a copy to a tensor does with an element stride is not confirmed on hardware")
                    .change(Change::RemoveOp(span), "remove `tile`: a dense box holds the same elements")
            }
            UnknownStoreProblem::Negative { axis, start } => Diagnostic::new(
                Code::TW0316,
                span,
                format!("`{copy}` would start at {start} along `{axis}`, which is not known to be at least 0"),
            )
            .note("a copy to a tensor starts inside it: what the hardware does before it is not specified")
            .help("schedule the output without `resize`, or let each thread store its elements"),
        }
    }
}
