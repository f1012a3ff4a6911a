//! TW0702: an intermediate reduction without a schedule.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An intermediate without a schedule is computed at every read of it. For a reduction that is rarely meant, so it
    /// has to be said.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Normalise(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     s[i] = sum(|k| x[i, k]);
    ///     y[i, j] = x[i, j] / s[i];
    /// }
    /// ```
    ///
    /// The message shows the reduction and the equation that holds it.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Normalise(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     s[i] = sum(|k| x[i, k]);
    ///     y[i, j] = x[i, j] / s[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule s in registers at y.i { split k by 128 -> r, t; bind t: thread; reduce t; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Write `inline s;` if repeating it is what you want.
    /// - Make the intermediate an output of a kernel of its own, and pass it to the next one.
    TW0702 "unscheduled-reduction" Error "an intermediate reduction without a schedule"
}

/// TW0702: a reduction that nobody scheduled and that its readers would repeat.
#[derive(Clone, Debug)]
pub struct UnscheduledReduction {
    /// The intermediate.
    pub name: String,
    /// The reduction.
    pub span: Span,
    /// The left-hand side.
    pub head: Span,
    /// An output that reads it, with its outermost axis.
    pub reader: Option<(String, String)>,
}

impl IntoDiagnostic for UnscheduledReduction {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { name, span, head, reader } = self;
        let place = reader.map_or_else(|| "…".to_owned(), |(stage, axis)| format!("{stage}.{axis}"));
        Diagnostic::new(Code::TW0702, span, format!("the reduction of `{name}` has no schedule"))
            .label(head, format!("`{name}` is not an output"))
            .note(format!("an intermediate without a schedule is computed at every read, and `{name}` would be reduced again for each"))
            .help(format!("compute it once for its readers: `schedule {name} in registers at {place} {{ … }}`"))
            .change(
                Change::AppendStatement(format!("inline {name};")),
                format!("or write `inline {name};` if repeating it is what you want"),
            )
    }
}
