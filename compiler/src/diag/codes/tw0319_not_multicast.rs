//! TW0319: a copy that blocks of a cluster do not take together.

use crate::diag::{Assignment, Change, Code, Diagnostic, IntoDiagnostic};
use crate::diag::words::prefix;
use crate::source::Span;

row! {
    /// `multicast S.AXIS by s` lets the blocks of a cluster that differ along `AXIS` share each instance of a copy:
    /// each of them fetches one box along `s` and delivers it to all. So these blocks must read the same elements:
    /// where an instance starts must not depend on `AXIS`. There must be as many boxes as blocks, and all blocks must
    /// come to each instance. Copies to tensors have no other readers.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Outer(a: f32[M], b: f32[N]) -> (c: f32[M, N]) where N % 4 == 0 {
    ///     c[i, j] = a[i] * b[j];
    ///     launch cluster(2), threads(64);
    ///     schedule c {
    ///         split j by 128 -> jo, j1;
    ///         split j1 by 64 -> jc, t;
    ///         bind i, jo: grid;
    ///         bind jc: cta;
    ///         bind t: thread;
    ///     }
    ///     stage bs[j] = b in shared at c.jc via tma { multicast c.jc; }
    /// }
    /// ```
    ///
    /// Block 0 reads `b` from 0 on, and block 1 from 64 on: nothing that one fetches is of use to the other.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Outer(a: f32[M], b: f32[N]) -> (c: f32[M, N]) where N % 4 == 0 {
    ///     c[i, j] = a[i] * b[j];
    ///     launch cluster(2), threads(64);
    ///     schedule c {
    ///         split i by 2 -> io, ic;
    ///         split j by 64 -> jo, t;
    ///         reorder io, jo, ic, t;
    ///         bind io, jo: grid;
    ///         bind ic: cta;
    ///         bind t: thread;
    ///     }
    ///     stage bs[j] = b in shared at c.ic via tma {
    ///         box j by 32 -> jb, jj;
    ///         multicast c.ic by jb;
    ///     }
    /// }
    /// ```
    ///
    /// Both blocks read the same 64 elements, and each fetches 32 of them. Without `by`, the first block fetches all.
    TW0319 "not-multicast" Error "a copy that blocks of a cluster do not take together"
}

/// Sizes, and two blocks with where their instances start.
#[derive(Clone, Debug)]
pub struct Differing {
    /// Sizes.
    pub dims: Assignment,
    /// The number of each along the axis of the cluster, and where its instance starts.
    pub blocks: [(i128, i128); 2],
}

/// Why not.
#[derive(Clone, Debug)]
pub enum MulticastProblem {
    /// No axis of that name is given to the blocks of a cluster around the copy; these are.
    NoAxis {
        /// What was named.
        axis: String,
        /// What there is.
        possible: Vec<String>,
    },
    /// A copy to a tensor.
    Store,
    /// The blocks do not come to as many instances.
    Uneven {
        /// The loop.
        axis: String,
        /// Its iterations.
        extent: String,
    },
    /// The blocks hold different elements.
    Differs {
        /// The axis of the copy.
        axis: String,
        /// Where an instance starts along it.
        start: String,
        /// The axis of the cluster.
        cluster: String,
        /// Two blocks that differ.
        witness: Option<Differing>,
    },
    /// Nothing of this name counts the boxes of an axis; these do.
    NoSlices {
        /// What was named.
        by: String,
        /// What there is.
        possible: Vec<String>,
    },
    /// Other slices than blocks.
    Slices {
        /// The axis.
        by: String,
        /// Its slices.
        slices: i128,
        /// What an instance holds along it.
        elements: i128,
        /// Blocks.
        blocks: i128,
        /// Whether it has boxes.
        boxed: bool,
        /// A box that makes as many slices.
        fix: Option<i128>,
        /// The axis of the cluster.
        cluster: String,
    },
}

/// TW0319: a `multicast` that blocks of a cluster cannot take part in.
#[derive(Clone, Debug)]
pub struct NotMulticast {
    /// The copy.
    pub copy: String,
    /// What is wrong.
    pub problem: MulticastProblem,
    /// The op.
    pub span: Span,
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl IntoDiagnostic for NotMulticast {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, problem, span } = self;
        let new = |title: String| Diagnostic::new(Code::TW0319, span, title);
        let remove = "remove `multicast`: then each block copies for itself";
        match problem {
            MulticastProblem::NoAxis { axis, possible } => {
                let diagnostic = new(format!("`{axis}` is given to no blocks of a cluster around `{copy}`"));
                match possible.is_empty() {
                    true => {
                        diagnostic.note("no axis around it is bound to `cta`").change(Change::RemoveOp(span), remove)
                    }
                    false => diagnostic.help(format!("axes that are: {}", list(&possible))),
                }
            }
            MulticastProblem::Store => new(format!("`{copy}` is a copy to a tensor, which no other block holds"))
                .note("what `multicast` delivers comes from a tensor")
                .change(Change::RemoveOp(span), "remove `multicast`"),
            MulticastProblem::Uneven { axis, extent } => {
                new(format!("the blocks of a cluster come to different numbers of instances of `{copy}`"))
                    .note(format!("the loop `{axis}` has {extent} iterations, which depends on the block"))
                    .note("a slot is filled again once all blocks have read it, for which they wait for each other")
                    .change(Change::RemoveOp(span), remove)
            }
            MulticastProblem::Differs { axis, start, cluster, witness } => {
                let title = match witness {
                    Some(_) => format!("blocks along `{cluster}` read different elements of `{copy}`"),
                    None => format!("could not prove that blocks along `{cluster}` read the same elements of `{copy}`"),
                };
                let diagnostic = new(title).note(format!("along `{axis}` an instance starts at {start}"));
                let diagnostic = match witness {
                    Some(Differing { dims, blocks: [(a, from_a), (b, from_b)] }) => diagnostic.counterexample(format!(
                        "{}block {a} along `{cluster}` reads `{axis}` from {from_a} on, and block {b} from {from_b} on",
                        prefix(&dims)
                    )),
                    None => diagnostic,
                };
                diagnostic
                    .change(Change::RemoveOp(span), remove)
                    .help("or give the blocks of the cluster an axis that the copy does not depend on")
            }
            MulticastProblem::NoSlices { by, possible } => {
                let diagnostic = new(format!("`{by}` counts no boxes of one axis of `{copy}`"))
                    .note("each block copies one slice for all of them: one box along an axis");
                match possible.is_empty() {
                    true => diagnostic.help(
                        "box an axis: `box … by … -> s, r;`, and say `by s`; or leave `by` out: one block copies all",
                    ),
                    false => diagnostic.help(format!("these do: {}", list(&possible))),
                }
            }
            MulticastProblem::Slices { by, slices, elements, blocks, boxed, fix, cluster } => {
                let counted = |n: i128, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
                let made = match boxed {
                    true => format!("makes {} of {elements} elements", counted(slices, "slice")),
                    false => format!("has {}, and no boxes", counted(elements, "element")),
                };
                let diagnostic = new(format!("{blocks} blocks along `{cluster}` share `{copy}`, and `{by}` {made}"))
                    .note("each block copies one slice for all of them");
                match (fix, boxed) {
                    (Some(each), true) => diagnostic.help(format!("box `{by}` by {each}")),
                    (Some(each), false) => {
                        diagnostic.help(format!("write `box {by} by {each} -> s, r;`, and `multicast {cluster} by s;`"))
                    }
                    (None, _) => diagnostic.help(format!(
                        "slice an axis with a multiple of {blocks} elements, or leave `by` out: one block copies all"
                    )),
                }
            }
        }
    }
}
