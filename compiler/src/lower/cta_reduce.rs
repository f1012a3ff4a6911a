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
//! values: both lanes then take the left one. A lane without a value passes on what its block has, if it exists; the
//! lanes whose bits of the digit are all 0 have everything in any case. A digit can only be merged so when the reduced
//! digits inside it are merged whole, or the order would be another.
//!
//! **Shared memory.** What is left are partials, one for each value of the reduced digits that are left. One thread
//! writes each, all threads of a group read those of the group and merge them. Where a warp reads one group, these are
//! neighbours, read as vectors by all lanes at one address; else neighbouring groups are neighbours, at the pitch for
//! which the banks take the fewest cycles, and what one instruction moves are states of several accumulators.
//!
//! All accumulators of a thread take one trip, with one barrier before the partials and one after, as long as
//! their partials fit the memory that a trip may have.

use std::collections::BTreeMap;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Compare;
use tilewright_kernel::banks;

use crate::kernel_ir::{Buffer, BufferId, Builder, Memory, Sharing, Type, ValueId, VariableId};
use crate::target::{WARP, WARPGROUP};

/// A digit of thread numbers: ⌊(τ − low) / stride⌋ for what the digits outside leave of thread τ. A stride is at least
/// low and the stride times the extent of the next digit inside; threads in between, those before the first value
/// of a digit, and those after the last value of the outermost one belong to no group. Below the innermost stride each
/// remainder has groups of its own. All threads of a group exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digit {
    /// Threads from one value to the next.
    pub stride: u32,
    /// Number of values, at least 1.
    pub extent: u32,
    /// Threads before the first value.
    pub low: u32,
    /// Whether threads that differ in it belong together.
    pub reduced: bool,
}

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
            *states = exchange.merge(b, states, merge);
        }
    }
    let Some(states) = all.first().filter(|_| !plan.is_done) else { return all };
    let types: Vec<Type> = states.iter().map(|state| b.ty(*state)).collect();
    let bytes = |count: usize| -> u64 {
        let lanes = lanes_of(&plan, &types, count);
        let elements = |element: ElementType| units(&plan, team.threads, element, &lanes).1;
        let columns = types.iter().map(|ty| stored_as(*ty));
        columns.map(|element| u64::from(elements(element)) * u64::from(element.bytes())).sum()
    };
    let fewest = (1..=all.len()).find(|trips| bytes(all.len().div_ceil(*trips)) <= team.trip_bytes);
    let each = all.len().div_ceil(fewest.unwrap_or(all.len()));
    all.chunks(each).flat_map(|states| plan.through_memory(b, name, team.threads, states, merge)).collect()
}

/// What a digit is to the trip through shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Threads that differ in it belong to different groups.
    Kept,
    /// Threads that differ in it have different partials.
    Reduced,
    /// Threads that differ in it have the same partial; that with digit 0 has it in any case.
    Merged,
}

/// A digit of what is left.
#[derive(Clone, Copy, Debug)]
struct Place {
    stride: u32,
    extent: u32,
    role: Role,
    turn: Turn,
}

/// Counts what is left of a thread's number from the first of `around` threads that has work: those before it come
/// last, where they belong to no group, as those after the last one do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Turn {
    low: u32,
    around: u32,
}

impl Turn {
    const fn of(self, rest: u32) -> u32 {
        if self.low > 0 { (rest + self.around - self.low) % self.around } else { rest }
    }

    fn emit(self, b: &mut Builder, rest: ValueId) -> ValueId {
        if self.low == 0 {
            return rest;
        }
        let (less, around) = (literal(b, self.around - self.low), literal(b, self.around));
        let turned = b.index_add(rest, less);
        b.index_mod(turned, around)
    }
}

/// A step of merging lanes.
#[derive(Clone, Debug)]
struct Exchange {
    /// The bit in which partners differ.
    mask: u32,
    /// The digits outside the one that is merged: how each counts, and its stride.
    outer: Vec<(Turn, u32)>,
    /// How that one counts.
    turn: Turn,
    /// The pair of blocks, counted by `2 · mask` threads, whose right half has no value.
    alone: Option<u32>,
}

struct Plan {
    exchanges: Vec<Exchange>,
    /// Innermost first.
    places: Vec<Place>,
    /// Whether the exchanges give every thread its result.
    is_done: bool,
}

/// The digits without those of one value, neighbours of one kind as one, and with remainders below the innermost stride
/// as a digit.
fn normal(digits: &[Digit]) -> Vec<Digit> {
    let inner = digits.last().filter(|last| last.stride > 1);
    let inner = inner.map(|last| Digit { stride: 1, extent: last.stride, low: 0, reduced: false });
    let from_first = digits.iter().all(|digit| digit.low == 0);
    let mut all: Vec<Digit> = Vec::new();
    let count = digits.len() + usize::from(inner.is_some());
    for (n, digit) in digits.iter().copied().chain(inner).enumerate() {
        match all.last_mut() {
            // One value leaves the same threads idle if it is left out, but for the innermost.
            _ if digit.extent == 1 && n + 1 < count && from_first => {}
            Some(outer)
                if (outer.reduced, digit.low) == (digit.reduced, 0) && outer.stride == digit.stride * digit.extent =>
            {
                *outer = Digit { stride: digit.stride, extent: outer.extent * digit.extent, ..*outer };
            }
            _ => all.push(Digit { reduced: digit.reduced && digit.extent > 1, ..digit }),
        }
    }
    all
}

impl Plan {
    fn new(threads: u32, digits: &[Digit]) -> Self {
        let digits = normal(digits);
        let last: u32 = digits.iter().map(|d| d.low + (d.extent - 1) * d.stride).sum();
        let turn = |n: usize| {
            let around = n.checked_sub(1).map_or(threads, |outer| digits[outer].stride);
            Turn { low: digits[n].low, around }
        };
        let mut plan = Self { exchanges: Vec::new(), places: Vec::new(), is_done: true };
        // Whether the reduced digits inside are merged whole.
        let mut whole = true;
        for (n, digit) in digits.iter().enumerate().rev() {
            let Digit { stride, extent, reduced, .. } = *digit;
            let straight = Turn::default();
            if !reduced {
                plan.places.push(Place { stride, extent, role: Role::Kept, turn: turn(n) });
                continue;
            }
            let lanes = if whole { lanes(*digit, &digits[..n]) } else { 1 };
            let outer: Vec<(Turn, u32)> = (0..n).map(|n| (turn(n), digits[n].stride)).collect();
            for step in (0..lanes.trailing_zeros()).map(|bit| 1 << bit) {
                let blocks = extent.div_ceil(step);
                let alone = (!blocks.is_multiple_of(2)).then_some(blocks / 2);
                plan.exchanges.push(Exchange { mask: stride * step, outer: outer.clone(), turn: turn(n), alone });
            }
            if lanes > 1 {
                plan.places.push(Place { stride, extent: lanes, role: Role::Merged, turn: straight });
                let block = stride * lanes;
                plan.is_done &= extent.is_multiple_of(lanes) || (last / block + 1) * block <= threads;
            }
            let rest = extent.div_ceil(lanes);
            if rest > 1 {
                plan.places.push(Place { stride: stride * lanes, extent: rest, role: Role::Reduced, turn: straight });
                (whole, plan.is_done) = (false, false);
            }
            // Its outermost place.
            if let Some(place) = plan.places.last_mut() {
                place.turn = turn(n);
            }
        }
        plan
    }
}

/// How many values of a reduced digit lanes can merge: a power of two. Blocks of so many stay apart if all strides
/// outside are multiples of theirs, and so is what stands before a first value.
fn lanes(digit: Digit, outer: &[Digit]) -> u32 {
    let mut lanes = 1;
    let apart = |o: &Digit, block: u32| o.stride.is_multiple_of(block) && o.low.is_multiple_of(block);
    let fits = |block: u32| block <= WARP && digit.low.is_multiple_of(block) && outer.iter().all(|o| apart(o, block));
    while digit.stride.is_power_of_two() && lanes < digit.extent && fits(2 * lanes * digit.stride) {
        lanes *= 2;
    }
    lanes
}

fn literal(b: &mut Builder, n: u32) -> ValueId {
    b.index_literal(Type::I32, i64::from(n))
}

impl Exchange {
    fn merge(&self, b: &mut Builder, states: &[ValueId], merge: Merge<'_>) -> Vec<ValueId> {
        let (thread, mask, zero) = (b.thread_in_role(), literal(b, self.mask), literal(b, 0));
        let bit = b.index_and(thread, mask);
        let right = b.index_compare(Compare::Ne, bit, zero);
        let others: Vec<ValueId> = states.iter().map(|state| b.shuffle(*state, self.mask)).collect();
        let both = || states.iter().zip(&others);
        let first: Vec<ValueId> = both().map(|(own, other)| b.select(right, *other, *own)).collect();
        let second: Vec<ValueId> = both().map(|(own, other)| b.select(right, *own, *other)).collect();
        let merged = merge(b, &first, &second);
        let Some(alone) = self.alone else { return merged };
        let mut within = thread;
        for (n, (turn, stride)) in self.outer.iter().enumerate() {
            within = turn.emit(b, within);
            // The next remainder says as much where it divides this one.
            let next = self.outer.get(n + 1);
            if next.is_none_or(|next| next.0.low > 0 || stride % next.1 != 0) {
                let stride = literal(b, *stride);
                within = b.index_mod(within, stride);
            }
        }
        let within = self.turn.emit(b, within);
        let (block, alone) = (literal(b, 2 * self.mask), literal(b, alone));
        let pair = b.index_div(within, block);
        let is_alone = b.index_compare(Compare::Eq, pair, alone);
        first.iter().zip(&merged).map(|(first, merged)| b.select(is_alone, *first, *merged)).collect()
    }
}

/// Where partials lie in a part of a buffer, counted by what one partial takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// From one group to the next, where a warp has one.
    group: u32,
    /// From one partial of a group to the next.
    pitch: u32,
    /// All of them.
    partials: u32,
}

/// Accumulators of which one state each makes up a partial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit {
    /// How many: a power of two.
    lanes: u32,
    layout: Layout,
    /// Where the part begins, in elements.
    start: u32,
}

/// How many accumulators at a time have partials of their own, so that one instruction moves one state of theirs.
fn lanes_of(plan: &Plan, types: &[Type], count: usize) -> Vec<u32> {
    let widest = types.iter().map(|ty| stored_as(*ty).bytes()).max().unwrap_or(1);
    // Where a whole warp reads one group's partials at one address, these are the vector.
    let most = if plan.counts().near == 1 { 1 } else { VECTOR_BYTES / widest };
    let (mut found, mut left) = (Vec::new(), count as u32);
    while left > 0 {
        let lanes = most.min(1 << left.ilog2());
        found.push(lanes);
        left -= lanes;
    }
    found
}

/// The parts of the buffer that holds one state of so many accumulators at a time, and its elements.
fn units(plan: &Plan, threads: u32, element: ElementType, lanes: &[u32]) -> (Vec<Unit>, u32) {
    let mut found: Vec<Unit> = Vec::with_capacity(lanes.len());
    let mut start = 0;
    for lanes in lanes.iter().copied() {
        let same = found.last().filter(|unit| unit.lanes == lanes);
        let layout = same.map_or_else(|| plan.layout(threads, element.bytes() * lanes), |unit| unit.layout);
        found.push(Unit { lanes, layout, start });
        start += layout.partials * lanes;
    }
    (found, start)
}

/// A digit's share of what is left: how a thread's place in a buffer comes about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shares<T> {
    /// Number of the group, by digits in which the threads of a warp agree.
    far: T,
    /// Number of the group, by the others.
    near: T,
    /// Number of the partial in its group.
    partial: T,
}

impl Plan {
    /// Which share a place counts in.
    fn share<'s, T>(&self, at: usize, shares: &'s mut Shares<T>) -> Option<&'s mut T> {
        // All strides from here outwards.
        let agrees = self.places[at..].iter().all(|place| place.stride.is_multiple_of(WARP));
        match self.places[at].role {
            Role::Kept if agrees => Some(&mut shares.far),
            Role::Kept => Some(&mut shares.near),
            Role::Reduced => Some(&mut shares.partial),
            Role::Merged => None,
        }
    }

    /// How many there are of each.
    fn counts(&self) -> Shares<u32> {
        let mut counts = Shares { far: 1, near: 1, partial: 1 };
        for (at, place) in self.places.iter().enumerate() {
            if let Some(count) = self.share(at, &mut counts) {
                *count *= place.extent;
            }
        }
        counts
    }

    /// The shares of a thread, and whether it writes; as [`Self::place`] computes them.
    fn place_of(&self, thread: u32) -> (Shares<u32>, bool) {
        let (mut shares, mut writes, mut rest) = (Shares::default(), true, thread);
        for (at, place) in self.places.iter().enumerate().rev() {
            rest = place.turn.of(rest);
            let digit = rest / place.stride;
            rest %= place.stride;
            writes &= digit < if place.role == Role::Merged { 1 } else { place.extent };
            if let Some(share) = self.share(at, &mut shares) {
                *share = *share * place.extent + digit % place.extent;
            }
        }
        (shares, writes)
    }

    /// The shares of this thread, and whether it writes.
    fn place(&self, b: &mut Builder) -> (Shares<ValueId>, ValueId) {
        let (zero, mut writes, mut rest) = (literal(b, 0), b.bool_literal(true), b.thread_in_role());
        let mut shares = Shares { far: zero, near: zero, partial: zero };
        for (at, place) in self.places.iter().enumerate().rev() {
            let (stride, extent) = (literal(b, place.stride), literal(b, place.extent));
            rest = place.turn.emit(b, rest);
            let digit = b.index_div(rest, stride);
            rest = b.index_mod(rest, stride);
            let limit = if place.role == Role::Merged { literal(b, 1) } else { extent };
            let below = b.index_compare(Compare::Lt, digit, limit);
            writes = b.and(writes, below);
            if let Some(share) = self.share(at, &mut shares) {
                let digit = b.index_mod(digit, extent);
                let outer = b.index_mul(*share, extent);
                *share = b.index_add(outer, digit);
            }
        }
        (shares, writes)
    }

    /// Who writes and reads the partials of one group, threads without a group included.
    fn sharing(&self, threads: u32) -> Sharing {
        let groups: Vec<(u32, u32)> = (0..threads).map(|t| self.place_of(t).0).map(|s| (s.far, s.near)).collect();
        let mut first: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut stay = |unit: u32| {
            first.clear();
            let numbers = (0..threads).map(|thread| thread / unit);
            groups.iter().zip(numbers).all(|(group, number)| *first.entry(*group).or_insert(number) == number)
        };
        match threads {
            _ if threads.is_multiple_of(WARP) && stay(WARP) => Sharing::Warp,
            _ if threads > WARPGROUP && threads.is_multiple_of(WARPGROUP) && stay(WARPGROUP) => Sharing::Warpgroup,
            _ => Sharing::Block,
        }
    }

    /// For partials of so many bytes.
    fn layout(&self, threads: u32, bytes: u32) -> Layout {
        let counts = self.counts();
        let granule = VECTOR_BYTES / bytes;
        let whole = |partials: u32| partials.next_multiple_of(granule);
        if counts.near == 1 {
            let group = whole(counts.partial);
            return Layout { group, pitch: 1, partials: group * counts.far };
        }
        let places: Vec<(Shares<u32>, bool)> = (0..threads).map(|thread| self.place_of(thread)).collect();
        let cycles = |pitch: u32| {
            let address = |share: &Shares<u32>, partial: u32| u64::from((partial * pitch + share.near) * bytes);
            let words = bytes.div_ceil(4) as usize;
            let parts = places.chunks(WARP as usize / banks::parts(bytes));
            let cycles = parts.map(|lanes| {
                let stored = lanes.iter().filter(|(_, writes)| *writes).map(|(share, _)| address(share, share.partial));
                let read = lanes.iter().map(|(share, _)| address(share, 0));
                banks::cycles(stored, words) + u64::from(counts.partial) * banks::cycles(read, words)
            });
            cycles.sum::<u64>()
        };
        // Not for any price: memory is short, too.
        let most = counts.near + counts.near / 4 + 1;
        let pitch = (counts.near..=most).min_by_key(|pitch| cycles(*pitch)).unwrap_or(counts.near);
        let group = counts.partial * pitch;
        Layout { group, pitch, partials: whole(group * counts.far) }
    }

    /// Partials of several accumulators through shared memory.
    fn through_memory(
        &self,
        b: &mut Builder,
        name: &str,
        threads: u32,
        accumulators: &[Vec<ValueId>],
        merge: Merge<'_>,
    ) -> Vec<Vec<ValueId>> {
        let (shares, writes) = self.place(b);
        let sharing = self.sharing(threads);
        let types: Vec<Type> = accumulators[0].iter().map(|state| b.ty(*state)).collect();
        let lanes = lanes_of(self, &types, accumulators.len());
        let columns: Vec<Column> = (types.iter().enumerate())
            .map(|(n, ty)| {
                let element = stored_as(*ty);
                let (units, elements) = units(self, threads, element, &lanes);
                let name = if types.len() > 1 { format!("{name}{n}") } else { name.to_owned() };
                let alignment = VECTOR_BYTES;
                let buffer = b.buffer(Buffer { name, element, elements, alignment, slots: 1, sharing });
                Column { buffer, units, ty: *ty }
            })
            .collect();
        b.bar_sync();
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
        b.bar_sync();
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

/// The type that a state has in memory.
pub(super) fn stored_as(ty: Type) -> ElementType {
    match ty {
        Type::Element(element) => element,
        Type::I32 => ElementType::I32,
        Type::I64 => ElementType::I64,
    }
}

/// One state of all accumulators: its partials.
struct Column {
    buffer: BufferId,
    units: Vec<Unit>,
    ty: Type,
}

impl Unit {
    /// Where this thread's group begins in a part, without the part's start.
    fn group(&self, b: &mut Builder, shares: &Shares<ValueId>) -> ValueId {
        let group = literal(b, self.layout.group * self.lanes);
        let far = b.index_mul(shares.far, group);
        let lanes = literal(b, self.lanes);
        let near = b.index_mul(shares.near, lanes);
        b.index_add(far, near)
    }

    /// Where the partial with the number `n · each` lies, without the part's start.
    fn behind(&self, b: &mut Builder, shares: &Shares<ValueId>, n: ValueId, each: u32) -> ValueId {
        let first = self.group(b, shares);
        let pitch = literal(b, self.layout.pitch * self.lanes * each);
        let behind = b.index_mul(n, pitch);
        b.index_add(first, behind)
    }
}

impl Column {
    /// This thread's partial.
    fn write(&self, b: &mut Builder, unit: &Unit, shares: &Shares<ValueId>, states: &[ValueId]) {
        let element = stored_as(self.ty);
        let offset = unit.behind(b, shares, shares.partial, 1);
        let start = literal(b, unit.start);
        let offset = b.index_add(offset, start);
        let stored = |state: &ValueId| if self.ty.is_index() { b.from_index(*state, element) } else { *state };
        let values: Vec<ValueId> = states.iter().map(stored).collect();
        b.store(Memory::Buffer(self.buffer), offset, &values);
    }

    /// Of each of `count` partials after the first `skipped` ones from that offset on, the state of every accumulator
    /// of a part.
    fn read(&self, b: &mut Builder, unit: &Unit, from: ValueId, skipped: u32, count: u32) -> Vec<Vec<ValueId>> {
        // Partials that one instruction reads.
        let most =
            if unit.layout.pitch == 1 && unit.lanes == 1 { VECTOR_BYTES / stored_as(self.ty).bytes() } else { 1 };
        let mut read: Vec<Vec<ValueId>> = Vec::with_capacity(count as usize);
        while let left @ 1.. = count - read.len() as u32 {
            let at = literal(b, (skipped + read.len() as u32) * unit.layout.pitch * unit.lanes + unit.start);
            let offset = b.index_add(from, at);
            // The start is a multiple of what can be read, and so is what follows.
            let partials = most.min(1 << left.ilog2());
            let loaded = b.load(Memory::Buffer(self.buffer), offset, partials * unit.lanes, None);
            for states in loaded.chunks(unit.lanes as usize) {
                let value = |state: &ValueId| if self.ty.is_index() { b.to_index(*state, self.ty) } else { *state };
                read.push(states.iter().map(value).collect());
            }
        }
        read
    }
}

/// What a thread reads: the partials of its group.
struct Partials<'a> {
    columns: &'a [Column],
    shares: &'a Shares<ValueId>,
}

impl Partials<'_> {
    /// For each accumulator, the merge of `count` partials, from the first of that chunk on, in order.
    fn merged(&self, b: &mut Builder, count: u32, chunk: Option<ValueId>, merge: Merge<'_>) -> Vec<Vec<ValueId>> {
        let mut found = Vec::new();
        for part in 0..self.columns[0].units.len() {
            let lanes = self.columns[0].units[part].lanes as usize;
            let read = |b: &mut Builder, skipped: u32, count: u32| {
                let mut partials = vec![vec![Vec::new(); lanes]; count as usize];
                for column in self.columns {
                    let unit = &column.units[part];
                    let from = match chunk {
                        Some(chunk) => unit.behind(b, self.shares, chunk, CHUNK),
                        None => unit.group(b, self.shares),
                    };
                    for (partial, states) in partials.iter_mut().zip(column.read(b, unit, from, skipped, count)) {
                        partial.iter_mut().zip(states).for_each(|(accumulator, state)| accumulator.push(state));
                    }
                }
                partials
            };
            found.extend(tree(b, 0, count, &read, merge));
        }
        found
    }
}

/// The merge of two states of each accumulator.
fn merge_each(b: &mut Builder, left: &[Vec<ValueId>], right: &[Vec<ValueId>], merge: Merge<'_>) -> Vec<Vec<ValueId>> {
    left.iter().zip(right).map(|(left, right)| merge(b, left, right)).collect()
}

/// Reads so many partials after the first ones that are skipped: of each one, the states of some accumulators.
type Read<'a> = &'a dyn Fn(&mut Builder, u32, u32) -> Vec<Vec<Vec<ValueId>>>;

/// The merge of `count` partials after the first `skipped` ones, in order, for each accumulator: pairs of neighbours,
/// then pairs of those, with few of them read ahead.
fn tree(b: &mut Builder, skipped: u32, count: u32, read: Read<'_>, merge: Merge<'_>) -> Vec<Vec<ValueId>> {
    if count > CHUNK {
        // The largest power of two below it.
        let half = 1 << (count - 1).ilog2();
        let left = tree(b, skipped, half, read, merge);
        let right = tree(b, skipped + half, count - half, read, merge);
        return merge_each(b, &left, &right, merge);
    }
    let mut parts = read(b, skipped, count);
    while parts.len() > 1 {
        let mut rest = parts.into_iter();
        parts = Vec::new();
        while let Some(left) = rest.next() {
            parts.push(match rest.next() {
                Some(right) => merge_each(b, &left, &right, merge),
                None => left,
            });
        }
    }
    parts.swap_remove(0)
}
#[cfg(test)]
#[path = "cta_reduce_tests.rs"]
mod tests;
