//! TW0152: an axis given to two parts of the machine.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An axis is bound to one unit, or unrolled, or vectorised, or left as a loop. To give it to two, it is split
    /// first.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 256 -> b, t;
    ///         bind b: grid;
    ///         bind t: thread;
    ///         vectorize t;
    ///     }
    /// }
    /// ```
    ///
    /// The message shows the op that the axis has already.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N])
    /// where N % 4 == 0
    /// {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 1024 -> b, r;
    ///         split r by 4 -> t, v;
    ///         bind b: grid;
    ///         bind t: thread;
    ///         vectorize v;
    ///     }
    /// }
    /// ```
    TW0152 "bound-twice" Error "an axis given to two parts of the machine"
}

/// TW0152: an axis is given to two parts of the machine.
#[derive(Clone, Debug)]
pub struct AxisBoundTwice {
    /// The axis.
    pub axis: String,
    /// The second op.
    pub span: Span,
    /// The first op.
    pub first: Span,
}

impl IntoDiagnostic for AxisBoundTwice {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, span, first } = self;
        Diagnostic::new(Code::TW0152, span, format!("`{axis}` is already bound, unrolled or vectorised"))
            .label(first, "by this op")
            .help(format!("split `{axis}` and give each part its own op"))
    }
}
