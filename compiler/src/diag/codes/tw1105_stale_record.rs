//! TW1105: a record of `tune` that is about another kernel.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// `tilewright tune` writes what it chose behind the candidates, with a digest of the kernel that this gave: its
    /// PTX, its facts, its tensor maps, the candidates and the choice. Whoever compiles the kernel later computes the
    /// digest again. A different one says that the kernel, its facts, its candidates or the compiler have changed since
    /// the choice was made, so that another one may be better now.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     tune T in [128, 256] = (256) by "h200 at N=1048576: 0000000000000000";
    ///     schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// Run the command of the message: it ranks the candidates again and writes the record.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     tune T in [128, 256];
    ///     schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Leave the record out: the first legal combination is taken, in the order written.
    /// - Write the numbers in place of the names, and leave `tune` out. A crate that others depend on does so before it
    ///   is published, since each new compiler would refuse its records.
    TW1105 "stale-record" Error "a record of `tune` that is about another kernel"
}

/// TW1105: a record whose digest is not that of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleRecord {
    /// The kernel.
    pub kernel: String,
    /// Whether the choice was measured.
    pub measured: bool,
    /// The record.
    pub span: Span,
}

impl IntoDiagnostic for StaleRecord {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { kernel, measured, span } = self;
        let device = if measured { " --device" } else { "" };
        Diagnostic::new(Code::TW1105, span, format!("the record is not about `{kernel}` as it is now"))
            .note("since it was written, the kernel, its facts, the candidates or the compiler have changed: its digest is another one")
            .help(format!("rank the candidates again: `tilewright tune FILE --kernel {kernel}{device} --write`"))
            .replace(span, "", "or leave the record out: the first legal combination is taken")
    }
}
