//! TW0207: an extent that an op needs at compile time and nothing bounds.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `vectorize` needs an extent that is a literal. `unroll` and `bind … : thread` need one that is bounded at
    /// compile time, since copies of code and threads of a block are counted then.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { bind i: thread; }
    /// }
    /// ```
    ///
    /// The message shows the extent in your names.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Bound the size: `where N <= 256`. The threads beyond `N` are then guarded.
    TW0207 "not-static" Error "an extent that an op needs at compile time and nothing bounds"
}

/// TW0207: an op needs an extent that is known while compiling.
#[derive(Clone, Debug)]
pub struct NotStatic {
    /// The axis.
    pub axis: String,
    /// Its extent.
    pub extent: String,
    /// The sizes in it that facts could bound.
    pub sizes: Vec<String>,
    /// What is known of it: its value or a bound.
    pub bound: Option<i128>,
    /// Greatest value allowed.
    pub limit: i128,
    /// The op.
    pub op: &'static str,
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for NotStatic {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, extent, sizes, bound, limit, op, span } = self;
        let title = match bound {
            Some(bound) => format!("`{op} {axis}` makes {bound} copies; at most {limit} are allowed"),
            None => format!("`{op} {axis}` needs an extent that is known at compile time; it is {extent}"),
        };
        let diagnostic = Diagnostic::new(Code::TW0207, span, title)
            .help(format!("split `{axis}` by a literal and `{op}` the inner part"));
        let fact = match (op, sizes.as_slice()) {
            // A literal is what it is.
            (_, []) => return diagnostic,
            ("vectorize", [size]) => format!("or fix the size with a fact such as `where {size} == 4`"),
            (_, [size]) => format!("or bound the size with a fact such as `where {size} <= {limit}`"),
            ("vectorize", _) => format!("or fix each of its sizes with a fact: {}", sizes.join(", ")),
            _ => format!("or bound each of its sizes with a fact: {}", sizes.join(", ")),
        };
        diagnostic.help(fact)
    }
}
