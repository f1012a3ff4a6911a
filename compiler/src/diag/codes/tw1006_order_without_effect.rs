//! TW1006: an order for a reduction that has none.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `ordered` and `unordered` are for `sum` and `prod`, whose rounding depends on the order of the terms. Tensor
    /// cores choose the order of a `dot`; `max`, `min`, `all`, `any`, `argmax` and `argmin` have the same result in any
    /// order. `online` is for `sum` alone.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Largest(x: f32[N]) -> (y: f32[]) {
    ///     y[] = ordered max(|k| x[k]);
    /// }
    /// ```
    ///
    /// The message names the reduction.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Largest(x: f32[N]) -> (y: f32[]) {
    ///     y[] = max(|k| x[k]);
    /// }
    /// ```
    TW1006 "order-without-effect" Error "an order for a reduction that has none"
}

/// TW1006: an order for a reduction that does not depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderWithoutEffect {
    /// `ordered`, `unordered` or `online`.
    pub order: &'static str,
    /// The reduction.
    pub reduction: &'static str,
    /// The word.
    pub span: Span,
}

impl IntoDiagnostic for OrderWithoutEffect {
    fn into_diagnostic(self) -> Diagnostic {
        let (order, reduction) = (self.order, self.reduction);
        let diagnostic = Diagnostic::new(Code::TW1006, self.span, format!("`{reduction}` cannot be `{order}`"));
        match reduction {
            _ if order == "online" => diagnostic.note("partial results of a `sum` can be rescaled").help(match reduction {
                "dot" => "use `online sum`",
                _ => "leave the word out",
            }),
            "dot" => diagnostic.note("tensor cores choose the order of a `dot`").help(format!("use `{order} sum`")),
            _ => diagnostic.note(format!("the result of `{reduction}` does not depend on the order of its terms")),
        }
    }
}
