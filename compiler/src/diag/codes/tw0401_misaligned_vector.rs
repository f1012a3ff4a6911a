//! TW0401: a vector access that is not known to be aligned.

use crate::diag::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::prefix;
use crate::source::Span;

row! {
    /// An access instruction moves `w` elements that start at a multiple of `w` elements from an aligned base. For the
    /// first lane of every vector, `offset % w == 0` has to hold; strides are part of the offset.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N; s, 1]) -> (y: f32[M, N])
    /// where N % 4 == 0
    /// {
    ///     y[i, j] = x[i, j];
    ///     launch threads(32);
    ///     schedule y {
    ///         split j by 128 -> jo, r;
    ///         split r by 4 -> t, v;
    ///         bind i, jo: grid;
    ///         bind t: thread;
    ///         vectorize v;
    ///     }
    /// }
    /// ```
    ///
    /// The counterexample gives sizes and a vector with the offset at which it would start.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N; s, 1]) -> (y: f32[M, N])
    /// where N % 4 == 0, s % 4 == 0
    /// {
    ///     y[i, j] = x[i, j];
    ///     launch threads(32);
    ///     schedule y {
    ///         split j by 128 -> jo, r;
    ///         split r by 4 -> t, v;
    ///         bind i, jo: grid;
    ///         bind t: thread;
    ///         vectorize v;
    ///     }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Remove `vectorize`.
    /// - State the fact that the message proposes; a launch then checks it.
    TW0401 "misaligned-vector" Error "a vector access that is not known to be aligned"
}

/// TW0401: a vector access whose address is not known to be aligned.
#[derive(Clone, Debug)]
pub struct MisalignedVector {
    /// The vectorised axis.
    pub axis: String,
    /// Lanes of the access.
    pub lanes: i128,
    /// The tensor.
    pub tensor: String,
    /// The read, or the left-hand side.
    pub access: Span,
    /// The `vectorize` op.
    pub span: Span,
    /// Sizes, the indices of the element accessed first, and its offset.
    pub witness: Option<(Assignment, Vec<i128>, i128)>,
    /// Facts that make it right, proved to suffice.
    pub facts: Vec<String>,
    /// Accesses of other tensors that need further facts, which are among those above.
    pub others: Vec<Span>,
}

impl IntoDiagnostic for MisalignedVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, lanes, tensor, access, span, witness, facts, others } = self;
        let title = match witness {
            Some(_) => format!(
                "cannot vectorise `{axis}`: the accesses of `{tensor}` are not known to be aligned to {lanes} elements"
            ),
            None => format!(
                "could not prove that the accesses of `{tensor}` along `{axis}` are aligned to {lanes} elements"
            ),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0401, span, title).label(access, "this access is a vector").note(
            format!("a vector of {lanes} elements starts at a multiple of {lanes} elements from an aligned base"),
        );
        for other in others {
            diagnostic = diagnostic.label(other, "and so is this one");
        }
        if let Some((dims, indices, offset)) = witness {
            let indices = indices.iter().map(i128::to_string).collect::<Vec<_>>().join(", ");
            diagnostic = diagnostic.counterexample(format!(
                "{}a vector starts at {tensor}[{indices}], which is element {offset}, not a multiple of {lanes}",
                prefix(&dims)
            ));
        }
        if !facts.is_empty() {
            let plural = if facts.len() == 1 { "" } else { "s" };
            let text = format!("state the fact{plural}: `where {}`", facts.join(", "));
            diagnostic = diagnostic.change(Change::State(facts), text);
        }
        diagnostic.change(Change::RemoveOp(span), format!("or remove `vectorize {axis}`"))
    }
}
