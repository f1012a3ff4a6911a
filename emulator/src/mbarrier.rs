//! Mbarrier objects of a CTA's shared memory (PTX manual 9.7.13.16): phase, pending and expected arrivals, transaction
//! count, and the clock that arrivals leave for those who wait.
//!
//! A phase ends when no arrivals are pending and the transaction count is 0; then the next begins with the expected
//! count. A state (token) names the phase in its upper half and the pending count before the arrival in its lower half.

use tilewright_sorted::SortedMap;

use crate::bulk::flight::Issuer;
use crate::lanes::LANES;
use crate::shadow::clock::Clocks;

/// Greatest expected and pending count.
pub const MOST_ARRIVALS: u32 = (1 << 20) - 1;
/// Greatest transaction count, either way.
pub const MOST_BYTES: i64 = (1 << 20) - 1;

/// One object.
#[derive(Clone, Debug, Default)]
pub struct Mbarrier {
    /// Number of completed phases.
    pub phase: u32,
    /// Arrivals that the phase still waits for.
    pub pending: u32,
    /// Arrivals of a whole phase.
    pub expected: u32,
    /// Bytes that the phase still waits for; negative while copies are ahead of their expectation.
    pub bytes: i64,
    /// Bytes expected and bytes arrived in this phase so far.
    moved: (i64, i64),
    /// Who changed the transaction count last.
    pub moved_by: Option<Issuer>,
    /// The agent that counts the phases that copies complete, once one has named the object: see `shadow::clock`.
    pub agent: Option<usize>,
    clock: Vec<u32>,
    completed: Vec<u32>,
    /// The last phase that each thread has seen the end of, by parity, and the epoch of its warp then.
    seen: SortedMap<u32, (u32, u32)>,
}

/// Why an operation is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// There is no live object at the address.
    NotInitialised,
    /// An object at the address is live already.
    Live,
    /// An expected count outside 1 to [`MOST_ARRIVALS`].
    Count(u32),
    /// More arrivals than the phase waits for: count and pending.
    TooMany(u32, u32),
    /// A transaction count beyond its range.
    Bytes(i64),
    /// An arrival without completion that would complete the phase.
    Completes,
    /// A state of a phase that is neither the current one nor the one before it: phase of the state and of the object.
    Stale(u32, u32),
    /// A wait by parity for a phase that ended longer ago: that phase and the current one.
    Late(u32, u32),
}

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Misuse::NotInitialised => f.write_str("there is no initialised mbarrier at the address"),
            Misuse::Live => f.write_str("the mbarrier at the address is live: `mbarrier.inval` must come first"),
            Misuse::Count(count) => write!(f, "the count is {count}; it must be 1 to {MOST_ARRIVALS}"),
            Misuse::TooMany(count, pending) => {
                write!(f, "{count} arrivals where the phase waits for {pending} more")
            }
            Misuse::Bytes(bytes) => write!(f, "the transaction count becomes {bytes}, beyond ±{MOST_BYTES}"),
            Misuse::Completes => f.write_str("an arrival with `.noComplete` would complete the phase"),
            Misuse::Stale(state, phase) => {
                write!(f, "the state is of phase {state}; the mbarrier is in phase {phase}")
            }
            Misuse::Late(next, phase) => write!(
                f,
                "the thread waits by parity for phase {next}; the mbarrier is in phase {phase}, so that the parity tells nothing"
            ),
        }
    }
}

/// How an arrival arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrival {
    /// Arrivals.
    pub count: u32,
    /// Bytes expected first.
    pub bytes: u32,
    /// Lowers the expected count of later phases.
    pub drop: bool,
    /// Must not complete the phase.
    pub no_complete: bool,
}

impl Mbarrier {
    /// For messages.
    pub fn describe(&self) -> String {
        let Mbarrier { phase, pending, expected, bytes, moved: (raised, arrived), .. } = self;
        let mut text = format!("phase {phase}, {pending} of {expected} arrivals and {bytes} bytes pending");
        if (*raised, *arrived) != (0, 0) {
            text.push_str(&format!(": {raised} bytes expected, {arrived} arrived"));
        }
        text
    }

    fn settle(&mut self) -> bool {
        if self.pending != 0 || self.bytes != 0 {
            return false;
        }
        self.phase = self.phase.wrapping_add(1);
        self.pending = self.expected;
        self.moved = (0, 0);
        self.completed = std::mem::take(&mut self.clock);
        true
    }

    /// Changes the transaction count; whether a phase ended.
    pub fn transact(&mut self, bytes: i64) -> Result<bool, Misuse> {
        let sum = self.bytes + bytes;
        if sum.abs() > MOST_BYTES {
            return Err(Misuse::Bytes(sum));
        }
        self.bytes = sum;
        let moved = if bytes < 0 { &mut self.moved.1 } else { &mut self.moved.0 };
        *moved += bytes.abs();
        // Expecting bytes never ends a phase; their arrival may.
        Ok(bytes < 0 && self.settle())
    }

    /// An arrival by a warp; the state before it. `clocks` is given when the arrival orders what the warp did before.
    pub fn arrive(&mut self, arrival: Arrival, clocks: Option<(&mut Clocks, usize)>) -> Result<u64, Misuse> {
        let Arrival { count, bytes, drop, no_complete } = arrival;
        if count == 0 || count > MOST_ARRIVALS {
            return Err(Misuse::Count(count));
        }
        if bytes != 0 {
            self.transact(i64::from(bytes))?;
        }
        if count > self.pending {
            return Err(Misuse::TooMany(count, self.pending));
        }
        if no_complete && count == self.pending {
            return Err(Misuse::Completes);
        }
        let state = u64::from(self.phase) << 32 | u64::from(self.pending);
        self.pending -= count;
        if drop {
            self.expected = self.expected.saturating_sub(count);
        }
        if let Some((clocks, warp)) = clocks {
            clocks.release(warp, false, &mut self.clock);
        }
        self.settle();
        Ok(state)
    }

    /// Whether the phase of a state has ended.
    pub fn ended(&self, state: u64) -> Result<bool, Misuse> {
        let phase = (state >> 32) as u32;
        match self.phase.wrapping_sub(phase) {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Misuse::Stale(phase, self.phase)),
        }
    }

    /// Whether the phase of this parity has ended: the current one has not, the one before it has.
    pub fn ended_parity(&self, parity: u32) -> bool {
        self.phase & 1 != parity & 1
    }

    /// As [`Mbarrier::ended_parity`] for a thread that may have waited before. The wait is for the phase after the last
    /// one that it knows of, or for that one again; a phase two after the current one has the current one's parity.
    pub fn ended_for(&mut self, thread: u32, parity: u32, clocks: &Clocks) -> Result<bool, Misuse> {
        // One that knows of none waits for the first.
        let next = |seen: Option<u32>| seen.unwrap_or(u32::MAX).wrapping_add(1);
        let is_late = |next: u32| self.phase.wrapping_sub(next) as i32 >= 2;
        if is_late(next(self.seen.get(&thread).map(|seen| seen.0))) {
            let next = next(self.known(thread, clocks));
            if is_late(next) && next & 1 == parity & 1 {
                return Err(Misuse::Late(next, self.phase));
            }
        }
        let ended = self.ended_parity(parity);
        if ended {
            let epoch = clocks.epoch((thread / LANES as u32) as usize);
            self.seen.insert(thread, (self.phase.wrapping_sub(1), epoch));
        }
        Ok(ended)
    }

    /// The last phase that a thread knows the end of: one that it has seen, or that another one saw before what this
    /// one does now. If nobody tells what comes before what, whatever others saw.
    fn known(&self, thread: u32, clocks: &Clocks) -> Option<u32> {
        let warp = |thread: u32| (thread / LANES as u32) as usize;
        let knows = |(other, (_, epoch)): &&(u32, (u32, u32))| {
            *other == thread || !clocks.is_tracked() || clocks.ordered(warp(thread), warp(*other), *epoch)
        };
        let behind = |seen: &u32| self.phase.wrapping_sub(*seen);
        self.seen.iter().filter(knows).map(|(_, seen)| seen.0).min_by_key(behind)
    }

    /// What the last completed phase ordered.
    pub fn completed(&self) -> &[u32] {
        &self.completed
    }
}

/// The objects of a CTA by address.
#[derive(Debug, Default)]
pub struct Mbarriers {
    live: SortedMap<u64, Mbarrier>,
    /// Grows when something changes that somebody may wait for, and when a warp runs that need not wait.
    pub progress: u64,
    /// Waits that failed since, by warp.
    fruitless: Vec<u32>,
    seen: u64,
}

impl Mbarriers {
    /// The state at the start of a CTA.
    pub fn reset(&mut self, warps: usize) {
        self.live.clear();
        self.progress = 0;
        self.seen = 0;
        self.fruitless.clear();
        self.fruitless.resize(warps, 0);
    }

    /// Begins an object's life.
    pub fn init(&mut self, address: u64, count: u32) -> Result<(), Misuse> {
        if count == 0 || count > MOST_ARRIVALS {
            return Err(Misuse::Count(count));
        }
        if self.live.contains_key(&address) {
            return Err(Misuse::Live);
        }
        self.live.insert(address, Mbarrier { pending: count, expected: count, ..Mbarrier::default() });
        self.progress += 1;
        Ok(())
    }

    /// Ends an object's life.
    pub fn invalidate(&mut self, address: u64) -> Result<(), Misuse> {
        self.live.remove(&address).map(|_| ()).ok_or(Misuse::NotInitialised)
    }

    /// The object at an address.
    pub fn at(&mut self, address: u64) -> Result<&mut Mbarrier, Misuse> {
        self.live.get_mut(&address).ok_or(Misuse::NotInitialised)
    }

    /// The live object that contains the byte, with its address.
    pub fn covering(&self, byte: u64) -> Option<(u64, &Mbarrier)> {
        let (address, object) = self.live.range(..=byte).next_back()?;
        (byte - address < 8).then_some((*address, object))
    }

    /// Counts a wait that failed; how many of this warp's did since there was progress.
    pub fn failed(&mut self, warp: usize) -> u32 {
        if self.seen != self.progress {
            self.seen = self.progress;
            self.fruitless.fill(0);
        }
        self.fruitless[warp] += 1;
        self.fruitless[warp]
    }

    /// All objects, for reports.
    pub fn iter(&self) -> impl Iterator<Item = &(u64, Mbarrier)> {
        self.live.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_end_when_arrivals_and_bytes_are_in() {
        let mut all = Mbarriers::default();
        all.reset(1);
        assert_eq!(all.at(8).err(), Some(Misuse::NotInitialised));
        all.init(8, 2).unwrap();
        assert_eq!(all.init(8, 2), Err(Misuse::Live));
        let barrier = all.at(8).unwrap();
        let one = Arrival { count: 1, ..Arrival::default() };
        let first = barrier.arrive(one, None).unwrap();
        assert_eq!((first, barrier.ended(first)), (2, Ok(false)));
        // The second arrival expects 16 bytes: the phase ends with them.
        barrier.arrive(Arrival { bytes: 16, ..one }, None).unwrap();
        assert_eq!((barrier.phase, barrier.pending, barrier.bytes), (0, 0, 16));
        assert_eq!(barrier.arrive(one, None), Err(Misuse::TooMany(1, 0)));
        assert!(!barrier.transact(-8).unwrap());
        assert!(barrier.transact(-8).unwrap());
        assert_eq!((barrier.ended(first), barrier.ended_parity(0), barrier.ended_parity(1)), (Ok(true), true, false));
        // Dropped out: one arrival ends every later phase.
        barrier.arrive(Arrival { drop: true, ..one }, None).unwrap();
        barrier.arrive(one, None).unwrap();
        assert_eq!((barrier.phase, barrier.pending), (2, 1));
        assert_eq!(barrier.ended(first), Err(Misuse::Stale(0, 2)));
        assert_eq!(barrier.arrive(Arrival { no_complete: true, ..one }, None), Err(Misuse::Completes));
        assert_eq!(barrier.transact(-MOST_BYTES - 1), Err(Misuse::Bytes(-MOST_BYTES - 1)));
        all.invalidate(8).unwrap();
        assert_eq!(all.invalidate(8), Err(Misuse::NotInitialised));
    }

    /// A wait by parity for a phase that ended longer ago tells nothing, unless the thread knows by other means that
    /// later phases are over.
    #[test]
    fn a_wait_is_for_the_phase_after_the_last_one_that_is_known() {
        let one = Arrival { count: 1, ..Arrival::default() };
        let (first, second) = (0, LANES as u32);
        // What the second warp saw of the first two phases is told to the first one, or is not.
        for is_told in [true, false] {
            for waited_before in [true, false] {
                let (mut all, mut clocks) = (Mbarriers::default(), Clocks::default());
                all.reset(2);
                clocks.reset(2, true, false);
                all.init(8, 1).unwrap();
                all.init(16, 1).unwrap();
                let barrier = all.at(8).unwrap();
                for phase in 0..4 {
                    barrier.arrive(one, None).unwrap();
                    if phase < 2 {
                        assert_eq!(barrier.ended_for(second, phase, &clocks), Ok(true));
                    }
                    if phase == 0 && waited_before {
                        assert_eq!(barrier.ended_for(first, 0, &clocks), Ok(true));
                    }
                }
                let word = all.at(16).unwrap();
                word.arrive(one, Some((&mut clocks, 1))).unwrap();
                if is_told {
                    clocks.acquire(0, all.at(16).unwrap().completed());
                }
                // Four phases are over. Who knows of two waits for the third, which is two before the present one.
                let (barrier, parity) = (all.at(8).unwrap(), u32::from(!is_told && waited_before));
                let late = if is_told { 2 } else { u32::from(waited_before) };
                assert_eq!(barrier.ended_for(first, parity, &clocks), Err(Misuse::Late(late, 4)));
                // For the fourth it is in time, if it knows of the third.
                assert_eq!(barrier.ended_for(second, 1, &clocks), Ok(true));
                let word = all.at(16).unwrap();
                word.arrive(one, Some((&mut clocks, 1))).unwrap();
                clocks.acquire(0, all.at(16).unwrap().completed());
                assert_eq!(all.at(8).unwrap().ended_for(first, 0, &clocks), Ok(false));
            }
        }
    }
}
