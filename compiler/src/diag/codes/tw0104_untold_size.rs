//! TW0104: a size or stride that no argument tells.

use tilewright_kernel::info::DimKind;

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A launch reads the sizes off its arguments. Each size or stride has to be one whole dimension or stride of a
    /// tensor, or be determined by a fact `==` from others that are.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Halves(x: f32[2 * H]) -> (y: f32[2 * H]) {
    ///     y[i] = x[i];
    /// }
    /// ```
    ///
    /// The message names the size and the only expression that it occurs in. A launch does not solve equations.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Halves(x: f32[N]) -> (y: f32[2 * H])
    /// where N == 2 * H
    /// {
    ///     y[i] = x[i];
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Pass a tensor that has the size as a dimension.
    /// - Fix it: `where H == 64`.
    TW0104 "untold-size" Error "a size or stride that no argument tells"
}

/// TW0104: a dimension that nothing tells at launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTold {
    /// The dimension.
    pub name: String,
    /// Size or stride.
    pub kind: DimKind,
    /// The first size or stride that mentions it.
    pub within: Option<String>,
    /// Where it appears first.
    pub span: Span,
}

impl IntoDiagnostic for NotTold {
    fn into_diagnostic(self) -> Diagnostic {
        let NotTold { name, kind, within, span } = self;
        let what = if kind == DimKind::Size { "size" } else { "stride" };
        let title = format!("no argument tells the {what} `{name}`");
        let note = match &within {
            Some(size) => format!("it occurs in `{size}` only, and a launch does not solve equations"),
            None => "it occurs in no shape".to_owned(),
        };
        Diagnostic::new(Code::TW0104, span, title)
            .note(note)
            .help(format!("give a tensor a dimension of size `{name}`, or fix it by a fact: `where {name} == 128`"))
    }
}
