//! Units to axes: the number of a block, a warp and a thread split over the axes that are bound to them.

use tilewright_kernel::algorithm::Compare;

use super::{Emit, Nest, Point};
use crate::domain::{AxisId, AxisKind, WARP};
use crate::kernel_ir::{Type, ValueId};
use crate::lower::grid_reduce;
use crate::schedule;

impl Nest<'_, '_> {
    /// The number of the block in the launch.
    pub(in crate::lower) fn block(&mut self) -> ValueId {
        let at = self.b.block_index();
        self.b.index_convert(at, self.index)
    }

    /// The number of the cluster in the launch: that of the block, where there are none. Of a persistent launch it is
    /// that of the tile.
    pub(in crate::lower) fn cluster(&mut self) -> ValueId {
        let at = self.around.tile.unwrap_or_else(|| {
            let block = self.b.block_index();
            match self.stage.distribution.cluster {
                1 => block,
                blocks => {
                    let blocks = self.b.index_literal(Type::I32, blocks.into());
                    self.b.index_div(block, blocks)
                }
            }
        });
        self.b.index_convert(at, self.index)
    }

    /// Gives bound leaves their values; the predicates that keep idle units out, of everything and of the terms.
    pub(super) fn bind(&mut self, point: &mut Point, threads: u32) -> (Vec<ValueId>, Vec<ValueId>) {
        let stage = self.stage;
        let (mut guards, mut terms) = (Vec::new(), Vec::new());
        let extent = |a: AxisId| stage.domain.axes[a].extent.clone();
        if !stage.distribution.grid.is_empty() {
            let at = self.own_block();
            self.unpack_grid(at, point);
        }
        if !stage.distribution.ctas.is_empty() {
            let rank = self.b.cluster_rank();
            let rank = self.b.index_convert(rank, self.index);
            let axes: Vec<AxisId> = stage.distribution.ctas.iter().map(|cta| cta.0).collect();
            let extent =
                |this: &mut Self, n: usize| this.b.index_literal(this.index, stage.distribution.ctas[n].1 as i64);
            self.unpack(rank, &axes, &extent, point);
        }
        // What stands in the loops of another role's stage is the same for all threads.
        if self.is_slice() {
            return (guards, terms);
        }
        // An axis of the reduction without iterations has a block that has no terms.
        for axis in stage.across_blocks() {
            if let (e, true) = grid_reduce::blocks_along(stage, axis, self.facts)
                && !(self.around.staged && self.is_never_empty(axis))
                && let Some(value) = point.values[axis]
            {
                let count = self.size(&e);
                terms.push(self.b.index_compare(Compare::Lt, value, count));
            }
        }
        let thread = self.b.thread_in_role();
        let thread = self.b.index_convert(thread, self.index);
        let distribution = &stage.distribution;
        let mut emit = Emit { b: self.b, index: self.index };
        for digit in schedule::digits(stage) {
            let value = digit.path.of(&mut emit, &thread);
            // Where tensor cores find matrices, warps say as a whole.
            let is_of_warp = emit.index == Type::I32 && digit.stride % WARP == 0;
            let value = if self.product.is_some() && is_of_warp { emit.b.of_warp(value) } else { value };
            point.values[digit.leaf] = Some(value);
            if digit.is_partial {
                let count = emit.b.index_literal(emit.index, digit.extent as i64);
                guards.push(emit.b.index_compare(Compare::Lt, value, count));
            }
        }
        // Of threads that nothing tells apart the first one runs an output beside another one.
        if stage.beside.is_some() && distribution.finest().unwrap_or_else(|| threads.into()) > 1 {
            let alike = schedule::holders(stage).left(schedule::Holder::Thread);
            let alike = alike.of(&mut Emit { b: self.b, index: self.index }, &thread);
            let first = self.b.index_literal(self.index, 0);
            guards.push(self.b.index_compare(Compare::Eq, alike, first));
        }
        // A bound that only the facts give is larger than some extents, and one unit is more than a reduction without
        // terms has.
        let bound = distribution.ctas.iter().chain(distribution.levels.iter().flat_map(|level| &level.leaves));
        for (axis, units) in bound {
            let e = extent(*axis);
            if e.as_constant() != Some(*units)
                && let Some(value) = point.values[*axis]
            {
                let count = self.size(&e);
                let holds = self.b.index_compare(Compare::Lt, value, count);
                let is_data = stage.domain.axes[*axis].kind == AxisKind::Data;
                if is_data { guards.push(holds) } else { terms.push(holds) }
            }
        }
        (guards, terms)
    }

    /// Splits a unit's number over its axes, the last one fastest.
    pub(super) fn unpack(
        &mut self,
        number: ValueId,
        axes: &[AxisId],
        count: &dyn Fn(&mut Self, usize) -> ValueId,
        point: &mut Point,
    ) {
        let mut rest = number;
        for (at, axis) in axes.iter().enumerate().rev() {
            if at == 0 {
                point.values[*axis] = Some(rest);
                break;
            }
            let count = count(self, at);
            point.values[*axis] = Some(self.b.index_mod(rest, count));
            rest = self.b.index_div(rest, count);
        }
    }
}
