//! TW0114: an axis that indexes dimensions of different sizes.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// If a bare axis indexes several dimensions, they have to be the same size for every launch: by name, or by a
    /// fact.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Dot(x: f32[N], z: f32[M]) -> (y: f32[]) {
    ///     y[] = sum(|k| x[k] * z[k]);
    /// }
    /// ```
    ///
    /// The message shows both reads and the ranges that they give.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Dot(x: f32[N], z: f32[N]) -> (y: f32[]) {
    ///     y[] = sum(|k| x[k] * z[k]);
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Keep both names and state that they are equal: `where M == N`. A launch checks it.
    /// - Write the range that is meant, `sum(|k in 0..N| …)`, and `or 0.0` where a read may leave its tensor.
    TW0114 "range-conflict" Error "an axis that indexes dimensions of different sizes"
}

/// TW0114: two dimensions give one axis different ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeConflict {
    /// The axis.
    pub axis: String,
    /// A read and the range that it gives.
    pub first: (Span, String),
    /// Another read and its range.
    pub second: (Span, String),
    /// The declaration of the axis.
    pub span: Span,
}

impl IntoDiagnostic for RangeConflict {
    fn into_diagnostic(self) -> Diagnostic {
        let RangeConflict { axis, first, second, span } = self;
        let title = format!("`{axis}` would range over {} and over {}", first.1, second.1);
        let (a, b) = (upper(&first.1), upper(&second.1));
        let fact = match (a, b) {
            (Some(a), Some(b)) => format!("if they are the same size, say so: `where {a} == {b}`; else "),
            _ => String::new(),
        };
        Diagnostic::new(Code::TW0114, span, title)
            .label(first.0, format!("`{axis}` indexes a dimension of {}", first.1))
            .label(second.0, format!("`{axis}` indexes a dimension of {}", second.1))
            .help(format!("{fact}write the range: `{axis} in {}`", first.1))
    }
}

/// The size of a range that starts at 0.
fn upper(range: &str) -> Option<&str> {
    range.strip_prefix("0..")
}
