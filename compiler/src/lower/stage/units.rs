//! Units to axes: the number of a block, a warp and a thread split over the axes that are bound to them.

use tilewright_kernel::algorithm::Compare;

use super::{Nest, Point};
use crate::domain::{AxisId, AxisKind};
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
                && let Some(value) = point.values[axis]
            {
                let count = self.size(&e);
                terms.push(self.b.index_compare(Compare::Lt, value, count));
            }
        }
        let thread = self.b.thread_in_role();
        let mut number = self.b.index_convert(thread, self.index);
        let distribution = &stage.distribution;
        if let Some(size) = distribution.owner.threads() {
            let threads = self.b.index_literal(self.index, size as i64);
            number = self.b.index_mod(number, threads);
        }
        let first = number;
        // Of each level, what is left of the number that it divides.
        let mut rests: Vec<ValueId> = Vec::new();
        for level in &distribution.levels {
            let leaves = &level.leaves;
            let axes: Vec<AxisId> = leaves.iter().map(|leaf| leaf.0).collect();
            number = match level.from {
                schedule::From::Level(at) => rests[at],
                schedule::From::Thread(pitch, modulo) => {
                    let pitch = self.b.index_literal(self.index, pitch as i64);
                    let digit = self.b.index_div(first, pitch);
                    match modulo {
                        Some(modulo) => {
                            let modulo = self.b.index_literal(self.index, modulo as i64);
                            self.b.index_mod(digit, modulo)
                        }
                        None => digit,
                    }
                }
            };
            // Units before the first one with work are counted as if they came after the last one.
            if level.low > 0 {
                let of_block = distribution.owner.threads().unwrap_or_else(|| threads.into());
                let around = match level.from {
                    schedule::From::Level(at) => distribution.levels[at].size,
                    schedule::From::Thread(pitch, modulo) => modulo.unwrap_or((of_block + pitch - 1) / pitch),
                };
                let less = self.b.index_literal(self.index, (around - level.low * level.size) as i64);
                let around = self.b.index_literal(self.index, around as i64);
                let turned = self.b.index_add(number, less);
                number = self.b.index_mod(turned, around);
            }
            let size = self.b.index_literal(self.index, level.size as i64);
            let unit = self.b.index_div(number, size);
            number = self.b.index_mod(number, size);
            rests.push(number);
            self.unpack(unit, &axes, &|this, n| this.b.index_literal(this.index, leaves[n].1 as i64), point);
            if level.ends || level.low > 0 {
                let count = self.b.index_literal(self.index, level.count() as i64);
                guards.push(self.b.index_compare(Compare::Lt, unit, count));
            }
        }
        // Of threads that nothing tells apart the first one runs an output beside another one.
        if stage.beside.is_some() && distribution.finest().unwrap_or_else(|| threads.into()) > 1 {
            let first = self.b.index_literal(self.index, 0);
            guards.push(self.b.index_compare(Compare::Eq, number, first));
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
