//! TW0901: a read outside its tensor.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::state;
use crate::source::Span;

row! {
    /// A read without `or` lies inside its tensor for every size that the facts admit and every element of the output:
    /// for each dimension, `0 <= index < extent` has to follow from the domains of the axes, the conditions of the
    /// `if`s around the read, and the facts of `where`. For an intermediate the extent is the domain of its equation.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Difference(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = x[i + 1] - x[i];
    /// }
    /// ```
    ///
    /// The counterexample is the smallest failing case: sizes, the element that is computed, and the element that it
    /// reads. It has been replayed on numbers.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Difference(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = (x[i + 1] or 0.0) - x[i];
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Select: `if i + 1 < N { x[i + 1] } else { x[i] }`.
    /// - Declare a larger input: `x: f32[N + 1]`.
    TW0901 "out-of-bounds" Error "a read outside its tensor"
}

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
            text += &format!(", if {}", list.join(" and "));
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
    /// Of a read under a condition that was to keep it inside: whether it is past the end in the failing case, or
    /// before the first index.
    pub past: Option<bool>,
    /// The smallest failing case and the element that it reads, `x[0, 3]`; without one, the read is undecided.
    pub witness: Option<(Witness, String)>,
    /// Facts that make the read right, proved to.
    pub facts: Vec<String>,
    /// The read with its indices in an order in which it is right.
    pub permuted: Option<String>,
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
        let narrower = self.past.filter(|_| facts.is_empty()).map(|up| match up {
            true => format!("{index} < {end}"),
            false => format!("{index} >= {first}"),
        });
        if let Some((witness, element)) = witness {
            diagnostic = diagnostic.counterexample(witness.sentence(&format!("reads {element}")));
        } else {
            diagnostic = diagnostic.note("neither a proof nor a failing size was found");
        }
        let alone = self.also.is_empty();
        for (other, span) in self.also {
            diagnostic = diagnostic.label(span, format!("`{other}` needs the same fact"));
        }
        if let Some(other) = self.permuted.filter(|_| alone) {
            let text = format!("the dimensions may be meant in another order: `{other}`");
            diagnostic = diagnostic.replace(self.span, other, text);
        }
        if !facts.is_empty() {
            diagnostic = state(diagnostic, facts);
        }
        if !alone {
            return diagnostic.help(format!("say at each what is read outside: `{read} or {zero}`"));
        }
        let diagnostic = diagnostic.replace(
            self.span,
            format!("{read} or {zero}"),
            format!("say what is read outside: `{read} or {zero}`"),
        );
        match narrower {
            Some(condition) => diagnostic.help(format!("or narrow the condition, so that `{condition}` holds where it reads")),
            None => diagnostic,
        }
    }
}
