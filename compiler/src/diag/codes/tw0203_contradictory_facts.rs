//! TW0203: facts that no size satisfies together.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A kernel is compiled for all sizes that satisfy the facts of `where`, and some of them must be at least 1. A
    /// launch may also have a size of 0: an empty output launches nothing, and an empty reduction writes its identity.
    /// But no kernel is for sizes of 0 alone.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Copy(x: f32[N]) -> (y: f32[N])
    /// where N % 8 == 0, N % 8 == 4
    /// {
    ///     y[i] = x[i];
    /// }
    /// ```
    ///
    /// The message stands at the fact that cannot hold and shows the others that are involved.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Copy(x: f32[N]) -> (y: f32[N])
    /// where N % 8 == 4
    /// {
    ///     y[i] = x[i];
    /// }
    /// ```
    TW0203 "contradictory-facts" Error "facts that no size satisfies together"
}

/// TW0203: no size satisfies all facts.
#[derive(Clone, Debug)]
pub struct Contradiction {
    /// The fact that cannot hold.
    pub span: Span,
    /// The facts before it.
    pub earlier: Vec<Span>,
    /// Whether it contradicts what every size satisfies, and no other fact is involved.
    pub alone: bool,
}

impl IntoDiagnostic for Contradiction {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { span, earlier, alone } = self;
        let title =
            if alone { "no size satisfies this fact" } else { "no size satisfies this fact together with the others" };
        let mut diagnostic = Diagnostic::new(Code::TW0203, span, title);
        for other in earlier.into_iter().take(4) {
            diagnostic = diagnostic.label(other, "together with this");
        }
        diagnostic.note("facts must leave some sizes of at least 1: no kernel is for sizes of 0 alone")
    }
}
