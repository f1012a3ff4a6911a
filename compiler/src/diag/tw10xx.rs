//! TW10: numerics. What is reported about element types and reductions, and how it is said.

use tilewright_kernel::ElementType;

use super::tw09xx::{Witness, state};
use super::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

/// TW1001: an `argmax` or `argmin` over a range that may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyArgmax {
    /// `argmax` or `argmin`.
    pub reduction: &'static str,
    /// The reduction.
    pub span: Span,
    /// Its range, in the user's names: `0..N`.
    pub range: String,
    /// The smallest case in which it is empty.
    pub witness: Option<Witness>,
    /// Facts that rule it out, proved to: `N >= 1`.
    pub facts: Vec<String>,
}

impl IntoDiagnostic for EmptyArgmax {
    fn into_diagnostic(self) -> Diagnostic {
        let EmptyArgmax { reduction, span, range, witness, facts } = self;
        let known = if witness.is_some() { "may have" } else { "cannot be shown not to have" };
        let title = format!("`{reduction}` over {range} {known} nothing to choose from");
        let mut diagnostic = Diagnostic::new(Code::TW1001, span, title);
        diagnostic.counterexample = witness.map(|w| w.sentence(&format!("takes the `{reduction}` of nothing")));
        if facts.is_empty() { diagnostic } else { state(diagnostic, facts) }
    }
}

/// TW1002: an integer divided by the literal 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DivisionByZero {
    /// The divisor.
    pub divisor: Span,
    /// The division.
    pub span: Span,
}

impl IntoDiagnostic for DivisionByZero {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW1002, self.divisor, "an integer is divided by zero").label(self.span, "the division")
    }
}

/// TW1003: arithmetic on a type for storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageOnly {
    /// The operation.
    pub op: String,
    /// The type.
    pub element: ElementType,
    /// The operation's tokens.
    pub span: Span,
}

impl IntoDiagnostic for StorageOnly {
    fn into_diagnostic(self) -> Diagnostic {
        let (op, element) = (self.op, self.element);
        Diagnostic::new(Code::TW1003, self.span, format!("`{element}` has no arithmetic, and this is `{op}`"))
            .note(format!("`{element}` is a type for storage and for the operands of `dot`"))
            .help("convert to `f32` first: `x[i] as f32`")
    }
}

/// TW1004: an approximate function of `f64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotForF64 {
    /// The function.
    pub function: &'static str,
    /// The call.
    pub span: Span,
}

impl IntoDiagnostic for NotForF64 {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW1004, self.span, format!("there is no `{}` of `f64`", self.function))
            .note("the approximate instructions compute at most 24 bits")
            .help(format!("where they are enough: `{}(… as f32) as f64`", self.function))
            .help(format!("or the accurate function: `{}`", self.function.trim_start_matches("approx::")))
    }
}

/// TW1005: a `dot` of a type that it does not exist for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotType {
    /// The type of the factors.
    pub element: ElementType,
    /// The product.
    pub span: Span,
}

impl IntoDiagnostic for DotType {
    fn into_diagnostic(self) -> Diagnostic {
        Diagnostic::new(Code::TW1005, self.span, format!("there is no `dot` of `{}`", self.element))
            .note("`dot` accumulates floats in `f32`, `f64` in `f64`, and integers of at most 32 bits in `i32`")
            .help("use `sum`, which accumulates in the type of its terms")
    }
}

/// TW1006: an order for a reduction that does not depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderWithoutEffect {
    /// `ordered` or `unordered`.
    pub order: &'static str,
    /// The reduction.
    pub reduction: &'static str,
    /// The word.
    pub span: Span,
}

impl IntoDiagnostic for OrderWithoutEffect {
    fn into_diagnostic(self) -> Diagnostic {
        let (order, reduction) = (self.order, self.reduction);
        let diagnostic = Diagnostic::new(Code::TW1006, self.span, format!("`{reduction}` cannot be `{order}`"));
        match reduction {
            "dot" => diagnostic.note("tensor cores choose the order of a `dot`").help(format!("use `{order} sum`")),
            _ => diagnostic.note(format!("the result of `{reduction}` does not depend on the order of its terms")),
        }
    }
}

/// What is wrong with `promote`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromotionProblem {
    /// This reduction is no `dot`.
    NotADot(&'static str),
    /// The factors have this type.
    NotFp8(ElementType),
    /// The interval is no positive literal.
    NotPositive,
}

/// TW1007: `promote` where it means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// What is wrong.
    pub problem: PromotionProblem,
    /// The interval.
    pub span: Span,
}

impl IntoDiagnostic for Promotion {
    fn into_diagnostic(self) -> Diagnostic {
        let new = |title: String| Diagnostic::new(Code::TW1007, self.span, title);
        let diagnostic = match self.problem {
            PromotionProblem::NotADot(reduction) => new(format!("`{reduction}` has no promotion interval")),
            PromotionProblem::NotFp8(element) => new(format!("a `dot` of `{element}` has no promotion interval")),
            PromotionProblem::NotPositive => return new("the promotion interval is a positive literal".to_owned()),
        };
        diagnostic.note("tensor cores keep short sums only for `e4m3` and `e5m2`")
    }
}

/// TW1008: a schedule that changes the order of an `ordered` reduction, or of a `fold` without `merge`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReorderedTerms {
    /// The loop that is outside.
    pub outer: String,
    /// The loop that is inside, and whose iterations lie further apart.
    pub inner: String,
    /// Where the inner axis was introduced.
    pub span: Span,
    /// The reduction.
    pub reduction: Span,
    /// Whether it is a `fold`.
    pub is_fold: bool,
    /// All loops over terms in an order that is ascending; none if an op has mixed them.
    pub order: Option<Vec<String>>,
}

impl IntoDiagnostic for ReorderedTerms {
    fn into_diagnostic(self) -> Diagnostic {
        let ReorderedTerms { outer, inner, span, reduction, is_fold, order } = self;
        let (label, note) = if is_fold {
            (
                "this `fold` has no `merge`",
                "without `merge` the steps are taken in ascending order: there is one result",
            )
        } else {
            (
                "this reduction is `ordered`",
                "`ordered` fixes the result bit for bit: terms are taken in ascending order",
            )
        };
        let mut diagnostic = Diagnostic::new(
            Code::TW1008,
            span,
            format!("the loop over `{inner}` inside the loop over `{outer}` takes the terms out of order"),
        )
        .label(reduction, label)
        .note(note);
        if let Some(order) = order {
            let op = format!("reorder {}", order.join(", "));
            let text = format!("put `{inner}` outside `{outer}`: `{op};`");
            diagnostic = diagnostic.change(Change::AppendOp(op), text);
        }
        if is_fold {
            return diagnostic.help("or give it a `merge`, if its parts can be combined: then any order is admissible");
        }
        let word = Span::token(reduction.first);
        diagnostic.replace(word, "", "or drop `ordered`: then any order is an admissible result")
    }
}

/// TW1009: a float sum by atomic operations whose author did not give up the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedByNobody {
    /// Type of the sum.
    pub element: ElementType,
    /// The word `atomic`.
    pub span: Span,
    /// The reduction.
    pub reduction: Span,
}

impl IntoDiagnostic for OrderedByNobody {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { element, span, reduction } = self;
        Diagnostic::new(
            Code::TW1009,
            span,
            format!("a sum of `{element}` by atomic operations has other bits each time it runs"),
        )
        .label(reduction, "this sum promises the same bits every time")
        .note("blocks add their parts in the order in which they come, and each addition rounds")
        .replace(span, "grid", "combine them in a fixed order: `by grid`")
        .help("or give the promise up: `unordered sum`")
    }
}

/// TW1010: an `argmax` or `argmin` over indices that are no `u32`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceOutside {
    /// `argmax` or `argmin`.
    pub reduction: &'static str,
    /// The reduction.
    pub span: Span,
    /// Its range, in the user's names: `i - 1..N`.
    pub range: String,
    /// Whether it begins below 0; otherwise it ends beyond 2³².
    pub is_below: bool,
    /// The smallest case in which it does.
    pub witness: Option<Witness>,
    /// Facts that rule it out, proved to.
    pub facts: Vec<String>,
}

impl IntoDiagnostic for PlaceOutside {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { reduction, span, range, is_below, witness, facts } = self;
        let known = if witness.is_some() { "may find" } else { "cannot be shown to find no" };
        let which = if is_below { "index below 0" } else { "index beyond 4294967295" };
        let article = if witness.is_some() { " an" } else { "" };
        let title = format!("`{reduction}` over {range} {known}{article} {which}");
        let mut diagnostic = Diagnostic::new(Code::TW1010, span, title).note("the index that it gives is a `u32`");
        let case = format!("takes the `{reduction}` of terms that begin below 0");
        diagnostic.counterexample = witness.map(|w| w.sentence(&case));
        match (facts.is_empty(), is_below) {
            (false, _) => state(diagnostic, facts),
            (true, true) => diagnostic.help("search an axis that begins at 0, and read what lies before: `x[k - 1]`"),
            (true, false) => diagnostic.help("end the range at a sum of sizes and axes, which launches will check"),
        }
    }
}

/// TW1090: a float sum by atomic operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatAtomics {
    /// The stage.
    pub stage: String,
    /// Type of the sum.
    pub element: ElementType,
    /// The word `atomic`.
    pub span: Span,
    /// The reduction.
    pub reduction: Span,
}

impl IntoDiagnostic for FloatAtomics {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, element, span, reduction } = self;
        let diagnostic =
            Diagnostic::new(Code::TW1090, span, format!("`{stage}` has other bits each time the kernel runs"))
                .label(reduction, "an `unordered` sum")
                .note("blocks add their parts in the order in which they come, and each addition rounds");
        let diagnostic = match element {
            ElementType::F32 => diagnostic.note("in memory, subnormal numbers of `f32` are added as zeros"),
            _ => diagnostic,
        };
        diagnostic
            .replace(span, "grid", "combine them in a fixed order: `by grid`")
            .help("if that is what you want, write `#[allow(TW1090)]` before the kernel")
    }
}
