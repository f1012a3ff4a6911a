//! TW0204: a resize that cuts away elements of the stage.

use crate::diag::{Assignment, Code, Diagnostic, IntoDiagnostic, assignment};
use crate::diag::words::prefix;
use crate::source::Span;

row! {
    /// A schedule computes every element exactly once. `resize a by (l, r)` shifts and extends an axis; negative
    /// amounts cut, and may cut only what an earlier `resize` added.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         resize i by (0, -1) -> short;
    ///         split short by 256 -> b, t;
    ///         bind b: grid;
    ///         bind t: thread;
    ///     }
    /// }
    /// ```
    ///
    /// The counterexample gives a size and an element that nobody would compute.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         resize i by (0, 1) -> long;
    ///         split long by 256 -> b, t;
    ///         bind b: grid;
    ///         bind t: thread;
    ///     }
    /// }
    /// ```
    TW0204 "cut-elements" Error "a resize that cuts away elements of the stage"
}

/// TW0204: a resize cuts elements away, and the stage would not compute them.
#[derive(Clone, Debug)]
pub struct CutsElements {
    /// The stage.
    pub stage: String,
    /// The op, or the schedule.
    pub span: Span,
    /// Sizes, the element's indices and its term, and the axis that no longer reaches it.
    pub witness: Option<(Assignment, [Assignment; 2], String)>,
}

impl IntoDiagnostic for CutsElements {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, span, witness } = self;
        let title = match &witness {
            Some((_, _, axis)) => format!("elements of `{stage}` are never computed: `{axis}` does not reach them"),
            None => format!("could not prove that every element of `{stage}` is computed"),
        };
        let diagnostic = Diagnostic::new(Code::TW0204, span, title)
            .note("a schedule computes every element exactly once; a negative amount may only cut what an earlier `resize` added")
            .help("use amounts that are not negative; predicates exclude the added iterations");
        match witness {
            Some((dims, [element, term], axis)) => {
                let indices = element.iter().map(|(_, v)| v.to_string()).collect::<Vec<_>>().join(", ");
                let with = if term.is_empty() { String::new() } else { format!(" with {}", assignment(&term)) };
                diagnostic.counterexample(format!(
                    "{}`{stage}[{indices}]`{with} is outside the extent of `{axis}`",
                    prefix(&dims)
                ))
            }
            None => diagnostic,
        }
    }
}
