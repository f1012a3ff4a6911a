//! TW0306: a staged tensor whose strides are not known to be multiples of 16 bytes.

use crate::diag::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::prefix;
use crate::source::Span;

row! {
    /// Every stride of a tensor map but the innermost is a multiple of 16 bytes. For a row-major matrix that is the
    /// length of its rows. A stride of 0, by which all elements along an axis are one, is none.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split i by 32 -> io, ii;
    ///         split j by 32 -> jo, ji;
    ///         reorder io, jo, ii, ji;
    ///         bind io, jo: grid;
    ///         split ii by 8 -> r, w;
    ///         bind w: thread;
    ///         bind ji: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.jo via tma { box i by 32 -> ic, ib; box j by 32 -> jc, jb; }
    /// }
    /// ```
    ///
    /// The message names the smallest sizes for which rows are not so far apart, and the fact to state.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split i by 32 -> io, ii;
    ///         split j by 32 -> jo, ji;
    ///         reorder io, jo, ii, ji;
    ///         bind io, jo: grid;
    ///         split ii by 8 -> r, w;
    ///         bind w: thread;
    ///         bind ji: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.jo via tma { box i by 32 -> ic, ib; box j by 32 -> jc, jb; }
    /// }
    /// ```
    TW0306 "pitch" Error "a staged tensor whose strides are not known to be multiples of 16 bytes"
}

/// TW0306: rows that are not known to start at multiples of 16 bytes.
#[derive(Clone, Debug)]
pub struct Pitch {
    /// The tensor.
    pub tensor: String,
    /// The axis.
    pub axis: String,
    /// The distance of its neighbours in elements.
    pub stride: String,
    /// What it must be a multiple of, in elements.
    pub multiple: i128,
    /// The smallest failing sizes, and the distance in bytes.
    pub witness: Option<(Assignment, i128)>,
    /// A fact that makes it right.
    pub fact: Option<String>,
    /// Of a factor of a product, where the copy stands: threads can write there what tensor cores read.
    pub factor_at: Option<String>,
    /// The copy.
    pub span: Span,
}

impl IntoDiagnostic for Pitch {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { tensor, axis, stride, multiple, witness, fact, factor_at, span } = self;
        let is_one = stride == "0";
        let title = match witness {
            _ if is_one => format!("`{tensor}` cannot be copied by TMA: neighbours along `{axis}` are the same element"),
            Some(_) => {
                format!("`{tensor}` cannot be copied by TMA: {stride} is not known to be a multiple of {multiple}")
            }
            None => format!(
                "could not prove that {stride} is a multiple of {multiple}, which a TMA copy of `{tensor}` needs"
            ),
        };
        let rule = match is_one {
            true => "a tensor map has no stride of 0",
            false => "a tensor map's strides are multiples of 16 bytes",
        };
        let mut diagnostic = Diagnostic::new(Code::TW0306, span, title)
            .note(format!("neighbours along `{axis}` are {stride} elements apart; {rule}"));
        if let Some((dims, bytes)) = witness {
            diagnostic = diagnostic.counterexample(format!("{}they are {bytes} bytes apart", prefix(&dims)));
        }
        // The first help has nothing before it to be an alternative to.
        let or = if fact.is_some() { "or " } else { "" };
        match fact {
            Some(fact) => {
                let text = format!("state the fact: `where {fact}`");
                diagnostic.change(Change::State(vec![fact]), text)
            }
            None => diagnostic,
        }
        .help(match factor_at {
            None => format!("{or}let each thread read the tensor: without `stage`"),
            Some(at) => format!(
                "{or}let threads write the factor to shared memory: read an equation of its own, `f{tensor}[…] = {tensor}[…];`, \
                 with `schedule f{tensor} in shared at {at} {{ … }}`"
            ),
        })
    }
}
