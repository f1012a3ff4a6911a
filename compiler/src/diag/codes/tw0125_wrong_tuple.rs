//! TW0125: a tuple of the wrong length.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::count;
use crate::source::Span;

row! {
    /// An equation for several tensors has a tuple with a value for each, or a `fold` with as many states. The targets,
    /// the tuple or the initial state, the patterns and the next state have the same length. A tuple is no value by
    /// itself.
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
    /// The tensors of a scatter.
    Scatter,
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
            .help("write a value for each, `(a, b)[i] = (…, …)`, or a `fold` with as many states"),
            TupleUse::Scatter => new(format!("a scatter takes terms into one tensor, and here are {expected}"))
                .help("write an equation for each"),
            TupleUse::Value => new(format!("{} where one is needed", states(found)))
                .help("an equation of its own has several values: `(a, b)[i] = (…, …);`, or `(a, b)[i] = fold(…);`"),
            TupleUse::Pattern => new(format!(
                "the state has {}, and {} named",
                states(expected),
                if found == 1 { "1 is".to_owned() } else { format!("{found} are") }
            )),
            TupleUse::State => new(format!("the state has {}, and the next one has {found}", states(expected))),
        }
    }
}
