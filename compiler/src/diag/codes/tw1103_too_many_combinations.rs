//! TW1103: more combinations of candidates than are tried.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// The constants of a `tune` have 64 combinations of candidates at most. Without a record each may be compiled
    /// while your crate is, until the first legal one; `tilewright tune` compiles and ranks all of them.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Add(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N]) {
    ///     z[i, j] = x[i, j] + y[i, j];
    ///     tune R in [1, 2, 3, 4, 5, 6, 7, 8, 9], T in [32, 64, 96, 128, 160, 192, 224, 256];
    ///     schedule z {
    ///         split i by R -> ib, r; split j by T -> jb, t; reorder ib, jb, t, r;
    ///         bind ib, jb: grid; bind t: thread;
    ///     }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Add(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N]) {
    ///     z[i, j] = x[i, j] + y[i, j];
    ///     tune R in [1, 2, 4, 8], T in [32, 64, 128, 256];
    ///     schedule z {
    ///         split i by R -> ib, r; split j by T -> jb, t; reorder ib, jb, t, r;
    ///         bind ib, jb: grid; bind t: thread;
    ///     }
    /// }
    /// ```
    TW1103 "too-many-combinations" Error "more combinations of candidates than are tried"
}

/// TW1103: a `tune` with more combinations than are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooManyCombinations {
    /// How many candidates each constant has.
    pub counts: Vec<usize>,
    /// Most combinations.
    pub limit: usize,
    /// The statement.
    pub span: Span,
}

impl IntoDiagnostic for TooManyCombinations {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { counts, limit, span } = self;
        let product = counts.iter().fold(1_usize, |product, count| product.saturating_mul(*count));
        let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
        let title = format!("{} are {product} combinations, and {limit} are tried at most", counts.join(" · "));
        Diagnostic::new(Code::TW1103, span, title).help("leave candidates out, such as those that lost before")
    }
}
