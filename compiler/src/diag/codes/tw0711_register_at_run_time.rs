//! TW0711: a register that is known at run time only.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// Registers have no addresses: which one an instruction reads is written in the program. So a loop of the reader
    /// that decides which register of a stage is read must be written out.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Normalise(x: f32[M, N]) -> (y: f32[M, N]) where N <= 4096 {
    ///     e[i, j] = exp(x[i, j]);
    ///     s[i] = sum(|j| e[i, j]);
    ///     y[i, j] = e[i, j] / s[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
    ///     schedule e in registers at y.i { like y; }
    ///     schedule s in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    ///
    /// The message names the loop.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Normalise(x: f32[M, N]) -> (y: f32[M, N]) where N <= 4096 {
    ///     e[i, j] = exp(x[i, j]);
    ///     s[i] = sum(|j| e[i, j]);
    ///     y[i, j] = e[i, j] / s[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; unroll r; }
    ///     schedule e in registers at y.i { like y; }
    ///     schedule s in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Keep the stage `in shared`, or `in shared per thread` if it is `in registers per thread`.
    TW0711 "register-at-run-time" Error "a register that is known at run time only"
}

/// TW0711: a register whose number is known at run time only.
#[derive(Clone, Debug)]
pub struct RegisterAtRunTime {
    /// The stage in registers.
    pub stage: String,
    /// Its reader.
    pub reader: String,
    /// The loop of the reader that decides which register.
    pub axis: Option<String>,
    /// Whether that is a loop that could be written out.
    pub is_serial: bool,
    /// Whether each thread has an instance of its own.
    pub of_threads: bool,
    /// The read.
    pub read: Span,
    /// The loop, or the reader.
    pub span: Span,
}

impl IntoDiagnostic for RegisterAtRunTime {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, reader, axis, is_serial, of_threads, read, span } = self;
        let title = format!("which register of `{stage}` `{reader}` reads is known at run time only");
        let diagnostic = Diagnostic::new(Code::TW0711, span, title)
            .label(read, "read here")
            .note("registers have no addresses: each has a name in the program");
        match axis {
            Some(axis) if is_serial => diagnostic.help(format!("write the loop out: `unroll {axis};`")),
            _ if of_threads => diagnostic.help(format!("keep `{stage}` `in shared per thread`: memory has addresses")),
            _ => diagnostic.help(format!(
                "keep `{stage}` `in shared`, or give its elements to the threads of `{reader}` that read them"
            )),
        }
    }
}
