//! TW06: collectives: which threads run what.

use super::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::schedule::Unit;
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
    /// The unit whose threads they are.
    pub unit: Unit,
    /// The last axis that is bound, if any is.
    pub bound: Option<String>,
    /// Whether the stage has an axis that could be bound.
    pub data: bool,
    /// Whether another stage needs several threads.
    pub others: bool,
    /// Where.
    pub span: Span,
}

impl IntoDiagnostic for SameElement {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, group, threads, unit, bound, data, others, span } = self;
        let diagnostic = Diagnostic::new(
            Code::TW0601,
            span,
            format!("{group} threads would each write the same element of `{stage}`"),
        )
        .note("a plain store is run by exactly one thread for each element");
        if unit != Unit::Cta {
            let (unit, threads) = (unit.name(), if unit == Unit::Warp { "lanes" } else { "threads" });
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
    /// What iterations are given to.
    pub unit: Unit,
    /// Whose parts these are.
    pub around: Unit,
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
        let Self { unit, around, axes, count, room, threads, limit, span, launch } = self;
        let of = around.name();
        let (unit, size) = (if around == Unit::Warp { "lane" } else { unit.name() }, unit.threads().unwrap_or(1));
        let title = match launch {
            _ if around != Unit::Cta => format!("{count} {unit}s are needed, and a {of} has {room}"),
            Some(_) => format!("{count} {unit}s are needed, and the block has {room}"),
            None => format!("{count} {unit}s are needed, and a block has at most {room}"),
        };
        let mut diagnostic =
            Diagnostic::new(Code::TW0602, span, title).note(format!("bound to {unit}s: {}", product(&axes)));
        if let Some(launch) = launch {
            diagnostic = diagnostic.label(launch, format!("the block has {threads} threads"));
        }
        match size.checked_mul(count) {
            _ if around != Unit::Cta => diagnostic.help(format!("split the axis by {room} and bind the inner part")),
            Some(threads) if threads <= limit => {
                let text = format!("write `launch threads({threads});`, or split by at most {room}");
                diagnostic.change(Change::Threads(threads), text)
            }
            _ => diagnostic.help(format!("split the axis so that at most {room} iterations are bound")),
        }
    }
}

/// TW0603: warps or warpgroups in a block that has a part of one.
#[derive(Clone, Debug)]
pub struct ThreadsOfUnits {
    /// Threads of the block.
    pub threads: i128,
    /// What the block must have whole.
    pub unit: Unit,
    /// Its threads.
    pub size: i128,
    /// The `launch` item, or the schedule.
    pub span: Span,
}

impl IntoDiagnostic for ThreadsOfUnits {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { threads, unit, size, span } = self;
        let unit = unit.name();
        let next = threads.div_euclid(size).saturating_add(1).saturating_mul(size);
        Diagnostic::new(Code::TW0603, span, format!("a block of {threads} threads is not made of whole {unit}s"))
            .note(format!("an axis is bound to {unit}s, and a {unit} has {size} threads"))
            .change(Change::Threads(next), format!("write `launch threads({next});`"))
    }
}

/// TW0604: a unit inside one that it is no part of.
#[derive(Clone, Debug)]
pub struct BindOrder {
    /// The axis bound to the larger unit.
    pub outer: String,
    /// The axis bound to the smaller one.
    pub inner: String,
    /// The units, the larger one first.
    pub units: (Unit, Unit),
    /// The `bind` to the smaller one.
    pub span: Span,
    /// The `bind` to the larger one.
    pub other: Span,
}

impl IntoDiagnostic for BindOrder {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { outer, inner, units: (large, small), span, other } = self;
        let (large, small) = (large.name(), small.name());
        let title = format!("`{inner}` is bound to {small}s outside `{outer}`, which is bound to {large}s");
        Diagnostic::new(Code::TW0604, span, title)
            .label(other, format!("a {small} has no {large}s to give out"))
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

/// TW0610: a cluster that has other blocks than the axes that are given to them.
#[derive(Clone, Debug)]
pub struct ClusterBlocks {
    /// The stage.
    pub stage: String,
    /// Its axes that are given to blocks of a cluster, with their extents.
    pub axes: Vec<(String, i128)>,
    /// Their iterations.
    pub blocks: i128,
    /// Blocks of a cluster.
    pub cluster: i128,
    /// Most blocks of a cluster.
    pub limit: i128,
    /// The last `bind`, or the stage.
    pub span: Span,
    /// The item of `launch`, if there is one.
    pub launch: Option<Span>,
}

impl IntoDiagnostic for ClusterBlocks {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axes, blocks, cluster, limit, span, launch } = self;
        let of: Vec<String> = axes.iter().map(|(axis, extent)| format!("`{axis}` {extent}")).collect();
        let title = match (axes.len(), cluster > limit) {
            (_, true) => format!("a cluster has at most {limit} blocks, and {cluster} are needed"),
            (0, _) => format!("the {cluster} blocks of a cluster would each write the same elements of `{stage}`"),
            _ => format!("a cluster has {cluster} blocks, and `{stage}` gives iterations to {blocks}"),
        };
        let diagnostic = Diagnostic::new(Code::TW0610, span, title);
        let diagnostic = match launch {
            Some(launch) => diagnostic.label(launch, format!("clusters of {cluster}")),
            None => diagnostic,
        };
        let diagnostic = match of.is_empty() {
            true => diagnostic.note("no axis of it is given to them"),
            false => diagnostic.note(format!("iterations: {}", of.join(", "))),
        };
        match axes.is_empty() {
            true => diagnostic.help(format!(
                "give them an axis of {cluster} iterations: `split … into {cluster} -> c, …; bind c: cta;`"
            )),
            false => diagnostic.help(match (blocks <= limit, launch) {
                (true, Some(_)) => format!("write `launch cluster({blocks});`, or split the axis into {cluster}"),
                _ => "split the axis into as many as a cluster has blocks".to_owned(),
            }),
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
    pub unit: Unit,
    /// The unit that owns an instance.
    pub owner: Unit,
    /// Whether it is an axis of a reduction.
    pub reduces: bool,
    /// The `bind`.
    pub span: Span,
}

impl IntoDiagnostic for UnitInside {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axis, unit, owner, reduces, span } = self;
        let title = format!(
            "an instance of `{stage}` belongs to one {}, and `{axis}` is given to several {}s",
            owner.name(),
            unit.name()
        );
        let diagnostic = Diagnostic::new(Code::TW0605, span, title)
            .note("the stage stands in the loops of another one, whose units run it");
        let instead = match owner {
            Unit::Thread => format!("leave `{axis}` unbound"),
            _ => format!("leave `{axis}` unbound, or bind it to threads"),
        };
        // A `reduce` of it would have to go, too.
        if !(reduces && unit == Unit::Cta) {
            return diagnostic.change(Change::RemoveOp(span), instead);
        }
        diagnostic
            .note("blocks share the reduction of an instance that belongs to a block")
            .help(instead)
            .help(format!("or leave `per {}` out, so that blocks can share `{axis}`", owner.name()))
    }
}
