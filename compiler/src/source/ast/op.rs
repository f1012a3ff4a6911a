//! The syntax tree of schedule ops.

use super::{AxisRef, Expr, FillModel, MmaEngine, Name, Range, ReduceBy, RegionKind, Spanned, SwizzleFunction};
use crate::source::Span;

/// One schedule op.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// Its keyword.
    pub keyword: Span,
    /// The whole op without its semicolon.
    pub span: Span,
}

impl Op {
    /// The stage whose ops it repeats: that of `like`.
    #[must_use]
    pub fn model(&self) -> Option<&Name> {
        match &self.kind {
            OpKind::Like { stage, .. } => Some(stage),
            _ => None,
        }
    }
}

/// The schedule ops, with their arguments in the order written.
#[derive(Clone, Debug, PartialEq)]
pub enum OpKind {
    /// `split axis by factor -> outer, inner` or `split axis into factor -> outer, inner`
    ///
    /// A split by several factors is as many ops. What each leaves to the next one has a name that nobody can write:
    /// [`Name::rest`].
    Split {
        /// The axis split.
        axis: Name,
        /// Whether the factor is the inner or the outer extent.
        side: SplitSide,
        /// The factor.
        factor: Expr,
        /// Result of lower frequency.
        outer: Name,
        /// Result of higher frequency.
        inner: Name,
    },
    /// `merge i, j -> into`
    Merge {
        /// The axes, outermost first.
        axes: Vec<Name>,
        /// The result.
        into: Name,
    },
    /// `reorder i, j, k`
    Reorder {
        /// The final loop order.
        axes: Vec<Name>,
    },
    /// `resize i by (left, right) -> into`
    Resize {
        /// The axis.
        axis: Name,
        /// Elements added before.
        left: Expr,
        /// Elements added after.
        right: Expr,
        /// The result.
        into: Name,
    },
    /// `swizzle x, y by xor -> x_into, y_into`
    Swizzle {
        /// The side that stays.
        x: Name,
        /// The side that changes.
        y: Name,
        /// `xor`.
        function: Spanned<SwizzleFunction>,
        /// Result for `x`.
        x_into: Name,
        /// Result for `y`.
        y_into: Name,
    },
    /// `bind i, j: [8] unit [2..5] [raster(i: 8, j: descending)]`
    Bind {
        /// The axes.
        axes: Vec<Name>,
        /// The factor of a scaled unit.
        scale: Option<Expr>,
        /// The unit: built in, or defined by `unit`.
        unit: Name,
        /// A range of the units.
        range: Option<Range>,
        /// In which order blocks take the iterations of axes of the grid.
        raster: Vec<(Name, BlockOrder)>,
    },
    /// `vectorize i`
    Vectorize {
        /// The axis.
        axis: Name,
    },
    /// `unroll i [by n]`
    Unroll {
        /// The axis.
        axis: Name,
        /// Iterations per unrolled body.
        by: Option<Expr>,
    },
    /// `reduce i, j [by warp]`
    Reduce {
        /// The bound reduction axes.
        axes: Vec<Name>,
        /// The level.
        by: Option<Spanned<ReduceBy>>,
    },
    /// `like S` or `like S.A`
    Like {
        /// The stage whose distribution is taken.
        stage: Name,
        /// The operand of it.
        operand: Option<Name>,
    },
    /// `box axis by factor -> coordinate, inner`: the boxing split.
    Box {
        /// The axis split.
        axis: Name,
        /// The box size.
        factor: Expr,
        /// The coordinate axis.
        coordinate: Name,
        /// The box axis.
        inner: Name,
    },
    /// `box (i1, i2; i3, i4)`: compositing.
    BoxRun {
        /// The coordinate axes.
        coordinates: Vec<Name>,
        /// The box axes.
        boxed: Vec<Name>,
    },
    /// `tile axis by factor -> tile, stride`: the striding split.
    Tile {
        /// The axis split.
        axis: Name,
        /// The element stride.
        factor: Expr,
        /// The tile axis.
        tile: Name,
        /// The stride axis.
        stride: Name,
    },
    /// `layout [a, b pad 8] [swizzle 128]`
    Layout {
        /// The allocation domain, outermost first.
        axes: Vec<LayoutAxis>,
        /// The swizzle span in bytes.
        swizzle: Option<Expr>,
    },
    /// `multicast S.AXIS [by i]`
    Multicast {
        /// The cluster axis.
        axis: AxisRef,
        /// The axis of which each CTA loads one slice.
        by: Option<Name>,
    },
    /// `mma (m, n, k) by engine [inflight(n)]`
    Mma {
        /// The axes of the instruction's rows, columns and contraction.
        m: Name,
        /// Columns.
        n: Name,
        /// Contraction.
        k: Name,
        /// The instruction family.
        engine: Spanned<MmaEngine>,
        /// Groups in flight.
        inflight: Option<Expr>,
    },
    /// `fragment (m, n) by engine`, `fragment (m) by engine`
    Fragment {
        /// The axes of the rows of a sum of products.
        m: Name,
        /// Columns; none for what each row has once.
        n: Option<Name>,
        /// The instruction family.
        engine: Spanned<MmaEngine>,
    },
    /// `region cover`, `region exact` or `region flat [-> into]`
    Region {
        /// What is kept and computed of what readers ask for.
        kind: Spanned<RegionKind>,
        /// The axis that a run is.
        into: Option<Name>,
    },
    /// `fill zero` or `fill any`
    Fill {
        /// The correctness model demanded.
        model: Spanned<FillModel>,
    },
    /// `l2 promote(128)`, `l2 evict_first`, `l2 evict_last`
    L2 {
        /// The hint.
        hint: L2Hint,
    },
    /// `online source -> targets over axis`
    Online {
        /// The running reduction.
        source: Name,
        /// The reductions rescaled by it.
        targets: Vec<Name>,
        /// The axis of the pass.
        axis: Name,
    },
}

impl OpKind {
    /// See [`super::Item::numbers_mut`].
    pub(super) fn numbers_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        match self {
            OpKind::Split { axis: _, side: _, factor, outer: _, inner: _ }
            | OpKind::Box { axis: _, factor, coordinate: _, inner: _ }
            | OpKind::Tile { axis: _, factor, tile: _, stride: _ } => each(factor),
            OpKind::Resize { axis: _, left, right, into: _ } => {
                each(left);
                each(right);
            }
            OpKind::Bind { axes: _, scale, unit: _, range, raster } => {
                scale.iter_mut().for_each(&mut *each);
                if let Some(Range { start, end, inclusive: _, span: _ }) = range {
                    each(start);
                    each(end);
                }
                for (_, order) in raster {
                    match order {
                        BlockOrder::Groups(size) => each(size),
                        BlockOrder::Descending => {}
                    }
                }
            }
            OpKind::Unroll { axis: _, by } => by.iter_mut().for_each(each),
            OpKind::Layout { axes, swizzle } => {
                axes.iter_mut().filter_map(|axis| axis.pad.as_mut()).chain(swizzle).for_each(each);
            }
            OpKind::Mma { m: _, n: _, k: _, engine: _, inflight } => inflight.iter_mut().for_each(each),
            OpKind::L2 { hint: L2Hint::Promote(bytes) } => each(bytes),
            OpKind::L2 { hint: L2Hint::EvictFirst | L2Hint::EvictLast }
            | OpKind::Merge { axes: _, into: _ }
            | OpKind::Reorder { axes: _ }
            | OpKind::Swizzle { x: _, y: _, function: _, x_into: _, y_into: _ }
            | OpKind::Vectorize { axis: _ }
            | OpKind::Reduce { axes: _, by: _ }
            | OpKind::Like { stage: _, operand: _ }
            | OpKind::BoxRun { coordinates: _, boxed: _ }
            | OpKind::Multicast { axis: _, by: _ }
            | OpKind::Fragment { m: _, n: _, engine: _ }
            | OpKind::Region { kind: _, into: _ }
            | OpKind::Fill { model: _ }
            | OpKind::Online { source: _, targets: _, axis: _ } => {}
        }
    }
}

/// In which order blocks take the iterations of an axis of the grid.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockOrder {
    /// In groups of so many.
    Groups(Expr),
    /// The last one first.
    Descending,
}

/// Which result of a split has the factor as its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitSide {
    /// `by`: the inner one.
    Inner,
    /// `into`: the outer one.
    Outer,
}

/// One axis of a `layout`.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutAxis {
    /// The axis.
    pub name: Name,
    /// Elements of padding after it.
    pub pad: Option<Expr>,
}

/// A cache hint.
#[derive(Clone, Debug, PartialEq)]
pub enum L2Hint {
    /// `promote(bytes)`
    Promote(Expr),
    /// `evict_first`
    EvictFirst,
    /// `evict_last`
    EvictLast,
}
