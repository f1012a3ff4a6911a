//! TW0410: a region that may end inside a vector.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A stage that stands in a loop is computed where its readers ask for it. If it is vectorised, what they ask for
    /// must begin and end between two vectors, in every iteration of the loops around: a vector is computed whole or
    /// not at all.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Blur(x: f32[N]) -> (y: f32[N - 4]) where N >= 5 {
    ///     h[i] = x[i] * 0.5;
    ///     y[i] = h[i] + h[i + 4];
    ///     launch threads(32);
    ///     schedule y { split i by 124 -> b, p; split p by 32 -> r, t; bind b: grid; bind t: thread; }
    ///     schedule h in shared at y.b { split i by 4 -> t, v; bind t: thread; vectorize v; }
    /// }
    /// ```
    ///
    /// The message names the stage and the vectorised axis. Here each block reads 128 elements from `124·b` on, and
    /// those of the last block end at `N`.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Blur(x: f32[N]) -> (y: f32[N - 4]) where N % 4 == 0, N >= 8 {
    ///     h[i] = x[i] * 0.5;
    ///     y[i] = h[i] + h[i + 4];
    ///     launch threads(32);
    ///     schedule y { split i by 124 -> b, p; split p by 32 -> r, t; bind b: grid; bind t: thread; }
    ///     schedule h in shared at y.b { split i by 4 -> t, v; bind t: thread; vectorize v; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Leave the axis scalar: predicates then exclude what nobody asks for, and what is outside a range like
    ///   `j in 0..=i`, of which the same is said.
    TW0410 "cut-vector" Error "a region that may end inside a vector"
}

/// TW0410: a region that ends inside a vector, or the range of a reduction that other axes decide.
#[derive(Clone, Debug)]
pub struct CutVector {
    /// The stage.
    pub stage: String,
    /// The vectorised axis.
    pub axis: String,
    /// Its lanes.
    pub lanes: i128,
    /// The op.
    pub span: Span,
    /// Whether it is the range of its reduction.
    pub of_terms: bool,
    /// The head of the stage.
    pub head: Span,
}

impl IntoDiagnostic for CutVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axis, lanes, span, of_terms, head } = self;
        if of_terms {
            let title = format!("the range of the reduction of `{stage}` may end inside a vector of `{axis}`");
            return Diagnostic::new(Code::TW0410, span, title)
                .note("other axes decide where it begins and ends, and terms outside are left out one by one")
                .help(format!("leave `{axis}` scalar: remove the `vectorize`"));
        }
        Diagnostic::new(Code::TW0410, span, format!("the region of `{stage}` may end inside a vector of `{axis}`"))
            .label(head, "the region is what its readers ask for here")
            .note(format!("it is not known to begin and end at multiples of {lanes} elements in each iteration of the loops around"))
            .help(format!("leave `{axis}` scalar: remove the `vectorize`"))
            .help(format!("or state that sizes are multiples of {lanes}, and split the reader by multiples of it"))
    }
}
