//! TW0133: an equation whose place memory gives, and that is no scatter.

use tilewright_kernel::ElementType;

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Where an index on the left of an equation is read from memory, several terms may belong to one element, and none
    /// to another. So the equation says how terms are taken into an element that is there: `+=` with a `sum`, `max=`
    /// with a `max`, `min=` with a `min`. The reduction binds the axes that the left side does not have as indices. The
    /// tensor is `inout`: it begins as what it holds, and its elements without terms stay. Nothing in the kernel reads
    /// it: some terms would be there, and others not.
    ///
    /// There are instructions for sums of `f32`, `f64` and of integers of 32 and 64 bits, and for extremes of these
    /// integers. A term whose index lies outside of the tensor belongs to no element.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Permuted(inout y: f32[M], p: u32[N], x: f32[N]) {
    ///     y[p[i]] = x[i];
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Permuted(inout y: f32[M], p: u32[N], x: f32[N]) {
    ///     y[p[i]] += unordered sum(|i| x[i]);
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// With a `y` of zeros and a `p` in which no index comes twice, this is the permuted `x`.
    ///
    /// ## Other ways out
    ///
    /// - Say of each element where it comes from, if there is an inverse: `y[j] = x[q[j]] or 0.0`.
    TW0133 "bad-scatter" Error "an equation whose place memory gives, and that is no scatter"
}

/// What is wrong with a scatter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScatterProblem {
    /// The right side is no reduction: its span, and the axes that one would bind.
    NoReduction {
        /// Their names.
        axes: Vec<String>,
        /// From the sign on.
        from: Span,
        /// The right side.
        value: Span,
    },
    /// The reduction is of a kind that is not taken in.
    OtherReduction {
        /// The kind.
        kind: &'static str,
        /// Where.
        at: Span,
    },
    /// The sum has an order.
    Ordered {
        /// The word.
        word: &'static str,
        /// Where.
        at: Span,
    },
    /// The sign between the sides is not that of the reduction.
    OtherUpdate {
        /// The reduction.
        kind: &'static str,
        /// The sign.
        found: &'static str,
        /// Its own.
        instead: &'static str,
        /// Where.
        at: Span,
    },
    /// The tensor does not begin as anything.
    NotInPlace {
        /// The output as it is declared; none if it is no output.
        declared: Option<String>,
    },
    /// No instruction combines such an element in memory.
    NoInstruction {
        /// The reduction.
        kind: &'static str,
        /// Type of the tensor.
        element: ElementType,
    },
    /// It is read.
    Read {
        /// The left side that writes it.
        scatter: Span,
    },
    /// A copy would store it.
    Copied {
        /// The copy.
        at: Span,
    },
}

/// TW0133: an equation whose place memory gives, and that is no scatter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadScatter {
    /// The tensor.
    pub name: String,
    /// What is wrong.
    pub problem: ScatterProblem,
    /// The left side, or the read.
    pub span: Span,
}

impl IntoDiagnostic for BadScatter {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { name, problem, span } = self;
        let new = |at: Span, title: String| Diagnostic::new(Code::TW0133, at, title);
        let place = "memory says which element is meant";
        match problem {
            ScatterProblem::NoReduction { axes, from, value: at } => {
                let diagnostic =
                    new(span, format!("nothing says what `{name}` is where several terms belong to one element"))
                        .label(at, "one of them")
                        .note("indices that are read from memory cannot be proved to be distinct");
                let sum = format!("+= unordered sum(|{}| ", axes.join(", "));
                let text = format!("add the terms to what is there: `{name}[…] {sum}…)`");
                let diagnostic = match axes.is_empty() {
                    true => diagnostic.help("add terms to what is there: `+= unordered sum(|i| …)`"),
                    false => diagnostic.change(Change::Wrap(from, at, sum, ")".to_owned()), text),
                };
                diagnostic.help(format!("or say of each element where it comes from: `{name}[j] = x[q[j]] or …`"))
            }
            ScatterProblem::OtherReduction { kind, at } => {
                new(at, format!("the terms of a scatter are not combined by `{kind}`"))
                    .label(span, place)
                    .help("`+=` takes a `sum`, `max=` a `max`, `min=` a `min`")
            }
            ScatterProblem::Ordered { word, at } => {
                new(at, format!("the terms of a scatter have no order, so that its sum is not `{word}`"))
                    .label(span, place)
                    .replace(at, "unordered", "give the order up: `unordered sum`")
            }
            ScatterProblem::OtherUpdate { kind, found, instead, at } => {
                let title = match found {
                    "=" => format!("a scatter into `{name}` does not replace what is there"),
                    _ => format!("`{found}` does not take in a `{kind}`"),
                };
                let diagnostic = new(at, title).label(span, place);
                let diagnostic = match found {
                    "=" => diagnostic.note("elements without terms stay what they were"),
                    _ => diagnostic,
                };
                diagnostic.replace(at, instead, format!("write `{instead}`"))
            }
            ScatterProblem::NotInPlace { declared } => {
                let what = if declared.is_some() { "output" } else { "intermediate" };
                let declared = declared.unwrap_or_else(|| format!("{name}: …"));
                new(span, format!("the {what} `{name}` begins as nothing that terms could be taken into"))
                    .help(format!("declare `inout {declared}` before the arrow, and pass a tensor of zeros"))
            }
            ScatterProblem::NoInstruction { kind, element } => {
                let diagnostic = new(span, format!("no instruction combines a `{kind}` of `{element}` in memory"));
                match (kind, element.is_float()) {
                    ("sum", true) => diagnostic.help("let the tensor have elements of `f32`, and cast the terms"),
                    ("sum", false) => diagnostic.help("let the tensor have elements of 32 or 64 bits, and cast the terms"),
                    _ => diagnostic.help("extremes are those of integers of 32 or 64 bits"),
                }
            }
            ScatterProblem::Read { scatter } => {
                new(span, format!("`{name}` is read while terms are taken into it"))
                    .label(scatter, place)
                    .help("read it in a kernel of its own, which is launched after this one")
            }
            ScatterProblem::Copied { at } => {
                new(at, format!("no copy holds `{name}`, whose terms have places that memory gives"))
                    .label(span, place)
                    .help("remove the copy: each term is combined with an element of its own")
            }
        }
    }
}
