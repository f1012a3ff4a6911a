//! What threads do to merge: exchanges between lanes, then a trip through shared memory, from the layout of groups in
//! the numbers of threads.

use tilewright_kernel::algorithm::Compare;

use super::Merge;
use crate::kernel_ir::{Builder, Type, ValueId};
use crate::layout::{self, Layout, Path, Step};
use crate::lower::arithmetic::Emit;
use crate::target::WARP;

/// What a digit of a thread's number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) enum Counted {
    /// Groups.
    Groups,
    /// Threads of a group, in the order of the merge.
    Members,
}

/// A digit of thread numbers. Threads before its first value, and those after the last value of the outermost digit,
/// belong to no group. Below the innermost stride each remainder has groups of its own. All threads of a group exist.
pub(in crate::lower) type Digit = layout::Digit<Counted, ()>;

/// So many values from `low` on, as far apart as that.
pub(in crate::lower) const fn digit(of: Counted, stride: i128, extent: i128, low: i128) -> Digit {
    layout::Digit { source: Some(of), unit: 1, extent, target: (), stride, low }
}

/// What threads are to the trip through shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// Counted of the group, by digits in which the threads of a warp agree.
    Far,
    /// Counted of the group, by the others.
    Near,
    /// Counted of the partial in its group.
    Partial,
}

/// A value for each share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shares<T> {
    pub far: T,
    pub near: T,
    pub partial: T,
}

impl<T> Shares<T> {
    fn of_mut(&mut self, share: Share) -> &mut T {
        match share {
            Share::Far => &mut self.far,
            Share::Near => &mut self.near,
            Share::Partial => &mut self.partial,
        }
    }
}

/// A step of merging lanes.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// The bit in which partners differ.
    mask: u32,
    /// The pair of blocks whose right half has no value: how a thread's pair follows from its number, and the pair.
    alone: Option<(Path, u32)>,
}

pub(super) struct Plan {
    pub threads: u32,
    pub exchanges: Vec<Exchange>,
    /// What is left after the exchanges; without a source are digits in which threads have the same partial, that with
    /// value 0 in any case.
    layout: Layout<Share, ()>,
    paths: Vec<Path>,
    /// Whether the exchanges give every thread its result.
    pub is_done: bool,
}

impl Plan {
    pub fn new(threads: u32, digits: &[Digit]) -> Self {
        let size = i128::from(threads);
        let inner = digits.last().filter(|last| last.stride > 1);
        let inner = inner.map(|last| digit(Counted::Groups, 1, last.stride, 0));
        let groups = Layout::counting(digits.iter().copied().chain(inner), vec![((), size)]).normal();
        let digits = groups.digits();
        let last: i128 = digits.iter().map(|d| d.low + (d.extent - 1) * d.stride).sum();
        let (mut exchanges, mut is_done) = (Vec::new(), true);
        // What is left, innermost first.
        let mut left: Vec<layout::Digit<Share, ()>> = Vec::new();
        // Whether the reduced digits inside are merged whole.
        let mut whole = true;
        for (n, own) in digits.iter().enumerate().rev() {
            let layout::Digit { stride, extent, low, .. } = *own;
            let mut place = |source, stride, extent| {
                left.push(layout::Digit { source, unit: 1, extent, target: (), stride, low: 0 });
            };
            if own.source == Some(Counted::Groups) || extent == 1 {
                let agrees = digits[..=n].iter().all(|d| d.stride % i128::from(WARP) == 0);
                place(Some(if agrees { Share::Far } else { Share::Near }), stride, extent);
            } else {
                let lanes = if whole { lanes(own, &digits[..n]) } else { 1 };
                for step in (0..lanes.trailing_zeros()).map(|bit| 1 << bit) {
                    let blocks = (extent + step - 1) / step;
                    let pair = || groups.within(n).with(Step::Div(2 * stride * step));
                    let alone = (blocks % 2 != 0).then(|| (pair(), (blocks / 2) as u32));
                    exchanges.push(Exchange { mask: (stride * step) as u32, alone });
                }
                if lanes > 1 {
                    place(None, stride, lanes);
                    let block = stride * lanes;
                    is_done &= extent % lanes == 0 || (last / block + 1) * block <= size;
                }
                let rest = (extent + lanes - 1) / lanes;
                if rest > 1 {
                    place(Some(Share::Partial), stride * lanes, rest);
                    (whole, is_done) = (false, false);
                }
            }
            if let Some(outermost) = left.last_mut() {
                outermost.low = low;
            }
        }
        let layout = Layout::counting(left.into_iter().rev(), vec![((), size)]);
        let paths = (0..layout.digits().len()).map(|n| layout.path(n)).collect();
        Self { threads, exchanges, layout, paths, is_done }
    }

    /// How many there are of each share.
    pub fn counts(&self) -> Shares<u32> {
        let mut counts = Shares { far: 1, near: 1, partial: 1 };
        for digit in self.layout.digits() {
            if let Some(share) = digit.source {
                *counts.of_mut(share) *= digit.extent as u32;
            }
        }
        counts
    }

    /// The digits of the layout, each with how it follows from a thread's number and how many values of it write.
    fn places(&self) -> impl Iterator<Item = (&layout::Digit<Share, ()>, &Path, i128)> {
        let digits = self.layout.digits().iter().zip(&self.paths);
        digits.map(|(digit, path)| (digit, path, if digit.source.is_some() { digit.extent } else { 1 }))
    }

    /// The shares of a thread, and whether it writes.
    pub fn place_of(&self, thread: u32) -> (Shares<u32>, bool) {
        let (mut shares, mut writes) = (Shares { far: 0, near: 0, partial: 0 }, true);
        for (digit, path, limit) in self.places() {
            let value = path.at(thread.into());
            writes &= value < limit;
            if let Some(share) = digit.source {
                *shares.of_mut(share) += (value % digit.extent * digit.unit) as u32;
            }
        }
        (shares, writes)
    }

    /// The shares of this thread, and whether it writes; as [`Self::place_of`] computes them.
    pub fn place(&self, b: &mut Builder) -> (Shares<ValueId>, ValueId) {
        let (zero, mut writes, thread) = (literal(b, 0), b.bool_literal(true), b.thread_in_role());
        let mut shares = Shares { far: zero, near: zero, partial: zero };
        for (digit, path, limit) in self.places() {
            let value = path.of(&mut Emit { b, index: Type::I32 }, &thread);
            let limit = literal(b, limit as u32);
            let below = b.index_compare(Compare::Lt, value, limit);
            writes = b.and(writes, below);
            if let Some(share) = digit.source {
                let (extent, unit) = (literal(b, digit.extent as u32), literal(b, digit.unit as u32));
                let value = b.index_mod(value, extent);
                let counted = b.index_mul(value, unit);
                let share = shares.of_mut(share);
                *share = b.index_add(*share, counted);
            }
        }
        (shares, writes)
    }
}

/// How many values of a reduced digit lanes can merge: a power of two. Blocks of so many stay apart if all strides
/// outside are multiples of theirs, and so is what stands before a first value.
fn lanes(digit: &Digit, outer: &[Digit]) -> i128 {
    let mut lanes = 1;
    let apart = |o: &Digit, block: i128| o.stride % block == 0 && o.low % block == 0;
    let fits = |block: i128| block <= WARP.into() && digit.low % block == 0 && outer.iter().all(|o| apart(o, block));
    while (digit.stride as u128).is_power_of_two() && lanes < digit.extent && fits(2 * lanes * digit.stride) {
        lanes *= 2;
    }
    lanes
}

pub(super) fn literal(b: &mut Builder, n: u32) -> ValueId {
    b.index_literal(Type::I32, i64::from(n))
}

impl Exchange {
    pub fn merge(&self, b: &mut Builder, states: &[ValueId], commutes: bool, merge: Merge<'_>) -> Vec<ValueId> {
        if commutes && self.alone.is_none() {
            let others: Vec<ValueId> = states.iter().map(|state| b.shuffle(*state, self.mask)).collect();
            return merge(b, states, &others);
        }
        let (thread, mask, zero) = (b.thread_in_role(), literal(b, self.mask), literal(b, 0));
        let bit = b.index_and(thread, mask);
        let right = b.index_compare(Compare::Ne, bit, zero);
        let others: Vec<ValueId> = states.iter().map(|state| b.shuffle(*state, self.mask)).collect();
        let both = || states.iter().zip(&others);
        let first: Vec<ValueId> = both().map(|(own, other)| b.select(right, *other, *own)).collect();
        let second: Vec<ValueId> = both().map(|(own, other)| b.select(right, *own, *other)).collect();
        let merged = merge(b, &first, &second);
        let Some((pair, alone)) = &self.alone else { return merged };
        let pair = pair.of(&mut Emit { b, index: Type::I32 }, &thread);
        let alone = literal(b, *alone);
        let is_alone = b.index_compare(Compare::Eq, pair, alone);
        first.iter().zip(&merged).map(|(first, merged)| b.select(is_alone, *first, *merged)).collect()
    }
}
