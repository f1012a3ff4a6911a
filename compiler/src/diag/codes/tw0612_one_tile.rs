//! TW0612: a persistent launch of one tile.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `launch persistent` starts as many blocks as run at one time, and they take the iterations of the axes that are
    /// given to the grid, the tiles, in turn. Without such an axis there is one tile.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Twice(x: f32[64]) -> (z: f32[64]) {
    ///     z[i] = x[i] * 2.0;
    ///     launch persistent;
    ///     schedule z { bind i: thread; }
    /// }
    /// ```
    ///
    /// The message points at the word.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Twice(x: f32[N]) -> (z: f32[N]) {
    ///     z[i] = x[i] * 2.0;
    ///     launch persistent;
    ///     schedule z { split i by 64 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW0612 "one-tile" Error "a persistent launch of one tile"
}

/// TW0612: a persistent launch that has one tile.
#[derive(Clone, Debug)]
pub struct OneTile {
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for OneTile {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW0612, self.span, "no axis is given to the grid, so there is one tile".to_owned())
            .note("blocks of a persistent launch take the iterations of the grid in turn")
            .help("bind an axis: `bind …: grid;`")
            .help("or remove `persistent`")
    }
}
