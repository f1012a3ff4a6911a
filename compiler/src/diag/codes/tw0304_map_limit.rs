//! TW0304: a box, tile or rank that no tensor map has.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A tensor map has 1 to 5 axes. A box spans 1 to 256 elements of an axis, and a multiple of 16 bytes of the
    /// innermost one; element strides are 1 to 8, and 1 on the innermost axis. The launcher knows the same rules.
    /// Coordinates have 32 bits with a sign, and strides end below 2⁴⁰ bytes: where the facts leave no size that keeps
    /// this, no launch could use the copy, and it is refused, too.
    ///
    /// Copies that need no tensor map have no such limits: contiguous runs of multiples of 16 bytes that are known to
    /// lie inside the tensor, no more of them than tiles. A longer row is one if the axes around it are boxed by 1, and
    /// a fact says that it is whole: where only the boxes are missing, the message names these axes.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split i by 32 -> io, ii;
    ///         split j by 32 -> jo, ji;
    ///         reorder io, jo, ii, ji;
    ///         bind io, jo: grid;
    ///         split ii by 8 -> r, w;
    ///         bind w: thread;
    ///         bind ji: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.jo via tma { box i by 32 -> ic, ib; box j by 30 -> jc, jb; }
    /// }
    /// ```
    ///
    /// The message names the axis and the rule.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split i by 32 -> io, ii;
    ///         split j by 32 -> jo, ji;
    ///         reorder io, jo, ii, ji;
    ///         bind io, jo: grid;
    ///         split ii by 8 -> r, w;
    ///         bind w: thread;
    ///         bind ji: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.jo via tma { box i by 32 -> ic, ib; box j by 32 -> jc, jb; }
    /// }
    /// ```
    TW0304 "map-limit" Error "a box, tile or rank that no tensor map has"
}

/// TW0304: a box, a tile or a number of axes that no tensor map has.
#[derive(Clone, Debug)]
pub struct MapLimit {
    /// The copy.
    pub copy: String,
    /// The axis, where it is about one.
    pub axis: Option<String>,
    /// The rule with the values: the launcher says the same.
    pub fault: String,
    /// What may help.
    pub help: String,
    /// Axes that, boxed by 1, would make the copy runs of memory; none if that does not help.
    pub rows: Vec<String>,
    /// The op, or the copy.
    pub span: Span,
}

impl IntoDiagnostic for MapLimit {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, axis, fault, help, rows, span } = self;
        let title = match axis {
            Some(axis) => format!("`{copy}` cannot be copied so: along `{axis}`, {fault}"),
            None => format!("`{copy}` cannot be copied so: {fault}"),
        };
        let diagnostic = Diagnostic::new(Code::TW0304, span, title).help(help);
        if rows.is_empty() {
            return diagnostic;
        }
        let rows: Vec<String> = rows.iter().map(|axis| format!("`{axis}`")).collect();
        diagnostic.help(format!(
            "or box {} by 1: each row is then a run of memory, which needs no tensor map and has no such limit",
            rows.join(" and ")
        ))
    }
}
