//! TW0113: an axis whose range cannot be inferred.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// The range of an axis is the dimension that the bare axis indexes: `x[j]` with `x: f32[N]` gives `0..N`; with
    /// `or` only if the axis stands alone nowhere else. The axes of an intermediate take the range that its readers
    /// need. Where neither tells it, the range is written.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Pairs(x: f32[N]) -> (y: f32[M]) {
    ///     y[i] = sum(|k| x[2 * k]);
    /// }
    /// ```
    ///
    /// The message says why no dimension fixes the range.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Pairs(x: f32[N]) -> (y: f32[M]) {
    ///     y[i] = sum(|k in 0..N / 2| x[2 * k]);
    /// }
    /// ```
    TW0113 "unknown-range" Error "an axis whose range cannot be inferred"
}

/// Why a range is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeReason {
    /// Its readers do not fix it, and neither does its own right-hand side.
    Intermediate,
    /// No dimension is indexed by the bare reduction axis.
    NeverBare,
    /// Every dimension that the bare reduction axis indexes takes its range from this axis.
    Circular,
    /// This read demands something that is no simple range.
    NotSimple(Span),
    /// Two reads demand ranges that cannot be compared.
    NotComparable {
        /// A read and the range that it demands, with those before it.
        first: (Span, String),
        /// Another one.
        second: (Span, String),
    },
    /// The bounds are too long.
    TooLong,
}

/// TW0113: the range of an axis cannot be inferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRange {
    /// The axis.
    pub axis: String,
    /// Why.
    pub reason: RangeReason,
    /// Its declaration.
    pub span: Span,
}

impl IntoDiagnostic for UnknownRange {
    fn into_diagnostic(self) -> Diagnostic {
        let UnknownRange { axis, reason, span } = self;
        let diagnostic = Diagnostic::new(Code::TW0113, span, format!("the range of `{axis}` cannot be inferred"));
        let diagnostic = match reason {
            RangeReason::Intermediate => {
                diagnostic.note("no read of the tensor, and no bare index on the right, fixes it")
            }
            RangeReason::NeverBare => {
                diagnostic.note(format!("no tensor is indexed by `{axis}` alone, so no shape tells its range"))
            }
            RangeReason::Circular => {
                diagnostic.note(format!("what `{axis}` indexes takes its own range from this reduction"))
            }
            RangeReason::NotSimple(read) => diagnostic.label(read, "the indices read here form no simple range"),
            RangeReason::NotComparable { first, second } => diagnostic
                .label(first.0, format!("demands {}", first.1))
                .label(second.0, format!("demands {}", second.1))
                .note("which bound is larger depends on sizes that no fact compares"),
            RangeReason::TooLong => diagnostic.note("its bounds are longer expressions than are handled"),
        };
        diagnostic.help(format!("write it: `{axis} in 0..N`"))
    }
}
