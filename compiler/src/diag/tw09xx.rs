//! TW09: bounds. What is reported about reads outside their tensors and about divisors, and how it is said.

use super::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

/// The smallest failing case, in the user's names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// The sizes that matter and their values.
    pub sizes: Vec<(String, i64)>,
    /// The element that is computed: `y[0, 0]`.
    pub element: String,
    /// Axes of reductions and their values, and elements of memory that decide something, with what they hold.
    pub axes: Vec<(String, i128)>,
    /// Elements of intermediates on the way: `t[1]`.
    pub through: Vec<String>,
    /// Conditions that depend on data, as they are when it happens.
    pub conditions: Vec<String>,
}

impl Witness {
    /// `N = 3: y[0] with k = 1 reads t[2], which`, what it does, and where.
    pub(super) fn sentence(&self, deed: &str) -> String {
        let sizes: Vec<String> = self.sizes.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let mut text = if sizes.is_empty() { String::new() } else { format!("{}: ", sizes.join(", ")) };
        text += &self.element;
        if !self.axes.is_empty() {
            let axes: Vec<String> = self.axes.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            text += &format!(" with {}", axes.join(", "));
        }
        for element in &self.through {
            text += &format!(" reads {element}, which");
        }
        text += &format!(" {deed}");
        if !self.conditions.is_empty() {
            let list: Vec<String> = self.conditions.iter().map(|c| format!("`{c}`")).collect();
            text += &format!(", where {}", list.join(" and "));
        }
        text
    }
}

/// TW0901 and TW0902: a read outside its tensor, or one that could not be shown to be inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// The read as written: `x[i, j + 3]`.
    pub read: String,
    /// The tensor.
    pub tensor: String,
    /// The read's tokens.
    pub span: Span,
    /// Where the tensor gets its shape: the parameter, or the equation of an intermediate.
    pub declared: Span,
    /// Whether it is an intermediate, which ends with its domain.
    pub is_intermediate: bool,
    /// Which dimension, from 0.
    pub dimension: usize,
    /// The index there, in the user's names: `j + 3`.
    pub index: String,
    /// First index inside and first one outside: `0` and `W`.
    pub extent: (String, String),
    /// The extreme that the index reaches, where it has a simple form: `W + 2`, and whether it is the largest value.
    pub reach: Option<(String, bool)>,
    /// The smallest failing case and the element that it reads, `x[0, 3]`; without one, the read is undecided.
    pub witness: Option<(Witness, String)>,
    /// Facts that make the read right, proved to.
    pub facts: Vec<String>,
    /// What a read outside gives when the author does not care: `0.0`, `0`, `false`.
    pub zero: &'static str,
    /// Other reads that these facts make right, with their tokens.
    pub also: Vec<(String, Span)>,
}

impl IntoDiagnostic for OutOfBounds {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { read, tensor, dimension, index, extent: (first, end), reach, witness, facts, zero, .. } = self;
        let refuted = witness.is_some();
        let range = format!("[{first}, {end})");
        let title = match (&reach, refuted) {
            (Some((value, up)), true) => {
                let direction = if *up { "up" } else { "down" };
                format!(
                    "`{read}` reads outside `{tensor}`: dimension {dimension} is {range}, `{index}` goes {direction} to {value}"
                )
            }
            (None, true) => {
                format!(
                    "`{read}` reads outside `{tensor}`: dimension {dimension} is {range}, `{index}` is not always in it"
                )
            }
            (_, false) => format!("`{read}` cannot be shown to stay inside `{tensor}`: `{index}` in {range}"),
        };
        let code = if refuted { Code::TW0901 } else { Code::TW0902 };
        let what = if self.is_intermediate { "it ends with this domain" } else { "its shape" };
        let mut diagnostic = Diagnostic::new(code, self.span, title).label(self.declared, what);
        if let Some((witness, element)) = witness {
            diagnostic = diagnostic.counterexample(witness.sentence(&format!("reads {element}")));
        } else {
            diagnostic = diagnostic.note("neither a proof nor a failing size was found");
        }
        let alone = self.also.is_empty();
        for (other, span) in self.also {
            diagnostic = diagnostic.label(span, format!("`{other}` needs the same fact"));
        }
        if !facts.is_empty() {
            diagnostic = state(diagnostic, facts);
        }
        if !alone {
            return diagnostic.help(format!("say at each what is read outside: `{read} or {zero}`"));
        }
        diagnostic.replace(
            self.span,
            format!("{read} or {zero}"),
            format!("say what is read outside: `{read} or {zero}`"),
        )
    }
}

/// TW0903: an integer divisor that may be 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZeroDivisor {
    /// The divisor as written.
    pub divisor: String,
    /// The quotient or remainder as written.
    pub quotient: String,
    /// Its tokens.
    pub span: Span,
    /// The smallest case in which it is 0.
    pub witness: Option<Witness>,
    /// Whether it depends on data, so that only a condition can rule 0 out.
    pub depends_on_data: bool,
    /// Facts that rule it out, proved to.
    pub facts: Vec<String>,
}

impl IntoDiagnostic for ZeroDivisor {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { divisor, quotient, span, witness, depends_on_data, facts } = self;
        let title = if witness.is_some() || depends_on_data {
            format!("the divisor `{divisor}` may be 0")
        } else {
            format!("the divisor `{divisor}` cannot be shown not to be 0")
        };
        let mut diagnostic = Diagnostic::new(Code::TW0903, span, title);
        if let Some(witness) = witness {
            diagnostic = diagnostic.counterexample(witness.sentence("divides by 0"));
        } else if depends_on_data {
            diagnostic = diagnostic.note("it comes from memory or an argument, and nothing around it excludes 0");
        }
        if !facts.is_empty() {
            diagnostic = state(diagnostic, facts);
        }
        let guarded = format!("if {divisor} != 0 {{ {quotient} }} else {{ 0 }}");
        let text = format!("say what the result is then: `{guarded}`");
        diagnostic.replace(span, guarded, text)
    }
}

/// TW0904: the divisor of an index that may be 0 or negative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDivisor {
    /// The divisor as written.
    pub divisor: String,
    /// The quotient or remainder.
    pub span: Span,
    /// The smallest sizes for which it is not positive, and its value there.
    pub witness: Option<(Vec<(String, i64)>, i128)>,
    /// The fact that makes it positive.
    pub facts: Vec<String>,
}

impl IntoDiagnostic for IndexDivisor {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { divisor, span, witness, facts } = self;
        let known = if witness.is_some() { "is not always positive" } else { "cannot be shown to be positive" };
        let title = format!("an index is divided by `{divisor}`, which {known}");
        let mut diagnostic = Diagnostic::new(Code::TW0904, span, title);
        if let Some((sizes, value)) = witness {
            let sizes: Vec<String> = sizes.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            diagnostic = diagnostic.counterexample(format!("{}: `{divisor}` is {value}", sizes.join(", ")));
        }
        if facts.is_empty() { diagnostic } else { state(diagnostic, facts) }
    }
}

/// TW0990: a guarded read that is always outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlwaysOutside {
    /// The read as written, without its `or`: `x[i, -1]`.
    pub read: String,
    /// The tensor.
    pub tensor: String,
    /// Which dimension, from 0.
    pub dimension: usize,
    /// The index there.
    pub index: String,
    /// First index inside and first one outside.
    pub extent: (String, String),
    /// Whether the index is below the first one inside.
    pub below: bool,
    /// Whether the tensor is an intermediate, which ends with its domain.
    pub is_intermediate: bool,
    /// Where the dimension gets its extent.
    pub declared: Span,
    /// The read.
    pub span: Span,
}

impl IntoDiagnostic for AlwaysOutside {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { read, tensor, dimension, index, extent: (first, end), below, .. } = self;
        let title = format!("`{read}` is always outside `{tensor}`: it gives nothing but what stands after `or`");
        let side = if below { "below" } else { "beyond" };
        let what = if self.is_intermediate { "it ends with this domain" } else { "its shape" };
        let diagnostic = Diagnostic::new(Code::TW0990, self.span, title)
            .label(self.declared, what)
            .note(format!("dimension {dimension} is [{first}, {end}), and `{index}` is {side} it for every size"));
        if below && index.starts_with('-') {
            diagnostic.note(format!("indices do not count from the end: the last one is `{end} - 1`"))
        } else {
            diagnostic
        }
    }
}

/// TW0991: an `or` that is never taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedlessOr {
    /// The read as written, without its `or`.
    pub read: String,
    /// The tensor.
    pub tensor: String,
    /// The read.
    pub span: Span,
}

impl IntoDiagnostic for NeedlessOr {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { read, tensor, span } = self;
        Diagnostic::new(Code::TW0991, span, format!("`{read}` is never outside `{tensor}`: its `or` is never taken"))
            .note("a read with `or` is not read as a vector")
            .replace(span, read.clone(), format!("write `{read}`"))
    }
}

/// TW0992: a comparison that always gives the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstantCondition {
    /// The comparison as written.
    pub condition: String,
    /// What it always is.
    pub holds: bool,
    /// Its tokens.
    pub span: Span,
}

impl IntoDiagnostic for ConstantCondition {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { condition, holds, span } = self;
        let title = format!("`{condition}` is {} for every size", if holds { "always true" } else { "never true" });
        Diagnostic::new(Code::TW0992, span, title)
            .note("it follows from the ranges of the axes, the facts and the conditions around it")
    }
}

/// TW0993: a reduction that never has a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyRange {
    /// The axis.
    pub axis: String,
    /// Its range.
    pub range: String,
    /// The reduction.
    pub span: Span,
}

impl IntoDiagnostic for EmptyRange {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, range, span } = self;
        Diagnostic::new(
            Code::TW0993,
            span,
            format!("this reduction never has a term: `{axis}` in {range} is always empty"),
        )
        .note("a range ends before its second number: `0..3` is 0, 1, 2")
    }
}

/// Proposes facts.
pub(super) fn state(diagnostic: Diagnostic, facts: Vec<String>) -> Diagnostic {
    let text = format!("state it, and launches will check it: `where {}`", facts.join(", "));
    diagnostic.change(Change::State(facts), text)
}
