//! TW0003: an expression or block nested too deeply.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Parentheses, blocks and operators nest. The compiler walks them recursively on the stack of rustc, so their
    /// depth is limited: 64 levels of groups, 200 levels of an expression's tree. `a + b + c` has two levels.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Zero() -> (y: f32[N]) {
    ///     y[i] = (((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((0.0)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))));
    /// }
    /// ```
    ///
    /// The message stands where the limit is passed and names it.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Zero() -> (y: f32[N]) {
    ///     y[i] = 0.0;
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Give a part of the expression an equation of its own. An equation without a schedule is computed where it is
    ///   read, so this costs nothing.
    TW0003 "too-deep" Error "an expression or block nested too deeply"
}

/// TW0003: nested too deeply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooDeep {
    /// Where the limit is passed.
    pub span: Span,
    /// The limit, in levels.
    pub limit: u32,
}

impl IntoDiagnostic for TooDeep {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0003, self.span, format!("this is nested more than {} levels deep", self.limit))
            .note("operators in a row count as well: `a + b + c` has two levels")
            .help("give a part of the expression an equation of its own: an equation without a schedule is inlined")
    }
}
