//! TW0133: an equation whose place memory gives, and that is no scatter.

use tilewright_kernel::ElementType;

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::kernel_ir::AtomicOp;
use crate::source::Span;
use crate::source::ast::ReductionKind;

row! {
    /// Where an index on the left of an equation is read from memory, several terms may belong to one element, and none
    /// to another. So the equation says what an element is that has terms: the `sum` of them, their `max` or `min`, or
    /// the `only` one. The reduction binds the axes that the left side does not have as indices. A term whose index
    /// lies outside of the tensor belongs to no element.
    ///
    /// An output is what its terms come to, `y[p[i]] = sum(…)`. Elements without terms are what the reduction is of
    /// none: 0 for a `sum` and for `only`, the least number of the type for `max`, the greatest one for `min`. An
    /// `inout` tensor begins as what it holds, and its elements without terms stay: `+=` takes a `sum`, `max=` a `max`,
    /// `min=` a `min`, and `=` what is `only`. Nothing in the kernel reads it: some terms would be there, and others
    /// not.
    ///
    /// There are instructions for sums of `f32`, `f64` and of integers of 32 and 64 bits, and for extremes of these
    /// integers. What is `only` may have any type.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Permuted(p: u32[N], x: f32[N]) -> (y: f32[M]) {
    ///     y[p[i]] = x[i];
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Permuted(p: u32[N], x: f32[N]) -> (y: f32[M]) {
    ///     y[p[i]] = only(|i| x[i]);
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// That no two terms belong to one element is a promise about the data: the emulator and `reference()` check it, a
    /// GPU does not, and has one of the terms there.
    ///
    /// ## Other ways out
    ///
    /// - Add terms that may meet: `y[p[i]] = unordered sum(|i| x[i])`.
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
        /// Type of the tensor.
        element: ElementType,
        /// Whether it begins as what it holds.
        is_inout: bool,
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
        /// The tensor as it is declared.
        declared: String,
        /// The reduction, and whether the tensor begins as what it holds.
        beginning: (ReductionKind, bool),
        /// Where.
        at: Span,
    },
    /// The tensor is neither an output nor updated in place.
    NoTensor,
    /// `only` stands in the place of a value.
    OnlyElsewhere {
        /// The word.
        at: Span,
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
            ScatterProblem::NoReduction { axes, from, value: at, element, is_inout } => {
                let diagnostic =
                    new(span, format!("nothing says what `{name}` is where several terms belong to one element"))
                        .label(at, "one of them")
                        .note("indices that are read from memory cannot be proved to be distinct");
                let list = if axes.is_empty() { "i".to_owned() } else { axes.join(", ") };
                let sum = if element.is_float() { "unordered sum" } else { "sum" };
                let (sign, what) = if is_inout { ("+=", "to what is there") } else { ("=", "up") };
                let (sum, only) = (format!("{sign} {sum}(|{list}| "), format!("= only(|{list}| "));
                let promise = format!("if no two terms belong to one element, promise that: `{name}[…] {only}…)`");
                let diagnostic = match (AtomicOp::Add.takes(element), axes.is_empty()) {
                    (true, true) => diagnostic.help(format!("add terms {what}: `{sum}…)`")).help(promise),
                    (true, false) => {
                        let text = format!("add the terms {what}: `{name}[…] {sum}…)`");
                        diagnostic.change(Change::Wrap(from, at, sum, ")".to_owned()), text).help(promise)
                    }
                    // No instruction adds such numbers.
                    (false, _) => diagnostic.help(promise),
                };
                diagnostic.help(format!("or say of each element where it comes from: `{name}[j] = x[q[j]] or …`"))
            }
            ScatterProblem::OtherReduction { kind, at } => {
                new(at, format!("the terms of a scatter are not combined by `{kind}`"))
                    .label(span, place)
                    .help("they are added by `sum`, or the `max`, the `min` or the `only` one of them is taken")
            }
            ScatterProblem::Ordered { word, at } => {
                new(at, format!("the terms of a scatter have no order, so that its sum is not `{word}`"))
                    .label(span, place)
                    .replace(at, "unordered", "give the order up: `unordered sum`")
            }
            ScatterProblem::OtherUpdate { kind, found, instead, declared, beginning: (reduction, is_inout), at } => {
                let title = match (found, is_inout) {
                    ("=", true) => format!("a scatter into `{name}` does not replace what is there"),
                    (_, true) if reduction == ReductionKind::Only => {
                        format!("a term that is the `only` one is not taken in by `{found}`: it takes the place of what is there")
                    }
                    (_, true) => format!("`{found}` does not take in a `{kind}`"),
                    (_, false) => format!("the output `{name}` begins as nothing that `{found}` could take terms into"),
                };
                let diagnostic = new(at, title).label(span, place);
                let own = format!("write `{instead}`");
                let empty = match reduction {
                    ReductionKind::Max => "as the least number of its type",
                    ReductionKind::Min => "as the greatest number of its type",
                    _ => "as 0",
                };
                match (found, is_inout) {
                    ("=", true) => diagnostic
                        .note("elements without terms stay what they were")
                        .replace(at, instead, own)
                        .help(format!("or declare `{declared}` after the arrow, an output, which begins {empty}")),
                    (_, true) => diagnostic.replace(at, instead, own),
                    (_, false) => diagnostic
                        .note(format!("an output is what its terms come to: each element begins {empty}"))
                        .replace(at, instead, own)
                        .help(format!("or declare `inout {declared}` before the arrow, which begins as what it holds")),
                }
            }
            ScatterProblem::NoTensor => {
                new(span, format!("the intermediate `{name}` takes no terms in where memory says"))
                    .label(span, place)
                    .help(format!("declare it after the arrow, `-> ({name}: …)`, and read it in a kernel of its own"))
            }
            ScatterProblem::OnlyElsewhere { at } => {
                new(at, "`only` is no reduction of several terms to a value".to_owned())
                    .note("it says that one term at most belongs to an element which memory says: `y[p[i]] = only(|i| …)`")
                    .help("let all of the right side be the term: `only(|i| 2 * x[i])` for `2 * only(|i| x[i])`")
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
