//! TW1007: a promotion interval where there is none.

use tilewright_kernel::ElementType;

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Tensor cores add products of `e4m3` and `e5m2` in fewer bits than `f32`. `promote n` adds the short sum to an
    /// `f32` accumulator after every `n` terms. Other types have nothing to promote.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Dot(x: f16[N], z: f16[N]) -> (y: f32[]) {
    ///     y[] = dot(|k| x[k] * z[k], promote 128);
    /// }
    /// ```
    ///
    /// The message names what cannot have an interval.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Dot(x: f16[N], z: f16[N]) -> (y: f32[]) {
    ///     y[] = dot(|k| x[k] * z[k]);
    /// }
    /// ```
    TW1007 "promotion" Error "a promotion interval where there is none"
}

/// What is wrong with `promote`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromotionProblem {
    /// This reduction is no `dot`.
    NotADot(&'static str),
    /// The factors have this type.
    NotFp8(ElementType),
    /// The interval is no positive literal.
    NotPositive,
}

/// TW1007: `promote` where it means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// What is wrong.
    pub problem: PromotionProblem,
    /// The interval.
    pub span: Span,
}

impl IntoDiagnostic for Promotion {
    fn into_diagnostic(self) -> Diagnostic {
        let new = |title: String| Diagnostic::new(Code::TW1007, self.span, title);
        let diagnostic = match self.problem {
            PromotionProblem::NotADot(reduction) => new(format!("`{reduction}` has no promotion interval")),
            PromotionProblem::NotFp8(element) => new(format!("a `dot` of `{element}` has no promotion interval")),
            PromotionProblem::NotPositive => return new("the promotion interval is a positive literal".to_owned()),
        };
        diagnostic.note("tensor cores keep short sums only for `e4m3` and `e5m2`")
    }
}
