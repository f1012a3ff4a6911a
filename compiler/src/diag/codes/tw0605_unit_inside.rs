//! TW0605: a unit bound inside an instance that it does not share.

use crate::diag::{Change, Code, Diagnostic, IntoDiagnostic};
use crate::domain::Unit;
use crate::source::Span;

row! {
    /// A stage that stands in a loop of another one is computed by the units that run that loop: the threads of one
    /// block, or of one warpgroup or warp, or one thread, if it says `per warpgroup`, `per warp` or `per thread`. Its
    /// axes can be given to parts of that unit and to nobody else; but blocks can share the reduction of an instance
    /// that belongs to a block: `bind k: grid; reduce k by grid;` (TW0714).
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Blur(x: f32[N]) -> (y: f32[N - 2]) where N >= 3 {
    ///     h[i] = x[i] * 0.5;
    ///     y[i] = h[i] + h[i + 2];
    ///     launch threads(128);
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    ///     schedule h in shared at y.b { split i by 128 -> o, t; bind o: grid; bind t: thread; }
    /// }
    /// ```
    ///
    /// The message names the axis and the unit that an instance belongs to. `h` is computed inside `y.b`, by each block
    /// for itself.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Blur(x: f32[N]) -> (y: f32[N - 2]) where N >= 3 {
    ///     h[i] = x[i] * 0.5;
    ///     y[i] = h[i] + h[i + 2];
    ///     launch threads(128);
    ///     schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    ///     schedule h in shared at y.b { split i by 128 -> o, t; bind t: thread; }
    /// }
    /// ```
    TW0605 "unit-inside" Error "a unit bound inside an instance that it does not share"
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
    /// Whether tensor cores compute it: threads cannot share what they do.
    pub is_product: bool,
    /// If blocks of a cluster are to share a reduction: whether only `launch cluster` asks for clusters beside it.
    pub of_cluster: Option<bool>,
    /// The `bind`.
    pub span: Span,
}

impl IntoDiagnostic for UnitInside {
    fn into_diagnostic(self) -> Diagnostic {
        let Self { stage, axis, unit, owner, reduces, in_memory, is_product, of_cluster, span } = self;
        let title = format!(
            "an instance of `{stage}` belongs to one {}, and `{axis}` is given to several {}s",
            owner.name(),
            unit.name()
        );
        let diagnostic = Diagnostic::new(Code::TW0605, span, title)
            .note("the stage stands in the loops of another one, whose units run it");
        let with_reduce = reduces && unit == Unit::Cta;
        let without = if with_reduce { format!(", without `reduce {axis}`") } else { String::new() };
        let instead = match owner {
            _ if is_product => format!("leave `{axis}` unbound{without}"),
            Unit::Thread => format!("leave `{axis}` unbound{without}"),
            _ => format!("leave `{axis}` unbound{without}, or bind it to threads"),
        };
        // A `reduce` of it would have to go, too.
        if !with_reduce {
            return diagnostic.change(Change::RemoveOp(span), instead);
        }
        let shared = match (in_memory, of_cluster) {
            (true, _) => {
                format!("or place it `in registers` around the axis of the blocks, where they can share `{axis}`")
            }
            // Only a word makes an instance belong to less than a block.
            (false, _) if owner > Unit::Cta => format!(
                "or leave `per {}` out and attach it to a loop of the block, so that blocks can share `{axis}`",
                owner.name()
            ),
            (false, lone) => {
                let no_cluster = if lone == Some(true) { ", and no `launch cluster`" } else { "" };
                format!("or let blocks of the grid share it: `bind {axis}: grid;` and `reduce {axis} by grid;`{no_cluster}")
            }
        };
        diagnostic.note("blocks share the reduction of an instance that belongs to a block").help(instead).help(shared)
    }
}
