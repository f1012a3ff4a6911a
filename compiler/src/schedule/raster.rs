//! `bind i, j: grid raster(i: 8, j: descending)`: in which order blocks take the iterations of the grid.
//!
//! Blocks with neighbouring numbers run at one time, and share what they read in the second-level cache. Row after row,
//! they share what one row of `i` reads; in groups of 8 along `i`, what 8 rows read and what the columns read that they
//! are in. An axis may be taken from its last iteration on: where that has the most work, as the last queries of causal
//! attention have, the launch does not end with the longest blocks.
//!
//! **Formula.** Of axes in front, which stay as they are, the rastered axis with I iterations, and R iterations of all
//! axes after it, the last one fastest: number n is in group g = ⌊n / (m·R)⌋ with m = min(G, I), which has h = min(G,
//! I − g·G) rows; of r = n − g·m·R the row is g·G + r mod h, and the number after is ⌊r / h⌋. **Property.** n → (row,
//! number after) is a bijection of [0, I·R): each group but the last has G·R numbers, the last one, from g·G·R on, h·R
//! of them, and in a group r → (r mod h, ⌊r / h⌋) is one onto [0, h) × [0, R). A descending axis with E iterations then
//! has E − 1 − v for v, which is one of [0, E).

use super::Stage;
use crate::diag::Diagnostics;
use crate::diag::codes::{BadRaster, RasterProblem};
use crate::domain::AxisId;
use crate::source::Span;

/// The order in which blocks take the iterations of the grid; row after row, where it says nothing.
#[derive(Clone, Debug, Default)]
pub struct Raster {
    /// The axis that is taken in groups.
    pub groups: Option<Groups>,
    /// The axes that are taken from their last iteration on, and where it is said.
    pub descending: Vec<(AxisId, Span)>,
}

/// The groups in which the iterations of an axis are taken.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    /// The axis, one that is given to the grid.
    pub axis: AxisId,
    /// Iterations of a group; the last group may have fewer.
    pub size: i128,
    /// Where it is said.
    pub span: Span,
}

impl Raster {
    /// Iterations of a group along an axis, if it is taken in groups.
    pub fn group_of(&self, axis: AxisId) -> Option<i128> {
        self.groups.filter(|groups| groups.axis == axis).map(|groups| groups.size)
    }

    /// Whether an axis is taken from its last iteration on.
    pub fn is_descending(&self, axis: AxisId) -> bool {
        self.descending.iter().any(|(own, _)| *own == axis)
    }
}

/// Refuses rasters that say nothing, or about other stages' blocks.
pub(super) fn check(stages: &[Stage], diags: &mut Diagnostics) {
    for stage in stages {
        let Raster { groups, descending } = &stage.raster;
        let grid = &stage.distribution.grid;
        let name = |axis: AxisId| stage.domain.axes[axis].name.clone();
        let report = |axis: AxisId, problem, is_descending, span, diags: &mut Diagnostics| {
            diags.report(BadRaster { stage: stage.name.clone(), axis: name(axis), problem, is_descending, span });
        };
        if stage.has_blocks() {
            if let Some(Groups { axis, span, .. }) = groups.filter(|groups| grid.last() == Some(&groups.axis)) {
                let before = grid.len().checked_sub(2).map(|n| name(grid[n]));
                report(axis, RasterProblem::Last { before }, false, span, diags);
            }
            continue;
        }
        let host = stage.attach.as_ref().map(|attach| attach.stage).or(stage.beside.as_ref().map(|b| b.stage));
        let host = || RasterProblem::Shared { host: host.map(|n| stages[n].name.clone()) };
        if let Some(Groups { axis, span, .. }) = groups {
            report(*axis, host(), false, *span, diags);
        }
        for (axis, span) in descending {
            report(*axis, host(), true, *span, diags);
        }
    }
}
