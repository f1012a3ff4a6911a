//! `bind i, j: grid raster(i: 8)`: in which order blocks take the iterations of the grid.
//!
//! Blocks with neighbouring numbers run at one time, and share what they read in the second-level cache. Row after row,
//! they share what one row of `i` reads; in groups of 8 along `i`, what 8 rows read and what the columns read that they
//! are in.
//!
//! **Formula.** Of axes in front, which stay as they are, the rastered axis with I iterations, and R iterations of all
//! axes after it, the last one fastest: number n is in group g = ⌊n / (m·R)⌋ with m = min(G, I), which has h = min(G,
//! I − g·G) rows; of r = n − g·m·R the row is g·G + r mod h, and the number after is ⌊r / h⌋. **Property.** n → (row,
//! number after) is a bijection of [0, I·R): each group but the last has G·R numbers, the last one, from g·G·R on, h·R
//! of them, and in a group r → (r mod h, ⌊r / h⌋) is one onto [0, h) × [0, R).

use super::Stage;
use crate::diag::Diagnostics;
use crate::diag::codes::{BadRaster, RasterProblem};
use crate::domain::AxisId;
use crate::source::Span;

/// The groups in which the iterations of an axis are taken.
#[derive(Clone, Copy, Debug)]
pub struct Raster {
    /// The axis, one that is given to the grid.
    pub axis: AxisId,
    /// Iterations of a group; the last group may have fewer.
    pub group: i128,
    /// Where it is said.
    pub span: Span,
}

/// Refuses rasters that say nothing, or about other stages' blocks.
pub(super) fn check(stages: &[Stage], diags: &mut Diagnostics) {
    for stage in stages {
        let Some(Raster { axis, span, .. }) = stage.raster else { continue };
        let grid = &stage.distribution.grid;
        let name = |axis: AxisId| stage.domain.axes[axis].name.clone();
        let problem = if stage.has_blocks() {
            let before = || grid.len().checked_sub(2).map(|n| name(grid[n]));
            (grid.last() == Some(&axis)).then(|| RasterProblem::Last { before: before() })
        } else {
            let host = stage.attach.as_ref().map(|attach| attach.stage).or(stage.beside.as_ref().map(|b| b.stage));
            Some(RasterProblem::Shared { host: host.map(|n| stages[n].name.clone()) })
        };
        if let Some(problem) = problem {
            diags.report(BadRaster { stage: stage.name.clone(), axis: name(axis), problem, span });
        }
    }
}
