//! TW0153: an op on an axis that a later op replaces.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `bind`, `vectorize`, `unroll` and `reduce` say what becomes of the iterations of an axis. `split`, `merge`,
    /// `resize` and `swizzle` replace an axis by others, which inherit nothing. An op on an axis that a later op
    /// replaces would have no effect.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         bind i: grid;
    ///         split i by 256 -> b, t;
    ///         bind t: thread;
    ///     }
    /// }
    /// ```
    ///
    /// One block would take all iterations of `b`, one after the other.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 256 -> b, t;
    ///         bind b: grid;
    ///         bind t: thread;
    ///     }
    /// }
    /// ```
    TW0153 "discarded-op" Error "an op on an axis that a later op replaces"
}

/// TW0153: an op says what becomes of an axis that a later op replaces.
#[derive(Clone, Debug)]
pub struct DiscardedOp {
    /// The word of the op.
    pub word: &'static str,
    /// The axis.
    pub axis: String,
    /// The op that replaces the axis.
    pub by: &'static str,
    /// What the axis becomes.
    pub results: Vec<String>,
    /// The op for a result that has none yet.
    pub instead: Option<String>,
    /// Whether the op names no other axis.
    pub is_alone: bool,
    /// The op.
    pub span: Span,
    /// The op that replaces the axis.
    pub later: Span,
}

impl IntoDiagnostic for DiscardedOp {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { word, axis, by, results, instead, is_alone, span, later } = self;
        let names: Vec<String> = results.iter().map(|name| format!("`{name}`")).collect();
        let diagnostic = Diagnostic::new(Code::TW0153, span, format!("`{word} {axis}` has no effect: `{by}` replaces `{axis}`"))
            .label(later, format!("from here on `{axis}` is {}", names.join(" and ")));
        match instead {
            Some(op) if is_alone => {
                let text = format!("write `{op};` after the `{by}`");
                diagnostic.change(Change::MoveOp { op: span, after: later, text: op }, text)
            }
            Some(op) => diagnostic.help(format!("leave `{axis}` out here, and write `{op};` after the `{by}`")),
            None if is_alone => diagnostic.change(Change::RemoveOp(span), "remove it: it changes nothing".to_owned()),
            None => diagnostic.help(format!("leave `{axis}` out: it changes nothing")),
        }
    }
}
