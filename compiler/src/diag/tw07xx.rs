//! TW07: dependences, ownership, synchronisation.

use super::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;
use crate::source::ast::ReduceBy;
use tilewright_kernel::ElementType;

/// TW0702: a reduction that nobody scheduled and that its readers would repeat.
#[derive(Clone, Debug)]
pub struct UnscheduledReduction {
    /// The intermediate.
    pub name: String,
    /// The reduction.
    pub span: Span,
    /// The left-hand side.
    pub head: Span,
    /// An output that reads it, with its outermost axis.
    pub reader: Option<(String, String)>,
}

impl IntoDiagnostic for UnscheduledReduction {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { name, span, head, reader } = self;
        let place = reader.map_or_else(|| "…".to_owned(), |(stage, axis)| format!("{stage}.{axis}"));
        Diagnostic::new(Code::TW0702, span, format!("the reduction of `{name}` has no schedule"))
            .label(head, format!("`{name}` is not an output"))
            .note(format!("an intermediate without a schedule is computed at every read, and `{name}` would be reduced again for each"))
            .help(format!("compute it once for its readers: `schedule {name} in registers at {place} {{ … }}`"))
            .change(
                Change::AppendStatement(format!("inline {name};")),
                format!("or write `inline {name};` if repeating it is what you want"),
            )
    }
}

/// TW0703: terms of a reduction given to different threads.
#[derive(Clone, Debug)]
pub struct BoundReduction {
    /// The reduction axis.
    pub axis: String,
    /// Whether it is given to blocks.
    pub blocks: Option<ReduceBy>,
    /// The `bind`.
    pub span: Span,
    /// A `reduce` of it that reaches less far.
    pub reduced: Option<Span>,
}

impl IntoDiagnostic for BoundReduction {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, blocks, span, reduced } = self;
        let unit = if blocks.is_some() { "block" } else { "thread" };
        let diagnostic = Diagnostic::new(
            Code::TW0703,
            span,
            format!("`{axis}` is reduced over, and each {unit} would hold only a part of the result"),
        );
        if let Some(by) = blocks {
            let diagnostic = match reduced {
                Some(op) => diagnostic
                    .label(op, "this combines what the threads of a block have")
                    .help(format!("combine what the blocks have: `reduce {axis} by {by};`")),
                None => diagnostic.change(
                    Change::AppendOp(format!("reduce {axis} by {by}")),
                    format!("combine what the blocks have: `reduce {axis} by {by};`"),
                ),
            };
            return diagnostic.help(format!("or bind `{axis}` to threads, or leave it unbound"));
        }
        diagnostic
            .change(
                Change::AppendOp(format!("reduce {axis}")),
                format!("combine what the threads have: `reduce {axis};`"),
            )
            .change(
                Change::RemoveOp(span),
                format!("leave `{axis}` unbound: each thread then reduces its own elements one after the other"),
            )
    }
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

/// TW0704: a stage that is read where it is not, or nowhere.
#[derive(Clone, Debug)]
pub struct NotAround {
    /// The stage.
    pub stage: String,
    /// Who reads it; empty if nobody does.
    pub reader: String,
    /// Whether that is an output, which stands in no other loop; if nobody does, whether the stage is a copy of one.
    pub is_output: bool,
    /// Why an output that runs at the place would not see it either, if that is so.
    pub unseen: Option<&'static str>,
    /// Where it stands: `y.i`.
    pub place: String,
    /// Its head.
    pub span: Span,
    /// The read.
    pub read: Span,
}

impl IntoDiagnostic for NotAround {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, reader, is_output, unseen, place, span, read } = self;
        if reader.is_empty() {
            let title = format!("nothing inside `{place}` reads `{stage}`");
            return Diagnostic::new(Code::TW0704, span, title).help(match is_output {
                true => "an output is written through a copy by the accelerator only: `via tma`",
                false => "attach it to the stage that reads it",
            });
        }
        Diagnostic::new(
            Code::TW0704,
            span,
            format!("`{stage}` is there only inside `{place}`, and `{reader}` reads it elsewhere"),
        )
        .label(read, "read here")
        .note("an instance of a stage lives for one iteration of the loop that it stands in")
        .help(match (is_output, unseen) {
            (true, Some(why)) => format!(
                "give `{reader}` an intermediate of its own, with the equation of `{stage}`: what stands at `{place}` no other output can read ({why})"
            ),
            (true, None) => format!(
                "let `{reader}` run in the same iterations: `schedule {reader} at {place} {{ … }}`; or give it an intermediate of its own, with the equation of `{stage}`"
            ),
            (false, _) => format!(
                "attach `{stage}` to a loop that is around all its readers, or attach `{reader}` inside `{place}`"
            ),
        })
    }
}

/// TW0706: a place where a stage cannot stand.
#[derive(Clone, Debug)]
pub struct NoInstance {
    /// The stage.
    pub stage: String,
    /// The place, `y.i`, if there is one.
    pub place: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// Places in the same stage where it could stand, as far as loops go.
    pub known: Vec<String>,
    /// What to do, if it is not another place that would mend it.
    pub instead: Option<String>,
    /// The clause, or the head.
    pub span: Span,
}

impl IntoDiagnostic for NoInstance {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, place, problem, known, instead, span } = self;
        let title = match place {
            Some(place) => format!("`{stage}` cannot stand at `{place}`"),
            None => format!("`{stage}` does not say in which loop it stands"),
        };
        let known: Vec<String> = known.iter().map(|place| format!("`at {place}`")).collect();
        Diagnostic::new(Code::TW0706, span, title).note(problem).help(match (instead, known.is_empty()) {
            (Some(instead), _) => instead,
            (None, true) => "attach it to a grid axis or a serial loop of a stage that reads it".to_owned(),
            (None, false) => format!("attach it to a grid axis or a serial loop: {}", known.join(", ")),
        })
    }
}

/// TW0706: a stage that units of a block would come to a different number of times.
#[derive(Clone, Debug)]
pub struct Uneven {
    /// The stage.
    pub stage: String,
    /// The loop around it, `y.j`.
    pub axis: String,
    /// Whether that is a loop of its own.
    pub is_own: bool,
    /// Whether its threads fetch it.
    pub fetches: bool,
    /// The units that differ.
    pub unit: &'static str,
    /// The axis that is given to them, `y.i`.
    pub decides: String,
    /// The head.
    pub span: Span,
}

impl IntoDiagnostic for Uneven {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axis, is_own, fetches, unit, decides, span } = self;
        let verb = if fetches { "fetch" } else { "share" };
        let outside = if is_own { String::new() } else { format!(", or attach `{stage}` outside of `{axis}`") };
        Diagnostic::new(Code::TW0706, span, format!("the threads that {verb} `{stage}` do not all come to it"))
            .note(format!("how often `{axis}` runs depends on `{decides}`, so it differs by {unit}"))
            .note("threads exchange values and wait for each other where all of a block, or of a role, come")
            .help(format!("bind `{decides}` to blocks{outside}"))
    }
}

/// TW0709: a stage without memory, or in global memory for all blocks, which would wait for each other.
#[derive(Clone, Debug)]
pub struct NoPlace {
    /// The stage.
    pub stage: String,
    /// Whether it says `in global`, and in no loop.
    pub is_global: bool,
    /// The clause, or the head.
    pub span: Span,
}

impl IntoDiagnostic for NoPlace {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, is_global, span } = self;
        if is_global {
            return Diagnostic::new(
                Code::TW0709,
                span,
                format!("`{stage}` would be read by blocks that did not write it"),
            )
            .note("blocks of one launch do not wait for each other: a tensor in device memory ends the kernel")
            .help(format!(
                "say in which loop a block computes and reads it: `in global at …`; or make `{stage}` an output and read it in the next kernel"
            ));
        }
        Diagnostic::new(Code::TW0709, span, format!("`{stage}` has no memory"))
            .help("say where it is: `in registers at …`, `in shared at …` or `in global at …`")
    }
}

/// TW0710: a model that has nothing in common, or is none.
#[derive(Clone, Debug)]
pub struct NothingAlike {
    /// The stage.
    pub stage: String,
    /// Its model.
    pub other: String,
    /// The stages that can be models; empty if it is one without a common axis.
    pub known: Vec<String>,
    /// The op.
    pub span: Span,
}

impl IntoDiagnostic for NothingAlike {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, other, known, span } = self;
        if known.is_empty() {
            return Diagnostic::new(
                Code::TW0710,
                span,
                format!("no axis of `{stage}` corresponds to one of `{other}`"),
            )
            .note("axes correspond that index the same dimension of a tensor")
            .help("write the ops out");
        }
        Diagnostic::new(Code::TW0710, span, format!("`{other}` cannot be a model for `{stage}`"))
            .note("a model is a stage with loops of its own that is computed later: the reader, or another reader's model")
            .help(format!("`like {}`", known.join("` or `like ")))
    }
}

/// A thread that reads what another one holds.
#[derive(Clone, Debug)]
pub struct ThreadWitness {
    /// The sizes, and the loops around.
    pub dims: Vec<(String, i128)>,
    /// Indices of the element.
    pub element: Vec<i128>,
    /// The thread that reads it, by its number in the cluster.
    pub reads: i128,
    /// A thread that holds it.
    pub holds: i128,
    /// Threads of a block, if a cluster has several.
    pub block: Option<i128>,
}

/// TW0707: a register read by a thread that does not hold it.
#[derive(Clone, Debug)]
pub struct HeldElsewhere {
    /// The stage in registers.
    pub stage: String,
    /// Its reader.
    pub reader: String,
    /// The smallest case; none if it could not be decided.
    pub witness: Option<ThreadWitness>,
    /// The read.
    pub read: Span,
    /// The head of the stage.
    pub span: Span,
}

impl IntoDiagnostic for HeldElsewhere {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, reader, witness, read, span } = self;
        let title = match &witness {
            Some(_) => format!("`{reader}` reads registers of `{stage}` that other threads hold"),
            None => format!("could not prove that the threads of `{reader}` hold what they read of `{stage}`"),
        };
        let diagnostic = Diagnostic::new(Code::TW0707, span, title).label(read, "read here");
        let diagnostic = match witness {
            Some(ThreadWitness { dims, element, reads, holds, block }) => {
                let thread = |n: i128| match block {
                    Some(threads) => format!("thread {} of block {}", n % threads, n / threads),
                    None => format!("thread {n}"),
                };
                let dims: Vec<String> = dims.iter().map(|(name, v)| format!("{name} = {v}")).collect();
                let element: Vec<String> = element.iter().map(i128::to_string).collect();
                let case = if dims.is_empty() { String::new() } else { format!("{}: ", dims.join(", ")) };
                diagnostic.note(format!(
                    "counterexample: {case}{} reads {stage}[{}], which {} holds",
                    thread(reads),
                    element.join(", "),
                    thread(holds)
                ))
            }
            None => diagnostic,
        };
        diagnostic
            .help(format!("distribute both alike: `like {reader}` in the schedule of `{stage}`"))
            .help(format!("or keep `{stage}` where every thread of the block can read it: `in shared`"))
    }
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
            _ => diagnostic.help(format!("distribute both alike: `like {reader}`, or keep `{stage}` `in shared`")),
        }
    }
}

/// TW0708: a `reduce` of an axis that no unit shares.
#[derive(Clone, Debug)]
pub struct NothingToCombine {
    /// The axis.
    pub axis: String,
    /// What is wrong.
    pub problem: CombineProblem,
    /// The op.
    pub span: Span,
}

/// What is wrong with a `reduce`.
#[derive(Clone, Debug)]
pub enum CombineProblem {
    /// It is an axis of the result.
    Data,
    /// One thread takes all its terms.
    Unbound,
    /// It says `by grid`, `by atomic` or `by cluster`, and is not given to such blocks.
    NotOfBlocks(ReduceBy),
    /// Some axes are combined `by grid`, and others `by atomic`.
    TwoWays,
    /// Atomic operations on memory do not do that.
    NotAtomic {
        /// What is reduced.
        what: &'static str,
        /// The type, if it is one.
        element: Option<ElementType>,
    },
    /// It says `by warp`, and is run by more than the lanes of one.
    BeyondWarp,
    /// The terms are taken in order.
    Ordered,
    /// A fold without `merge`.
    NoMerge,
}

impl IntoDiagnostic for NothingToCombine {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { axis, problem, span } = self;
        let (title, help) = match problem {
            CombineProblem::Data => (
                format!("`{axis}` is an axis of the result, and nothing is combined along it"),
                "name an axis that the reduction runs over".to_owned(),
            ),
            CombineProblem::Unbound => (
                format!("one thread takes all terms along `{axis}`"),
                format!(
                    "give it, or a part that `split` makes of it, to threads: `bind {axis}: thread;`; or remove the `reduce`"
                ),
            ),
            CombineProblem::TwoWays => (
                "blocks combine their parts of one result either `by grid` or `by atomic`".to_owned(),
                "write the same for all axes that blocks share".to_owned(),
            ),
            CombineProblem::NotAtomic { what, element } => (
                match element {
                    Some(element) => format!("atomic operations on memory do not combine a {what} of `{element}`"),
                    None => format!("atomic operations on memory do not combine a {what}"),
                },
                format!("write `reduce {axis} by grid;`, which combines everything that threads do"),
            ),
            CombineProblem::NotOfBlocks(by) => {
                let unit = if by == ReduceBy::Cluster { "cta" } else { "grid" };
                (
                    format!("no blocks share `{axis}`"),
                    format!(
                        "give it, or a part that `split` makes of it, to blocks: `bind {axis}: {unit};`; or leave `by {by}` out"
                    ),
                )
            }
            CombineProblem::BeyondWarp => (
                format!("the threads along `{axis}` are not always lanes of one warp"),
                "leave `by warp` out: parts of warps are combined in shared memory".to_owned(),
            ),
            CombineProblem::Ordered => (
                format!("the terms along `{axis}` are taken in order, one after the other"),
                "remove `ordered`, or leave the axis unbound".to_owned(),
            ),
            CombineProblem::NoMerge => (
                format!("parts of this `fold` along `{axis}` cannot be combined: it has no `merge`"),
                "add `merge (p, q) => …`, or leave the axis unbound".to_owned(),
            ),
        };
        Diagnostic::new(Code::TW0708, span, title).help(help)
    }
}

/// TW0712: an output that is to run in the loops of another one, and has others.
#[derive(Clone, Debug)]
pub struct OtherIterations {
    /// The output.
    pub stage: String,
    /// The other one.
    pub other: String,
    /// The place, `y.b`.
    pub place: String,
    /// The loops of the other one around the place: name, unit, iterations.
    pub theirs: Vec<(String, &'static str, String)>,
    /// Its own first ones, as many as there are.
    pub ours: Vec<(String, &'static str, String)>,
    /// The clause.
    pub span: Span,
}

impl IntoDiagnostic for OtherIterations {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, other, place, theirs, ours, span } = self;
        let list = |list: &[(String, &'static str, String)]| {
            let one = |(name, unit, extent): &(String, &str, String)| format!("`{name}` ({unit}, {extent} iterations)");
            if list.is_empty() { "none".to_owned() } else { list.iter().map(one).collect::<Vec<_>>().join(", ") }
        };
        Diagnostic::new(Code::TW0712, span, format!("`{stage}` does not run in the iterations of `{place}`"))
            .note(format!("around `{place}`: {}; outermost of `{stage}`: {}", list(&theirs), list(&ours)))
            .note("each iteration of these loops is one of both outputs: they are as many, in one order, bound alike, and of equal length")
            .help(format!("begin with `like {other};`, which repeats its ops on the axes that both index alike"))
            .help(format!("or give `{stage}` loops of its own: leave `at {place}` out"))
    }
}

/// TW0713: `region` asks for what the reads do not give, or stands where there is none.
#[derive(Clone, Debug)]
pub struct NoSuchRegion {
    /// The stage.
    pub stage: String,
    /// What is wrong.
    pub problem: &'static str,
    /// What to write instead.
    pub help: Option<&'static str>,
    /// The op.
    pub span: Span,
}

impl NoSuchRegion {
    /// What is wrong where a stage has no region, or has one already.
    pub const NOT_FIRST: &'static str = "`region` is the first op of a stage in a loop of another one, which threads compute: later ops are about its axes";
}

impl IntoDiagnostic for NoSuchRegion {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, problem, help, span } = self;
        let head = format!("`{stage}` cannot have this region");
        let diagnostic = Diagnostic::new(Code::TW0713, span, head).note(problem);
        match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}
