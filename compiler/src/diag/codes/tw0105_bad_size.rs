//! TW0105: something that is no size, or strides that do not match the sizes.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::count;
use crate::source::Span;

row! {
    /// A size is made of integer literals, UPPERCASE names and `+ - * / %` with positive divisors. After `;` a tensor
    /// has one stride for each size, in elements, outermost first; a stride may also be a lower-case name.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N; s]) -> (y: f32[M, N]) {
    ///     y[i, j] = x[i, j];
    /// }
    /// ```
    ///
    /// The message names what is no size, or counts the strides.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N; s, 1]) -> (y: f32[M, N]) {
    ///     y[i, j] = x[i, j];
    /// }
    /// ```
    TW0105 "bad-size" Error "something that is no size, or strides that do not match the sizes"
}

/// What is wrong with a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeProblem {
    /// Beyond 63 bits.
    TooLarge(u64),
    /// A literal with a type.
    Suffix(i64),
    /// Not made of literals, sizes and `+ - * / %`.
    NotASize,
    /// A divisor that is not positive.
    Divisor(i64),
    /// A name that is not spelled like a size.
    LowerCase(String),
    /// A scalar parameter.
    Scalar(String),
}

/// TW0105: something that is no size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSize {
    /// What is wrong.
    pub problem: SizeProblem,
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for BadSize {
    fn into_diagnostic(self) -> Diagnostic {
        let new = |title: String| Diagnostic::new(Code::TW0105, self.span, title);
        match self.problem {
            SizeProblem::TooLarge(value) => new(format!("the size {value} is larger than 2^63 - 1")),
            SizeProblem::Suffix(value) => new("a size has no element type".to_owned()).replace(
                self.span,
                value.to_string(),
                format!("write `{value}`"),
            ),
            SizeProblem::NotASize => {
                new("this is not a size".to_owned()).note("sizes are made of literals, UPPERCASE names and `+ - * / %`")
            }
            SizeProblem::Divisor(value) => new(format!("a size is divided by {value}"))
                .note("`/` and `%` of sizes round down and need a positive divisor"),
            SizeProblem::LowerCase(name) => {
                let upper = name.to_uppercase();
                new(format!("`{name}` is not a size"))
                    .note("sizes are UPPERCASE; a lower-case name is a stride, after `;`")
                    .replace(self.span, upper.clone(), format!("write `{upper}`"))
            }
            SizeProblem::Scalar(name) => new(format!("the scalar parameter `{name}` is not a size"))
                .note("sizes are read off the shapes of the arguments and are integers"),
        }
    }
}

/// TW0105: strides that do not match the sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrideCount {
    /// Number of sizes.
    pub sizes: usize,
    /// Number of strides.
    pub strides: usize,
    /// The strides.
    pub span: Span,
}

impl IntoDiagnostic for StrideCount {
    fn into_diagnostic(self) -> Diagnostic {
        let (sizes, strides) = (count(self.sizes, "size", "sizes"), count(self.strides, "stride", "strides"));
        Diagnostic::new(Code::TW0105, self.span, format!("{strides} for {sizes}"))
            .note("a tensor has one stride for each size, outermost first, in elements")
    }
}
