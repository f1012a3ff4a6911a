//! TW0412: a layout that takes vectors apart.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// The lanes of a vector are one access: neighbours in the buffer, starting at a multiple of their number. Padding
    /// that is no multiple of it moves the rows after it away from such places.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Twice(x: f32[M, N]) -> (y: f32[M, N]) where N % 64 == 0 {
    ///     y[i, j] = x[i, j] + x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split i by 16 -> io, ii; split j by 64 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid;
    ///         merge ii, ji -> p; split p by 256 -> r, t; bind t: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.jo {
    ///         split j by 4 -> jc, v;
    ///         merge i, jc -> p;
    ///         bind p: thread;
    ///         vectorize v;
    ///         layout [i, j pad 1];
    ///     }
    /// }
    /// ```
    ///
    /// The second row would start at element 65, which is no multiple of 4.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Twice(x: f32[M, N]) -> (y: f32[M, N]) where N % 64 == 0 {
    ///     y[i, j] = x[i, j] + x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split i by 16 -> io, ii; split j by 64 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid;
    ///         merge ii, ji -> p; split p by 256 -> r, t; bind t: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.jo {
    ///         split j by 4 -> jc, v;
    ///         merge i, jc -> p;
    ///         bind p: thread;
    ///         vectorize v;
    ///         layout [i, j pad 4];
    ///     }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - A swizzle, `layout [i, j] swizzle 128`, keeps 16 bytes together.
    /// - Remove `vectorize v`.
    TW0412 "laid-out-vector" Error "a layout that takes vectors apart"
}

/// TW0412: a layout in which the lanes of a vector are no longer one.
#[derive(Clone, Debug)]
pub struct LaidOutVector {
    /// The stage with the layout.
    pub stage: String,
    /// The stage that reads it; none if it is written.
    pub reader: Option<String>,
    /// The vectorised axis, its lanes.
    pub axis: String,
    /// Its lanes.
    pub lanes: i128,
    /// The layout with the least padding beyond what is written that keeps vectors, if padding does.
    pub padded: Option<String>,
    /// Whether lanes may go by themselves: not those of all copies by `cp.async`.
    pub alone: bool,
    /// The `vectorize` op.
    pub vectorize: Span,
    /// The layout.
    pub span: Span,
}

impl IntoDiagnostic for LaidOutVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, reader, axis, lanes, padded, alone, vectorize, span } = self;
        let what = match &reader {
            Some(reader) => format!("`{reader}` reads `{stage}`"),
            None => format!("`{stage}` is written"),
        };
        let title = format!("{what} by vectors of {lanes} along `{axis}`, which this layout takes apart");
        let found = Diagnostic::new(Code::TW0412, span, title).label(vectorize, "vectorised here").note(format!(
            "a vector is accessed whole: {lanes} neighbours in the buffer, at a multiple of {lanes} elements"
        ));
        let found = match padded {
            Some(layout) => {
                let text = format!("pad by whole vectors: `{layout}`");
                found.change(Change::Replace(span, layout), text)
            }
            None => found.help(format!("lay `{axis}` out innermost, and pad by multiples of {lanes}")),
        };
        match alone {
            true => found.change(Change::RemoveOp(vectorize), format!("or remove `vectorize {axis}`")),
            false => found,
        }
    }
}
