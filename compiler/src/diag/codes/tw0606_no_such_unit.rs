//! TW0606: a unit that the launch or the threads around do not have.

use crate::collectives::{self, LoopFault, UnitFault, UnitProblem};
use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::whole;
use crate::source::Span;
use super::Around;

row! {
    /// `unit NAME { domain: […], box: […] }` lays the threads of a block out, the last extent fastest, and says how
    /// much of each extent one unit has. Entries are products and quotients of numbers, `block` and `cluster`, and are
    /// whole numbers for the block of the launch. The extents of a domain multiply to a number that divides the
    /// threads; the domain repeats in them.
    ///
    /// A bind takes units from the threads around it, along one direction. A unit that would narrow two directions at
    /// once, or that ends inside a group of threads that a unit around takes apart, cannot be taken.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     launch threads(256);
    ///     unit quad { domain: [block / 16, 16], box: [2, 4] }
    ///     schedule y {
    ///         split i by 8 -> b, q;
    ///         split j by 8 -> r, t;
    ///         bind b: grid;
    ///         bind q: quad;
    ///         bind t: thread;
    ///     }
    /// }
    /// ```
    ///
    /// Two groups of four threads, sixteen apart: a block has them in two directions.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     launch threads(256);
    ///     unit column { domain: [block / 32, 32], box: [block / 32, 1] }
    ///     schedule y {
    ///         split i by 8 -> b, w;
    ///         split j by 32 -> r, l;
    ///         reorder b, r, l, w;
    ///         bind b: grid;
    ///         bind l: column;
    ///         bind w: warp;
    ///     }
    /// }
    /// ```
    ///
    /// A column has one lane of each warp, and its threads are told apart by warps.
    TW0606 "no-such-unit" Error "a unit that the launch or the threads around do not have"
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
    #[expect(clippy::too_many_lines, reason = "one arm a fault")]
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
