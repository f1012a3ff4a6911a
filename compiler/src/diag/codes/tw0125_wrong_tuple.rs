//! TW0125: a tuple of the wrong length.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::count;
use crate::source::Span;

row! {
    /// Only a `fold` has several values. Its targets, its initial state, its patterns and its next state have the same
    /// length.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Moments(x: f32[M, N]) -> (a: f32[M], b: f32[M]) {
    ///     (a, b)[i] = sum(|j| x[i, j]);
    /// }
    /// ```
    ///
    /// The message counts what is needed and what is there.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Moments(x: f32[M, N]) -> (a: f32[M], b: f32[M]) {
    ///     (a, b)[i] = fold(|j|
    ///         init (0.0f32, 0.0f32),
    ///         step (s, q) => (s + x[i, j], q + x[i, j] * x[i, j]),
    ///         merge ((s, q), (t, r)) => (s + t, q + r)
    ///     );
    /// }
    /// ```
    TW0125 "wrong-tuple" Error "a tuple of the wrong length"
}

/// Where a tuple has the wrong length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TupleUse {
    /// The targets of an equation and its value.
    Targets,
    /// A tuple where one value is needed.
    Value,
    /// The names of a state.
    Pattern,
    /// The next state.
    State,
}

/// TW0125: a tuple of the wrong length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongTuple {
    /// Where.
    pub what: TupleUse,
    /// The length needed.
    pub expected: usize,
    /// The length found.
    pub found: usize,
    /// The tuple.
    pub span: Span,
}

impl IntoDiagnostic for WrongTuple {
    fn into_diagnostic(self) -> Diagnostic {
        let (expected, found) = (self.expected, self.found);
        let new = |title: String| Diagnostic::new(Code::TW0125, self.span, title);
        let states = |n: usize| count(n, "value", "values");
        match self.what {
            TupleUse::Targets => new(format!(
                "the left-hand side names {}, and the right-hand side has {found}",
                count(expected, "tensor", "tensors")
            ))
            .help("only `fold` has several values: `(a, b)[i] = fold(…)`"),
            TupleUse::Value => new(format!("{} where one is needed", states(found)))
                .help("give a `fold` with several states an equation of its own: `(a, b)[i] = fold(…);`"),
            TupleUse::Pattern => new(format!(
                "the state has {}, and {} named",
                states(expected),
                if found == 1 { "1 is".to_owned() } else { format!("{found} are") }
            )),
            TupleUse::State => new(format!("the state has {}, and the next one has {found}", states(expected))),
        }
    }
}
