//! Partials in shared memory: where those of each group lie, how they are written, read and merged.

use tilewright_kernel::ElementType;
use tilewright_kernel::banks;
use tilewright_sorted::SortedMap;

use super::plan::{Plan, Shares, literal};
use super::{CHUNK, Merge, VECTOR_BYTES};
use crate::kernel_ir::{BufferId, Builder, Memory, Sharing, Type, ValueId};
use crate::target::{WARP, WARPGROUP};

/// Where partials lie in a part of a buffer, counted by what one partial takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spacing {
    /// From one group to the next, where a warp has one.
    group: u32,
    /// From one partial of a group to the next.
    pitch: u32,
    /// All of them.
    partials: u32,
}

/// Accumulators of which one state each makes up a partial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// How many: a power of two.
    pub lanes: u32,
    spacing: Spacing,
    /// Where the part begins, in elements.
    start: u32,
}

/// How many accumulators at a time have partials of their own, so that one instruction moves one state of theirs.
pub(super) fn lanes_of(plan: &Plan, types: &[Type], count: usize) -> Vec<u32> {
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
pub(super) fn units(plan: &Plan, element: ElementType, lanes: &[u32]) -> (Vec<Unit>, u32) {
    let mut found: Vec<Unit> = Vec::with_capacity(lanes.len());
    let mut start = 0;
    for lanes in lanes.iter().copied() {
        let same = found.last().filter(|unit| unit.lanes == lanes);
        let spacing = same.map_or_else(|| plan.spacing(element.bytes() * lanes), |unit| unit.spacing);
        found.push(Unit { lanes, spacing, start });
        start += spacing.partials * lanes;
    }
    (found, start)
}

impl Plan {
    /// Who writes and reads the partials of one group, threads without a group included.
    pub fn sharing(&self) -> Sharing {
        let threads = self.threads;
        let groups: Vec<(u32, u32)> = (0..threads).map(|t| self.place_of(t).0).map(|s| (s.far, s.near)).collect();
        let mut first: SortedMap<(u32, u32), u32> = SortedMap::new();
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
    fn spacing(&self, bytes: u32) -> Spacing {
        let counts = self.counts();
        let granule = VECTOR_BYTES / bytes;
        let whole = |partials: u32| partials.next_multiple_of(granule);
        if counts.near == 1 {
            let group = whole(counts.partial);
            return Spacing { group, pitch: 1, partials: group * counts.far };
        }
        let places: Vec<(Shares<u32>, bool)> = (0..self.threads).map(|thread| self.place_of(thread)).collect();
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
        Spacing { group, pitch, partials: whole(group * counts.far) }
    }
}

/// The type that a state has in memory.
pub(in crate::lower) fn stored_as(ty: Type) -> ElementType {
    match ty {
        Type::Element(element) => element,
        Type::I32 => ElementType::I32,
        Type::I64 => ElementType::I64,
    }
}

/// One state of all accumulators: its partials.
pub(super) struct Column {
    pub buffer: BufferId,
    pub units: Vec<Unit>,
    pub ty: Type,
}

impl Unit {
    /// Where this thread's group begins in a part, without the part's start.
    fn group(&self, b: &mut Builder, shares: &Shares<ValueId>) -> ValueId {
        let group = literal(b, self.spacing.group * self.lanes);
        let far = b.index_mul(shares.far, group);
        let lanes = literal(b, self.lanes);
        let near = b.index_mul(shares.near, lanes);
        b.index_add(far, near)
    }

    /// Where the partial with the number `n · each` lies, without the part's start.
    fn behind(&self, b: &mut Builder, shares: &Shares<ValueId>, n: ValueId, each: u32) -> ValueId {
        let first = self.group(b, shares);
        let pitch = literal(b, self.spacing.pitch * self.lanes * each);
        let behind = b.index_mul(n, pitch);
        b.index_add(first, behind)
    }
}

impl Column {
    /// This thread's partial.
    pub fn write(&self, b: &mut Builder, unit: &Unit, shares: &Shares<ValueId>, states: &[ValueId]) {
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
            if unit.spacing.pitch == 1 && unit.lanes == 1 { VECTOR_BYTES / stored_as(self.ty).bytes() } else { 1 };
        let mut read: Vec<Vec<ValueId>> = Vec::with_capacity(count as usize);
        while let left @ 1.. = count - read.len() as u32 {
            let at = literal(b, (skipped + read.len() as u32) * unit.spacing.pitch * unit.lanes + unit.start);
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
pub(super) struct Partials<'a> {
    pub columns: &'a [Column],
    pub shares: &'a Shares<ValueId>,
}

impl Partials<'_> {
    /// For each accumulator, the merge of `count` partials, from the first of that chunk on, in order.
    pub fn merged(&self, b: &mut Builder, count: u32, chunk: Option<ValueId>, merge: Merge<'_>) -> Vec<Vec<ValueId>> {
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
pub(super) fn merge_each(
    b: &mut Builder,
    left: &[Vec<ValueId>],
    right: &[Vec<ValueId>],
    merge: Merge<'_>,
) -> Vec<Vec<ValueId>> {
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
