//! TW02: sizes, divisibility, holes.

use super::{Assignment, Change, Code, Diagnostic, IntoDiagnostic, assignment};
use crate::source::Span;

/// TW0201: a guard cuts through a vector.
#[derive(Clone, Debug)]
pub struct SplitVector {
    /// The vectorised axis.
    pub axis: String,
    /// Its extent.
    pub lanes: i128,
    /// The axis whose end is guarded, and its extent.
    pub guarded: (String, String),
    /// Whether that extent is a multiple of the lanes, so that the trouble is where vectors start.
    pub divides: bool,
    /// The `vectorize` op.
    pub span: Span,
    /// The op that makes the guard necessary.
    pub cause: Span,
    /// Sizes, leaf indices of lane 0, and how many lanes are inside.
    pub witness: Option<(Assignment, Assignment, i128)>,
    /// A fact that makes it right, proved to suffice.
    pub fact: Option<String>,
}

impl IntoDiagnostic for SplitVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, lanes, guarded: (guarded, extent), divides, span, cause, witness, fact } = self;
        let literal = extent.bytes().all(|b| b.is_ascii_digit());
        let title = match (&witness, literal) {
            (Some(_), _) if divides => {
                format!("cannot vectorise `{axis}`: its vectors do not start at multiples of {lanes} in `{guarded}`")
            }
            (None, _) if divides => {
                format!("could not prove that vectorising `{axis}` cuts no vector at an end of `{guarded}`")
            }
            (Some(_), true) => format!("cannot vectorise `{axis}`: {extent} is not a multiple of {lanes}"),
            (Some(_), false) => format!("cannot vectorise `{axis}`: {extent} is not known to be a multiple of {lanes}"),
            (None, _) => {
                format!("could not prove that {extent} is a multiple of {lanes}, which vectorising `{axis}` needs")
            }
        };
        let mut diagnostic = Diagnostic::new(Code::TW0201, span, title)
            .label(cause, format!("a vector along `{axis}` may pass an end of `{guarded}`"))
            .note(format!("a vector is accessed whole: all {lanes} lanes lie inside `{guarded}` or none does"));
        if let Some((dims, leaves, inside)) = witness {
            let at = assignment(&leaves);
            let at = if at.is_empty() { String::new() } else { format!("at {at} ") };
            diagnostic = diagnostic.counterexample(format!(
                "{}{at}the vector has {inside} of {lanes} lanes inside `{guarded}`",
                prefix(&dims)
            ));
        }
        diagnostic = match fact {
            Some(fact) => {
                let text = format!("state the fact: `where {fact}`");
                diagnostic.change(Change::State(vec![fact]), text)
            }
            None => diagnostic,
        };
        let text = format!("or remove `vectorize {axis}`: without it, predicates guard the tail");
        diagnostic.change(Change::RemoveOp(span), text)
    }
}

/// `N = 5: `, or nothing for no dimensions.
pub(super) fn prefix(dims: &[(String, i128)]) -> String {
    let text = assignment(dims);
    if text.is_empty() { text } else { format!("{text}: ") }
}

/// TW0202: a factor or count that no op accepts.
#[derive(Clone, Debug)]
pub struct BadFactor {
    /// What it is: `a split factor`.
    pub what: &'static str,
    /// Its value, if it is a literal.
    pub value: Option<i128>,
    /// Least value allowed.
    pub least: i128,
    /// Greatest value allowed.
    pub most: i128,
    /// Where it is written.
    pub span: Span,
}

impl IntoDiagnostic for BadFactor {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { what, value, least, most, span } = self;
        let title = match value {
            Some(value) => format!("{what} is between {least} and {most}, and this is {value}"),
            None => format!("{what} is a literal, or a size that a fact fixes"),
        };
        let diagnostic = Diagnostic::new(Code::TW0202, span, title);
        match value {
            Some(_) => diagnostic,
            None => diagnostic.help("write a number, or fix the size with a fact such as `where K == 4096`"),
        }
    }
}

/// TW0203: no size satisfies all facts.
#[derive(Clone, Debug)]
pub struct Contradiction {
    /// The fact that cannot hold.
    pub span: Span,
    /// The facts before it.
    pub earlier: Vec<Span>,
    /// Whether it contradicts what every size satisfies, and no other fact is involved.
    pub alone: bool,
}

impl IntoDiagnostic for Contradiction {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { span, earlier, alone } = self;
        let title =
            if alone { "no size satisfies this fact" } else { "no size satisfies this fact together with the others" };
        let mut diagnostic = Diagnostic::new(Code::TW0203, span, title);
        for other in earlier.into_iter().take(4) {
            diagnostic = diagnostic.label(other, "together with this");
        }
        diagnostic.note(
            "facts leave some sizes of at least 1; a launch may have a size of 0, and then there is nothing to compute",
        )
    }
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

/// TW0205: an axis of the result merged with one of the reduction.
#[derive(Clone, Debug)]
pub struct MixedMerge {
    /// One axis.
    pub first: String,
    /// The other.
    pub second: String,
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for MixedMerge {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { first, second, span } = self;
        Diagnostic::new(
            Code::TW0205,
            span,
            format!("`{first}` and `{second}` cannot be merged: only one of them is reduced over"),
        )
        .note("an iteration of the merged axis would belong to an element and to a term of its reduction at once")
    }
}

/// TW0206: a swizzle of something that is not a square.
#[derive(Clone, Debug)]
pub struct NotASwizzle {
    /// One axis with its extent.
    pub x: (String, String),
    /// The other.
    pub y: (String, String),
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for NotASwizzle {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { x, y, span } = self;
        let title = format!(
            "`swizzle` needs two axes of one extent that is a power of two; `{}` has {} and `{}` has {}",
            x.0, x.1, y.0, y.1
        );
        Diagnostic::new(Code::TW0206, span, title)
            .note("`y xor x` stays inside the extent of `y` only on a square whose side is a power of two")
            .help("split both axes by the same power of two first")
    }
}

/// TW0207: an op needs an extent that is known while compiling.
#[derive(Clone, Debug)]
pub struct NotStatic {
    /// The axis.
    pub axis: String,
    /// Its extent.
    pub extent: String,
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
        let Self { axis, extent, bound, limit, op, span } = self;
        let title = match bound {
            Some(bound) => format!("`{op} {axis}` makes {bound} copies; at most {limit} are allowed"),
            None => format!("`{op} {axis}` needs an extent that is known at compile time; it is {extent}"),
        };
        Diagnostic::new(Code::TW0207, span, title)
            .help(format!("split `{axis}` by a literal and `{op}` the inner part"))
            .help(match op {
                "vectorize" => "or fix the size with a fact such as `where N == 4`".to_owned(),
                _ => format!("or bound the size with a fact such as `where N <= {limit}`"),
            })
    }
}

/// TW0208: sizes so large that nothing can be proved about them.
#[derive(Clone, Debug)]
pub struct TooLarge {
    /// The axis.
    pub axis: String,
    /// Most terms of an expression.
    pub terms: usize,
    /// Where it is introduced.
    pub span: Span,
}

impl IntoDiagnostic for TooLarge {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, terms, span } = self;
        Diagnostic::new(
            Code::TW0208,
            span,
            format!("the extent of `{axis}` is too large or too complicated to reason about"),
        )
        .note(format!("extents are computed exactly in 128 bits, with at most {terms} terms"))
        .help("use smaller factors, or fewer merges of split axes")
    }
}

/// TW0209: a stage that grows without bound once its intermediates are inlined.
#[derive(Clone, Debug)]
pub struct InlinedTooFar {
    /// The stage.
    pub stage: String,
    /// Most operations allowed.
    pub limit: u32,
    /// The schedule, or the equation.
    pub span: Span,
}

impl IntoDiagnostic for InlinedTooFar {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, limit, span } = self;
        let title = format!("`{stage}` has more than {limit} operations once its intermediates are inlined");
        Diagnostic::new(Code::TW0209, span, title)
            .note("an intermediate without a schedule is computed at every read of it, and checked there if need be")
            .help("make an intermediate an output, and compute it in a kernel of its own")
            .help(
                "or write its domain, so that its own reads are inside for all of it and need no look at every reader",
            )
    }
}
