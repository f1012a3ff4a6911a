//! TW0303: axes merged in a view that are not contiguous to each other.

use crate::diag::{Assignment, Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::prefix;
use crate::source::Span;

row! {
    /// Two axes of a tensor are one axis only if the elements of the outer one follow those of the inner one without a
    /// gap: a tensor map has one stride for each axis.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Flat(x: f32[M, 32; ld, 1]) -> (y: f32[M, 32]) where ld % 4 == 0 {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     schedule y {
    ///         split i by 8 -> io, ii;
    ///         bind io: grid;
    ///         bind ii: thread;
    ///         bind j: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.io via tma {
    ///         merge i, j -> m;
    ///         box m by 256 -> mc, mb;
    ///     }
    /// }
    /// ```
    ///
    /// The message shows both strides.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Flat(x: f32[M, 32]) -> (y: f32[M, 32]) {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     schedule y {
    ///         split i by 8 -> io, ii;
    ///         bind io: grid;
    ///         bind ii: thread;
    ///         bind j: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.io via tma {
    ///         merge i, j -> m;
    ///         box m by 256 -> mc, mb;
    ///     }
    /// }
    /// ```
    TW0303 "view-merge" Error "axes merged in a view that are not contiguous to each other"
}

/// TW0303: axes of a view that are merged and do not follow each other in memory.
#[derive(Clone, Debug)]
pub struct ViewMerge {
    /// The tensor.
    pub tensor: String,
    /// The outer axis.
    pub outer: String,
    /// The inner axis.
    pub inner: String,
    /// Strides of both in elements, and the extent of the inner one.
    pub strides: (String, String),
    /// Extent of the inner one.
    pub extent: String,
    /// The smallest sizes for which they do not, with the distance of neighbours along the outer axis and the length of
    /// the inner one.
    pub witness: Option<(Assignment, i128, i128)>,
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for ViewMerge {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { tensor, outer, inner, strides: (far, near), extent, witness, span } = self;
        let mut diagnostic = Diagnostic::new(
            Code::TW0303,
            span,
            format!("`{outer}` and `{inner}` of `{tensor}` are not one axis: its elements do not follow each other"),
        )
        .note(format!(
            "neighbours along `{inner}` are {near} apart and there are {extent} of them; neighbours along `{outer}` are {far} apart"
        ))
        .note("a tensor map has one stride for each axis: only neighbours that are contiguous to each other can be merged");
        if let Some((dims, far, run)) = witness {
            diagnostic = diagnostic.counterexample(format!(
                "{}a row takes {run} elements, and the next one starts after {far}",
                prefix(&dims)
            ));
        }
        diagnostic.help("keep the axes apart, each with a box of its own")
    }
}
