//! TW0601: an element written by several threads.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::whole;
use crate::source::Span;

row! {
    /// A plain store is run by exactly one thread for each element. Threads of a block that no axis is bound to would
    /// all write the same one; so would the lanes of a warp, or the threads of a warpgroup, with no axis bound inside
    /// it.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     launch threads(256);
    ///     schedule y { bind i: grid; }
    /// }
    /// ```
    ///
    /// The message counts the threads.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     launch threads(256);
    ///     schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    TW0601 "same-element" Error "an element written by several threads"
}

/// TW0601: several threads run the same iteration.
#[derive(Clone, Debug)]
pub struct SameElement {
    /// The stage.
    pub stage: String,
    /// Threads that run each iteration.
    pub group: i128,
    /// Threads of the block.
    pub threads: i128,
    /// The unit whose threads they are; the block if none.
    pub unit: Option<String>,
    /// The last axis that is bound, if any is.
    pub bound: Option<String>,
    /// The last axis that is bound to the grid, if any is.
    pub grid: Option<String>,
    /// Whether the stage has an axis that could be bound.
    pub data: bool,
    /// Whether another stage needs several threads.
    pub others: bool,
    /// Where.
    pub span: Span,
    /// The role whose threads they are, instead of those of the block.
    pub role: Option<String>,
}

impl IntoDiagnostic for SameElement {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, group, threads, unit, bound, grid, data, others, span, role } = self;
        let diagnostic = Diagnostic::new(
            Code::TW0601,
            span,
            format!("{group} threads would each write the same element of `{stage}`"),
        )
        .note("a plain store is run by exactly one thread for each element");
        if let Some(unit) = unit {
            let threads = if unit == "warp" { "lanes" } else { "threads" };
            let diagnostic = diagnostic
                .note(format!("a bound {unit} has {group} {threads}, and no axis is bound to them"))
                .help(format!("bind an axis inside the {unit}: `bind …: thread;`"));
            match bound {
                Some(w) => diagnostic.help(format!(
                    "or leave it to one of them: `split {w} by 1 -> u, t; bind u: {unit}; bind t: thread;` instead of `bind {w}: {unit};`"
                )),
                None => diagnostic,
            }
        } else {
            let whole = whole(role.as_ref());
            let diagnostic = diagnostic.note(format!("{whole} has {threads} threads, and no axis is bound to them"));
            let first = if data {
                "bind an axis: `bind …: thread;`".to_owned()
            } else {
                format!(
                    "give `{stage}` an axis of extent 1 to bind: declare it `{stage}: …[1]`, define `{stage}[o]`, `bind o: thread;`"
                )
            };
            let diagnostic = diagnostic.help(first);
            if role.is_some() {
                // A role has a warp at least.
                diagnostic
            } else if others {
                match grid {
                    Some(g) => diagnostic.help(format!(
                        "or leave it to one thread: `split {g} by 1 -> u, t; bind u: grid; bind t: thread;` instead of `bind {g}: grid;`"
                    )),
                    None => diagnostic.help("or compute it in a kernel of its own, with one thread"),
                }
            } else {
                diagnostic.change(Change::Threads(1), "or launch one thread a block, if there is little work: `launch threads(1);`")
            }
        }
    }
}
