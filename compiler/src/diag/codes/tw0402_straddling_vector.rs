//! TW0402: a vector that runs from one row into the next.

use crate::diag::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::prefix;
use crate::source::Span;

row! {
    /// After a merge of axes that are not contiguous, neighbours along the merged axis are neighbours in memory only
    /// inside one row. A vector has to stay inside a row.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Copy(x: f32[M, 6; s, 1]) -> (y: f32[M, 6])
    /// where s % 4 == 0, M % 2 == 0
    /// {
    ///     y[i, j] = x[i, j];
    ///     schedule y {
    ///         merge i, j -> ij;
    ///         split ij by 4 -> q, v;
    ///         split q by 128 -> b, t;
    ///         bind b: grid;
    ///         bind t: thread;
    ///         vectorize v;
    ///     }
    /// }
    /// ```
    ///
    /// The counterexample gives two lanes of one vector whose elements are not neighbours.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Copy(x: f32[M, 6; s, 1]) -> (y: f32[M, 6])
    /// where s % 4 == 0, M % 2 == 0
    /// {
    ///     y[i, j] = x[i, j];
    ///     schedule y {
    ///         merge i, j -> ij;
    ///         split ij by 2 -> q, v;
    ///         split q by 128 -> b, t;
    ///         bind b: grid;
    ///         bind t: thread;
    ///         vectorize v;
    ///     }
    /// }
    /// ```
    TW0402 "straddling-vector" Error "a vector that runs from one row into the next"
}

/// Indices of an element and its offset from the tensor's base, in elements.
pub type Element = (Vec<i128>, i128);

/// Two elements that would be neighbours in a vector and are not in memory.
pub(super) fn one_vector(tensor: &str, dims: &Assignment, lanes: &[Element; 2]) -> String {
    let show = |(indices, offset): &Element| {
        let indices = indices.iter().map(i128::to_string).collect::<Vec<_>>().join(", ");
        format!("{tensor}[{indices}] at element {offset}")
    };
    format!("{}one vector holds {} and {}", prefix(dims), show(&lanes[0]), show(&lanes[1]))
}

/// TW0402: a vector that would run from one row into the next of axes that are not contiguous.
#[derive(Clone, Debug)]
pub struct StraddlingVector {
    /// The vectorised axis.
    pub axis: String,
    /// Its extent.
    pub lanes: i128,
    /// The tensor.
    pub tensor: String,
    /// The read, or the left-hand side.
    pub access: Span,
    /// The `vectorize` op.
    pub span: Span,
    /// Sizes, and the indices of the two neighbouring lanes that are not neighbours in memory, with their offsets.
    pub witness: Option<(Assignment, [Element; 2])>,
    /// The largest extent that divides the row, if one does.
    pub instead: Option<i128>,
    /// Whether nothing else is wrong with the vector, so that the smaller one is right.
    pub is_alone: bool,
}

impl IntoDiagnostic for StraddlingVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, lanes, tensor, access, span, witness, instead, is_alone } = self;
        let title = match witness {
            Some(_) => {
                format!("cannot vectorise `{axis}`: {lanes} neighbours along it are not in one row of `{tensor}`")
            }
            None => format!("could not prove that {lanes} neighbours along `{axis}` are in one row of `{tensor}`"),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0402, span, title).label(access, "this access is a vector").note(
            "axes that are not contiguous were merged: a run of the merged axis is contiguous only inside one row",
        );
        if let Some((dims, lanes)) = witness {
            diagnostic = diagnostic.counterexample(one_vector(&tensor, &dims, &lanes));
        }
        if let Some(instead) = instead {
            let text = format!("split by {instead} and vectorise that: it divides the row");
            diagnostic = match is_alone {
                true => diagnostic.change(Change::Refactor(axis.clone(), instead), text),
                false => diagnostic.help(text),
            };
        }
        diagnostic.change(Change::RemoveOp(span), format!("or remove `vectorize {axis}`"))
    }
}
