//! What happened since the last barrier, on some path: accesses of buffers, each with what is known of the iterations
//! in which it happened.
//!
//! An access is remembered with two sets of loops. Those around it that had another iteration after it, in that
//! execution of theirs: it was not in the last one; after a loop in whose last iteration it was as well, and in others,
//! it was in any. And those around the present place that have begun another
//! iteration since: this is not their first one since then. So of loops that are around both and have begun nothing
//! since, it is this iteration. **Approximation.** Beyond [`MOST_ACCESSES`] of a kind nothing is known of iterations.
//!
//! This file is longer than 500 lines: lists of accesses, what happened to a buffer, to a cluster and to all are joined
//! and compared alike.

use std::cmp::Ordering;
use std::rc::Rc;

use tilewright_sorted::SortedSet;

use super::dependence::Group;
use crate::kernel_ir::{BufferId, Kernel, Sharing};
use crate::target::WARP;

/// Accesses of a kind whose iterations are told apart.
const MOST_ACCESSES: usize = 64;
/// Loops that are told apart.
const MOST_LOOPS: usize = 31;

/// An access on a path. In order of groups; what is known of none of its iterations is the last of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// What was accessed there.
    pub group: Group,
    /// By depth, loops around it that had another iteration after it; all bits if nothing is known.
    own: u32,
    /// By depth, loops around it that had another one after it, or none: none of these is in `own`.
    any: u32,
    /// By depth, loops around the present place that have begun another iteration since; all bits if nothing is known.
    now: u32,
}

impl PartialOrd for Access {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Access {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Access {
    /// What it is ordered by, as one number.
    const fn key(self) -> u128 {
        (self.group as u128) << 96 | (self.any as u128) << 64 | (self.own as u128) << 32 | self.now as u128
    }

    /// One just now.
    pub const fn of(group: Group) -> Self {
        Self { group, own: 0, any: 0, now: 0 }
    }

    const fn anywhere(group: Group) -> Self {
        Self { group, own: u32::MAX, any: u32::MAX, now: u32::MAX }
    }

    /// Whether nothing is known of iterations.
    pub const fn is_anywhere(self) -> bool {
        self.own == u32::MAX
    }

    /// Whether the loop around it at this depth had another iteration after it, in that execution of it, if that is
    /// known.
    pub const fn had_another(self, depth: usize) -> Option<bool> {
        if depth < MOST_LOOPS && self.any >> depth & 1 == 1 {
            return None;
        }
        Some(depth < MOST_LOOPS && self.own >> depth & 1 == 1)
    }

    /// Whether the loop around the present place at this depth has begun another iteration since.
    pub const fn has_begun_another(self, depth: usize) -> bool {
        depth < MOST_LOOPS && self.now >> depth & 1 == 1
    }

    /// When a loop at this depth, around the access or not, begins another iteration.
    fn again(self, depth: usize, is_around: bool) -> Self {
        if self.is_anywhere() || depth >= MOST_LOOPS {
            return Self::anywhere(self.group);
        }
        let bit = 1 << depth;
        // Of the execution in which the access was.
        let is_same = self.now & (bit - 1) == 0;
        let own = if is_around && is_same { self.own | bit & !self.any } else { self.own };
        Self { own, now: self.now | bit, ..self }
    }

    /// After a loop at this depth.
    const fn behind(self, depth: usize) -> Self {
        if self.is_anywhere() || depth >= MOST_LOOPS {
            return self;
        }
        Self { now: self.now & !(1 << depth), ..self }
    }
}

/// Accesses in order, each with the largest unit that has waited for itself since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Accesses(Vec<(Access, Sharing)>);

impl Accesses {
    /// Where it is, or would be.
    fn find(&self, access: Access) -> Result<usize, usize> {
        tilewright_sorted::find(&self.0, |known| &known.0, &access)
    }

    /// Whether nothing is known of one. A loop, as in the next one: a debug build calls closures one by one.
    fn is_any_anywhere(&self) -> bool {
        for (access, _) in &self.0 {
            if access.is_anywhere() {
                return true;
            }
        }
        false
    }

    /// Whether one knows of iterations of a loop at this depth.
    fn is_of_loop(&self, depth: usize) -> bool {
        for (access, _) in &self.0 {
            if depth < MOST_LOOPS && !access.is_anywhere() && (access.own | access.now) >> depth & 1 == 1 {
                return true;
            }
        }
        false
    }

    /// Whether a change changes one.
    fn is_changed(&self, how: &dyn Fn(Access) -> Access) -> bool {
        for (access, _) in &self.0 {
            if how(*access) != *access {
                return true;
            }
        }
        false
    }

    /// Adds one.
    pub fn add(&mut self, access: Access, among: Sharing) {
        let known = self.find(access).or_else(|_| self.find(Access::anywhere(access.group)));
        match known {
            Ok(at) => self.0[at].1 = self.0[at].1.min(among),
            Err(_) => self.extend([(access, among)]),
        }
    }

    /// Adds these, which may be in any order.
    fn extend(&mut self, others: impl IntoIterator<Item = (Access, Sharing)>) {
        others.into_iter().for_each(|(access, among)| self.insert(access, among));
        self.settle();
    }

    /// Adds these, which are in order. One loop: this is where most of the time goes.
    fn merge(&mut self, others: &[(Access, Sharing)]) {
        let own = std::mem::take(&mut self.0);
        let mut all = Vec::with_capacity(own.len() + others.len());
        let (mut at, mut next) = (0, 0);
        while at < own.len() && next < others.len() {
            let (first, second) = (own[at], others[next]);
            let order = first.0.key().cmp(&second.0.key());
            all.push(match order {
                Ordering::Less => first,
                Ordering::Equal => (first.0, first.1.min(second.1)),
                Ordering::Greater => second,
            });
            at += usize::from(order != Ordering::Greater);
            next += usize::from(order != Ordering::Less);
        }
        all.extend_from_slice(&own[at..]);
        all.extend_from_slice(&others[next..]);
        self.0 = all;
        self.settle();
    }

    /// What holds of each list: what stands for all of a group is alone, and there are not too many.
    fn settle(&mut self) {
        self.absorb();
        if self.0.len() > MOST_ACCESSES && self.0.iter().any(|(a, _)| !a.is_anywhere()) {
            let all = std::mem::take(&mut self.0);
            all.into_iter().for_each(|(access, among)| self.insert(Access::anywhere(access.group), among));
        }
    }

    /// Puts one in its place, once.
    fn insert(&mut self, access: Access, among: Sharing) {
        // Most come in order.
        if self.0.last().is_none_or(|last| last.0 < access) {
            return self.0.push((access, among));
        }
        match self.find(access) {
            Ok(at) => self.0[at].1 = self.0[at].1.min(among),
            Err(at) => self.0.insert(at, (access, among)),
        }
    }

    /// Lets those of which nothing is known stand for all of their groups, of which each is the last.
    fn absorb(&mut self) {
        if !self.is_any_anywhere() {
            return;
        }
        self.0.reverse();
        self.0.dedup_by(|next, kept| {
            let is_one = kept.0 == Access::anywhere(next.0.group);
            if is_one {
                kept.1 = kept.1.min(next.1);
            }
            is_one
        });
        self.0.reverse();
    }

    /// Whether adding one changes nothing.
    fn has(&self, access: Access) -> bool {
        let known = self.find(access).or_else(|_| self.find(Access::anywhere(access.group)));
        known.is_ok_and(|at| self.0[at].1 == Sharing::Thread)
    }

    /// Whether adding others changes nothing. Both are in order, and what stands for all of a group is its last one.
    fn has_all(&self, others: &Self) -> bool {
        let own = &self.0[..];
        let mut at = 0;
        for (access, among) in &others.0 {
            let key = access.key();
            while at < own.len() && own[at].0.key() < key {
                at += 1;
            }
            if at == own.len() || own[at].1 > *among {
                return false;
            }
            let known = own[at].0;
            if known.key() != key && (known.group != access.group || !known.is_anywhere()) {
                return false;
            }
        }
        true
    }

    /// Adds others.
    pub fn join(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
        } else if !self.has_all(other) {
            self.merge(&other.0);
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Access, Sharing)> {
        self.0.iter().copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes out all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// After a barrier of so many threads, where an element has as many at most as `most`.
    fn sync(&mut self, among: Sharing, most: Sharing) {
        if among >= most {
            return self.clear();
        }
        self.0.iter_mut().for_each(|(_, since)| *since = among.max(*since));
    }

    /// After a loop at this depth.
    fn behind(&mut self, depth: usize) {
        self.change(&|access| access.behind(depth));
        // In order, one that had another iteration comes after the one that had none.
        let mut at = self.0.len();
        while at > 0 && depth < MOST_LOOPS {
            at -= 1;
            let (access, among) = self.0[at];
            if access.is_anywhere() || access.own >> depth & 1 == 0 {
                continue;
            }
            let own = access.own & !(1 << depth);
            let Ok(last) = self.find(Access { own, ..access }) else { continue };
            if self.0[last].1 == among {
                self.0.remove(at);
                self.0.remove(last);
                self.insert(Access { own, any: access.any | 1 << depth, ..access }, among);
                at = at.min(self.0.len());
            }
        }
    }

    fn change(&mut self, how: &dyn Fn(Access) -> Access) {
        let (mut kept, mut at) = (0, 0);
        while at < self.0.len() {
            let (access, among) = (how(self.0[at].0), self.0[at].1);
            let order = match kept {
                0 => Ordering::Less,
                _ => self.0[kept - 1].0.key().cmp(&access.key()),
            };
            match order {
                Ordering::Less => {
                    self.0[kept] = (access, among);
                    kept += 1;
                }
                Ordering::Equal => self.0[kept - 1].1 = self.0[kept - 1].1.min(among),
                // Most stay in order.
                Ordering::Greater => {
                    let rest = self.0.split_off(at);
                    self.0.truncate(kept);
                    return self.extend(rest.into_iter().map(|(access, among)| (how(access), among)));
                }
            }
            at += 1;
        }
        self.0.truncate(kept);
        self.absorb();
    }
}

/// What happened to one buffer since the last barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Uses {
    /// Its instances that a thread read or wrote: the newest first, as many as it has slots.
    pub used: Vec<Accesses>,
    /// What used one that had the slot of such an instance before.
    pub stale: Vec<Accesses>,
    /// What wrote the newest instance.
    pub written: Accesses,
    /// Fetches that nobody may have waited for.
    pub flying: Accesses,
    /// Fetches that their threads have waited for.
    pub landed: Accesses,
}

impl Uses {
    fn nothing(slots: usize) -> Self {
        let (none, each) = (Accesses::default, || vec![Accesses::default(); slots]);
        Self { used: each(), stale: each(), written: none(), flying: none(), landed: none() }
    }

    /// All but what is under way.
    fn over(&self) -> impl Iterator<Item = &Accesses> {
        self.used.iter().chain(&self.stale).chain([&self.written, &self.landed])
    }

    fn over_mut(&mut self) -> impl Iterator<Item = &mut Accesses> {
        self.used.iter_mut().chain(&mut self.stale).chain([&mut self.written, &mut self.landed])
    }

    fn has_all(&self, others: &Self) -> bool {
        let all = |own: &[Accesses], others: &[Accesses]| {
            for (n, accesses) in others.iter().enumerate() {
                if !own[n].has_all(accesses) {
                    return false;
                }
            }
            true
        };
        all(&self.used, &others.used)
            && all(&self.stale, &others.stale)
            && self.written.has_all(&others.written)
            && self.landed.has_all(&others.landed)
            && self.flying.has_all(&others.flying)
    }

    fn join(&mut self, other: &Self) {
        self.over_mut().zip(other.over()).for_each(|(a, b)| a.join(b));
        self.flying.join(&other.flying);
    }
}

/// What one of two lists has.
fn or(own: &mut [bool], others: &[bool]) {
    for (n, other) in others.iter().enumerate() {
        own[n] |= other;
    }
}

/// What happened since the last barrier of the cluster, which others of its blocks may not know. They run one program:
/// what a thread of this one did, one of another may have done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InCluster {
    /// The block began, and made barriers of copies ready.
    pub begun: bool,
    /// Buffers that a thread read or wrote.
    pub touched: Vec<bool>,
    /// Buffers that a thread wrote in all blocks.
    pub spread: Vec<bool>,
    /// Barriers of which threads waited for a phase.
    pub waited: Vec<bool>,
    /// A thread released a barrier of another block.
    pub told: bool,
}

impl InCluster {
    fn nothing(kernel: &Kernel) -> Self {
        let buffers = || vec![false; kernel.buffers.len()];
        let waited = vec![false; kernel.barriers.len()];
        Self { begun: false, touched: buffers(), spread: buffers(), waited, told: false }
    }

    /// What happened on either of two paths.
    pub fn join(&mut self, other: &Self) {
        self.begun |= other.begun;
        self.told |= other.told;
        or(&mut self.touched, &other.touched);
        or(&mut self.spread, &other.spread);
        or(&mut self.waited, &other.waited);
    }
}

/// What happened since the last barrier, on some path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Since {
    /// The same of barriers of the cluster.
    pub in_cluster: InCluster,
    /// Of each buffer. Paths share what is the same on them: most of what a step does is to one buffer.
    buffers: Vec<Rc<Uses>>,
    /// Barriers of copies were made ready.
    pub ready: bool,
    /// Barriers of which threads waited for a phase: one that comes late must not find that another one has ended
    /// since.
    pub waited: Vec<bool>,
    /// Buffers that a thread read or wrote, whatever barriers of warps there were.
    pub touched: Vec<bool>,
    /// Buffers that products read which may be under way, and those that products read since which were waited for.
    multiplying: SortedSet<BufferId>,
    multiplied: SortedSet<BufferId>,
    /// A thread published.
    pub published: bool,
    /// The elected thread waited for reads.
    pub awaited: bool,
    /// A thread other than the first accessed memory that blocks share.
    pub abroad: bool,
    /// The first thread arrived.
    pub arrived: bool,
}

impl Since {
    /// Where a kernel begins.
    pub fn nothing(kernel: &Kernel) -> Self {
        let uses = kernel.buffers.iter().map(|b| Rc::new(Uses::nothing(b.slots.max(1) as usize)));
        Self {
            in_cluster: InCluster::nothing(kernel),
            buffers: uses.collect(),
            ready: false,
            waited: vec![false; kernel.barriers.len()],
            touched: vec![false; kernel.buffers.len()],
            multiplying: SortedSet::new(),
            multiplied: SortedSet::new(),
            published: false,
            awaited: false,
            abroad: false,
            arrived: false,
        }
    }

    /// What happened to a buffer.
    pub fn of(&self, buffer: BufferId) -> &Uses {
        &self.buffers[buffer.index()]
    }

    /// A thread reads the newest instances of a buffer, so many of them.
    pub fn read(&mut self, buffer: BufferId, access: Access, instances: usize) {
        self.touched[buffer.index()] = true;
        if self.of(buffer).used[..instances].iter().any(|used| !used.has(access)) {
            let uses = Rc::make_mut(&mut self.buffers[buffer.index()]);
            uses.used[..instances].iter_mut().for_each(|used| used.add(access, Sharing::Thread));
        }
    }

    /// A product reads a buffer.
    pub fn multiply(&mut self, buffer: BufferId) {
        self.touched[buffer.index()] = true;
        self.multiplying.insert(buffer);
    }

    /// Warpgroups have waited for their products, for all of them or not.
    pub fn products_end(&mut self, all: bool) {
        if all {
            self.multiplied.extend(std::mem::take(&mut self.multiplying).iter().copied());
        }
    }

    /// Whether a product of another warpgroup may read a buffer still.
    pub fn is_multiplied(&self, buffer: BufferId) -> bool {
        self.multiplying.contains(&buffer) || self.multiplied.contains(&buffer)
    }

    /// A thread writes the newest instance of a buffer.
    pub fn write(&mut self, buffer: BufferId, access: Access) {
        self.touched[buffer.index()] = true;
        let uses = self.of(buffer);
        if !uses.used[0].has(access) || !uses.written.has(access) {
            let uses = Rc::make_mut(&mut self.buffers[buffer.index()]);
            uses.used[0].add(access, Sharing::Thread);
            uses.written.add(access, Sharing::Thread);
        }
    }

    /// A thread starts to fetch to a buffer.
    pub fn fetch(&mut self, buffer: BufferId, access: Access) {
        if !self.of(buffer).flying.has(access) {
            Rc::make_mut(&mut self.buffers[buffer.index()]).flying.add(access, Sharing::Thread);
        }
    }

    /// After a barrier of those who share an element of such a buffer, of so many threads in all.
    pub fn sync(&mut self, kernel: &Kernel, among: Sharing, threads: u32) {
        if among == Sharing::Block || among == Sharing::Warp && threads <= WARP {
            // What is under way does not wait.
            for uses in self.buffers.iter_mut().filter(|uses| !uses.over().all(Accesses::is_empty)) {
                let flying = uses.flying.clone();
                *uses = Rc::new(Uses { flying, ..Uses::nothing(uses.used.len()) });
            }
            self.waited.fill(false);
            self.touched.fill(false);
            self.multiplied = SortedSet::new();
            (self.ready, self.published, self.awaited, self.abroad, self.arrived) = (false, false, false, false, false);
            return;
        }
        let all = self.buffers.iter_mut().zip(&kernel.buffers);
        for (uses, buffer) in all.filter(|(uses, _)| !uses.over().all(Accesses::is_empty)) {
            Rc::make_mut(uses).over_mut().for_each(|accesses| accesses.sync(among, buffer.sharing));
        }
    }

    /// After a barrier of the cluster, for so many threads of each block.
    pub fn sync_cluster(&mut self, kernel: &Kernel, threads: u32) {
        self.sync(kernel, Sharing::Block, threads);
        let InCluster { begun, touched, spread, waited, told } = &mut self.in_cluster;
        (*begun, *told) = (false, false);
        [touched, spread, waited].into_iter().for_each(|list| list.fill(false));
    }

    /// A new instance of a buffer begins.
    pub fn renew(&mut self, buffer: BufferId) {
        let uses = &mut self.buffers[buffer.index()];
        let is_same = uses.used.iter().chain(&uses.stale).all(Accesses::is_empty) && uses.written.is_empty();
        if is_same {
            return;
        }
        let Uses { used, stale, written, .. } = Rc::make_mut(uses);
        used.rotate_right(1);
        stale.rotate_right(1);
        stale[0].join(&std::mem::take(&mut used[0]));
        written.clear();
    }

    /// Each thread has waited for its fetches, for all of them or not.
    pub fn land(&mut self, all: bool) {
        for uses in self.buffers.iter_mut().filter(|uses| !uses.flying.is_empty()) {
            let Uses { used, landed, flying, .. } = Rc::make_mut(uses);
            landed.join(flying);
            used.iter_mut().for_each(|used| used.join(flying));
            if all {
                flying.clear();
            }
        }
    }

    /// A loop at this depth begins another iteration; `is_around` says whether it is around an access.
    pub fn again(&mut self, depth: usize, is_around: &dyn Fn(Group) -> bool) {
        self.change(&|access| access.again(depth, is_around(access.group)));
    }

    /// After a loop at this depth.
    pub fn behind(&mut self, depth: usize) {
        for uses in &mut self.buffers {
            if uses.over().chain([&uses.flying]).any(|accesses| accesses.is_of_loop(depth)) {
                let uses = Rc::make_mut(uses);
                uses.over_mut().for_each(|accesses| accesses.behind(depth));
                uses.flying.behind(depth);
            }
        }
    }

    fn change(&mut self, how: &dyn Fn(Access) -> Access) {
        let is_changed = |accesses: &Accesses| accesses.is_changed(how);
        for uses in &mut self.buffers {
            if uses.over().chain([&uses.flying]).any(is_changed) {
                let uses = Rc::make_mut(uses);
                uses.over_mut().for_each(|accesses| accesses.change(how));
                uses.flying.change(how);
            }
        }
    }

    /// What happened on either of two paths.
    pub fn join(&mut self, other: &Self) {
        self.in_cluster.join(&other.in_cluster);
        self.ready |= other.ready;
        for (n, others) in other.buffers.iter().enumerate() {
            let own = &mut self.buffers[n];
            if !Rc::ptr_eq(own, others) && !own.has_all(others) {
                Rc::make_mut(own).join(others);
            }
        }
        or(&mut self.waited, &other.waited);
        or(&mut self.touched, &other.touched);
        self.multiplying.extend(other.multiplying.iter().copied());
        self.multiplied.extend(other.multiplied.iter().copied());
        self.published |= other.published;
        self.awaited |= other.awaited;
        self.abroad |= other.abroad;
        self.arrived |= other.arrived;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use tilewright_theory::random::Random;

    /// What a list holds, by the definition: of each group each access once, or one of which nothing is known, with the
    /// least that has waited.
    fn by_definition(list: &[(Access, Sharing)]) -> Vec<(Access, Sharing)> {
        let stands_for = |access: Access| {
            let known = Access::anywhere(access.group);
            if list.iter().any(|(other, _)| *other == known) { known } else { access }
        };
        let mut found: Vec<(Access, Sharing)> = Vec::new();
        for (access, among) in list {
            let access = stands_for(*access);
            match found.iter_mut().find(|(other, _)| *other == access) {
                Some((_, least)) => *least = (*least).min(*among),
                None => found.push((access, *among)),
            }
        }
        found.sort();
        found
    }

    #[test]
    fn lists_are_joined_as_sets() {
        let mut random = Random(7);
        let sharing = [Sharing::Thread, Sharing::Warp, Sharing::Warpgroup, Sharing::Block];
        for _ in 0..2_000 {
            let mut drawn = || {
                let length = random.below(12);
                let one = |_| {
                    let group = random.below(4) as Group;
                    let [own, any, now] = [0, 0, 0].map(|_| random.below(3) as u32);
                    let is_known = random.below(6) > 0;
                    let access =
                        if is_known { Access { group, own, any: any & !own, now } } else { Access::anywhere(group) };
                    (access, random.of(&sharing))
                };
                (0..length).map(one).collect::<Vec<_>>()
            };
            let (first, second) = (drawn(), drawn());
            let [mut a, mut b] = [Accesses::default(), Accesses::default()];
            first.iter().for_each(|(access, among)| a.add(*access, *among));
            b.extend(second.iter().copied());
            assert_eq!(a.0, by_definition(&first));
            assert_eq!(b.0, by_definition(&second));
            let all = by_definition(&[first, second].concat());
            assert_eq!(a.has_all(&b), a.0 == all, "{a:?} {b:?}");
            a.join(&b);
            assert_eq!(a.0, all);
        }
    }

    /// What a list says of iterations: for each access those of which it may be, one for each way.
    fn ways(accesses: &Accesses) -> BTreeSet<(Group, u32, u32, Sharing)> {
        let mut found = BTreeSet::new();
        for (Access { group, own, any, now }, among) in accesses.iter() {
            assert_eq!(own & any, 0, "either is known or it is not");
            // Every subset of what is not known.
            let mut some = any;
            loop {
                found.insert((group, own | some, now, among));
                if some == 0 {
                    break;
                }
                some = (some - 1) & any;
            }
        }
        found
    }

    #[test]
    fn after_loops_the_same_iterations_are_said() {
        let mut random = Random(11);
        let sharing = [Sharing::Thread, Sharing::Warp];
        let mut shorter = 0;
        for _ in 0..2_000 {
            let mut list = Accesses::default();
            for _ in 0..random.below(14) {
                let [own, any, now] = [0, 0, 0].map(|_| random.below(8) as u32);
                let access = Access { group: random.below(2) as Group, own, any: any & !own & 5, now };
                list.add(access, random.of(&sharing));
            }
            for depth in [2, 1, 0] {
                // Accesses of which less is known may stand for others of the list: the least that has waited counts.
                let expected: BTreeSet<_> = ways(&list)
                    .into_iter()
                    .map(|(group, own, now, among)| (group, own, now & !(1 << depth), among))
                    .collect();
                let before = list.0.len();
                list.behind(depth);
                let found = ways(&list);
                let least = |all: &BTreeSet<(Group, u32, u32, Sharing)>, way: (Group, u32, u32)| {
                    all.iter().filter(|(group, own, now, _)| (*group, *own, *now) == way).map(|w| w.3).min()
                };
                let all: BTreeSet<_> = expected.iter().chain(&found).map(|(g, own, now, _)| (*g, *own, *now)).collect();
                for way in all {
                    assert_eq!(least(&found, way), least(&expected, way), "{way:?} after {depth}: {list:?}");
                }
                assert!(list.0.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order: {list:?}");
                shorter += usize::from(list.0.len() < before);
            }
        }
        assert!(shorter > 1_000, "{shorter}");
    }

    /// One more than are told apart, and nothing is known of the iterations of any.
    #[test]
    fn too_many_are_not_told_apart() {
        let mut all = Accesses::default();
        let access = |n: u32| Access { group: n % 2, own: n / 2, any: 0, now: 0 };
        (0..MOST_ACCESSES as u32).for_each(|n| all.add(access(n), Sharing::Warp));
        assert_eq!(all.0.len(), MOST_ACCESSES);
        assert!(all.iter().all(|(access, _)| !access.is_anywhere()));
        all.add(access(MOST_ACCESSES as u32), Sharing::Thread);
        let left = [(Access::anywhere(0), Sharing::Thread), (Access::anywhere(1), Sharing::Warp)];
        assert_eq!(all.0, left);
    }
}
