//! Merging what the threads of a block have: every thread of a group gets the merge of the states of all of them, in
//! order.
//!
//! Which threads form a group is said by digits of the thread's number: threads that agree in all digits that are not
//! reduced. The order of a group is that of its reduced digits, the outermost one first; a merge need be associative
//! only. All threads of a group get the same bits, since all do the same merges of the same operands.
//!
//! **Lanes.** A reduced digit whose stride is a power of two is merged inside aligned blocks of lanes by exchanges with
//! the lane whose number differs in one bit: after step j, every lane has the merge of its aligned block of 2^(j+1)
//! values of the digit. If the extent is no multiple of such a block, one pair of blocks has a right half without
//! values: both lanes then take the left one. Of a merge that commutes, lanes whose blocks are all whole give what they
//! have as it comes. A lane without a value passes on what its block has, if it exists; the lanes whose bits of the
//! digit are all 0 have everything in any case. A digit can only be merged so when the reduced digits inside it are
//! merged whole, or the order would be another.
//!
//! **Shared memory.** What is left are partials, one for each value of the reduced digits that are left. One thread
//! writes each, all threads of a group read those of the group and merge them. Where a warp reads one group, these are
//! neighbours, read as vectors by all lanes at one address; else neighbouring groups are neighbours, at the pitch for
//! which the banks take the fewest cycles, and what one instruction moves are states of several accumulators.
//!
//! All accumulators of a thread take one trip, with one barrier before the partials and one after, as long as
//! their partials fit the memory that a trip may have.

mod partials;
mod plan;

pub(super) use partials::stored_as;
use partials::{Column, Partials, lanes_of, merge_each, units};
pub(super) use plan::{Counted, Digit, digit};
use plan::{Plan, literal};
use tilewright_kernel::ElementType;

use crate::kernel_ir::{Buffer, Builder, Type, ValueId, VariableId};

/// Two states in order, to one.
pub(super) type Merge<'a> = &'a mut dyn FnMut(&mut Builder, &[ValueId], &[ValueId]) -> Vec<ValueId>;

/// Partials that are read in straight code; more are read in a loop.
const WRITTEN_OUT: u32 = 32;
/// Partials of an iteration of that loop.
const CHUNK: u32 = 8;
/// Bytes that one instruction reads.
const VECTOR_BYTES: u32 = 16;

/// The block whose threads merge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Team<'a> {
    /// Threads of the block.
    pub threads: u32,
    /// How they are grouped, outermost digit first.
    pub digits: &'a [Digit],
    /// Bytes that the partials of one trip through shared memory may take; those of one accumulator may take more.
    pub trip_bytes: u64,
    /// Whether one thread then overwrites what the others have read for their states: exchanges between lanes order no
    /// memory, so there is a trip through shared memory in any case, whose barrier does.
    pub overwrites: bool,
    /// Whether a merge gives the same bits for states in either order.
    pub commutes: bool,
}

/// For every thread of a group and each of its accumulators, the merge of the states of all its threads; for a thread
/// of no group, anything. Stands where every thread of the block comes. All accumulators have states of the same types;
/// `merge` gets those of two, the one of smaller reduced digits first. Shared memory, if it is needed, is called by
/// `name`.
pub(super) fn across_threads(
    b: &mut Builder,
    name: &str,
    team: Team<'_>,
    accumulators: &[Vec<ValueId>],
    merge: Merge<'_>,
) -> Vec<Vec<ValueId>> {
    let mut plan = Plan::new(team.threads, team.digits);
    plan.is_done &= !team.overwrites || plan.exchanges.is_empty();
    let mut all = accumulators.to_vec();
    for states in &mut all {
        for exchange in &plan.exchanges {
            *states = exchange.merge(b, states, team.commutes, merge);
        }
    }
    let Some(states) = all.first().filter(|_| !plan.is_done) else { return all };
    let types: Vec<Type> = states.iter().map(|state| b.ty(*state)).collect();
    let bytes = |count: usize| -> u64 {
        let lanes = lanes_of(&plan, &types, count);
        let elements = |element: ElementType| units(&plan, element, &lanes).1;
        let columns = types.iter().map(|ty| stored_as(*ty));
        columns.map(|element| u64::from(elements(element)) * u64::from(element.bytes())).sum()
    };
    let fewest = (1..=all.len()).find(|trips| bytes(all.len().div_ceil(*trips)) <= team.trip_bytes);
    let each = all.len().div_ceil(fewest.unwrap_or(all.len()));
    all.chunks(each).flat_map(|states| plan.through_memory(b, name, states, merge)).collect()
}

impl Plan {
    /// Partials of several accumulators through shared memory.
    fn through_memory(
        &self,
        b: &mut Builder,
        name: &str,
        accumulators: &[Vec<ValueId>],
        merge: Merge<'_>,
    ) -> Vec<Vec<ValueId>> {
        let (shares, writes) = self.place(b);
        let sharing = self.sharing();
        let types: Vec<Type> = accumulators[0].iter().map(|state| b.ty(*state)).collect();
        let lanes = lanes_of(self, &types, accumulators.len());
        let columns: Vec<Column> = (types.iter().enumerate())
            .map(|(n, ty)| {
                let element = stored_as(*ty);
                let (units, elements) = units(self, element, &lanes);
                let name = if types.len() > 1 { format!("{name}{n}") } else { name.to_owned() };
                let alignment = VECTOR_BYTES;
                let buffer = b.buffer(Buffer { name, element, elements, alignment, slots: 1, sharing });
                Column { buffer, units, ty: *ty }
            })
            .collect();
        let slot = b.index_literal(Type::I32, 0);
        columns.iter().for_each(|column| b.lifetime_start(column.buffer, slot));
        b.begin_if(writes);
        for (n, column) in columns.iter().enumerate() {
            let mut states = accumulators.iter().map(|states| states[n]);
            for unit in &column.units {
                let states: Vec<ValueId> = states.by_ref().take(unit.lanes as usize).collect();
                column.write(b, unit, &shares, &states);
            }
        }
        b.end_if();
        let partials = Partials { columns: &columns, shares: &shares };
        let count = self.counts().partial;
        if count <= WRITTEN_OUT {
            return partials.merged(b, count, None, merge);
        }
        let start = partials.merged(b, CHUNK, None, merge);
        let variables: Vec<Vec<VariableId>> =
            start.iter().map(|states| states.iter().map(|state| b.variable(*state)).collect()).collect();
        let get = |b: &mut Builder| -> Vec<Vec<ValueId>> {
            variables.iter().map(|states| states.iter().map(|variable| b.get(*variable)).collect()).collect()
        };
        let chunks = literal(b, count / CHUNK - 1);
        let chunk = b.begin_rolled_loop(chunks);
        let one = literal(b, 1);
        let chunk = b.index_add(chunk, one);
        let next = partials.merged(b, CHUNK, Some(chunk), merge);
        let so_far = get(b);
        let so_far = merge_each(b, &so_far, &next, merge);
        for (variable, state) in variables.iter().zip(&so_far).flat_map(|(v, states)| v.iter().zip(states)) {
            b.set(*variable, *state);
        }
        b.end_loop();
        let most = get(b);
        if count.is_multiple_of(CHUNK) {
            return most;
        }
        let chunk = literal(b, count / CHUNK);
        let last = partials.merged(b, count % CHUNK, Some(chunk), merge);
        merge_each(b, &most, &last, merge)
    }
}

#[cfg(test)]
mod tests;
