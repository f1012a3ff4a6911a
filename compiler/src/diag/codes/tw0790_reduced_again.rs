//! TW0790: an output that is reduced again for each of its readers.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// An output goes to device memory, where other blocks cannot wait for it. An equation that reads it computes it
    /// itself, and a reduction is then repeated for every element of the reader: a row maximum that each element of the
    /// row reads makes a kernel of N² steps a row. An intermediate with the same equation can have a place, and is then
    /// computed once for all that read it there.
    ///
    /// A warning: the result is right.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Shifted(x: f32[M, N]) -> (top: f32[M], y: f32[M, N]) {
    ///     top[i] = max(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - top[i];
    ///     launch threads(64);
    ///     schedule top { split i by 64 -> b, t; bind b: grid; bind t: thread; }
    ///     schedule y { split i by 64 -> b, t; reorder b, t, j; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Shifted(x: f32[M, N]) -> (top: f32[M], y: f32[M, N]) {
    ///     top[i] = max(|j| x[i, j]);
    ///     m[i] = max(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - m[i];
    ///     launch threads(64);
    ///     schedule top { split i by 64 -> b, t; bind b: grid; bind t: thread; }
    ///     schedule y { bind i: grid; split j by 64 -> r, t; bind t: thread; }
    ///     schedule m in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Compute both in kernels of their own, where the second one reads the tensor that the first one wrote.
    /// - If repeating it is what you want, for a short reduction say, write `#[allow(TW0790)]` before the kernel.
    TW0790 "reduced-again" Warning "an output that is reduced again for each of its readers"
}

/// TW0790: an output that another equation reads, and that is a reduction.
#[derive(Clone, Debug)]
pub struct ReducedAgain {
    /// The output.
    pub name: String,
    /// The stage that reads it.
    pub reader: String,
    /// The reduction.
    pub span: Span,
    /// The left-hand side of the reader.
    pub head: Span,
}

impl IntoDiagnostic for ReducedAgain {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { name, reader, span, head } = self;
        Diagnostic::new(
            Code::TW0790,
            span,
            format!("`{reader}` reduces the output `{name}` again for each of its elements"),
        )
        .label(head, format!("`{reader}` reads `{name}`"))
        .note("an output goes to device memory, where other blocks cannot wait for it: a reader computes it itself")
        .help(format!(
            "give `{reader}` an intermediate with the equation of `{name}`, and a place: `schedule … in registers at …`"
        ))
        .help("or compute both in kernels of their own, where the second one reads the tensor that the first one wrote")
        .help("if repeating it is what you want, write `#[allow(TW0790)]` before the kernel")
    }
}
