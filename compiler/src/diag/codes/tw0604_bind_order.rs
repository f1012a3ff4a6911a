//! TW0604: a unit bound inside a smaller one.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Units nest: a thread is a part of a warp, a warp is a part of a warpgroup. So an axis bound to warps is outside
    /// those bound to threads, which are then the lanes of one warp, and inside those bound to warpgroups.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 128 -> b, r;
    ///         split r by 4 -> t, w;
    ///         bind b: grid;
    ///         bind t: thread;
    ///         bind w: warp;
    ///     }
    /// }
    /// ```
    ///
    /// The help gives the `reorder`.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 128 -> b, r;
    ///         split r by 32 -> w, t;
    ///         bind b: grid;
    ///         bind w: warp;
    ///         bind t: thread;
    ///     }
    /// }
    /// ```
    TW0604 "bind-order" Error "a unit bound inside a smaller one"
}

/// TW0604: a unit inside one that it is no part of.
#[derive(Clone, Debug)]
pub struct BindOrder {
    /// The axis bound to the larger unit.
    pub outer: String,
    /// The axis bound to the smaller one.
    pub inner: String,
    /// The units, the larger one first.
    pub units: (String, String),
    /// The `bind` to the smaller one.
    pub span: Span,
    /// The `bind` to the larger one.
    pub other: Span,
}

impl IntoDiagnostic for BindOrder {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { outer, inner, units: (large, small), span, other } = self;
        let title = format!("`{inner}` is bound to {small}s outside `{outer}`, which is bound to {large}s");
        Diagnostic::new(Code::TW0604, span, title)
            .label(other, format!("a {small} has no {large}s to give out"))
            .note("binds nest by the order of the loops: each unit is a part of the one around it")
            .change(Change::AppendOp(format!("reorder {outer}, {inner}")), format!("add `reorder {outer}, {inner};`"))
    }
}
