//! TW0706: a place where a stage cannot stand.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `at` names a loop of a stage that reads this one, directly or through others: a grid axis, a serial loop, or,
    /// for a stage `per warpgroup`, `per warp` or `per thread`, an axis bound to these. Each iteration has an instance.
    /// A stage of the block cannot stand in an axis that its threads run side by side, nor any stage inside the lanes
    /// of a vector; a stage `per warpgroup` or `per warp` has such an axis around it.
    ///
    /// Units past the end of an axis of a reduction have no terms. Where such an axis, of run-time length, is around a
    /// stage in front of the terms, the stage is there for the terms alone: what is read beside them needs an instance
    /// of the block.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Shift(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     m[i] = max(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - m[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule m in registers at y.t { split j by 128 -> r, t; bind t: thread; reduce t; }
    /// }
    /// ```
    ///
    /// The message says what is wrong with the place.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Shift(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     m[i] = max(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - m[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule m in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    TW0706 "no-instance" Error "a place where a stage cannot stand"
}

/// TW0706: a place where a stage cannot stand.
#[derive(Clone, Debug)]
pub struct NoInstance {
    /// The stage.
    pub stage: String,
    /// The place, `y.i`, if there is one.
    pub place: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// Places in the same stage where it could stand, as far as loops go.
    pub known: Vec<String>,
    /// What to do, if it is not another place that would mend it.
    pub instead: Option<String>,
    /// The clause, or the head.
    pub span: Span,
}

impl IntoDiagnostic for NoInstance {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, place, problem, known, instead, span } = self;
        let title = match place {
            Some(place) => format!("`{stage}` cannot stand at `{place}`"),
            None => format!("`{stage}` does not say in which loop it stands"),
        };
        let known: Vec<String> = known.iter().map(|place| format!("`at {place}`")).collect();
        Diagnostic::new(Code::TW0706, span, title).note(problem).help(match (instead, known.is_empty()) {
            (Some(instead), _) => instead,
            (None, true) => "attach it to a grid axis or a serial loop of a stage that reads it".to_owned(),
            (None, false) => format!("attach it to a grid axis or a serial loop: {}", known.join(", ")),
        })
    }
}

/// TW0706: a stage that units of a block would come to a different number of times.
#[derive(Clone, Debug)]
pub struct Uneven {
    /// The stage.
    pub stage: String,
    /// The loop around it, `y.j`.
    pub axis: String,
    /// Whether that is a loop of its own.
    pub is_own: bool,
    /// Whether its threads fetch it.
    pub fetches: bool,
    /// The units that differ.
    pub unit: &'static str,
    /// The axis that is given to them, `y.i`.
    pub decides: String,
    /// The head.
    pub span: Span,
}

impl IntoDiagnostic for Uneven {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axis, is_own, fetches, unit, decides, span } = self;
        let verb = if fetches { "fetch" } else { "share" };
        let outside = if is_own { String::new() } else { format!(", or attach `{stage}` outside of `{axis}`") };
        Diagnostic::new(Code::TW0706, span, format!("the threads that {verb} `{stage}` do not all come to it"))
            .note(format!("how often `{axis}` runs depends on `{decides}`, so it differs by {unit}"))
            .note("threads exchange values and wait for each other where all of a block, or of a role, come")
            .help(format!("bind `{decides}` to blocks{outside}"))
    }
}
