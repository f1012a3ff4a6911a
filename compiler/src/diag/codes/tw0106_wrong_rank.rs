//! TW0106: a wrong number of indices.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::count;
use crate::source::Span;

row! {
    /// A tensor is read and defined with one index for each dimension.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     y[i, j] = x[i];
    /// }
    /// ```
    ///
    /// The message counts both and shows where the tensor is declared.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     y[i, j] = x[i, j];
    /// }
    /// ```
    TW0106 "wrong-rank" Error "a wrong number of indices"
}

/// TW0106: a wrong number of indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongRank {
    /// The tensor.
    pub name: String,
    /// Its rank.
    pub expected: usize,
    /// Number of indices.
    pub found: usize,
    /// Where it is declared.
    pub declared: Option<Span>,
    /// Whether it is a copy that names its axes.
    pub is_copy: bool,
    /// The read, or the left-hand side.
    pub span: Span,
}

impl IntoDiagnostic for WrongRank {
    fn into_diagnostic(self) -> Diagnostic {
        let (has, takes) = (count(self.found, "index", "indices"), count(self.expected, "dimension", "dimensions"));
        let diagnostic =
            Diagnostic::new(Code::TW0106, self.span, format!("`{}` has {takes} and is given {has}", self.name));
        let diagnostic = match self.declared {
            Some(span) => diagnostic.label(span, "declared here"),
            None => diagnostic,
        };
        match self.is_copy {
            true => diagnostic.help(format!(
                "name an axis for each of the {takes} of `{}`, in their order, also where a copy has one element",
                self.name
            )),
            false => diagnostic,
        }
    }
}
