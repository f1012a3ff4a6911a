//! TW0121: an operation that a type does not have.

use tilewright_kernel::ElementType;

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Arithmetic is for numbers, `&& || !` for `bool`, `exp` and its like for floats, and not every type converts to
    /// every other one.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Exp(x: i32[N]) -> (y: i32[N]) {
    ///     y[i] = exp(x[i]);
    /// }
    /// ```
    ///
    /// The message names the operation, what it needs and what it got.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Exp(x: i32[N]) -> (y: f32[N]) {
    ///     y[i] = exp(x[i] as f32);
    /// }
    /// ```
    TW0121 "wrong-operand" Error "an operation that a type does not have"
}

/// TW0121: an operation that a type does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongOperand {
    /// The operation.
    pub op: String,
    /// The type of its operand.
    pub found: ElementType,
    /// What it needs.
    pub needs: &'static str,
    /// The operand or the operation.
    pub span: Span,
}

impl IntoDiagnostic for WrongOperand {
    fn into_diagnostic(self) -> Diagnostic {
        let title = format!("`{}` needs {}, and this is `{}`", self.op, self.needs, self.found);
        let diagnostic = Diagnostic::new(Code::TW0121, self.span, title);
        if self.needs == "a float" && self.found.is_integer() {
            return diagnostic.help("convert the operand: `… as f32`");
        }
        diagnostic
    }
}

/// TW0121: a conversion that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongCast {
    /// The type of the operand.
    pub from: ElementType,
    /// The type asked for.
    pub to: ElementType,
    /// The cast.
    pub span: Span,
}

impl IntoDiagnostic for WrongCast {
    fn into_diagnostic(self) -> Diagnostic {
        let WrongCast { from, to, span } = self;
        let diagnostic = Diagnostic::new(Code::TW0121, span, format!("`{from}` is not converted to `{to}`"));
        if to == ElementType::Bool {
            diagnostic.help("compare it: `… != 0`")
        } else {
            diagnostic.help("choose a number for each: `if … { 1.0 } else { 0.0 }`")
        }
    }
}
