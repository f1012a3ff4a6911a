//! TW0404: a vectorised axis along which the output is not contiguous.

use crate::diag::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;
use super::tw0402_straddling_vector::{Element, one_vector};

row! {
    /// The elements that a vector writes are neighbours in memory. Along the last axis of a tensor without strides they
    /// are.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N]) -> (y: f32[M, N])
    /// where M % 4 == 0
    /// {
    ///     y[i, j] = x[i, j];
    ///     schedule y { split i by 4 -> io, v; reorder io, j, v; bind io, j: grid; vectorize v; }
    /// }
    /// ```
    ///
    /// The message names the distance of neighbours.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Copy(x: f32[M, N]) -> (y: f32[M, N])
    /// where N % 4 == 0
    /// {
    ///     y[i, j] = x[i, j];
    ///     schedule y { split j by 4 -> jo, v; bind i, jo: grid; vectorize v; }
    /// }
    /// ```
    TW0404 "scattered-vector" Error "a vectorised axis along which the output is not contiguous"
}

/// TW0404: the elements accessed along a vectorised axis are not neighbours.
#[derive(Clone, Debug)]
pub struct ScatteredVector {
    /// The vectorised axis.
    pub axis: String,
    /// The tensor.
    pub tensor: String,
    /// The axis along which the output is contiguous, if it has axes.
    pub last: Option<String>,
    /// Distance of neighbouring lanes in elements, if it is the same everywhere.
    pub step: Option<String>,
    /// Sizes, and two neighbouring lanes that are not neighbours in memory.
    pub witness: Option<(Assignment, [Element; 2])>,
    /// The left-hand side, or the read.
    pub access: Span,
    /// Whether it is the left-hand side.
    pub is_write: bool,
    /// The `vectorize` op.
    pub span: Span,
}

impl IntoDiagnostic for ScatteredVector {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, tensor, last, step, witness, access, is_write, span } = self;
        let accessed = if is_write { "the elements written" } else { "the elements read" };
        let title = match step {
            _ if witness.is_none() => {
                format!("could not prove that neighbours along `{axis}` are neighbours in `{tensor}`")
            }
            Some(step) => {
                format!("cannot vectorise `{axis}`: neighbours along it lie {step} elements apart in `{tensor}`")
            }
            None => format!("cannot vectorise `{axis}`: neighbours along it are not neighbours in `{tensor}`"),
        };
        let mut diagnostic = Diagnostic::new(Code::TW0404, span, title).label(access, accessed);
        if let Some((dims, lanes)) = witness {
            diagnostic = diagnostic.counterexample(one_vector(&tensor, &dims, &lanes));
        }
        if let Some(last) = last {
            diagnostic = diagnostic
                .help(format!("vectorise an axis that is made of `{last}`: along it `{tensor}` is contiguous"));
        }
        diagnostic.change(Change::RemoveOp(span), format!("or remove `vectorize {axis}`"))
    }
}
