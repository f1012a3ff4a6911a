//! TW0317: a read that takes none, or several, of the copies of its tensor.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A stage may have several copies of one tensor, for reads in different places: the product of a matrix with its
    /// transpose reads two of its columns. A read takes the copy whose axes are named like its indices. A read that no
    /// copy fits, or more than one, is refused.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Gram(x: f32[64, M]) -> (y: f32[M, M]) where M % 4 == 0 {
    ///     y[i, j] = sum(|k| x[k, i] * x[k, j]);
    ///     schedule y {
    ///         split i by 32 -> io, ii;
    ///         split j by 32 -> jo, t;
    ///         reorder io, jo, ii, t;
    ///         bind io, jo: grid;
    ///         bind t: thread;
    ///     }
    ///     stage xa[k, i] = x in shared at y.jo via tma { box k by 64 -> kc, kb; box i by 32 -> ic, ib; }
    ///     stage xb[k, c] = x in shared at y.jo via tma { box k by 64 -> kc, kb; box c by 32 -> jc, jb; }
    /// }
    /// ```
    ///
    /// Here nothing is for `x[k, j]`. With the name of its index, the second copy is.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Gram(x: f32[64, M]) -> (y: f32[M, M]) where M % 4 == 0 {
    ///     y[i, j] = sum(|k| x[k, i] * x[k, j]);
    ///     schedule y {
    ///         split i by 32 -> io, ii;
    ///         split j by 32 -> jo, t;
    ///         reorder io, jo, ii, t;
    ///         bind io, jo: grid;
    ///         bind t: thread;
    ///     }
    ///     stage xa[k, i] = x in shared at y.jo via tma { box k by 64 -> kc, kb; box i by 32 -> ic, ib; }
    ///     stage xb[k, j] = x in shared at y.jo via tma { box k by 64 -> kc, kb; box j by 32 -> jc, jb; }
    /// }
    /// ```
    TW0317 "which-copy" Error "a read that takes none, or several, of the copies of its tensor"
}

/// TW0317: a read that takes none, or several, of the copies of its tensor.
#[derive(Clone, Debug)]
pub struct WhichCopy {
    /// The tensor.
    pub tensor: String,
    /// The copies that the read may take, or all of them.
    pub copies: Vec<String>,
    /// Whether it takes none.
    pub none: bool,
    /// Whether the stage reads the tensor nowhere else.
    pub only: bool,
    /// The read.
    pub read: Span,
    /// The first copy.
    pub span: Span,
}

impl IntoDiagnostic for WhichCopy {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { tensor, copies, none, only, read, span } = self;
        let list = copies.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>();
        let what =
            if none { format!("none of {}", list.join(" and ")) } else { format!("{} at once", list.join(" and ")) };
        Diagnostic::new(Code::TW0317, span, format!("a read of `{tensor}` would take {what}"))
            .label(read, "this read")
            .note("of several copies of one tensor a read takes the one whose axes have the names of its indices")
            .help(match (only && !none, copies.last()) {
                (true, Some(last)) => format!("remove one of them, such as `{last}`: nothing else reads `{tensor}` there"),
                _ => "name the axes of each copy as the indices of the read that it is for: `stage xa[i, k] = x` for `x[i, k]`".to_owned(),
            })
    }
}
