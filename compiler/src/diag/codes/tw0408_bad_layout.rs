//! TW0408: a layout in which a tile is not whole.

use crate::diag::{Code, Diagnostic, IntoDiagnostic};
use crate::source::Span;

row! {
    /// A copy writes its tile as one piece: `layout` lists the axes that count boxes and phases first, then all axes of
    /// the tile, and last the one whose elements follow each other in device memory. Splits of the axes of a tile leave
    /// no remainder, since it would be a gap; only after the last row there may be one, as far as the next tile starts
    /// after it.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split i by 32 -> io, ii;
    ///         split j by 32 -> jo, ji;
    ///         reorder io, jo, ii, ji;
    ///         bind io, jo: grid;
    ///         split ii by 8 -> r, w;
    ///         bind w: thread;
    ///         bind ji: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.jo via tma { box i by 16 -> ic, ib; box j by 32 -> jc, jb; layout [ib, ic, jb]; }
    /// }
    /// ```
    ///
    /// The message shows the order without a layout.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
    ///     y[i, j] = 2.0 * x[i, j];
    ///     launch threads(256);
    ///     schedule y {
    ///         split i by 32 -> io, ii;
    ///         split j by 32 -> jo, ji;
    ///         reorder io, jo, ii, ji;
    ///         bind io, jo: grid;
    ///         split ii by 8 -> r, w;
    ///         bind w: thread;
    ///         bind ji: thread;
    ///     }
    ///     stage xs[i, j] = x in shared at y.jo via tma { box i by 16 -> ic, ib; box j by 32 -> jc, jb; layout [ic, ib, jb]; }
    /// }
    /// ```
    TW0408 "bad-layout" Error "a layout in which a tile is not whole"
}

/// A split of an axis of a tile that leaves a remainder, so that some places of the layout hold no slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remainder {
    /// The axis that was split.
    pub axis: String,
    /// Its extent.
    pub extent: i128,
    /// The factor.
    pub factor: i128,
    /// The split.
    pub span: Span,
}

/// What is wrong with a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutProblem {
    /// An axis that is none of the copy's.
    Unknown(String),
    /// The same axis twice.
    Twice(String),
    /// An axis of several iterations that is missing.
    Missing(String),
    /// An axis that counts boxes or phases, inside one of the tile.
    Inside {
        /// The axis that counts.
        outer: String,
        /// The axis of the tile before it.
        tile: String,
    },
    /// The innermost axis is not the one whose elements follow each other in device memory.
    Innermost {
        /// The axis that is last.
        last: String,
        /// The one that must be.
        wanted: String,
    },
    /// Axes of one composite box in another order, or apart.
    Composite(String),
    /// A padded axis.
    Padded(String),
    /// Splits of tile axes that leave remainders, and so gaps between the slots of a tile, or between tiles.
    Gaps(Vec<Remainder>),
}

/// TW0408: a layout in which a tile is not one whole.
#[derive(Clone, Debug)]
pub struct BadLayout {
    /// The copy.
    pub copy: String,
    /// What is wrong.
    pub problem: LayoutProblem,
    /// The order that copies have without a layout.
    pub natural: Vec<String>,
    /// The axis, or the op.
    pub span: Span,
}

impl IntoDiagnostic for BadLayout {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { copy, problem, natural, span } = self;
        let title = match &problem {
            LayoutProblem::Unknown(axis) => format!("`{copy}` has no axis `{axis}` to lay out"),
            LayoutProblem::Twice(axis) => format!("`{axis}` is laid out twice"),
            LayoutProblem::Missing(axis) => format!("the layout of `{copy}` leaves out `{axis}`"),
            LayoutProblem::Inside { outer, tile } => {
                format!("`{outer}` stands inside `{tile}`, which belongs to the tile")
            }
            LayoutProblem::Innermost { last, wanted } => {
                format!("the tile of `{copy}` ends with `{last}`, and its elements follow each other along `{wanted}`")
            }
            LayoutProblem::Composite(axis) => {
                format!("`{axis}` is part of a composite box, whose axes stay together in their order")
            }
            LayoutProblem::Padded(axis) => {
                format!("`{axis}` cannot be padded: the accelerator writes a tile without gaps")
            }
            LayoutProblem::Gaps(splits) => {
                let of = |r: &Remainder| format!("{} of `{}` is not a multiple of {}", r.extent, r.axis, r.factor);
                let which = splits.iter().map(of).collect::<Vec<_>>().join(", and ");
                format!("the layout of `{copy}` has places without a slot: {which}")
            }
        };
        let diagnostic = Diagnostic::new(Code::TW0408, span, title);
        if let LayoutProblem::Gaps(splits) = &problem {
            let divisors = |r: &Remainder| (2..r.extent).rev().find(|f| r.extent % f == 0 && *f < r.factor);
            let mut diagnostic = diagnostic
                .note("a copy writes its tile without gaps: the axes of a tile are split without a remainder, but for one whose gaps lie after the tile");
            if let Some(split) = splits.first() {
                diagnostic = diagnostic.counterexample(format!(
                    "{} slots make {} of {} and one of {}",
                    split.extent,
                    split.extent / split.factor,
                    split.factor,
                    split.extent % split.factor
                ));
                if let Some(divisor) = divisors(split) {
                    diagnostic =
                        diagnostic.help(format!("split by a factor that divides {}, such as {divisor}", split.extent));
                }
            }
            for other in splits.iter().skip(1) {
                diagnostic = diagnostic.label(other.span, "this split leaves a remainder, too");
            }
            return diagnostic;
        }
        diagnostic
            .note(
                "a copy writes its tile as a whole: axes that count boxes and phases stand before all axes of the tile",
            )
            .help(format!("without a layout it is [{}]", natural.join(", ")))
    }
}
