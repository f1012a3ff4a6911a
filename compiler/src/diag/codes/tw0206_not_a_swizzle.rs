//! TW0206: a swizzle of axes that do not form a square.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `swizzle x, y by xor` replaces `y` by `y xor x`. It is a permutation of `y` for every `x` only if both have one
    /// extent `2^k`.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     y[i, j] = x[i, j];
    ///     schedule y {
    ///         split i by 8 -> io, ii;
    ///         split j by 16 -> jo, ji;
    ///         swizzle ii, ji by xor -> p, q;
    ///     }
    /// }
    /// ```
    ///
    /// The message shows both extents.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     y[i, j] = x[i, j];
    ///     schedule y {
    ///         split i by 8 -> io, ii;
    ///         split j by 8 -> jo, ji;
    ///         swizzle ii, ji by xor -> p, q;
    ///     }
    /// }
    /// ```
    TW0206 "not-a-swizzle" Error "a swizzle of axes that do not form a square"
}

/// TW0206: a swizzle of something that is not a square.
#[derive(Clone, Debug)]
pub struct NotASwizzle {
    /// One axis with its extent.
    pub x: (String, String),
    /// The other.
    pub y: (String, String),
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for NotASwizzle {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { x, y, span } = self;
        let title = format!(
            "`swizzle` needs two axes of one extent that is a power of two; `{}` has {} and `{}` has {}",
            x.0, x.1, y.0, y.1
        );
        Diagnostic::new(Code::TW0206, span, title)
            .note("`y xor x` stays inside the extent of `y` only on a square whose side is a power of two")
            .help("split both axes by the same power of two first")
    }
}
