//! TW0491: neighbouring threads that access global memory far apart.

use crate::diag::{Assignment, Change, Code, Diagnostic, IntoDiagnostic, assignment};
use crate::source::Span;

row! {
    /// A warning: the kernel is right, but what the threads of a warp access together lies in more sectors of global
    /// memory than it has to. Memory is moved in sectors of 32 bytes, whole ones: 32 threads that read 4 neighbouring
    /// bytes each need 4 sectors, and up to 32 where their elements lie apart. Counted are the accesses of the first
    /// warps in the first iterations, for the sizes that the message names, as the emulator counts them. Less than
    /// three times as many as needed are let pass. An index that is read from memory is taken to be the same for all
    /// threads.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 4 -> io, v; split io by 256 -> b, t; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// Thread `t` accesses the elements `4·t` to `4·t + 3`, one after the other: neighbours are 16 bytes apart.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[N]) -> (y: f32[N]) {
    ///     y[i] = 2.0 * x[i];
    ///     schedule y { split i by 256 -> io, t; split io by 4 -> b, v; bind b: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - `vectorize v`, where a fact says that vectors are whole: a thread then accesses all of its 16 bytes at once.
    /// - Where one tensor is read along rows and another written along columns, no order of threads is right for both:
    ///   put a tile in shared memory (`stage … in shared`), as the example `tiled_transpose` does.
    /// - Where a thread sums up a row, give the row to a warp or a block: bind the axis of the sum, and `reduce` it.
    /// - Keep it and write `#[allow(TW0491)]` before the kernel: what one access leaves of a sector, the next one may
    ///   still find in a cache.
    TW0491 "scattered-access" Warning "accesses of global memory that touch more sectors than they need"
}

/// What makes accesses touch fewer sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gather {
    /// Nothing that is known.
    None,
    /// Two splits, each with what it becomes: the axis of the threads changes places with a loop inside of it.
    Innermost {
        /// The splits, first the one that is written first.
        splits: [(Span, String); 2],
        /// The axis of the threads.
        threads: String,
    },
    /// A merge, and what it becomes: its last axis is the one along which elements are neighbours.
    Merge(Span, String),
    /// Give neighbouring threads neighbours along this axis, of elements or of terms.
    Along {
        /// The axis.
        axis: String,
        /// Whether a reduction is over it.
        of_terms: bool,
    },
    /// The same, where a row of neighbours is shorter than a warp.
    Few {
        /// The axis.
        axis: String,
        /// Its length.
        extent: i128,
    },
    /// A tile in shared memory: something else wants the threads as they are.
    Tile,
    /// Vectors along this axis that are read lane by lane.
    ByLane(String),
}

/// TW0491: accesses that touch more sectors than they need.
#[derive(Clone, Debug)]
pub struct ScatteredAccess {
    /// The stage.
    pub stage: String,
    /// The tensor of the first access.
    pub tensor: String,
    /// Whether it writes.
    pub is_write: bool,
    /// Sectors of an access, and the least number for as many bytes.
    pub sectors: (u64, u64),
    /// How far the elements of the first two threads lie apart, in bytes, if both access one.
    pub apart: Option<u64>,
    /// Whether an index is read from memory.
    pub by_data: bool,
    /// The sizes that this was counted for.
    pub sizes: Assignment,
    /// What touches fewer.
    pub remedy: Gather,
    /// The access.
    pub span: Span,
    /// Other accesses of the stage that are alike, with their tensors and sectors.
    pub also: Vec<(Span, String, u64)>,
}

impl IntoDiagnostic for ScatteredAccess {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, tensor, is_write, sectors: (touched, least), apart, by_data, sizes, remedy, span, also } = self;
        let done = if is_write { "writing" } else { "reading" };
        let title = format!("a warp of `{stage}` touches {touched} sectors {done} `{tensor}` where {least} would do");
        let mut diagnostic = Diagnostic::new(Code::TW0491, span, title);
        for (span, tensor, touched) in also {
            diagnostic = diagnostic.label(span, format!("{touched} sectors of `{tensor}`"));
        }
        let apart = apart.map_or_else(String::new, |bytes| format!("the elements of neighbouring threads lie {bytes} bytes apart; "));
        let mut diagnostic = diagnostic.note(format!("{apart}global memory is moved in sectors of 32 bytes"));
        if by_data {
            diagnostic = diagnostic.note("an index that is read from memory is taken to be the same for all threads");
        }
        if !sizes.is_empty() {
            diagnostic = diagnostic.note(format!("counted for {}", assignment(&sizes)));
        }
        match remedy {
            Gather::None => diagnostic.help(match is_write {
                true => "let neighbouring threads access neighbouring elements",
                false => {
                    "let neighbouring threads access neighbouring elements; or, where each thread reads a run of \
                     neighbours, let it copy the run at once: `stage … in registers per thread`, with `vectorize`"
                }
            }),
            Gather::Innermost { splits: [first, second], threads } => {
                let text = format!("let `{threads}` be innermost: `{}; {};`", first.1, second.1);
                diagnostic.change(Change::Rewrite(vec![first, second]), text)
            }
            Gather::Merge(span, merge) => {
                let text = format!("merge so that neighbours in memory are neighbouring threads: `{merge};`");
                diagnostic.replace(span, merge, text)
            }
            Gather::Along { axis, of_terms: false } => diagnostic.help(format!(
                "let neighbouring threads have neighbouring `{axis}`: split `{axis}`, and bind the inner part to threads"
            )),
            Gather::Along { axis, of_terms: true } => diagnostic.help(format!(
                "give elements to blocks, and neighbouring terms to neighbouring threads: \
                 `split {axis} by 256 -> r, t; bind t: thread; reduce t;`"
            )),
            Gather::Few { axis, extent } => diagnostic.help(format!(
                "`{axis}` has {extent} elements: merge it with the axis before it, and bind the inner part to threads; \
                 or put a tile in shared memory, of which neighbouring threads take neighbours"
            )),
            Gather::Tile => diagnostic.help(
                "put a tile in shared memory, which threads fill along rows and read along columns, \
                 as the example `tiled_transpose` does: no order of threads is right for all of the stage",
            ),
            Gather::ByLane(axis) => diagnostic.help(format!(
                "`{axis}` is a vector, and this access is made lane by lane: it is not known to start at a multiple of \
                 the vector, or its `or` or `if` is not known to decide for all lanes at once; without \
                 `vectorize {axis}`, neighbouring threads can have neighbouring elements"
            )),
        }
        .help("or silence this with `#[allow(TW0491)]` before the kernel")
    }
}
