//! Reductions across the blocks of a cluster: each block writes its states to a buffer in every block, and all merge
//! what they then have.
//!
//! **Formula.** A result is told apart by the digits of a thread's number that are not reduced, and by its accumulator.
//! Of the threads that share it the first writes its states, at the number of its block, in all blocks of the cluster;
//! then every thread that has the result reads those of the blocks that differ in reduced axes alone, and merges them
//! in the order of these axes. All do the same merges of the same operands: they get the same bits. Barriers of the
//! cluster (of the role in all blocks, in a role) stand around the writes (`barrier_placement`): before the first one,
//! blocks may not run yet, or still read what the last iteration wrote; after the second one, nobody reaches another's
//! memory, so that a block may end.
//!
//! What blocks decide each for itself is no branch around these barriers: a value is uniform over a cluster or not, as
//! it is over a block ([`kernel_ir`](crate::kernel_ir)).

use tilewright_kernel::algorithm::{Compare, ValueId as AlgorithmValue};

use super::cta_reduce::stored_as;
use super::stage::{Nest, Point};
use crate::domain::{AxisId, AxisKind};
use crate::kernel_ir::{Buffer, BufferId, Guard, Memory, Sharing, Type, ValueId};
use crate::schedule::{self, Digit};

/// Alignment of the buffers, in bytes.
const ALIGNMENT: u32 = 16;

/// The thread's place among those that have results.
struct Own {
    /// Which of the results of a block.
    slot: ValueId,
    /// Whether it has one.
    has: ValueId,
    /// Whether it is the first of those that share it.
    is_first: ValueId,
}

impl Nest<'_, '_> {
    /// Merges the accumulators of the blocks of a cluster, which those of a block share already.
    pub(in crate::lower) fn combine_in_cluster(&mut self, reduction: AlgorithmValue, point: &Point) {
        let blocks = self.stage.distribution.cluster;
        let variables = self.accumulators();
        let states: Vec<Vec<ValueId>> =
            variables.iter().map(|variables| variables.iter().map(|v| self.b.get(*v)).collect()).collect();
        let Some(first) = states.first() else { return };
        let digits = schedule::digits(self.stage);
        let slots: i128 = digits.iter().filter(|d| !d.reduced).map(|d| d.extent).product();
        let own = self.own(&digits, point);
        let each = u32::try_from(slots * states.len() as i128).unwrap_or(u32::MAX);
        let types: Vec<Type> = first.iter().map(|state| self.b.ty(*state)).collect();
        let name = format!("{}_blocks", self.stage.name);
        let buffers: Vec<BufferId> = (types.iter().enumerate())
            .map(|(n, ty)| {
                let name = if types.len() > 1 { format!("{name}{n}") } else { name.clone() };
                let (element, elements) = (stored_as(*ty), each.saturating_mul(blocks));
                let sharing = Sharing::Block;
                self.b.buffer(Buffer { name, element, elements, alignment: ALIGNMENT, slots: 1, sharing })
            })
            .collect();
        let rank = self.b.cluster_rank();
        // Where the states of an accumulator of the block with a number lie.
        let place = |this: &mut Self, rank: ValueId, accumulator: usize| {
            let literal = |this: &mut Self, n: i128| this.b.index_literal(Type::I32, n as i64);
            let (each, slots) = (literal(this, each.into()), literal(this, slots));
            let (from, of) = (this.b.index_mul(rank, each), literal(this, accumulator as i128));
            let of = this.b.index_mul(of, slots);
            let at = this.b.index_add(from, of);
            this.b.index_add(at, own.slot)
        };
        let writes = self.b.and(own.has, own.is_first);
        self.b.begin_if(writes);
        for (accumulator, states) in states.iter().enumerate() {
            let at = place(self, rank, accumulator);
            for (buffer, state) in buffers.iter().zip(states) {
                self.b.store_dsmem_all(*buffer, at, &[*state]);
            }
        }
        self.b.end_if();
        let ranks = self.ranks(point);
        for (accumulator, (variables, states)) in variables.iter().zip(&states).enumerate() {
            let mut all: Option<Vec<ValueId>> = None;
            for rank in &ranks {
                let at = place(self, *rank, accumulator);
                let one = |this: &mut Self, n: usize| {
                    let guard = Guard { predicate: own.has, otherwise: &[states[n]] };
                    this.b.load(Memory::Buffer(buffers[n]), at, 1, Some(guard))[0]
                };
                let next: Vec<ValueId> = (0..buffers.len()).map(|n| one(self, n)).collect();
                all = Some(match all {
                    None => next,
                    Some(so_far) => self.values.merge(self.b, reduction, &so_far, &next),
                });
            }
            for (variable, state) in variables.iter().zip(all.into_iter().flatten()) {
                self.b.set(*variable, state);
            }
        }
        // What others write from the next barrier of the cluster on, whichever that is, belongs to the next instance.
        let slot = self.b.index_literal(Type::I32, 0);
        buffers.iter().for_each(|buffer| self.b.lifetime_start(*buffer, slot));
    }

    fn own(&mut self, digits: &[Digit], point: &Point) -> Own {
        let zero = self.b.index_literal(self.index, 0);
        let (mut slot, mut has, mut is_first) = (zero, self.b.bool_literal(true), self.b.bool_literal(true));
        for digit in digits {
            let Some(value) = point.values[digit.leaf] else { continue };
            let extent = self.b.index_literal(self.index, digit.extent as i64);
            // Units before the first one and after the last one have no value of it.
            for exists in
                [self.b.index_compare(Compare::Ge, value, zero), self.b.index_compare(Compare::Lt, value, extent)]
            {
                has = self.b.and(has, exists);
            }
            if digit.reduced {
                let first = self.b.index_compare(Compare::Eq, value, zero);
                is_first = self.b.and(is_first, first);
            } else {
                slot = self.b.index_mul(slot, extent);
                slot = self.b.index_add(slot, value);
            }
        }
        // Of threads that nothing tells apart.
        let alike = self.stage.distribution.finest().unwrap_or_else(|| self.around.threads.into());
        if alike > 1 {
            let thread = self.b.thread_in_role();
            let alike = self.b.index_literal(Type::I32, alike as i64);
            let (within, zero) = (self.b.index_mod(thread, alike), self.b.index_literal(Type::I32, 0));
            let first = self.b.index_compare(Compare::Eq, within, zero);
            is_first = self.b.and(is_first, first);
        }
        let slot = self.b.index_convert(slot, Type::I32);
        Own { slot, has, is_first }
    }

    /// The numbers of the blocks that share results with this one, in the order of the axes that they divide among each
    /// other.
    fn ranks(&mut self, point: &Point) -> Vec<ValueId> {
        let mut ranks = vec![self.b.index_literal(Type::I32, 0)];
        let ctas: Vec<(AxisId, i128)> = self.stage.distribution.ctas.clone();
        for (axis, extent) in ctas {
            let count = self.b.index_literal(Type::I32, extent as i64);
            let reduces = self.stage.domain.axes[axis].kind == AxisKind::Reduction;
            let values: Vec<ValueId> = match point.values[axis] {
                Some(value) if !reduces => vec![self.b.index_convert(value, Type::I32)],
                _ => (0..extent).map(|n| self.b.index_literal(Type::I32, n as i64)).collect(),
            };
            let mut next = Vec::with_capacity(ranks.len() * values.len());
            for rank in &ranks {
                let first = self.b.index_mul(*rank, count);
                next.extend(values.iter().map(|value| self.b.index_add(first, *value)));
            }
            ranks = next;
        }
        ranks
    }
}
