//! TW0312: a staged copy of something that is not a tile.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An instance of a staged copy holds an interval of each axis, and the length of the interval is known at compile
    /// time. A read that lies a run-time distance from another one leaves no such interval. Memory may say where the
    /// interval starts, once for all of an instance, or list up to 16 places of one element each; not more, and nothing
    /// may be done to what it says but to add to it.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Gather(x: f32[N], p: i32[N]) -> (y: f32[N]) {
    ///     y[i] = x[p[i]] or 0.0;
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    ///     stage xs[i] = x in shared at y.b via tma { box i by 256 -> c, e; }
    /// }
    /// ```
    ///
    /// The message says which read it is, and why: here each of 256 elements has a place of its own.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Gather(x: f32[N], p: i32[N]) -> (y: f32[N]) {
    ///     y[i] = x[p[i]] or 0.0;
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    ///     stage ps[i] = p in shared at y.b via tma { box i by 256 -> c, e; }
    /// }
    /// ```
    TW0312 "not-a-tile" Error "a staged copy of something that is not a tile"
}

/// TW0312: what is read in one instance is not a tile.
#[derive(Clone, Debug)]
pub struct NoTile {
    /// The copy.
    pub copy: String,
    /// The axis of the view.
    pub axis: String,
    /// Why.
    pub why: String,
    /// The read.
    pub read: Span,
    /// The copy.
    pub span: Span,
}

impl IntoDiagnostic for NoTile {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, axis, why, read, span } = self;
        Diagnostic::new(Code::TW0312, span, format!("what `{copy}` would hold along `{axis}` is not a tile: {why}"))
            .label(read, "what is read here")
            .note("an instance holds an interval of each axis, whose length is known at compile time")
            .help("attach the copy at another loop, or let each thread read the tensor: without `stage`")
    }
}
