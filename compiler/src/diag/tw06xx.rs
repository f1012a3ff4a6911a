//! TW06: collectives: which threads run what.

use super::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::collectives::{self, LoopFault, ThreadSet, UnitFault, UnitProblem};
use crate::domain::{Unit, WARP};
use crate::source::Span;

fn product(axes: &[(String, i128)]) -> String {
    axes.iter().map(|(name, n)| format!("`{name}` {n}")).collect::<Vec<_>>().join(" × ")
}

/// A product of extents, which may be beyond all numbers that were counted in.
fn amount(n: i128) -> String {
    if n >= i128::from(u64::MAX) { format!("more than {}", i64::MAX) } else { n.to_string() }
}

/// `the block`, or the role whose threads it is about.
fn whole(role: Option<&String>) -> String {
    role.map_or_else(|| "the block".to_owned(), |role| format!("role `{role}`"))
}

/// Who is around a unit that has no place there.
#[derive(Clone, Debug)]
pub struct Around {
    /// The threads that run what is around it, the first time.
    pub threads: ThreadSet,
    /// The loop that left only these: its axis, what that is bound to, and the `bind`.
    pub narrowed_by: Option<(String, String, Span)>,
}

impl Around {
    /// Says who would run it, and points at the loop.
    fn say(around: Option<Self>, diagnostic: Diagnostic) -> Diagnostic {
        let Some(Self { threads, narrowed_by }) = around else { return diagnostic };
        let who = match threads.count() {
            1 => format!("thread {threads} alone runs"),
            count => format!("{count} threads run"),
        };
        let set = if threads.count() == 1 { String::new() } else { format!(": {threads}") };
        let diagnostic = diagnostic.note(format!("{who} the first iteration around it{set}"));
        match narrowed_by {
            Some((axis, unit, span)) => diagnostic.label(span, format!("`{axis}` leaves these: one `{unit}` of all")),
            None => diagnostic,
        }
    }
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
        let Self { stage, group, threads, unit, bound, data, others, span, role } = self;
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
    pub unit: String,
    /// Its threads, if they are as many in every block.
    pub size: Option<i128>,
    /// Whose parts these are; those of the block if none.
    pub of: Option<String>,
    /// Who is around, if loops are.
    pub around: Option<Around>,
    /// The bound axes with their extents.
    pub axes: Assignment,
    /// Product of the extents, or the end of a range that has room for them.
    pub count: i128,
    /// Of such a range, how many units it has, and of what, as it is written.
    pub range: Option<(i128, String)>,
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
    /// The role whose threads they are, instead of those of the block.
    pub role: Option<String>,
}

impl IntoDiagnostic for TooManyThreads {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { unit, size, of, around, axes, count, range, room, threads, limit, span, launch, role } = self;
        let whole = whole(role.as_ref());
        let is_word = matches!(unit.as_str(), "lane" | "thread" | "warp" | "warpgroup");
        let (needed, bound) = match is_word {
            _ if range.is_some() => (format!("`{unit}` ends at {}", amount(count)), format!("`{unit}`")),
            true => (format!("{} {unit}s are needed", amount(count)), format!("{unit}s")),
            false => (format!("{} of `{unit}` are needed", amount(count)), format!("`{unit}`")),
        };
        let title = match (&of, launch) {
            (Some(of), _) => format!("{needed}, and a {of} has {room}"),
            (None, Some(_)) => format!("{needed}, and {whole} has {room}"),
            (None, None) => format!("{needed}, and a block has at most {room}"),
        };
        let mut diagnostic =
            Diagnostic::new(Code::TW0602, span, title).note(format!("bound to {bound}: {}", product(&axes)));
        diagnostic = Around::say(around, diagnostic);
        if let Some(launch) = launch {
            diagnostic = diagnostic.label(launch, format!("{whole} has {threads} threads"));
        }
        if let Some((length, of)) = range.filter(|_| room > 0) {
            return diagnostic.help(match room - length {
                first @ 0.. => format!("the last {length} that there are: `{of} {first}..{room}`"),
                _ => format!("split the axis by {room} at most and bind the inner part to `{of}`"),
            });
        }
        match size.and_then(|size| size.checked_mul(count)) {
            _ if room == 0 => diagnostic.help(format!("bind the axis to smaller units than {bound}")),
            _ if of.is_some() || !is_word => {
                diagnostic.help(format!("split the axis by {room} and bind the inner part"))
            }
            _ if role.is_some() => {
                diagnostic.help(format!("give {whole} more warps, or split the axis by at most {room}"))
            }
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
    /// The role whose threads they are, instead of those of the block.
    pub role: Option<String>,
}

impl IntoDiagnostic for ThreadsOfUnits {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { threads, unit, size, span, role } = self;
        let unit = unit.name();
        let next = threads.div_euclid(size).saturating_add(1).saturating_mul(size);
        if let Some(role) = role {
            let title = format!("role `{role}` of {threads} threads is not made of whole {unit}s");
            return Diagnostic::new(Code::TW0603, span, title)
                .note(format!("an axis is bound to {unit}s, and a {unit} has {size} threads"))
                .help(format!("give it {} warps", next / 32));
        }
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
    pub units: (String, String),
    /// The `bind` to the smaller one.
    pub span: Span,
    /// The `bind` to the larger one.
    pub other: Span,
}

impl IntoDiagnostic for BindOrder {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { outer, inner, units: (large, small), span, other } = self;
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
    /// The role whose threads they are, instead of those of the block.
    pub role: Option<String>,
}

impl IntoDiagnostic for IdleThreads {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, busy, threads, needed, span, role } = self;
        let idle = threads - busy;
        let bind = "bind as many iterations as there are threads";
        let diagnostic = Diagnostic::new(
            Code::TW0690,
            span,
            match &role {
                Some(role) => format!("{idle} of {threads} threads of role `{role}` are idle in `{stage}`"),
                None => format!("{idle} of {threads} threads of each block are idle in `{stage}`"),
            },
        );
        let silence = "or silence this with `#[allow(TW0690)]` before the kernel";
        let warps = needed.div_euclid(WARP) + (needed % WARP).min(1);
        match role {
            Some(role) if warps * WARP < threads => {
                let all = if warps == 1 { "warp".to_owned() } else { format!("{warps} warp") };
                diagnostic.help(format!("{bind}, or write `{role}: {all}`"))
            }
            None if needed < threads => {
                let text = format!("{bind}, or write `launch threads({needed});`");
                diagnostic.change(Change::Threads(needed), text)
            }
            _ => diagnostic.help(format!("{bind}, {silence}")),
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
    /// Whether clusters have so many, and as many as there are iterations.
    pub exists: (bool, bool),
    /// The last `bind`, or the stage.
    pub span: Span,
    /// The item of `launch`, if there is one.
    pub launch: Option<Span>,
}

impl IntoDiagnostic for ClusterBlocks {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axes, blocks, cluster, exists: (exists, fits), span, launch } = self;
        let of: Vec<String> = axes.iter().map(|(axis, extent)| format!("`{axis}` {extent}")).collect();
        let title = match (axes.len(), exists) {
            (_, false) => format!("a cluster has 1, 2, 4 or 8 blocks, and {} are needed", amount(cluster)),
            (0, _) => format!("the {cluster} blocks of a cluster would each write the same elements of `{stage}`"),
            _ => format!("a cluster has {cluster} blocks, and `{stage}` gives iterations to {}", amount(blocks)),
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
            true if !exists => diagnostic.help("write `launch cluster(…);` with one of these"),
            true => diagnostic.help(format!(
                "give them an axis of {cluster} iterations: `split … into {cluster} -> c, …; bind c: cta;`"
            )),
            false => diagnostic.help(match launch {
                Some(_) if fits => format!("write `launch cluster({blocks});`, or split the axis into {cluster}"),
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
    /// Whether the stage is in memory, where no instance belongs to the cluster.
    pub in_memory: bool,
    /// The `bind`.
    pub span: Span,
}

impl IntoDiagnostic for UnitInside {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axis, unit, owner, reduces, in_memory, span } = self;
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
        let shared = match in_memory {
            true => format!("or place it `in registers` around the axis of the blocks, where they can share `{axis}`"),
            false => format!("or leave `per {}` out, so that blocks can share `{axis}`", owner.name()),
        };
        diagnostic.note("blocks share the reduction of an instance that belongs to a block").help(instead).help(shared)
    }
}

/// TW0606: a unit that the kernel, the launch or the threads around do not have.
#[derive(Clone, Debug)]
pub struct MisplacedUnit {
    /// The unit.
    pub unit: String,
    /// The axis that is bound to it, if it is about a `bind`.
    pub axis: Option<String>,
    /// What is wrong.
    pub problem: UnitMisfit,
    /// Threads of the block, where that matters.
    pub threads: i128,
    /// The `bind`, or the definition.
    pub span: Span,
    /// The role whose threads they are, instead of those of the block.
    pub role: Option<String>,
    /// Who is around, if loops are.
    pub around: Option<Around>,
    /// Where no launch of this shape has the unit, the nearest one that has it: blocks of a cluster and threads of a
    /// block.
    pub possible: Option<(u64, u64)>,
}

/// What is wrong with a unit.
#[derive(Clone, Debug)]
pub enum UnitMisfit {
    /// A name that the machine's units have, or another one of the kernel, which stands there.
    Taken(Option<Span>),
    /// Lists of different lengths.
    Lengths {
        /// Extents.
        domain: usize,
        /// Boxes.
        shape: usize,
    },
    /// An entry that is not made of numbers, `block` and `cluster`.
    Entry,
    /// It cannot be taken from the threads around.
    Loop(LoopFault),
    /// The threads are known, and no digits of a thread's number tell their iterations apart.
    NoForm,
    /// Threads that have the same iterations lie apart.
    Alike {
        /// How many there are.
        group: i128,
    },
}

impl IntoDiagnostic for MisplacedUnit {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { unit, axis, problem, threads, span, role, around, possible } = self;
        let new = |title: String| Diagnostic::new(Code::TW0606, span, title);
        let bound = axis.map_or_else(String::new, |axis| format!("`{axis}` cannot be given to `{unit}`: "));
        let fault = match problem {
            UnitMisfit::Taken(None) => {
                return new(format!("`{unit}` is a unit of the machine")).help("choose another name");
            }
            UnitMisfit::Taken(Some(first)) => {
                let diagnostic = new(format!("`{unit}` is defined twice")).label(first, "the first one");
                return diagnostic.help("remove one of them");
            }
            UnitMisfit::Lengths { domain, shape } => {
                return new(format!("`{unit}` has {domain} extents and {shape} boxes"))
                    .note("a box says how much of one extent a unit has")
                    .help("give `domain` and `box` the same length");
            }
            UnitMisfit::Entry => {
                return new(format!("an entry of `{unit}` is no size of a launch"))
                    .note("sizes are products and quotients of numbers, `block` and `cluster`, like `block / 32`")
                    .help("write the entry with these");
            }
            UnitMisfit::NoForm => {
                return Around::say(
                    around,
                    new(format!("{bound}no digits of a thread's number tell the iterations apart")),
                )
                .note("the threads of an iteration end inside a group of threads that the unit takes apart")
                .help("bind an axis around it to units that are whole groups");
            }
            UnitMisfit::Alike { group } => {
                return new(format!(
                    "{group} threads of `{unit}` have the same iterations, and nothing tells them apart"
                ))
                .note("what threads have alike is kept by neighbours only")
                .help("bind an axis inside it: `bind …: thread;`");
            }
            UnitMisfit::Loop(fault) => fault,
        };
        let block = format!("{} has {threads} threads", whole(role.as_ref()));
        let launch = match (&role, possible) {
            (_, None) => "correct the definition: no launch has such a unit".to_owned(),
            (Some(role), Some((_, threads))) => {
                let warps = threads.div_ceil(collectives::WARP);
                format!("correct the definition, or give role `{role}` other warps: with {warps} it exists")
            }
            (None, Some((1, threads))) => {
                format!("correct the definition, or write `launch threads({threads});`, which has it")
            }
            (None, Some((cluster, threads))) => format!(
                "correct the definition, or write `launch cluster({cluster}), threads({threads});`, which has it"
            ),
        };
        let found = match fault {
            LoopFault::Unit(UnitFault { problem, dimension, .. }) => {
                let at = dimension.map_or_else(String::new, |at| format!("entry {at} of "));
                match problem {
                    UnitProblem::Box { size, extent } => new(format!("{bound}{at}its box is {size} of {extent}"))
                        .note(format!("a box is at least 1 and at most its extent; {block}"))
                        .help(launch),
                    UnitProblem::Product { product, threads } => {
                        new(format!("{bound}extents of {product} threads do not divide {threads}"))
                            .note(format!("the domain of a unit repeats in all threads; {block}"))
                            .help(launch)
                    }
                    _ => new(format!("{bound}{at}its sizes are no whole numbers")).note(block).help(launch),
                }
            }
            LoopFault::Ambiguous { pitches, neighbours } => {
                let steps = pitches.iter().map(u64::to_string).collect::<Vec<_>>().join(" and ");
                match neighbours {
                    None => {
                        new(format!("{bound}it narrows the threads around in {} directions", pitches.len()))
                            .note(format!("the directions are those of steps of {steps} threads"))
                            .help("bind an axis around it to units that narrow one of them first")
                    }
                    Some(n) => new(format!("{bound}its domain counts these {n} neighbours along {} extents", pitches.len()))
                        .note(format!("neighbours along these extents are {steps} threads apart; iterations follow each other along one"))
                        .help(format!("bind it to `{n} thread`, which counts them along one")),
                }
            }
            LoopFault::Already { asked, .. } => new(format!("{bound}{asked} of them are needed, and one is around"))
                .help("bind an axis around it to larger units, or this one to smaller ones"),
            LoopFault::NotABox { threads, extents, .. } => {
                let extents = extents.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ");
                new(format!("{bound}threads {threads} are no box of its domain"))
                    .note(format!("together with the units around it sees the block as {extents} threads"))
                    .help("bind an axis around it to units that are whole groups of it")
            }
            LoopFault::Pitches { large, small } => {
                new(format!("{bound}groups of {large} and groups of {small} threads do not nest"))
                    .note("of two group sizes one has to divide the other")
                    .help("bind the axis to units of another size")
            }
            LoopFault::Uneven { part, pitch } => new(format!("{bound}{part} threads end inside a group of {pitch}"))
                .note("a unit around takes groups of that size apart")
                .help("bind the axis to whole groups"),
            LoopFault::TooMany { asked, most } => new(format!("{bound}{asked} are needed, and there are {most}"))
                .help(format!("split the axis by {most} and bind the inner part")),
            LoopFault::Range { .. } => {
                new(format!("{bound}there is no unit in the range")).help("give the range a unit")
            }
        };
        Around::say(around, found)
    }
}
