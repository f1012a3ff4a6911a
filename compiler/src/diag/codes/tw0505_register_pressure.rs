//! TW0505: more registers at one time than a thread has.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// What stages keep in registers is held as long as it is read again. Where lanes or threads exchange values, and
    /// where loops come around, nothing that was there before and is read after can be anywhere else: the message adds
    /// it up, in registers of 32 bits. A thread has 255, and in blocks of more than 256 threads its share of 65,536. It
    /// is a lower bound: addresses and intermediate values come on top.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Rows(x: f32[M, N]) -> (y: f32[M, N]) where N <= 16384 {
    ///     m[i] = max(|j| x[i, j]);
    ///     e[i, j] = exp(x[i, j] - m[i]);
    ///     s[i] = sum(|j| e[i, j]);
    ///     y[i, j] = e[i, j] / s[i] + x[i, j];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; unroll r; }
    ///     stage xr[i, j] = x in registers at y.i { like y; }
    ///     schedule e in registers at y.i { like y; }
    ///     schedule m in registers at y.i { like y; reduce t; }
    ///     schedule s in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    ///
    /// Each thread has 128 elements of `xr`, and 128 of `e`; both are read after the sum.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Rows(x: f32[M, N]) -> (y: f32[M, N]) where N <= 16384 {
    ///     m[i] = max(|j| x[i, j]);
    ///     e[i, j] = exp(x[i, j] - m[i]);
    ///     s[i] = sum(|j| e[i, j]);
    ///     y[i, j] = e[i, j] / s[i] + x[i, j];
    ///     launch threads(256);
    ///     schedule y { bind i: grid; split j by 256 -> r, t; bind t: thread; unroll r; }
    ///     stage xr[i, j] = x in registers at y.i { like y; }
    ///     schedule e in registers at y.i { like y; }
    ///     schedule m in registers at y.i { like y; reduce t; }
    ///     schedule s in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Keep a stage `in shared`.
    /// - Read the input again instead of a copy in registers.
    TW0505 "register-pressure" Error "more registers at one time than a thread has"
}

/// TW0505: more to hold at one time than a thread has registers.
#[derive(Clone, Debug)]
pub struct RegisterPressure {
    /// Registers of 32 bits that a thread must hold at one time.
    pub words: u32,
    /// How many it has.
    pub limit: u32,
    /// Threads of the block, if these are why it has no more.
    pub threads: Option<u32>,
    /// Its role, if it has one.
    pub role: Option<String>,
    /// Registers of each stage, the largest first.
    pub parts: Vec<(String, u32)>,
    /// The stage with most of them.
    pub span: Span,
}

impl IntoDiagnostic for RegisterPressure {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { words, limit, threads, role, parts, span } = self;
        let title = format!("each thread must hold {words} registers at one time, and has {limit}");
        let list = parts.iter().map(|(name, words)| format!("`{name}` {words}")).collect::<Vec<_>>().join(", ");
        let diagnostic = Diagnostic::new(Code::TW0505, span, title).note(format!("of 32 bits: {list}"));
        let first = parts.first().map_or("one of them", |part| part.0.as_str());
        if let Some(role) = role {
            return diagnostic
                .note(format!("it runs in role `{role}`, each of whose threads has {limit} registers"))
                .help(format!(
                    "keep `{first}` `in shared`, or give `{role}` more warps, or more registers: `regs(…)`"
                ));
        }
        match threads {
            Some(threads) => diagnostic
                .note(format!("a block of {threads} threads shares the 65536 registers of a multiprocessor"))
                .help(format!(
                    "keep `{first}` `in shared`, or take a smaller block: its threads have up to 255 registers each"
                )),
            None => diagnostic
                .help(format!("keep `{first}` `in shared`, or give the stages more threads, which hold less each")),
        }
    }
}
