//! TW1090: a float sum whose bits change from run to run.

use tilewright_kernel::ElementType;

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// The blocks of an `unordered sum` that is reduced `by atomic` add their parts in the order in which they come.
    /// Each addition rounds, so that the result has other bits each time; sums of `f32` also take subnormal numbers for
    /// zeros. What compares results bit by bit, or searches for a fault by running again, suffers from that. `by grid`
    /// combines the parts in a fixed order.
    ///
    /// A warning: every such result is one that the algorithm admits.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Total(x: f32[N]) -> (y: f32[]) {
    ///     y[] = unordered sum(|k| x[k]);
    ///     schedule y { split k by 256 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by atomic; }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Total(x: f32[N]) -> (y: f32[]) {
    ///     y[] = unordered sum(|k| x[k]);
    ///     schedule y { split k by 256 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by grid; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - If that is what you want, write `#[allow(TW1090)]` before the kernel.
    TW1090 "float-atomics" Warning "a float sum whose bits change from run to run"
}

/// TW1090: a float sum by atomic operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatAtomics {
    /// The stage.
    pub stage: String,
    /// Type of the sum.
    pub element: ElementType,
    /// The word `atomic`.
    pub span: Span,
    /// The reduction.
    pub reduction: Span,
}

impl IntoDiagnostic for FloatAtomics {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, element, span, reduction } = self;
        let diagnostic =
            Diagnostic::new(Code::TW1090, span, format!("`{stage}` has other bits each time the kernel runs"))
                .label(reduction, "an `unordered` sum")
                .note("blocks add their parts in the order in which they come, and each addition rounds");
        let diagnostic = match element {
            ElementType::F32 => diagnostic.note("in memory, subnormal numbers of `f32` are added as zeros"),
            _ => diagnostic,
        };
        diagnostic
            .replace(span, "grid", "combine them in a fixed order: `by grid`")
            .help("if that is what you want, write `#[allow(TW1090)]` before the kernel")
    }
}
