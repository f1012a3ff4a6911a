//! TW0704: a stage that is read where it is not.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::domain::Unit;
use crate::source::Span;

row! {
    /// A stage that stands in a loop has one instance for each iteration of it, which is gone when the iteration ends.
    /// All that read the stage must be inside this loop: the stage that has the loop, others that stand in it, or
    /// outputs that run in the same iterations (`schedule top at y.i`, as below). Nor is it there for a reader of
    /// another unit: what each warp holds for itself (`per warp`), a stage of the whole block cannot read beside it. In
    /// the loop of that reader that is given to warps it can stand.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (top: f32[M], y: f32[M, N]) {
    ///     m[i] = max(|j| abs(x[i, j]));
    ///     top[i] = m[i];
    ///     y[i, j] = x[i, j] / m[i];
    ///     launch threads(128);
    ///     schedule top { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule m in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    ///
    /// The message names the place and the reader that is not inside it. A stage that nobody reads there is refused as
    /// well.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (top: f32[M], y: f32[M, N]) {
    ///     m[i] = max(|j| abs(x[i, j]));
    ///     top[i] = m[i];
    ///     y[i, j] = x[i, j] / m[i];
    ///     launch threads(128);
    ///     schedule top at y.i { like y; }
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule m in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    TW0704 "stage-not-around" Error "a stage that is read where it is not"
}

/// TW0704: a stage that is read where it is not, or nowhere.
#[derive(Clone, Debug)]
pub struct NotAround {
    /// The stage.
    pub stage: String,
    /// Who reads it; empty if nobody does.
    pub reader: String,
    /// Whether that is an output, which stands in no other loop; if nobody does, whether the stage is a copy of one.
    pub is_output: bool,
    /// Why an output that runs at the place would not see it either, if that is so.
    pub unseen: Option<&'static str>,
    /// Where it stands: `y.i`.
    pub place: String,
    /// Its head.
    pub span: Span,
    /// The read.
    pub read: Span,
}

impl IntoDiagnostic for NotAround {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, reader, is_output, unseen, place, span, read } = self;
        if reader.is_empty() {
            let title = format!("nothing inside `{place}` reads `{stage}`");
            return Diagnostic::new(Code::TW0704, span, title).help(match is_output {
                true => "an output is written through a copy by the accelerator only: `via tma`",
                false => "attach it to the stage that reads it",
            });
        }
        Diagnostic::new(
            Code::TW0704,
            span,
            format!("`{stage}` is there only inside `{place}`, and `{reader}` reads it elsewhere"),
        )
        .label(read, "read here")
        .note("an instance of a stage lives for one iteration of the loop that it stands in")
        .help(match (is_output, unseen) {
            (true, Some(why)) => format!(
                "give `{reader}` an intermediate of its own, with the equation of `{stage}`: what stands at `{place}` no other output can read ({why})"
            ),
            (true, None) => format!(
                "let `{reader}` run in the same iterations: `schedule {reader} at {place} {{ … }}`; or give it an intermediate of its own, with the equation of `{stage}`"
            ),
            (false, _) => format!(
                "attach `{stage}` to a loop that is around all its readers, or attach `{reader}` inside `{place}`"
            ),
        })
    }
}

/// TW0704: a stage of parts of a block, each of which holds its own, that a stage of the whole reads.
#[derive(Clone, Debug)]
pub struct NotTheirs {
    /// The stage.
    pub stage: String,
    /// The parts, and the unit that the reader belongs to.
    pub units: (Unit, Unit),
    /// Who reads it.
    pub reader: String,
    /// The stage of the whole: the reader, or one around it.
    pub whole: String,
    /// A loop of that one which is given to such parts, if it has one: `s.w`.
    pub instead: Option<String>,
    /// Whether nobody outside of that stage reads it.
    pub is_only: bool,
    /// Where it stands: `y.i`.
    pub place: (String, Span),
    /// Its head.
    pub span: Span,
    /// The read.
    pub read: Span,
}

impl IntoDiagnostic for NotTheirs {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, units: (own, wide), reader, whole, instead, is_only, place: (place, at), span, read } = self;
        let (unit, wide) = (own.name(), wide.name());
        let found = Diagnostic::new(
            Code::TW0704,
            span,
            format!("`{stage}` at `{place}` is there for each {unit} by itself, and `{reader}` reads it for the whole {wide}"),
        )
        .label(read, "read here")
        .note(format!("an instance of `{whole}` belongs to a {wide}: it stands beside `{stage}`, not inside it"));
        let Some(instead) = instead else {
            let given = format!("give an axis of `{whole}` to {unit}s, and attach `{stage}` there");
            return found.help(if is_only { given } else { format!("{given}; each reader needs one of its own") });
        };
        if is_only {
            let text = format!("attach it to the loop of `{whole}` that is given to {unit}s: `at {instead}`");
            return found.change(Change::Replace(at, instead), text);
        }
        found.help(format!(
            "give `{reader}` an intermediate of its own, with the equation of `{stage}`, `per {unit} at {instead}`"
        ))
    }
}
