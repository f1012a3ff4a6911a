//! TW0118: something that is no index.

use tilewright_kernel::ElementType;

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An index is an integer without an element type: axes, sizes, literals, `+ - * / %`, and integer values that are
    /// read from memory. `/` and `%` round down and need a positive divisor. A range of terms may begin and end where
    /// memory says, with a limit that is known at the launch, `sum(|j in 0..min(len[i], N)| x[i, j])`; ranges of
    /// equations, and of `argmax` and `argmin`, may not.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Gather(x: f32[N], at: f32[M]) -> (y: f32[M]) {
    ///     y[i] = x[at[i]] or 0.0;
    /// }
    /// ```
    ///
    /// The message says what is no index.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Gather(x: f32[N], at: f32[M]) -> (y: f32[M]) {
    ///     y[i] = x[at[i] as i32] or 0.0;
    /// }
    /// ```
    TW0118 "bad-index" Error "something that is no index"
}

/// What is wrong with an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexProblem {
    /// No integer by its form.
    NotAnInteger,
    /// An operation on the bits of what has no type.
    Bits(&'static str),
    /// A value of this type.
    NotAnIntegerValue(ElementType),
    /// A literal with a type.
    Suffix(u64),
    /// Beyond 63 bits.
    TooLarge(u64),
    /// A divisor that is not positive.
    Divisor(i64),
    /// A bound of a range of terms that is read from memory, and may be anything.
    EndlessBound {
        /// The axis with the range.
        axis: String,
        /// Whether it is where the range ends.
        is_end: bool,
    },
    /// A bound that is read from memory, of a range that has to be known at the launch.
    GatheredBound {
        /// The axis with the range.
        axis: String,
        /// Whether it is where the range ends.
        is_end: bool,
        /// Whether an `argmax` or `argmin` searches the range; else it is that of an equation's axis.
        is_searched: bool,
    },
}

/// TW0118: something that is no index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadIndex {
    /// What is wrong.
    pub problem: IndexProblem,
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for BadIndex {
    fn into_diagnostic(self) -> Diagnostic {
        let new = |title: String| Diagnostic::new(Code::TW0118, self.span, title);
        match self.problem {
            IndexProblem::NotAnInteger => new("an index is an integer".to_owned())
                .note("indices are made of axes, sizes, literals, `+ - * / %`, and integer values"),
            IndexProblem::Bits(op) => new(format!("`{op}` works on the bits of a type, and an index has none"))
                .help("write `i % 4` for the low two bits of an index, `i / 4` for the others, `4 * i` for a shift")
                .help("or convert it, and say what is outside: `x[(i as u32) & 3] or 0.0`"),
            IndexProblem::NotAnIntegerValue(element) => {
                new(format!("an index is an integer, and this is `{element}`")).help("convert it: `(…) as i32`")
            }
            IndexProblem::Suffix(value) => new("an index has no element type".to_owned()).replace(
                self.span,
                value.to_string(),
                format!("write `{value}`"),
            ),
            IndexProblem::TooLarge(value) => new(format!("the index {value} is larger than 2^63 - 1")),
            IndexProblem::Divisor(value) => new(format!("an index is divided by {value}"))
                .note("`/` and `%` of indices round down and need a positive divisor"),
            IndexProblem::EndlessBound { axis, is_end } => {
                let (limit, verb) = if is_end { ("min(…, N)", "end") } else { ("max(0, …)", "begin") };
                new(format!("a bound of `{axis}` is read from memory, and may be anything"))
                    .help(format!("say where `{axis}` may {verb}: `{limit}`, with the size of what it indexes"))
            }
            IndexProblem::GatheredBound { axis, is_end, is_searched } => {
                let than = if is_end { "<" } else { ">=" };
                let why = match is_searched {
                    true => "`argmax` and `argmin` find something: their range is known at the launch",
                    false => "which elements a tensor has is known at the launch",
                };
                new(format!("a bound of `{axis}` is read from memory")).note(why).help(format!(
                    "let `{axis}` range over the whole dimension, and compare it with the bound: \
                     `if {axis} {than} … {{ … }} else {{ … }}`"
                ))
            }
        }
    }
}
