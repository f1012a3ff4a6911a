//! TW0201: a size that is not known to be a multiple of what an op needs.

use crate::diag::{Assignment, Change, Code, Diagnostic, IntoDiagnostic, assignment};
use crate::diag::words::prefix;
use crate::source::Span;

row! {
    /// A vector is accessed whole. Where the end of an axis is guarded by a predicate, all lanes of a vector have to
    /// lie inside or none: for a vector of `w` elements along an axis of extent `N`, every start `s` with `s < N` needs
    /// `s + w <= N`. With starts at multiples of `w` this is `N % w == 0`.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 4 -> q, v;
    ///         split q by 256 -> b, t;
    ///         bind b: grid;
    ///         bind t: thread;
    ///         vectorize v;
    ///     }
    /// }
    /// ```
    ///
    /// The counterexample gives the smallest size and the vector of which only a part is inside. The fact that is
    /// proposed has been proved to suffice.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N])
    /// where N % 4 == 0
    /// {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y {
    ///         split i by 4 -> q, v;
    ///         split q by 256 -> b, t;
    ///         bind b: grid;
    ///         bind t: thread;
    ///         vectorize v;
    ///     }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Remove `vectorize`: each element is then guarded on its own. Let the axis of the threads be innermost, so that
    ///   neighbouring threads still access neighbouring elements.
    /// - Pad the tensors, and pass the padded size.
    TW0201 "not-divisible" Error "a size that is not known to be a multiple of what an op needs"
}

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
    /// The splits with which neighbouring threads have neighbouring elements, and the axis of the threads.
    pub innermost: Option<([(Span, String); 2], String)>,
}

impl IntoDiagnostic for SplitVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, lanes, guarded: (guarded, extent), divides, span, cause, witness, fact, innermost } = self;
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
        let or = if fact.is_some() { "or " } else { "" };
        diagnostic = match fact {
            Some(fact) => {
                let text = format!("state the fact: `where {fact}`");
                diagnostic.change(Change::State(vec![fact]), text)
            }
            None => diagnostic,
        };
        match innermost {
            // Without the vector, neighbouring threads would have elements as far apart as it was long.
            Some(([first, second], threads)) => {
                let text = format!(
                    "{or}remove `vectorize {axis}`, so that predicates guard the tail, and let `{threads}` be innermost: \
                     `{}; {};`",
                    first.1, second.1
                );
                diagnostic.change(Change::Rewrite(vec![first, second, (span, String::new())]), text)
            }
            None => {
                let text = format!("{or}remove `vectorize {axis}`: without it, predicates guard the tail");
                diagnostic.change(Change::RemoveOp(span), text)
            }
        }
    }
}
