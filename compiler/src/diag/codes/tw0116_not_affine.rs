//! TW0116: an index that is not quasi-affine.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Indices are quasi-affine: sums of axes times constants of a launch, and `/` and `%` by such constants. Formally
    /// `e = c | d | axis | e + e | e - e | e * s | e / s | e % s` with literals `c`, sizes `d`, and `s` made of
    /// literals and sizes. Only for such indices can the compiler prove what a schedule does.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Squares(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = x[i * i] or 0.0;
    /// }
    /// ```
    ///
    /// The message shows the two factors, or the divisor, that vary.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Squares(x: f32[N], at: i32[N]) -> (y: f32[N]) {
    ///     y[i] = x[at[i]] or 0.0;
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - An index that comes from memory is a gather, as above: the caller passes the table of squares.
    TW0116 "not-affine" Error "an index that is not quasi-affine"
}

/// TW0116: an index that is not quasi-affine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAffine {
    /// A product; else a quotient or remainder.
    pub product: bool,
    /// The first operand.
    pub first: Span,
    /// The second one.
    pub second: Span,
    /// The whole.
    pub span: Span,
}

impl IntoDiagnostic for NotAffine {
    fn into_diagnostic(self) -> Diagnostic {
        let title = if self.product {
            "an index multiplies two things that vary"
        } else {
            "an index is divided by something that varies"
        };
        let mut diagnostic = Diagnostic::new(Code::TW0116, self.span, title);
        if self.product {
            diagnostic = diagnostic.label(self.first, "this varies");
        }
        diagnostic
            .label(self.second, "this varies")
            .note("indices are quasi-affine: one factor of a product, and every divisor, is made of literals and sizes")
    }
}
