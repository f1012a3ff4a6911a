//! TW1009: a float sum by atomic operations that is not `unordered`.

use tilewright_kernel::ElementType;

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A float `sum` may be added up in any order, but the same kernel, shape and target give the same bits every time.
    /// Blocks that add their parts by atomic operations do so in the order in which they come, and each addition
    /// rounds. Sums of integers, extremes, `all` and `any` do not depend on the order. The terms of a scatter,
    /// `y[p[i]] += …`, are always added in this way, so that its float sums are `unordered`.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Total(x: f32[N]) -> (y: f32[]) {
    ///     y[] = sum(|k| x[k]);
    ///     schedule y { split k by 256 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by atomic; }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Total(x: f32[N]) -> (y: f32[]) {
    ///     y[] = sum(|k| x[k]);
    ///     schedule y { split k by 256 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by grid; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Write `unordered sum`, where other bits each time do no harm.
    TW1009 "unordered-bits" Error "a float sum by atomic operations that is not `unordered`"
}

/// TW1009: a float sum by atomic operations whose author did not give up the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedByNobody {
    /// Type of the sum.
    pub element: ElementType,
    /// The word `atomic`; of a scatter the word `sum`.
    pub span: Span,
    /// The reduction; none of a scatter.
    pub reduction: Option<Span>,
}

impl IntoDiagnostic for OrderedByNobody {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { element, span, reduction } = self;
        let title = format!("a sum of `{element}` by atomic operations has other bits each time it runs");
        let diagnostic = Diagnostic::new(Code::TW1009, span, title);
        let Some(reduction) = reduction else {
            return diagnostic
                .note("the terms of a scatter are added in the order in which they come, and each addition rounds")
                .replace(span, "unordered sum", "give the promise of the same bits up: `unordered sum`");
        };
        diagnostic
        .label(reduction, "this sum promises the same bits every time")
        .note("blocks add their parts in the order in which they come, and each addition rounds")
        .replace(span, "grid", "combine them in a fixed order: `by grid`")
        .help("or give the promise up: `unordered sum`")
    }
}
