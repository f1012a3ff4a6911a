//! TW0403: an extent that no vector has.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An access instruction moves a power of two of elements, up to 16 bytes; a longer vector uses several. So a
    /// vectorised axis has 1, 2, 4, 8, 16, 32 or 64 elements.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N])
    /// where N % 3 == 0
    /// {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 3 -> b, v; bind b: grid; vectorize v; }
    /// }
    /// ```
    ///
    /// The message shows the extent.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N])
    /// where N % 4 == 0
    /// {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 4 -> b, v; bind b: grid; vectorize v; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - `unroll` takes any literal extent.
    TW0403 "vector-width" Error "an extent that no vector has"
}

/// TW0403: an extent that no vector has.
#[derive(Clone, Debug)]
pub struct VectorWidth {
    /// The axis.
    pub axis: String,
    /// Its extent.
    pub lanes: i128,
    /// Most lanes, a power of two.
    pub limit: i128,
    /// Whether it is the inner result of a split.
    pub is_split: bool,
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for VectorWidth {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, lanes, limit, is_split, span } = self;
        // The powers of two around it.
        let powers = || (1..).map(|n| 1_i128 << n).take_while(|p| *p <= limit);
        let (below, above) = (powers().filter(|p| *p < lanes).last(), powers().find(|p| *p > lanes));
        let widths: Vec<String> = below.into_iter().chain(above).map(|p| p.to_string()).collect();
        let widths = widths.join(" or ");
        // Of an axis that nothing has split, what divides it gives whole vectors.
        let divisor = if lanes > 0 { limit.min(1 << lanes.trailing_zeros().min(126)) } else { 1 };
        let proposal = match is_split {
            true => Some(format!("split by {widths} instead of {lanes}")),
            false if divisor > 1 => {
                Some(format!("split `{axis}` by {divisor}, which divides it, and vectorise the inner part"))
            }
            false => None,
        };
        let diagnostic = Diagnostic::new(
            Code::TW0403,
            span,
            format!("the lanes of a vector are a power of two up to {limit}; `{axis}` has {lanes}"),
        )
        .note("an access instruction moves a power of two of elements, up to 16 bytes; longer vectors use several");
        let remove = format!("remove `vectorize {axis}`");
        match proposal {
            Some(proposal) => diagnostic.help(proposal).change(Change::RemoveOp(span), format!("or {remove}")),
            None => diagnostic.change(Change::RemoveOp(span), remove),
        }
    }
}
