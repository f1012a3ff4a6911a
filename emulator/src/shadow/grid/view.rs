//! What the warps of a CTA tell other CTAs, and what they have learnt of them.
//!
//! A release is a fence, then a strong write by the same thread; an acquire a strong read of what it wrote, then a
//! fence by the same thread (PTX manual 8.8). What a thread acquires is ordered before what it does next, and by way of
//! barriers before what others of its CTA do: an *import* has the epoch in which a warp made it, and whoever knows this
//! epoch of the warp knows the import.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::known::{Known, Part};
use super::{Element, Point};
use crate::lanes::{Mask, lanes};
use crate::shadow::clock::Clocks;

/// The last fence of some lanes of a warp.
#[derive(Clone, Debug)]
struct Fence {
    lanes: Mask,
    /// What strong writes release after it.
    known: Known,
    pc: u32,
}

/// What strong reads have seen that no fence has followed yet.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// The lanes that read.
    pub lanes: Mask,
    pub known: Known,
    /// The read.
    pub pc: u32,
}

/// What a fence has made of it.
#[derive(Clone, Debug)]
pub struct Import {
    /// The warp's epoch then.
    pub epoch: u32,
    /// The lanes that the fence was of.
    pub lanes: Mask,
    pub known: Known,
    /// The strong read.
    pub pc: u32,
    /// Whether it has all that earlier ones of the warp have.
    whole: bool,
}

#[derive(Clone, Debug, Default)]
struct OfWarp {
    fences: Vec<Fence>,
    seen: Option<Sighting>,
    imports: Vec<Import>,
}

/// A strong read of a thread, and which strong writes of its element it has observed: those that were this many strong
/// accesses after the launch began.
#[derive(Clone, Debug)]
struct Observation {
    warp: usize,
    lane: usize,
    epoch: u32,
    writes: RangeInclusive<u32>,
}

/// What a CTA has to do with others.
#[derive(Clone, Debug, Default)]
pub struct View {
    cta: u64,
    warps: Vec<OfWarp>,
    /// The last observation of each thread, by element.
    observed: BTreeMap<Element, Vec<Observation>>,
    /// Whether anything was learnt.
    any: bool,
}

/// A thread of this CTA and when it did something, or of another one.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub cta: u64,
    pub warp: usize,
    pub lane: usize,
    pub epoch: u32,
}

impl View {
    /// The state at the start of a CTA.
    pub fn reset(&mut self, cta: u64, warps: usize) {
        self.cta = cta;
        self.warps.resize_with(warps, OfWarp::default);
        for warp in &mut self.warps {
            warp.fences.clear();
            warp.seen = None;
            warp.imports.clear();
        }
        self.observed.clear();
        self.any = false;
    }

    /// Whether anything was observed.
    #[inline(always)]
    pub fn observes(&self) -> bool {
        !self.observed.is_empty()
    }

    /// A thread has read an element strongly.
    pub fn observe(&mut self, element: Element, point: Point, epoch: u32, writes: RangeInclusive<u32>) {
        let (warp, lane) = (point.warp as usize, point.lane as usize);
        let list = self.observed.entry(element).or_default();
        let new = Observation { warp, lane, epoch, writes };
        match list.iter_mut().find(|old| (old.warp, old.lane) == (warp, lane)) {
            Some(old) => *old = new,
            None => list.push(new),
        }
    }

    /// Whether a strong write of an element was observed by something that is ordered before what the lane does now.
    pub fn has_observed(&self, clocks: &Clocks, (warp, lane): (usize, usize), element: Element, write: u32) -> bool {
        self.observed.get(&element).into_iter().flatten().any(|read| {
            read.writes.contains(&write)
                && if read.warp == warp {
                    clocks.lanes_ordered(warp, lane as u32, read.lane as u32, read.epoch)
                } else {
                    clocks.ordered(warp, read.warp, read.epoch)
                }
        })
    }

    /// Whether nothing was learnt of other CTAs.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// What the lanes `run` of a warp did and know is what their strong writes release from now on; `together` when
    /// these are all that live. Called before the warp's epoch ends.
    pub fn release(&mut self, clocks: &Clocks, (warp, run, together): (usize, Mask, bool), pc: u32) -> &Known {
        let mut known = self.external(clocks, warp, run);
        let (epochs, row) = clocks.released(warp, run, together);
        let part = Part { epochs, lanes: row.map(|row| (warp, row)).into_iter().collect() };
        known.join(&Known::of(self.cta, part));
        let fences = &mut self.warps[warp].fences;
        fences.iter_mut().for_each(|fence| fence.lanes &= !run);
        fences.retain(|fence| fence.lanes != 0);
        fences.push(Fence { lanes: run, known, pc });
        &fences[fences.len() - 1].known
    }

    /// What the lanes have seen counts from now on.
    pub fn acquire(&mut self, clocks: &Clocks, (warp, run, together): (usize, Mask, bool)) {
        let Some(seen) = &self.warps[warp].seen else { return };
        let readers = if together { run } else { run & seen.lanes };
        if readers == 0 {
            return;
        }
        let Some(Sighting { known, pc, .. }) = self.warps[warp].seen.take() else { return };
        let mut import = Import { epoch: clocks.epoch(warp), lanes: readers, known, pc, whole: true };
        if let Some(last) = self.warps[warp].imports.last() {
            let to_all = lanes(readers).all(|lane| learnt(clocks, (warp, lane), (warp, last)));
            import.whole = last.whole && lanes(readers).any(|lane| learnt(clocks, (warp, lane), (warp, last)));
            if import.whole {
                let mut sum = last.known.clone();
                sum.join(&import.known);
                if to_all && sum.is_same(&last.known) {
                    return;
                }
                import.known = sum;
            }
        }
        self.warps[warp].imports.push(import);
        self.any = true;
    }

    /// All that any of these lanes knows of other CTAs.
    fn external(&self, clocks: &Clocks, warp: usize, run: Mask) -> Known {
        let mut known = Known::default();
        if self.any {
            for (of, other) in self.warps.iter().enumerate() {
                for import in other.imports.iter().rev() {
                    if lanes(run).any(|lane| learnt(clocks, (warp, lane), (of, import))) {
                        known.join(&import.known);
                        if import.whole {
                            break;
                        }
                    }
                }
            }
        }
        known
    }

    /// What a strong write of a lane releases, and the fence that makes it so.
    pub fn released(&self, warp: usize, lane: usize) -> Option<(&Known, u32)> {
        let fence = self.warps[warp].fences.iter().find(|fence| fence.lanes >> lane & 1 == 1)?;
        Some((&fence.known, fence.pc))
    }

    /// A strong read of a lane has seen something.
    pub fn see(&mut self, warp: usize, lane: usize, known: &Known, pc: u32) {
        if known.is_empty() {
            return;
        }
        match &mut self.warps[warp].seen {
            Some(seen) => {
                seen.lanes |= 1 << lane;
                if !seen.known.is_same(known) {
                    seen.known.join(known);
                    seen.pc = pc;
                }
            }
            seen => *seen = Some(Sighting { lanes: 1 << lane, known: known.clone(), pc }),
        }
    }

    /// Whether what another CTA did is ordered before what the lane does now.
    pub fn knows(&self, clocks: &Clocks, (warp, lane): (usize, usize), event: Event) -> bool {
        self.search(
            event,
            |of, import| learnt(clocks, (warp, lane), (of, import)),
            |part| part.holds(event.warp, event.lane, event.epoch),
        )
    }

    /// Whether what the lanes of a warp of another CTA did is ordered before what all lanes of the warp do now; a no
    /// may be wrong.
    pub fn knows_all(&self, clocks: &Clocks, warp: usize, event: Event) -> bool {
        self.search(
            event,
            |of, import| clocks.ordered(warp, of, import.epoch),
            |part| part.holds_all(event.warp, event.epoch),
        )
    }

    fn search(&self, event: Event, learnt: impl Fn(usize, &Import) -> bool, holds: impl Fn(&Part) -> bool) -> bool {
        self.warps.iter().enumerate().any(|(of, other)| {
            for import in other.imports.iter().rev().filter(|import| learnt(of, import)) {
                if import.known.get(event.cta).is_some_and(&holds) {
                    return true;
                }
                if import.whole {
                    break;
                }
            }
            false
        })
    }

    /// Who of this CTA has acquired it, whether or not others know.
    pub fn importer(&self, event: Event) -> Option<(usize, &Import)> {
        let holds = |known: &Known| known.get(event.cta).is_some_and(|p| p.holds(event.warp, event.lane, event.epoch));
        let mut all = self.warps.iter().enumerate().flat_map(|(of, w)| w.imports.iter().map(move |i| (of, i)));
        all.find(|(_, import)| holds(&import.known))
    }

    /// Who of this CTA has seen what tells of it, without a fence after.
    pub fn sighting(&self, event: Event) -> Option<(usize, &Sighting)> {
        let holds = |known: &Known| known.get(event.cta).is_some_and(|p| p.holds(event.warp, event.lane, event.epoch));
        let mut all = self.warps.iter().enumerate().filter_map(|(of, w)| w.seen.as_ref().map(|seen| (of, seen)));
        all.find(|(_, seen)| holds(&seen.known))
    }
}

/// Whether a lane knows what warp `of` has imported.
fn learnt(clocks: &Clocks, (warp, lane): (usize, usize), (of, import): (usize, &Import)) -> bool {
    if of != warp {
        return clocks.ordered(warp, of, import.epoch);
    }
    let ordered = |other: usize| clocks.lanes_ordered(warp, lane as u32, other as u32, import.epoch);
    import.lanes >> lane & 1 == 1 || lanes(import.lanes).any(ordered)
}
