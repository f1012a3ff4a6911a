//! TW0123: arguments that a function does not take.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::count;
use crate::source::Span;

row! {
    /// Functions take a fixed number of arguments: one for `exp`, `sqrt` and their like, two for `min` and `max`, three
    /// for `fma` and `clamp`. The second argument of `pow` is a literal.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Clamp(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = min(x[i], 0.0, 1.0);
    /// }
    /// ```
    ///
    /// The message counts both.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Clamp(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = clamp(x[i], 0.0, 1.0);
    /// }
    /// ```
    TW0123 "wrong-arguments" Error "arguments that a function does not take"
}

/// TW0123: a wrong number of arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongArgumentCount {
    /// The function.
    pub function: String,
    /// How many it takes.
    pub expected: usize,
    /// How many there are.
    pub found: usize,
    /// The call.
    pub span: Span,
}

impl IntoDiagnostic for WrongArgumentCount {
    fn into_diagnostic(self) -> Diagnostic {
        let takes = count(self.expected, "argument", "arguments");
        Diagnostic::new(
            Code::TW0123,
            self.span,
            format!("`{}` takes {takes} and is given {}", self.function, self.found),
        )
    }
}

/// TW0123: an exponent of `pow` that is no literal, or a large one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongExponent {
    /// The largest magnitude.
    pub most: u64,
    /// The exponent.
    pub span: Span,
}

impl IntoDiagnostic for WrongExponent {
    fn into_diagnostic(self) -> Diagnostic {
        let WrongExponent { most, span } = self;
        Diagnostic::new(Code::TW0123, span, format!("the exponent of `pow` is an integer literal from -{most} to {most}"))
            .note("`pow(x, n)` is a product by squaring, in an order that `n` decides")
            .help("any other power of a positive number is `exp(y * log(x))`")
    }
}
