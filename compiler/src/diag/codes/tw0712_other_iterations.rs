//! TW0712: an output beside one that runs in other iterations.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `schedule top at y.i { … }` runs the output `top` in the iterations of the loops of `y` around `i`, so that both
    /// can read what stands there. Each of these iterations must be one of both outputs: the loops of `top` that are
    /// given to blocks, and its outermost serial ones, are as many as those of `y` around the place, in the same order,
    /// bound alike and of equal length. What `top` computes in an iteration is up to its own loops.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (top: f32[M], y: f32[M, N]) {
    ///     m[i] = max(|j| abs(x[i, j]));
    ///     top[i] = m[i];
    ///     y[i, j] = x[i, j] / m[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule top at y.i { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    ///     schedule m in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    ///
    /// The message lists the loops of both.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (top: f32[M], y: f32[M, N]) {
    ///     m[i] = max(|j| abs(x[i, j]));
    ///     top[i] = m[i];
    ///     y[i, j] = x[i, j] / m[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule top at y.i { like y; }
    ///     schedule m in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    TW0712 "other-iterations" Error "an output beside one that runs in other iterations"
}

/// TW0712: an output that is to run in the loops of another one, and has others.
#[derive(Clone, Debug)]
pub struct OtherIterations {
    /// The output.
    pub stage: String,
    /// The other one.
    pub other: String,
    /// The place, `y.b`.
    pub place: String,
    /// The loops of the other one around the place: name, unit, iterations.
    pub theirs: Vec<(String, &'static str, String)>,
    /// Its own first ones, as many as there are.
    pub ours: Vec<(String, &'static str, String)>,
    /// The clause.
    pub span: Span,
}

impl IntoDiagnostic for OtherIterations {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, other, place, theirs, ours, span } = self;
        let list = |list: &[(String, &'static str, String)]| {
            let one = |(name, unit, extent): &(String, &str, String)| format!("`{name}` ({unit}, {extent} iterations)");
            if list.is_empty() { "none".to_owned() } else { list.iter().map(one).collect::<Vec<_>>().join(", ") }
        };
        Diagnostic::new(Code::TW0712, span, format!("`{stage}` does not run in the iterations of `{place}`"))
            .note(format!("around `{place}`: {}; outermost of `{stage}`: {}", list(&theirs), list(&ours)))
            .note("each iteration of these loops is one of both outputs: they are as many, in one order, bound alike, and of equal length")
            .help(format!("begin with `like {other};`, which repeats its ops on the axes that both index alike"))
            .help(format!("or give `{stage}` loops of its own: leave `at {place}` out"))
    }
}
