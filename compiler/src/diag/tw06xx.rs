//! TW06: collectives: which threads run what.

use super::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::syntax::Span;

fn product(axes: &[(String, i128)]) -> String {
    axes.iter().map(|(name, n)| format!("`{name}` {n}")).collect::<Vec<_>>().join(" × ")
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
    /// Whether warps are bound.
    pub warps: bool,
    /// Whether the stage has an axis that could be bound.
    pub data: bool,
    /// Whether another stage needs several threads.
    pub others: bool,
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for SameElement {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, group, threads, warps, data, others, span } = self;
        let diagnostic = Diagnostic::new(
            Code::TW0601,
            span,
            format!("{group} threads would each write the same element of `{stage}`"),
        )
        .note("a plain store is run by exactly one thread for each element");
        if warps {
            diagnostic
                .note("a bound warp has 32 lanes, and no axis is bound to them")
                .help("bind an axis inside the warp: `bind …: thread;`")
        } else {
            let diagnostic = diagnostic.note(format!("the block has {threads} threads, and no axis is bound to them"));
            let first = if data {
                "bind an axis: `bind …: thread;`".to_owned()
            } else {
                format!(
                    "give `{stage}` an axis of extent 1 to bind: declare it `{stage}: …[1]`, define `{stage}[o]`, `bind o: thread;`"
                )
            };
            let diagnostic = diagnostic.help(first);
            if others {
                diagnostic.help("or compute it in a kernel of its own, with one thread")
            } else {
                diagnostic.change(Change::Threads(1), "or launch one thread: `launch threads(1);`")
            }
        }
    }
}

/// TW0602: more iterations than units.
#[derive(Clone, Debug)]
pub struct TooManyThreads {
    /// `thread`, `warp` or `lane`.
    pub unit: &'static str,
    /// The bound axes with their extents.
    pub axes: Assignment,
    /// Product of the extents.
    pub count: i128,
    /// Units there are.
    pub room: i128,
    /// Threads of the block.
    pub threads: i128,
    /// Most threads of any block.
    pub limit: i128,
    /// The last `bind`.
    pub span: Span,
    /// The `launch` item.
    pub launch: Option<Span>,
}

impl IntoDiagnostic for TooManyThreads {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { unit, axes, count, room, threads, limit, span, launch } = self;
        let title = match (unit, launch) {
            ("lane", _) => format!("{count} lanes are needed, and a warp has {room}"),
            (_, Some(_)) => format!("{count} {unit}s are needed, and the block has {room}"),
            (_, None) => format!("{count} {unit}s are needed, and a block has at most {room}"),
        };
        let mut diagnostic =
            Diagnostic::new(Code::TW0602, span, title).note(format!("bound to {unit}s: {}", product(&axes)));
        if let Some(launch) = launch {
            diagnostic = diagnostic.label(launch, format!("the block has {threads} threads"));
        }
        match unit {
            "lane" => diagnostic.help("split the axis by 32 and bind the inner part"),
            _ if count <= limit && unit == "thread" => {
                let text = format!("write `launch threads({count});`, or split by at most {room}");
                diagnostic.change(Change::Threads(count), text)
            }
            _ if count <= 32 => {
                let threads = 32 * count;
                let text = format!("write `launch threads({threads});`, or split by at most {room}");
                diagnostic.change(Change::Threads(threads), text)
            }
            _ => diagnostic.help(format!("split the axis so that at most {room} iterations are bound")),
        }
    }
}

/// TW0603: warps in a block whose threads are not a multiple of 32.
#[derive(Clone, Debug)]
pub struct ThreadsOfWarps {
    /// Threads of the block.
    pub threads: i128,
    /// The `launch` item, or the schedule.
    pub span: Span,
}

impl IntoDiagnostic for ThreadsOfWarps {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { threads, span } = self;
        let next = (threads + 31) / 32 * 32;
        Diagnostic::new(Code::TW0603, span, format!("a block of {threads} threads is not made of whole warps"))
            .note("an axis is bound to warps, and a warp has 32 threads")
            .change(Change::Threads(next), format!("write `launch threads({next});`"))
    }
}

/// TW0604: a warp inside a thread.
#[derive(Clone, Debug)]
pub struct BindOrder {
    /// The axis bound to warps.
    pub outer: String,
    /// The axis bound to threads.
    pub inner: String,
    /// The `bind` to threads.
    pub span: Span,
    /// The `bind` to warps.
    pub other: Span,
}

impl IntoDiagnostic for BindOrder {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { outer, inner, span, other } = self;
        Diagnostic::new(
            Code::TW0604,
            span,
            format!("`{inner}` is bound to threads outside `{outer}`, which is bound to warps"),
        )
        .label(other, "a thread has no warps to give out")
        .note("binds nest by the order of the loops: each unit is a part of the one around it")
        .change(Change::AppendOp(format!("reorder {outer}, {inner}")), format!("add `reorder {outer}, {inner};`"))
    }
}

/// TW0690: threads without work.
#[derive(Clone, Debug)]
pub struct IdleThreads {
    /// The stage.
    pub stage: String,
    /// Threads with work.
    pub busy: i128,
    /// Threads of the block.
    pub threads: i128,
    /// Threads that suffice for all stages.
    pub needed: i128,
    /// The `launch` item.
    pub span: Span,
}

impl IntoDiagnostic for IdleThreads {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, busy, threads, needed, span } = self;
        let idle = threads - busy;
        let bind = "bind as many iterations as there are threads";
        let diagnostic = Diagnostic::new(
            Code::TW0690,
            span,
            format!("{idle} of {threads} threads of each block are idle in `{stage}`"),
        );
        if needed < threads {
            let text = format!("{bind}, or write `launch threads({needed});`");
            diagnostic.change(Change::Threads(needed), text)
        } else {
            diagnostic.help(format!("{bind}, or silence this with `#[allow(TW0690)]` in front of the kernel"))
        }
    }
}

/// TW0605: a unit bound inside an instance that belongs to one of them.
#[derive(Clone, Debug)]
pub struct UnitInside {
    /// The stage.
    pub stage: String,
    /// The axis.
    pub axis: String,
    /// The unit that is bound.
    pub unit: &'static str,
    /// The unit that owns an instance.
    pub owner: &'static str,
    /// Whether it is an axis of a reduction.
    pub reduces: bool,
    /// The `bind`.
    pub span: Span,
}

impl IntoDiagnostic for UnitInside {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axis, unit, owner, reduces, span } = self;
        let title =
            format!("an instance of `{stage}` belongs to one {owner}, and `{axis}` is given to several {unit}s");
        let diagnostic = Diagnostic::new(Code::TW0605, span, title)
            .note("the stage stands in the loops of another one, whose units run it");
        let instead = match owner {
            "block" => format!("leave `{axis}` unbound, or bind it to threads"),
            _ => format!("leave `{axis}` unbound"),
        };
        // A `reduce` of it would have to go, too.
        if !(reduces && unit == "block") {
            return diagnostic.change(Change::RemoveOp(span), instead);
        }
        diagnostic
            .note(format!("all blocks would have to wait until `{stage}` is reduced"))
            .help(instead)
            .help(format!("or compute `{stage}` in a kernel of its own, where blocks can share `{axis}`, and read it here as an input"))
    }
}
