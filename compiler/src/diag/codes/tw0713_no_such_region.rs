//! TW0713: a region that a stage cannot have.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `region` says what an instance of a stage in a loop keeps of what its readers ask for there, and what it
    /// computes. `cover` is the smallest box, all of it computed; `exact` is that box, of which only what is asked for
    /// is computed; `flat` is a run of elements in row-major order, if what is asked for is one. The op comes first,
    /// since later ops are about the axes of the region. Without it, the smallest of these is taken; ops that name axes
    /// ask for a box, unless the first one merges all of them.
    ///
    /// A window of a matrix is no run: between its rows lie elements that nobody asks for.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Windows(x: f32[8, 64]) -> (y: f32[8, 64]) {
    ///     e[i, j] = exp(x[i, j]);
    ///     y[i, j] = e[i, 63 - j] + e[i, j];
    ///     launch threads(32);
    ///     schedule y { split j by 32 -> jo, t; reorder jo, i, t; bind jo: grid; bind t: thread; }
    ///     schedule e in shared at y.jo { region flat -> p; split p by 32 -> q, t; bind t: thread; }
    /// }
    /// ```
    ///
    /// The message says which of these it is: no run, elements that cannot be told from those that nobody asks for,
    /// lanes of a vector that are computed together, or an op that does not come first.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Windows(x: f32[8, 64]) -> (y: f32[8, 64]) {
    ///     e[i, j] = exp(x[i, j]);
    ///     y[i, j] = e[i, 63 - j] + e[i, j];
    ///     launch threads(32);
    ///     schedule y { split j by 32 -> jo, t; reorder jo, i, t; bind jo: grid; bind t: thread; }
    ///     schedule e in shared at y.jo { region cover; merge i, j -> p; split p by 32 -> q, t; bind t: thread; }
    /// }
    /// ```
    TW0713 "no-such-region" Error "a region that a stage cannot have"
}

/// TW0713: `region` asks for what the reads do not give, or stands where there is none.
#[derive(Clone, Debug)]
pub struct NoSuchRegion {
    /// The stage.
    pub stage: String,
    /// What is wrong.
    pub problem: &'static str,
    /// What to write instead.
    pub help: Option<&'static str>,
    /// The op.
    pub span: Span,
}

impl NoSuchRegion {
    /// What is wrong where a stage has no region, or has one already.
    pub const NOT_FIRST: &'static str = "`region` is the first op of a stage in a loop of another one, which threads compute: later ops are about its axes";
}

impl IntoDiagnostic for NoSuchRegion {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, problem, help, span } = self;
        let head = format!("`{stage}` cannot have this region");
        let diagnostic = Diagnostic::new(Code::TW0713, span, head).note(problem);
        match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}
