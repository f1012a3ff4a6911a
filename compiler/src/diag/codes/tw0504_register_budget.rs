//! TW0504: more registers than a thread has.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A stage in registers has a register for each of its elements that a thread holds, and a thread has 255. How many
    /// are needed follows from the sizes that the facts allow and from the threads that share the work.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Shift(x: f32[M, N]) -> (y: f32[M, N]) where N <= 65536 {
    ///     m[i] = max(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - m[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; unroll r; }
    ///     stage xr[i, j] = x in registers at y.i { like y; }
    ///     schedule m in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    ///
    /// The message says how many registers each thread would need: here 65536 elements of a row, given to 128 threads.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Shift(x: f32[M, N]) -> (y: f32[M, N]) where N <= 16384 {
    ///     m[i] = max(|j| x[i, j]);
    ///     y[i, j] = x[i, j] - m[i];
    ///     launch threads(128);
    ///     schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; unroll r; }
    ///     stage xr[i, j] = x in registers at y.i { like y; }
    ///     schedule m in registers at y.i { like y; reduce t; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - Give the stage more threads: `launch threads(512)`, and `split j by 512`.
    /// - Keep it `in shared`; `in shared per thread` if it is `in registers per thread`.
    TW0504 "register-budget" Error "more registers than a thread has"
}

/// TW0504: more registers than a thread has.
#[derive(Clone, Debug)]
pub struct RegisterBudget {
    /// The stage.
    pub stage: String,
    /// How many each thread would need; none if there is no bound.
    pub count: Option<i128>,
    /// The loop without a bound.
    pub axis: Option<String>,
    /// How many there are.
    pub limit: i128,
    /// Whether tensor cores compute it, which leave sums in registers and nowhere else.
    pub is_product: bool,
    /// The head of the stage.
    pub span: Span,
}

impl IntoDiagnostic for RegisterBudget {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, count, axis, limit, is_product, span } = self;
        let title = match count {
            Some(count) => format!("`{stage}` needs {count} registers of each thread, and a thread has {limit}"),
            None => format!("`{stage}` needs an unknown number of registers of each thread"),
        };
        let diagnostic = Diagnostic::new(Code::TW0504, span, title);
        let diagnostic = match axis {
            Some(axis) => {
                diagnostic.note(format!("`{axis}` has no bound: each of its iterations has a register of its own"))
            }
            None => diagnostic,
        };
        diagnostic.help(match is_product {
            true => "give its rows to more warpgroups or warps, or let tiles have fewer rows or columns",
            false => "give the stage more threads, bound the size with a fact, or keep it `in shared`",
        })
    }
}
