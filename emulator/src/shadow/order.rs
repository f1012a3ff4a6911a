//! Order between the warps of a CTA by fences and strong accesses (PTX manual 8.8): a fence, then a strong write,
//! release what the warp did and knows to whoever reads the written value by a strong read, then a fence.
//!
//! Words are told apart, lanes of a warp are not: what one lane releases or acquires, its whole warp does.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::clock::Clocks;
use crate::decode::op::Fence;

/// Clock of a release, shared between the words that it was written to.
type Released = Arc<Vec<u32>>;

/// What the warps of a CTA have released and seen.
#[derive(Debug, Default)]
pub struct Order {
    /// What each warp's last fence lets its later strong writes release.
    fenced: Vec<Option<Released>>,
    /// What each warp's strong reads have seen since its last fence.
    seen: Vec<Vec<u32>>,
    /// What the value of a word releases, by generic address.
    words: BTreeMap<u64, Released>,
}

impl Order {
    /// The state at the start of a CTA.
    pub fn reset(&mut self, warps: usize) {
        self.fenced.clear();
        self.fenced.resize(warps, None);
        self.seen.clear();
        self.seen.resize(warps, Vec::new());
        self.words.clear();
    }

    /// A fence of the warp, of all its lanes `together` or of some: what it has seen is ordered before what comes, and
    /// what it did before what it writes from now on.
    pub fn fence(&mut self, clocks: &mut Clocks, warp: usize, fence: Fence, together: bool) {
        if fence.acquires {
            let seen = std::mem::take(&mut self.seen[warp]);
            if !seen.is_empty() {
                clocks.acquire(warp, &seen);
            }
        }
        if !fence.releases {
            return;
        }
        let mut clock = Vec::new();
        clocks.release(warp, together, &mut clock);
        self.fenced[warp] = Some(Arc::new(clock));
    }

    /// What the warp's last fence lets its strong writes release, and its relaxed arrivals.
    pub fn fenced(&self, warp: usize) -> Option<&[u32]> {
        self.fenced[warp].as_ref().map(|clock| clock.as_slice())
    }

    /// A strong read of the word.
    pub fn read(&mut self, warp: usize, address: u64) {
        if let Some(clock) = self.words.get(&(address / 4)) {
            join(&mut self.seen[warp], clock);
        }
    }

    /// A strong write of the word, whose older values release nothing any more.
    pub fn write(&mut self, warp: usize, address: u64) {
        match &self.fenced[warp] {
            Some(clock) => _ = self.words.insert(address / 4, clock.clone()),
            None => _ = self.words.remove(&(address / 4)),
        }
    }

    /// An atomic operation: it reads the word, and what it writes still releases what the old value did.
    pub fn update(&mut self, warp: usize, address: u64) {
        self.read(warp, address);
        let Some(mine) = &self.fenced[warp] else { return };
        match self.words.get_mut(&(address / 4)) {
            None => _ = self.words.insert(address / 4, mine.clone()),
            Some(clock) if Arc::ptr_eq(clock, mine) => {}
            Some(clock) => join(Arc::make_mut(clock), mine),
        }
    }
}

/// The later one of each component.
fn join(clock: &mut Vec<u32>, other: &[u32]) {
    clock.resize(clock.len().max(other.len()), 0);
    for (known, new) in clock.iter_mut().zip(other) {
        *known = (*known).max(*new);
    }
}
